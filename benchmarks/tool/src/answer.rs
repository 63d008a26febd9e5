//! Answers of runners, which are checked so that wrong results are never reported as fast.
//!
//! An answer is a few numbers by name: `count` (records), `length` (the sum of their lengths without the delimiters),
//! `first` (the sum of their first bytes), `bytes` (the size of the stream), and `hash`. For documents, the numbers are
//! sums over their fields. A runner reports the numbers that it knows, and each must be correct.
//!
//! In addition to the answer, a runner may report what it measured inside itself: see [`Inside`].

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// How to read the answer from a runner's standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// The answer as words of the form `key=number`.
    #[default]
    Answer,
    /// The count of records as the first word, as printed by `wc -l` and `millstream run --count`.
    Count,
    /// The stream itself; its lines are counted by the tool.
    Stream,
}

/// What a runner measured inside itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Reported as `ns=…`: the time of one pass over the input, in nanoseconds.
    pub nanoseconds: Option<u64>,
    /// Reported as `allocations=…`: the number of allocations in such a pass.
    pub allocations: Option<u64>,
}

/// The numbers of an answer, by name.
///
/// ```
/// use millstream_bench::answer::{Answer, Output};
/// let right = Answer::parse(Output::Answer, b"count=3 length=20")?;
/// Answer::parse(Output::Count, b"3\n")?.check(&right)?;
/// assert!(Answer::parse(Output::Count, b"4\n")?.check(&right).is_err());
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Answer(BTreeMap<String, u64>);

impl Answer {
    /// Parses the answer in a runner's standard output.
    ///
    /// # Errors
    /// Fails if the output does not have this format.
    pub fn parse(output: Output, bytes: &[u8]) -> Result<Answer> {
        match output {
            Output::Answer => {
                let words = str::from_utf8(bytes)?.split_whitespace();
                let pairs = words.map(|word| {
                    let (key, value) =
                        word.split_once('=').with_context(|| format!("{word:?} is not of the form key=number"))?;
                    Ok((key.to_owned(), value.parse().with_context(|| format!("{word:?}"))?))
                });
                pairs.collect::<Result<_>>().map(Answer)
            }
            Output::Count => {
                let first = str::from_utf8(bytes)?.split_whitespace().next().unwrap_or_default();
                Ok(Answer([("count".to_owned(), first.parse().with_context(|| format!("{first:?}"))?)].into()))
            }
            Output::Stream => {
                let count = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
                let bytes = bytes.len() as u64;
                Ok(Answer([("count".to_owned(), count), ("bytes".to_owned(), bytes)].into()))
            }
        }
    }

    /// The answer of runners that pass on the lines of a text: the number of lines, their length in UTF-16 units, a
    /// checksum of all lengths and first units in order, and the size and the start of the SHA-256 of the file written.
    ///
    /// ```
    /// use millstream_bench::answer::Answer;
    /// let answer = Answer::of_text("a\n𝄞\n").to_string();
    /// assert!(answer.contains("bytes=7 count=2 hash="));
    /// assert!(answer.ends_with("mix=54166 sum=3 units=3"));
    /// ```
    pub fn of_text(text: &str) -> Answer {
        let lines = || text.split_terminator('\n');
        let (mut count, mut units, mut mix) = (0, 0, 0_u32);
        for line in lines() {
            let length = line.encode_utf16().count() as u32;
            let first = u32::from(line.encode_utf16().next().unwrap_or(0));
            count += 1;
            units += u64::from(length);
            mix = mix.wrapping_mul(31).wrapping_add(length) ^ first;
        }
        // Each line with its line feed, as runners write them.
        let mut hash = Sha256::new();
        let mut bytes = 0;
        for piece in lines().flat_map(|line| [line, "\n"]) {
            hash.update(piece);
            bytes += piece.len() as u64;
        }
        let hash = hash.finalize()[..6].iter().fold(0, |hash, &byte| hash << 8 | u64::from(byte));
        let mix = u64::from(mix);
        let numbers =
            [("bytes", bytes), ("count", count), ("hash", hash), ("mix", mix), ("sum", units), ("units", units)];
        Answer(numbers.map(|(name, number)| (name.to_owned(), number)).into())
    }

    /// Returns the number with this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Whether the answer contains no number.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns what the runner measured inside itself.
    pub fn take_inside(&mut self) -> Inside {
        Inside { nanoseconds: self.0.remove("ns"), allocations: self.0.remove("allocations") }
    }

    /// Checks that every number of this answer is correct.
    ///
    /// # Errors
    /// Fails if the answer is empty, or if a number is wrong or unexpected.
    pub fn check(&self, right: &Answer) -> Result<()> {
        ensure!(!self.is_empty(), "the runner printed no answer");
        for (key, value) in &self.0 {
            match right.0.get(key) {
                Some(expected) if expected == value => {}
                Some(expected) => bail!("{key}={value} instead of {expected}"),
                None => bail!("{key}={value}, which the definition does not expect"),
            }
        }
        Ok(())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.0.iter().enumerate() {
            write!(f, "{}{key}={value}", if i > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_answers_are_rejected() {
        let right = Answer::parse(Output::Answer, b"count=3 length=20\n").unwrap();
        let check = |text: &[u8]| Answer::parse(Output::Answer, text).unwrap().check(&right);
        assert!(check(b"count=3").is_ok());
        assert!(check(b"length=20 count=3").is_ok());
        assert_eq!(check(b"count=4").unwrap_err().to_string(), "count=4 instead of 3");
        assert!(check(b"").is_err());
        assert!(check(b"size=3").is_err());
    }

    #[test]
    fn reads_every_form_of_output() {
        assert_eq!(Answer::parse(Output::Count, b" 12 \n").unwrap().to_string(), "count=12");
        assert_eq!(Answer::parse(Output::Stream, b"a\nb\n").unwrap().to_string(), "bytes=4 count=2");
        assert!(Answer::parse(Output::Answer, b"three").is_err());
        assert!(Answer::parse(Output::Count, b"").is_err());
    }

    #[test]
    fn what_was_measured_inside_is_not_part_of_the_answer() {
        let mut answer = Answer::parse(Output::Answer, b"count=3 ns=1500 allocations=7").unwrap();
        assert_eq!(answer.take_inside(), Inside { nanoseconds: Some(1500), allocations: Some(7) });
        assert_eq!(answer.to_string(), "count=3");
        assert_eq!(answer.take_inside(), Inside::default());
    }
}
