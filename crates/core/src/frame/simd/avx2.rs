//! The index with AVX2: like the AVX-512 one, but the matches of a mask are written four at a time.
//!
//! Two comparisons of 32 bytes produce a mask of 64 bits. If the 256 bytes of a group contain no match, nothing else is
//! done. Otherwise, for each mask, four ends are stored for the lowest bits, even if fewer bits are set: the next store
//! overwrites the excess, because only the number of matches moves the store position. Only a mask with more than four
//! bits set needs another round. (A round for each bit costs 1.7 to 2.1 times as much at 20 bytes a record.)

use super::quoted::{self, Carry, Found, Masks, Ops, Special};
use std::arch::x86_64::*;

/// The number of bytes that produce one mask of 64 bits.
const STEP: usize = 64;

/// The number of bytes that are examined before any end is stored.
const GROUP: usize = 4 * STEP;

/// Appends the end of every `byte` in `block`, plus `start`. The ends must not exceed `u32::MAX`.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) fn append(block: &[u8], byte: u8, start: u32, ends: &mut Vec<u32>) {
    debug_assert!(block.len() <= (u32::MAX - start) as usize);
    // Each step stores up to 64 lanes after the earlier matches, and there are no more matches than bytes.
    ends.reserve(block.len() + STEP);
    let (groups, rest) = block.as_chunks::<GROUP>();
    // The last group is padded with bytes that do not match.
    let mut last = [!byte; GROUP];
    last[..rest.len()].copy_from_slice(rest);

    let needle = _mm256_set1_epi8(byte as i8);
    let mut len = ends.len();
    let mut start = start;
    let out = ends.as_mut_ptr();
    for group in groups.iter().chain((!rest.is_empty()).then_some(&last)) {
        let mut equal = [_mm256_setzero_si256(); GROUP / 32];
        let mut any = _mm256_setzero_si256();
        for (equal, bytes) in equal.iter_mut().zip(group.as_chunks::<32>().0) {
            // SAFETY: the length of `bytes` is that of a register.
            let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
            *equal = _mm256_cmpeq_epi8(bytes, needle);
            any = _mm256_or_si256(any, *equal);
        }
        if _mm256_testz_si256(any, any) == 0 {
            for (i, [low, high]) in equal.as_chunks().0.iter().enumerate() {
                let low = _mm256_movemask_epi8(*low) as u32;
                let high = _mm256_movemask_epi8(*high) as u32;
                let mask = u64::from(high) << 32 | u64::from(low);
                // There are no matches after the end of the block, so a wrapped start is not used.
                let start = start.wrapping_add((i * STEP) as u32);
                // SAFETY: `len` is at most the old length and the number of bytes of the block, and space for 64 more
                // was reserved above.
                unsafe { store(out.add(len), mask, start) };
                len += mask.count_ones() as usize;
            }
        }
        start = start.wrapping_add(GROUP as u32);
    }
    // SAFETY: `len` elements were stored, without gaps, within the capacity.
    unsafe { ends.set_len(len) };
}

/// Stores the ends of the matches in `mask`, followed by up to four unused values.
///
/// # Safety
/// - `at` must be valid for writes of 64 `u32`.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn store(at: *mut u32, mut mask: u64, start: u32) {
    let count = mask.count_ones() as usize;
    let mut stored = 0;
    loop {
        for i in stored..stored + 4 {
            // A zero mask gives 64 here, which is an unused value.
            let end = start.wrapping_add(mask.trailing_zeros() + 1);
            // SAFETY: `stored` is a multiple of 4 below `count`, or 0, so `i` is below 64, for which the caller
            // guarantees the space.
            unsafe { at.add(i).write(end) };
            mask &= mask.wrapping_sub(1);
        }
        stored += 4;
        if stored >= count {
            return;
        }
    }
}

/// The operations for [`quoted`] regions.
#[derive(Clone, Copy)]
struct Quoted {
    /// The quote, LF and CR.
    needles: [__m256i; 3],
    /// All ones if the dialect has quotes.
    quotes: u64,
    delimiter: __m256i,
    largest: __m256i,
}

/// Returns a bit for each of 64 bytes that equals `needle`.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(low: __m256i, high: __m256i, needle: __m256i) -> u64 {
    let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, needle)) as u32;
    let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, needle)) as u32;
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the exclusive or of all bits up to each bit: the product with all ones, without carries.
#[inline]
#[target_feature(enable = "pclmulqdq")]
pub(super) fn parity(bits: u64) -> u64 {
    let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product) as u64
}

// SAFETY: the methods use the instructions of `append_quoted`, which is the only caller.
unsafe impl Ops for Quoted {
    #[inline(always)]
    unsafe fn new(special: Special) -> Quoted {
        // SAFETY: the caller guarantees the level.
        unsafe {
            let (needles, quotes) = special.needles();
            Quoted {
                needles: needles.map(|byte| _mm256_set1_epi8(byte as i8)),
                quotes,
                delimiter: _mm256_set1_epi8(special.delimiter as i8),
                largest: _mm256_setzero_si256(),
            }
        }
    }

    #[inline(always)]
    unsafe fn masks(&mut self, bytes: &[u8; 64]) -> Masks {
        // SAFETY: as above; `bytes` has the length of two registers.
        unsafe {
            let low = _mm256_loadu_si256(bytes.as_ptr().cast());
            let high = _mm256_loadu_si256(bytes.as_ptr().add(32).cast());
            self.largest = _mm256_max_epu8(self.largest, _mm256_max_epu8(low, high));
            let [quote, lf, cr] = self.needles;
            Masks { quote: equal(low, high, quote) & self.quotes, lf: equal(low, high, lf), cr: equal(low, high, cr) }
        }
    }

    #[inline(always)]
    unsafe fn delimiters(&self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: as for `masks`.
        unsafe {
            let low = _mm256_loadu_si256(bytes.as_ptr().cast());
            let high = _mm256_loadu_si256(bytes.as_ptr().add(32).cast());
            equal(low, high, self.delimiter)
        }
    }

    #[inline(always)]
    unsafe fn parity(&self, bits: u64) -> u64 {
        // SAFETY: as above.
        unsafe { parity(bits) }
    }

    #[inline(always)]
    unsafe fn store(&self, at: *mut u32, mask: u64, start: u32) {
        // SAFETY: as above; the caller guarantees the space.
        unsafe { store(at, mask, start.wrapping_sub(1)) }
    }

    #[inline(always)]
    unsafe fn may_be_mark(&self) -> bool {
        // SAFETY: as above.
        unsafe {
            let smallest = _mm256_set1_epi8(0xfe_u8 as i8);
            let large = _mm256_cmpeq_epi8(_mm256_max_epu8(self.largest, smallest), self.largest);
            _mm256_testz_si256(large, large) == 0
        }
    }
}

/// See [`quoted::append`].
#[target_feature(enable = "avx2,bmi1,popcnt,pclmulqdq")]
pub(super) fn append_quoted(special: Special, block: &[u8], start: u32, carry: &mut Carry, found: &mut Found) -> bool {
    // SAFETY: this function has the features of the level.
    unsafe { quoted::append::<Quoted>(special, block, start, carry, found) }
}
