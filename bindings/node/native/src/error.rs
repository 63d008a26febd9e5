//! Errors of the core as plain data. TypeScript creates the exception from it, so that there is only one class of
//! errors.

use millstream::{CommandEnd, CommandStatus, Error, ErrorKind};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

/// How a command ended.
#[napi(object, object_from_js = false)]
pub struct End {
    /// The program, then its arguments.
    pub argv: Vec<String>,
    /// The exit status.
    pub status: Option<i32>,
    /// The number of the signal that killed it.
    pub signal: Option<i32>,
    /// The last bytes of its standard error.
    pub stderr_tail: Buffer,
}

/// An error.
#[napi(object, object_from_js = false)]
pub struct Failure {
    /// The kind's name, in snake case.
    pub kind: String,
    /// What to do, with options as JavaScript spells them.
    pub advice: String,
    /// The command that ended, and how.
    pub command: Option<End>,
    /// That as a text.
    pub what: Option<String>,
    /// The last line of its standard error.
    pub last_line: Option<String>,
    /// What was found.
    pub found: Option<String>,
    /// What was expected.
    pub expected: Option<String>,
    /// The place in a JSON document, or that of an error in columns. TypeScript knows that of any other error.
    pub offset: Option<f64>,
    /// For an error in columns, the number of the record, the first being 0.
    pub record: Option<f64>,
    /// Its line, the first being 1.
    pub line: Option<f64>,
    /// The column in the line, in bytes, the first being 1.
    pub column: Option<f64>,
    /// The name of the column of the table, with those of members.
    pub path: Option<String>,
    /// The system's error number.
    pub errno: Option<i32>,
    /// The message of the system, or of a library.
    pub system: Option<String>,
}

impl From<&CommandEnd> for End {
    fn from(end: &CommandEnd) -> End {
        let (status, signal) = match end.status {
            CommandStatus::Exited(status) => (Some(status), None),
            CommandStatus::Signaled(signal) => (None, Some(signal)),
            _ => (None, None),
        };
        let argv = end.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        End { argv, status, signal, stderr_tail: end.stderr_tail.clone().into() }
    }
}

/// Returns whether the elements of a JSON document fail with an error of this kind.
fn is_of_json(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::JsonInvalid
            | ErrorKind::DocumentTruncated
            | ErrorKind::ShapeMismatch
            | ErrorKind::KeyMissing
            | ErrorKind::TooDeep
    )
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        Failure {
            kind: error.kind().name().to_owned(),
            advice: millstream_wasm::failure::advice(error),
            command: error.command().map(End::from),
            what: error.command().map(ToString::to_string),
            last_line: error.command().and_then(CommandEnd::last_line),
            found: error.found().map(str::to_owned),
            expected: error.expected().map(str::to_owned),
            offset: error.offset().filter(|_| is_of_json(error.kind())).map(|offset| offset as f64),
            record: None,
            line: None,
            column: None,
            path: None,
            errno: error.errno(),
            system: error.io().map(ToString::to_string),
        }
    }
}

impl Failure {
    /// An error with its place, which TypeScript does not know.
    pub fn with_place(error: &Error) -> Failure {
        let number = |number: Option<u64>| number.map(|number| number as f64);
        Failure {
            offset: number(error.offset()),
            record: number(error.record()),
            line: number(error.line()),
            column: number(error.column()),
            path: error.path().map(str::to_owned),
            ..Failure::from(error)
        }
    }
}
