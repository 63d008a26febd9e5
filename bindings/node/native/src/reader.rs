//! What JavaScript sees of a reader. Every call returns at once.

use std::cell::RefCell;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use millstream::{CancelToken, Command, Decode, Error, ErrorKind, ReadAhead, Reader, ReaderBuilder};
use napi::Status;
use napi::bindgen_prelude::{BufferSlice, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;

use crate::command::CommandWords;
use crate::error::{End, Failure};
use crate::filler::{BLOCK_BYTES, Block, Next, Shared};

/// What the system says of a number that is no open descriptor; the same on Linux, macOS and the BSDs.
const EBADF: i32 = 9;

/// Calls a function on JavaScript's thread. It does not keep the process alive: who waits does.
type Wake = ThreadsafeFunction<(), (), (), Status, false, true>;

/// A command's standard output, a file or a descriptor, read by a thread of its own.
#[napi]
pub struct NativeReader {
    shared: Arc<Shared>,
    /// The block that comes next, while JavaScript makes room for it.
    front: RefCell<Option<Block>>,
}

#[napi]
impl NativeReader {
    /// Starts a command. `wake` is called when something has come that `front` or `is_gone` had to deny.
    #[napi(factory)]
    pub fn command(words: CommandWords, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        // Here, not on the thread: it starts in the directory and environment of now.
        start(wake, |builder| {
            let reader = builder.command(Command::from(words));
            move || reader
        })
    }

    /// Reads a file. It is opened by the thread.
    #[napi(factory)]
    pub fn path(path: String, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        start(wake, |builder| move || builder.path(path))
    }

    /// Reads a duplicate of a descriptor, which stays the caller's: made here, because the caller may close it next.
    #[napi(factory)]
    pub fn fd(fd: RawFd, wake: Function<(), ()>) -> napi::Result<NativeReader> {
        // Before there are descriptors of ours: they could have the number of one that was closed by mistake.
        let fd = duplicate(fd);
        start(wake, |builder| move || builder.fd(fd?))
    }

    /// How many bytes the next block has: 0 if there is none yet, -1 if there is an outcome.
    #[napi]
    pub fn front(&self) -> i32 {
        let mut front = self.front.borrow_mut();
        if front.is_none() {
            match self.shared.next() {
                Next::Block(block) => *front = Some(block),
                Next::Nothing => return 0,
                Next::Outcome => return -1,
            }
        }
        // In range: a block has at most `BLOCK_BYTES`.
        front.as_ref().map_or(0, |block| block.bytes().len() as i32)
    }

    /// How many lines end in the block that `front` spoke of.
    #[napi]
    pub fn lines(&self) -> u32 {
        self.front.borrow().as_ref().map_or(0, |block| block.line_ends.len() as u32)
    }

    /// Copies that block to the front of the one memory, and where its lines end (a `Uint32Array`) to the front of the
    /// other. False if one is too small, and nothing has happened.
    #[napi]
    pub fn take(&self, mut bytes: BufferSlice, mut line_ends: BufferSlice) -> bool {
        let mut front = self.front.borrow_mut();
        let fits = |block: &mut Block| {
            block.bytes().len() <= bytes.len() && block.line_ends.len() <= line_ends.len() / size_of::<u32>()
        };
        let Some(block) = front.take_if(fits) else { return false };
        bytes[..block.bytes().len()].copy_from_slice(block.bytes());
        for (to, end) in line_ends.chunks_exact_mut(size_of::<u32>()).zip(&block.line_ends) {
            to.copy_from_slice(&end.to_ne_bytes());
        }
        self.shared.give_back(block);
        true
    }

    /// What went wrong, once there is an outcome.
    #[napi]
    pub fn failure(&self) -> Option<Failure> {
        self.shared.outcome(|outcome, _| outcome?.as_ref().err().map(Failure::from))
    }

    /// How the source's commands ended, those that have.
    #[napi]
    pub fn ends(&self) -> Vec<End> {
        self.shared.outcome(|_, ends| ends.iter().map(End::from).collect())
    }

    /// Has the source closed, and its command stopped.
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

/// Who let go of the reader wants nothing any more. An environment that ends, such as a worker's, lets go of all.
impl Drop for NativeReader {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// A descriptor that is ours to close.
fn duplicate(fd: RawFd) -> Result<OwnedFd, Error> {
    let refuse = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
    if fd < 0 {
        return Err(refuse(std::io::Error::from_raw_os_error(EBADF)));
    }
    // SAFETY: it is borrowed for this call only. A number that is no open descriptor makes `dup` fail.
    #[allow(unsafe_code)]
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(refuse)
}

/// Starts the thread. `open` runs here, and what it returns runs there.
fn start<O>(wake: Function<(), ()>, open: impl FnOnce(ReaderBuilder) -> O) -> napi::Result<NativeReader>
where
    O: FnOnce() -> Result<Reader, Error> + Send + 'static,
{
    let wake: Wake = wake.build_threadsafe_function().weak::<true>().build()?;
    let token = CancelToken::new().map_err(|error| napi::Error::from_reason(error.to_string()))?;
    // The thread that reads reads ahead: another one behind it would be one too many. What is compressed is decoded by Node,
    // as without the native part: two decoders would call the same damage by two names.
    let builder = Reader::builder().cancel(&token).decode(Decode::Off).read_ahead(ReadAhead::Off).capacity(BLOCK_BYTES);
    let shared = Shared::new(token);
    let open = open(builder);
    let filler = shared.clone();
    std::thread::Builder::new().name("millstream".to_owned()).spawn(move || {
        // What can go wrong is an environment that has ended, where nobody waits.
        let wake = || {
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        };
        if catch_unwind(AssertUnwindSafe(|| filler.fill(open(), wake))).is_err() {
            filler.give_up(wake);
        }
    })?;
    Ok(NativeReader { shared, front: RefCell::default() })
}
