//! bgzf blocks, compressed by several threads into memory.
//!
//! noodles-bgzf compresses and orders the blocks. What it lacks is a flush that waits until they are all there;
//! here the blocks that arrive tell how many bytes they hold.

use std::io::{self, Write};
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use noodles_bgzf::io::MultithreadedWriter;
use noodles_bgzf::io::multithreaded_writer::Builder;
use noodles_bgzf::io::writer::CompressionLevel;

/// More threads than this compress faster than anything here produces.
const MAX_WORKERS: usize = 8;

/// A block has its own length, less one, in these two bytes of its header (SAM specification, 4.1).
const BLOCK_SIZE_AT: usize = 16;

/// Compresses into memory; [`collect`](BlockEncoder::collect) takes what is ready.
pub(super) struct BlockEncoder {
    /// `None` once finished.
    writer: Option<MultithreadedWriter<Inlet>>,
    arrived: Arc<Arrivals>,
    /// How many bytes went in.
    taken: u64,
}

#[derive(Default)]
struct Arrivals {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Blocks in order. The last one may still be incomplete.
    bytes: Vec<u8>,
    /// Where in `bytes` the first block starts that is not counted in `decoded_len`.
    counted: usize,
    /// How many bytes the complete blocks hold that have arrived so far.
    decoded_len: u64,
    /// The thread that delivers blocks has ended.
    ended: bool,
}

/// The end of [`Arrivals`] that the delivering thread has.
struct Inlet(Arc<Arrivals>);

impl Write for Inlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        state.bytes.extend_from_slice(bytes);
        if state.count_blocks() {
            self.0.changed.notify_one();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_one();
    }
}

impl Arrivals {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts the blocks that are complete by now; whether there is a new one.
    fn count_blocks(&mut self) -> bool {
        let before = self.counted;
        while let Some(size) = self.bytes[self.counted..].get(BLOCK_SIZE_AT..BLOCK_SIZE_AT + 2) {
            let block_len = usize::from(u16::from_le_bytes([size[0], size[1]])) + 1;
            let end = self.counted + block_len;
            if end > self.bytes.len() {
                break;
            }
            // Its last four bytes are the length of what it holds.
            let decoded: [u8; 4] = self.bytes[end - 4..end].try_into().expect("a slice of four");
            self.decoded_len += u64::from(u32::from_le_bytes(decoded));
            self.counted = end;
        }
        self.counted > before
    }
}

impl BlockEncoder {
    pub(super) fn new(level: u32) -> BlockEncoder {
        let workers = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_WORKERS);
        let level = u8::try_from(level).ok().and_then(CompressionLevel::new).unwrap_or_default();
        let arrived = Arc::new(Arrivals::default());
        let writer = Builder::default()
            .set_compression_level(level)
            .set_worker_count(NonZero::new(workers).unwrap_or(NonZero::<usize>::MIN))
            .build_from_writer(Inlet(arrived.clone()));
        BlockEncoder { writer: Some(writer), arrived, taken: 0 }
    }

    /// Compresses all of `bytes`, later.
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(bytes)?;
        self.taken += bytes.len() as u64;
        Ok(())
    }

    /// Ends the block and waits until all blocks have arrived.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.flush()?;
        let state = self.arrived.lock();
        let state = self
            .arrived
            .changed
            .wait_while(state, |state| state.decoded_len < self.taken && !state.ended)
            .unwrap_or_else(PoisonError::into_inner);
        match state.decoded_len == self.taken {
            true => Ok(()),
            false => Err(io::Error::other("a thread that compresses has ended too early")),
        }
    }

    /// The same, and adds the empty block that ends a bgzf file.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self.writer.take() {
            Some(mut writer) => writer.finish().map(drop),
            None => Ok(()),
        }
    }

    /// Moves the complete blocks to the end of `out`.
    pub(super) fn collect(&mut self, out: &mut Vec<u8>) {
        let mut state = self.arrived.lock();
        let complete = state.counted;
        out.extend(state.bytes.drain(..complete));
        state.counted = 0;
    }
}
