//! The thread that reads, and the blocks between it and JavaScript.
//!
//! ```text
//!    core reader ──fill──► [block] [block] [block] ──take──► memory of JavaScript's
//!                 thread   at most BLOCKS of them    JavaScript's thread
//! ```
//!
//! A block is the memory that the core reader has read into: it goes on in another one. Where nobody reads any more, blocks
//! stay for the next reader, since fresh memory costs more than what is read into it.
//!
//! It promises: bytes arrive in order, and all of them before the outcome; memory is bounded by `BLOCKS` blocks; a
//! JavaScript thread never waits for more than the copying of one block. Nothing is lost between "there is nothing yet" and
//! the wake-up that follows: both are decided under one lock.
//!
//! A thread of its own, not one of Node's four: a command that says nothing for an hour would take one of them away from
//! every file and every look-up of a name.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use millstream::frame::{Framer, Lines};
use millstream::{CancelToken, CommandEnd, Error, ErrorKind, Reader};

/// How many bytes a block has. With the unread end of a line in front of them, they are no more than the 256 KiB of a batch.
pub const BLOCK_BYTES: usize = 240 << 10;

/// How many blocks there are at most: one that JavaScript takes, one that is filled, two for bursts.
const BLOCKS: usize = 4;

/// So few bytes are copied into the last block, so that their number is no limit.
const SMALL: usize = 16 << 10;

/// Bytes, and where the lines in them end.
#[derive(Default)]
pub struct Block {
    memory: Vec<u8>,
    filled: Range<usize>,
    /// Behind each line feed, from the first byte.
    pub line_ends: Vec<u32>,
}

impl Block {
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.filled.clone()]
    }

    fn room(&self) -> usize {
        self.memory.len() - self.filled.end
    }

    /// Takes what the reader has, for what it had itself.
    fn exchange(&mut self, reader: &mut Reader) {
        self.filled = reader.exchange(&mut self.memory);
        self.line_ends.clear();
        self.look(self.filled.start);
    }

    /// Copies bytes, for which there is room.
    fn append(&mut self, bytes: &[u8]) {
        let start = self.filled.end;
        self.filled.end += bytes.len();
        self.memory[start..self.filled.end].copy_from_slice(bytes);
        self.look(start);
    }

    /// Finds the lines that end behind `start` in the memory.
    fn look(&mut self, start: usize) {
        let known = self.line_ends.len();
        let found = Lines::new().batch(&self.memory[start..self.filled.end], false, usize::MAX, &mut self.line_ends);
        debug_assert!(found.is_ok(), "any bytes are lines");
        // In range: a block has at most `BLOCK_BYTES`.
        let before = (start - self.filled.start) as u32;
        if before > 0 {
            self.line_ends[known..].iter_mut().for_each(|end| *end += before);
        }
    }
}

/// Blocks that no reader has.
static SPARE: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// What the filler and JavaScript share.
#[derive(Default)]
struct State {
    full: VecDeque<Block>,
    free: Vec<Block>,
    /// How many blocks there are, in JavaScript's or the filler's hands too.
    blocks: usize,
    /// JavaScript has found nothing and is to be woken.
    waits: bool,
    /// The filler has found no free block.
    filler_waits: bool,
    /// Nobody wants to read on.
    stops: bool,
    /// Behind the last block: the source's end, or how it failed.
    outcome: Option<Result<(), Error>>,
    /// How the source's commands ended.
    ends: Vec<CommandEnd>,
    /// The source has been closed, and the thread ends.
    gone: bool,
}

impl State {
    /// Leaves the blocks to other readers.
    fn leave_blocks(&mut self) {
        let mut spare = spare();
        let room = BLOCKS.saturating_sub(spare.len());
        spare.extend(self.free.drain(..).chain(self.full.drain(..)).take(room));
    }
}

/// What comes next.
pub enum Next {
    /// A block, which is the taker's until it is given back.
    Block(Block),
    /// Nothing yet: there will be a wake-up.
    Nothing,
    /// Nothing any more: there is an outcome.
    Outcome,
}

/// Both sides hold it.
pub struct Shared {
    state: Mutex<State>,
    /// For the filler: a block is free, or it is to stop.
    changed: Condvar,
    token: CancelToken,
}

impl Shared {
    pub fn new(token: CancelToken) -> Arc<Shared> {
        Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), token })
    }

    /// Takes the next block. Never waits.
    pub fn next(&self) -> Next {
        let mut state = self.lock();
        if let Some(block) = state.full.pop_front() {
            return Next::Block(block);
        }
        if state.outcome.is_some() {
            // Now: what holds this one may wait long for JavaScript's collector.
            state.leave_blocks();
            return Next::Outcome;
        }
        state.waits = true;
        Next::Nothing
    }

    /// Gives a block back, to be filled again.
    pub fn give_back(&self, block: Block) {
        let mut state = self.lock();
        state.free.push(block);
        let wakes = std::mem::take(&mut state.filler_waits);
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Has the source closed. Can be repeated.
    pub fn stop(&self) {
        self.lock().stops = true;
        self.token.cancel();
        self.changed.notify_one();
    }

    /// Asks for the outcome, if there is one, and how the commands ended so far.
    pub fn outcome<T>(&self, look: impl FnOnce(Option<&Result<(), Error>>, &[CommandEnd]) -> T) -> T {
        let state = self.lock();
        look(state.outcome.as_ref(), &state.ends)
    }

    /// Whether the source has been closed. If not, there will be a wake-up.
    pub fn is_gone(&self) -> bool {
        let mut state = self.lock();
        state.waits |= !state.gone;
        state.gone
    }

    /// The thread's work: reads until the end, an error or `stop`, and closes the source. `wake` is called when JavaScript
    /// waits and something has changed.
    pub fn fill(&self, reader: Result<Reader, Error>, wake: impl Fn()) {
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(error) => {
                self.update(&wake, |state| {
                    state.outcome = Some(Err(error));
                    state.gone = true;
                });
                return;
            }
        };
        let read = self.read_all(&mut reader, &wake);
        let stopped = matches!(&read, Err(error) if error.kind() == ErrorKind::Cancelled);
        if !stopped {
            // Seen at once: closing may have to wait for a command that does not leave.
            self.update(&wake, |state| {
                state.ends = reader.command_ends().to_vec();
                state.outcome = Some(read);
            });
        }
        let closed = reader.close();
        self.update(&wake, |state| {
            match closed {
                Ok(ends) if state.ends.is_empty() => state.ends = ends,
                // It had failed before it was to stop.
                Err(error) if stopped => {
                    state.ends.extend(error.command().cloned());
                    state.outcome = Some(Err(error));
                }
                _ => {}
            }
            if state.outcome.is_none() {
                state.outcome = Some(Ok(()));
            }
            state.gone = true;
        });
    }

    /// In place of what a filler that panicked should have left behind.
    pub fn give_up(&self, wake: impl Fn()) {
        self.update(&wake, |state| {
            let error = Error::new(ErrorKind::Internal).with_found("a thread that panicked");
            state.outcome.get_or_insert(Err(error));
            state.gone = true;
        });
    }

    fn read_all(&self, reader: &mut Reader, wake: &impl Fn()) -> Result<(), Error> {
        while reader.fill()? > 0 {
            while !reader.buffer().is_empty() {
                self.hand_over(reader, wake)?;
            }
        }
        Ok(())
    }

    /// Puts what the reader has behind the rest, or some of it; waits for room.
    fn hand_over(&self, reader: &mut Reader, wake: &impl Fn()) -> Result<(), Error> {
        let bytes = reader.buffer();
        let mut state = self.lock();
        loop {
            if state.stops {
                return Err(Error::new(ErrorKind::Cancelled));
            }
            let is_last = state.free.is_empty() && state.blocks == BLOCKS;
            let back = state.full.back_mut().filter(|block| block.room() > 0);
            if let Some(block) = back
                && (is_last || bytes.len() <= SMALL.min(block.room()))
            {
                let count = bytes.len().min(block.room());
                block.append(&bytes[..count]);
                drop(state);
                reader.consume(count);
                return Ok(());
            }
            if state.free.is_empty() && state.blocks < BLOCKS {
                state.blocks += 1;
                state.free.push(spare().pop().unwrap_or_default());
            }
            if let Some(mut block) = state.free.pop() {
                drop(state);
                block.exchange(reader);
                self.update(wake, |state| state.full.push_back(block));
                return Ok(());
            }
            state.filler_waits = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn update(&self, wake: &impl Fn(), change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        if std::mem::take(&mut state.waits) {
            drop(state);
            wake();
        }
    }

    /// A panic of the filler's leaves a state that is whole: each change is one step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left behind is whole, as with `Shared::lock`.
fn spare() -> MutexGuard<'static, Vec<Block>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).leave_blocks();
    }
}
