//! The types that Rust lacks: one file each.
//!
//! They are newtypes over the stored bytes, so that decoding costs nothing; their meaning, and their text, is in their
//! methods.

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

/// How much of an invalid text an error repeats, in bytes.
const SHOWN: usize = 60;

/// A text of the input as an error repeats it: quoted, and cut if it is long.
pub(crate) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN);
    let rest = if end < text.len() { " …" } else { "" };
    format!("{:?}{rest}", &text[..end])
}

/// A key in the path of an error: cut if it is long.
pub(crate) fn shown_key(key: &str) -> Cow<'_, str> {
    let end = key.floor_char_boundary(SHOWN);
    if end < key.len() { Cow::Owned(format!("{}…", &key[..end])) } else { Cow::Borrowed(key) }
}

/// The error of an invalid text, from the byte `at` on.
#[cold]
pub(crate) fn bad_text(text: &str, expected: &str, at: usize) -> Error {
    Error::new(ErrorKind::TextInvalid).with_found(shown(text)).with_expected(expected).with_offset(at as u64)
}
