//! Records that begin with their length.

use super::{Framer, Resume, Step, Trim, truncated};
use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::str::FromStr;

/// Records that begin with their length as an unsigned number of 1, 2, 4 or 8 bytes. The prefix is not content.
///
/// A stream that ends inside a record or its prefix fails with [`FrameTruncated`](ErrorKind::FrameTruncated). A length
/// that counts itself and is smaller than its own prefix fails with [`LengthInvalid`](ErrorKind::LengthInvalid). No
/// memory is allocated for a length before its bytes have been read; a reader's record limit rejects excessive lengths.
///
/// ```
/// use millstream::frame::{Endian, Framer, LengthPrefixed, PrefixWidth, Resume, Step};
/// let mut framer = LengthPrefixed::new(PrefixWidth::U16, Endian::Big);
/// assert!(matches!(framer.step(b"\0\x03abc\0", Resume::START, false), Step::Record { len: 5, .. }));
/// assert!(matches!(framer.step(b"\0\x03a", Resume::START, false), Step::More { need: 5, .. }));
/// assert_eq!(framer.trim().apply(b"\0\x03abc", true), b"abc");
/// ```
///
/// As text, a framer is the width, the byte order except for one byte, and `,self` if the length counts itself:
///
/// ```
/// use millstream::frame::{Endian, LengthPrefixed, PrefixCounts, PrefixWidth};
/// let framer = LengthPrefixed::new(PrefixWidth::U32, Endian::Little).counts(PrefixCounts::Itself);
/// assert_eq!(framer.to_string(), "u32le,self");
/// assert_eq!("u32le,self".parse::<LengthPrefixed>()?, framer);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthPrefixed {
    width: PrefixWidth,
    endian: Endian,
    counts: PrefixCounts,
}

/// The width of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixWidth {
    /// 1 byte.
    U8,
    /// 2 bytes.
    U16,
    /// 4 bytes.
    U32,
    /// 8 bytes.
    U64,
}

impl PrefixWidth {
    /// Returns the width in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            PrefixWidth::U8 => 1,
            PrefixWidth::U16 => 2,
            PrefixWidth::U32 => 4,
            PrefixWidth::U64 => 8,
        }
    }
}

/// The byte order of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// The lowest byte first.
    Little,
    /// The highest byte first, as in most network protocols.
    Big,
}

/// What a length counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixCounts {
    /// The bytes after the prefix.
    #[default]
    Payload,
    /// The prefix and the bytes after it.
    Itself,
}

impl LengthPrefixed {
    /// Creates a framer for records preceded by a length of this width and byte order that does not count itself.
    pub const fn new(width: PrefixWidth, endian: Endian) -> LengthPrefixed {
        LengthPrefixed { width, endian, counts: PrefixCounts::Payload }
    }

    /// Sets what the length counts.
    pub const fn counts(self, counts: PrefixCounts) -> LengthPrefixed {
        LengthPrefixed { counts, ..self }
    }

    /// Returns the number in a prefix.
    fn value(&self, prefix: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        match self.endian {
            Endian::Little => {
                bytes[..prefix.len()].copy_from_slice(prefix);
                u64::from_le_bytes(bytes)
            }
            Endian::Big => {
                bytes[8 - prefix.len()..].copy_from_slice(prefix);
                u64::from_be_bytes(bytes)
            }
        }
    }
}

/// The names of widths with their byte orders.
const NAMES: [(&str, PrefixWidth, Endian); 7] = [
    ("u8", PrefixWidth::U8, Endian::Little),
    ("u16le", PrefixWidth::U16, Endian::Little),
    ("u16be", PrefixWidth::U16, Endian::Big),
    ("u32le", PrefixWidth::U32, Endian::Little),
    ("u32be", PrefixWidth::U32, Endian::Big),
    ("u64le", PrefixWidth::U64, Endian::Little),
    ("u64be", PrefixWidth::U64, Endian::Big),
];

impl fmt::Display for LengthPrefixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One byte has no byte order.
        let is_this = |&&(_, width, endian): &&(_, _, _)| {
            width == self.width && (endian == self.endian || width == PrefixWidth::U8)
        };
        let (name, ..) = NAMES.iter().find(is_this).expect("the table has every width and byte order");
        f.write_str(name)?;
        f.write_str(if self.counts == PrefixCounts::Itself { ",self" } else { "" })
    }
}

impl FromStr for LengthPrefixed {
    type Err = Error;

    fn from_str(text: &str) -> Result<LengthPrefixed> {
        let (number, counts) = match text.strip_suffix(",self") {
            Some(number) => (number, PrefixCounts::Itself),
            None => (text, PrefixCounts::Payload),
        };
        match NAMES.iter().find(|(name, ..)| *name == number) {
            Some(&(_, width, endian)) => Ok(LengthPrefixed::new(width, endian).counts(counts)),
            None => Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("the length prefix `{text}`"))
                .with_expected("u8, u16le, u16be, u32le, u32be, u64le or u64be, perhaps with ',self'")),
        }
    }
}

impl Framer for LengthPrefixed {
    #[inline]
    fn step(&mut self, input: &[u8], _: Resume, eof: bool) -> Step {
        let width = self.width.bytes();
        let Some(prefix) = input.get(..width) else {
            return if eof {
                Step::Bad(truncated(input.len(), width as u64))
            } else {
                // The prefix is needed again, so none of its bytes may be dropped.
                Step::More { resume: Resume::START, need: 0 }
            };
        };
        let value = self.value(prefix);
        // A length near 2^64 is not reduced: no input is that long, so it exceeds any limit, or the record is
        // truncated.
        let total = match self.counts {
            PrefixCounts::Payload => value.saturating_add(width as u64),
            PrefixCounts::Itself if value < width as u64 => {
                return Step::Bad(
                    Error::new(ErrorKind::LengthInvalid)
                        .with_found(format!("the length {value}"))
                        .with_expected(format!("{width} or more, because it counts its own bytes")),
                );
            }
            PrefixCounts::Itself => value,
        };
        match usize::try_from(total) {
            Ok(len) if len <= input.len() => Step::Record { len, terminated: true },
            _ if eof => Step::Bad(truncated(input.len(), total)),
            _ => Step::More { resume: Resume::after(input.len()), need: total },
        }
    }

    fn trim(&self) -> Trim {
        Trim { head: self.width.bytes() as u32, tail: 0, carriage_return: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_cannot_count_itself_is_invalid() {
        let mut framer = LengthPrefixed::new(PrefixWidth::U32, Endian::Little).counts(PrefixCounts::Itself);
        for eof in [false, true] {
            let Step::Bad(error) = framer.step(&[3, 0, 0, 0, 9, 9], Resume::START, eof) else { panic!("accepted") };
            assert_eq!(error.kind(), ErrorKind::LengthInvalid);
            assert_eq!(error.found(), Some("the length 3"));
            assert_eq!(error.expected(), Some("4 or more, because it counts its own bytes"));
        }
        assert!(matches!(framer.step(&[4, 0, 0, 0, 9], Resume::START, false), Step::Record { len: 4, .. }));
    }

    #[test]
    fn the_largest_lengths_do_not_overflow() {
        for counts in [PrefixCounts::Payload, PrefixCounts::Itself] {
            for below in [0, 7, 8, 9] {
                let mut framer = LengthPrefixed::new(PrefixWidth::U64, Endian::Big).counts(counts);
                let input = [&(u64::MAX - below).to_be_bytes()[..], b"payload"].concat();
                let Step::More { need, .. } = framer.step(&input, Resume::START, false) else { panic!("accepted") };
                assert!(need >= u64::MAX - 9);
                let Step::Bad(error) = framer.step(&input, Resume::START, true) else { panic!("accepted") };
                assert_eq!(error.kind(), ErrorKind::FrameTruncated);
            }
        }
    }

    #[test]
    fn a_truncated_record_reports_found_and_expected_bytes() {
        let mut framer = LengthPrefixed::new(PrefixWidth::U16, Endian::Little);
        for (input, found, expected) in [(&b"\x05"[..], "1 byte", "2 bytes"), (b"\x05\0abc", "5 bytes", "7 bytes")] {
            let Step::Bad(error) = framer.step(input, Resume::START, true) else { panic!("accepted") };
            assert_eq!(error.kind(), ErrorKind::FrameTruncated);
            assert_eq!((error.found(), error.expected()), (Some(found), Some(expected)));
        }
    }
}
