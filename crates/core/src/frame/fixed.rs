//! Records of one fixed length.

use super::{Framer, Resume, Step, Trim, truncated};
use crate::error::{Error, ErrorKind, Result};

/// Records of a fixed number of bytes, all of them content.
///
/// A stream that ends inside a record fails with [`FrameTruncated`](ErrorKind::FrameTruncated): an incomplete record is
/// never returned.
///
/// ```
/// use millstream::ErrorKind;
/// use millstream::frame::{Fixed, Framer, Resume, Step};
/// let mut framer = Fixed::new(4)?;
/// assert!(matches!(framer.step(b"abcdef", Resume::START, false), Step::Record { len: 4, .. }));
/// assert!(matches!(framer.step(b"ef", Resume::START, false), Step::More { need: 4, .. }));
/// let Step::Bad(error) = framer.step(b"ef", Resume::START, true) else { unreachable!() };
/// assert_eq!(error.kind(), ErrorKind::FrameTruncated);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    len: usize,
}

impl Fixed {
    /// Creates a framer for records of `len` bytes.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if `len` is 0.
    pub fn new(len: usize) -> Result<Fixed> {
        if len == 0 {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("a record of 0 bytes")
                .with_expected("1 byte or more"));
        }
        Ok(Fixed { len })
    }
}

impl Framer for Fixed {
    #[inline]
    fn step(&mut self, input: &[u8], _: Resume, eof: bool) -> Step {
        if input.len() >= self.len {
            Step::Record { len: self.len, terminated: true }
        } else if eof {
            Step::Bad(truncated(input.len(), self.len as u64))
        } else {
            Step::More { resume: Resume::after(input.len()), need: self.len as u64 }
        }
    }

    fn trim(&self) -> Trim {
        Trim::NOTHING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_are_refused() {
        assert_eq!(Fixed::new(0).unwrap_err().kind(), ErrorKind::InvalidOption);
    }

    #[test]
    fn a_truncated_record_reports_found_and_expected_bytes() {
        let mut ends = Vec::new();
        let error = Fixed::new(4).unwrap().batch(b"abcdefghijk", true, 9, &mut ends).unwrap_err();
        assert_eq!(ends, [4, 8]);
        assert_eq!((error.found(), error.expected()), (Some("3 bytes"), Some("4 bytes")));
    }

    #[test]
    fn a_full_batch_does_not_reach_the_damage_yet() {
        let mut ends = Vec::new();
        assert!(Fixed::new(4).unwrap().batch(b"abcdefghijk", true, 2, &mut ends).unwrap());
        assert_eq!(ends, [4, 8]);
    }
}
