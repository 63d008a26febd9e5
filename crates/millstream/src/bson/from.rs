//! Rust types out of values: the trait, what decodes a whole document, and the plain types.
//!
//! Nothing is collected first: each value is read from where it lies into where it belongs. What is borrowed
//! (`&str`, `&[u8]`, `Cow`, maps with such keys are) takes no memory of its own. Text under
//! [`Utf8::Lossy`](super::Utf8::Lossy) is replaced in owned types only. [`Strictness::Strict`](super::Strictness::Strict)
//! is a matter of [`Document::check`], which [`decode_document`] calls: no type here looks at the keys of arrays.

mod containers;

pub use containers::{FromKey, Places};

use super::document::locate;
use super::{Array, Cursor, DateTime, Decimal128, Document, ElementType, ObjectId, Rules, Strictness, Timestamp};
use crate::error::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::num::NonZero;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The value that a document is, by the default rules.
///
/// ```
/// use millstream::bson;
/// use std::collections::BTreeMap;
/// let map: BTreeMap<&str, i64> = bson::decode(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
/// assert_eq!(map["n"], 42);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// Those of [`Document::new`] and [`FromBson::from_bson`], with the path of keys and the offset.
#[inline]
pub fn decode<'a, T: FromBson<'a>>(bytes: &'a [u8]) -> Result<T> {
    let mut cursor = Cursor::new(bytes, Rules::new());
    let value = T::from_bson(ElementType::Document, &mut cursor).map_err(|error| locate(bytes, 0, error))?;
    if cursor.offset() != bytes.len() {
        Document::new(bytes)?; // says what is behind the document
    }
    Ok(value)
}

/// The value that a document is, by the document's rules; strict rules are checked for the whole document first.
///
/// ```
/// use millstream::bson::{self, Document};
/// use std::collections::BTreeMap;
/// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?.at_offset(1000);
/// let error = bson::decode_document::<BTreeMap<&str, bool>>(&document).unwrap_err();
/// assert_eq!((error.path(), error.offset()), (Some("n"), Some(1007)));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// Those of [`FromBson::from_bson`], with the path of keys and the offset.
#[inline]
pub fn decode_document<'a, T: FromBson<'a>>(document: &Document<'a>) -> Result<T> {
    if document.rules().strictness == Strictness::Strict {
        document.check()?;
    }
    T::from_bson(ElementType::Document, &mut document.cursor()).map_err(|error| document.locate(error))
}

/// What can be read from a value: numbers, text, bytes, dates, documents, and collections of them here; structs and
/// enums by `#[derive(FromBson)]`.
///
/// An integer type takes every numeric value that it holds exactly (a double too, if it has no fraction). `f64` takes
/// every numeric value that it holds exactly. `Option` takes null and undefined as `None`. Collections and tuples take
/// arrays, tuples and `[T; N]` those of their length only; those of `u8` take bytes, too. Maps take documents; of a key
/// that is there more than once they keep the last value.
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from BSON",
    label = "expected a type that implements `FromBson`",
    note = "derive `FromBson` for it, or let a module read the field: `#[bson(with = \"…\")]`"
)]
pub trait FromBson<'a>: Sized {
    /// Reads the payload that the cursor is at, all of it, of a value of this type.
    ///
    /// # Errors
    /// Those of the cursor, [`ShapeMismatch`](ErrorKind::ShapeMismatch) for another type
    /// ([`Cursor::mismatch`]), [`ValueOutOfRange`](ErrorKind::ValueOutOfRange).
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self>;

    /// What a struct's field of this type is when the document has no such member; `None`: it must have one. `Option`
    /// is `None` then.
    #[inline]
    fn when_missing() -> Option<Self> {
        None
    }

    /// Reads many such values in a row.
    ///
    /// `u8` overrides this and [`array_from_bson`](FromBson::array_from_bson), so that bytes are read as such: Rust has
    /// no specialisation by which the implementation for `Vec` could tell them from other values.
    #[doc(hidden)]
    #[inline]
    fn vec_from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Vec<Self>> {
        containers::read_vec(kind, cursor)
    }

    /// Reads exactly so many such values in a row.
    #[doc(hidden)]
    #[inline]
    fn array_from_bson<const N: usize>(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<[Self; N]> {
        containers::read_array(kind, cursor)
    }
}

/// What can be read from some of the members of a document: what `#[bson(flatten)]` reads.
///
/// `#[derive(FromBson)]` writes it for structs with named fields and for enums with a tag. Maps take what nobody else
/// does; `Option` is `None` where its type cannot be read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from the members of the document around it",
    label = "expected a struct with named fields, an enum with a tag, or a map",
    note = "`#[bson(flatten)]` and variants of an enum with a tag need `FromMembers`"
)]
pub trait FromMembers<'a>: Sized {
    /// Reads from the members between the cursor and the end of the current document, those left out whose key is
    /// `taken` by somebody else. Where the cursor is afterwards does not matter.
    ///
    /// # Errors
    /// As for [`FromBson::from_bson`], and [`KeyMissing`](ErrorKind::KeyMissing).
    fn from_members<F: Fn(&[u8]) -> bool>(cursor: &mut Cursor<'a>, taken: F) -> Result<Self>;

    /// Whether a member of this key is its alone.
    fn takes(key: &[u8]) -> bool;
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

/// Integers, and those of them that are not zero.
macro_rules! integers {
    ($($type:ty, $expected:literal;)*) => {
        $(impl<'a> FromBson<'a> for $type {
            #[inline]
            fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
                let at = cursor.offset();
                let value = integer(kind, cursor, $expected)?;
                <$type>::try_from(value).map_err(|_| out_of_range(value, $expected, at))
            }
        }

        impl<'a> FromBson<'a> for NonZero<$type> {
            #[inline]
            fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
                let at = cursor.offset();
                let value = <$type>::from_bson(kind, cursor)?;
                NonZero::new(value).ok_or_else(|| out_of_range(0, concat!($expected, ", but not 0"), at))
            }
        })*
    };
}

integers! {
    i8, "an integer of 8 bits"; i16, "an integer of 16 bits"; i32, "an integer of 32 bits"; i64, "an integer of 64 bits";
    u16, "an integer from 0 to 65535"; u32, "an integer from 0 to 4294967295";
    u64, "an integer from 0 on"; i128, "an integer"; u128, "an integer from 0 on";
    isize, "an integer of the machine's width"; usize, "an integer from 0 on";
}

const BYTE: &str = "an integer from 0 to 255";

/// A byte alone is a number.
impl<'a> FromBson<'a> for u8 {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        let at = cursor.offset();
        let value = integer(kind, cursor, BYTE)?;
        u8::try_from(value).map_err(|_| out_of_range(value, BYTE, at))
    }

    #[inline]
    fn vec_from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Vec<u8>> {
        match kind {
            ElementType::Binary => cursor.binary().map(|(_, bytes)| bytes.to_vec()),
            _ => containers::read_vec(kind, cursor),
        }
    }

    fn array_from_bson<const N: usize>(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<[u8; N]> {
        match kind {
            ElementType::Binary => {
                let at = cursor.offset();
                let (_, bytes) = cursor.binary()?;
                bytes.try_into().map_err(|_| containers::wrong_count(bytes.len(), N, at))
            }
            _ => containers::read_array(kind, cursor),
        }
    }
}

impl<'a> FromBson<'a> for NonZero<u8> {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        let at = cursor.offset();
        NonZero::new(u8::from_bson(kind, cursor)?).ok_or_else(|| out_of_range(0, "an integer from 1 to 255", at))
    }
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
    String, String | Symbol | Code, "text", |cursor| cursor.text().map(Cow::into_owned);
    Cow<'a, str>, String | Symbol | Code, "text", |cursor| cursor.text();
    char, String | Symbol, "one character", |cursor| one_char(cursor);
    &'a [u8], Binary, "bytes", |cursor| cursor.binary().map(|(_, bytes)| bytes);
    Cow<'a, [u8]>, Binary, "bytes", |cursor| cursor.binary().map(|(_, bytes)| Cow::Borrowed(bytes));
    ObjectId, ObjectId, "an object id", |cursor| cursor.take().map(ObjectId);
    DateTime, DateTime, "a date", |cursor| cursor.i64().map(DateTime);
    SystemTime, DateTime, "a date", |cursor| system_time(cursor);
    Timestamp, Timestamp, "a timestamp", |cursor| cursor.take().map(|bytes| Timestamp::from_bits(u64::from_le_bytes(bytes)));
    Decimal128, Decimal128, "a decimal number", |cursor| cursor.take().map(Decimal128);
    Document<'a>, Document, "a document", |cursor| Document::at(cursor);
    Array<'a>, Array, "an array", |cursor| Array::at(cursor);
}

/// Text that is one character.
fn one_char(cursor: &mut Cursor<'_>) -> Result<char> {
    let at = cursor.offset();
    let text = cursor.text()?;
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(out_of_range(format_args!("a text of {} characters", text.chars().count()), "one character", at)),
    }
}

/// A date, where the system's clock can show it.
fn system_time(cursor: &mut Cursor<'_>) -> Result<SystemTime> {
    let at = cursor.offset();
    let millis = cursor.i64()?;
    let distance = Duration::from_millis(millis.unsigned_abs());
    let time = if millis < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.ok_or_else(|| {
        out_of_range(format_args!("{millis} milliseconds from 1970"), "a time that the system knows", at)
    })
}

/// Null, and what is undefined.
impl<'a> FromBson<'a> for () {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        match kind {
            ElementType::Null | ElementType::Undefined => Ok(()),
            _ => Err(cursor.mismatch(kind, "null")),
        }
    }
}
