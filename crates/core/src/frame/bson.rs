//! Consecutive BSON documents, as written by mongodump.

use super::{Framer, Resume, Step, Trim, truncated};
use crate::error::{Error, ErrorKind};

/// The length of the smallest document: its length field and its terminator.
const LEAST: i32 = 5;

/// Consecutive BSON documents, without other bytes between them. All bytes of a document are content.
///
/// Only the beginning and the end of each document are checked: its length, 5 to 2³¹ − 1 bytes as a little-endian `i32`
/// that counts itself, and a zero byte at its end. The content is not checked: `bson::Document::check` does that, and
/// `bson::Documents` continues after invalid data.
///
/// Any other length fails with [`LengthInvalid`](ErrorKind::LengthInvalid), any other last byte with
/// [`DocumentInvalid`](ErrorKind::DocumentInvalid), and a stream that ends inside a document with
/// [`FrameTruncated`](ErrorKind::FrameTruncated). No memory is allocated for a length before its bytes have been read;
/// a reader's record limit rejects excessive lengths.
///
/// The format is defined at <https://bsonspec.org/spec.html> (version 1.1).
///
/// ```
/// use millstream::frame::{Bson, Framer, Resume, Step};
/// let mut framer = Bson::new();
/// let stream = b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x05\0\0\0\0";
/// assert!(matches!(framer.step(stream, Resume::START, false), Step::Record { len: 12, .. }));
/// assert!(matches!(framer.step(&stream[..9], Resume::START, false), Step::More { need: 12, .. }));
/// assert_eq!(framer.trim().apply(&stream[..12], true).len(), 12);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Bson {
    _private: (),
}

impl Bson {
    /// Creates a framer for consecutive documents.
    pub const fn new() -> Bson {
        Bson { _private: () }
    }
}

impl Framer for Bson {
    #[inline]
    fn step(&mut self, input: &[u8], _: Resume, eof: bool) -> Step {
        let Some(prefix) = input.first_chunk::<4>() else {
            return match eof {
                true => Step::Bad(truncated(input.len(), 4)),
                // The length is needed again, so none of its bytes may be dropped.
                false => Step::More { resume: Resume::START, need: 0 },
            };
        };
        let len = i32::from_le_bytes(*prefix);
        if len < LEAST {
            return Step::Bad(bad_length(len));
        }
        let len = len as usize;
        match input.get(len - 1) {
            Some(0) => Step::Record { len, terminated: true },
            Some(&byte) => Step::Bad(no_terminator(byte)),
            None if eof => Step::Bad(truncated(input.len(), len as u64)),
            None => Step::More { resume: Resume::after(input.len()), need: len as u64 },
        }
    }

    fn trim(&self) -> Trim {
        Trim::NOTHING
    }
}

#[cold]
fn bad_length(len: i32) -> Error {
    Error::new(ErrorKind::LengthInvalid)
        .with_found(format!("the length {len}"))
        .with_expected("a document length of 5 or more")
}

#[cold]
fn no_terminator(byte: u8) -> Error {
    Error::new(ErrorKind::DocumentInvalid)
        .with_found(format!("byte 0x{byte:02x} as the last byte of a document"))
        .with_expected("a zero byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_no_document_has() {
        for len in [0, 4, -1, i32::MIN] {
            let input = [&len.to_le_bytes()[..], &[0; 9]].concat();
            for eof in [false, true] {
                let Step::Bad(error) = Bson::new().step(&input, Resume::START, eof) else { panic!("accepted {len}") };
                assert_eq!(error.kind(), ErrorKind::LengthInvalid);
                assert_eq!(error.found(), Some(format!("the length {len}").as_str()));
            }
        }
        let input = i32::MAX.to_le_bytes();
        assert!(matches!(Bson::new().step(&input, Resume::START, false), Step::More { need: 0x7fff_ffff, .. }));
    }

    #[test]
    fn a_document_ends_with_a_zero_byte() {
        let Step::Bad(error) = Bson::new().step(b"\x05\0\0\0\x01", Resume::START, false) else { panic!("accepted") };
        assert_eq!(error.kind(), ErrorKind::DocumentInvalid);
        assert_eq!(error.found(), Some("byte 0x01 as the last byte of a document"));
    }
}
