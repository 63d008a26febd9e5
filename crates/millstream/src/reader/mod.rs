//! The reading end: one linear buffer, filled from a source, out of which records are taken.
//!
//! It promises: every byte that the source delivered is delivered; then the end, if the source succeeded, or one
//! error that says how it failed, and a plain end after that. A record is handed out as soon as it is there.
//! Memory is bounded by the buffer, the read-ahead and the longest record, which has a limit.
//!
//! It knows no records: [`frame`](crate::frame) finds them.

mod builder;
mod handover;
mod index;
mod scan;
mod supply;

use std::io::{BufRead, Read};
use std::net::ToSocketAddrs;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use builder::{Decode, DecodeLimit, Follow, Latency, ReadAhead, ReaderBuilder};
pub use scan::Values;

use crate::buffer::Buffer;
use crate::command::Command;
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::format::Format;
use crate::frame::{Batch, Delimiter, Framer, Lines, Step, Trim};
use index::LineIndex;
use scan::Scanning;
use supply::Supply;
pub use supply::Waits;

/// How much of the buffer one batch covers at most: what fits the second-level cache with its offsets.
const BATCH_BYTES: usize = 256 << 10;

/// Reads a source record by record.
///
/// One at a time, without a copy:
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
/// In batches, faster still:
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
/// Dropping a reader before its end stops its commands as [`close`](Reader::close) does, which may take two seconds,
/// and reports nothing. For borrowed memory there are the framers: a reader owns what it reads.
pub struct Reader {
    buffer: Buffer,
    index: LineIndex,
    scanning: Scanning,
    records: u64,
    /// The longest record so far.
    longest: usize,
    /// A line of this length or less is neither the longest nor too long.
    unremarkable: usize,
    supply: Supply,
    state: State,
    /// A record was too long: nothing follows it until it is skipped.
    too_long: bool,
    /// The record that is being skipped, where a token has ended that in its middle.
    skip: Option<Skip>,
    /// The beginning of a document whose reading a token has ended in its middle, and the offset behind that.
    begun: (Vec<u8>, u64),
    /// The offsets of the last batch.
    offsets: Vec<u32>,
    /// Whether the last batch has left records in the buffer.
    leaves_records: bool,
    record_limit: usize,
    name: String,
    meter: Meter,
    observer: Option<Observer>,
    ends: Vec<CommandEnd>,
}

/// What the source tells of itself while it is read, perhaps on another thread.
#[derive(Clone, Debug)]
struct Meter {
    opened: Instant,
    bytes: Arc<AtomicU64>,
    format: Arc<OnceLock<Format>>,
    size: Option<u64>,
    /// The source is lent memory: what is revealed is read.
    lent: bool,
}

enum State {
    /// There may be more bytes.
    Open,
    /// There are no more bytes. At their end, whether the source succeeded is asked when all of them are
    /// consumed; an error waits until all whole records are.
    Ending(Option<Error>),
    /// The end has been reported. Bytes that [`Reader::fill`] has left unread are still records.
    Ended,
    /// An error has been reported. What is still unread is no record.
    Failed,
}

/// How far the skipping of a record has come.
#[derive(Clone, Copy)]
struct Skip {
    /// The offset where the record begins.
    start: u64,
    /// How many of its bytes are left; 0 where its length is not known.
    left: usize,
}

struct Observer {
    interval: Duration,
    last: Instant,
    call: Box<dyn FnMut(&Progress) + Send>,
}

/// Where a reader is, from the start of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes consumed, after decoding.
    pub bytes: u64,
    /// Records taken or skipped.
    pub records: u64,
}

/// How a reader gets on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes consumed, after decoding.
    pub bytes: u64,
    /// Records taken or skipped.
    pub records: u64,
    /// Bytes read from the source, before decoding.
    pub source_bytes: u64,
    /// How many of these there are in all, where that is known.
    pub source_size: Option<u64>,
    /// Since the reader was opened.
    pub elapsed: Duration,
    /// For how long the consumer has waited for bytes.
    pub waited: Duration,
    /// The longest record so far, in bytes, with its delimiter or prefix.
    pub longest_record: usize,
    /// How the source is compressed.
    pub format: Option<Format>,
}

/// How the source of a reader gets on, for any thread and at any time: also while the reader waits, when its observer is
/// not called, and after it is closed. Made by [`Reader::progress_handle`].
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
    /// Bytes read from the source so far, before decoding.
    pub fn source_bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// How many of these there are in all, where that is known.
    pub fn source_size(&self) -> Option<u64> {
        self.0.size
    }

    /// Since the reader was opened.
    pub fn elapsed(&self) -> Duration {
        self.0.opened.elapsed()
    }

    /// How the source is compressed, once that is known.
    pub fn format(&self) -> Option<Format> {
        self.0.format.get().copied()
    }
}

/// Opening. Each of these is also a method of the [builder](Reader::builder), which has the options.
impl Reader {
    /// A reader with options.
    pub fn builder() -> ReaderBuilder {
        ReaderBuilder::default()
    }

    /// Reads a file, FIFO or device.
    pub fn path(path: impl AsRef<Path>) -> Result<Reader> {
        Reader::builder().path(path)
    }

    /// Reads standard input.
    pub fn stdin() -> Result<Reader> {
        Reader::builder().stdin()
    }

    /// Reads a file descriptor and closes it.
    pub fn fd(fd: impl Into<OwnedFd>) -> Result<Reader> {
        Reader::builder().fd(fd)
    }

    /// Reads a file descriptor that stays open: a duplicate of it.
    pub fn borrow_fd(fd: impl AsFd) -> Result<Reader> {
        Reader::builder().borrow_fd(fd)
    }

    /// Starts a command and reads its standard output. The end of the stream is its end of file *and* exit status
    /// 0; anything else is [`ErrorKind::CommandFailed`], after every byte it wrote. See [`ReaderBuilder::command`].
    pub fn command(command: impl Into<Command>) -> Result<Reader> {
        Reader::builder().command(command)
    }

    /// Starts commands, each reading what the one before writes, and reads the last one's standard output.
    pub fn pipeline<C: Into<Command>>(commands: impl IntoIterator<Item = C>) -> Result<Reader> {
        Reader::builder().pipeline(commands)
    }

    /// Starts a line of shell and reads its standard output. Never pass it what a user typed or a file name.
    pub fn shell(line: impl AsRef<std::ffi::OsStr>) -> Result<Reader> {
        Reader::builder().shell(line)
    }

    /// Connects to a TCP server and reads what it sends.
    pub fn tcp(address: impl ToSocketAddrs + std::fmt::Display) -> Result<Reader> {
        Reader::builder().tcp(address)
    }

    /// Connects to a Unix socket and reads what it sends.
    pub fn unix(path: impl AsRef<Path>) -> Result<Reader> {
        Reader::builder().unix(path)
    }

    /// Reads any `std::io::Read`.
    pub fn from_read(read: impl Read + Send + 'static) -> Result<Reader> {
        Reader::builder().from_read(read)
    }

    /// Reads what a callback puts into the slice it is given; it returns how many bytes, 0 at the end.
    pub fn callback(fill: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'static) -> Result<Reader> {
        Reader::builder().callback(fill)
    }

    /// Reads memory, without a copy.
    pub fn memory(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Reader> {
        Reader::builder().memory(bytes)
    }

    /// Maps a regular file and reads it, without a copy. It must not shrink meanwhile.
    pub fn mapped(path: impl AsRef<Path>) -> Result<Reader> {
        Reader::builder().mapped(path)
    }
}

/// Bytes.
impl Reader {
    /// Reads at least one more byte behind the unread ones, and returns how many; 0 is the end, and says that
    /// the source succeeded. The unread bytes stay; their addresses change.
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
    /// How the source failed, once; [`ErrorKind::RecordTooLong`] when more bytes than the record limit are
    /// unread, which can be consumed.
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

    /// The unread bytes.
    #[inline]
    pub fn buffer(&self) -> &[u8] {
        self.buffer.unread()
    }

    /// Takes `count` bytes from the front of [`buffer`](Reader::buffer).
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.settle();
        if count > 0 {
            // Who takes bytes of a record that is too long says where the next one begins.
            self.too_long = false;
            self.skip = None;
        }
        self.buffer.consume(count);
    }

    /// Consumes all of [`buffer`](Reader::buffer) without copying it: the reader goes on in `memory`, and `memory` becomes what
    /// it had, with those bytes in the range that is returned. For who hands them to another thread.
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
        (self.too_long, self.skip) = (false, None);
        self.buffer.exchange(memory)
    }

    /// Keeps the beginning of a document, which ends here.
    pub(crate) fn keep_begun(&mut self, bytes: Vec<u8>) {
        self.begun = (bytes, self.buffer.offset());
    }

    /// The beginning that was kept, unless something behind it has been taken since; empty where there is none.
    pub(crate) fn take_begun(&mut self) -> Vec<u8> {
        let (bytes, end) = std::mem::take(&mut self.begun);
        if end == self.buffer.offset() { bytes } else { Vec::new() }
    }

    /// Reads once. False: there are no more bytes, and [`finish`](Reader::finish) knows why.
    fn read_more(&mut self) -> Result<bool> {
        if !matches!(self.state, State::Open) {
            return Ok(false);
        }
        self.observe();
        // What a delimiter may add to the longest record, and a byte that shows that it goes on.
        let max = self.record_limit.saturating_add(64);
        match self.supply.fill(&mut self.buffer, max) {
            Ok(0) => self.state = State::Ending(None),
            Ok(_) => {
                if self.meter.lent {
                    let revealed = self.buffer.offset() + self.buffer.unread().len() as u64;
                    self.meter.bytes.store(revealed, Ordering::Relaxed);
                }
                return Ok(true);
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(self.locate(error)),
            Err(error) => self.state = State::Ending(Some(error)),
        }
        Ok(false)
    }

    /// At the end of the bytes: reports how it came, once.
    fn finish(&mut self) -> Result<()> {
        if self.is_at_end() {
            self.count_open_line();
        }
        let State::Ending(error) = &mut self.state else { return Ok(()) };
        let result = match error.take() {
            Some(error) => Err(error),
            None => self.supply.finish(&mut self.ends),
        };
        match result {
            Ok(()) => {
                self.state = State::Ended;
                self.observe_now();
                Ok(())
            }
            Err(error) => {
                if error.kind() != ErrorKind::Cancelled {
                    self.state = State::Failed;
                }
                Err(self.locate(error))
            }
        }
    }

    /// Forgets what only the next line or the next value would have used.
    #[inline]
    fn settle(&mut self) {
        self.index.clear();
        if self.is_scanning() {
            self.end_scanning();
        }
    }

    /// Adds the name and where we are.
    fn locate(&self, error: Error) -> Error {
        let end = self.buffer.offset() + self.buffer.unread().len() as u64;
        error.with_name(&self.name).with_offset(end)
    }

    /// Whether the unread bytes are the stream's last: not if an error cut it off.
    fn is_at_end(&self) -> bool {
        matches!(self.state, State::Ending(None) | State::Ended)
    }
}

/// Records.
impl Reader {
    /// The next line, without its `\n` or `\r\n`; `None` at the end, which says that the source succeeded.
    /// (After an error has been reported, `None` says only that there is nothing more.)
    ///
    /// The last line need not end in a newline. Any bytes are fine: [`frame::text`](crate::frame::text) checks
    /// for UTF-8 where text is needed.
    ///
    /// # Errors
    /// How the source failed, once, after all it delivered; [`ErrorKind::RecordTooLong`], which
    /// [`skip_record`](Reader::skip_record) gets over.
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

    /// The next line, if the buffer has all of it: this never reads. `None` says nothing about the end, which is for
    /// [`next_line`](Reader::next_line) to say, as is what goes wrong.
    ///
    /// It is for those who give something up while they wait, such as a lock of their language's, and need not where
    /// nothing has to be waited for.
    ///
    /// ```
    /// let mut reader = millstream::Reader::memory("one\ntwo\nthree")?;
    /// assert_eq!(reader.buffered_line(), None);
    /// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    /// assert_eq!(reader.buffered_line(), Some(&b"two"[..]));
    /// assert_eq!(reader.buffered_line(), None); // the bytes that are left may be part of a longer line
    /// assert_eq!(reader.next_line()?, Some(&b"three"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[inline]
    pub fn buffered_line(&mut self) -> Option<&[u8]> {
        let end = match self.index.next() {
            Some(end) => end,
            None => self.find_buffered_line()?,
        };
        if end - self.buffer.pos() > self.unremarkable && self.check_longest_line(end).is_err() {
            return None;
        }
        self.records += 1;
        Some(match self.buffer.take_to(end) {
            [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
            line => line,
        })
    }

    #[cold]
    fn find_buffered_line(&mut self) -> Option<usize> {
        if self.is_scanning() || !self.goes_on() || !self.index.look_ahead(&self.buffer) {
            return None;
        }
        self.index.next()
    }

    /// The next record, if the buffer has all of it: as [`buffered_line`](Reader::buffered_line), for any framer.
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
        let Step::Record { len, terminated } = framer.step(self.buffer.unread(), 0, false) else { return None };
        let trim = framer.trim();
        let content = trim.apply(&self.buffer.unread()[..len], terminated).len();
        self.check_record(len, content).ok()?;
        self.records += 1;
        Some(trim.apply(self.buffer.take_to(self.buffer.pos() + len), terminated))
    }

    /// Whether nothing stands between the unread bytes and their being records.
    fn goes_on(&self) -> bool {
        !self.too_long && self.skip.is_none() && !matches!(self.state, State::Failed)
    }

    /// The position after the next line, where the index does not know it.
    #[cold]
    fn find_line(&mut self) -> Result<Option<usize>> {
        if self.is_scanning() {
            // The rest of a line, after which values are scanned again as a rule: the index would look at many lines
            // for this one, each time. From the next line on it is used.
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
            // Two bytes may still be its line end.
            if unread > self.record_limit.saturating_add(2) {
                return self.stop_at_long_record(unread);
            }
            let scanned = self.index.scanned_ahead(&self.buffer);
            let more = self.read_more();
            // Also after a wait that was cancelled: positions have moved all the same.
            self.index.carry(&self.buffer, scanned);
            if more? {
                continue;
            }
            return match unread > 0 && self.is_at_end() {
                true => Ok(Some(self.buffer.end())),
                false => self.finish().map(|()| None),
            };
        }
    }

    /// The line that ends at the position `end` is the longest so far, or too long.
    #[cold]
    fn check_longest_line(&mut self, end: usize) -> Result<()> {
        let line = &self.buffer.unread()[..end - self.buffer.pos()];
        let terminated = line.ends_with(b"\n");
        let trim = Trim { head: 0, tail: 1, carriage_return: true };
        self.check_record(line.len(), trim.apply(line, terminated).len())
    }

    /// Notes the length of a record, and its content's: an error if that is over the limit.
    fn check_record(&mut self, len: usize, content: usize) -> Result<()> {
        if content > self.record_limit {
            return self.stop_at_long_record(content);
        }
        self.longest = self.longest.max(len);
        self.unremarkable = self.longest.min(self.record_limit);
        Ok(())
    }

    /// A record that was too long is still there until it is skipped, and one that is being skipped is skipped to
    /// its end: neither may look like the end of the stream.
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
        Error::new(ErrorKind::RecordTooLong)
            .with_found(format!("{found} bytes without its end"))
            .with_expected(format!("at most {}", self.record_limit))
            .with_name(&self.name)
            .with_offset(self.buffer.offset())
            .with_record(self.records)
    }

    /// The bytes before the next `delimiter`, or before the end; `None` at the end. For another delimiter than
    /// one byte, see [`next_frame`](Reader::next_frame).
    ///
    /// # Errors
    /// As [`next_line`](Reader::next_line).
    pub fn read_until(&mut self, delimiter: u8) -> Result<Option<&[u8]>> {
        self.next_frame(&mut Delimiter::byte(delimiter))
    }

    /// The next record, as `framer` finds and trims it; `None` at the end.
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
    /// As [`next_line`](Reader::next_line); and what `framer` complains of, with offset and record, which is
    /// the end: where one record of announced length is wrong, nobody knows where the next begins.
    pub fn next_frame<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<Option<&[u8]>> {
        let Some((len, terminated)) = self.find_frame(framer)? else { return Ok(None) };
        self.records += 1;
        let record = self.buffer.take_to(self.buffer.pos() + len);
        Ok(Some(framer.trim().apply(record, terminated)))
    }

    /// Takes the first `len` unread bytes as `count` records, which somebody else has found; the longest has `longest`.
    #[inline]
    pub(crate) fn take_records(&mut self, len: usize, count: u64, longest: usize) -> &[u8] {
        self.settle();
        (self.too_long, self.skip) = (false, None);
        self.records += count;
        self.longest = self.longest.max(longest);
        self.buffer.take_to(self.buffer.pos() + len)
    }

    /// The longest record that may be, in bytes.
    pub(crate) fn record_limit(&self) -> usize {
        self.record_limit
    }

    /// Finds the next record and checks it.
    fn find_frame<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<Option<(usize, bool)>> {
        self.settle();
        self.check_resumed(framer)?;
        if matches!(self.state, State::Failed) {
            return Ok(None);
        }
        let trim = framer.trim();
        let around = trim.head as usize + trim.tail as usize + usize::from(trim.carriage_return);
        let longest = self.record_limit.saturating_add(around);
        let mut scanned = 0;
        loop {
            let input = self.buffer.unread();
            if input.is_empty() {
                if self.read_more()? {
                    continue;
                }
                return self.finish().map(|()| None);
            }
            match framer.step(input, scanned, self.is_at_end()) {
                Step::Record { len, terminated } => {
                    let content = trim.apply(&input[..len], terminated).len();
                    self.check_record(len, content)?;
                    return Ok(Some((len, terminated)));
                }
                Step::More { scanned: now, need } => {
                    let found = need.max(input.len());
                    if found > longest {
                        return self.stop_at_long_record(found);
                    }
                    scanned = now;
                    if !self.read_more()? && !self.is_at_end() {
                        // An error cut the stream off within this record.
                        return self.finish().map(|()| None);
                    }
                }
                Step::Bad(error) => return self.stop_at_bad_record(error),
            }
        }
    }

    /// A record that is none: the end. If the source failed, that is the cause of a record cut short.
    fn stop_at_bad_record<T>(&mut self, error: Error) -> Result<T> {
        self.finish()?;
        self.state = State::Failed;
        Err(error.with_name(&self.name).with_offset(self.buffer.offset()).with_record(self.records))
    }

    /// The next records, as many as are there: waits for one, never for a second. `None` at the end.
    ///
    /// Within a batch a record is a piece of one block of bytes; see [`Batch`].
    ///
    /// # Errors
    /// As [`next_frame`](Reader::next_frame). The records before a bad one are delivered first.
    pub fn next_batch<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<Option<Batch<'_>>> {
        self.next_batch_of(framer, usize::MAX)
    }

    /// The same, with at most `max` records, which is at least 1.
    pub fn next_batch_of<F: Framer + ?Sized>(&mut self, framer: &mut F, max: usize) -> Result<Option<Batch<'_>>> {
        self.settle();
        self.check_resumed(framer)?;
        if matches!(self.state, State::Failed) {
            return Ok(None);
        }
        let mut terminated = self.find_batch(framer, max);
        if self.offsets.len() == 1 {
            // None, or a bad or long one at the front.
            let Some((len, is_terminated)) = self.find_frame(framer)? else { return Ok(None) };
            // More came with it, as a rule.
            terminated = self.find_batch(framer, max);
            if self.offsets.len() == 1 {
                // It is longer than a batch.
                self.offsets.push(len as u32);
                terminated = is_terminated;
            }
        }
        self.records += self.offsets.len() as u64 - 1;
        let len = self.offsets[self.offsets.len() - 1] as usize;
        let most = BATCH_BYTES.min(self.buffer.unread().len());
        // It ended at its limit, not where the records did.
        self.leaves_records = self.offsets.len() > max || (most == BATCH_BYTES && len < self.buffer.unread().len());
        let (offset, first_record) = (self.buffer.offset(), self.records - (self.offsets.len() as u64 - 1));
        let bytes = self.buffer.take_to(self.buffer.pos() + len);
        Ok(Some(Batch::new(bytes, &self.offsets, framer.trim(), terminated).at(offset, first_record)))
    }

    /// Whether the next batch has to be waited for: for those who read from several readers in turn. Only of use between two
    /// batches.
    pub fn waits(&self) -> Waits {
        match self.state {
            State::Open if !self.leaves_records => self.supply.waits(),
            _ => Waits::No,
        }
    }

    /// The file descriptor that becomes readable when a [`fill`](Reader::fill) has something to read or has come to the end:
    /// for an event loop that must not be held up. `None` where there is none to wait for: of a file, a callback, a
    /// compressed stream, with a thread that reads ahead, and behind the end.
    ///
    /// It is the reader's, and may be waited for by any means that does not read it. One fill then waits for next to
    /// nothing: for the rest of a compressed stream's first bytes, to get more out of a fast pipe, or for a command that has
    /// closed its output to exit.
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

    /// Finds the offsets of the whole records in the buffer, and whether the last of them is terminated.
    fn find_batch<F: Framer + ?Sized>(&mut self, framer: &mut F, max: usize) -> bool {
        self.offsets.clear();
        self.offsets.push(0);
        let unread = self.buffer.unread();
        let input = &unread[..unread.len().min(BATCH_BYTES)];
        let eof = self.is_at_end() && input.len() == unread.len();
        // An error is about the first record that is not in the batch: the next call meets it again.
        let terminated = framer.batch(input, eof, max.max(1), &mut self.offsets).unwrap_or(true);
        match self.offsets.len() {
            1 => terminated,
            _ => self.check_batch(framer.trim(), terminated),
        }
    }

    /// Notes the longest record of a batch, and ends the batch before one that is over the limit. `terminated` and
    /// the result: whether the last record is.
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
                terminated = true; // those before it are
                self.offsets.truncate(first + 1);
            }
        }
        self.longest = self.longest.max(longest.min(self.record_limit));
        terminated
    }

    /// Skips one record, however long it is, and returns whether there was one. After
    /// [`ErrorKind::RecordTooLong`] it is the one that was too long, and the reader goes on behind it.
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
    /// As [`next_frame`](Reader::next_frame), but for the record's length.
    pub fn skip_record<F: Framer + ?Sized>(&mut self, framer: &mut F) -> Result<bool> {
        self.settle();
        let mut skip = self.skip.take().unwrap_or(Skip { start: self.buffer.offset(), left: 0 });
        let skipped = self.skip_rest(framer, &mut skip);
        let interrupted = matches!(&skipped, Err(error) if error.kind() == ErrorKind::Cancelled);
        // Until the rest is skipped too, it must not be taken for a record.
        self.too_long = interrupted;
        self.skip = interrupted.then_some(skip);
        skipped
    }

    fn skip_rest<F: Framer + ?Sized>(&mut self, framer: &mut F, skip: &mut Skip) -> Result<bool> {
        loop {
            let input = self.buffer.unread();
            if skip.left > 0 {
                let count = skip.left.min(input.len());
                self.buffer.consume(count);
                skip.left -= count;
                if skip.left == 0 {
                    self.records += 1;
                    return Ok(true);
                }
                if !self.read_more()? {
                    let found = self.buffer.offset() - skip.start;
                    return self.stop_at_bad_record(
                        Error::new(ErrorKind::FrameTruncated)
                            .with_found(format!("{found} bytes"))
                            .with_expected(format!("{} bytes", found + skip.left as u64))
                            .with_offset(skip.start),
                    );
                }
            } else if input.is_empty() {
                if self.read_more()? {
                    continue;
                }
                // What was skipped so far was the last record.
                let skipped = self.buffer.offset() > skip.start;
                self.records += u64::from(skipped);
                return if skipped { Ok(true) } else { self.finish().map(|()| false) };
            } else {
                match framer.step(input, 0, self.is_at_end()) {
                    Step::Record { len, .. } => {
                        self.buffer.consume(len);
                        self.records += 1;
                        return Ok(true);
                    }
                    Step::More { need, .. } if need > 0 => skip.left = need,
                    Step::More { scanned, .. } => {
                        // The end may begin in the bytes that are not scanned.
                        self.buffer.consume(scanned);
                        if !self.read_more()? && !self.is_at_end() {
                            return self.finish().map(|()| false);
                        }
                    }
                    Step::Bad(error) => return self.stop_at_bad_record(error.with_offset(skip.start)),
                }
            }
        }
    }
}

/// Knowing where we are, and ending.
impl Reader {
    /// The name of the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where we are.
    pub fn position(&self) -> Position {
        Position { bytes: self.buffer.offset(), records: self.records + self.lines_scanned() }
    }

    /// How we get on.
    pub fn progress(&self) -> Progress {
        Progress {
            bytes: self.buffer.offset(),
            records: self.records + self.lines_scanned(),
            source_bytes: self.meter.bytes.load(Ordering::Relaxed),
            source_size: self.meter.size,
            elapsed: self.meter.opened.elapsed(),
            waited: self.supply.waited,
            longest_record: self.longest,
            format: self.meter.format.get().copied(),
        }
    }

    /// What another thread may ask, also while this one waits for the source.
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
            (observer.call)(&progress);
        }
    }

    /// How the source's commands ended, all of them: after the end, and after an error that was theirs.
    pub fn command_ends(&self) -> &[CommandEnd] {
        &self.ends
    }

    /// Ends the reading, wherever it is, and returns how the source's commands ended.
    ///
    /// Before the end of the stream our side of the pipe is closed; a command that is still there after a second
    /// gets SIGTERM, and after another one SIGKILL. How it ends then was our doing and is no error.
    ///
    /// ```
    /// let mut reader = millstream::Reader::command(["yes"])?;
    /// assert_eq!(reader.next_line()?, Some(&b"y"[..]));
    /// let ends = reader.close()?;
    /// assert_eq!(ends[0].status.to_string(), "was ended by signal 13 (SIGPIPE)");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::CommandFailed`] if a command had failed by itself before this; the source's error, if all
    /// its bytes have been consumed but the end was not asked for.
    pub fn close(mut self) -> Result<Vec<CommandEnd>> {
        if matches!(self.state, State::Ending(_)) && self.buffer.unread().is_empty() {
            self.finish()?;
        }
        if self.ends.is_empty() {
            // Nobody has waited for the commands yet: before the end, and after an error that was not theirs.
            self.supply.close(&mut self.ends).map_err(|error| self.locate(error))?;
        }
        Ok(std::mem::take(&mut self.ends))
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
