//! Documents as columns: vectors of one type, as in tables and data frames.
//!
//! ```
//! use millstream::Reader;
//! use millstream::bson::Documents;
//! use millstream::bson::columns::{Columns, DataType, Field, Options, Schema, Values};
//! let mut documents = Documents::new(Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x05\0\0\0\0")?);
//! let schema = Schema::new([Field::new("n", DataType::Int64)?])?;
//! let mut columns = Columns::new(&schema, Options::new())?;
//! while let Some(document) = documents.next()? {
//!     columns.append(&document)?;
//! }
//! let column = columns.column("n").unwrap();
//! assert_eq!(column.values(), &Values::Int64(vec![42, 0]));
//! assert_eq!((column.is_valid(0), column.is_valid(1)), (true, false));
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! The types of columns are given as a [`Schema`], or [inferred](Inference) from the first documents. A value that is
//! missing, null or undefined is null in its column. An embedded document is a column of documents, which has a column
//! for each member, as in pymongoarrow; a field with a path of several keys is a plain column of the inner values. A
//! value that does not fit is reported as an error with its path and offset, or is counted: nothing is dropped
//! silently.
//!
//! The memory has the layout of Apache Arrow's columns (<https://arrow.apache.org/docs/format/Columnar.html>) in plain
//! vectors; with the feature `arrow` it is exported as Arrow arrays without a copy.
//!
//! The module does no input or output. A document that does not fit leaves no partial row.

mod append;
#[cfg(feature = "arrow")]
mod arrow;
mod batches;
mod column;
mod infer;
mod json;
mod sample;
mod schema;

#[cfg(feature = "arrow")]
pub use arrow::RecordBatches;
pub use batches::Batches;
pub use column::{Bits, Column, Lists, Members, Pieces, Values};
pub use infer::{Inference, OnMixed};
pub use sample::Sample;
pub use schema::{DataType, Field, Schema};

use super::Document;
use append::{Counts, Walk};
#[cfg(doc)]
use millstream_core::ErrorKind;
use millstream_core::internal::refuse;
use millstream_core::{Error, Result};

/// What to do with a value that does not fit its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMismatch {
    /// Report an error: [`ShapeMismatch`](ErrorKind::ShapeMismatch) or [`ValueOutOfRange`](ErrorKind::ValueOutOfRange).
    #[default]
    Error,
    /// The value becomes null, and is counted in [`Columns::mismatched`]. A required value that does not fit is still
    /// an error.
    Null,
}

/// What to do with a member without a column, and with a duplicate key.
///
/// Each such member is counted in [`Columns::unknown`]. A value on a path that has no members counts as a member
/// without a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// The member is omitted; a duplicate key fails with [`ShapeMismatch`](ErrorKind::ShapeMismatch). Use this for a
    /// schema that was given.
    #[default]
    Ignore,
    /// Both are omitted; the first value of a duplicate key is used.
    Count,
    /// Both fail with [`ShapeMismatch`](ErrorKind::ShapeMismatch). Use this for a schema that was inferred and should
    /// be complete.
    Error,
}

/// What to do at the end of the stream with a column for which no document had a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnAbsent {
    /// Report an error, [`KeyMissing`](ErrorKind::KeyMissing): the path may be misspelt.
    #[default]
    Error,
    /// The column contains nulls; [`Columns::absent`] names it.
    Null,
}

/// The number of values whose original type is not visible in their column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostTypes {
    /// JavaScript that became text.
    pub code: u64,
    /// Symbols that became text.
    pub symbol: u64,
    /// Bytes with a subtype other than 0.
    pub subtype: u64,
    /// Undefined values, which became null.
    pub undefined: u64,
}

/// A document that was left out.
#[derive(Debug)]
pub struct Reject {
    /// The reason, with the place.
    pub error: Error,
    /// The beginning of the document, or of the bytes that are not documents.
    pub raw: Vec<u8>,
}

impl Reject {
    /// An estimate of its memory in bytes.
    fn size(&self) -> usize {
        // The error has a name, a path and other texts.
        512 + self.raw.len()
    }
}

/// Options for converting documents to columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    mismatch: OnMismatch,
    unknown: OnUnknown,
    absent: OnAbsent,
    batch_bytes: usize,
    memory_limit: usize,
}

impl Options {
    /// The defaults: an error for values that do not fit, for duplicate keys, and for columns that no document has;
    /// members without a column are omitted; a batch has 32 MiB and the memory limit is 1 GiB.
    pub const fn new() -> Options {
        Options {
            mismatch: OnMismatch::Error,
            unknown: OnUnknown::Ignore,
            absent: OnAbsent::Error,
            batch_bytes: 32 << 20,
            memory_limit: 1 << 30,
        }
    }

    /// Sets what to do with a value that does not fit its column.
    pub const fn on_mismatch(self, mismatch: OnMismatch) -> Options {
        Options { mismatch, ..self }
    }

    /// Sets what to do with a member without a column.
    pub const fn on_unknown(self, unknown: OnUnknown) -> Options {
        Options { unknown, ..self }
    }

    /// Sets what [`Batches`] do with a column for which no document had a member.
    pub const fn on_absent(self, absent: OnAbsent) -> Options {
        Options { absent, ..self }
    }

    /// Sets the size in bytes from which columns are [full](Columns::is_full). This is only information: more can be
    /// appended.
    pub const fn batch_bytes(self, bytes: usize) -> Options {
        Options { batch_bytes: bytes, ..self }
    }

    /// Sets the maximum size of the columns in bytes, less than 2 GiB. Appending a document that would exceed it
    /// fails with [`MemoryLimit`](ErrorKind::MemoryLimit). While vectors grow, they use up to twice as much memory.
    pub const fn memory_limit(self, bytes: usize) -> Options {
        Options { memory_limit: bytes, ..self }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

/// Columns that grow by a row for each document.
#[derive(Clone, Debug)]
pub struct Columns {
    /// One column for each outermost key of the schema; the targets of paths are inside these.
    root: Members,
    /// The position of the column of each field in the schema.
    places: Vec<Vec<usize>>,
    schema: Schema,
    len: usize,
    walk: Walk,
    /// The minimum number of bytes per row.
    width: usize,
    /// For each field, whether any document so far has had a member for it.
    present: Vec<bool>,
}

impl Columns {
    /// Creates columns without rows.
    ///
    /// # Errors
    /// [`InvalidOption`](ErrorKind::InvalidOption) for a memory limit of 2 GiB or more.
    pub fn new(schema: &Schema, options: Options) -> Result<Columns> {
        let limit = options.memory_limit;
        refuse(&[(limit > i32::MAX as usize, &format_args!("a memory limit of {limit} bytes"), &"less than 2 GiB")])?;
        let mut root = Members::default();
        let places = schema.fields().iter().map(|field| place(&mut root, field)).collect();
        let width = root.width();
        let walk = Walk { options, counts: Counts::default() };
        let present = vec![false; schema.fields().len()];
        Ok(Columns { root, places, schema: schema.clone(), len: 0, walk, width, present })
    }

    /// Appends a document as a row, in one traversal. If its members are in the order of the schema, no searching is
    /// needed.
    ///
    /// # Errors
    /// Errors of the document as far as it is read; values that do not fit, depending on the options;
    /// [`KeyMissing`](ErrorKind::KeyMissing) for a missing required value; [`MemoryLimit`](ErrorKind::MemoryLimit).
    /// In that case the row is not added, and the next document can be appended.
    pub fn append(&mut self, document: &Document<'_>) -> Result<()> {
        // The size of a row is its fixed part, the text and bytes of the document, and what `Lists` and JSON add. This
        // bound ensures that no offset exceeds the limit.
        let before = self.walk.counts;
        let appended = match self.walk.spend(self.width + document.len()) {
            Ok(()) => self.root.append(&mut document.cursor(), self.len, &mut self.walk),
            Err(error) => Err(error),
        };
        match appended {
            Ok(()) => {
                self.len += 1;
                Ok(())
            }
            Err(error) => {
                self.root.columns.iter_mut().for_each(|column| column.truncate(self.len));
                self.walk.counts = before;
                Err(document.locate(error).with_offset(document.offset()))
            }
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An upper limit for the size of the rows in bytes.
    pub fn byte_len(&self) -> usize {
        self.walk.counts.used
    }

    /// Whether the rows have reached the size of a batch, so that they should be [taken](Columns::take).
    pub fn is_full(&self) -> bool {
        self.walk.counts.used >= self.walk.options.batch_bytes
    }

    /// The size in bytes from which they are full.
    fn batch_bytes(&self) -> usize {
        self.walk.options.batch_bytes
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The columns, in the order of the schema.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Column> {
        self.places.iter().map(|place| self.at(place))
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let index = self.schema.fields().iter().position(|field| field.name() == name)?;
        Some(self.at(&self.places[index]))
    }

    /// The number of values that did not fit and became null, with [`OnMismatch::Null`].
    pub fn mismatched(&self) -> u64 {
        self.walk.counts.mismatched
    }

    /// The number of members without a column and of duplicate keys.
    pub fn unknown(&self) -> u64 {
        self.walk.counts.unknown
    }

    /// The number of values whose original type is not visible in their column.
    pub fn lost_types(&self) -> LostTypes {
        self.walk.counts.lost_types
    }

    /// The columns for which no document so far has had a member.
    pub fn absent(&self) -> impl Iterator<Item = &Field> {
        let present = self.iter().zip(&self.present).map(|(column, &taken)| taken || column.missing < column.len);
        self.schema.fields().iter().zip(present).filter(|(_, present)| !present).map(|(field, _)| field)
    }

    /// Returns the current columns and replaces them with columns that have no rows. The counts are kept.
    pub fn take(&mut self) -> Columns {
        let mut root = Members::default();
        self.schema.fields().iter().for_each(|field| drop(place(&mut root, field)));
        let present = self.iter().zip(&self.present).map(|(column, &taken)| taken || column.missing < column.len);
        self.present = present.collect();
        let taken = Columns {
            root: std::mem::replace(&mut self.root, root),
            places: self.places.clone(),
            schema: self.schema.clone(),
            len: self.len,
            walk: self.walk.clone(),
            width: self.width,
            present: self.present.clone(),
        };
        (self.len, self.walk.counts.used) = (0, 0);
        taken
    }

    fn at(&self, place: &[usize]) -> &Column {
        let mut column = &self.root.columns[place[0]];
        for &index in &place[1..] {
            if let Values::Struct(members) = &column.values {
                column = &members.columns[index];
            }
        }
        column
    }
}

/// Adds the column of a field and those on its path, and returns its position.
fn place(root: &mut Members, field: &Field) -> Vec<usize> {
    let mut members = root;
    let mut place = Vec::new();
    for (depth, key) in field.keys().iter().enumerate() {
        if depth + 1 == field.keys().len() {
            place.push(members.push(Column::of_field(field)));
            break;
        }
        let index = members.columns.iter().position(|column| column.is_path && column.key == *key);
        let index = index.unwrap_or_else(|| {
            let inside = Column::of_type(key.clone(), true, &DataType::Struct(Vec::new()));
            members.push(Column { is_path: true, ..inside })
        });
        place.push(index);
        match &mut members.columns[index].values {
            Values::Struct(inside) => members = inside,
            _ => break,
        }
    }
    place
}
