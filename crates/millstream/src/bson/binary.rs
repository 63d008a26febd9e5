//! Bytes with a subtype.

use super::cursor::Cursor;
use super::to::append_binary;
use super::{ElementType, FromBson, ToBson};
use crate::error::Result;

/// Bytes of any subtype, borrowed or owned. (Bytes of subtype 0 are also plain `&[u8]`, `Vec<u8>` and `[u8; N]`.)
///
/// ```
/// use millstream::bson::{self, Binary};
/// use std::collections::BTreeMap;
/// let bytes = bson::encode(&BTreeMap::from([("id", Binary { subtype: 4, bytes: [7; 16] })]))?;
/// let back: BTreeMap<&str, Binary<&[u8]>> = bson::decode(&bytes)?;
/// assert_eq!(back["id"], Binary { subtype: 4, bytes: &[7; 16][..] });
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binary<B> {
    /// What the bytes are: 0 generic, 4 UUID, ….
    pub subtype: u8,
    /// The bytes. Of the old subtype 2 without the inner length.
    pub bytes: B,
}

impl<'a, B: From<&'a [u8]>> FromBson<'a> for Binary<B> {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        match kind {
            ElementType::Binary => cursor.binary().map(|(subtype, bytes)| Binary { subtype, bytes: bytes.into() }),
            _ => Err(cursor.mismatch(kind, "bytes")),
        }
    }
}

impl<B: AsRef<[u8]>> ToBson for Binary<B> {
    #[inline]
    fn element_type(&self) -> ElementType {
        ElementType::Binary
    }

    #[inline]
    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        append_binary(out, self.subtype, self.bytes.as_ref())
    }
}
