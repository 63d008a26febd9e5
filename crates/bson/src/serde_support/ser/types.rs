//! Serialisation of this crate's own types: directly to BSON, and as text to other formats.
//!
//! In human-readable formats, an object id is hexadecimal text, a date is RFC 3339, a decimal number is text, and every
//! other type that serde lacks is Extended JSON. Other formats get the bytes or the number.

use super::json::extended;
use super::{Error, ErrorKind, Result, Slot};
use crate::serde_support::marker;
use crate::{Array, Binary, Cursor, Document, ElementType, Rules, ToBson, ValueRef};
use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, Serializer};

/// The position of the next payload, which is a value of this type. The payload is passed as bytes or as a number.
pub(super) struct Ready<'o> {
    pub(super) slot: Slot<'o>,
    pub(super) kind: ElementType,
    /// The subtype for bytes that are passed without length and subtype.
    pub(super) subtype: Option<u8>,
}

#[cold]
fn not_ready(kind: ElementType) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found("something else")
        .with_expected(format!("the bytes of a value of type {kind}"))
}

/// Implements the methods that reject anything other than a payload.
macro_rules! refused {
    ($($method:ident($($argument:ident: $type:ty),*) -> $ok:ty;)*) => {
        $(#[cold]
        fn $method(self, $($argument: $type),*) -> Result<$ok> {
            Err(not_ready(self.kind))
        })*
    };
}

impl Serializer for Ready<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<()> {
        match self.kind {
            ElementType::DateTime => self.slot.fixed(self.kind, value.to_le_bytes()),
            kind => Err(not_ready(kind)),
        }
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<()> {
        match self.kind {
            ElementType::Timestamp => self.slot.fixed(self.kind, value.to_le_bytes()),
            kind => Err(not_ready(kind)),
        }
    }

    /// Any code can use the names of this crate. Therefore the bytes are checked: they must be exactly one payload,
    /// according to its lengths.
    #[inline]
    fn serialize_bytes(mut self, bytes: &[u8]) -> Result<()> {
        if let Some(subtype) = self.subtype {
            return self.slot.binary(subtype, bytes);
        }
        let mut cursor = Cursor::new(bytes, Rules::new());
        cursor.skip(self.kind)?;
        if cursor.offset() != bytes.len() {
            return Err(not_ready(self.kind));
        }
        self.slot.announce(self.kind)?;
        self.slot.out.extend_from_slice(bytes);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<()> {
        Err(not_ready(self.kind))
    }

    refused! {
        serialize_bool(_value: bool) -> ();
        serialize_i8(_value: i8) -> ();
        serialize_i16(_value: i16) -> ();
        serialize_i32(_value: i32) -> ();
        serialize_u8(_value: u8) -> ();
        serialize_u16(_value: u16) -> ();
        serialize_u32(_value: u32) -> ();
        serialize_f32(_value: f32) -> ();
        serialize_f64(_value: f64) -> ();
        serialize_char(_value: char) -> ();
        serialize_str(_value: &str) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(_name: &'static str) -> ();
        serialize_unit_variant(_name: &'static str, _index: u32, _variant: &'static str) -> ();
        serialize_seq(_len: Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(_len: usize) -> Self::SerializeTuple;
        serialize_tuple_struct(_name: &'static str, _len: usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(_name: &'static str, _index: u32, _variant: &'static str, _len: usize)
            -> Self::SerializeTupleVariant;
        serialize_map(_len: Option<usize>) -> Self::SerializeMap;
        serialize_struct(_name: &'static str, _len: usize) -> Self::SerializeStruct;
        serialize_struct_variant(_name: &'static str, _index: u32, _variant: &'static str, _len: usize)
            -> Self::SerializeStructVariant;
    }
}

/// A payload.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Serialize for Bytes<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// A map in human-readable formats, the bytes in others.
impl Serialize for Document<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_newtype_struct(marker::DOCUMENT, &Bytes(self.as_bytes()));
        }
        let mut map = serializer.serialize_map(None)?;
        for element in self {
            let element = element.map_err(S::Error::custom)?;
            let (key, value) = (element.key().map_err(S::Error::custom)?, element.value().map_err(S::Error::custom)?);
            map.serialize_entry(&key, &value)?;
        }
        map.end()
    }
}

/// A sequence in human-readable formats, the bytes in others.
impl Serialize for Array<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_newtype_struct(marker::ARRAY, &Bytes(self.as_bytes()));
        }
        let mut sequence = serializer.serialize_seq(None)?;
        for element in self {
            sequence.serialize_element(&element.and_then(|element| element.value()).map_err(S::Error::custom)?)?;
        }
        sequence.end()
    }
}

/// In human-readable formats, a value that serde cannot represent is written as Extended JSON.
impl Serialize for ValueRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match *self {
            ValueRef::Double(value) => serializer.serialize_f64(value),
            ValueRef::String(text) => serializer.serialize_str(text),
            ValueRef::Document(document) => document.serialize(serializer),
            ValueRef::Array(array) => array.serialize(serializer),
            ValueRef::Bool(value) => serializer.serialize_bool(value),
            ValueRef::Null => serializer.serialize_none(),
            ValueRef::Int32(value) => serializer.serialize_i32(value),
            ValueRef::Int64(value) => serializer.serialize_i64(value),
            ValueRef::Binary { subtype: 0, bytes } if !serializer.is_human_readable() => {
                serializer.serialize_bytes(bytes)
            }
            _ if serializer.is_human_readable() => extended(serializer, *self),
            value => {
                let mut payload = Vec::new();
                value.to_bson(&mut payload).map_err(S::Error::custom)?;
                serializer.serialize_newtype_struct(value.kind().marker(), &Bytes(&payload))
            }
        }
    }
}

/// Serialised like a [`ValueRef`].
impl<B: AsRef<[u8]>> Serialize for Binary<B> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        ValueRef::Binary { subtype: self.subtype, bytes: self.bytes.as_ref() }.serialize(serializer)
    }
}
