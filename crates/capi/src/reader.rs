//! Readers, which read bytes and records from a source.
//!
//! The end of the stream means that the source succeeded: a command that exits with a non-zero status causes an error,
//! which is reported after all of its records. An incomplete last record of a failed command is not returned: it stays
//! in millstream_reader_buffer(). An error is reported one time. Afterwards the reader is at its end, unless
//! millstream_code_is_resumable() returns true for the code. millstream_reader_close() reports the error again, unless
//! a time limit caused it.
//!
//! The bytes of lines, records and batches belong to the reader: they are valid until the next non-const call on it.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

use millstream::frame::{CsvRagged, Delimiter};
use millstream::{Error, ErrorKind, Progress, Reader, ReaderBuilder, Result, Waits};

use crate::boundary::{
    Condition, User, bytes, c_string, call, chosen, duplicate_fd, free, given, invalid, items, lend, out, own_fd, path,
    string, text,
};
use crate::callback::{counted, millstream_fill_callback, millstream_release_callback};
use crate::cancel::millstream_cancel_token;
use crate::command::millstream_command;
use crate::enums::millstream_csv_ragged;
use crate::error::{CommandEnds, millstream_code, millstream_command_end, millstream_error};
use crate::format::millstream_format;
use crate::frame::{millstream_batch, millstream_framer};
use crate::remote::millstream_remote;
use crate::settings::Settings;

/// The options of a reader. NULL means the defaults. Any number of readers can use the same options. They are freed by
/// millstream_reader_options_free(), at any time after the readers were opened.
pub struct millstream_reader_options(pub(crate) Settings<ReaderBuilder>);

/// Reads a source. It is freed by millstream_reader_free().
pub struct millstream_reader {
    /// `None` once closed.
    reader: Option<Reader>,
    condition: Condition,
    name: CString,
    /// Data that C reads.
    ends: CommandEnds,
    /// The position of the reader when it was closed.
    closed_at: Progress,
}

/// Whether the next records require a wait. The values without a wait come first.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum millstream_waits {
    /// Data, the end or an error is available.
    No = 0,
    /// This is unknown, as with a callback.
    Unknown = 1,
    /// No data is available.
    Yes = 2,
}

/// The progress of a reader.
#[repr(C)]
pub struct millstream_progress {
    /// Bytes consumed, after decoding.
    pub bytes: u64,
    /// Records taken or skipped.
    pub records: u64,
    /// Bytes read from the source, before decoding.
    pub source_bytes: u64,
    /// The total size of the source in bytes, if `source_size_known`.
    pub source_size: u64,
    /// Whether the total size is known.
    pub source_size_known: bool,
    /// The compression format of the source.
    pub format: millstream_format,
    /// The time since the reader was opened.
    pub elapsed_ns: u64,
    /// The time that the consumer has waited for bytes.
    pub waited_ns: u64,
    /// The length in bytes of the longest record so far, with its delimiter or prefix.
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
            format: progress.format.into(),
            elapsed_ns: nanoseconds(progress.elapsed),
            waited_ns: nanoseconds(progress.waited),
            longest_record: progress.longest_record as u64,
        }
    }
}

/// Receives the progress of a reader.
pub type millstream_observer_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, progress: *const millstream_progress)>;

impl millstream_reader {
    /// Runs `act` on the reader, while it is open and no other code uses it.
    #[inline]
    pub(crate) fn with<T>(&mut self, act: impl FnOnce(&mut Reader) -> Result<T>) -> Result<T> {
        let (reader, condition) = self.parts()?;
        condition.during(|| act(reader))
    }

    /// Returns the reader, if it is open, and whether it can be used.
    #[inline]
    pub(crate) fn parts(&mut self) -> Result<(&mut Reader, &mut Condition)> {
        match &mut self.reader {
            Some(reader) => Ok((reader, &mut self.condition)),
            None => Err(Error::new(ErrorKind::Closed).with_name(self.name.to_string_lossy())),
        }
    }

    /// Returns the reader, for its new owner.
    pub(crate) fn into_core(mut self) -> Result<Reader> {
        self.with(|_| Ok(()))?;
        self.reader.ok_or_else(|| Error::new(ErrorKind::Closed))
    }

    fn progress(&self) -> Progress {
        self.reader.as_ref().map_or_else(|| self.closed_at.clone(), Reader::progress)
    }
}

// ---- options ----

/// Creates options with all defaults.
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

/// Calls `observer` before a read, at most once every `interval_ns`, and at the end. It is called on the thread that
/// uses the reader, and not while the reader waits for the source.
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
        given(options, "options")?.0.set(move |builder| {
            builder.observer(interval, move |progress| {
                // SAFETY: this is a C function, called as documented in the header.
                unsafe { observer(user.pointer(), &progress.into()) }
            })
        });
        Ok(())
    })
}

/// Frees options. NULL is accepted.
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

/// Reads an object of a web server or an object store. Compressed objects are decoded by default.
///
/// The end of the stream means that all bytes of one version of the object were delivered. Ranges are fetched in parallel
/// and connections are resumed, if the server sends a strong ETag. If the server announces neither a length nor chunks,
/// opening fails, because a broken connection would look like the end.
///
/// It fails with MILLSTREAM_OPEN_FAILED if the object cannot be opened and MILLSTREAM_INVALID_OPTION if the URL is
/// invalid. Reading fails with MILLSTREAM_SOURCE_CHANGED if the object was replaced, and with MILLSTREAM_REMOTE_FAILED if
/// the server fails for longer than the options allow, or contradicts itself.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_url(
    remote: Option<&millstream_remote>,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let remote = given(remote, "remote")?.core()?;
        open(options, reader, |builder| builder.url(remote))
    })
}

/// Maps a regular file and reads it, without a copy (unless it is compressed).
///
/// The file must not shrink while it is read. The reader checks the length before it continues, and fails with
/// MILLSTREAM_SOURCE_SHRANK if the file has shrunk. But if the file shrinks between this check and the use of the
/// bytes, SIGBUS kills the process.
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

/// Reads a duplicate of the standard input's file descriptor, so that standard input stays open. Bytes that stdio has
/// already read are not included.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_stdin(
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || open(options, reader, ReaderBuilder::stdin))
}

/// Reads a file descriptor. From then on it belongs to the reader, and it is closed even if this fails.
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

/// Reads a duplicate of a file descriptor; the caller keeps the original. The two share their position.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_borrow_fd(
    fd: i32,
    options: Option<&millstream_reader_options>,
    reader: Option<&mut MaybeUninit<Box<millstream_reader>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let duplicate = duplicate_fd(fd)?;
        open(options, reader, |builder| builder.duplicate_of(fd, duplicate))
    })
}

/// Starts a command and reads its standard output. The end of the stream means end of file and exit status 0. In all
/// other cases, reading fails with MILLSTREAM_COMMAND_FAILED after all of the output.
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

/// Starts a pipeline of `count` commands, in which each reads the output of the previous one, and reads the last one's
/// standard output. All commands must succeed; if several fail, the first failure is reported. A command other than the
/// last that is killed by SIGPIPE (or exits with status 141, by which a shell reports that) has not failed if all later
/// commands succeeded.
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
            return Err(invalid("an empty pipeline", "1 or more"));
        }
        open(options, reader, |builder| builder.pipeline(commands))
    })
}

/// Starts the shell command line `bash -o pipefail -c line`, and reads its standard output. Never pass user input or a
/// file name to it; the arguments of a command are passed unchanged.
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

/// Connects to a TCP server, such as "localhost:7000", and reads the bytes that it sends. The end of the stream only
/// means that the server closed the connection.
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

/// Connects to a Unix socket and reads the bytes that its server sends. The end of the stream only means that the
/// server closed the connection.
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

/// Memory that C lends, and the function that releases it.
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
            // SAFETY: this is a C function, called as documented in the header.
            unsafe { release(self.user.pointer()) }
        }
    }
}

/// Reads `len` bytes in place. The bytes must not change until `release` is called with `user`. `release` is called
/// exactly one time, even if this fails: when the reader is closed or freed, or, for compressed bytes, perhaps slightly
/// later and from another thread. `release` may be NULL for memory that is never freed.
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
        // SAFETY: C lends the bytes until they are released, after which no code refers to `memory`.
        memory.bytes = unsafe { self::bytes(bytes, len, "bytes")? };
        open(options, reader, |builder| builder.memory(memory))
    })
}

/// Reads the bytes that a callback writes into the space it is given. The callback is called with `user` on the thread
/// that uses the reader.
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
            // SAFETY: this is a C function, called as documented in the header.
            counted(unsafe { fill(user.pointer(), space.as_mut_ptr().cast(), space.len()) })
        };
        open(options, reader, |builder| builder.callback(fill))
    })
}

// ---- bytes ----

/// Bytes that C may read: a pointer and a length, both out-parameters.
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

/// Reads at least one more byte after the unread ones, returns all unread bytes, and sets `added` to the number of new
/// bytes. 0 means that the stream ended and the source succeeded. `bytes` and `len` are set to the unread bytes even
/// after an error, because their address changes.
///
/// Returns MILLSTREAM_RECORD_TOO_LONG if more bytes than the record limit are unread; they can still be consumed.
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

/// Returns the unread bytes in the buffer.
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

/// Removes `count` bytes from the front of the unread ones. The remaining bytes do not move.
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

/// Copies at least one byte, and at most `size` of them, to `to`, and sets `len` to their number. 0 means that the
/// stream ended and the source succeeded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_reader_read(
    reader: Option<&mut millstream_reader>,
    to: *mut c_void,
    size: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let len = out(len, "len")?;
        let reader = given(reader, "reader")?;
        if to.is_null() || size == 0 || size > isize::MAX as usize {
            return Err(invalid(format!("space for {size} bytes at {to:p}"), "space for at least one byte"));
        }
        reader.with(|reader| {
            if reader.buffer().is_empty() {
                reader.fill()?;
            }
            let count = reader.buffer().len().min(size);
            // SAFETY: C lends `size` bytes to write to, which are not part of the buffer, because that belongs to the
            // reader.
            unsafe { std::ptr::copy_nonoverlapping(reader.buffer().as_ptr(), to.cast(), count) };
            reader.consume(count);
            len.write(count);
            Ok(())
        })
    })
}

// ---- records ----

/// Returns the next line, without its line feed or carriage return and line feed. At the end `line` is NULL, which
/// means that the source succeeded; an empty line is not NULL, and has the length 0. The line is not terminated by a
/// NUL.
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

/// Returns the next record, as found and trimmed by `framer`. At the end `record` is NULL.
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

/// Returns the bytes before the next `delimiter` or before the end. At the end `record` is NULL.
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

/// Returns all records that are available, but at most `max`, which is at least 1. It waits only for the first record,
/// never for a second one. At the end `batch->count` is 0. The records before an invalid one are returned first.
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

/// Makes the last `count` records of the last batch unread again, for a loop over single records that stops in the
/// middle of a batch. It returns MILLSTREAM_ARGUMENT_INVALID if that batch had fewer records, or if a non-const call
/// has used the reader since.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_give_back(
    reader: Option<&mut millstream_reader>,
    count: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || given(reader, "reader")?.with(|reader| reader.give_back(count)))
}

/// Succeeds if a record of the last batch may have `found` fields where the header has `width`. It may have `width` fields,
/// with MILLSTREAM_CSV_RAGGED_PAD also fewer, of which those that are missing at its end are empty, and with
/// MILLSTREAM_CSV_RAGGED_COLLECT any number. Otherwise the function fails with MILLSTREAM_FIELD_COUNT_MISMATCH and the place of the record. The reader must not have been used since the
/// batch, otherwise the error has no place. For row i of millstream_framer_rows(), `record` is records[i], and `found` is
/// starts[i + 1] - starts[i].
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_check_fields(
    reader: Option<&mut millstream_reader>,
    record: usize,
    found: usize,
    width: usize,
    ragged: MaybeUninit<millstream_csv_ragged>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let ragged: CsvRagged = chosen(ragged)?;
        given(reader, "reader")?.with(|reader| {
            ragged.check(found, width, "the header").map_err(|error| reader.locate_in_batch(error, record, 0))
        })
    })
}

/// Skips one record of any length, and sets `skipped` to whether there was one. After MILLSTREAM_RECORD_TOO_LONG it
/// skips the record that was too long, and the reader continues after it.
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

/// Creates a token that interrupts waits of this reader, in addition to the token of its options, so that another thread
/// can stop them. The reader no longer reads ahead. Free the token with millstream_cancel_token_free().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_interrupter(
    reader: Option<&mut millstream_reader>,
    token: Option<&mut MaybeUninit<Box<millstream_cancel_token>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let token = out(token, "token")?;
        given(reader, "reader")?.with(|reader| {
            token.write(Box::new(millstream_cancel_token(reader.interrupter()?)));
            Ok(())
        })
    })
}

/// Skips what the buffer has of one record, without reading, and sets `skipped` to whether that was all of it. Otherwise
/// the next call of this function or of millstream_reader_skip_record() skips the rest. This is for programs that wait
/// for millstream_reader_waits_for() themselves, and then call millstream_reader_fill().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_skip_buffered(
    reader: Option<&mut millstream_reader>,
    framer: Option<&mut millstream_framer>,
    skipped: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let skipped = out(skipped, "skipped")?;
        let framer = given(framer, "framer")?;
        given(reader, "reader")?.with(|reader| {
            skipped.write(reader.skip_buffered(&mut framer.framer)?);
            Ok(())
        })
    })
}

// ---- position and progress ----

/// Returns the name of the source in error messages. It belongs to the reader, and is valid until the reader is freed.
/// Returns NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_name(reader: Option<&millstream_reader>) -> *const c_char {
    reader.map_or(std::ptr::null(), |reader| reader.name.as_ptr())
}

/// Returns the position of the reader: bytes consumed, after decoding, and records taken or skipped. After closing,
/// this is the final position.
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

/// Returns whether the stream has ended: a call has reported the end, or an error after which there is nothing more. If
/// it has not, closing the reader stops its commands. Returns false for NULL, and true for a closed reader.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_has_ended(reader: Option<&millstream_reader>) -> bool {
    reader.is_some_and(|reader| reader.reader.as_ref().is_none_or(Reader::has_ended))
}

/// Returns whether the next batch has to wait for the source. Programs that read from several readers in turn use this
/// between two batches; it is not useful at any other time. Returns MILLSTREAM_WAITS_NO for NULL and for a closed
/// reader.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_waits(reader: Option<&millstream_reader>) -> millstream_waits {
    match reader.and_then(|reader| reader.reader.as_ref()).map_or(Waits::No, Reader::waits) {
        Waits::No => millstream_waits::No,
        Waits::Unknown => millstream_waits::Unknown,
        Waits::Yes => millstream_waits::Yes,
    }
}

/// Returns the file descriptor that becomes readable when millstream_reader_fill() has something to read or has reached
/// the end, for an event loop that must not block. Returns -1 if there is no descriptor to wait for: for a file, a
/// callback or a compressed stream, with a thread that reads ahead, after the end, and for NULL.
///
/// The descriptor belongs to the reader and may change with every non-const call; the caller may poll it but must not
/// read it. The next fill may still wait briefly: for the rest of a compressed stream's first bytes, to get more out of
/// a fast pipe, or for a command that has closed its output to exit.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_waits_for(reader: Option<&millstream_reader>) -> i32 {
    let reader = reader.and_then(|reader| reader.reader.as_ref());
    reader.and_then(Reader::waits_for).map_or(-1, |fd| fd.as_raw_fd())
}

/// Returns how long an event loop that waits for millstream_reader_waits_for() may wait now, in nanoseconds, before it
/// calls millstream_reader_stall(): the stall timeout, or the rest of the total timeout if that is shorter. Returns
/// UINT64_MAX without a timeout, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_wait_limit_ns(reader: Option<&millstream_reader>) -> u64 {
    let limit = reader.and_then(|reader| reader.reader.as_ref()).and_then(Reader::wait_limit);
    limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

/// Ends the stream with MILLSTREAM_STALLED, or with MILLSTREAM_TIMED_OUT if the total timeout has passed. The next call
/// reports that once no complete record is left. This is for an event loop that has waited for
/// millstream_reader_waits_for() longer than millstream_reader_wait_limit_ns(). Without a timeout, and after the end, it
/// does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_stall(
    reader: Option<&mut millstream_reader>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        given(reader, "reader")?.with(|reader| {
            reader.stall();
            Ok(())
        })
    })
}

/// Returns the progress of the reader. After closing, this is the final progress.
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

/// Returns how all of the source's commands ended. This is known after the end, after an error that a command caused,
/// and after millstream_reader_close(). `ends` is an array of `count`, valid until the next non-const call on the
/// reader.
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

/// Closes the reader at the current position. Its position remains available, and it must still be freed.
///
/// Before the end of the stream, this closes the reading end of the pipe. A command that is still running after a
/// second gets SIGTERM, and after another second SIGKILL. If a source is not read to its end, a failed command is not
/// an error. An error that ended the stream is reported again, so that an ignored failure is not lost, except for
/// MILLSTREAM_STALLED and MILLSTREAM_TIMED_OUT, which the caller's time limits cause and which stop the command without
/// the first second. Returns MILLSTREAM_CLOSED if this has been called before.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_close(
    reader: Option<&mut millstream_reader>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let handle = given(reader, "reader")?;
        handle.with(|_| Ok(()))?;
        let Some(mut reader) = handle.reader.take() else { return Ok(()) };
        handle.closed_at = reader.progress();
        let closed = reader.try_close();
        handle.ends = CommandEnds::new(reader.command_ends().iter().cloned());
        closed
    })
}

/// Closes the reader at the current position without waiting, for a finalizer, which must not delay its program. A
/// command that is still running gets SIGTERM immediately, and after two seconds a thread of the library kills it with
/// SIGKILL. Only millstream_reader_free() may still be called, which then does not wait either; other calls return
/// MILLSTREAM_CLOSED. It may be called while a window is open, which becomes invalid.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_abort(
    reader: Option<&mut millstream_reader>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let handle = given(reader, "reader")?;
        handle.condition.end_loan();
        handle.with(|_| Ok(()))?;
        if let Some(mut reader) = handle.reader.take() {
            handle.closed_at = reader.progress();
            reader.abort();
        }
        Ok(())
    })
}

/// Frees a reader. An open reader is closed first; errors of closing are not reported. This may take two seconds if a
/// command has to be stopped; to avoid the wait, call millstream_reader_abort() first. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_free(reader: Option<Box<millstream_reader>>) {
    free(reader);
}
