//! Where the value that is read goes, and its errors: what `read` and `wrapper` pass to each other through serde.

use crate::wire::path::join_shortened;
use millstream_core::{Error, ErrorKind};
use std::cell::RefCell;

/// What serde_json's errors cannot contain.
#[derive(Default)]
pub(super) struct Failure {
    /// The error itself, if it is ours.
    pub(super) error: Option<Error>,
    /// The keys from the place of the error outwards.
    pub(super) keys: Vec<String>,
}

impl Failure {
    /// The whole error.
    pub(super) fn locate(mut self, text: &[u8], error: &serde_json::Error) -> Error {
        let offset = offset_of(text, error.line(), error.column());
        let located = self.error.take().unwrap_or_else(|| syntax_error(text, offset, error));
        self.keys.reverse();
        let located = located.with_offset(offset as u64);
        if self.keys.is_empty() { located } else { located.with_path(join_shortened(&self.keys)) }
    }
}

/// Keeps an error of ours, and makes the one that is passed through serde_json instead.
#[cold]
pub(super) fn fail<E: serde::de::Error>(failure: &RefCell<Failure>, error: Error) -> E {
    failure.borrow_mut().error.get_or_insert(error);
    E::custom("")
}

/// A value of any type, whose payload is appended.
pub(super) struct Payload<'o> {
    pub(super) out: &'o mut Vec<u8>,
    pub(super) failure: &'o RefCell<Failure>,
    /// How many documents and arrays may still be opened.
    pub(super) depth: u16,
    /// Whether it is the outermost object, which is never a wrapper.
    pub(super) is_root: bool,
}

/// The offset of a line and a column as serde_json counts them, both from 1.
fn offset_of(text: &[u8], line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        Some(newline) => memchr::memchr_iter(b'\n', text).nth(newline).map_or(0, |at| at + 1),
        None => 0,
    };
    (start + column.saturating_sub(1)).min(text.len())
}

/// An error that serde_json found.
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
