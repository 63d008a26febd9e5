//! How many times faster one runner is: a ratio of medians and its interval.

use std::fmt;

use super::quantity::ratio;
use crate::statistics::{interval, median};

/// A ratio of medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The ratio.
    pub value: f64,
    /// Its 95 % bootstrap interval, if there are enough runs for one.
    pub interval: Option<(f64, f64)>,
}

impl Times {
    /// Returns how many times as long as `fast` the runs in `slow` take.
    ///
    /// # Panics
    /// Panics if there are no runs.
    pub fn new(fast: &[f64], slow: &[f64]) -> Times {
        Times { value: median(slow) / median(fast), interval: interval(fast, slow, |fast, slow| slow / fast) }
    }

    /// The inverse ratio.
    pub fn inverse(self) -> Times {
        Times { value: self.value.recip(), interval: self.interval.map(|(low, high)| (high.recip(), low.recip())) }
    }
}

/// Formats as `2.22 (2.20–2.25)`.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ratio(self.value))?;
        self.interval.map_or(Ok(()), |(low, high)| write!(f, " ({}–{})", ratio(low), ratio(high)))
    }
}
