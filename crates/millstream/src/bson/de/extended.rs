//! What serde has no name for, as Extended JSON, for types of others.
//!
//! Somebody who asks for anything gets `{"$oid": "…"}` and the like: so it is with the `bson` crate, whose own types are
//! read by exactly this. Its borrowed types ask by a name of theirs and get bytes and numbers instead of text.

use super::Payload;
use crate::bson::{Cursor, Decimal128, Document, ElementType, FromBson, ObjectId, ValueRef, marker};
use crate::error::{Error, ErrorKind, Result};
use data_encoding::{BASE64, HEXLOWER};
use serde::Deserializer;
use serde::de::value::MapDeserializer;
use serde::de::{IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;

/// A piece of Extended JSON.
enum Part<'de> {
    Text(&'de str),
    Made(String),
    Bytes(&'de [u8]),
    MadeBytes([u8; 16]),
    Number(i64),
    True,
    Scope(Document<'de>),
    Map(Vec<(&'static str, Part<'de>)>),
}

use Part::{Bytes, Made, MadeBytes, Map, Number, Scope, Text, True};

/// Reads a value of a type that serde does not have.
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

/// What has text in it is read here, by the rules; the rest as values are.
fn with_text<'de>(kind: ElementType, cursor: &mut Cursor<'de>) -> Result<Part<'de>> {
    let one = |name, part| Map(vec![(name, part)]);
    Ok(match kind {
        ElementType::Code => one("$code", text(cursor.text()?)),
        ElementType::Symbol => one("$symbol", text(cursor.text()?)),
        ElementType::Regex => {
            let (pattern, options) = (text(cursor.ctext()?), text(cursor.ctext()?));
            one("$regularExpression", Map(vec![("pattern", pattern), ("options", options)]))
        }
        ElementType::DbPointer => {
            let namespace = text(cursor.text()?);
            let id = one("$oid", Made(ObjectId(cursor.take()?).to_string()));
            one("$dbPointer", Map(vec![("$ref", namespace), ("$id", id)]))
        }
        ElementType::CodeWithScope => {
            let mut inside = cursor.code_with_scope()?;
            let code = text(inside.text()?);
            Map(vec![("$code", code), ("$scope", Scope(Document::at(&mut inside)?))])
        }
        _ => extended(ValueRef::from_bson(kind, cursor)?),
    })
}

fn text(text: Cow<'_, str>) -> Part<'_> {
    match text {
        Cow::Borrowed(text) => Text(text),
        Cow::Owned(text) => Made(text),
    }
}

/// Reads bytes that must be those of a UUID.
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
    let one = |name, part| Map(vec![(name, part)]);
    let part = match kind {
        ElementType::Document => one(marker::FOREIGN_DOCUMENT, Bytes(Document::at(cursor)?.as_bytes())),
        ElementType::Array => one(marker::FOREIGN_ARRAY, Bytes(Document::at(cursor)?.as_bytes())),
        ElementType::ObjectId => one("$oid", Bytes(cursor.take_ref::<12>()?)),
        ElementType::DateTime => one("$date", Number(cursor.i64()?)),
        ElementType::Decimal128 => one("$numberDecimalBytes", Bytes(cursor.take_ref::<16>()?)),
        ElementType::Binary => match cursor.binary()? {
            (0, bytes) => Bytes(bytes),
            (subtype, bytes) => one("$binary", Map(vec![("subType", Number(subtype.into())), ("bytes", Bytes(bytes))])),
        },
        ElementType::DbPointer => {
            let namespace = Text(cursor.str()?);
            let id = one("$oid", Bytes(cursor.take_ref::<12>()?));
            one("$dbPointer", Map(vec![("$ref", namespace), ("$id", id)]))
        }
        ElementType::CodeWithScope => {
            let mut inside = cursor.code_with_scope()?;
            let code = Text(inside.str()?);
            let scope = one(marker::FOREIGN_DOCUMENT, Bytes(Document::at(&mut inside)?.as_bytes()));
            Map(vec![("$code", code), ("$scope", scope)])
        }
        kind => return Payload { cursor, kind }.deserialize_any(visitor),
    };
    part.deserialize_any(visitor)
}

fn binary(subtype: u8, bytes: &[u8]) -> Part<'_> {
    let body = vec![("base64", Made(BASE64.encode(bytes))), ("subType", Made(HEXLOWER.encode(&[subtype])))];
    Map(vec![("$binary", Map(body))])
}

/// As text, unless these bytes are another form of the same number, which the text would lose.
fn decimal<'de>(number: Decimal128) -> Part<'de> {
    let text = number.to_string();
    Map(match text.parse().is_ok_and(|same: Decimal128| same == number) {
        true => vec![("$numberDecimal", Made(text))],
        false => vec![("$numberDecimalBytes", MadeBytes(number.0))],
    })
}

fn extended(value: ValueRef<'_>) -> Part<'_> {
    let one = |name, part| Map(vec![(name, part)]);
    match value {
        ValueRef::ObjectId(id) => one("$oid", Made(id.to_string())),
        ValueRef::DateTime(date) => one("$date", one("$numberLong", Made(date.0.to_string()))),
        ValueRef::Decimal128(number) => decimal(number),
        ValueRef::Timestamp(stamp) => {
            one("$timestamp", Map(vec![("t", Number(stamp.time.into())), ("i", Number(stamp.increment.into()))]))
        }
        ValueRef::Undefined => one("$undefined", True),
        ValueRef::MinKey => one("$minKey", Number(1)),
        ValueRef::MaxKey => one("$maxKey", Number(1)),
        // The rest are types that serde has; they do not come here.
        ValueRef::Document(document) => Scope(document),
        other => unreachable!("{} is a type that serde has, or has text", other.kind()),
    }
}

impl<'de> Deserializer<'de> for Part<'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Text(text) => visitor.visit_borrowed_str(text),
            Made(text) => visitor.visit_string(text),
            Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            MadeBytes(bytes) => visitor.visit_bytes(&bytes),
            Number(number) => visitor.visit_i64(number),
            True => visitor.visit_bool(true),
            Scope(document) => document.deserialize_any(visitor),
            // Keys are parts too: some are asked for as newtypes.
            Map(parts) => {
                visitor.visit_map(MapDeserializer::new(parts.into_iter().map(|(key, part)| (Text(key), part))))
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
