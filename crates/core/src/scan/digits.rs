//! Converts digits to a number, 16 at a time.
//!
//! First, the digits are counted. Then they are shifted to the end of their 16 bytes, which fills the bytes before them
//! with zeros. Finally all 16 are converted to a number. No branch depends on the number of digits, because the branch
//! could not be predicted.
//!
//! In words of eight bytes, `byte ^ b'0'` is 0 to 9 only for digits. Adding 0x76 to each byte carries into its highest
//! bit for all other bytes, and the position of the lowest of these bits is the count. Two multiplications convert
//! eight digits to a number: neighbours become pairs, and the pairs are summed with their weights. On x86-64, SSE2
//! (which every such CPU supports) does this with fewer instructions. This is the only unsafe code of this module, and
//! it reads no memory.

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub use portable::sixteen_digits;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use sse2::sixteen_digits;

/// Returns the number that the leading digits form, and how many digits there are. Without digits the number is
/// meaningless.
#[inline(always)]
pub(super) fn eight_digits(bytes: &[u8; 8]) -> (u64, usize) {
    let word = u64::from_le_bytes(*bytes) ^ ZEROS;
    let count = digit_count(word);
    // The shift has two steps, because without digits it is a shift by all 64 bits.
    (eight_digit_number(word << (4 * (8 - count)) << (4 * (8 - count))), count as usize)
}

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// Returns the number of leading bytes that are ASCII digits.
#[inline(always)]
fn digit_count(word: u64) -> u32 {
    const HIGHEST: u64 = u64::from_le_bytes([0x80; 8]);
    // A byte of 0x8a or more carries into the following byte. That does not matter, because the byte itself ends the
    // digits.
    let none = (word.wrapping_add(u64::from_le_bytes([0x76; 8])) | word) & HIGHEST;
    none.trailing_zeros() / 8
}

/// Converts eight bytes of 0 to 9, of which the first is the most significant.
#[inline(always)]
fn eight_digit_number(word: u64) -> u64 {
    const EVERY_OTHER_PAIR: u64 = 0x0000_00ff_0000_00ff;
    // Bytes 0, 2, 4 and 6 become pairs of digits.
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    // The upper half of each product is the value that it adds to the number.
    let first_and_third = (pairs & EVERY_OTHER_PAIR).wrapping_mul(100 + (1_000_000 << 32));
    let second_and_fourth = (pairs >> 16 & EVERY_OTHER_PAIR).wrapping_mul(1 + (10_000 << 32));
    first_and_third.wrapping_add(second_and_fourth) >> 32
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use std::arch::x86_64::*;

    /// Returns the number that the leading digits form, and how many digits there are. Without digits the number is
    /// meaningless.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn sixteen_digits(bytes: &[u8; 16]) -> (u64, usize) {
        // SAFETY: this is compiled only for CPUs that support SSE2.
        unsafe { by_sse2(bytes) }
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    fn by_sse2(bytes: &[u8; 16]) -> (u64, usize) {
        const ZEROS: u128 = u128::from_ne_bytes([b'0'; 16]);
        let word = u128::from_le_bytes(*bytes);
        let digits = _mm_xor_si128(vector(word), vector(ZEROS));
        // Any byte other than a digit is more than 9 and becomes 9 here.
        let are_digits = _mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits);
        let count = (!_mm_movemask_epi8(are_digits)).trailing_zeros();
        // The shift cannot remove all 16 bytes, which is only needed for a count of 0, whose result is not used.
        let digits = vector((word ^ ZEROS) << ((128 - 8 * count) & 127));
        let (tens, ones) = (_mm_mullo_epi16(digits, _mm_set1_epi16(10)), _mm_srli_epi16::<8>(digits));
        // The upper byte of each product is not used.
        let pairs = _mm_and_si128(_mm_add_epi16(tens, ones), _mm_set1_epi16(0xff));
        let fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
        let eights = _mm_madd_epi16(_mm_packs_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10_000));
        let eights = _mm_cvtsi128_si64(eights) as u64;
        ((eights & 0xffff_ffff) * 100_000_000 + (eights >> 32), count as usize)
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    fn vector(bytes: u128) -> __m128i {
        _mm_set_epi64x((bytes >> 64) as i64, bytes as i64)
    }
}

#[cfg(any(not(all(target_arch = "x86_64", target_feature = "sse2")), test))]
mod portable {
    use std::hint::select_unpredictable;

    use super::{ZEROS, digit_count, eight_digit_number};

    /// Returns the number that the leading digits form, and how many digits there are. Without digits the number is
    /// meaningless.
    #[inline(always)]
    pub fn sixteen_digits(bytes: &[u8; 16]) -> (u64, usize) {
        let both = u128::from_le_bytes(*bytes);
        let (first, second) = (both as u64 ^ ZEROS, (both >> 64) as u64 ^ ZEROS);
        let (first_count, second_count) = (digit_count(first), digit_count(second));
        let count = select_unpredictable(first_count == 8, 8 + second_count, first_count);
        // The shift cannot remove all 16 bytes, which is only needed for a count of 0, whose result is not used.
        let digits = (u128::from(second) << 64 | u128::from(first)) << ((128 - 8 * count) & 127);
        (eight_digit_number(digits as u64) * 100_000_000 + eight_digit_number((digits >> 64) as u64), count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_ends_digits_at_every_place() {
        // Miri takes minutes for all of these bytes.
        for byte in (0..=255).step_by(if cfg!(miri) { 23 } else { 1 }) {
            for at in 0..16 {
                // The bytes that follow must not change the result.
                for after in [b'0', 0x8a, 0xff] {
                    let mut bytes = *b"1234567890123456";
                    bytes[at..].fill(after);
                    bytes[at] = byte;
                    let digits: String =
                        bytes.iter().map(|&byte| char::from(byte)).take_while(char::is_ascii_digit).collect();
                    for (number, count) in [sixteen_digits(&bytes), portable::sixteen_digits(&bytes)] {
                        assert_eq!(count, digits.len(), "{bytes:?}");
                        if count > 0 {
                            assert_eq!(number, digits.parse::<u64>().unwrap(), "{bytes:?}");
                        }
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
