//! Generates digits in the simplest way: the reference for the fast implementations.

/// Returns the digits of `n` in a base of at most 16.
pub(super) fn digits(mut n: u128, base: u128) -> Vec<u8> {
    let mut digits = Vec::new();
    loop {
        digits.insert(0, b"0123456789abcdef"[(n % base) as usize]);
        n /= base;
        if n == 0 {
            return digits;
        }
    }
}
