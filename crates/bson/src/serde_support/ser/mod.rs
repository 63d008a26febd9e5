//! Serialises Rust types to documents with serde.
//!
//! [`to_buffer`] appends a document to a reusable buffer, [`to_vec`] creates a new vector, and [`to_writer`] writes the
//! document as one record, completely or not at all. Serialisation takes one pass: lengths are filled in when they are
//! known.
//!
//! | serde | is |
//! |---|---|
//! | i8, i16, i32, u8, u16 | int |
//! | i64, u32, and u64, i128, u128 as far as they fit | long; a value that does not fit fails with [`ValueOutOfRange`](millstream_core::ErrorKind::ValueOutOfRange) |
//! | f32, f64 | double |
//! | text, char, a variant without content | string |
//! | bytes | binData, subtype 0 |
//! | `None`, a unit | null |
//! | sequence, tuple | array |
//! | struct, map | object; keys may be text, integers, booleans and variants without content, and must not contain a NUL |
//! | a variant with content | object of one member |
//!
//! These are the types that the `bson` crate writes, so the bytes are the same. The types of the `bson` crate are
//! written as the values they represent, and so are [`ObjectId`](crate::ObjectId), [`DateTime`](crate::DateTime) and
//! similar types. At most 200 documents and arrays can be open at once.

mod extended;
mod json;
mod key;
mod types;
mod values;

pub(super) use json::extended;
pub(super) use types::Bytes;

use crate::serde_support::marker;
use crate::typed::to::{append_binary, append_string, begin, end, length};
use crate::wire::path::path_at;
use crate::{ElementType, Rules};
use extended::Extended;
use key::Key;
use millstream_core::{Error, ErrorKind, Result, WriteRecord};
use serde::ser::{self, Serialize, Serializer};
use std::cell::Cell;
use std::fmt::{self, Write as _};

/// Appends a document to a buffer. After an error the buffer is unchanged.
///
/// ```
/// use millstream::bson;
/// #[derive(serde::Serialize)]
/// struct Reading {
///     n: i32,
///     s: &'static str,
/// }
/// let mut buffer = Vec::new();
/// for n in 40..=42 {
///     buffer.clear();
///     bson::to_buffer(&mut buffer, &Reading { n, s: "hi" })?;
/// }
/// assert_eq!(buffer, b"\x16\0\0\0\x10n\0\x2a\0\0\0\x02s\0\x03\0\0\0hi\0\0");
///
/// let error = bson::to_buffer(&mut buffer, &[("n", u64::MAX)].into_iter().collect::<std::collections::HashMap<_,
/// _>>()); assert_eq!(error.unwrap_err().path(), Some("n"));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// [`ShapeMismatch`](ErrorKind::ShapeMismatch) for anything other than a document, and for errors of a type's own
/// `Serialize`; [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for values that BSON cannot represent;
/// [`TooDeep`](ErrorKind::TooDeep). The errors contain the key path.
#[inline]
pub fn to_buffer<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<()> {
    let start = buffer.len();
    let slot = Slot { out: buffer, type_at: None, depth: Rules::new().depth };
    match value.serialize(slot) {
        Ok(()) => Ok(()),
        Err(error) => Err(give_up(buffer, start, error)),
    }
}

/// Removes the appended bytes, after deriving the key path from them.
#[cold]
fn give_up(buffer: &mut Vec<u8>, start: usize, error: Error) -> Error {
    let document = &buffer[start..];
    let path = path_at(document, document.len());
    buffer.truncate(start);
    match path {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// Serialises a document to a new vector.
///
/// # Errors
/// As for [`to_buffer`].
#[inline]
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(128);
    to_buffer(&mut bytes, value)?;
    Ok(bytes)
}

/// Writes a document as one record, completely or, after an error, not at all.
///
/// ```
/// use millstream::{Writer, bson};
/// let mut writer = Writer::memory()?;
/// bson::to_writer(&mut writer, &std::collections::BTreeMap::from([("n", 42)]))?;
/// assert_eq!(writer.close()?.memory.unwrap(), b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0");
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// As for [`to_buffer`], and the errors of [`WriteRecord::write_record`].
pub fn to_writer<W: WriteRecord + ?Sized, T: Serialize + ?Sized>(writer: &mut W, value: &T) -> Result<()> {
    thread_local! {
        /// The buffer is taken out while it is in use, because a value's `Serialize` may itself write documents.
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    /// Larger buffers are freed.
    const KEPT: usize = 1 << 20;

    let mut bytes = SCRATCH.take();
    bytes.clear();
    let result = to_buffer(&mut bytes, value).and_then(|()| writer.write_record(&bytes));
    if bytes.capacity() <= KEPT {
        SCRATCH.set(bytes);
    }
    result
}

/// The type of an element whose value is not known yet. This type has a payload: because the payload is missing, an
/// error can be assigned to this element's path.
const UNKNOWN: u8 = ElementType::Int32 as u8;

/// The position of the next value, which is after its key.
struct Slot<'o> {
    out: &'o mut Vec<u8>,
    /// The position of the type; the root has none.
    type_at: Option<usize>,
    /// The number of further documents that may be opened.
    depth: u16,
}

impl<'o> Slot<'o> {
    /// Fills in the type.
    #[inline]
    fn announce(&mut self, kind: ElementType) -> Result<()> {
        match self.type_at {
            Some(at) => {
                self.out[at] = kind as u8;
                Ok(())
            }
            None if kind == ElementType::Document => Ok(()),
            None => Err(no_document(kind)),
        }
    }

    /// Writes a value whose payload has a constant length.
    #[inline]
    fn fixed<const N: usize>(mut self, kind: ElementType, payload: [u8; N]) -> Result<()> {
        self.announce(kind)?;
        self.out.extend_from_slice(&payload);
        Ok(())
    }

    /// Writes a long, if the value fits.
    #[inline]
    fn long<T: TryInto<i64> + fmt::Display + Copy>(self, value: T) -> Result<()> {
        match value.try_into() {
            Ok(value) => self.serialize_i64(value),
            Err(_) => Err(too_large(value)),
        }
    }

    #[inline]
    fn binary(mut self, subtype: u8, bytes: &[u8]) -> Result<()> {
        self.announce(ElementType::Binary)?;
        append_binary(self.out, subtype, bytes)
    }

    /// Opens a document or an array.
    #[inline]
    fn open(mut self, kind: ElementType) -> Result<Open<'o>> {
        self.announce(kind)?;
        if self.depth == 0 {
            return Err(too_deep());
        }
        let start = begin(self.out);
        Ok(Open { out: self.out, start, depth: self.depth - 1, type_at: None, index: Index::new() })
    }

    /// Opens a document whose only member has the name of the variant. The position is after that name.
    #[inline]
    fn open_variant(self, variant: &str, kind: ElementType) -> Result<OpenVariant<'o>> {
        let mut outer = self.open(ElementType::Document)?;
        let start = outer.start;
        let slot = outer.named(variant)?;
        let (type_at, depth) = (slot.type_at, slot.depth);
        let inner = Slot { out: outer.out, type_at, depth }.open(kind)?;
        Ok(OpenVariant { inner, outer: start })
    }
}

#[cold]
fn no_document(kind: ElementType) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found(format!("a value of type {kind}"))
        .with_expected("a struct or a map, since a document is written")
}

#[cold]
fn too_large(value: impl fmt::Display) -> Error {
    Error::new(ErrorKind::ValueOutOfRange)
        .with_found(value.to_string())
        .with_expected("an integer from -9223372036854775808 to 9223372036854775807")
}

#[cold]
fn too_deep() -> Error {
    let depth = Rules::new().depth;
    Error::new(ErrorKind::TooDeep)
        .with_found(format!("more than {depth} nested documents and arrays"))
        .with_expected(format!("at most {depth}"))
}

impl<'o> Serializer for Slot<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'o>;
    type SerializeTuple = Open<'o>;
    type SerializeTupleStruct = Open<'o>;
    type SerializeTupleVariant = OpenVariant<'o>;
    type SerializeMap = Open<'o>;
    type SerializeStruct = OpenStruct<'o>;
    type SerializeStructVariant = OpenVariant<'o>;

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<()> {
        self.fixed(ElementType::Bool, [value.into()])
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Result<()> {
        self.fixed(ElementType::Int32, value.to_le_bytes())
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<()> {
        self.fixed(ElementType::Int64, value.to_le_bytes())
    }

    fn serialize_i128(self, value: i128) -> Result<()> {
        self.long(value)
    }

    #[inline]
    fn serialize_u8(self, value: u8) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_u16(self, value: u16) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_u32(self, value: u32) -> Result<()> {
        self.serialize_i64(value.into())
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<()> {
        self.long(value)
    }

    fn serialize_u128(self, value: u128) -> Result<()> {
        self.long(value)
    }

    #[inline]
    fn serialize_f32(self, value: f32) -> Result<()> {
        self.serialize_f64(value.into())
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<()> {
        self.fixed(ElementType::Double, value.to_le_bytes())
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(mut self, value: &str) -> Result<()> {
        self.announce(ElementType::String)?;
        append_string(self.out, value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        self.binary(0, value)
    }

    #[inline]
    fn serialize_none(self) -> Result<()> {
        self.fixed(ElementType::Null, [])
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<()> {
        self.serialize_none()
    }

    #[inline]
    fn serialize_unit_struct(self, _name: &'static str) -> Result<()> {
        self.serialize_none()
    }

    #[inline]
    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<()> {
        match ElementType::from_marker(name) {
            Some(kind) => value.serialize(types::Ready { slot: self, kind, subtype: None }),
            None => match name {
                marker::FOREIGN_DOCUMENT => {
                    value.serialize(types::Ready { slot: self, kind: ElementType::Document, subtype: None })
                }
                marker::FOREIGN_ARRAY => {
                    value.serialize(types::Ready { slot: self, kind: ElementType::Array, subtype: None })
                }
                marker::FOREIGN_UUID => {
                    value.serialize(types::Ready { slot: self, kind: ElementType::Binary, subtype: Some(4) })
                }
                _ => value.serialize(self),
            },
        }
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let mut outer = self.open(ElementType::Document)?;
        value.serialize(outer.named(variant)?)?;
        outer.close()
    }

    #[inline]
    fn serialize_seq(self, _len: Option<usize>) -> Result<Open<'o>> {
        self.open(ElementType::Array)
    }

    #[inline]
    fn serialize_tuple(self, _len: usize) -> Result<Open<'o>> {
        self.open(ElementType::Array)
    }

    #[inline]
    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Open<'o>> {
        self.open(ElementType::Array)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<OpenVariant<'o>> {
        self.open_variant(variant, ElementType::Array)
    }

    #[inline]
    fn serialize_map(self, _len: Option<usize>) -> Result<Open<'o>> {
        self.open(ElementType::Document)
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<OpenStruct<'o>> {
        match Extended::kind_of(name) {
            None => self.open(ElementType::Document).map(OpenStruct::Document),
            Some(kind) => Extended::open(self, kind).map(OpenStruct::Extended),
        }
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<OpenVariant<'o>> {
        self.open_variant(variant, ElementType::Document)
    }

    /// Writes text that is produced piece by piece, without copying it.
    fn collect_str<T: fmt::Display + ?Sized>(mut self, value: &T) -> Result<()> {
        self.announce(ElementType::String)?;
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        if write!(Text(self.out), "{value}").is_err() {
            return Err(ser::Error::custom("a value without a text form"));
        }
        self.out.push(0);
        let len = length(self.out.len() - start - 4)?;
        self.out[start..start + 4].copy_from_slice(&len);
        Ok(())
    }
}

/// Accepts formatted text.
struct Text<'o>(&'o mut Vec<u8>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A document or an array that is being written.
struct Open<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    depth: u16,
    /// The position of the type of the value whose key has been written.
    type_at: Option<usize>,
    index: Index,
}

impl Open<'_> {
    /// Writes a key and returns the position after it.
    #[inline]
    fn named(&mut self, key: &str) -> Result<Slot<'_>> {
        let type_at = Some(self.out.len());
        self.out.push(UNKNOWN);
        key::append_key(self.out, key)?;
        Ok(Slot { out: self.out, type_at, depth: self.depth })
    }

    /// Like `named`, with the next key of an array.
    #[inline]
    fn indexed(&mut self) -> Slot<'_> {
        let type_at = Some(self.out.len());
        self.out.push(UNKNOWN);
        self.out.extend_from_slice(self.index.text());
        self.out.push(0);
        self.index.advance();
        Slot { out: self.out, type_at, depth: self.depth }
    }

    #[inline]
    fn close(self) -> Result<()> {
        end(self.out, self.start)
    }
}

/// The next key of an array: a number that is incremented as text.
struct Index {
    digits: [u8; 20],
    /// The position at which the text begins.
    from: u8,
}

impl Index {
    #[inline]
    fn new() -> Index {
        Index { digits: [b'0'; 20], from: 19 }
    }

    #[inline]
    fn text(&self) -> &[u8] {
        &self.digits[self.from as usize..]
    }

    #[inline]
    fn advance(&mut self) {
        for (place, digit) in self.digits.iter_mut().enumerate().rev() {
            if *digit != b'9' {
                *digit += 1;
                self.from = self.from.min(place as u8);
                return;
            }
            *digit = b'0';
        }
    }
}

/// A variant with content that is being written: a document or an array in a document with one member.
struct OpenVariant<'o> {
    inner: Open<'o>,
    /// The position at which the outer document begins.
    outer: usize,
}

impl OpenVariant<'_> {
    #[inline]
    fn close(self) -> Result<()> {
        end(self.inner.out, self.inner.start)?;
        end(self.inner.out, self.outer)
    }
}

/// A struct that is being written.
enum OpenStruct<'o> {
    Document(Open<'o>),
    Extended(Extended<'o>),
}

/// Implements the traits for array elements.
macro_rules! elements {
    ($($trait:ident $method:ident $type:ident |$self:ident| $open:expr;)*) => {
        $(impl ser::$trait for $type<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut $self, value: &T) -> Result<()> {
                value.serialize($open.indexed())
            }

            #[inline]
            fn end(self) -> Result<()> {
                self.close()
            }
        })*
    };
}

elements! {
    SerializeSeq serialize_element Open |self| self;
    SerializeTuple serialize_element Open |self| self;
    SerializeTupleStruct serialize_field Open |self| self;
    SerializeTupleVariant serialize_field OpenVariant |self| self.inner;
}

impl ser::SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.type_at = Some(self.out.len());
        self.out.push(UNKNOWN);
        key.serialize(Key { out: self.out })
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match self.type_at.take() {
            Some(at) => value.serialize(Slot { out: self.out, type_at: Some(at), depth: self.depth }),
            None => Err(ser::Error::custom("a value without a key")),
        }
    }

    #[inline]
    fn end(self) -> Result<()> {
        match self.type_at {
            None => self.close(),
            Some(_) => Err(ser::Error::custom("a key without a value")),
        }
    }
}

impl ser::SerializeStruct for OpenStruct<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        match self {
            OpenStruct::Document(open) => value.serialize(open.named(key)?),
            OpenStruct::Extended(extended) => value.serialize(extended.open.named(key)?),
        }
    }

    #[inline]
    fn end(self) -> Result<()> {
        match self {
            OpenStruct::Document(open) => open.close(),
            OpenStruct::Extended(extended) => extended.close(),
        }
    }
}

impl ser::SerializeStructVariant for OpenVariant<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        value.serialize(self.inner.named(key)?)
    }

    #[inline]
    fn end(self) -> Result<()> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_counts() {
        let mut index = Index::new();
        for i in 0..12_345 {
            assert_eq!(index.text(), i.to_string().as_bytes());
            index.advance();
        }
    }
}
