//! Viewing arrays of numbers that are stored as bytes, without a copy.
//!
//! In BSON a value directly follows the one before it, so numbers are rarely aligned in memory. A [`View`] reads
//! unaligned numbers as fast as aligned ones; only [`as_slice`](View::as_slice) requires alignment. The bytes are
//! little-endian; a big-endian machine swaps them when it reads them. There is no unsafe code: numbers are converted
//! from byte arrays, and `zerocopy` proves that aligned bytes can be viewed as numbers.

use crate::typed::to::{append_binary, length};
use crate::wire::cursor::bytes_text;
use crate::{ElementType, ToBson};
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::fmt;
use std::iter::FusedIterator;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

mod sealed {
    use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

    /// A number that consists only of its bytes.
    pub trait Raw: Sized {
        /// An array with the size of the number.
        type Bytes: Copy + Send + Sync + FromBytes + IntoBytes + Immutable + KnownLayout + 'static;

        /// Converts these bytes, least significant first, to a number.
        fn from_bytes(bytes: Self::Bytes) -> Self;

        /// Converts the number to bytes, least significant first.
        fn to_bytes(self) -> Self::Bytes;
    }
}

/// A number type for a [`View`]: `u8` to `u64`, `i8` to `i64`, `f32` and `f64`.
pub trait Number:
    sealed::Raw
    + Copy
    + Default
    + PartialEq
    + fmt::Debug
    + Send
    + Sync
    + FromBytes
    + IntoBytes
    + Immutable
    + KnownLayout
    + 'static
{
    /// The type as a value.
    const TYPE: NumberType;
}

/// Generates the code that is the same for all number types, and the matches with a variant for each.
macro_rules! numbers {
    ($($type:ident $kind:ident;)*) => {
        /// The number types for a [`View`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum NumberType {
            $(#[doc = concat!("`", stringify!($type), "`")] $kind,)*
        }

        impl NumberType {
            /// Every type.
            pub const ALL: &'static [NumberType] = &[$(NumberType::$kind),*];

            /// The size of a number in bytes.
            pub const fn size(self) -> usize {
                match self {
                    $(NumberType::$kind => size_of::<$type>(),)*
                }
            }

            /// The name of the type in Rust.
            pub const fn name(self) -> &'static str {
                match self {
                    $(NumberType::$kind => stringify!($type),)*
                }
            }
        }

        /// A [`View`] whose number type is known only at run time.
        ///
        /// ```
        /// use millstream::bson::{AnyView, NumberType};
        /// let view = AnyView::new(NumberType::I16, b"\x01\0\xff\xff")?;
        /// assert_eq!(view.len(), 2);
        /// let AnyView::I16(view) = view else { panic!("another type") };
        /// assert_eq!(view.to_vec(), [1, -1]);
        /// # Ok::<(), millstream::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug)]
        pub enum AnyView<'a> {
            $(#[doc = concat!("Numbers of type `", stringify!($type), "`.")] $kind(View<'a, $type>),)*
        }

        impl<'a> AnyView<'a> {
            /// Views these bytes as numbers of this type.
            ///
            /// # Errors
            /// As for [`View::new`].
            pub fn new(number: NumberType, bytes: &'a [u8]) -> Result<AnyView<'a>> {
                Ok(match number {
                    $(NumberType::$kind => AnyView::$kind(View::new(bytes)?),)*
                })
            }

            /// The type of the numbers.
            pub const fn number_type(&self) -> NumberType {
                match self {
                    $(AnyView::$kind(_) => NumberType::$kind,)*
                }
            }

            /// The number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(AnyView::$kind(view) => view.len(),)*
                }
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The bytes.
            pub fn as_bytes(&self) -> &'a [u8] {
                match self {
                    $(AnyView::$kind(view) => view.as_bytes(),)*
                }
            }
        }

        $(
            impl sealed::Raw for $type {
                type Bytes = [u8; size_of::<$type>()];

                #[inline(always)]
                fn from_bytes(bytes: Self::Bytes) -> $type {
                    $type::from_le_bytes(bytes)
                }

                #[inline(always)]
                fn to_bytes(self) -> Self::Bytes {
                    self.to_le_bytes()
                }
            }

            impl Number for $type {
                const TYPE: NumberType = NumberType::$kind;
            }
        )*
    };
}

numbers! {
    u8 U8;
    u16 U16;
    u32 U32;
    u64 U64;
    i8 I8;
    i16 I16;
    i32 I32;
    i64 I64;
    f32 F32;
    f64 F64;
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Numbers of type `T` in borrowed bytes, least significant byte first, aligned or not.
///
/// [`FromBson`](crate::FromBson) reads a view from a binary value. For subtype 9, a [`Vector`](crate::Vector), the
/// view contains the numbers after the header, which must have this type; for any other subtype, it contains all
/// bytes. [`ToBson`] writes a view as a binary value of subtype 0.
///
/// ```
/// use millstream::bson::{Document, View};
/// let document = Document::new(b"\x15\0\0\0\x05a\0\x08\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0")?;
/// let view: View<f32> = document.require("a")?;
/// assert_eq!(view.get(1), Some(2.0));
/// assert_eq!(view.iter().sum::<f32>(), 3.0);
/// # Ok::<(), millstream::Error>(())
/// ```
pub struct View<'a, T: Number> {
    /// The bytes of each number, which do not need to be aligned.
    numbers: &'a [T::Bytes],
}

impl<'a, T: Number> View<'a, T> {
    /// Views these bytes as numbers.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) if the number of bytes is not a multiple of the size of a number.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<View<'a, T>> {
        match <[T::Bytes]>::ref_from_bytes(bytes) {
            Ok(numbers) => Ok(View { numbers }),
            Err(_) => Err(bad_count(bytes.len(), T::TYPE)),
        }
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.numbers.as_bytes()
    }

    /// The numbers as a slice, without a copy, if they are aligned for their type and the machine is little-endian (or
    /// each number has only one byte).
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        if cfg!(target_endian = "big") && size_of::<T>() > 1 {
            return None;
        }
        <[T]>::ref_from_bytes(self.as_bytes()).ok()
    }

    /// The number at a position, counted from 0.
    #[inline]
    pub fn get(&self, position: usize) -> Option<T> {
        self.numbers.get(position).map(|bytes| T::from_bytes(*bytes))
    }

    /// A view of the numbers from one position up to, but not including, another.
    ///
    /// ```
    /// use millstream::bson::View;
    /// let view = View::<u16>::new(b"\x01\0\x02\0\x03\0")?;
    /// assert_eq!(view.part(1..3).unwrap().to_vec(), [2, 3]);
    /// assert!(view.part(1..4).is_none());
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn part(&self, positions: std::ops::Range<usize>) -> Option<View<'a, T>> {
        Some(View { numbers: self.numbers.get(positions)? })
    }

    /// Iterates over the numbers. A loop over them is as fast as a loop over a slice.
    #[inline]
    pub fn iter(&self) -> Numbers<'a, T> {
        Numbers(self.numbers.iter())
    }

    /// The numbers in groups of `N`, and the remaining ones, for loops with several accumulators.
    ///
    /// ```
    /// use millstream::bson::View;
    /// let view = View::<u16>::new(b"\x01\0\x02\0\x03\0\x04\0\x05\0")?;
    /// let (pairs, rest) = view.groups::<2>();
    /// let sums = pairs.fold([0; 2], |sums, pair| [sums[0] + pair[0], sums[1] + pair[1]]);
    /// assert_eq!((sums, rest.get(0)), ([4, 6], Some(5)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[inline]
    pub fn groups<const N: usize>(&self) -> (impl ExactSizeIterator<Item = [T; N]> + Clone + 'a, View<'a, T>) {
        let (groups, rest) = self.numbers.as_chunks::<N>();
        (groups.iter().map(|bytes| bytes.map(T::from_bytes)), View { numbers: rest })
    }

    /// The numbers as a slice: borrowed if [`as_slice`](View::as_slice) succeeds, otherwise copied.
    pub fn to_cow(&self) -> Cow<'a, [T]> {
        match self.as_slice() {
            Some(slice) => Cow::Borrowed(slice),
            None => Cow::Owned(self.to_vec()),
        }
    }

    /// Copies the numbers to an aligned vector.
    pub fn to_vec(&self) -> Vec<T> {
        // Each number is written once, to memory that is not zeroed first.
        self.numbers.iter().map(|bytes| T::from_bytes(*bytes)).collect()
    }

    /// Copies all numbers to memory of the same length.
    ///
    /// # Errors
    /// [`ArgumentInvalid`](ErrorKind::ArgumentInvalid) if the lengths differ.
    pub fn copy_to(&self, to: &mut [T]) -> Result<()> {
        if to.len() != self.len() {
            return Err(Error::new(ErrorKind::ArgumentInvalid)
                .with_found(format!("space for {} numbers", to.len()))
                .with_expected(format!("space for exactly {}", self.len())));
        }
        for (to, bytes) in to.iter_mut().zip(self.numbers) {
            *to = T::from_bytes(*bytes);
        }
        Ok(())
    }
}

#[cold]
fn bad_count(count: usize, number: NumberType) -> Error {
    Error::new(ErrorKind::ShapeMismatch)
        .with_found(bytes_text(count))
        .with_expected(format!("a multiple of {}, the size of {number}", number.size()))
}

impl<T: Number> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Number> Copy for View<'_, T> {}

impl<T: Number> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} numbers of type {})", self.len(), T::TYPE)
    }
}

/// Compares the numbers with their own equality: NaN is not equal to itself, and -0.0 equals 0.0.
impl<T: Number> PartialEq for View<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Number> IntoIterator for View<'a, T> {
    type Item = T;
    type IntoIter = Numbers<'a, T>;

    fn into_iter(self) -> Numbers<'a, T> {
        self.iter()
    }
}

impl<'a, T: Number> IntoIterator for &View<'a, T> {
    type Item = T;
    type IntoIter = Numbers<'a, T>;

    fn into_iter(self) -> Numbers<'a, T> {
        self.iter()
    }
}

/// Writes a binary value of subtype 0.
impl<T: Number> ToBson for View<'_, T> {
    fn element_type(&self) -> ElementType {
        ElementType::Binary
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        append_binary(out, 0, self.as_bytes())
    }
}

/// An iterator over the numbers of a [`View`].
#[derive(Clone, Debug)]
pub struct Numbers<'a, T: Number>(std::slice::Iter<'a, T::Bytes>);

impl<T: Number> Iterator for Numbers<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.next().map(|bytes| T::from_bytes(*bytes))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }

    #[inline]
    fn nth(&mut self, count: usize) -> Option<T> {
        self.0.nth(count).map(|bytes| T::from_bytes(*bytes))
    }

    // `sum` and `for_each` call this method. It uses the slice's loop, which the compiler vectorises.
    #[inline]
    fn fold<B, F: FnMut(B, T) -> B>(self, start: B, mut step: F) -> B {
        self.0.fold(start, |sum, bytes| step(sum, T::from_bytes(*bytes)))
    }
}

impl<T: Number> DoubleEndedIterator for Numbers<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        self.0.next_back().map(|bytes| T::from_bytes(*bytes))
    }
}

impl<T: Number> ExactSizeIterator for Numbers<'_, T> {}

impl<T: Number> FusedIterator for Numbers<'_, T> {}

/// Numbers to write as a binary value of subtype 0, which a [`View`] can read.
///
/// ```
/// use millstream::bson::{NumbersOf, ToBson, View, append_element};
/// let mut bytes = vec![0; 4];
/// append_element(&mut bytes, "a", &NumbersOf(&[1.5f32, 2.5]))?;
/// # bytes.push(0);
/// # let len = (bytes.len() as u32).to_le_bytes();
/// # bytes[..4].copy_from_slice(&len);
/// # let document = millstream::bson::Document::new(&bytes)?;
/// # assert_eq!(document.require::<View<f32>>("a")?.to_vec(), [1.5, 2.5]);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumbersOf<'a, T>(pub &'a [T]);

impl<T: Number> ToBson for NumbersOf<'_, T> {
    fn element_type(&self) -> ElementType {
        ElementType::Binary
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&length(size_of_val(self.0))?);
        out.push(0);
        append_numbers(out, self.0);
        Ok(())
    }
}

/// Appends the bytes of each number, least significant first.
pub(crate) fn append_numbers<T: Number>(out: &mut Vec<u8>, numbers: &[T]) {
    if cfg!(target_endian = "little") {
        out.extend_from_slice(numbers.as_bytes());
    } else {
        for number in numbers {
            out.extend_from_slice(number.to_bytes().as_bytes());
        }
    }
}
