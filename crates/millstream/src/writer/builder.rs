//! How a [`Writer`] is made: every option, then the kind of sink.

use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::cancel::CancelToken;
use crate::command::Command;
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::format::Format;
use crate::sink::call::{CallbackSink, WriteSink};
use crate::sink::fd::{FdSink, Handle};
use crate::sink::memory::{MemorySink, NowhereSink};
use crate::sink::path::{Access, Manner};
use crate::sink::{self, Limits, Medium, Meter, Metered, Opened, Sink};
use crate::writer::delay::DelaySink;
use crate::writer::{Prompt, Writer};

/// The buffer's size where nothing speaks for another one. Between 8 KiB and 4 MiB there is no difference for files.
const CAPACITY: usize = 64 << 10;

/// For pipes: each write can wake the reader, and that is the main cost (125 ms with 256 KiB and a pipe of 1 MiB,
/// 330 ms with 32 KiB and the default pipe for the same records).
const PIPE_CAPACITY: usize = 256 << 10;

/// The most that a buffer may hold at first: as much as a reader's.
const MOST: usize = (u32::MAX - 0xffff) as usize;

/// When a writer hands its bytes to the sink, apart from [`flush`](Writer::flush) and [`close`](Writer::close).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushPolicy {
    /// `Line` if the sink is a terminal, `WhenFull` otherwise.
    #[default]
    Auto,
    /// When the buffer is full: the fastest.
    WhenFull,
    /// At each line end: after a write that holds a newline, all up to the last newline is on its way.
    Line,
    /// When the buffer is full, and at the latest this long after a byte was written, also while the producer is
    /// idle: a thread sees to that, and an error that it meets is reported by the next call. Not for callbacks,
    /// which run only on the caller's thread.
    ///
    /// A new file appears under its name only when the writer is closed, whatever the delay. Who wants to follow it
    /// earlier combines this with [`Existing::Append`] or [`Partial::Keep`].
    Delay(Duration),
}

/// Whether the bytes are compressed on their way to the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encode {
    /// By the ending of a path's name: `.gz` gzip, `.bgz` and `.bgzf` bgzf, `.zst` zstd. Of other sinks, not.
    #[default]
    Auto,
    /// As they are.
    Off,
    /// gzip.
    Gzip,
    /// bgzf: gzip in blocks, as samtools and tabix like it, compressed by several threads.
    Bgzf,
    /// Zstandard.
    Zstd,
}

impl Encode {
    /// What [`Encode::Auto`] makes of a path: the encoding that its name asks for, or [`Encode::Off`].
    ///
    /// ```
    /// use millstream::Encode;
    /// assert_eq!(Encode::of_name("reads.txt.GZ"), Encode::Gzip);
    /// assert_eq!(Encode::of_name("reads.txt"), Encode::Off);
    /// ```
    pub fn of_name(path: impl AsRef<Path>) -> Encode {
        match Format::of_name(path.as_ref()) {
            Some(Format::Gzip) => Encode::Gzip,
            Some(Format::Bgzf) => Encode::Bgzf,
            Some(Format::Zstd) => Encode::Zstd,
            None => Encode::Off,
        }
    }
}

/// What to do with a regular file that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new content takes its place.
    #[default]
    Replace,
    /// The new bytes go behind its own. They are there as soon as they are written, also if the rest fails.
    Append,
}

/// What to do with output that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// A file appears whole, when the writer is closed, or not at all.
    #[default]
    Remove,
    /// A file is written in place: it is truncated first, and what was written stays, whatever happens then.
    Keep,
}

/// Whether a pipe is lent the pages of the writer's buffer, instead of a copy of them (vmsplice(2) of Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LendPages {
    /// The pipe gets a copy.
    #[default]
    No,
    /// Whoever reads the pipe copies what it reads, by read(2), as nearly all programs do.
    ///
    /// That is a promise of yours about the other side. The writer writes its pages again as soon as they have left the
    /// pipe. A reader that takes them out without a copy, by splice(2) or tee(2) (such as `pv`, or a proxy), and passes
    /// them on, passes on memory that changes under its hands: its output would be wrong, and nobody would know.
    ///
    /// What is no pipe, such as standard output that is redirected to a file, is written as ever; so are pieces of less
    /// than a quarter of the buffer, and where the system cannot lend.
    ConsumerCopies,
}

/// What a regular file's [`close`](Writer::close) waits for, before the file takes its name.
///
/// It always hears of what the file system reports when a file is closed, as NFS and quotas do of a full disk. It does
/// not wait for the disk unless asked to: a power failure within the next half minute or so may cost the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The system has the bytes, and writes them to the disk when it likes.
    #[default]
    Cached,
    /// The bytes are on the disk (fdatasync(2)): who finds the new file finds all of it.
    Data,
    /// And so are the file's attributes and its name (fsync(2) of the file, and then of its directory): after `close`
    /// the new file is what is found.
    All,
}

/// Options for a [`Writer`]; its last call, which names the sink, opens it. Options that cannot be, or not together or
/// not with the sink, are [`ErrorKind::InvalidOption`] then, and nothing is opened.
///
/// ```
/// use millstream::{Encode, FlushPolicy, Writer};
/// use std::time::Duration;
///
/// let mut writer = Writer::builder()
///     .encode(Encode::Gzip)
///     .flush_policy(FlushPolicy::Delay(Duration::from_millis(100)))
///     .memory()?;
/// writer.write(b"hello\n")?;
/// let end = writer.close()?;
/// assert_eq!(&end.memory.unwrap()[..2], [0x1f, 0x8b]);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until a sink is named"]
pub struct WriterBuilder {
    capacity: Option<usize>,
    flush_policy: FlushPolicy,
    encode: Encode,
    level: Option<u32>,
    existing: Existing,
    partial: Partial,
    durability: Durability,
    lend_pages: LendPages,
    limits: Limits,
    name: Option<String>,
}

impl WriterBuilder {
    /// The buffer's size in bytes, at least 1 and less than 4 GiB: 64 KiB unless told otherwise, 256 KiB for pipes. Memory is taken when
    /// the first byte is written.
    pub fn capacity(mut self, bytes: usize) -> WriterBuilder {
        self.capacity = Some(bytes);
        self
    }

    /// When bytes are handed to the sink.
    pub fn flush_policy(mut self, policy: FlushPolicy) -> WriterBuilder {
        self.flush_policy = policy;
        self
    }

    /// Whether the bytes are compressed.
    pub fn encode(mut self, encode: Encode) -> WriterBuilder {
        self.encode = encode;
        self
    }

    /// The level of compression, where there is one: 0 to 9 for gzip and bgzf (6 unless told otherwise), 1 to 22 for zstd (3).
    pub fn level(mut self, level: u32) -> WriterBuilder {
        self.level = Some(level);
        self
    }

    /// What to do with a file that exists, of a path.
    pub fn existing(mut self, existing: Existing) -> WriterBuilder {
        self.existing = existing;
        self
    }

    /// What to do with a file that is not complete, of a path.
    pub fn partial(mut self, partial: Partial) -> WriterBuilder {
        self.partial = partial;
        self
    }

    /// What closing a regular file waits for. Not for other sinks, which have nothing to sync.
    ///
    /// ```
    /// use millstream::{Durability, Writer};
    /// let directory = tempfile::tempdir().unwrap();
    /// let mut writer = Writer::builder().durability(Durability::All).path(directory.path().join("ledger"))?;
    /// writer.write(b"one\n")?;
    /// writer.close()?; // from here on no power failure can undo it
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn durability(mut self, durability: Durability) -> WriterBuilder {
        self.durability = durability;
        self
    }

    /// Whether a pipe is lent the buffer's pages. Read at [`LendPages::ConsumerCopies`] what that asks of the other side.
    /// Not for sinks that are never a pipe, and not together with an encoding or [`FlushPolicy::Delay`], which have
    /// buffers of their own.
    ///
    /// ```
    /// use millstream::{LendPages, Writer};
    /// let mut writer = Writer::builder().lend_pages(LendPages::ConsumerCopies).command(["wc", "-c"])?;
    /// for _ in 0..1_000_000 {
    ///     writer.write(b"hello\n")?;
    /// }
    /// writer.close()?;
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn lend_pages(mut self, lend_pages: LendPages) -> WriterBuilder {
        self.lend_pages = lend_pages;
        self
    }

    /// Lets this token end every wait for the sink, with [`ErrorKind::Cancelled`]. Code of the caller
    /// ([`callback`](Self::callback), [`from_write`](Self::from_write)) and the lookup of a host name
    /// cannot be interrupted.
    pub fn cancel(mut self, token: &CancelToken) -> WriterBuilder {
        self.limits.token = Some(token.clone());
        self
    }

    /// Fails with [`ErrorKind::Stalled`] when the sink takes nothing for this long. Not for code of the caller. A
    /// command may work for as long as it likes after its input has ended.
    pub fn stall_timeout(mut self, limit: Duration) -> WriterBuilder {
        self.limits.stall = Some(limit);
        self
    }

    /// What errors call the sink, instead of its path, address or command line.
    pub fn name(mut self, name: impl Into<String>) -> WriterBuilder {
        self.name = Some(name.into());
        self
    }

    // The sinks. Options that cannot be, or not together or not with the sink, are refused before it is opened.

    /// See [`Writer::path`].
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`] for a directory, a missing parent directory, no permission: nothing is created then.
    pub fn path(self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        let format = self.format_of(path);
        self.check(Kind::Path, format)?;
        let opened = sink::path::open(path, &self.manner(Access::Write), &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::mapped`].
    ///
    /// # Errors
    /// As [`path`](Self::path); [`ErrorKind::OpenFailed`] for anything that is no regular file,
    /// [`ErrorKind::InvalidOption`] for [`Existing::Append`].
    pub fn mapped(self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        let format = self.format_of(path);
        self.check(Kind::Mapped, format)?;
        let opened = sink::path::open(path, &self.manner(Access::Mapped), &self.limits)?;
        self.build(opened, format)
    }

    fn manner(&self, access: Access) -> Manner {
        Manner {
            existing: self.existing,
            partial: self.partial,
            durability: self.durability,
            access,
            lend: self.lend(),
        }
    }

    /// The length of the blocks whose pages are lent, if any.
    fn lend(&self) -> Option<usize> {
        match self.lend_pages {
            LendPages::No => None,
            LendPages::ConsumerCopies => Some(self.capacity.unwrap_or(PIPE_CAPACITY)),
        }
    }

    /// See [`Writer::stdout`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the process has no standard output.
    pub fn stdout(self) -> Result<Writer> {
        self.descriptor(Handle::Stdout, "standard output".into())
    }

    /// See [`Writer::fd`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system knows nothing of it.
    pub fn fd(self, fd: impl Into<OwnedFd>) -> Result<Writer> {
        let fd = fd.into();
        let name = format!("file descriptor {}", fd.as_raw_fd());
        self.descriptor(Handle::Owned(fd), name)
    }

    /// See [`Writer::borrow_fd`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the process has no descriptors left.
    pub fn borrow_fd(self, fd: impl AsFd) -> Result<Writer> {
        let name = format!("file descriptor {}", fd.as_fd().as_raw_fd());
        let copy = fd.as_fd().try_clone_to_owned()?;
        self.descriptor(Handle::Owned(copy), name)
    }

    fn descriptor(self, handle: Handle, name: String) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Descriptor, format)?;
        let (sink, medium) = FdSink::new(handle, self.limits.wait())
            .and_then(|(sink, medium)| Ok((sink.durable(self.durability)?.lending(self.lend()), medium)))
            .map_err(|error| error.with_name(name.as_str()))?;
        self.build(Opened::new(sink, name, medium), format)
    }

    /// See [`Writer::command`].
    ///
    /// # Errors
    /// [`ErrorKind::CommandNotStarted`].
    pub fn command(self, command: impl Into<Command>) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Command, format)?;
        let opened = sink::command::open(command.into(), self.lend(), &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::tcp`].
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`].
    pub fn tcp(self, addr: impl ToSocketAddrs + fmt::Display) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Connection, format)?;
        let opened = sink::socket::tcp(addr, &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::unix`].
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`].
    pub fn unix(self, path: impl AsRef<Path>) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Connection, format)?;
        let opened = sink::socket::unix(path.as_ref(), &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::from_write`].
    ///
    /// # Errors
    /// Only those of the options.
    pub fn from_write(self, inner: impl io::Write + Send + 'static) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Program, format)?;
        let sink = WriteSink { inner, wait: self.limits.wait() };
        self.build(Opened::new(sink, "a writer of the program", Medium::Plain), format)
    }

    /// See [`Writer::callback`].
    ///
    /// # Errors
    /// Only those of the options.
    pub fn callback(self, function: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Callback, format)?;
        let sink = CallbackSink { function, wait: self.limits.wait() };
        self.build(Opened::new(sink, "a callback", Medium::Plain), format)
    }

    /// See [`Writer::memory`].
    ///
    /// # Errors
    /// Only those of the options.
    pub fn memory(self) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Memory, format)?;
        self.build(Opened::new(MemorySink::default(), "memory", Medium::Plain), format)
    }

    /// See [`Writer::nowhere`].
    ///
    /// # Errors
    /// Only those of the options.
    pub fn nowhere(self) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Memory, format)?;
        self.build(Opened::new(NowhereSink, "nowhere", Medium::Plain), format)
    }

    /// The format of a file of this name.
    fn format_of(&self, path: &Path) -> Option<Format> {
        match self.encode {
            Encode::Auto => Format::of_name(path),
            _ => self.format(),
        }
    }

    /// The format asked for by name.
    fn format(&self) -> Option<Format> {
        match self.encode {
            Encode::Auto | Encode::Off => None,
            Encode::Gzip => Some(Format::Gzip),
            Encode::Bgzf => Some(Format::Bgzf),
            Encode::Zstd => Some(Format::Zstd),
        }
    }

    /// Whether the options can be, and together: asked before anything is opened, so that a mistake leaves no trace.
    fn check(&self, kind: Kind, format: Option<Format>) -> Result<()> {
        let encoding = format.map(|format| format.to_string()).unwrap_or_default();
        let is_path = matches!(kind, Kind::Path | Kind::Mapped);
        let may_encode = format.is_some() || (is_path && self.encode == Encode::Auto);
        let levels = format.map_or(0..=u32::MAX, |format| format.levels());
        let level = self.level.unwrap_or(*levels.start());
        let lends = self.lend_pages != LendPages::No;
        let runs_in_program = matches!(kind, Kind::Callback | Kind::Program);
        refuse(&[
            (self.capacity == Some(0), &"a capacity of 0 bytes", &"at least 1"),
            (
                self.capacity > Some(MOST),
                &format_args!("a capacity of {} bytes", self.capacity.unwrap_or_default()),
                &format_args!("at most {MOST}"),
            ),
            (self.level.is_some() && !may_encode, &"a level without an encoding", &"an encoding, or no level"),
            (
                !levels.contains(&level),
                &format_args!("level {level} for {encoding}"),
                &format_args!("{} to {}", levels.start(), levels.end()),
            ),
            (
                lends && !matches!(kind, Kind::Path | Kind::Descriptor | Kind::Command),
                &format_args!("lent pages for {kind}"),
                &"what may be a pipe",
            ),
            (lends && format.is_some(), &"lent pages, and an encoding", &"one of them"),
            (
                lends && matches!(self.flush_policy, FlushPolicy::Delay(_)),
                &"lent pages, and a flush delay",
                &"one of them",
            ),
            (
                kind == Kind::Callback && matches!(self.flush_policy, FlushPolicy::Delay(_)),
                &"a flush delay for a callback",
                &"another policy: callbacks run only on the caller's thread",
            ),
            (
                kind != Kind::Path && self.existing == Existing::Append,
                &format_args!("Existing::Append for {kind}"),
                &"a path",
            ),
            (!is_path && self.partial == Partial::Keep, &format_args!("Partial::Keep for {kind}"), &"a path"),
            (
                self.durability != Durability::Cached && !is_path && kind != Kind::Descriptor,
                &format_args!("Durability::{:?} for {kind}", self.durability),
                &"a regular file",
            ),
            (self.limits.stall == Some(Duration::ZERO), &"a stall timeout of 0 s", &"a longer one, or none"),
            (
                runs_in_program && self.limits.stall.is_some(),
                &format_args!("a stall timeout for {kind}"),
                &"none: code of the program cannot be interrupted",
            ),
        ])?;
        match format {
            Some(format) if cfg!(not(feature = "compression")) => Err(Error::new(ErrorKind::Unsupported)
                .with_found(format!("{format:?}"))
                .with_expected("a build with the feature `compression`")),
            _ => Ok(()),
        }
    }

    fn build(self, opened: Opened, format: Option<Format>) -> Result<Writer> {
        let name = self.name.unwrap_or(opened.name);
        let capacity = self.capacity.unwrap_or(match opened.medium {
            Medium::Pipe => PIPE_CAPACITY,
            _ => CAPACITY,
        });
        let meter = Arc::new(Meter::default());
        let mut sink: Box<dyn Sink> = Box::new(Metered::new(opened.sink, meter.clone()));
        #[cfg(not(feature = "compression"))]
        debug_assert!(format.is_none(), "refused before anything was opened");
        #[cfg(feature = "compression")]
        if let Some(format) = format {
            sink = Box::new(sink::encode::EncodeSink::new(format, self.level, sink)?);
        }
        let prompt = match (self.flush_policy, opened.medium) {
            (FlushPolicy::Line, _) | (FlushPolicy::Auto, Medium::Terminal) => Prompt::Line,
            (FlushPolicy::WhenFull | FlushPolicy::Auto, _) => Prompt::WhenFull,
            (FlushPolicy::Delay(delay), _) => {
                sink = Box::new(DelaySink::new(sink, capacity, delay));
                Prompt::AtOnce
            }
        };
        Ok(Writer::new(sink, meter, name, capacity, prompt, opened.on_drop))
    }
}

/// What is written to, as far as it decides which options can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Path,
    Mapped,
    Descriptor,
    Command,
    Connection,
    Callback,
    /// Any [`io::Write`].
    Program,
    /// Or nowhere.
    Memory,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Path => "a path",
            Kind::Mapped => "a mapped file",
            Kind::Descriptor => "a file descriptor",
            Kind::Command => "a command",
            Kind::Connection => "a connection",
            Kind::Callback => "a callback",
            Kind::Program => "a writer of the program",
            Kind::Memory => "memory",
        })
    }
}
