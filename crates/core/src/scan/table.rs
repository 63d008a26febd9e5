//! Splits lines into columns.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;

use super::quick::{LOOKAHEAD, quick};
use super::token::{Tokens, Value, Wrong};
use super::{Number, Scan, Separator};
use crate::error::{Error, Result};

/// An iterator over the fields of a line, as bytes. See [`fields`].
#[derive(Clone)]
pub struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    separator: Separator,
}

/// Returns an iterator over the fields of a line, which may have any content.
///
/// A field between separator bytes may be empty; a field between white space is never empty.
///
/// ```
/// use millstream::scan::{self, Separator};
/// let fields: Vec<&[u8]> = scan::fields(b" one  two ", Separator::Space).collect();
/// assert_eq!(fields, [b"one", b"two"]);
/// let fields: Vec<&[u8]> = scan::fields(b"one,,two three", Separator::Byte(b',')).collect();
/// assert_eq!(fields, [&b"one"[..], b"", b"two three"]);
/// ```
pub fn fields(line: &[u8], separator: Separator) -> Fields<'_> {
    Fields { line, at: 0, separator }
}

impl Fields<'_> {
    fn next_range(&mut self) -> Option<Range<usize>> {
        let mut tokens = Tokens::new(&self.line[self.at..], self.separator);
        let token = tokens.next()?;
        let start = self.at;
        self.at += tokens.used();
        Some(start + token.start..start + token.end)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.next_range().map(|range| &self.line[range])
    }
}

impl FusedIterator for Fields<'_> {}

/// Returns the number in one column of a line; the first column is 0. The content of the other columns does not matter.
/// Quotes have no meaning: a quoted field of CSV that contains the separator is several columns.
///
/// # Errors
/// Returns the errors of [`columns`], and [`ValueMissing`](crate::ErrorKind::ValueMissing) for a line with too few
/// columns. The offset and the column are counted from the start of the line. [`Reader::locate`] adds the name of the
/// source and the line, as a stage of a pipe does without a call; [`Reader::next_column`] reads the line too.
///
/// ```
/// use millstream::{ErrorKind, scan::{self, Separator}};
/// let line = b"ann,31,1.75";
/// assert_eq!(scan::column::<u32>(line, 1, Separator::Byte(b','))?, 31);
/// let error = scan::column::<u32>(line, 2, Separator::Byte(b',')).unwrap_err();
/// assert_eq!((error.kind(), error.offset(), error.found()), (ErrorKind::NumberInvalid, Some(7), Some("1.75")));
/// let error = scan::column::<u32>(line, 3, Separator::Byte(b',')).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::ValueMissing);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// [`Reader::locate`]: https://docs.rs/millstream/latest/millstream/struct.Reader.html#method.locate
/// [`Reader::next_column`]: https://docs.rs/millstream/latest/millstream/struct.Reader.html#method.next_column
pub fn column<T: Number>(line: &[u8], column: usize, separator: Separator) -> Result<T> {
    let mut fields = fields(line, separator);
    for _ in 0..column {
        fields.next_range();
    }
    let rest = &line[fields.at..];
    T::take(&mut Tokens::new(rest, separator)).map_err(|wrong| in_line::<T>(wrong, rest, fields.at))
}

/// Returns the error of a value in a line, of which `rest` begins at `at`.
#[cold]
fn in_line<T: Value>(wrong: Wrong, rest: &[u8], at: usize) -> Error {
    let (offset, is_missing) = ((at + wrong.token.start) as u64, wrong.is_missing());
    let error = wrong.error::<T>(rest).with_offset(offset).with_column(offset + 1);
    if is_missing { error.with_found("the end of the line") } else { error }
}

/// An iterator over the numbers of a line. See [`columns`].
#[derive(Clone)]
pub struct Columns<'a, T> {
    line: &'a [u8],
    at: usize,
    separator: Separator,
    /// The position in the line where the copied tail begins, or a position after the line if there is no copied tail.
    tail_at: usize,
    /// A copy of the end of the line, followed by separators, so that `quick` can decide there too.
    tail: [u8; 2 * LOOKAHEAD],
    values: PhantomData<fn() -> T>,
}

/// Returns an iterator over the values of a line, or of any bytes.
///
/// # Errors
/// Returns [`NumberInvalid`](crate::ErrorKind::NumberInvalid), [`NumberOverflow`](crate::ErrorKind::NumberOverflow),
/// and [`ValueMissing`](crate::ErrorKind::ValueMissing) if a tuple is incomplete. The offset is counted from the start
/// of the line. The iterator ends after an error.
///
/// ```
/// use millstream::scan::{self, Separator};
/// let sum: u32 = scan::columns::<u32>(b"1 2 3", Separator::Space).sum::<Result<_, _>>()?;
/// assert_eq!(sum, 6);
/// let points = scan::columns::<(i32, i32)>(b"1,-1,2,-2", Separator::Byte(b','));
/// assert_eq!(points.collect::<Result<Vec<_>, _>>()?, [(1, -1), (2, -2)]);
/// # Ok::<(), millstream::Error>(())
/// ```
pub fn columns<T: Scan>(line: &[u8], separator: Separator) -> Columns<'_, T> {
    Columns { line, at: 0, separator, tail_at: usize::MAX, tail: [b' '; 2 * LOOKAHEAD], values: PhantomData }
}

impl<T: Scan> Iterator for Columns<'_, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        let rest = &self.line[self.at..];
        let value = match rest.len() {
            0 => return None,
            LOOKAHEAD.. => quick(rest, self.separator),
            _ => {
                if self.tail_at > self.at {
                    self.copy_tail();
                }
                quick(&self.tail[self.at - self.tail_at..], self.separator)
            }
        };
        match value {
            Some((value, used)) => {
                // The separator after the last value may be one that was added to the copy.
                self.at += used.min(rest.len());
                Some(Ok(value))
            }
            None => self.carefully(),
        }
    }
}

impl<T: Scan> Columns<'_, T> {
    fn copy_tail(&mut self) {
        let rest = &self.line[self.at..];
        self.tail_at = self.at;
        self.tail[..rest.len()].copy_from_slice(rest);
        match self.separator {
            // After a carriage return a newline would form a line end that the line does not have. So no separator is
            // added after the last value, and the careful path handles it.
            Separator::Space | Separator::Byte(b'\n') => {}
            Separator::Byte(separator) => self.tail[rest.len()..].fill(separator),
        }
    }

    fn carefully(&mut self) -> Option<Result<T>> {
        let rest = &self.line[self.at..];
        let mut tokens = Tokens::new(rest, self.separator);
        match T::take(&mut tokens) {
            Ok(value) => {
                self.at += tokens.used();
                Some(Ok(value))
            }
            Err(wrong) => {
                let at = std::mem::replace(&mut self.at, self.line.len());
                (!wrong.is_end()).then(|| Err(in_line::<T>(wrong, rest, at)))
            }
        }
    }
}

impl<T: Scan> FusedIterator for Columns<'_, T> {}
