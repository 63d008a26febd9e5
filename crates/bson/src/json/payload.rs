//! The destination of the value that is read, and its errors. The modules `read` and `wrapper` pass these to each other
//! through serde.

use crate::wire::path::join_shortened;
use millstream_core::{Error, ErrorKind};
use std::cell::RefCell;

/// The part of an error that serde_json's errors cannot contain.
#[derive(Default)]
pub(super) struct Failure {
    /// The error, if it is from this crate.
    pub(super) error: Option<Error>,
    /// The keys from the place of the error to the outermost.
    pub(super) keys: Vec<String>,
}

impl Failure {
    /// Returns the complete error.
    pub(super) fn locate(mut self, text: &[u8], error: &serde_json::Error) -> Error {
        let offset = offset_of(text, error.line(), error.column());
        let located = self.error.take().unwrap_or_else(|| syntax_error(text, offset, error));
        self.keys.reverse();
        let (line, column) = (error.line() as u64, error.column().max(1) as u64);
        let located = located.with_offset(offset as u64).with_line(line).with_column(column);
        if self.keys.is_empty() { located } else { located.with_path(join_shortened(&self.keys)) }
    }
}

/// Stores an error of this crate and returns the one that is passed through serde_json in its place.
#[cold]
pub(super) fn fail<E: serde::de::Error>(failure: &RefCell<Failure>, error: Error) -> E {
    failure.borrow_mut().error.get_or_insert(error);
    E::custom("")
}

/// Appends the payload of a value of any type.
pub(super) struct Payload<'o> {
    pub(super) out: &'o mut Vec<u8>,
    pub(super) failure: &'o RefCell<Failure>,
    /// How many more documents and arrays may be opened.
    pub(super) depth: u16,
    /// Whether the value is the outermost object, which is never a wrapper.
    pub(super) is_root: bool,
}

/// Converts serde_json's line and column, both counted from 1, to an offset.
fn offset_of(text: &[u8], line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        Some(newline) => memchr::memchr_iter(b'\n', text).nth(newline).map_or(0, |at| at + 1),
        None => 0,
    };
    (start + column.saturating_sub(1)).min(text.len())
}

/// Converts an error that serde_json reported.
fn syntax_error(text: &[u8], offset: usize, error: &serde_json::Error) -> Error {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let new = Error::new(ErrorKind::TextInvalid);
    if error.is_eof() {
        return new.with_found("the end of the text").with_expected("the rest of a document");
    }
    if let Some((found, expected)) = message.split_once(", expected ") {
        let found = found.split_once(": ").map_or(found, |(_, found)| found);
        return new.with_found(found).with_expected(expected);
    }
    let found = match text.get(offset) {
        Some(byte) => format!("{:?}", char::from(*byte)),
        None => "the end of the text".to_string(),
    };
    match message.strip_prefix("expected ") {
        Some(expected) => new.with_found(found).with_expected(expected),
        None => new.with_found(format!("{found} ({message})")).with_expected("JSON"),
    }
}
