//! What a command gets as its standard input, followed by the end of the input.
//!
//! Bytes that fit into the pipe are written immediately. A separate thread writes everything else, since the code that
//! started the command reads its output meanwhile. A command that stops reading before the end (EPIPE) needs no more
//! input, like `head`. This is not a failure by itself: the command's status decides. Any other failure is an error,
//! because the command cannot know that its input was cut short.

use std::io::{PipeWriter, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::{CancelToken, Wait};
use crate::os::command::start::block_signals;
use crate::os::pinned::PinnedFile;

/// The size of the pieces that are read from a caller's `Read`, or from a file that cannot be spliced.
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

    /// Writes these bytes of a file.
    pub(super) fn part(file: Arc<PinnedFile>, range: Range<u64>) -> InputStream {
        let write =
            move |pipe: &PipeWriter, stop: &CancelToken| Output::new(pipe, stop)?.write_part(&file, range).map(drop);
        InputStream::interruptible(Vec::new(), write)
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
        let begin = self.written;
        self.write_with(|output| {
            let mut written = (output.written - begin) as usize;
            let state = fill(output.pipe, bytes, &mut written);
            output.written = begin + written as u64;
            state
        })
    }

    /// Writes bytes of a file, which stay in the kernel if it can move them. Returns false if the command needs no more
    /// input.
    fn write_part(&mut self, file: &PinnedFile, mut range: Range<u64>) -> Result<bool> {
        let mut can_splice = true;
        let written = self.write_with(|output| splice(file, output, &mut range, &mut can_splice))?;
        if can_splice || !written { Ok(written) } else { self.copy_part(file, range) }
    }

    /// Writes bytes of a file like [`write_part`](Output::write_part), but reads them.
    fn copy_part(&mut self, file: &PinnedFile, mut range: Range<u64>) -> Result<bool> {
        let mut piece = Vec::new();
        while !range.is_empty() {
            piece.resize((range.end - range.start).min(PIECE as u64) as usize, 0);
            file.read_exact_at(&mut piece, range.start)?;
            if !self.write(&piece)? {
                return Ok(false);
            }
            range.start += piece.len() as u64;
        }
        Ok(true)
    }

    /// Calls `write` each time when the pipe has space, until all is written. Returns false if the command needs no more
    /// input.
    fn write_with(&mut self, mut write: impl FnMut(&mut Output<'p>) -> Result<Pipe>) -> Result<bool> {
        loop {
            let state = write(self);
            let total = self.written;
            let explain =
                |error: Error| error.with_expected("to write all of the command's standard input").with_written(total);
            match state.map_err(explain)? {
                Pipe::Done => return Ok(true),
                Pipe::Closed => return Ok(false),
                Pipe::Full => match self.wait.writable(self.pipe.as_fd()) {
                    Err(error) if error.kind() == ErrorKind::Cancelled => return Ok(false),
                    waited => waited.map_err(explain)?,
                },
            }
        }
    }
}

/// Moves bytes of a file to the pipe until the pipe is full. Clears `can_splice` if the kernel cannot do that for this
/// file.
#[cfg(target_os = "linux")]
fn splice(file: &PinnedFile, output: &mut Output<'_>, range: &mut Range<u64>, can_splice: &mut bool) -> Result<Pipe> {
    use rustix::pipe::SpliceFlags;
    while !range.is_empty() {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        // It advances the offset.
        match rustix::pipe::splice(file.file(), Some(&mut range.start), output.pipe, None, len, SpliceFlags::NONBLOCK) {
            Ok(0) => return Err(file.shrank()),
            Ok(count) => output.written += count as u64,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Pipe::Full),
            Err(Errno::PIPE) => return Ok(Pipe::Closed),
            Err(Errno::INVAL) => {
                *can_splice = false;
                break;
            }
            Err(error) => return Err(Error::from_io(error.into())),
        }
    }
    Ok(Pipe::Done)
}

#[cfg(not(target_os = "linux"))]
fn splice(_: &PinnedFile, _: &mut Output<'_>, _: &mut Range<u64>, can_splice: &mut bool) -> Result<Pipe> {
    *can_splice = false;
    Ok(Pipe::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Pin;
    use crate::{Command, Reader, Stdin};

    /// Returns the file, and what a command reads of it.
    fn pinned(content: &[u8]) -> (tempfile::NamedTempFile, Arc<PinnedFile>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let pinned = PinnedFile::open(file.path(), Pin::Content).unwrap().unwrap();
        (file, Arc::new(pinned))
    }

    fn read(command: &str, file: &Arc<PinnedFile>, range: Range<u64>) -> Result<Vec<u8>> {
        let command = Command::shell(command)?.stdin(Stdin::Part(file.clone(), range));
        let (mut reader, mut all) = (Reader::command(command)?, Vec::new());
        while reader.fill()? > 0 {
            all.extend_from_slice(reader.buffer());
            let len = reader.buffer().len();
            reader.consume(len);
        }
        Ok(all)
    }

    #[test]
    fn parts_of_a_file() {
        let content: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let (_kept, file) = pinned(&content);
        for range in [0..0, 0..1, 4095..4097, 5..2_999_999, 0..3_000_000] {
            let expected = &content[range.start as usize..range.end as usize];
            assert!(read("cat", &file, range.clone()).unwrap() == expected, "{range:?}");
        }
        assert_eq!(read("head -c 3", &file, 0..3_000_000).unwrap(), content[..3]);
        file.check().unwrap();
    }

    #[test]
    fn a_part_that_is_no_longer_there() {
        let (kept, file) = pinned(&[1; 100_000]);
        kept.as_file().set_len(50_000).unwrap();
        let error = read("cat", &file, 40_000..60_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceShrank);
        assert_eq!(file.check().unwrap_err().kind(), ErrorKind::SourceShrank);
    }

    /// As in a file system that cannot splice.
    #[test]
    fn without_splice() {
        let (_kept, file) = pinned(&[7; 200_000]);
        let (reader, pipe) = std::io::pipe().unwrap();
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            let mut reader = reader;
            reader.read_to_end(&mut all).unwrap();
            all
        });
        let stop = CancelToken::new().unwrap();
        let mut output = Output::new(&pipe, &stop).unwrap();
        assert!(output.copy_part(&file, 100..150_100).unwrap());
        drop(pipe);
        assert_eq!(reading.join().unwrap(), [7; 150_000]);
    }
}
