//! Generates decimal digits of integers with the fastest instructions that the CPU supports, and hexadecimal digits.
//!
//! The only branch on the number of digits is whether more than sixteen are needed (without AVX-512: more than eight),
//! and this rarely changes in a stream of numbers. A branch on the exact count would be mispredicted for every other
//! number.
//!
//! Each implementation for decimal digits is a module with a function `put_u64`, which returns a length. Each number is
//! compared with a limit, which decides between the inlined implementation and the others: a load from the cache, and a
//! branch that is nearly always predicted.

#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(test)]
mod naive;
mod portable;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The implementations for decimal digits, from the slowest to the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Way {
    /// A table of four digits.
    Portable = 1,
    /// AVX-512 IFMA and VBMI.
    Ifma = 2,
}

impl Way {
    /// Returns the best implementation that this CPU supports.
    fn best() -> Way {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
        {
            return Way::Ifma;
        }
        Way::Portable
    }

    /// Returns the implementation to use, which this CPU supports.
    #[inline]
    fn chosen() -> Way {
        const IFMA: u8 = Way::Ifma as u8;
        // The loaded value is independent of other memory, so no ordering is needed.
        let chosen = CHOSEN.load(Ordering::Relaxed);
        if chosen == IFMA {
            Way::Ifma
        } else if chosen == PORTABLE {
            Way::Portable
        } else {
            Way::choose()
        }
    }

    #[cold]
    fn choose() -> Way {
        let way = Way::asked_for(std::env::var("MILLSTREAM_DIGITS").ok().as_deref());
        CHOSEN.store(way as u8, Ordering::Relaxed);
        match way {
            Way::Portable => PORTABLE_BELOW.store(TEN_TO_8, Ordering::Relaxed),
            Way::Ifma => IFMA_BELOW.store(TEN_TO_16, Ordering::Relaxed),
        }
        way
    }

    /// Returns the implementation with this name if the CPU supports it, otherwise the best one.
    fn asked_for(name: Option<&str>) -> Way {
        match name {
            Some("portable") => Way::Portable,
            _ => Way::best(),
        }
    }
}

/// The chosen implementation, or 0 until the first number.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

const PORTABLE: u8 = Way::Portable as u8;

/// [`ifma`] puts the numbers below this one: none until the first number, and none if the CPU does not support it. So one
/// comparison decides whether it is the way and whether a number is short enough.
static IFMA_BELOW: AtomicU64 = AtomicU64::new(0);

/// [`portable`] puts the numbers below this one in place: none until the first number, and none if another implementation
/// was chosen.
static PORTABLE_BELOW: AtomicU64 = AtomicU64::new(0);

const TEN_TO_8: u64 = 100_000_000;
const TEN_TO_16: u64 = 10_000_000_000_000_000;

/// Returns the number of decimal digits of `n`.
#[inline]
pub(super) fn count_u64(n: u64) -> usize {
    let bits = u64::BITS - (n | 1).leading_zeros();
    // 1233 / 4096 is slightly more than log10(2), and exact enough for 64 bits.
    let full = (bits as usize * 1233) >> 12;
    full + usize::from(n >= TENS[full])
}

/// Powers of ten; the first is 0, so that the number 0 has a digit.
static TENS: [u64; 20] = {
    let mut tens = [0; 20];
    let mut power = 1;
    let mut k = 1;
    while k < tens.len() {
        power *= 10;
        tens[k] = power;
        k += 1;
    }
    tens
};

/// Returns the number of decimal digits of `n`, with fewer instructions than [`count_u64`]. For a number of a given bit
/// length, the table has the smaller of the two possible counts (in the upper half), and a value that makes the sum
/// carry if the number reaches the power of ten between them.
#[inline]
fn count_u32(n: u32) -> usize {
    ((u64::from(n) + COUNTS[(n | 1).ilog2() as usize]) >> 32) as usize
}

static COUNTS: [u64; 32] = {
    let mut counts = [0; 32];
    let mut bit = 0;
    while bit < 32 {
        let least = 1_u64 << bit;
        let (mut count, mut next) = (1, 10);
        while next <= least {
            (count, next) = (count + 1, next * 10);
        }
        let reached = next <= u32::MAX as u64;
        counts[bit] = if reached { ((count + 1) << 32) - next } else { count << 32 };
        bit += 1;
    }
    counts
};

/// Returns the number of decimal digits of `n`.
pub(super) fn count_u128(n: u128) -> usize {
    match u64::try_from(n) {
        Ok(n) => count_u64(n),
        Err(_) => 16 + count_u128(n / u128::from(TEN_TO_16)),
    }
}

/// Writes the decimal digits of `n` and returns a pointer to their end.
///
/// # Safety
/// As many bytes as it has digits, and [`SLACK`](super::SLACK) more, can be written at `at`.
#[inline(always)]
pub(super) unsafe fn put_u64(at: *mut u8, n: u64) -> *mut u8 {
    // SAFETY: guaranteed by the caller. If there are numbers below the limit, the CPU supports `ifma`, and they have at most
    // 16 digits. The limit of `portable` is at most 10^8.
    unsafe {
        // Each result is a length. A pointer could come from either implementation, and the compiler would not see that the
        // next record depends only on a sum.
        #[cfg(target_arch = "x86_64")]
        if n < IFMA_BELOW.load(Ordering::Relaxed) {
            return at.add(ifma::put_short(at, n));
        }
        if n < PORTABLE_BELOW.load(Ordering::Relaxed) {
            return at.add(portable::put_short(at, n));
        }
        at.add(put_otherwise(at, n))
    }
}

/// Writes the digits of a number that is not put in place, or of the first number, and returns their number.
///
/// # Safety
/// The conditions of [`put_u64`] apply.
#[inline(never)] // too long to be repeated for each number that is put
unsafe fn put_otherwise(at: *mut u8, n: u64) -> usize {
    // SAFETY: the same conditions hold; the CPU supports the implementation.
    unsafe { put_u64_by(Way::chosen(), at, n).offset_from_unsigned(at) }
}

/// # Safety
/// The conditions of [`put_u64`] apply, and this CPU supports that implementation.
#[inline]
unsafe fn put_u64_by(way: Way, at: *mut u8, n: u64) -> *mut u8 {
    // SAFETY: the same conditions hold.
    unsafe {
        let len = match way {
            #[cfg(target_arch = "x86_64")]
            Way::Ifma => ifma::put_u64(at, n),
            _ => portable::put_u64(at, n),
        };
        at.add(len)
    }
}

/// Writes the decimal digits of `n` and returns a pointer to their end.
///
/// # Safety
/// As many bytes as it has digits, and [`SLACK`](super::SLACK) more, can be written at `at`.
pub(super) unsafe fn put_u128(at: *mut u8, n: u128) -> *mut u8 {
    // SAFETY: guaranteed by the caller; the CPU supports the implementation.
    unsafe { put_u128_by(Way::chosen(), at, n) }
}

/// # Safety
/// The conditions of [`put_u128`] apply, and this CPU supports that implementation.
unsafe fn put_u128_by(way: Way, at: *mut u8, n: u128) -> *mut u8 {
    const TEN_TO_16: u128 = self::TEN_TO_16 as u128;
    // SAFETY: the same conditions hold; there are 16 fewer upper digits.
    unsafe {
        let Ok(n) = u64::try_from(n) else {
            let at = put_u128_by(way, at, n / TEN_TO_16);
            portable::put_sixteen(at, (n % TEN_TO_16) as u64);
            return at.add(16);
        };
        put_u64_by(way, at, n)
    }
}

/// Returns the number of hexadecimal digits of `n`.
#[inline]
pub(super) fn count_hex_u64(n: u64) -> usize {
    ((n | 1).ilog2() / 4 + 1) as usize
}

/// Returns the number of hexadecimal digits of `n`.
pub(super) fn count_hex_u128(n: u128) -> usize {
    ((n | 1).ilog2() / 4 + 1) as usize
}

/// Writes the hexadecimal digits of `n` and returns a pointer to their end.
///
/// # Safety
/// As many bytes as it has digits, and [`SLACK`](super::SLACK) more, can be written at `at`.
#[inline]
pub(super) unsafe fn put_hex_u64(at: *mut u8, n: u64) -> *mut u8 {
    let len = count_hex_u64(n);
    // The first significant digit is moved to the front.
    let n = n << (4 * (16 - len));
    let digits = [hex_8((n >> 32) as u32), hex_8(n as u32)];
    // SAFETY: the slack is 16 bytes.
    unsafe {
        at.cast::<[[u8; 8]; 2]>().write_unaligned(digits);
        at.add(len)
    }
}

/// Writes the hexadecimal digits of `n` and returns a pointer to their end.
///
/// # Safety
/// As many bytes as it has digits, and [`SLACK`](super::SLACK) more, can be written at `at`.
pub(super) unsafe fn put_hex_u128(at: *mut u8, n: u128) -> *mut u8 {
    let (upper, lower) = ((n >> 64) as u64, n as u64);
    // SAFETY: the same conditions hold; if there are upper digits, there are 16 lower ones.
    unsafe {
        if upper == 0 {
            return put_hex_u64(at, lower);
        }
        let at = put_hex_u64(at, upper);
        at.cast::<[[u8; 8]; 2]>().write_unaligned([hex_8((lower >> 32) as u32), hex_8(lower as u32)]);
        at.add(16)
    }
}

/// Returns eight hexadecimal digits.
#[inline]
fn hex_8(n: u32) -> [u8; 8] {
    // Each group of four bits is moved to its own byte, in steps by halves.
    let n = u64::from(n);
    let n = (n | n << 16) & 0x0000_ffff_0000_ffff;
    let n = (n | n << 8) & 0x00ff_00ff_00ff_00ff;
    let n = (n | n << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // Values of 10 and more carry into the fifth bit when 6 is added.
    let letters = ((n + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    let to_letter = u64::from(b'a' - b'0' - 10);
    (n + 0x3030_3030_3030_3030 + letters * to_letter).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns every implementation that this CPU supports.
    fn ways() -> impl Iterator<Item = Way> {
        [Way::Portable, Way::Ifma].into_iter().filter(|&way| way <= Way::best())
    }

    /// Returns the output. It checks the surrounding bytes: those before it are unchanged, and at most the slack after
    /// it is changed.
    fn put(len: usize, put: impl FnOnce(*mut u8) -> *mut u8) -> Vec<u8> {
        const MARGIN: usize = 8;
        let after = MARGIN + len + crate::put::SLACK;
        let mut bytes = vec![b'~'; after + MARGIN];
        let at = bytes[MARGIN..].as_mut_ptr();
        let end = put(at) as usize - at as usize;
        assert_eq!((&bytes[..MARGIN], &bytes[after..]), (&[b'~'; MARGIN][..], &[b'~'; MARGIN][..]));
        bytes[MARGIN..MARGIN + end].to_vec()
    }

    fn check_u64(n: u64) {
        let expected = naive::digits(n.into(), 10);
        for way in ways() {
            // SAFETY: `put` provides the space; the CPU supports this implementation.
            let digits = put(expected.len(), |at| unsafe { put_u64_by(way, at, n) });
            assert_eq!(digits, expected, "{n}, {way:?}");
        }
        // SAFETY: `put` provides the space.
        assert_eq!(put(expected.len(), |at| unsafe { put_u64(at, n) }), expected, "{n}");
        assert_eq!(count_u64(n), expected.len(), "{n}");
        assert!(n > u32::MAX.into() || count_u32(n as u32) == expected.len(), "{n}");
        let expected = naive::digits(n.into(), 16);
        // SAFETY: `put` provides the space.
        assert_eq!(put(expected.len(), |at| unsafe { put_hex_u64(at, n) }), expected, "{n}");
        assert_eq!(count_hex_u64(n), expected.len(), "{n}");
    }

    fn check_u128(n: u128) {
        let expected = naive::digits(n, 10);
        for way in ways() {
            // SAFETY: `put` provides the space; the CPU supports this implementation.
            let digits = put(expected.len(), |at| unsafe { put_u128_by(way, at, n) });
            assert_eq!(digits, expected, "{n}, {way:?}");
        }
        assert_eq!(count_u128(n), expected.len(), "{n}");
        let expected = naive::digits(n, 16);
        // SAFETY: `put` provides the space.
        assert_eq!(put(expected.len(), |at| unsafe { put_hex_u128(at, n) }), expected, "{n}");
        assert_eq!(count_hex_u128(n), expected.len(), "{n}");
    }

    #[test]
    fn small_numbers() {
        for n in 0..if cfg!(miri) { 120 } else { 1 << 16 } {
            check_u64(n);
        }
    }

    #[test]
    fn around_every_multiple_of_a_power() {
        let multiples = if cfg!(miri) { vec![1, 9] } else { (1..=100).collect() };
        for power in 0..=38 {
            for multiple in &multiples {
                let Some(n) = 10_u128.pow(power).checked_mul(*multiple) else { continue };
                for n in [n - 1, n, n.saturating_add(1)] {
                    check_u128(n);
                    let _ = u64::try_from(n).map(check_u64);
                }
            }
        }
    }

    #[test]
    fn around_every_power_of_two() {
        for bit in (0..128).step_by(if cfg!(miri) { 9 } else { 1 }) {
            for n in [(1_u128 << bit) - 1, 1 << bit, (1 << bit) + 1, u128::MAX << bit, u128::MAX >> bit] {
                check_u128(n);
                let _ = u64::try_from(n).map(check_u64);
            }
        }
    }

    /// [`ifma`] computes eight digits with fractions that are only just exact enough. A fraction that is not exact
    /// enough would give a wrong result where a digit changes. A deep run tests all values, other runs only the values
    /// where a digit before the last two changes.
    #[test]
    #[cfg_attr(miri, ignore = "tests numbers, not memory")]
    fn every_change_of_a_digit_in_eight() {
        let step = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 1 } else { 100 };
        for way in ways() {
            for hundred in (0..TEN_TO_8).step_by(step) {
                for n in [hundred, hundred + step as u64 - 1] {
                    let mut digits = [0; 25];
                    // SAFETY: it writes 9 bytes, with space for the slack; the CPU supports this implementation.
                    unsafe { put_u64_by(way, digits.as_mut_ptr(), TEN_TO_8 + n) };
                    let value = digits[..9].iter().fold(0, |value, digit| 10 * value + u64::from(digit - b'0'));
                    assert!(digits[..9].iter().all(u8::is_ascii_digit), "{n}: {digits:?}, {way:?}");
                    assert_eq!(value, TEN_TO_8 + n, "{way:?}");
                }
            }
        }
    }

    #[test]
    fn the_way_is_the_one_of_that_name_or_the_best() {
        assert_eq!(Way::asked_for(Some("portable")), Way::Portable);
        for name in [None, Some("ifma"), Some(""), Some("no such way")] {
            assert_eq!(Way::asked_for(name), Way::best());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 6 } else { 4096 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn any_number_of_any_length(n: u128, shift in 0_u32..128) {
            check_u128(n >> shift);
            check_u64((n as u64) >> (shift % 64));
        }
    }
}
