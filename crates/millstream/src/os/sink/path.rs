//! Writes to a path. A regular file appears complete or not at all; other kinds of files are written directly.
//!
//! If no file exists at the path, the bytes are written to a file without a name (`O_TMPFILE` on Linux), which `close`
//! names: no file remains, however the process ends. An existing file is replaced by a temporary file next to it,
//! `.NAME.millstream-XXXXXX.tmp`, which `close` renames; a new file is created in this way too if the operating system
//! has no unnamed files. Until then the path is unchanged: absent, or with its old content. The new file gets the old
//! one's permissions, its access control list and, if the kernel allows it, its owner; other attributes are not copied,
//! and other hard links keep the old content. A symbolic link stays: its target is replaced. [`Existing::Append`] and
//! [`Partial::Keep`] write to the path itself.
//!
//! FIFOs, terminals and devices are written directly. `/dev/stdout` and similar paths refer to open descriptors of this
//! process, and are not files to replace, whatever they are connected to.
//!
//! The file is synced only if requested ([`Durability`]); otherwise a power failure soon after `close` can lose data
//! that was not yet on the disk.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::sink::fd::{FdSink, Handle};
use crate::os::sink::mapped::MappedSink;
use crate::os::sink::temporary::Temporary;
use crate::sink::{Durability, Existing, Partial, WriterEnd};
use crate::sink::{Limits, OnDrop, Opened, Sink};

/// The interval at which a FIFO is checked for a reader, if the wait must be interruptible: there is no descriptor to
/// poll.
const FIFO_PATIENCE: Duration = Duration::from_millis(10);

/// The number of symbolic links that Linux follows.
const MAX_LINKS: usize = 40;

/// The options for opening a path.
pub(crate) struct Manner {
    pub(crate) existing: Existing,
    pub(crate) partial: Partial,
    pub(crate) durability: Durability,
    pub(crate) access: Access,
    /// The block length for [`FdSink::lending`].
    pub(crate) lend: Option<usize>,
}

/// How bytes are written to a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// With write(2), as for other sinks.
    Write,
    /// Through a mapping only.
    Mapped,
}

/// Opens a path for writing.
pub(crate) fn open(path: &Path, manner: &Manner, limits: &Limits) -> Result<Opened> {
    let name = path.display().to_string();
    match open_target(path, manner, limits) {
        Ok(opened) => Ok(Opened { name, ..opened }),
        Err(Failure::System(reason)) => Err(Error::new(ErrorKind::OpenFailed).with_io(reason).with_name(name)),
        Err(Failure::Other(error)) => Err(error.with_name(name)),
    }
}

/// An error that prevents opening a path. An error of the operating system becomes [`ErrorKind::OpenFailed`].
enum Failure {
    System(io::Error),
    Other(Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::System(error)
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Failure {
        Failure::System(error.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Other(error)
    }
}

fn open_target(path: &Path, manner: &Manner, limits: &Limits) -> Result<Opened, Failure> {
    let wait = limits.wait();
    let target = resolve(path)?;
    if let Some(number) = own_descriptor(&target) {
        if manner.existing == Existing::CreateNew {
            return Err(Error::new(ErrorKind::AlreadyExists).into());
        }
        manner.refuse_special()?;
        return direct(open_own_descriptor(number, &target)?, manner, wait);
    }
    let old = match fs::metadata(&target) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let creates = manner.existing == Existing::CreateNew;
    match old {
        Some(_) if creates => Err(Error::new(ErrorKind::AlreadyExists).into()),
        Some(old) if old.is_dir() => Err(Errno::ISDIR.into()),
        Some(old) if !old.is_file() => {
            manner.refuse_special()?;
            direct(Handle::Owned(open_special(&target, &old, limits)?), manner, wait)
        }
        _ if manner.existing != Existing::Replace && !creates => {
            let file = OpenOptions::new().append(true).create(true).open(&target)?;
            file_sink(file, Naming::Done, target, manner, wait)
        }
        _ if manner.partial == Partial::Keep => {
            let file = manner.open_options().create(true).create_new(creates).truncate(!creates).open(&target)?;
            file_sink(file, Naming::Done, target, manner, wait)
        }
        Some(old) => {
            // Renaming would replace a file that this process may not write to.
            rustix::fs::access(&target, rustix::fs::Access::WRITE_OK)?;
            // No other process may open the new file before it has the permissions of the old one.
            let (file, temporary) = create_beside(&target, 0o600, manner)?;
            keep_attributes(&file, &target, &old)?;
            file_sink(file, Naming::Temporary(temporary), target, manner, wait)
        }
        None => {
            if let Some((file, nameless)) = create_nameless(&target, manner)? {
                return file_sink(file, nameless, target, manner, wait);
            }
            let (file, temporary) = create_beside(&target, NEW_MODE, manner)?;
            file_sink(file, Naming::Temporary(temporary), target, manner, wait)
        }
    }
}

impl Manner {
    /// Returns the options for opening a file that may be written to.
    fn open_options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        // A file that is written through a mapping must be readable too.
        options.write(true).read(self.access == Access::Mapped);
        options
    }

    /// Fails if the file must be mapped, because only a regular file can be.
    fn refuse_special(&self) -> Result<(), Error> {
        match self.access {
            Access::Write => Ok(()),
            Access::Mapped => Err(Error::new(ErrorKind::OpenFailed)
                .with_found("something that is not a regular file")
                .with_expected("a regular file, which can be mapped")),
        }
    }
}

fn direct(handle: Handle, manner: &Manner, wait: Wait) -> Result<Opened, Failure> {
    let (sink, medium) = FdSink::new(handle, wait)?;
    Ok(Opened::new(sink.durable(manner.durability)?.lending(manner.lend), String::new(), medium))
}

/// Creates the sink for a regular file, which already has its name or is to appear complete.
fn file_sink(file: File, naming: Naming, target: PathBuf, manner: &Manner, wait: Wait) -> Result<Opened, Failure> {
    let (file, medium) = FdSink::new(Handle::Owned(file.into()), wait.clone())?;
    let file = file.durable(manner.durability)?;
    let file: Box<dyn Sink> = match manner.access {
        Access::Write => Box::new(file),
        Access::Mapped => Box::new(MappedSink::new(file, wait)),
    };
    let on_drop = if let Naming::Done = naming { OnDrop::Flush } else { OnDrop::Discard };
    let directory = match manner.durability {
        Durability::All => target.parent().map(Path::to_path_buf),
        Durability::Cached | Durability::Data => None,
    };
    let creates = manner.existing == Existing::CreateNew;
    let sink = FileSink { file, naming, target, creates, directory };
    Ok(Opened { on_drop, ..Opened::new(sink, String::new(), medium) })
}

/// Returns the path with every symbolic link at its end followed, even one that points to no file yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let named = matches!(path.components().next_back(), Some(Component::Normal(_)));
        if !named || path.as_os_str().as_bytes().ends_with(b"/") {
            // If anything exists at this path, it can only be a directory.
            fs::metadata(&path)?;
            return Err(Errno::ISDIR.into());
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = fs::canonicalize(parent)?;
        path = parent.join(path.file_name().unwrap_or_default());
        // The links in /proc do not refer to names: they may show text that is not a path, or the path of a different
        // file.
        if own_descriptor(&path).is_some() {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(link) => path = parent.join(link),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(path), // not a link
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// Returns the number of a path like `/proc/self/fd/1`, which names an open descriptor of this process.
fn own_descriptor(path: &Path) -> Option<u32> {
    let mut directory = path.parent()?.components().rev();
    let is_ours = path.starts_with(Path::new("/proc").join(std::process::id().to_string()));
    match directory.next()? == Component::Normal("fd".as_ref()) && is_ours {
        true => path.file_name()?.to_str()?.parse().ok(),
        false => None,
    }
}

fn open_own_descriptor(number: u32, path: &Path) -> io::Result<Handle> {
    let fd = match number {
        // The descriptor itself is used, so that a file keeps its position and is not truncated.
        0 => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?,
        1 => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?,
        2 => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?,
        // The path is opened again, which is correct for the pipes that shells create for `>(command)`; a file is only
        // appended to. This does not block, because opening a pipe without a reader would wait indefinitely.
        _ => OpenOptions::new().append(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?.into(),
    };
    Ok(Handle::Owned(fd))
}

/// Opens a FIFO, a terminal or a device. Opening a FIFO waits for its reader.
fn open_special(path: &Path, metadata: &Metadata, limits: &Limits) -> Result<OwnedFd, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NOCTTY.bits() as i32);
    let wait = limits.wait();
    if !metadata.file_type().is_fifo() || !wait.is_needed() {
        return Ok(options.open(path)?.into());
    }
    // A blocking open cannot be interrupted; a non-blocking one fails with ENXIO while there is no reader.
    options.custom_flags((OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32);
    let start = Instant::now();
    loop {
        match options.open(path) {
            Ok(file) => return Ok(file.into()),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => wait.sleep(FIFO_PATIENCE)?,
            Err(error) => return Err(error.into()),
        }
        if limits.stall.is_some_and(|limit| start.elapsed() > limit) {
            return Err(Error::new(ErrorKind::Stalled).with_found("a FIFO without a reader").into());
        }
    }
}

/// The permissions of a new file, before the umask is applied.
const NEW_MODE: u32 = 0o666;

/// Creates a file without a name, in the directory where it will be named. Returns `None` if the operating system has
/// no such files, or could not name the file later.
#[cfg(target_os = "linux")]
fn create_nameless(target: &Path, manner: &Manner) -> Result<Option<(File, Naming)>, Failure> {
    let Some(directory) = target.parent() else { return Ok(None) };
    // An impossible name must be detected at this point.
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Ok(None),
    }
    let mut options = manner.open_options();
    options.mode(NEW_MODE).custom_flags(OFlags::TMPFILE.bits() as i32);
    // Whatever the reason, a named file may still be possible; if it is not, its error explains the reason.
    let Ok(file) = options.open(directory) else { return Ok(None) };
    let nameless = file.try_clone()?.into();
    match fs::metadata(name_of_descriptor(&nameless)) {
        Ok(_) => Ok(Some((file, Naming::Nameless(nameless)))),
        Err(_) => Ok(None),
    }
}

#[cfg(not(target_os = "linux"))]
fn create_nameless(_: &Path, _: &Manner) -> Result<Option<(File, Naming)>, Failure> {
    Ok(None)
}

/// Returns the path under which the kernel shows the file of a descriptor, whether the file has a name or not.
fn name_of_descriptor(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Creates the temporary file for a file that is to appear complete. The file is removed when its name is dropped.
fn create_beside(target: &Path, mode: u32, manner: &Manner) -> Result<(File, Temporary), Failure> {
    let create = |path: &Path| manner.open_options().create_new(true).mode(mode).open(path);
    Temporary::beside(target, create).map_err(|error| {
        let error = Error::new(ErrorKind::OpenFailed).with_io(error);
        error.with_expected("to create a temporary file next to it").into()
    })
}

/// Gives the new file the old one's owner (if permitted), access control list and permissions.
fn keep_attributes(file: &File, target: &Path, old: &Metadata) -> Result<(), Failure> {
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())).is_err()
    {
        mode &= 0o777; // set-user-id with another owner would be a different permission
    }
    // The list is copied before the permissions: if there is a list, the group's permissions are its mask, and would
    // otherwise apply to the group without the list.
    keep_access_list(file, target).map_err(|error| {
        Error::new(ErrorKind::OpenFailed)
            .with_io(error.into())
            .with_expected("to copy the access control list of the old file to the new one")
    })?;
    Ok(file.set_permissions(Permissions::from_mode(mode))?)
}

/// Gives the new file the access control list of the old one, or none if the old one has none: the directory may have
/// given the new file a list.
#[cfg(target_os = "linux")]
fn keep_access_list(file: &File, old: &Path) -> Result<(), Errno> {
    use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr, getxattr_query};
    const NAME: &str = "system.posix_acl_access";
    let has_none = |error| matches!(error, Errno::NODATA | Errno::OPNOTSUPP);
    match getxattr_query(old, NAME) {
        Ok(len) => {
            let mut list = vec![0; len];
            let len = getxattr(old, NAME, &mut list[..])?;
            fsetxattr(file, NAME, &list[..len], XattrFlags::empty())
        }
        Err(error) if has_none(error) => match fremovexattr(file, NAME) {
            Err(error) if has_none(error) => Ok(()),
            removed => removed,
        },
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_access_list(_: &File, _: &Path) -> Result<(), Errno> {
    Ok(())
}

/// How a file gets its name.
enum Naming {
    /// The file already has its name.
    Done,
    /// The file has no name: the kernel removes it when its last descriptor is closed.
    Nameless(OwnedFd),
    /// The file has a temporary name.
    Temporary(Temporary),
}

impl Naming {
    /// Gives the file its name. An existing file is replaced, or is an error if `creates`. After an error the call may be
    /// repeated.
    fn finish(&mut self, target: &Path, creates: bool) -> io::Result<()> {
        match self {
            Naming::Done => {}
            Naming::Temporary(temporary) if creates => temporary.rename_new(target)?,
            Naming::Temporary(temporary) => temporary.rename(target)?,
            Naming::Nameless(file) => {
                let own = name_of_descriptor(file);
                let link = |name: &Path| rustix::fs::linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW);
                match link(target) {
                    Err(Errno::EXIST) if !creates => {
                        // Linking does not replace a file, but renaming does. A file whose name was removed cannot be
                        // linked a second time, so the temporary name is kept for the next attempt.
                        let ((), temporary) = Temporary::beside(target, |name| Ok(link(name)?))?;
                        *self = Naming::Temporary(temporary);
                        return self.finish(target, creates);
                    }
                    linked => linked?,
                }
            }
        }
        *self = Naming::Done;
        Ok(())
    }
}

/// Writes a file and names it at the end.
struct FileSink {
    file: Box<dyn Sink>,
    naming: Naming,
    target: PathBuf,
    /// Whether the file must not replace another one.
    creates: bool,
    /// The directory to sync so that the name is on the disk too, if that is required.
    directory: Option<PathBuf>,
}

impl Sink for FileSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes).map_err(|error| self.explain(error))
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.file.close(end).map_err(|error| self.explain(error))?;
        match self.naming.finish(&self.target, self.creates) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.creates => {
                return Err(Error::new(ErrorKind::AlreadyExists));
            }
            named => named.map_err(|error| self.explain(error.into()))?,
        }
        if let Some(directory) = &self.directory {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}

impl FileSink {
    /// Adds what became of the file to the advice for a full disk.
    #[cold]
    fn explain(&self, error: Error) -> Error {
        let is_incomplete = !matches!(self.naming, Naming::Done);
        match error.own_advice().map(|advice| format!("{advice}; no file was created or replaced")) {
            Some(advice) if is_incomplete => error.with_advice(advice),
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink on a disk that is full.
    struct Full;

    impl Sink for Full {
        fn write(&mut self, _: &[u8]) -> Result<usize> {
            Err(Error::from_io(Errno::NOSPC.into()))
        }

        fn close(&mut self, _: &mut WriterEnd) -> Result<()> {
            Err(Error::from_io(Errno::DQUOT.into()))
        }
    }

    #[test]
    fn the_error_for_a_full_disk_says_what_became_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        let sink =
            |naming| FileSink { file: Box::new(Full), naming, target: target.clone(), creates: false, directory: None };
        let ((), temporary) = Temporary::beside(&target, |path| File::create_new(path).map(drop)).unwrap();
        let mut incomplete = sink(Naming::Temporary(temporary));
        let advice = "free space, or write elsewhere; no file was created or replaced";
        assert_eq!(incomplete.write(b"x").unwrap_err().advice(), advice);
        assert_eq!(incomplete.close(&mut WriterEnd::default()).unwrap_err().advice(), advice);
        // This file has its name, and remains.
        assert_eq!(sink(Naming::Done).write(b"x").unwrap_err().advice(), "free space, or write elsewhere");
    }
}
