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
//! A block changes hands whole, so that no memory is ever shared and none of this needs `unsafe`. What has been
//! read can be taken at once: the filler holds a block with data in it only while it reads what is there
//! already. Where its reads may wait, every read gets a block of its own.
//!
//! A sleeper is woken only if there is one; the filler is woken when half of the blocks are free. There are few
//! blocks at first, and more while both sides wait in turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::Error;

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

/// Free bytes in front of a block's data, so that the reader's unread tail can be put there.
pub(crate) const HEADROOM: usize = if cfg!(loom) { 1 } else { 16 << 10 };

/// Memory with data in `bytes[HEADROOM..end]`.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: usize,
}

impl Block {
    fn new(size: usize) -> Block {
        Block { bytes: vec![0; HEADROOM + size], end: HEADROOM }
    }

    fn is_empty(&self) -> bool {
        self.end == HEADROOM
    }

    /// Whether another read into it is worth a system call.
    fn has_room(&self) -> bool {
        self.bytes.len() - self.end >= ((self.bytes.len() - HEADROOM) / 4).max(1)
    }
}

/// What the reader gets.
#[derive(Debug)]
pub(crate) enum Taken {
    /// Data.
    Block(Block),
    /// The filler's wait was cancelled; it waits again after this.
    Cancelled,
    /// The filler has ended: at the end of the bytes, or with an error.
    End(Option<Error>),
}

pub(crate) struct Handover {
    state: Mutex<State>,
    /// The reader sleeps here until there is something to take.
    data: Condvar,
    /// The filler sleeps here until there is a free block.
    room: Condvar,
    block_size: usize,
    /// How many blocks there may be in the end.
    most: usize,
}

struct State {
    full: VecDeque<Block>,
    open: Option<Block>,
    free: Vec<Block>,
    /// How many blocks exist, and how many may exist now.
    blocks: usize,
    may_exist: usize,
    end: Option<Option<Error>>,
    cancelled: bool,
    stop: bool,
    reader_waits: bool,
    filler_waits: bool,
    /// Whether the reader has waited since the number of blocks was last raised.
    reader_waited: bool,
    /// How long the filler has waited for a free block.
    filler_waited: Duration,
}

impl Handover {
    /// Blocks for `start` bytes, and for `most` in the end.
    pub(crate) fn new(block_size: usize, start: usize, most: usize) -> Handover {
        // Two is the least: one to fill while the other is read.
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
            room: Condvar::new(),
            block_size,
            most: (most / block_size).max(may_exist),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs while the lock is held.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wake_reader(&self, state: &State) {
        if state.reader_waits {
            self.data.notify_one();
        }
    }

    fn wake_filler(&self, state: &State) {
        if state.filler_waits {
            self.room.notify_one();
        }
    }

    // The filler's side.

    /// A block to read into: the open one, if `reads_never_wait` and it has room, else a free one. Waits for
    /// one. `None` if the reader has told the filler to stop.
    pub(crate) fn block(&self, reads_never_wait: bool) -> Option<Block> {
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
                // Both sides wait in turn: the bursts are larger than what there is.
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
        state = self.room.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        state.filler_waited += since(start);
        state.filler_waits = false;
        state
    }

    /// Gives a block that was read into, or not, to the reader.
    pub(crate) fn hand_over(&self, block: Block, reads_never_wait: bool) {
        let mut state = self.lock();
        if block.is_empty() {
            state.free.push(block);
        } else if reads_never_wait && block.has_room() {
            state.open = Some(block);
        } else {
            // What is open is older: reads may have begun to wait since, as those of a decoder do.
            let open = state.open.take();
            state.full.extend(open);
            state.full.push_back(block);
        }
        self.wake_reader(&state);
    }

    /// Says that a token has cancelled the filler's wait, and waits until the reader has heard it. Returns
    /// whether to go on.
    pub(crate) fn cancelled(&self) -> bool {
        let mut state = self.lock();
        state.cancelled = true;
        self.wake_reader(&state);
        while state.cancelled && !state.stop {
            state = self.sleep_filler(state);
        }
        !state.stop
    }

    /// Says that the filler has ended.
    pub(crate) fn end(&self, error: Option<Error>) {
        let mut state = self.lock();
        state.end.get_or_insert(error);
        self.wake_reader(&state);
    }

    // The reader's side.

    /// Takes what has been read, the oldest first; waits for it. Returns how long it has waited.
    pub(crate) fn take(&self) -> (Taken, Duration) {
        let mut state = self.lock();
        let mut waited = Duration::ZERO;
        let taken = loop {
            if let Some(block) = state.full.pop_front().or_else(|| state.open.take()) {
                break Taken::Block(block);
            }
            if let Some(error) = state.end.as_mut() {
                break Taken::End(error.take());
            }
            if state.cancelled {
                state.cancelled = false;
                self.wake_filler(&state);
                break Taken::Cancelled;
            }
            state.reader_waits = true;
            state.reader_waited = true;
            if !state.free.is_empty() {
                self.wake_filler(&state);
            }
            let start = now();
            state = self.data.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            waited += since(start);
            state.reader_waits = false;
        };
        (taken, waited)
    }

    /// Whether there is something to take.
    pub(crate) fn has_news(&self) -> bool {
        let state = self.lock();
        !state.full.is_empty() || state.open.is_some() || state.end.is_some() || state.cancelled
    }

    /// Gives back the memory of a block that has been read.
    pub(crate) fn give_back(&self, memory: Vec<u8>) {
        // A buffer that grew for a long record is not kept: sixteen of them would be.
        let block = match memory.len() == HEADROOM + self.block_size {
            true => Block { bytes: memory, end: HEADROOM },
            false => Block::new(self.block_size),
        };
        let mut state = self.lock();
        state.free.push(block);
        if state.free.len() * 2 >= state.blocks {
            self.wake_filler(&state);
        }
    }

    /// Tells the filler to stop.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stop = true;
        self.wake_filler(&state);
    }

    /// How long the filler has waited for free blocks since this was last asked.
    pub(crate) fn filler_waited(&self) -> Duration {
        std::mem::take(&mut self.lock().filler_waited)
    }
}

// Under loom time stands still, as its model needs.
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

    /// A filler that reads `reads` times one byte, and a reader: every byte arrives once, in order, then the end.
    /// From the read number `waits_from` on, reads may wait.
    fn all_arrive(reads: u8, block_size: usize, blocks: usize, waits_from: u8) {
        loom::model(move || {
            let handover = Arc::new(Handover::new(block_size, block_size * blocks, block_size * blocks));
            let filler = {
                let handover = handover.clone();
                thread::spawn(move || {
                    for byte in 0..reads {
                        let reads_never_wait = byte < waits_from;
                        let mut block = handover.block(reads_never_wait).expect("nobody stops this filler");
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
                    Taken::Cancelled => unreachable!("nobody cancels"),
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
    fn handover_reports_a_cancelled_wait_and_goes_on() {
        loom::model(|| {
            let handover = Arc::new(Handover::new(1, 2, 2));
            let filler = {
                let handover = handover.clone();
                thread::spawn(move || {
                    if handover.cancelled() {
                        let mut block = handover.block(true).expect("nobody stops this filler");
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
