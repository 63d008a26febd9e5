//! Writing arrays of numbers that are aligned in the file, so that they can be used as slices of a mapped file.
//!
//! BSON has no padding: a value begins where the previous one ends. To align an array, a padding member is written
//! before it, of which only the length matters. For every reader the padding is an ordinary binary value with a
//! separate key (`_pad_` and the key of the array), which the reader can ignore. The rest of the document does not
//! change. Padding is added only where necessary, and only on request: no other part of Millstream writes it.

use crate::numbers::view::{Number, NumbersOf};
use crate::typed::to::append_cstring;
use crate::{Builder, ElementType, append_element};
use millstream_core::Result;

/// The beginning of the key of a padding member; the key of the array follows.
pub const PADDING_KEY: &str = "_pad_";

/// The alignment of an array in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alignment {
    /// 8 bytes, which is enough for every type of number.
    #[default]
    Bytes8,
    /// 64 bytes, which is also enough for loads of whole vectors or cache lines.
    Bytes64,
}

impl Alignment {
    /// The alignment in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Alignment::Bytes8 => 8,
            Alignment::Bytes64 => 64,
        }
    }
}

/// Appends numbers as a binary value of subtype 0 whose first number is aligned, counted from the start of `out`. If
/// necessary, a padding member is written before it, which takes at most 12 bytes plus the key and the alignment.
///
/// Therefore `out` must begin at the start of the file or at an aligned position in it: it must be a single document,
/// or one that a writer starts there. The nesting of the array in the document does not matter. A mapped file begins at
/// a page boundary.
///
/// ```
/// use millstream::bson::{Alignment, Document, View, append_aligned};
/// let mut bytes = vec![0; 4];
/// append_aligned(&mut bytes, "weights", &[1.0f64, 2.0], Alignment::Bytes64)?;
/// bytes.push(0);
/// let len = (bytes.len() as u32).to_le_bytes();
/// bytes[..4].copy_from_slice(&len);
///
/// let view: View<f64> = Document::new(&bytes)?.require("weights")?;
/// let place = view.as_bytes().as_ptr().addr() - bytes.as_ptr().addr();
/// assert_eq!(place % 64, 0);
/// assert_eq!(view.to_vec(), [1.0, 2.0]);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// [`ValueOutOfRange`](millstream_core::ErrorKind::ValueOutOfRange) for a key that contains a NUL, or more than 2 GiB.
pub fn append_aligned<T: Number>(out: &mut Vec<u8>, key: &str, numbers: &[T], to: Alignment) -> Result<()> {
    // The length of the beginning of a binary value: type, key, NUL, length and subtype.
    let head = |key_len: usize| 1 + key_len + 1 + 4 + 1;
    let missing = |at: usize| at.next_multiple_of(to.bytes()) - at;
    let first = out.len() + head(key.len());
    if missing(first) > 0 {
        let padding = missing(first + head(PADDING_KEY.len() + key.len()));
        out.push(ElementType::Binary as u8);
        append_cstring(out, &[PADDING_KEY, key].concat())?;
        out.extend_from_slice(&(padding as u32).to_le_bytes());
        out.push(0);
        out.resize(out.len() + padding, 0);
    }
    append_element(out, key, &NumbersOf(numbers))
}

impl Builder {
    /// Appends numbers that are aligned, counted from the document's first byte, like the function [`append_aligned`].
    ///
    /// ```
    /// use millstream::bson::{Alignment, Builder, Document};
    /// let mut builder = Builder::new();
    /// builder.open_document("layer")?;
    /// builder.append_aligned("weights", &[1.0f32, 2.0], Alignment::Bytes64)?;
    /// builder.close()?;
    /// let bytes = builder.into_bytes()?;
    /// let layer: Document = Document::new(&bytes)?.require("layer")?;
    /// let payload = layer.find("weights")?.unwrap().offset() + 5; // after its length and its subtype
    /// assert_eq!(payload % 64, 0);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`append`](Builder::append).
    pub fn append_aligned<T: Number>(&mut self, key: &str, numbers: &[T], to: Alignment) -> Result<()> {
        self.append_with(|bytes| append_aligned(bytes, key, numbers, to))
    }
}
