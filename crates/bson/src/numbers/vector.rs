//! Vectors: binary values of subtype 9, which specify their own number type.
//!
//! A vector consists of a header of two bytes (the type of the numbers, and the number of unused bits at the end) and
//! the numbers: signed bytes, 32-bit floating point numbers or single bits. The format is specified in "BSON Binary
//! Subtype 9 - Vector",
//! <https://github.com/mongodb/specifications/blob/master/source/bson-binary-vector/bson-binary-vector.md>. Data that
//! the specification declares invalid is rejected.

use crate::numbers::view::{Number, NumberType, View, append_numbers};
use crate::typed::to::length;
use crate::wire::cursor::bytes_text;
use crate::{Cursor, ElementType, FromBson, ToBson};
use millstream_core::{Error, ErrorKind, Result};
use std::fmt;

/// The subtype.
pub(crate) const VECTOR: u8 = 9;

const INT8: u8 = 0x03;
const PACKED_BIT: u8 = 0x10;
const FLOAT32: u8 = 0x27;

/// A vector that borrows the document's bytes.
///
/// ```
/// use millstream::bson::{Document, Vector};
/// // two numbers; the type of the value says "binary, subtype 9", its first byte "32-bit floating point"
/// let document = Document::new(b"\x17\0\0\0\x05v\0\x0a\0\0\0\x09\x27\0\0\0\x80\x3f\0\0\0\x40\0")?;
/// let Vector::Float32(numbers) = document.require("v")? else { panic!("another type") };
/// assert_eq!(numbers.to_vec(), [1.0, 2.0]);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Vector<'a> {
    /// Signed bytes.
    Int8(View<'a, i8>),
    /// 32-bit floating point numbers.
    Float32(View<'a, f32>),
    /// Single bits.
    PackedBit(Bits<'a>),
}

impl<'a> Vector<'a> {
    /// Reads the vector in the bytes of a binary value of subtype 9.
    ///
    /// # Errors
    /// [`DocumentInvalid`](ErrorKind::DocumentInvalid) for an invalid header, bytes after the last number, or unused
    /// bits that are not 0.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Vector<'a>> {
        let Some((&[number, padding], numbers)) = bytes.split_first_chunk() else {
            return Err(invalid(bytes_text(bytes.len()), "a vector, whose header has 2 bytes"));
        };
        match (number, padding) {
            (INT8, 0) => View::new(numbers).map(Vector::Int8),
            (FLOAT32, 0) if numbers.len().is_multiple_of(4) => View::new(numbers).map(Vector::Float32),
            (FLOAT32, 0) => Err(invalid(bytes_text(numbers.len()), "a multiple of 4, the size of a number")),
            (PACKED_BIT, 0..8) => Bits::new(numbers, padding).map(Vector::PackedBit),
            _ => Err(invalid(
                format!("a vector with the header 0x{number:02x} 0x{padding:02x}"),
                "0x03 0x00, 0x27 0x00, or 0x10 and the number of unused bits",
            )),
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Vector::Int8(numbers) => numbers.len(),
            Vector::Float32(numbers) => numbers.len(),
            Vector::PackedBit(bits) => bits.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the numbers, if they are of this type.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) if they are not.
    pub(crate) fn numbers<T: Number>(&self) -> Result<View<'a, T>> {
        match self {
            Vector::Int8(numbers) if T::TYPE == NumberType::I8 => View::new(numbers.as_bytes()),
            Vector::Float32(numbers) if T::TYPE == NumberType::F32 => View::new(numbers.as_bytes()),
            _ => Err(Error::new(ErrorKind::ShapeMismatch)
                .with_found(format!("a vector of {}", self.element_name()))
                .with_expected(format!("one of {}", T::TYPE))),
        }
    }

    fn element_name(&self) -> &'static str {
        match self {
            Vector::Int8(_) => NumberType::I8.name(),
            Vector::Float32(_) => NumberType::F32.name(),
            Vector::PackedBit(_) => "single bits",
        }
    }
}

/// For a vector, reads the numbers after its header.
impl<'a, T: Number> FromBson<'a> for View<'a, T> {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        if kind != ElementType::Binary {
            return Err(cursor.mismatch(kind, "numbers as bytes"));
        }
        let at = cursor.offset() as u64;
        let (subtype, bytes) = cursor.binary()?;
        let view = match subtype {
            VECTOR => Vector::from_bytes(bytes).and_then(|vector| vector.numbers()),
            _ => View::new(bytes),
        };
        view.map_err(|error| error.with_offset(at))
    }
}

impl<'a> FromBson<'a> for Vector<'a> {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        if kind != ElementType::Binary {
            return Err(cursor.mismatch(kind, "a vector"));
        }
        let at = cursor.offset() as u64;
        match cursor.binary()? {
            (VECTOR, bytes) => Vector::from_bytes(bytes).map_err(|error| error.with_offset(at)),
            (subtype, _) => Err(Error::new(ErrorKind::ShapeMismatch)
                .with_found(format!("bytes of subtype {subtype}"))
                .with_expected("a vector, which has subtype 9")
                .with_offset(at)),
        }
    }
}

impl ToBson for Vector<'_> {
    fn element_type(&self) -> ElementType {
        ElementType::Binary
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Vector::Int8(numbers) => append(out, INT8, 0, numbers.as_bytes()),
            Vector::Float32(numbers) => append(out, FLOAT32, 0, numbers.as_bytes()),
            Vector::PackedBit(bits) => append(out, PACKED_BIT, bits.padding, bits.bytes),
        }
    }
}

/// Single bits, eight per byte, starting with the highest.
///
/// ```
/// use millstream::bson::Bits;
/// let bits = Bits::new(&[0b1110_1110, 0b1110_0000], 4)?;
/// assert_eq!((bits.len(), bits.get(3), bits.get(12)), (12, Some(false), None));
/// assert_eq!(bits.iter().filter(|&bit| bit).count(), 9);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The number of unused bits of the last byte: 0 to 7, and 0 if there is no byte.
    padding: u8,
}

impl<'a> Bits<'a> {
    /// Interprets these bytes as bits, of which the last `padding` are unused.
    ///
    /// # Errors
    /// [`DocumentInvalid`](ErrorKind::DocumentInvalid) if the padding is greater than 7, if the padding is not 0
    /// although there are no bytes, or if an unused bit is not 0.
    pub fn new(bytes: &'a [u8], padding: u8) -> Result<Bits<'a>> {
        match bytes.last() {
            None if padding > 0 => Err(invalid(format!("{padding} unused bits without a byte"), "none")),
            _ if padding > 7 => Err(invalid(format!("{padding} unused bits"), "at most 7")),
            Some(&last) if last & ((1 << padding) - 1) != 0 => {
                Err(invalid(format!("0x{last:02x} for the last byte, of which {padding} bits are unused"), "0 in them"))
            }
            _ => Ok(Bits { bytes, padding }),
        }
    }

    /// The number of bits.
    pub fn len(&self) -> usize {
        self.bytes.len() * 8 - usize::from(self.padding)
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes; the unused bits of the last one are 0.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of unused bits of the last byte.
    pub fn padding(&self) -> u8 {
        self.padding
    }

    /// The bit at a position, counted from 0.
    pub fn get(&self, position: usize) -> Option<bool> {
        (position < self.len()).then(|| self.bytes[position / 8] & (0x80 >> (position % 8)) != 0)
    }

    /// Iterates over the bits.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + Clone + 'a {
        let bytes = self.bytes;
        (0..self.len()).map(move |position| bytes[position / 8] & (0x80 >> (position % 8)) != 0)
    }
}

impl fmt::Debug for Bits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits({})", self.len())
    }
}

/// Numbers to write as a vector: `i8`, `f32`, or `bool` for single bits.
///
/// ```
/// use millstream::bson::{ToBson, VectorOf};
/// let mut payload = Vec::new();
/// VectorOf(&[true, false, true]).to_bson(&mut payload)?;
/// assert_eq!(payload, [3, 0, 0, 0, 9, 0x10, 5, 0b1010_0000]);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorOf<'a, T>(pub &'a [T]);

impl ToBson for VectorOf<'_, i8> {
    fn element_type(&self) -> ElementType {
        ElementType::Binary
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        append_header(out, INT8, 0, self.0.len())?;
        append_numbers(out, self.0);
        Ok(())
    }
}

impl ToBson for VectorOf<'_, f32> {
    fn element_type(&self) -> ElementType {
        ElementType::Binary
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        append_header(out, FLOAT32, 0, size_of_val(self.0))?;
        append_numbers(out, self.0);
        Ok(())
    }
}

impl ToBson for VectorOf<'_, bool> {
    fn element_type(&self) -> ElementType {
        ElementType::Binary
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        let count = self.0.len().div_ceil(8);
        append_header(out, PACKED_BIT, (count * 8 - self.0.len()) as u8, count)?;
        out.extend(self.0.chunks(8).map(|bits| {
            bits.iter().enumerate().fold(0, |byte, (position, &bit)| byte | (u8::from(bit) << (7 - position)))
        }));
        Ok(())
    }
}

/// Appends the length, subtype and header of a vector whose numbers take `count` bytes.
fn append_header(out: &mut Vec<u8>, number: u8, padding: u8, count: usize) -> Result<()> {
    out.extend_from_slice(&length(count + 2)?);
    out.extend_from_slice(&[VECTOR, number, padding]);
    Ok(())
}

fn append(out: &mut Vec<u8>, number: u8, padding: u8, numbers: &[u8]) -> Result<()> {
    append_header(out, number, padding, numbers.len())?;
    out.extend_from_slice(numbers);
    Ok(())
}

#[cold]
fn invalid(found: impl Into<String>, expected: &str) -> Error {
    Error::new(ErrorKind::DocumentInvalid).with_found(found).with_expected(expected)
}
