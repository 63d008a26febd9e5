//! Deserialisation of documents, arrays and values: any of them from BSON, and the ones that can be borrowed from
//! other formats.

use super::native::Native;
use super::values::short;
use crate::serde_support::marker;
use crate::{Array, Document, FromBson, ValueRef};
use serde::de::{Deserialize, Deserializer, EnumAccess, Error, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

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

/// The values that can consist of a whole document.
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

/// From other formats, [`ValueRef`] accepts numbers and values that can be borrowed.
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
