//! Reading: bytes as an `AsyncBufRead`, and records as a `Stream` of batches.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::mpsc as blocking;
use std::task::{Context, Poll, ready};

use ::tokio::io::unix::AsyncFd;
use ::tokio::io::{AsyncBufRead, AsyncRead, Interest, ReadBuf};
use ::tokio::sync::mpsc;
use futures_util::stream::Stream;

use super::thread_ended;
use crate::error::Result;
use crate::frame::{Batch, Framer, Trim};
use crate::os::cancel::is_readable;
use crate::os::{OwnedFd, duplicate};
use crate::{CancelToken, Reader};

/// The number of blocks or batches that a thread is ahead of the task, in addition to the one it works on.
const AHEAD: usize = 2;

/// Reads bytes in a task of tokio. It implements `AsyncBufRead` and `AsyncRead`.
///
/// The end of the stream means that its source succeeded, as for a [`Reader`]; an error is an `io::Error` from which
/// [`Error::from_io`](crate::Error::from_io) extracts the complete error.
///
/// ```
/// use millstream::{Error, Reader, tokio::AsyncReader};
/// use tokio::io::AsyncBufReadExt;
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// let mut lines = AsyncReader::new(Reader::command(["sh", "-c", "echo one; exit 3"])?)?.lines();
/// assert_eq!(lines.next_line().await?.as_deref(), Some("one"));
/// let error = Error::from_io(lines.next_line().await.unwrap_err());
/// assert_eq!(error.kind(), millstream::ErrorKind::CommandFailed);
/// # Ok::<(), Error>(())
/// # })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping a reader stops its commands and reports no error"]
pub struct AsyncReader(Mode);

#[derive(Debug)]
enum Mode {
    /// The reader is read in the task, whenever its descriptor is readable.
    Polled { reader: Box<Reader>, readable: AsyncFd<OwnedFd> },
    /// A thread reads.
    Thread {
        blocks: Pump<(Vec<u8>, Range<usize>)>,
        spare: blocking::Sender<Vec<u8>>,
        block: Vec<u8>,
        left: Range<usize>,
    },
}

impl AsyncReader {
    /// Reads from the current position of the reader on. Call it in the runtime whose tasks read; elsewhere, sockets
    /// get a thread too.
    ///
    /// # Errors
    /// Fails if the operating system has no threads or file descriptors left.
    ///
    /// # Panics
    /// Panics for a socket if tokio's I/O driver is not enabled.
    pub fn new(reader: Reader) -> Result<AsyncReader> {
        if let Some(socket) = reader.socket().filter(|_| ::tokio::runtime::Handle::try_current().is_ok()) {
            // Its replacement is unsafe for types that may close their descriptor early, which `OwnedFd` cannot.
            #[allow(deprecated)]
            let readable = AsyncFd::with_interest(duplicate(socket)?, Interest::READABLE)?;
            return Ok(AsyncReader(Mode::Polled { reader: Box::new(reader), readable }));
        }
        let (spare, returned) = blocking::channel();
        let blocks = Pump::start(reader, move |reader| {
            if reader.buffer().is_empty() && reader.fill()? == 0 {
                return Ok(None);
            }
            let mut memory = returned.try_recv().unwrap_or_default();
            let taken = reader.exchange(&mut memory);
            Ok(Some((memory, taken)))
        })?;
        Ok(AsyncReader(Mode::Thread { blocks, spare, block: Vec::new(), left: 0..0 }))
    }
}

impl AsyncBufRead for AsyncReader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        match &mut self.get_mut().0 {
            Mode::Polled { reader, readable } => {
                while reader.buffer().is_empty() {
                    if reader.socket().is_some_and(|socket| !is_readable(socket)) {
                        ready!(readable.poll_read_ready(context))?.clear_ready();
                        if reader.socket().is_some_and(|socket| !is_readable(socket)) {
                            continue;
                        }
                    }
                    if reader.fill()? == 0 {
                        break;
                    }
                }
                Poll::Ready(Ok(reader.buffer()))
            }
            Mode::Thread { blocks, spare, block, left } => {
                while left.start == left.end {
                    if !block.is_empty() {
                        *left = 0..0;
                        // A thread that has ended does not need the memory.
                        let _ = spare.send(std::mem::take(block));
                    }
                    match ready!(blocks.poll_next(context)) {
                        Some(next) => (*block, *left) = next?,
                        None => break,
                    }
                }
                Poll::Ready(Ok(&block[left.clone()]))
            }
        }
    }

    fn consume(self: Pin<&mut Self>, count: usize) {
        match &mut self.get_mut().0 {
            Mode::Polled { reader, .. } => reader.consume(count),
            Mode::Thread { left, .. } => {
                assert!(count <= left.len(), "consumed {count} bytes of {}", left.len());
                left.start += count;
            }
        }
    }
}

impl AsyncRead for AsyncReader {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let unread = ready!(self.as_mut().poll_fill_buf(context))?;
        let count = unread.len().min(out.remaining());
        out.put_slice(&unread[..count]);
        self.consume(count);
        Poll::Ready(Ok(()))
    }
}

/// Records of one batch, in their own memory.
#[derive(Clone, Debug)]
pub struct OwnedBatch {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    trim: Trim,
    terminated: bool,
    position: (u64, u64),
    of_lines: bool,
}

impl OwnedBatch {
    /// Returns the batch.
    pub fn get(&self) -> Batch<'_> {
        let batch = Batch::new(&self.bytes, &self.offsets, self.trim, self.terminated);
        batch.at(self.position.0, self.position.1).of_lines(self.of_lines)
    }
}

impl From<Batch<'_>> for OwnedBatch {
    fn from(batch: Batch<'_>) -> OwnedBatch {
        OwnedBatch {
            bytes: batch.bytes().to_vec(),
            offsets: batch.offsets().to_vec(),
            trim: batch.trim(),
            terminated: batch.terminated(),
            position: (batch.offset(), batch.first_record()),
            of_lines: batch.first_line().is_some(),
        }
    }
}

/// A `Stream` of the batches of records of a reader, which a thread finds. An error follows all records before it and
/// ends the stream; a reader that has not ended is stopped then.
///
/// ```
/// use futures_util::TryStreamExt;
/// use millstream::{Error, Reader, frame::Lines, tokio::Batches};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut batches = Batches::new(Reader::command(["seq", "100000"])?, Lines::new())?;
/// let mut count = 0;
/// while let Some(batch) = batches.try_next().await? {
///     count += batch.get().len();
/// }
/// assert_eq!(count, 100_000);
/// # Ok::<(), Error>(())
/// # })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct Batches(Pump<OwnedBatch>);

impl Batches {
    /// Finds the records from the current position of the reader on.
    ///
    /// # Errors
    /// Fails if the operating system has no threads or file descriptors left.
    pub fn new(reader: Reader, mut framer: impl Framer + Send + 'static) -> Result<Batches> {
        let next = move |reader: &mut Reader| Ok(reader.next_batch(&mut framer)?.map(OwnedBatch::from));
        Ok(Batches(Pump::start(reader, next)?))
    }
}

impl Stream for Batches {
    type Item = Result<OwnedBatch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<OwnedBatch>>> {
        self.get_mut().0.poll_next(context)
    }
}

/// A thread that reads, and the channel of its results. Dropping it ends the thread, which closes the reader.
#[derive(Debug)]
struct Pump<T> {
    token: CancelToken,
    name: String,
    /// Receives `None` at the end.
    results: mpsc::Receiver<Option<Result<T>>>,
    ended: bool,
}

impl<T: Send + 'static> Pump<T> {
    fn start(
        mut reader: Reader,
        mut next: impl FnMut(&mut Reader) -> Result<Option<T>> + Send + 'static,
    ) -> Result<Pump<T>> {
        let (sender, results) = mpsc::channel(AHEAD);
        let (token, name) = (reader.interrupter()?, reader.name().to_owned());
        let run = move || {
            loop {
                let result = next(&mut reader).transpose();
                let is_last = !matches!(result, Some(Ok(_)));
                // If the receiver has been dropped, the result is no longer needed.
                if sender.blocking_send(result).is_err() || is_last {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("millstream-tokio".into()).spawn(run)?;
        Ok(Pump { token, name, results, ended: false })
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = ready!(self.results.poll_recv(context)).unwrap_or_else(|| Some(Err(thread_ended(&self.name))));
        self.ended = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

impl<T> Drop for Pump<T> {
    fn drop(&mut self) {
        self.token.cancel();
    }
}
