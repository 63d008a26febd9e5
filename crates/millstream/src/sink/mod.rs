//! Where bytes go: the edge towards the operating system, one file per kind of sink.
//!
//! A [`Sink`] takes bytes and says how many, or fails having taken none. It never takes part of them *and* fails:
//! this one rule is what the writer's promise stands on that nothing accepted is lost.
//!
//! A sink does not collect bytes into larger blocks (the writer's buffer does), and it knows nothing of records.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cancel::{CancelToken, Wait};
use crate::error::Result;
use crate::sink::block::Block;
use crate::writer::WriterEnd;

pub(crate) mod block;
pub(crate) mod call;
pub(crate) mod command;
#[cfg(feature = "compression")]
pub(crate) mod encode;
pub(crate) mod fd;
#[cfg(target_os = "linux")]
mod lend;
pub(crate) mod mapped;
pub(crate) mod memory;
pub(crate) mod path;
pub(crate) mod socket;

/// Takes bytes. Sinks are stacked: encoding and metering are sinks around another one.
pub(crate) trait Sink: Send {
    /// Takes some of `bytes`, at least one unless there is none, and returns how many. On an error it has taken
    /// none of them, and the call may be repeated.
    fn write(&mut self, bytes: &[u8]) -> Result<usize>;

    /// The same for bytes of the writer's block, in which those that were taken must not be written again before
    /// [`renew`](Sink::renew): the sink may have lent them.
    fn write_block(&mut self, block: &Block, range: Range<usize>) -> Result<usize> {
        self.write(&block[range])
    }

    /// All of the block is taken but `rest`: moves that to the front of it, or of another block that may be written.
    fn renew(&mut self, block: &mut Block, rest: Range<usize>) {
        block.copy_within(rest, 0);
    }

    /// Hands everything taken so far to the system.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// There will be no more bytes: hands over what ends the stream, such as the trailer of a compressed one. After an
    /// error the call may be repeated, and what is already done is not done again.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Makes the finished stream count: renames the file, waits for the command. Adds to `end` what it learns. After an
    /// error the call may be repeated.
    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        let _ = end;
        Ok(())
    }
}

/// A sink that was opened, and what the writer's defaults depend on.
pub(crate) struct Opened {
    pub(crate) sink: Box<dyn Sink>,
    /// For messages: a path, a command line, an address.
    pub(crate) name: String,
    pub(crate) medium: Medium,
    pub(crate) on_drop: OnDrop,
}

impl Opened {
    pub(crate) fn new(sink: impl Sink + 'static, name: impl Into<String>, medium: Medium) -> Opened {
        Opened { sink: Box::new(sink), name: name.into(), medium, on_drop: OnDrop::Finish }
    }
}

/// What may end a sink's waits early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) token: Option<CancelToken>,
    /// How long the sink may take nothing.
    pub(crate) stall: Option<Duration>,
}

impl Limits {
    /// The wait that both end.
    pub(crate) fn wait(&self) -> Wait {
        Wait::new(self.token.clone(), self.stall)
    }

    /// The wait that only the token ends, for what may take long without being stuck.
    pub(crate) fn patient(&self) -> Wait {
        Wait::new(self.token.clone(), None)
    }
}

/// What kind of thing takes the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A regular file, or a disk.
    File,
    /// A socket, a device, memory, code of the caller.
    Plain,
    /// A pipe: larger writes mean fewer wake-ups of its reader.
    Pipe,
    /// A person reads along.
    Terminal,
}

/// What dropping the writer does with bytes that are still in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// Writes them and ends the stream.
    Finish,
    /// Nothing: the output would not appear anyway.
    Discard,
}

/// What has reached the sink, readable while another thread writes.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    written: AtomicU64,
    waited_ns: AtomicU64,
}

impl Meter {
    /// Bytes that the sink has taken.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// The time spent in the sink.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed))
    }
}

/// Counts what the sink inside takes and how long that lasts, and adds the count to its errors.
pub(crate) struct Metered {
    sink: Box<dyn Sink>,
    meter: Arc<Meter>,
}

impl Metered {
    pub(crate) fn new(sink: Box<dyn Sink>, meter: Arc<Meter>) -> Metered {
        Metered { sink, meter }
    }

    /// Counts what `write` does of at most `len` bytes.
    fn count(&mut self, len: usize, write: impl FnOnce(&mut dyn Sink) -> Result<usize>) -> Result<usize> {
        let start = Instant::now();
        let result = write(&mut *self.sink);
        let waited_ns = start.elapsed().as_nanos() as u64;
        self.meter.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
        match result {
            Ok(taken) => {
                debug_assert!(taken <= len && (taken > 0 || len == 0));
                self.meter.written.fetch_add(taken as u64, Ordering::Relaxed);
                Ok(taken)
            }
            Err(error) => Err(error.with_written(self.meter.written())),
        }
    }
}

impl Sink for Metered {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.count(bytes.len(), |sink| sink.write(bytes))
    }

    fn write_block(&mut self, block: &Block, range: Range<usize>) -> Result<usize> {
        self.count(range.len(), |sink| sink.write_block(block, range))
    }

    fn renew(&mut self, block: &mut Block, rest: Range<usize>) {
        self.sink.renew(block, rest);
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.flush()
    }

    fn finish(&mut self) -> Result<()> {
        self.sink.finish()
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.sink.close(end)
    }
}
