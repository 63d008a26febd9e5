//! Access to the members of documents, the elements of arrays, and variants.

use super::Payload;
use super::key::{Key, visit_key, visit_name};
use crate::{Cursor, ElementType};
use millstream_core::{Error, ErrorKind, Result};
use serde::de::{DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

/// Reads the value at the cursor. If the visitor does not read the value, it is skipped.
#[inline]
fn visit_value<'de, S: DeserializeSeed<'de>>(kind: ElementType, cursor: &mut Cursor<'de>, seed: S) -> Result<S::Value> {
    let start = cursor.offset();
    match seed.deserialize(Payload { cursor: &mut *cursor, kind }) {
        Ok(value) => {
            if cursor.offset() == start {
                cursor.skip(kind)?;
            }
            Ok(value)
        }
        // An error without a position refers to this value.
        Err(error) => Err(error.with_offset(start as u64)),
    }
}

/// The members of the document in which the cursor is.
pub(super) struct Members<'c, 'de> {
    cursor: &'c mut Cursor<'de>,
    /// The type of the next value, after its key has been read.
    kind: Option<ElementType>,
    /// The names of a struct's fields, and the index of the expected one.
    names: &'static [&'static str],
    next: usize,
}

impl<'c, 'de> Members<'c, 'de> {
    #[inline]
    pub(super) fn new(cursor: &'c mut Cursor<'de>, names: &'static [&'static str]) -> Members<'c, 'de> {
        Members { cursor, kind: None, names, next: 0 }
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if let Some(kind) = self.kind.take() {
            self.cursor.skip(kind)?; // the value was not requested
        }
        // The fields of a struct usually occur in order. A key that matches a name needs no UTF-8 check. The visitor
        // gets the name rather than its index, because a field can have several names.
        if let Some(name) = self.names.get(self.next)
            && let Some(kind) = self.cursor.next_named(name)
        {
            self.kind = Some(kind);
            self.next += 1;
            return seed.deserialize(Key(name)).map(Some);
        }
        let Some((kind, key)) = self.cursor.next()? else { return Ok(None) };
        self.kind = Some(kind);
        let result = match self.names {
            [] => visit_key(self.cursor, key, seed),
            names => visit_name(self.cursor, key, names, &mut self.next, seed),
        };
        match result {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(error.with_offset(self.cursor.offset() as u64)),
        }
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        match self.kind.take() {
            Some(kind) => visit_value(kind, self.cursor, seed),
            None => Err(serde::de::Error::custom("a value was asked for before its key")),
        }
    }
}

/// The elements of the array in which the cursor is. Their keys are ignored.
pub(super) struct Elements<'c, 'de> {
    cursor: &'c mut Cursor<'de>,
}

impl<'c, 'de> Elements<'c, 'de> {
    #[inline]
    pub(super) fn new(cursor: &'c mut Cursor<'de>) -> Elements<'c, 'de> {
        Elements { cursor }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        match self.cursor.next_in_array()? {
            Some(kind) => visit_value(kind, self.cursor, seed).map(Some),
            None => Ok(None),
        }
    }
}

/// A variant with content: a document with a single member whose key is the name of the variant.
pub(super) struct Variant<'c, 'de> {
    cursor: &'c mut Cursor<'de>,
    names: &'static [&'static str],
    /// The position at which the document begins.
    start: usize,
}

impl<'c, 'de> Variant<'c, 'de> {
    #[inline]
    pub(super) fn new(cursor: &'c mut Cursor<'de>, names: &'static [&'static str], start: usize) -> Variant<'c, 'de> {
        Variant { cursor, names, start }
    }
}

impl<'c, 'de> EnumAccess<'de> for Variant<'c, 'de> {
    type Error = Error;
    type Variant = Content<'c, 'de>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Content<'c, 'de>)> {
        let Some((kind, key)) = self.cursor.next()? else { return Err(not_one(self.start)) };
        let name = visit_name(self.cursor, key, self.names, &mut 0, seed)?;
        Ok((name, Content(Payload { cursor: self.cursor, kind })))
    }
}

/// The content of a variant.
pub(super) struct Content<'c, 'de>(Payload<'c, 'de>);

impl<'de> VariantAccess<'de> for Content<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        serde::de::Deserialize::deserialize(self.0)
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        visit_value(self.0.kind, self.0.cursor, seed)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        serde::Deserializer::deserialize_tuple(self.0, len, visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value> {
        serde::Deserializer::deserialize_struct(self.0, "", fields, visitor)
    }
}

#[cold]
pub(super) fn longer(len: usize, start: usize) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found(format!("more than {len} elements"))
        .with_expected(format!("an array of {len}"))
        .with_offset(start as u64)
}

#[cold]
pub(super) fn not_one(start: usize) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found("a document with no member or several")
        .with_expected("an enum: a document whose only member has the name of the variant")
        .with_offset(start as u64)
}
