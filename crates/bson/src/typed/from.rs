//! Conversion of values to Rust types: the trait and simple types.
//!
//! There is no intermediate representation: each value is read from the document directly into its destination.
//! Borrowed types (`&str`, `&[u8]`, `Cow`, maps with such keys) allocate no memory. With
//! [`Utf8::Lossy`](crate::Utf8::Lossy), invalid text is replaced only in owned types.
//! [`Strictness::Strict`](crate::Strictness::Strict) is checked by [`Document::check`](crate::Document::check), which
//! [`decode_document`](crate::decode_document) calls, because no type here reads the keys of arrays.

mod containers;

pub use containers::{FromKey, Places};

use crate::{Cursor, ElementType};
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::num::NonZero;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Types that can be read from a value: numbers, text, bytes, dates, documents and collections of them are implemented
/// here; structs and enums use `#[derive(FromBson)]`, whose attributes, such as `#[bson(rename = "…")]` and `#[bson(default)]`, are
/// on the page of the [derive macro](https://docs.rs/millstream/latest/millstream/bson/derive.FromBson.html).
///
/// An integer type accepts every numeric value that it represents exactly (also a double without a fraction). `f64`
/// accepts every numeric value that it represents exactly. `Option` accepts null and undefined as `None`. Collections
/// accept arrays; tuples and `[T; N]` accept only arrays of their length. Collections of `u8` also accept bytes. Maps
/// accept documents; for a duplicate key, they keep the last value.
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
    note = "derive `FromBson` for it, or read the field with a module: `#[bson(with = \"…\")]`"
)]
pub trait FromBson<'a>: Sized {
    /// Reads the complete payload at the cursor, of a value of type `kind`.
    ///
    /// # Errors
    /// The errors of the cursor, [`ShapeMismatch`](ErrorKind::ShapeMismatch) for another type ([`Cursor::mismatch`]),
    /// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange).
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self>;

    /// Returns the value of a struct's field of this type for a document without the member: `None` for an `Option`.
    /// If this function returns `None`, the member is required.
    #[inline]
    fn when_missing() -> Option<Self> {
        None
    }

    /// Reads an array of such values.
    ///
    /// `u8` overrides this and [`array_from_bson`](FromBson::array_from_bson), so that arrays of `u8` are read from
    /// bytes: Rust has no specialisation with which the implementation for `Vec` could distinguish them from other
    /// values.
    #[doc(hidden)]
    #[inline]
    fn vec_from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Vec<Self>> {
        containers::read_vec(kind, cursor)
    }

    /// Reads an array of exactly `N` such values.
    #[doc(hidden)]
    #[inline]
    fn array_from_bson<const N: usize>(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<[Self; N]> {
        containers::read_array(kind, cursor)
    }
}

/// Types that can be read from some of the members of a document, with `#[bson(flatten)]`.
///
/// `#[derive(FromBson)]` implements it for structs with named fields and for enums with a tag. Maps take the members
/// that no other field takes; `Option` is `None` if its type cannot be read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from the members of the document around it",
    label = "expected a struct with named fields, an enum with a tag, or a map",
    note = "`#[bson(flatten)]` and variants of an enum with a tag need `FromMembers`"
)]
pub trait FromMembers<'a>: Sized {
    /// Reads from the members between the cursor and the end of the current document, except those whose key is `taken`
    /// by another field. The final position of the cursor does not matter.
    ///
    /// # Errors
    /// As for [`FromBson::from_bson`], and [`KeyMissing`](ErrorKind::KeyMissing).
    fn from_members<F: Fn(&[u8]) -> bool>(cursor: &mut Cursor<'a>, taken: F) -> Result<Self>;

    /// Whether this type takes the member with this key exclusively.
    fn takes(key: &[u8]) -> bool;
}

/// Reads an integer of any width from a number.
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

/// Implements integers and their non-zero variants.
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
    i8, "an 8-bit integer"; i16, "a 16-bit integer"; i32, "a 32-bit integer"; i64, "a 64-bit integer";
    u16, "an integer from 0 to 65535"; u32, "an integer from 0 to 4294967295";
    u64, "an integer of 0 or more"; i128, "an integer"; u128, "an integer of 0 or more";
    isize, "an integer of the machine's word size"; usize, "an integer of 0 or more";
}

const BYTE: &str = "an integer from 0 to 255";

/// A single byte is a number.
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
                    false => Err(out_of_range(value, "an integer that a double represents exactly", at)),
                }
            }
            _ => Err(cursor.mismatch(kind, "a number")),
        }
    }
}

/// The value is rounded to the nearest `f32`.
impl<'a> FromBson<'a> for f32 {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        f64::from_bson(kind, cursor).map(|value| value as f32)
    }
}

/// Implements types that correspond to one type of value, with the cursor method that reads them.
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
pub(crate) use exactly;

exactly! {
    bool, Bool, "a boolean", |cursor| cursor.bool();
    &'a str, String | Symbol | Code, "text", |cursor| cursor.str();
    String, String | Symbol | Code, "text", |cursor| cursor.text().map(Cow::into_owned);
    Cow<'a, str>, String | Symbol | Code, "text", |cursor| cursor.text();
    char, String | Symbol, "one character", |cursor| one_char(cursor);
    &'a [u8], Binary, "bytes", |cursor| cursor.binary().map(|(_, bytes)| bytes);
    Cow<'a, [u8]>, Binary, "bytes", |cursor| cursor.binary().map(|(_, bytes)| Cow::Borrowed(bytes));
    SystemTime, DateTime, "a date", |cursor| system_time(cursor);
}

/// Reads text that consists of one character.
fn one_char(cursor: &mut Cursor<'_>) -> Result<char> {
    let at = cursor.offset();
    let text = cursor.text()?;
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(out_of_range(format_args!("a text of {} characters", text.chars().count()), "one character", at)),
    }
}

/// Reads a date, if the platform's `SystemTime` can represent it.
fn system_time(cursor: &mut Cursor<'_>) -> Result<SystemTime> {
    let at = cursor.offset();
    let millis = cursor.i64()?;
    let distance = Duration::from_millis(millis.unsigned_abs());
    let time = if millis < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.ok_or_else(|| {
        out_of_range(format_args!("{millis} milliseconds since 1970"), "a time that the system can represent", at)
    })
}

/// Reads null and undefined.
impl<'a> FromBson<'a> for () {
    #[inline]
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        match kind {
            ElementType::Null | ElementType::Undefined => Ok(()),
            _ => Err(cursor.mismatch(kind, "null")),
        }
    }
}
