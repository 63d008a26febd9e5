//! How our own types are read: directly from BSON, from other formats by their text.
//!
//! Human-readable formats contain an object id as hexadecimal text, a date as RFC 3339, a decimal number as text;
//! Extended JSON is read as well. Other formats contain the bytes or the number.

use super::native::Native;
use super::values::short;
use crate::typed::marker;
use crate::{Array, DateTime, Decimal128, Document, FromBson, ObjectId, Timestamp, ValueRef};
use serde::de::{Deserialize, Deserializer, EnumAccess, Error, MapAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Types with a text form: how they are announced, what our own deserializer or a binary format returns, how their text
/// is parsed, their names in Extended JSON.
macro_rules! scalars {
    ($(
        $type:ident, $visitor:ident, $marker:path, $expected:literal, $plain:ident,
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

            /// Every format but our own.
            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<$type, D::Error> {
                if inner.is_human_readable() { inner.deserialize_any(self) } else { inner.$plain(self) }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            #[inline]
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                deserializer.deserialize_newtype_struct($marker, $visitor)
            }
        }
    )*};
}

scalars! {
    ObjectId, ObjectIdVisitor, marker::OBJECT_ID, "an object id", deserialize_bytes,
        visit_bytes(bytes: &[u8]) => bytes.try_into().ok().map(ObjectId),
        text => text.parse(), "$oid";
    DateTime, DateTimeVisitor, marker::DATE_TIME, "a date", deserialize_i64,
        visit_i64(milliseconds: i64) => Some(DateTime(milliseconds)),
        text => text.parse(), "$date" | "$numberLong";
    Decimal128, Decimal128Visitor, marker::DECIMAL128, "a decimal number", deserialize_bytes,
        visit_bytes(bytes: &[u8]) => bytes.try_into().ok().map(Decimal128),
        text => text.parse(), "$numberDecimal" | "$numberDecimalBytes";
}

/// The value of a map's only member, which has one of these names.
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

/// From another format: `{"$timestamp": {"t": 1, "i": 2}}`, or the number that its bits are.
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

/// What Extended JSON has inside `$timestamp`.
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

/// Types that keep the bytes of a document: borrowed from BSON, or from the bytes in a binary format.
struct BytesVisitor<T>(&'static str, PhantomData<T>);

impl<'de, T: FromBson<'de> + Whole<'de>> Visitor<'de> for BytesVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<T, A::Error> {
        Native::receive(access)
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<T, E> {
        Document::new(bytes).map(T::whole).map_err(E::custom)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<T, D::Error> {
        inner.deserialize_bytes(self)
    }
}

/// The values that a whole document can be.
trait Whole<'a> {
    fn whole(document: Document<'a>) -> Self;
}

impl<'a> Whole<'a> for Document<'a> {
    fn whole(document: Document<'a>) -> Document<'a> {
        document
    }
}

impl<'a> Whole<'a> for Array<'a> {
    fn whole(document: Document<'a>) -> Array<'a> {
        Array::of(document)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Document<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Document<'a>, D::Error> {
        deserializer
            .deserialize_newtype_struct(marker::NATIVE, BytesVisitor::<Document<'de>>("a document", PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Array<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Array<'a>, D::Error> {
        deserializer.deserialize_newtype_struct(marker::NATIVE, BytesVisitor::<Array<'de>>("an array", PhantomData))
    }
}

/// From other formats: what can be borrowed, and numbers.
impl<'de: 'a, 'a> Deserialize<'de> for ValueRef<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ValueRef<'a>, D::Error> {
        deserializer.deserialize_newtype_struct(marker::NATIVE, ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = ValueRef<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that can be borrowed")
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<ValueRef<'de>, A::Error> {
        Native::receive(access)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<ValueRef<'de>, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::Bool(value))
    }

    fn visit_i32<E: Error>(self, value: i32) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::Int32(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<ValueRef<'de>, E> {
        Ok(short::<E>(value).map_or(ValueRef::Int64(value), ValueRef::Int32))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<ValueRef<'de>, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(value), &"a 64-bit integer")),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::Double(value))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::String(text))
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::Binary { subtype: 0, bytes })
    }

    fn visit_unit<E: Error>(self) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::Null)
    }

    fn visit_none<E: Error>(self) -> Result<ValueRef<'de>, E> {
        Ok(ValueRef::Null)
    }
}
