//! Text of the shape of the Unicode names list, which the original benchmark of stages reads: short lines, most of them
//! a number and a name, some of them not ASCII, and now and then a long one.

use std::io::{self, Write};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

/// So many lines of 29 bytes on average, without their line feeds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Lines.
    pub lines: u64,
    /// Where the random numbers start.
    pub seed: u64,
}

/// Of two, three and four bytes in UTF-8; the last ones are two units in UTF-16.
const FOREIGN: [&str; 8] = ["é", "å", "·", "ß", "—", "ツ", "𝄞", "🜛"];

/// One in this many lines has letters that are not ASCII, as one in 406 of the original has; also in small texts.
const FOREIGN_EVERY: u64 = 400;

/// One in this many lines is a remark of up to 300 bytes.
const LONG_EVERY: u64 = 64;

impl Names {
    /// Writes the text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut below = |limit: u64| random.next_u64() % limit; // of small limits: no bias to speak of
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
        // The original has 1,413,484 bytes without the line feeds, and 120 lines that are not ASCII.
        assert!((1_400_000..1_430_000).contains(&content), "{content}");
        let foreign = text.lines().filter(|line| !line.is_ascii()).count();
        assert_eq!(foreign, 122);
        assert!(text.lines().all(|line| !line.is_empty() && line.len() < 320));
    }
}
