//! Sums of all fields, which prove that everything was decoded correctly.

use std::fmt;

/// Returns the value in units of 1/64, in which every double of the inputs is a whole number.
pub fn sixty_fourths(value: f64) -> u64 {
    (value * 64.0) as u64
}

/// Sums by name, in the format that the benchmark tool reads.
#[derive(Default)]
pub struct Tally(Vec<(&'static str, u64)>);

impl Tally {
    /// Adds to the sum with this name.
    pub fn add(&mut self, name: &'static str, value: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.wrapping_add(value),
            None => self.0.push((name, value)),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, sum) in &self.0 {
            write!(f, "{name}={sum} ")?;
        }
        Ok(())
    }
}
