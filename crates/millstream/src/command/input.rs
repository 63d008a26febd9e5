//! Bytes that a command is given as its standard input, and then the end.
//!
//! What fits into the pipe is put there at once; a thread of its own writes the rest, since whoever started the command
//! reads what it writes meanwhile. A command that stops reading before the end has had enough, as `head` has: that is no
//! failure by itself. Whether it has done its work is what its status says.

use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::cancel::{CancelToken, Wait};
use crate::error::Result;

/// The thread that writes what did not fit into the pipe. Dropping it closes the pipe, whatever has been written.
#[derive(Debug)]
pub(crate) struct Input {
    stop: CancelToken,
    thread: Option<JoinHandle<()>>,
}

impl Input {
    /// Begins to write `bytes` to the pipe, which is ours alone. Nothing is left to do if all of them fitted, or if nobody
    /// reads them.
    pub(crate) fn start(pipe: PipeWriter, bytes: Arc<Vec<u8>>) -> Result<Option<Input>> {
        let flags = rustix::fs::fcntl_getfl(&pipe).map_err(std::io::Error::from)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).map_err(std::io::Error::from)?;
        let mut feed = Feed { pipe, bytes, written: 0 };
        if feed.fill() == Pipe::Done {
            return Ok(None);
        }
        let stop = CancelToken::new()?;
        let wait = Wait::new(Some(stop.clone()), None);
        let write = move || while wait.writable(feed.pipe.as_fd()).is_ok() && feed.fill() == Pipe::Full {};
        let thread = std::thread::Builder::new().name("millstream-stdin".into()).spawn(write)?;
        Ok(Some(Input { stop, thread: Some(thread) }))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it does not panic
        }
    }
}

/// What is written, and how far.
struct Feed {
    pipe: PipeWriter,
    bytes: Arc<Vec<u8>>,
    written: usize,
}

/// How a pipe is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    /// It takes nothing more at the moment.
    Full,
    /// It has everything, or will never take more.
    Done,
}

impl Feed {
    /// Writes until the pipe is full.
    fn fill(&mut self) -> Pipe {
        while self.written < self.bytes.len() {
            match rustix::io::write(&self.pipe, &self.bytes[self.written..]) {
                Ok(taken) => self.written += taken,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Pipe::Full,
                Err(_) => return Pipe::Done,
            }
        }
        Pipe::Done
    }
}
