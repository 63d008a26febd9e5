//! Follows a file as it grows: waits for more data, and checks that the file is still the same.
//!
//! By the time a truncated and rewritten file is checked, it may have become longer than the part that was read. So the
//! first and the last bytes that were read are kept, and compared with the current ones. If a file is renamed, replaced
//! or deleted, a reader that follows its name gets no more data from it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Stat, fstat, stat};
use rustix::io::{Errno, pread};

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::stamp::{Stamp, changed, shrank};

/// The number of first bytes that are compared, and of last bytes.
const COMPARED: usize = 1 << 10;

/// The file that is followed.
pub(crate) struct Followed {
    watch: Watch,
    path: Option<PathBuf>,
    /// The offset where reading began, and the first bytes after it.
    start: u64,
    first: Vec<u8>,
    /// The last bytes that were read.
    last: Vec<u8>,
    /// The file's stamp when it was last compared.
    compared: Option<Stamp>,
}

impl Followed {
    /// Creates the state for a file that is read from `start` on. `path` is watched for changes.
    pub(crate) fn new(path: Option<&Path>, start: u64) -> Followed {
        Followed {
            watch: Watch::new(path),
            path: path.map(Path::to_path_buf),
            start,
            first: Vec::new(),
            last: Vec::new(),
            compared: None,
        }
    }

    /// Records bytes that were read.
    pub(crate) fn note(&mut self, bytes: &[u8]) {
        let wanted = COMPARED - self.first.len();
        self.first.extend_from_slice(&bytes[..wanted.min(bytes.len())]);
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(COMPARED)..]);
        let surplus = self.last.len().saturating_sub(COMPARED);
        self.last.drain(..surplus);
    }

    /// Checks that the file, read up to `pos`, still has the bytes that were read.
    ///
    /// # Errors
    /// Returns [`SourceShrank`](ErrorKind::SourceShrank) if it does not.
    pub(crate) fn compare(&mut self, file: BorrowedFd<'_>, pos: u64) -> Result<()> {
        let now = Stamp::of(&fstat(file).map_err(|error| Error::from_io(error.into()))?);
        if now.size < pos {
            return Err(shrank(now.size, pos));
        }
        if self.compared == Some(now) {
            return Ok(());
        }
        for (bytes, at) in [(&self.first, self.start), (&self.last, pos.saturating_sub(self.last.len() as u64))] {
            if !holds(file, bytes, at)? {
                return Err(Error::new(ErrorKind::SourceShrank)
                    .with_found(format!("bytes at byte {at} that differ from those read before"))
                    .with_expected("a file that only grows: it was truncated and rewritten"));
            }
        }
        // Any write after the comparison changes the stamp.
        self.compared = Some(now);
        Ok(())
    }

    /// Checks that the file still has its name.
    ///
    /// # Errors
    /// Returns [`SourceChanged`](ErrorKind::SourceChanged) if it does not.
    pub(crate) fn check_name(&self, file: BorrowedFd<'_>) -> Result<()> {
        let identity = |stat: &Stat| (stat.st_dev, stat.st_ino);
        let own = fstat(file).map_err(|error| Error::from_io(error.into()))?;
        if own.st_nlink == 0 {
            return Err(changed("a file that was deleted or replaced", "one that keeps its name while it is followed"));
        }
        match self.path.as_ref().map(stat) {
            None => Ok(()),
            Some(Ok(now)) if identity(&now) == identity(&own) => Ok(()),
            Some(Ok(_)) => {
                Err(changed("a different file of that name", "one that keeps its name while it is followed"))
            }
            Some(Err(Errno::NOENT)) => {
                Err(changed("a file that was renamed", "one that keeps its name while it is followed"))
            }
            Some(Err(error)) => Err(Error::from_io(error.into())),
        }
    }

    /// Waits until the file may have changed, for a read that began at `start`.
    pub(crate) fn wait(&self, wait: &Wait, start: Instant) -> Result<()> {
        wait.expired(start)?;
        self.watch.wait(wait)
    }
}

/// Returns whether the file has these bytes at this offset.
fn holds(file: BorrowedFd<'_>, bytes: &[u8], mut at: u64) -> Result<bool> {
    let mut left = bytes;
    let mut there = [0; COMPARED];
    while !left.is_empty() {
        let count = match pread(file, &mut there[..left.len()], at) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(Error::from_io(error.into())),
        };
        if there[..count] != left[..count] {
            return Ok(false);
        }
        (left, at) = (&left[count..], at + count as u64);
    }
    Ok(true)
}

/// Waits for a file to change: with inotify if this is available and the path is known, otherwise by checking
/// periodically.
struct Watch {
    inotify: Option<OwnedFd>,
}

impl Watch {
    const LOOK_AGAIN: Duration = Duration::from_millis(1);

    /// The file is also checked periodically, because inotify reports neither changes by another machine nor renamed
    /// directories.
    const LOOK_ANYWAY: Duration = Duration::from_millis(500);

    fn new(path: Option<&Path>) -> Watch {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
            let changes = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
            let inotify = path.and_then(|path| {
                let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
                inotify::add_watch(&fd, path, changes).ok()?;
                Some(fd)
            });
            Watch { inotify }
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = path;
            Watch { inotify: None }
        }
    }

    fn wait(&self, wait: &Wait) -> Result<()> {
        let Some(inotify) = &self.inotify else { return wait.sleep(Watch::LOOK_AGAIN) };
        if wait.readable_within(inotify.as_fd(), Watch::LOOK_ANYWAY)? {
            // The kind of change does not matter.
            let mut events = [0; 4096];
            while matches!(rustix::io::read(inotify, &mut events), Ok(count) if count > 0) {}
        }
        Ok(())
    }
}
