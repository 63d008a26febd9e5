//! What can go wrong, once, for every language.
//!
//! One [`Error`] type: a kind with a fixed code, the name of the source or sink, the byte offset, the record
//! number, and details by kind. The table of kinds in this file is the only one: every front end maps by
//! [`ErrorKind::code`], nobody parses messages.
//!
//! A reader's error is reported once; after it comes a plain end (`None`). Only the kinds for which
//! [`ErrorKind::is_resumable`] is true leave a reader that goes on, and they are reported again until their cause
//! is gone: they must not look like the end.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::io;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Makes the table of kinds: code, Rust name, the name in every other language, what to do about it.
macro_rules! error_kinds {
    ($($(#[doc = $doc:literal])* $code:literal $kind:ident $name:literal $advice:literal;)*) => {
        /// The kinds of error, with codes that never change their meaning.
        ///
        /// ```
        /// use millstream::ErrorKind;
        /// assert_eq!(ErrorKind::CommandFailed.code(), 4);
        /// assert_eq!(ErrorKind::from_code(4), Some(ErrorKind::CommandFailed));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum ErrorKind {
            $($(#[doc = $doc])* $kind = $code,)*
        }

        impl ErrorKind {
            /// Every kind, in the order of the codes.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),*];

            /// The fixed number of this kind; 0 is never used.
            pub const fn code(self) -> u32 {
                self as u32
            }

            /// The kind with this number.
            pub const fn from_code(code: u32) -> Option<ErrorKind> {
                match code {
                    $($code => Some(ErrorKind::$kind),)*
                    _ => None,
                }
            }

            /// The name of this kind in snake case, the same in every language.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $name,)*
                }
            }

            /// What it means, in a sentence or two: the documentation of this kind, for those of other languages.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => concat!($($doc),*).trim_ascii(),)*
                }
            }

            /// What the user can do about it.
            pub const fn advice(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $advice,)*
                }
            }
        }
    };
}

error_kinds! {
    /// The operating system refused a read, a write or another call.
    1 Io "io" "see the system's message";
    /// A source or sink could not be opened.
    2 OpenFailed "open_failed" "check the name and the permissions";
    /// A command could not be started.
    3 CommandNotStarted "command_not_started" "check that the program exists, is executable and is in PATH";
    /// A command exited with a status other than 0, or died by a signal. All it wrote was delivered.
    4 CommandFailed "command_failed" "see its standard error; allow_failure accepts such a command";
    /// How a command ended cannot be known (SIGCHLD is ignored, or somebody else waited for it).
    5 CommandStatusUnknown "command_status_unknown" "do not ignore SIGCHLD and do not wait for other people's children";
    /// A record is longer than the record limit.
    6 RecordTooLong "record_too_long" "raise the record limit, or skip this record and go on";
    /// The stream ended inside a record of fixed or announced length.
    7 FrameTruncated "frame_truncated" "the input was cut short, or the frame's size is wrong";
    /// A length prefix that no record can have.
    8 LengthInvalid "length_invalid" "check width, byte order and whether the length counts itself";
    /// Text was asked for, and the bytes are not UTF-8.
    9 Utf8Invalid "utf8_invalid" "read the record as bytes";
    /// Compressed data is damaged.
    10 DecodeDamaged "decode_damaged" "get the file again; what was good has been delivered";
    /// Compressed data ends too early.
    11 DecodeTruncated "decode_truncated" "get the file again; what was good has been delivered";
    /// Compressed data grows beyond the limit on output size or ratio.
    12 DecodeLimit "decode_limit" "raise the limit if the source is trusted";
    /// Nothing arrived, or nothing was taken, for longer than the time limit.
    13 Stalled "stalled" "raise the time limit, or find out what the other side waits for";
    /// A cancel token was triggered. Nothing is lost: the next call goes on.
    14 Cancelled "cancelled" "go on, or close";
    /// A file became shorter while it was read.
    15 SourceShrank "source_shrank" "do not truncate a file that is being read";
    /// The reading side closed the pipe or connection.
    16 BrokenPipe "broken_pipe" "the consumer has gone: stop writing";
    /// An option has a value that it cannot have.
    17 InvalidOption "invalid_option" "see the accepted values";
    /// This build or system cannot do that.
    18 Unsupported "unsupported" "see the documentation of the call";
    /// It is closed, or gave up after an earlier error.
    19 Closed "closed" "nothing more can be read or written";
    /// A thread of ours ended in a way it never should.
    20 Internal "internal" "please report it with the message";
    /// Where a number or a word of a type should be, there is something else.
    21 NumberInvalid "number_invalid" "check the input there, the separator and the type";
    /// A number does not fit its type.
    22 NumberOverflow "number_overflow" "use a wider type, or check the input there";
    /// The input ended where a value was expected.
    23 ValueMissing "value_missing" "the input was cut short, or fewer values should be asked for";
    /// An argument that a call across a language boundary cannot take, such as a null pointer.
    24 ArgumentInvalid "argument_invalid" "see what the call expects";
    /// Bytes that are no BSON document: a type, a length or a terminator that cannot be there.
    25 DocumentInvalid "document_invalid" "check what wrote the document";
    /// A BSON document, or something in it, is longer than the bytes that there are.
    26 DocumentTruncated "document_truncated" "the input was cut short, or a length in it is wrong";
    /// Documents and arrays are nested deeper than the limit.
    27 TooDeep "too_deep" "raise the depth limit if the source is trusted";
    /// A document has no member of this name, or an array no element of this number.
    28 KeyMissing "key_missing" "check the path";
    /// A value has another type than was asked for, or a document other members.
    29 ShapeMismatch "shape_mismatch" "ask for the type that is there, or check what wrote the document";
    /// A value does not fit the type that was asked for.
    30 ValueOutOfRange "value_out_of_range" "use a wider type, or check what wrote the document";
    /// Text that is no Extended JSON, object id, date or decimal number.
    31 TextInvalid "text_invalid" "check the text there";
    /// What a file of BSON.jl says of its Julia values cannot be.
    32 JuliaInvalid "julia_invalid" "check what wrote the file; its plain document can still be read";
    /// Going on would take more memory than allowed.
    33 MemoryLimit "memory_limit" "raise the limit if the source is trusted";
    /// A stage of a pipe panicked, or threw what was no error. The records before that one have been passed on.
    34 StagePanicked "stage_panicked" "mend the stage; the message above, on standard error, says where it is";
    /// A stage of a pipe said that it could not do its work on a record.
    35 StageFailed "stage_failed" "check the record, or have such records skipped or kept aside"; // last added
}

impl ErrorKind {
    /// Whether the reader that reported this error can go on: after [`ErrorKind::Cancelled`] by the next call,
    /// after [`ErrorKind::RecordTooLong`] by `skip_record`, after [`ErrorKind::NumberInvalid`] and
    /// [`ErrorKind::NumberOverflow`] by taking what is there by other means.
    pub const fn is_resumable(self) -> bool {
        matches!(
            self,
            ErrorKind::Cancelled | ErrorKind::RecordTooLong | ErrorKind::NumberInvalid | ErrorKind::NumberOverflow
        )
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandStatus {
    /// It exited with this status.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
    /// The system would not say.
    Unknown,
}

impl CommandStatus {
    /// Exit status 0.
    pub const fn success(self) -> bool {
        matches!(self, CommandStatus::Exited(0))
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            CommandStatus::Exited(status) => write!(f, "exited with status {status}"),
            CommandStatus::Signaled(signal) => match signal_name(signal) {
                Some(name) => write!(f, "was ended by signal {signal} ({name})"),
                None => write!(f, "was ended by signal {signal}"),
            },
            CommandStatus::Unknown => f.write_str("ended with an unknown status"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    let signal = Signal::from_named_raw(signal)?;
    Some(match signal {
        Signal::HUP => "SIGHUP",
        Signal::INT => "SIGINT",
        Signal::QUIT => "SIGQUIT",
        Signal::ILL => "SIGILL",
        Signal::ABORT => "SIGABRT",
        Signal::FPE => "SIGFPE",
        Signal::KILL => "SIGKILL",
        Signal::SEGV => "SIGSEGV",
        Signal::BUS => "SIGBUS",
        Signal::PIPE => "SIGPIPE",
        Signal::ALARM => "SIGALRM",
        Signal::TERM => "SIGTERM",
        Signal::XCPU => "SIGXCPU",
        Signal::XFSZ => "SIGXFSZ",
        _ => return None,
    })
}

/// A command that ended, as an error or as a report: what ran, how it ended, the last it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// The command and its arguments, as started.
    pub argv: Vec<OsString>,
    /// How it ended.
    pub status: CommandStatus,
    /// The last 4 KiB of its standard error, where that was ours to see.
    pub stderr_tail: Vec<u8>,
}

/// An error: what was found, what was expected, where, and what to do.
///
/// ```
/// use millstream::{ErrorKind, Reader};
/// let mut reader = Reader::command(["sh", "-c", "echo one; echo oops >&2; exit 3"])?;
/// assert_eq!(reader.next_line()?, Some(&b"one"[..]));
/// let error = reader.next_line().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::CommandFailed);
/// let end = error.command().unwrap();
/// assert_eq!(end.status, millstream::CommandStatus::Exited(3));
/// assert_eq!(end.stderr_tail, b"oops\n");
/// assert_eq!(reader.next_line()?, None); // reported once, then a plain end
/// # Ok::<(), millstream::Error>(())
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    name: Option<String>,
    offset: Option<u64>,
    record: Option<u64>,
    path: Option<String>,
    written: Option<u64>,
    expected: Option<String>,
    found: Option<String>,
    command: Option<CommandEnd>,
    io: Option<io::Error>,
}

impl Error {
    /// A new error without details; the `with_…` methods add them.
    pub fn new(kind: ErrorKind) -> Error {
        Error(Box::new(Inner {
            kind,
            name: None,
            offset: None,
            record: None,
            path: None,
            written: None,
            expected: None,
            found: None,
            command: None,
            io: None,
        }))
    }

    /// The system's error while using a source or sink. An [`Error`] that travelled inside an [`io::Error`]
    /// comes out again as it was.
    pub fn from_io(error: io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(ours) => ours,
            Err(error) => {
                let kind = match error.kind() {
                    io::ErrorKind::BrokenPipe => ErrorKind::BrokenPipe,
                    _ => ErrorKind::Io,
                };
                let mut new = Error::new(kind);
                new.0.io = Some(error);
                new
            }
        }
    }

    /// Adds the name of the source or sink, unless it has one.
    pub fn with_name(mut self, name: impl Into<String>) -> Error {
        self.0.name.get_or_insert_with(|| name.into());
        self
    }

    /// Adds the byte offset, unless it has one.
    pub fn with_offset(mut self, offset: u64) -> Error {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Adds the record's number (the first is 0), unless it has one.
    pub fn with_record(mut self, record: u64) -> Error {
        self.0.record.get_or_insert(record);
        self
    }

    /// Adds the path of keys inside a document, unless it has one.
    pub fn with_path(mut self, path: impl Into<String>) -> Error {
        self.0.path.get_or_insert_with(|| path.into());
        self
    }

    /// Takes the byte offset away, which was counted from the start of something whose place is not known.
    pub(crate) fn without_offset(mut self) -> Error {
        self.0.offset = None;
        self
    }

    /// Moves the byte offset, which was counted from the start of something that itself begins at `base`.
    pub(crate) fn shift_offset(mut self, base: u64) -> Error {
        self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
        self
    }

    /// Adds how many bytes are safely written, unless it has that.
    pub fn with_written(mut self, written: u64) -> Error {
        self.0.written.get_or_insert(written);
        self
    }

    /// Adds what was expected.
    pub fn with_expected(mut self, expected: impl Into<String>) -> Error {
        self.0.expected = Some(expected.into());
        self
    }

    /// Adds what was found instead.
    pub fn with_found(mut self, found: impl Into<String>) -> Error {
        self.0.found = Some(found.into());
        self
    }

    /// Adds the command's end.
    pub fn with_command(mut self, command: CommandEnd) -> Error {
        self.0.command = Some(command);
        self
    }

    /// Adds the system's own error.
    pub fn with_io(mut self, error: io::Error) -> Error {
        self.0.io = Some(error);
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The fixed number of the kind.
    pub fn code(&self) -> u32 {
        self.0.kind.code()
    }

    /// The name of the source or sink: a path, a command line, an address.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Where in the stream, in bytes from its start (after decoding).
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Which record; the first is 0.
    pub fn record(&self) -> Option<u64> {
        self.0.record
    }

    /// Which value in a document: its keys from the outermost on, as [`split_path`](crate::bson::split_path) reads them.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Of a writer's error: how many bytes the system has taken for certain.
    pub fn written(&self) -> Option<u64> {
        self.0.written
    }

    /// What was expected.
    pub fn expected(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// What was found.
    pub fn found(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// Which command ended, and how.
    pub fn command(&self) -> Option<&CommandEnd> {
        self.0.command.as_ref()
    }

    /// The system's own error.
    pub fn io(&self) -> Option<&io::Error> {
        self.0.io.as_ref()
    }

    /// The system's error number, if the system reported this error.
    pub fn errno(&self) -> Option<i32> {
        self.0.io.as_ref().and_then(io::Error::raw_os_error)
    }
}

/// A row of options that cannot be, or not together: whether it is so, what was found, what was expected.
pub(crate) type Refusal<'a> = (bool, &'a dyn fmt::Display, &'a dyn fmt::Display);

/// An [`ErrorKind::InvalidOption`] for the first row that is so.
pub(crate) fn refuse(rows: &[Refusal<'_>]) -> Result<()> {
    match rows.iter().find(|(is_so, ..)| *is_so) {
        None => Ok(()),
        Some((_, found, expected)) => {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found.to_string()).with_expected(expected.to_string()))
        }
    }
}

/// A command line for messages: words with blanks or control characters are quoted the way Rust quotes.
pub(crate) fn show_argv(argv: &[OsString]) -> String {
    let mut out = String::new();
    for (i, word) in argv.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let text = word.to_string_lossy();
        let plain =
            !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control() || "'\"\\$`".contains(c));
        if plain {
            out.push_str(&text);
        } else {
            out.push_str(&format!("{text:?}"));
        }
    }
    out
}

/// What was found, what was expected, and where; then what to do, which `{:#}` leaves out.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        // A command names itself.
        if let (Some(name), None) = (e.name.as_ref().filter(|name| !name.is_empty()), &e.command) {
            write!(f, "{name}: ")?;
        }
        match (&e.command, e.kind) {
            (Some(end), _) => write!(f, "the command `{}` {}", show_argv(&end.argv), end.status)?,
            (None, kind) => f.write_str(&kind.name().replace('_', " "))?,
        }
        if let Some(found) = &e.found {
            write!(f, ": found {found}")?;
        }
        if let Some(expected) = &e.expected {
            write!(f, "{} expected {expected}", if e.found.is_some() { "," } else { ":" })?;
        }
        if let Some(io) = &e.io {
            write!(f, ": {io}")?;
        }
        if let Some(path) = &e.path {
            write!(f, ", in {path}")?;
        }
        if let Some(offset) = e.offset {
            write!(f, ", at byte {offset}")?;
        }
        if let Some(record) = e.record {
            write!(f, ", record {record} (the first is 0)")?;
        }
        if let Some(written) = e.written {
            write!(f, ", {written} bytes are safely written")?;
        }
        if let Some(end) = &e.command
            && !end.stderr_tail.is_empty()
        {
            let tail = String::from_utf8_lossy(&end.stderr_tail);
            let last = tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
            f.write_str("; it said last: ")?;
            // Nothing that a terminal would obey.
            for c in last.chars() {
                if c.is_control() { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
            }
        }
        if f.alternate() {
            return Ok(());
        }
        write!(f, "; {}", e.kind.advice())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}, {self})", self.kind())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.io.as_ref().map(|e| e as _)
    }
}

impl From<Error> for io::Error {
    /// For the `std::io` traits. [`Error::from_io`] gets the error back whole.
    fn from(error: Error) -> io::Error {
        let kind = match error.kind() {
            ErrorKind::FrameTruncated
            | ErrorKind::DecodeTruncated
            | ErrorKind::ValueMissing
            | ErrorKind::DocumentTruncated => io::ErrorKind::UnexpectedEof,
            ErrorKind::RecordTooLong
            | ErrorKind::LengthInvalid
            | ErrorKind::Utf8Invalid
            | ErrorKind::DecodeDamaged
            | ErrorKind::DecodeLimit
            | ErrorKind::NumberInvalid
            | ErrorKind::NumberOverflow
            | ErrorKind::DocumentInvalid
            | ErrorKind::TooDeep
            | ErrorKind::KeyMissing
            | ErrorKind::ShapeMismatch
            | ErrorKind::ValueOutOfRange
            | ErrorKind::TextInvalid
            | ErrorKind::JuliaInvalid => io::ErrorKind::InvalidData,
            ErrorKind::Stalled => io::ErrorKind::TimedOut,
            ErrorKind::BrokenPipe => io::ErrorKind::BrokenPipe,
            ErrorKind::InvalidOption => io::ErrorKind::InvalidInput,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            // Not `Interrupted`: std's helpers would silently try again.
            _ => error.io().map_or(io::ErrorKind::Other, io::Error::kind),
        };
        io::Error::new(kind, error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::from_io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dense_and_map_back() {
        for (i, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(kind.code() as usize, i + 1);
            assert_eq!(ErrorKind::from_code(kind.code()), Some(*kind));
        }
        assert_eq!(ErrorKind::from_code(0), None);
        assert_eq!(ErrorKind::from_code(ErrorKind::ALL.len() as u32 + 1), None);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ErrorKind::ALL.iter().map(|k| k.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn every_kind_says_what_it_means() {
        assert_eq!(ErrorKind::OpenFailed.meaning(), "A source or sink could not be opened.");
        assert!(ErrorKind::ALL.iter().all(|kind| kind.meaning().ends_with('.')));
    }

    #[test]
    fn survives_a_trip_through_io_error() {
        let e = Error::new(ErrorKind::FrameTruncated).with_offset(7).with_record(2).with_name("x");
        let io: io::Error = e.into();
        assert_eq!(io.kind(), io::ErrorKind::UnexpectedEof);
        let back = Error::from_io(io);
        assert_eq!(
            (back.kind(), back.offset(), back.record(), back.name()),
            (ErrorKind::FrameTruncated, Some(7), Some(2), Some("x"))
        );
    }

    #[test]
    fn message_says_what_where_and_what_to_do() {
        let e = Error::new(ErrorKind::FrameTruncated)
            .with_name("a.bin")
            .with_found("3 bytes")
            .with_expected("8 bytes")
            .with_offset(16)
            .with_record(2);
        assert_eq!(
            e.to_string(),
            "a.bin: frame truncated: found 3 bytes, expected 8 bytes, at byte 16, record 2 \
             (the first is 0); the input was cut short, or the frame's size is wrong"
        );
    }

    #[test]
    fn arguments_with_blanks_are_quoted() {
        let argv: Vec<OsString> = ["sh", "-c", "exit 3", ""].iter().map(Into::into).collect();
        assert_eq!(show_argv(&argv), "sh -c \"exit 3\" \"\"");
    }
}
