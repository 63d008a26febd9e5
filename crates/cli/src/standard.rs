//! Standard input, output and error: whether they were open when the process began, and how standard error is written.
//!
//! A runtime opens `/dev/null` in place of a standard stream that was closed, so that no other file takes its number.
//! Output to it is lost, and reading from it ends immediately: both look like success. So an error is reported if a
//! closed stream is needed. A `/dev/null` that the process inherited was the caller's choice.
//!
//! After a signal, writes to standard error do not block: a full pipe, or a terminal that has been stopped, must not
//! block the process.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use millstream::{CancelToken, Error, ErrorKind, Result, Writer, WriterBuilder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The library's name for standard output.
pub(crate) const STANDARD_OUTPUT: &str = "standard output";

/// The interval at which a wait for standard error checks for a signal.
const TICK: Duration = Duration::from_millis(50);

/// The number of bytes that can be written without blocking to a pipe that poll reports as writable (the smallest
/// `PIPE_BUF` in POSIX is 512; Linux has 4096).
const PIPE_PROMISE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// Which standard streams were closed when the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

impl Closed {
    /// Returns the streams that are currently closed. The result is meaningful only before a runtime has opened files
    /// in their place.
    pub fn now() -> Closed {
        let is_closed = |fd: BorrowedFd<'_>| rustix::io::fcntl_getfd(fd) == Err(Errno::BADF);
        Closed {
            stdin: is_closed(rustix::stdio::stdin()),
            stdout: is_closed(rustix::stdio::stdout()),
            stderr: is_closed(rustix::stdio::stderr()),
        }
    }
}

/// Process-wide state for all modules.
struct Process {
    closed: Closed,
    /// The token that the first terminating signal triggers.
    token: Option<CancelToken>,
}

static PROCESS: Mutex<Process> =
    Mutex::new(Process { closed: Closed { stdin: false, stdout: false, stderr: false }, token: None });

fn process<T>(work: impl FnOnce(&mut Process) -> T) -> T {
    work(&mut PROCESS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Records which streams were closed when the process began.
pub(crate) fn set_closed(closed: Closed) {
    process(|process| process.closed = closed);
}

/// Sets the token that interrupts waits for standard error; with `None`, they cannot be interrupted.
pub(crate) fn set_token(token: Option<CancelToken>) {
    process(|process| process.token = token);
}

/// Returns whether standard output is a terminal, which would interpret control characters.
pub(crate) fn is_seen() -> bool {
    io::stdout().is_terminal()
}

/// One of the standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Input,
    Output,
    Error,
}

impl Stream {
    /// Returns the stream that a path names, such as `/dev/stderr`.
    pub(crate) fn of_path(path: &Path) -> Option<Stream> {
        match path.to_str()? {
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => Some(Stream::Input),
            "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(Stream::Output),
            "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(Stream::Error),
            _ => None,
        }
    }

    /// Fails if the stream was closed when the process began.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`], with advice.
    pub(crate) fn check(self) -> Result<()> {
        let closed = process(|process| process.closed);
        let (is_closed, name, advice) = match self {
            Stream::Input => (closed.stdin, "standard input", "redirect it from a file, or from /dev/null"),
            Stream::Output => (closed.stdout, STANDARD_OUTPUT, "redirect it to a file, or to /dev/null"),
            Stream::Error => (closed.stderr, "standard error", "redirect it to a file, or to /dev/null"),
        };
        if !is_closed {
            return Ok(());
        }
        Err(Error::new(ErrorKind::OpenFailed)
            .with_name(name)
            .with_found("a closed file descriptor")
            .with_expected(format!("an open one; {advice}")))
    }
}

/// Opens standard output.
///
/// # Errors
/// Returns the errors of the builder, and [`ErrorKind::OpenFailed`] if standard output was closed when the process
/// began.
pub(crate) fn output(builder: WriterBuilder) -> Result<Writer> {
    Stream::Output.check()?;
    builder.stdout()
}

/// Opens standard output for one result. A signal interrupts the wait for it.
///
/// # Errors
/// Returns the errors of [`output`].
pub(crate) fn output_for_result() -> Result<Writer> {
    let builder = Writer::builder();
    output(match process(|process| process.token.clone()) {
        Some(token) => builder.cancel(&token),
        None => builder,
    })
}

/// Writes to standard error. If it accepts no bytes, this waits until a signal arrives.
///
/// # Errors
/// Returns the operating system's errors, [`ErrorKind::OpenFailed`] if standard error was closed when the process
/// began, and [`ErrorKind::Cancelled`].
pub(crate) fn write_error(bytes: &[u8]) -> Result<()> {
    Stream::Error.check()?;
    let token = process(|process| process.token.clone());
    write(rustix::stdio::stderr(), bytes, Some(&|| token.as_ref().is_some_and(CancelToken::is_cancelled)))
        .map_err(|error| error.with_name("standard error"))
}

/// Writes the part of `bytes` that standard error accepts immediately, for text that the next line replaces.
pub(crate) fn try_write_error(bytes: &[u8]) {
    if Stream::Error.check().is_ok() {
        let _ = write(rustix::stdio::stderr(), bytes, None);
    }
}

/// Writes to a descriptor that may block, and keeps its mode. Waits until `is_cancelled` returns true; without this
/// function, it does not wait.
fn write(fd: BorrowedFd<'_>, mut bytes: &[u8], is_cancelled: Option<&dyn Fn() -> bool>) -> Result<()> {
    let own = reopen(fd);
    let (fd, piece) = match &own {
        Some(own) => (own.as_fd(), usize::MAX),
        None => (fd, PIPE_PROMISE),
    };
    let tick = if is_cancelled.is_some() { TICK } else { Duration::ZERO };
    let tick = Timespec { tv_sec: 0, tv_nsec: tick.subsec_nanos().into() };
    while !bytes.is_empty() {
        let mut polled = [PollFd::new(&fd, PollFlags::OUT)];
        let written = match poll(&mut polled, Some(&tick)) {
            Ok(0) => Err(Errno::AGAIN),
            Ok(_) => rustix::io::write(fd, &bytes[..bytes.len().min(piece)]),
            Err(error) => Err(error),
        };
        match written {
            Ok(0) => return Err(Error::from_io(io::ErrorKind::WriteZero.into())),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::AGAIN | Errno::INTR) if is_cancelled.is_some_and(|is_cancelled| !is_cancelled()) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Err(Error::new(ErrorKind::Cancelled)),
            Err(error) => return Err(Error::from_io(error.into())),
        }
    }
    Ok(())
}

/// Opens the same pipe or terminal again, non-blocking, because the mode of the given descriptor belongs to its owner.
/// Returns `None` for any other file, which is written in pieces of the size that poll guarantees.
fn reopen(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    use rustix::fs::FileType;
    use std::os::fd::AsRawFd;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(fd).ok()?.st_mode);
    if kind != FileType::Fifo && !rustix::termios::isatty(fd) {
        return None;
    }
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_full_pipe_is_cancelled_on_request() {
        let (reader, pipe) = io::pipe().unwrap();
        let calls = std::cell::Cell::new(0);
        let is_cancelled = || calls.replace(calls.get() + 1) > 2;
        let error = write(pipe.as_fd(), &vec![b'x'; 1 << 21], Some(&is_cancelled)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        write(pipe.as_fd(), b"more", None).unwrap_err(); // it does not wait
        drop(reader);
        assert_eq!(write(pipe.as_fd(), b"more", Some(&|| false)).unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn open_streams_are_not_closed() {
        assert_eq!(Closed::now(), Closed::default()); // the test's own
    }
}
