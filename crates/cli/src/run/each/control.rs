//! What the reading side and the copies share: who gets which block, whose output is written, and when it is over.
//!
//! It promises that memory is bounded: about one block waits to be taken, and held outputs whose turn has not come are
//! limited by [`Policy::hold`]; beyond that a copy is not read until its turn comes. No copy waits indefinitely: the
//! copy whose turn it is never waits for space, and its block was taken before all later ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use millstream::{CancelToken, Error, ErrorKind, Result};

use crate::message;
use crate::run::outputs::Outputs;

use super::block::Block;
use crate::run::each_options::OnError;

/// The cost of an output that waits for its turn, besides its bytes: there may be many empty ones.
const PARKED: usize = 4096;

/// How it is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) order: Order,
    pub(super) on_error: OnError,
    /// How many bytes of output may wait for their turn.
    pub(super) hold: usize,
}

/// In which order outputs go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// In that of the blocks.
    Blocks,
    /// As soon as the copies end.
    Ends,
}

/// The state shared by the reading thread and the threads that each look after a copy.
pub(super) struct Control {
    policy: Policy,
    state: Mutex<State>,
    changed: Condvar,
    /// Written to by the one whose turn it is; taken back at the end.
    outputs: Mutex<Option<Outputs>>,
    /// Ends waiting for the sources.
    input: CancelToken,
}

#[derive(Default)]
struct State {
    /// Blocks that have not been taken yet.
    queue: VecDeque<Block>,
    /// Whether there will be no more of them.
    is_closed: bool,
    /// The blocks in progress, and what ends the work on them.
    active: Vec<(u64, CancelToken)>,
    /// In order: the block whose output is written. Otherwise: the one that has the outputs for itself.
    turn: Option<u64>,
    /// Outputs of copies that have ended before their turn.
    parked: BTreeMap<u64, Vec<u8>>,
    /// How many bytes of output wait for their turn.
    held: usize,
    /// Nothing after this block is wanted any more.
    last: Option<u64>,
    /// Nothing is wanted any more.
    is_over: bool,
    /// A caller ended everything from outside: the output is not complete.
    is_cancelled: bool,
    report: Report,
    failure: Option<(u64, Error)>,
    /// An output failed, or the system.
    fatal: Option<Error>,
}

/// What has been done.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(in crate::run) struct Report {
    /// Blocks that were given to a copy.
    pub(in crate::run) blocks: u64,
    /// Those whose copy has failed.
    pub(in crate::run) failed: u64,
    /// What the copies have written.
    pub(in crate::run) output_bytes: u64,
}

/// How it ended.
pub(super) struct Ended {
    pub(super) outputs: Outputs,
    pub(super) report: Report,
    /// Why an output could not be written, or a copy not be started.
    pub(super) fatal: Option<Error>,
    /// The first failure of a copy, in the order of blocks.
    pub(super) failure: Option<Error>,
    /// Whether everything was [cancelled](Control::cancel), which is neither a failure of a copy nor the end.
    pub(super) is_cancelled: bool,
}

impl State {
    fn wants(&self, index: u64) -> bool {
        !self.is_over && self.last.is_none_or(|last| index <= last)
    }
}

impl Control {
    pub(super) fn new(policy: Policy, outputs: Outputs, input: CancelToken) -> Control {
        let turn = (policy.order == Order::Blocks).then_some(0);
        let state = Mutex::new(State { turn, ..State::default() });
        Control { policy, state, changed: Condvar::new(), outputs: Mutex::new(Some(outputs)), input }
    }

    /// Passes a block to the next copy, and waits while another one is pending.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if none is wanted any more.
    pub(super) fn give(&self, block: Block) -> Result<()> {
        let mut state = self.lock();
        while !state.queue.is_empty() && state.wants(block.index) {
            state = self.wait(state);
        }
        if !state.wants(block.index) {
            return Err(Error::new(ErrorKind::Cancelled));
        }
        state.queue.push_back(block);
        self.changed.notify_all();
        Ok(())
    }

    /// There are no more blocks.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The next block, and the token that says when it is not wanted any more. `None` at the end.
    pub(super) fn take(&self) -> Option<(Block, CancelToken)> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(block) = state.queue.pop_front() {
                let token = match CancelToken::new() {
                    Ok(token) => token,
                    Err(error) => {
                        self.break_off(&mut state, error);
                        return None;
                    }
                };
                state.report.blocks += 1;
                state.active.push((block.index, token.clone()));
                self.changed.notify_all();
                return Some((block, token));
            }
            if state.is_closed || state.last.is_some() {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Takes what the copy of a block has written. It is written if its turn has come; else it is held, after what is
    /// held already, and if that is too much its turn is waited for.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if it is not wanted any more.
    pub(super) fn write(&self, index: u64, held: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
        let mut state = self.lock();
        state.report.output_bytes += bytes.len() as u64;
        loop {
            if !state.wants(index) {
                return Err(Error::new(ErrorKind::Cancelled));
            }
            let is_full = state.held + bytes.len() > self.policy.hold;
            if self.has_turn(&mut state, index, is_full) {
                break;
            }
            if !is_full {
                state.held += bytes.len();
                held.extend_from_slice(bytes);
                return Ok(());
            }
            state = self.wait(state);
        }
        state.held -= held.len();
        drop(state);
        let held = std::mem::take(held);
        self.put(&held).and_then(|()| self.put(bytes))
    }

    /// The copy of a block has ended. What is held of its output is written when its turn has come, by this thread or
    /// by the one whose turn it is.
    pub(super) fn end(&self, block: &Block, held: Vec<u8>, result: Result<()>) {
        let index = block.index;
        let mut state = self.lock();
        state.active.retain(|(active, _)| *active != index);
        if let Err(error) = result {
            self.failed(&mut state, index, block.locate("", error));
            if state.is_over && self.policy.order == Order::Ends {
                state.parked.insert(index, held); // goes out with the others that are complete
                return;
            }
        }
        let is_our_turn = loop {
            if !state.wants(index) {
                break false;
            }
            if self.has_turn(&mut state, index, true) {
                break true;
            }
            if state.held + PARKED <= self.policy.hold {
                state.held += PARKED;
                state.parked.insert(index, held);
                return;
            }
            state = self.wait(state);
        };
        state.held -= held.len();
        drop(state);
        if is_our_turn && self.put(&held).is_ok() {
            self.pass_on(index);
        }
        self.changed.notify_all();
    }

    /// The turn passes on from this block: complete outputs are written, up to the first that is not.
    fn pass_on(&self, index: u64) {
        let mut next = index;
        let mut state = self.lock();
        loop {
            let parked = match self.policy.order {
                Order::Blocks => {
                    next += 1;
                    state.turn = Some(next);
                    // Nothing is written after a block that failed.
                    if state.wants(next) { state.parked.remove(&next) } else { None }
                }
                Order::Ends => state.parked.pop_first().map(|(_, output)| output),
            };
            let Some(output) = parked else { break };
            state.held -= output.len() + PARKED;
            drop(state);
            if self.put(&output).is_err() {
                return;
            }
            state = self.lock();
        }
        if self.policy.order == Order::Ends {
            state.turn = None;
        }
    }

    /// Whether the output of this block may go out now. `claims`: where there is no order, it would have the outputs for
    /// itself from now on.
    fn has_turn(&self, state: &mut State, index: u64, claims: bool) -> bool {
        if self.policy.order == Order::Ends && state.turn.is_none() && claims {
            state.turn = Some(index);
        }
        state.turn == Some(index)
    }

    fn put(&self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        let written = outputs.as_mut().map_or(Ok(()), |outputs| outputs.write(bytes));
        drop(outputs);
        written.map_err(|error| {
            self.break_off(&mut self.lock(), error);
            Error::new(ErrorKind::Cancelled)
        })
    }

    /// A copy failed to process this block.
    fn failed(&self, state: &mut State, index: u64, error: Error) {
        match error.kind() {
            ErrorKind::Cancelled => return,
            ErrorKind::CommandFailed | ErrorKind::CommandStatusUnknown => {}
            // Not the copy's fault.
            _ => return self.break_off(state, error),
        }
        state.report.failed += 1;
        let goes_on = self.goes_on();
        if goes_on {
            message::fail(&error);
        }
        if state.failure.as_ref().is_none_or(|(first, _)| index < *first) {
            state.failure = Some((index, error));
        }
        if goes_on {
            return;
        }
        if self.policy.order == Order::Ends {
            return self.break_off(state, Error::new(ErrorKind::Cancelled));
        }
        let last = state.last.map_or(index, |last| last.min(index));
        state.last = Some(last);
        state.queue.clear();
        state.active.iter().filter(|(index, _)| *index > last).for_each(|(_, token)| token.cancel());
        self.input.cancel();
        self.changed.notify_all();
    }

    /// Has `token` triggered when nothing is wanted any more.
    pub(super) fn watch(&self, token: &CancelToken) {
        let mut state = self.lock();
        match state.is_over {
            true => token.cancel(),
            false => state.active.push((u64::MAX, token.clone())),
        }
    }

    /// An error if nothing is wanted any more.
    pub(super) fn check(&self) -> Result<()> {
        if self.lock().is_over { Err(Error::new(ErrorKind::Cancelled)) } else { Ok(()) }
    }

    /// A block has gone to a copy that is kept alive.
    pub(super) fn count_block(&self) {
        self.lock().report.blocks += 1;
    }

    /// Writes a piece of the output of such a copy.
    pub(super) fn write_piece(&self, piece: &[u8]) -> Result<()> {
        self.check()?;
        self.lock().report.output_bytes += piece.len() as u64;
        self.put(piece)
    }

    /// Such a copy has ended; `last` is the block that it was given last.
    pub(super) fn left(&self, last: Option<&Block>, result: Result<()>) {
        let Err(error) = result else { return };
        let error = match last {
            Some(block) => block.locate("a copy whose last was ", error),
            None => error,
        };
        self.failed(&mut self.lock(), last.map_or(0, |block| block.index), error);
    }

    /// Whether the others continue if a copy fails.
    pub(super) fn goes_on(&self) -> bool {
        self.policy.on_error == OnError::Skip
    }

    /// Ends everything for this reason.
    fn break_off(&self, state: &mut State, error: Error) {
        if error.kind() != ErrorKind::Cancelled {
            state.fatal.get_or_insert(error);
        }
        state.is_over = true;
        state.queue.clear();
        state.active.iter().for_each(|(_, token)| token.cancel());
        self.input.cancel();
        self.changed.notify_all();
    }

    /// Ends everything, because a caller requested it.
    pub(super) fn cancel(&self) {
        let mut state = self.lock();
        state.is_cancelled = true;
        self.break_off(&mut state, Error::new(ErrorKind::Cancelled));
    }

    /// Takes the outputs back, after the last copy has ended.
    pub(super) fn ended(&self) -> Ended {
        let mut state = self.lock();
        if self.policy.order == Order::Ends && state.failure.is_some() && state.fatal.is_none() {
            let parked = std::mem::take(&mut state.parked);
            drop(state);
            // If it fails, that is the reason to report.
            let _ = parked.values().try_for_each(|output| self.put(output));
            state = self.lock();
        }
        let outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ended {
            outputs: outputs.expect("the outputs are taken back once"),
            report: state.report,
            fatal: state.fatal.take(),
            failure: state.failure.take().map(|(_, error)| error),
            is_cancelled: state.is_cancelled,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}
