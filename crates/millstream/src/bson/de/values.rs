//! Owned values and documents out of anything that says what it holds.
//!
//! From BSON they are read as if serde were not there. From other formats, Extended JSON is understood where a map
//! begins with one of its names.

use super::native::Native;
use super::types::Parts;
use crate::bson::{Binary, Map, Value, marker};
use data_encoding::BASE64;
use serde::de::{Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

impl<'de> Deserialize<'de> for Value {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_newtype_struct(marker::NATIVE, ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for Map {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Map, D::Error> {
        deserializer.deserialize_newtype_struct(marker::NATIVE, MapVisitor)
    }
}

struct ValueVisitor;

/// What becomes which value.
macro_rules! values {
    ($($method:ident($raw:ident: $type:ty) => $value:expr;)*) => {
        $(fn $method<E: Error>(self, $raw: $type) -> Result<Value, E> {
            Ok($value)
        })*
    };
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        Native::receive(access)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    values! {
        visit_bool(value: bool) => Value::Bool(value);
        visit_i8(value: i8) => Value::Int32(value.into());
        visit_i16(value: i16) => Value::Int32(value.into());
        visit_i32(value: i32) => Value::Int32(value);
        visit_i64(value: i64) => Value::Int64(value);
        visit_u8(value: u8) => Value::Int32(value.into());
        visit_u16(value: u16) => Value::Int32(value.into());
        visit_f64(value: f64) => Value::Double(value);
        visit_str(text: &str) => Value::String(text.to_string());
        visit_string(text: String) => Value::String(text);
        visit_bytes(bytes: &[u8]) => Value::Binary { subtype: 0, bytes: bytes.to_vec() };
        visit_byte_buf(bytes: Vec<u8>) => Value::Binary { subtype: 0, bytes };
    }

    /// Of what says only that it is not negative: the shortest type that holds it.
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match (i32::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => Ok(Value::Int32(value)),
            (_, Ok(value)) => Ok(Value::Int64(value)),
            _ => Err(E::invalid_value(Unexpected::Unsigned(value), &"an integer of 64 bits")),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Some(key) = map.next_key::<String>()? else { return Ok(Value::Document(Map::new())) };
        let value = match key.as_str() {
            "$oid" => Value::ObjectId(map.next_value()?),
            "$date" => Value::DateTime(map.next_value()?),
            "$numberDecimal" | "$numberDecimalBytes" => Value::Decimal128(map.next_value()?),
            "$timestamp" => Value::Timestamp(map.next_value::<Parts>()?.0),
            "$numberInt" => Value::Int32(number(&map.next_value::<String>()?)?),
            "$numberLong" => Value::Int64(number(&map.next_value::<String>()?)?),
            "$numberDouble" => Value::Double(number(&map.next_value::<String>()?)?),
            "$binary" => {
                let body: Map = map.next_value()?;
                let (text, subtype) = (text::<A>(&body, "base64")?, text::<A>(&body, "subType")?);
                let bytes = BASE64.decode(text.as_bytes()).map_err(|_| unreadable(text))?;
                Value::Binary { subtype: u8::from_str_radix(subtype, 16).map_err(|_| unreadable(subtype))?, bytes }
            }
            "$regularExpression" => {
                let body: Map = map.next_value()?;
                let (pattern, options) = (text::<A>(&body, "pattern")?, text::<A>(&body, "options")?);
                Value::Regex { pattern: pattern.to_string(), options: options.to_string() }
            }
            "$dbPointer" => {
                let body: Map = map.next_value()?;
                let namespace = text::<A>(&body, "$ref")?.to_string();
                match body["$id"] {
                    Value::ObjectId(id) => Value::DbPointer { namespace, id },
                    _ => return Err(A::Error::invalid_type(Unexpected::Map, &"$ref and $id")),
                }
            }
            "$code" => {
                let code = map.next_value()?;
                match map.next_key::<String>()?.as_deref() {
                    None => return Ok(Value::Code(code)),
                    Some("$scope") => Value::CodeWithScope { code, scope: map.next_value()? },
                    Some(_) => return Err(A::Error::invalid_type(Unexpected::Map, &"$code and $scope")),
                }
            }
            "$symbol" => Value::Symbol(map.next_value()?),
            "$undefined" => map.next_value().map(|serde::de::IgnoredAny| Value::Undefined)?,
            "$minKey" => map.next_value().map(|serde::de::IgnoredAny| Value::MinKey)?,
            "$maxKey" => map.next_value().map(|serde::de::IgnoredAny| Value::MaxKey)?,
            _ => {
                let mut members = Map::new();
                members.append(key, map.next_value::<Value>()?);
                return append_members(members, map).map(Value::Document);
            }
        };
        match map.next_key::<String>()? {
            None => Ok(value),
            Some(other) => Err(A::Error::custom(format_args!("{other:?} beside {key:?}"))),
        }
    }
}

struct MapVisitor;

impl<'de> Visitor<'de> for MapVisitor {
    type Value = Map;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Map, A::Error> {
        Native::receive(access)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Map, D::Error> {
        inner.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Map, A::Error> {
        append_members(Map::new(), map)
    }
}

fn append_members<'de, A: MapAccess<'de>>(mut members: Map, mut map: A) -> Result<Map, A::Error> {
    while let Some((key, value)) = map.next_entry::<String, Value>()? {
        members.append(key, value);
    }
    Ok(members)
}

/// The text that a member of Extended JSON must be.
fn text<'m, 'de, A: MapAccess<'de>>(body: &'m Map, key: &'static str) -> Result<&'m str, A::Error> {
    body[key].as_str().ok_or_else(|| A::Error::missing_field(key))
}

fn number<T: std::str::FromStr, E: Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(|_| unreadable(text))
}

#[cold]
fn unreadable<E: Error>(text: &str) -> E {
    E::invalid_value(Unexpected::Str(text), &"what Extended JSON has there")
}

/// From other formats: bytes, whose subtype is 0 then.
impl<'de: 'a, 'a> Deserialize<'de> for Binary<&'a [u8]> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Binary<&'a [u8]>, D::Error> {
        deserializer.deserialize_newtype_struct(marker::NATIVE, BinaryVisitor::<&'de [u8]>(PhantomData))
    }
}

/// From other formats: bytes, whose subtype is 0 then, or Extended JSON.
impl<'de> Deserialize<'de> for Binary<Vec<u8>> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Binary<Vec<u8>>, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Binary { subtype, bytes } => Ok(Binary { subtype, bytes }),
            other => Err(D::Error::invalid_type(Unexpected::Other(other.kind().name()), &"bytes")),
        }
    }
}

struct BinaryVisitor<B>(PhantomData<B>);

impl<'de, B: From<&'de [u8]>> Visitor<'de> for BinaryVisitor<B> {
    type Value = Binary<B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Binary<B>, A::Error> {
        Native::receive(access)
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Binary<B>, E> {
        Ok(Binary { subtype: 0, bytes: bytes.into() })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Binary<B>, D::Error> {
        inner.deserialize_bytes(self)
    }
}
