//! What a command gets as its standard input, followed by the end of the input.
//!
//! Bytes that fit into the pipe are written immediately. A separate thread writes everything else, since the code that
//! started the command reads its output meanwhile. A command that stops reading before the end (EPIPE) needs no more
//! input, like `head`. This is not a failure by itself: the command's status decides. Any other failure is an error,
//! because the command cannot know that its input was cut short.

use std::io::{PipeWriter, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::{CancelToken, Wait};
use crate::os::command::start::block_signals;

/// The size of the pieces that are read from a caller's `Read`.
const PIECE: usize = 64 << 10;

/// Writes a stream to the pipe; the token stops it.
type WriteInput = Box<dyn FnOnce(&PipeWriter, &CancelToken) -> Result<()> + Send>;

/// A stream that a separate thread writes to a command's standard input: see [`Stdin::read`](super::Stdin::read) and
/// [`Stdin::chunks`](super::Stdin::chunks).
pub struct InputStream {
    write: WriteInput,
    /// The tokens that interrupt the waits of `write`, if all of its waits can be interrupted.
    tokens: Option<Vec<CancelToken>>,
}

impl InputStream {
    /// Writes what `read` delivers, as soon as it arrives. These `tokens`, if given, interrupt all of its waits.
    pub(super) fn read(mut read: impl Read + Send + 'static, tokens: Option<Vec<CancelToken>>) -> InputStream {
        let write = move |pipe: &PipeWriter, stop: &CancelToken| {
            let (mut output, mut piece) = (Output::new(pipe, stop)?, vec![0; PIECE]);
            loop {
                match read.read(&mut piece) {
                    Ok(0) => return Ok(()),
                    Ok(count) if !output.write(&piece[..count])? => return Ok(()),
                    Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return Err(Error::from_io(error)),
                    Ok(_) | Err(_) => {}
                }
            }
        };
        InputStream { write: Box::new(write), tokens }
    }

    /// Writes these pieces, each as soon as the iterator returns it.
    pub(super) fn chunks<C: AsRef<[u8]>>(chunks: impl Iterator<Item = C> + Send + 'static) -> InputStream {
        let write = move |pipe: &PipeWriter, stop: &CancelToken| {
            let mut output = Output::new(pipe, stop)?;
            for chunk in chunks {
                if !output.write(chunk.as_ref())? {
                    break;
                }
            }
            Ok(())
        };
        InputStream { write: Box::new(write), tokens: None }
    }

    /// Calls `write` with the pipe and with a token that is cancelled when the command needs no more input. These
    /// `tokens` interrupt all waits of `write` that the first one does not.
    pub(crate) fn interruptible(
        tokens: Vec<CancelToken>,
        write: impl FnOnce(&PipeWriter, &CancelToken) -> Result<()> + Send + 'static,
    ) -> InputStream {
        InputStream { write: Box::new(write), tokens: Some(tokens) }
    }
}

impl std::fmt::Debug for InputStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputStream").finish_non_exhaustive()
    }
}

/// The thread that writes the input. Dropping it closes the pipe, regardless of how much has been written.
#[derive(Debug)]
pub(crate) struct Input {
    stop: CancelToken,
    tokens: Option<Vec<CancelToken>>,
    thread: Option<JoinHandle<()>>,
    /// The error that kept input from the command. It is stored before the command gets the end of its input.
    failure: Arc<Mutex<Option<Error>>>,
}

impl Input {
    /// Starts writing `bytes` to the pipe, which no other code uses. Returns `None` if all of the bytes fit, or if the
    /// pipe has no reader.
    pub(crate) fn bytes(pipe: PipeWriter, bytes: Arc<Vec<u8>>) -> Result<Option<Input>> {
        let mut written = 0;
        if make_nonblocking(&pipe).and_then(|()| fill(&pipe, &bytes, &mut written))? != Pipe::Full {
            return Ok(None);
        }
        let write = move |pipe: &PipeWriter, stop: &CancelToken| {
            let mut output = Output::new(pipe, stop)?;
            output.written = written as u64;
            output.write(&bytes[written..]).map(drop)
        };
        Input::stream(pipe, InputStream::interruptible(Vec::new(), write)).map(Some)
    }

    /// Starts a thread that writes this stream to the pipe.
    pub(crate) fn stream(pipe: PipeWriter, stream: InputStream) -> Result<Input> {
        let stop = CancelToken::new()?;
        let InputStream { write, tokens } = stream;
        let failure = Arc::new(Mutex::new(None));
        let (stopped, failed) = (stop.clone(), failure.clone());
        let run = move || {
            block_signals();
            // After a panic, the stream is not used again.
            let written = catch_unwind(AssertUnwindSafe(|| write(&pipe, &stopped))).unwrap_or_else(|_| {
                let found = "a panic in the input of a command; its message is on standard error";
                Err(Error::new(ErrorKind::Io).with_found(found))
            });
            // A stream that was stopped is no longer needed.
            if let Err(error) = written
                && !stopped.is_cancelled()
            {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            drop(pipe);
        };
        let thread = std::thread::Builder::new().name("millstream-stdin".into()).spawn(run)?;
        Ok(Input { stop, tokens, thread: Some(thread), failure })
    }

    /// Returns the error that prevented the command from getting all of its input, unless the command itself caused it.
    /// The command has ended.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.stop();
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Stops the thread. If it may be waiting in a caller's code, which cannot be interrupted, it ends when that
    /// returns.
    fn stop(&mut self) {
        self.stop.cancel();
        self.tokens.iter().flatten().for_each(CancelToken::cancel);
        if let (Some(thread), Some(_)) = (self.thread.take(), &self.tokens) {
            let _ = thread.join(); // the thread does not panic
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state of a pipe after writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    /// The pipe currently accepts no more bytes.
    Full,
    /// The pipe has all of the bytes.
    Done,
    /// The pipe will never accept more.
    Closed,
}

fn make_nonblocking(pipe: &PipeWriter) -> Result<()> {
    let flags = rustix::fs::fcntl_getfl(pipe).map_err(std::io::Error::from)?;
    rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK).map_err(std::io::Error::from)?;
    Ok(())
}

/// Writes `bytes` from `written` on until the pipe is full.
fn fill(pipe: &PipeWriter, bytes: &[u8], written: &mut usize) -> Result<Pipe> {
    while *written < bytes.len() {
        match rustix::io::write(pipe, &bytes[*written..]) {
            Ok(taken) => *written += taken,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Pipe::Full),
            Err(Errno::PIPE) => return Ok(Pipe::Closed),
            Err(error) => return Err(Error::from_io(error.into())),
        }
    }
    Ok(Pipe::Done)
}

/// The thread's side of the pipe.
struct Output<'p> {
    pipe: &'p PipeWriter,
    wait: Wait,
    written: u64,
}

impl<'p> Output<'p> {
    fn new(pipe: &'p PipeWriter, stop: &CancelToken) -> Result<Output<'p>> {
        make_nonblocking(pipe)?;
        Ok(Output { pipe, wait: Wait::new(Some(stop.clone()), None), written: 0 })
    }

    /// Writes all of the bytes. Returns false if the command needs no more input.
    fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        let mut written = 0;
        loop {
            let state = fill(self.pipe, bytes, &mut written);
            let total = self.written + written as u64;
            let explain =
                |error: Error| error.with_expected("to write all of the command's standard input").with_written(total);
            match state.map_err(explain)? {
                Pipe::Done => {
                    self.written = total;
                    return Ok(true);
                }
                Pipe::Closed => return Ok(false),
                Pipe::Full => match self.wait.writable(self.pipe.as_fd()) {
                    Err(error) if error.kind() == ErrorKind::Cancelled => return Ok(false),
                    waited => waited.map_err(explain)?,
                },
            }
        }
    }
}
