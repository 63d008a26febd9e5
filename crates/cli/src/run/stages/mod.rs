//! `--stage`: small functions between the sources and the outputs.
//!
//! A stage looks at the content of a record; what it lets through goes out as it came, with what ends it. Where a record
//! that has no end, the last one of a source, is followed by another one, it gets one: two records must not become one.

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
use text::Work;

/// The stages of a run.
pub(super) struct Stages {
    stages: millstream::pipe::Stages,
    passed: Passed,
}

/// What has come through of a batch: whole records, and where they end.
struct Passed {
    content: Arc<Content>,
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    /// What of the batch goes out as it is, and is not copied yet: records one behind the other.
    run: Range<usize>,
    /// A record that has no end, until it is known whether another one follows.
    open: Option<Vec<u8>>,
    /// Whether there was more than offsets can say.
    is_too_long: bool,
}

impl Stages {
    /// Stages for the records that `framer` finds.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOption`] for a stage that would change records whose size is written down.
    pub(super) fn new(asked: &[StageText], framer: &dyn Framer) -> Result<Stages> {
        let content = Arc::new(Content::of(framer));
        for stage in asked {
            if content.terminator().is_empty() && matches!(stage.work, Work::Fields { .. } | Work::Replace { .. }) {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found(format!("--stage {}, which changes the length of records", stage.text))
                    .with_expected("records that end with a delimiter, such as lines"));
            }
        }
        let stages = asked.iter().map(|stage| work::stage(stage, &content)).collect::<Result<_>>()?;
        let passed = Passed { content, bytes: Vec::new(), offsets: vec![0], run: 0..0, open: None, is_too_long: false };
        Ok(Stages { stages: millstream::pipe::Stages::new(stages), passed })
    }

    /// The same, measured for [`stats`](Stages::stats).
    pub(super) fn measured(mut self) -> Stages {
        self.stages = self.stages.measured();
        self
    }

    /// What becomes of the records of a batch: bytes, and the n + 1 offsets of n records.
    pub(super) fn pass(&mut self, batch: Batch<'_>) -> Result<(&[u8], &[u32])> {
        let passed = &mut self.passed;
        passed.clear();
        let bytes = batch.bytes();
        let whole = Batch::new(bytes, batch.offsets(), Trim::NOTHING, true).at(batch.offset(), batch.first_record());
        self.stages.pass(whole, |_, record| passed.add(record, bytes))?;
        passed.end_run(bytes);
        if passed.is_too_long {
            return Err(Error::new(ErrorKind::RecordTooLong)
                .with_found("more than 4 GB behind a stage, made of one batch")
                .with_record(batch.first_record()));
        }
        Ok((&passed.bytes, &passed.offsets))
    }

    /// What was kept until it was known that nothing follows.
    pub(super) fn rest(&mut self) -> (&[u8], &[u32]) {
        let passed = &mut self.passed;
        passed.clear();
        if let Some(open) = passed.open.take() {
            passed.push(&open);
        }
        (&passed.bytes, &passed.offsets)
    }

    /// Whether nothing more will come through.
    pub(super) fn is_done(&self) -> bool {
        self.stages.is_done()
    }

    /// What each stage has done.
    pub(super) fn stats(&self) -> Vec<StageStats> {
        self.stages.stats()
    }
}

impl Passed {
    fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.truncate(1);
        self.run = 0..0;
    }

    /// Adds a record; one that still lies in `batch` is copied later, together with its neighbours.
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

    /// A record ends here.
    #[inline]
    fn push_end(&mut self) {
        match u32::try_from(self.bytes.len() + self.run.len()) {
            Ok(end) => self.offsets.push(end),
            Err(_) => self.is_too_long = true,
        }
    }
}
