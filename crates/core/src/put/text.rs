//! Strings, bytes, characters and booleans.

use std::borrow::Cow;

use super::{Part, Place, Spare, put_checked};

/// The length of the longest UTF-8 encoding of a character.
const LONGEST_CHAR: usize = 4;

impl Part for [u8] {
    #[inline]
    fn max_len(&self) -> usize {
        self.len()
    }

    fn put(&self, spare: &mut Spare<'_>) {
        spare.copy(self);
    }

    #[inline(always)]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        // SAFETY: there is space for `self.len()` bytes, and it is not part of `self`, which is borrowed. For a literal
        // the length is a constant once this is inlined, and the copy takes a store or two.
        unsafe {
            std::ptr::copy_nonoverlapping(self.as_ptr(), place.at, self.len());
            place.at.add(self.len())
        }
    }
}

/// Parts that are equivalent to the bytes they contain.
macro_rules! put_as_bytes {
    ($([$($parameter:tt)*] $part:ty, $as_bytes:ident;)*) => {$(
        impl<$($parameter)*> Part for $part {
            #[inline]
            fn max_len(&self) -> usize {
                self.len()
            }

            fn put(&self, spare: &mut Spare<'_>) {
                spare.copy(self.$as_bytes());
            }

            #[inline]
            unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
                let bytes: &[u8] = self.$as_bytes();
                // SAFETY: the same conditions hold.
                unsafe { bytes.put_unchecked(place) }
            }
        }
    )*};
}

put_as_bytes! {
    [] str, as_bytes;
    [] String, as_bytes;
    [] Cow<'_, str>, as_bytes;
    [] Vec<u8>, as_slice;
    [] Cow<'_, [u8]>, as_ref;
    [const N: usize] [u8; N], as_slice;
}

impl Part for char {
    #[inline]
    fn max_len(&self) -> usize {
        LONGEST_CHAR
    }

    fn put(&self, spare: &mut Spare<'_>) {
        put_checked(self, spare);
    }

    #[inline(always)]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        // SAFETY: there is space for four bytes, and they are initialised.
        unsafe {
            let spare = std::slice::from_raw_parts_mut(place.at, LONGEST_CHAR);
            place.at.add(self.encode_utf8(spare).len())
        }
    }
}

impl Part for bool {
    #[inline]
    fn max_len(&self) -> usize {
        "false".len()
    }

    fn put(&self, spare: &mut Spare<'_>) {
        put_checked(self, spare);
    }

    #[inline(always)]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        let text = if *self { b"true    " } else { b"false   " };
        let len = "false".len() - usize::from(*self);
        // SAFETY: there is space for five bytes and the slack.
        unsafe {
            place.at.cast::<[u8; 8]>().write_unaligned(*text);
            place.at.add(len)
        }
    }
}
