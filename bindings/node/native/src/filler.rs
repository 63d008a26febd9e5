//! The thread that reads for a JavaScript reader.
//!
//! ```text
//!    core reader ──fill──► [block] [block] … ──try_take──► memory of JavaScript's
//!                 thread    core's hand-over      JavaScript's thread
//! ```
//!
//! A block is the memory into which the core reader has read; the reader then continues in another block.
//!
//! Bytes arrive in order, and all of them before the outcome. Memory is bounded by the hand-over's blocks. A JavaScript
//! thread never waits, and no wake-up is lost after a call has found no data.
//!
//! This is a separate thread and not one of Node's four: a command that prints nothing for an hour would block one of
//! them for all files and name lookups.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use millstream::handover::{Block, HEADROOM, Handover, Taken};
use millstream::{CancelToken, CommandEnd, Error, ErrorKind, Position, Reader, SourceVersion};
use millstream_columns::Batches;

/// The maximum size of a block in bytes. With the unread end of a line before them, they do not exceed the 256 KiB of a
/// batch.
pub const BLOCK_BYTES: usize = 240 << 10;

/// The initial and the maximum number of blocks: one that JavaScript takes, one that is filled, two for bursts.
const BLOCKS: (usize, usize) = (2, 4);

/// Pieces up to this size are copied into the last block, so that the number of blocks does not limit them.
const SMALL: usize = 16 << 10;

/// How the source was closed.
#[derive(Default)]
struct Closing {
    /// The source is closed; contains how its commands ended.
    ends: Vec<CommandEnd>,
    /// Whether the source was closed and the thread ends.
    gone: bool,
    /// Whether JavaScript waits for the close.
    waits: bool,
}

/// The state that the thread and JavaScript share.
pub struct Shared {
    pub blocks: Handover,
    closing: Mutex<Closing>,
    token: CancelToken,
    /// The position of the first byte, when the source is open: not 0 for a split.
    origin: OnceLock<Position>,
    /// For reading the source again, or why that is not possible, when the source is open. `None` if it cannot be opened.
    version: OnceLock<Mutex<Option<Result<SourceVersion, Error>>>>,
    /// The thread that takes the blocks instead of JavaScript's.
    taker: Arc<OnceLock<Thread>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Shared {
    /// `wake` is called on the thread when JavaScript waits and the state has changed.
    pub fn new(token: CancelToken, wake: impl Fn() + Send + Sync + 'static) -> Arc<Shared> {
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let taker: Arc<OnceLock<Thread>> = Arc::default();
        let block = BLOCK_BYTES - HEADROOM;
        let blocks = Handover::new(block, BLOCKS.0 * block, BLOCKS.1 * block).waking({
            let (taker, wake) = (taker.clone(), wake.clone());
            move || match taker.get() {
                Some(thread) => thread.unpark(),
                None => wake(),
            }
        });
        let (closing, origin, version) = (Mutex::default(), OnceLock::new(), OnceLock::new());
        Arc::new(Shared { blocks, closing, token, origin, version, taker, wake })
    }

    /// Requests that the source is closed. This can be repeated.
    pub fn stop(&self) {
        self.blocks.stop();
        self.token.cancel();
    }

    /// The position of the first byte, when the source is open.
    pub fn origin(&self) -> Option<Position> {
        self.origin.get().copied()
    }

    /// Waits until the source is open, and takes what is needed to read it again, or why that is not possible. Returns
    /// `None` if it cannot be opened.
    pub fn version(&self) -> Option<Result<SourceVersion, Error>> {
        self.version.wait().lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// How the commands ended so far.
    pub fn ends<T>(&self, look: impl FnOnce(&[CommandEnd]) -> T) -> T {
        look(&self.lock().ends)
    }

    /// Returns whether the source has been closed. If not, a wake-up will follow.
    pub fn is_gone(&self) -> bool {
        let mut closing = self.lock();
        closing.waits |= !closing.gone;
        closing.gone
    }

    /// Returns a function that copies the next bytes, for a reader on this thread, which takes them instead of JavaScript.
    pub fn bytes(self: &Arc<Shared>) -> impl FnMut(&mut [u8]) -> io::Result<usize> + Send + 'static {
        let shared = self.clone();
        shared.taker.get_or_init(thread::current);
        let mut front: Option<Block> = None;
        move |space| {
            loop {
                if let Some(mut block) = front.take() {
                    let count = space.len().min(block.end - block.start);
                    space[..count].copy_from_slice(&block.bytes[block.start..block.start + count]);
                    block.start += count;
                    match block.is_empty() {
                        true => shared.blocks.give_back(block.bytes),
                        false => front = Some(block),
                    }
                    return Ok(count);
                }
                match shared.blocks.try_take() {
                    Some(Taken::Block(block)) => front = Some(block),
                    Some(Taken::End(Some(error))) => return Err(error.into()),
                    Some(Taken::End(None) | Taken::Cancelled) => return Ok(0),
                    None => thread::park(),
                }
            }
        }
    }

    /// The thread's function: reads until the end, an error or `stop`, and closes the source.
    pub fn fill(&self, reader: Result<Reader, Error>) {
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(error) => return self.finish(Some(error)),
        };
        self.origin.get_or_init(|| reader.position());
        self.version.get_or_init(|| Mutex::new(Some(Batches::version(&reader))));
        let read = self.read_all(&mut reader);
        let stopped = matches!(&read, Err(error) if error.kind() == ErrorKind::Cancelled);
        if !stopped {
            // This is visible immediately, because closing may have to wait for a command that does not exit.
            self.lock().ends = reader.command_ends().to_vec();
            self.blocks.end(read.err());
        }
        // The outcome of reading is known, and the status of stopped commands is not an error.
        let _ = reader.try_close();
        self.lock().ends = reader.command_ends().to_vec();
        self.finish(None);
    }

    /// The result if the thread panicked.
    pub fn give_up(&self) {
        self.finish(Some(Error::new(ErrorKind::Internal).with_found("a thread that panicked")));
    }

    /// The last step. The error becomes the outcome if there is none yet.
    fn finish(&self, error: Option<Error>) {
        self.version.get_or_init(Mutex::default);
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

    /// Passes on the reader's data, or a part of it; waits for a block.
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

    /// A panic of the thread leaves a consistent state, because each change is a single step.
    fn lock(&self) -> MutexGuard<'_, Closing> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
