//! Scans numbers in bytes, without I/O.
//!
//! `Reader::scan` reads numbers from a stream. This module contains its building blocks, for bytes in memory: [`parse`]
//! for a complete token, [`fields`] and [`columns`] for a line.
//!
//! ```
//! use millstream::{Reader, scan};
//!
//! // The sum of the third column of a table; the other columns may have any content.
//! let mut reader = Reader::memory("ann 31 1.75\nbob 42 1.5\n")?;
//! let mut sum = 0.0;
//! while let Some(value) = reader.next_column::<f64>(2, scan::Separator::Space)? {
//!     sum += value;
//! }
//! assert_eq!(sum, 3.25);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! A token is one of these:
//!
//! - an integer: an optional `+`, or `-` for signed types, then decimal digits, with any number of leading zeros. It
//!   must fit its type: values are never wrapped or truncated.
//! - a float: the syntax of [`f64::from_str`](std::str::FromStr), correctly rounded; also `inf` and `nan`. Digits must
//!   fit the type: `1e999` is an error, and `1e-999` is 0, the nearest number. `f32` is rounded directly from the
//!   decimal digits.
//!
//! Any other token is an error: `12x` is not 12, and `1.0` is not an integer. A token that is cut off by the failure of
//! its source is an error too.
//!
//! Internally, `quick` handles valid values far from the end of the bytes, and `token` handles all other cases,
//! including errors.

pub(crate) mod digits;
mod ends;
mod float;
mod integer;
pub(crate) mod quick;
mod table;
pub(crate) mod token;
mod tuple;

pub use table::{Columns, Fields, column, columns, fields};

use token::Value;

use crate::error::ErrorKind;

/// The separator between two values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    /// Any amount of white space: blanks, tabs and line ends (the bytes 9 to 13, and 32).
    #[default]
    Space,
    /// Exactly one byte of this value, or one line end (`\n` or `\r\n`): `1,2\n3` has three values, and in `1,,2` the
    /// second field is empty, which is not a number. Blanks belong to the field. At the end of the input the byte ends
    /// the last value, as a line end does, and no value is expected after it.
    Byte(u8),
}

/// A type that can be scanned: a [`Number`], or a tuple of up to eight numbers.
///
/// Other crates cannot implement it: build your own types from tuples.
pub trait Scan: Value {}

/// A number: every integer type, `f32` and `f64`.
pub trait Number: Scan {
    /// Does what [`parse`] does.
    #[doc(hidden)]
    fn parse(token: &[u8]) -> Result<Self, ErrorKind>;
}

/// Returns the number in a complete token.
///
/// # Errors
/// Returns [`NumberInvalid`](ErrorKind::NumberInvalid) or [`NumberOverflow`](ErrorKind::NumberOverflow), without a
/// position, which only the caller knows.
///
/// ```
/// use millstream::{ErrorKind, scan};
/// assert_eq!(scan::parse::<u8>(b"007"), Ok(7));
/// assert_eq!(scan::parse::<u8>(b"256"), Err(ErrorKind::NumberOverflow));
/// assert_eq!(scan::parse::<u8>(b" 7"), Err(ErrorKind::NumberInvalid));
/// assert_eq!(scan::parse::<f64>(b"-1.5e3"), Ok(-1500.0));
/// assert_eq!(scan::parse::<f64>(b"1e400"), Err(ErrorKind::NumberOverflow));
/// ```
pub fn parse<T: Number>(token: &[u8]) -> Result<T, ErrorKind> {
    T::parse(token)
}

/// Returns whether a byte is white space: one of the bytes 9 to 13, or 32.
#[inline(always)]
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(9) < 5
}
