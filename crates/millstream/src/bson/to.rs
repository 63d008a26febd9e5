//! Values out of Rust types.

use super::{Array, DateTime, Decimal128, Document, ElementType, ObjectId, Timestamp};
use crate::error::{Error, ErrorKind, Result};

/// What can be written as a value: numbers, text, bytes, dates, documents and arrays here; structs by
/// `#[derive(ToBson)]`.
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
pub trait ToBson {
    /// The type that [`to_bson`](ToBson::to_bson) is going to write.
    fn element_type(&self) -> ElementType;

    /// Appends the payload.
    ///
    /// # Errors
    /// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for what BSON has no room for. What was appended until then
    /// stays there: who calls cuts it off.
    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()>;
}

/// Appends type, key and payload.
///
/// # Errors
/// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for a key with a NUL in it, and those of [`ToBson::to_bson`].
#[inline]
pub fn append_element<T: ToBson + ?Sized>(out: &mut Vec<u8>, key: &str, value: &T) -> Result<()> {
    out.push(value.element_type() as u8);
    append_cstring(out, key)?;
    value.to_bson(out)
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

/// A length as BSON writes it.
#[inline]
pub(crate) fn length(len: usize) -> Result<[u8; 4]> {
    match i32::try_from(len) {
        Ok(len) => Ok(len.to_le_bytes()),
        Err(_) => Err(too_long(len)),
    }
}

#[cold]
fn too_long(len: usize) -> Error {
    Error::new(ErrorKind::ValueOutOfRange)
        .with_found(format!("{len} bytes"))
        .with_expected("less than 2 GiB, the most that a document, a text or bytes can have")
}

/// Appends a string's payload.
#[inline]
pub(crate) fn append_string(out: &mut Vec<u8>, text: &str) -> Result<()> {
    out.extend_from_slice(&length(text.len() + 1)?);
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

/// Types that are always written as the same type of value, and how.
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

/// Appends bytes of a constant number.
#[inline]
fn fixed<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) -> Result<()> {
    out.extend_from_slice(&bytes);
    Ok(())
}

written! {
    f64, Double, |value, out| fixed(out, value.to_le_bytes());
    f32, Double, |value, out| fixed(out, f64::from(*value).to_le_bytes());
    bool, Bool, |value, out| fixed(out, [u8::from(*value)]);
    i8, Int32, |value, out| fixed(out, i32::from(*value).to_le_bytes());
    i16, Int32, |value, out| fixed(out, i32::from(*value).to_le_bytes());
    i32, Int32, |value, out| fixed(out, value.to_le_bytes());
    i64, Int64, |value, out| fixed(out, value.to_le_bytes());
    u8, Int32, |value, out| fixed(out, i32::from(*value).to_le_bytes());
    u16, Int32, |value, out| fixed(out, i32::from(*value).to_le_bytes());
    u32, Int64, |value, out| fixed(out, i64::from(*value).to_le_bytes());
    str, String, |value, out| append_string(out, value);
    String, String, |value, out| append_string(out, value);
    ObjectId, ObjectId, |value, out| fixed(out, value.0);
    DateTime, DateTime, |value, out| fixed(out, value.0.to_le_bytes());
    Timestamp, Timestamp, |value, out| fixed(out, value.to_bits().to_le_bytes());
    Decimal128, Decimal128, |value, out| fixed(out, value.0);
    Document<'_>, Document, |value, out| { out.extend_from_slice(value.as_bytes()); Ok(()) };
    Array<'_>, Array, |value, out| { out.extend_from_slice(value.as_bytes()); Ok(()) };
}

impl<T: ToBson + ?Sized> ToBson for &T {
    #[inline]
    fn element_type(&self) -> ElementType {
        (**self).element_type()
    }

    #[inline]
    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        (**self).to_bson(out)
    }
}

/// Null for `None`.
impl<T: ToBson> ToBson for Option<T> {
    #[inline]
    fn element_type(&self) -> ElementType {
        self.as_ref().map_or(ElementType::Null, ToBson::element_type)
    }

    #[inline]
    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        self.as_ref().map_or(Ok(()), |value| value.to_bson(out))
    }
}
