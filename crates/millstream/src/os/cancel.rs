//! Blocking calls that can be interrupted.
//!
//! A blocking call of this crate polls the file descriptor *and* every [`CancelToken`] that applies to it, so that
//! Ctrl-C in a host language, or another thread, interrupts it immediately. Without a token or a time limit it does not
//! poll: a plain blocking call is enough.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};

/// Interrupts blocking calls of readers and writers, from any thread or signal handler.
///
/// A blocked call fails with [`ErrorKind::Cancelled`] immediately, and so does every later call until
/// [`reset`](CancelToken::reset). No data is lost: after a reset the next call continues at the same position.
///
/// ```
/// use millstream::{CancelToken, ErrorKind, Reader};
/// let token = CancelToken::new()?;
/// let mut reader = Reader::builder().cancel(&token).command(["sleep", "60"])?;
/// let canceller = token.clone();
/// std::thread::spawn(move || canceller.cancel());
/// assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Cancelled);
/// reader.close()?; // stops the command
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CancelToken(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cancelled: AtomicBool,
    pipe: OnceLock<Pipe>,
}

/// A pipe that poll reports as readable while the token is cancelled. Both of its ends are non-blocking.
#[derive(Debug)]
struct Pipe {
    readable: PipeReader,
    writable: PipeWriter,
}

impl Pipe {
    fn new() -> Result<Pipe> {
        let (readable, writable) = std::io::pipe()?;
        for end in [readable.as_fd(), writable.as_fd()] {
            let flags = rustix::fs::fcntl_getfl(end).map_err(std::io::Error::from)?;
            rustix::fs::fcntl_setfl(end, flags | rustix::fs::OFlags::NONBLOCK).map_err(std::io::Error::from)?;
        }
        Ok(Pipe { readable, writable })
    }

    fn make_readable(&self) {
        // A full pipe is readable, which is enough; the write cannot fail for another reason.
        let _ = rustix::io::write(&self.writable, &[1]);
    }
}

impl CancelToken {
    /// Creates a token that is not cancelled. It holds two file descriptors.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the process has no file descriptors left.
    pub fn new() -> Result<CancelToken> {
        let token = CancelToken::lazy();
        token.pipe()?;
        Ok(token)
    }

    /// Creates a token like [`new`](CancelToken::new) that holds no file descriptors before the first wait. A wait may
    /// fail because the process has none left; opening a reader or writer that may wait fails in that case.
    #[doc(hidden)]
    pub fn lazy() -> CancelToken {
        CancelToken(Arc::new(Shared { cancelled: AtomicBool::new(false), pipe: OnceLock::new() }))
    }

    fn pipe(&self) -> Result<&Pipe> {
        if let Some(pipe) = self.0.pipe.get() {
            return Ok(pipe);
        }
        let made = Pipe::new()?;
        let pipe = self.0.pipe.get_or_init(|| made); // another thread may have been faster
        // Either a concurrent `cancel` sees the pipe, or this sees that the token is cancelled.
        fence(Ordering::SeqCst);
        if self.0.cancelled.load(Ordering::SeqCst) {
            pipe.make_readable();
        }
        Ok(pipe)
    }

    /// Cancels the token. A signal handler may call this, because it only does atomic operations and one write(2).
    pub fn cancel(&self) {
        if !self.0.cancelled.swap(true, Ordering::SeqCst) {
            // See `pipe`.
            fence(Ordering::SeqCst);
            if let Some(pipe) = self.0.pipe.get() {
                pipe.make_readable();
            }
        }
    }

    /// Returns whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Fails if the token is cancelled.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::new(ErrorKind::Cancelled)) } else { Ok(()) }
    }

    /// Returns the file descriptor that polls as readable while the token is cancelled.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the token was created by [`lazy`](CancelToken::lazy), and the process has no file
    /// descriptors left.
    pub(crate) fn fd(&self) -> Result<BorrowedFd<'_>> {
        self.pipe().map(|pipe| pipe.readable.as_fd())
    }

    /// Makes the token usable again.
    pub fn reset(&self) {
        self.0.cancelled.store(false, Ordering::SeqCst);
        self.empty();
    }

    /// Makes the pipe unreadable, unless the token is cancelled.
    fn empty(&self) {
        let Some(pipe) = self.0.pipe.get() else { return };
        let mut byte = [0; 16];
        while matches!(rustix::io::read(&pipe.readable, &mut byte), Ok(n) if n > 0) {}
        // A concurrent `cancel` sets the flag first, and may have written the byte that was just read.
        if self.0.cancelled.load(Ordering::SeqCst) {
            pipe.make_readable();
        }
    }
}

/// Returns whether `fd` can currently be read without blocking.
pub(crate) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    matches!(Wait::default().poll(Some((fd, PollFlags::IN)), Some(Duration::ZERO)), Ok(true))
}

/// Returns whether this is the error of a wait that exceeded a time limit.
pub(crate) fn is_late(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Stalled | ErrorKind::TimedOut)
}

/// The time by which all waits must be over.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// `None` if the clock cannot represent it.
    at: Option<Instant>,
    /// The time that was allowed in total, for the message.
    total: Duration,
}

impl Deadline {
    fn left(self) -> Duration {
        self.at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }
}

/// The conditions that interrupt a wait: tokens, a time limit for each wait, and a deadline for all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wait {
    tokens: Vec<CancelToken>,
    limit: Option<Duration>,
    deadline: Option<Deadline>,
    /// The file descriptor has just been polled: the next call will not block.
    ready: bool,
}

impl Wait {
    pub(crate) fn new(token: Option<CancelToken>, limit: Option<Duration>) -> Wait {
        Wait { tokens: token.into_iter().collect(), limit, deadline: None, ready: false }
    }

    /// Returns this wait with a deadline that begins now.
    pub(crate) fn within(mut self, total: Option<Duration>) -> Wait {
        self.deadline = total.map(|total| Deadline { at: Instant::now().checked_add(total), total });
        self
    }

    /// Returns this wait with an additional token.
    pub(crate) fn and(&self, token: &CancelToken) -> Wait {
        let mut wait = self.clone();
        wait.tokens.push(token.clone());
        wait
    }

    /// Returns this wait for a file descriptor that has just been polled.
    pub(crate) fn once_ready(&self) -> Wait {
        Wait { ready: true, ..self.clone() }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Returns whether anything can interrupt the wait. If not, a plain blocking call is enough.
    pub(crate) fn is_needed(&self) -> bool {
        !self.tokens.is_empty() || self.limit.is_some() || self.deadline.is_some()
    }

    /// Ensures that waits do not fail because the process has no file descriptors left.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.tokens.iter().try_for_each(|token| token.fd().map(drop))
    }

    /// Returns an error if a token is currently cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        match self.tokens.iter().any(CancelToken::is_cancelled) {
            true => Err(Error::new(ErrorKind::Cancelled)),
            false => Ok(()),
        }
    }

    /// Returns an error if the deadline has passed.
    pub(crate) fn check_deadline(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if deadline.left().is_zero() => Err(self.timed_out()),
            _ => Ok(()),
        }
    }

    /// Waits until `fd` can be read (or is at its end, or broken) without blocking.
    pub(crate) fn readable(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.ready(fd, PollFlags::IN)
    }

    /// Waits like [`readable`](Self::readable), for at most `time`. Returns whether `fd` can be read. A shorter limit
    /// of the wait itself also applies.
    pub(crate) fn readable_within(&self, fd: BorrowedFd<'_>, time: Duration) -> Result<bool> {
        self.poll(Some((fd, PollFlags::IN)), Some(self.limit().map_or(time, |limit| limit.min(time))))
    }

    /// Waits until `fd` can be written (or is broken) without blocking.
    pub(crate) fn writable(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.ready(fd, PollFlags::OUT)
    }

    fn ready(&self, fd: BorrowedFd<'_>, events: PollFlags) -> Result<()> {
        match self.poll(Some((fd, events)), self.limit())? {
            true => Ok(()),
            false => Err(self.too_late()),
        }
    }

    /// Returns how long a wait that begins now may take, if that is limited.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit.into_iter().chain(self.deadline.map(Deadline::left)).min()
    }

    /// Returns the error of a wait that exceeded its limit: the deadline has passed, or nothing happened for too long.
    pub(crate) fn too_late(&self) -> Error {
        // A timer may end a wait slightly before the deadline that another core's clock shows.
        const EARLY: Duration = Duration::from_millis(1);
        match self.deadline {
            Some(deadline) if self.limit.is_none() || deadline.left() <= EARLY => self.timed_out(),
            _ => self.stalled(),
        }
    }

    fn stalled(&self) -> Error {
        Error::new(ErrorKind::Stalled)
            .with_found(format!("no progress for {} s", self.limit.unwrap_or_default().as_secs_f64()))
            .with_expected("some bytes within that time, the stall timeout")
    }

    fn timed_out(&self) -> Error {
        let total = self.deadline.map_or(Duration::ZERO, |deadline| deadline.total);
        Error::new(ErrorKind::TimedOut)
            .with_found(format!("a stream that is not complete after {} s", total.as_secs_f64()))
            .with_expected("its end within that time, the total timeout")
    }

    /// Returns a check for a wait that begins now: it fails if the wait is cancelled, or takes too long.
    pub(crate) fn checking(&self) -> impl FnMut() -> Result<()> + '_ {
        let start = Instant::now();
        move || self.check().and_then(|()| self.expired(start))
    }

    /// Returns an error if the time limit for a wait that began at `start`, or the deadline, has passed.
    pub(crate) fn expired(&self, start: Instant) -> Result<()> {
        self.check_deadline()?;
        match self.limit {
            Some(limit) if start.elapsed() >= limit => Err(self.stalled()),
            _ => Ok(()),
        }
    }

    /// Sleeps for `time`, unless a token interrupts it.
    pub(crate) fn sleep(&self, time: Duration) -> Result<()> {
        if self.tokens.is_empty() {
            std::thread::sleep(time);
            return Ok(());
        }
        self.poll(None, Some(time)).map(drop)
    }

    /// Waits for `fd` for at most `limit` (indefinitely if `None`), regardless of this wait's own limit. Returns
    /// whether `fd` is ready.
    pub(crate) fn poll(&self, fd: Option<(BorrowedFd<'_>, PollFlags)>, limit: Option<Duration>) -> Result<bool> {
        // A limit that overflows the clock is treated as no limit.
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            self.check()?;
            let mut fds = Vec::with_capacity(1 + self.tokens.len());
            for token in &self.tokens {
                fds.push(PollFd::from_borrowed_fd(token.fd()?, PollFlags::IN));
            }
            fds.extend(fd.map(|(fd, events)| PollFd::from_borrowed_fd(fd, events)));
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ });
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) if fd.is_some() && fds.last().is_some_and(|fd| !fd.revents().is_empty()) => return Ok(true),
                // A token is ready: `check` above reports that. If it does not, a `reset` ran between the two steps of
                // a `cancel`, and the byte that was written would end every later poll.
                Ok(_) => self.tokens.iter().filter(|token| !token.is_cancelled()).for_each(CancelToken::empty),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::from_io(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_a_wait_and_can_be_reused() {
        let token = CancelToken::new().unwrap();
        let wait = Wait::new(Some(token.clone()), None);
        let (silent, _held) = std::io::pipe().unwrap();
        for _ in 0..3 {
            let canceller = token.clone();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5));
                canceller.cancel();
                canceller.cancel();
            });
            assert_eq!(wait.readable(silent.as_fd()).unwrap_err().kind(), ErrorKind::Cancelled);
            assert_eq!(wait.sleep(Duration::from_secs(60)).unwrap_err().kind(), ErrorKind::Cancelled);
            thread.join().unwrap();
            token.reset();
            assert!(wait.check().is_ok());
        }
    }

    #[test]
    fn a_reset_between_the_two_steps_of_a_cancel_causes_no_busy_loop() {
        let token = CancelToken::new().unwrap();
        let wait = Wait::new(Some(token.clone()), None);
        token.0.cancelled.store(true, Ordering::SeqCst);
        token.reset();
        let pipe = token.pipe().unwrap();
        pipe.make_readable();
        assert!(!wait.poll(None, Some(Duration::from_millis(5))).unwrap());
        assert_eq!(rustix::io::read(&pipe.readable, &mut [0]), Err(Errno::AGAIN), "it is still readable");
        token.cancel();
        assert!(wait.poll(None, None).is_err());
    }

    #[test]
    fn a_lazy_token_has_no_descriptors_before_a_wait() {
        let token = CancelToken::lazy();
        let wait = Wait::new(Some(token.clone()), None);
        token.cancel();
        assert_eq!(wait.check().unwrap_err().kind(), ErrorKind::Cancelled);
        token.reset();
        assert!(wait.check().is_ok() && token.0.pipe.get().is_none());
        assert!(!wait.poll(None, Some(Duration::ZERO)).unwrap());
        assert!(token.0.pipe.get().is_some());
        // It was cancelled before there was a descriptor.
        let token = CancelToken::lazy();
        token.cancel();
        assert!(is_readable(token.fd().unwrap()));
        token.reset();
        assert!(!is_readable(token.fd().unwrap()));
    }

    /// Each is cancelled while another thread begins its first wait. A lost wake-up would hang.
    #[test]
    fn a_lazy_token_can_be_cancelled_while_the_first_wait_begins() {
        let (silent, _held) = std::io::pipe().unwrap();
        for _ in 0..1000 {
            let token = CancelToken::lazy();
            let start = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    token.cancel();
                });
                start.wait();
                let error = Wait::new(Some(token.clone()), None).readable(silent.as_fd()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Cancelled);
            });
        }
    }

    #[test]
    fn a_limit_ends_a_wait() {
        let wait = Wait::new(None, Some(Duration::from_millis(5)));
        let (silent, _held) = std::io::pipe().unwrap();
        assert_eq!(wait.readable(silent.as_fd()).unwrap_err().kind(), ErrorKind::Stalled);
    }

    #[test]
    fn a_deadline_ends_all_waits() {
        let wait = Wait::new(None, Some(Duration::from_secs(60))).within(Some(Duration::from_millis(5)));
        let (silent, mut held) = std::io::pipe().unwrap();
        for _ in 0..2 {
            assert_eq!(wait.readable(silent.as_fd()).unwrap_err().kind(), ErrorKind::TimedOut);
            assert_eq!(wait.check_deadline().unwrap_err().kind(), ErrorKind::TimedOut);
        }
        // What is ready needs no wait.
        std::io::Write::write_all(&mut held, b"x").unwrap();
        wait.readable(silent.as_fd()).unwrap();
        // This is also the error if a timer ended the wait too early.
        let wait = Wait::new(None, None).within(Some(Duration::from_secs(60)));
        assert_eq!(wait.too_late().kind(), ErrorKind::TimedOut);
        // A limit that is shorter is reported first; one that the clock cannot represent never ends.
        let wait = Wait::new(None, Some(Duration::from_millis(5))).within(Some(Duration::MAX));
        let (silent, _held) = std::io::pipe().unwrap();
        assert_eq!(wait.readable(silent.as_fd()).unwrap_err().kind(), ErrorKind::Stalled);
        wait.check_deadline().unwrap();
    }

    #[test]
    fn a_closed_pipe_is_ready() {
        let wait = Wait::new(Some(CancelToken::new().unwrap()), None);
        let (closed, writer) = std::io::pipe().unwrap();
        drop(writer);
        wait.readable(closed.as_fd()).unwrap();
    }
}
