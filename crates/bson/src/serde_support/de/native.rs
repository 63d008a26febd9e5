//! Passes a value through serde to one of this crate's own types.
//!
//! serde supports only numbers, text and bytes. Therefore the parts of a cursor at the value are passed: its bytes and
//! a few numbers. Nothing is copied, and the receiving side reads the value with [`FromBson`], without serde, with the
//! same offsets and limits.

use crate::{Cursor, Document, ElementType, FromBson, Rules, Strictness, Utf8, ValueRef};
use millstream_core::{Error, Result};
use serde::de::value::{BorrowedBytesDeserializer, SeqDeserializer};
use serde::de::{DeserializeSeed, EnumAccess, Unexpected, VariantAccess, Visitor};

/// A cursor at a value of this type.
pub(super) struct Native<'de> {
    cursor: Cursor<'de>,
    kind: ElementType,
}

impl<'de> Native<'de> {
    /// Passes the value at the cursor and skips it.
    #[inline]
    pub(super) fn visit<V: Visitor<'de>>(kind: ElementType, cursor: &mut Cursor<'de>, visitor: V) -> Result<V::Value> {
        let here = cursor.clone();
        cursor.skip(kind)?;
        visitor.visit_enum(Native { cursor: here.clone(), kind }).map_err(|error| cause(kind, here, error))
    }

    /// Receives the value.
    #[inline]
    pub(super) fn receive<T: FromBson<'de>, A: EnumAccess<'de>>(access: A) -> std::result::Result<T, A::Error> {
        use serde::de::Error as _;
        let (bytes, numbers) = access.variant::<&'de [u8]>()?;
        let [kind, at, base, rules, depth] = numbers.newtype_variant::<[u64; 5]>()?;
        let (Some(kind), true) = (ElementType::from_byte(kind as u8), at <= bytes.len() as u64) else {
            return Err(A::Error::custom("an enum that is no value of BSON"));
        };
        let mut cursor = Cursor::inside(bytes, at as usize, base, depth as u16, unpack(rules));
        T::from_bson(kind, &mut cursor).map_err(|error| {
            let expected = error.expected().unwrap_or_default();
            A::Error::invalid_type(Unexpected::Other(error.found().unwrap_or_default()), &expected)
        })
    }
}

impl<'de> EnumAccess<'de> for Native<'de> {
    type Error = Error;
    type Variant = Self;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        let bytes = seed.deserialize(BorrowedBytesDeserializer::<Error>::new(self.cursor.bytes()))?;
        Ok((bytes, self))
    }
}

impl<'de> VariantAccess<'de> for Native<'de> {
    type Error = Error;

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        let Native { cursor, kind } = self;
        let numbers = [
            u64::from(kind as u8),
            cursor.offset() as u64,
            cursor.base(),
            pack(cursor.rules()),
            cursor.depth_left().into(),
        ];
        seed.deserialize(SeqDeserializer::new(numbers.into_iter()))
    }

    fn unit_variant(self) -> Result<()> {
        Err(serde::de::Error::custom("a value of BSON"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value> {
        Err(serde::de::Error::custom("a value of BSON"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], _visitor: V) -> Result<V::Value> {
        Err(serde::de::Error::custom("a value of BSON"))
    }
}

/// Encodes rules as a number.
#[inline]
fn pack(rules: Rules) -> u64 {
    let strictness = match rules.strictness {
        Strictness::Lenient => 0,
        Strictness::Standard => 1,
        Strictness::Strict => 2,
    };
    u64::from(rules.depth) << 8 | u64::from(rules.utf8 == Utf8::Lossy) << 2 | strictness
}

#[inline]
fn unpack(bits: u64) -> Rules {
    let strictness = match bits & 3 {
        0 => Strictness::Lenient,
        1 => Strictness::Standard,
        _ => Strictness::Strict,
    };
    let utf8 = if bits & 4 == 0 { Utf8::Checked } else { Utf8::Lossy };
    Rules::new().depth((bits >> 8) as u16).strictness(strictness).utf8(utf8)
}

/// Determines the cause of an error that came back through serde and has lost its kind and its position. The value is
/// checked again to find the error in it; if it is valid, it did not have the requested type.
#[cold]
fn cause(kind: ElementType, mut cursor: Cursor<'_>, error: Error) -> Error {
    let looked = match kind {
        ElementType::Document | ElementType::Array => Document::at(&mut cursor).and_then(|document| document.check()),
        _ => ValueRef::from_bson(kind, &mut cursor).map(drop),
    };
    looked.err().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_as_a_number() {
        for depth in [0, 1, 200, 1000] {
            for strictness in [Strictness::Lenient, Strictness::Standard, Strictness::Strict] {
                for utf8 in [Utf8::Checked, Utf8::Lossy] {
                    let rules = Rules::new().depth(depth).strictness(strictness).utf8(utf8);
                    assert_eq!(unpack(pack(rules)), rules);
                }
            }
        }
    }
}
