//! Values that serde cannot represent, as Extended JSON, for types of other crates.
//!
//! If any type is requested, the value is passed as an object such as `{"$oid": "…"}`. The `bson` crate does the same,
//! and its own types are read from exactly these objects. Its borrowed types request the value with their own name and
//! get bytes and numbers instead of text.

use super::Payload;
use crate::serde_support::marker;
use crate::value::extended::Part;
use crate::{Cursor, Decimal128, Document, ElementType, FromBson, ObjectId, ValueRef};
use millstream_core::{Error, ErrorKind, Result};
use serde::Deserializer;
use serde::de::value::MapDeserializer;
use serde::de::{IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;

fn object<'de>(parts: Vec<(&'static str, Part<'de>)>) -> Part<'de> {
    Part::Object(parts)
}

fn lent(bytes: &[u8]) -> Part<'_> {
    Part::Bytes(Cow::Borrowed(bytes))
}

/// Reads a value of a type that serde lacks.
pub(super) fn visit<'de, V: Visitor<'de>>(kind: ElementType, cursor: &mut Cursor<'de>, visitor: V) -> Result<V::Value> {
    if kind == ElementType::Binary {
        let (subtype, bytes) = cursor.binary()?;
        return match subtype {
            0 => visitor.visit_borrowed_bytes(bytes),
            _ => binary(subtype, bytes).deserialize_any(visitor),
        };
    }
    with_text(kind, cursor)?.deserialize_any(visitor)
}

/// Values that contain text are read here, according to the rules; others are read as usual.
fn with_text<'de>(kind: ElementType, cursor: &mut Cursor<'de>) -> Result<Part<'de>> {
    let one = Part::one;
    Ok(match kind {
        ElementType::Code => one("$code", Part::Text(cursor.text()?)),
        ElementType::Symbol => one("$symbol", Part::Text(cursor.text()?)),
        ElementType::Regex => {
            let (pattern, options) = (Part::Text(cursor.ctext()?), Part::Text(cursor.ctext()?));
            one("$regularExpression", object(vec![("pattern", pattern), ("options", options)]))
        }
        ElementType::DbPointer => {
            let namespace = Part::Text(cursor.text()?);
            let id = one("$oid", Part::made(ObjectId(cursor.take()?)));
            one("$dbPointer", object(vec![("$ref", namespace), ("$id", id)]))
        }
        ElementType::CodeWithScope => {
            let mut inside = cursor.code_with_scope()?;
            let code = Part::Text(inside.text()?);
            object(vec![("$code", code), ("$scope", Part::Document(Document::at(&mut inside)?))])
        }
        _ => extended(ValueRef::from_bson(kind, cursor)?),
    })
}

/// Reads bytes that must be a UUID.
pub(super) fn visit_uuid<'de, V: Visitor<'de>>(cursor: &mut Cursor<'de>, visitor: V) -> Result<V::Value> {
    let start = cursor.offset();
    match cursor.binary()? {
        (4, bytes) => binary(4, bytes).deserialize_any(visitor),
        (subtype, _) => Err(Error::new(ErrorKind::ShapeMismatch)
            .with_found(format!("bytes of subtype {subtype}"))
            .with_expected("a UUID: bytes of subtype 4")
            .with_offset(start as u64)),
    }
}

/// Reads a value for one of the `bson` crate's borrowed types.
pub(super) fn visit_raw<'de, V: Visitor<'de>>(
    kind: ElementType,
    cursor: &mut Cursor<'de>,
    visitor: V,
) -> Result<V::Value> {
    let one = Part::one;
    let part = match kind {
        ElementType::Document => one(marker::FOREIGN_DOCUMENT, lent(Document::at(cursor)?.as_bytes())),
        ElementType::Array => one(marker::FOREIGN_ARRAY, lent(Document::at(cursor)?.as_bytes())),
        ElementType::ObjectId => one("$oid", lent(cursor.take_ref::<12>()?)),
        ElementType::DateTime => one("$date", Part::Number(cursor.i64()?)),
        ElementType::Decimal128 => one("$numberDecimalBytes", lent(cursor.take_ref::<16>()?)),
        ElementType::Binary => match cursor.binary()? {
            (0, bytes) => lent(bytes),
            (subtype, bytes) => {
                one("$binary", object(vec![("subType", Part::Number(subtype.into())), ("bytes", lent(bytes))]))
            }
        },
        ElementType::DbPointer => {
            let namespace = Part::Text(cursor.str()?.into());
            let id = one("$oid", lent(cursor.take_ref::<12>()?));
            one("$dbPointer", object(vec![("$ref", namespace), ("$id", id)]))
        }
        ElementType::CodeWithScope => {
            let mut inside = cursor.code_with_scope()?;
            let code = Part::Text(inside.str()?.into());
            let scope = one(marker::FOREIGN_DOCUMENT, lent(Document::at(&mut inside)?.as_bytes()));
            object(vec![("$code", code), ("$scope", scope)])
        }
        kind => return Payload { cursor, kind }.deserialize_any(visitor),
    };
    part.deserialize_any(visitor)
}

fn binary(subtype: u8, bytes: &[u8]) -> Part<'_> {
    extended(ValueRef::Binary { subtype, bytes })
}

/// Passes the number as text, unless its bytes are another representation of the same number, which the text would
/// lose.
fn decimal<'de>(number: Decimal128) -> Part<'de> {
    let text = number.to_string();
    match text.parse().is_ok_and(|same: Decimal128| same == number) {
        true => Part::one("$numberDecimal", Part::Text(text.into())),
        false => Part::one("$numberDecimalBytes", Part::Bytes(number.0.to_vec().into())),
    }
}

fn extended(value: ValueRef<'_>) -> Part<'_> {
    match value {
        ValueRef::Decimal128(number) => decimal(number),
        // Types that serde supports are handled elsewhere.
        ValueRef::Document(document) => Part::Document(document),
        other => match Part::of(other) {
            Some(part) => part,
            None => unreachable!("{} is a type that serde has", other.kind()),
        },
    }
}

impl<'de> Deserializer<'de> for Part<'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Part::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Part::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Part::Bytes(Cow::Borrowed(bytes)) => visitor.visit_borrowed_bytes(bytes),
            Part::Bytes(Cow::Owned(bytes)) => visitor.visit_bytes(&bytes),
            Part::Number(number) => visitor.visit_i64(number),
            Part::True => visitor.visit_bool(true),
            Part::Document(document) => document.deserialize_any(visitor),
            // Keys are also passed as parts, because some are requested as newtypes.
            Part::Object(parts) => {
                let members = parts.into_iter().map(|(key, part)| (Part::Text(key.into()), part));
                visitor.visit_map(MapDeserializer::new(members))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for Part<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
