//! Readers: bytes and records out of a source.
//!
//! The end of the stream means that the source succeeded: a command that exits with a status other than 0 is an error,
//! after every byte it wrote has been delivered. An error is reported once; after it comes a plain end, unless
//! millstream_code_is_resumable().
//!
//! The bytes of lines, records and batches stay the reader's: they are valid until the next call on it that is not
//! const.

use std::ffi::{CString, c_char, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

use millstream::frame::Delimiter;
use millstream::{
    Decode, DecodeLimit, Error, ErrorKind, Follow, Format, Latency, Progress, ReadAhead, Reader, ReaderBuilder, Result,
    Waits,
};

use crate::boundary::{
    Condition, User, bytes, c_string, call, choice, chosen, duplicate_fd, free, given, invalid, items, lend, out,
    own_fd, path, string, text,
};
use crate::cancel::millstream_cancel_token;
use crate::command::millstream_command;
use crate::error::{CommandEnds, millstream_code, millstream_command_end, millstream_error};
use crate::frame::{millstream_batch, millstream_framer};
use crate::settings::Settings;

/// How to read. NULL, where options are asked for, means the usual ones. Options can serve any number of readers.
/// Freed by millstream_reader_options_free(), at any time after the readers were opened.
pub struct millstream_reader_options(Settings<ReaderBuilder>);

/// Reads a source. Freed by millstream_reader_free().
pub struct millstream_reader {
    /// `None` once closed.
    reader: Option<Reader>,
    condition: Condition,
    name: CString,
    /// What C looks at.
    ends: CommandEnds,
    /// Where it was when it was closed.
    closed_at: Progress,
}

/// Whether a thread reads ahead while the consumer works.
#[repr(u32)]
pub enum millstream_read_ahead {
    /// Measured while the stream runs: only while both sides wait in turn, or a decoder and the consumer work.
    Auto = 0,
    /// From the start, but for a source that must stay on the caller's thread: a callback, a followed file.
    On = 1,
    /// Never.
    Off = 2,
}

/// Whether a read of a fast pipe may be put off by up to 0.3 ms, so that it gets more.
#[repr(u32)]
pub enum millstream_latency {
    /// Yes, at 64 MB/s and more.
    Normal = 0,
    /// No.
    Low = 1,
}

/// Whether compressed sources are decoded. Unless told otherwise files, pipes, commands and memory are, and sockets and
/// callbacks are not: what they carry is mostly a protocol, one of whose messages might begin like a compressed stream.
#[repr(u32)]
pub enum millstream_decode {
    /// gzip, bgzf and zstd are recognised by their first bytes.
    Auto = 0,
    /// Bytes are delivered as they are.
    Off = 1,
}

/// What happens at the end of a regular file.
#[repr(u32)]
pub enum millstream_follow {
    /// It is the end.
    No = 0,
    /// The reader waits for the file to grow, until it is cancelled or closed.
    Growing = 1,
}

/// How a source is compressed.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum millstream_format {
    /// Not at all, or not known yet, or by a format that this header does not know.
    None = 0,
    /// gzip.
    Gzip = 1,
    /// gzip in blocks, as samtools and tabix write it.
    Bgzf = 2,
    /// Zstandard.
    Zstd = 3,
}

/// Whether the next records have to be waited for. What need not be waited for comes first.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum millstream_waits {
    /// There is something, or the end, or an error to be told.
    No = 0,
    /// Nobody can say, as with a callback.
    Unknown = 1,
    /// Nothing is there.
    Yes = 2,
}

choice!(millstream_read_ahead is ReadAhead { Auto => ReadAhead::Auto, On => ReadAhead::On, Off => ReadAhead::Off });

choice!(millstream_latency is Latency { Normal => Latency::Normal, Low => Latency::Low });

choice!(millstream_decode is Decode { Auto => Decode::Auto, Off => Decode::Off });

choice!(millstream_follow is Follow { No => Follow::No, Growing => Follow::Growing });

/// How a reader gets on.
#[repr(C)]
pub struct millstream_progress {
    /// Bytes consumed, after decoding.
    pub bytes: u64,
    /// Records taken or skipped.
    pub records: u64,
    /// Bytes read from the source, before decoding.
    pub source_bytes: u64,
    /// How many of these there are in all, if `source_size_known`.
    pub source_size: u64,
    /// Whether that is known.
    pub source_size_known: bool,
    /// How the source is compressed.
    pub format: millstream_format,
    /// Since the reader was opened.
    pub elapsed_ns: u64,
    /// For how long the consumer has waited for bytes.
    pub waited_ns: u64,
    /// The longest record so far, in bytes, with its delimiter or prefix.
    pub longest_record: u64,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl From<&Progress> for millstream_progress {
    fn from(progress: &Progress) -> millstream_progress {
        millstream_progress {
            bytes: progress.bytes,
            records: progress.records,
            source_bytes: progress.source_bytes,
            source_size: progress.source_size.unwrap_or(0),
            source_size_known: progress.source_size.is_some(),
            format: match progress.format {
                Some(Format::Gzip) => millstream_format::Gzip,
                Some(Format::Bgzf) => millstream_format::Bgzf,
                Some(Format::Zstd) => millstream_format::Zstd,
                _ => millstream_format::None,
            },
            elapsed_ns: nanoseconds(progress.elapsed),
            waited_ns: nanoseconds(progress.waited),
            longest_record: progress.longest_record as u64,
        }
    }
}

/// Fills up to `len` bytes at `space` and returns how many, 0 at the end of the stream. An error is a negative number
/// of errno.h, such as -EIO; -EINTR and -EAGAIN mean that it should be asked again.
pub type millstream_fill_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, space: *mut c_char, len: usize) -> isize>;

/// Hears how a reader gets on.
pub type millstream_observer_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, progress: *const millstream_progress)>;

/// Gets lent memory back.
pub type millstream_release_callback = Option<unsafe extern "C" fn(user: *mut c_void)>;

impl millstream_reader {
    /// What the reader does, as long as it is open and nobody else uses it.
    #[inline]
    pub(crate) fn with<T>(&mut self, act: impl FnOnce(&mut Reader) -> Result<T>) -> Result<T> {
        let (reader, condition) = self.parts()?;
        condition.during(|| act(reader))
    }

    /// The reader, if it is open, and whether it can be used.
    #[inline]
    pub(crate) fn parts(&mut self) -> Result<(&mut Reader, &mut Condition)> {
        match &mut self.reader {
            Some(reader) => Ok((reader, &mut self.condition)),
            None => Err(Error::new(ErrorKind::Closed).with_name(self.name.to_string_lossy())),
        }
    }

    /// The reader, for who takes it over.
    pub(crate) fn into_core(mut self) -> Result<Reader> {
        self.with(|_| Ok(()))?;
        self.reader.ok_or_else(|| Error::new(ErrorKind::Closed))
    }

    fn progress(&self) -> Progress {
        self.reader.as_ref().map_or_else(|| self.closed_at.clone(), Reader::progress)
    }
}

// ---- options ----

/// Makes options that say nothing yet.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_new(
    options: Option<&mut MaybeUninit<Box<millstream_reader_options>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        out(options, "options")?.write(Box::new(millstream_reader_options(Settings::new())));
        Ok(())
    })
}

/// Changes options.
fn set(
    options: Option<&mut millstream_reader_options>,
    setting: impl Fn(ReaderBuilder) -> ReaderBuilder + Send + Sync + 'static,
) -> Result<()> {
    given(options, "options")?.0.set(setting);
    Ok(())
}

/// The buffer's size at first: 256 KiB unless told otherwise. It grows for a longer record.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_capacity(
    options: Option<&mut millstream_reader_options>,
    bytes: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(options, move |builder| builder.capacity(bytes)))
}

/// Whether a thread reads ahead.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_read_ahead(
    options: Option<&mut millstream_reader_options>,
    read_ahead: MaybeUninit<millstream_read_ahead>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let read_ahead = chosen(read_ahead)?;
        set(options, move |builder| builder.read_ahead(read_ahead))
    })
}

/// How many bytes are read ahead: at first, and at most, when both sides turn out to stall in turn. 4 and 16 MiB
/// unless told otherwise; rounded down to whole blocks of 256 KiB, of which there are at least two.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_read_ahead_capacity(
    options: Option<&mut millstream_reader_options>,
    first: usize,
    most: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(options, move |builder| builder.read_ahead_capacity(first, most)))
}

/// Whether reads of a fast pipe may be put off a little.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_latency(
    options: Option<&mut millstream_reader_options>,
    latency: MaybeUninit<millstream_latency>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let latency = chosen(latency)?;
        set(options, move |builder| builder.latency(latency))
    })
}

/// The longest record, in bytes without its delimiter or prefix: 64 MiB unless told otherwise, less than 4 GiB. A
/// longer one is MILLSTREAM_RECORD_TOO_LONG.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_record_limit(
    options: Option<&mut millstream_reader_options>,
    bytes: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(options, move |builder| builder.record_limit(bytes)))
}

/// Whether compressed sources are decoded.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_decode(
    options: Option<&mut millstream_reader_options>,
    decode: MaybeUninit<millstream_decode>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let decode = chosen(decode)?;
        set(options, move |builder| builder.decode(decode))
    })
}

/// How much compressed data may grow: to this many bytes, and to this many for a compressed one (from the first
/// decoded MiB on). 0 is no limit, as when told nothing. Over it: MILLSTREAM_DECODE_LIMIT.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_decode_limit(
    options: Option<&mut millstream_reader_options>,
    bytes: u64,
    ratio: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let limit = |limit| Some(limit).filter(|&limit| limit > 0);
        let limit = DecodeLimit { bytes: limit(bytes), ratio: limit(ratio) };
        set(options, move |builder| builder.decode_limit(limit))
    })
}

/// How long a source that waits for somebody may deliver nothing, or a command take to exit. Longer is
/// MILLSTREAM_STALLED.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_stall_timeout_ns(
    options: Option<&mut millstream_reader_options>,
    limit_ns: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(options, move |builder| builder.stall_timeout(Duration::from_nanos(limit_ns))))
}

/// What happens at the end of a regular file.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_follow(
    options: Option<&mut millstream_reader_options>,
    follow: MaybeUninit<millstream_follow>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let follow = chosen(follow)?;
        set(options, move |builder| builder.follow(follow))
    })
}

/// Lets a token end waits.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_set_cancel(
    options: Option<&mut millstream_reader_options>,
    token: Option<&millstream_cancel_token>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let token = given(token, "token")?.0.clone();
        set(options, move |builder| builder.cancel(&token))
    })
}

/// Calls `observer` before a read, not more often than every `interval_ns`, and at the end: on the thread that uses
/// the reader, and not while the source makes it wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_options_set_observer(
    options: Option<&mut millstream_reader_options>,
    interval_ns: u64,
    observer: millstream_observer_callback,
    user: *mut c_void,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (observer, user) = (given(observer, "observer")?, User(user));
        let interval = Duration::from_nanos(interval_ns);
        set(options, move |builder| {
            builder.observer(interval, move |progress| {
                // SAFETY: a function of C's, called as the header says.
                unsafe { observer(user.pointer(), &progress.into()) }
            })
        })
    })
}

/// The name of the source in messages, instead of one made from what it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_options_set_name(
    options: Option<&mut millstream_reader_options>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let name = unsafe { string(name, "name")? }.to_string_lossy().into_owned();
        set(options, move |builder| builder.name(&name))
    })
}

/// Frees options. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_options_free(options: Option<Box<millstream_reader_options>>) {
    free(options);
}

// ---- sources ----

/// Opens a reader: `source` is the builder's last call.
fn open(
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    source: impl FnOnce(ReaderBuilder) -> Result<Reader>,
) -> Result<()> {
    let to = out(reader, "reader")?;
    let builder = match options {
        Some(options) => options.0.apply(Reader::builder())?,
        None => Reader::builder(),
    };
    let reader = source(builder)?;
    to.write(Box::new(millstream_reader {
        name: c_string(reader.name()),
        reader: Some(reader),
        condition: Condition::default(),
        ends: CommandEnds::default(),
        closed_at: Progress::default(),
    }));
    Ok(())
}

/// Reads a file, FIFO or device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_path(
    path: *const c_char,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let path = unsafe { self::path(path, "path")? };
        open(options, reader, |builder| builder.path(path))
    })
}

/// Maps a regular file and reads it, without a copy (unless it is compressed).
///
/// The file must not shrink meanwhile: before it goes on the reader looks at its length, and reports
/// MILLSTREAM_SOURCE_SHRANK, but between this and the use of the bytes a file that shrinks ends the process with
/// SIGBUS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_mapped(
    path: *const c_char,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let path = unsafe { self::path(path, "path")? };
        open(options, reader, |builder| builder.mapped(path))
    })
}

/// Reads standard input: a duplicate of the file descriptor, so that it stays open. What stdio has read of it already
/// is not seen.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_stdin(
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, reader, ReaderBuilder::stdin))
}

/// Reads a file descriptor, which is the reader's from now on, and closed if this fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_fd(
    fd: i32,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let fd = own_fd(fd)?;
        open(options, reader, |builder| builder.fd(fd))
    })
}

/// Reads a duplicate of a file descriptor, which stays the caller's. They share their position.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_borrow_fd(
    fd: i32,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let fd = duplicate_fd(fd)?;
        open(options, reader, |builder| builder.fd(fd))
    })
}

/// Starts a command and reads its standard output. The end is end of file and exit status 0; anything else is
/// MILLSTREAM_COMMAND_FAILED, after every byte it wrote.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_command(
    command: Option<&millstream_command>,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let command = given(command, "command")?.core()?;
        open(options, reader, |builder| builder.command(command))
    })
}

/// Starts `count` commands, each reading what the one before writes, and reads the last one's standard output. Every
/// command's status counts. Of several failures the first is reported, but death by SIGPIPE, which follows from a
/// later command's end, only if there is no other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_pipeline(
    commands: *const Option<&millstream_command>,
    count: usize,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends an array of handles for this call.
        let commands = unsafe { items(commands, count, "commands")? };
        let commands =
            commands.iter().map(|command| given(*command, "commands")?.core()).collect::<Result<Vec<_>>>()?;
        if commands.is_empty() {
            return Err(invalid("a pipeline of no commands", "1 or more"));
        }
        open(options, reader, |builder| builder.pipeline(commands))
    })
}

/// Starts a line of shell, `bash -o pipefail -c line`, and reads its standard output. Never pass it what a user typed
/// or a file name: a command takes arguments as they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_shell(
    line: *const c_char,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let line = unsafe { string(line, "line")? };
        open(options, reader, |builder| builder.shell(line))
    })
}

/// Connects to a TCP server, such as "localhost:7000", and reads what it sends. That it closed the connection is all
/// that can be known of the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_tcp(
    address: *const c_char,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let address = unsafe { text(address, "address")? };
        open(options, reader, |builder| builder.tcp(address))
    })
}

/// Connects to a Unix socket and reads what it sends. That it was closed is all that can be known of the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_unix(
    path: *const c_char,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let path = unsafe { self::path(path, "path")? };
        open(options, reader, |builder| builder.unix(path))
    })
}

/// Reads a copy of `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_memory(
    bytes: *const c_void,
    len: usize,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends the bytes for this call.
        let bytes = unsafe { self::bytes(bytes, len, "bytes")? }.to_vec();
        open(options, reader, |builder| builder.memory(bytes))
    })
}

/// Memory that C lends, and how to give it back.
struct Lent {
    bytes: &'static [u8],
    release: millstream_release_callback,
    user: User,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a function of C's, called as the header says.
            unsafe { release(self.user.pointer()) }
        }
    }
}

/// Reads `len` bytes where they are. They must not change until `release` is called with `user`, which happens once,
/// also if this call fails: when the reader is closed or freed, or, of compressed bytes, perhaps a little later and by
/// another thread. A `release` of NULL is for memory that outlives everything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_lent_memory(
    bytes: *const c_void,
    len: usize,
    release: millstream_release_callback,
    user: *mut c_void,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let mut memory = Lent { bytes: &[], release, user: User(user) };
        // SAFETY: C lends the bytes until they are released, which is when nobody has `memory` any more.
        memory.bytes = unsafe { self::bytes(bytes, len, "bytes")? };
        open(options, reader, |builder| builder.memory(memory))
    })
}

/// Reads what a callback puts into the space it is given. It is called with `user` by the thread that uses the reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_callback(
    fill: millstream_fill_callback,
    user: *mut c_void,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (fill, user) = (given(fill, "fill")?, User(user));
        let fill = move |space: &mut [u8]| {
            // SAFETY: a function of C's, called as the header says.
            counted(unsafe { fill(user.pointer(), space.as_mut_ptr().cast(), space.len()) })
        };
        open(options, reader, |builder| builder.callback(fill))
    })
}

/// What a callback returns: how many bytes, or a negative error number.
pub(crate) fn counted(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| {
        let errno = i32::try_from(returned.unsigned_abs()).unwrap_or(0);
        io::Error::from_raw_os_error(errno)
    })
}

// ---- bytes ----

/// Bytes that C may look at: a pointer and a length, both out-parameters.
pub(crate) struct Span<'a> {
    bytes: &'a mut MaybeUninit<*const c_char>,
    len: &'a mut MaybeUninit<usize>,
}

impl<'a> Span<'a> {
    #[inline]
    pub(crate) fn out(
        bytes: Option<&'a mut MaybeUninit<*const c_char>>,
        name: &str,
        len: Option<&'a mut MaybeUninit<usize>>,
    ) -> Result<Span<'a>> {
        Ok(Span { bytes: out(bytes, name)?, len: out(len, "len")? })
    }

    #[inline]
    pub(crate) fn set(self, bytes: &[u8]) {
        self.bytes.write(lend(bytes));
        self.len.write(bytes.len());
    }
}

/// Reads at least one more byte behind the unread ones, gives all of them, and says in `added` how many are new: 0 is
/// the end, and says that the source succeeded. `bytes` and `len` are the unread bytes also after an error, since their
/// addresses change.
///
/// MILLSTREAM_RECORD_TOO_LONG when more bytes than the record limit are unread, which can be consumed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_fill(
    reader: Option<&mut millstream_reader>,
    bytes: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    added: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (unread, added) = (Span::out(bytes, "bytes", len)?, out(added, "added")?);
        given(reader, "reader")?.with(|reader| {
            let filled = reader.fill();
            unread.set(reader.buffer());
            added.write(filled?);
            Ok(())
        })
    })
}

/// The unread bytes that are there.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_buffer(
    reader: Option<&millstream_reader>,
    bytes: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let unread = Span::out(bytes, "bytes", len)?;
        unread.set(given(reader, "reader")?.reader.as_ref().map_or(&[], Reader::buffer));
        Ok(())
    })
}

/// Takes `count` bytes from the front of the unread ones. Those behind them stay where they are.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_consume(
    reader: Option<&mut millstream_reader>,
    count: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        given(reader, "reader")?.with(|reader| {
            let unread = reader.buffer().len();
            if count > unread {
                return Err(invalid(format!("{count} bytes to consume"), format!("at most the {unread} unread ones")));
            }
            reader.consume(count);
            Ok(())
        })
    })
}

/// Copies at least one byte, and at most `room` of them, to `to`, and says how many in `len`; 0 is the end, and says
/// that the source succeeded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_read(
    reader: Option<&mut millstream_reader>,
    to: *mut c_void,
    room: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let len = out(len, "len")?;
        let reader = given(reader, "reader")?;
        if to.is_null() || room == 0 || room > isize::MAX as usize {
            return Err(invalid(format!("room for {room} bytes at {to:p}"), "room for at least one byte"));
        }
        reader.with(|reader| {
            if reader.buffer().is_empty() {
                reader.fill()?;
            }
            let count = reader.buffer().len().min(room);
            // SAFETY: C lends `room` bytes to write to, which are no part of the buffer: that is the reader's own.
            unsafe { std::ptr::copy_nonoverlapping(reader.buffer().as_ptr(), to.cast(), count) };
            reader.consume(count);
            len.write(count);
            Ok(())
        })
    })
}

// ---- records ----

/// The next line, without its line feed or carriage return and line feed. At the end `line` is NULL, which says that
/// the source succeeded; an empty line is not NULL, and has the length 0. The line is not terminated by a NUL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_line(
    reader: Option<&mut millstream_reader>,
    line: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let line = Span::out(line, "line", len)?;
        given(reader, "reader")?.with(|reader| {
            if let Some(found) = reader.next_line()? {
                line.set(found);
            }
            Ok(())
        })
    })
}

/// The next record, as `framer` finds and trims it. At the end `record` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_frame(
    reader: Option<&mut millstream_reader>,
    framer: Option<&mut millstream_framer>,
    record: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let record = Span::out(record, "record", len)?;
        let framer = given(framer, "framer")?;
        given(reader, "reader")?.with(|reader| {
            if let Some(found) = reader.next_frame(&mut framer.framer)? {
                record.set(found);
            }
            Ok(())
        })
    })
}

/// The bytes before the next `delimiter`, or before the end. At the end `record` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_read_until(
    reader: Option<&mut millstream_reader>,
    delimiter: c_char,
    record: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let record = Span::out(record, "record", len)?;
        given(reader, "reader")?.with(|reader| {
            if let Some(found) = reader.next_frame(&mut Delimiter::byte(delimiter as u8))? {
                record.set(found);
            }
            Ok(())
        })
    })
}

/// The next records, as many as are there but at most `max`, which is at least 1: waits for one, never for a second.
/// At the end `batch->count` is 0. The records before a bad one are delivered first.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_batch(
    reader: Option<&mut millstream_reader>,
    framer: Option<&mut millstream_framer>,
    max: usize,
    batch: Option<&mut MaybeUninit<millstream_batch>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let batch = out(batch, "batch")?;
        let framer = given(framer, "framer")?;
        given(reader, "reader")?.with(|reader| {
            if let Some(found) = reader.next_batch_of(&mut framer.framer, max)? {
                batch.write(found.into());
            }
            Ok(())
        })
    })
}

/// Skips one record, however long it is, and says in `skipped` whether there was one. After
/// MILLSTREAM_RECORD_TOO_LONG it is the one that was too long, and the reader goes on behind it.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_skip_record(
    reader: Option<&mut millstream_reader>,
    framer: Option<&mut millstream_framer>,
    skipped: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let skipped = out(skipped, "skipped")?;
        let framer = given(framer, "framer")?;
        given(reader, "reader")?.with(|reader| {
            skipped.write(reader.skip_record(&mut framer.framer)?);
            Ok(())
        })
    })
}

// ---- where we are ----

/// What errors call the source. It is the reader's, and valid until that is freed; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_name(reader: Option<&millstream_reader>) -> *const c_char {
    reader.map_or(std::ptr::null(), |reader| reader.name.as_ptr())
}

/// Where the reader is: bytes consumed, after decoding, and records taken or skipped. Once it is closed: where it was.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_position(
    reader: Option<&millstream_reader>,
    bytes: Option<&mut MaybeUninit<u64>>,
    records: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (bytes, records) = (out(bytes, "bytes")?, out(records, "records")?);
        let reader = given(reader, "reader")?;
        let (at, count) = match reader.reader.as_ref().map(Reader::position) {
            Some(position) => (position.bytes, position.records),
            None => (reader.closed_at.bytes, reader.closed_at.records),
        };
        bytes.write(at);
        records.write(count);
        Ok(())
    })
}

/// Whether the next batch has to be waited for: for those who read from several readers in turn. Only of use between two
/// batches. MILLSTREAM_WAITS_NO for NULL and for a reader that is closed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_waits(reader: Option<&millstream_reader>) -> millstream_waits {
    match reader.and_then(|reader| reader.reader.as_ref()).map_or(Waits::No, Reader::waits) {
        Waits::No => millstream_waits::No,
        Waits::Unknown => millstream_waits::Unknown,
        Waits::Yes => millstream_waits::Yes,
    }
}

/// The file descriptor that becomes readable when millstream_reader_fill() has something to read or has come to the end: for
/// an event loop that must not be held up. -1 where there is none to wait for: of a file, a callback, a compressed
/// stream, with a thread that reads ahead, behind the end, and for NULL.
///
/// It is the reader's, may change with every call that is not const, and may be waited for by any means that does not
/// read it. One fill then waits for next to nothing: for the rest of a compressed stream's first bytes, to get more out of a
/// fast pipe, or for a command that has closed its output to exit.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_waits_for(reader: Option<&millstream_reader>) -> i32 {
    let reader = reader.and_then(|reader| reader.reader.as_ref());
    reader.and_then(Reader::waits_for).map_or(-1, |fd| fd.as_raw_fd())
}

/// How the reader gets on. Once it is closed: how it did.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_progress(
    reader: Option<&millstream_reader>,
    progress: Option<&mut MaybeUninit<millstream_progress>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let progress = out(progress, "progress")?;
        progress.write((&given(reader, "reader")?.progress()).into());
        Ok(())
    })
}

/// How the source's commands ended, all of them: after the end, after an error that was theirs, and after
/// millstream_reader_close(). `ends` is an array of `count` that is valid until the next call on the reader that is not
/// const.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_command_ends(
    reader: Option<&mut millstream_reader>,
    ends: Option<&mut MaybeUninit<*const millstream_command_end>>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (ends, count) = (out(ends, "ends")?, out(count, "count")?);
        let reader = given(reader, "reader")?;
        if let Some(open) = &reader.reader {
            reader.ends = CommandEnds::new(open.command_ends().iter().cloned());
        }
        ends.write(reader.ends.ends.as_ptr());
        count.write(reader.ends.ends.len());
        Ok(())
    })
}

/// Ends the reading, wherever it is. The reader is still there to be asked where it was, and to be freed.
///
/// Before the end of the stream the library's side of the pipe is closed; a command that is still there after a second
/// gets SIGTERM, and after another one SIGKILL. How it ends then is no error. MILLSTREAM_COMMAND_FAILED if a command
/// had failed by itself before this; MILLSTREAM_CLOSED if this has been called before.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_close(
    reader: Option<&mut millstream_reader>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let handle = given(reader, "reader")?;
        handle.with(|_| Ok(()))?;
        let Some(reader) = handle.reader.take() else { return Ok(()) };
        handle.closed_at = reader.progress();
        // A close that fails does not tell them, but then they are known already.
        let known = reader.command_ends().to_vec();
        let closed = reader.close();
        let (ends, result) = match closed {
            Ok(ends) => (ends, Ok(())),
            Err(error) => (known, Err(error)),
        };
        handle.ends = CommandEnds::new(ends);
        result
    })
}

/// Frees a reader, closing it first if it is open; how that ends nobody hears. It may take two seconds where a command
/// has to be stopped. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_free(reader: Option<Box<millstream_reader>>) {
    free(reader);
}
