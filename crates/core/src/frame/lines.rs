//! Lines: records that end with a line feed.

use super::{Framer, Resume, Step, Trim, delimiter};
use crate::error::Result;

/// Lines that end with LF. The LF and a CR before it are not content, unless the framer is
/// [untrimmed](Lines::untrimmed).
///
/// Only LF ends a line: a lone CR, NUL and invalid UTF-8 are ordinary bytes. A last line without LF is also returned,
/// and keeps its CR.
///
/// ```
/// use millstream::frame::{Framer, Lines, Resume, Step};
/// let mut lines = Lines::new();
/// assert!(matches!(lines.step(b"one\r\ntwo", Resume::START, false), Step::Record { len: 5, terminated: true }));
/// assert_eq!(lines.trim().apply(b"one\r\n", true), b"one");
/// assert_eq!(Lines::untrimmed().trim().apply(b"one\r\n", true), b"one\r\n");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    trim: Trim,
}

impl Lines {
    /// Creates a framer for lines without their LF or CRLF.
    pub const fn new() -> Lines {
        Lines { trim: Trim { head: 0, tail: 1, carriage_return: true } }
    }

    /// Creates a framer for lines with all their bytes, including LF.
    pub const fn untrimmed() -> Lines {
        Lines { trim: Trim::NOTHING }
    }
}

impl Default for Lines {
    fn default() -> Lines {
        Lines::new()
    }
}

impl Framer for Lines {
    #[inline]
    fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        delimiter::step_to_byte(b'\n', input, resume.scanned(), eof)
    }

    fn trim(&self) -> Trim {
        self.trim
    }

    fn finds_lines(&self) -> bool {
        true
    }

    fn terminator(&self) -> &[u8] {
        if self.trim == Trim::NOTHING { b"" } else { b"\n" }
    }

    fn separator(&self) -> Option<u8> {
        self.terminator().first().copied()
    }

    fn batch(&mut self, input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>) -> Result<bool> {
        Ok(delimiter::batch_to_byte(b'\n', input, eof, max, ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(input: &[u8], eof: bool, max: usize) -> (Vec<u32>, bool) {
        let mut ends = Vec::new();
        let terminated = Lines::new().batch(input, eof, max, &mut ends).unwrap();
        (ends, terminated)
    }

    #[test]
    fn a_batch_leaves_the_unfinished_line_until_the_end() {
        assert_eq!(batch(b"a\nbc\nd", false, 10), (vec![2, 5], true));
        assert_eq!(batch(b"a\nbc\nd", true, 10), (vec![2, 5, 6], false));
        assert_eq!(batch(b"a\nbc\n", true, 10), (vec![2, 5], true));
        assert_eq!(batch(b"d", false, 10), (vec![], true));
        assert_eq!(batch(b"", true, 10), (vec![], true));
    }

    #[test]
    fn a_batch_takes_no_more_than_requested() {
        assert_eq!(batch(b"a\nbc\nd", true, 0), (vec![], true));
        assert_eq!(batch(b"a\nbc\nd", true, 1), (vec![2], true));
        assert_eq!(batch(b"a\nbc\nd", true, 2), (vec![2, 5], true));
        assert_eq!(batch(b"a\nbc\nd", true, 3), (vec![2, 5, 6], false));
    }

    #[test]
    fn only_one_carriage_return_is_trimmed_and_only_before_the_line_feed() {
        let trim = Lines::new().trim();
        assert_eq!(trim.apply(b"a\r\r\n", true), b"a\r");
        assert_eq!(trim.apply(b"\r\n", true), b"");
        assert_eq!(trim.apply(b"\n", true), b"");
        assert_eq!(trim.apply(b"a\rb\n", true), b"a\rb");
        assert_eq!(trim.apply(b"a\r", false), b"a\r");
    }
}
