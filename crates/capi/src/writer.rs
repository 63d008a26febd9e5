//! Writers: bytes into a sink.
//!
//! A write that fails has accepted none of its bytes; one that succeeds has accepted all. What was accepted is with
//! the sink after millstream_writer_close() has succeeded, and not before; a file appears whole then, or not at all.
//!
//! A pipe or connection that nobody reads any more is MILLSTREAM_BROKEN_PIPE in a program that ignores SIGPIPE. One
//! that leaves SIGPIPE as it is, as C programs do unless told otherwise, is ended by it when it writes to a closed
//! pipe. The library never changes what signals do.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use millstream::{Durability, Encode, Existing, FlushPolicy, LendPages, Partial, Result, Writer, WriterBuilder};

use crate::boundary::{
    Condition, User, bytes, c_string, call, choice, chosen, duplicate_fd, free, given, invalid, lend, out, own_fd,
    path, string, text,
};
use crate::cancel::millstream_cancel_token;
use crate::command::millstream_command;
use crate::error::{CommandEnds, millstream_code, millstream_command_end, millstream_error};
use crate::reader::counted;
use crate::settings::Settings;

/// How to write. NULL, where options are asked for, means the usual ones. Options can serve any number of writers.
/// Freed by millstream_writer_options_free(), at any time after the writers were opened.
pub struct millstream_writer_options(Settings<WriterBuilder>);

/// Writes to a sink. Freed by millstream_writer_free().
pub struct millstream_writer {
    pub(crate) writer: Writer,
    pub(crate) condition: Condition,
    name: CString,
    /// All that was written, once it is closed, if it was kept.
    memory: Option<Vec<u8>>,
    ends: CommandEnds,
}

/// When a writer hands its bytes to the sink, apart from a flush.
#[repr(u32)]
pub enum millstream_flush_policy {
    /// At each line end if the sink is a terminal, otherwise when the buffer is full.
    Auto = 0,
    /// When the buffer is full: the fastest.
    WhenFull = 1,
    /// At each line end: after a write that holds a newline, all up to the last newline is on its way.
    Line = 2,
}

/// Whether the bytes are compressed on their way to the sink.
#[repr(u32)]
pub enum millstream_encode {
    /// By the ending of a path's name: .gz gzip, .bgz and .bgzf bgzf, .zst zstd. Of other sinks, not.
    Auto = 0,
    /// As they are.
    Off = 1,
    /// gzip.
    Gzip = 2,
    /// gzip in blocks, as samtools and tabix like it, compressed by several threads.
    Bgzf = 3,
    /// Zstandard.
    Zstd = 4,
}

/// What to do with a regular file that exists.
#[repr(u32)]
pub enum millstream_existing {
    /// The new content takes its place.
    Replace = 0,
    /// The new bytes go behind its own. They are there as soon as they are written, also if the rest fails.
    Append = 1,
}

/// What to do with output that is not complete.
#[repr(u32)]
pub enum millstream_partial {
    /// A file appears whole, when the writer is closed, or not at all.
    Remove = 0,
    /// A file is written in place: it is truncated first, and what was written stays, whatever happens then.
    Keep = 1,
}

/// What closing a regular file waits for, before the file takes its name.
#[repr(u32)]
pub enum millstream_durability {
    /// The system has the bytes, and writes them to the disk when it likes: a power failure within the next half minute
    /// or so may cost the file.
    Cached = 0,
    /// The bytes are on the disk (fdatasync(2)): who finds the new file finds all of it.
    Data = 1,
    /// And so are the file's attributes and its name (fsync(2) of the file, and then of its directory).
    All = 2,
}

/// Whether a pipe is lent the pages of the writer's buffer, instead of a copy of them (vmsplice(2) of Linux).
#[repr(u32)]
pub enum millstream_lend_pages {
    /// The pipe gets a copy.
    No = 0,
    /// Whoever reads the pipe copies what it reads, by read(2), as nearly all programs do.
    ///
    /// That is a promise of yours about the other side. The writer writes its pages again as soon as they have left the
    /// pipe. A reader that takes them out without a copy, by splice(2) or tee(2) (such as pv, or a proxy), and passes
    /// them on, passes on memory that changes under its hands: its output would be wrong, and nobody would know.
    ConsumerCopies = 1,
}

choice!(millstream_lend_pages is LendPages { No => LendPages::No, ConsumerCopies => LendPages::ConsumerCopies });

choice!(millstream_durability is Durability {
    Cached => Durability::Cached,
    Data => Durability::Data,
    All => Durability::All,
});

choice!(millstream_flush_policy is FlushPolicy {
    Auto => FlushPolicy::Auto,
    WhenFull => FlushPolicy::WhenFull,
    Line => FlushPolicy::Line,
});

choice!(millstream_encode is Encode {
    Auto => Encode::Auto,
    Off => Encode::Off,
    Gzip => Encode::Gzip,
    Bgzf => Encode::Bgzf,
    Zstd => Encode::Zstd,
});

choice!(millstream_existing is Existing { Replace => Existing::Replace, Append => Existing::Append });

choice!(millstream_partial is Partial { Remove => Partial::Remove, Keep => Partial::Keep });

/// Takes at least one of `len` bytes and returns how many. An error is a negative number of errno.h, such as -EIO;
/// -EINTR means that it should be asked again. After another error a later call gets the same bytes again.
pub type millstream_write_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, bytes: *const c_char, len: usize) -> isize>;

impl millstream_writer {
    /// What the writer does, as long as nobody else uses it.
    #[inline]
    fn with<T>(&mut self, act: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        self.condition.during(|| act(&mut self.writer))
    }
}

// ---- options ----

/// Makes options that say nothing yet.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_new(
    options: Option<&mut MaybeUninit<Box<millstream_writer_options>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        out(options, "options")?.write(Box::new(millstream_writer_options(Settings::new())));
        Ok(())
    })
}

/// Changes options.
fn set(
    options: Option<&mut millstream_writer_options>,
    setting: impl Fn(WriterBuilder) -> WriterBuilder + Send + Sync + 'static,
) -> Result<()> {
    given(options, "options")?.0.set(setting);
    Ok(())
}

/// The buffer's size, at least 1 and less than 4 GiB: 64 KiB unless told otherwise, 256 KiB for pipes.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_capacity(
    options: Option<&mut millstream_writer_options>,
    bytes: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(options, move |builder| builder.capacity(bytes)))
}

/// When bytes are handed to the sink.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_flush_policy(
    options: Option<&mut millstream_writer_options>,
    policy: MaybeUninit<millstream_flush_policy>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let policy = chosen(policy)?;
        set(options, move |builder| builder.flush_policy(policy))
    })
}

/// Hands bytes to the sink when the buffer is full, and at the latest this long after a byte was written, also while
/// the producer is idle: a thread sees to that, and an error that it meets is reported by the next call. Not for
/// callbacks, which run only on the caller's thread.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_flush_delay_ns(
    options: Option<&mut millstream_writer_options>,
    delay_ns: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    let policy = FlushPolicy::Delay(Duration::from_nanos(delay_ns));
    call(error, || set(options, move |builder| builder.flush_policy(policy)))
}

/// Whether the bytes are compressed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_encode(
    options: Option<&mut millstream_writer_options>,
    encode: MaybeUninit<millstream_encode>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let encode = chosen(encode)?;
        set(options, move |builder| builder.encode(encode))
    })
}

/// The level of compression: 0 to 9 for gzip and bgzf (6 unless told otherwise), 1 to 22 for zstd (3).
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_level(
    options: Option<&mut millstream_writer_options>,
    level: u32,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(options, move |builder| builder.level(level)))
}

/// What to do with a file that exists.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_existing(
    options: Option<&mut millstream_writer_options>,
    existing: MaybeUninit<millstream_existing>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let existing = chosen(existing)?;
        set(options, move |builder| builder.existing(existing))
    })
}

/// What to do with a file that is not complete.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_partial(
    options: Option<&mut millstream_writer_options>,
    partial: MaybeUninit<millstream_partial>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let partial = chosen(partial)?;
        set(options, move |builder| builder.partial(partial))
    })
}

/// Whether a pipe is lent the pages of the buffer. What is no pipe is written as ever.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_lend_pages(
    options: Option<&mut millstream_writer_options>,
    lend_pages: MaybeUninit<millstream_lend_pages>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let lend_pages = chosen(lend_pages)?;
        set(options, move |builder| builder.lend_pages(lend_pages))
    })
}

/// What closing a regular file waits for.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_durability(
    options: Option<&mut millstream_writer_options>,
    durability: MaybeUninit<millstream_durability>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let durability = chosen(durability)?;
        set(options, move |builder| builder.durability(durability))
    })
}

/// Fails with MILLSTREAM_STALLED when the sink takes nothing for this long. Not for callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_stall_timeout_ns(
    options: Option<&mut millstream_writer_options>,
    limit_ns: u64,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || set(options, move |builder| builder.stall_timeout(Duration::from_nanos(limit_ns))))
}

/// Lets a token end every wait for the sink. A callback and the lookup of a host name cannot be interrupted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_options_set_cancel(
    options: Option<&mut millstream_writer_options>,
    token: Option<&millstream_cancel_token>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let token = given(token, "token")?.0.clone();
        set(options, move |builder| builder.cancel(&token))
    })
}

/// What errors call the sink, instead of its path, address or command line.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_options_set_name(
    options: Option<&mut millstream_writer_options>,
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
pub extern "C" fn millstream_writer_options_free(options: Option<Box<millstream_writer_options>>) {
    free(options);
}

// ---- sinks ----

/// Opens a writer: `sink` is the builder's last call.
fn open(
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    sink: impl FnOnce(WriterBuilder) -> Result<Writer>,
) -> Result<()> {
    let to = out(writer, "writer")?;
    let builder = match options {
        Some(options) => options.0.apply(Writer::builder())?,
        None => Writer::builder(),
    };
    let writer = sink(builder)?;
    to.write(Box::new(millstream_writer {
        name: c_string(writer.name()),
        writer,
        condition: Condition::default(),
        memory: None,
        ends: CommandEnds::default(),
    }));
    Ok(())
}

/// Writes a file, compressed if its name ends in .gz, .bgz, .bgzf or .zst.
///
/// A regular or absent path appears whole when the writer is closed: until then the bytes are in a temporary file
/// beside it, whose name begins with a dot. An existing file's permissions are kept; a symbolic link is followed. FIFOs
/// and devices are written directly; opening a FIFO waits for its reader. /dev/stdout is standard output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_path(
    path: *const c_char,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let path = unsafe { self::path(path, "path")? };
        open(options, writer, |builder| builder.path(path))
    })
}

/// Writes a regular file through memory that it is mapped into, in steps for which room is reserved beforehand. In all
/// else it is as millstream_writer_path(), and it has its true length after a close, an error and a free. Measure before
/// you take it: a plain write is faster for most.
///
/// Nobody may make the file shorter meanwhile: that ends the process with SIGBUS. And where MILLSTREAM_PARTIAL_KEEP
/// writes in place, the file is longer than what was written, by zeros, until it has its true length: a flush does not
/// see to that, and a process that is killed leaves it so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_mapped(
    path: *const c_char,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let path = unsafe { self::path(path, "path")? };
        open(options, writer, |builder| builder.mapped(path))
    })
}

/// Writes to standard output: the file descriptor 1 itself, without stdio's buffer, which must be flushed before.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_stdout(
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, writer, WriterBuilder::stdout))
}

/// Writes to a file descriptor, which is the writer's from now on, and closed if this fails. Its mode (O_NONBLOCK) is
/// respected and never changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_fd(
    fd: i32,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let fd = own_fd(fd)?;
        open(options, writer, |builder| builder.fd(fd))
    })
}

/// Writes to a duplicate of a file descriptor, which stays the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_borrow_fd(
    fd: i32,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let fd = duplicate_fd(fd)?;
        open(options, writer, |builder| builder.fd(fd))
    })
}

/// Starts a command and writes to its standard input. millstream_writer_close() waits for it, and its status counts.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_command(
    command: Option<&millstream_command>,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let command = given(command, "command")?.core()?;
        open(options, writer, |builder| builder.command(command))
    })
}

/// Connects to a TCP address, such as "localhost:7000", and writes to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_tcp(
    address: *const c_char,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let address = unsafe { text(address, "address")? };
        open(options, writer, |builder| builder.tcp(address))
    })
}

/// Connects to a Unix stream socket and writes to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_unix(
    path: *const c_char,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends a string for this call.
        let path = unsafe { self::path(path, "path")? };
        open(options, writer, |builder| builder.unix(path))
    })
}

/// Calls `write` with bytes and `user`, on the thread that uses the writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_callback(
    write: millstream_write_callback,
    user: *mut c_void,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (write, user) = (given(write, "write")?, User(user));
        let write = move |bytes: &[u8]| {
            // SAFETY: a function of C's, called as the header says.
            counted(unsafe { write(user.pointer(), lend(bytes), bytes.len()) })
        };
        open(options, writer, |builder| builder.callback(write))
    })
}

/// Keeps everything in memory, for millstream_writer_taken_memory().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_memory(
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, writer, WriterBuilder::memory))
}

/// Keeps nothing: for measuring and counting.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_nowhere(
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, writer, WriterBuilder::nowhere))
}

// ---- bytes ----

/// Writes all of `len` bytes. As long as they fit in the buffer's room, that is a copy.
///
/// After an error none of them was accepted: what had been accepted before stays in the buffer, and the call may be
/// repeated. When the sink fails after part of a large write, the rest is kept, the call succeeds, and the next one
/// reports the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_write(
    writer: Option<&mut millstream_writer>,
    bytes: *const c_void,
    len: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends the bytes for this call.
        let bytes = unsafe { self::bytes(bytes, len, "bytes")? };
        given(writer, "writer")?.with(|writer| writer.write(bytes))
    })
}

/// At least `least` bytes of room to fill: what they hold is arbitrary. `room` says where, `len` how many there are.
/// millstream_writer_commit() says how many of them count; any other call on the writer takes the room back. A record
/// longer than the buffer makes it grow.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_space(
    writer: Option<&mut millstream_writer>,
    least: usize,
    room: Option<&mut MaybeUninit<*mut c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (room, len) = (out(room, "room")?, out(len, "len")?);
        let writer = given(writer, "writer")?;
        if least > isize::MAX as usize {
            return Err(invalid(format!("space for {least} bytes"), "at most half of the address space"));
        }
        writer.with(|writer| {
            let space = writer.space(least)?;
            room.write(space.as_mut_ptr().cast());
            len.write(space.len());
            Ok(())
        })
    })
}

/// Accepts the first `count` bytes of the space.
///
/// With a policy that flushes at line ends or after a delay, errors are as of millstream_writer_write(): the bytes were
/// not accepted then.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_commit(
    writer: Option<&mut millstream_writer>,
    count: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        given(writer, "writer")?.with(|writer| {
            // A space of no bytes is what is there: nothing moves. An error that waits to be reported comes first.
            let room = writer.space(0)?.len();
            if count > room {
                return Err(invalid(format!("{count} bytes to commit"), format!("at most the {room} of the space")));
            }
            writer.commit(count)
        })
    })
}

/// Hands everything accepted so far to the system. A compressed stream can be decoded up to here then. After an error
/// nothing is lost: the next call tries again.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_flush(
    writer: Option<&mut millstream_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || given(writer, "writer")?.with(Writer::flush))
}

// ---- where we are ----

/// What errors call the sink. It is the writer's, and valid until that is freed; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_name(writer: Option<&millstream_writer>) -> *const c_char {
    writer.map_or(std::ptr::null(), |writer| writer.name.as_ptr())
}

/// Bytes accepted so far, those in the buffer included.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_accepted(
    writer: Option<&millstream_writer>,
    bytes: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let bytes = out(bytes, "bytes")?;
        let writer = given(writer, "writer")?;
        bytes.write(writer.writer.accepted());
        Ok(())
    })
}

/// Bytes handed to the system so far, after encoding.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_written(
    writer: Option<&millstream_writer>,
    bytes: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let bytes = out(bytes, "bytes")?;
        let writer = given(writer, "writer")?;
        bytes.write(writer.writer.written());
        Ok(())
    })
}

/// The time spent in the sink so far.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_waited_ns(
    writer: Option<&millstream_writer>,
    waited_ns: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let waited_ns = out(waited_ns, "waited_ns")?;
        let waited = given(writer, "writer")?.writer.waited();
        waited_ns.write(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
        Ok(())
    })
}

/// Writes what is left, ends the stream, and makes it count: a file takes its name, a command is waited for. The writer
/// is still there to be asked how it ended, and to be freed.
///
/// After an error it may be called again, and goes on where it stopped: what was accepted waits for that. But the
/// writer accepts no more bytes, whether this succeeds or not: MILLSTREAM_CLOSED, which is also the answer to a call
/// after one that has succeeded. MILLSTREAM_COMMAND_FAILED if the command did not succeed.
/// millstream_error_written() says how many bytes the sink took.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_close(
    writer: Option<&mut millstream_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let handle = given(writer, "writer")?;
        let end = handle.with(Writer::try_close).inspect_err(|error| {
            if let Some(command) = error.command() {
                handle.ends = CommandEnds::new([command.clone()]);
            }
        })?;
        handle.ends = CommandEnds::new(end.commands);
        handle.memory = end.memory;
        Ok(())
    })
}

/// All that was written to a writer that keeps it in memory, once it is closed: the writer's, and valid until that is
/// freed. NULL before, and of any other writer.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_taken_memory(
    writer: Option<&millstream_writer>,
    bytes: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (bytes, len) = (out(bytes, "bytes")?, out(len, "len")?);
        if let Some(memory) = &given(writer, "writer")?.memory {
            bytes.write(lend(memory));
            len.write(memory.len());
        }
        Ok(())
    })
}

/// How the command ended, if the sink was one and the writer is closed: an array of `count`, the writer's, and valid
/// until that is freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_command_ends(
    writer: Option<&millstream_writer>,
    ends: Option<&mut MaybeUninit<*const millstream_command_end>>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (ends, count) = (out(ends, "ends")?, out(count, "count")?);
        let commands = &given(writer, "writer")?.ends.ends;
        ends.write(commands.as_ptr());
        count.write(commands.len());
        Ok(())
    })
}

/// Frees a writer. One that is open does its best silently: it writes what is in the buffer and ends a compressed
/// stream, a command gets its end of input and a little time; but a file that is to appear whole does not appear. NULL
/// is fine.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_free(writer: Option<Box<millstream_writer>>) {
    free(writer);
}
