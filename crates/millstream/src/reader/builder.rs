//! How to read: the options, and what is read.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::supply::{Plan, Supply};
use super::{Meter, Observer, Progress, Reader, State};
use crate::buffer::{Buffer, Lent};
use crate::cancel::{CancelToken, Wait};
use crate::command::Command;
use crate::connect;
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::source::command::CommandSource;
use crate::source::fd::FdSource;
use crate::source::foreign::{CallbackSource, ReadSource};
use crate::source::mapped::{Order, map};
use crate::source::{Counted, Source};

/// The buffer of a reader on the caller's thread. With the tail it stays in a second-level cache of 1 MiB, and a
/// pipe of 1 MiB is emptied in four reads.
const CAPACITY: usize = 256 << 10;

/// What is read ahead at most: at first, and when both sides turn out to stall in turn. It must exceed the burst.
const AHEAD: (usize, usize) = (4 << 20, 16 << 20);

/// The longest record, unless told otherwise.
const RECORD_LIMIT: usize = 64 << 20;

/// Whether a thread reads ahead while the consumer works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAhead {
    /// Measured while the stream runs: only while both sides wait in turn, or a decoder and the consumer work.
    #[default]
    Auto,
    /// From the start, but for a source that must stay on the caller's thread: a callback, a followed file.
    On,
    /// Never.
    Off,
}

/// Whether a read of a fast pipe may be put off by up to 0.3 ms, so that it gets more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latency {
    /// Yes, at 64 MB/s and more. 10 to 25 % less processor time.
    #[default]
    Normal,
    /// No.
    Low,
}

/// Whether compressed sources are decoded.
///
/// Unless told otherwise it is `Auto` for files, pipes, commands and memory, and `Off` for sockets (also one that is
/// given as a file descriptor), callbacks and any `Read`: what they carry is mostly a protocol, and one of its messages
/// might begin like a compressed stream. With `Auto` the other side decides, and the one byte that zstd's magic begins
/// with is held back until the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decode {
    /// gzip, bgzf and zstd are recognised by their first bytes (in a build with the feature `compression`).
    Auto,
    /// Bytes are delivered as they are.
    Off,
}

/// How much compressed data may grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeLimit {
    /// At most this many decoded bytes.
    pub bytes: Option<u64>,
    /// At most this many decoded bytes for a compressed one, from the first decoded MiB on.
    pub ratio: Option<u64>,
}

/// What happens at the end of a regular file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// It is the end.
    #[default]
    No,
    /// The reader waits for the file to grow, until it is cancelled or closed.
    Growing,
}

/// A reader's options; each method that names a source opens it.
///
/// ```
/// use millstream::{ReadAhead, Reader};
/// let mut reader = Reader::builder().read_ahead(ReadAhead::On).record_limit(1 << 20).command(["seq", "3"])?;
/// assert_eq!(reader.next_line()?, Some(&b"1"[..]));
/// # Ok::<(), millstream::Error>(())
/// ```
#[must_use = "a builder does nothing until a source is named"]
pub struct ReaderBuilder {
    capacity: usize,
    read_ahead: ReadAhead,
    ahead: (usize, usize),
    latency: Latency,
    record_limit: usize,
    /// `None`: as usual for the source.
    decode: Option<Decode>,
    decode_limit: DecodeLimit,
    stall_timeout: Option<Duration>,
    follow: Follow,
    cancel: Option<CancelToken>,
    observer: Option<Observer>,
    name: Option<String>,
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
            stall_timeout: None,
            follow: Follow::default(),
            cancel: None,
            observer: None,
            name: None,
        }
    }
}

/// Options. Those that cannot be, or not together or not with the source, are [`ErrorKind::InvalidOption`] when the source
/// is named, and nothing is opened then.
impl ReaderBuilder {
    /// The buffer's size at first, in bytes, at least 1: 256 KiB unless told otherwise. It grows for a longer record.
    pub fn capacity(mut self, bytes: usize) -> ReaderBuilder {
        self.capacity = bytes;
        self
    }

    /// Whether a thread reads ahead.
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> ReaderBuilder {
        self.read_ahead = read_ahead;
        self
    }

    /// How many bytes are read ahead: at first, and at most, when both sides turn out to stall in turn. 4 and
    /// 16 MiB unless told otherwise; rounded down to whole blocks of 256 KiB, of which there are at least two.
    pub fn read_ahead_capacity(mut self, first: usize, most: usize) -> ReaderBuilder {
        self.ahead = (first, most);
        self
    }

    /// Whether reads of a fast pipe may be put off a little.
    pub fn latency(mut self, latency: Latency) -> ReaderBuilder {
        self.latency = latency;
        self
    }

    /// The longest record, in bytes without its delimiter or prefix: 64 MiB unless told otherwise, less than
    /// 4 GiB. A longer one is [`ErrorKind::RecordTooLong`].
    pub fn record_limit(mut self, bytes: usize) -> ReaderBuilder {
        self.record_limit = bytes;
        self
    }

    /// Whether a compressed source is decoded.
    pub fn decode(mut self, decode: Decode) -> ReaderBuilder {
        self.decode = Some(decode);
        self
    }

    /// How much compressed data may grow: no limit unless told otherwise. Over it: [`ErrorKind::DecodeLimit`].
    /// Not for a source that is not decoded.
    pub fn decode_limit(mut self, limit: DecodeLimit) -> ReaderBuilder {
        self.decode_limit = limit;
        self
    }

    /// How long a source that waits for somebody may deliver nothing, or a command take to exit. Longer is
    /// [`ErrorKind::Stalled`].
    pub fn stall_timeout(mut self, limit: Duration) -> ReaderBuilder {
        self.stall_timeout = Some(limit);
        self
    }

    /// What happens at the end of a regular file, given by its path or as a file descriptor.
    pub fn follow(mut self, follow: Follow) -> ReaderBuilder {
        self.follow = follow;
        self
    }

    /// Lets `token` end waits.
    pub fn cancel(mut self, token: &CancelToken) -> ReaderBuilder {
        self.cancel = Some(token.clone());
        self
    }

    /// Calls `observer` before a read, not more often than every `interval`, and at the end. It runs on the
    /// caller's thread, and not while the source makes it wait: for that there is [`Reader::progress_handle`].
    pub fn observer(mut self, interval: Duration, observer: impl FnMut(&Progress) + Send + 'static) -> ReaderBuilder {
        self.observer = Some(Observer { interval, last: Instant::now(), call: Box::new(observer) });
        self
    }

    /// The name of the source in messages, instead of one made from what it is.
    pub fn name(mut self, name: impl Into<String>) -> ReaderBuilder {
        self.name = Some(name.into());
        self
    }
}

/// Sources.
impl ReaderBuilder {
    /// Reads a file, FIFO or device.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`].
    pub fn path(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        let wait = self.wait();
        self.open(Kind::File, path.display().to_string(), Some(path), || FdSource::open(path, &wait))
    }

    /// Reads standard input: a duplicate of the file descriptor, so that it stays open.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`] if it is closed or a directory.
    pub fn stdin(self) -> Result<Reader> {
        self.open(Kind::File, "standard input".into(), None, || FdSource::new(duplicate(rustix::stdio::stdin())?))
    }

    /// Reads a file descriptor and closes it.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`] if it is a directory.
    pub fn fd(self, fd: impl Into<OwnedFd>) -> Result<Reader> {
        let fd = fd.into();
        self.open(Kind::File, format!("file descriptor {}", fd.as_raw_fd()), None, || FdSource::new(fd))
    }

    /// Reads a duplicate of a file descriptor, which stays open. They share their position.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`] if it is a directory.
    pub fn borrow_fd(self, fd: impl AsFd) -> Result<Reader> {
        let fd = fd.as_fd();
        self.open(Kind::File, format!("file descriptor {}", fd.as_raw_fd()), None, || FdSource::new(duplicate(fd)?))
    }

    /// Connects to a TCP server and reads what it sends. That it closed the connection is all we can know.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`].
    pub fn tcp(self, address: impl ToSocketAddrs + std::fmt::Display) -> Result<Reader> {
        let wait = self.wait();
        self.open(Kind::Connection, format!("tcp:{address}"), None, || FdSource::new(connect::tcp(&address, &wait)?))
    }

    /// Connects to a Unix socket and reads what it sends. That it closed the connection is all we can know.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`].
    pub fn unix(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        self.open(Kind::Connection, format!("unix:{}", path.display()), None, || {
            FdSource::new(UnixStream::connect(path).map_err(open_failed)?.into())
        })
    }

    /// Starts a command and reads its standard output. The end is end of file *and* exit status 0; anything else
    /// is [`ErrorKind::CommandFailed`], after every byte it wrote.
    ///
    /// # Errors
    /// [`ErrorKind::CommandNotStarted`].
    pub fn command(self, command: impl Into<Command>) -> Result<Reader> {
        self.pipeline([command])
    }

    /// Starts commands, each reading what the one before writes, and reads the last one's standard output. Every
    /// command's status counts. Of several failures the first is reported, but death by SIGPIPE, which follows
    /// from a later command's end, only if there is no other. (So the `yes` of `yes | head` has failed, unless it
    /// [may](Command::allow_failure).)
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
    /// [`ErrorKind::CommandNotStarted`]; those that were started are stopped.
    pub fn pipeline<C: Into<Command>>(self, commands: impl IntoIterator<Item = C>) -> Result<Reader> {
        let commands: Vec<Command> = commands.into_iter().map(Into::into).collect();
        let name = commands.iter().map(Command::name).collect::<Vec<_>>().join(" | ");
        self.open(Kind::Command, name, None, || CommandSource::start(commands))
    }

    /// Starts a line of shell, `bash -o pipefail -c line`, and reads its standard output. Never pass it what a
    /// user typed or a file name: [`command`](ReaderBuilder::command) takes arguments as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where there is no bash; [`ErrorKind::CommandNotStarted`].
    pub fn shell(self, line: impl AsRef<std::ffi::OsStr>) -> Result<Reader> {
        self.command(Command::shell(line)?)
    }

    /// Reads any `std::io::Read`. It may be read on another thread, one read at a time; a read of it that blocks
    /// cannot be cancelled, and a reader that is closed meanwhile leaves its thread behind until the read ends.
    pub fn from_read(self, read: impl Read + Send + 'static) -> Result<Reader> {
        self.open(Kind::Program, "a Read".into(), None, || Ok(ReadSource(read)))
    }

    /// Reads what a callback puts into the slice it is given; it returns how many bytes, 0 at the end. It is
    /// called on the caller's thread only.
    pub fn callback(self, fill: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'static) -> Result<Reader> {
        self.open(Kind::Program, "a callback".into(), None, || Ok(CallbackSource(fill)))
    }

    /// Reads memory, without a copy (unless it is compressed).
    pub fn memory(self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Reader> {
        self.lent("memory".into(), Arc::new(bytes), None)
    }

    /// Maps a regular file and reads it, without a copy (unless it is compressed).
    ///
    /// The file must not shrink meanwhile: before it goes on the reader looks at its length, and reports
    /// [`ErrorKind::SourceShrank`], but between this and the use of the bytes a file that shrinks ends the
    /// process with SIGBUS. The resident memory is the file's. It is somewhat faster than [`path`](Self::path).
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`], also for anything that is no regular file.
    pub fn mapped(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        self.check(Kind::Memory)?;
        let name = path.display().to_string();
        let (memory, file) = map(path, Order::FrontToBack).map_err(|error| error.with_name(&name))?;
        if self.is_compressed((*memory).as_ref()) {
            // Decoding copies anyway, and without the mapping nothing can go wrong with it.
            return self.path(path);
        }
        self.lent(name, memory, Some(file))
    }

    fn open<S: Source + Opened + 'static>(
        self,
        kind: Kind,
        name: String,
        path: Option<&Path>,
        open: impl FnOnce() -> Result<S>,
    ) -> Result<Reader> {
        self.check(kind)?;
        let name = self.name.clone().unwrap_or(name);
        let source = open().map_err(|error| error.with_name(&name))?;
        let size = source.size();
        let decode = self.decode.unwrap_or(source.usual_decode());
        refuse(&[(
            self.decode_limit != DecodeLimit::default() && decode == Decode::Off,
            &"a limit for what is decoded, of a source that is usually not",
            &"Decode::Auto, or no limit",
        )])
        .map_err(|error| error.with_name(&name))?;
        let source = match self.follow {
            Follow::Growing => source.follow(path),
            Follow::No => source,
        };
        let meter = Meter::new(size.filter(|_| self.follow == Follow::No));
        let source = self.decoded(Box::new(Counted::new(source, meter.bytes.clone())), decode, path, &meter);
        let supply = Supply::new(source, self.plan());
        let buffer = Buffer::new(self.capacity.min(MOST));
        Ok(self.reader(buffer, supply, name, meter))
    }

    fn lent(self, name: String, memory: Lent, file: Option<File>) -> Result<Reader> {
        self.check(Kind::Memory)?;
        let name = self.name.clone().unwrap_or(name);
        if self.is_compressed((*memory).as_ref()) {
            let read = ReadSource(std::io::Cursor::new(Shared(memory)));
            return self.decode(Decode::Auto).open(Kind::Memory, name, None, || Ok(read));
        }
        let buffer = Buffer::lent(memory);
        let len = buffer.capacity();
        let supply = Supply::lent(len, file, self.plan());
        let meter = Meter { lent: true, ..Meter::new(Some(len as u64)) };
        Ok(self.reader(buffer, supply, name, meter))
    }

    /// Whether the options can be, and together: asked before anything is opened.
    fn check(&self, kind: Kind) -> Result<()> {
        let (first, most) = self.ahead;
        refuse(&[
            (self.capacity == 0, &"a capacity of 0 bytes", &"at least 1"),
            (
                self.record_limit > MOST,
                &format_args!("a record limit of {} bytes", self.record_limit),
                &format_args!("at most {MOST}"),
            ),
            (first > most, &format_args!("{first} bytes read ahead at first, {most} at most"), &"no more at first"),
            (self.stall_timeout == Some(Duration::ZERO), &"a stall timeout of 0 s", &"a longer one, or none"),
            (
                self.follow == Follow::Growing && kind != Kind::File,
                &format_args!("following {kind}"),
                &"a path or a file descriptor",
            ),
            (
                self.decode_limit != DecodeLimit::default() && self.decode == Some(Decode::Off),
                &"a limit for what is decoded, and Decode::Off",
                &"Decode::Auto, or no limit",
            ),
        ])
    }

    #[cfg(feature = "compression")]
    fn decoded(&self, source: Box<dyn Source>, decode: Decode, path: Option<&Path>, meter: &Meter) -> Box<dyn Source> {
        use crate::source::decode::DecodeSource;
        match decode {
            Decode::Off => source,
            Decode::Auto => {
                let (count, format) = (meter.bytes.clone(), meter.format.clone());
                Box::new(DecodeSource::new(source, path, self.decode_limit, count, format))
            }
        }
    }

    #[cfg(not(feature = "compression"))]
    fn decoded(&self, source: Box<dyn Source>, _: Decode, _: Option<&Path>, _: &Meter) -> Box<dyn Source> {
        source
    }

    #[cfg(feature = "compression")]
    fn is_compressed(&self, bytes: &[u8]) -> bool {
        self.decode != Some(Decode::Off) && crate::source::decode::is_compressed(bytes)
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
            wait: self.wait(),
        }
    }

    fn wait(&self) -> Wait {
        Wait::new(self.cancel.clone(), self.stall_timeout)
    }

    fn reader(self, buffer: Buffer, supply: Supply, name: String, meter: Meter) -> Reader {
        Reader {
            buffer,
            index: Default::default(),
            scanning: Default::default(),
            records: 0,
            longest: 0,
            unremarkable: 0,
            supply,
            state: State::Open,
            too_long: false,
            skip: None,
            begun: Default::default(),
            offsets: Vec::new(),
            leaves_records: false,
            record_limit: self.record_limit,
            name,
            meter,
            observer: self.observer,
            ends: Vec::new(),
        }
    }
}

/// What is read, as far as it decides which options can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Or a pipe, or a device: whatever has a name or is a file descriptor.
    File,
    Command,
    Connection,
    /// Code of the caller.
    Program,
    /// Also a mapped file, whose length is fixed.
    Memory,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::File => "a file",
            Kind::Command => "a command",
            Kind::Connection => "a connection",
            Kind::Program => "code of the program",
            Kind::Memory => "memory",
        })
    }
}

/// The most that a buffer may hold: positions in it are `u32`.
const MOST: usize = (u32::MAX - 0xffff) as usize;

/// What only some sources know when they are opened.
trait Opened: Sized {
    /// How many bytes there are.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Goes on at the end of a regular file. Other sources have no such end.
    fn follow(self, _path: Option<&Path>) -> Self {
        self
    }

    /// What holds unless an option says otherwise.
    fn usual_decode(&self) -> Decode {
        Decode::Off
    }
}

impl Opened for FdSource {
    fn size(&self) -> Option<u64> {
        FdSource::size(self)
    }

    fn follow(self, path: Option<&Path>) -> FdSource {
        FdSource::follow(self, path)
    }

    fn usual_decode(&self) -> Decode {
        if self.is_socket() { Decode::Off } else { Decode::Auto }
    }
}

impl Opened for CommandSource {
    fn usual_decode(&self) -> Decode {
        Decode::Auto
    }
}

impl<R> Opened for ReadSource<R> {}
impl<F> Opened for CallbackSource<F> {}

impl Meter {
    fn new(size: Option<u64>) -> Meter {
        Meter { opened: Instant::now(), bytes: Default::default(), format: Default::default(), size, lent: false }
    }
}

/// Lent memory, as `Cursor` wants it.
struct Shared(Lent);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

fn duplicate(fd: impl AsFd) -> Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(|error| open_failed(error.into()))
}

fn open_failed(error: std::io::Error) -> Error {
    Error::new(ErrorKind::OpenFailed).with_io(error)
}
