//! Numbers out of bytes, without input or output.
//!
//! [`Reader::scan`](crate::Reader::scan) reads numbers from a stream. This room holds what it is made of, for bytes
//! that are already there: [`parse`] a whole token, [`fields`] and [`columns`] of a line.
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
//! What a token may be:
//!
//! - an integer: an optional `+`, or `-` where the type has a sign, then decimal digits, with as many zeros in front
//!   as one likes. It must fit its type: nothing wraps, nothing is cut off.
//! - a float: what [`f64::from_str`](std::str::FromStr) takes, correctly rounded; also `inf`, `nan` and `1e999`, which
//!   is infinite. `f32` is rounded once, from the decimal digits.
//!
//! Anything else in a token is an error: `12x` is not 12, and `1.0` is no integer. So is a token that is cut off by the
//! failure of its source.
//!
//! Inside: `quick` decides what is right and far from the end of the bytes, `token` everything else. Where `quick`
//! gives no answer nothing is lost but time, so that it needs to know no errors.

mod digits;
mod float;
mod integer;
mod quick;
mod table;
pub(crate) mod token;
mod tuple;

pub use table::{Columns, Fields, column, columns, fields};

pub(crate) use quick::quick;
pub(crate) use token::Value;

use crate::error::ErrorKind;

/// What stands between two values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    /// Any amount of white space: blanks, tabs and line ends (the bytes 9 to 13, and 32).
    #[default]
    Space,
    /// Exactly one byte of this value, or one line end (`\n` or `\r\n`): `1,2\n3` holds three values, and in `1,,2`
    /// the second field is empty, which is no number. Blanks belong to the field. At the very end of the input the
    /// byte ends the last value, as a line end does: nothing is missing after it.
    Byte(u8),
}

/// What can be scanned: a [`Number`], or a tuple of up to eight of them.
///
/// It cannot be implemented elsewhere: make your own types from tuples.
pub trait Scan: Value {}

/// A number: every integer type, `f32` and `f64`.
pub trait Number: Scan {
    /// See [`parse`], which does the same.
    #[doc(hidden)]
    fn parse(token: &[u8]) -> Result<Self, ErrorKind>;
}

/// The number that a whole token is.
///
/// # Errors
/// [`NumberInvalid`](ErrorKind::NumberInvalid) or [`NumberOverflow`](ErrorKind::NumberOverflow): where the token is
/// from, the caller knows.
///
/// ```
/// use millstream::{ErrorKind, scan};
/// assert_eq!(scan::parse::<u8>(b"007"), Ok(7));
/// assert_eq!(scan::parse::<u8>(b"256"), Err(ErrorKind::NumberOverflow));
/// assert_eq!(scan::parse::<u8>(b" 7"), Err(ErrorKind::NumberInvalid));
/// assert_eq!(scan::parse::<f64>(b"-1.5e3"), Ok(-1500.0));
/// ```
pub fn parse<T: Number>(token: &[u8]) -> Result<T, ErrorKind> {
    T::parse(token)
}

/// White space: the bytes 9 to 13, and 32.
#[inline(always)]
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(9) < 5
}
