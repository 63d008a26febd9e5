//! Records that end with a delimiter: a byte, a string of bytes, a character, or any of a set of bytes.

use super::{Framer, Resume, Step, Trim, simd};
use crate::error::{Error, ErrorKind, Result};
use memchr::memmem::Finder;

/// Records that end with one delimiter. The delimiter is not content unless the framer is
/// [untrimmed](Delimiter::untrimmed).
///
/// A last record without a delimiter is also returned. Matches do not overlap: in `;;;`, the delimiter `;;` ends one
/// record, and the third `;` belongs to the next.
///
/// ```
/// use millstream::frame::{Delimiter, Framer, Resume, Step};
/// let mut crumbs = Delimiter::bytes("--")?;
/// assert!(matches!(crumbs.step(b"a-b--c", Resume::START, false), Step::Record { len: 5, terminated: true }));
/// // The last `-` may be half a delimiter, so it has to be examined again.
/// assert!(matches!(crumbs.step(b"c-", Resume::START, false), Step::More { resume, need: 0 } if resume.scanned() == 1));
/// assert_eq!(crumbs.trim().apply(b"a-b--", true), b"a-b");
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Delimiter {
    search: Search,
    trim: Trim,
}

#[derive(Clone, Debug)]
enum Search {
    Byte(u8),
    /// Two bytes or more. The search tables are computed when the framer is created.
    Bytes(Box<Finder<'static>>),
}

impl Delimiter {
    /// Creates a framer for records that end with this byte; for example NUL, as in `find -print0`.
    pub const fn byte(byte: u8) -> Delimiter {
        Delimiter { search: Search::Byte(byte), trim: Trim { head: 0, tail: 1, carriage_return: false } }
    }

    /// Creates a framer for records that end with this string of bytes.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if the delimiter is empty or has 4 GiB or more.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Result<Delimiter> {
        let bytes = bytes.into();
        let Ok(tail) = u32::try_from(bytes.len()) else {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("a delimiter of {} bytes", bytes.len()))
                .with_expected("fewer than 4 GiB"));
        };
        let search = match bytes[..] {
            [] => {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found("a delimiter of 0 bytes")
                    .with_expected("1 byte or more"));
            }
            [byte] => Search::Byte(byte),
            _ => Search::Bytes(Box::new(Finder::new(&bytes).into_owned())),
        };
        Ok(Delimiter { search, trim: Trim { head: 0, tail, carriage_return: false } })
    }

    /// Creates a framer for records that end with this character, encoded as UTF-8.
    pub fn char(char: char) -> Delimiter {
        let mut buffer = [0; 4];
        Delimiter::bytes(char.encode_utf8(&mut buffer).as_bytes()).expect("a character is 1 to 4 bytes")
    }

    /// Makes the delimiter part of the content.
    pub fn untrimmed(self) -> Delimiter {
        Delimiter { trim: Trim::NOTHING, ..self }
    }
}

impl Framer for Delimiter {
    #[inline]
    fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        let scanned = resume.scanned();
        match &self.search {
            Search::Byte(byte) => step_to_byte(*byte, input, scanned, eof),
            Search::Bytes(finder) => {
                let len = finder.needle().len();
                match finder.find(&input[scanned..]) {
                    Some(at) => Step::Record { len: scanned + at + len, terminated: true },
                    // The delimiter may have begun in the last bytes.
                    None => unfinished(input, input.len().saturating_sub(len - 1).max(scanned), eof),
                }
            }
        }
    }

    fn trim(&self) -> Trim {
        self.trim
    }

    fn finds_lines(&self) -> bool {
        matches!(self.search, Search::Byte(b'\n'))
    }

    fn terminator(&self) -> &[u8] {
        match &self.search {
            _ if self.trim == Trim::NOTHING => b"",
            Search::Byte(byte) => std::slice::from_ref(byte),
            Search::Bytes(finder) => finder.needle(),
        }
    }

    fn separator(&self) -> Option<u8> {
        match self.terminator() {
            &[byte] => Some(byte),
            _ => None,
        }
    }

    fn batch(&mut self, input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>) -> Result<bool> {
        let before = ends.len();
        match &self.search {
            Search::Byte(byte) => Ok(batch_to_byte(*byte, input, eof, max, ends)),
            Search::Bytes(finder) => {
                let len = finder.needle().len();
                ends.extend(finder.find_iter(input).map_while(|at| u32::try_from(at + len).ok()).take(max));
                Ok(close_batch(input, eof, max, ends, before))
            }
        }
    }
}

/// Records that end with any byte of a set. This byte is not content unless the framer is
/// [untrimmed](Predicate::untrimmed).
///
/// A last record without such a byte is also returned.
///
/// ```
/// use millstream::frame::{Framer, Predicate, Resume, Step};
/// let mut sentences = Predicate::new(|byte| matches!(byte, b'.' | b'!' | b'?'));
/// assert!(matches!(sentences.step(b"Yes! No.", Resume::START, false), Step::Record { len: 4, terminated: true }));
/// assert_eq!(sentences.trim().apply(b"Yes!", true), b"Yes");
/// ```
#[derive(Clone, Debug)]
pub struct Predicate {
    /// Whether each byte ends a record.
    ends: [bool; 256],
    trim: Trim,
}

impl Predicate {
    /// Creates a framer for records that end after each byte for which `ends` returns true.
    ///
    /// `ends` is called here for each of the 256 byte values. So the result can depend only on the byte, and a function
    /// of another language has no cost per record.
    pub fn new(ends: impl Fn(u8) -> bool) -> Predicate {
        Predicate {
            ends: std::array::from_fn(|byte| ends(byte as u8)),
            trim: Trim { head: 0, tail: 1, carriage_return: false },
        }
    }

    /// Makes the byte part of the content.
    pub fn untrimmed(self) -> Predicate {
        Predicate { trim: Trim::NOTHING, ..self }
    }
}

impl Framer for Predicate {
    #[inline]
    fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        let scanned = resume.scanned();
        match input[scanned..].iter().position(|&byte| self.ends[usize::from(byte)]) {
            Some(at) => Step::Record { len: scanned + at + 1, terminated: true },
            None => unfinished(input, input.len(), eof),
        }
    }

    fn trim(&self) -> Trim {
        self.trim
    }
}

/// [`Framer::step`] for records that end with one byte.
#[inline]
pub(super) fn step_to_byte(byte: u8, input: &[u8], scanned: usize, eof: bool) -> Step {
    match memchr::memchr(byte, &input[scanned..]) {
        Some(at) => Step::Record { len: scanned + at + 1, terminated: true },
        None => unfinished(input, input.len(), eof),
    }
}

/// [`Framer::batch`] for records that end with one byte.
pub(super) fn batch_to_byte(byte: u8, input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>) -> bool {
    let before = ends.len();
    simd::index(input, byte, 0, max, ends);
    close_batch(input, eof, max, ends, before)
}

/// Returns the step for bytes without a delimiter. At the end of the stream, all remaining bytes are a record.
#[inline]
fn unfinished(input: &[u8], scanned: usize, eof: bool) -> Step {
    if eof {
        Step::Record { len: input.len(), terminated: false }
    } else {
        Step::More { resume: Resume::after(scanned), need: 0 }
    }
}

/// Adds the bytes after the last delimiter as a record, if the stream ends there. `before` is the length of `ends`
/// before this batch. Returns whether the batch's last record is terminated.
fn close_batch(input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>, before: usize) -> bool {
    let last = ends[before..].last().map_or(0, |&end| end as usize);
    let Ok(end) = u32::try_from(input.len()) else { return true };
    let rest = eof && last < input.len() && ends.len() - before < max;
    if rest {
        ends.push(end);
    }
    !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_of_no_bytes_is_refused() {
        let error = Delimiter::bytes("").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert_eq!(error.found(), Some("a delimiter of 0 bytes"));
    }

    #[test]
    fn scanned_bytes_are_not_examined_again() {
        let mut framer = Delimiter::bytes("abc").unwrap();
        assert!(
            matches!(framer.step(b"xxab", Resume::START, false), Step::More { resume, need: 0 } if resume.scanned() == 2)
        );
        assert!(matches!(framer.step(b"xxabcd", Resume::after(2), false), Step::Record { len: 5, terminated: true }));
        // Passing a `scanned` after a complete delimiter is a mistake that shows that these bytes are not searched.
        assert!(
            matches!(framer.step(b"abcx", Resume::after(2), false), Step::More { resume, .. } if resume.scanned() == 2)
        );
        assert!(
            matches!(Delimiter::byte(b';').step(b"a;b", Resume::after(2), false), Step::More { resume, .. } if resume.scanned() == 3)
        );
        assert!(
            matches!(Predicate::new(|b| b == b';').step(b"a;b", Resume::after(2), false), Step::More { resume, .. } if resume.scanned() == 3)
        );
    }

    #[test]
    fn scanned_never_goes_back() {
        let mut framer = Delimiter::bytes("abc").unwrap();
        assert!(
            matches!(framer.step(b"x", Resume::START, false), Step::More { resume, need: 0 } if resume.scanned() == 0)
        );
        assert!(
            matches!(framer.step(b"xyz", Resume::after(3), false), Step::More { resume, need: 0 } if resume.scanned() == 3)
        );
    }

    #[test]
    fn a_character_is_its_utf_8() {
        let mut framer = Delimiter::char('→');
        assert!(matches!(
            framer.step("a→b".as_bytes(), Resume::START, false),
            Step::Record { len: 4, terminated: true }
        ));
        assert_eq!(framer.trim().apply("a→".as_bytes(), true), b"a");
        assert_eq!(framer.untrimmed().trim().apply("a→".as_bytes(), true), "a→".as_bytes());
    }

    #[test]
    fn a_batch_of_records_with_a_long_delimiter() {
        let mut framer = Delimiter::bytes(";;").unwrap();
        for (eof, max, expected, terminated) in [
            (false, 9, &[4, 6][..], true),
            (true, 9, &[4, 6, 9], false),
            (true, 2, &[4, 6], true),
            (true, 1, &[4], true),
            (true, 0, &[], true),
        ] {
            let mut ends = vec![99];
            assert_eq!(framer.batch(b"ab;;;;;cd", eof, max, &mut ends).unwrap(), terminated);
            assert_eq!(ends[1..], *expected, "{eof} {max}");
        }
    }
}
