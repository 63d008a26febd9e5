//! The fast path for valid values far from the end of the bytes, which nearly all values are.
//!
//! It reports no errors. `None` means that it cannot decide: the bytes end too soon, or the value is rare or invalid.
//! In that case, [`token`](super::token) decides.

use super::digits::{eight_digits, sixteen_digits};
use super::ends::{Byte, Ends, Space};
use super::{Separator, token::Value};

/// The number of bytes that must be available for a value to be decided here. The value, the white space before it and
/// its terminator fit into them.
pub const LOOKAHEAD: usize = 96;

/// Returns the value at the front of `input`, and the number of bytes that it takes, including separators.
#[inline(always)]
pub fn quick<T: Value>(input: &[u8], separator: Separator) -> Option<(T, usize)> {
    match separator {
        Separator::Space => T::quick(input, Space),
        Separator::Byte(byte) => T::quick(input, Byte::new(byte)?),
    }
}

/// Returns an integer without its type: whether it has a `-`, its magnitude, and the number of bytes that it takes. If
/// it is not `wide`, 16 digits are never needed.
#[inline(always)]
pub(super) fn integer<E: Ends>(input: &[u8], ends: E, signed: bool, wide: bool) -> Option<(bool, u64, usize)> {
    let input = input.first_chunk::<LOOKAHEAD>()?;
    let at = ends.skip(input)?;
    let negative = signed && input[at] == b'-';
    let at = at + usize::from(negative);
    let (mut magnitude, mut count) = sixteen_digits(input[at..].first_chunk()?);
    if count == 0 || (count == 16 && !wide) {
        return None;
    }
    if count == 16 {
        let (more, more_count) = eight_digits(input[at + 16..].first_chunk()?);
        // Eight more digits may follow.
        if more_count == 8 {
            return None;
        }
        magnitude = magnitude.checked_mul(POWERS[more_count])?.checked_add(more)?;
        count += more_count;
    }
    Some((negative, magnitude, ends.after(input, at + count)?))
}

const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
