//! `--stage`: small functions between the sources and the outputs.
//!
//! A stage gets the content of a record. Records that it passes on are written unchanged, including their terminator.
//! If the last record of a source has no terminator, and another record follows, a terminator is added, so that the two
//! do not become one record.

mod content;
mod csv;
mod search;
mod text;
mod work;

pub(super) use csv::Order;
pub(crate) use text::StageText;

use std::ops::Range;
use std::sync::Arc;

use millstream::frame::{Batch, Csv, CsvRagged, Framer, Trim};
use millstream::pipe::{Pipe, StageStats};
use millstream::{BatchLines, Error, ErrorKind, Result};

use super::header::Header;
use super::rejects::Reject;
use content::Content;
use csv::{Reorder, Select};
use search::Search;
use text::{Field, Fields};

/// The number of bytes of the results that are collected before they are passed on.
const PIECE: usize = 1 << 20;

/// The stages of a run.
pub(super) struct Stages {
    /// The first stage, if it selects records by their content. It works on whole batches.
    search: Option<Search>,
    /// The records of the batch that the search has selected.
    selected: Vec<Range<usize>>,
    is_measured: bool,
    /// The other stages, if there are any.
    stages: Option<millstream::pipe::Stages>,
    /// Records that were skipped, until [`take_rejects`](Stages::take_rejects).
    failed: Vec<(Error, Vec<u8>)>,
    /// The header after the stages.
    header: Option<Header>,
    passed: Passed,
}

/// How records of CSV are read.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    /// The order of the fields of the current source, if fields are matched by name and this is the first chain of
    /// stages.
    pub(super) order: Option<&'a Order>,
    /// The framer.
    pub(super) csv: &'a Csv,
    pub(super) header: Option<&'a Header>,
    pub(super) ragged: CsvRagged,
}

/// A framer that says which records are no data, such as blank lines.
pub(super) type Blanks = Arc<dyn Framer + Send + Sync>;

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
    /// Creates the stages for the records that `framer` finds. No stage may create a record longer than `limit`. If there
    /// are `blanks`, the stages do not see the records that these skip.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for a stage that would change records whose size is part of their format,
    /// and for `fields` that the header does not have.
    pub(super) fn new(
        asked: &[StageText],
        framer: &dyn Framer,
        csv: Option<Table<'_>>,
        blanks: Option<Blanks>,
        limit: usize,
    ) -> Result<Stages> {
        let content = Arc::new(csv.map_or_else(|| Content::of(framer), |table| Content::of_csv(table.csv)));
        let mut header = csv.and_then(|table| table.header).cloned();
        for stage in asked {
            if content.terminator().is_empty() && stage.work.changes_length() {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found(format!("--stage {}, which changes the length of records", stage.text))
                    .with_expected("records that end with a delimiter, such as lines"));
            }
        }
        // A search would also find lines that are skipped.
        let search =
            asked.first().filter(|_| csv.is_none() && blanks.is_none()).and_then(|stage| Search::of(stage, framer));
        let others = &asked[usize::from(search.is_some())..];
        let stages = match (others, &search) {
            ([], Some(_)) => None,
            _ => {
                let mut select = |list: &[Field]| {
                    let Some(Table { csv, ragged, .. }) = csv else { return Ok(None) };
                    let names = header.as_ref().map(Header::names);
                    let list = Fields::of(list, names)?;
                    let select = Select::new(csv.clone(), list, names.map(<[_]>::len), ragged);
                    if let Some(before) = header.take() {
                        let (parts, mut line) = (content.split(before.line()), Vec::new());
                        select.write(parts.content, &mut line)?;
                        line.extend_from_slice(parts.tail);
                        header = Some(before.with(line, select.names(before.names())));
                    }
                    Ok(Some(select))
                };
                let stages = others.iter().map(|stage| work::stage(stage, &content, limit, &mut select));
                let mut stages = stages.collect::<Result<Vec<_>>>()?;
                if let Some(Table { csv, header: Some(header), ragged, order: Some(order), .. }) = csv {
                    let reorder = Reorder::new(csv.clone(), header.names().len(), ragged, order.clone());
                    stages.insert(0, work::reorder(content.clone(), reorder));
                }
                if let Some(blanks) = blanks {
                    let content = content.clone();
                    let filter = Pipe::stages().filter(move |line| !blanks.skips(content.get(line)));
                    stages.insert(0, filter.boxed("blank lines"));
                }
                Some(millstream::pipe::Stages::new(stages).record_limit(limit))
            }
        };
        let passed = Passed { content, bytes: Vec::new(), offsets: vec![0], run: 0..0, open: None };
        Ok(Stages { search, selected: Vec::new(), is_measured: false, stages, failed: Vec::new(), header, passed })
    }

    /// Returns the header after the stages.
    pub(super) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Measures the stages for [`stats`](Stages::stats).
    pub(super) fn measured(mut self) -> Stages {
        self.is_measured = true;
        self.stages = self.stages.map(millstream::pipe::Stages::measured);
        self
    }

    /// Skips records at which a stage fails; [`take_rejects`](Stages::take_rejects) returns them.
    pub(super) fn skip_failed(mut self) -> Stages {
        self.stages = self.stages.map(millstream::pipe::Stages::skip_failed);
        self
    }

    /// Returns the records of the source of this name at which a stage has failed since the last call.
    pub(super) fn take_rejects(&mut self, name: &str) -> Vec<Reject> {
        self.failed.drain(..).map(|(error, record)| Reject::new(error.with_name(name), &record)).collect()
    }

    /// Returns the number of records that pass, and of their bytes, if no result has to be copied to find out.
    pub(super) fn count(&mut self, batch: &Batch<'_>) -> Option<(u64, usize)> {
        if self.stages.is_some() || self.passed.open.is_some() || !batch.terminated() {
            return None;
        }
        self.select(batch);
        let offsets = batch.offsets();
        let bytes = self.selected.iter().map(|records| (offsets[records.end] - offsets[records.start]) as usize);
        Some((self.selected.iter().map(|records| records.len() as u64).sum(), bytes.sum()))
    }

    /// Finds the records that the first stage selects, if it is a search; otherwise all.
    fn select(&mut self, batch: &Batch<'_>) {
        match &mut self.search {
            Some(search) if self.is_measured => search.select_measured(batch, &mut self.selected),
            Some(search) => search.select(batch, &mut self.selected),
            None => {
                self.selected.clear();
                self.selected.push(0..batch.len());
            }
        }
    }

    /// Passes the results for the records of a batch to `send`, in pieces: bytes, and the n + 1 offsets of n records.
    /// Errors of its records get their `lines`.
    ///
    /// # Errors
    /// Returns the error of a stage, after earlier results, or the error of `send`.
    pub(super) fn pass(
        &mut self,
        batch: Batch<'_>,
        lines: BatchLines,
        mut send: impl FnMut(&[u8], &[u32]) -> Result<()>,
    ) -> Result<()> {
        self.select(&batch);
        let passed = &mut self.passed;
        passed.clear();
        let bytes = batch.bytes();
        let Some(stages) = &mut self.stages else {
            self.selected.iter().for_each(|records| passed.add_all(&batch, records.clone()));
            return send(&passed.bytes, &passed.offsets);
        };
        let whole = Batch::new(bytes, batch.offsets(), Trim::NOTHING, true)
            .at(batch.offset(), batch.first_record())
            .of_lines(batch.first_line().is_some());
        let mut sent = Ok(());
        let worked = stages.pass_some(whole, self.selected.iter().cloned().flatten(), |_, record| {
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
        let failed = stages.take_failed().into_iter();
        self.failed.extend(failed.map(|(error, record)| (lines.locate(error, &batch), record)));
        passed.end_run(bytes);
        sent?;
        send(&passed.bytes, &passed.offsets)?;
        worked.map_err(|error| lines.locate(error, &batch))
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
        self.stages.as_ref().is_some_and(|stages| stages.is_done())
    }

    /// Returns the statistics of each stage.
    pub(super) fn stats(&self) -> Vec<StageStats> {
        let first = self.search.iter().map(|search| search.stats().clone());
        first.chain(self.stages.iter().flat_map(|stages| stages.stats())).collect()
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

    /// Adds consecutive records of a batch.
    fn add_all(&mut self, batch: &Batch<'_>, records: Range<usize>) {
        self.close_open();
        let is_open = records.end == batch.len() && !batch.terminated();
        let offsets = &batch.offsets()[records.start..=records.end - usize::from(is_open)];
        let (start, end) = (offsets[0], offsets[offsets.len() - 1]);
        let before =
            u32::try_from(self.bytes.len()).expect("a batch and a kept record are smaller than 4 GiB together");
        self.offsets.extend(offsets[1..].iter().map(|end| end - start + before));
        self.bytes.extend_from_slice(&batch.bytes()[start as usize..end as usize]);
        if is_open {
            self.open = batch.raw(records.end - 1).map(<[u8]>::to_vec);
        }
    }

    /// Adds the kept record, because another one follows.
    #[inline]
    fn close_open(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.extend_from_slice(self.content.terminator());
            self.push(&open);
        }
    }

    /// Adds a record. If it is still part of `batch`, it is copied later, together with its neighbours.
    #[inline]
    fn add(&mut self, record: &[u8], batch: &[u8]) {
        self.close_open();
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
