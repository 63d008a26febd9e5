//! A core error as plain data. TypeScript makes the exception of it, so that there is one class of errors only.

use millstream::{CommandEnd, CommandStatus, Error};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

/// How a command ended.
#[napi(object, object_from_js = false)]
pub struct End {
    /// The program, then its arguments.
    pub argv: Vec<String>,
    /// What it exited with.
    pub status: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// The last 4 KiB of its standard error.
    pub stderr_tail: Buffer,
}

/// What went wrong.
#[napi(object, object_from_js = false)]
pub struct Failure {
    /// The kind's name, in snake case.
    pub kind: String,
    /// Which command ended, and how.
    pub command: Option<End>,
    /// What was found.
    pub found: Option<String>,
    /// What was expected.
    pub expected: Option<String>,
    /// The system's error number.
    pub errno: Option<i32>,
    /// What the system, or a library, says of it.
    pub system: Option<String>,
    /// Of documents: where, in bytes from the first that were given.
    pub offset: Option<i64>,
    /// Of documents: the keys to what is wrong.
    pub path: Option<String>,
}

impl Failure {
    /// The error of something that begins behind so many bytes.
    pub fn behind(error: &Error, bytes: usize) -> Failure {
        let offset = error.offset().map_or(0, |offset| offset as i64);
        Failure { offset: Some(offset + bytes as i64), ..Failure::from(error) }
    }
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

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        Failure {
            kind: error.kind().name().to_owned(),
            command: error.command().map(End::from),
            found: error.found().map(str::to_owned),
            expected: error.expected().map(str::to_owned),
            errno: error.errno(),
            system: error.io().map(ToString::to_string),
            offset: None,
            path: error.path().map(str::to_owned),
        }
    }
}
