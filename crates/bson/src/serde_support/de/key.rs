//! Keys of members, passed as text or as the value that the text represents.

use crate::Cursor;
use crate::wire::rules::Utf8;
use millstream_core::{Error, Result};
use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Passes a key as text to the requested type, after checking that it is UTF-8.
///
/// The cursor is directly after the key.
#[inline]
pub(super) fn visit_key<'de, S: DeserializeSeed<'de>>(
    cursor: &Cursor<'de>,
    key: &'de [u8],
    seed: S,
) -> Result<S::Value> {
    match cursor.rules().utf8 {
        Utf8::Checked => seed.deserialize(Key(cursor.key_text(key)?)),
        Utf8::Lossy => match String::from_utf8_lossy(key) {
            std::borrow::Cow::Borrowed(text) => seed.deserialize(Key(text)),
            std::borrow::Cow::Owned(text) => seed.deserialize(StringDeserializer::new(text)),
        },
    }
}

/// The maximum number of expected names with which a key is compared.
const AHEAD: usize = 8;

/// Like [`visit_key`], for the members of a struct, whose names are known. `next` is the index of the expected name. A
/// key that equals that name or one shortly after it needs no check, and the name after it is expected next.
#[inline]
pub(super) fn visit_name<'de, S: DeserializeSeed<'de>>(
    cursor: &Cursor<'de>,
    key: &'de [u8],
    names: &'static [&'static str],
    next: &mut usize,
    seed: S,
) -> Result<S::Value> {
    let ahead = names.get(*next..).unwrap_or(&[]);
    for (i, name) in ahead.iter().take(AHEAD).enumerate() {
        if name.as_bytes() == key {
            *next += i + 1;
            return seed.deserialize(Key(name));
        }
    }
    visit_key(cursor, key, seed)
}

/// A key. If a number is requested, it is parsed from the text; any other type gets the text.
#[derive(Clone, Copy)]
pub(super) struct Key<'de>(pub(super) &'de str);

/// Parses a number in a key's text.
macro_rules! numbers {
    ($($method:ident $visit:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.0.parse() {
                Ok(number) => visitor.$visit(number),
                // The visitor reports what it expected.
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_borrowed_str(self.0)
    }

    numbers! {
        deserialize_bool visit_bool;
        deserialize_i8 visit_i8;
        deserialize_i16 visit_i16;
        deserialize_i32 visit_i32;
        deserialize_i64 visit_i64;
        deserialize_i128 visit_i128;
        deserialize_u8 visit_u8;
        deserialize_u16 visit_u16;
        deserialize_u32 visit_u32;
        deserialize_u64 visit_u64;
        deserialize_u128 visit_u128;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0))
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
