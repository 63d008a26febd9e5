//! The options of a reader, and its source.

use crate::os::{AsFd, AsRawFd, OwnedFd, duplicate, duplicate_stdin};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::apart::Apart;
use super::supply::{Plan, ReadAhead, Supply};
use super::{Meter, Observer, Position, Progress, Reader, State};
use crate::error::{Error, ErrorKind, Result};
use crate::features;
use crate::os::cancel::{CancelToken, Wait};
use crate::os::command::Command;
use crate::os::connect;
use crate::os::source::command::CommandSource;
use crate::os::source::fd::FdSource;
use crate::os::source::mapped::{Order, map};
use crate::os::stamp::{Stamp, changed};
use crate::source::elements::ElementsSource;
use crate::source::expected::Expectation;
use crate::source::foreign::{CallbackSource, ReadSource};
use crate::source::object::ObjectSource;
use crate::source::own::Checked;
use crate::source::{ByteSource, Counted, Decode, DecodeLimit, Nature, Pin, Resume, Source};
#[cfg(feature = "splits")]
use crate::splits::{Opened as OpenedSplit, Split};
use millstream_core::internal::Known;
use millstream_core::internal::refuse;
use millstream_core::internal::{Buffer, JsonElements, Lent};

/// The buffer size of a reader on the caller's thread. With the tail, the buffer stays in a second-level cache of 1
/// MiB, and a pipe of 1 MiB is emptied in four reads.
const CAPACITY: usize = 256 << 10;

/// The limits of read-ahead: initially, and if both sides stall in turn. The limits must be larger than a burst.
const AHEAD: (usize, usize) = (4 << 20, 16 << 20);

/// The maximum record length by default.
const RECORD_LIMIT: usize = 64 << 20;

/// The memory limit for a zstd frame's window. The zstd command has the same limit.
const DECODE_MEMORY: u64 = 128 << 20;

/// Whether a read of a fast pipe may be delayed by up to 0.3 ms, so that it returns more bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latency {
    /// Reads are delayed at 64 MB/s and above, which saves 10 to 25 % of the processor time.
    #[default]
    Normal,
    /// Reads are not delayed.
    Low,
}

/// What happens at the end of a regular file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// The stream ends.
    #[default]
    No,
    /// The reader waits for the file to grow, until it is cancelled or closed. If the file is truncated, reading fails
    /// with [`ErrorKind::SourceShrank`], even if the file has been rewritten. If it is renamed, replaced or deleted,
    /// reading fails with [`ErrorKind::SourceChanged`], after its content has been delivered.
    Growing,
}

/// The options of a reader. Each method that names a source opens the reader.
///
/// ```
/// use millstream::{ReadAhead, Reader};
/// let mut reader = Reader::builder().read_ahead(ReadAhead::On).record_limit(1 << 20).command(["seq", "3"])?;
/// assert_eq!(reader.next_line()?, Some(&b"1"[..]));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until a source is named"]
pub struct ReaderBuilder {
    capacity: usize,
    read_ahead: ReadAhead,
    ahead: (usize, usize),
    latency: Latency,
    record_limit: usize,
    /// If this is `None`, the source's default applies.
    decode: Option<Decode>,
    decode_limit: DecodeLimit,
    decode_memory: u64,
    stall_timeout: Option<Duration>,
    total_timeout: Option<Duration>,
    follow: Follow,
    pin: Pin,
    cancel: Option<CancelToken>,
    observer: Option<Observer>,
    name: Option<String>,
    /// The JSON pointer of the array whose elements are read.
    json_elements: Option<String>,
    json_depth: Option<usize>,
    expectation: Expectation,
    expect_records: Option<u64>,
    /// What a reader that starts again keeps: its limits and cancel tokens, and its counts.
    continues: Option<(Wait, Meter)>,
}

impl Default for ReaderBuilder {
    fn default() -> ReaderBuilder {
        ReaderBuilder {
            capacity: CAPACITY,
            read_ahead: ReadAhead::default(),
            ahead: AHEAD,
            latency: Latency::default(),
            record_limit: RECORD_LIMIT,
            decode: None,
            decode_limit: DecodeLimit::default(),
            decode_memory: DECODE_MEMORY,
            stall_timeout: None,
            total_timeout: None,
            follow: Follow::default(),
            pin: Pin::default(),
            cancel: None,
            observer: None,
            name: None,
            json_elements: None,
            json_depth: None,
            expectation: Expectation::default(),
            expect_records: None,
            continues: None,
        }
    }
}

/// Options. If an option is invalid, conflicts with another one or does not apply to the source, naming the source
/// fails with [`ErrorKind::InvalidOption`], and no source is opened.
impl ReaderBuilder {
    /// Sets the initial size of the buffer in bytes, at least 1: 256 KiB by default. It grows for a longer record.
    pub fn capacity(mut self, bytes: usize) -> ReaderBuilder {
        self.capacity = bytes;
        self
    }

    /// Sets whether a thread reads ahead.
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> ReaderBuilder {
        self.read_ahead = read_ahead;
        self
    }

    /// Sets how many bytes are read ahead: initially, and at most, if both sides stall in turn. The default is 4 and 16
    /// MiB. Both are rounded down to whole blocks of 256 KiB, of which there are at least two.
    pub fn read_ahead_capacity(mut self, first: usize, most: usize) -> ReaderBuilder {
        self.ahead = (first, most);
        self
    }

    /// Sets whether reads of a fast pipe may be delayed slightly.
    pub fn latency(mut self, latency: Latency) -> ReaderBuilder {
        self.latency = latency;
        self
    }

    /// Sets the maximum length of a record, in bytes without its delimiter or prefix: 64 MiB by default, less than 4
    /// GiB. A longer record fails with [`ErrorKind::RecordTooLong`].
    pub fn record_limit(mut self, bytes: usize) -> ReaderBuilder {
        self.record_limit = bytes;
        self
    }

    /// Sets whether a compressed source is decoded.
    pub fn decode(mut self, decode: Decode) -> ReaderBuilder {
        self.decode = Some(decode);
        self
    }

    /// Sets the maximum number of decoded bytes: no limit by default. Exceeding it fails with
    /// [`ErrorKind::DecodeLimit`]. The limit does not apply to a source that is not decoded.
    pub fn decode_limit(mut self, bytes: u64) -> ReaderBuilder {
        self.decode_limit.bytes = Some(bytes);
        self
    }

    /// Sets the maximum number of decoded bytes for each compressed byte, from the first decoded MiB on: no limit by
    /// default. Exceeding it fails with [`ErrorKind::DecodeLimit`]. The limit does not apply to a source that is not
    /// decoded.
    pub fn decode_ratio(mut self, bytes: u64) -> ReaderBuilder {
        self.decode_limit.ratio = Some(bytes);
        self
    }

    /// Sets how much memory a decoder may use for the window of a zstd frame or for an xz block: 128 MiB by default.
    /// `zstd --long=31` writes frames that need 2 GiB, the maximum; `xz -9` writes blocks that need 65 MiB. Data that
    /// needs more than the limit fails with [`ErrorKind::DecodeLimit`].
    pub fn decode_memory(mut self, bytes: u64) -> ReaderBuilder {
        self.decode_memory = bytes;
        self
    }

    /// Sets how long a source may deliver no bytes while the reader waits for it, and how long a command may take to
    /// exit. After that time, reading fails with [`ErrorKind::Stalled`].
    pub fn stall_timeout(mut self, limit: Duration) -> ReaderBuilder {
        self.stall_timeout = Some(limit);
        self
    }

    /// Sets how long reading may take in total, from opening the source to its end, including the exit of a command: no
    /// limit by default. After that time, no more is read from the source, and reading fails with
    /// [`ErrorKind::TimedOut`] once everything read before has been delivered. A blocked call of a `Read`, of a callback
    /// or of an uninterruptible open is not interrupted.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader};
    /// let timeout = std::time::Duration::from_millis(50);
    /// // It always makes progress, so a stall timeout would not end it.
    /// let mut reader = Reader::builder().total_timeout(timeout).command(["yes"])?;
    /// let error = loop {
    ///     if let Err(error) = reader.next_line() {
    ///         break error;
    ///     }
    /// };
    /// assert_eq!(error.kind(), ErrorKind::TimedOut);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn total_timeout(mut self, limit: Duration) -> ReaderBuilder {
        self.total_timeout = Some(limit);
        self
    }

    /// Sets what happens at the end of a regular file, given by its path or as a file descriptor.
    pub fn follow(mut self, follow: Follow) -> ReaderBuilder {
        self.follow = follow;
        self
    }

    /// Sets which properties of a regular file, given by its path or as a file descriptor, must not change while it is
    /// read.
    pub fn pin(mut self, pin: Pin) -> ReaderBuilder {
        self.pin = pin;
        self
    }

    /// Lets a token interrupt blocking calls.
    pub fn cancel(mut self, token: &CancelToken) -> ReaderBuilder {
        self.cancel = Some(token.clone());
        self
    }

    /// Calls a function before a read, at most once per interval, and at the end. It runs on the caller's thread,
    /// but not while the reader waits for the source; [`Reader::progress_handle`] can also be queried during that time.
    pub fn observer(mut self, interval: Duration, observer: impl FnMut(&Progress) + Send + 'static) -> ReaderBuilder {
        self.observer = Some(Observer { interval, last: Instant::now(), call: Arc::new(Mutex::new(observer)) });
        self
    }

    /// Sets the name of the source in messages.
    pub fn name(mut self, name: impl Into<String>) -> ReaderBuilder {
        self.name = Some(name.into());
        self
    }

    /// Reads the elements of an array of a JSON document: with an empty text the document itself, otherwise the array at
    /// this JSON pointer (RFC 6901), such as `/a/items`. Each element is followed by the byte 0x1e, by which a delimiter
    /// finds the records; all other bytes of the document are checked and removed.
    ///
    /// What is wrong in the document is reported after the last whole element. The offset of this error counts in the
    /// document, that of any other error in the bytes that are read. A split of a document says itself how it is read.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader, frame::Delimiter};
    /// let document = r#"{"total": 2, "items": [{"a": 1}, [2, 3], "c"}"#;
    /// let mut reader = Reader::builder().json_elements("/items").memory(document)?;
    /// let mut elements = Delimiter::byte(0x1e);
    /// assert_eq!(reader.next_frame(&mut elements)?, Some(&br#"{"a": 1}"#[..]));
    /// assert_eq!(reader.next_frame(&mut elements)?, Some(&b"[2, 3]"[..]));
    /// assert_eq!(reader.next_frame(&mut elements)?, Some(&br#""c""#[..]));
    /// let error = reader.next_frame(&mut elements).unwrap_err(); // the array is not closed
    /// assert_eq!((error.kind(), error.offset()), (ErrorKind::JsonInvalid, Some(44)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn json_elements(mut self, pointer: impl Into<String>) -> ReaderBuilder {
        self.json_elements = Some(pointer.into());
        self
    }

    /// Sets how many arrays and objects of a JSON document may be inside each other: 128 by default. Deeper ones fail with
    /// [`ErrorKind::TooDeep`].
    pub fn json_depth(mut self, limit: usize) -> ReaderBuilder {
        self.json_depth = Some(limit);
        self
    }

    /// Sets how many bytes the source has, before any decoding. If it has more or fewer, reading fails at its end with
    /// [`ErrorKind::ContentMismatch`], and no byte beyond the expected ones is delivered.
    ///
    /// This and the next two options are for sources that cannot report where they end, such as standard input: they look
    /// complete if the program that writes them is killed.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader};
    /// let mut reader = Reader::builder().expect_bytes(8).from_read(&b"one\n"[..])?;
    /// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    /// assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::ContentMismatch);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn expect_bytes(mut self, count: u64) -> ReaderBuilder {
        self.expectation.bytes = Some(count);
        self
    }

    /// Sets the hash of the source's bytes, before any decoding: `sha256:`, `blake3:` or `crc32c:` with hexadecimal
    /// digits.
    /// If it differs, reading fails at the end with [`ErrorKind::ContentMismatch`].
    pub fn expect_hash(mut self, hash: impl Into<String>) -> ReaderBuilder {
        self.expectation.hash = Some(hash.into());
        self
    }

    /// Sets how many records the source has. If the number of records that were read differs at its end, reading fails with
    /// [`ErrorKind::ContentMismatch`].
    pub fn expect_records(mut self, count: u64) -> ReaderBuilder {
        self.expect_records = Some(count);
        self
    }
}

/// Sources.
impl ReaderBuilder {
    /// Reads a file, FIFO or device.
    ///
    /// A suffix such as `.gz` implies a compressed format. If the file does not begin like that format, reading fails
    /// with [`ErrorKind::DecodeDamaged`] or [`ErrorKind::DecodeTruncated`], unless [`Decode::Off`] is set.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`], or [`ErrorKind::Unsupported`] for a name that implies a format that cannot be
    /// decoded, such as `.lz4`, unless [`Decode::Off`] is set.
    pub fn path(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        self.check_name(path)?;
        self.open(Kind::File, path.display().to_string(), Some(path), |wait| FdSource::open(path, wait))
    }

    /// Reads a duplicate of the standard input's file descriptor, so that standard input stays open.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if standard input is closed or is a directory.
    pub fn stdin(self) -> Result<Reader> {
        self.open(Kind::File, "standard input".into(), None, |_| FdSource::new(duplicate_stdin().map_err(open_failed)?))
    }

    /// Reads a file descriptor and closes it at the end.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if it is a directory.
    pub fn fd(self, fd: impl Into<OwnedFd>) -> Result<Reader> {
        let fd = fd.into();
        self.open(Kind::File, format!("file descriptor {}", fd.as_raw_fd()), None, |_| FdSource::new(fd))
    }

    /// Reads a duplicate of a file descriptor; the original stays open. The two share their position.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if it is a directory.
    pub fn borrow_fd(self, fd: impl AsFd) -> Result<Reader> {
        let fd = fd.as_fd();
        self.open(Kind::File, format!("file descriptor {}", fd.as_raw_fd()), None, |_| {
            FdSource::new(duplicate(fd).map_err(open_failed)?)
        })
    }

    /// Reads the duplicate `fd` of the descriptor `original`, which errors name. It is for front ends, which must not
    /// use the caller's descriptor later.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if it is a directory.
    #[doc(hidden)]
    pub fn duplicate_of(self, original: i32, fd: OwnedFd) -> Result<Reader> {
        self.open(Kind::File, format!("file descriptor {original}"), None, |_| FdSource::new(fd))
    }

    /// Connects to a TCP server and reads the bytes that it sends. The end of the stream only means that the server
    /// closed the connection.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the connection fails.
    pub fn tcp(self, address: impl ToSocketAddrs + std::fmt::Display) -> Result<Reader> {
        self.open(Kind::Connection, format!("tcp:{address}"), None, |wait| FdSource::new(connect::tcp(&address, wait)?))
    }

    /// Connects to a Unix socket and reads the bytes that its server sends. The end of the stream only means that the
    /// server closed the connection.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the connection fails.
    pub fn unix(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        self.open(Kind::Connection, format!("unix:{}", path.display()), None, |wait| {
            FdSource::new(connect::unix(path, wait)?)
        })
    }

    /// Starts a command and reads its standard output. The end of the stream means end of file *and* exit status 0. In
    /// all other cases, reading fails with [`ErrorKind::CommandFailed`] after all of the output.
    ///
    /// # Errors
    /// Returns [`ErrorKind::CommandNotStarted`] if the command cannot be started.
    pub fn command(self, command: impl Into<Command>) -> Result<Reader> {
        self.pipeline([command])
    }

    /// Starts a pipeline of commands, in which each reads the output of the previous one, and reads the last one's
    /// standard output. All commands must succeed; if several fail, the first failure is reported. A command other than
    /// the last that is killed by SIGPIPE (or exits with status 141, by which a shell reports that) has not failed if
    /// all later commands succeeded, like the `yes` in `yes | head`.
    ///
    /// ```
    /// use millstream::{ErrorKind, Reader};
    /// let mut reader = Reader::pipeline([vec!["sh", "-c", "echo 2; echo 1; exit 3"], vec!["sort"]])?;
    /// assert_eq!(reader.next_line()?, Some(&b"1"[..]));
    /// assert_eq!(reader.next_line()?, Some(&b"2"[..]));
    /// assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::CommandFailed);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::CommandNotStarted`] if a command cannot be started; commands already started are stopped.
    pub fn pipeline<C: Into<Command>>(self, commands: impl IntoIterator<Item = C>) -> Result<Reader> {
        let commands: Vec<Command> = commands.into_iter().map(Into::into).collect();
        let name = commands.iter().map(Command::name).collect::<Vec<_>>().join(" | ");
        self.open(Kind::Command, name, None, |_| CommandSource::start(commands))
    }

    /// Starts the shell command line `bash -o pipefail -c line`, and reads its standard output. Never pass user input
    /// or a file name to it; [`command`](ReaderBuilder::command) passes arguments unchanged.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] if bash is not installed, or [`ErrorKind::CommandNotStarted`].
    pub fn shell(self, line: impl AsRef<std::ffi::OsStr>) -> Result<Reader> {
        self.command(Command::shell(line)?)
    }

    /// Reads any `std::io::Read`. It may be read on another thread, one read at a time. A blocked read cannot be
    /// cancelled: if the reader is closed during the read, its thread remains until the read ends.
    ///
    /// # Errors
    /// Fails if an option is refused for this source, or if there is not enough memory.
    pub fn from_read(self, read: impl Read + Send + 'static) -> Result<Reader> {
        self.open(Kind::Program, "a Read".into(), None, |_| Ok(ReadSource(read)))
    }

    /// Reads the bytes that a callback writes into the slice it is given. The callback returns the number of bytes, or
    /// 0 at the end. It is called only on the caller's thread.
    ///
    /// # Errors
    /// Fails if an option is refused for this source, or if there is not enough memory.
    pub fn callback(self, fill: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'static) -> Result<Reader> {
        self.open(Kind::Program, "a callback".into(), None, |_| Ok(CallbackSource(fill)))
    }

    /// Reads a source that the program defines. Its bytes are decoded only if that is enabled
    /// ([`decode`](Self::decode)).
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if no thread can be started for a source without a descriptor.
    pub fn source(self, source: impl Source + 'static) -> Result<Reader> {
        let source = Checked::new(source)?;
        let name = source.place()?.map_or_else(|| "a Source".into(), |(name, _)| name);
        match source.ready_fd() {
            Some(_) => self.open(Kind::Program, name, None, |_| Ok(source)),
            None => {
                let ahead = self.ahead;
                self.open(Kind::Program, name, None, |_| Apart::start(source, ahead))
            }
        }
    }

    /// Opens an object of a web server or an object store: `https://…`, `http://…`, `s3://BUCKET/KEY`,
    /// `gs://BUCKET/KEY` or `az://CONTAINER/KEY`. A [`Remote`](crate::Remote) has options for its requests. Compressed objects are decoded by default.
    ///
    /// The end of the stream means that all bytes of one version of the object were delivered. Ranges are fetched in
    /// parallel and connections are resumed, if the server sends a strong ETag. If the server announces neither a
    /// length nor chunks, opening fails, because a broken connection would look like the end.
    ///
    /// ```no_run
    /// use millstream::{Reader, Remote};
    /// let mut log = Reader::builder().url("s3://logs/2026/11/27.csv.gz")?;
    /// let private = Remote::new("https://example.org/a.csv").header("Authorization", "Bearer token");
    /// let mut table = Reader::builder().url(private)?;
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the object cannot be opened, and [`ErrorKind::InvalidOption`] if the URL is
    /// invalid. Reading fails with [`ErrorKind::SourceChanged`] if the object was replaced, and with
    /// [`ErrorKind::RemoteFailed`] if the server fails for longer than the options allow, or contradicts itself.
    pub fn url(self, remote: impl Into<crate::Remote>) -> Result<Reader> {
        self.check(Kind::Remote)?;
        self.object(crate::remote::Opening::start(remote.into())?)
    }

    /// Reads an object whose first request has been made, so that several can be opened at the same time.
    ///
    /// ```no_run
    /// use millstream::{Reader, Remote};
    /// use millstream::remote::Opening;
    /// let urls = ["s3://logs/2026/11/26.csv", "s3://logs/2026/11/27.csv"];
    /// let opening: Vec<_> = urls.into_iter().map(|url| Opening::start(Remote::new(url))).collect();
    /// for opening in opening {
    ///     let mut log = Reader::builder().object(opening?)?;
    /// }
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`url`](Self::url).
    pub fn object(self, opening: crate::remote::Opening) -> Result<Reader> {
        self.check(Kind::Remote)?;
        let wait = self.plan().wait;
        let object = opening.wait(|| {
            wait.check()?;
            wait.check_deadline()
        })?;
        let name = object.name().to_string();
        self.open(Kind::Remote, name, None, |_| Ok(ObjectSource::new(object)))
    }

    /// Reads memory, without a copy (unless it is compressed).
    ///
    /// # Errors
    /// Fails if an option is refused for this source, or if there is not enough memory.
    pub fn memory(self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Reader> {
        self.check(Kind::Memory)?;
        self.lent("memory".into(), Arc::new(bytes), None)
    }

    /// Reads one split of a file or object. Offsets count from the start of the file; record numbers count from the start of the
    /// file if the plan knows them, and otherwise from the start of the split.
    ///
    /// The plan decides whether the file is decoded. The record limit and all other options apply as if the whole file
    /// was read.
    ///
    /// ```
    /// use millstream::Reader;
    /// use millstream::splits::{Framing, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// std::fs::write(&path, "one\ntwo\nthree\n")?;
    /// let plan = Splits::plan(&path, Framing::Lines, 6)?;
    /// let mut reader = Reader::split(plan.iter().nth(1).unwrap())?;
    /// assert_eq!(reader.position().bytes, 8); // "two" begins before byte 6, so it belongs to the first split
    /// assert_eq!(reader.next_line()?, Some(&b"three"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`]; [`ErrorKind::SourceShrank`] or [`ErrorKind::SourceChanged`] if the file is not
    /// the one that was planned, which is checked again at the end of the split; and [`ErrorKind::InvalidOption`] for a
    /// split without a path. Opening reads up to the first record of the split, and returns the errors of reading.
    #[cfg(feature = "splits")]
    pub fn split(self, split: &Split) -> Result<Reader> {
        self.check(Kind::Split)?;
        let name = self.name.clone().unwrap_or_else(|| split.name());
        self.open_split(split, name.clone()).map_err(|error| error.with_name(name))
    }

    #[cfg(feature = "splits")]
    fn open_split(self, split: &Split, name: String) -> Result<Reader> {
        let plan = self.plan();
        let opened = OpenedSplit::new(split, &plan.wait)?;
        let is_encoded = opened.is_encoded;
        let meter = self.meter(split.end().map(|end| end - split.begin()));
        let (bytes, resume, split, content) = opened.into_parts(self.pin, meter.bytes.clone());
        let decode = if is_encoded { Decode::Auto } else { Decode::Off };
        let bytes = self.decoded(bytes, decode, split.path().filter(|_| split.begin() == 0), resume, &meter);
        let (first_record, first_line) = (split.first_record().unwrap_or(0), split.first_line());
        let has_line = split.first_record().is_some() && split.framing().is_lines();
        let (elements, is_part) = (split.elements()?, split.ends_between_elements());
        let source = OpenedSplit::start(split, content, bytes, &plan.wait)?;
        let offset = elements.as_ref().map_or(source.offset(), |(_, kept)| *kept);
        let start = Position { bytes: offset, records: first_record };
        let buffer = Buffer::new(self.capacity.min(MOST)).map_err(Error::from)?.starting_at(start.bytes);
        let source: Box<dyn ByteSource> = match elements {
            Some((elements, _)) if is_part => Box::new(ElementsSource::part(Box::new(source), elements)),
            Some((elements, _)) => Box::new(ElementsSource::new(Box::new(source), elements)),
            None => Box::new(source),
        };
        let supply = Supply::new(source, plan);
        let all_lines = start.bytes == 0 || has_line;
        let inner_lines = first_line.map(|line| line - first_record - 1).or(all_lines.then_some(0));
        let reader = self.reader(buffer, supply, name, meter, Err(Kind::Split.name()));
        Ok(Reader { start, records: first_record, all_lines, inner_lines, ..reader })
    }

    /// Maps a regular file and reads it, without a copy (unless it is compressed).
    ///
    /// The file must not shrink while it is read. The reader checks the length before it continues, and fails with
    /// [`ErrorKind::SourceShrank`] if the file has shrunk. But if the file shrinks between this check and the use of
    /// the bytes, SIGBUS kills the process. The resident memory is the kernel's cache of the file. Mapping is slightly
    /// faster than [`path`](Self::path).
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`], also for anything other than a regular file.
    pub fn mapped(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        self.check(Kind::Mapped)?;
        self.check_name(path)?;
        let name = path.display().to_string();
        let (memory, file, stamp) = map(path, Order::FrontToBack).map_err(|error| error.with_name(&name))?;
        let is_named = self.decodes() && Known::of_name(path).is_some();
        let is_read = self.json_elements.is_some() || self.expectation.is_given();
        if is_read || is_named || self.is_compressed((*memory).as_ref()) {
            // The bytes are copied anyway, and without a mapping there is no risk of SIGBUS.
            return self.path(path);
        }
        self.lent(name, memory, Some((path, file, stamp)))
    }

    /// Opens the file that an earlier reader has read.
    pub(super) fn same_file(self, path: &Path, stamp: Stamp) -> Result<Reader> {
        let name = path.display().to_string();
        self.open(Kind::File, name, Some(path), |wait| {
            let source = FdSource::open(path, wait)?;
            match source.stamp() {
                Some(now) => stamp.check_same(&now)?,
                None => return Err(changed("something that is not a regular file", "the file that was read before")),
            }
            Ok(source)
        })
    }

    /// Reads memory that an earlier reader has read.
    pub(super) fn same_memory(self, memory: Lent) -> Result<Reader> {
        self.check(Kind::Memory)?;
        self.lent("memory".into(), memory, None)
    }

    /// Opens the version of an object that an earlier reader has read.
    pub(super) fn same_object(self, version: &millstream_remote::Version) -> Result<Reader> {
        let name = version.name().to_string();
        self.open(Kind::Remote, name, None, |_| Ok(ObjectSource::new(version.open(0, version.size())?)))
    }

    /// Makes the next reader a continuation of one that is closed.
    pub(super) fn continuing(self, wait: Wait, meter: Meter) -> ReaderBuilder {
        ReaderBuilder { continues: Some((wait, meter)), ..self }
    }

    fn meter(&self, size: Option<u64>) -> Meter {
        match &self.continues {
            // A mapped file that is read again says so itself.
            Some((_, meter)) => Meter { lent: false, ..meter.clone() },
            None => Meter::new(size),
        }
    }

    fn open<S: ByteSource + Opened + 'static>(
        self,
        kind: Kind,
        name: String,
        path: Option<&Path>,
        open: impl FnOnce(&Wait) -> Result<S>,
    ) -> Result<Reader> {
        self.check(kind)?;
        let name = self.name.clone().unwrap_or(name);
        // The time for opening is part of the total.
        let plan = self.plan();
        let source = open(&plan.wait).map_err(|error| error.with_name(&name))?;
        let size = source.size();
        let decode = self.decode.unwrap_or(source.usual_decode());
        refuse(&[(
            self.decode_limit != DecodeLimit::default() && decode == Decode::Off,
            &"a decoding limit for a source that is not decoded by default",
            &"Decode::Auto, or no limit",
        )])
        .map_err(|error| error.with_name(&name))?;
        let source = source.pin(self.pin);
        let source = match self.follow {
            Follow::Growing => source.follow(path),
            Follow::No => source,
        };
        if source.nature() != Nature::File {
            plan.wait.prepare().map_err(|error| error.with_name(&name))?;
        }
        let origin = match self.follow {
            Follow::Growing => Err("a file that is followed"),
            Follow::No => source.origin(path).ok_or(source.once().unwrap_or(kind.name())),
        };
        let meter = self.meter(size.filter(|_| self.follow == Follow::No));
        let buffer = Buffer::for_source(self.capacity.min(MOST), meter.size).map_err(Error::from)?;
        let source = self.expectation.of(Box::new(Counted::new(source, meter.bytes.clone())))?;
        let source = self.decoded(source, decode, path, None, &meter);
        let source: Box<dyn ByteSource> = match self.elements()? {
            Some(elements) => Box::new(ElementsSource::new(source, elements)),
            None => source,
        };
        let supply = Supply::new(source, plan);
        Ok(self.reader(buffer, supply, name, meter, origin))
    }

    fn lent(self, name: String, memory: Lent, file: Option<(&Path, File, Stamp)>) -> Result<Reader> {
        let name = self.name.clone().unwrap_or(name);
        let origin = match &file {
            Some((path, _, stamp)) => Origin::file(path, *stamp),
            None => Origin::Memory(memory.clone()),
        };
        let is_read = self.json_elements.is_some() || self.expectation.is_given();
        if is_read || self.is_compressed((*memory).as_ref()) {
            let read = ReadSource(std::io::Cursor::new(Shared(memory)));
            let builder = ReaderBuilder { decode: self.decode.or(Some(Decode::Auto)), ..self };
            let again = Ok(Box::new(Again { builder: ReaderBuilder { continues: None, ..builder.clone() }, origin }));
            return Ok(Reader { again, ..builder.open(Kind::Memory, name, None, |_| Ok(read))? });
        }
        let buffer = Buffer::lent(memory);
        let len = buffer.capacity();
        let supply = Supply::lent(len, file.map(|(_, file, stamp)| (file, stamp)), self.plan());
        let meter = Meter { lent: true, ..self.meter(Some(len as u64)) };
        Ok(self.reader(buffer, supply, name, meter, Ok(origin)))
    }

    /// Checks that the options are valid, individually and together, before any source is opened.
    fn check(&self, kind: Kind) -> Result<()> {
        self.elements()?;
        self.expectation.check()?;
        let expects = self.expectation.is_given() || self.expect_records.is_some();
        let (first, most) = self.ahead;
        refuse(&[
            (self.capacity == 0, &"a capacity of 0 bytes", &"at least 1"),
            (
                self.record_limit > MOST,
                &format_args!("a record limit of {} bytes", self.record_limit),
                &format_args!("at most {MOST}"),
            ),
            (
                first > most,
                &format_args!("{first} bytes of read-ahead at first, {most} at most"),
                &"no more at first than at most",
            ),
            (self.stall_timeout == Some(Duration::ZERO), &"a stall timeout of 0 s", &"a longer one, or no timeout"),
            (self.total_timeout == Some(Duration::ZERO), &"a total timeout of 0 s", &"a longer one, or no timeout"),
            (
                self.follow == Follow::Growing && kind != Kind::File,
                &format_args!("following {kind}"),
                &"a path or a file descriptor",
            ),
            (
                self.follow == Follow::Growing && self.pin == Pin::Identity,
                &"following a file whose identity is pinned",
                &"one of them",
            ),
            (
                self.pin == Pin::Identity && !matches!(kind, Kind::File | Kind::Mapped | Kind::Split),
                &format_args!("a pinned identity for {kind}"),
                &"a path or a file descriptor",
            ),
            (
                expects && (self.follow == Follow::Growing || kind == Kind::Split),
                &"an expected end for a file that grows or is split",
                &"a whole source",
            ),
            (
                self.decode_memory != DECODE_MEMORY && self.decode == Some(Decode::Off),
                &"a decoder memory limit without decoding",
                &"one of them",
            ),
            (
                self.decode_limit != DecodeLimit::default() && self.decode == Some(Decode::Off),
                &"a decoding limit without decoding",
                &"Decode::Auto, or no limit",
            ),
            (
                self.json_elements.is_some() && kind == Kind::Split,
                &"the elements of a JSON document in a split of other records",
                &"a split of a plan for elements, which says how it is read",
            ),
            (
                self.json_depth.is_some() && self.json_elements.is_none(),
                &"a depth limit for JSON for a source that is not read as JSON",
                &"the elements of a JSON document, or no limit",
            ),
        ])
    }

    /// Returns the filter for the elements of a JSON document, if they are read.
    fn elements(&self) -> Result<Option<JsonElements>> {
        let elements = self.json_elements.as_deref().map(JsonElements::new).transpose()?;
        Ok(elements.map(|elements| match self.json_depth {
            Some(limit) => elements.depth(limit),
            None => elements,
        }))
    }

    /// Returns whether a file is decoded.
    fn decodes(&self) -> bool {
        self.decode != Some(Decode::Off)
    }

    /// Checks that the format implied by the name of a file can be read.
    fn check_name(&self, path: &Path) -> Result<()> {
        let promised = Known::of_name(path).filter(|_| self.decodes());
        let check = |known: Known| features::require(known.decoded()?);
        promised.map_or(Ok(()), check).map_err(|error| error.with_name(path.display().to_string()))
    }

    #[cfg(feature = "compression")]
    fn decoded(
        &self,
        source: Box<dyn ByteSource>,
        decode: Decode,
        path: Option<&Path>,
        resume: Option<Resume>,
        meter: &Meter,
    ) -> Box<dyn ByteSource> {
        use crate::source::decode::DecodeSource;
        match decode {
            Decode::Off => source,
            Decode::Auto => {
                let (count, format) = (meter.bytes.clone(), meter.format.clone());
                let (limit, memory) = (self.decode_limit, self.decode_memory);
                Box::new(DecodeSource::new(source, path, limit, memory, count, format).resuming(resume))
            }
        }
    }

    #[cfg(not(feature = "compression"))]
    fn decoded(
        &self,
        source: Box<dyn ByteSource>,
        _: Decode,
        _: Option<&Path>,
        _: Option<Resume>,
        _: &Meter,
    ) -> Box<dyn ByteSource> {
        source
    }

    #[cfg(feature = "compression")]
    fn is_compressed(&self, bytes: &[u8]) -> bool {
        self.decodes() && millstream_core::internal::is_known(bytes)
    }

    #[cfg(not(feature = "compression"))]
    fn is_compressed(&self, _bytes: &[u8]) -> bool {
        false
    }

    fn plan(&self) -> Plan {
        Plan {
            read_ahead: self.read_ahead,
            ahead: self.ahead,
            coalesce: self.latency == Latency::Normal,
            wait: match &self.continues {
                Some((wait, _)) => wait.clone(),
                None => Wait::new(self.cancel.clone(), self.stall_timeout).within(self.total_timeout),
            },
            pin: self.pin,
        }
    }

    fn reader(
        self,
        buffer: Buffer,
        supply: Supply,
        name: String,
        meter: Meter,
        origin: std::result::Result<Origin, &'static str>,
    ) -> Reader {
        let (record_limit, expect_records, observer) = (self.record_limit, self.expect_records, self.observer.clone());
        let builder = ReaderBuilder { continues: None, ..self };
        Reader {
            buffer,
            index: Default::default(),
            scanning: Default::default(),
            start: Position::default(),
            records: 0,
            all_lines: true,
            inner_lines: Some(0),
            record_lines: crate::frame::RecordLines::Unknown,
            kept_from: 0,
            longest: 0,
            unremarkable: 0,
            supply,
            state: State::Open,
            too_long: false,
            before_bad: None,
            skip: None,
            partial: Default::default(),
            offsets: Vec::new(),
            leaves_records: false,
            batch_end: None,
            record_limit,
            expect_records,
            name,
            again: origin.map(|origin| Box::new(Again { builder, origin })),
            meter,
            observer,
            ends: Vec::new(),
            failure: None,
        }
    }
}

/// What is needed to open a source again.
#[derive(Clone)]
pub(super) struct Again {
    pub(super) builder: ReaderBuilder,
    pub(super) origin: Origin,
}

/// Where the bytes of a source are, and which version of it they are.
#[derive(Clone)]
pub(super) enum Origin {
    File { path: PathBuf, stamp: Stamp },
    Memory(Lent),
    Object(millstream_remote::Version),
}

impl Origin {
    fn file(path: &Path, stamp: Stamp) -> Origin {
        Origin::File { path: path.to_path_buf(), stamp }
    }
}

/// The kind of source, which decides which options are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file, a pipe or a device: any source that has a path or is a file descriptor.
    File,
    Command,
    Connection,
    /// The caller's code.
    Program,
    /// A mapped file, whose length is fixed.
    Mapped,
    /// A part of a regular file.
    Split,
    Memory,
    Remote,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::File => "a file",
            Kind::Command => "a command",
            Kind::Connection => "a connection",
            Kind::Program => "a callback",
            Kind::Mapped => "a mapped file",
            Kind::Split => "a split",
            Kind::Memory => "memory",
            Kind::Remote => "a remote object",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The maximum capacity of a buffer, because positions in it are `u32`.
const MOST: usize = (u32::MAX - 0xffff) as usize;

/// Properties that only some sources know when they are opened.
trait Opened: Sized {
    /// Returns the number of bytes.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Makes the source continue at the end of a regular file. Other sources have no such end.
    fn follow(self, _path: Option<&Path>) -> Self {
        self
    }

    /// Sets which properties of a regular file must not change.
    fn pin(self, _pin: Pin) -> Self {
        self
    }

    /// Returns whether the source is decoded by default.
    fn usual_decode(&self) -> Decode {
        Decode::Off
    }

    /// Returns where the same bytes can be read again.
    fn origin(&self, _path: Option<&Path>) -> Option<Origin> {
        None
    }

    /// Describes a source without an origin, if it is not one of all sources of its kind.
    fn once(&self) -> Option<&'static str> {
        None
    }
}

impl Opened for FdSource {
    fn size(&self) -> Option<u64> {
        FdSource::size(self)
    }

    fn follow(self, path: Option<&Path>) -> FdSource {
        FdSource::follow(self, path)
    }

    fn pin(self, pin: Pin) -> FdSource {
        FdSource::pin(self, pin)
    }

    fn usual_decode(&self) -> Decode {
        if self.is_socket() { Decode::Off } else { Decode::Auto }
    }

    fn origin(&self, path: Option<&Path>) -> Option<Origin> {
        Some(Origin::file(path?, self.stamp()?))
    }

    fn once(&self) -> Option<&'static str> {
        Some(match self.nature() {
            Nature::File => "a file descriptor",
            Nature::Pipe(_) => "a pipe",
            _ => "a device or connection",
        })
    }
}

impl Opened for CommandSource {
    fn usual_decode(&self) -> Decode {
        Decode::Auto
    }
}

impl<S: Source> Opened for Checked<S> {
    fn size(&self) -> Option<u64> {
        Checked::size(self)
    }
}

impl Opened for Apart {
    fn size(&self) -> Option<u64> {
        Apart::size(self)
    }
}

impl Opened for ObjectSource {
    fn size(&self) -> Option<u64> {
        ObjectSource::size(self)
    }

    fn usual_decode(&self) -> Decode {
        Decode::Auto
    }

    fn origin(&self, _path: Option<&Path>) -> Option<Origin> {
        self.version().map(Origin::Object)
    }

    fn once(&self) -> Option<&'static str> {
        Some("an object without ranges or a strong ETag")
    }
}

impl<R> Opened for ReadSource<R> {}
impl<F> Opened for CallbackSource<F> {}

impl Meter {
    fn new(size: Option<u64>) -> Meter {
        Meter { opened: Instant::now(), bytes: Default::default(), format: Default::default(), size, lent: false }
    }
}

/// Lent memory, in the form `Cursor` needs.
struct Shared(Lent);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

fn open_failed(error: std::io::Error) -> Error {
    Error::new(ErrorKind::OpenFailed).with_io(error)
}
