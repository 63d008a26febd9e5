//! Runs work that may wait, without the interpreter lock and with signals handled.
//!
//! Python runs its signal handlers on the main thread, between two of its instructions; a wait in the core would delay
//! them. So every wait is interrupted regularly (all waits of the core obey a token, and no data is lost), the handlers
//! run, and the wait continues. A thread does this while there are waits, and ends when there are none.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use millstream::{CancelToken, Error, ErrorKind};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;

/// The maximum delay until a signal is handled.
const TICK: Duration = Duration::from_millis(25);

/// The number of ticks without a wait after which the thread ends.
const PATIENCE: u32 = 20;

/// Interrupts the blocking calls of one reader or writer, when the caller cancels them or a signal must be handled.
pub struct Token {
    token: CancelToken,
    /// Whether the user cancelled.
    cancelled: AtomicBool,
    /// How long the other side may make no progress. The core's own limit starts again with each wait here.
    patience: Option<Patience>,
    /// The number of forks when the reader or writer was opened.
    forks: u32,
}

/// The number of forks between this process and the process that imported the package. (Asking the system for the
/// process costs a system call for each wait.)
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Python calls this in the child of a fork.
#[pyfunction]
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of forks between this process and the process that imported the package.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// A time limit for waits, and the progress of the other side.
pub struct Patience {
    pub limit: Duration,
    pub progress: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Token {
    pub fn new() -> Token {
        Token { token: CancelToken::lazy(), cancelled: AtomicBool::new(false), patience: None, forks: forks() }
    }

    /// Returns whether this is a fork of the process that opened the reader or writer. In a fork, the threads do not
    /// exist, locks may be locked, and the commands and temporary files belong to the other process.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.forks != forks()
    }

    fn check_process(&self) -> Result<(), Error> {
        if !self.is_inherited() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Closed)
            .with_found("a call in a forked child of the process that opened it")
            .with_expected("a reader or writer opened by this process"))
    }

    pub fn core(&self) -> &CancelToken {
        &self.token
    }

    /// Sets a time limit for waits, if there is one.
    pub fn limit(&mut self, patience: Option<Patience>) {
        self.patience = patience;
    }

    /// The time limit for waits.
    pub fn patience(&self) -> Option<&Patience> {
        self.patience.as_ref()
    }

    /// Interrupts the current wait, or the next one if there is none.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.token.cancel();
    }

    /// Makes the token usable again, and returns whether the user cancelled.
    pub fn settle(&self) -> bool {
        if self.token.is_cancelled() {
            self.token.reset();
        }
        self.cancelled.swap(false, Ordering::SeqCst)
    }

    /// Runs a function that may wait, and repeats it if it was only interrupted to handle signals.
    ///
    /// # Errors
    /// The exception of a handler, or the error.
    pub fn wait<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnMut() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        self.wait_for(py, self.patience(), work)
    }

    /// Like [`wait`](Token::wait), without a time limit.
    ///
    /// # Errors
    /// As [`wait`](Token::wait).
    pub fn wait_long<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnMut() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        self.wait_for(py, None, work)
    }

    /// Runs work that would start again if it was interrupted, on another thread, while this one handles signals.
    ///
    /// # Errors
    /// As [`wait`](Token::wait).
    pub fn once<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        if let Err(error) = self.check_process() {
            return Ok(Err(error));
        }
        let done = once(py, &self.token, work);
        let is_interrupted = match &done {
            Ok(Ok(_)) => false,
            Ok(Err(error)) => error.kind() == ErrorKind::Cancelled,
            Err(_) => true,
        };
        if is_interrupted {
            // A later call continues.
            self.settle();
        }
        done
    }

    /// Like [`wait`](Token::wait), with another time limit.
    ///
    /// # Errors
    /// As [`wait`](Token::wait).
    pub fn wait_for<T: Send>(
        &self,
        py: Python<'_>,
        patience: Option<&Patience>,
        mut work: impl FnMut() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        if let Err(error) = self.check_process() {
            return Ok(Err(error));
        }
        let come_so_far = || patience.map_or(0, |patience| (patience.progress)());
        let (mut since, mut progress) = (Instant::now(), come_so_far());
        loop {
            let ticking = Ticking::start(&self.token);
            let done = py.detach(&mut work);
            drop(ticking);
            if self.token.is_cancelled() && !self.cancelled.load(Ordering::SeqCst) {
                // This was a tick, perhaps after the end of the wait; it must not affect a later wait.
                self.token.reset();
                if self.cancelled.load(Ordering::SeqCst) {
                    self.token.cancel();
                }
            }
            match done {
                Err(error) if error.kind() == ErrorKind::Cancelled => {
                    if self.settle() {
                        return Ok(Err(error));
                    }
                    py.check_signals()?;
                    let now = come_so_far();
                    if now != progress {
                        (since, progress) = (Instant::now(), now);
                    }
                    if let Some(patience) = patience.filter(|patience| since.elapsed() >= patience.limit) {
                        return Ok(Err(Error::new(ErrorKind::Stalled)
                            .with_found(format!("no progress for {} s", patience.limit.as_secs_f64()))
                            .with_expected("some bytes within that time")));
                    }
                }
                done => return Ok(done),
            }
        }
    }

    /// Runs long work in slices until a slice reports that it is done.
    ///
    /// # Errors
    /// As [`wait`](Token::wait).
    pub fn slices<T: Send>(
        &self,
        py: Python<'_>,
        mut slice: impl FnMut(Deadline) -> Result<Option<T>, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        loop {
            match self.wait(py, || slice(Deadline(Instant::now() + TICK)))? {
                Ok(Some(done)) => return Ok(Ok(done)),
                Ok(None) => py.check_signals()?,
                Err(error) => return Ok(Err(error)),
            }
        }
    }
}

/// Runs work that would start again if it was interrupted, on another thread, while this one handles signals. `token`
/// cancels the work.
///
/// # Errors
/// The exception of a handler, or the error.
pub fn once<T: Send>(
    py: Python<'_>,
    token: &CancelToken,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<Result<T, Error>> {
    thread::scope(|scope| {
        let (done, ended) = crossbeam_channel::bounded::<()>(0);
        let worker = move || {
            let result = work();
            drop(done);
            result
        };
        let worker = match thread::Builder::new().name("millstream work".to_owned()).spawn_scoped(scope, worker) {
            Ok(worker) => worker,
            Err(error) => return Ok(Err(Error::new(ErrorKind::Internal).with_io(error))),
        };
        let mut handled = Ok(());
        // A thread that has ended has dropped its side of the channel.
        while handled.is_ok() && py.detach(|| ended.recv_timeout(TICK)) == Err(RecvTimeoutError::Timeout) {
            handled = py.check_signals();
        }
        if handled.is_err() {
            token.cancel();
        }
        // The work may need the interpreter lock.
        let result = py.detach(|| worker.join());
        handled?;
        Ok(result.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal))))
    })
}

/// The time at which a slice of long work should end.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}

/// Warns of a reader or writer that was not closed. Python shows this in its development mode.
pub fn unclosed(py: Python<'_>, message: &str) {
    let Ok(text) = CString::new(message) else { return };
    // An exception that is being handled was not raised here.
    let raising = PyErr::take(py);
    if let Err(raised) = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &text, 1) {
        // The program makes errors of warnings, but a destructor cannot raise them.
        raised.write_unraisable(py, None);
    }
    if let Some(raising) = raising {
        raising.restore(py);
    }
}

/// The waits in progress.
struct Waits {
    tokens: Vec<(u64, Instant, CancelToken)>,
    next: u64,
    /// The number of forks when the thread that interrupts the waits was started, if there is one. It is not part of a
    /// fork.
    ticking: Option<u32>,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { tokens: Vec::new(), next: 0, ticking: None });

/// A wait that is interrupted at the second tick from now if it has not ended before.
struct Ticking(Option<u64>);

impl Ticking {
    fn start(token: &CancelToken) -> Ticking {
        // A fork may have happened while another thread held the lock. Then the lock is never released, and waits of
        // this process are not interrupted.
        let Some(mut waits) = try_lock() else { return Ticking(None) };
        let forks = Some(forks());
        if waits.ticking != forks {
            waits.tokens.clear();
            let started = thread::Builder::new().name("millstream signals".to_owned()).spawn(tick);
            if started.is_err() {
                return Ticking(None);
            }
            waits.ticking = forks;
        }
        let number = waits.next;
        waits.next += 1;
        waits.tokens.push((number, Instant::now(), token.clone()));
        Ticking(Some(number))
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            lock().tokens.retain(|wait| wait.0 != number);
        }
    }
}

fn tick() {
    let mut idle = 0;
    loop {
        thread::sleep(TICK);
        let mut waits = lock();
        idle = if waits.tokens.is_empty() { idle + 1 } else { 0 };
        if idle > PATIENCE {
            waits.ticking = None;
            return;
        }
        for (_, since, token) in &waits.tokens {
            if since.elapsed() >= TICK / 2 {
                token.cancel();
            }
        }
    }
}

fn lock() -> MutexGuard<'static, Waits> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock() -> Option<MutexGuard<'static, Waits>> {
    for _ in 0..1000 {
        match WAITS.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
    None
}
