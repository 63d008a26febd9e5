//! JSON without values: finds where values end, and checks the grammar of RFC 8259 on the way.
//!
//! [`Value`] follows one value, in pieces of any size, and [`token`] finds the end of one that is in memory.
//! [`JsonElements`] follows a whole document and keeps the elements of one of its arrays. None of them checks that text is
//! UTF-8, and none builds a value.

mod elements;
mod pointer;
pub mod token;
mod value;

pub use elements::{Followed, JsonElements, SEPARATOR};
pub use value::Value;

/// The depth limit by default.
pub const DEPTH: usize = 128;

/// The byte order mark of UTF-8.
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the number of bytes of whitespace at the front.
#[inline]
pub fn blank(input: &[u8]) -> usize {
    token::blank(input, 0)
}

/// Returns how an error shows a byte that was not expected.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => "\"'\"".into(),
        byte => format!("'{}'", byte.escape_ascii()),
    }
}
