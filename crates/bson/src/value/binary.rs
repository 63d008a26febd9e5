//! Bytes with a subtype.

use crate::typed::to::append_binary;
use crate::wire::cursor::Cursor;
use crate::{ElementType, FromBson, ToBson};
use millstream_core::Result;

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
    /// The subtype, such as 0 for generic bytes and 4 for a UUID.
    pub subtype: u8,
    /// The bytes, without the inner length of the old subtype 2.
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
