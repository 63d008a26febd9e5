//! Where bytes go, one file per kind of sink. The sinks that belong to the operating system are in `os`.
//!
//! A [`Sink`] takes bytes and returns how many, or fails having taken none. It never takes part of them *and* fails:
//! the writer's promise that nothing accepted is lost relies on this rule.
//!
//! A sink does not collect bytes into larger blocks (the writer's buffer does), and it knows nothing of records.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::os::cancel::{CancelToken, Wait};
use crate::sink::block::Block;

#[cfg(feature = "compression")]
pub(crate) mod append;
pub(crate) mod block;
pub(crate) mod call;
#[cfg(feature = "compression")]
pub(crate) mod encode;
pub(crate) mod memory;
mod options;

pub use options::{Durability, Existing, Partial, WriterEnd};

/// Takes bytes. Sinks are stacked: encoding and metering are sinks around another one.
pub(crate) trait Sink: Send {
    /// Takes some of `bytes`, at least one unless there are none, and returns how many. On an error it has taken none
    /// of them, and the call may be repeated.
    fn write(&mut self, bytes: &[u8]) -> Result<usize>;

    /// The same for bytes of the writer's block; those that were taken must not be overwritten before
    /// [`renew`](Sink::renew): the sink may have lent them.
    fn write_block(&mut self, block: &Block, range: Range<usize>) -> Result<usize> {
        self.write(&block[range])
    }

    /// All of the block is taken except `rest`: moves that to the front of it, or of another block that may be written.
    fn renew(&mut self, block: &mut Block, rest: Range<usize>) {
        block.copy_within(rest, 0);
    }

    /// Passes everything taken so far to the system.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// There will be no more bytes: writes what ends the stream, such as the trailer of a compressed one. After an
    /// error the call may be repeated, and completed steps are not repeated.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Completes the finished stream: renames the file, waits for the command. Adds to `end` what it learns. After an
    /// error the call may be repeated.
    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        let _ = end;
        Ok(())
    }

    /// It is given up and will be dropped: ends anything that would wait for the system.
    fn abandon(&mut self) {}
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
        Opened { sink: Box::new(sink), name: name.into(), medium, on_drop: OnDrop::Flush }
    }
}

/// How long the peer of a connection gets to close by default.
const LINGER: Duration = Duration::from_secs(30);

/// What may interrupt a sink's waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) token: Option<CancelToken>,
    /// How long the sink may accept nothing.
    pub(crate) stall: Option<Duration>,
    /// How long a connection's peer may take to close, if that was given.
    pub(crate) linger: Option<Duration>,
    /// Ends the waits of a flushing thread, when the writer is given up.
    pub(crate) halt: Option<CancelToken>,
}

impl Limits {
    /// The wait that all of them interrupt.
    pub(crate) fn wait(&self) -> Wait {
        let wait = Wait::new(self.token.clone(), self.stall);
        self.halt.iter().fold(wait, |wait, halt| wait.and(halt))
    }

    /// How long a connection's peer may take to close.
    pub(crate) fn linger(&self) -> Duration {
        self.linger.or(self.stall).unwrap_or(LINGER)
    }

    /// The wait that only the token interrupts, for operations that may take long without being stuck.
    pub(crate) fn patient(&self) -> Wait {
        Wait::new(self.token.clone(), None)
    }
}

/// The kind of medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A regular file, or a disk.
    File,
    /// A socket, a device, memory, the caller's code.
    Plain,
    /// A pipe: larger writes mean fewer wake-ups of its reader.
    Pipe,
    /// A terminal: a person is reading along.
    Terminal,
}

/// What dropping the writer does with bytes that are still in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// Writes them, and leaves the stream without its end.
    Flush,
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

    fn abandon(&mut self) {
        self.sink.abandon();
    }
}
