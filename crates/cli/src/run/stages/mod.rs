//! `--stage`: small functions between the sources and the outputs.
//!
//! A stage gets the content of a record. Records that it passes on are written unchanged, including their terminator.
//! If the last record of a source has no terminator, and another record follows, a terminator is added, so that the two
//! do not become one record.

mod content;
mod text;
mod work;

pub(crate) use text::StageText;

use std::ops::Range;
use std::sync::Arc;

use millstream::frame::{Batch, Framer, Trim};
use millstream::pipe::StageStats;
use millstream::{Error, ErrorKind, Result};

use content::Content;

/// The number of bytes of the results that are collected before they are passed on.
const PIECE: usize = 1 << 20;

/// The stages of a run.
pub(super) struct Stages {
    stages: millstream::pipe::Stages,
    passed: Passed,
}

/// Results that have not been passed on yet: whole records, and their ends.
struct Passed {
    content: Arc<Content>,
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    /// The part of the batch that is written unchanged and not copied yet: consecutive records.
    run: Range<usize>,
    /// A record without a terminator, which is kept until it is known whether another one follows.
    open: Option<Vec<u8>>,
}

impl Stages {
    /// Creates the stages for the records that `framer` finds. No stage may create a record longer than `limit`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for a stage that would change records whose size is part of their format.
    pub(super) fn new(asked: &[StageText], framer: &dyn Framer, limit: usize) -> Result<Stages> {
        let content = Arc::new(Content::of(framer));
        for stage in asked {
            if content.terminator().is_empty() && stage.work.changes_length() {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found(format!("--stage {}, which changes the length of records", stage.text))
                    .with_expected("records that end with a delimiter, such as lines"));
            }
        }
        let stages = asked.iter().map(|stage| work::stage(stage, &content, limit)).collect::<Result<_>>()?;
        let passed = Passed { content, bytes: Vec::new(), offsets: vec![0], run: 0..0, open: None };
        Ok(Stages { stages: millstream::pipe::Stages::new(stages).record_limit(limit), passed })
    }

    /// Measures the stages for [`stats`](Stages::stats).
    pub(super) fn measured(mut self) -> Stages {
        self.stages = self.stages.measured();
        self
    }

    /// Passes the results for the records of a batch to `send`, in pieces: bytes, and the n + 1 offsets of n records.
    ///
    /// # Errors
    /// Returns the error of a stage, after earlier results, or the error of `send`.
    pub(super) fn pass(&mut self, batch: Batch<'_>, mut send: impl FnMut(&[u8], &[u32]) -> Result<()>) -> Result<()> {
        let passed = &mut self.passed;
        passed.clear();
        let bytes = batch.bytes();
        let whole = Batch::new(bytes, batch.offsets(), Trim::NOTHING, true).at(batch.offset(), batch.first_record());
        let mut sent = Ok(());
        let worked = self.stages.pass(whole, |_, record| {
            if sent.is_err() {
                return;
            }
            passed.add(record, bytes);
            if passed.len() >= PIECE {
                passed.end_run(bytes);
                sent = send(&passed.bytes, &passed.offsets);
                passed.clear();
            }
        });
        passed.end_run(bytes);
        sent?;
        send(&passed.bytes, &passed.offsets)?;
        worked
    }

    /// Returns the kept record when it is known that no record follows.
    pub(super) fn rest(&mut self) -> (&[u8], &[u32]) {
        let passed = &mut self.passed;
        passed.clear();
        if let Some(open) = passed.open.take() {
            passed.push(&open);
        }
        (&passed.bytes, &passed.offsets)
    }

    /// Returns whether no more records will be passed on.
    pub(super) fn is_done(&self) -> bool {
        self.stages.is_done()
    }

    /// Returns the statistics of each stage.
    pub(super) fn stats(&self) -> Vec<StageStats> {
        self.stages.stats()
    }
}

impl Passed {
    fn clear(&mut self) {
        match self.bytes.capacity() > 4 * PIECE {
            true => self.bytes = Vec::new(), // one long record should not keep it large for the rest of the run
            false => self.bytes.clear(),
        }
        self.offsets.truncate(1);
        self.run = 0..0;
    }

    /// Adds a record. If it is still part of `batch`, it is copied later, together with its neighbours.
    #[inline]
    fn add(&mut self, record: &[u8], batch: &[u8]) {
        if let Some(mut open) = self.open.take() {
            open.extend_from_slice(self.content.terminator());
            self.push(&open);
        }
        if !self.content.is_terminated(record) {
            self.open = Some(record.to_vec());
            return;
        }
        let at = (record.as_ptr() as usize).wrapping_sub(batch.as_ptr() as usize);
        let is_in_batch = at.checked_add(record.len()).is_some_and(|end| end <= batch.len());
        if is_in_batch && at == self.run.end && !self.run.is_empty() {
            self.run.end += record.len();
            self.push_end();
        } else {
            self.end_run(batch);
            if is_in_batch {
                self.run = at..at + record.len();
                self.push_end();
            } else {
                self.push(record);
            }
        }
    }

    /// Adds a record's bytes.
    fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.push_end();
    }

    fn end_run(&mut self, batch: &[u8]) {
        self.bytes.extend_from_slice(&batch[self.run.clone()]);
        self.run = 0..0;
    }

    fn len(&self) -> usize {
        self.bytes.len() + self.run.len()
    }

    /// Ends a record. Fewer than [`PIECE`] bytes precede it, and no record exceeds the limit of 2 GiB and its
    /// terminator, so 32-bit offsets are enough.
    #[inline]
    fn push_end(&mut self) {
        self.offsets.push(u32::try_from(self.len()).expect("a piece and a record are smaller than 4 GiB together"));
    }
}
