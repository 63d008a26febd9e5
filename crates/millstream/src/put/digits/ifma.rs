//! Digits by AVX-512 IFMA: eight of them by two instructions.
//!
//! ```text
//!   n < 10^8, lane k (1..=8):  c = floor(2^52 / 10^k)
//!   fraction = (n * c + c) mod 2^52        (n mod 10^k) / 10^k and a little more, as 52 binary places
//!   digit    = floor(fraction * 10)        the digit of n that counts 10^(k-1)
//! ```
//!
//! `vpmadd52luq` is the first line, `vpmadd52huq` the second; it also adds the `'0'`. As `c` is rounded down, `n * c`
//! misses up to `n` units of the last place. The one more `c` makes up for that: it is more than what is missing (for
//! k = 8, where it is tightest: 45,035,996 units against 10^8 times the 0.28 that were cut off), and with it the
//! fraction is still less than the next multiple of 10^-k, which is where the next number's digits begin.
//!
//! The digits then stand in the lowest bytes of 8 or 16 lanes. One permutation brings them together and leaves out the
//! leading zeros: it begins at the first digit that counts.

use std::arch::x86_64::{
    __m512i, _mm_loadl_epi64, _mm_loadu_si128, _mm_storel_epi64, _mm_storeu_si128, _mm512_castsi128_si512,
    _mm512_castsi512_si128, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_permutex2var_epi8,
    _mm512_permutexvar_epi8, _mm512_set1_epi64, _mm512_setr_epi64,
};

use super::{TEN_TO_8, TEN_TO_16, by_size, count_u32, count_u64};

by_size!(#[target_feature(enable = "avx512f,avx512ifma,avx512vbmi,bmi2")]);

/// Writes the last `len` digits of `n < 10^8`; scribbles on 8 bytes.
///
/// # Safety
/// 8 bytes at `at` can be written, and `len` is at most 8.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vbmi,bmi2")]
unsafe fn put_at_most_8(at: *mut u8, n: u32, len: usize) {
    debug_assert!(u64::from(n) < TEN_TO_8 && len <= 8);
    let digits = eight_digits(n.into());
    // SAFETY: `8 - len + 8` is within the table; the caller's promise. Both instructions take any address.
    unsafe {
        let lanes = _mm_loadl_epi64(LANES.as_ptr().add(8 - len).cast());
        let digits = _mm512_permutexvar_epi8(_mm512_castsi128_si512(lanes), digits);
        _mm_storel_epi64(at.cast(), _mm512_castsi512_si128(digits));
    }
}

/// Writes the last `len` digits of `n < 10^16`; scribbles on 16 bytes.
///
/// # Safety
/// 16 bytes at `at` can be written, and `len` is at most 16.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vbmi,bmi2")]
unsafe fn put_at_most_16(at: *mut u8, n: u64, len: usize) {
    debug_assert!(n < TEN_TO_16 && len <= 16);
    let (upper, lower) = (eight_digits(n / TEN_TO_8), eight_digits(n % TEN_TO_8));
    // SAFETY: `16 - len + 16` is within the table; the caller's promise. Both instructions take any address.
    unsafe {
        let lanes = _mm_loadu_si128(LANES.as_ptr().add(16 - len).cast());
        let digits = _mm512_permutex2var_epi8(upper, _mm512_castsi128_si512(lanes), lower);
        _mm_storeu_si128(at.cast(), _mm512_castsi512_si128(digits));
    }
}

/// Where the digits stand: byte 8 * i of one or two vectors. What comes behind the last digit is arbitrary.
static LANES: [u8; 32] = {
    let mut lanes = [0; 32];
    let mut i = 0;
    while i < 16 {
        lanes[i] = 8 * i as u8;
        i += 1;
    }
    lanes
};

/// The digits of `n < 10^8`, in the lowest byte of each lane, the first one in lane 0.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn eight_digits(n: u64) -> __m512i {
    const ONE: i64 = 1 << 52;
    let c = _mm512_setr_epi64(
        ONE / 100_000_000,
        ONE / 10_000_000,
        ONE / 1_000_000,
        ONE / 100_000,
        ONE / 10_000,
        ONE / 1_000,
        ONE / 100,
        ONE / 10,
    );
    let fraction = _mm512_madd52lo_epu64(c, _mm512_set1_epi64(n as i64), c);
    _mm512_madd52hi_epu64(_mm512_set1_epi64(b'0'.into()), fraction, _mm512_set1_epi64(10))
}
