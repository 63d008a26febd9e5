//! The hand-over of blocks between the filler, a thread that reads the source, and the reader.
//!
//! ```text
//!   filler                                                   reader
//!     block()  ── a free block, or the open one ──►
//!     (reads into it, holding no lock)
//!     hand_over(block) ──► open (may grow) ─┐
//!                     └──► full, full, … ───┴──► take()
//!                          free, free, … ◄────── give_back(memory)
//! ```
//!
//! A block is always handed over as a whole, so that no memory is ever shared and this module needs no `unsafe`. Data
//! that has been read can be taken immediately: the filler keeps a block with data only while it reads data that is
//! already available. If its reads may block, every read gets its own block.
//!
//! A side is woken only if it is asleep; the filler is woken when half of the blocks are free. The number of blocks is
//! small at first, and grows if both sides wait in turn.
//!
//! A reader on the thread of an event loop must not sleep. It calls `try_take` instead of `take`. If that finds no
//! data, a function that the reader supplies is called as soon as there is data. The check for data and the
//! registration of the function happen under one lock, so that no wake-up is lost. The Node binding reads in this way.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::Error;

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

/// Free bytes before a block's data, so that the reader's unread tail can be put there.
pub const HEADROOM: usize = if cfg!(loom) { 1 } else { 16 << 10 };

/// A block of memory with data in `bytes[start..end]`.
#[derive(Debug)]
pub struct Block {
    /// The memory.
    pub bytes: Vec<u8>,
    /// The start of the data: `HEADROOM`, unless a filler has replaced the memory.
    pub start: usize,
    /// The end of the data.
    pub end: usize,
}

impl Block {
    fn new(size: usize) -> Block {
        Block::over(vec![0; HEADROOM + size])
    }

    fn over(bytes: Vec<u8>) -> Block {
        Block { bytes, start: HEADROOM, end: HEADROOM }
    }

    /// Returns whether the block has no data.
    pub fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Returns whether another read into the block is worth a system call.
    fn has_space(&self) -> bool {
        self.bytes.len() - self.end >= ((self.bytes.len() - HEADROOM) / 4).max(1)
    }
}

/// The result of taking a block.
#[derive(Debug)]
pub enum Taken {
    /// A block of data.
    Block(Block),
    /// The filler's wait was cancelled; it waits again after this.
    Cancelled,
    /// The filler has ended, at the end of the bytes or with an error.
    End(Option<Error>),
}

/// The state that filler and reader share.
pub struct Handover {
    state: Mutex<State>,
    /// The reader sleeps here until a block can be taken.
    data: Condvar,
    /// The filler sleeps here until there is a free block.
    free_block: Condvar,
    block_size: usize,
    /// The maximum number of blocks.
    most: usize,
    /// Called when a block can be taken, after `try_take` found none.
    wake: Option<Box<dyn Fn() + Send + Sync>>,
}

struct State {
    full: VecDeque<Block>,
    open: Option<Block>,
    free: Vec<Block>,
    /// The number of existing blocks, and the number of blocks that may currently exist.
    blocks: usize,
    may_exist: usize,
    end: Option<Option<Error>>,
    cancelled: bool,
    stop: bool,
    reader_waits: bool,
    filler_waits: bool,
    /// Whether the reader has waited since the number of blocks was last raised.
    reader_waited: bool,
    /// The time that the filler has waited for a free block.
    filler_waited: Duration,
}

impl Handover {
    /// Creates a hand-over with `start` bytes of blocks, and up to `most` bytes later.
    pub fn new(block_size: usize, start: usize, most: usize) -> Handover {
        // Two blocks are the minimum: one is filled while the other one is read.
        let may_exist = (start / block_size).max(2);
        Handover {
            state: Mutex::new(State {
                full: VecDeque::new(),
                open: None,
                free: Vec::new(),
                blocks: 0,
                may_exist,
                end: None,
                cancelled: false,
                stop: false,
                reader_waits: false,
                filler_waits: false,
                reader_waited: false,
                filler_waited: Duration::ZERO,
            }),
            data: Condvar::new(),
            free_block: Condvar::new(),
            block_size,
            most: (most / block_size).max(may_exist),
            wake: None,
        }
    }

    /// Configures the hand-over for a reader that calls `try_take`. `wake` is called on the filler's thread, one time
    /// for each `try_take` that found no block. It must not call the hand-over, and must not panic.
    pub fn waking(self, wake: impl Fn() + Send + Sync + 'static) -> Handover {
        Handover { wake: Some(Box::new(wake)), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs while the lock is held.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wake_reader(&self, state: &mut State) {
        if !state.reader_waits {
            return;
        }
        match &self.wake {
            Some(wake) => {
                state.reader_waits = false;
                wake();
            }
            None => self.data.notify_one(),
        }
    }

    fn wake_filler(&self, state: &State) {
        if state.filler_waits {
            self.free_block.notify_one();
        }
    }

    // Methods for the filler.

    /// Returns a block to read into: the open one, if `reads_never_wait` and it has space, otherwise a free one, for
    /// which it waits. Returns `None` if the reader has asked the filler to stop.
    pub fn block(&self, reads_never_wait: bool) -> Option<Block> {
        let mut state = self.lock();
        loop {
            if state.stop {
                return None;
            }
            if reads_never_wait && let Some(open) = state.open.take() {
                return Some(open);
            }
            if let Some(free) = state.free.pop() {
                return Some(free);
            }
            if state.blocks == state.may_exist && state.reader_waited && state.may_exist < self.most {
                // Both sides wait in turn: the bursts are larger than the available blocks.
                state.may_exist = (state.may_exist * 2).min(self.most);
                state.reader_waited = false;
            }
            if state.blocks < state.may_exist {
                state.blocks += 1;
                drop(state);
                return Some(Block::new(self.block_size));
            }
            state = self.sleep_filler(state);
        }
    }

    fn sleep_filler<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.filler_waits = true;
        let start = now();
        state = self.free_block.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        state.filler_waited += since(start);
        state.filler_waits = false;
        state
    }

    /// Passes a block to the reader, or takes it back if no data was read into it.
    pub fn hand_over(&self, block: Block, reads_never_wait: bool) {
        let mut state = self.lock();
        if block.is_empty() {
            state.free.push(block);
        } else if reads_never_wait && block.has_space() {
            state.open = Some(block);
        } else {
            // The open block is older: its reads may have begun to block since then, as a decoder's do.
            let open = state.open.take();
            state.full.extend(open);
            state.full.push_back(block);
        }
        self.wake_reader(&mut state);
    }

    /// Reports that a token has cancelled the filler's wait, and waits until the reader has received the report.
    /// Returns whether to continue.
    pub fn cancelled(&self) -> bool {
        let mut state = self.lock();
        state.cancelled = true;
        self.wake_reader(&mut state);
        while state.cancelled && !state.stop {
            state = self.sleep_filler(state);
        }
        !state.stop
    }

    /// Reports that the filler has ended.
    pub fn end(&self, error: Option<Error>) {
        let mut state = self.lock();
        state.end.get_or_insert(error);
        self.wake_reader(&mut state);
    }

    // Methods for the reader.

    /// Waits for the oldest block that has been read and takes it. Returns the time that this call has waited.
    pub fn take(&self) -> (Taken, Duration) {
        let mut state = self.lock();
        let mut waited = Duration::ZERO;
        let taken = loop {
            if let Some(taken) = self.next(&mut state) {
                break taken;
            }
            self.reader_wants(&mut state);
            let start = now();
            state = self.data.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            waited += since(start);
            state.reader_waits = false;
        };
        (taken, waited)
    }

    /// Takes the oldest block that has been read, or returns `None` if there is none. In that case, the reader's
    /// function is called as soon as there is one.
    pub fn try_take(&self) -> Option<Taken> {
        let mut state = self.lock();
        let taken = self.next(&mut state);
        match taken {
            Some(_) => state.reader_waits = false,
            None => self.reader_wants(&mut state),
        }
        taken
    }

    fn next(&self, state: &mut State) -> Option<Taken> {
        if let Some(block) = state.full.pop_front().or_else(|| state.open.take()) {
            return Some(Taken::Block(block));
        }
        if let Some(error) = state.end.as_mut() {
            return Some(Taken::End(error.take()));
        }
        if state.cancelled {
            state.cancelled = false;
            self.wake_filler(state);
            return Some(Taken::Cancelled);
        }
        None
    }

    fn reader_wants(&self, state: &mut State) {
        state.reader_waits = true;
        state.reader_waited = true;
        if !state.free.is_empty() {
            self.wake_filler(state);
        }
    }

    /// Returns whether a block can be taken.
    pub fn has_news(&self) -> bool {
        let state = self.lock();
        !state.full.is_empty() || state.open.is_some() || state.end.is_some() || state.cancelled
    }

    /// Returns the memory of a block that has been read, for another use.
    pub fn give_back(&self, memory: Vec<u8>) {
        // A buffer that grew for a long record is not kept, because up to sixteen of them would accumulate.
        let block = match memory.len() == HEADROOM + self.block_size {
            true => Block::over(memory),
            false => Block::new(self.block_size),
        };
        let mut state = self.lock();
        state.free.push(block);
        if state.free.len() * 2 >= state.blocks {
            self.wake_filler(&state);
        }
    }

    /// Asks the filler to stop.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stop = true;
        self.wake_filler(&state);
    }

    /// Returns the time that the filler has waited for free blocks since the last call.
    pub fn filler_waited(&self) -> Duration {
        std::mem::take(&mut self.lock().filler_waited)
    }
}

// Loom's model requires that time does not advance.
fn now() -> Option<Instant> {
    (!cfg!(loom)).then(Instant::now)
}

fn since(start: Option<Instant>) -> Duration {
    start.map_or(Duration::ZERO, |start| start.elapsed())
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Runs a filler that reads one byte `reads` times, and a reader. Every byte arrives once and in order, followed by
    /// the end. Reads may wait from read number `waits_from` on.
    fn all_arrive(reads: u8, block_size: usize, blocks: usize, waits_from: u8) {
        loom::model(move || {
            let handover = Arc::new(Handover::new(block_size, block_size * blocks, block_size * blocks));
            let filler = {
                let handover = handover.clone();
                thread::spawn(move || {
                    for byte in 0..reads {
                        let reads_never_wait = byte < waits_from;
                        let mut block = handover.block(reads_never_wait).expect("no caller stops this filler");
                        block.bytes[block.end] = byte;
                        block.end += 1;
                        handover.hand_over(block, reads_never_wait);
                    }
                    handover.end(None);
                })
            };
            let mut got = Vec::new();
            loop {
                match handover.take().0 {
                    Taken::Block(block) => {
                        got.extend_from_slice(&block.bytes[HEADROOM..block.end]);
                        handover.give_back(block.bytes);
                    }
                    Taken::End(error) => break assert!(error.is_none()),
                    Taken::Cancelled => unreachable!("no caller cancels"),
                }
            }
            assert_eq!(got, (0..reads).collect::<Vec<_>>());
            filler.join().unwrap();
        });
    }

    #[test]
    fn handover_delivers_all_in_order() {
        all_arrive(3, 1, 2, 3);
    }

    #[test]
    fn handover_delivers_all_in_order_from_open_blocks() {
        all_arrive(3, 4, 2, 3);
    }

    #[test]
    fn handover_delivers_all_in_order_when_reads_wait() {
        all_arrive(3, 4, 2, 0);
    }

    #[test]
    fn handover_delivers_all_in_order_when_reads_begin_to_wait() {
        all_arrive(3, 4, 2, 1);
    }

    #[test]
    fn handover_stops_a_filler_wherever_it_is() {
        loom::model(|| {
            let handover = Arc::new(Handover::new(1, 2, 2));
            let filler = {
                let handover = handover.clone();
                thread::spawn(move || {
                    while let Some(mut block) = handover.block(true) {
                        block.end += 1;
                        handover.hand_over(block, true);
                    }
                })
            };
            let _ = handover.take();
            handover.stop();
            filler.join().unwrap();
        });
    }

    #[test]
    fn handover_wakes_a_reader_that_must_not_sleep() {
        loom::model(|| {
            // The state that wakes an event loop: the number of wake-ups, and the thread that waits for the next one.
            let woken = Arc::new((Mutex::new(0), Condvar::new()));
            let handover = Arc::new({
                let woken = woken.clone();
                Handover::new(1, 2, 2).waking(move || {
                    *woken.0.lock().unwrap() += 1;
                    woken.1.notify_one();
                })
            });
            let filler = {
                let handover = handover.clone();
                thread::spawn(move || {
                    for byte in 0..2 {
                        let mut block = handover.block(true).expect("no caller stops this filler");
                        block.bytes[block.end] = byte;
                        block.end += 1;
                        handover.hand_over(block, true);
                    }
                    handover.end(None);
                })
            };
            let mut got = Vec::new();
            loop {
                match handover.try_take() {
                    Some(Taken::Block(block)) => {
                        got.extend_from_slice(&block.bytes[block.start..block.end]);
                        handover.give_back(block.bytes);
                    }
                    Some(Taken::End(error)) => break assert!(error.is_none()),
                    Some(Taken::Cancelled) => unreachable!("no caller cancels"),
                    None => {
                        let mut count = woken.0.lock().unwrap();
                        while *count == 0 {
                            count = woken.1.wait(count).unwrap();
                        }
                        *count -= 1;
                    }
                }
            }
            assert_eq!(got, [0, 1]);
            filler.join().unwrap();
        });
    }

    #[test]
    fn handover_reports_a_cancelled_wait_and_continues() {
        loom::model(|| {
            let handover = Arc::new(Handover::new(1, 2, 2));
            let filler = {
                let handover = handover.clone();
                thread::spawn(move || {
                    if handover.cancelled() {
                        let mut block = handover.block(true).expect("no caller stops this filler");
                        block.end += 1;
                        handover.hand_over(block, true);
                        handover.end(None);
                    }
                })
            };
            assert!(matches!(handover.take().0, Taken::Cancelled));
            assert!(matches!(handover.take().0, Taken::Block(_)));
            assert!(matches!(handover.take().0, Taken::End(None)));
            filler.join().unwrap();
        });
    }
}
