//! Rust types from documents, with serde.
//!
//! [`from_slice`] and [`from_document`] read one document each, in one traversal, without an intermediate
//! representation. Text and bytes can be borrowed. These are the serde types of BSON types:
//!
//! | BSON | is |
//! |---|---|
//! | double, int, long | any number type that holds the value; a double without a fraction is accepted as an integer |
//! | string, symbol | text, a char, a variant's name |
//! | javascript | text, a char |
//! | object | a struct, a map, a variant with content (an object with one member, whose key is the variant's name) |
//! | array | a sequence, a tuple |
//! | binData | bytes, whatever the subtype; a sequence or tuple of `u8` |
//! | null, undefined | `None`, a unit |
//! | objectId, date, decimal, timestamp, … | [`ObjectId`](crate::ObjectId), [`DateTime`](crate::DateTime), … |
//! | anything | [`ValueRef`](crate::ValueRef) and, for objects and arrays, [`Document`](crate::Document) and [`Array`](crate::Array), whose content is not checked |
//!
//! If any type is accepted (by untagged enums and by the value types of other formats), types that serde lacks are
//! passed as Extended JSON: `{"$oid": "…"}`. The `bson` crate does the same, so its types can be read too.
//!
//! An error contains what was found and expected, the key path, and the start of the value. Only the requested
//! parts of a document are read; ignored values are skipped by their length.

mod access;
mod extended;
mod key;
mod native;
mod types;
mod values;

use crate::serde_support::marker;
use crate::typed::from::integer;
use crate::wire::rules::Utf8;
use crate::{Cursor, Document, ElementType, Strictness};
use access::{Elements, Members, Variant};
use millstream_core::{Error, Result};
use native::Native;
use serde::de::value::{CowStrDeserializer, SeqDeserializer};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;

/// Reads the document in these bytes, with the default rules.
///
/// ```
/// use millstream::bson;
/// #[derive(serde::Deserialize)]
/// struct Reading<'a> {
///     n: u8,
///     s: &'a str, // borrowed from the bytes
///     #[serde(default)]
///     at: Option<bson::DateTime>,
/// }
/// let bytes = b"\x16\0\0\0\x10n\0\x2a\0\0\0\x02s\0\x03\0\0\0hi\0\0";
/// let reading: Reading = bson::from_slice(bytes)?;
/// assert_eq!((reading.n, reading.s, reading.at), (42, "hi", None));
///
/// let error = bson::from_slice::<(u8,)>(bytes).unwrap_err();
/// assert_eq!(error.kind(), millstream::ErrorKind::ShapeMismatch);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// Those of [`Document::new`]; [`ShapeMismatch`](millstream_core::ErrorKind::ShapeMismatch) for a value that does not
/// have the requested type, and for errors of a type's own `Deserialize`;
/// [`KeyMissing`](millstream_core::ErrorKind::KeyMissing);
/// [`ValueOutOfRange`](millstream_core::ErrorKind::ValueOutOfRange); errors in the bytes that were read.
#[inline]
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T> {
    from_document(Document::new(bytes)?)
}

/// Reads a document with its rules. Offsets in errors are counted in the same way as the document's.
///
/// If the rules are strict, the whole document is checked first. A [`Document`] is also a [`Deserializer`], for code
/// that takes one.
///
/// ```
/// use millstream::bson::{self, Document};
/// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?.at_offset(1000);
/// let error = bson::from_document::<std::collections::HashMap<&str, bool>>(document).unwrap_err();
/// assert_eq!((error.path(), error.offset()), (Some("n"), Some(1007)));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// As for [`from_slice`].
#[inline]
pub fn from_document<'de, T: Deserialize<'de>>(document: Document<'de>) -> Result<T> {
    T::deserialize(document)
}

/// The value at the cursor.
pub(super) struct Payload<'c, 'de> {
    cursor: &'c mut Cursor<'de>,
    kind: ElementType,
}

impl<'c, 'de> Payload<'c, 'de> {
    #[inline]
    fn visit_text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.cursor.rules().utf8 {
            Utf8::Checked => visitor.visit_borrowed_str(self.cursor.str()?),
            Utf8::Lossy => match self.cursor.text()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
        }
    }

    /// Enters a document and leaves it, even if the visitor did not read all of it.
    #[inline]
    fn visit_members<V: Visitor<'de>>(self, names: &'static [&'static str], visitor: V) -> Result<V::Value> {
        let outer = self.cursor.enter()?;
        let result = visitor.visit_map(Members::new(self.cursor, names));
        self.cursor.leave(outer);
        result
    }

    #[inline]
    fn visit_elements<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let outer = self.cursor.enter()?;
        let result = visitor.visit_seq(Elements::new(self.cursor));
        self.cursor.leave(outer);
        result
    }

    /// Like `visit_members`, for a visitor that must read everything.
    #[inline]
    fn visit_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        let start = self.cursor.offset();
        let outer = self.cursor.enter()?;
        let result = visitor.visit_seq(Elements::new(self.cursor));
        let more = !self.cursor.rest().is_empty();
        self.cursor.leave(outer);
        match result {
            Ok(_) if more => Err(access::longer(len, start)),
            result => result,
        }
    }

    /// Passes bytes as a sequence, because `Vec<u8>` and `[u8; N]` request one from serde. The visitor must read
    /// everything.
    fn visit_bytes_one_by_one<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut bytes = SeqDeserializer::<_, Error>::new(self.cursor.binary()?.1.iter().copied());
        let value = visitor.visit_seq(&mut bytes)?;
        bytes.end()?;
        Ok(value)
    }

    /// Passes the payload as it is stored.
    fn visit_payload<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let (rest, start) = (self.cursor.rest(), self.cursor.offset());
        self.cursor.skip(self.kind)?;
        visitor.visit_borrowed_bytes(&rest[..self.cursor.offset() - start])
    }

    #[inline]
    fn visit_integer<V: Visitor<'de>>(self, expected: &'static str, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Int32 => visitor.visit_i32(self.cursor.i32()?),
            ElementType::Int64 => visitor.visit_i64(self.cursor.i64()?),
            ElementType::Double => visitor.visit_i64(integer(self.kind, self.cursor, expected)?),
            _ => self.deserialize_any(visitor),
        }
    }
}

/// Implements the method for each integer type.
macro_rules! integers {
    ($($method:ident $expected:literal;)*) => {
        $(#[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.visit_integer($expected, visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Payload<'_, 'de> {
    type Error = Error;

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Double => visitor.visit_f64(self.cursor.f64()?),
            ElementType::String => self.visit_text(visitor),
            ElementType::Document => self.visit_members(&[], visitor),
            ElementType::Array => self.visit_elements(visitor),
            ElementType::Bool => visitor.visit_bool(self.cursor.bool()?),
            ElementType::Null => visitor.visit_unit(),
            ElementType::Int32 => visitor.visit_i32(self.cursor.i32()?),
            ElementType::Int64 => visitor.visit_i64(self.cursor.i64()?),
            kind => extended::visit(kind, self.cursor, visitor),
        }
    }

    integers! {
        deserialize_i8 "an 8-bit integer";
        deserialize_i16 "a 16-bit integer";
        deserialize_i32 "a 32-bit integer";
        deserialize_i64 "a 64-bit integer";
        deserialize_i128 "an integer";
        deserialize_u8 "an integer from 0 to 255";
        deserialize_u16 "an integer from 0 to 65535";
        deserialize_u32 "an integer from 0 to 4294967295";
        deserialize_u64 "an integer of 0 or more";
        deserialize_u128 "an integer of 0 or more";
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Bool => visitor.visit_bool(self.cursor.bool()?),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_f64(visitor)
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Double => visitor.visit_f64(self.cursor.f64()?),
            ElementType::Int32 => visitor.visit_f64(self.cursor.i32()?.into()),
            ElementType::Int64 => visitor.visit_f64(crate::FromBson::from_bson(self.kind, self.cursor)?),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::String | ElementType::Symbol | ElementType::Code => self.visit_text(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Binary => visitor.visit_borrowed_bytes(self.cursor.binary()?.1),
            ElementType::ObjectId => visitor.visit_borrowed_bytes(self.cursor.take_ref::<12>()?),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Null | ElementType::Undefined => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Null | ElementType::Undefined => visitor.visit_unit(),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        match (name, self.kind) {
            (marker::DATE_TIME, ElementType::DateTime) => visitor.visit_i64(self.cursor.i64()?),
            (marker::OBJECT_ID, ElementType::ObjectId) => visitor.visit_borrowed_bytes(self.cursor.take_ref::<12>()?),
            (marker::TIMESTAMP, ElementType::Timestamp) => visitor.visit_u64(u64::from_le_bytes(self.cursor.take()?)),
            (marker::DECIMAL128, ElementType::Decimal128) => {
                visitor.visit_borrowed_bytes(self.cursor.take_ref::<16>()?)
            }
            (marker::DATE_TIME, kind) => Err(self.cursor.mismatch(kind, "a date")),
            (marker::OBJECT_ID, kind) => Err(self.cursor.mismatch(kind, "an object id")),
            (marker::TIMESTAMP, kind) => Err(self.cursor.mismatch(kind, "a timestamp")),
            (marker::DECIMAL128, kind) => Err(self.cursor.mismatch(kind, "a decimal number")),
            (marker::NATIVE, kind) => Native::visit(kind, self.cursor, visitor),
            (marker::FOREIGN_UUID, ElementType::Binary) => extended::visit_uuid(self.cursor, visitor),
            (marker::FOREIGN_DOCUMENT, ElementType::Document)
            | (marker::FOREIGN_ARRAY, ElementType::Array)
            | (marker::FOREIGN_VALUE, _) => extended::visit_raw(self.kind, self.cursor, visitor),
            (marker::FOREIGN_DOCUMENT, kind) => Err(self.cursor.mismatch(kind, "a document")),
            (marker::FOREIGN_ARRAY, kind) => Err(self.cursor.mismatch(kind, "an array")),
            (name, kind) => match ElementType::from_marker(name) {
                None => visitor.visit_newtype_struct(self),
                Some(expected) if expected == kind => self.visit_payload(visitor),
                Some(expected) => Err(self.cursor.mismatch(kind, expected.name())),
            },
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Array => self.visit_elements(visitor),
            ElementType::Binary => self.visit_bytes_one_by_one(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Array => self.visit_tuple(len, visitor),
            ElementType::Binary => self.visit_bytes_one_by_one(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_tuple(len, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementType::Document => self.visit_members(&[], visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.kind {
            ElementType::Document => self.visit_members(fields, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.kind {
            ElementType::String | ElementType::Symbol => {
                visitor.visit_enum(CowStrDeserializer::new(self.cursor.text()?))
            }
            ElementType::Document => {
                let start = self.cursor.offset();
                let outer = self.cursor.enter()?;
                let result = visitor.visit_enum(Variant::new(self.cursor, variants, start));
                let more = !self.cursor.rest().is_empty();
                self.cursor.leave(outer);
                match result {
                    Ok(_) if more => Err(access::not_one(start)),
                    result => result,
                }
            }
            kind => Err(self.cursor.mismatch(kind, "an enum: text, or a document of one member")),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.cursor.skip(self.kind)?;
        visitor.visit_unit()
    }
}

/// Forwards a call to the value in a document.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[inline]
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value> {
            if self.rules().strictness == Strictness::Strict {
                self.check()?;
            }
            let mut cursor = self.cursor();
            let start = cursor.offset() as u64;
            let payload = Payload { cursor: &mut cursor, kind: ElementType::Document };
            payload.$method($($argument,)* visitor).map_err(|error| self.locate(error.with_offset(start)))
        })*
    };
}

/// ```
/// use millstream::bson::Document;
/// use serde::Deserialize;
/// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
/// assert_eq!(std::collections::BTreeMap::<String, u64>::deserialize(document)?["n"], 42);
/// # Ok::<(), millstream::Error>(())
/// ```
impl<'de> Deserializer<'de> for Document<'de> {
    type Error = Error;

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }

    forward! {
        deserialize_any();
        deserialize_option();
        deserialize_newtype_struct(name: &'static str);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_ignored_any();
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}
