//! The index with AVX-512: 64 matches or none, in the same few instructions.
//!
//! For each 64 bytes, one comparison produces a mask of 64 bits, with a bit set for each match. If the masks of 256
//! bytes are all zero, nothing else is done. Otherwise, for each mask, `vpcompressb` compresses the numbers 1 to 64 by
//! the mask: the remaining numbers are, in order, the ends of the matches within their 64 bytes. They are widened to 32
//! bits, the position of the 64 bytes is added, and 16 of them are stored although most are usually unused: the next
//! store overwrites the excess, because only the number of matches moves the store position.
//!
//! So the only branches are "any match in 256 bytes" and "more than 16 in 64 bytes"; for records shorter than that and
//! longer than four bytes both are well predicted. (In a measurement that includes the copy of a read, a branch for
//! each 64 bytes takes 1.5 times as long at 80 bytes a record; storing without first examining 256 bytes takes 1.25
//! times as long at 2,000 bytes.)

use super::quoted::{self, Carry, Found, Masks, Ops, Special};
use std::arch::x86_64::*;

/// The number of bytes in one register, and of bits in its mask.
const STEP: usize = 64;

/// The number of bytes that are examined before any end is stored.
const GROUP: usize = 4 * STEP;

/// The numbers 1 to 64: the end of a match in each byte of a step.
static ENDS: [u8; STEP] = {
    let mut ends = [0; STEP];
    let mut i = 0;
    while i < STEP {
        ends[i] = i as u8 + 1;
        i += 1;
    }
    ends
};

/// Appends the end of every `byte` in `block`, plus `start`. The ends must not exceed `u32::MAX`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
pub(super) fn append(block: &[u8], byte: u8, start: u32, ends: &mut Vec<u32>) {
    debug_assert!(block.len() <= (u32::MAX - start) as usize);
    // Each step stores up to 64 lanes after the earlier matches, and there are no more matches than bytes.
    ends.reserve(block.len() + STEP);
    let (groups, rest) = block.as_chunks::<GROUP>();
    // The last group is padded with bytes that do not match.
    let mut last = [!byte; GROUP];
    last[..rest.len()].copy_from_slice(rest);

    let needle = _mm512_set1_epi8(byte as i8);
    // SAFETY: the length of `ENDS` is that of a register.
    let numbers = unsafe { _mm512_loadu_si512(ENDS.as_ptr().cast()) };
    let mut len = ends.len();
    let mut start = start;
    let out = ends.as_mut_ptr();
    for group in groups.iter().chain((!rest.is_empty()).then_some(&last)) {
        let mut masks = [0; GROUP / STEP];
        for (mask, step) in masks.iter_mut().zip(group.as_chunks::<STEP>().0) {
            // SAFETY: the length of `step` is that of a register.
            let bytes = unsafe { _mm512_loadu_si512(step.as_ptr().cast()) };
            *mask = _mm512_cmpeq_epi8_mask(bytes, needle);
        }
        if masks.iter().fold(0, |any, mask| any | mask) != 0 {
            for (i, mask) in masks.into_iter().enumerate() {
                // There are no matches after the end of the block, so a wrapped start is not used.
                let start = start.wrapping_add((i * STEP) as u32);
                // SAFETY: `len` is at most the old length and the number of bytes of the block, and space for 64 more
                // was reserved above.
                unsafe { store(out.add(len), mask, start, numbers) };
                len += mask.count_ones() as usize;
            }
        }
        start = start.wrapping_add(GROUP as u32);
    }
    // SAFETY: `len` elements were stored, without gaps, within the capacity.
    unsafe { ends.set_len(len) };
}

/// Stores the ends of the matches in `mask`, followed by unused values.
///
/// # Safety
/// - `at` must be valid for writes of 64 `u32`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
unsafe fn store(at: *mut u32, mask: u64, start: u32, numbers: __m512i) {
    let found = _mm512_maskz_compress_epi8(mask, numbers);
    let start = _mm512_set1_epi32(start as i32);
    let count = mask.count_ones();
    // SAFETY: 16 times 4 is at most 64, for which the caller guarantees the space.
    unsafe {
        store_16(at, start, _mm512_castsi512_si128(found));
        if count > 16 {
            store_16(at.add(16), start, _mm512_extracti32x4_epi32::<1>(found));
            if count > 32 {
                store_16(at.add(32), start, _mm512_extracti32x4_epi32::<2>(found));
                store_16(at.add(48), start, _mm512_extracti32x4_epi32::<3>(found));
            }
        }
    }
}

/// Stores 16 numbers, each widened and added to `start`.
///
/// # Safety
/// - `at` must be valid for writes of 16 `u32`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_16(at: *mut u32, start: __m512i, numbers: __m128i) {
    let ends = _mm512_add_epi32(start, _mm512_cvtepu8_epi32(numbers));
    // SAFETY: guaranteed by the caller.
    unsafe { _mm512_storeu_si512(at.cast(), ends) }
}

/// The operations for [`quoted`] regions.
#[derive(Clone, Copy)]
struct Quoted {
    /// The quote, LF and CR.
    needles: [__m512i; 3],
    /// All ones if the dialect has quotes.
    quotes: u64,
    delimiter: __m512i,
    numbers: __m512i,
    largest: __m512i,
}

// SAFETY: the methods use the instructions of `append_quoted`, which is the only caller.
unsafe impl Ops for Quoted {
    #[inline(always)]
    unsafe fn new(special: Special) -> Quoted {
        // SAFETY: the caller guarantees the level; the length of `ENDS` is that of a register.
        unsafe {
            let (needles, quotes) = special.needles();
            Quoted {
                needles: needles.map(|byte| _mm512_set1_epi8(byte as i8)),
                quotes,
                delimiter: _mm512_set1_epi8(special.delimiter as i8),
                numbers: _mm512_loadu_si512(ENDS.as_ptr().cast()),
                largest: _mm512_setzero_si512(),
            }
        }
    }

    #[inline(always)]
    unsafe fn masks(&mut self, bytes: &[u8; 64]) -> Masks {
        // SAFETY: as above; the length of `bytes` is that of a register.
        unsafe {
            let bytes = _mm512_loadu_si512(bytes.as_ptr().cast());
            self.largest = _mm512_max_epu8(self.largest, bytes);
            let [quote, lf, cr] = self.needles;
            Masks {
                quote: _mm512_cmpeq_epi8_mask(bytes, quote) & self.quotes,
                lf: _mm512_cmpeq_epi8_mask(bytes, lf),
                cr: _mm512_cmpeq_epi8_mask(bytes, cr),
            }
        }
    }

    #[inline(always)]
    unsafe fn delimiters(&self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: as for `masks`.
        unsafe { _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(bytes.as_ptr().cast()), self.delimiter) }
    }

    #[inline(always)]
    unsafe fn parity(&self, bits: u64) -> u64 {
        // SAFETY: as above.
        unsafe { super::avx2::parity(bits) }
    }

    #[inline(always)]
    unsafe fn store(&self, at: *mut u32, mask: u64, start: u32) {
        // SAFETY: as above; the caller guarantees the space.
        unsafe { store(at, mask, start.wrapping_sub(1), self.numbers) }
    }

    #[inline(always)]
    unsafe fn may_be_mark(&self) -> bool {
        // SAFETY: as above.
        unsafe { _mm512_cmpge_epu8_mask(self.largest, _mm512_set1_epi8(0xfe_u8 as i8)) != 0 }
    }
}

/// See [`quoted::append`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,pclmulqdq")]
pub(super) fn append_quoted(special: Special, block: &[u8], start: u32, carry: &mut Carry, found: &mut Found) -> bool {
    // SAFETY: this function has the features of the level.
    unsafe { quoted::append::<Quoted>(special, block, start, carry, found) }
}
