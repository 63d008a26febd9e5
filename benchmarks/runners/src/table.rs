//! CSV files: a number that counts the records, an amount, a price, a date, and texts.
//!
//! Without quotes, every program that splits lines reads them correctly. With quotes, a text contains delimiters, line
//! ends and doubled quotes, and everything else is as simple as possible: no blank lines, no quotes inside unquoted
//! fields, and LF as line end, so that programs differ only in their speed. Files on which they differ in their answers
//! are [`traps`](crate::traps).

use std::io::{self, Write};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

/// Records without a header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The number of bytes after which no further record is written; the file is at most one record longer.
    pub bytes: u64,
    /// The percentage of fields in quotes. If it is not 0, half of the quoted texts contain delimiters, line ends or quotes.
    pub quoted: u64,
    /// The number of fields in a record, at least 5.
    #[serde(default = "ten")]
    pub columns: usize,
    /// The seed of the random numbers.
    pub seed: u64,
}

fn ten() -> usize {
    10
}

impl Table {
    /// Writes the records.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let (mut record, mut content) = (Vec::new(), Vec::new());
        let (mut written, mut number) = (0, 0);
        while written < self.bytes {
            let mut below = |limit: u64| random.next_u64() % limit; // The limits are small, so the bias is negligible.
            for column in 0..self.columns {
                content.clear();
                let is_quoted = below(100) < self.quoted;
                match column {
                    0 => write!(content, "{number}")?,
                    1 => write!(content, "{}", below(1_000_000))?,
                    2 => write!(content, "{}.{:02}", below(10_000), below(100))?,
                    3 => write!(content, "20{:02}-{:02}-{:02}", below(30), 1 + below(12), 1 + below(28))?,
                    _ => {
                        for _ in 0..4 + below(12) {
                            content.push(b'a' + below(26) as u8);
                        }
                        if is_quoted {
                            match below(6) {
                                0 => content.extend_from_slice(b", or so"),
                                1 => content.extend_from_slice(b"\nand more"),
                                2 => content.extend_from_slice(b" \"\"as they say\"\""),
                                _ => {}
                            }
                        }
                    }
                }
                let quote: &[u8] = if is_quoted { b"\"" } else { b"" };
                let end: &[u8] = if column + 1 < self.columns { b"," } else { b"\n" };
                record.extend([quote, &content, quote, end].into_iter().flatten());
            }
            out.write_all(&record)?;
            written += record.len() as u64;
            number += 1;
            record.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(quoted: u64) -> String {
        let mut text = Vec::new();
        Table { bytes: 100_000, quoted, columns: 10, seed: 1 }.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn every_line_without_quotes_is_a_record() {
        let text = text(0);
        assert!(text.len() >= 100_000 && text.len() < 100_200, "{}", text.len());
        assert!(text.ends_with('\n') && !text.contains('"'));
        assert!(text.lines().all(|line| line.split(',').count() == 10));
    }

    #[test]
    fn a_fifth_of_the_fields_is_quoted_if_asked() {
        let text = text(20);
        // Every second part is inside quotes; two quotes in a row are an empty part outside.
        let parts: Vec<&str> = text.split('"').collect();
        let outside: String = parts.iter().step_by(2).copied().collect();
        let records = outside.matches('\n').count();
        assert_eq!(outside.matches(',').count(), records * 9);
        let doubled = text.matches("\"\"").count();
        let quoted = parts.len() / 2 - doubled;
        let percent = 100 * quoted / (records * 10);
        assert!((18..=22).contains(&percent), "{percent} %");
        for part in [", or so", "\nand more", " \"\"as they say\"\""] {
            assert!(text.contains(part), "{part:?}");
        }
    }
}
