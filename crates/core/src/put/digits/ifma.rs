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
use std::arch::x86_64::{__m128i, _mm_storeu_si128};
use std::mem::offset_of;

use super::{TEN_TO_16, TENS, portable};

/// Writes the digits of `n`, without leading zeros, and returns their number.
///
/// # Safety
/// As many bytes as it has digits, and [`SLACK`](crate::put::SLACK) more, can be written at `at`, and the CPU supports
/// AVX-512 F, IFMA and VBMI, and BMI2.
#[inline(always)]
pub(super) unsafe fn put_u64(at: *mut u8, n: u64) -> usize {
    // SAFETY: guaranteed by the caller; the slack is 16 bytes.
    unsafe {
        if n >= TEN_TO_16 {
            return put_long(at, n);
        }
        let (digits, len) = digits_of(n);
        _mm_storeu_si128(at.cast(), digits);
        len
    }
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

/// All data that [`digits_of`] reads.
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
    /// The minimum number of digits of numbers with this highest bit. 1233 / 4096 is slightly more than log10(2), and
    /// exact enough for 64 bits.
    least: [u8; 64],
}

static CONSTANTS: Constants = {
    const ONE: u64 = 1 << 52;
    let (mut c, mut lanes, mut least) = ([0; 8], [0; 32], [0; 64]);
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
        least[i] = (((i + 1) * 1233) >> 12) as u8;
        i += 1;
    }
    Constants { c, zero: b'0' as u64, ten: 10, lanes, tens: TENS, least }
};

/// Returns the digits of `n < 10^16`, the first one in the lowest byte, and their number.
///
/// # Safety
/// The CPU supports AVX-512 F, IFMA and VBMI, and BMI2.
#[inline(always)]
unsafe fn digits_of(n: u64) -> (__m128i, usize) {
    debug_assert!(n < TEN_TO_16);
    let (digits, len);
    // SAFETY: the code reads only `CONSTANTS`, writes no memory, and declares which registers it changes. `len` is 1 to
    // 16, so 16 bytes from `16 - len` on are within the lanes. Compilers that may not use AVX do not know the content
    // of the upper parts of registers, so the code leaves zeros there.
    unsafe {
        asm!(
            // upper = n / 10^8, which is n * 0xabcc_7711_8461_cefd / 2^90; lower is the rest
            "mulx {upper}, {len}, {n}",
            "shr {upper}, 26",
            "imul {lower}, {upper}, -100000000",
            "add {lower}, {n}",
            // len = least[highest bit of n | 1], and one more if n has reached that power of ten
            "mov {len}, {n}",
            "or {len}, 1",
            "bsr {len}, {len}",
            "lea {at}, [rip + {k}]",
            "movzx {len:e}, byte ptr [{at} + {len} + {least}]",
            "cmp {n}, qword ptr [{at} + 8 * {len} + {tens}]",
            "sbb {len}, -1",
            "sub {at}, {len}",
            // the fractions, in zmm1 and zmm4
            "vmovdqa64 zmm0, [rip + {k} + {c}]",
            "vpbroadcastq zmm2, {upper}",
            "vpbroadcastq zmm3, {lower}",
            "vmovdqa64 zmm1, zmm0",
            "vpmadd52luq zmm1, zmm0, zmm2",
            "vmovdqa64 zmm4, zmm0",
            "vpmadd52luq zmm4, zmm0, zmm3",
            // the digits, in zmm2 and zmm3
            "vpbroadcastq zmm2, [rip + {k} + {zero}]",
            "vmovdqa64 zmm3, zmm2",
            "vpmadd52huq zmm2, zmm1, [rip + {k} + {ten}]{{1to8}}",
            "vpmadd52huq zmm3, zmm4, [rip + {k} + {ten}]{{1to8}}",
            "vmovdqu xmm0, [{at} + {lanes} + 16]",
            "vpermi2b zmm0, zmm2, zmm3",
            "vzeroupper",
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
            at = out(reg) _,
            out("xmm0") digits,
            out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _,
            out("xmm14") _, out("xmm15") _,
            options(pure, readonly, nostack),
        );
    }
    (digits, len)
}
