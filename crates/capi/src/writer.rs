//! Writers, which write bytes to a sink.
//!
//! A write that fails has accepted none of its bytes; a write that succeeds has accepted all of them. Only after
//! millstream_writer_close() has succeeded have all accepted bytes reached the sink. A file appears complete or not at
//! all.
//!
//! In a program that ignores SIGPIPE, writing to a pipe or connection without a reader fails with
//! MILLSTREAM_BROKEN_PIPE. A program that leaves SIGPIPE unchanged, as C programs do by default, is killed by it when
//! it writes to a closed pipe. The library never changes signal dispositions.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;

use millstream::{Result, Writer, WriterBuilder};

use crate::boundary::{
    Condition, User, bytes, c_string, call, duplicate_fd, free, given, invalid, lend, out, own_fd, path, text,
};
use crate::callback::counted;
use crate::command::millstream_command;
use crate::error::{CommandEnds, millstream_code, millstream_command_end, millstream_error};
use crate::remote::millstream_remote;
use crate::settings::Settings;

/// The options of a writer. NULL means the defaults. Any number of writers can use the same options. They are freed by
/// millstream_writer_options_free(), at any time after the writers were opened.
pub struct millstream_writer_options(pub(crate) Settings<WriterBuilder>);

/// Writes to a sink. It is freed by millstream_writer_free().
pub struct millstream_writer {
    pub(crate) writer: Writer,
    pub(crate) condition: Condition,
    name: CString,
    /// All bytes that were written, if the writer kept them and is closed.
    memory: Option<Vec<u8>>,
    ends: CommandEnds,
}

/// Accepts at least one of `len` bytes and returns the number accepted. An error is a negative number of errno.h, such
/// as -EIO; after -EINTR the write is repeated. After any other error a later call gets the same bytes again.
pub type millstream_write_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, bytes: *const c_char, len: usize) -> isize>;

impl millstream_writer {
    /// Runs `act` on the writer, while no other code uses it.
    #[inline]
    fn with<T>(&mut self, act: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        self.condition.during(|| act(&mut self.writer))
    }
}

// ---- options ----

/// Creates options with all defaults.
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

/// Frees options. NULL is accepted.
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

/// Writes a file. The output is compressed if the name implies that, for example by the suffix .gz.
///
/// A regular file, new or replaced, appears complete when the writer is closed: until then the bytes are in a temporary
/// file next to it, whose name begins with a dot. The permissions of an existing file are kept; a symbolic link is
/// followed. FIFOs and devices are written directly; opening a FIFO waits for its reader. /dev/stdout is standard
/// output.
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

/// Writes an object of a store: `s3://BUCKET/KEY`, `gs://BUCKET/KEY` or `az://CONTAINER/KEY`. The output is compressed if
/// the name implies that.
///
/// The object, new or replaced, appears complete when the writer is closed, and otherwise not at all. Up to 16 MiB are
/// kept in memory and sent by one request; more are sent in parts while they are written.
///
/// It fails with MILLSTREAM_OPEN_FAILED if the store cannot be reached or refuses, and with MILLSTREAM_UNSUPPORTED for
/// the URLs of web servers. If the answer to the last request is lost, the store is asked whether the object was written;
/// if that cannot be found out, millstream_writer_close() fails with MILLSTREAM_OUTCOME_UNKNOWN.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_url(
    remote: Option<&millstream_remote>,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let remote = given(remote, "remote")?.core()?;
        open(options, writer, |builder| builder.url(remote))
    })
}

/// Writes a regular file through mapped memory, in steps for which disk space is reserved beforehand. Otherwise this is
/// like millstream_writer_path(); the file has its true length after a close, an error and a free. Measure before you
/// use this: a plain write is faster in most cases.
///
/// No process may truncate the file while it is written: that kills this process with SIGBUS. With
/// MILLSTREAM_PARTIAL_KEEP, which writes in place, the file is padded with zeros until it gets its true length. A flush
/// does not remove the padding, nor does the death of the process.
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

/// Writes to standard output: the file descriptor 1 itself, without stdio's buffer. Flush stdio's buffer first.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_stdout(
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, writer, WriterBuilder::stdout))
}

/// Writes to a file descriptor. From then on it belongs to the writer, and it is closed even if this fails. Its mode
/// (O_NONBLOCK) is respected and never changed. A connection is ended as with millstream_writer_tcp().
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

/// Writes to a duplicate of a file descriptor; the caller keeps the original. A connection is ended only if
/// millstream_writer_options_set_linger_ns() requests that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_writer_borrow_fd(
    fd: i32,
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let duplicate = duplicate_fd(fd)?;
        open(options, writer, |builder| builder.duplicate_of(fd, duplicate))
    })
}

/// Starts a command and writes to its standard input. millstream_writer_close() waits for the command, and fails if the
/// command fails.
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

/// Connects to a TCP address, such as "localhost:7000", and writes to it. Data that the peer sends is discarded.
///
/// millstream_writer_close() succeeds when the peer has closed the connection too, which confirms that it has read
/// everything; millstream_writer_options_set_linger_ns() limits how long this may take. A reset is an error.
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

/// Connects to a Unix stream socket and writes to it, as millstream_writer_tcp() does.
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

/// Passes bytes and `user` to `write`, on the thread that uses the writer.
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
            // SAFETY: this is a C function, called as documented in the header.
            counted(unsafe { write(user.pointer(), lend(bytes), bytes.len()) })
        };
        open(options, writer, |builder| builder.callback(write))
    })
}

/// Keeps all output in memory, for millstream_writer_taken_memory().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_memory(
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, writer, WriterBuilder::memory))
}

/// Discards all output, for measuring and counting.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_nowhere(
    options: Option<&millstream_writer_options>,
    writer: Option<&mut MaybeUninit<Box<millstream_writer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, writer, WriterBuilder::nowhere))
}

// ---- bytes ----

/// Writes all of `len` bytes. If they fit in the buffer, this only copies them.
///
/// After an error none of these bytes were accepted: bytes accepted before stay in the buffer, and the call may be
/// repeated. If the sink fails after part of a large write, the rest is kept, the call succeeds, and the next call
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

/// Returns at least `least` bytes of space to fill, with arbitrary content: `at` is set to its start, `len` to its
/// length. millstream_writer_commit() accepts bytes from it; any other call on the writer invalidates the space. If
/// `least` is larger than the buffer, the buffer grows.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_space(
    writer: Option<&mut millstream_writer>,
    least: usize,
    at: Option<&mut MaybeUninit<*mut c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (at, len) = (out(at, "at")?, out(len, "len")?);
        let writer = given(writer, "writer")?;
        if least > isize::MAX as usize {
            return Err(invalid(format!("space for {least} bytes"), "at most half of the address space"));
        }
        writer.with(|writer| {
            let space = writer.space(least)?;
            at.write(space.as_mut_ptr().cast());
            len.write(space.len());
            Ok(())
        })
    })
}

/// Accepts the first `count` bytes of the space.
///
/// With a policy that flushes at line ends or after a delay, this returns the errors of millstream_writer_write();
/// after an error, the bytes were not accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_commit(
    writer: Option<&mut millstream_writer>,
    count: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        given(writer, "writer")?.with(|writer| {
            // A request for 0 bytes returns the existing space, so no bytes move. A pending error is reported first.
            let space = writer.space(0)?.len();
            if count > space {
                return Err(invalid(format!("{count} bytes to commit"), format!("at most the {space} of the space")));
            }
            writer.commit(count)
        })
    })
}

/// Passes all bytes accepted so far to the operating system. A compressed stream can then be decoded up to this point.
/// After an error no bytes are lost: the next call tries again.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_flush(
    writer: Option<&mut millstream_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || given(writer, "writer")?.with(Writer::flush))
}

// ---- position and progress ----

/// Returns the name of the sink in error messages. It belongs to the writer, and is valid until the writer is freed.
/// Returns NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_name(writer: Option<&millstream_writer>) -> *const c_char {
    writer.map_or(std::ptr::null(), |writer| writer.name.as_ptr())
}

/// Returns the number of bytes accepted so far, including those in the buffer.
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

/// Returns the number of bytes passed to the operating system so far, after encoding.
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

/// Returns the time spent in the sink so far.
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

/// Writes the remaining bytes, ends the stream, and completes the output: it gives a file its name, and waits for a
/// command. The writer's results remain available, and it must still be freed.
///
/// After an error this may be called again, and continues at the same point, because accepted bytes are kept. But the
/// writer accepts no more bytes, whether this succeeds or not: writes return MILLSTREAM_CLOSED, as does a call of this
/// function after it has succeeded. Returns MILLSTREAM_COMMAND_FAILED if the command did not succeed.
/// millstream_error_written() returns the number of bytes that the sink accepted.
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

/// Closes the writer and discards the content of the buffer. A file that appears only if it is complete does not
/// appear, and a compressed stream gets no end marker, so its readers can detect this. This never waits for the sink to
/// accept bytes; a command gets the end of its input and is stopped if it does not exit soon. Only
/// millstream_writer_free() may still be called; other calls return MILLSTREAM_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_abort(
    writer: Option<&mut millstream_writer>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let handle = given(writer, "writer")?;
        handle.condition.end_loan();
        handle.with(|writer| {
            writer.abort();
            Ok(())
        })
    })
}

/// Returns all bytes that were written to a writer that keeps them in memory, after closing. They belong to the writer,
/// and are valid until the writer is freed. Returns NULL before closing, and for any other writer.
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

/// Returns how the command ended, if the sink was a command and the writer is closed. It is an array of `count`, which
/// belongs to the writer, and is valid until the writer is freed.
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

/// Frees a writer. An open writer finishes as far as possible without reporting errors: it writes the buffer's content,
/// and a command gets the end of its input and a short time to exit. But the output is incomplete: a file that would
/// appear complete does not appear, and a compressed stream gets no end marker. To avoid waiting for the sink, call
/// millstream_writer_abort() first. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_free(writer: Option<Box<millstream_writer>>) {
    free(writer);
}
