//! Numbers with one to ten digits. Each length is equally likely, and within a length each number.
//!
//! A counter would favour printers that keep the digits of the previous number, and processors with branch prediction.
//! The competitors in C, C++ and Go contain the same few lines (`benchmarks/competitors/print/random.h`) and therefore use
//! the same numbers. Each number is computed from one step of splitmix64: its upper part selects the length, and the rest
//! is a fraction that selects the number.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The seed of the numbers that are printed.
pub const SEED: u64 = 3;

/// An infinite sequence of numbers for one seed.
///
/// ```
/// use millstream_runners::numbers::RandomLengths;
/// let numbers: Vec<u64> = RandomLengths::new(3).take(4).collect();
/// assert_eq!(numbers, [22, 10_264_162, 2_167_721, 7]);
/// ```
#[derive(Clone, Debug)]
pub struct RandomLengths {
    random: SplitMix64,
    /// How many numbers there are of each length, starting with one digit.
    count: [u64; 10],
}

/// The first number of each length.
const FIRST: [u64; 10] = [0, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
const COUNT: [u64; 10] = [10, 90, 900, 9000, 90_000, 900_000, 9_000_000, 90_000_000, 900_000_000, 9_000_000_000];

impl RandomLengths {
    /// Numbers below ten thousand million, of which the longest need more than 32 bits.
    pub fn new(seed: u64) -> RandomLengths {
        RandomLengths { random: SplitMix64::seed_from_u64(seed), count: COUNT }
    }

    /// Numbers that fit into 32 bits, so those with ten digits end there.
    pub fn of_32_bits(seed: u64) -> RandomLengths {
        let mut numbers = RandomLengths::new(seed);
        numbers.count[9] = (1 << 32) - FIRST[9];
        numbers
    }
}

impl Iterator for RandomLengths {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let tenths = u128::from(self.random.next_u64()) * 10;
        let digits = (tenths >> 64) as usize;
        let share = u128::from(tenths as u64) * u128::from(self.count[digits]);
        Some(FIRST[digits] + (share >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_as_frequent_as_the_others() {
        let mut lengths = [0; 10];
        for number in RandomLengths::new(SEED).take(100_000) {
            lengths[number.to_string().len() - 1] += 1;
        }
        assert!(lengths.iter().all(|count| (9_500..10_500).contains(count)), "{lengths:?}");
    }

    #[test]
    fn numbers_are_spread_over_their_length() {
        let longest: Vec<u64> = RandomLengths::new(SEED).take(100_000).filter(|&number| number >= FIRST[9]).collect();
        let upper = longest.iter().filter(|&&number| number >= 5_500_000_000).count();
        assert!((4_500..5_500).contains(&upper), "{upper} of {}", longest.len());
    }

    #[test]
    fn thirty_two_bits_hold_them() {
        let most = RandomLengths::of_32_bits(SEED).take(100_000).max().unwrap();
        assert!((4_200_000_000..1 << 32).contains(&most), "{most}");
    }
}
