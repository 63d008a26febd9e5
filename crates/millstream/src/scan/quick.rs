//! Values that are right and far from the end of the bytes: what nearly all are.
//!
//! There is no error here. `None` says that this is not the place to decide: the bytes end too soon, or the value is
//! rare or wrong. Then [`token`](super::token) decides.
//!
//! Digits are looked at 16 at a time, in two words of eight bytes. In a word, `byte ^ b'0'` is 0 to 9 for digits only,
//! and adding 0x76 to each byte carries into its highest bit for all others: the lowest of these bits tells how many
//! digits there are. Shifting the digits to the end of the 16 bytes fills with zeros in front of them. Two
//! multiplications then make eight digits a number: neighbours become pairs, and the pairs are summed with their
//! weights. No branch depends on how many digits a number has, since nobody could predict it.

use std::hint::select_unpredictable;

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
            _ => input.iter().take(SPACES).position(|&byte| !is_space(byte)),
        }
    }

    #[inline(always)]
    fn after(self, input: &[u8], end: usize) -> Option<usize> {
        is_space(*input.get(end)?).then_some(end)
    }
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

/// The number that the digits in front are, and how many they are; 0 is not told from none by the number.
#[inline(always)]
fn sixteen_digits(bytes: &[u8; 16]) -> (u64, usize) {
    let both = u128::from_le_bytes(*bytes);
    let (first, second) = (both as u64 ^ ZEROS, (both >> 64) as u64 ^ ZEROS);
    let (first_count, second_count) = (digit_count(first), digit_count(second));
    let count = select_unpredictable(first_count == 8, 8 + second_count, first_count);
    // Only of a count of 0 all 16 bytes must go, which a shift cannot do; that result is not used.
    let digits = (u128::from(second) << 64 | u128::from(first)) << ((128 - 8 * count) & 127);
    (eight_digit_number(digits as u64) * 100_000_000 + eight_digit_number((digits >> 64) as u64), count as usize)
}

/// The same, of up to eight digits.
#[inline(always)]
fn eight_digits(bytes: &[u8; 8]) -> (u64, usize) {
    let word = u64::from_le_bytes(*bytes) ^ ZEROS;
    let count = digit_count(word);
    // In two steps, since no digits at all means a shift by all 64 bits.
    (eight_digit_number(word << (4 * (8 - count)) << (4 * (8 - count))), count as usize)
}

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// How many of the bytes, from the first, are 0 to 9.
#[inline(always)]
fn digit_count(word: u64) -> u32 {
    const HIGHEST: u64 = u64::from_le_bytes([0x80; 8]);
    // A byte of 0x8a or more carries into its neighbour behind: too late to hide that it is none itself.
    let none = (word.wrapping_add(u64::from_le_bytes([0x76; 8])) | word) & HIGHEST;
    none.trailing_zeros() / 8
}

/// Eight bytes of 0 to 9, the first of them the most significant.
#[inline(always)]
fn eight_digit_number(word: u64) -> u64 {
    const EVERY_OTHER_PAIR: u64 = 0x0000_00ff_0000_00ff;
    // Bytes 0, 2, 4 and 6 become pairs of digits.
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    // The upper half of each product is what it adds to the number.
    let first_and_third = (pairs & EVERY_OTHER_PAIR).wrapping_mul(100 + (1_000_000 << 32));
    let second_and_fourth = (pairs >> 16 & EVERY_OTHER_PAIR).wrapping_mul(1 + (10_000 << 32));
    first_and_third.wrapping_add(second_and_fourth) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_ends_digits_at_every_place() {
        for byte in 0..=255 {
            for at in 0..16 {
                // Nor may matter what follows it.
                for after in [b'0', 0x8a, 0xff] {
                    let mut bytes = *b"1234567890123456";
                    bytes[at..].fill(after);
                    bytes[at] = byte;
                    let digits: String =
                        bytes.iter().map(|&byte| char::from(byte)).take_while(char::is_ascii_digit).collect();
                    let (number, count) = sixteen_digits(&bytes);
                    assert_eq!(count, digits.len(), "{bytes:?}");
                    if count > 0 {
                        assert_eq!(number, digits.parse().unwrap(), "{bytes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn eight_digits_of_every_count() {
        for count in 0..=8 {
            let mut bytes = *b"98765432";
            bytes[count..].fill(b' ');
            let number = std::str::from_utf8(&bytes[..count]).unwrap().parse().unwrap_or(0);
            assert_eq!(eight_digits(&bytes), (number, count));
        }
    }
}
