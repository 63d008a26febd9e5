//! The writer for JavaScript. Every call returns immediately, except those for the exit of the process.

use std::cell::Cell;
use std::io::PipeReader;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use millstream::options::WRITER;
use millstream::{CancelToken, Command, Error, Writer, WriterBuilder};
use napi::bindgen_prelude::{BufferSlice, Either4, Function};
use napi_derive::napi;

use crate::command::CommandWords;
use crate::descriptor::duplicate;
use crate::drainer::{Shared, leave_paths};
use crate::error::{End, Failure};
use crate::options::{Options, with_options};
use crate::remote::NativeRemote;
use crate::wake::waking;

/// A sink that is written on a separate thread.
#[napi]
pub struct NativeWriter {
    shared: Arc<Shared>,
    /// Whether the bytes are compressed.
    encodes: bool,
    /// Whether there was a failure before the thread started.
    is_refused: bool,
    /// The other end of a pipe, until a command gets it.
    reading_end: Cell<Option<PipeReader>>,
}

#[napi]
impl NativeWriter {
    /// Writes a file, which the thread opens. After `write`, `is_idle` or `is_gone` returned false, `wake` is called when
    /// there is a change.
    ///
    /// # Errors
    /// Fails if the thread cannot be started. A refused option and a failure to open are reported by the writer.
    #[napi(factory)]
    pub fn path(path: String, options: Options, wake: Function<(), ()>) -> napi::Result<NativeWriter> {
        let mut builder = with_options(WRITER, Writer::builder(), options);
        let checked = builder.check_path(&path);
        let encodes = matches!(checked, Ok(true));
        let open = |builder: WriterBuilder| checked.map(|_| move || unbuffered(builder).path(path));
        start(true, encodes, builder, wake, open).inspect(|writer| writer.shared.remember())
    }

    /// Writes a remote object, which the thread opens.
    ///
    /// # Errors
    /// Fails if the thread cannot be started. A refused URL or option and a failure to open are reported by the writer.
    #[napi(factory)]
    pub fn url(remote: &NativeRemote, options: Options, wake: Function<(), ()>) -> napi::Result<NativeWriter> {
        let remote = remote.core();
        let mut builder = with_options(WRITER, Writer::builder(), options);
        let checked = builder.check_url(&remote);
        let encodes = matches!(checked, Ok(true));
        let open = |builder: WriterBuilder| checked.map(|_| move || unbuffered(builder).url(remote));
        start(true, encodes, builder, wake, open).inspect(|writer| writer.shared.remember())
    }

    /// Writes to a duplicate of a descriptor that the caller owns. It is duplicated here, because the caller may close it
    /// next.
    ///
    /// # Errors
    /// Fails if the thread cannot be started. A refused option or descriptor is reported by the writer.
    #[napi(factory)]
    pub fn fd(fd: RawFd, options: Options, wake: Function<(), ()>) -> napi::Result<NativeWriter> {
        // This is done before other descriptors are opened, because they could get the number of one that was closed by
        // mistake.
        let duplicate = duplicate(fd);
        let encodes = encodes(&options);
        start(false, encodes, with_options(WRITER, Writer::builder(), options), wake, |builder| {
            let writer = unbuffered(builder).duplicate_of(fd, duplicate?)?;
            Ok(move || Ok(writer))
        })
    }

    /// Starts a command and writes to its standard input.
    ///
    /// # Errors
    /// Fails if the thread cannot be started. A refused option or command is reported by the writer.
    #[napi(factory)]
    pub fn command(words: CommandWords, options: Options, wake: Function<(), ()>) -> napi::Result<NativeWriter> {
        let encodes = encodes(&options);
        // The command is started here and not on the thread, so that it gets the current directory and environment.
        start(false, encodes, with_options(WRITER, Writer::builder(), options), wake, |builder| {
            let writer = unbuffered(builder).command(Command::try_from(words)?)?;
            Ok(move || Ok(writer))
        })
    }

    /// Writes to a pipe, which a command gets as its standard input.
    ///
    /// # Errors
    /// Fails if the pipe or the thread cannot be created.
    #[napi(factory)]
    pub fn pipe(wake: Function<(), ()>) -> napi::Result<NativeWriter> {
        let (reading_end, pipe) = std::io::pipe()?;
        start(false, false, Writer::builder(), wake, |builder| {
            let writer = unbuffered(builder).fd(pipe)?;
            Ok(move || Ok(writer))
        })
        .inspect(|writer| writer.reading_end.set(Some(reading_end)))
    }

    /// Whether the bytes are compressed.
    #[napi]
    pub fn encodes(&self) -> bool {
        self.encodes
    }

    /// Whether there was a failure before the thread started.
    #[napi]
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Writes a copy of these bytes. Returns false and copies nothing if there is no space.
    #[napi]
    pub fn write(&self, bytes: BufferSlice) -> bool {
        self.shared.write(&bytes)
    }

    /// Passes all bytes to the system; compressed output can then be decoded up to this point.
    #[napi]
    pub fn flush(&self) {
        self.shared.flush();
    }

    /// Completes the output.
    #[napi]
    pub fn close(&self) {
        self.shared.close();
    }

    /// Ends without completing the output: after the bytes that were written, or now.
    #[napi]
    pub fn stop(&self, now: bool) {
        self.shared.stop(now);
    }

    /// Whether everything that was requested has been done.
    #[napi]
    pub fn is_idle(&self) -> bool {
        self.shared.is_idle()
    }

    /// Whether the sink has been closed.
    #[napi]
    pub fn is_gone(&self) -> bool {
        self.shared.is_gone()
    }

    /// Returns the first failure.
    #[napi]
    pub fn failure(&self) -> Option<Failure> {
        self.shared.failure().as_deref().map(Failure::from)
    }

    /// Returns the number of bytes that the system has accepted, after encoding.
    #[napi]
    pub fn written(&self) -> f64 {
        self.shared.written() as f64
    }

    /// Whether a failure leaves no output.
    #[napi]
    pub fn vanishes(&self) -> bool {
        self.shared.vanishes()
    }

    /// Returns how the command ended, if it has ended.
    #[napi]
    pub fn ends(&self) -> Vec<End> {
        self.shared.ends(|ends| ends.iter().map(End::from).collect())
    }

    /// Writes these bytes and waits, at most this many milliseconds without progress. Returns whether all bytes were
    /// passed to the system.
    #[napi]
    pub fn settle(&self, bytes: BufferSlice, patience: u32) -> bool {
        self.shared.settle(&bytes, Duration::from_millis(patience.into()))
    }
}

impl NativeWriter {
    /// The end of its pipe that a command reads.
    pub fn take_reading_end(&self) -> Option<PipeReader> {
        self.reading_end.take()
    }
}

/// Stops the thread. An environment that ends, such as a worker's, drops all writers.
impl Drop for NativeWriter {
    fn drop(&mut self) {
        self.shared.stop(true);
    }
}

/// Stops all writers to paths and remote objects, because the process exits. Waits for at most this many milliseconds.
#[napi]
pub fn leave_files(patience: u32) {
    leave_paths(Duration::from_millis(patience.into()));
}

/// Whether bytes to anything but a path are compressed: `auto` means `off`.
fn encodes(options: &Options) -> bool {
    matches!(options.get("encode"), Some(Either4::B(word)) if word != "auto" && word != "off")
}

/// JavaScript's writer has the buffer, so each of its blocks is passed on.
fn unbuffered(builder: WriterBuilder) -> WriterBuilder {
    builder.capacity(1)
}

/// Starts the thread. `open` runs here, and the function that it returns runs on the thread.
fn start<O>(
    vanishes: bool,
    encodes: bool,
    builder: WriterBuilder,
    wake: Function<(), ()>,
    open: impl FnOnce(WriterBuilder) -> Result<O, Error>,
) -> napi::Result<NativeWriter>
where
    O: FnOnce() -> Result<Writer, Error> + Send + 'static,
{
    let wake = waking(wake)?;
    let token = CancelToken::lazy();
    let (shared, is_refused) = match open(builder.cancel(&token)) {
        Err(error) => (Shared::refused(error, vanishes), true),
        Ok(open) => {
            let shared = Shared::new(token, vanishes, wake);
            let drainer = shared.clone();
            std::thread::Builder::new().name("millstream".to_owned()).spawn(move || {
                if catch_unwind(AssertUnwindSafe(|| drainer.drain(open()))).is_err() {
                    drainer.give_up();
                }
            })?;
            (shared, false)
        }
    };
    Ok(NativeWriter { shared, encodes, is_refused, reading_end: Cell::default() })
}
