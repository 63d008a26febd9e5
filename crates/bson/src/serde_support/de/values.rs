//! Deserialising owned values and documents from any self-describing format.
//!
//! Values from BSON are read directly, without serde. For other formats:
//!
//! - An integer becomes a 32-bit integer if it fits, otherwise a 64-bit integer, because formats such as JSON have only
//!   one integer type; [`from_json`](crate::from_json) does the same. However, serde buffers flattened, untagged and
//!   internally tagged content, in which a long of a BSON document is also an `i64`. If the content comes from this
//!   crate's deserializer, which is recognised by the type of its error, it stays a long.
//! - A map whose first key is a wrapper's key (`$oid`) must be exactly what this crate's serializer writes for a type
//!   that serde lacks; any other content is an error. `$numberInt` and similar keys are ordinary keys, because the
//!   serializer writes numbers as numbers. Use `from_json` to read all of Extended JSON: this module only reverses the
//!   serializer and is not a second parser with its own rules.

use super::native::Native;
use crate::serde_support::marker;
use crate::value::extended;
use crate::{Binary, Map, Value};
use serde::de::{Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use std::any::TypeId;
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

/// The 32-bit integer for an `i64` that a format returned: it must fit, and must not be a long of a document that serde
/// has buffered.
pub(super) fn short<E: Error>(value: i64) -> Option<i32> {
    let is_long = typeid::of::<E>() == TypeId::of::<millstream_core::Error>();
    i32::try_from(value).ok().filter(|_| !is_long)
}

struct ValueVisitor;

/// The conversion of values.
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
        visit_u8(value: u8) => Value::Int32(value.into());
        visit_u16(value: u16) => Value::Int32(value.into());
        visit_f64(value: f64) => Value::Double(value);
        visit_str(text: &str) => Value::String(text.to_string());
        visit_string(text: String) => Value::String(text);
        visit_bytes(bytes: &[u8]) => Value::Binary { subtype: 0, bytes: bytes.to_vec() };
        visit_byte_buf(bytes: Vec<u8>) => Value::Binary { subtype: 0, bytes };
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(match short::<E>(value) {
            Some(value) => Value::Int32(value),
            None => Value::Int64(value),
        })
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(value), &"a 64-bit integer")),
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
        if !(extended::is_key(&key) || key == marker::JSON_NUMBER) {
            let mut members = Map::new();
            members.append(key, map.next_value::<Value>()?);
            return append_members(members, map).map(Value::Document);
        }
        let body = map.next_value()?;
        let mut after = map.next_key::<String>()?;
        let value = match (after.as_deref(), body) {
            (Some("$scope"), Value::String(code)) if key == "$code" => {
                let scope = map.next_value()?;
                after = map.next_key()?;
                Some(Value::CodeWithScope { code, scope })
            }
            (_, body) if key == marker::JSON_NUMBER => json_number(&body),
            (_, body) => extended::value_of(&key, body),
        };
        match (value, after) {
            (Some(value), None) => Ok(value),
            (None, None) => Err(A::Error::custom(format_args!("a value of {key:?} that no type has"))),
            (_, Some(other)) => Err(A::Error::custom(format_args!("{other:?} next to {key:?}"))),
        }
    }
}

/// A serde_json number that is not a 64-bit integer.
fn json_number(text: &Value) -> Option<Value> {
    let number: f64 = text.as_str()?.parse().ok()?;
    number.is_finite().then_some(Value::Double(number))
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

/// Other formats must provide bytes, which get subtype 0.
impl<'de: 'a, 'a> Deserialize<'de> for Binary<&'a [u8]> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Binary<&'a [u8]>, D::Error> {
        deserializer.deserialize_newtype_struct(marker::NATIVE, BinaryVisitor::<&'de [u8]>(PhantomData))
    }
}

/// Other formats must provide bytes, which get subtype 0, or Extended JSON.
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
