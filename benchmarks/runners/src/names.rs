//! Text that resembles the Unicode names list, which the original benchmark of stages reads: short lines, most of them
//! a number and a name, a few with characters that are not ASCII, and occasionally a long line.

use std::io::{self, Write};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

/// Lines with an average of 29 bytes, not counting line feeds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// The number of lines.
    pub lines: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Characters of two, three and four bytes in UTF-8; the last two are two units in UTF-16.
const FOREIGN: [&str; 8] = ["é", "å", "·", "ß", "—", "ツ", "𝄞", "🜛"];

/// One in this many lines contains characters that are not ASCII, also in small texts. In the original, it is one in
/// 406.
const FOREIGN_EVERY: u64 = 400;

/// One in this many lines is a remark of up to 300 bytes.
const LONG_EVERY: u64 = 64;

impl Names {
    /// Writes the text.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut below = |limit: u64| random.next_u64() % limit; // The limits are small, so the bias is negligible.
        let mut line = String::new();
        for number in 0..self.lines {
            let mut length = 6 + below(24) + below(20);
            let letter = match below(LONG_EVERY) {
                0 => {
                    length += below(230);
                    line.push_str("\t* ");
                    b'a'
                }
                kind if kind < LONG_EVERY / 3 => {
                    line.push_str("\t= ");
                    b'a'
                }
                _ => {
                    line.push_str(&format!("{number:04X}\t"));
                    b'A'
                }
            };
            if number % FOREIGN_EVERY == 10 {
                for _ in 0..3 {
                    line.push_str(FOREIGN[below(FOREIGN.len() as u64) as usize]);
                }
            }
            let mut left_of_word = 0;
            while (line.len() as u64) < length {
                if left_of_word == 0 {
                    left_of_word = 2 + below(8);
                    line.push(' ');
                }
                line.push(char::from(letter + below(26) as u8));
                left_of_word -= 1;
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
            line.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_that_of_the_original() {
        let mut bytes = Vec::new();
        Names { lines: 48_770, seed: 1 }.write(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let content = text.len() - 48_770;
        assert_eq!(text.lines().count(), 48_770);
        // The original has 1,413,484 bytes without line feeds, and 120 lines that are not ASCII.
        assert!((1_400_000..1_430_000).contains(&content), "{content}");
        let foreign = text.lines().filter(|line| !line.is_ascii()).count();
        assert_eq!(foreign, 122);
        assert!(text.lines().all(|line| !line.is_empty() && line.len() < 320));
    }
}
