//! The reading side: one linear buffer, which a source fills and from which records are taken.
//!
//! The reader returns every byte that the source delivered. Then it returns the end if the source succeeded, or one
//! error that describes the failure, followed by a plain end. It returns a record as soon as the record is complete.
//! Memory use is bounded by the buffer, the read-ahead and the longest record, which has a limit.
//!
//! The reader itself knows nothing about record formats: [`frame`](crate::frame) finds the records.

mod apart;
mod builder;
mod copied;
pub mod handover;
mod index;
mod records;
mod scan;
mod supply;
mod version;

use crate::os::{AsFd, BorrowedFd, OwnedFd};
use std::io::{BufRead, Read};
use std::net::ToSocketAddrs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use crate::source::{Decode, Pin, Source};
use builder::Again;
pub use builder::{Follow, Latency, ReaderBuilder};
use copied::RecordPlaces;
pub use copied::{BatchCopy, BatchLines};
pub use scan::Values;

use crate::Format;
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::frame::{Batch, Delimiter, Framer, Lines, RecordLines, Resume, Step, Trim};
use crate::os::cancel::is_late;
use crate::os::command::Command;
use crate::source::expected::mismatch;
use index::LineIndex;
use millstream_core::internal::Buffer;
use scan::Scanning;
use supply::Supply;
pub use supply::{ReadAhead, Waits};
pub use version::SourceVersion;

/// The number of bytes of an unfinished record that an error message shows.
const SHOWN: usize = 40;

/// The largest part of the buffer that one batch covers. With its offsets it fits into the second-level cache.
const BATCH_BYTES: usize = 256 << 10;

/// Reads a source record by record.
///
/// Reading one record at a time, without a copy:
///
/// ```
/// use millstream::Reader;
/// let mut reader = Reader::memory("one\ntwo\r\nthree")?;
/// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
/// assert_eq!(reader.next_line()?, Some(&b"two"[..]));
/// assert_eq!(reader.next_line()?, Some(&b"three"[..]));
/// assert_eq!(reader.next_line()?, None);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// Reading in batches, which is faster still:
///
/// ```
/// use millstream::{Reader, frame::Lines};
/// let mut reader = Reader::command(["seq", "100000"])?;
/// let (mut lines, mut count, mut bytes) = (Lines::new(), 0, 0);
/// while let Some(batch) = reader.next_batch(&mut lines)? {
///     count += batch.len();
///     bytes += batch.iter().map(<[u8]>::len).sum::<usize>();
/// }
/// assert_eq!((count, bytes), (100_000, 488_895));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// Dropping a reader before the end of its source stops its commands as [`close`](Reader::close) does, which may take
/// two seconds, and reports no error. A reader owns its source; to split borrowed memory, use the framers directly.
#[must_use = "dropping a reader stops its commands and reports no error"]
pub struct Reader {
    buffer: Buffer,
    index: LineIndex,
    scanning: Scanning,
    /// The position of the first byte: not 0 for a split.
    start: Position,
    records: u64,
    /// Whether all records so far were lines, so that the number of records is the number of lines.
    all_lines: bool,
    /// The number of line ends inside the records so far, if all of them were one or several lines: the line after them
    /// has the number `records + inner_lines + 1`.
    inner_lines: Option<u64>,
    /// How many lines a record of the last framer is, of the records that its last call has found.
    record_lines: RecordLines,
    /// The bytes of the buffer from this position on are those of the stream, consumed ones too.
    kept_from: usize,
    /// The longest record so far.
    longest: usize,
    /// A line of at most this length is neither the longest one nor too long.
    unremarkable: usize,
    supply: Supply,
    state: State,
    /// A record was too long: no record follows it until it is skipped.
    too_long: bool,
    /// The state before the error of an invalid record, which can be skipped.
    before_bad: Option<State>,
    /// The record being skipped, if a token interrupted the skip.
    skip: Option<Skip>,
    /// The part of a long record that [`ReadRecords`](millstream_core::ReadRecords) keeps, and the offset after it.
    partial: (Vec<u8>, u64),
    /// The offsets of the last batch.
    offsets: Vec<u32>,
    /// Whether records of the last batch are still in the buffer.
    leaves_records: bool,
    /// The position after the last batch, while the batch's bytes are still unconsumed.
    batch_end: Option<usize>,
    record_limit: usize,
    /// How many records the source should have.
    expect_records: Option<u64>,
    name: String,
    /// For reading again, or what the source is if that is not possible.
    again: std::result::Result<Box<Again>, &'static str>,
    meter: Meter,
    observer: Option<Observer>,
    ends: Vec<CommandEnd>,
    /// The error that ended the stream, once it has been reported.
    failure: Option<Error>,
}

/// What the source reports while it is read, perhaps by another thread.
#[derive(Clone, Debug)]
struct Meter {
    opened: Instant,
    bytes: Arc<AtomicU64>,
    format: Arc<OnceLock<Format>>,
    size: Option<u64>,
    /// The source is lent memory: its bytes are read when they are revealed.
    lent: bool,
}

enum State {
    /// There may be more bytes.
    Open,
    /// There are no more bytes. Whether the source succeeded is not known yet, because a token interrupted the wait for
    /// that.
    Asking,
    /// There are no more bytes, and the source succeeded or failed with this error. Success is reported after all bytes
    /// are consumed, an error after all complete records are.
    Ending(Option<Error>),
    /// The end has been reported. Bytes left unread by [`Reader::fill`] are still records.
    Ended,
    /// An error has been reported. The remaining unread bytes are not a record.
    Failed,
}

/// The progress of skipping a record.
#[derive(Clone, Copy)]
struct Skip {
    /// The offset where the record begins.
    start: u64,
    /// The number of line ends in the bytes that have been skipped, if records are lines.
    line_ends: u64,
    /// The number of its remaining bytes; 0 if its length is not known.
    left: u64,
    /// The framer's notes about the bytes that are no longer in the buffer.
    resume: Resume,
}

type Observe = dyn FnMut(&Progress) + Send;

#[derive(Clone)]
struct Observer {
    interval: Duration,
    last: Instant,
    /// It is shared with the readers of the same version of the source.
    call: Arc<Mutex<Observe>>,
}

/// A reader's position, counted from the start of the stream, or for a split, of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes consumed, after decoding.
    pub bytes: u64,
    /// Records taken or skipped. For a split whose plan does not know the number of its first record, they are counted
    /// from the start of the split.
    pub records: u64,
}

/// The progress of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes consumed, after decoding.
    pub bytes: u64,
    /// Records taken or skipped.
    pub records: u64,
    /// Bytes read from the source, before decoding.
    pub source_bytes: u64,
    /// The total size of the source in bytes, if known.
    pub source_size: Option<u64>,
    /// The time since the reader was opened.
    pub elapsed: Duration,
    /// The time that the consumer has waited for bytes.
    pub waited: Duration,
    /// The length in bytes of the longest record so far, with its delimiter or prefix.
    pub longest_record: usize,
    /// The compression format of the source.
    pub format: Option<Format>,
}

/// The progress of a reader's source. Any thread can query it at any time, even while the reader waits (when its
/// observer is not called) and after the reader is closed. It is created by [`Reader::progress_handle`].
///
/// ```
/// use millstream::Reader;
/// let mut reader = Reader::command(["seq", "1000"])?;
/// let handle = reader.progress_handle();
/// let display = std::thread::spawn(move || {
///     while handle.source_bytes() < 3893 {
///         std::thread::yield_now(); // a display would sleep, and show it
///     }
/// });
/// while reader.next_line()?.is_some() {}
/// display.join().unwrap();
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProgressHandle(Meter);

impl ProgressHandle {
    /// Returns the number of bytes read from the source so far, before decoding.
    pub fn source_bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Returns the total size of the source in bytes, if known.
    pub fn source_size(&self) -> Option<u64> {
        self.0.size
    }

    /// Returns the time since the reader was opened.
    pub fn elapsed(&self) -> Duration {
        self.0.opened.elapsed()
    }

    /// Returns the compression format of the source, once it is known.
    pub fn format(&self) -> Option<Format> {
        self.0.format.get().copied()
    }
}

/// Constructors. Each of these is also a method of the [builder](Reader::builder), on which options are set.
impl Reader {
    /// Returns a builder, on which options are set.
    pub fn builder() -> ReaderBuilder {
        ReaderBuilder::default()
    }

    /// Reads a file, FIFO or device.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::path`].
    pub fn path(path: impl AsRef<Path>) -> Result<Reader> {
        Reader::builder().path(path)
    }

    /// Reads standard input.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::stdin`].
    pub fn stdin() -> Result<Reader> {
        Reader::builder().stdin()
    }

    /// Reads a file descriptor and closes it at the end.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::fd`].
    pub fn fd(fd: impl Into<OwnedFd>) -> Result<Reader> {
        Reader::builder().fd(fd)
    }

    /// Reads a duplicate of a file descriptor; the original stays open.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::borrow_fd`].
    pub fn borrow_fd(fd: impl AsFd) -> Result<Reader> {
        Reader::builder().borrow_fd(fd)
    }

    /// Starts a command and reads its standard output. The end of the stream means end of file *and* exit status 0. In
    /// all other cases, reading fails with [`ErrorKind::CommandFailed`] after all of the output. See
    /// [`ReaderBuilder::command`].
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::command`].
    pub fn command(command: impl Into<Command>) -> Result<Reader> {
        Reader::builder().command(command)
    }

    /// Starts a pipeline of commands, in which each reads the output of the previous one, and reads the last one's
    /// standard output.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::pipeline`].
    pub fn pipeline<C: Into<Command>>(commands: impl IntoIterator<Item = C>) -> Result<Reader> {
        Reader::builder().pipeline(commands)
    }

    /// Starts a shell command line and reads its standard output. Never pass user input or a file name to this method.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::shell`].
    pub fn shell(line: impl AsRef<std::ffi::OsStr>) -> Result<Reader> {
        Reader::builder().shell(line)
    }

    /// Connects to a TCP server and reads the bytes that it sends.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::tcp`].
    pub fn tcp(address: impl ToSocketAddrs + std::fmt::Display) -> Result<Reader> {
        Reader::builder().tcp(address)
    }

    /// Connects to a Unix socket and reads the bytes that its server sends.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::unix`].
    pub fn unix(path: impl AsRef<Path>) -> Result<Reader> {
        Reader::builder().unix(path)
    }

    /// Reads any `std::io::Read`.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::from_read`].
    pub fn from_read(read: impl Read + Send + 'static) -> Result<Reader> {
        Reader::builder().from_read(read)
    }

    /// Reads the bytes that a callback writes into the slice it is given. The callback returns the number of bytes, or
    /// 0 at the end.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::callback`].
    pub fn callback(fill: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'static) -> Result<Reader> {
        Reader::builder().callback(fill)
    }

    /// Reads a source that the program defines.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::source`].
    pub fn source(source: impl Source + 'static) -> Result<Reader> {
        Reader::builder().source(source)
    }

    /// Reads memory, without a copy.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::memory`].
    pub fn memory(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Reader> {
        Reader::builder().memory(bytes)
    }

    /// Reads one split of a file: see [`splits`](crate::splits).
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::split`].
    #[cfg(feature = "splits")]
    pub fn split(split: &crate::splits::Split) -> Result<Reader> {
        Reader::builder().split(split)
    }

    /// Maps a regular file and reads it, without a copy. The file must not shrink while it is read.
    ///
    /// # Errors
    /// Fails like [`ReaderBuilder::mapped`].
    pub fn mapped(path: impl AsRef<Path>) -> Result<Reader> {
        Reader::builder().mapped(path)
    }
}

/// Methods for bytes.
impl Reader {
    /// Reads at least one more byte after the unread ones, and returns the number of bytes read. 0 means that the
    /// stream ended and the source succeeded. The unread bytes stay in the buffer, but their addresses change.
    ///
    /// ```
    /// let mut reader = millstream::Reader::memory("hello")?;
    /// assert_eq!(reader.fill()?, 5);
    /// assert_eq!(reader.buffer(), b"hello");
    /// reader.consume(2);
    /// assert_eq!(reader.fill()?, 0);
    /// assert_eq!(reader.buffer(), b"llo");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the source's failure, but only one time. Returns [`ErrorKind::RecordTooLong`] if more bytes than the
    /// record limit are unread; they can still be consumed.
    pub fn fill(&mut self) -> Result<usize> {
        self.settle();
        let before = self.buffer.unread().len();
        if before > self.record_limit {
            return Err(self.record_too_long(before));
        }
        match self.read_more()? {
            true => Ok(self.buffer.unread().len() - before),
            false => self.finish().map(|()| 0),
        }
    }

    /// Returns the unread bytes.
    #[inline]
    pub fn buffer(&self) -> &[u8] {
        self.buffer.unread()
    }

    /// Removes `count` bytes from the front of [`buffer`](Reader::buffer).
    ///
    /// # Panics
    /// Panics if the buffer has fewer bytes.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.settle();
        if count > 0 {
            // A caller that consumes bytes of a record that is too long decides where the next record begins.
            self.too_long = false;
            self.skip = None;
            (self.all_lines, self.inner_lines) = (false, None);
        }
        self.buffer.consume(count);
    }

    /// Consumes all of [`buffer`](Reader::buffer) without copying it: the reader continues in `memory`, and `memory`
    /// becomes its former buffer, with the consumed bytes in the returned range. This is for callers that pass the
    /// bytes to another thread.
    ///
    /// ```
    /// let mut reader = millstream::Reader::from_read(&b"hello"[..])?;
    /// let mut memory = Vec::new();
    /// while reader.fill()? > 0 {
    ///     let taken = reader.exchange(&mut memory);
    ///     assert_eq!(&memory[taken], b"hello");
    /// }
    /// assert_eq!(reader.position().bytes, 5);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn exchange(&mut self, memory: &mut Vec<u8>) -> Range<usize> {
        self.settle();
        (self.too_long, self.skip, self.all_lines, self.inner_lines) = (false, None, false, None);
        self.buffer.exchange(memory)
    }

    /// Reads once. Returns false if there are no more bytes; [`finish`](Reader::finish) then knows the reason.
    fn read_more(&mut self) -> Result<bool> {
        match self.state {
            State::Open => {}
            State::Asking => return self.ask().map(|()| false),
            State::Ending(_) | State::Ended | State::Failed => return Ok(false),
        }
        self.observe();
        self.batch_end = None;
        // The longest delimiter, plus one byte that shows that the record is too long.
        let max = self.record_limit.saturating_add(64);
        let filled = self.supply.fill(&mut self.buffer, max);
        self.kept_from = self.buffer.pos();
        match filled {
            Ok(0) => {
                self.state = State::Asking;
                self.ask()?;
            }
            Ok(_) => {
                if self.meter.lent {
                    let revealed = self.buffer.offset() + self.buffer.unread().len() as u64;
                    self.meter.bytes.store(revealed, Ordering::Relaxed);
                }
                return Ok(true);
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(self.at_end(error)),
            Err(error) => self.state = State::Ending(Some(error)),
        }
        Ok(false)
    }

    /// Asks at the end of the bytes whether the source succeeded. The answer decides whether trailing bytes without a
    /// delimiter are a record, so this is called before all bytes are consumed.
    fn ask(&mut self) -> Result<()> {
        self.state = match self.supply.finish(&mut self.ends) {
            Ok(()) => State::Ending(None),
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(self.at_end(error)),
            Err(error) => State::Ending(Some(error)),
        };
        Ok(())
    }

    /// Reports at the end of the bytes why they have ended. A failure is reported only by the first call.
    fn finish(&mut self) -> Result<()> {
        if self.is_at_end() {
            self.count_open_line();
        }
        let State::Ending(error) = &mut self.state else { return Ok(()) };
        match error.take().or_else(|| self.unexpected_records()) {
            None => {
                self.state = State::Ended;
                self.observe_now();
                Ok(())
            }
            Some(error) => {
                let error = self.at_end(error);
                Err(self.fail(error))
            }
        }
    }

    /// Returns the error for another number of records than expected.
    fn unexpected_records(&self) -> Option<Error> {
        let expected = self.expect_records.filter(|expected| *expected != self.records)?;
        Some(mismatch(format!("the end after {} records", self.records), format!("{expected} records")))
    }

    /// Like [`finish`](Reader::finish), for records: the remaining bytes of a failed source are part of a record, and
    /// the error shows them.
    fn finish_records(&mut self) -> Result<()> {
        if let State::Ending(Some(error)) = &mut self.state
            && !self.buffer.unread().is_empty()
        {
            let cause = std::mem::replace(error, Error::new(ErrorKind::Internal));
            let cause = with_unfinished(cause, self.buffer.unread()).with_record(self.records);
            self.state = State::Ending(Some(self.with_line_of(cause, self.records)));
        }
        self.finish()
    }

    /// Marks the stream as failed. No more records follow this error; `close` reports it again, unless the caller's
    /// time limit caused it.
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed;
        self.failure = (!is_late(&error)).then(|| error.again());
        error
    }

    /// Drops state that only the next line or the next value would have used.
    #[inline]
    fn settle(&mut self) {
        self.batch_end = None;
        self.index.clear();
        if self.is_scanning() {
            self.end_scanning();
        }
    }

    /// Adds the source's name and the position of the last byte that was read to an error.
    fn at_end(&self, error: Error) -> Error {
        let end = self.buffer.offset() + self.buffer.unread().len() as u64;
        error.with_name(&self.name).with_offset(end)
    }

    /// Adds the source's name, and the place of the record that begins at `offset` and has this number, to an error.
    fn at_record(&self, error: Error, offset: u64, record: u64) -> Error {
        let error = error.with_name(&self.name).with_offset(offset).with_record(record);
        self.with_line_of(error, record)
    }

    /// Adds the line at which a record begins, if it is known. It is the next record, or all records up to it are lines.
    fn with_line_of(&self, error: Error, record: u64) -> Error {
        match self.inner_lines {
            Some(inner) if self.all_lines || self.record_lines != RecordLines::Unknown => {
                error.with_line(record + inner + 1)
            }
            _ => error,
        }
    }

    /// Adds the line and the column to an error at a byte of the next record, which is of several lines.
    fn at_line(&self, error: Error, lines: RecordLines) -> Error {
        let (Some(inner), RecordLines::Several(line_end), Some(offset)) = (self.inner_lines, lines, error.offset())
        else {
            return error;
        };
        let before = &self.buffer.unread()[..(offset - self.buffer.offset()) as usize];
        let lines = memchr::memchr_iter(line_end, before).count() as u64;
        let column = before.len() - memchr::memrchr(line_end, before).map_or(0, |at| at + 1) + 1;
        error.with_line(self.records + inner + lines + 1).with_column(column as u64)
    }

    /// Returns the number of line ends inside the records before the position, if they were lines.
    #[doc(hidden)] // for a caller that adds the numbers of several splits
    pub fn inner_lines(&self) -> Option<u64> {
        self.inner_lines
    }

    /// Returns how many lines a record of the last batch is.
    pub(super) fn record_lines(&self) -> RecordLines {
        self.record_lines
    }

    /// Counts lines from the current position on: a caller adds the lines before it to errors.
    #[doc(hidden)]
    pub fn count_lines_from_here(&mut self) {
        self.inner_lines = Some(0);
    }

    /// Adds the number of line ends inside records that are taken now.
    fn count_lines(&mut self, inner: Option<u64>) {
        self.inner_lines = self.inner_lines.zip(inner).map(|(before, inner)| before + inner);
    }

    /// Returns whether the unread bytes are the last ones of the stream. They are not if an error cut the stream off.
    fn is_at_end(&self) -> bool {
        matches!(self.state, State::Ending(None) | State::Ended)
    }
}

/// Methods for records.
impl Reader {
    /// Returns the next line, without its `\n` or `\r\n`, or `None` at the end, which means that the source succeeded.
    /// (After an error has been reported, `None` only means that there are no more lines.)
    ///
    /// The last line need not end in a newline. A line may contain any bytes; if you need text,
    /// [`frame::text`](crate::frame::text) checks for UTF-8.
    ///
    /// # Errors
    /// Returns the source's failure after all the data that it delivered, but only one time. Returns
    /// [`ErrorKind::RecordTooLong`] for a line over the limit; in that case, [`skip_record`](Reader::skip_record)
    /// continues after that line.
    #[inline]
    pub fn next_line(&mut self) -> Result<Option<&[u8]>> {
        let end = match self.index.next() {
            Some(end) => end,
            None => match self.find_line()? {
                Some(end) => end,
                None => return Ok(None),
            },
        };
        if end - self.buffer.pos() > self.unremarkable {
            self.check_longest_line(end)?;
        }
        self.records += 1;
        Ok(Some(match self.buffer.take_to(end) {
            [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
            line => line,
        }))
    }

    /// Returns the next line if the buffer contains all of it; this never reads. `None` does not mean the end of the
    /// stream: only [`next_line`](Reader::next_line) reports the end and errors.
    ///
    /// It is for callers that release a lock, such as an interpreter's, before a call that may block, and want to keep
    /// it if the call cannot block.
    ///
    /// ```
    /// let mut reader = millstream::Reader::memory("one\ntwo\nthree")?;
    /// assert_eq!(reader.buffered_line(), None);
    /// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    /// assert_eq!(reader.buffered_line(), Some(&b"two"[..]));
    /// assert_eq!(reader.buffered_line(), None); // the remaining bytes may be part of a longer line
    /// assert_eq!(reader.next_line()?, Some(&b"three"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[inline]
    pub fn buffered_line(&mut self) -> Option<&[u8]> {
        Some(match self.buffered_line_raw()? {
            [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
            line => line,
        })
    }

    /// Like [`buffered_line`](Reader::buffered_line), but returns the line with its line ending, as other languages
    /// return lines of files.
    ///
    /// ```
    /// let mut reader = millstream::Reader::memory("one\ntwo\r\nthree")?;
    /// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    /// assert_eq!(reader.buffered_line_raw(), Some(&b"two\r\n"[..]));
    /// assert_eq!(reader.buffered_line_raw(), None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[inline]
    pub fn buffered_line_raw(&mut self) -> Option<&[u8]> {
        let end = match self.index.next() {
            Some(end) => end,
            None => self.find_buffered_line()?,
        };
        if end - self.buffer.pos() > self.unremarkable && self.check_longest_line(end).is_err() {
            return None;
        }
        self.records += 1;
        Some(self.buffer.take_to(end))
    }

    #[cold]
    fn find_buffered_line(&mut self) -> Option<usize> {
        if self.is_scanning() || !self.goes_on() || !self.index.look_ahead(&self.buffer) {
            return None;
        }
        self.index.next()
    }

    /// Returns the next record if the buffer contains all of it: like [`buffered_line`](Reader::buffered_line), for any
    /// framer.
    ///
    /// ```
    /// use millstream::{Reader, frame::Delimiter};
    /// let mut reader = Reader::memory("a;b;c")?;
    /// let mut semicolon = Delimiter::byte(b';');
    /// assert_eq!(reader.next_frame(&mut semicolon)?, Some(&b"a"[..]));
    /// assert_eq!(reader.buffered_frame(&mut semicolon), Some(&b"b"[..]));
    /// assert_eq!(reader.buffered_frame(&mut semicolon), None);
    /// assert_eq!(reader.next_frame(&mut semicolon)?, Some(&b"c"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn buffered_frame<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Option<&[u8]> {
        self.settle();
        if !self.goes_on() || self.buffer.unread().is_empty() {
            return None;
        }
        let Step::Record { len, terminated } = framer.step(self.buffer.unread(), Resume::START, false) else {
            return None;
        };
        self.all_lines &= framer.finds_lines();
        let trim = framer.trim();
        let content = trim.apply(&self.buffer.unread()[..len], terminated).len();
        self.check_record(len, content).ok()?;
        self.count_lines(framer.record_lines().inside(self.buffer.unread(), std::iter::once(len)));
        self.records += 1;
        Some(trim.apply(self.buffer.take_to(self.buffer.pos() + len), terminated))
    }

    /// Returns whether the unread bytes can be read as records.
    fn goes_on(&self) -> bool {
        !self.too_long && self.skip.is_none() && !matches!(self.state, State::Failed)
    }

    /// Returns the position after the next line, if the index does not know it.
    #[cold]
    fn find_line(&mut self) -> Result<Option<usize>> {
        if self.is_scanning() {
            // This is the rest of a line, after which values are usually scanned again: the index would search many
            // lines each time, just to find this one. It is used again from the next line on.
            let found = self.find_frame(&mut Lines::new())?;
            return Ok(found.map(|(len, _)| self.buffer.pos() + len));
        }
        self.check_resumed(&mut Lines::new())?;
        if matches!(self.state, State::Failed) {
            return Ok(None);
        }
        loop {
            if self.index.look_ahead(&self.buffer) {
                return Ok(self.index.next());
            }
            let unread = self.buffer.unread().len();
            // These bytes may still be its line ending.
            if unread > self.record_limit.saturating_add(2) {
                return self.stop_at_long_record(unread);
            }
            let scanned = self.index.scanned_ahead(&self.buffer);
            let more = self.read_more();
            // This runs after a cancelled wait too, because positions have moved anyway.
            self.index.carry(&self.buffer, scanned);
            if more? {
                continue;
            }
            return match unread > 0 && self.is_at_end() {
                true => Ok(Some(self.buffer.end())),
                false => self.finish_records().map(|()| None),
            };
        }
    }

    /// Handles a line that ends at position `end` and is the longest so far, or too long.
    #[cold]
    fn check_longest_line(&mut self, end: usize) -> Result<()> {
        let line = &self.buffer.unread()[..end - self.buffer.pos()];
        let terminated = line.ends_with(b"\n");
        let trim = Trim { head: 0, tail: 1, carriage_return: true };
        self.check_record(line.len(), trim.apply(line, terminated).len())
    }

    /// Records the length of a record and of its content. Returns an error if the content exceeds the limit.
    fn check_record(&mut self, len: usize, content: usize) -> Result<()> {
        if content > self.record_limit {
            return self.stop_at_long_record(content);
        }
        self.longest = self.longest.max(len);
        self.unremarkable = self.longest.min(self.record_limit);
        Ok(())
    }

    /// A record that was too long stays in the buffer until it is skipped, and a skip that has begun is completed:
    /// neither case may look like the end of the stream.
    fn check_resumed<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<()> {
        if self.skip.is_some() {
            self.skip_record(framer)?;
        }
        match self.too_long {
            true => Err(self.record_too_long(self.buffer.unread().len())),
            false => Ok(()),
        }
    }

    fn stop_at_long_record<T>(&mut self, found: usize) -> Result<T> {
        self.index.clear();
        self.too_long = true;
        Err(self.record_too_long(found))
    }

    fn record_too_long(&self, found: usize) -> Error {
        let error = Error::new(ErrorKind::RecordTooLong)
            .with_found(format!("{found} bytes without the end of the record"))
            .with_expected(format!("at most {}", self.record_limit));
        self.at_record(error, self.buffer.offset(), self.records)
    }

    /// Adds the place of a byte of a record of the last batch to an error: the source's name, the offset, the record, and the
    /// line and the column if they are known. The reader must not have been used since the batch.
    #[doc(hidden)] // for bindings, which keep the records of a batch
    #[must_use]
    pub fn locate_in_batch(&self, error: Error, record: usize, at: usize) -> Error {
        let error = error.with_name(&self.name);
        let count = self.offsets.len().saturating_sub(1);
        if self.batch_end != Some(self.buffer.pos()) || record >= count {
            return error;
        }
        let len = self.offsets[count] as usize;
        let bytes = self.buffer.consumed_from(self.buffer.pos() - len);
        let ends = self.offsets[1..].iter().map(|&end| end as usize);
        let first_record = self.records - count as u64;
        let inner = self.inner_lines.zip(self.record_lines.inside(bytes, ends));
        RecordPlaces {
            bytes,
            offsets: &self.offsets,
            position: (self.buffer.offset() - len as u64, first_record),
            first_line: inner.map(|(until_end, inside)| first_record + until_end - inside + 1),
            record_lines: self.record_lines,
        }
        .locate(error, record, at)
    }

    /// Adds the place of the last record to an error that was found in it: the source's name, its line in a text or its
    /// number, and its offset. Call it after [`next_line`](Reader::next_line), [`next_frame`](Reader::next_frame) or
    /// [`read_until`](Reader::read_until), before the reader is used again. An error that names a source stays
    /// unchanged.
    ///
    /// ```
    /// use millstream::{Reader, scan::{Separator, column}};
    /// let mut reader = Reader::memory("a 1\nb 2\nc x\n")?;
    /// let mut sum = 0;
    /// let error = loop {
    ///     let line = reader.next_line()?.expect("a line that is invalid");
    ///     match column::<u32>(line, 1, Separator::Space) {
    ///         Ok(number) => sum += number,
    ///         Err(error) => break reader.locate(error),
    ///     }
    /// };
    /// assert_eq!((sum, error.line(), error.column(), error.offset()), (3, Some(3), Some(3), Some(10)));
    /// assert_eq!(
    ///     error.without_advice().to_string(),
    ///     "memory: number invalid: found x, expected a u32 (0 to 4294967295), at line 3, column 3"
    /// );
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[must_use]
    pub fn locate(&self, error: Error) -> Error {
        if error.name().is_some() {
            return error;
        }
        match self.all_lines {
            true => self.in_last_line(error),
            false => error.in_record(None, self.records.saturating_sub(1), None, None).with_name(&self.name),
        }
    }

    /// Adds the place of the last record, which is a line, to an error that was found in it.
    fn in_last_line(&self, error: Error) -> Error {
        let kept = self.buffer.consumed_from(self.kept_from.min(self.buffer.pos()));
        let line = kept.strip_suffix(b"\n").unwrap_or(kept);
        let start = memchr::memrchr(b'\n', line).map_or(0, |newline| newline + 1);
        let offset = self.buffer.offset() - (kept.len() - start) as u64;
        let number = self.all_lines.then_some(self.records.max(1));
        error.in_record(Some(offset), self.records.saturating_sub(1), number, Some(0)).with_name(&self.name)
    }

    /// Returns the number in one column of the next line (the first column is 0), or `None` at the end. The content of
    /// the other columns does not matter; see [`scan::column`](crate::scan::column). Quotes have no meaning: for CSV with
    /// quotes use [`csv::Rows`](crate::csv::Rows).
    ///
    /// ```
    /// use millstream::{Reader, scan::Separator};
    /// let mut reader = Reader::memory("ann,31\nbob,42\n")?;
    /// let mut sum = 0;
    /// while let Some(age) = reader.next_column::<u32>(1, Separator::Byte(b','))? {
    ///     sum += age;
    /// }
    /// assert_eq!(sum, 73);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`next_line`](Reader::next_line) and of `scan::column`, with the line and the column in
    /// bytes. The line has been read in this case, and the next call continues after it.
    pub fn next_column<T: crate::scan::Number>(
        &mut self,
        column: usize,
        separator: crate::scan::Separator,
    ) -> Result<Option<T>> {
        let Some(line) = self.next_line()? else { return Ok(None) };
        match crate::scan::column(line, column, separator) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(self.in_last_line(error)),
        }
    }

    /// Returns the bytes before the next `delimiter` or before the end, or `None` at the end. For a delimiter of
    /// several bytes, see [`next_frame`](Reader::next_frame).
    ///
    /// # Errors
    /// Returns the errors of [`next_line`](Reader::next_line).
    pub fn read_until(&mut self, delimiter: u8) -> Result<Option<&[u8]>> {
        self.next_frame(&mut Delimiter::byte(delimiter))
    }

    /// Returns the next record, as found and trimmed by `framer`, or `None` at the end.
    ///
    /// ```
    /// use millstream::{Reader, frame::Delimiter};
    /// let mut reader = Reader::memory("a, b, c")?;
    /// let mut comma = Delimiter::bytes(", ")?;
    /// let mut letters = Vec::new();
    /// while let Some(letter) = reader.next_frame(&mut comma)? {
    ///     letters.push(letter.to_vec());
    /// }
    /// assert_eq!(letters, [b"a", b"b", b"c"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`next_line`](Reader::next_line), and the framer's errors, with their offset and record
    /// number. A framer's error ends the stream: if the announced length of a record is wrong, the start of the next
    /// one is unknown.
    pub fn next_frame<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<Option<&[u8]>> {
        let Some((len, terminated)) = self.find_frame(framer)? else { return Ok(None) };
        self.count_lines(framer.record_lines().inside(self.buffer.unread(), std::iter::once(len)));
        self.records += 1;
        let record = self.buffer.take_to(self.buffer.pos() + len);
        Ok(Some(framer.trim().apply(record, terminated)))
    }

    /// Finds the next record and checks it.
    fn find_frame<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<Option<(usize, bool)>> {
        self.settle();
        self.record_lines = framer.record_lines();
        self.check_resumed(framer)?;
        if matches!(self.state, State::Failed) {
            return Ok(None);
        }
        self.all_lines &= framer.finds_lines();
        let trim = framer.trim();
        let around = trim.head as usize + trim.tail as usize + usize::from(trim.carriage_return);
        let longest = self.record_limit.saturating_add(around);
        let mut resume = Resume::START;
        loop {
            let input = self.buffer.unread();
            if input.is_empty() {
                if self.read_more()? {
                    continue;
                }
                return self.finish().map(|()| None);
            }
            let eof = self.is_at_end();
            match framer.step(input, resume, eof) {
                Step::Record { len, .. } if len == 0 || len > input.len() => {
                    let error = no_record(len, input.len());
                    return self.stop_at_bad_record(error);
                }
                Step::Record { len, terminated } => {
                    let content = trim.apply(&input[..len], terminated).len();
                    self.check_record(len, content)?;
                    return Ok(Some((len, terminated)));
                }
                Step::More { resume: now, need } => {
                    let found = usize::try_from(need).unwrap_or(usize::MAX).max(input.len());
                    if found > longest {
                        return self.stop_at_long_record(found);
                    }
                    if eof {
                        let error = no_end(input.len(), need);
                        return self.stop_at_bad_record(error);
                    }
                    resume = now;
                    if !self.read_more()? && !self.is_at_end() {
                        // The source failed within this record.
                        return self.finish_records().map(|()| None);
                    }
                }
                Step::Bad(error) => {
                    let error = self.at_line(error.shift_offset(self.buffer.offset()), framer.record_lines());
                    self.finish()?;
                    let state = std::mem::replace(&mut self.state, State::Failed);
                    let stopped = self.stop_at_bad_record(error);
                    self.before_bad = Some(state);
                    return stopped;
                }
            }
        }
    }

    /// There is no further record. If the source failed, its failure is what cut the record short.
    fn stop_at_bad_record<T>(&mut self, error: Error) -> Result<T> {
        self.finish()?;
        let error = self.at_record(error, self.buffer.offset(), self.records);
        Err(self.fail(error))
    }

    /// Returns all records that are available, or `None` at the end. It waits only for the first record, never for a
    /// second one.
    ///
    /// The records of a batch are slices of one block of bytes; see [`Batch`].
    ///
    /// # Errors
    /// Returns the errors of [`next_frame`](Reader::next_frame). The records before an invalid one are delivered first.
    pub fn next_batch<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<Option<Batch<'_>>> {
        self.next_batch_of(framer, usize::MAX)
    }

    /// Like [`next_batch`](Reader::next_batch), but with at most `max` records, which must be at least 1.
    ///
    /// # Errors
    /// Fails like [`next_batch`](Reader::next_batch).
    pub fn next_batch_of<F: Framer + ?Sized>(&mut self, framer: &mut F, max: usize) -> Result<Option<Batch<'_>>> {
        self.settle();
        self.record_lines = framer.record_lines();
        self.check_resumed(framer)?;
        if matches!(self.state, State::Failed) {
            return Ok(None);
        }
        self.all_lines &= framer.finds_lines();
        let mut terminated = self.find_batch(framer, max);
        self.record_lines = framer.record_lines();
        if self.offsets.len() == 1 {
            // There is no complete record, or the first one is invalid or too long.
            let Some((len, is_terminated)) = self.find_frame(framer)? else { return Ok(None) };
            self.record_lines = framer.record_lines();
            // Usually more bytes arrived with it.
            terminated = self.find_batch(framer, max);
            if self.offsets.len() == 1 {
                // The record is longer than a batch.
                self.offsets.push(len as u32);
                terminated = is_terminated;
            } else {
                self.record_lines = framer.record_lines();
            }
        }
        let ends = self.offsets[1..].iter().map(|&end| end as usize);
        self.count_lines(self.record_lines.inside_batch(framer.inner_lines(), self.buffer.unread(), ends));
        self.records += self.offsets.len() as u64 - 1;
        let len = self.offsets[self.offsets.len() - 1] as usize;
        let most = BATCH_BYTES.min(self.buffer.unread().len());
        // The batch ended at its limit, not where the available records end.
        self.leaves_records = self.offsets.len() > max || (most == BATCH_BYTES && len < self.buffer.unread().len());
        let (offset, first_record) = (self.buffer.offset(), self.records - (self.offsets.len() as u64 - 1));
        self.batch_end = Some(self.buffer.pos() + len);
        let bytes = self.buffer.take_to(self.buffer.pos() + len);
        Ok(Some(
            Batch::new(bytes, &self.offsets, framer.trim(), terminated)
                .at(offset, first_record)
                .of_lines(self.all_lines)
                .of_call(framer.call()),
        ))
    }

    /// Makes the last `count` records of the last batch unread again. A loop over single records that stops in the
    /// middle of a batch calls this, so that the next call continues after the last record that was used. It must be
    /// the first call after the batch.
    ///
    /// ```
    /// use millstream::{Reader, frame::Lines};
    /// let mut reader = Reader::memory("header\none\ntwo\n")?;
    /// assert_eq!(reader.next_batch(&mut Lines::new())?.map(|batch| batch.len()), Some(3));
    /// reader.give_back(2)?;
    /// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    /// assert_eq!(reader.position().records, 2);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::ArgumentInvalid`] if the last batch had fewer records, or if the reader was used since.
    pub fn give_back(&mut self, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let had = match self.batch_end {
            Some(end) if end == self.buffer.pos() => self.offsets.len() - 1,
            _ => 0,
        };
        if count > had {
            return Err(Error::new(ErrorKind::ArgumentInvalid)
                .with_found(format!("{count} records to put back"))
                .with_expected(format!("at most {had}, which can be put back right after their batch"))
                .with_name(&self.name));
        }
        let len = self.offsets[had] - self.offsets[had - count];
        self.settle();
        self.buffer.give_back(len as usize);
        self.records -= count as u64;
        let ends = self.offsets[had - count..].iter().map(|&end| (end - self.offsets[had - count]) as usize).skip(1);
        let inner = self.record_lines.inside(self.buffer.unread(), ends);
        self.inner_lines = self.inner_lines.zip(inner).map(|(before, inner)| before - inner);
        self.leaves_records = true;
        Ok(())
    }

    /// Returns how long a caller that waits with [`waits_for`](Reader::waits_for) may wait now, before it calls
    /// [`stall`](Reader::stall): the stall timeout, or the rest of the total timeout if that is shorter. Returns `None`
    /// without a timeout.
    pub fn wait_limit(&self) -> Option<Duration> {
        self.supply.wait_limit()
    }

    /// Ends the stream with [`ErrorKind::Stalled`], or with [`ErrorKind::TimedOut`] if the total timeout has passed. The
    /// next call reports that once no complete record is left. This is for callers that wait with
    /// [`waits_for`](Reader::waits_for) and have waited longer than [`wait_limit`](Reader::wait_limit). Without a
    /// timeout, and after the end, this does nothing.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader};
    /// let timeout = std::time::Duration::from_secs(1);
    /// let mut reader = Reader::builder().stall_timeout(timeout).command(["sleep", "60"])?;
    /// reader.stall(); // an event loop has waited for a second
    /// assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Stalled);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn stall(&mut self) {
        if let (State::Open, Some(error)) = (&self.state, self.supply.too_late()) {
            self.supply.stop_if_late(&error);
            self.state = State::Ending(Some(error));
        }
    }

    /// Returns whether the next batch has to wait for the source. Programs that read from several readers in turn use
    /// this between two batches; it is not useful at any other time.
    pub fn waits(&self) -> Waits {
        match self.state {
            State::Open if !self.leaves_records => self.supply.waits(),
            _ => Waits::No,
        }
    }

    /// Returns the file descriptor that becomes readable when [`fill`](Reader::fill) has something to read or has
    /// reached the end, for an event loop that must not block. Returns `None` if there is no descriptor to wait for:
    /// for a file, a callback or a compressed stream, with a thread that reads ahead, and after the end.
    ///
    /// The descriptor belongs to the reader; the caller may poll it but must not read it. The next fill may still wait
    /// briefly: for the rest of a compressed stream's first bytes, to get more out of a fast pipe, or for a command
    /// that has closed its output to exit.
    ///
    /// ```
    /// let mut reader = millstream::Reader::command(["echo", "hello"])?;
    /// assert!(reader.waits_for().is_some());
    /// while reader.fill()? > 0 {}
    /// assert!(reader.waits_for().is_none());
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match self.state {
            State::Open => self.supply.waits_for(),
            _ => None,
        }
    }

    /// Returns the descriptor of a socket or device for which the next fill may wait, and for nothing else: no time limit
    /// applies, and no format or command has to be awaited.
    #[cfg(feature = "tokio")]
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.waits_for().filter(|_| self.wait_limit().is_none() && self.supply.is_device())
    }

    /// Returns a token that interrupts all waits from now on, for code that stops reading for good.
    #[doc(hidden)]
    pub fn interrupter(&mut self) -> Result<crate::CancelToken> {
        self.supply.interrupter()
    }

    /// Finds the offsets of the complete records in the buffer. Returns whether the last one is terminated.
    fn find_batch<F: Framer + ?Sized>(&mut self, framer: &mut F, max: usize) -> bool {
        self.offsets.clear();
        self.offsets.push(0);
        let unread = self.buffer.unread();
        let input = &unread[..unread.len().min(BATCH_BYTES)];
        let eof = self.is_at_end() && input.len() == unread.len();
        // The error is about the first record after the batch: the next call finds it again.
        let terminated = framer.batch(input, eof, max.max(1), &mut self.offsets).unwrap_or(true);
        match self.offsets.len() {
            1 => terminated,
            _ => self.check_batch(framer.trim(), terminated),
        }
    }

    /// Records the longest record of a batch, and ends the batch before a record that exceeds the limit. `terminated`
    /// and the result state whether the last record is terminated.
    fn check_batch(&mut self, trim: Trim, mut terminated: bool) -> bool {
        let longest = self.offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize;
        if longest > self.record_limit {
            let last = self.offsets.len() - 2;
            let bytes = self.buffer.unread();
            let is_too_long = |(i, pair): (usize, &[u32])| {
                let record = &bytes[pair[0] as usize..pair[1] as usize];
                trim.apply(record, terminated || i < last).len() > self.record_limit
            };
            if let Some(first) = self.offsets.windows(2).enumerate().position(is_too_long) {
                terminated = true; // the records before it are
                self.offsets.truncate(first + 1);
            }
        }
        self.longest = self.longest.max(longest.min(self.record_limit));
        terminated
    }

    /// Skips one record of any length, and returns whether there was one. After [`ErrorKind::RecordTooLong`] it skips
    /// the record that was too long, and the reader continues after it. So it does after an invalid record if the framer
    /// finds the end of it, as [`Csv`](crate::frame::Csv) does ([`Framer::skip`]).
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader, frame::Lines};
    /// let mut reader = Reader::builder().record_limit(3).memory("one\nthree\ntwo\n")?;
    /// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    /// let error = reader.next_line().unwrap_err();
    /// assert_eq!((error.kind(), error.record(), error.offset()), (ErrorKind::RecordTooLong, Some(1), Some(4)));
    /// assert!(reader.skip_record(&mut Lines::new())?);
    /// assert_eq!(reader.next_line()?, Some(&b"two"[..]));
    /// assert_eq!(reader.position().records, 3);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`next_frame`](Reader::next_frame), except for the record's length.
    pub fn skip_record<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<bool> {
        self.skip_frame(framer, true, &mut |_, _| {}).map(|skipped| skipped == Some(true))
    }

    /// Skips one record like [`skip_record`](Reader::skip_record), and sets `content` to its content, of which at most `most`
    /// bytes are kept. Returns the number of all its bytes, or `None` at the end.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader, frame::Csv};
    /// let mut reader = Reader::memory("1,a\n2,b\"c\n3,d\n")?;
    /// let (mut csv, mut bad) = (Csv::new(), Vec::new());
    /// assert_eq!(reader.next_frame(&mut csv)?, Some(&b"1,a"[..]));
    /// assert_eq!(reader.next_frame(&mut csv).unwrap_err().kind(), ErrorKind::CsvInvalid);
    /// assert_eq!(reader.skip_record_into(&mut csv, &mut bad, 1000)?, Some(6));
    /// assert_eq!(bad, b"2,b\"c");
    /// assert_eq!(reader.next_frame(&mut csv)?, Some(&b"3,d"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`skip_record`](Reader::skip_record).
    pub fn skip_record_into<F: Framer + ?Sized>(
        &mut self,
        framer: &mut F,
        content: &mut Vec<u8>,
        most: usize,
    ) -> Result<Option<u64>> {
        content.clear();
        let trim = framer.trim();
        let around = trim.head as usize + trim.tail as usize + usize::from(trim.carriage_return);
        let longest = most.saturating_add(around);
        let (mut len, mut is_terminated) = (0, false);
        let is_skipped = self.skip_frame(framer, true, &mut |bytes, terminated| {
            len += bytes.len() as u64;
            content.extend_from_slice(&bytes[..bytes.len().min(longest - content.len())]);
            is_terminated = terminated;
        })?;
        let is_whole = content.len() as u64 == len;
        let end = trim.head as usize + trim.apply(content, is_terminated && is_whole).len();
        content.truncate(end.min(trim.head as usize + most));
        content.drain(..content.len().min(trim.head as usize));
        Ok((is_skipped == Some(true)).then_some(len))
    }

    /// Skips what [`buffer`](Reader::buffer) has of one record, without reading, and returns whether that was all of it.
    /// Otherwise the next call of this function or of [`skip_record`](Reader::skip_record) skips the rest. This is for
    /// programs that wait for [`waits_for`](Reader::waits_for) themselves.
    ///
    /// ```
    /// use millstream::{Reader, frame::Lines};
    /// let mut reader = Reader::builder().capacity(4).from_read(&b"a long line\nb\n"[..])?;
    /// while !reader.skip_buffered(&mut Lines::new())? {
    ///     reader.fill()?;
    /// }
    /// assert_eq!(reader.next_line()?, Some(&b"b"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the framer.
    pub fn skip_buffered<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<bool> {
        self.skip_frame(framer, false, &mut |_, _| {}).map(|skipped| skipped == Some(true))
    }

    /// Skips one record. Returns whether there was one, or `None` if `reads` is false and its end is not in the buffer.
    /// `dropped` receives its bytes in pieces, and with the last one whether it ends with the delimiter.
    fn skip_frame<F: Framer + ?Sized>(
        &mut self,
        framer: &mut F,
        reads: bool,
        dropped: &mut dyn FnMut(&[u8], bool),
    ) -> Result<Option<bool>> {
        self.settle();
        if let Some(state) = self.before_bad.take() {
            (self.state, self.failure) = (state, None);
        }
        let begins = Skip { start: self.buffer.offset(), line_ends: 0, left: 0, resume: Resume::START };
        let mut skip = self.skip.take().unwrap_or(begins);
        let skipped = self.skip_rest(framer, &mut skip, reads, dropped);
        let interrupted = match &skipped {
            // A record of which nothing has been skipped remains as it is.
            Ok(None) if self.buffer.offset() == skip.start => return skipped,
            Ok(None) => true,
            Err(error) => error.kind() == ErrorKind::Cancelled,
            Ok(Some(_)) => false,
        };
        // Until the rest is skipped too, that rest must not be returned as a record.
        self.too_long = interrupted;
        self.skip = interrupted.then_some(skip);
        skipped
    }

    fn skip_rest<F: Framer + ?Sized>(
        &mut self,
        framer: &mut F,
        skip: &mut Skip,
        reads: bool,
        dropped: &mut dyn FnMut(&[u8], bool),
    ) -> Result<Option<bool>> {
        self.all_lines &= framer.finds_lines();
        loop {
            let lines = framer.record_lines();
            let input = self.buffer.unread();
            if skip.left > 0 {
                let count = input.len().min(usize::try_from(skip.left).unwrap_or(usize::MAX));
                dropped(&input[..count], false);
                self.buffer.consume(count);
                skip.left -= count as u64;
                if skip.left == 0 {
                    self.end_skip(skip, lines, true);
                    return Ok(Some(true));
                }
                if !reads {
                    return Ok(None);
                }
                if !self.read_more()? {
                    let found = self.buffer.offset() - skip.start;
                    return self.stop_at_bad_record(
                        Error::new(ErrorKind::FrameTruncated)
                            .with_found(format!("{found} bytes"))
                            .with_expected(format!("{} bytes", found + skip.left))
                            .with_offset(skip.start),
                    );
                }
            } else if input.is_empty() {
                if !reads {
                    return Ok(None);
                }
                if self.read_more()? {
                    continue;
                }
                // The bytes skipped so far were the last record.
                if self.buffer.offset() == skip.start {
                    return self.finish().map(|()| Some(false));
                }
                self.end_skip(skip, lines, false);
                return Ok(Some(true));
            } else {
                let eof = self.is_at_end();
                let step = framer.skip(input, skip.resume, eof);
                let lines = framer.record_lines();
                match step {
                    Step::Record { len, .. } if len == 0 || len > input.len() => {
                        let error = no_record(len, input.len()).with_offset(skip.start);
                        return self.stop_at_bad_record(error);
                    }
                    Step::Record { len, terminated } => {
                        let record = &input[..len];
                        dropped(record, terminated);
                        skip.line_ends += line_ends(lines, record);
                        let ends_line = line_ends(lines, &record[len - 1..]) > 0;
                        self.buffer.consume(len);
                        self.end_skip(skip, lines, ends_line);
                        return Ok(Some(true));
                    }
                    Step::More { need, .. } if need > 0 => skip.left = need,
                    Step::More { .. } if eof => {
                        let error = no_end(input.len(), 0).with_offset(skip.start);
                        return self.stop_at_bad_record(error);
                    }
                    Step::More { resume, .. } => {
                        // The record's delimiter may begin in the bytes that have not been scanned.
                        let scanned = &input[..resume.scanned()];
                        dropped(scanned, false);
                        skip.line_ends += line_ends(lines, scanned);
                        self.buffer.consume(resume.scanned());
                        skip.resume = resume.dropped();
                        if !reads {
                            return Ok(None);
                        }
                        if !self.read_more()? && !self.is_at_end() {
                            return self.finish_records().map(|()| Some(false));
                        }
                    }
                    Step::Bad(error) => {
                        let error = error.shift_offset(self.buffer.offset()).with_offset(skip.start);
                        return self.stop_at_bad_record(error);
                    }
                }
            }
        }
    }

    /// Counts a skipped record, and its lines.
    fn end_skip(&mut self, skip: &Skip, lines: RecordLines, ends_line: bool) {
        self.records += 1;
        self.count_lines(match lines {
            RecordLines::Unknown => None,
            RecordLines::One => Some(0),
            RecordLines::Several(_) => Some(skip.line_ends - u64::from(ends_line && skip.line_ends > 0)),
        });
    }
}

/// Returns the number of line ends in these bytes, if records are several lines.
fn line_ends(lines: RecordLines, bytes: &[u8]) -> u64 {
    match lines {
        RecordLines::Several(line_end) => memchr::memchr_iter(line_end, bytes).count() as u64,
        RecordLines::Unknown | RecordLines::One => 0,
    }
}

/// Returns the error for a framer that returns an impossible record.
fn no_record(len: usize, there: usize) -> Error {
    Error::new(ErrorKind::LengthInvalid)
        .with_found(format!("a framer that finds a record of {len} bytes"))
        .with_expected(format!("1 to {there} bytes, the ones available"))
}

/// Returns the error for a framer that asks for more bytes at the end.
fn no_end(there: usize, need: u64) -> Error {
    Error::new(ErrorKind::FrameTruncated)
        .with_found(format!("the end of the stream after {there} bytes of a record"))
        .with_expected(match need {
            0 => "a framer that ends the record there".to_string(),
            _ => format!("{need} bytes"),
        })
}

/// Methods for the position, the progress and the end.
impl Reader {
    /// Returns the name of the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current position.
    pub fn position(&self) -> Position {
        Position { bytes: self.buffer.offset(), records: self.records + self.lines_scanned() }
    }

    /// Returns the progress so far.
    pub fn progress(&self) -> Progress {
        Progress {
            bytes: self.buffer.offset() - self.start.bytes,
            records: self.records + self.lines_scanned() - self.start.records,
            source_bytes: self.meter.bytes.load(Ordering::Relaxed),
            source_size: self.meter.size,
            elapsed: self.meter.opened.elapsed(),
            waited: self.supply.waited,
            longest_record: self.longest,
            format: self.meter.format.get().copied(),
        }
    }

    /// Returns a handle that another thread can query, even while this one waits for the source.
    pub fn progress_handle(&self) -> ProgressHandle {
        ProgressHandle(self.meter.clone())
    }

    fn observe(&mut self) {
        if self.observer.as_ref().is_some_and(|observer| observer.last.elapsed() >= observer.interval) {
            self.observe_now();
        }
    }

    fn observe_now(&mut self) {
        let progress = self.observer.is_some().then(|| self.progress());
        if let (Some(observer), Some(progress)) = (&mut self.observer, progress) {
            observer.last = Instant::now();
            (observer.call.lock().unwrap_or_else(PoisonError::into_inner))(&progress);
        }
    }

    /// Returns whether the stream has ended: a call has reported the end, or an error after which there is nothing more.
    /// If it has not, closing or dropping the reader stops its commands.
    ///
    /// ```
    /// let mut reader = millstream::Reader::command(["echo", "hello"])?;
    /// assert_eq!(reader.next_line()?, Some(&b"hello"[..]));
    /// assert!(!reader.has_ended());
    /// assert_eq!(reader.next_line()?, None);
    /// assert!(reader.has_ended());
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended | State::Failed)
    }

    /// Returns how all of the source's commands ended. This is known after the end, and after an error that a command
    /// caused.
    pub fn command_ends(&self) -> &[CommandEnd] {
        &self.ends
    }

    /// Closes the reader at the current position, and returns how the source's commands ended.
    ///
    /// Before the end of the stream, this closes the reading end of the pipe. A command that is still running after a
    /// second gets SIGTERM, and after another second SIGKILL; if a time limit ended the stream, it got SIGTERM at that
    /// time. If a source is not read to its end, a failed command is not an error; the result contains its status.
    ///
    /// ```
    /// let mut reader = millstream::Reader::command(["yes"])?;
    /// assert_eq!(reader.next_line()?, Some(&b"y"[..]));
    /// let ends = reader.close()?;
    /// assert_eq!(ends[0].status.to_string(), "was killed by signal 13 (SIGPIPE)");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns again the error that ended the stream, so that an ignored failure is not lost. [`ErrorKind::Stalled`]
    /// and [`ErrorKind::TimedOut`], which the caller's time limits cause, are returned only if no call has returned
    /// them yet.
    pub fn close(mut self) -> Result<Vec<CommandEnd>> {
        self.try_close()?;
        Ok(std::mem::take(&mut self.ends))
    }

    /// Closes the reader like [`close`](Reader::close), for callers that need to know how the commands ended even after
    /// an error. Afterwards, [`command_ends`](Reader::command_ends) returns that information. No more bytes are read.
    ///
    /// ```
    /// let mut reader = millstream::Reader::command(["sh", "-c", "echo one; exit 3"])?;
    /// while reader.next_line().unwrap_or(None).is_some() {} // overlooks the failure
    /// assert_eq!(reader.try_close().unwrap_err().kind(), millstream::ErrorKind::CommandFailed);
    /// assert_eq!(reader.command_ends()[0].status.to_string(), "exited with status 3");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`close`](Reader::close).
    pub fn try_close(&mut self) -> Result<()> {
        // If the end has been reached, but no call has reported it yet, this one does.
        let ended = match self.state {
            State::Ending(_) if self.buffer.unread().is_empty() => self.finish(),
            _ => Ok(()),
        };
        if self.ends.is_empty() {
            // The commands have not been waited for: the end has not been reached, or an error occurred that no command
            // caused.
            self.supply.close(&mut self.ends);
        }
        self.state = State::Failed;
        ended.and_then(|()| self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.again())))
    }
}

/// Closing without waiting.
impl Reader {
    /// Closes the reader at the current position without waiting, for a finalizer, which must not delay its program.
    /// This closes the reading end of the pipe. A command that is still running gets SIGTERM immediately, and after two
    /// seconds a separate thread kills it with SIGKILL. No more bytes are read, and no status is available.
    ///
    /// ```
    /// let mut reader = millstream::Reader::command(["sleep", "60"])?;
    /// reader.abort();
    /// assert_eq!(reader.next_line()?, None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn abort(&mut self) {
        self.supply.abandon();
        self.state = State::Failed;
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let unread = self.fill_buf()?;
        let count = unread.len().min(out.len());
        out[..count].copy_from_slice(&unread[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.buffer.unread().is_empty() {
            self.fill()?;
        }
        Ok(self.buffer.unread())
    }

    fn consume(&mut self, count: usize) {
        Reader::consume(self, count);
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("name", &self.name).field("position", &self.position()).finish_non_exhaustive()
    }
}

/// Adds the remaining bytes of a record to the error of a source that failed inside that record.
fn with_unfinished(error: Error, rest: &[u8]) -> Error {
    let first = &rest[..rest.len().min(SHOWN)];
    let more = if first.len() < rest.len() { "..." } else { "" };
    let bytes = if rest.len() == 1 { "byte" } else { "bytes" };
    let unfinished = format!("{} {bytes} of an unfinished record, \"{}\"{more}", rest.len(), first.escape_ascii());
    let found = match error.found() {
        Some(found) => format!("{found}, and {unfinished}"),
        None => unfinished,
    };
    error.with_found(found)
}
