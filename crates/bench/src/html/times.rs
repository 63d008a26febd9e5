//! How many times faster: a ratio of medians and how sure it is.

use std::fmt;

use super::quantity::ratio;
use crate::statistics::{median, quantile};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A ratio of medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The ratio.
    pub value: f64,
    /// Its 95 % bootstrap interval, if there are runs enough for one.
    pub interval: Option<(f64, f64)>,
}

impl Times {
    /// How many times as long as these runs those take.
    ///
    /// # Panics
    /// Without runs.
    pub fn new(fast: &[f64], slow: &[f64]) -> Times {
        Times { value: median(slow) / median(fast), interval: interval(fast, slow, |fast, slow| slow / fast) }
    }

    /// The other way round.
    pub fn inverse(self) -> Times {
        Times { value: self.value.recip(), interval: self.interval.map(|(low, high)| (high.recip(), low.recip())) }
    }
}

/// As `2.22 (2.20–2.25)`.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ratio(self.value))?;
        self.interval.map_or(Ok(()), |(low, high)| write!(f, " ({}–{})", ratio(low), ratio(high)))
    }
}

/// The percentile bootstrap of `compare(median, median)`; none with fewer than five runs.
fn interval(fast: &[f64], slow: &[f64], compare: impl Fn(f64, f64) -> f64) -> Option<(f64, f64)> {
    let mut random = SplitMix64::seed_from_u64(1);
    let mut again = |values: &[f64]| {
        let draw = |_| values[random.next_u64() as usize % values.len()];
        median(&values.iter().map(draw).collect::<Vec<_>>())
    };
    let ratios: Vec<f64> = (0..4000).map(|_| compare(again(fast), again(slow))).collect();
    (fast.len().min(slow.len()) >= 5).then(|| (quantile(&ratios, 0.025), quantile(&ratios, 0.975)))
}
