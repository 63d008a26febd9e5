//! What all runners count.

use std::fmt;

use anyhow::{Context, Result};

/// The contents of all fields of all records.
pub type Records = Vec<Vec<String>>;

/// The column that is summed.
const SUMMED: usize = 1;

/// The sums over all fields.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    count: u64,
    fields: u64,
    length: u64,
    sum: u64,
}

impl Tally {
    /// Adds the fields of a record.
    #[inline]
    pub fn record<T: AsRef<[u8]>>(&mut self, fields: impl Iterator<Item = T>) -> Result<()> {
        let mut number = 0;
        for field in fields {
            let field = field.as_ref();
            self.length += field.len() as u64;
            if number == SUMMED {
                self.sum += integer(field).context("the second field is not a number")?;
            }
            number += 1;
        }
        self.fields += number as u64;
        self.count += 1;
        Ok(())
    }

    /// Adds the sums over other records.
    pub fn add(&mut self, other: &Tally) {
        self.count += other.count;
        self.fields += other.fields;
        self.length += other.length;
        self.sum += other.sum;
    }
}

/// Parses a number of a few digits, in the same way for all runners.
#[inline]
fn integer(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

/// Returns the contents of fields as text.
pub fn texts<T: AsRef<[u8]>>(fields: impl Iterator<Item = T>) -> Vec<String> {
    fields.map(|field| String::from_utf8_lossy(field.as_ref()).into_owned()).collect()
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { count, fields, length, sum } = self;
        write!(f, "count={count} fields={fields} length={length} sum={sum}")
    }
}
