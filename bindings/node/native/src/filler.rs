//! The thread that reads for a reader of JavaScript's.
//!
//! ```text
//!    core reader ──fill──► [block] [block] … ──try_take──► memory of JavaScript's
//!                 thread    core's hand-over      JavaScript's thread
//! ```
//!
//! A block is the memory that the core reader has read into: it goes on in another one.
//!
//! It promises: bytes arrive in order, and all of them before the outcome; memory is bounded by the hand-over's blocks; a
//! JavaScript thread never waits. Nothing is lost between "there is nothing yet" and the wake-up that follows.
//!
//! A thread of its own, not one of Node's four: a command that is silent for an hour would take one of them away from
//! every file and every look-up of a name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream::handover::{HEADROOM, Handover};
use millstream::{CancelToken, CommandEnd, Error, ErrorKind, Reader};

/// How many bytes a block has at most. With the unread end of a line in front of them, they are no more than the 256 KiB of
/// a batch.
pub const BLOCK_BYTES: usize = 240 << 10;

/// Blocks at first and at most: one that JavaScript takes, one that is filled, two for bursts.
const BLOCKS: (usize, usize) = (2, 4);

/// Up to this many bytes are copied into the last block, so that their number is no limit.
const SMALL: usize = 16 << 10;

/// How the source was closed.
#[derive(Default)]
struct Closing {
    /// How its commands ended.
    ends: Vec<CommandEnd>,
    /// It has been closed, and the thread ends.
    gone: bool,
    /// JavaScript waits for that.
    waits: bool,
}

/// What the thread and JavaScript share.
pub struct Shared {
    pub blocks: Handover,
    closing: Mutex<Closing>,
    token: CancelToken,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Shared {
    /// `wake` is called on the thread when JavaScript waits and something has changed.
    pub fn new(token: CancelToken, wake: impl Fn() + Send + Sync + 'static) -> Arc<Shared> {
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let block = BLOCK_BYTES - HEADROOM;
        let blocks = Handover::new(block, BLOCKS.0 * block, BLOCKS.1 * block).waking({
            let wake = wake.clone();
            move || wake()
        });
        Arc::new(Shared { blocks, closing: Mutex::default(), token, wake })
    }

    /// Has the source closed. Can be repeated.
    pub fn stop(&self) {
        self.blocks.stop();
        self.token.cancel();
    }

    /// How the commands ended so far.
    pub fn ends<T>(&self, look: impl FnOnce(&[CommandEnd]) -> T) -> T {
        look(&self.lock().ends)
    }

    /// Whether the source has been closed. If not, there will be a wake-up.
    pub fn is_gone(&self) -> bool {
        let mut closing = self.lock();
        closing.waits |= !closing.gone;
        closing.gone
    }

    /// The thread's work: reads until the end, an error or `stop`, and closes the source.
    pub fn fill(&self, reader: Result<Reader, Error>) {
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(error) => return self.finish(Some(error)),
        };
        let read = self.read_all(&mut reader);
        let stopped = matches!(&read, Err(error) if error.kind() == ErrorKind::Cancelled);
        if !stopped {
            // Seen at once: closing may have to wait for a command that does not leave.
            self.lock().ends = reader.command_ends().to_vec();
            self.blocks.end(read.err());
        }
        // The outcome of the reading is known, and how stopped commands end is not an error.
        let _ = reader.try_close();
        self.lock().ends = reader.command_ends().to_vec();
        self.finish(None);
    }

    /// In place of what a thread that panicked should have left.
    pub fn give_up(&self) {
        self.finish(Some(Error::new(ErrorKind::Internal).with_found("a thread that panicked")));
    }

    /// The last step. The error is the outcome if there is none yet.
    fn finish(&self, error: Option<Error>) {
        self.blocks.end(error);
        let waits = {
            let mut closing = self.lock();
            closing.gone = true;
            std::mem::take(&mut closing.waits)
        };
        if waits {
            (self.wake)();
        }
    }

    fn read_all(&self, reader: &mut Reader) -> Result<(), Error> {
        while reader.fill()? > 0 {
            while !reader.buffer().is_empty() {
                self.hand_over(reader)?;
            }
        }
        Ok(())
    }

    /// Hands over what the reader has, or some of it; waits for a block.
    fn hand_over(&self, reader: &mut Reader) -> Result<(), Error> {
        let is_small = reader.buffer().len() <= SMALL;
        let Some(mut block) = self.blocks.block(is_small) else {
            return Err(Error::new(ErrorKind::Cancelled));
        };
        if is_small {
            let bytes = reader.buffer();
            let count = bytes.len().min(block.bytes.len() - block.end);
            block.bytes[block.end..block.end + count].copy_from_slice(&bytes[..count]);
            block.end += count;
            reader.consume(count);
        } else {
            let taken = reader.exchange(&mut block.bytes);
            (block.start, block.end) = (taken.start, taken.end);
        }
        self.blocks.hand_over(block, is_small);
        Ok(())
    }

    /// A panic of the thread's leaves a state that is whole: each change is one step.
    fn lock(&self) -> MutexGuard<'_, Closing> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
