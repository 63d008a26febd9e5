//! Where bytes come from. The sources that belong to the operating system are in `os`.
//!
//! A [`ByteSource`] delivers bytes, reports whether it succeeded, and can be stopped early. It knows no records and holds
//! no bytes beyond what decoding needs. A [`Source`] is the part of it that a program can define.

#[cfg(feature = "compression")]
pub(crate) mod decode;
pub(crate) mod foreign;
mod options;
pub(crate) mod own;

use crate::os::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{CommandEnd, Result};
use crate::os::cancel::Wait;

pub(crate) use options::DecodeLimit;
pub use options::Pin;
pub use own::Source;

/// A source of bytes, with everything that a reader wants to know about it.
pub(crate) trait ByteSource: Send {
    /// Reads at least one byte into `space`, which is not empty, and returns how many; 0 is the end of the bytes, and
    /// [`finish`](ByteSource::finish) tells whether the source succeeded.
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize>;

    /// After the end of the bytes: whether the source succeeded. Adds how its commands ended to `ends`, also with
    /// the error.
    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        Ok(())
    }

    /// Stops before the end of the bytes: no more are wanted, so whether it succeeded is not asked. Adds how its commands
    /// ended to `ends`.
    fn close(self: Box<Self>, _ends: &mut Vec<CommandEnd>) {}

    /// The same without waiting for anything, and without a result.
    fn abandon(self: Box<Self>) {}

    /// The kind of its reads, as far as it is known by now.
    fn nature(&self) -> Nature;

    /// The file descriptor that polls as readable when a read would not block.
    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The file descriptor for a caller that waits by other means than ours. The read after it may wait a little
    /// anyway, for the rest of an incomplete format header.
    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.ready_fd()
    }

    /// How many bytes of a pipe can be read immediately.
    fn pending(&self) -> usize {
        0
    }

    /// Whether a token ends a read that waits.
    fn is_interruptible(&self) -> bool {
        true
    }
}

/// The kind of reads of a source: it decides on which thread it is read, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Not known before the first bytes.
    #[cfg(feature = "compression")]
    Unknown,
    /// A regular file: reads do not wait for another process.
    File,
    /// A pipe that holds up to this many bytes (0: not known). Reads wait for the other side, and a token ends
    /// the wait.
    Pipe(usize),
    /// A socket, terminal or device. Reads wait for the other side, and a token ends the wait.
    Device,
    /// A caller's `Read`, or a decoder: reads take time, and a token may be unable to end them.
    Foreign,
    /// It must be read on the caller's thread, as a callback must.
    CallerOnly,
}

/// A source that counts what is read from it, before any decoding.
pub(crate) struct Counted<S> {
    source: S,
    count: Arc<AtomicU64>,
}

impl<S: ByteSource> Counted<S> {
    pub(crate) fn new(source: S, count: Arc<AtomicU64>) -> Counted<S> {
        Counted { source, count }
    }
}

impl<S: ByteSource> ByteSource for Counted<S> {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        let count = self.source.read(space, wait)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        self.source.finish(wait, ends)
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) {
        Box::new(self.source).close(ends);
    }

    fn abandon(self: Box<Self>) {
        Box::new(self.source).abandon();
    }

    fn nature(&self) -> Nature {
        self.source.nature()
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.source.ready_fd()
    }

    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.source.waits_for()
    }

    fn pending(&self) -> usize {
        self.source.pending()
    }

    fn is_interruptible(&self) -> bool {
        self.source.is_interruptible()
    }
}
