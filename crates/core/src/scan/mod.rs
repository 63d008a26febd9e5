//! Numbers out of bytes, without input or output.
//!
//! `Reader::scan` reads numbers from a stream. This module contains its building blocks, for bytes in memory: [`parse`]
//! for a complete token, [`fields`] and [`columns`] for a line.
//!
//! ```
//! use millstream::{Reader, scan};
//!
//! // The sum of the third column of a table; the other columns may hold anything.
//! let mut reader = Reader::memory("ann 31 1.75\nbob 42 1.5\n")?;
//! let mut sum = 0.0;
//! while let Some(line) = reader.next_line()? {
//!     sum += scan::column::<f64>(line, 2, scan::Separator::Space)?;
//! }
//! assert_eq!(sum, 3.25);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! The form of a token:
//!
//! - an integer: an optional `+`, or `-` for signed types, then decimal digits, with any number of leading zeros. It
//!   must fit its type: nothing wraps, nothing is cut off.
//! - a float: the syntax of [`f64::from_str`](std::str::FromStr), correctly rounded; also `inf` and `nan`. Digits must
//!   fit the type: `1e999` is an error, and `1e-999` is 0, the nearest number. `f32` is rounded once, from the decimal
//!   digits.
//!
//! Anything else in a token is an error: `12x` is not 12, and `1.0` is not an integer. So is a token cut off by the
//! failure of its source.
//!
//! Inside: `quick` handles valid values far from the end of the bytes, `token` everything else. If `quick` gives no
//! result only time is lost, so it need not know any errors.

mod digits;
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
    /// Exactly one byte of this value, or one line end (`\n` or `\r\n`): `1,2\n3` holds three values, and in `1,,2` the
    /// second field is empty, which is not a number. Blanks belong to the field. At the very end of the input the byte
    /// ends the last value, as a line end does: no value is missing after it.
    Byte(u8),
}

/// What can be scanned: a [`Number`], or a tuple of up to eight of them.
///
/// It cannot be implemented elsewhere: build your own types from tuples.
pub trait Scan: Value {}

/// A number: every integer type, `f32` and `f64`.
pub trait Number: Scan {
    /// See [`parse`], which does the same.
    #[doc(hidden)]
    fn parse(token: &[u8]) -> Result<Self, ErrorKind>;
}

/// The number in a complete token.
///
/// # Errors
/// [`NumberInvalid`](ErrorKind::NumberInvalid) or [`NumberOverflow`](ErrorKind::NumberOverflow): the caller knows where
/// the token comes from.
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

/// White space: the bytes 9 to 13, and 32.
#[inline(always)]
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(9) < 5
}
