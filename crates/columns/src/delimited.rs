//! Fields that one byte separates, without quotes, as columns.

use crate::build::{self, Texts};
use crate::schema::name;
use crate::span::Content;
use crate::text::Rules;
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, Fields};
use millstream::frame::{Batch, Delimiter, Framer};
use millstream::workers::{Work, Workers};
use millstream::{BatchCopy, Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// The size of a block in bytes: half a millisecond of work, and small enough to stay in the cache.
const FULL: usize = 1 << 20;

/// The longest record, so that all offsets in a block fit into signed 32-bit integers, as Arrow requires.
const LONGEST: usize = 1 << 29;

/// Turns records whose fields are separated by one byte into columns of given types. Quotes have no meaning: see
/// [`Batches`](crate::Batches) for CSV.
///
/// Batches of a reader are appended, and columns taken in their order. With several threads, at most three blocks of 1 MiB
/// for each are held.
///
/// ```
/// use arrow_array::{cast::AsArray, types::Int32Type};
/// use arrow_schema::{DataType, Field};
/// use millstream::{Reader, frame::Lines};
/// use millstream_columns::Delimited;
/// let mut reader = Reader::memory("a\t1\nb\t2\n")?;
/// let fields = [None, Some(Field::new("n", DataType::Int32, false))];
/// let (mut table, mut columns) = (Delimited::new(fields, b'\t', None, 1)?, Vec::new());
/// while let Some(batch) = reader.next_batch(&mut Lines::new())? {
///     table.append(&batch, &mut columns)?;
/// }
/// table.finish(&mut columns)?;
/// assert_eq!(columns[0][0].as_primitive::<Int32Type>().values(), &[1, 2]);
/// # Ok::<(), millstream::Error>(())
/// ```
pub struct Delimited {
    shape: Arc<Shape>,
    workers: Workers<Piece>,
    /// The records that do not fill a block yet.
    open: BatchCopy,
    spare: Vec<BatchCopy>,
    records: usize,
    rows: usize,
    /// Whether there was an error; nothing is added after it.
    is_broken: bool,
}

/// The columns, and how fields are separated.
struct Shape {
    /// For each field up to the last column, its column if it has one.
    fields: Vec<Option<Field>>,
    separator: u8,
    missing: Option<Vec<u8>>,
}

struct Piece {
    block: BatchCopy,
    result: Option<Result<Parsed>>,
}

/// The columns of a block up to its first bad record, and the error for that.
struct Parsed {
    arrays: Vec<ArrayRef>,
    rows: usize,
    error: Option<Error>,
}

/// Memory that is used again.
#[derive(Default)]
struct Scratch {
    separators: Vec<u32>,
    /// For each record, the starts of its fields and the position one byte past its end.
    bounds: Vec<u32>,
}

/// The fields of one column.
struct Column<'a> {
    bytes: &'a [u8],
    bounds: &'a [u32],
    stride: usize,
    index: usize,
    missing: Option<&'a [u8]>,
}

impl Column<'_> {
    fn range(&self, row: usize) -> Range<usize> {
        let at = row * self.stride + self.index;
        self.bounds[at] as usize..self.bounds[at + 1] as usize - 1
    }
}

impl Texts for Column<'_> {
    fn len(&self) -> usize {
        self.bounds.len() / self.stride
    }

    #[inline]
    fn get(&self, row: usize) -> Option<Content<'_>> {
        let Range { start, end } = self.range(row);
        Content::new(self.bytes, start, end).filter(|text| self.missing != Some(text.bytes()))
    }

    fn byte_len(&self) -> usize {
        (0..self.len()).map(|row| self.range(row).len()).sum()
    }
}

impl Delimited {
    /// Creates columns for the first fields of each record. `None` is a field without a column; further fields are ignored.
    /// A field equal to `missing` is null. With 1 thread, the caller does all work.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for a separator beyond ASCII, and if there is no column.
    pub fn new(
        fields: impl IntoIterator<Item = Option<Field>>,
        separator: u8,
        missing: Option<Vec<u8>>,
        threads: usize,
    ) -> Result<Delimited> {
        let mut fields: Vec<Option<Field>> = fields.into_iter().collect();
        while fields.last().is_some_and(Option::is_none) {
            fields.pop();
        }
        let refused = |found: String, expected: &str| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        if fields.is_empty() {
            return refused("no column".to_string(), "at least one type");
        }
        if !separator.is_ascii() {
            return refused(format!("the separator 0x{separator:02x}"), "a byte of ASCII");
        }
        let shape = Arc::new(Shape { fields, separator, missing });
        let new_work = {
            let shape = shape.clone();
            move || -> Work<Piece> {
                let (shape, mut scratch) = (shape.clone(), Scratch::default());
                Box::new(move |piece: &mut Piece| piece.result = Some(shape.parse(&piece.block, &mut scratch)))
            }
        };
        Ok(Delimited {
            shape,
            workers: Workers::with_at_most(if threads > 1 { threads } else { 0 }, new_work),
            open: BatchCopy::default(),
            spare: Vec::new(),
            records: 0,
            rows: 0,
            is_broken: false,
        })
    }

    /// Returns the columns as Arrow's fields.
    pub fn fields(&self) -> Fields {
        self.shape.columns().map(|(_, field)| field.clone()).collect()
    }

    /// Returns the number of records that were appended.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Returns the number of rows that were added to the columns.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the records of a batch, and adds the arrays of finished blocks to the columns.
    ///
    /// # Errors
    /// Returns the error for the first invalid field, in the order of the records, with its place; all rows before it are
    /// in the columns, and nothing is added after it.
    pub fn append(&mut self, batch: &Batch<'_>, columns: &mut Vec<Vec<ArrayRef>>) -> Result<()> {
        let len = batch.bytes().len();
        if len > LONGEST {
            self.finish(columns)?;
            return Err(Error::new(ErrorKind::MemoryLimit)
                .with_record(batch.first_record())
                .with_offset(batch.offset())
                .with_found(format!("a record of {len} bytes"))
                .with_expected(format!("at most {LONGEST} for columns")));
        }
        self.open.append(batch);
        self.records += batch.len();
        if self.open.batch().bytes().len() >= FULL {
            self.give(columns)?;
        }
        Ok(())
    }

    /// Waits until the arrays of all records are in the columns.
    ///
    /// # Errors
    /// Returns the same errors as [`append`](Delimited::append).
    pub fn finish(&mut self, columns: &mut Vec<Vec<ArrayRef>>) -> Result<()> {
        let mut result = if self.open.batch().is_empty() { Ok(()) } else { self.give(columns) };
        while let Some(piece) = self.workers.take()? {
            result = result.and(self.join(piece, columns));
        }
        result
    }

    fn give(&mut self, columns: &mut Vec<Vec<ArrayRef>>) -> Result<()> {
        let mut result = Ok(());
        while !self.workers.has_capacity() {
            let Some(piece) = self.workers.take()? else { break };
            result = result.and(self.join(piece, columns));
        }
        let block = std::mem::replace(&mut self.open, self.spare.pop().unwrap_or_default());
        self.workers.give(Piece { block, result: None });
        while let Some(piece) = self.workers.take_done()? {
            result = result.and(self.join(piece, columns));
        }
        result
    }

    fn join(&mut self, piece: Piece, columns: &mut Vec<Vec<ArrayRef>>) -> Result<()> {
        let Piece { mut block, result } = piece;
        block.clear();
        self.spare.push(block);
        let (Some(result), false) = (result, self.is_broken) else { return Ok(()) };
        let Parsed { arrays, rows, error } = result?;
        if rows > 0 {
            columns.resize_with(arrays.len(), Vec::new);
            columns.iter_mut().zip(arrays).for_each(|(column, array)| column.push(array));
            self.rows += rows;
        }
        match error {
            None => Ok(()),
            Some(error) => {
                self.is_broken = true;
                Err(error)
            }
        }
    }
}

/// A record at which the columns end.
struct Wrong {
    row: usize,
    field: usize,
    kind: ErrorKind,
    found: String,
    expected: String,
    /// Its position in the block.
    at: usize,
}

impl Shape {
    /// The columns, each with the number of its field.
    fn columns(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate().filter_map(|(at, field)| Some((at, field.as_ref()?)))
    }

    /// Finds the fields of the records, up to the first record that has too few.
    fn split(&self, block: &BatchCopy, scratch: &mut Scratch) -> Option<Wrong> {
        let Scratch { separators, bounds } = scratch;
        separators.clear();
        bounds.clear();
        let (batch, count) = (block.batch(), self.fields.len());
        let bytes = batch.bytes();
        if !Delimiter::byte(self.separator).batch(bytes, true, usize::MAX, separators).unwrap_or(true) {
            // The end of the bytes, which is not a separator.
            separators.pop();
        }
        let mut separators = &separators[..];
        for (row, record) in batch.iter().enumerate() {
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
                return Some(Wrong {
                    row,
                    field: fields,
                    kind: ErrorKind::ValueMissing,
                    found: if fields == 1 { "1 field".to_string() } else { format!("{fields} fields") },
                    expected: format!("at least {count}"),
                    at: end,
                });
            }
            bounds.push(start as u32);
            bounds.extend_from_slice(between);
            // Fields after the last column are ignored.
            bounds.push(others.first().map_or(end + 1, |&after| (after as usize).min(end + 1)) as u32);
            separators = others;
        }
        None
    }

    fn parse(&self, block: &BatchCopy, scratch: &mut Scratch) -> Result<Parsed> {
        let mut wrong = self.split(block, scratch);
        let (batch, stride) = (block.batch(), self.fields.len() + 1);
        let mut rows = scratch.bounds.len() / stride;
        let mut arrays = Vec::new();
        let how = build::How { exact: false, rules: Rules::default(), nullable: true, goes_on: false };
        for (index, field) in self.columns() {
            let missing = self.missing.as_deref();
            let texts = Column { bytes: batch.bytes(), bounds: &scratch.bounds, stride, index, missing };
            let (array, misfits) = build::array(&texts, field.data_type(), how)?;
            arrays.push(array);
            // A record with too few fields comes last, and the fields of a record are checked from the left.
            if let Some(misfit) = misfits.first()
                && misfit.row < rows
            {
                rows = misfit.row;
                wrong = Some(misfit_of(&texts, index, rows, misfit.kind, field.data_type()));
            }
        }
        arrays.iter_mut().for_each(|array| *array = array.slice(0, rows));
        let error = wrong.map(|wrong| {
            let path = match self.fields.get(wrong.field) {
                Some(Some(field)) => field.name().clone(),
                _ => wrong.field.to_string(),
            };
            let error = Error::new(wrong.kind).with_path(path).with_found(wrong.found).with_expected(wrong.expected);
            block.locate(error, wrong.row, wrong.at - batch.offsets()[wrong.row] as usize)
        });
        Ok(Parsed { arrays, rows, error })
    }
}

/// The error for a field that is not a value of its column.
#[cold]
fn misfit_of(texts: &Column<'_>, field: usize, row: usize, kind: ErrorKind, data_type: &DataType) -> Wrong {
    let (range, text) = (texts.range(row), &texts.bytes[texts.range(row)]);
    let (mut at, mut found) = (range.start, show(text));
    let expected = match (kind, name(data_type)) {
        (ErrorKind::Utf8Invalid, _) => {
            let valid = str::from_utf8(text).err().map_or(0, |error| error.valid_up_to());
            at += valid;
            found = format!("0x{:02x} in \"{found}\"", text.get(valid).copied().unwrap_or_default());
            "UTF-8 text".to_string()
        }
        (_, name) => format!("a number ({})", name.unwrap_or_default()),
    };
    Wrong { row, field, kind, found, expected, at }
}

/// Formats a field for a message: without control characters, and shortened.
fn show(field: &[u8]) -> String {
    const MOST: usize = 64;
    match field {
        [] => "an empty field".to_string(),
        field if field.len() <= MOST => field.escape_ascii().to_string(),
        field => format!("{}...", field[..MOST].escape_ascii()),
    }
}
