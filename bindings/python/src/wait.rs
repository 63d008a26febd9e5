//! Work that may wait, without the interpreter's lock and with an ear for signals.
//!
//! Python runs its handlers of signals on the main thread, between two of its instructions; a wait of ours would hold them
//! up. So every wait is ended from time to time (the core's waits all obey a token, and nothing is lost by that), the
//! handlers run, and the wait goes on. A thread sees to that while there are waits, and goes away when there are none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, Error, ErrorKind};
use pyo3::prelude::*;

use crate::error;

/// For how long a signal may go unheard.
const TICK: Duration = Duration::from_millis(25);

/// For how many ticks without a wait the thread stays.
const PATIENCE: u32 = 20;

/// Ends the waits of one reader or writer: for its user, or to hear signals.
pub struct Token {
    token: CancelToken,
    /// By the user.
    cancelled: AtomicBool,
    /// How long the other side may do nothing. The core's own limit begins anew with each of our waits.
    patience: Option<Patience>,
    /// Whether signals are heard.
    hears: bool,
}

/// A time limit for waits, and how far the other side has come.
pub struct Patience {
    pub limit: Duration,
    pub progress: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Token {
    pub fn new(py: Python<'_>) -> PyResult<Token> {
        let token = CancelToken::new().map_err(|error| error::raise(py, &error))?;
        Ok(Token { token, cancelled: AtomicBool::new(false), patience: None, hears: true })
    }

    pub fn core(&self) -> &CancelToken {
        &self.token
    }

    /// Sets a time limit for waits, where there is one.
    pub fn limit(&mut self, patience: Option<Patience>) {
        self.patience = patience;
    }

    /// Leaves waits alone: for a writer with a thread of its own, which would take the end of our wait for the end of its own.
    pub fn deafen(&mut self) {
        self.hears = false;
    }

    /// Ends the wait that is under way, or else the next one.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.token.cancel();
    }

    /// Makes it usable again, and says whether it was the user who cancelled.
    pub fn settle(&self) -> bool {
        self.token.reset();
        self.cancelled.swap(false, Ordering::SeqCst)
    }

    /// Does what may wait, again and again while it was only ended to hear signals.
    ///
    /// # Errors
    /// What a handler raised, or what went wrong.
    pub fn wait<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnMut() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        self.wait_for(py, self.patience.as_ref(), work)
    }

    /// The same without a time limit.
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

    fn wait_for<T: Send>(
        &self,
        py: Python<'_>,
        patience: Option<&Patience>,
        mut work: impl FnMut() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        let come_so_far = || patience.map_or(0, |patience| (patience.progress)());
        let (mut since, mut progress) = (Instant::now(), come_so_far());
        loop {
            let ticking = if self.hears { Ticking::start(&self.token) } else { Ticking(None) };
            let done = py.detach(&mut work);
            drop(ticking);
            if self.token.is_cancelled() && !self.cancelled.load(Ordering::SeqCst) {
                // A tick, perhaps one that came when all was done: nobody is to find it later.
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

    /// Does what takes long, a slice after the other, until one says that it is done.
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

/// When a slice of long work should come to its end.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}

/// The waits that are under way.
struct Waits {
    tokens: Vec<(u64, Instant, CancelToken)>,
    next: u64,
    /// The process whose thread looks after them. After a fork there is none.
    process: u32,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { tokens: Vec::new(), next: 0, process: 0 });

/// A wait that is ended at the next tick but one, unless it is over before.
struct Ticking(Option<u64>);

impl Ticking {
    fn start(token: &CancelToken) -> Ticking {
        // A fork may have come while another thread held the lock: then nobody will ever give it back, and waits of this
        // process are not ended.
        let Some(mut waits) = try_lock() else { return Ticking(None) };
        let process = std::process::id();
        if waits.process != process {
            waits.tokens.clear();
            let started = thread::Builder::new().name("millstream signals".to_owned()).spawn(tick);
            if started.is_err() {
                return Ticking(None);
            }
            waits.process = process;
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
            waits.process = 0;
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
