//! How records are found in a file that is divided: a framing that can be stored in a plan.

use std::fmt::Display;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use memchr::memmem::Finder;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Result;
use crate::frame::{Bson, Csv, CsvDialect, Delimiter, Fixed, Framer, JsonLines, LengthPrefixed, Lines};
use millstream_core::internal::{DEPTH, JsonElements, SEPARATOR};

/// How the records of a divided file are found. Unlike a [`Framer`], it can be stored.
///
/// ```
/// use millstream::splits::Framing;
/// let mut framer = Framing::Delimiter { bytes: b"\0".to_vec() }.framer()?;
/// let mut reader = millstream::Reader::memory("one\0two")?;
/// assert_eq!(reader.next_frame(&mut framer)?, Some(&b"one"[..]));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Framing {
    /// [`Lines`].
    Lines,
    /// [`Delimiter::bytes`].
    Delimiter {
        /// The delimiter, at least 1 byte.
        #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
        bytes: Vec<u8>,
    },
    /// [`Fixed`].
    Fixed {
        /// The length of a record in bytes, at least 1.
        len: usize,
    },
    /// [`LengthPrefixed`].
    LengthPrefixed {
        /// The form of the prefix.
        #[serde(serialize_with = "to_text", deserialize_with = "from_text")]
        prefix: LengthPrefixed,
    },
    /// [`Bson`].
    Bson,
    /// [`Csv`].
    Csv {
        /// The dialect.
        #[serde(serialize_with = "to_text", deserialize_with = "from_text")]
        dialect: CsvDialect,
    },
    /// [`JsonLines`].
    JsonLines {
        /// Whether each line is checked to be one value.
        checked: bool,
        /// The maximum number of arrays and objects inside each other in lines that are checked; 128 by default.
        #[serde(default = "usual_depth", skip_serializing_if = "is_usual_depth")]
        depth: usize,
    },
    /// The elements of an array of a JSON document, each followed by the byte 0x1e; see
    /// [`json_elements`](crate::ReaderBuilder::json_elements).
    JsonElements {
        /// The JSON pointer of the array; empty for the document.
        pointer: String,
        /// The maximum number of arrays and objects inside each other; 128 by default.
        #[serde(default = "usual_depth")]
        depth: usize,
    },
}

impl Framing {
    /// Returns a framer for these records.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](crate::ErrorKind::InvalidOption) for a delimiter or a record of 0 bytes, for a dialect
    /// that contradicts itself, and for a text that is not a JSON pointer.
    pub fn framer(&self) -> Result<Box<dyn Framer + Send>> {
        Ok(match self {
            Framing::Lines => Box::new(Lines::new()),
            Framing::Delimiter { bytes } => Box::new(Delimiter::bytes(bytes.as_slice())?),
            Framing::Fixed { len } => Box::new(Fixed::new(*len)?),
            Framing::LengthPrefixed { prefix } => Box::new(*prefix),
            Framing::Bson => Box::new(Bson::new()),
            Framing::Csv { dialect } => Box::new(Csv::with(*dialect)?),
            Framing::JsonLines { checked: false, .. } => Box::new(JsonLines::new()),
            Framing::JsonLines { checked: true, depth } => Box::new(JsonLines::checked().depth(*depth)),
            Framing::JsonElements { pointer, .. } => {
                JsonElements::new(pointer)?;
                Box::new(Delimiter::byte(SEPARATOR))
            }
        })
    }

    /// Returns the delimiter if every occurrence of it ends a record, so that records can be found from any position.
    ///
    /// If the end of a delimiter is also its beginning, as in `aa` or `abcab`, occurrences can overlap. Which of them
    /// end a record depends on the bytes before them: `xaaay` is the records `xaa` and `ay`.
    pub(super) fn searchable(&self) -> Option<&[u8]> {
        match self {
            Framing::Lines | Framing::JsonLines { .. } => Some(b"\n"),
            Framing::Delimiter { bytes } => {
                let overlaps = (1..bytes.len()).any(|len| bytes.ends_with(&bytes[..len]));
                (!overlaps && !bytes.is_empty()).then_some(bytes)
            }
            Framing::Fixed { .. } | Framing::LengthPrefixed { .. } | Framing::Bson | Framing::Csv { .. } => None,
            Framing::JsonElements { .. } => None,
        }
    }

    /// Returns whether each record is a line, so that its number is that of its line.
    pub fn is_lines(&self) -> bool {
        matches!(self, Framing::Lines | Framing::JsonLines { .. })
    }

    /// Returns whether many records are found faster together than one by one.
    pub(super) fn is_scanned(&self) -> bool {
        matches!(self, Framing::Csv { .. })
    }

    /// Returns whether a record whose length is known can end with this byte.
    pub(super) fn may_end(&self, last: u8) -> bool {
        *self != Framing::Bson || last == 0
    }

    /// Returns a search for the [`searchable`](Framing::searchable) delimiter.
    pub(super) fn finder(&self) -> Option<Finder<'static>> {
        self.searchable().map(|bytes| Finder::new(bytes).into_owned())
    }
}

fn usual_depth() -> usize {
    DEPTH
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_usual_depth(depth: &usize) -> bool {
    *depth == DEPTH
}

fn to_hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&HEXLOWER.encode(bytes))
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    HEXLOWER.decode(String::deserialize(deserializer)?.as_bytes()).map_err(serde::de::Error::custom)
}

fn to_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn from_text<'de, T: FromStr<Err = crate::Error>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let parsed = String::deserialize(deserializer)?.parse();
    parsed.map_err(|error: crate::Error| serde::de::Error::custom(error.without_advice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_delimiters_that_cannot_overlap_are_searchable() {
        let searchable = |bytes: &[u8]| Framing::Delimiter { bytes: bytes.to_vec() }.searchable().is_some();
        assert!([&b"a"[..], b"ab", b"aab", b"\r\n", b"abac"].into_iter().all(searchable));
        assert!(![&b"aa"[..], b"aba", b"abab", b"abcab", b""].into_iter().any(searchable));
    }
}
