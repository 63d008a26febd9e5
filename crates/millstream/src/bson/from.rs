//! Rust types out of values.

use super::{Array, Cursor, DateTime, Decimal128, Document, ElementType, ObjectId, Timestamp};
use crate::error::{Error, ErrorKind, Result};

/// What can be read from a value: numbers, text, bytes, dates, documents and arrays here; structs by
/// `#[derive(FromBson)]`.
///
/// An integer type takes every numeric value that it holds exactly (a double too, if it has no fraction). `f64` takes every numeric
/// value that it holds exactly. `Option` takes null and undefined as `None`.
///
/// ```
/// use millstream::bson::Document;
/// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
/// assert_eq!(document.get::<u8>("n")?, Some(42));
/// assert_eq!(document.get::<f64>("n")?, Some(42.0));
/// let error = document.get::<&str>("n").unwrap_err();
/// assert_eq!(error.found(), Some("a value of type int"));
/// assert_eq!((error.path(), error.offset()), (Some("n"), Some(7)));
/// # Ok::<(), millstream::Error>(())
/// ```
pub trait FromBson<'a>: Sized {
    /// Reads the payload that the cursor is at, all of it, of a value of this type.
    ///
    /// # Errors
    /// Those of the cursor, [`ShapeMismatch`](ErrorKind::ShapeMismatch) for another type
    /// ([`Cursor::mismatch`]), [`ValueOutOfRange`](ErrorKind::ValueOutOfRange).
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self>;
}

/// An integer of any width out of a number.
#[inline]
pub(crate) fn integer(kind: ElementType, cursor: &mut Cursor<'_>, expected: &'static str) -> Result<i64> {
    match kind {
        ElementType::Int32 => cursor.i32().map(i64::from),
        ElementType::Int64 => cursor.i64(),
        ElementType::Double => {
            let at = cursor.offset();
            let value = cursor.f64()?;
            // 2^63 itself does not fit; every f64 below it does.
            match value.fract() == 0.0 && (i64::MIN as f64..-(i64::MIN as f64)).contains(&value) {
                true => Ok(value as i64),
                false => Err(out_of_range(value, expected, at)),
            }
        }
        _ => Err(cursor.mismatch(kind, expected)),
    }
}

#[cold]
pub(crate) fn out_of_range(found: impl std::fmt::Display, expected: &str, at: usize) -> Error {
    Error::new(ErrorKind::ValueOutOfRange).with_found(found.to_string()).with_expected(expected).with_offset(at as u64)
}

macro_rules! integers {
    ($($type:ty, $expected:literal;)*) => {
        $(impl<'a> FromBson<'a> for $type {
            #[inline]
            fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
                let at = cursor.offset();
                let value = integer(kind, cursor, $expected)?;
                <$type>::try_from(value).map_err(|_| out_of_range(value, $expected, at))
            }
        })*
    };
}

integers! {
    i8, "an integer of 8 bits"; i16, "an integer of 16 bits"; i32, "an integer of 32 bits"; i64, "an integer of 64 bits";
    u8, "an integer from 0 to 255"; u16, "an integer from 0 to 65535"; u32, "an integer from 0 to 4294967295";
    u64, "an integer from 0 on"; i128, "an integer"; u128, "an integer from 0 on";
    isize, "an integer of the machine's width"; usize, "an integer from 0 on";
}

impl<'a> FromBson<'a> for f64 {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        match kind {
            ElementType::Double => cursor.f64(),
            ElementType::Int32 => cursor.i32().map(f64::from),
            ElementType::Int64 => {
                let at = cursor.offset();
                let value = cursor.i64()?;
                match (value as f64) as i128 == i128::from(value) {
                    true => Ok(value as f64),
                    false => Err(out_of_range(value, "an integer that a double holds exactly", at)),
                }
            }
            _ => Err(cursor.mismatch(kind, "a number")),
        }
    }
}

/// Rounded to the nearest.
impl<'a> FromBson<'a> for f32 {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        f64::from_bson(kind, cursor).map(|value| value as f32)
    }
}

/// Types that one type of value holds, and how a cursor reads it.
macro_rules! exactly {
    ($($type:ty, $($kind:ident)|+, $expected:literal, |$cursor:ident| $read:expr;)*) => {
        $(impl<'a> FromBson<'a> for $type {
            #[inline]
            fn from_bson(kind: ElementType, $cursor: &mut Cursor<'a>) -> Result<Self> {
                match kind {
                    $(ElementType::$kind)|+ => $read,
                    _ => Err($cursor.mismatch(kind, $expected)),
                }
            }
        })*
    };
}

exactly! {
    bool, Bool, "a boolean", |cursor| cursor.bool();
    &'a str, String | Symbol | Code, "text", |cursor| cursor.str();
    String, String | Symbol | Code, "text", |cursor| cursor.text().map(std::borrow::Cow::into_owned);
    &'a [u8], Binary, "bytes", |cursor| cursor.binary().map(|(_, bytes)| bytes);
    ObjectId, ObjectId, "an object id", |cursor| cursor.take().map(ObjectId);
    DateTime, DateTime, "a date", |cursor| cursor.i64().map(DateTime);
    Timestamp, Timestamp, "a timestamp", |cursor| cursor.take().map(|bytes| Timestamp::from_bits(u64::from_le_bytes(bytes)));
    Decimal128, Decimal128, "a decimal number", |cursor| cursor.take().map(Decimal128);
    Document<'a>, Document, "a document", |cursor| Document::at(cursor);
    Array<'a>, Array, "an array", |cursor| Array::at(cursor);
}

impl<'a, T: FromBson<'a>> FromBson<'a> for Option<T> {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        match kind {
            ElementType::Null | ElementType::Undefined => Ok(None),
            _ => T::from_bson(kind, cursor).map(Some),
        }
    }
}
