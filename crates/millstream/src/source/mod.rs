//! Sources of bytes. Sources that need the operating system are in `os`.
//!
//! A [`ByteSource`] delivers bytes, reports whether it succeeded, and can be stopped early. It knows nothing about
//! records and holds no bytes beyond those that decoding needs. A [`Source`] is the part of it that a program can
//! define.

#[cfg(feature = "compression")]
pub(crate) mod decode;
pub(crate) mod elements;
pub(crate) mod expected;
pub(crate) mod foreign;
#[cfg(feature = "compression")]
pub(crate) mod gzip_index;
#[cfg(feature = "compression")]
mod input;
pub(crate) mod object;
mod options;
pub(crate) mod own;

/// How a part of a compressed file is decoded.
pub(crate) enum Resume {
    /// From a point of the index of a gzip file.
    #[cfg(all(feature = "compression", feature = "splits"))]
    Seek(gzip_index::Resume),
    /// From a block or frame, past the beginning of another one.
    #[cfg(all(feature = "compression", feature = "splits"))]
    Piece(decode::Goal),
}

use crate::os::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{CommandEnd, Result};
use crate::os::cancel::Wait;

pub(crate) use options::DecodeLimit;
pub use options::{Decode, Pin};
pub use own::Source;

/// A source of bytes, with the properties that a reader needs.
pub(crate) trait ByteSource: Send {
    /// Reads at least one byte into `space`, which is not empty, and returns the number of bytes. 0 means the end of
    /// the bytes; [`finish`](ByteSource::finish) then reports whether the source succeeded.
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize>;

    /// Reports, after the end of the bytes, whether the source succeeded. Adds how the source's commands ended to
    /// `ends`, even if the source failed.
    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        Ok(())
    }

    /// Sends the source's commands their stop signal, because a time limit has ended the stream. It does not wait; the
    /// next call is [`close`](ByteSource::close) or [`abandon`](ByteSource::abandon).
    fn stop(&mut self) {}

    /// Stops before the end of the bytes. No more bytes are needed, so this does not report whether the source
    /// succeeded. Adds how the source's commands ended to `ends`.
    fn close(self: Box<Self>, _ends: &mut Vec<CommandEnd>) {}

    /// Stops like [`close`](ByteSource::close), but without waiting and without a result.
    fn abandon(self: Box<Self>) {}

    /// Returns the kind of the source's reads, as far as it is known.
    fn nature(&self) -> Nature;

    /// Returns the file descriptor that polls as readable when a read would not block.
    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the file descriptor for a caller that waits by other means than this crate's methods. The next read may
    /// still wait briefly, for the rest of an incomplete format header.
    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.ready_fd()
    }

    /// Returns the number of bytes of a pipe that can be read immediately.
    fn pending(&self) -> usize {
        0
    }

    /// Returns whether a token interrupts a blocked read.
    fn is_interruptible(&self) -> bool {
        true
    }
}

/// The kind of a source's reads, which determines on which thread the source is read, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// The kind is unknown before the first bytes.
    #[cfg(feature = "compression")]
    Unknown,
    /// A regular file: reads do not wait for another process.
    File,
    /// A pipe that holds up to this many bytes (0: unknown). Reads wait for the other side, and a token interrupts
    /// them.
    Pipe(usize),
    /// A socket, terminal or device. Reads wait for the other side, and a token interrupts them.
    Device,
    /// A caller's `Read`, or a decoder: reads take time, and a token may be unable to interrupt them.
    Foreign,
    /// The source must be read on the caller's thread, as a callback must.
    CallerOnly,
}

/// A source that counts the bytes read from it, before any decoding. It is not read after the deadline: waiting for it
/// would detect that only if it is slow.
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
        wait.check_deadline()?;
        let count = self.source.read(space, wait)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        self.source.finish(wait, ends)
    }

    fn stop(&mut self) {
        self.source.stop();
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
