//! Reading and writing the types of `scalar/` with serde.
//!
//! In human-readable serde formats, an object id is hexadecimal text, a date is RFC 3339 and a decimal number is text;
//! all other types are written as Extended JSON, which is also accepted when reading. Other formats contain the bytes
//! or the number.

use super::marker;
use super::ser::{Bytes, extended};
use crate::{DateTime, Decimal128, ElementType, ObjectId, Timestamp, ValueRef};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// Implements writing for types with a text form: the text for human-readable formats, another form for others.
macro_rules! written_as {
    ($($type:ident, |$value:ident| $payload:expr;)*) => {
        $(impl Serialize for $type {
            #[inline]
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    return serializer.collect_str(self);
                }
                let $value = self;
                serializer.serialize_newtype_struct(const { ElementType::$type.marker() }, $payload)
            }
        })*
    };
}

written_as! {
    ObjectId, |id| &Bytes(&id.0);
    DateTime, |date| &date.0;
    Decimal128, |number| &Bytes(&number.0);
}

impl Serialize for Timestamp {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => extended(serializer, ValueRef::Timestamp(*self)),
            false => serializer.serialize_newtype_struct(marker::TIMESTAMP, &self.to_bits()),
        }
    }
}

/// Implements reading for types with a text form: from the value that this crate's deserializer or a binary format
/// returns, from text, and from Extended JSON with these names.
macro_rules! read_as {
    ($(
        $type:ident, $visitor:ident, $expected:literal, $plain:ident,
        $method:ident($raw:ident: $from:ty) => $make:expr,
        $text:ident => $parse:expr,
        $($member:literal)|+;
    )*) => {$(
        struct $visitor;

        impl<'de> Visitor<'de> for $visitor {
            type Value = $type;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expected)
            }

            #[inline]
            fn $method<E: Error>(self, $raw: $from) -> Result<$type, E> {
                $make.ok_or_else(|| E::invalid_value(Unexpected::Other("another number of bytes"), &self))
            }

            fn visit_str<E: Error>(self, $text: &str) -> Result<$type, E> {
                $parse.map_err(|_| E::invalid_value(Unexpected::Str($text), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$type, A::Error> {
                only_member(&mut map, &[$($member),+], &self)
            }

            /// Called by every format except this crate's own.
            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<$type, D::Error> {
                if inner.is_human_readable() { inner.deserialize_any(self) } else { inner.$plain(self) }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            #[inline]
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                deserializer.deserialize_newtype_struct(const { ElementType::$type.marker() }, $visitor)
            }
        }
    )*};
}

read_as! {
    ObjectId, ObjectIdVisitor, "an object id", deserialize_bytes,
        visit_bytes(bytes: &[u8]) => bytes.try_into().ok().map(ObjectId),
        text => text.parse(), "$oid";
    DateTime, DateTimeVisitor, "a date", deserialize_i64,
        visit_i64(milliseconds: i64) => Some(DateTime(milliseconds)),
        text => text.parse(), "$date" | "$numberLong";
    Decimal128, Decimal128Visitor, "a decimal number", deserialize_bytes,
        visit_bytes(bytes: &[u8]) => bytes.try_into().ok().map(Decimal128),
        text => text.parse(), "$numberDecimal" | "$numberDecimalBytes";
}

/// Returns the value of a map's only member, which must have one of these names.
fn only_member<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
    names: &[&str],
    expected: &dyn serde::de::Expected,
) -> Result<T, A::Error> {
    if let Some(name) = map.next_key::<String>()?
        && names.contains(&name.as_str())
    {
        let value = map.next_value()?;
        if map.next_key::<String>()?.is_none() {
            return Ok(value);
        }
    }
    Err(A::Error::invalid_type(Unexpected::Map, expected))
}

/// Reads `{"$timestamp": {"t": 1, "i": 2}}` or the number with the same bits from other formats.
impl<'de> Deserialize<'de> for Timestamp {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        deserializer.deserialize_newtype_struct(marker::TIMESTAMP, TimestampVisitor)
    }
}

struct TimestampVisitor;

impl<'de> Visitor<'de> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp")
    }

    #[inline]
    fn visit_u64<E: Error>(self, bits: u64) -> Result<Timestamp, E> {
        Ok(Timestamp::from_bits(bits))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Timestamp, A::Error> {
        only_member(&mut map, &["$timestamp"], &self).map(|parts: Parts| parts.0)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Timestamp, D::Error> {
        if inner.is_human_readable() { inner.deserialize_any(self) } else { inner.deserialize_u64(self) }
    }
}

/// The content of `$timestamp` in Extended JSON.
struct Parts(Timestamp);

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parts, D::Error> {
        deserializer.deserialize_map(PartsVisitor)
    }
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp's t and i")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
        let (mut time, mut increment) = (None, None);
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "t" => time = Some(map.next_value()?),
                "i" => increment = Some(map.next_value()?),
                _ => return Err(A::Error::invalid_type(Unexpected::Map, &self)),
            }
        }
        match (time, increment) {
            (Some(time), Some(increment)) => Ok(Parts(Timestamp { time, increment })),
            _ => Err(A::Error::invalid_type(Unexpected::Map, &self)),
        }
    }
}
