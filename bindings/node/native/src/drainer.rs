//! The thread that writes for a JavaScript writer.
//!
//! ```text
//!    memory of JavaScript's ──give──► [block] [block] ──take──► core writer
//!      JavaScript's thread                              thread
//! ```
//!
//! JavaScript's writer collects bytes and decides when to pass them on, so the core's writer has no buffer of its own:
//! every block is passed to the system, or to the encoder.
//!
//! Blocks are written in order. After a failure no more are written, and every later call reports it. Memory is bounded
//! by the blocks. A JavaScript thread never waits, except when the process exits, and no wake-up is lost after a call has
//! found no space or an unfinished step.
//!
//! This is a separate thread and not one of Node's four: a pipe without a reader would block one of them for all files
//! and name lookups.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use millstream::{CancelToken, CommandEnd, Error, ErrorKind, Writer};

/// The number of blocks that wait for the thread: the next one, and one for bursts.
const BLOCKS: usize = 2;

/// A step of the thread.
enum Step {
    Write(Vec<u8>),
    Flush,
    Close,
}

#[derive(Default)]
struct State {
    /// The steps that the thread has not begun.
    steps: VecDeque<Step>,
    /// Memory for blocks.
    spare: Vec<Vec<u8>>,
    /// Whether the thread is in a step.
    is_busy: bool,
    /// The first failure.
    failure: Option<Arc<Error>>,
    /// How the command ended.
    ends: Vec<CommandEnd>,
    /// Whether there is no output unless the writer is closed.
    vanishes: bool,
    /// Whether the thread ends after the last step.
    is_leaving: bool,
    /// Whether the thread ends as soon as possible.
    is_aborted: bool,
    /// Whether the sink was closed and the thread ends.
    is_gone: bool,
    /// Whether JavaScript waits for a change.
    waits: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.is_gone || (self.steps.is_empty() && !self.is_busy)
    }

    fn fail(&mut self, error: Error) {
        self.steps.retain(|step| matches!(step, Step::Close));
        self.ends.extend(error.command().cloned());
        self.failure.get_or_insert_with(|| Arc::new(error));
    }
}

/// The state that the thread and JavaScript share.
pub struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    written: AtomicU64,
    /// `None` if there is no thread.
    token: Option<CancelToken>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// The writers to paths and remote objects, whose temporary files and unfinished uploads must not outlive the process.
static PATHS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl Shared {
    /// `wake` is called on the thread when JavaScript waits and the state has changed. `vanishes` applies until the sink
    /// is open.
    pub fn new(token: CancelToken, vanishes: bool, wake: impl Fn() + Send + Sync + 'static) -> Arc<Shared> {
        Shared::with(State { vanishes, ..State::default() }, Some(token), Box::new(wake))
    }

    /// The state of a writer whose sink could not be opened.
    pub fn refused(error: Error, vanishes: bool) -> Arc<Shared> {
        let mut state = State { vanishes, is_gone: true, ..State::default() };
        state.fail(error);
        Shared::with(state, None, Box::new(|| {}))
    }

    fn with(state: State, token: Option<CancelToken>, wake: Box<dyn Fn() + Send + Sync>) -> Arc<Shared> {
        let (state, changed, written) = (Mutex::new(state), Condvar::new(), AtomicU64::new(0));
        Arc::new(Shared { state, changed, written, token, wake })
    }

    /// Makes [`leave_paths`] stop this writer.
    pub fn remember(self: &Arc<Shared>) {
        let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        paths.retain(|path| path.strong_count() > 0);
        paths.push(Arc::downgrade(self));
    }

    /// Passes a copy of the bytes to the thread. Returns false if there is no space; then a wake-up will follow.
    pub fn write(&self, bytes: &[u8]) -> bool {
        let mut block = {
            let mut state = self.lock();
            if state.steps.len() >= BLOCKS {
                state.waits = true;
                return false;
            }
            state.spare.pop().unwrap_or_default()
        };
        block.clear();
        block.extend_from_slice(bytes);
        self.add(Step::Write(block));
        true
    }

    /// Requests that all bytes are passed to the system.
    pub fn flush(&self) {
        self.add(Step::Flush);
    }

    /// Requests that the stream is completed and the thread ends.
    pub fn close(&self) {
        self.add(Step::Close);
    }

    /// Requests that the thread ends without completing the stream: after the bytes that it was given, or now.
    pub fn stop(&self, now: bool) {
        let mut state = self.lock();
        state.is_leaving = true;
        state.is_aborted |= now;
        drop(state);
        if let (true, Some(token)) = (now, &self.token) {
            token.cancel();
        }
        self.changed.notify_all();
    }

    /// Returns whether no step is left. If not, a wake-up will follow.
    pub fn is_idle(&self) -> bool {
        let mut state = self.lock();
        state.waits |= !state.is_idle();
        state.is_idle()
    }

    /// Returns whether the thread has ended. If not, a wake-up will follow.
    pub fn is_gone(&self) -> bool {
        let mut state = self.lock();
        state.waits |= !state.is_gone;
        state.is_gone
    }

    /// Waits until no step is left, and returns whether all bytes were passed to the system. It gives up if nothing
    /// changes for this long.
    pub fn settle(&self, bytes: &[u8], patience: Duration) -> bool {
        self.add(Step::Write(bytes.to_vec()));
        self.flush();
        self.wait(patience, State::is_idle) && self.lock().failure.is_none()
    }

    /// Returns the first failure.
    pub fn failure(&self) -> Option<Arc<Error>> {
        self.lock().failure.clone()
    }

    /// Returns the number of bytes that the system has accepted, as of the last step.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns whether there is no output unless the writer is closed.
    pub fn vanishes(&self) -> bool {
        self.lock().vanishes
    }

    /// How the commands ended so far.
    pub fn ends<T>(&self, look: impl FnOnce(&[CommandEnd]) -> T) -> T {
        look(&self.lock().ends)
    }

    /// The thread's function: writes until the stream is completed or the thread is stopped.
    pub fn drain(&self, writer: Result<Writer, Error>) {
        match writer {
            Err(error) => self.finish(Some(error)),
            Ok(writer) => {
                self.lock().vanishes = writer.vanishes();
                let result = self.write_all(writer);
                self.finish(result.err());
            }
        }
    }

    /// The result if the thread panicked.
    pub fn give_up(&self) {
        self.finish(Some(Error::new(ErrorKind::Internal).with_found("a thread that panicked")));
    }

    fn write_all(&self, mut writer: Writer) -> Result<(), Error> {
        while let Some(step) = self.next() {
            let done = match step {
                Step::Write(block) => {
                    let done = writer.write(&block);
                    self.lock().spare.push(block);
                    done
                }
                Step::Flush => writer.flush(),
                // A stream that lacks bytes must not be completed.
                Step::Close if self.failure().is_some() => {
                    writer.abort();
                    return Ok(());
                }
                Step::Close => {
                    let end = writer.try_close();
                    self.written.store(writer.written(), Ordering::Relaxed);
                    // A second attempt could complete a file that the caller considers incomplete.
                    writer.abort();
                    self.lock().ends = end?.commands;
                    return Ok(());
                }
            };
            self.written.store(writer.written(), Ordering::Relaxed);
            self.done(done.err());
        }
        let is_incomplete = {
            let state = self.lock();
            state.is_aborted || state.failure.is_some()
        };
        if is_incomplete {
            writer.abort();
        }
        // This writes what the encoder has held back.
        drop(writer);
        Ok(())
    }

    /// Waits for a step. Returns `None` if the thread is to end.
    fn next(&self) -> Option<Step> {
        let mut state = self.lock();
        loop {
            if state.is_aborted {
                return None;
            }
            if let Some(step) = state.steps.pop_front() {
                state.is_busy = true;
                return Some(step);
            }
            if state.is_leaving {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, step: Step) {
        let mut state = self.lock();
        // After a failure, only closing makes a difference: the thread ends.
        if state.failure.is_none() || matches!(step, Step::Close) {
            state.steps.push_back(step);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends a step.
    fn done(&self, error: Option<Error>) {
        self.change(|state| {
            state.is_busy = false;
            if let Some(error) = error {
                state.fail(error);
            }
        });
    }

    /// The thread's last change.
    fn finish(&self, error: Option<Error>) {
        self.change(|state| {
            state.is_gone = true;
            if let Some(error) = error {
                state.fail(error);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let waits = {
            let mut state = self.lock();
            change(&mut state);
            std::mem::take(&mut state.waits)
        };
        self.changed.notify_all();
        if waits {
            (self.wake)();
        }
    }

    /// Blocks until the condition is true. Returns false if nothing changes for this long.
    fn wait(&self, patience: Duration, is_reached: impl Fn(&State) -> bool) -> bool {
        let mut state = self.lock();
        let (mut written, mut since) = (self.written(), Instant::now());
        while !is_reached(&state) {
            let left = patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            if self.written() != written {
                (written, since) = (self.written(), Instant::now());
            }
        }
        true
    }

    /// A panic of the thread leaves a consistent state, because each change is a single step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops all writers to paths and remote objects, and waits until their temporary files and unfinished uploads are gone,
/// but not for long.
pub fn leave_paths(patience: Duration) {
    let paths = std::mem::take(&mut *PATHS.lock().unwrap_or_else(PoisonError::into_inner));
    let open: Vec<Arc<Shared>> = paths.iter().filter_map(Weak::upgrade).collect();
    for shared in &open {
        shared.stop(true);
    }
    let deadline = Instant::now() + patience;
    for shared in &open {
        shared.wait(deadline.saturating_duration_since(Instant::now()), |state| state.is_gone);
    }
}
