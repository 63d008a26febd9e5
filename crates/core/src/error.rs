//! All errors, defined once for every language.
//!
//! There is one [`Error`] type: a kind with a fixed code, the name of the source or sink, the line and column in a text,
//! the byte offset, the record number, and details that depend on the kind. The table of kinds in this file is the only one: every front end maps
//! kinds by [`ErrorKind::code`], and no code parses messages.
//!
//! A reader reports an error one time, followed by a plain end (`None`). It can continue only after errors for which
//! [`ErrorKind::is_resumable`] is true. These errors are reported again until their cause is removed, so that they are
//! not mistaken for the end.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io;

use crate::argv::show_argv;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Defines the table of kinds: the code, the Rust name, the name in every other language, and the advice.
macro_rules! error_kinds {
    ($($(#[doc = $doc:literal])* $code:literal $kind:ident $name:literal $advice:literal;)*) => {
        /// The kinds of error, whose codes never change their meaning.
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
            /// All kinds, in the order of their codes.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),*];

            /// Returns the fixed number of this kind; 0 is never used.
            pub const fn code(self) -> u32 {
                self as u32
            }

            /// Returns the kind with this number.
            pub const fn from_code(code: u32) -> Option<ErrorKind> {
                match code {
                    $($code => Some(ErrorKind::$kind),)*
                    _ => None,
                }
            }

            /// Returns the name of this kind in snake case, the same in every language.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $name,)*
                }
            }

            /// Returns the meaning of this kind in one or two sentences, which document the kind in other languages.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => concat!($($doc),*).trim_ascii(),)*
                }
            }

            /// Returns advice for the user. Names of options and methods are in backticks, as Rust spells them.
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
    1 Io "io" "see the operating system's message";
    /// A source or sink could not be opened.
    2 OpenFailed "open_failed" "check the name and the permissions";
    /// A command could not be started.
    3 CommandNotStarted "command_not_started" "check that the program exists, is executable and is in PATH";
    /// A command exited with a non-zero status or was killed by a signal. All of its output was delivered.
    4 CommandFailed "command_failed" "find out why it failed, or accept its failure with `allow_failure`";
    /// The exit status of a command is unknown (SIGCHLD is ignored, or another part of the program waited for it).
    5 CommandStatusUnknown "command_status_unknown" "leave SIGCHLD at its default and do not wait for processes you did not start";
    /// A record is longer than the record limit.
    6 RecordTooLong "record_too_long" "raise `record_limit`; call `skip_record` to continue after this record";
    /// The stream ended inside a record of fixed or announced length.
    7 FrameTruncated "frame_truncated" "check whether the input was cut short or the frame size is wrong";
    /// A length prefix is invalid.
    8 LengthInvalid "length_invalid" "check width, byte order and whether the length counts itself";
    /// Text was requested, and the bytes are not UTF-8.
    9 Utf8Invalid "utf8_invalid" "read the record as bytes";
    /// Compressed data is damaged.
    10 DecodeDamaged "decode_damaged" "fetch the file again; all data before this point has been delivered";
    /// Compressed data ends too early.
    11 DecodeTruncated "decode_truncated" "fetch the file again; all data before this point has been delivered";
    /// Compressed data grows beyond the limit on output size or ratio.
    12 DecodeLimit "decode_limit" "raise `decode_limit`, `decode_ratio` or `decode_memory` if the source is trusted";
    /// No bytes arrived, or no bytes were accepted, for longer than the time limit.
    13 Stalled "stalled" "raise `stall_timeout`, or find out what the other side is waiting for";
    /// A cancel token was triggered. No data is lost: the next call continues.
    14 Cancelled "cancelled" "continue, or close";
    /// A file became shorter while it was read.
    15 SourceShrank "source_shrank" "do not truncate a file that is being read";
    /// The reading side closed the pipe or connection.
    16 BrokenPipe "broken_pipe" "stop writing: the reader has closed the pipe or connection";
    /// An option has an invalid value.
    17 InvalidOption "invalid_option" "correct the option or the argument";
    /// This build or platform does not support the operation.
    18 Unsupported "unsupported" "see the documentation of this call";
    /// The reader or writer is closed, or failed earlier.
    19 Closed "closed" "open a new reader or writer";
    /// A thread of the library ended unexpectedly.
    20 Internal "internal" "report this message as a bug";
    /// The input contains something other than a value of the requested type.
    21 NumberInvalid "number_invalid" "check the input at this position, the separator and the type";
    /// A number does not fit its type.
    22 NumberOverflow "number_overflow" "use a wider type, or check the input at this position";
    /// The input ended where a value was expected.
    23 ValueMissing "value_missing" "check whether the input was cut short, or request fewer values";
    /// An invalid argument of a call across a language boundary, such as a null pointer.
    24 ArgumentInvalid "argument_invalid" "check the arguments of the call";
    /// Bytes that are not a BSON document: an invalid type, length or terminator.
    25 DocumentInvalid "document_invalid" "check the program that wrote the document";
    /// A BSON document, or a value in it, is longer than the available bytes, or a JSON document ends too early.
    26 DocumentTruncated "document_truncated" "check whether the input was cut short or contains a wrong length";
    /// Documents and arrays are nested deeper than the limit.
    27 TooDeep "too_deep" "check the program that wrote the document; raise `depth` if the source is trusted";
    /// A document has no member of this name, or an array no element at this position.
    28 KeyMissing "key_missing" "check the path";
    /// A value is not of the requested type, or a document has other members.
    29 ShapeMismatch "shape_mismatch" "request the type that was found, or check the program that wrote the document";
    /// A value does not fit the requested type.
    30 ValueOutOfRange "value_out_of_range" "use a wider type, or check the program that wrote the document";
    /// Text that is not valid Extended JSON, or not a valid object id, date or decimal number.
    31 TextInvalid "text_invalid" "check the text at this position";
    /// A BSON.jl file describes Julia values that cannot exist.
    32 JuliaInvalid "julia_invalid" "check the program that wrote the file; it can still be read as a plain document";
    /// Continuing would take more memory than the limit allows.
    33 MemoryLimit "memory_limit" "raise the limit if the source is trusted";
    /// A stage of a pipe panicked, or threw a value that is not an error. Earlier records have been passed on.
    34 StagePanicked "stage_panicked" "fix the stage; the panic message on standard error shows where";
    /// A stage of a pipe reported that it could not process a record.
    35 StageFailed "stage_failed" "check the record; skip failing records with `on_error`";
    /// A file changed while it was read: the delivered bytes may be a mixture of its old and new content.
    36 SourceChanged "source_changed" "read the file again while no other program writes to it";
    /// Reading took longer than its total time limit. Everything read before was delivered.
    37 TimedOut "timed_out" "raise `total_timeout`, or find out why it takes so long";
    /// A CSV file has a quote where its dialect allows none, a quoted field without an end, or bytes of UTF-16.
    38 CsvInvalid "csv_invalid" "check the file at this position, or choose the dialect in which it was written";
    /// A CSV record has more or fewer fields than the first one.
    39 FieldCountMismatch "field_count_mismatch" "check the record, or choose how such records are read";
    /// Text that is not valid JSON.
    40 JsonInvalid "json_invalid" "check the program that wrote the text";
    /// A server failed, broke a connection, or answered something other than what was requested.
    41 RemoteFailed "remote_failed" "check the server and the connection, then try again";
    /// The answer to the request that completes an object was lost, so the object may or may not have been written.
    42 OutcomeUnknown "outcome_unknown" "look at the object before you write it again";
    /// The file or object exists, and was to be created.
    43 AlreadyExists "already_exists" "choose another name, or remove what exists";
    /// A source ended, but its bytes or records are not the expected ones.
    44 ContentMismatch "content_mismatch" "get the source again, or check `expect_bytes`, `expect_hash` and `expect_records`";
    /// A job that writes a directory is not complete, or its manifest or one of its parts is missing, damaged or changed.
    45 JobIncomplete "job_incomplete" "see millstream commit --help, or write the output again"; // last added
}

impl ErrorKind {
    /// Returns the advice for another language or program. Each name in backticks is replaced with what `spell` returns for
    /// it. If that is `None`, because the program has nothing like it, the clause with this name is omitted.
    ///
    /// ```
    /// use millstream::ErrorKind;
    /// let has = |name: &str| (name == "record_limit").then(|| format!("--{}", name.replace('_', "-")));
    /// assert_eq!(ErrorKind::RecordTooLong.advice_with(has), "raise --record-limit");
    /// ```
    pub fn advice_with(self, spell: impl Fn(&str) -> Option<String>) -> String {
        spelled(self.advice(), spell)
    }

    /// Returns whether the reader that reported this error can continue: after [`ErrorKind::Cancelled`] with the next
    /// call, after [`ErrorKind::RecordTooLong`] with `skip_record`, and after [`ErrorKind::NumberInvalid`] and
    /// [`ErrorKind::NumberOverflow`] by reading the input by another method.
    pub const fn is_resumable(self) -> bool {
        matches!(
            self,
            ErrorKind::Cancelled | ErrorKind::RecordTooLong | ErrorKind::NumberInvalid | ErrorKind::NumberOverflow
        )
    }
}

/// Returns an advice in other words: see [`ErrorKind::advice_with`].
fn spelled(advice: &str, spell: impl Fn(&str) -> Option<String>) -> String {
    let clause = |clause: &str| -> Option<String> {
        let parts = clause.split('`').enumerate();
        parts.map(|(i, part)| if i % 2 == 0 { Some(part.to_string()) } else { spell(part) }).collect()
    };
    advice.split("; ").filter_map(clause).collect::<Vec<_>>().join("; ")
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
    /// It was killed by this signal.
    Signaled(i32),
    /// The system did not report how it ended.
    Unknown,
}

impl CommandStatus {
    /// Returns whether the command exited with status 0.
    pub const fn success(self) -> bool {
        matches!(self, CommandStatus::Exited(0))
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            CommandStatus::Exited(status) => write!(f, "exited with status {status}"),
            CommandStatus::Signaled(signal) => match signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            CommandStatus::Unknown => f.write_str("ended with an unknown status"),
        }
    }
}

/// Returns the name of a signal that kills commands, by its number on this operating system.
const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    // POSIX fixes no numbers for these signals. The numbers are the ones that Linux, macOS and the BSDs use on common
    // processors.
    (if cfg!(any(target_os = "linux", target_os = "android")) { 7 } else { 10 }, "SIGBUS"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
];

fn signal_name(signal: i32) -> Option<&'static str> {
    SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}

/// A command that ended: its command line, how it ended, and its last output. Errors and reports contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// The command and its arguments, as passed when it was started.
    pub argv: Vec<OsString>,
    /// How it ended.
    pub status: CommandStatus,
    /// The last bytes of its standard error (4 KiB by default), if the library read it.
    pub stderr_tail: Vec<u8>,
}

impl CommandEnd {
    /// Returns the last line of its standard error that is not blank, with control characters escaped, because a terminal
    /// would interpret them. Returns `None` if nothing is known of its standard error.
    pub fn last_line(&self) -> Option<String> {
        let tail = String::from_utf8_lossy(&self.stderr_tail);
        let last = tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
        let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
        (!tail.is_empty()).then(|| last.chars().map(escape).collect())
    }
}

/// Formats the command line and how the command ended.
impl fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the command `{}` {}", show_argv(&self.argv), self.status)
    }
}

/// An error: what was found, what was expected, where it happened, and what to do.
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
    line: Option<u64>,
    column: Option<u64>,
    path: Option<String>,
    written: Option<u64>,
    expected: Option<String>,
    found: Option<String>,
    command: Option<CommandEnd>,
    io: Option<io::Error>,
    advice: Option<Cow<'static, str>>,
}

impl Error {
    /// Creates an error without details; the `with_…` methods add them.
    pub fn new(kind: ErrorKind) -> Error {
        Error(Box::new(Inner {
            kind,
            name: None,
            offset: None,
            record: None,
            line: None,
            column: None,
            path: None,
            written: None,
            expected: None,
            found: None,
            command: None,
            io: None,
            advice: None,
        }))
    }

    /// Creates an error from the operating system's error for a source or sink. An [`Error`] wrapped in an
    /// [`io::Error`] is unwrapped unchanged.
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

    /// Adds the number of the line (the first is 1), unless it has one.
    pub fn with_line(mut self, line: u64) -> Error {
        self.0.line.get_or_insert(line);
        self
    }

    /// Adds the column in the line, in bytes (the first is 1), unless it has one.
    pub fn with_column(mut self, column: u64) -> Error {
        self.0.column.get_or_insert(column);
        self
    }

    /// Adds the place of a record to an error that was found in it: the `record` begins at `offset`, and is a `line` of
    /// a text. `at` is the number of bytes before the part of it from which the error counted its position, if known.
    #[doc(hidden)]
    pub fn in_record(mut self, offset: Option<u64>, record: u64, line: Option<u64>, at: Option<u64>) -> Error {
        let inside = at.map(|at| at + self.0.offset.unwrap_or(0));
        self.0.offset = offset.map(|offset| offset + inside.unwrap_or(0));
        self.0.column = at.and_then(|at| Some(at + self.0.column?)).filter(|_| line.is_some());
        self.0.line = line;
        self.with_record(record)
    }

    /// Adds the key path inside a document, unless it has one.
    pub fn with_path(mut self, path: impl Into<String>) -> Error {
        self.0.path.get_or_insert_with(|| path.into());
        self
    }

    /// Removes the byte offset, which was counted from an unknown position.
    #[doc(hidden)]
    pub fn without_offset(mut self) -> Error {
        self.0.offset = None;
        self
    }

    /// Adds `base` to the byte offset, which was counted from the offset `base`.
    #[doc(hidden)]
    pub fn shift_offset(mut self, base: u64) -> Error {
        self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
        self
    }

    /// Adds to the numbers of the record and of the line, which were counted from the middle of a stream. A line that
    /// cannot be known is removed, with its column.
    #[doc(hidden)]
    pub fn shift_record(mut self, records: u64, lines: Option<u64>) -> Error {
        self.0.record = self.0.record.map(|record| record + records);
        self.0.line = self.0.line.zip(lines).map(|(line, lines)| line + lines);
        self.0.column = self.0.column.filter(|_| lines.is_some());
        self
    }

    /// Adds the number of bytes that the sink had accepted, unless the error has one.
    pub fn with_written(mut self, written: u64) -> Error {
        self.0.written.get_or_insert(written);
        self
    }

    /// Adds what was expected.
    pub fn with_expected(mut self, expected: impl Into<String>) -> Error {
        self.0.expected = Some(expected.into());
        self
    }

    /// Adds what was found.
    pub fn with_found(mut self, found: impl Into<String>) -> Error {
        self.0.found = Some(found.into());
        self
    }

    /// Returns a copy of the error, for a call that reports it again.
    #[doc(hidden)]
    pub fn again(&self) -> Error {
        let Inner { kind, name, offset, record, line, column, path, written, expected, found, command, io, advice } =
            &*self.0;
        let io = io.as_ref().map(|error| match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        });
        Error(Box::new(Inner {
            kind: *kind,
            name: name.clone(),
            offset: *offset,
            record: *record,
            line: *line,
            column: *column,
            path: path.clone(),
            written: *written,
            expected: expected.clone(),
            found: found.clone(),
            command: command.clone(),
            io,
            advice: advice.clone(),
        }))
    }

    /// Adds how the command ended.
    pub fn with_command(mut self, command: CommandEnd) -> Error {
        self.0.command = Some(command);
        self
    }

    /// Adds the operating system's error.
    pub fn with_io(mut self, error: io::Error) -> Error {
        self.0.io = Some(error);
        self
    }

    /// Sets the advice, if there is better advice for this error than for all errors of its kind. Names of options and
    /// methods are in backticks, as Rust spells them.
    pub fn with_advice(mut self, advice: impl Into<Cow<'static, str>>) -> Error {
        self.0.advice = Some(advice.into());
        self
    }

    /// Returns the kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the fixed number of the kind.
    pub fn code(&self) -> u32 {
        self.0.kind.code()
    }

    /// Returns the name of the source or sink: a path, a command line or an address.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Returns the position in the stream, in bytes from its start (after decoding).
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the number of the record; the first is 0.
    pub fn record(&self) -> Option<u64> {
        self.0.record
    }

    /// Returns the number of the line in a text; the first is 1. It is known if all records up to this one were lines or
    /// records of CSV.
    ///
    /// ```
    /// use millstream::Reader;
    /// let mut numbers = Reader::memory("1 2\n3 x4\n")?;
    /// let error = numbers.values::<u32>().find_map(Result::err).unwrap();
    /// assert_eq!((error.line(), error.column(), error.found()), (Some(2), Some(3), Some("x4")));
    /// assert_eq!((error.record(), error.offset()), (Some(1), Some(6)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// Returns the column in the line, in bytes; the first is 1.
    pub fn column(&self) -> Option<u64> {
        self.0.column
    }

    /// Returns the path of the value in a document: its keys from the outermost on, as `bson::split_path` reads them.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Returns, for an error of a writer, the number of bytes that the sink had accepted. If a file would have appeared
    /// complete, these bytes are lost.
    pub fn written(&self) -> Option<u64> {
        self.0.written
    }

    /// Returns what was expected.
    pub fn expected(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// Returns what was found. If a stage failed or panicked, this is its message.
    pub fn found(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// Returns the command that ended, and how it ended.
    pub fn command(&self) -> Option<&CommandEnd> {
        self.0.command.as_ref()
    }

    /// Returns the operating system's error.
    pub fn io(&self) -> Option<&io::Error> {
        self.0.io.as_ref()
    }

    /// Returns the operating system's error number, if the operating system reported this error.
    pub fn errno(&self) -> Option<i32> {
        self.0.io.as_ref().and_then(io::Error::raw_os_error)
    }
}

impl Error {
    /// Returns what to do about this error: its own advice, or that of its [kind](ErrorKind::advice).
    ///
    /// ```
    /// use millstream::{Error, ErrorKind};
    /// let full = Error::from_io(std::io::ErrorKind::StorageFull.into());
    /// assert_eq!(full.advice(), "free space, or write elsewhere");
    /// assert_eq!(Error::new(ErrorKind::TooDeep).advice(), ErrorKind::TooDeep.advice());
    /// ```
    pub fn advice(&self) -> &str {
        self.own_advice().unwrap_or(self.0.kind.advice())
    }

    /// Returns the advice for this error, if it is not that of its kind.
    #[doc(hidden)]
    pub fn own_advice(&self) -> Option<&str> {
        let is_full = || {
            let reason = self.0.io.as_ref().map(io::Error::kind);
            matches!(reason, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
        };
        match (&self.0.advice, self.0.kind) {
            (Some(advice), _) => Some(advice),
            (None, ErrorKind::Io) if is_full() => Some("free space, or write elsewhere"),
            (None, _) => None,
        }
    }

    /// Returns the advice for another language or program, as [`ErrorKind::advice_with`] does.
    pub fn advice_with(&self, spell: impl Fn(&str) -> Option<String>) -> String {
        spelled(self.advice(), spell)
    }
}

/// Formats what was found, what was expected and where, followed by the advice. `{:#}` adds the causes of the operating
/// system's or the stage's error, each after a colon.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)?;
        write!(f, "; {}", self.advice())
    }
}

/// An error without its advice: see [`Error::without_advice`].
struct WithoutAdvice<'e>(&'e Error);

impl fmt::Display for WithoutAdvice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(f)
    }
}

impl Error {
    /// Returns the message without the advice, for programs that give their own. It is formatted like the error
    /// itself.
    ///
    /// ```
    /// use millstream::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::RecordTooLong).with_name("a.txt");
    /// assert_eq!(error.without_advice().to_string(), "a.txt: record too long");
    /// assert!(error.to_string().starts_with("a.txt: record too long; "));
    /// ```
    pub fn without_advice(&self) -> impl fmt::Display + '_ {
        WithoutAdvice(self)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        // The name is omitted for a command, because the text contains the command line.
        if let (Some(name), None) = (e.name.as_ref().filter(|name| !name.is_empty()), &e.command) {
            write!(f, "{name}: ")?;
        }
        match (&e.command, e.kind) {
            (Some(end), _) => write!(f, "{end}")?,
            (None, kind) => f.write_str(&kind.name().replace('_', " "))?,
        }
        match &e.found {
            // This is the message of a function that failed, in its own words.
            Some(found) if is_of_stage(e.kind) => write!(f, ": {found}")?,
            Some(found) => write!(f, ": found {found}")?,
            None => {}
        }
        if let Some(expected) = &e.expected {
            write!(f, "{} expected {expected}", if e.found.is_some() { "," } else { ":" })?;
        }
        if let Some(io) = &e.io {
            write!(f, ": {io}")?;
            let mut cause = std::error::Error::source(io).filter(|_| f.alternate());
            while let Some(error) = cause {
                write!(f, ": {error}")?;
                cause = error.source();
            }
        }
        if let Some(path) = &e.path {
            write!(f, ", in {path}")?;
        }
        match (e.line, e.column) {
            (Some(line), Some(column)) => write!(f, ", at line {line}, column {column}")?,
            (Some(line), None) => write!(f, ", at line {line}")?,
            (None, column) => {
                match (column, e.offset) {
                    (Some(column), _) => write!(f, ", at column {column}")?,
                    (None, Some(offset)) => write!(f, ", at byte {offset}")?,
                    (None, None) => {}
                }
                if let Some(record) = e.record {
                    write!(f, ", record {record} (the first is 0)")?;
                }
            }
        }
        if let Some(written) = e.written {
            write!(f, ", {written} bytes had been written")?;
        }
        if let Some(last) = e.command.as_ref().and_then(CommandEnd::last_line) {
            write!(f, "; last line of standard error: {last}")?;
        }
        Ok(())
    }
}

/// Returns whether what was found is the message of a stage.
fn is_of_stage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StageFailed | ErrorKind::StagePanicked)
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
    /// Converts the error for the `std::io` traits. [`Error::from_io`] returns the complete error again.
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
            | ErrorKind::JuliaInvalid
            | ErrorKind::CsvInvalid
            | ErrorKind::FieldCountMismatch => io::ErrorKind::InvalidData,
            ErrorKind::Stalled | ErrorKind::TimedOut => io::ErrorKind::TimedOut,
            ErrorKind::BrokenPipe => io::ErrorKind::BrokenPipe,
            ErrorKind::InvalidOption => io::ErrorKind::InvalidInput,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            // This must not be `Interrupted`: std's helper functions would silently retry.
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
    fn every_kind_has_a_meaning() {
        assert_eq!(ErrorKind::OpenFailed.meaning(), "A source or sink could not be opened.");
        assert!(ErrorKind::ALL.iter().all(|kind| kind.meaning().ends_with('.')));
    }

    #[test]
    fn advice_in_other_words_lacks_what_they_lack() {
        assert_eq!(ErrorKind::Io.advice_with(|_| None), ErrorKind::Io.advice());
        assert_eq!(
            ErrorKind::RecordTooLong.advice_with(|name| Some(format!("`{name}`"))),
            ErrorKind::RecordTooLong.advice()
        );
        assert_eq!(ErrorKind::StageFailed.advice_with(|_| None), "check the record");
        assert_eq!(
            ErrorKind::DecodeLimit.advice_with(|name| Some(name.to_uppercase())),
            "raise DECODE_LIMIT, DECODE_RATIO or DECODE_MEMORY if the source is trusted"
        );
        assert_eq!(ErrorKind::DecodeLimit.advice_with(|name| (name != "decode_ratio").then(String::new)), "");
    }

    #[test]
    fn an_error_can_have_its_own_advice() {
        let error = Error::new(ErrorKind::KeyMissing).with_advice("call `header` first; or not");
        assert_eq!(error.to_string(), "key missing; call `header` first; or not");
        assert_eq!(error.again().advice(), error.advice());
        assert_eq!(error.without_advice().to_string(), "key missing");
        assert_eq!(error.advice_with(|_| Some("names()".into())), "call names() first; or not");
        assert_eq!(error.advice_with(|_| None), "or not");
    }

    #[test]
    fn a_full_disk_has_its_own_advice() {
        let advice = |kind: io::ErrorKind| Error::from_io(kind.into()).advice().to_string();
        assert_eq!(advice(io::ErrorKind::StorageFull), "free space, or write elsewhere");
        assert_eq!(advice(io::ErrorKind::QuotaExceeded), "free space, or write elsewhere");
        assert_eq!(advice(io::ErrorKind::PermissionDenied), ErrorKind::Io.advice());
    }

    #[test]
    fn a_stage_is_quoted() {
        let message = |kind| Error::new(kind).with_found("bad record").with_line(3).without_advice().to_string();
        assert_eq!(message(ErrorKind::StageFailed), "stage failed: bad record, at line 3");
        assert_eq!(message(ErrorKind::StagePanicked), "stage panicked: bad record, at line 3");
        assert_eq!(message(ErrorKind::CsvInvalid), "csv invalid: found bad record, at line 3");
    }

    #[test]
    fn survives_conversion_to_io_error_and_back() {
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
    fn a_place_in_a_text_is_a_line_and_a_column() {
        let new = || Error::new(ErrorKind::NumberInvalid).with_offset(9).with_record(2);
        let place = |error: Error| error.without_advice().to_string();
        assert_eq!(place(new()), "number invalid, at byte 9, record 2 (the first is 0)");
        assert_eq!(place(new().with_line(3)), "number invalid, at line 3");
        assert_eq!(place(new().with_line(3).with_column(2)), "number invalid, at line 3, column 2");
        assert_eq!(place(new().with_column(2)), "number invalid, at column 2, record 2 (the first is 0)");
    }

    /// An error with two causes.
    #[derive(Debug)]
    struct Chained(&'static str, Option<Box<Chained>>);

    impl fmt::Display for Chained {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Chained {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn the_alternate_message_adds_the_causes() {
        let chain = Chained("no row", Some(Box::new(Chained("no table", Some(Box::new(Chained("no file", None)))))));
        let error = Error::new(ErrorKind::StageFailed).with_io(io::Error::other(chain)).with_record(2);
        let (place, advice) = ("record 2 (the first is 0)", ErrorKind::StageFailed.advice());
        assert_eq!(error.to_string(), format!("stage failed: no row, {place}; {advice}"));
        assert_eq!(format!("{error:#}"), format!("stage failed: no row: no table: no file, {place}; {advice}"));
        let without = error.without_advice();
        assert_eq!(without.to_string(), format!("stage failed: no row, {place}"));
        assert_eq!(format!("{without:#}"), format!("stage failed: no row: no table: no file, {place}"));
    }

    #[test]
    fn message_has_details_place_and_advice() {
        let e = Error::new(ErrorKind::FrameTruncated)
            .with_name("a.bin")
            .with_found("3 bytes")
            .with_expected("8 bytes")
            .with_offset(16)
            .with_record(2);
        assert_eq!(
            e.to_string(),
            "a.bin: frame truncated: found 3 bytes, expected 8 bytes, at byte 16, record 2 \
             (the first is 0); check whether the input was cut short or the frame size is wrong"
        );
    }
}
