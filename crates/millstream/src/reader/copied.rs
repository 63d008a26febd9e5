//! A copy of a batch, which lets the reader continue.

use crate::frame::{Batch, Framer, RecordLines, Trim};
use crate::{Error, Reader, Result};

/// The lines of a batch whose records may be several lines, for errors of its records.
#[doc(hidden)] // for the command line, whose stages process batches
#[derive(Clone, Copy, Debug)]
pub struct BatchLines {
    /// What [`Reader::inner_lines`] returned before the batch was read.
    before: Option<u64>,
    record_lines: RecordLines,
}

impl BatchLines {
    /// Lines that cannot be known.
    pub const UNKNOWN: BatchLines = BatchLines { before: None, record_lines: RecordLines::Unknown };

    /// Creates the lines of the batch that the framer found last. `before` is what [`Reader::inner_lines`] returned
    /// before that.
    pub fn new(before: Option<u64>, framer: &dyn Framer) -> BatchLines {
        BatchLines { before, record_lines: framer.record_lines() }
    }

    /// Adds the line at which a record of the batch begins to an error that has the number of the record.
    pub fn locate(self, error: Error, batch: &Batch<'_>) -> Error {
        let (Some(before), Some(record), None) = (self.before, error.record(), error.line()) else { return error };
        let index = match record.checked_sub(batch.first_record()) {
            Some(index) if index < batch.len() as u64 => index as usize,
            _ => return error, // of an earlier batch
        };
        let first = batch.offsets()[0];
        let ends = batch.offsets()[1..=index].iter().map(|end| (end - first) as usize);
        match self.record_lines.inside(&batch.bytes()[first as usize..], ends) {
            Some(inside) => error.with_line(record + before + inside + 1),
            None => error,
        }
    }
}

/// A copy of consecutive records of a reader, which can report the line of each of their bytes.
#[derive(Clone, Debug)]
pub struct BatchCopy {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    trim: Trim,
    terminated: bool,
    /// The call of the framer that has found the records, if they are those of one batch.
    call: u64,
    /// The numbers of bytes and records before.
    position: (u64, u64),
    /// The line of the first record, if it is known, and how many lines a record is.
    first_line: Option<u64>,
    record_lines: RecordLines,
}

impl Default for BatchCopy {
    fn default() -> BatchCopy {
        BatchCopy {
            bytes: Vec::new(),
            offsets: vec![0],
            trim: Trim::NOTHING,
            terminated: true,
            call: 0,
            position: (0, 0),
            first_line: None,
            record_lines: RecordLines::Unknown,
        }
    }
}

impl BatchCopy {
    /// The records.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(&self.bytes, &self.offsets, self.trim, self.terminated)
            .at(self.position.0, self.position.1)
            .of_call(self.call)
    }

    /// Removes all records, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.truncate(1);
        self.call = 0;
    }

    /// Replaces the records by the next batch of the reader, of at most this many records. Returns false at the end.
    ///
    /// # Errors
    /// Returns the errors of [`Reader::next_batch`]. The copy is empty then.
    pub fn refill<F: Framer + ?Sized>(&mut self, reader: &mut Reader, framer: &mut F, most: usize) -> Result<bool> {
        self.clear();
        let inner = reader.inner_lines();
        let Some(batch) = reader.next_batch_of(framer, most)? else { return Ok(false) };
        let (first, end) = (batch.offsets()[0], batch.offsets()[batch.len()]);
        self.bytes.extend_from_slice(&batch.bytes()[first as usize..end as usize]);
        self.offsets.clear();
        self.offsets.extend(batch.offsets().iter().map(|offset| offset - first));
        (self.trim, self.terminated) = (batch.trim(), batch.terminated());
        self.call = if first == 0 { batch.call() } else { 0 };
        self.position = (batch.offset() + u64::from(first), batch.first_record());
        self.first_line = inner.map(|inner| self.position.1 + inner + 1);
        self.record_lines = reader.record_lines();
        Ok(true)
    }

    /// Appends the records of the next batch of the same framer. Lines are known if all records of the stream are lines.
    pub fn append(&mut self, batch: &Batch<'_>) {
        let (first, end) = (batch.offsets()[0], batch.offsets()[batch.len()]);
        let base = self.bytes.len() as u32;
        self.call = 0;
        if base == 0 {
            self.position = (batch.offset() + u64::from(first), batch.first_record());
            self.first_line = batch.first_line();
            self.record_lines = if self.first_line.is_some() { RecordLines::One } else { RecordLines::Unknown };
        }
        self.bytes.extend_from_slice(&batch.bytes()[first as usize..end as usize]);
        self.offsets.extend(batch.offsets()[1..].iter().map(|end| end - first + base));
        (self.trim, self.terminated) = (batch.trim(), batch.terminated());
    }

    /// Adds the place of a byte of a record to an error: its offset, record, line and column.
    pub fn locate(&self, error: Error, record: usize, at: usize) -> Error {
        let BatchCopy { bytes, offsets, position, first_line, record_lines, .. } = self;
        RecordPlaces { bytes, offsets, position: *position, first_line: *first_line, record_lines: *record_lines }
            .locate(error, record, at)
    }
}

/// The places of the records of a batch.
pub(super) struct RecordPlaces<'a> {
    /// The first record begins with the first byte.
    pub(super) bytes: &'a [u8],
    pub(super) offsets: &'a [u32],
    /// The numbers of bytes and records before.
    pub(super) position: (u64, u64),
    /// The line of the first record, if it is known, and how many lines a record is.
    pub(super) first_line: Option<u64>,
    pub(super) record_lines: RecordLines,
}

impl RecordPlaces<'_> {
    /// Adds the place of a byte of a record to an error: its offset, record, line and column.
    pub(super) fn locate(&self, error: Error, record: usize, at: usize) -> Error {
        let start = self.offsets[record] as usize;
        let error =
            error.with_offset(self.position.0 + (start + at) as u64).with_record(self.position.1 + record as u64);
        let ends = self.offsets[1..=record].iter().map(|&end| end as usize);
        let (Some(first), Some(inside)) = (self.first_line, self.record_lines.inside(self.bytes, ends)) else {
            return error;
        };
        let (mut line, mut column) = (first + record as u64 + inside, at + 1);
        if let RecordLines::Several(line_end) = self.record_lines {
            let before = &self.bytes[start..start + at];
            line += memchr::memchr_iter(line_end, before).count() as u64;
            column = at - memchr::memrchr(line_end, before).map_or(0, |end| end + 1) + 1;
        }
        error.with_line(line).with_column(column as u64)
    }
}
