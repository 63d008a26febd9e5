//! Counts the output of the last stage.

use std::fmt;

/// Counts lines and accesses each one.
#[derive(Default)]
pub struct Tally {
    pub count: u64,
    pub length: u64,
    first: u64,
}

impl Tally {
    #[inline]
    pub fn add(&mut self, line: &[u8]) {
        self.count += 1;
        self.length += line.len() as u64;
        self.first += u64::from(line.first().copied().unwrap_or(0));
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "count={} length={} first={}", self.count, self.length, self.first)
    }
}
