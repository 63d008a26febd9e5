//! A sink that holds bytes back for a limited time.
//!
//! The writer passes each record on immediately, and this sink collects records behind a lock. A thread writes the
//! bytes whose delay has expired, even while the producer is idle. Only this policy needs the lock and the thread,
//! which starts with the first byte.
//!
//! The thread's error is kept for the next call, and the bytes stay in place: the call after that one tries again.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::CancelToken;
use crate::sink::Sink;
use crate::sink::WriterEnd;

/// The time that the thread waits after a flush that a token interrupted.
const PAUSE: Duration = Duration::from_millis(5);

/// Holds bytes back for at most `delay`.
pub(crate) struct DelaySink {
    shared: Arc<Shared>,
    delay: Duration,
    capacity: usize,
    /// Interrupts the thread's waits for the sink.
    halt: CancelToken,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// `State::since` or `State::ending` has changed.
    changed: Condvar,
}

struct State {
    sink: Box<dyn Sink>,
    /// The bytes from `start` on have not been written yet.
    pending: Vec<u8>,
    start: usize,
    /// The time since which bytes have been waiting, here or in an inner sink. The thread's deadline counts from it.
    since: Option<Instant>,
    /// The thread's error.
    error: Option<Error>,
    ending: bool,
}

impl State {
    fn send(&mut self) -> Result<()> {
        while self.start < self.pending.len() {
            self.start += self.sink.write(&self.pending[self.start..])?;
        }
        self.pending.clear();
        self.start = 0;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        // This also happens after a failure: the error is known, and whether to retry is the caller's decision.
        self.since = None;
        self.send()?;
        self.sink.flush()
    }

    fn report(&mut self) -> Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

impl DelaySink {
    /// Creates the sink. `halt` interrupts the waits of `sink`.
    pub(crate) fn new(sink: Box<dyn Sink>, capacity: usize, delay: Duration, halt: CancelToken) -> DelaySink {
        let state = State { sink, pending: Vec::new(), start: 0, since: None, error: None, ending: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        DelaySink { shared, delay, capacity, halt, thread: None }
    }

    fn start_thread(&mut self) -> Result<()> {
        if self.thread.is_none() {
            let (shared, delay) = (self.shared.clone(), self.delay);
            let thread = std::thread::Builder::new().name("millstream-flush".into());
            self.thread = Some(thread.spawn(move || send_off(&shared, delay))?);
        }
        Ok(())
    }

    /// Stops the thread as soon as it has left the sink.
    fn stop_thread(&mut self) {
        if let Some(thread) = self.thread.take() {
            if let Ok(mut state) = self.shared.state.lock() {
                state.ending = true;
            }
            self.shared.changed.notify_one();
            let _ = thread.join(); // a panic shows as a poisoned lock
        }
    }
}

impl Shared {
    /// # Errors
    /// Fails if the sink has panicked on the thread, because it is then unknown which bytes the sink accepted.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        self.state
            .lock()
            .map_err(|_| Error::new(ErrorKind::Internal).with_found("a panic in the sink, on the flushing thread"))
    }
}

/// The thread's main loop: writes bytes that have waited for `delay`.
fn send_off(shared: &Shared, delay: Duration) {
    let Ok(mut state) = shared.lock() else { return };
    while !state.ending {
        // A delay beyond the clock's range never expires.
        let due = state.since.and_then(|since| since.checked_add(delay));
        let woken = match due.map(|due| due.saturating_duration_since(Instant::now())) {
            None => shared.changed.wait(state).ok(),
            Some(Duration::ZERO) => {
                let since = state.since;
                match state.flush() {
                    // Tokens interrupt waits, and bindings use this to check for signals. The bytes still have to be
                    // written, but a caller that waits for the lock has priority.
                    Err(error) if error.kind() == ErrorKind::Cancelled => {
                        state.since = since;
                        shared.changed.wait_timeout(state, PAUSE).ok().map(|(state, _)| state)
                    }
                    flushed => {
                        state.error = flushed.err();
                        Some(state)
                    }
                }
            }
            Some(left) => shared.changed.wait_timeout(state, left).ok().map(|(state, _)| state),
        };
        match woken {
            Some(woken) => state = woken,
            None => return,
        }
    }
}

impl Sink for DelaySink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.start_thread()?;
        let mut state = self.shared.lock()?;
        state.report()?;
        if state.pending.len() + bytes.len() > self.capacity {
            state.send()?;
        }
        let taken = if bytes.len() >= self.capacity {
            state.sink.write(bytes)?
        } else {
            state.pending.extend_from_slice(bytes);
            bytes.len()
        };
        if state.since.is_none() {
            state.since = Some(Instant::now());
            self.shared.changed.notify_one();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> Result<()> {
        let mut state = self.shared.lock()?;
        state.report()?;
        state.flush()
    }

    fn finish(&mut self) -> Result<()> {
        self.stop_thread();
        let mut state = self.shared.lock()?;
        state.report()?;
        state.send()?;
        state.sink.finish()
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.stop_thread();
        self.shared.lock()?.sink.close(end)
    }

    fn abandon(&mut self) {
        self.halt.cancel();
        self.stop_thread();
        if let Ok(mut state) = self.shared.lock() {
            state.sink.abandon();
        }
    }
}

impl Drop for DelaySink {
    fn drop(&mut self) {
        self.stop_thread();
    }
}
