//! Reads a file descriptor: a file, a pipe, a socket, a terminal or a device.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::follow::Followed;
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::command::enlarge_pipe;
use crate::os::stamp::Stamp;
use crate::source::Pin;
use crate::source::{ByteSource, Nature};

/// The number of bytes that Linux reads ahead by default.
#[cfg(target_os = "linux")]
const WINDOW: u64 = 128 << 10;

/// Reads a file descriptor without changing it: in particular, it is never made non-blocking.
pub(crate) struct FdSource {
    fd: OwnedFd,
    nature: Nature,
    is_socket: bool,
    /// For a regular file: its state when it was opened, and this source's position.
    file: Option<Extent>,
    pin: Pin,
    follow: Option<Followed>,
}

struct Extent {
    stamp: Stamp,
    pos: u64,
    has_been_read: bool,
}

impl FdSource {
    /// Creates a source for a file descriptor. A pipe is enlarged to 1 MiB if the kernel allows it.
    pub(crate) fn new(fd: OwnedFd) -> Result<FdSource> {
        FdSource::starting_at(fd, |fd| rustix::fs::tell(fd).unwrap_or(0))
    }

    /// Creates a source for a file descriptor. `position` is called for a regular file, and returns its position.
    fn starting_at(fd: OwnedFd, position: impl FnOnce(&OwnedFd) -> u64) -> Result<FdSource> {
        let stat = rustix::fs::fstat(&fd).map_err(open_failed)?;
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let (nature, file) = match file_type {
            FileType::Directory => {
                return Err(Error::new(ErrorKind::OpenFailed)
                    .with_found("a directory")
                    .with_io(rustix::io::Errno::ISDIR.into())
                    .with_expected("a file, a pipe, a socket or a device"));
            }
            FileType::RegularFile => {
                let (pos, stamp) = (position(&fd), Stamp::of(&stat));
                // This is only a hint, which makes the kernel read further ahead.
                #[cfg(target_os = "linux")]
                if stamp.size > WINDOW {
                    let _ = rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::Sequential);
                }
                (Nature::File, Some(Extent { stamp, pos, has_been_read: false }))
            }
            FileType::Fifo => (Nature::Pipe(enlarge_pipe(&fd)), None),
            _ => (Nature::Device, None),
        };
        Ok(FdSource { fd, nature, is_socket: file_type == FileType::Socket, file, pin: Pin::default(), follow: None })
    }

    /// Opens a path. If the path is a FIFO, this call waits for its writer; if `wait` can be interrupted, the first
    /// read does so instead.
    pub(crate) fn open(path: &Path, wait: &Wait) -> Result<FdSource> {
        let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
        let mut options = std::fs::OpenOptions::new();
        options.read(true);
        if !wait.is_needed() {
            return FdSource::starting_at(options.open(path).map_err(open_failed)?.into(), |_| 0);
        }
        // A blocking open of a FIFO cannot be interrupted. The reads poll instead, and a FIFO without a writer is not
        // readable. The flag has no effect on a regular file, so its type need not be known before the open.
        options.custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = match options.open(path) {
            // Another process holds a lease on the file, and has been asked for it. This open waits until the lease
            // is given up.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => options.custom_flags(0).open(path),
            file => file,
        };
        let source = FdSource::starting_at(file.map_err(open_failed)?.into(), |_| 0)?;
        if source.nature == Nature::Device {
            let flags = rustix::fs::fcntl_getfl(&source.fd).map_err(self::open_failed)?;
            rustix::fs::fcntl_setfl(&source.fd, flags - OFlags::NONBLOCK).map_err(self::open_failed)?;
        }
        Ok(source)
    }

    /// Returns the state of a regular file when it was opened.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.file.as_ref().map(|file| file.stamp)
    }

    /// Makes the source continue at the end of a regular file as the file grows. `path` is watched for changes.
    pub(crate) fn follow(mut self, path: Option<&Path>) -> FdSource {
        if let Some(file) = &self.file {
            self.follow = Some(Followed::new(path, file.pos));
        }
        self
    }

    /// Sets which properties of a regular file must not change.
    pub(crate) fn pin(mut self, pin: Pin) -> FdSource {
        self.pin = pin;
        self
    }

    /// Returns the number of remaining bytes of a regular file.
    pub(crate) fn size(&self) -> Option<u64> {
        // Files in /proc and similar file systems report a size of 0 but have content.
        self.file.as_ref().map(|file| file.stamp.size.saturating_sub(file.pos)).filter(|&size| size > 0)
    }

    /// Returns whether this is a connection to a peer.
    pub(crate) fn is_socket(&self) -> bool {
        self.is_socket
    }

    fn read_once(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        let polls = wait.is_needed() && self.nature != Nature::File;
        if polls && !wait.is_ready() {
            wait.readable(self.fd.as_fd())?;
        }
        loop {
            match rustix::io::read(&self.fd, &mut *space) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => wait.check()?,
                Err(Errno::AGAIN) => wait.readable(self.fd.as_fd())?,
                Err(error) => return Err(Error::from_io(error.into())),
            }
        }
    }

    /// Reads the content of a followed file, and waits for more of it.
    fn read_followed(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        let start = Instant::now();
        let mut end = Ok(());
        loop {
            let count = self.read_once(space, wait)?;
            let (Some(file), Some(follow)) = (&mut self.file, &mut self.follow) else { return Ok(count) };
            file.pos += count as u64;
            // This runs after the read, so that a truncation before or during the read is visible.
            follow.note(&space[..count]);
            follow.compare(self.fd.as_fd(), file.pos)?;
            if count > 0 {
                return Ok(count);
            }
            // The file's end is reported only if it is found after the name was checked.
            end?;
            end = follow.check_name(self.fd.as_fd());
            if end.is_ok() {
                follow.wait(wait, start)?;
            }
        }
    }
}

fn open_failed(error: Errno) -> Error {
    Error::new(ErrorKind::OpenFailed).with_io(error.into())
}

impl ByteSource for FdSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        if self.follow.is_some() {
            return self.read_followed(space, wait);
        }
        let count = self.read_once(space, wait)?;
        if let Some(file) = &mut self.file {
            file.pos += count as u64;
            file.has_been_read |= count > 0;
        }
        Ok(count)
    }

    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        match &self.file {
            // If the position is after the end of the file, the caller is responsible for that.
            Some(file) => file.stamp.check(&self.fd, if file.has_been_read { file.pos } else { 0 }, self.pin),
            None => Ok(()),
        }
    }

    fn nature(&self) -> Nature {
        match self.follow {
            // Reads of a socket block like reads of a pipe, but their rate needs no delay.
            Some(_) => Nature::CallerOnly,
            None => self.nature,
        }
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        match self.nature {
            Nature::File => None,
            _ => Some(self.fd.as_fd()),
        }
    }

    fn pending(&self) -> usize {
        rustix::io::ioctl_fionread(&self.fd).unwrap_or(0) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::fs::{CWD, Mode, fcntl_getfl, mkfifoat};

    use super::*;

    #[test]
    fn a_device_does_not_keep_the_flag_that_the_open_of_a_fifo_needs() {
        let fifo = std::env::temp_dir().join(format!("millstream-fifo-{}", std::process::id()));
        mkfifoat(CWD, &fifo, Mode::RWXU).unwrap();
        let wait = Wait::new(None, Some(Duration::from_secs(9)));
        let is_nonblocking = |path: &Path| {
            let source = FdSource::open(path, &wait).unwrap();
            fcntl_getfl(&source.fd).unwrap().contains(OFlags::NONBLOCK)
        };
        assert!(is_nonblocking(&fifo));
        assert!(!is_nonblocking(Path::new("/dev/null")));
        std::fs::remove_file(fifo).unwrap();
    }
}
