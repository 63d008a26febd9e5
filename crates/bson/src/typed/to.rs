//! Conversion of Rust types to values: the trait, the encoding of a whole document, and simple types.
//!
//! Nothing is written twice or searched for: a length is filled in when its document ends.

mod containers;

pub(crate) use containers::Positions;

use crate::{ElementType, Rules};
use millstream_core::{Error, ErrorKind, Result, WriteRecord};
use std::borrow::Cow;
use std::cell::Cell;
use std::num::NonZero;
use std::time::{SystemTime, UNIX_EPOCH};

/// Encodes a value as a document.
///
/// ```
/// use millstream::bson;
/// let bytes = bson::encode(&std::collections::BTreeMap::from([("n", 42)]))?;
/// assert_eq!(bytes, b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0");
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// [`ShapeMismatch`](ErrorKind::ShapeMismatch) for a value that is not a document, and the errors of
/// [`ToBson::to_bson`].
pub fn encode<T: ToBson + ?Sized>(value: &T) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_to_buffer(&mut out, value)?;
    Ok(out)
}

/// Appends a value as a document. If the buffer is reused, no memory is allocated.
///
/// ```
/// use millstream::bson;
/// use std::collections::BTreeMap;
/// let mut buffer = Vec::new();
/// for n in 1..=2 {
///     buffer.clear();
///     bson::encode_to_buffer(&mut buffer, &BTreeMap::from([("n", n)]))?;
///     assert_eq!(bson::decode::<BTreeMap<&str, i32>>(&buffer)?["n"], n);
/// }
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// As for [`encode`]; in that case nothing is appended.
#[inline]
pub fn encode_to_buffer<T: ToBson + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<()> {
    let start = out.len();
    let result = match value.element_type() {
        ElementType::Document => value.to_bson(out),
        kind => Err(no_document(kind)),
    };
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Writes a value as a document, completely or not at all.
///
/// The document is created in separate memory. For many small documents, use [`encode_to_buffer`] with a reused buffer
/// and write that.
///
/// ```
/// use millstream::{Writer, bson};
/// let mut writer = Writer::memory()?;
/// bson::encode_to_writer(&mut writer, &std::collections::BTreeMap::from([("n", 42)]))?;
/// assert_eq!(writer.close()?.bytes, 12);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// As for [`encode`] and [`WriteRecord::write_record`].
pub fn encode_to_writer<W: WriteRecord + ?Sized, T: ToBson + ?Sized>(writer: &mut W, value: &T) -> Result<()> {
    writer.write_record(&encode(value)?)
}

#[cold]
fn no_document(kind: ElementType) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found(format!("a value of type {kind}"))
        .with_expected("a struct or a map: only a document can stand alone")
}

/// Types that can be written as a value: numbers, text, bytes, dates, documents and collections of them are implemented
/// here; structs and enums use `#[derive(ToBson)]`, whose attributes, such as `#[bson(rename = "…")]` and `#[bson(default)]`, are
/// on the page of the [derive macro](https://docs.rs/millstream/latest/millstream/bson/derive.ToBson.html).
///
/// Slices, vectors, arrays and tuples are written as arrays, but sequences of `u8` are written as bytes (subtype 0;
/// use [`Binary`](crate::Binary) for another subtype). Maps are written as documents, and `None` and `()` as null.
/// Integers of up to 32 bits except `u32` are written as `Int32`; `u32` and wider integers are written as `Int64`.
///
/// ```
/// use millstream::bson::{Document, ToBson, append_element};
/// let mut bytes = vec![0; 4];
/// append_element(&mut bytes, "n", &42)?;
/// append_element(&mut bytes, "s", "hi")?;
/// bytes.push(0);
/// let len = (bytes.len() as u32).to_le_bytes();
/// bytes[..4].copy_from_slice(&len);
/// assert_eq!(Document::new(&bytes)?.get::<&str>("s")?, Some("hi"));
/// # Ok::<(), millstream::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as BSON",
    label = "expected a type that implements `ToBson`",
    note = "derive `ToBson` for it, or write the field with a module: `#[bson(with = \"…\")]`"
)]
pub trait ToBson {
    /// The type that [`to_bson`](ToBson::to_bson) will write.
    fn element_type(&self) -> ElementType;

    /// Appends the payload.
    ///
    /// # Errors
    /// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for values that BSON cannot represent. The caller must remove
    /// the bytes that were appended before the error.
    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()>;

    /// The type of an array of such values.
    ///
    /// `u8` overrides this and [`slice_to_bson`](ToBson::slice_to_bson), so that arrays of `u8` are written as bytes:
    /// Rust has no specialisation with which the implementation for slices could distinguish them from other values.
    #[doc(hidden)]
    fn slice_element_type() -> ElementType
    where
        Self: Sized,
    {
        ElementType::Array
    }

    /// Appends the payload of an array of such values.
    #[doc(hidden)]
    #[inline]
    fn slice_to_bson(values: &[Self], out: &mut Vec<u8>) -> Result<()>
    where
        Self: Sized,
    {
        containers::append_array(out, values)
    }
}

/// Types that can be written as members of the enclosing document, with `#[bson(flatten)]`.
///
/// `#[derive(ToBson)]` implements it for structs with named fields and for enums with a tag. Maps also implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as members of the document around it",
    label = "expected a struct with named fields, an enum with a tag, or a map",
    note = "`#[bson(flatten)]` and variants of an enum with a tag need `ToMembers`"
)]
pub trait ToMembers {
    /// Appends each member: type, key and payload.
    ///
    /// # Errors
    /// Returns the errors of [`append_element`].
    fn append_members(&self, out: &mut Vec<u8>) -> Result<()>;
}

/// Appends type, key and payload.
///
/// # Errors
/// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for a key that contains a NUL, and the errors of
/// [`ToBson::to_bson`].
#[inline]
pub fn append_element<T: ToBson + ?Sized>(out: &mut Vec<u8>, key: &str, value: &T) -> Result<()> {
    out.push(value.element_type() as u8);
    append_cstring(out, key)?;
    value.to_bson(out)
}

/// Appends a document whose members are appended by `members`.
///
/// ```
/// use millstream::bson::{Document, append_document, append_element};
/// let mut bytes = Vec::new();
/// append_document(&mut bytes, |bytes| append_element(bytes, "n", &42))?;
/// assert_eq!(Document::new(&bytes)?.get::<i32>("n")?, Some(42));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// The errors of `members`, [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for 2 GiB or more, and
/// [`TooDeep`](ErrorKind::TooDeep) if 1,000 nested documents and arrays are open, the maximum that [`Rules::depth`]
/// allows a reader to enter.
#[inline]
pub fn append_document(out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let _level = Level::enter()?;
    let start = begin(out);
    members(out)?;
    end(out, start)
}

/// A level of nesting in the documents and arrays that this thread is appending.
///
/// A type that contains itself is as deep as its value, and [`ToBson::to_bson`] has no counter. Without a limit, a long
/// linked list would overflow the stack.
struct Level;

thread_local! {
    static LEVELS: Cell<u16> = const { Cell::new(0) };
}

impl Level {
    #[inline]
    fn enter() -> Result<Level> {
        let levels = LEVELS.get();
        if levels >= Rules::MOST_DEPTH {
            return Err(too_deep());
        }
        LEVELS.set(levels + 1);
        Ok(Level)
    }
}

impl Drop for Level {
    #[inline]
    fn drop(&mut self) {
        LEVELS.set(LEVELS.get() - 1);
    }
}

/// Appends space for the length of a document, which [`end`] fills in; returns its position.
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Ends the document that begins at `start`.
///
/// # Errors
/// Fails if the document is longer than 2 GiB.
#[inline]
pub fn end(out: &mut Vec<u8>, start: usize) -> Result<()> {
    out.push(0);
    patch_length(out, start)
}

/// Fills in the length of everything that was appended since `start`.
#[inline]
pub(crate) fn patch_length(out: &mut [u8], start: usize) -> Result<()> {
    let len = length(out.len() - start)?;
    out[start..start + 4].copy_from_slice(&len);
    Ok(())
}

/// Appends text and a NUL.
#[inline]
pub(crate) fn append_cstring(out: &mut Vec<u8>, text: &str) -> Result<()> {
    if memchr::memchr(0, text.as_bytes()).is_some() {
        return Err(Error::new(ErrorKind::ValueOutOfRange)
            .with_found(format!("{text:?}"))
            .with_expected("a key or pattern without a NUL"));
    }
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

/// Encodes a length for BSON.
///
/// # Errors
/// Fails if the length is more than `i32::MAX`.
#[inline]
pub fn length(len: usize) -> Result<[u8; 4]> {
    match i32::try_from(len) {
        Ok(len) => Ok(len.to_le_bytes()),
        Err(_) => Err(too_long(len)),
    }
}

#[cold]
fn too_long(len: usize) -> Error {
    unwritable(format!("{len} bytes"), "less than 2 GiB, the limit for a document, a text or bytes")
}

#[cold]
fn unwritable(found: String, expected: &str) -> Error {
    Error::new(ErrorKind::ValueOutOfRange).with_found(found).with_expected(expected)
}

/// Appends a string's payload.
#[inline]
pub(crate) fn append_string(out: &mut Vec<u8>, text: &str) -> Result<()> {
    out.extend_from_slice(&length(text.len() + 1)?);
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

/// Appends a binary's payload. The old subtype 2 has two lengths.
#[inline]
pub(crate) fn append_binary(out: &mut Vec<u8>, subtype: u8, bytes: &[u8]) -> Result<()> {
    let old = subtype == 2;
    out.extend_from_slice(&length(bytes.len() + if old { 4 } else { 0 })?);
    out.push(subtype);
    if old {
        out.extend_from_slice(&length(bytes.len())?);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends a constant number of bytes.
#[inline]
pub(super) fn fixed<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) -> Result<()> {
    out.extend_from_slice(&bytes);
    Ok(())
}

/// Implements types that are always written as the same type of value.
macro_rules! written {
    ($($type:ty, $kind:ident, |$value:ident, $out:ident| $write:expr;)*) => {
        $(impl ToBson for $type {
            #[inline]
            fn element_type(&self) -> ElementType {
                ElementType::$kind
            }

            #[inline]
            fn to_bson(&self, $out: &mut Vec<u8>) -> Result<()> {
                let $value = self;
                $write
            }
        })*
    };
}
pub(crate) use written;

written! {
    f64, Double, |value, out| fixed(out, value.to_le_bytes());
    f32, Double, |value, out| fixed(out, f64::from(*value).to_le_bytes());
    bool, Bool, |value, out| fixed(out, [u8::from(*value)]);
    i8, Int32, |value, out| fixed(out, i32::from(*value).to_le_bytes());
    i16, Int32, |value, out| fixed(out, i32::from(*value).to_le_bytes());
    i32, Int32, |value, out| fixed(out, value.to_le_bytes());
    i64, Int64, |value, out| fixed(out, value.to_le_bytes());
    u16, Int32, |value, out| fixed(out, i32::from(*value).to_le_bytes());
    u32, Int64, |value, out| fixed(out, i64::from(*value).to_le_bytes());
    u64, Int64, |value, out| fixed(out, checked(*value)?);
    i128, Int64, |value, out| fixed(out, checked(*value)?);
    u128, Int64, |value, out| fixed(out, checked(*value)?);
    isize, Int64, |value, out| fixed(out, checked(*value)?);
    usize, Int64, |value, out| fixed(out, checked(*value)?);
    str, String, |value, out| append_string(out, value);
    String, String, |value, out| append_string(out, value);
    char, String, |value, out| append_string(out, value.encode_utf8(&mut [0; 4]));
    SystemTime, DateTime, |value, out| fixed(out, millis(*value)?.to_le_bytes());
    (), Null, |_value, _out| Ok(());
}

/// Converts an integer to an `Int64`, if it fits.
#[inline]
fn checked<T: Copy + TryInto<i64> + std::fmt::Display>(value: T) -> Result<[u8; 8]> {
    match value.try_into() {
        Ok(value) => Ok(value.to_le_bytes()),
        Err(_) => Err(unwritable(value.to_string(), "a signed 64-bit integer, the widest type of BSON")),
    }
}

/// Converts a time to milliseconds since 1970, rounded down.
fn millis(time: SystemTime) -> Result<i64> {
    let millis = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()),
        Err(before) => i64::try_from(before.duration().as_nanos().div_ceil(1_000_000)).map(|millis| -millis),
    };
    millis.map_err(|_| unwritable(format!("{time:?}"), "a time less than 2^63 milliseconds since 1970"))
}

/// A single byte is a number.
impl ToBson for u8 {
    #[inline]
    fn element_type(&self) -> ElementType {
        ElementType::Int32
    }

    #[inline]
    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        i32::from(*self).to_bson(out)
    }

    #[inline]
    fn slice_element_type() -> ElementType {
        ElementType::Binary
    }

    #[inline]
    fn slice_to_bson(values: &[u8], out: &mut Vec<u8>) -> Result<()> {
        append_binary(out, 0, values)
    }
}

macro_rules! non_zero {
    ($($type:ty)*) => {
        $(impl ToBson for NonZero<$type> {
            #[inline]
            fn element_type(&self) -> ElementType {
                self.get().element_type()
            }

            #[inline]
            fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
                self.get().to_bson(out)
            }
        })*
    };
}

non_zero!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

/// Appends a pattern and its options, which must be in alphabetical order.
pub(crate) fn append_regex(out: &mut Vec<u8>, pattern: &str, options: &str) -> Result<()> {
    append_cstring(out, pattern)?;
    append_cstring(out, &sorted(options))
}

/// Returns the options of a regular expression in alphabetical order.
pub(crate) fn sorted(options: &str) -> Cow<'_, str> {
    if options.is_ascii() && options.as_bytes().is_sorted() {
        return Cow::Borrowed(options);
    }
    let mut letters: Vec<char> = options.chars().collect();
    letters.sort_unstable();
    Cow::Owned(letters.into_iter().collect())
}

/// The error for more nested documents and arrays than a reader can allow.
#[cold]
pub(crate) fn too_deep() -> Error {
    Error::new(ErrorKind::TooDeep)
        .with_found(format!("more than {} nested documents and arrays", Rules::MOST_DEPTH))
        .with_expected(format!("at most {}", Rules::MOST_DEPTH))
}
