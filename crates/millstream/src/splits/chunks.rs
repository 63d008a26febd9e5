//! The parts of a file of CSV. Where the first record of a part begins is guessed.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::frame::Csv;
use crate::os::cancel::Wait;

use super::content::Content;
use super::in_order::{Found, Parts};

/// A file of CSV in parts of `step` bytes. A part is a range that begins where its first record does.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    pub(super) content: Content,
    pub(super) wait: Wait,
    pub(super) csv: Csv,
    pub(super) size: u64,
    pub(super) step: u64,
}

/// The number of bytes in which the start of a record is looked for.
const BLOCK: u64 = 256 << 10;

impl Chunks {
    /// Returns where the first record of the part that begins at `start` may begin.
    pub(super) fn guess_start(&self, start: u64) -> Result<Option<u64>> {
        // A line may end directly before the part.
        let before = start - 1;
        let mut bytes = vec![0; BLOCK.min(self.size - before) as usize];
        let len = self.content.read_at(&mut bytes, before, &self.wait).map_err(Error::from_io)?;
        Ok(self.csv.clone().guess_line(&bytes[..len]).map(|len| before + len as u64))
    }

    fn range(&self, index: usize) -> Range<u64> {
        let start = index as u64 * self.step;
        start..self.size.min(start.saturating_add(self.step))
    }
}

impl Parts for Chunks {
    type Part = Range<u64>;

    fn count(&self) -> usize {
        usize::try_from(self.size.div_ceil(self.step).max(1)).unwrap_or(usize::MAX)
    }

    fn guess(&self, index: usize) -> Option<(Range<u64>, u64)> {
        let range = self.range(index);
        let begin = match index {
            0 => 0,
            // A part in which no record begins has no start.
            // Reading it again reports an error.
            _ => self.guess_start(range.start).ok().flatten().filter(|&begin| begin < range.end)?,
        };
        Some((begin..range.end, begin))
    }

    fn check(&self, index: usize, guess: Option<u64>, begin: u64) -> Found<Range<u64>> {
        let end = self.range(index).end;
        if begin >= end && index > 0 {
            let until = if begin >= self.size { self.count() } else { (begin / self.step) as usize };
            return Found::Contained(until);
        }
        if guess == Some(begin) { Found::Right } else { Found::Other(begin..end) }
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }
}
