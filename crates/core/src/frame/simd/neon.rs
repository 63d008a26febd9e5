//! NEON: four registers make one mask of 64 bits. NEON has no instruction that collects one bit of each byte, so each
//! byte keeps one bit by its position among eight, and pairwise sums bring the bits of eight bytes together.

use super::quoted::{self, Carry, Found, Masks, Ops, Special};
use std::arch::aarch64::*;

/// The operations for [`quoted`] regions.
#[derive(Clone, Copy)]
struct Quoted {
    /// The quote, LF and CR.
    needles: [uint8x16_t; 3],
    /// All ones if the dialect has quotes.
    quotes: u64,
    delimiter: uint8x16_t,
    /// A bit for each byte of eight.
    bits: uint8x16_t,
    largest: uint8x16_t,
}

/// Loads 64 bytes.
#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 64]) -> [uint8x16_t; 4] {
    // SAFETY: the length of `bytes` is that of four registers.
    [0, 16, 32, 48].map(|at| unsafe { vld1q_u8(bytes.as_ptr().add(at)) })
}

/// Returns a bit for each of 64 bytes that equals `needle`.
#[inline]
#[target_feature(enable = "neon")]
fn equal(bytes: [uint8x16_t; 4], needle: uint8x16_t, bits: uint8x16_t) -> u64 {
    let [a, b, c, d] = bytes.map(|bytes| vandq_u8(vceqq_u8(bytes, needle), bits));
    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
}

// SAFETY: the methods use the instructions of `append_quoted`, which is the only caller.
unsafe impl Ops for Quoted {
    #[inline(always)]
    unsafe fn new(special: Special) -> Quoted {
        let (needles, quotes) = special.needles();
        // SAFETY: the caller guarantees the level; the array has the length of a register.
        unsafe {
            Quoted {
                needles: needles.map(|byte| vdupq_n_u8(byte)),
                quotes,
                delimiter: vdupq_n_u8(special.delimiter),
                bits: vld1q_u8([1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128].as_ptr()),
                largest: vdupq_n_u8(0),
            }
        }
    }

    #[inline(always)]
    unsafe fn masks(&mut self, bytes: &[u8; 64]) -> Masks {
        // SAFETY: as above.
        unsafe {
            let bytes = load(bytes);
            self.largest = bytes.into_iter().fold(self.largest, |largest, bytes| vmaxq_u8(largest, bytes));
            let [quote, lf, cr] = self.needles.map(|needle| equal(bytes, needle, self.bits));
            Masks { quote: quote & self.quotes, lf, cr }
        }
    }

    #[inline(always)]
    unsafe fn delimiters(&self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: as above.
        unsafe { equal(load(bytes), self.delimiter, self.bits) }
    }

    #[inline(always)]
    unsafe fn parity(&self, bits: u64) -> u64 {
        quoted::parity(bits)
    }

    #[inline(always)]
    unsafe fn store(&self, at: *mut u32, mask: u64, start: u32) {
        // SAFETY: the caller guarantees the space.
        unsafe { quoted::store(at, mask, start) }
    }

    #[inline(always)]
    unsafe fn may_be_mark(&self) -> bool {
        // SAFETY: as above.
        unsafe { vmaxvq_u8(self.largest) >= 0xfe }
    }
}

/// See [`quoted::append`].
#[target_feature(enable = "neon")]
pub(super) fn append_quoted(special: Special, block: &[u8], start: u32, carry: &mut Carry, found: &mut Found) -> bool {
    // SAFETY: this function has the features of the level.
    unsafe { quoted::append::<Quoted>(special, block, start, carry, found) }
}
