//! Writing: an `AsyncWrite` whose writer is on a thread.

use std::io;
use std::pin::Pin;
use std::sync::mpsc as blocking;
use std::task::{Context, Poll, ready};

use ::tokio::io::AsyncWrite;
use ::tokio::sync::oneshot;

use super::thread_ended;
use crate::error::{Error, Result};
use crate::{CancelToken, Writer, WriterBuilder, WriterEnd};

/// The number of bytes that the task collects while the thread writes.
const CAPACITY: usize = 256 << 10;

/// Writes in a task of tokio. It implements `AsyncWrite`.
///
/// A thread writes the bytes as soon as it is free; while it is busy, the task collects the next ones, at most 256 KiB.
/// `flush` waits until the sink has all bytes. **`shutdown` completes the output** as [`Writer::close`] does, and
/// reports every error; then [`end`](AsyncWriter::end) has the results. Dropping a writer without it gives up like
/// [`Writer::abort`]: a file does not appear.
///
/// ```
/// use millstream::{Error, tokio::AsyncWriter};
/// use tokio::io::AsyncWriteExt;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("out.txt");
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut out = AsyncWriter::new(|writer| writer.path(&path))?;
/// out.write_all(b"one\n").await?;
/// out.shutdown().await?;
/// assert_eq!(out.end().unwrap().bytes, 4);
/// assert_eq!(std::fs::read(&path)?, b"one\n");
/// # Ok::<(), Error>(())
/// # })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "output is complete only after `shutdown`; dropping a writer reports no error"]
pub struct AsyncWriter {
    token: CancelToken,
    name: String,
    jobs: blocking::Sender<Job>,
    /// The result of the job that the thread works on.
    busy: Option<oneshot::Receiver<Result<Done>>>,
    /// The bytes of the next job.
    collected: Vec<u8>,
    /// Memory that the thread has returned.
    spare: Vec<u8>,
    is_flushed: bool,
    /// The error that ended the writer. It is reported again by every call.
    failure: Option<Error>,
    end: Option<WriterEnd>,
}

struct Job {
    work: Work,
    done: oneshot::Sender<Result<Done>>,
}

enum Work {
    Write(Vec<u8>),
    Flush,
    Close,
}

#[derive(Debug)]
enum Done {
    Written(Vec<u8>),
    Flushed,
    Closed(WriterEnd),
}

impl AsyncWriter {
    /// Opens a writer: the function gets a builder, on which it sets options other than
    /// [`cancel`](WriterBuilder::cancel), and names the sink.
    ///
    /// # Errors
    /// Returns the errors of opening the sink. Fails if the operating system has no threads or file descriptors left.
    pub fn new(open: impl FnOnce(WriterBuilder) -> Result<Writer>) -> Result<AsyncWriter> {
        let token = CancelToken::new()?;
        let writer = open(Writer::builder().cancel(&token))?;
        let name = writer.name().to_owned();
        let (jobs, received) = blocking::channel();
        std::thread::Builder::new().name("millstream-tokio".into()).spawn(move || run(writer, &received))?;
        let (collected, spare) = (Vec::new(), Vec::new());
        Ok(AsyncWriter { token, name, jobs, busy: None, collected, spare, is_flushed: true, failure: None, end: None })
    }

    /// Returns the results of writing, after `shutdown` has succeeded.
    pub fn end(&self) -> Option<&WriterEnd> {
        self.end.as_ref()
    }

    /// Waits until the thread has finished its job.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(failure) = &self.failure {
            return Poll::Ready(Err(failure.again()));
        }
        let Some(busy) = &mut self.busy else { return Poll::Ready(Ok(())) };
        let done = ready!(Pin::new(busy).poll(context)).unwrap_or_else(|_| Err(thread_ended(&self.name)));
        self.busy = None;
        match done {
            Ok(Done::Written(memory)) => self.spare = memory,
            Ok(Done::Flushed) => self.is_flushed = true,
            Ok(Done::Closed(end)) => self.end = Some(end),
            Err(error) => {
                self.failure = Some(error.again());
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Gives the thread, which is idle, a job.
    fn start(&mut self, work: Work) {
        let (done, busy) = oneshot::channel();
        // If the thread has ended, `poll_idle` reports that.
        let _ = self.jobs.send(Job { work, done });
        self.busy = Some(busy);
    }

    fn start_to_write(&mut self) {
        let bytes = std::mem::replace(&mut self.collected, std::mem::take(&mut self.spare));
        self.is_flushed = false;
        self.start(Work::Write(bytes));
    }
}

impl AsyncWrite for AsyncWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let writer = self.get_mut();
        let mut is_idle = writer.poll_idle(context)?.is_ready();
        if writer.collected.len() >= CAPACITY {
            if !is_idle {
                return Poll::Pending;
            }
            writer.start_to_write();
            is_idle = false;
        }
        let count = bytes.len().min(CAPACITY - writer.collected.len());
        writer.collected.extend_from_slice(&bytes[..count]);
        if is_idle && count > 0 {
            writer.start_to_write();
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writer = self.get_mut();
        loop {
            ready!(writer.poll_idle(context))?;
            match () {
                () if !writer.collected.is_empty() => writer.start_to_write(),
                () if !writer.is_flushed => writer.start(Work::Flush),
                () => return Poll::Ready(Ok(())),
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writer = self.get_mut();
        loop {
            ready!(writer.poll_idle(context))?;
            match &writer.end {
                Some(_) => return Poll::Ready(Ok(())),
                None if !writer.collected.is_empty() => writer.start_to_write(),
                None => writer.start(Work::Close),
            }
        }
    }
}

impl Drop for AsyncWriter {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

/// The thread's main loop. It ends after closing, after an error, and when the task drops its side.
fn run(mut writer: Writer, jobs: &blocking::Receiver<Job>) {
    for Job { work, done } in jobs {
        let result = match work {
            Work::Write(mut bytes) => writer.write(&bytes).map(|()| {
                bytes.clear();
                Done::Written(bytes)
            }),
            Work::Flush => writer.flush().map(|()| Done::Flushed),
            Work::Close => {
                let _ = done.send(writer.close().map(Done::Closed));
                return;
            }
        };
        let failed = result.is_err();
        if done.send(result).is_err() || failed {
            break;
        }
    }
    writer.abort();
}
