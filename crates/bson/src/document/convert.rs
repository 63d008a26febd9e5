//! Conversions between documents and Rust types: decoding a whole document, and documents and arrays as value types.

use super::locate;
use crate::typed::from::exactly;
use crate::typed::to::written;
use crate::{Array, Cursor, Document, ElementType, FromBson, Rules, Strictness, ToBson};
use millstream_core::Result;

/// Decodes a document with the default rules.
///
/// ```
/// use millstream::bson;
/// use std::collections::BTreeMap;
/// let map: BTreeMap<&str, i64> = bson::decode(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
/// assert_eq!(map["n"], 42);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// The errors of [`Document::new`] and [`FromBson::from_bson`], with the key path and the offset.
#[inline]
pub fn decode<'a, T: FromBson<'a>>(bytes: &'a [u8]) -> Result<T> {
    let mut cursor = Cursor::new(bytes, Rules::new());
    let value = T::from_bson(ElementType::Document, &mut cursor).map_err(|error| locate(bytes, 0, error))?;
    if cursor.offset() != bytes.len() {
        Document::new(bytes)?; // reports what is after the document
    }
    Ok(value)
}

/// Decodes a document with the document's rules. If the rules are strict, the whole document is checked first.
///
/// ```
/// use millstream::bson::{self, Document};
/// use std::collections::BTreeMap;
/// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?.at_offset(1000);
/// let error = bson::decode_document::<BTreeMap<&str, bool>>(&document).unwrap_err();
/// assert_eq!((error.path(), error.offset()), (Some("n"), Some(1007)));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// The errors of [`FromBson::from_bson`], with the key path and the offset. [`Documents::locate`](crate::Documents::locate)
/// adds the name of the source and the number of the document.
#[inline]
pub fn decode_document<'a, T: FromBson<'a>>(document: &Document<'a>) -> Result<T> {
    if document.rules().strictness == Strictness::Strict {
        document.check()?;
    }
    T::from_bson(ElementType::Document, &mut document.cursor()).map_err(|error| document.locate(error))
}

exactly! {
    Document<'a>, Document, "a document", |cursor| Document::at(cursor);
    Array<'a>, Array, "an array", |cursor| Array::at(cursor);
}

written! {
    Document<'_>, Document, |value, out| fixed_slice(out, value.as_bytes());
    Array<'_>, Array, |value, out| fixed_slice(out, value.as_bytes());
}

/// Appends bytes that are already a payload.
#[inline]
fn fixed_slice(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    out.extend_from_slice(bytes);
    Ok(())
}
