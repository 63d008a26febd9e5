//! Digits with AVX-512 IFMA: two instructions generate eight digits, so sixteen digits need no branch.
//!
//! ```text
//!   n < 10^8, lane k (1..=8):  c = floor(2^52 / 10^k)
//!   fraction = (n * c + c) mod 2^52        (n mod 10^k) / 10^k and a little more, as 52 binary places
//!   digit    = floor(fraction * 10)        the digit of n that counts 10^(k-1)
//! ```
//!
//! `vpmadd52luq` computes the first line, `vpmadd52huq` the second; it also adds the `'0'`. As `c` is rounded down,
//! `n * c` is too small by up to `n` units of the last place. The additional `c` compensates for that: it exceeds the
//! difference (the tightest case is k = 8: 45,035,996 units compared with 10^8 times the 0.28 that rounding removed),
//! and with it the fraction is still less than the next multiple of 10^-k, at which the next number's digits begin.
//!
//! Both halves of a sixteen-digit number are computed in parallel. The digits are then in the lowest bytes of 16 lanes.
//! One permutation collects them and drops the leading zeros: it begins at the first significant digit.
//!
//! # Why assembly
//! A function that uses other instructions than its caller cannot be inlined, and a call costs as much as generating
//! the digits. If the code is inlined, and its result is a length instead of a pointer, each number depends on the
//! previous one only through an addition. Records of random lengths take 7.3 ns with a call and a branch on eight
//! digits, and 5.0 ns with inlined assembly. For a counter, whose branch is always predicted, the times are 2.8 and 3.0
//! ns.

use std::arch::asm;
use std::mem::offset_of;

use super::{TEN_TO_16, TENS, portable};

/// Writes the digits of `n`, without leading zeros, and returns their number.
///
/// # Safety
/// As many bytes as it has digits, and [`SLACK`](crate::put::SLACK) more, can be written at `at`, and the CPU supports
/// AVX-512 F, VL, IFMA and VBMI, BMI2 and LZCNT.
#[inline]
pub(super) unsafe fn put_u64(at: *mut u8, n: u64) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { if n >= TEN_TO_16 { put_long(at, n) } else { put_short(at, n) } }
}

/// Writes numbers of more than sixteen digits, like [`put_u64`].
///
/// # Safety
/// The conditions of [`put_u64`] apply.
#[cold]
#[inline(never)]
unsafe fn put_long(at: *mut u8, n: u64) -> usize {
    // SAFETY: the same conditions hold. The upper part has 1 to 4 digits, and may write bytes that the lower part
    // overwrites.
    unsafe {
        let len = put_u64(at, n / TEN_TO_16);
        portable::put_sixteen(at.add(len), n % TEN_TO_16);
        len + 16
    }
}

/// All data that [`put_short`] reads.
#[repr(C, align(64))]
struct Constants {
    /// floor(2^52 / 10^k), from k = 8 on.
    c: [u64; 8],
    zero: u64,
    ten: u64,
    /// The positions of the digits: byte 8 * i of two vectors. The bytes after the last digit are arbitrary.
    lanes: [u8; 32],
    /// Powers of ten; the first is 0.
    tens: [u64; 20],
    /// The minimum number of digits of numbers with this many leading zeros, and 0 for the number 0. 1233 / 4096 is slightly
    /// more than log10(2), and exact enough for 64 bits.
    least: [u8; 65],
}

static CONSTANTS: Constants = {
    const ONE: u64 = 1 << 52;
    let (mut c, mut lanes, mut least) = ([0; 8], [0; 32], [0; 65]);
    let (mut i, mut power) = (0, 1);
    while i < 8 {
        power *= 10;
        c[7 - i] = ONE / power;
        i += 1;
    }
    let mut i = 0;
    while i < 64 {
        if i < 16 {
            lanes[i] = 8 * i as u8;
        }
        least[i] = (((64 - i) * 1233) >> 12) as u8;
        i += 1;
    }
    Constants { c, zero: b'0' as u64, ten: 10, lanes, tens: TENS, least }
};

/// Writes the digits of `n < 10^16`, without leading zeros, and returns their number.
///
/// # Safety
/// The conditions of [`put_u64`] apply.
#[inline(always)]
pub(super) unsafe fn put_short(at: *mut u8, n: u64) -> usize {
    debug_assert!(n < TEN_TO_16);
    let len;
    // SAFETY: the code reads only `CONSTANTS`, writes 16 bytes at `at`, which the caller guarantees because the slack is 16
    // bytes, and declares which registers it changes. `len` is 1 to 16, so 16 bytes from `16 - len` on are within the lanes.
    // Compilers that may not use AVX-512 do not know the registers from 16 on, which need no `vzeroupper` either.
    unsafe {
        asm!(
            // upper = n / 10^8, which is n * 0xabcc_7711_8461_cefd / 2^90; lower is the rest
            "mulx {upper}, {len}, {n}",
            "shr {upper}, 26",
            "imul {lower}, {upper}, -100000000",
            "add {lower}, {n}",
            // len = least[leading zeros of n], and one more if n has reached that power of ten
            "lzcnt {len}, {n}",
            "lea {table}, [rip + {k}]",
            "movzx {len:e}, byte ptr [{table} + {len} + {least}]",
            "cmp {n}, qword ptr [{table} + 8 * {len} + {tens}]",
            "sbb {len}, -1",
            "sub {table}, {len}",
            // the fractions, in zmm17 and zmm20
            "vmovdqa64 zmm16, [rip + {k} + {c}]",
            "vpbroadcastq zmm18, {upper}",
            "vpbroadcastq zmm19, {lower}",
            "vmovdqa64 zmm17, zmm16",
            "vpmadd52luq zmm17, zmm16, zmm18",
            "vmovdqa64 zmm20, zmm16",
            "vpmadd52luq zmm20, zmm16, zmm19",
            // the digits, in zmm18 and zmm19
            "vpbroadcastq zmm18, [rip + {k} + {zero}]",
            "vmovdqa64 zmm19, zmm18",
            "vpmadd52huq zmm18, zmm17, [rip + {k} + {ten}]{{1to8}}",
            "vpmadd52huq zmm19, zmm20, [rip + {k} + {ten}]{{1to8}}",
            "vmovdqu64 xmm16, [{table} + {lanes} + 16]",
            "vpermi2b zmm16, zmm18, zmm19",
            "vmovdqu64 [{to}], xmm16",
            k = sym CONSTANTS,
            c = const offset_of!(Constants, c),
            zero = const offset_of!(Constants, zero),
            ten = const offset_of!(Constants, ten),
            lanes = const offset_of!(Constants, lanes),
            tens = const offset_of!(Constants, tens),
            least = const offset_of!(Constants, least),
            n = in(reg) n,
            in("rdx") 0xabcc_7711_8461_cefd_u64,
            len = out(reg) len,
            upper = out(reg) _,
            lower = out(reg) _,
            table = out(reg) _,
            to = in(reg) at,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _, out("xmm20") _,
            options(nostack),
        );
    }
    len
}
