//! Framing: finds records in bytes.
//!
//! A [`Framer`] inspects a slice and finds where the first record ends. It does no I/O, owns no bytes and keeps no
//! state between calls except the state that the caller passes back. `Reader` reads the bytes, and any program can use
//! a framer on a slice of memory.
//!
//! A [`Batch`] holds many records: one block of bytes and n + 1 offsets into it.
//!
//! If records end with one byte, the records of a batch are found with the CPU's vector instructions. The environment
//! variable `MILLSTREAM_SIMD` (`portable`, `avx2` or `avx512`), which is read only one time, selects a lower level. It
//! is for tests, and for tools like callgrind that do not support AVX-512.

mod batch;
mod bson;
mod csv;
mod delimiter;
mod fixed;
mod json_lines;
mod length_prefixed;
mod lines;
mod resume;
pub(crate) mod simd;
mod text;

pub use batch::{Batch, Records};
pub use bson::Bson;
pub use csv::{
    Csv, CsvBlankLines, CsvByteOrderMark, CsvDialect, CsvFields, CsvLineEnd, CsvPositions, CsvRagged, CsvRow, CsvRows,
    CsvStrayQuotes,
};
pub use delimiter::{Delimiter, Predicate};
pub use fixed::Fixed;
pub use json_lines::JsonLines;
pub use length_prefixed::{Endian, LengthPrefixed, PrefixCounts, PrefixWidth};
pub use lines::Lines;
pub use resume::Resume;
pub use text::text;

use crate::error::{Error, ErrorKind, Result};

/// The result of [`Framer::step`].
#[derive(Debug)]
pub enum Step {
    /// `input[..len]` is a record, including its delimiter or length prefix.
    Record {
        /// The length in bytes, at least 1.
        len: usize,
        /// Whether the record ended with its delimiter. This is false only for the last record of a stream that does
        /// not end with a delimiter. It is always true for framers without delimiters.
        terminated: bool,
    },
    /// No complete record is available yet.
    More {
        /// Where to continue with more bytes: the scanned bytes need not be examined again. If `need` is 0, a reader
        /// that skips the record drops them.
        resume: Resume,
        /// The record's full length in bytes if it is already known, otherwise 0. It may exceed the available memory:
        /// the record can still be skipped.
        need: u64,
    },
    /// These bytes cannot be a record. The reader adds the record number to the error, and the offset of the record. If
    /// the error has an offset already, it counts from the start of `input`.
    Bad(Error),
}

/// How many lines of text a record is. It is returned by [`Framer::record_lines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLines {
    /// Records are not lines.
    Unknown,
    /// Every record is one line.
    One,
    /// Every record is one or several lines, and this byte ends the lines inside a record.
    Several(u8),
}

impl RecordLines {
    /// Does what [`inside`](RecordLines::inside) does for a batch whose line ends the framer may have counted, see
    /// [`Framer::inner_lines`].
    #[doc(hidden)]
    #[inline]
    pub fn inside_batch(
        self,
        counted: Option<(usize, u64)>,
        bytes: &[u8],
        ends: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone,
    ) -> Option<u64> {
        match counted {
            // The batch may have been cut.
            Some((len, inner)) if ends.clone().next_back() == Some(len) => Some(inner),
            _ => self.inside(bytes, ends),
        }
    }

    /// Returns the number of line ends inside the records at the front of `bytes`, which end at `ends`; `None` if they are
    /// not lines.
    #[doc(hidden)]
    #[inline]
    pub fn inside(
        self,
        bytes: &[u8],
        ends: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone,
    ) -> Option<u64> {
        match self {
            RecordLines::Unknown => None,
            RecordLines::One => Some(0),
            RecordLines::Several(line_end) => {
                let bytes = &bytes[..ends.clone().next_back().unwrap_or(0)];
                // Without a CR, only the last record can end without LF, which needs no look at each of the others.
                let ending = match memchr::memchr(b'\r', bytes) {
                    None => ends.len() - usize::from(bytes.last().is_some_and(|&last| last != line_end)),
                    Some(_) => ends.filter(|&end| bytes[end - 1] == line_end).count(),
                };
                Some((memchr::memchr_iter(line_end, bytes).count() - ending) as u64)
            }
        }
    }
}

/// Finds records in bytes.
///
/// ```
/// use millstream::frame::{Framer, Lines, Resume, Step};
/// let mut lines = Lines::new();
/// assert!(matches!(lines.step(b"one\ntwo", Resume::START, false), Step::Record { len: 4, terminated: true }));
/// assert!(matches!(lines.step(b"two", Resume::START, false), Step::More { resume, need: 0 } if resume.scanned() == 3));
/// assert!(matches!(lines.step(b"two", Resume::after(3), true), Step::Record { len: 3, terminated: false }));
/// ```
pub trait Framer {
    /// Finds the record at the front of `input`, which is not empty.
    ///
    /// `resume` comes from an earlier [`Step::More`] for the same record ([`Resume::START`] at first; `input` has only
    /// grown since then). `eof` means that no bytes follow `input`. In that case, the result is never `More`, but
    /// `Record` or, if records contain their length, `Bad` with [`FrameTruncated`](crate::ErrorKind::FrameTruncated).
    fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step;

    /// Finds the end of the record at the front of `input` like [`step`](Framer::step), even if the record is invalid, so
    /// that a reader can skip it. `resume` comes from an earlier call of `step` or of this function.
    ///
    /// Readers skip invalid records only if this finds their ends. The default calls `step`, which does not.
    ///
    /// ```
    /// use millstream::frame::{Csv, Framer, Resume, Step};
    /// let mut csv = Csv::new();
    /// assert!(matches!(csv.step(b"1,a\"b\n2,c\n", Resume::START, true), Step::Bad(_)));
    /// assert!(matches!(csv.skip(b"1,a\"b\n2,c\n", Resume::START, true), Step::Record { len: 6, terminated: true }));
    /// ```
    fn skip(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        self.step(input, resume, eof)
    }

    /// Returns which parts of a record are not content.
    fn trim(&self) -> Trim;

    /// Returns the bytes to write after a record's content so that this framer finds it again. They are empty if no
    /// suffix is needed or the content includes it.
    fn terminator(&self) -> &[u8] {
        b""
    }

    /// Returns the byte that ends every record and that no record's content contains, if there is one. Between two of
    /// these bytes there is exactly one record, so a program can search many records at once. The default is `None`.
    ///
    /// ```
    /// use millstream::frame::{Bson, Delimiter, Framer, Lines};
    /// assert_eq!(Lines::new().separator(), Some(b'\n'));
    /// assert_eq!(Delimiter::bytes("--")?.separator(), None);
    /// assert_eq!(Bson::new().separator(), None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    fn separator(&self) -> Option<u8> {
        None
    }

    /// Returns whether every record is one line, with its line feed. For these records, errors name the line.
    fn finds_lines(&self) -> bool {
        false
    }

    /// Returns how many lines of text a record is, of the records that the last call has found. For records that are lines,
    /// errors name the line. The default is [`RecordLines::One`] if [`finds_lines`](Framer::finds_lines) is true.
    fn record_lines(&self) -> RecordLines {
        if self.finds_lines() { RecordLines::One } else { RecordLines::Unknown }
    }

    /// Returns whether the content of a record is no data, such as a blank line. Readers return these records too, so that
    /// all records together are the input. The default is `false`.
    ///
    /// ```
    /// use millstream::frame::{Framer, JsonLines, Lines};
    /// assert!(JsonLines::new().skips(b" ") && !Lines::new().skips(b" "));
    /// ```
    fn skips(&self, content: &[u8]) -> bool {
        let _ = content;
        false
    }

    /// Returns the number of records of a batch that [`skips`](Framer::skips) is true for. A framer that has one of these
    /// functions has both; this one need not examine long records.
    fn count_skipped(&self, batch: &Batch<'_>) -> usize {
        let _ = batch;
        0
    }

    /// Returns the length of the records that the last call of [`batch`](Framer::batch) has found, and the number of line ends
    /// inside them, if it has counted these.
    #[doc(hidden)]
    fn inner_lines(&self) -> Option<(usize, u64)> {
        None
    }

    /// Returns the number of the last call of [`batch`](Framer::batch) if this framer has kept more about its records than their
    /// ends, and 0 otherwise. No other call in this process has this number. A reader passes it to the batch, so that the framer
    /// recognises its records.
    #[doc(hidden)]
    fn call(&self) -> u64 {
        0
    }

    /// Appends the end offsets of the complete records at the front of `input`, at most `max` of them, and never one
    /// that ends after `u32::MAX`.
    ///
    /// `eof` has the same meaning as in [`step`](Framer::step). Returns whether the last record was terminated. An
    /// `Err` is about the first record that is not in `ends`: the records before it are valid and must be delivered
    /// first.
    ///
    /// A batch call keeps no state. If it finds no record because the first one is long, do not call it again after
    /// each read: [`step`](Framer::step) can continue where it stopped.
    ///
    /// The default implementation calls `step` repeatedly.
    ///
    /// # Errors
    /// Fails if the first record that is not in `ends` is invalid or incomplete.
    fn batch(&mut self, input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>) -> Result<bool> {
        let mut at = 0;
        let mut last = true;
        for _ in 0..max {
            if at == input.len() {
                break;
            }
            match self.step(&input[at..], Resume::START, eof) {
                // No record was found: a call for the next single record reports the reason.
                Step::Record { len, .. } if len == 0 || len > input.len() - at => break,
                Step::Record { len, terminated } => {
                    let Ok(end) = u32::try_from(at + len) else { break };
                    ends.push(end);
                    at += len;
                    last = terminated;
                }
                Step::More { .. } => break,
                Step::Bad(error) => return Err(error),
            }
        }
        Ok(last)
    }
}

/// Forwards calls of a pointer to its target, so that a framer can be chosen at run time or borrowed.
macro_rules! forward_framer {
    ($pointer:ty) => {
        impl<F: Framer + ?Sized> Framer for $pointer {
            #[inline]
            fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
                (**self).step(input, resume, eof)
            }

            fn skip(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
                (**self).skip(input, resume, eof)
            }

            fn trim(&self) -> Trim {
                (**self).trim()
            }

            fn terminator(&self) -> &[u8] {
                (**self).terminator()
            }

            fn separator(&self) -> Option<u8> {
                (**self).separator()
            }

            fn finds_lines(&self) -> bool {
                (**self).finds_lines()
            }

            fn record_lines(&self) -> RecordLines {
                (**self).record_lines()
            }

            fn skips(&self, content: &[u8]) -> bool {
                (**self).skips(content)
            }

            fn count_skipped(&self, batch: &Batch<'_>) -> usize {
                (**self).count_skipped(batch)
            }

            fn inner_lines(&self) -> Option<(usize, u64)> {
                (**self).inner_lines()
            }

            fn call(&self) -> u64 {
                (**self).call()
            }

            fn batch(&mut self, input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>) -> Result<bool> {
                (**self).batch(input, eof, max, ends)
            }
        }
    };
}

forward_framer!(&mut F);
forward_framer!(Box<F>);

/// The parts of a record's bytes that are not content: the rule that turns `bytes[offsets[i]..offsets[i+1]]` into the
/// bytes that the user gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim {
    /// Bytes at the front that are not content: a length prefix.
    pub head: u32,
    /// Bytes at the end that are not content, if the record is terminated: a delimiter.
    pub tail: u32,
    /// Whether a carriage return before the delimiter is not content either.
    pub carriage_return: bool,
}

impl Trim {
    /// Every byte is content.
    pub const NOTHING: Trim = Trim { head: 0, tail: 0, carriage_return: false };

    /// Returns the content of a record.
    ///
    /// ```
    /// use millstream::frame::{Framer, Lines};
    /// let trim = Lines::new().trim();
    /// assert_eq!(trim.apply(b"one\r\n", true), b"one");
    /// assert_eq!(trim.apply(b"one\r", false), b"one\r"); // no delimiter, so the CR is content
    /// ```
    #[inline]
    pub fn apply(self, record: &[u8], terminated: bool) -> &[u8] {
        let tail = if terminated { self.tail as usize } else { 0 };
        let content = record.get(..record.len().wrapping_sub(tail)).unwrap_or_default();
        let content = match content {
            [line @ .., b'\r'] if self.carriage_return && terminated => line,
            content => content,
        };
        content.get(self.head as usize..).unwrap_or_default()
    }
}

/// Returns the error for a stream that ends inside a record.
fn truncated(found: usize, expected: u64) -> Error {
    let bytes = |count: u64| if count == 1 { "1 byte".to_string() } else { format!("{count} bytes") };
    Error::new(ErrorKind::FrameTruncated).with_found(bytes(found as u64)).with_expected(bytes(expected))
}
