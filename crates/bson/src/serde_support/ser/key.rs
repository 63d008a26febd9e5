//! Keys of members: text, and values that have a text form.

use super::{Error, ErrorKind, Result, Serialize, Serializer};
use serde::ser::Impossible;
use std::fmt;

/// Appends a key and its NUL.
#[inline]
pub(super) fn append_key(out: &mut Vec<u8>, key: &str) -> Result<()> {
    // Most keys are short, and many are constants that the compiler can optimise.
    let has_nul =
        if key.len() <= 16 { key.as_bytes().contains(&0) } else { memchr::memchr(0, key.as_bytes()).is_some() };
    if has_nul {
        return Err(nul(key));
    }
    out.extend_from_slice(key.as_bytes());
    out.push(0);
    Ok(())
}

#[cold]
fn nul(key: &str) -> Error {
    Error::new(ErrorKind::ValueOutOfRange).with_found(format!("{key:?}")).with_expected("a key without a NUL")
}

#[cold]
fn no_key(what: &str) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found(format!("{what} as a key"))
        .with_expected("a key that is text, an integer, a boolean or a variant without content")
}

/// The position of the next key, which follows the byte of its type.
pub(super) struct Key<'o> {
    pub(super) out: &'o mut Vec<u8>,
}

/// Implements the methods for values with a text form.
macro_rules! texts {
    ($($method:ident $type:ty;)*) => {
        $(fn $method(self, value: $type) -> Result<()> {
            self.collect_str(&value)
        })*
    };
}

/// Implements the methods for values without a text form.
macro_rules! refused {
    ($($method:ident($($argument:ident: $type:ty),*) -> $ok:ty, $what:literal;)*) => {
        $(fn $method(self, $($argument: $type),*) -> Result<$ok> {
            Err(no_key($what))
        })*
    };
}

impl Serializer for Key<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    texts! {
        serialize_bool bool;
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_i128 i128;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
        serialize_u128 u128;
        serialize_char char;
    }

    refused! {
        serialize_f32(_value: f32) -> (), "a floating point number";
        serialize_f64(_value: f64) -> (), "a floating point number";
        serialize_bytes(_value: &[u8]) -> (), "bytes";
        serialize_none() -> (), "nothing";
        serialize_unit() -> (), "nothing";
        serialize_unit_struct(_name: &'static str) -> (), "nothing";
        serialize_seq(_len: Option<usize>) -> Self::SerializeSeq, "a sequence";
        serialize_tuple(_len: usize) -> Self::SerializeTuple, "a tuple";
        serialize_tuple_struct(_name: &'static str, _len: usize) -> Self::SerializeTupleStruct, "a tuple";
        serialize_tuple_variant(_name: &'static str, _index: u32, _variant: &'static str, _len: usize)
            -> Self::SerializeTupleVariant, "a variant with content";
        serialize_map(_len: Option<usize>) -> Self::SerializeMap, "a map";
        serialize_struct(_name: &'static str, _len: usize) -> Self::SerializeStruct, "a struct";
        serialize_struct_variant(_name: &'static str, _index: u32, _variant: &'static str, _len: usize)
            -> Self::SerializeStructVariant, "a variant with content";
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<()> {
        append_key(self.out, value)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
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
        Err(no_key("a variant with content"))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<()> {
        self.serialize_str(&value.to_string())
    }
}
