//! The state that the reading side and the copies share: which copy gets which block, whose output is written, and when
//! the run ends.
//!
//! Memory use is bounded: about one block waits to be taken, and held outputs whose turn has not come are limited by
//! [`Policy::hold`]; at that limit a copy is not read until its turn. No copy waits indefinitely: the copy whose turn
//! it is never waits for space, and its block was taken before all later blocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use millstream::{CancelToken, Error, ErrorKind, Result};

use crate::message;
use crate::run::outputs::Outputs;

use super::block::Block;
use crate::run::each_options::OnError;

/// The cost of an output that waits for its turn, in addition to its bytes: many outputs may be empty.
const PARKED: usize = 4096;

/// The order of outputs, and the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) order: Order,
    pub(super) on_error: OnError,
    /// The maximum number of bytes of output that wait for their turn.
    pub(super) hold: usize,
}

/// The order in which outputs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The order of the blocks.
    Blocks,
    /// The order in which the copies end.
    Ends,
}

/// The state shared by the reading thread and the threads that each manage a copy.
pub(super) struct Control {
    policy: Policy,
    state: Mutex<State>,
    changed: Condvar,
    /// The outputs. The copy whose turn it is writes to them; they are taken back at the end.
    outputs: Mutex<Option<Outputs>>,
    /// Interrupts reads of the sources.
    input: CancelToken,
}

#[derive(Default)]
struct State {
    /// Blocks that have not been taken yet.
    queue: VecDeque<Block>,
    /// Whether there will be no more blocks.
    is_closed: bool,
    /// The blocks in progress, and the tokens that interrupt their processing.
    active: Vec<(u64, CancelToken)>,
    /// If the order is kept, the block whose output is written. Otherwise the block that has exclusive use of the
    /// outputs.
    turn: Option<u64>,
    /// The outputs of copies that have ended before their turn.
    parked: BTreeMap<u64, Vec<u8>>,
    /// The number of bytes of output that wait for their turn.
    held: usize,
    /// Blocks after this one are no longer needed.
    last: Option<u64>,
    /// No more blocks or outputs are needed.
    is_over: bool,
    /// A caller cancelled the run from outside, so the output is incomplete.
    is_cancelled: bool,
    report: Report,
    failure: Option<(u64, Error)>,
    /// The error of an output or of the operating system.
    fatal: Option<Error>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(in crate::run) struct Report {
    /// The number of blocks that copies got.
    pub(in crate::run) blocks: u64,
    /// The number of blocks whose copy has failed.
    pub(in crate::run) failed: u64,
    /// The number of bytes that the copies have written.
    pub(in crate::run) output_bytes: u64,
}

/// The end of a run.
pub(super) struct Ended {
    pub(super) outputs: Outputs,
    pub(super) report: Report,
    /// Why an output could not be written, or a copy could not be started.
    pub(super) fatal: Option<Error>,
    /// The first failure of a copy, in the order of blocks.
    pub(super) failure: Option<Error>,
    /// Whether the run was [cancelled](Control::cancel), which is neither a failure of a copy nor the end.
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
    /// Returns [`ErrorKind::Cancelled`] if no more blocks are needed.
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

    /// Marks that there are no more blocks.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Returns the next block, and the token that is cancelled when the block is no longer needed, or `None` at the
    /// end.
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

    /// Accepts the output of a block's copy. If the block's turn has come, the output is written. Otherwise the output
    /// is appended to the held output; if that exceeds the limit, this waits for the turn.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Cancelled`] if the output is no longer needed.
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

    /// Handles the end of a block's copy. The held part of its output is written when its turn has come, by this thread
    /// or by the thread whose turn it is.
    pub(super) fn end(&self, block: &Block, held: Vec<u8>, result: Result<()>) {
        let index = block.index;
        let mut state = self.lock();
        state.active.retain(|(active, _)| *active != index);
        if let Err(error) = result {
            self.failed(&mut state, index, block.locate("", error));
            if state.is_over && self.policy.order == Order::Ends {
                state.parked.insert(index, held); // is written with the other complete outputs
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

    /// Passes the turn on from this block: complete outputs are written, up to the first incomplete one.
    fn pass_on(&self, index: u64) {
        let mut next = index;
        let mut state = self.lock();
        loop {
            let parked = match self.policy.order {
                Order::Blocks => {
                    next += 1;
                    state.turn = Some(next);
                    // No output is written after a block that failed.
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

    /// Returns whether the output of this block may be written now. If `claims` is set and the order is not kept, the
    /// block gets exclusive use of the outputs.
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

    /// Records that a copy failed to process this block.
    fn failed(&self, state: &mut State, index: u64, error: Error) {
        match error.kind() {
            ErrorKind::Cancelled => return,
            ErrorKind::CommandFailed | ErrorKind::CommandStatusUnknown => {}
            // The copy did not cause this error.
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

    /// Triggers `token` when no more blocks are needed.
    pub(super) fn watch(&self, token: &CancelToken) {
        let mut state = self.lock();
        match state.is_over {
            true => token.cancel(),
            false => state.active.push((u64::MAX, token.clone())),
        }
    }

    /// Returns an error if no more blocks are needed.
    pub(super) fn check(&self) -> Result<()> {
        if self.lock().is_over { Err(Error::new(ErrorKind::Cancelled)) } else { Ok(()) }
    }

    /// Counts a block that a long-lived copy got.
    pub(super) fn count_block(&self) {
        self.lock().report.blocks += 1;
    }

    /// Writes a piece of the output of a long-lived copy.
    pub(super) fn write_piece(&self, piece: &[u8]) -> Result<()> {
        self.check()?;
        self.lock().report.output_bytes += piece.len() as u64;
        self.put(piece)
    }

    /// Handles the end of a long-lived copy; `last` is the last block that it got.
    pub(super) fn left(&self, last: Option<&Block>, result: Result<()>) {
        let Err(error) = result else { return };
        let error = match last {
            Some(block) => block.locate("a copy whose last block was ", error),
            None => error,
        };
        self.failed(&mut self.lock(), last.map_or(0, |block| block.index), error);
    }

    /// Returns whether the other copies continue if one fails.
    pub(super) fn goes_on(&self) -> bool {
        self.policy.on_error == OnError::Skip
    }

    /// Stops the run for this reason.
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

    /// Stops the run, because a caller requested it.
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
            // If this fails, its error is the one to report.
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
