//! Consecutive records of the stream, in separate memory, and the positions of their fields.

use millstream::frame::{Batch, Delimiter, Framer, Trim};
use millstream::scan::Separator;
use millstream::{Error, ErrorKind};

use super::fields::{Fields, Wrong};
use super::layout::Layout;

/// The size of a block in bytes: half a millisecond of work, and small enough to stay in the cache. Text is returned in
/// parts of the same size.
const FULL: usize = 1 << 20;

/// The length of the longest record, so that all offsets in a block fit into signed 32-bit integers, as Arrow requires.
pub const LONGEST: usize = 1 << 29;

/// Records that are combined from batches.
#[derive(Default)]
pub struct Block {
    bytes: Vec<u8>,
    /// The offsets, as in a batch; empty in an empty block.
    offsets: Vec<u32>,
    trim: Trim,
    terminated: bool,
    /// The position of the first record in the stream: bytes and records.
    pub position: (u64, u64),
    /// The line of the first record, if the records are lines.
    first_line: Option<u64>,
    /// The separators, and the results of [`Block::split`]. They are kept to reuse their memory.
    separators: Vec<u32>,
    bounds: Vec<u32>,
}

impl Block {
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Appends the records of the next batch of the stream. All batches come from one framer.
    pub fn append(&mut self, batch: &Batch<'_>) {
        let (Some(&first), Some(&last)) = (batch.offsets().first(), batch.offsets().last()) else { return };
        let base = self.bytes.len() as u32;
        if self.is_empty() {
            self.position = (batch.offset() + u64::from(first), batch.first_record());
            self.first_line = batch.first_line();
            self.offsets.push(0);
        }
        self.bytes.extend_from_slice(&batch.bytes()[first as usize..last as usize]);
        self.offsets.extend(batch.offsets()[1..].iter().map(|end| end - first + base));
        (self.trim, self.terminated) = (batch.trim(), batch.terminated());
    }

    /// Adds the place of the byte `at` in a record to an error.
    pub fn locate(&self, error: Error, row: usize, at: usize) -> Error {
        let (offset, record) = self.position;
        let error = error.with_offset(offset + at as u64).with_record(record + row as u64);
        match self.first_line {
            Some(line) => error.with_line(line + row as u64).with_column((at - self.offsets[row] as usize) as u64 + 1),
            None => error,
        }
    }

    /// Removes all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.clear();
    }

    /// Finds the fields of the records, up to the first record that has too few, which is the error.
    pub fn split<'a>(&'a mut self, layout: &'a Layout) -> (Fields<'a>, Option<Wrong>) {
        let Block { bytes, offsets, trim, terminated, separators, bounds, .. } = self;
        let count = layout.columns.len();
        separators.clear();
        bounds.clear();
        if !Delimiter::byte(layout.separator).batch(bytes, true, usize::MAX, separators).unwrap_or(true) {
            // The end of the bytes, which is not a separator.
            separators.pop();
        }
        let mut short = None;
        let mut separators = &separators[..];
        for (row, record) in Batch::new(bytes, offsets, *trim, *terminated).iter().enumerate() {
            let start = record.as_ptr().addr() - bytes.as_ptr().addr();
            let end = start + record.len();
            while let Some((&after, others)) = separators.split_first()
                && after as usize <= start
            {
                separators = others;
            }
            let (between, others) = separators.split_at_checked(count - 1).unwrap_or((separators, &[]));
            if between.len() < count - 1 || between.last().is_some_and(|&after| after as usize > end) {
                let fields = 1 + between.iter().filter(|&&after| after as usize <= end).count();
                short = Some(Wrong {
                    row,
                    column: fields,
                    kind: ErrorKind::ValueMissing,
                    found: if fields == 1 { "1 field".to_owned() } else { format!("{fields} fields") },
                    expected: format!("at least {count}"),
                    at: end,
                });
                break;
            }
            bounds.push(start as u32);
            bounds.extend_from_slice(between);
            // Fields after the last column are ignored.
            bounds.push(others.first().map_or(end + 1, |&after| (after as usize).min(end + 1)) as u32);
            separators = others;
        }
        let fields = Fields {
            bytes,
            bounds,
            stride: count + 1,
            column: 0,
            missing: layout.missing.as_deref(),
            separator: layout.lines.then_some(Separator::Byte(layout.separator)),
            is_text: bytes.is_ascii() || std::str::from_utf8(bytes).is_ok(),
        };
        (fields, short)
    }
}
