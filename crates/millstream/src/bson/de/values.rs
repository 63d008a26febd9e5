//! Owned values and documents out of anything that says what it holds.
//!
//! From BSON they are read as if serde were not there. From other formats:
//!
//! - An integer is of 32 bits if it fits, else of 64, whatever its sign, since formats such as JSON have one type of
//!   integer; [`from_json`](crate::bson::from_json) does the same. But serde buffers what is flattened, untagged or
//!   internally tagged, and then a long of a document comes as an `i64` too: from our own deserializer, which the type of
//!   its error gives away, it stays one.
//! - A map whose first key is that of a wrapper (`$oid`) is what our own serializer writes for a type that serde does
//!   not have, exactly; anything else there is an error. `$numberInt` and the like are ordinary keys, because our
//!   serializer writes numbers as numbers. What reads all of Extended JSON is `from_json`: this is a way back, not a
//!   second parser with rules of its own.

use super::native::Native;
use crate::bson::{Binary, DateTime, Decimal128, Map, Timestamp, Value, marker};
use data_encoding::{BASE64, HEXLOWER};
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

/// An integer that a format gives as an `i64`, where it is one of 32 bits to us: it fits, and is no long of a document
/// that serde has buffered.
pub(super) fn short<E: Error>(value: i64) -> Option<i32> {
    let is_long = typeid::of::<E>() == TypeId::of::<crate::Error>();
    i32::try_from(value).ok().filter(|_| !is_long)
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
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(value), &"an integer of 64 bits")),
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
        if !WRAPPERS.contains(&key.as_str()) {
            let mut members = Map::new();
            members.append(key, map.next_value::<Value>()?);
            return append_members(members, map).map(Value::Document);
        }
        let body = map.next_value()?;
        let mut behind = map.next_key::<String>()?;
        let value = match (behind.as_deref(), body) {
            (Some("$scope"), Value::String(code)) if key == "$code" => {
                let scope = map.next_value()?;
                behind = map.next_key()?;
                Some(Value::CodeWithScope { code, scope })
            }
            (_, body) => unwrap(&key, body),
        };
        match (value, behind) {
            (Some(value), None) => Ok(value),
            (None, None) => Err(A::Error::custom(format_args!("another value of {key:?} than is written for a type"))),
            (_, Some(other)) => Err(A::Error::custom(format_args!("{other:?} beside {key:?}"))),
        }
    }
}

/// The keys that say: this is no document, but the value of a type that serde does not have.
const WRAPPERS: &[&str] = &[
    "$oid",
    "$date",
    "$numberDecimal",
    "$numberDecimalBytes",
    "$timestamp",
    "$binary",
    "$regularExpression",
    "$dbPointer",
    "$code",
    "$symbol",
    "$undefined",
    "$minKey",
    "$maxKey",
    marker::JSON_NUMBER,
];

/// What our own serializer and deserializer say of such a value, and of serde_json's numbers; nothing else.
fn unwrap(key: &str, body: Value) -> Option<Value> {
    Some(match (key, body) {
        ("$oid", Value::String(text)) => Value::ObjectId(text.parse().ok()?),
        ("$date", Value::Document(body)) => {
            let [Value::String(milliseconds)] = exactly(body, ["$numberLong"])? else { return None };
            Value::DateTime(DateTime(milliseconds.parse().ok()?))
        }
        ("$numberDecimal", Value::String(text)) => Value::Decimal128(text.parse().ok()?),
        ("$numberDecimalBytes", Value::Binary { subtype: 0, bytes }) => {
            Value::Decimal128(Decimal128(bytes.try_into().ok()?))
        }
        ("$timestamp", Value::Document(body)) => {
            let [time, increment] = exactly(body, ["t", "i"])?.map(|part| part.as_i64().map(u32::try_from));
            Value::Timestamp(Timestamp { time: time?.ok()?, increment: increment?.ok()? })
        }
        ("$binary", Value::Document(body)) => {
            let [Value::String(text), Value::String(subtype)] = exactly(body, ["base64", "subType"])? else {
                return None;
            };
            let [subtype] = HEXLOWER.decode(subtype.as_bytes()).ok()?[..] else { return None };
            Value::Binary { subtype, bytes: BASE64.decode(text.as_bytes()).ok()? }
        }
        ("$regularExpression", Value::Document(body)) => {
            let [Value::String(pattern), Value::String(options)] = exactly(body, ["pattern", "options"])? else {
                return None;
            };
            Value::Regex { pattern, options }
        }
        ("$dbPointer", Value::Document(body)) => {
            let [Value::String(namespace), Value::ObjectId(id)] = exactly(body, ["$ref", "$id"])? else { return None };
            Value::DbPointer { namespace, id }
        }
        ("$code", Value::String(code)) => Value::Code(code),
        ("$symbol", Value::String(text)) => Value::Symbol(text),
        ("$undefined", Value::Bool(true)) => Value::Undefined,
        ("$minKey", Value::Int32(1) | Value::Int64(1)) => Value::MinKey,
        ("$maxKey", Value::Int32(1) | Value::Int64(1)) => Value::MaxKey,
        (marker::JSON_NUMBER, Value::String(text)) => Value::Double(text.parse().ok().filter(|x: &f64| x.is_finite())?),
        _ => return None,
    })
}

/// The values of these keys, if there are no others.
fn exactly<const N: usize>(mut body: Map, keys: [&str; N]) -> Option<[Value; N]> {
    let values = keys.map(|key| body.remove(key));
    if !body.is_empty() || values.contains(&None) {
        return None;
    }
    Some(values.map(Option::unwrap_or_default))
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
