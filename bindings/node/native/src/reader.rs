//! The reader for JavaScript. Every call returns immediately.

use std::cell::RefCell;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use millstream::frame::{Framer, Lines};
use millstream::handover::{Block, Taken};
use millstream::options::READER;
use millstream::splits::Split;
use millstream::{CancelToken, Command, Error, ErrorKind, ReadAhead, Reader, ReaderBuilder, Stdin};
use napi::bindgen_prelude::{BufferSlice, Function};
use napi_derive::napi;

use crate::command::CommandWords;
use crate::descriptor::duplicate;
use crate::error::{End, Failure};
use crate::filler::{BLOCK_BYTES, Shared};
use crate::options::{Options, with_options};
use crate::remote::NativeRemote;
use crate::wake::waking;
use crate::writer::NativeWriter;

/// A block for which JavaScript allocates memory, and the ends of its lines.
struct Front {
    block: Block,
    lines: usize,
}

/// A source that is read on a separate thread.
#[napi]
pub struct NativeReader {
    pub(crate) shared: Arc<Shared>,
    front: RefCell<Option<Front>>,
    /// The offsets after each line feed of the front block.
    line_ends: RefCell<Vec<u32>>,
    /// After the last block, the source's end or its failure.
    outcome: RefCell<Option<Option<Error>>>,
}

#[napi]
impl NativeReader {
    /// Starts commands, each of which reads the output of the previous one, and the first what is written to `input`. After
    /// `front` or `is_gone` had no result, `wake` is called when there is one.
    #[napi(factory)]
    pub fn commands(
        words: Vec<CommandWords>,
        options: Options,
        wake: Function<(), ()>,
        input: Option<&NativeWriter>,
    ) -> napi::Result<NativeReader> {
        let mut input = input.and_then(NativeWriter::take_reading_end);
        // They are started here and not on the thread, so that they get the current directory and environment.
        start(options, wake, |builder| {
            let commands: Result<Vec<_>, Error> = words
                .into_iter()
                .map(|words| {
                    let command = Command::try_from(words)?;
                    Ok(match input.take() {
                        Some(end) => command.stdin(Stdin::Fd(end.into())),
                        None => command,
                    })
                })
                .collect();
            let reader = commands.and_then(|commands| builder.pipeline(commands));
            move || reader
        })
    }

    /// Reads a file, which the thread opens.
    #[napi(factory)]
    pub fn path(path: String, options: Options, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        start(options, wake, |builder| move || builder.path(path))
    }

    /// Reads a remote object, which the thread opens.
    #[napi(factory)]
    pub fn url(remote: &NativeRemote, options: Options, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        let remote = remote.core();
        start(options, wake, |builder| move || builder.url(remote))
    }

    /// Reads one split of a file or object, given as JSON. `remote` replaces the object.
    #[napi(factory)]
    pub fn split(
        json: String,
        remote: Option<&NativeRemote>,
        options: Options,
        wake: Function<(), ()>,
    ) -> napi::Result<NativeReader> {
        let remote = remote.map(NativeRemote::core);
        start(options, wake, |builder| {
            move || {
                let split = Split::from_json(&json)?;
                builder.split(&match remote {
                    Some(remote) => split.with_remote(remote),
                    None => split,
                })
            }
        })
    }

    /// Reads a duplicate of a descriptor that the caller owns. It is duplicated here, because the caller may close it
    /// next.
    #[napi(factory)]
    pub fn fd(fd: RawFd, options: Options, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        // This is done before other descriptors are opened, because they could get the number of one that was closed by
        // mistake.
        let duplicate = duplicate(fd);
        start(options, wake, |builder| move || builder.duplicate_of(fd, duplicate?))
    }

    /// Reads what is written to `input`.
    #[napi(factory)]
    pub fn pipe(input: &NativeWriter, options: Options, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        let end = input.take_reading_end();
        start(options, wake, |builder| {
            move || {
                builder.fd(end.ok_or_else(|| Error::new(ErrorKind::Closed).with_found("a pipe that is read already"))?)
            }
        })
    }

    /// Reads a copy of these bytes.
    #[napi(factory)]
    pub fn memory(bytes: BufferSlice, options: Options, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        let bytes = bytes.to_vec();
        start(options, wake, |builder| move || builder.memory(bytes))
    }

    /// Returns the size of the next block, 0 if there is none yet, or -1 if there is an outcome.
    #[napi]
    pub fn front(&self) -> i32 {
        let mut front = self.front.borrow_mut();
        if front.is_none() && self.outcome.borrow().is_none() {
            match self.shared.blocks.try_take() {
                Some(Taken::Block(block)) => {
                    let mut line_ends = self.line_ends.borrow_mut();
                    line_ends.clear();
                    let bytes = &block.bytes[block.start..block.end];
                    let found = Lines::new().batch(bytes, false, usize::MAX, &mut line_ends);
                    debug_assert!(found.is_ok(), "any bytes are lines");
                    *front = Some(Front { block, lines: line_ends.len() });
                }
                Some(Taken::End(error)) => *self.outcome.borrow_mut() = Some(error),
                // Only a stopped reader is cancelled, and its thread reports no more results.
                Some(Taken::Cancelled) | None => return 0,
            }
        }
        // The size is in range, because a block has at most `BLOCK_BYTES`.
        front.as_ref().map_or(-1, |front| (front.block.end - front.block.start) as i32)
    }

    /// Returns the numbers of the bytes and records before the first one, when the source is open.
    #[napi]
    pub fn origin(&self) -> Option<Vec<f64>> {
        self.shared.origin().map(|origin| vec![origin.bytes as f64, origin.records as f64])
    }

    /// Returns the number of lines that end in the block that `front` described.
    #[napi]
    pub fn lines(&self) -> u32 {
        self.front.borrow().as_ref().map_or(0, |front| front.lines as u32)
    }

    /// Copies that block to the front of one memory, and its line ends (a `Uint32Array`) to the front of the other.
    /// Returns false and copies nothing if one is too small.
    #[napi]
    pub fn take(&self, mut bytes: BufferSlice, mut line_ends: BufferSlice) -> bool {
        let mut front = self.front.borrow_mut();
        let fits = |front: &mut Front| {
            front.block.end - front.block.start <= bytes.len() && front.lines <= line_ends.len() / size_of::<u32>()
        };
        let Some(Front { block, .. }) = front.take_if(fits) else { return false };
        bytes[..block.end - block.start].copy_from_slice(&block.bytes[block.start..block.end]);
        for (to, end) in line_ends.chunks_exact_mut(size_of::<u32>()).zip(&*self.line_ends.borrow()) {
            to.copy_from_slice(&end.to_ne_bytes());
        }
        self.shared.blocks.give_back(block.bytes);
        true
    }

    /// Returns the error, if there is an outcome.
    #[napi]
    pub fn failure(&self) -> Option<Failure> {
        self.outcome.borrow().as_ref()?.as_ref().map(Failure::from)
    }

    /// Returns how the source's commands ended, for those that have ended so far.
    #[napi]
    pub fn ends(&self) -> Vec<End> {
        self.shared.ends(|ends| ends.iter().map(End::from).collect())
    }

    /// Requests that the source is closed and its command stopped.
    #[napi]
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Whether the source has been closed.
    #[napi]
    pub fn is_gone(&self) -> bool {
        self.shared.is_gone()
    }
}

/// Stops the thread. An environment that ends, such as a worker's, drops all readers.
impl Drop for NativeReader {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// Starts the thread. `open` runs here, and the function that it returns runs on the thread.
fn start<O>(
    options: Options,
    wake: Function<(), ()>,
    open: impl FnOnce(ReaderBuilder) -> O,
) -> napi::Result<NativeReader>
where
    O: FnOnce() -> Result<Reader, Error> + Send + 'static,
{
    let token = CancelToken::lazy();
    // The reading thread reads ahead already, so another one is not needed.
    let builder = Reader::builder().cancel(&token).read_ahead(ReadAhead::Off).capacity(BLOCK_BYTES);
    let builder = with_options(READER, builder, options);
    let shared = Shared::new(token, waking(wake)?);
    let open = open(builder);
    let filler = shared.clone();
    std::thread::Builder::new().name("millstream".to_owned()).spawn(move || {
        if catch_unwind(AssertUnwindSafe(|| filler.fill(open()))).is_err() {
            filler.give_up();
        }
    })?;
    Ok(NativeReader { shared, front: RefCell::default(), line_ends: RefCell::default(), outcome: RefCell::default() })
}
