//! Writes to a file descriptor. This is the only module that calls write(2) and send(2).
//!
//! The sink repeats an interrupted call, and waits for a full non-blocking descriptor with poll, never by retrying. It
//! does not change the mode of a descriptor that it did not open, because `O_NONBLOCK` affects every process that
//! shares the descriptor.
//!
//! Writing to a closed pipe fails with [`ErrorKind::BrokenPipe`](crate::ErrorKind::BrokenPipe) if SIGPIPE is ignored,
//! as it is in Rust programs, Python, Node and Julia. If a host leaves SIGPIPE at its default, the signal kills the
//! host when it writes to a closed *pipe*; a library must not change that. Sockets never raise SIGPIPE
//! (`MSG_NOSIGNAL`).
//!
//! For a regular file, close(2) may report errors about bytes that write(2) has accepted: NFS and quotas may report a
//! full disk only at this point. So the result of close(2) is checked, and an error is final: on a second call the
//! kernel might report success for bytes that it has discarded.
#![allow(unsafe_code)] // a close(2) that returns an error

use std::io;
#[cfg(target_os = "linux")]
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::SendFlags;
#[cfg(target_os = "linux")]
use rustix::pipe::SpliceFlags;

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::command::enlarge_pipe;
#[cfg(target_os = "linux")]
use crate::os::sink::lend::Lender;
use crate::os::sink::linger::{self, Linger};
#[cfg(target_os = "linux")]
use crate::sink::block::Block;
use crate::sink::{Durability, WriterEnd};
use crate::sink::{Limits, Medium, Sink};

/// The number of bytes that can be written without blocking to a pipe that poll reports as writable (the smallest
/// `PIPE_BUF` in POSIX is 512; Linux has 4096).
const PIPE_PROMISE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// An owned descriptor, which the sink closes, or standard output, which is shared.
pub(crate) enum Handle {
    Owned(OwnedFd),
    Stdout,
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Handle::Owned(fd) => fd.as_fd(),
            Handle::Stdout => rustix::stdio::stdout(),
        }
    }
}

/// A method to write bytes without blocking for longer than the caller allows.
enum Method {
    /// write(2) of all bytes: blocking is allowed, or the descriptor is non-blocking.
    Write,
    /// send(2) with these flags.
    Send(SendFlags),
    /// poll, then write(2) of at most the number of bytes that poll guarantees: for a blocking descriptor whose waits
    /// must be interruptible.
    Promised,
}

/// A sink that writes to a file descriptor.
pub(crate) struct FdSink {
    handle: Handle,
    method: Method,
    wait: Wait,
    is_file: bool,
    #[cfg(target_os = "linux")]
    is_pipe: bool,
    durability: Durability,
    /// How the sink ends a connection that it owns.
    linger: Option<Linger>,
    #[cfg(target_os = "linux")]
    lender: Option<Lender>,
    /// The result that the operating system reported when the file was closed.
    outcome: Option<Result<(), Errno>>,
}

impl FdSink {
    /// Creates a sink for `handle`, and returns it with the kind of its medium. A pipe is enlarged if the kernel allows
    /// it.
    pub(crate) fn new(handle: Handle, wait: Wait) -> Result<(FdSink, Medium)> {
        let stat = rustix::fs::fstat(&handle).map_err(io::Error::from)?;
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let medium = match file_type {
            FileType::RegularFile | FileType::BlockDevice => Medium::File,
            FileType::Fifo => Medium::Pipe,
            FileType::CharacterDevice if rustix::termios::isatty(&handle) => Medium::Terminal,
            _ => Medium::Plain,
        };
        if medium == Medium::Pipe {
            enlarge_pipe(&handle);
        }
        let is_file = medium == Medium::File;
        if !is_file {
            wait.prepare()?;
        }
        let mut sink = FdSink {
            handle,
            method: Method::Write,
            wait,
            is_file,
            #[cfg(target_os = "linux")]
            is_pipe: medium == Medium::Pipe,
            durability: Durability::Cached,
            linger: None,
            #[cfg(target_os = "linux")]
            lender: None,
            outcome: None,
        };
        sink.method = match (file_type, sink.wait.is_needed()) {
            (FileType::Socket, false) => Method::Send(SendFlags::NOSIGNAL),
            (FileType::Socket, true) => Method::Send(SendFlags::NOSIGNAL | SendFlags::DONTWAIT),
            (_, true) if matches!(medium, Medium::Pipe | Medium::Terminal) => sink.interruptible()?,
            _ => Method::Write,
        };
        Ok((sink, medium))
    }

    /// Sets what closing the sink waits for.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if the descriptor is not a regular file.
    pub(crate) fn durable(mut self, durability: Durability) -> Result<FdSink> {
        if durability != Durability::Cached && !self.is_file {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("a durable close of something that is not a regular file")
                .with_expected("a regular file"));
        }
        self.durability = durability;
        Ok(self)
    }

    /// Makes closing the sink shut it down if it is a connection: see [`linger`](crate::os::sink::linger).
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for a time limit if the descriptor is not a connection.
    pub(crate) fn ending_connection(mut self, limits: &Limits) -> Result<FdSink> {
        if linger::is_connection(&self.handle) {
            self.linger = Some(Linger::new(limits.linger()));
        } else if limits.linger.is_some() {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("a linger time for something that is not a connection")
                .with_expected("a connection"));
        }
        Ok(self)
    }

    /// Makes the sink lend the pages of blocks of at least this many bytes, if it is a pipe and the operating system
    /// supports that.
    #[cfg(target_os = "linux")]
    pub(crate) fn lending(self, block_len: Option<usize>) -> FdSink {
        let lender = block_len.filter(|_| self.is_pipe).map(Lender::new);
        FdSink { lender, ..self }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn lending(self, _: Option<usize>) -> FdSink {
        self
    }

    /// Returns the outcome for a file's bytes, as far as the operating system can report it.
    fn settle(&self) -> Result<(), Errno> {
        match self.durability {
            Durability::Cached => {}
            Durability::Data => retry_on_intr(|| rustix::fs::fdatasync(&self.handle))?,
            Durability::All => retry_on_intr(|| rustix::fs::fsync(&self.handle))?,
        }
        // Closing any duplicate returns the same result, even for a descriptor that must stay open.
        match rustix::io::fcntl_dupfd_cloexec(&self.handle, 3) {
            Ok(duplicate) => close(duplicate),
            // The process has no descriptor left for the duplicate. A sync reports at least the same errors.
            Err(_) => retry_on_intr(|| rustix::fs::fdatasync(&self.handle)),
        }
    }

    /// A blocking write to a pipe or terminal lasts until *all* bytes are written, even if poll reported it as
    /// writable. So the sink needs a non-blocking descriptor without changing the one it was given: opening the pipe
    /// again gives it a separate description of the same pipe. If that is impossible (no /proc, another process's
    /// pipe), it writes pieces of the size that poll guarantees.
    fn interruptible(&mut self) -> Result<Method> {
        let flags = rustix::fs::fcntl_getfl(&self.handle).map_err(io::Error::from)?;
        if flags.contains(OFlags::NONBLOCK) {
            return Ok(Method::Write);
        }
        match reopen_nonblocking(self.handle.as_fd()) {
            Some(own) => {
                self.handle = Handle::Owned(own);
                Ok(Method::Write)
            }
            None => Ok(Method::Promised),
        }
    }

    /// Repeats a call that was interrupted or that would have blocked.
    fn patiently(&mut self, mut call: impl FnMut(&mut FdSink) -> Result<usize, Errno>) -> Result<Result<usize, Errno>> {
        loop {
            match call(self) {
                Err(Errno::INTR) => self.wait.check()?,
                Err(Errno::AGAIN) => self.wait.writable(self.handle.as_fd())?,
                other => return Ok(other),
            }
        }
    }

    fn write_once(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self.method {
            Method::Write => rustix::io::write(&self.handle, bytes),
            Method::Send(flags) => rustix::net::send(&self.handle, bytes, flags),
            Method::Promised => rustix::io::write(&self.handle, &bytes[..bytes.len().min(PIPE_PROMISE)]),
        }
    }
}

impl AsFd for FdSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Sink for FdSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.wait.check()?;
        if let Method::Promised = self.method {
            self.wait.writable(self.handle.as_fd())?;
        }
        let taken = self.patiently(|sink| sink.write_once(bytes))?.map_err(|error| Error::from_io(error.into()))?;
        if taken == 0 && !bytes.is_empty() {
            return Err(Error::from_io(io::ErrorKind::WriteZero.into()));
        }
        #[cfg(target_os = "linux")]
        if let Some(lender) = &mut self.lender {
            lender.copied(taken);
        }
        Ok(taken)
    }

    #[cfg(target_os = "linux")]
    fn write_block(&mut self, block: &Block, range: Range<usize>) -> Result<usize> {
        let lendable = self.lender.as_ref().and_then(|lender| lender.lendable(block, range.clone()));
        let Some(bytes) = lendable else { return self.write(&block[range]) };
        self.wait.check()?;
        let flags = if self.wait.is_needed() { SpliceFlags::NONBLOCK } else { SpliceFlags::empty() };
        let lent = self.patiently(|sink| match &mut sink.lender {
            Some(lender) => lender.lend(&sink.handle, bytes, flags),
            None => Err(Errno::NOSYS),
        })?;
        match lent {
            Ok(taken) if taken > 0 => Ok(taken),
            Err(Errno::PIPE) => Err(Error::from_io(Errno::PIPE.into())),
            // The kernel does not support or permit lending here; a copy works as well.
            _ => self.write(bytes),
        }
    }

    #[cfg(target_os = "linux")]
    fn renew(&mut self, block: &mut Block, rest: Range<usize>) {
        match &mut self.lender {
            Some(lender) => lender.renew(&self.handle, block, rest),
            None => block.copy_within(rest, 0),
        }
    }

    fn close(&mut self, _end: &mut WriterEnd) -> Result<()> {
        if let Some(linger) = &mut self.linger {
            return linger.close(self.handle.as_fd(), &self.wait);
        }
        if !self.is_file {
            return Ok(());
        }
        let outcome = *self.outcome.insert(self.outcome.unwrap_or_else(|| self.settle()));
        outcome.map_err(|error| Error::from_io(error.into()))
    }
}

/// Closes a descriptor, and returns the result of close(2).
fn close(fd: OwnedFd) -> Result<(), Errno> {
    // SAFETY: the descriptor is open and owned here, as an `OwnedFd` guarantees, and `into_raw_fd` gives up that
    // ownership, so no other code closes it. After this call, whatever its result, the number is no longer owned.
    match unsafe { rustix::io::try_close(fd.into_raw_fd()) } {
        // Linux closes the descriptor anyway, and closing a file on a disk is not interrupted.
        Err(Errno::INTR) => Ok(()),
        answer => answer,
    }
}

#[cfg(target_os = "linux")]
fn reopen_nonblocking(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    use std::os::fd::AsRawFd;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, rustix::fs::Mode::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn reopen_nonblocking(_: BorrowedFd<'_>) -> Option<OwnedFd> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::cancel::CancelToken;
    use std::io::Read;
    use std::time::Duration;

    #[test]
    fn pieces_of_the_size_that_poll_guarantees_never_block() {
        let (mut reader, pipe) = io::pipe().unwrap();
        let token = CancelToken::new().unwrap();
        let handle = Handle::Owned(pipe.into());
        let wait = Wait::new(Some(token.clone()), None);
        let mut sink = FdSink::new(handle, wait).unwrap().0;
        sink.method = Method::Promised;
        let bytes: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            token.cancel();
        });
        let mut taken = 0;
        let error = loop {
            // The pieces have an odd size, so that the pages of the pipe are not full.
            match sink.write(&bytes[taken..taken + 1 + taken % 5000]) {
                Ok(more) => taken += more,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        canceller.join().unwrap();
        drop(sink);
        let mut arrived = Vec::new();
        reader.read_to_end(&mut arrived).unwrap();
        assert!(arrived == bytes[..taken]);
    }
}
