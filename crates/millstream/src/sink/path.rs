//! A path as a sink. A regular file appears whole or not at all; everything else is written directly.
//!
//! A regular or absent path is written to a temporary file beside it, named after it with a dot in front, which
//! `close` renames. Until then the path is as it was: absent, or with its old content. The new file has the old
//! one's permissions and, where the system allows, its owner; access lists and other attributes are not copied, and
//! other hard links keep the old content. A symbolic link stays: what it points to is replaced. [`Existing::Append`] and [`Partial::Keep`] write to the path itself.
//!
//! FIFOs, terminals and devices are written directly. `/dev/stdout` and its like are our own descriptors, not files
//! to replace, whatever they are connected to.
//!
//! It does not sync unless asked to ([`Durability`]): a power failure soon after `close` can lose what the system had not
//! yet stored.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use tempfile::TempPath;

use crate::cancel::Wait;
use crate::error::{Error, ErrorKind, Result};
use crate::sink::fd::{FdSink, Handle};
use crate::sink::mapped::MappedSink;
use crate::sink::{Limits, OnDrop, Opened, Sink};
use crate::writer::{Durability, Existing, Partial, WriterEnd};

/// How often we look whether a FIFO has got its reader, when the wait for it must be interruptible: there is
/// nothing to poll.
const FIFO_PATIENCE: Duration = Duration::from_millis(10);

/// As many symbolic links as Linux follows.
const MAX_LINKS: usize = 40;

/// The longest part of the name that its temporary file repeats: dots and random letters must fit in 255 bytes too.
const MAX_NAME_PART: usize = 200;

/// How a path is to be opened.
pub(crate) struct Manner {
    pub(crate) existing: Existing,
    pub(crate) partial: Partial,
    pub(crate) durability: Durability,
    pub(crate) access: Access,
    /// For [`FdSink::lending`].
    pub(crate) lend: Option<usize>,
}

/// How the bytes get into a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// By write(2), as into anything else.
    Write,
    /// Through a mapping, and nothing else will do.
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

/// What keeps a path from being opened: the system, mostly, and then it is [`ErrorKind::OpenFailed`].
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
        manner.refuse_special()?;
        return direct(open_own_descriptor(number, &target)?, manner, wait);
    }
    let old = match fs::metadata(&target) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    match old {
        Some(old) if old.is_dir() => Err(Errno::ISDIR.into()),
        Some(old) if !old.is_file() => {
            manner.refuse_special()?;
            direct(Handle::Owned(open_special(&target, &old, limits)?), manner, wait)
        }
        _ if manner.existing == Existing::Append => {
            let file = OpenOptions::new().append(true).create(true).open(&target)?;
            file_sink(file, None, target, manner, wait)
        }
        _ if manner.partial == Partial::Keep => {
            let file = manner.open_options().create(true).truncate(true).open(&target)?;
            file_sink(file, None, target, manner, wait)
        }
        old => {
            let (file, temporary) = create_beside(&target, old, manner)?;
            file_sink(file, Some(temporary), target, manner, wait)
        }
    }
}

impl Manner {
    /// For a file that may be written.
    fn open_options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        // What is written through a mapping must be readable too.
        options.write(true).read(self.access == Access::Mapped);
        options
    }

    /// What is no regular file cannot be mapped.
    fn refuse_special(&self) -> Result<(), Error> {
        match self.access {
            Access::Write => Ok(()),
            Access::Mapped => Err(Error::new(ErrorKind::OpenFailed)
                .with_found("something that is no regular file")
                .with_expected("a regular file, which can be mapped")),
        }
    }
}

fn direct(handle: Handle, manner: &Manner, wait: Wait) -> Result<Opened, Failure> {
    let (sink, medium) = FdSink::new(handle, wait)?;
    Ok(Opened::new(sink.durable(manner.durability)?.lending(manner.lend), String::new(), medium))
}

/// The sink for a regular file, which has its name already or is to appear whole.
fn file_sink(
    file: File,
    temporary: Option<TempPath>,
    target: PathBuf,
    manner: &Manner,
    wait: Wait,
) -> Result<Opened, Failure> {
    let (file, medium) = FdSink::new(Handle::Owned(file.into()), wait.clone())?;
    let file = file.durable(manner.durability)?;
    let file: Box<dyn Sink> = match manner.access {
        Access::Write => Box::new(file),
        Access::Mapped => Box::new(MappedSink::new(file, wait)),
    };
    let on_drop = if temporary.is_some() { OnDrop::Discard } else { OnDrop::Finish };
    let directory = match manner.durability {
        Durability::All => target.parent().map(Path::to_path_buf),
        Durability::Cached | Durability::Data => None,
    };
    let sink = FileSink { file, temporary, target, directory };
    Ok(Opened { on_drop, ..Opened::new(sink, String::new(), medium) })
}

/// The path with every symbolic link at its end followed, also one that points to nothing yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let named = matches!(path.components().next_back(), Some(Component::Normal(_)));
        if !named || path.as_os_str().as_bytes().ends_with(b"/") {
            // It can only be a directory, if anything.
            fs::metadata(&path)?;
            return Err(Errno::ISDIR.into());
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = fs::canonicalize(parent)?;
        path = parent.join(path.file_name().unwrap_or_default());
        // The links of /proc do not lead to names: what they show may be no path, or a path of something else.
        if own_descriptor(&path).is_some() {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(link) => path = parent.join(link),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(path), // no link
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// The number of a path like `/proc/self/fd/1`, which names an open descriptor of ours.
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
        // The descriptor itself: a file it is connected to keeps its position and is not truncated.
        0 => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?,
        1 => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?,
        2 => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?,
        // Opened anew: right for the pipes that shells make for `>(command)`; a file is only appended to. Without
        // blocking, because opening a pipe without a reader would wait for ever.
        _ => OpenOptions::new().append(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?.into(),
    };
    Ok(Handle::Owned(fd))
}

/// Opens a FIFO, a terminal or a device. A FIFO is waited for until it has a reader.
fn open_special(path: &Path, metadata: &Metadata, limits: &Limits) -> Result<OwnedFd, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NOCTTY.bits() as i32);
    let wait = limits.wait();
    if !metadata.file_type().is_fifo() || !wait.is_needed() {
        return Ok(options.open(path)?.into());
    }
    // A blocking open cannot be interrupted; one without blocking fails with ENXIO while there is no reader.
    options.custom_flags((OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32);
    let start = Instant::now();
    loop {
        match options.open(path) {
            Ok(file) => return Ok(file.into()),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => wait.sleep(FIFO_PATIENCE)?,
            Err(error) => return Err(error.into()),
        }
        if limits.stall.is_some_and(|limit| start.elapsed() > limit) {
            return Err(Error::new(ErrorKind::Stalled).with_found("a FIFO that nobody reads").into());
        }
    }
}

/// The temporary file for a file that is to appear whole: it is removed when its path is dropped.
fn create_beside(target: &Path, old: Option<Metadata>, manner: &Manner) -> Result<(File, TempPath), Failure> {
    let (Some(directory), Some(file_name)) = (target.parent(), target.file_name()) else {
        return Err(Errno::ISDIR.into());
    };
    let mut mode = 0o666; // as far as the umask allows, like any new file
    if old.is_some() {
        // Renaming would replace a file that we are not allowed to write.
        rustix::fs::access(target, rustix::fs::Access::WRITE_OK)?;
        // Nobody else may open the new file before it has the permissions of the old one.
        mode = 0o600;
    }
    let mut prefix = OsString::from(".");
    let part = file_name.as_bytes();
    prefix.push(OsString::from_vec(part[..part.len().min(MAX_NAME_PART)].to_vec()));
    prefix.push(".");
    let mut refused = None; // the system's own error; tempfile's has no number
    let (file, temporary) = tempfile::Builder::new()
        .prefix(&prefix)
        .make_in(directory, |path| {
            manner.open_options().create_new(true).mode(mode).open(path).inspect_err(|error| {
                refused = Errno::from_io_error(error);
            })
        })
        .map_err(|error| {
            Error::new(ErrorKind::OpenFailed)
                .with_io(refused.map_or(error, io::Error::from))
                .with_expected("to create a temporary file beside it")
        })?
        .into_parts();
    if let Some(old) = old {
        keep_attributes(&file, &old)?;
    }
    Ok((file, temporary))
}

/// Gives the new file the owner, if we may, and the permissions of the old one.
fn keep_attributes(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())).is_err()
    {
        mode &= 0o777; // set-user-id with another owner would be another permission
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// Writes a file and gives it its name in the end.
struct FileSink {
    file: Box<dyn Sink>,
    /// Its name until then, under which it is removed when dropped; `None` once it has its own.
    temporary: Option<TempPath>,
    target: PathBuf,
    /// What is synced for the name to be on the disk too, if it has to be.
    directory: Option<PathBuf>,
}

impl Sink for FileSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.file.close(end)?;
        if let Some(temporary) = self.temporary.take() {
            temporary.persist(&self.target).map_err(|error| {
                self.temporary = Some(error.path);
                Error::from_io(error.error)
            })?;
        }
        if let Some(directory) = &self.directory {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}
