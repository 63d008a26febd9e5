//! Formats integers: decimal, hexadecimal, padded and zero-filled.

use std::num::NonZero;

use super::{Part, Place, Spare, digits, put_checked};

/// The integers from 8 to 128 bits: the arguments of [`hex`]. Other types cannot implement this trait.
pub trait Integer: sealed::Integer {}

/// The arguments of [`pad`] and [`zero_fill`]: integers, and the result of [`hex`]. Other types cannot implement this
/// trait.
pub trait Number: sealed::Number {}

mod sealed {
    /// An integer with a representation of 64 or 128 bits.
    pub trait Integer: Number {
        type Wide: Wide;

        /// Returns the bits, in two's complement of the type's own width.
        fn bits(self) -> Self::Wide;

        const HEX_LEN: usize;
    }

    /// A number that consists of a sign and digits.
    pub trait Number: Copy {
        /// The maximum length of the text: the sign if the number can have one, and the digits.
        const MAX_LEN: usize;

        /// Whether the number can have a sign.
        const SIGNED: bool;

        /// Returns whether the text begins with `-`.
        fn is_negative(self) -> bool;

        /// Returns the number of digits.
        fn count(self) -> usize;

        /// Writes the digits and returns a pointer to their end.
        ///
        /// # Safety
        /// As many bytes as there are digits, and [`SLACK`](crate::put::SLACK) more, can be written at `at`.
        unsafe fn put_digits(self, at: *mut u8) -> *mut u8;
    }

    /// An unsigned integer whose digits are generated.
    pub trait Wide: Copy {
        fn count_hex(self) -> usize;

        /// # Safety
        /// The conditions of [`Number::put_digits`] apply.
        unsafe fn put_hex(self, at: *mut u8) -> *mut u8;
    }
}

use sealed::{Number as _, Wide as _};

macro_rules! integers {
    ($wide:ident $count:ident $put:ident $count_hex:ident $put_hex:ident: $($kind:ident)*) => {
        impl sealed::Wide for $wide {
            #[inline]
            fn count_hex(self) -> usize {
                digits::$count_hex(self)
            }

            #[inline]
            unsafe fn put_hex(self, at: *mut u8) -> *mut u8 {
                // SAFETY: the same conditions hold.
                unsafe { digits::$put_hex(at, self) }
            }
        }

        $(
            impl Integer for $kind {}

            impl Number for $kind {}

            impl sealed::Integer for $kind {
                type Wide = $wide;

                const HEX_LEN: usize = $kind::BITS as usize / 4;

                #[inline]
                fn bits(self) -> $wide {
                    // For a negative number, the cast sets the upper bits too.
                    self as $wide & ($wide::MAX >> ($wide::BITS - $kind::BITS))
                }
            }

            impl sealed::Number for $kind {
                const MAX_LEN: usize = Self::SIGNED as usize + $kind::MAX.ilog10() as usize + 1;

                const SIGNED: bool = $kind::MIN != 0;

                #[inline]
                #[allow(unused_comparisons)] // unsigned types have no negative values
                fn is_negative(self) -> bool {
                    self < 0
                }

                #[inline]
                fn count(self) -> usize {
                    digits::$count(self.abs_diff(0) as $wide)
                }

                #[inline]
                unsafe fn put_digits(self, at: *mut u8) -> *mut u8 {
                    // SAFETY: the same conditions hold.
                    unsafe { digits::$put(at, self.abs_diff(0) as $wide) }
                }
            }

            impl Part for $kind {
                #[inline]
                fn max_len(&self) -> usize {
                    $kind::MAX_LEN
                }

                fn put(&self, spare: &mut Spare<'_>) {
                    put_checked(self, spare);
                }

                #[inline]
                unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
                    // SAFETY: there is space for the longest text and the slack, so there is also space for the digits
                    // after the sign.
                    unsafe { self.put_digits(put_sign(place.at, *self)) }
                }
            }

            impl Part for NonZero<$kind> {
                #[inline]
                fn max_len(&self) -> usize {
                    $kind::MAX_LEN
                }

                fn put(&self, spare: &mut Spare<'_>) {
                    put_checked(&self.get(), spare);
                }

                #[inline]
                unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
                    // SAFETY: the same conditions hold.
                    unsafe { self.get().put_unchecked(place) }
                }
            }
        )*
    };
}

integers!(u64 count_u64 put_u64 count_hex_u64 put_hex_u64: u8 u16 u32 u64 usize i8 i16 i32 i64 isize);
integers!(u128 count_u128 put_u128 count_hex_u128 put_hex_u128: u128 i128);

/// Writes the sign, if there is one, and returns a pointer to its end.
///
/// # Safety
/// A byte at `at` can be written, with or without a sign.
#[inline]
unsafe fn put_sign<N: sealed::Number>(at: *mut u8, number: N) -> *mut u8 {
    if !N::SIGNED {
        return at;
    }
    // SAFETY: guaranteed by the caller. The byte is always written, and the result decides whether it is kept, so there
    // is no branch.
    unsafe {
        at.write(b'-');
        at.add(usize::from(number.is_negative()))
    }
}

/// Writes `byte` `count` times, and overwrites up to 15 bytes after them. Returns a pointer to their end.
///
/// # Safety
/// `count` + 15 bytes at `at` can be written.
#[inline]
unsafe fn put_repeated(at: *mut u8, byte: u8, count: usize) -> *mut u8 {
    for i in (0..count).step_by(16) {
        // SAFETY: `i` is less than `count`.
        unsafe { at.add(i).cast::<[u8; 16]>().write_unaligned([byte; 16]) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { at.add(count) }
}

/// An integer in hexadecimal digits: the result of [`hex`].
#[derive(Clone, Copy, Debug)]
pub struct Hex<I>(I);

/// Returns the integer in lower-case hexadecimal digits, without a prefix; for a negative number, its two's complement.
///
/// ```
/// use millstream::put::{hex, zero_fill};
/// use millstream::{Writer, put};
/// let mut out = Writer::memory()?;
/// put!(out, hex(48_879), ' ', hex(-1_i8), ' ', zero_fill(hex(10), 4))?;
/// assert_eq!(out.close()?.memory.unwrap(), b"beef ff 000a");
/// # Ok::<(), millstream::Error>(())
/// ```
#[inline]
pub fn hex<I: Integer>(integer: I) -> Hex<I> {
    Hex(integer)
}

impl<I: Integer> Number for Hex<I> {}

impl<I: Integer> sealed::Number for Hex<I> {
    const MAX_LEN: usize = I::HEX_LEN;

    const SIGNED: bool = false;

    #[inline]
    fn is_negative(self) -> bool {
        false
    }

    #[inline]
    fn count(self) -> usize {
        self.0.bits().count_hex()
    }

    #[inline]
    unsafe fn put_digits(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the same conditions hold.
        unsafe { self.0.bits().put_hex(at) }
    }
}

impl<I: Integer> Part for Hex<I> {
    #[inline]
    fn max_len(&self) -> usize {
        Self::MAX_LEN
    }

    fn put(&self, spare: &mut Spare<'_>) {
        put_checked(self, spare);
    }

    #[inline]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        // SAFETY: there is space for the longest text and the slack.
        unsafe { self.put_digits(place.at) }
    }
}

/// A number padded with spaces: the result of [`pad`].
#[derive(Clone, Copy, Debug)]
pub struct Pad<N> {
    number: N,
    width: u16,
}

/// Returns the number, preceded by spaces so that it is `width` bytes long; a longer number is not padded.
///
/// ```
/// use millstream::{Writer, put, put::pad};
/// let mut out = Writer::memory()?;
/// put!(out, pad(7, 4), pad(-42, 4), pad(12345, 4))?;
/// assert_eq!(out.close()?.memory.unwrap(), b"   7 -4212345");
/// # Ok::<(), millstream::Error>(())
/// ```
#[inline]
pub fn pad<N: Number>(number: N, width: u16) -> Pad<N> {
    Pad { number, width }
}

impl<N: Number> Part for Pad<N> {
    #[inline]
    fn max_len(&self) -> usize {
        N::MAX_LEN.max(self.width.into())
    }

    fn put(&self, spare: &mut Spare<'_>) {
        put_checked(self, spare);
    }

    #[inline]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        // SAFETY: spaces, sign and digits together are not longer than the longest text, in which there is a byte for
        // the sign even if it is not kept. The extra spaces are within the slack.
        unsafe {
            let at = put_repeated(place.at, b' ', fill_count(self.number, self.width));
            self.number.put_digits(put_sign(at, self.number))
        }
    }
}

/// A number padded with zeros: the result of [`zero_fill`].
#[derive(Clone, Copy, Debug)]
pub struct ZeroFill<N> {
    number: N,
    width: u16,
}

/// Returns the number with zeros before its digits so that it is `width` bytes long, including the sign; a longer
/// number is not padded.
///
/// ```
/// use millstream::{Writer, put, put::zero_fill};
/// let mut out = Writer::memory()?;
/// put!(out, zero_fill(7, 4), ' ', zero_fill(-42, 4), ' ', zero_fill(12345, 4))?;
/// assert_eq!(out.close()?.memory.unwrap(), b"0007 -042 12345");
/// # Ok::<(), millstream::Error>(())
/// ```
#[inline]
pub fn zero_fill<N: Number>(number: N, width: u16) -> ZeroFill<N> {
    ZeroFill { number, width }
}

impl<N: Number> Part for ZeroFill<N> {
    #[inline]
    fn max_len(&self) -> usize {
        N::MAX_LEN.max(self.width.into())
    }

    fn put(&self, spare: &mut Spare<'_>) {
        put_checked(self, spare);
    }

    #[inline]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        // SAFETY: as in `Pad`.
        unsafe {
            let at = put_sign(place.at, self.number);
            self.number.put_digits(put_repeated(at, b'0', fill_count(self.number, self.width)))
        }
    }
}

/// Returns the number of bytes to put before the digits for a text of `width` bytes, including its sign.
#[inline]
fn fill_count<N: Number>(number: N, width: u16) -> usize {
    usize::from(width).saturating_sub(number.count() + usize::from(number.is_negative()))
}
