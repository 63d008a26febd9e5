//! The writer: one buffer, and bytes that are either where they belong or accounted for.
//!
//! ```text
//!     taken by the sink        accepted           room
//!   [ ................. | xxxxxxxxxxxxxxxxxxx | ......... ]
//!   0                 start                  end       capacity
//!
//!   always start <= end; no bytes are left of `start` but after a failed write; the rest: `space`
//! ```
//!
//! It promises:
//! - **All or nothing.** A write that fails has accepted none of its bytes; one that succeeds has accepted all.
//! - **Nothing accepted is lost.** What the sink did not take stays in the buffer, and a later call tries again. When
//!   that is not to be, the error says how many bytes the sink took ([`Error::written`]).
//! - **No waiting for company.** When the bytes go out is a choice ([`FlushPolicy`]); a terminal sees whole lines.
//!
//! Room for a small write is one comparison: everything that needs a closer look (no buffer yet, a policy that acts on
//! each write, an error to report) makes that comparison fail and is handled out of line.
//!
//! It does not know what a record is, and it waits for no disk unless asked to ([`Durability`]).

use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::command::Command;
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::put;
use crate::sink::{Meter, OnDrop, Sink};

mod builder;
mod delay;
mod shared;
#[allow(unsafe_code)] // one pointer into memory that the same type owns, and parts that are put there
mod space;

pub use builder::{Durability, Encode, Existing, FlushPolicy, LendPages, Partial, WriterBuilder};
pub use shared::SharedWriter;
use space::Space;

/// Writes bytes to a sink through a buffer.
///
/// ```
/// use millstream::Writer;
///
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("squares.txt");
/// let mut writer = Writer::path(&path)?;
/// for i in 1..=3 {
///     writer.write(format!("{}\n", i * i).as_bytes())?;
/// }
/// assert!(!path.exists()); // it appears whole, when all has gone well
/// let end = writer.close()?;
/// assert_eq!(end.bytes, 6);
/// assert_eq!(std::fs::read(&path).unwrap(), b"1\n4\n9\n");
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// Dropping a writer does its best silently: it writes what is in the buffer and ends a compressed stream, a command
/// gets its end of input and a little time; but a file that is to appear whole does *not* appear. Only
/// [`close`](Self::close) says whether all went well.
///
/// A pipe or connection that nobody reads any more is [`ErrorKind::BrokenPipe`]. That is what Rust programs, Python,
/// Node and Julia get, because they ignore SIGPIPE; a program that leaves SIGPIPE at its default is ended by it when
/// it writes to a closed pipe (not to a closed connection). This library never changes what signals do.
///
/// Other output of the program to the same place, as by `println!`, is not in order with what waits in the buffer:
/// [`flush`](Self::flush) before it.
///
/// It is a [`std::io::Write`] too, so `write!` and every library can use it. Errors travel inside [`io::Error`]s, and
/// [`Error::from_io`] gets them out.
pub struct Writer {
    /// Without memory until the first byte; then of `capacity`, or longer after a long record.
    space: Space,
    start: usize,
    /// Bytes that went from here to the sink; its own count is of bytes after encoding.
    delivered: u64,
    prompt: Prompt,
    capacity: usize,
    on_drop: OnDrop,
    /// An error whose call had to succeed, because its bytes were accepted: for the next call.
    deferred: Option<Error>,
    /// Closing has begun: the stream may have been ended, so that no more bytes can be accepted.
    closing: bool,
    /// `None` once closed.
    sink: Option<Box<dyn Sink>>,
    meter: Arc<Meter>,
    name: String,
}

/// When accepted bytes go to the sink, short of a full buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    /// Not before.
    WhenFull,
    /// At each line end.
    Line,
    /// With each write: the sink collects them.
    AtOnce,
}

/// How a writer ended: what [`Writer::close`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterEnd {
    /// Bytes accepted.
    pub bytes: u64,
    /// Bytes handed to the system, after encoding.
    pub written: u64,
    /// How the command ended, if the sink was one.
    pub commands: Vec<CommandEnd>,
    /// All that was written, if the sink was [`Writer::memory`].
    pub memory: Option<Vec<u8>>,
}

impl Writer {
    /// A writer with options.
    pub fn builder() -> WriterBuilder {
        WriterBuilder::default()
    }

    /// Writes a file, compressed if its name ends in `.gz`, `.bgz`, `.bgzf` or `.zst`.
    ///
    /// A regular or absent path appears whole when the writer is [closed](Self::close): until then the bytes are in a
    /// temporary file beside it, whose name begins with a dot. An existing file's permissions are kept; a symbolic
    /// link is followed. FIFOs and devices are written directly; opening a FIFO waits for its reader. `/dev/stdout`
    /// is [`stdout`](Self::stdout). Where the directory takes no new files, [`Partial::Keep`] writes in place. It is not
    /// synced to its disk, unless [`durability`](WriterBuilder::durability) says so.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`] for a directory, a missing parent directory, no permission: nothing is created then.
    pub fn path(path: impl AsRef<Path>) -> Result<Writer> {
        Writer::builder().path(path)
    }

    /// Writes a regular file through memory that it is mapped into, in steps for which room is reserved beforehand. In
    /// all else it is as [`path`](Self::path), and it has its true length after a close, an error and a drop.
    ///
    /// Measure before you take it: for a file in memory a plain write takes three quarters of the time, because the
    /// system need not clear pages that a write fills.
    ///
    /// Nobody may make the file shorter meanwhile: that ends the process with SIGBUS. And where [`Partial::Keep`] writes
    /// in place, the file is longer than what was written, by zeros, until it has its true length: a
    /// [`flush`](Self::flush) does not see to that, and a process that is killed leaves it so.
    ///
    /// ```
    /// use millstream::Writer;
    /// let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("squares.txt");
    /// let mut writer = Writer::mapped(&path)?;
    /// writer.write(b"1\n4\n9\n")?;
    /// writer.close()?;
    /// assert_eq!(std::fs::read(&path).unwrap(), b"1\n4\n9\n");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`], also for anything that is no regular file. While writing,
    /// [`ErrorKind::Unsupported`] where the file system cannot reserve room: without that a full disk would be a crash.
    pub fn mapped(path: impl AsRef<Path>) -> Result<Writer> {
        Writer::builder().mapped(path)
    }

    /// Writes to standard output: the file descriptor 1 itself, without the lock and the buffer of [`io::Stdout`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the process has no standard output.
    pub fn stdout() -> Result<Writer> {
        Writer::builder().stdout()
    }

    /// Writes to a file descriptor and closes it in the end: a file, pipe, socket, terminal or device. Its mode
    /// (`O_NONBLOCK`) is respected and never changed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system knows nothing of it.
    pub fn fd(fd: impl Into<OwnedFd>) -> Result<Writer> {
        Writer::builder().fd(fd)
    }

    /// The same for a descriptor that stays the caller's, by a duplicate of it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the process has no descriptors left.
    pub fn borrow_fd(fd: impl AsFd) -> Result<Writer> {
        Writer::builder().borrow_fd(fd)
    }

    /// Starts a command and writes to its standard input. [`close`](Self::close) waits for it, and its status
    /// counts.
    ///
    /// ```
    /// use millstream::{ErrorKind, Writer};
    /// let mut writer = Writer::command(["sh", "-c", "cat >/dev/null; exit 3"])?;
    /// writer.write(b"one\n")?;
    /// assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::CommandFailed);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::CommandNotStarted`].
    pub fn command(command: impl Into<Command>) -> Result<Writer> {
        Writer::builder().command(command)
    }

    /// Connects to a TCP address, such as `"localhost:7000"`, and writes to it.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`].
    pub fn tcp(addr: impl ToSocketAddrs + fmt::Display) -> Result<Writer> {
        Writer::builder().tcp(addr)
    }

    /// Connects to a Unix stream socket and writes to it.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`].
    pub fn unix(path: impl AsRef<Path>) -> Result<Writer> {
        Writer::builder().unix(path)
    }

    /// Writes to any [`io::Write`]. It cannot be interrupted while it runs; with [`FlushPolicy::Delay`] it is used
    /// by another thread. [`flush`](Self::flush) flushes it too.
    ///
    /// # Errors
    /// None; a [builder](WriterBuilder)'s options may have some.
    pub fn from_write(inner: impl io::Write + Send + 'static) -> Result<Writer> {
        Writer::builder().from_write(inner)
    }

    /// Calls `function` with bytes, on the thread that uses the writer; it says how many it took, at least one.
    /// After an error it is called again with the same bytes, by the next call that needs it to.
    ///
    /// ```
    /// use millstream::Writer;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let mut writer = Writer::callback(move |bytes: &[u8]| {
    ///     sender.send(bytes.to_vec()).map_err(std::io::Error::other)?;
    ///     Ok(bytes.len())
    /// })?;
    /// writer.write(b"hello")?;
    /// writer.close()?;
    /// assert_eq!(receiver.recv().unwrap(), b"hello");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// None; a [builder](WriterBuilder)'s options may have some.
    pub fn callback(function: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static) -> Result<Writer> {
        Writer::builder().callback(function)
    }

    /// Keeps everything in memory, for [`WriterEnd::memory`].
    ///
    /// # Errors
    /// None; a [builder](WriterBuilder)'s options may have some.
    pub fn memory() -> Result<Writer> {
        Writer::builder().memory()
    }

    /// Keeps nothing: for measuring and counting.
    ///
    /// # Errors
    /// None; a [builder](WriterBuilder)'s options may have some.
    pub fn nowhere() -> Result<Writer> {
        Writer::builder().nowhere()
    }

    fn new(
        sink: Box<dyn Sink>,
        meter: Arc<Meter>,
        name: String,
        capacity: usize,
        prompt: Prompt,
        on_drop: OnDrop,
    ) -> Writer {
        Writer {
            space: Space::new(),
            start: 0,
            delivered: 0,
            prompt,
            capacity,
            on_drop,
            deferred: None,
            closing: false,
            sink: Some(sink),
            meter,
            name,
        }
    }

    /// Writes all of `bytes`. As long as they fit in the buffer's room, that is a copy; as much as the buffer holds
    /// goes to the sink directly.
    ///
    /// # Errors
    /// What the sink ends with; [`ErrorKind::BrokenPipe`] if nobody reads it any more. None of `bytes` was accepted
    /// then: what had been accepted before stays in the buffer, and the call may be repeated. When the sink fails
    /// after part of a large write, the rest is kept, the call succeeds, and the next one reports the error; where there
    /// is no memory for the rest, this call reports that, and the writer is at its end ([`ErrorKind::Closed`]).
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self.space.fast_slot(bytes.len()) {
            Some(slot) => {
                slot.copy(bytes);
                Ok(())
            }
            None => self.write_slowly(bytes),
        }
    }

    /// Writes all of `bytes` if that is a copy into the buffer and nothing more, and says whether it was: this never calls the
    /// sink. If not, nothing has happened, and [`write`](Self::write) is to be called.
    ///
    /// It is for those who give something up while they wait, such as a lock of their language's, and need not where nothing
    /// has to be waited for.
    ///
    /// ```
    /// use millstream::Writer;
    /// let mut writer = Writer::builder().capacity(4).memory()?;
    /// assert!(!writer.write_buffered(b"ab"), "there is no buffer yet");
    /// writer.write(b"ab")?;
    /// assert!(writer.write_buffered(b"cd"));
    /// assert!(!writer.write_buffered(b"e"), "it is full");
    /// assert_eq!(writer.close()?.memory.unwrap(), b"abcd");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[inline]
    pub fn write_buffered(&mut self, bytes: &[u8]) -> bool {
        self.space.fast_slot(bytes.len()).map(|slot| slot.copy(bytes)).is_some()
    }

    #[cold]
    fn write_slowly(&mut self, bytes: &[u8]) -> Result<()> {
        self.report()?;
        if self.prompt == Prompt::AtOnce || bytes.len() > self.space.left() {
            self.drain()?;
            if self.prompt == Prompt::AtOnce || bytes.len() >= self.capacity {
                return self.pass_through(bytes);
            }
        }
        self.grow(self.capacity)?;
        self.space.slot(bytes.len()).copy(bytes);
        self.settle(bytes.len())
    }

    /// Writes one record, made of parts by [`put!`](crate::put!).
    ///
    /// # Errors
    /// As [`write`](Self::write): none of the record was accepted then.
    #[doc(hidden)]
    #[inline(always)] // so that the parts are seen where they are put
    pub fn put_parts(&mut self, parts: &impl put::Parts) -> Result<()> {
        let need = put::need(parts);
        let slot = match self.space.fast_slot(need) {
            Some(slot) => slot,
            None => {
                self.make_space(need)?;
                self.space.slot(need)
            }
        };
        let len = slot.put(parts);
        if self.space.needs_look() { self.settle(len) } else { Ok(()) }
    }

    /// At least `n` bytes of room to fill: what they hold is arbitrary. [`commit`](Self::commit) says how many of them
    /// count. A record longer than the buffer makes it grow.
    ///
    /// ```
    /// use millstream::Writer;
    /// let mut writer = Writer::memory()?;
    /// let room = writer.space(20)?;
    /// room[..5].copy_from_slice(b"hello");
    /// writer.commit(5)?;
    /// assert_eq!(writer.close()?.memory.unwrap(), b"hello");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`write`](Self::write); [`ErrorKind::Io`] with ENOMEM where there is no memory for so much.
    #[inline]
    pub fn space(&mut self, n: usize) -> Result<&mut [u8]> {
        if self.space.fast_slot(n).is_none() {
            self.make_space(n)?;
        }
        Ok(self.space.room())
    }

    #[cold]
    fn make_space(&mut self, n: usize) -> Result<()> {
        self.report()?;
        if n > self.space.left() {
            self.drain()?;
            self.grow(n.max(self.capacity))?;
        }
        Ok(())
    }

    /// Accepts the first `n` bytes of the [`space`](Self::space).
    ///
    /// # Errors
    /// With a policy that flushes at line ends or after a delay, as [`write`](Self::write): the bytes were not
    /// accepted then. None otherwise.
    ///
    /// # Panics
    /// If `n` is more than there was space.
    #[inline]
    pub fn commit(&mut self, n: usize) -> Result<()> {
        self.space.commit(n);
        match self.prompt {
            Prompt::WhenFull => Ok(()),
            Prompt::Line | Prompt::AtOnce => self.settle(n),
        }
    }

    /// Whether what is accepted stays here until the buffer is full. Then nobody notices when [`commit`](Self::commit)
    /// is called once for many records instead of after each.
    ///
    /// ```
    /// use millstream::{FlushPolicy, Writer};
    /// assert!(Writer::memory()?.collects());
    /// assert!(!Writer::builder().flush_policy(FlushPolicy::Line).memory()?.collects());
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn collects(&self) -> bool {
        self.prompt == Prompt::WhenFull
    }

    /// Hands everything accepted so far to the system. A compressed stream can be decoded up to here then.
    ///
    /// # Errors
    /// What the sink ends with. Nothing is lost: the next call tries again.
    pub fn flush(&mut self) -> Result<()> {
        self.report()?;
        self.drain()?;
        self.with_sink(|sink| sink.flush())
    }

    /// Writes what is left, ends the stream, and makes it count: a file takes its name, a command is waited for.
    ///
    /// It can be done once: where something ends it early, such as a token, what was accepted and is not yet with the
    /// sink is lost, and the error says how much is safe. [`try_close`](Self::try_close) can be repeated.
    ///
    /// # Errors
    /// What the sink ends with; [`ErrorKind::CommandFailed`] if the command did not succeed. [`Error::written`] says
    /// how many bytes the sink took; a file that was to appear whole does not appear.
    pub fn close(mut self) -> Result<WriterEnd> {
        let end = self.try_close();
        // Whatever happened: dropping the writer must not try again.
        self.sink = None;
        end
    }

    /// [Closes](Self::close) the writer, and leaves it as it is where that fails: what was accepted waits for the next
    /// call, which goes on where this one stopped. So a close that a token or the time limit has ended loses nothing,
    /// and neither does one that met a full disk.
    ///
    /// From the first call on the writer accepts no more bytes, whether it succeeds or not: [`ErrorKind::Closed`].
    ///
    /// ```
    /// use millstream::{CancelToken, ErrorKind, Writer};
    ///
    /// let token = CancelToken::new()?;
    /// let mut writer = Writer::builder().cancel(&token).command(["cat"])?;
    /// token.cancel();
    /// assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Cancelled);
    /// token.reset();
    /// assert!(writer.try_close()?.commands[0].status.success());
    /// assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`close`](Self::close): a command that has failed has failed for the next call too. [`ErrorKind::Closed`]
    /// after a call that succeeded.
    pub fn try_close(&mut self) -> Result<WriterEnd> {
        self.closing = true;
        self.look_if_needed();
        let end = self.report_deferred().and_then(|()| self.close_sink());
        self.space.give_up_room(); // nor can space of before be committed
        end
    }

    fn close_sink(&mut self) -> Result<WriterEnd> {
        self.drain()?;
        let mut end = WriterEnd::default();
        self.with_sink(|sink| {
            sink.finish()?;
            sink.close(&mut end)
        })?;
        self.sink = None;
        end.bytes = self.accepted();
        end.written = self.written();
        Ok(end)
    }

    /// Bytes accepted so far, those in the buffer included.
    pub fn accepted(&self) -> u64 {
        self.delivered + (self.space.end() - self.start) as u64
    }

    /// Bytes handed to the system so far, after encoding.
    pub fn written(&self) -> u64 {
        self.meter.written()
    }

    /// The time spent in the sink so far.
    pub fn waited(&self) -> Duration {
        self.meter.waited()
    }

    /// What errors call the sink: a path, a command line, an address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes it usable by several threads at the same time.
    pub fn shared(self) -> SharedWriter {
        SharedWriter::new(self)
    }

    /// Gives the sink what `prompt` wants it to have, after `new` bytes came into the buffer. If it fails, they
    /// are not accepted; or, if the sink has taken some of them, all are, and the error is deferred.
    fn settle(&mut self, new: usize) -> Result<()> {
        let to = match self.prompt {
            Prompt::WhenFull => return Ok(()),
            Prompt::AtOnce => self.space.end(),
            Prompt::Line => {
                let before = self.space.end() - new;
                match memchr::memrchr(b'\n', &self.space.filled()[before..]) {
                    Some(newline) => before + newline + 1,
                    None => return Ok(()),
                }
            }
        };
        let delivered = self.deliver(to).and_then(|()| match self.prompt {
            Prompt::Line => self.with_sink(|sink| sink.flush()),
            Prompt::WhenFull | Prompt::AtOnce => Ok(()),
        });
        match delivered {
            Err(error) if self.space.end() - self.start >= new => {
                self.space.take_back(new);
                Err(error)
            }
            Err(error) => {
                self.defer(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Gives the sink everything in the buffer.
    fn drain(&mut self) -> Result<()> {
        self.deliver(self.space.end())
    }

    /// Gives the sink what is in the buffer up to `to`, and moves the rest to the front.
    fn deliver(&mut self, to: usize) -> Result<()> {
        while self.start < to {
            let Some(sink) = &mut self.sink else {
                return Err(self.explain(Error::new(ErrorKind::Closed)));
            };
            let taken = sink.write_block(self.space.block(), self.start..to).map_err(|error| self.explain(error))?;
            self.start += taken;
            self.delivered += taken as u64;
        }
        if let (Some(sink), 1..) = (&mut self.sink, self.start) {
            self.space.renew(self.start, |block, rest| sink.renew(block, rest));
            self.start = 0;
        }
        Ok(())
    }

    /// Gives the sink `bytes` past the empty buffer.
    fn pass_through(&mut self, bytes: &[u8]) -> Result<()> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.with_sink(|sink| sink.write(&bytes[taken..])) {
                Ok(more) => {
                    taken += more;
                    self.delivered += more as u64;
                }
                Err(error) if taken == 0 => return Err(error),
                Err(error) => {
                    // Part of it is out, so all of it is accepted.
                    let rest = &bytes[taken..];
                    if let Err(error) = self.grow(rest.len()) {
                        // But there is no memory for it. What cannot be whole any more goes no further.
                        (self.closing, self.sink) = (true, None);
                        return Err(error);
                    }
                    self.space.slot(rest.len()).copy(rest);
                    self.defer(error);
                    return Ok(());
                }
            }
        }
        if self.prompt == Prompt::Line
            && let Err(error) = self.with_sink(|sink| sink.flush())
        {
            self.defer(error);
        }
        Ok(())
    }

    /// Makes the buffer at least `len` bytes long.
    fn grow(&mut self, len: usize) -> Result<()> {
        self.space.grow(len).map_err(|error| self.explain(error))?;
        self.look_if_needed();
        Ok(())
    }

    /// Lets writes that fit in the room pass without a closer look, unless something asks for one.
    fn look_if_needed(&mut self) {
        let is_plain = self.prompt == Prompt::WhenFull && self.deferred.is_none() && !self.closing;
        self.space.set_needs_look(!is_plain);
    }

    fn defer(&mut self, error: Error) {
        self.deferred = Some(error);
        self.look_if_needed();
    }

    /// What stands in the way of a call that the fast path could not serve: an error that was deferred, a close.
    fn report(&mut self) -> Result<()> {
        self.report_deferred()?;
        match self.closing {
            true => Err(self.explain(Error::new(ErrorKind::Closed))),
            false => Ok(()),
        }
    }

    fn report_deferred(&mut self) -> Result<()> {
        match self.deferred.take() {
            None => Ok(()),
            Some(error) => {
                self.look_if_needed();
                Err(error)
            }
        }
    }

    /// Gives the sink everything and ends the stream.
    fn finish(&mut self) -> Result<()> {
        self.drain()?;
        self.with_sink(|sink| sink.finish())
    }

    fn with_sink<T>(&mut self, act: impl FnOnce(&mut dyn Sink) -> Result<T>) -> Result<T> {
        match &mut self.sink {
            Some(sink) => act(&mut **sink),
            None => Err(Error::new(ErrorKind::Closed)),
        }
        .map_err(|error| self.explain(error))
    }

    fn explain(&self, error: Error) -> Error {
        error.with_name(&*self.name).with_written(self.meter.written())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.sink.is_some() && self.on_drop == OnDrop::Finish {
            // Nobody is there to hear of an error: that is what `close` is for.
            let _ = self.finish();
        }
    }
}

impl io::Write for Writer {
    /// Writes all of `bytes`.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Writer::write(self, bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(Writer::write(self, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(Writer::flush(self)?)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.name)
            .field("accepted", &self.accepted())
            .field("written", &self.written())
            .finish_non_exhaustive()
    }
}
