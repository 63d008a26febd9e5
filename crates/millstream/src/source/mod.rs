//! Where bytes come from. The only code, with `sink`, that calls the operating system.
//!
//! A [`Source`] delivers bytes, says whether it succeeded, and can be stopped early. It knows no records and
//! holds no bytes beyond what decoding needs.

pub(crate) mod command;
#[cfg(feature = "compression")]
pub(crate) mod decode;
pub(crate) mod fd;
pub(crate) mod foreign;
pub(crate) mod mapped;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cancel::Wait;
use crate::error::{CommandEnd, Result};

/// A source of bytes.
pub(crate) trait Source: Send {
    /// Reads at least one byte into `space`, which is not empty, and returns how many; 0 is the end of the bytes,
    /// of which [`finish`](Source::finish) says whether it was the right one.
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize>;

    /// After the end of the bytes: whether the source succeeded. Adds how its commands ended to `ends`, also with
    /// the error.
    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        Ok(())
    }

    /// Stops before the end of the bytes. Adds how its commands ended to `ends`; an error is about a command
    /// that had failed before it was stopped.
    fn close(self: Box<Self>, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        Ok(())
    }

    /// What its reads are like, as far as it is known by now.
    fn nature(&self) -> Nature;

    /// The file descriptor that polls as readable when a read would not block.
    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The file descriptor that somebody waits for whose wait is not ours. The read after it may wait a little all the
    /// same, for the rest of what the first bytes have begun.
    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.ready_fd()
    }

    /// How many bytes are there to be read at once, of a pipe.
    fn pending(&self) -> usize {
        0
    }

    /// Whether a token ends a read that waits.
    fn is_interruptible(&self) -> bool {
        true
    }
}

/// What the reads of a source are like: from this follows who reads it, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Not known before the first bytes.
    #[cfg(feature = "compression")]
    Unknown,
    /// A regular file: reads do not wait for anybody.
    File,
    /// A pipe that holds up to this many bytes (0: not known). Reads wait for the other side, and a token ends
    /// the wait.
    Pipe(usize),
    /// A socket, terminal or device. Reads wait for the other side, and a token ends the wait.
    Device,
    /// Somebody's `Read`, or a decoder: reads take time, and a token may be unable to end them.
    Foreign,
    /// It must be read on the caller's thread, as a callback must.
    CallerOnly,
}

/// A source that counts what is read from it, before any decoding.
pub(crate) struct Counted<S> {
    source: S,
    count: Arc<AtomicU64>,
}

impl<S: Source> Counted<S> {
    pub(crate) fn new(source: S, count: Arc<AtomicU64>) -> Counted<S> {
        Counted { source, count }
    }
}

impl<S: Source> Source for Counted<S> {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        let count = self.source.read(space, wait)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        self.source.finish(wait, ends)
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) -> Result<()> {
        Box::new(self.source).close(ends)
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
