//! Errors: a code, and on request an object with the details.
//!
//! A function that fails returns a code other than MILLSTREAM_OK. Pass the address of a `millstream_error *` as the
//! last argument to get an error to inspect and free, or NULL if the code is enough.
//!
//! The results of the functions of this section are valid until the error is freed. The functions accept NULL, for
//! which they return no details.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;
use std::sync::LazyLock;

use millstream::{CommandEnd, CommandStatus, Error, ErrorKind};

use crate::memory::{c_string, free, lend};

/// A code from the table of errors; the header has these as an enum generated from that table.
pub type millstream_code = u32;

/// An error: what went wrong, where, and what to do about it. It is freed by millstream_error_free().
pub struct millstream_error {
    error: Error,
    message: CString,
    name: Option<CString>,
    expected: Option<CString>,
    found: Option<CString>,
    path: Option<CString>,
    command: CommandEnds,
}

impl millstream_error {
    pub(crate) fn new(error: Error) -> millstream_error {
        let text = |text: Option<&str>| text.map(c_string);
        millstream_error {
            message: c_string(error.to_string()),
            name: text(error.name()),
            expected: text(error.expected()),
            found: text(error.found()),
            path: text(error.path()),
            command: CommandEnds::new(error.command().into_iter().cloned()),
            error,
        }
    }
}

/// How a command ended.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum millstream_status {
    /// The command exited; the value is its exit status.
    Exited = 0,
    /// The command was killed by a signal; the value is the signal's number.
    Signaled = 1,
    /// The operating system did not report how the command ended; the value is 0.
    Unknown = 2,
}

/// A command that ended: its command line, how it ended, and its last output.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_command_end {
    /// The command and its arguments, as it was started.
    pub argv: *const *const c_char,
    /// The number of elements of `argv`.
    pub argc: usize,
    /// How it ended.
    pub status: millstream_status,
    /// The exit status or the signal's number.
    pub value: i32,
    /// The last bytes of its standard error (4 KiB by default), if the library read it. It may contain any bytes.
    pub stderr_tail: *const c_char,
    /// The number of bytes.
    pub stderr_tail_len: usize,
}

/// How commands ended, with the memory that C reads.
#[derive(Default)]
pub(crate) struct CommandEnds {
    pub(crate) ends: Vec<millstream_command_end>,
    _words: Vec<(Vec<CString>, Vec<*const c_char>)>,
    _tails: Vec<Vec<u8>>,
}

// SAFETY: its pointers refer to memory that it owns and never changes.
unsafe impl Send for CommandEnds {}
// SAFETY: as above.
unsafe impl Sync for CommandEnds {}

impl CommandEnds {
    pub(crate) fn new(commands: impl IntoIterator<Item = CommandEnd>) -> CommandEnds {
        let mut all = CommandEnds::default();
        for command in commands {
            let words: Vec<CString> = command.argv.iter().map(|word| c_string(word.as_bytes())).collect();
            let argv: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
            let (status, value) = match command.status {
                CommandStatus::Exited(status) => (millstream_status::Exited, status),
                CommandStatus::Signaled(signal) => (millstream_status::Signaled, signal),
                _ => (millstream_status::Unknown, 0),
            };
            all.ends.push(millstream_command_end {
                argv: argv.as_ptr(),
                argc: argv.len(),
                status,
                value,
                stderr_tail: lend(&command.stderr_tail),
                stderr_tail_len: command.stderr_tail.len(),
            });
            // The memory that they own stays at its address when they are moved.
            all._words.push((words, argv));
            all._tails.push(command.stderr_tail);
        }
        all
    }
}

/// The texts of the kinds for C, in the order of their codes.
static KINDS: LazyLock<Vec<[CString; 2]>> =
    LazyLock::new(|| ErrorKind::ALL.iter().map(|kind| [c_string(kind.name()), c_string(kind.advice())]).collect());

fn kind_text(code: millstream_code, text: usize) -> *const c_char {
    let position = ErrorKind::ALL.iter().position(|kind| kind.code() == code);
    position.map_or(null(), |position| KINDS[position][text].as_ptr())
}

/// Returns the name of a code in snake case, such as "command_failed", or NULL for MILLSTREAM_OK and for a number that
/// is unknown to this version of the library. The name is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_code_name(code: millstream_code) -> *const c_char {
    kind_text(code, 0)
}

/// Returns advice for an error of this code, or NULL as above. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_code_advice(code: millstream_code) -> *const c_char {
    kind_text(code, 1)
}

/// Returns whether the reader that reported this code can continue: after MILLSTREAM_CANCELLED with the next call,
/// after MILLSTREAM_RECORD_TOO_LONG with millstream_reader_skip_record(), after MILLSTREAM_NUMBER_INVALID and
/// MILLSTREAM_NUMBER_OVERFLOW by reading the input by another method. After any other error the reader is at its end.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_code_is_resumable(code: millstream_code) -> bool {
    ErrorKind::from_code(code).is_some_and(ErrorKind::is_resumable)
}

/// Returns the code; MILLSTREAM_OK for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_code(error: Option<&millstream_error>) -> millstream_code {
    error.map_or(0, |error| error.error.code())
}

/// Returns the complete error in one sentence: what was found, what was expected, where, and what to do.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_message(error: Option<&millstream_error>) -> *const c_char {
    error.map_or(null(), |error| error.message.as_ptr())
}

/// Returns the name of the source or sink (a path, a command line or an address), or NULL if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_name(error: Option<&millstream_error>) -> *const c_char {
    error.and_then(|error| error.name.as_ref()).map_or(null(), |text| text.as_ptr())
}

/// Returns what was expected, or NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_expected(error: Option<&millstream_error>) -> *const c_char {
    error.and_then(|error| error.expected.as_ref()).map_or(null(), |text| text.as_ptr())
}

/// Returns what was found, or NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_found(error: Option<&millstream_error>) -> *const c_char {
    error.and_then(|error| error.found.as_ref()).map_or(null(), |text| text.as_ptr())
}

/// Returns the path of the value in a BSON document: its keys from the outermost on, separated by dots, as
/// millstream_bson_find() takes them. Returns NULL if the error is not about a value.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_path(error: Option<&millstream_error>) -> *const c_char {
    error.and_then(|error| error.path.as_ref()).map_or(null(), |text| text.as_ptr())
}

/// Returns the operating system's error number, or 0 if the error has another origin.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_errno(error: Option<&millstream_error>) -> i32 {
    error.and_then(|error| error.error.errno()).unwrap_or(0)
}

/// Writes the source value to `value` if both exist, and returns whether both do.
fn tell<T>(value: Option<T>, to: Option<&mut MaybeUninit<T>>) -> bool {
    if let (Some(value), Some(to)) = (value, to) {
        to.write(value);
        return true;
    }
    false
}

/// Gets the position in the stream, in bytes from its start (after decoding). Returns whether it is known; `offset` is
/// set only in that case.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_offset(
    error: Option<&millstream_error>,
    offset: Option<&mut MaybeUninit<u64>>,
) -> bool {
    tell(error.and_then(|error| error.error.offset()), offset)
}

/// Gets the number of the record; the first is 0. Returns whether it is known; `record` is set only in that case.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_record(
    error: Option<&millstream_error>,
    record: Option<&mut MaybeUninit<u64>>,
) -> bool {
    tell(error.and_then(|error| error.error.record()), record)
}

/// Gets the number of the line in a text; the first is 1. Returns whether it is known, which is the case if all records
/// up to this one were lines or records of CSV; `line` is set only in that case.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_line(error: Option<&millstream_error>, line: Option<&mut MaybeUninit<u64>>) -> bool {
    tell(error.and_then(|error| error.error.line()), line)
}

/// Gets the column in the line, in bytes; the first is 1. Returns whether it is known; `column` is set only in that
/// case.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_column(
    error: Option<&millstream_error>,
    column: Option<&mut MaybeUninit<u64>>,
) -> bool {
    tell(error.and_then(|error| error.error.column()), column)
}

/// For a writer's error, gets the number of bytes that the operating system has certainly accepted. Returns whether it
/// is known; `written` is set only in that case.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_written(
    error: Option<&millstream_error>,
    written: Option<&mut MaybeUninit<u64>>,
) -> bool {
    tell(error.and_then(|error| error.error.written()), written)
}

/// Gets the command that ended, and how it ended. Returns whether the error is about a command; `end` is set only in
/// that case. The memory that `end` refers to belongs to the error.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_command(
    error: Option<&millstream_error>,
    end: Option<&mut MaybeUninit<millstream_command_end>>,
) -> bool {
    tell(error.and_then(|error| error.command.ends.first().copied()), end)
}

/// Frees an error. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_free(error: Option<Box<millstream_error>>) {
    free(error);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn every_code_has_its_texts() {
        for kind in ErrorKind::ALL {
            // SAFETY: these are strings of a table that is never freed.
            let (name, advice) = unsafe {
                (CStr::from_ptr(millstream_code_name(kind.code())), CStr::from_ptr(millstream_code_advice(kind.code())))
            };
            assert_eq!((name.to_str(), advice.to_str()), (Ok(kind.name()), Ok(kind.advice())));
        }
        for unknown in [0, ErrorKind::ALL.len() as u32 + 1, u32::MAX] {
            assert!(millstream_code_name(unknown).is_null() && millstream_code_advice(unknown).is_null());
        }
    }
}
