//! Values that are right and far from the end of the bytes: what nearly all are.
//!
//! There is no error here. `None` says that this is not the place to decide: the bytes end too soon, or the value is
//! rare or wrong. Then [`token`](super::token) decides.

use super::digits::{eight_digits, sixteen_digits};
use super::{Separator, is_space, token::Value};

/// Bytes that a value needs in front of it to be decided here. It, white space before it and what ends it fit these.
pub(crate) const ROOM: usize = 96;

/// White space in front of a value: more is rare.
const SPACES: usize = 8;

/// The value at the front of `input`, and how many bytes it takes with what surrounds it.
#[inline(always)]
pub(crate) fn quick<T: Value>(input: &[u8], separator: Separator) -> Option<(T, usize)> {
    match separator {
        Separator::Space => T::quick(input, Space),
        Separator::Byte(byte) => T::quick(input, Byte::new(byte)?),
    }
}

/// A separator, as a type of its own: the compiler makes a version of the code for each.
pub trait Ends: Copy {
    /// Where the value begins.
    fn skip(self, input: &[u8]) -> Option<usize>;

    /// What is consumed with a value that ends at `end`, if it does end there.
    fn after(self, input: &[u8], end: usize) -> Option<usize>;
}

/// [`Separator::Space`].
#[derive(Clone, Copy)]
pub struct Space;

impl Ends for Space {
    #[inline(always)]
    fn skip(self, input: &[u8]) -> Option<usize> {
        // One byte in front is what nearly all values have, and none is what the first one has.
        match input {
            [first, ..] if *first > b' ' => Some(0),
            [first, second, ..] if is_space(*first) && *second > b' ' => Some(1),
            _ => skip_more(input),
        }
    }

    #[inline(always)]
    fn after(self, input: &[u8], end: usize) -> Option<usize> {
        is_space(*input.get(end)?).then_some(end)
    }
}

/// Out of the way of what nearly all values have.
#[cold]
fn skip_more(input: &[u8]) -> Option<usize> {
    input.iter().take(SPACES).position(|&byte| !is_space(byte))
}

/// [`Separator::Byte`].
#[derive(Clone, Copy)]
pub struct Byte(u8);

impl Byte {
    /// None for a byte that may be part of a number: there the end of the token must be found first.
    #[inline(always)]
    fn new(byte: u8) -> Option<Byte> {
        (!byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.')).then_some(Byte(byte))
    }
}

impl Ends for Byte {
    #[inline(always)]
    fn skip(self, _: &[u8]) -> Option<usize> {
        Some(0)
    }

    #[inline(always)]
    fn after(self, input: &[u8], end: usize) -> Option<usize> {
        match *input.get(end)? {
            byte if byte == self.0 => Some(end + 1),
            b'\n' => Some(end + 1),
            b'\r' if *input.get(end + 1)? == b'\n' => Some(end + 2),
            _ => None,
        }
    }
}

/// An integer without its type: whether it has a `-`, its magnitude, and how many bytes it takes. Of one that is not
/// `wide`, 16 digits are never needed.
#[inline(always)]
pub(super) fn integer<E: Ends>(input: &[u8], ends: E, signed: bool, wide: bool) -> Option<(bool, u64, usize)> {
    let input = input.first_chunk::<ROOM>()?;
    let at = ends.skip(input)?;
    let negative = signed && input[at] == b'-';
    let at = at + usize::from(negative);
    let (mut magnitude, mut count) = sixteen_digits(input[at..].first_chunk()?);
    if count == 0 || (count == 16 && !wide) {
        return None;
    }
    if count == 16 {
        let (more, more_count) = eight_digits(input[at + 16..].first_chunk()?);
        // Eight more may go on.
        if more_count == 8 {
            return None;
        }
        magnitude = magnitude.checked_mul(POWERS[more_count])?.checked_add(more)?;
        count += more_count;
    }
    Some((negative, magnitude, ends.after(input, at + count)?))
}

const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
