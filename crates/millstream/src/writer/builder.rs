//! The options of a [`Writer`], and its sink.

use crate::os::{AsFd, AsRawFd, OwnedFd};
use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Format;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::features;
use crate::os;
use crate::os::cancel::CancelToken;
use crate::os::command::Command;
use crate::os::sink::fd::{FdSink, Handle};
use crate::os::sink::path::{Access, Manner};
#[cfg(feature = "compression")]
use crate::sink;
use crate::sink::call::{CallbackSink, WriteSink};
use crate::sink::memory::{MemorySink, NowhereSink};
use crate::sink::{Durability, Existing, Limits, Medium, Meter, Metered, Opened, Partial, Sink};
use crate::writer::delay::DelaySink;
use crate::writer::encode::Encode;
use crate::writer::{Prompt, Writer};
use millstream_core::internal::Known;
use millstream_core::internal::refuse;

/// The default size of the buffer. For files, sizes between 8 KiB and 4 MiB make no difference.
const CAPACITY: usize = 64 << 10;

/// The default size for pipes. Each write can wake the reader, which is the main cost: for the same records, 125 ms
/// with 256 KiB and a pipe of 1 MiB, and 330 ms with 32 KiB and the default pipe.
const PIPE_CAPACITY: usize = 256 << 10;

/// The maximum initial capacity of a buffer, which is the same as for a reader.
const MOST: usize = (u32::MAX - 0xffff) as usize;

/// When a writer passes its bytes to the sink, apart from [`flush`](Writer::flush) and [`close`](Writer::close).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushPolicy {
    /// [`Line`](FlushPolicy::Line) if the sink is a terminal, [`WhenFull`](FlushPolicy::WhenFull) otherwise.
    #[default]
    Auto,
    /// Only when the buffer is full, which is the fastest policy.
    WhenFull,
    /// At each line end. After a write that contains a newline, all bytes up to the last newline have been passed on.
    Line,
    /// Whenever the buffer is full, and at most this long after a byte was written, even while the producer is idle. A
    /// separate thread passes the bytes on, and the next call reports its errors. This policy is not available for
    /// callbacks, which run only on the caller's thread.
    ///
    /// A new file appears under its name only when the writer is closed, whatever the delay. To follow it earlier,
    /// combine this policy with [`Existing::Append`] or [`Partial::Keep`].
    Delay(Duration),
}

impl Encode {
    /// The result of [`Encode::Auto`] for a path: the encoding that its name implies, or [`Encode::Off`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] if the name implies a format that cannot be written.
    ///
    /// ```
    /// use millstream::Encode;
    /// assert_eq!(Encode::of_name("reads.txt.GZ")?, Encode::Gzip);
    /// assert_eq!(Encode::of_name("reads.txt")?, Encode::Off);
    /// assert!(Encode::of_name("reads.txt.lz4").is_err());
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn of_name(path: impl AsRef<Path>) -> Result<Encode> {
        Ok(format_of_name(path.as_ref())?.map_or(Encode::Off, Encode::from))
    }

    /// Fails if bytes of this encoding cannot be appended to the file of this name because the file exists and is
    /// incomplete. This is the check of [`Existing::Append`]. If the whole file has to be read, `progress` is called
    /// with the number of bytes read and the total number.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`], or [`ErrorKind::Unsupported`] as [`of_name`](Encode::of_name) does.
    pub fn check_append(self, path: impl AsRef<Path>, mut progress: impl FnMut(u64, u64)) -> Result<()> {
        let path = path.as_ref();
        let format = match self {
            Encode::Auto => format_of_name(path)?,
            encode => encode.format(),
        };
        #[cfg(feature = "compression")]
        if let Some(format) = format {
            sink::append::check(path, format, None, &mut progress)?;
        }
        let _ = (format, &mut progress);
        Ok(())
    }
}

/// The format that a name implies.
fn format_of_name(path: &Path) -> Result<Option<Format>> {
    let format = Known::of_name(path).map(Known::encoded).transpose();
    format.map_err(|error| error.with_name(path.display().to_string()))
}

/// Whether a pipe is lent the pages of the writer's buffer instead of a copy (vmsplice(2) on Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LendPages {
    /// The pipe gets a copy.
    #[default]
    No,
    /// The pages are lent, and the reader of the pipe copies the bytes with read(2), as nearly all programs do.
    ///
    /// The caller must ensure that the reader does so, because the writer reuses its pages as soon as they have left
    /// the pipe. If a reader takes the pages without a copy, with splice(2) or tee(2) (such as `pv`, or a proxy), it
    /// passes on memory that keeps changing, and its output is silently wrong.
    ///
    /// Other sinks, such as standard output redirected to a file, are written normally. So are pieces of less than a
    /// quarter of the buffer, and pipes to which the operating system cannot pass pages without copying.
    ConsumerCopies,
}

/// The sizes of independent blocks.
const BLOCKS: std::ops::RangeInclusive<usize> = 4096..=64 << 20;

/// The options of a [`Writer`]. The last call, which names the sink, opens the writer. If an option is invalid,
/// conflicts with another one or does not apply to the sink, this call fails with [`ErrorKind::InvalidOption`], and no
/// sink is opened.
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
    block_size: Option<usize>,
    existing: Existing,
    partial: Partial,
    durability: Durability,
    lend_pages: LendPages,
    limits: Limits,
    name: Option<String>,
}

/// Options. If an option is invalid, conflicts with another one or does not apply to the sink, naming the sink fails
/// with [`ErrorKind::InvalidOption`], and no sink is opened.
impl WriterBuilder {
    /// Sets the size of the buffer in bytes, at least 1 and less than 4 GiB: 64 KiB by default, 256 KiB for pipes.
    /// Memory is allocated when the first byte is written.
    pub fn capacity(mut self, bytes: usize) -> WriterBuilder {
        self.capacity = Some(bytes);
        self
    }

    /// Sets when bytes are passed to the sink.
    pub fn flush_policy(mut self, policy: FlushPolicy) -> WriterBuilder {
        self.flush_policy = policy;
        self
    }

    /// Sets whether the bytes are compressed.
    pub fn encode(mut self, encode: Encode) -> WriterBuilder {
        self.encode = encode;
        self
    }

    /// Sets the level of compression, for encodings that have levels; the values of [`Encode`] list them.
    pub fn level(mut self, level: u32) -> WriterBuilder {
        self.level = Some(level);
        self
    }

    /// Compresses blocks of this many bytes independently of each other, on all processors: members of gzip, frames of
    /// zstd. Every decoder reads them one after another. The file is slightly larger, and a file of zstd can be divided at
    /// its frames. Each thread needs memory for six blocks. From 4096 to 67,108,864 bytes; by default there is one block.
    ///
    /// ```
    /// use millstream::{Encode, Reader, Writer};
    /// let mut writer = Writer::builder().encode(Encode::Zstd).block_size(4096).memory()?;
    /// writer.write(&[b'a'; 10_000])?;
    /// let encoded = writer.close()?.memory.unwrap();
    /// let mut decoded = Vec::new();
    /// std::io::Read::read_to_end(&mut Reader::memory(encoded)?, &mut decoded)?;
    /// assert_eq!(decoded.len(), 10_000);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn block_size(mut self, bytes: usize) -> WriterBuilder {
        self.block_size = Some(bytes);
        self
    }

    /// Sets what happens to a file that exists at a path, or to an object that exists.
    ///
    /// ```
    /// use millstream::{ErrorKind, Existing, Writer};
    /// let directory = tempfile::tempdir().unwrap();
    /// let open = || Writer::builder().existing(Existing::CreateNew).path(directory.path().join("ledger"));
    /// open()?.close()?;
    /// assert_eq!(open().unwrap_err().kind(), ErrorKind::AlreadyExists);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn existing(mut self, existing: Existing) -> WriterBuilder {
        self.existing = existing;
        self
    }

    /// Sets what happens to an incomplete file at a path.
    pub fn partial(mut self, partial: Partial) -> WriterBuilder {
        self.partial = partial;
        self
    }

    /// Sets whether a pipe is lent the buffer's pages. See [`LendPages::ConsumerCopies`] for the requirements on the
    /// reader of the pipe. This does not apply to sinks that are never a pipe, and cannot be combined with an encoding
    /// or a flush delay, which have their own buffers.
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

    /// Sets what closing a regular file waits for. This does not apply to other sinks, which cannot be synced.
    ///
    /// ```
    /// use millstream::{Durability, Writer};
    /// let directory = tempfile::tempdir().unwrap();
    /// let mut writer = Writer::builder().durability(Durability::All).path(directory.path().join("ledger"))?;
    /// writer.write(b"one\n")?;
    /// writer.close()?; // from now on the file survives a power failure
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn durability(mut self, durability: Durability) -> WriterBuilder {
        self.durability = durability;
        self
    }

    /// Fails with [`ErrorKind::Stalled`] if the sink accepts no bytes for this long. This does not apply to the
    /// caller's code. After the end of its input, a command may run for any length of time.
    pub fn stall_timeout(mut self, limit: Duration) -> WriterBuilder {
        self.limits.stall = Some(limit);
        self
    }

    /// Sets how long [`close`](Writer::close) waits for the peer of a connection to close its side, which confirms that
    /// it has read all bytes. By default this is the [`stall_timeout`](Self::stall_timeout), or 30 s without one; after
    /// that time, closing fails with [`ErrorKind::Stalled`]. With zero, `close` does not wait, and receipt is not
    /// confirmed.
    ///
    /// This applies only to connections. A descriptor that the caller keeps, such as that of
    /// [`borrow_fd`](Self::borrow_fd), is shut down only if this is set.
    pub fn linger(mut self, limit: Duration) -> WriterBuilder {
        self.limits.linger = Some(limit);
        self
    }

    /// Lets this token interrupt every wait for the sink, which then fails with [`ErrorKind::Cancelled`]. The caller's
    /// code ([`callback`](Self::callback), [`from_write`](Self::from_write)) and the lookup of a host name cannot be
    /// interrupted.
    pub fn cancel(mut self, token: &CancelToken) -> WriterBuilder {
        self.limits.token = Some(token.clone());
        self
    }

    /// Sets the name of the sink in error messages, instead of its path, address or command line.
    pub fn name(mut self, name: impl Into<String>) -> WriterBuilder {
        self.name = Some(name.into());
        self
    }
}

/// Sinks.
impl WriterBuilder {
    /// See [`Writer::path`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] for a directory, a missing parent directory or a lack of permission. No file
    /// is created in these cases.
    pub fn path(mut self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        let format = self.format_of(path)?;
        self.check(Kind::Path, format)?;
        #[cfg(feature = "compression")]
        if let (Existing::Append, Some(format)) = (self.existing, format) {
            sink::append::check(path, format, self.limits.token.as_ref(), &mut |_, _| ())?;
        }
        let opened = os::sink::path::open(path, &self.manner(Access::Write), &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::mapped`].
    ///
    /// # Errors
    /// Returns the errors of [`path`](Self::path), [`ErrorKind::OpenFailed`] for anything other than a regular file,
    /// and [`ErrorKind::InvalidOption`] for [`Existing::Append`].
    pub fn mapped(mut self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        let format = self.format_of(path)?;
        self.check(Kind::Mapped, format)?;
        let opened = os::sink::path::open(path, &self.manner(Access::Mapped), &self.limits)?;
        self.build(opened, format)
    }

    /// Checks what [`path`](Self::path) checks before it opens anything, and returns whether the bytes will be encoded:
    /// for bindings that open the path on another thread, but report wrong options at once.
    #[doc(hidden)]
    pub fn check_path(&mut self, path: impl AsRef<Path>) -> Result<bool> {
        let format = self.format_of(path.as_ref())?;
        self.check(Kind::Path, format)?;
        Ok(format.is_some())
    }

    /// Checks what [`url`](Self::url) checks before it makes a request, and returns whether the bytes will be encoded.
    #[doc(hidden)] // as `check_path`
    pub fn check_url(&mut self, remote: &crate::Remote) -> Result<bool> {
        remote.check_upload()?;
        // The URL is not shown, because its query may be secret.
        let format = self.format_of(Path::new(&remote.name()))?;
        self.check(Kind::Object, format).map_err(|error| error.with_name(remote.name()))?;
        Ok(format.is_some())
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

    /// Returns the length of the blocks whose pages are lent, if any.
    fn lend(&self) -> Option<usize> {
        match self.lend_pages {
            LendPages::No => None,
            LendPages::ConsumerCopies => Some(self.capacity.unwrap_or(PIPE_CAPACITY)),
        }
    }

    /// See [`Writer::stdout`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the process has no standard output.
    pub fn stdout(self) -> Result<Writer> {
        self.descriptor(Handle::Stdout, "standard output".into(), Owner::Caller)
    }

    /// See [`Writer::fd`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the descriptor is not open.
    pub fn fd(self, fd: impl Into<OwnedFd>) -> Result<Writer> {
        let fd = fd.into();
        let name = format!("file descriptor {}", fd.as_raw_fd());
        self.descriptor(Handle::Owned(fd), name, Owner::Writer)
    }

    /// See [`Writer::borrow_fd`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if the process has no descriptors left.
    pub fn borrow_fd(self, fd: impl AsFd) -> Result<Writer> {
        let name = format!("file descriptor {}", fd.as_fd().as_raw_fd());
        let copy = fd.as_fd().try_clone_to_owned()?;
        self.descriptor(Handle::Owned(copy), name, Owner::Caller)
    }

    /// Writes to the duplicate `fd` of the descriptor `original`, which errors name. It is for front ends, which must not
    /// use the caller's descriptor later.
    ///
    /// # Errors
    /// Returns the errors of [`borrow_fd`](Self::borrow_fd).
    #[doc(hidden)]
    pub fn duplicate_of(self, original: i32, fd: OwnedFd) -> Result<Writer> {
        self.descriptor(Handle::Owned(fd), format!("file descriptor {original}"), Owner::Caller)
    }

    fn descriptor(mut self, handle: Handle, name: String, owner: Owner) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Descriptor, format)?;
        let open = || {
            let (sink, medium) = FdSink::new(handle, self.limits.wait())?;
            let sink = sink.durable(self.durability)?.lending(self.lend());
            // A connection that other code also uses is shut down only if that was requested.
            let may_end = owner == Owner::Writer || self.limits.linger.is_some();
            Ok((if may_end { sink.ending_connection(&self.limits)? } else { sink }, medium))
        };
        let (sink, medium) = open().map_err(|error: Error| error.with_name(name.as_str()))?;
        self.build(Opened::new(sink, name, medium), format)
    }

    /// See [`Writer::command`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::CommandNotStarted`] if the command cannot be started.
    pub fn command(mut self, command: impl Into<Command>) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Command, format)?;
        let opened = os::sink::command::open(command.into(), self.lend(), &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::tcp`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the connection fails.
    pub fn tcp(mut self, addr: impl ToSocketAddrs + fmt::Display) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Connection, format)?;
        let opened = os::sink::socket::tcp(addr, &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::unix`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the connection fails.
    pub fn unix(mut self, path: impl AsRef<Path>) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Connection, format)?;
        let opened = os::sink::socket::unix(path.as_ref(), &self.limits)?;
        self.build(opened, format)
    }

    /// See [`Writer::url`].
    ///
    /// ```no_run
    /// # #[cfg(feature = "remote")] {
    /// use millstream::{Existing, Remote, Writer};
    /// let report = Remote::new("s3://reports/2026/11/27.csv").header("Content-Type", "text/csv");
    /// let mut writer = Writer::builder().existing(Existing::CreateNew).url(report)?;
    /// writer.write(b"date,orders\n")?;
    /// writer.close()?; // now the object exists
    /// # }
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] if the store cannot be reached or refuses, [`ErrorKind::AlreadyExists`] for an
    /// object that was to be created, and [`ErrorKind::Unsupported`] for the URLs of web servers.
    pub fn url(mut self, remote: impl Into<crate::Remote>) -> Result<Writer> {
        let remote = remote.into();
        let format = self.format_of(Path::new(&remote.name()))?;
        self.check(Kind::Object, format)?;
        let opened = crate::sink::object::open(remote, self.existing == Existing::CreateNew, self.limits.wait())?;
        self.build(opened, format)
    }

    /// See [`Writer::from_write`].
    ///
    /// # Errors
    /// Returns only errors of the options.
    pub fn from_write(mut self, inner: impl io::Write + Send + 'static) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Program, format)?;
        let sink = WriteSink { inner, wait: self.limits.wait() };
        self.build(Opened::new(sink, "a writer of the program", Medium::Plain), format)
    }

    /// See [`Writer::callback`].
    ///
    /// # Errors
    /// Returns only errors of the options.
    pub fn callback(mut self, function: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Callback, format)?;
        let sink = CallbackSink { function, wait: self.limits.wait() };
        self.build(Opened::new(sink, "a callback", Medium::Plain), format)
    }

    /// See [`Writer::memory`].
    ///
    /// # Errors
    /// Returns only errors of the options.
    pub fn memory(mut self) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Memory, format)?;
        self.build(Opened::new(MemorySink::default(), "memory", Medium::Plain), format)
    }

    /// See [`Writer::nowhere`].
    ///
    /// # Errors
    /// Returns only errors of the options.
    pub fn nowhere(mut self) -> Result<Writer> {
        let format = self.format();
        self.check(Kind::Memory, format)?;
        self.build(Opened::new(NowhereSink, "nowhere", Medium::Plain), format)
    }

    /// Returns the format of a file of this name.
    fn format_of(&self, path: &Path) -> Result<Option<Format>> {
        match self.encode {
            Encode::Auto => format_of_name(path),
            _ => Ok(self.format()),
        }
    }

    /// Returns the format given by its name.
    fn format(&self) -> Option<Format> {
        self.encode.format()
    }

    /// Checks that the options are valid, individually and together, before any sink is opened, so that an error has no
    /// side effect. Creates the objects that they need.
    fn check(&mut self, kind: Kind, format: Option<Format>) -> Result<()> {
        let encoding = format.map(|format| format.to_string()).unwrap_or_default();
        let is_path = matches!(kind, Kind::Path | Kind::Mapped);
        let levels = format.map_or(0..=u32::MAX, |format| format.levels());
        let level = self.level.unwrap_or(*levels.start());
        let lends = self.lend_pages != LendPages::No;
        let appends = matches!(self.existing, Existing::Append | Existing::AppendUnchecked);
        let runs_in_program = matches!(kind, Kind::Callback | Kind::Program);
        refuse(&[
            (self.capacity == Some(0), &"a capacity of 0 bytes", &"at least 1"),
            (
                self.capacity > Some(MOST),
                &format_args!("a capacity of {} bytes", self.capacity.unwrap_or_default()),
                &format_args!("at most {MOST}"),
            ),
            (
                self.level.is_some() && format.is_none(),
                &"a compression level for uncompressed output",
                &"an encoding, a name that implies one, or no level",
            ),
            (
                !levels.contains(&level),
                &format_args!("level {level} for {encoding}"),
                &format_args!("{} to {}", levels.start(), levels.end()),
            ),
            (
                self.block_size.is_some() && !matches!(format, Some(Format::Gzip | Format::Zstd)),
                &format_args!("a block size for {}", if format.is_some() { &encoding } else { "uncompressed output" }),
                &"gzip, zstd, or no block size",
            ),
            (
                self.block_size.is_some_and(|size| !BLOCKS.contains(&size)),
                &format_args!("a block size of {} bytes", self.block_size.unwrap_or_default()),
                &format_args!("{} to {}", BLOCKS.start(), BLOCKS.end()),
            ),
            (
                lends && !matches!(kind, Kind::Path | Kind::Descriptor | Kind::Command),
                &format_args!("lent pages for {kind}"),
                &"an output that may be a pipe",
            ),
            (lends && format.is_some(), &"lent pages with an encoding", &"one of them"),
            (
                lends && matches!(self.flush_policy, FlushPolicy::Delay(_)),
                &"lent pages with a flush delay",
                &"one of them",
            ),
            (
                kind == Kind::Callback && matches!(self.flush_policy, FlushPolicy::Delay(_)),
                &"a flush delay for a callback",
                &"another policy: callbacks run only on the caller's thread",
            ),
            (kind != Kind::Path && appends, &format_args!("appending to {kind}"), &"a path"),
            (
                !is_path && kind != Kind::Object && self.existing == Existing::CreateNew,
                &format_args!("creating {kind}"),
                &"a path or an object",
            ),
            (
                kind == Kind::Object && matches!(self.flush_policy, FlushPolicy::Delay(_)),
                &"a flush delay for an object",
                &"another policy: an object appears when it is closed",
            ),
            (!is_path && self.partial == Partial::Keep, &format_args!("a kept incomplete file for {kind}"), &"a path"),
            (
                self.existing == Existing::Append && self.partial == Partial::Keep,
                &"appending, and a kept incomplete file",
                &"one of them: appended bytes stay in any case",
            ),
            (
                self.limits.linger.is_some() && !matches!(kind, Kind::Connection | Kind::Descriptor),
                &format_args!("a linger time for {kind}"),
                &"a connection",
            ),
            (
                self.durability != Durability::Cached && !is_path && kind != Kind::Descriptor,
                &format_args!("a durable close of {kind}"),
                &"a regular file",
            ),
            (self.limits.stall == Some(Duration::ZERO), &"a stall timeout of 0 s", &"a longer one, or no timeout"),
            (
                runs_in_program && self.limits.stall.is_some(),
                &format_args!("a stall timeout for {kind}"),
                &"none: a callback cannot be interrupted",
            ),
        ])?;
        if let Some(format) = format {
            features::require(format)?;
        }
        // The writer's own thread may be waiting for the sink, and giving up must not wait for that thread.
        if matches!(self.flush_policy, FlushPolicy::Delay(_)) && !runs_in_program {
            self.limits.halt = Some(CancelToken::new()?);
        }
        Ok(())
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
            sink = Box::new(sink::encode::EncodeSink::new(format, self.level, self.block_size, sink)?);
        }
        let prompt = match (self.flush_policy, opened.medium) {
            (FlushPolicy::Line, _) | (FlushPolicy::Auto, Medium::Terminal) => Prompt::Line,
            (FlushPolicy::WhenFull | FlushPolicy::Auto, _) => Prompt::WhenFull,
            (FlushPolicy::Delay(delay), _) => {
                let halt = self.limits.halt.map_or_else(CancelToken::new, Ok)?;
                sink = Box::new(DelaySink::new(sink, capacity, delay, halt));
                Prompt::AtOnce
            }
        };
        Ok(Writer::new(sink, meter, name, capacity, prompt, opened.on_drop))
    }
}

/// The owner of a descriptor. A connection that other code also uses must not be shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Writer,
    Caller,
}

/// The kind of sink, which decides which options are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Path,
    Mapped,
    Descriptor,
    Command,
    Connection,
    Callback,
    /// An object of a store.
    Object,
    /// Any [`io::Write`].
    Program,
    /// Memory, or no destination.
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
            Kind::Object => "an object",
            Kind::Callback => "a callback",
            Kind::Program => "a writer of the program",
            Kind::Memory => "memory",
        })
    }
}
