//! Bytes that a command gets as its standard input, followed by the end of the input.
//!
//! Bytes that fit into the pipe are written immediately. A separate thread writes the rest, since the code that started
//! the command reads its output meanwhile. A command that stops reading before the end (EPIPE) needs no more input,
//! like `head`. This is not a failure by itself: the command's status decides. Any other failed write is an error,
//! because the command cannot know that its input was cut short.

use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::{CancelToken, Wait};

/// The thread that writes the bytes that did not fit into the pipe. Dropping it closes the pipe, regardless of how much
/// has been written.
#[derive(Debug)]
pub(crate) struct Input {
    stop: CancelToken,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Input {
    /// Starts writing `bytes` to the pipe, which no other code uses. Returns `None` if all of the bytes fit, or if the
    /// pipe has no reader.
    pub(crate) fn start(pipe: PipeWriter, bytes: Arc<Vec<u8>>) -> Result<Option<Input>> {
        let flags = rustix::fs::fcntl_getfl(&pipe).map_err(std::io::Error::from)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).map_err(std::io::Error::from)?;
        let mut feed = Feed { pipe, bytes, written: 0 };
        if feed.fill()? == Pipe::Done {
            return Ok(None);
        }
        let stop = CancelToken::new()?;
        let wait = Wait::new(Some(stop.clone()), None);
        let write = move || loop {
            match wait.writable(feed.pipe.as_fd()) {
                // The command needs no more input.
                Err(error) if error.kind() == ErrorKind::Cancelled => return Ok(()),
                waited => waited.map_err(|error| feed.explain(error))?,
            }
            if feed.fill()? == Pipe::Done {
                return Ok(());
            }
        };
        let thread = std::thread::Builder::new().name("millstream-stdin".into()).spawn(write)?;
        Ok(Some(Input { stop, thread: Some(thread) }))
    }

    /// Returns the error that prevented the command from getting all bytes, unless the command itself caused it. The
    /// command has ended.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.stop()
    }

    fn stop(&mut self) -> Result<()> {
        self.stop.cancel();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            _ => Ok(()), // the thread does not panic
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let _ = self.stop(); // a result is no longer needed
    }
}

/// The bytes to write, and the progress.
struct Feed {
    pipe: PipeWriter,
    bytes: Arc<Vec<u8>>,
    written: usize,
}

/// The state of a pipe after writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    /// The pipe currently accepts no more bytes.
    Full,
    /// The pipe has all of the bytes, or will never accept more.
    Done,
}

impl Feed {
    /// Writes until the pipe is full.
    fn fill(&mut self) -> Result<Pipe> {
        while self.written < self.bytes.len() {
            match rustix::io::write(&self.pipe, &self.bytes[self.written..]) {
                Ok(taken) => self.written += taken,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Pipe::Full),
                Err(Errno::PIPE) => return Ok(Pipe::Done),
                Err(error) => return Err(self.explain(Error::from_io(error.into()))),
            }
        }
        Ok(Pipe::Done)
    }

    fn explain(&self, error: Error) -> Error {
        error.with_expected("to write all of the command's standard input").with_written(self.written as u64)
    }
}
