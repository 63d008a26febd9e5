//! The writer: one buffer, in which every byte is either delivered or accounted for.
//!
//! ```text
//!     taken by the sink        accepted           spare capacity
//!   [ ................. | xxxxxxxxxxxxxxxxxxx | ......... ]
//!   0                 start                  end       capacity
//!
//!   always start <= end; `start` > 0 only after a failed write; index arithmetic is in `space`
//! ```
//!
//! The writer promises:
//! - **All or nothing.** A write that fails has accepted none of its bytes; a write that succeeds has accepted all of
//!   them.
//! - **Nothing accepted is lost.** Bytes that the sink did not accept stay in the buffer, and a later call tries again.
//!   If bytes are lost nevertheless, the error contains the number of bytes that the sink accepted
//!   ([`Error::written`]).
//! - **No hidden delay.** The [`FlushPolicy`] decides when bytes are passed on; a terminal gets whole lines.
//!
//! A small write costs one comparison. Every case that needs more than a copy (no buffer yet, a policy that acts on
//! each write, an error to report) makes that comparison fail and is handled out of line.
//!
//! The writer does not know what a record is. It waits for the disk only if [`Durability`] requests that.

use crate::os::{AsFd, OwnedFd};
use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::os::command::Command;
use crate::sink::{Meter, OnDrop, Sink};
use millstream_core::internal;

mod builder;
mod delay;
mod encode;
mod shared;
#[allow(unsafe_code)] // a pointer into memory that the same type owns, and parts that are written there
mod space;

pub use crate::sink::{Durability, Existing, Partial, WriterEnd};
pub use builder::{FlushPolicy, LendPages, WriterBuilder};
pub use encode::Encode;
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
/// assert!(!path.exists()); // it appears when the writer is closed, complete
/// let end = writer.close()?;
/// assert_eq!(end.bytes, 6);
/// assert_eq!(std::fs::read(&path).unwrap(), b"1\n4\n9\n");
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// If a writer is dropped without being closed, it finishes as far as possible without reporting errors: it writes the
/// buffer's content, and a command gets the end of its input and a short time to exit. But output that has not been
/// closed is incomplete: a file that appears only if it is complete does *not* appear, and a compressed stream gets no
/// end marker, so its readers can detect this. Only [`close`](Self::close) reports whether everything succeeded;
/// [`abort`](Self::abort) gives up without waiting for the sink.
///
/// In Rust, Python, Node and Julia programs, which ignore SIGPIPE, writing to a pipe or connection without a reader
/// fails with [`ErrorKind::BrokenPipe`]. A program that leaves SIGPIPE at its default is killed by it when it writes to
/// a closed pipe (not to a closed connection). This library never changes signal dispositions.
///
/// Other output of the program to the same sink, for example by `println!`, is not ordered relative to the bytes in the
/// buffer: call [`flush`](Self::flush) before it.
///
/// `Writer` implements [`std::io::Write`], so `write!` and other libraries can use it. It then returns its errors
/// inside [`io::Error`]s, and [`Error::from_io`] extracts them.
#[must_use = "output is complete only after `close`; dropping a writer reports no error"]
pub struct Writer {
    /// The buffer: empty until the first byte, then of `capacity` bytes, or more after a long record.
    space: Space,
    start: usize,
    /// Bytes passed from here to the sink. The sink itself counts bytes after encoding.
    delivered: u64,
    prompt: Prompt,
    capacity: usize,
    on_drop: OnDrop,
    /// A deferred error of a call that had to succeed because its bytes were accepted. The next call reports it.
    deferred: Option<Error>,
    /// Whether closing has begun: the stream may have been ended, so that no more bytes can be accepted.
    closing: bool,
    /// `None` once closed.
    sink: Option<Box<dyn Sink>>,
    meter: Arc<Meter>,
    name: String,
}

/// Whether accepted bytes are passed to the sink before the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    /// Bytes are not passed on before.
    WhenFull,
    /// Bytes are passed on at each line end.
    Line,
    /// Bytes are passed on with each write; the sink collects them.
    AtOnce,
}

impl Writer {
    /// Returns a builder, on which options are set.
    pub fn builder() -> WriterBuilder {
        WriterBuilder::default()
    }

    /// Writes a file. The output is compressed if the name implies that, for example by the suffix `.gz`.
    ///
    /// A regular file, new or replaced, appears complete when the writer is [closed](Self::close): until then the bytes
    /// are in a temporary file next to it, whose name begins with a dot. The permissions of an existing file are kept;
    /// a symbolic link is followed. FIFOs and devices are written directly; opening a FIFO waits for its reader.
    /// `/dev/stdout` is [`stdout`](Self::stdout). If the directory does not permit new files, use [`Partial::Keep`],
    /// which writes in place. The file is synced to disk only if [`durability`](WriterBuilder::durability) requests
    /// that.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] for a directory, a missing parent directory or a lack of permission. No file
    /// is created in these cases.
    pub fn path(path: impl AsRef<Path>) -> Result<Writer> {
        Writer::builder().path(path)
    }

    /// Writes an object of a store: `s3://BUCKET/KEY`, `gs://BUCKET/KEY` or `az://CONTAINER/KEY`. The output is compressed
    /// if the name implies that. This requires the feature `remote`.
    ///
    /// The object, new or replaced, appears complete when the writer is [closed](Self::close), and otherwise not at all.
    /// Up to 16 MiB are kept in memory and sent by one request; more are sent in parts while they are written.
    /// Options of the requests are those of [`Remote`](crate::Remote).
    ///
    /// If the answer to the last request is lost, the store is asked whether the object was written. If that cannot be
    /// found out, `close` fails with [`ErrorKind::OutcomeUnknown`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the store cannot be reached or refuses, and [`ErrorKind::Unsupported`] for the
    /// URLs of web servers.
    pub fn url(remote: impl Into<crate::Remote>) -> Result<Writer> {
        Writer::builder().url(remote)
    }

    /// Writes a regular file through mapped memory, in steps for which disk space is reserved beforehand. Otherwise
    /// this is like [`path`](Self::path); the file has its true length after a close, an error and a drop.
    ///
    /// Measure before you use this: for a file in memory a plain write takes three quarters of the time, because the
    /// kernel does not have to clear pages that a write fills.
    ///
    /// No process may truncate the file while it is written: that kills this process with SIGBUS. With
    /// [`Partial::Keep`], which writes in place, the file is padded with zeros until it gets its true length. A
    /// [`flush`](Self::flush) does not remove the padding, nor does the death of the process.
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
    /// Returns [`ErrorKind::OpenFailed`], also for anything other than a regular file. Writing fails with
    /// [`ErrorKind::Unsupported`] if the file system cannot reserve space: without a reservation a full disk would
    /// crash the process.
    pub fn mapped(path: impl AsRef<Path>) -> Result<Writer> {
        Writer::builder().mapped(path)
    }

    /// Writes to standard output: the file descriptor 1 itself, without the lock and the buffer of [`io::Stdout`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the process has no standard output.
    pub fn stdout() -> Result<Writer> {
        Writer::builder().stdout()
    }

    /// Writes to a file descriptor (of a file, pipe, socket, terminal or device) and closes it at the end. Its mode
    /// (`O_NONBLOCK`) is respected and never changed. A connection is shut down as with [`tcp`](Self::tcp); to read the
    /// peer's answer, use [`borrow_fd`](Self::borrow_fd).
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the descriptor is not open.
    pub fn fd(fd: impl Into<OwnedFd>) -> Result<Writer> {
        Writer::builder().fd(fd)
    }

    /// Writes to a duplicate of a descriptor; the caller keeps the original. A connection is shut down only if
    /// [`linger`](WriterBuilder::linger) is set.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the process has no descriptors left.
    pub fn borrow_fd(fd: impl AsFd) -> Result<Writer> {
        Writer::builder().borrow_fd(fd)
    }

    /// Starts a command and writes to its standard input. [`close`](Self::close) waits for the command, and fails if
    /// the command fails.
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
    /// Returns [`ErrorKind::CommandNotStarted`] if the command cannot be started.
    pub fn command(command: impl Into<Command>) -> Result<Writer> {
        Writer::builder().command(command)
    }

    /// Connects to a TCP address, such as `"localhost:7000"`, and writes to it. Data that the peer sends is discarded.
    ///
    /// [`close`](Self::close) succeeds when the peer has closed the connection too, which confirms that it has read
    /// everything; [`linger`](WriterBuilder::linger) limits how long this may take. A reset is an error.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the connection fails.
    pub fn tcp(addr: impl ToSocketAddrs + fmt::Display) -> Result<Writer> {
        Writer::builder().tcp(addr)
    }

    /// Connects to a Unix stream socket and writes to it, as [`tcp`](Self::tcp) does.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the connection fails.
    pub fn unix(path: impl AsRef<Path>) -> Result<Writer> {
        Writer::builder().unix(path)
    }

    /// Writes to any [`io::Write`]. Calls of the `io::Write` cannot be interrupted; with [`FlushPolicy::Delay`] they
    /// run on another thread. [`flush`](Self::flush) flushes it too.
    ///
    /// # Errors
    /// This always succeeds. With a [builder](WriterBuilder), options may cause errors.
    pub fn from_write(inner: impl io::Write + Send + 'static) -> Result<Writer> {
        Writer::builder().from_write(inner)
    }

    /// Passes bytes to `function`, on the thread that uses the writer. The function returns the number of bytes it
    /// accepted, at least one. After an error, the next call passes the same bytes again.
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
    /// This always succeeds. With a [builder](WriterBuilder), options may cause errors.
    pub fn callback(function: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static) -> Result<Writer> {
        Writer::builder().callback(function)
    }

    /// Keeps all output in memory, for [`WriterEnd::memory`].
    ///
    /// # Errors
    /// This always succeeds. With a [builder](WriterBuilder), options may cause errors.
    pub fn memory() -> Result<Writer> {
        Writer::builder().memory()
    }

    /// Discards all output, for measuring and counting.
    ///
    /// # Errors
    /// This always succeeds. With a [builder](WriterBuilder), options may cause errors.
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

    /// Writes all of `bytes`. If they fit in the buffer, this only copies them. Bytes that would fill the whole buffer
    /// are passed to the sink directly.
    ///
    /// # Errors
    /// Returns the errors of the sink, such as [`ErrorKind::BrokenPipe`] if it no longer has a reader. In this case
    /// none of `bytes` were accepted: bytes accepted before stay in the buffer, and the call may be repeated. If the
    /// sink fails after part of a large write, the rest is kept, the call succeeds, and the next call reports the
    /// error. If there is no memory for the rest, this call returns that error, and the writer accepts no more bytes
    /// ([`ErrorKind::Closed`]).
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

    /// Writes all of `bytes` if this only requires copying them into the buffer, and returns whether it did so. It
    /// never calls the sink. If it returns false, no bytes were accepted: call [`write`](Self::write).
    ///
    /// It is for callers that release a lock, such as an interpreter's, before a call that may block, and want to keep
    /// it if the call cannot block.
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

    /// Writes one record that consists of the parts passed to [`put!`](crate::put!).
    ///
    /// # Errors
    /// Returns the errors of [`write`](Self::write). After an error no part of the record was accepted.
    #[doc(hidden)]
    #[inline(always)] // so that the compiler sees the parts where they are put
    pub fn put_parts(&mut self, parts: &impl internal::Parts) -> Result<()> {
        let need = internal::need(parts);
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

    /// Returns at least `n` bytes of space to fill, with arbitrary content. [`commit`](Self::commit) accepts bytes from
    /// it. If `n` is larger than the buffer, the buffer grows.
    ///
    /// ```
    /// use millstream::Writer;
    /// let mut writer = Writer::memory()?;
    /// let spare = writer.space(20)?;
    /// spare[..5].copy_from_slice(b"hello");
    /// writer.commit(5)?;
    /// assert_eq!(writer.close()?.memory.unwrap(), b"hello");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`write`](Self::write), and [`ErrorKind::Io`] with ENOMEM if there is not enough memory.
    #[inline]
    pub fn space(&mut self, n: usize) -> Result<&mut [u8]> {
        if self.space.fast_slot(n).is_none() {
            self.make_space(n)?;
        }
        Ok(self.space.spare())
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
    /// With a policy that flushes at line ends or after a delay, returns the errors of [`write`](Self::write); after an
    /// error, the bytes were not accepted. With other policies, this always succeeds.
    ///
    /// # Panics
    /// Panics if `n` is larger than the space.
    #[inline]
    pub fn commit(&mut self, n: usize) -> Result<()> {
        self.space.commit(n);
        match self.prompt {
            Prompt::WhenFull => Ok(()),
            Prompt::Line | Prompt::AtOnce => self.settle(n),
        }
    }

    /// Returns whether accepted bytes stay in the buffer until it is full. In this case it makes no difference whether
    /// [`commit`](Self::commit) is called after each record or after many.
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

    /// Passes all bytes accepted so far to the operating system. A compressed stream can then be decoded up to this
    /// point.
    ///
    /// # Errors
    /// Returns the errors of the sink. No bytes are lost: the next call tries again.
    pub fn flush(&mut self) -> Result<()> {
        self.report()?;
        self.drain()?;
        self.with_sink(|sink| sink.flush())
    }

    /// Writes the remaining bytes, ends the stream, and completes the output: it gives a file its name, and waits for a
    /// command.
    ///
    /// This consumes the writer. If it is interrupted, for example by a token, accepted bytes that have not reached the
    /// sink are lost, and the error contains the number of bytes written. [`try_close`](Self::try_close), in contrast,
    /// can be repeated.
    ///
    /// # Errors
    /// Returns the errors of the sink, and [`ErrorKind::CommandFailed`] if the command did not succeed.
    /// [`Error::written`] is the number of bytes that the sink accepted; a file that appears only if it is complete
    /// does not appear.
    pub fn close(mut self) -> Result<WriterEnd> {
        let end = self.try_close();
        // This also happens after an error, because dropping the writer must not try again.
        self.sink = None;
        end
    }

    /// [Closes](Self::close) the writer, and keeps its state if that fails: the next call continues at the same point.
    /// So no bytes are lost if a close is interrupted by a token or a time limit, or if the disk is full.
    ///
    /// From the first call on, whether it succeeds or not, the writer accepts no more bytes: writing fails with
    /// [`ErrorKind::Closed`].
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
    /// Returns the errors of [`close`](Self::close). If a command failed, the next call reports that again. If an
    /// earlier call succeeded, returns [`ErrorKind::Closed`].
    pub fn try_close(&mut self) -> Result<WriterEnd> {
        self.closing = true;
        self.look_if_needed();
        let end = self.report_deferred().and_then(|()| self.close_sink());
        self.space.give_up_spare(); // space obtained before can no longer be committed
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

    /// Closes the writer and discards the content of the buffer. A file that appears only if it is complete does not
    /// appear, and a compressed stream gets no end marker, so its readers can detect this. This never waits for the
    /// sink to accept bytes; a command gets the end of its input and is stopped if it does not exit soon. Later calls
    /// fail with [`ErrorKind::Closed`].
    ///
    /// ```
    /// use millstream::Writer;
    /// let (reader, pipe) = std::io::pipe()?;
    /// let mut writer = Writer::builder().capacity(1 << 24).fd(pipe)?;
    /// writer.write(&vec![b'x'; 1 << 20])?;
    /// writer.abort(); // the pipe is smaller than that, and nothing reads it
    /// # drop(reader);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn abort(&mut self) {
        self.closing = true;
        self.look_if_needed();
        self.space.give_up_spare();
        if let Some(mut sink) = self.sink.take() {
            sink.abandon();
        }
    }

    /// Does the first step of dropping and returns its error. Bindings to garbage-collected languages use this to
    /// report the error and limit the wait. Call [`abort`](Self::abort) afterwards.
    ///
    /// # Errors
    /// Returns the errors of [`flush`](Self::flush).
    #[doc(hidden)]
    pub fn hand_over(&mut self) -> Result<()> {
        // A failed close has reported its error, and a second attempt could complete a file that the caller considers
        // incomplete.
        if self.sink.is_none() || self.on_drop == OnDrop::Discard || self.closing {
            return Ok(());
        }
        self.drain()?;
        self.with_sink(|sink| sink.flush())
    }

    /// Returns whether there will be no output unless the writer is closed, as for a file that appears complete.
    #[doc(hidden)]
    pub fn vanishes(&self) -> bool {
        self.on_drop == OnDrop::Discard
    }

    /// Returns the number of bytes accepted so far, including those in the buffer.
    pub fn accepted(&self) -> u64 {
        self.delivered + (self.space.end() - self.start) as u64
    }

    /// Returns the number of bytes passed to the operating system so far, after encoding.
    pub fn written(&self) -> u64 {
        self.meter.written()
    }

    /// Returns the time spent in the sink so far.
    pub fn waited(&self) -> Duration {
        self.meter.waited()
    }

    /// Returns the name of the sink in error messages: a path, a command line or an address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Converts the writer into one that several threads can use at the same time.
    pub fn shared(self) -> SharedWriter {
        SharedWriter::new(self)
    }

    /// Passes bytes to the sink as `prompt` requires, after `new` bytes were added to the buffer. If it fails, the new
    /// bytes are not accepted. If the sink has accepted some of them, all of them are accepted and the error is
    /// deferred.
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

    /// Passes the whole content of the buffer to the sink.
    fn drain(&mut self) -> Result<()> {
        self.deliver(self.space.end())
    }

    /// Passes the buffer's content up to `to` to the sink, and moves the rest to the front.
    fn deliver(&mut self, to: usize) -> Result<()> {
        while self.start < to {
            // The sink is put back after its call has returned: see `with_sink`.
            let Some(mut sink) = self.sink.take() else {
                return Err(self.explain(Error::new(ErrorKind::Closed)));
            };
            let taken = sink.write_block(self.space.block(), self.start..to);
            self.sink = Some(sink);
            let taken = taken.map_err(|error| self.explain(error))?;
            self.start += taken;
            self.delivered += taken as u64;
        }
        if let (Some(sink), 1..) = (&mut self.sink, self.start) {
            self.space.renew(self.start, |block, rest| sink.renew(block, rest));
            self.start = 0;
        }
        Ok(())
    }

    /// Passes `bytes` directly to the sink, with an empty buffer.
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
                    // Some of the bytes have been written, so all of them are accepted.
                    let rest = &bytes[taken..];
                    if let Err(error) = self.grow(rest.len()) {
                        // There is no memory for the rest. The output can no longer be complete, so it is not
                        // continued.
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

    /// Lets writes that fit skip further checks, unless these are required.
    fn look_if_needed(&mut self) {
        let is_plain = self.prompt == Prompt::WhenFull && self.deferred.is_none() && !self.closing;
        self.space.set_needs_look(!is_plain);
    }

    fn defer(&mut self, error: Error) {
        self.deferred = Some(error);
        self.look_if_needed();
    }

    /// Returns the error that made the fast path fail: a deferred error or a close.
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

    /// Calls the sink. If the sink panics, as the caller's code may, the number of bytes that the sink accepted is
    /// unknown. In that case, the writer accepts no more bytes, and dropping it, perhaps due to the same panic, does
    /// not call the sink again.
    fn with_sink<T>(&mut self, act: impl FnOnce(&mut dyn Sink) -> Result<T>) -> Result<T> {
        let Some(mut sink) = self.sink.take() else {
            return Err(self.explain(Error::new(ErrorKind::Closed)));
        };
        let done = act(&mut *sink);
        self.sink = Some(sink);
        done.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: Error) -> Error {
        error.with_name(&*self.name).with_written(self.meter.written())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // No caller can receive an error here; `close` reports errors.
        let _ = self.hand_over();
    }
}

impl millstream_core::WriteRecord for Writer {
    #[inline]
    fn write_record(&mut self, record: &[u8]) -> Result<()> {
        Writer::write(self, record)
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
