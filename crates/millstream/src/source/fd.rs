//! A file descriptor as a source: files, pipes, sockets, terminals, devices.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::{Nature, Source};
use crate::cancel::Wait;
use crate::command::enlarge_pipe;
use crate::error::{CommandEnd, Error, ErrorKind, Result};

/// Reads a file descriptor, which stays as it was: in particular it is never made non-blocking.
pub(crate) struct FdSource {
    fd: OwnedFd,
    nature: Nature,
    is_socket: bool,
    /// Of a regular file: the size when it was opened, and how far we are.
    file: Option<Extent>,
    follow: Option<Watch>,
}

struct Extent {
    size: u64,
    pos: u64,
    has_been_read: bool,
}

impl FdSource {
    /// Takes a file descriptor; a pipe is enlarged to 1 MiB where the system allows it.
    pub(crate) fn new(fd: OwnedFd) -> Result<FdSource> {
        let stat = rustix::fs::fstat(&fd).map_err(open_failed)?;
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let (nature, file) = match file_type {
            FileType::Directory => {
                return Err(Error::new(ErrorKind::OpenFailed)
                    .with_found("a directory")
                    .with_expected("a file, a pipe, a socket or a device"));
            }
            FileType::RegularFile => {
                let pos = rustix::fs::tell(&fd).unwrap_or(0);
                // Only a hint: the kernel then reads ahead further.
                #[cfg(target_os = "linux")]
                let _ = rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::Sequential);
                (Nature::File, Some(Extent { size: stat.st_size as u64, pos, has_been_read: false }))
            }
            FileType::Fifo => (Nature::Pipe(enlarge_pipe(&fd)), None),
            _ => (Nature::Device, None),
        };
        Ok(FdSource { fd, nature, is_socket: file_type == FileType::Socket, file, follow: None })
    }

    /// Opens a path. A FIFO is waited for until it has a writer: here, or in the first read if `wait` may end it.
    pub(crate) fn open(path: &Path, wait: &Wait) -> Result<FdSource> {
        let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
        let mut options = std::fs::OpenOptions::new();
        options.read(true);
        if wait.is_needed() && std::fs::metadata(path).map_err(open_failed)?.file_type().is_fifo() {
            // A blocking open cannot be interrupted. The reads poll, and a FIFO without a writer is not readable.
            options.custom_flags(OFlags::NONBLOCK.bits() as i32);
        }
        FdSource::new(options.open(path).map_err(open_failed)?.into())
    }

    /// Goes on at the end of a regular file as it grows. `path` is what to watch for changes.
    pub(crate) fn follow(mut self, path: Option<&Path>) -> FdSource {
        self.follow = Some(Watch::new(path));
        self
    }

    /// How many bytes are left of a regular file.
    pub(crate) fn size(&self) -> Option<u64> {
        // Files in /proc and the like say 0 and hold something.
        self.file.as_ref().map(|file| file.size.saturating_sub(file.pos)).filter(|&size| size > 0)
    }

    /// Whether somebody is at the other end of a connection.
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

    /// At the end of a regular file: an error if it is shorter than when it was opened, or than we have read.
    fn check_extent(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let now = rustix::fs::fstat(&self.fd).map_or(file.size, |stat| stat.st_size as u64);
        // Files in /proc have a size of 0 and content.
        let has_size = file.size > 0 || self.follow.is_some();
        if now < file.size || (has_size && file.has_been_read && now < file.pos) {
            return Err(Error::new(ErrorKind::SourceShrank)
                .with_found(format!("{now} bytes"))
                .with_expected(format!("the {} bytes it had", file.size.max(file.pos))));
        }
        Ok(())
    }
}

fn open_failed(error: Errno) -> Error {
    Error::new(ErrorKind::OpenFailed).with_io(error.into())
}

impl Source for FdSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        let start = Instant::now();
        loop {
            let count = self.read_once(space, wait)?;
            if let Some(file) = &mut self.file {
                file.pos += count as u64;
                file.has_been_read |= count > 0;
            }
            match &mut self.follow {
                Some(watch) if count == 0 && self.nature == Nature::File => {
                    wait.expired(start)?;
                    watch.wait(wait)?;
                    self.check_extent()?;
                }
                _ => return Ok(count),
            }
        }
    }

    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        self.check_extent()
    }

    fn nature(&self) -> Nature {
        match self.follow {
            // It waits like a pipe, at a rate that needs no help.
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

/// Waits for a file to change: by inotify where there is one and the path is known, else by looking again.
struct Watch {
    inotify: Option<OwnedFd>,
}

impl Watch {
    const LOOK_AGAIN: Duration = Duration::from_millis(1);

    fn new(path: Option<&Path>) -> Watch {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
            let inotify = path.and_then(|path| {
                let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
                inotify::add_watch(&fd, path, WatchFlags::MODIFY | WatchFlags::ATTRIB).ok()?;
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

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        let Some(inotify) = &self.inotify else { return wait.sleep(Watch::LOOK_AGAIN) };
        wait.readable(inotify.as_fd())?;
        // What changed does not matter, only that something did.
        let mut events = [0; 4096];
        while matches!(rustix::io::read(inotify, &mut events), Ok(count) if count > 0) {}
        Ok(())
    }
}
