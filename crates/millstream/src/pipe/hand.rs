//! Boxed stages for callers that read the batches themselves.

use bumpalo::Bump;

use super::chain::{Chain, Start};
use super::item::Bytes;
use super::scope::{Flow, OnFailure, Run, Scope};
use super::stage::{Stage, ThenAll};
use super::stats::StageStats;
use crate::error::{Error, Result};
use crate::frame::Batch;

/// A sequence of boxed stages to which the caller passes batches itself. Use it instead of a [`Pipe`](super::Pipe) to
/// do other work between two batches, or to read several readers one after another.
///
/// ```
/// use millstream::{Reader, frame::Lines, pipe::{Pipe, Stages}};
/// let mut stages = Stages::new(vec![Pipe::stages().take(3).boxed("take")]);
/// let mut lines = Vec::new();
/// for text in ["a\nb\n", "c\nd\n"] {
///     let mut reader = Reader::memory(text)?;
///     while !stages.is_done() && let Some(batch) = reader.next_batch(&mut Lines::new())? {
///         stages.pass(batch, |_, line| lines.push(line.to_vec()))?;
///     }
/// }
/// assert_eq!(lines, [b"a", b"b", b"c"]);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Debug)]
pub struct Stages {
    chain: ThenAll<Start, Bytes>,
    run: Run,
    arena: Bump,
    /// The number of records that pass the stages before the memory for their results is reused.
    part: usize,
    /// The records at which a stage failed, if they are skipped.
    failed: Vec<(Error, Vec<u8>)>,
}

/// The maximum number of records in a part, if stages produce new bytes.
const PART: usize = 512;

/// The target size of the results for a part. Much larger sizes do not fit into a cache.
const PART_BYTES: usize = 1 << 20;

/// The maximum size of the results for a part, beyond one record for each of them. A part shrinks when its records
/// grow; this limit is for the records that are already in the part at that time.
const BURST: usize = 256 << 20;

impl Stages {
    /// Creates a sequence of these stages, in this order.
    pub fn new(stages: Vec<Stage>) -> Stages {
        let chain = ThenAll { chain: Start, stages };
        Stages { chain, run: Run::new(), arena: Bump::new(), part: 1, failed: Vec::new() }
    }

    /// Limits the length of a record that a stage may produce; a longer record fails with
    /// [`RecordTooLong`](crate::ErrorKind::RecordTooLong). Without this limit, a stage may produce records of any
    /// length.
    ///
    /// A stage writes a record before its length is checked. If it could write far more than the limit, it should check
    /// the length itself.
    pub fn record_limit(mut self, bytes: usize) -> Stages {
        self.run.record_limit = bytes;
        self.run.batch_limit = bytes.saturating_mul(self.chain.stages.len()).saturating_add(BURST);
        self
    }

    /// Skips records at which a stage fails: [`take_failed`](Stages::take_failed) returns them, and
    /// [`pass`](Stages::pass) continues. A panic of a stage is an error in any case.
    ///
    /// ```
    /// use millstream::{Error, Reader, frame::Lines, pipe::{Pipe, Stages}, scan::{Separator, column}};
    /// let number = |line: &[u8]| column::<u64>(line, 0, Separator::Space).map(|number| number > 1);
    /// let mut stages = Stages::new(vec![Pipe::stages().try_filter(number).boxed("numbers")]).skip_failed();
    /// let mut reader = Reader::memory("1\nx\n2\n")?;
    /// let mut passed = 0;
    /// while let Some(batch) = reader.next_batch(&mut Lines::new())? {
    ///     stages.pass(batch, |_, _| passed += 1)?;
    /// }
    /// let failed = stages.take_failed();
    /// assert_eq!((passed, failed[0].0.record(), &failed[0].1[..]), (1, Some(1), &b"x\n"[..]));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn skip_failed(mut self) -> Stages {
        self.run.on_error = OnFailure::Skip { keep: true };
        self
    }

    /// Returns the records at which a stage has failed since the last call: the error, and the record as it was read.
    pub fn take_failed(&mut self) -> Vec<(Error, Vec<u8>)> {
        std::mem::take(&mut self.failed)
    }

    /// Measures the time spent in stages, for [`stats`](Stages::stats).
    pub fn measured(mut self) -> Stages {
        self.run.measures = true;
        self
    }

    /// Passes the results for a batch to `sink`: items, each with the number of the record that it was produced from.
    ///
    /// # Errors
    /// Returns the error of the first stage that fails; the results of earlier records have reached the sink. Pass no
    /// more batches after an error.
    pub fn pass(&mut self, batch: Batch<'_>, sink: impl FnMut(u64, &[u8])) -> Result<()> {
        self.pass_some(batch, 0..batch.len(), sink)
    }

    /// Like [`pass`](Stages::pass), but passes only some records of the batch through the stages. `records` are their
    /// ascending indices in the batch, each less than its length.
    ///
    /// ```
    /// use millstream::{Reader, frame::Lines, pipe::{Pipe, Stages}};
    /// let mut stages = Stages::new(vec![Pipe::stages().skip(1).boxed("skip")]);
    /// let mut reader = Reader::memory("a\nb\nc\nd\n")?;
    /// reader.fill()?; // without this, the first batch is one record
    /// let batch = reader.next_batch(&mut Lines::new())?.unwrap();
    /// let mut lines = Vec::new();
    /// stages.pass_some(batch, [0, 1, 3], |record, line| lines.push((record, line.to_vec())))?;
    /// assert_eq!(lines, [(1, b"b".to_vec()), (3, b"d".to_vec())]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`pass`](Stages::pass). An index that is too large is an error like a panic of a stage.
    pub fn pass_some(
        &mut self,
        batch: Batch<'_>,
        records: impl IntoIterator<Item = usize>,
        mut sink: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() && !self.is_done() {
            self.pass_part(batch, records.by_ref().take(self.part), &mut sink)?;
            self.part = match self.run.kept.get() {
                0 => self.part.saturating_mul(2),
                made if made <= PART_BYTES => self.part.saturating_mul(2).min(PART),
                made => (self.part.min(PART) * PART_BYTES / made).max(1),
            };
        }
        Ok(())
    }

    fn pass_part(
        &mut self,
        batch: Batch<'_>,
        records: impl Iterator<Item = usize>,
        sink: &mut impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        self.arena.reset();
        self.run.begin((batch.first_record(), batch.first_record()));
        let scope = Scope { arena: &self.arena, batch: Some(batch), run: &self.run };
        let chain = &mut self.chain;
        let record = |index| (batch.first_record() + index as u64, batch.get(index).expect("an index of a record"));
        // If the flow is `Break`, the reason is a failure or `is_done`.
        let _ = scope.guard(|| {
            chain.run(records.map(record), scope, &mut |record, item| {
                sink(record, item);
                Flow::Continue(())
            })
        });
        let mut failures = self.run.failures.take();
        failures.sort_by_key(|failure| failure.record);
        for failure in failures {
            match failure.bytes {
                Some(bytes) if !failure.is_fatal => self.failed.push((failure.error, bytes)),
                _ => return Err(failure.error),
            }
        }
        Ok(())
    }

    /// Returns whether the stages are finished: no further item will have a result.
    pub fn is_done(&self) -> bool {
        Chain::<Bytes>::is_done(&self.chain)
    }

    /// Returns the statistics of each stage, if they are [measured](Stages::measured).
    pub fn stats(&self) -> Vec<StageStats> {
        let mut stats = Vec::new();
        Chain::<Bytes>::report(&self.chain, &mut stats);
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::frame::{Framer, Lines};
    use crate::pipe::Pipe;

    /// Creates a stage that repeats each record `count` times.
    fn times(count: usize) -> Stage {
        Pipe::stages().rewrite(move |record, out| (0..count).for_each(|_| out.extend_from_slice(record))).boxed("times")
    }

    /// Returns the results for these lines: the records' numbers and lengths.
    fn pass(stages: &mut Stages, lines: &str) -> (Vec<(u64, usize)>, Result<()>) {
        let mut offsets = vec![0];
        let terminated = Lines::new().batch(lines.as_bytes(), true, usize::MAX, &mut offsets).unwrap();
        let batch = Batch::new(lines.as_bytes(), &offsets, Lines::new().trim(), terminated).at(100, 10);
        let mut seen = Vec::new();
        let passed = stages.pass(batch, |record, item| seen.push((record, item.len())));
        (seen, passed)
    }

    #[test]
    fn a_record_that_a_stage_makes_too_long_is_an_error() {
        let mut stages = Stages::new(vec![times(2), times(3)]).record_limit(12);
        assert_eq!(pass(&mut stages, "a\nbb\n").0, [(10, 6), (11, 12)]);
        let (seen, error) = pass(&mut stages, "a\nccc\nbb\n");
        let error = error.unwrap_err();
        assert_eq!((error.kind(), error.record(), error.offset()), (ErrorKind::RecordTooLong, Some(11), Some(102)));
        assert_eq!(seen, [(10, 6)]);
        assert_eq!(pass(&mut Stages::new(vec![times(1 << 20)]), "abcd\n").0, [(10, 4 << 20)], "without a limit");
    }

    #[test]
    fn records_that_become_long_go_through_in_small_parts() {
        let mut stages = Stages::new(vec![times(100_000)]).record_limit(1 << 20);
        let (seen, passed) = pass(&mut stages, &"ab\n".repeat(2_000));
        passed.unwrap();
        assert!(seen.iter().copied().eq((10..2_010).map(|record| (record, 200_000))));
        assert!(stages.arena.allocated_bytes() < 8 << 20, "{}", stages.arena.allocated_bytes());
        // Parts are large if the stages produce no new bytes.
        let mut stages = Stages::new(vec![Pipe::stages().filter(|_| true).boxed("all")]);
        pass(&mut stages, &"ab\n".repeat(10_000)).1.unwrap();
        assert!(stages.part > 5_000);
    }
}
