//! Sinks of bytes, one file per kind. Sinks that need the operating system are in `os`.
//!
//! A [`Sink`] accepts bytes and returns their number, or fails having accepted none. It never accepts part of them
//! *and* fails: the writer's guarantee that no accepted bytes are lost relies on this rule.
//!
//! A sink does not collect bytes into larger blocks (the writer's buffer does), and it knows nothing about records.

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
pub(crate) mod object;
mod options;

pub use options::{Durability, Existing, Partial, WriterEnd};

/// Accepts bytes. Sinks are stacked: encoding and metering are sinks around another one.
pub(crate) trait Sink: Send {
    /// Accepts some of `bytes`, at least one unless the slice is empty, and returns their number. If this fails, none
    /// of the bytes were accepted, and the call may be repeated.
    fn write(&mut self, bytes: &[u8]) -> Result<usize>;

    /// Accepts bytes of the writer's block like [`write`](Sink::write). The accepted bytes must not be overwritten
    /// before [`renew`](Sink::renew), because the sink may have lent them.
    fn write_block(&mut self, block: &Block, range: Range<usize>) -> Result<usize> {
        self.write(&block[range])
    }

    /// Moves `rest` to the front of the block, or of another block that may be written to. All other bytes of the block
    /// have already been accepted.
    fn renew(&mut self, block: &mut Block, rest: Range<usize>) {
        block.copy_within(rest, 0);
    }

    /// Passes all accepted bytes to the operating system.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Writes the end of the stream, such as the trailer of a compressed stream. No more bytes follow. After an error
    /// the call may be repeated; completed steps are not repeated.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Completes the finished stream: renames the file, or waits for the command. Adds the results to `end`. After an
    /// error the call may be repeated.
    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        let _ = end;
        Ok(())
    }

    /// Prepares for being dropped unfinished: interrupts all calls that wait for the operating system.
    fn abandon(&mut self) {}
}

/// A sink that was opened, and the properties on which the writer's defaults depend.
pub(crate) struct Opened {
    pub(crate) sink: Box<dyn Sink>,
    /// The name that messages show: a path, a command line or an address.
    pub(crate) name: String,
    pub(crate) medium: Medium,
    pub(crate) on_drop: OnDrop,
}

impl Opened {
    pub(crate) fn new(sink: impl Sink + 'static, name: impl Into<String>, medium: Medium) -> Opened {
        Opened { sink: Box::new(sink), name: name.into(), medium, on_drop: OnDrop::Flush }
    }
}

/// The default time that the peer of a connection has to close its side.
const LINGER: Duration = Duration::from_secs(30);

/// The conditions that interrupt a sink's waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) token: Option<CancelToken>,
    /// The time for which the sink may accept no bytes.
    pub(crate) stall: Option<Duration>,
    /// The time that a connection's peer may take to close its side, if it was set.
    pub(crate) linger: Option<Duration>,
    /// Interrupts the waits of a flushing thread when the writer gives up.
    pub(crate) halt: Option<CancelToken>,
}

impl Limits {
    /// Returns a wait that all of these conditions interrupt.
    pub(crate) fn wait(&self) -> Wait {
        let wait = Wait::new(self.token.clone(), self.stall);
        self.halt.iter().fold(wait, |wait, halt| wait.and(halt))
    }

    /// Returns the time that a connection's peer may take to close.
    pub(crate) fn linger(&self) -> Duration {
        self.linger.or(self.stall).unwrap_or(LINGER)
    }

    /// Returns a wait that only the token interrupts, for operations that may legitimately take long.
    pub(crate) fn patient(&self) -> Wait {
        Wait::new(self.token.clone(), None)
    }
}

/// The kind of medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A regular file, or a disk.
    File,
    /// A socket, a device, memory or the caller's code.
    Plain,
    /// A pipe: larger writes mean fewer wake-ups of its reader.
    Pipe,
    /// A terminal: a person reads the output as it appears.
    Terminal,
}

/// What happens to bytes in the buffer when the writer is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// The bytes are written, and the stream gets no end marker.
    Flush,
    /// The bytes are discarded: the output would not appear anyway.
    Discard,
}

/// The number of bytes that have reached the sink, which can be read while another thread writes.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    written: AtomicU64,
    waited_ns: AtomicU64,
}

impl Meter {
    /// Returns the number of bytes that the sink has accepted.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns the time spent in the sink.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed))
    }
}

/// Counts the bytes that the inner sink accepts, measures the time that this takes, and adds the count to the sink's
/// errors.
pub(crate) struct Metered {
    sink: Box<dyn Sink>,
    meter: Arc<Meter>,
}

impl Metered {
    pub(crate) fn new(sink: Box<dyn Sink>, meter: Arc<Meter>) -> Metered {
        Metered { sink, meter }
    }

    /// Counts the bytes, at most `len`, that `write` passes to the sink.
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
