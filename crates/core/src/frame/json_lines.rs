//! Newline-delimited JSON: lines that are values.

use super::{Batch, Framer, Resume, Step, Trim, delimiter};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{DEPTH, MARK, Value, blank};

/// Lines of newline-delimited JSON, which end with LF or CRLF.
///
/// The framer returns every line. [`skips`](Framer::skips) is true for lines of whitespace, which are not records.
///
/// By default, lines are not examined. If they are [`checked`](JsonLines::checked), each is exactly one value in UTF-8 by
/// the grammar of RFC 8259, or it is blank; any other one is [`JsonInvalid`](ErrorKind::JsonInvalid), or
/// [`TooDeep`](ErrorKind::TooDeep). A byte order mark at the start of a line is allowed, because files that were joined
/// have one in the middle too. It remains a part of the record.
///
/// ```
/// use millstream::{ErrorKind, Reader, frame::JsonLines};
/// let mut reader = Reader::memory("{\"a\": 1}\r\n[1, 2\n3")?;
/// let mut lines = JsonLines::checked();
/// assert_eq!(reader.next_frame(&mut lines)?, Some(&b"{\"a\": 1}"[..]));
/// let error = reader.next_frame(&mut lines).unwrap_err();
/// assert_eq!((error.kind(), error.line(), error.column()), (ErrorKind::JsonInvalid, Some(2), Some(6)));
/// assert!(reader.skip_record(&mut lines)?);
/// assert_eq!(reader.next_frame(&mut lines)?, Some(&b"3"[..]));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct JsonLines {
    limit: usize,
    /// Follows each line, if lines are checked.
    value: Option<Value>,
}

impl JsonLines {
    /// Creates a framer that does not examine the lines.
    pub fn new() -> JsonLines {
        JsonLines { limit: DEPTH, value: None }
    }

    /// Creates a framer that checks that each line is one value.
    pub fn checked() -> JsonLines {
        JsonLines { value: Some(Value::default()), ..JsonLines::new() }
    }

    /// Sets the maximum number of arrays and objects inside each other in lines that are checked: 128 by default.
    #[must_use]
    pub fn depth(self, limit: usize) -> JsonLines {
        JsonLines { limit, ..self }
    }

    /// Checks a line. An error has the offset in it.
    fn check(&mut self, line: &[u8], terminated: bool) -> Result<()> {
        let Some(value) = &mut self.value else { return Ok(()) };
        let invalid = |found: String, expected: &str, at: usize| {
            Err(Error::new(ErrorKind::JsonInvalid).with_found(found).with_expected(expected).with_offset(at as u64))
        };
        let content = JsonLines::TRIM.apply(line, terminated);
        if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] = content {
            return invalid(
                "the byte order mark of UTF-16".into(),
                "UTF-8, as iconv -f UTF-16 -t UTF-8 converts it",
                0,
            );
        }
        let before = content.len() - without_mark(content).len();
        if is_blank(content) {
            return Ok(());
        }
        if let Err(error) = std::str::from_utf8(content) {
            let at = error.valid_up_to();
            return invalid(format!("the byte 0x{:02x}", content[at]), "UTF-8", at);
        }
        value.restart(self.limit);
        let end = match value.advance(&content[before..]) {
            Ok(Some(end)) => before + end,
            Ok(None) if value.may_end() => content.len(),
            Ok(None) => {
                return invalid(format!("the end of the line {}", value.inside()), value.expected(), content.len());
            }
            Err(error) => {
                let error = error.shift_offset(before as u64);
                return Err(match error.kind() {
                    ErrorKind::TooDeep => error
                        .with_found(format!("arrays and objects nested more than {} deep", self.limit))
                        .with_expected("at most as many as the depth limit"),
                    _ => error,
                });
            }
        };
        match end + blank(&content[end..]) {
            at if at == content.len() => Ok(()),
            at => invalid(format!("'{}' after the value", content[at].escape_ascii()), "the end of the line", at),
        }
    }

    const TRIM: Trim = Trim { head: 0, tail: 1, carriage_return: true };
}

/// Returns a line without the byte order mark at its start.
fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(MARK).unwrap_or(content)
}

/// Returns whether a line is not a record.
fn is_blank(content: &[u8]) -> bool {
    let content = without_mark(content);
    blank(content) == content.len()
}

impl Default for JsonLines {
    fn default() -> JsonLines {
        JsonLines::new()
    }
}

impl Framer for JsonLines {
    #[inline]
    fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        match delimiter::step_to_byte(b'\n', input, resume.scanned(), eof) {
            Step::Record { len, terminated } => match self.check(&input[..len], terminated) {
                Ok(()) => Step::Record { len, terminated },
                Err(error) => {
                    let column = error.offset().unwrap_or(0) + 1;
                    Step::Bad(error.with_column(column))
                }
            },
            step => step,
        }
    }

    /// An invalid line ends like any other.
    fn skip(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        delimiter::step_to_byte(b'\n', input, resume.scanned(), eof)
    }

    fn trim(&self) -> Trim {
        JsonLines::TRIM
    }

    fn finds_lines(&self) -> bool {
        true
    }

    fn terminator(&self) -> &[u8] {
        b"\n"
    }

    fn separator(&self) -> Option<u8> {
        Some(b'\n')
    }

    fn skips(&self, content: &[u8]) -> bool {
        // Most lines are not examined further.
        !matches!(content, [b'{' | b'[', ..]) && is_blank(content)
    }

    fn count_skipped(&self, batch: &Batch<'_>) -> usize {
        batch.iter().filter(|line| self.skips(line)).count()
    }

    fn batch(&mut self, input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>) -> Result<bool> {
        let first = ends.len();
        let terminated = delimiter::batch_to_byte(b'\n', input, eof, max, ends);
        if self.value.is_none() {
            return Ok(terminated);
        }
        let mut start = 0;
        for i in first..ends.len() {
            let end = ends[i] as usize;
            let is_terminated = terminated || i + 1 < ends.len();
            if let Err(error) = self.check(&input[start..end], is_terminated) {
                ends.truncate(i);
                return Err(error);
            }
            start = end;
        }
        Ok(terminated)
    }
}
