//! Digits on any CPU: four at a time from a table, eight in a word, and a shift that drops the leading zeros.
//!
//! The cost is a table of 40 KiB. Computing eight digits in a word instead took 1.6 times as long for a counter, and
//! 1.25 times as long for random lengths, which use the whole table.

use super::{TEN_TO_8, TEN_TO_16, count_u32, count_u64};

/// Writes the digits of `n`, without leading zeros, and returns their number.
///
/// # Safety
/// As many bytes as it has digits, and [`SLACK`](crate::put::SLACK) more, can be written at `at`.
pub(super) unsafe fn put_u64(at: *mut u8, n: u64) -> usize {
    // SAFETY: the slack is 16 bytes. The upper part of the largest numbers has 1 to 4 digits, and overwrites bytes that
    // the lower part then writes.
    unsafe {
        if n < TEN_TO_8 {
            put_short(at, n)
        } else if n < TEN_TO_16 {
            let len = count_u64(n);
            put_at_most_16(at, n, len);
            len
        } else {
            let upper = (n / TEN_TO_16) as u32;
            let len = count_u32(upper);
            put_at_most_8(at, upper, len);
            put_sixteen(at.add(len), n % TEN_TO_16);
            len + 16
        }
    }
}

/// Does what [`put_u64`] does, for `n < 10^8`.
///
/// # Safety
/// The conditions of [`put_u64`] apply, and `n < 10^8`.
#[inline(always)]
pub(super) unsafe fn put_short(at: *mut u8, n: u64) -> usize {
    let len = count_u32(n as u32);
    // SAFETY: guaranteed by the caller; the slack is 16 bytes.
    unsafe { put_at_most_8(at, n as u32, len) };
    len
}

/// Writes sixteen digits of `n`.
///
/// # Safety
/// 16 bytes at `at` can be written, and `n < 10^16`.
pub(super) unsafe fn put_sixteen(at: *mut u8, n: u64) {
    // SAFETY: the same conditions hold.
    unsafe { put_at_most_16(at, n, 16) }
}

/// Writes the last `len` digits of `n < 10^8`; overwrites 8 bytes.
///
/// # Safety
/// 8 bytes at `at` can be written, `n < 10^8`, and `len` is 1 to 8.
#[inline]
unsafe fn put_at_most_8(at: *mut u8, n: u32, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let digits = eight_digits(n) >> (64 - 8 * len);
        at.cast::<[u8; 8]>().write_unaligned(digits.to_le_bytes());
    }
}

/// Writes the last `len` digits of `n < 10^16`; overwrites 16 bytes.
///
/// # Safety
/// 16 bytes at `at` can be written, `n < 10^16`, and `len` is 1 to 16.
#[inline]
unsafe fn put_at_most_16(at: *mut u8, n: u64, len: usize) {
    // SAFETY: guaranteed by the caller; both halves are less than 10^8.
    unsafe {
        let (upper, lower) = (eight_digits((n / TEN_TO_8) as u32), eight_digits((n % TEN_TO_8) as u32));
        let digits = (u128::from(lower) << 64 | u128::from(upper)) >> (128 - 8 * len);
        at.cast::<[u8; 16]>().write_unaligned(digits.to_le_bytes());
    }
}

/// Returns the digits of `n`, the first one in the lowest byte.
///
/// # Safety
/// `n < 10^8`.
#[inline]
unsafe fn eight_digits(n: u32) -> u64 {
    debug_assert!(u64::from(n) < TEN_TO_8);
    // `n / 10_000`: the factor exceeds 2^40 / 10,000 by 0.2224, which makes no difference below 4 * 10^8. A compiler does
    // not use the limit: it divides any 32-bit number, which takes more instructions.
    let upper = (u64::from(n) * 109_951_163) >> 40;
    let lower = u64::from(n) - upper * 10_000;
    // SAFETY: both are less than 10,000.
    let four = |n: u64| u64::from(unsafe { *FOUR_DIGITS.get_unchecked(n as usize) });
    four(upper) | four(lower) << 32
}

/// The digits of each number, the first one in the lowest byte.
static FOUR_DIGITS: [u32; 10_000] = {
    let mut table = [0; 10_000];
    let mut n = 0_usize;
    while n < 10_000 {
        table[n] = u32::from_le_bytes([
            b'0' + (n / 1_000) as u8,
            b'0' + (n / 100 % 10) as u8,
            b'0' + (n / 10 % 10) as u8,
            b'0' + (n % 10) as u8,
        ]);
        n += 1;
    }
    table
};
