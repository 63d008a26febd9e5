//! The BSON types that Rust lacks, with one file for each.
//!
//! They are newtypes over the stored bytes, so that decoding them is free. Their methods interpret the bytes and
//! convert them to text.

mod date_time;
mod decimal128;
mod object_id;
mod timestamp;

pub use date_time::DateTime;
pub use decimal128::Decimal128;
pub use object_id::ObjectId;
pub use timestamp::Timestamp;

use millstream_core::{Error, ErrorKind};
use std::borrow::Cow;

/// The maximum number of bytes of an invalid text that an error quotes.
const SHOWN: usize = 60;

/// An input text as an error shows it: quoted, and truncated if it is long.
pub(crate) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN);
    let rest = if end < text.len() { " …" } else { "" };
    format!("{:?}{rest}", &text[..end])
}

/// A key in the path of an error, truncated if it is long.
pub(crate) fn shown_key(key: &str) -> Cow<'_, str> {
    let end = key.floor_char_boundary(SHOWN);
    if end < key.len() { Cow::Owned(format!("{}…", &key[..end])) } else { Cow::Borrowed(key) }
}

/// The error for a text that is invalid from byte `at` on.
#[cold]
pub(crate) fn bad_text(text: &str, expected: &str, at: usize) -> Error {
    Error::new(ErrorKind::TextInvalid).with_found(shown(text)).with_expected(expected).with_offset(at as u64)
}
