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
//! for each member, as in pymongoarrow; a field with a path of several keys makes a plain column of the inner values. A
//! value that fits no column is an error with path and offset, or is counted: nothing is dropped silently.
//!
//! The memory has the layout of Apache Arrow's columns (<https://arrow.apache.org/docs/format/Columnar.html>) in plain
//! vectors; with the feature `arrow` it is exported as Arrow arrays without a copy.
//!
//! It does no input or output. A document that does not fit leaves nothing behind.

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
use millstream_core::Result;
use millstream_core::internal::refuse;

/// What to do with a value that does not fit its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMismatch {
    /// Report an error: [`ShapeMismatch`](ErrorKind::ShapeMismatch) or [`ValueOutOfRange`](ErrorKind::ValueOutOfRange).
    #[default]
    Error,
    /// It becomes null, and is counted in [`Columns::mismatched`]. If a value is required it is still an error.
    Null,
}

/// What to do with a member without a column, and with a duplicate key.
///
/// Each is counted in [`Columns::unknown`]. A value on a path that has no members counts as a member without a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// The member is omitted; a duplicate key is an error, [`ShapeMismatch`](ErrorKind::ShapeMismatch). For a schema
    /// that was given.
    #[default]
    Ignore,
    /// Both are omitted; the first value of a duplicate key is used.
    Count,
    /// Both are an error, [`ShapeMismatch`](ErrorKind::ShapeMismatch). For a schema that was inferred, and should be
    /// complete.
    Error,
}

/// What [`Batches`] do at the end of the stream with a column that no document had a member for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnAbsent {
    /// Report an error, [`KeyMissing`](ErrorKind::KeyMissing): the path may be misspelt.
    #[default]
    Error,
    /// The column contains nulls; [`Columns::absent`] names it.
    Null,
}

/// How many values had a type that their column does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostTypes {
    /// JavaScript, which is text in a column of text.
    pub code: u64,
    /// Symbols, which are text in a column of text.
    pub symbol: u64,
    /// Bytes with a subtype other than 0.
    pub subtype: u64,
    /// Undefined, which is null.
    pub undefined: u64,
}

/// How to make columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    mismatch: OnMismatch,
    unknown: OnUnknown,
    absent: OnAbsent,
    batch_bytes: usize,
    memory_limit: usize,
}

impl Options {
    /// Errors for values that do not fit, duplicate keys and columns that no document has; other members are omitted;
    /// 32 MiB in a batch, at most 1 GiB.
    pub const fn new() -> Options {
        Options {
            mismatch: OnMismatch::Error,
            unknown: OnUnknown::Ignore,
            absent: OnAbsent::Error,
            batch_bytes: 32 << 20,
            memory_limit: 1 << 30,
        }
    }

    /// What to do with a value that does not fit its column.
    pub const fn on_mismatch(self, mismatch: OnMismatch) -> Options {
        Options { mismatch, ..self }
    }

    /// What to do with a member without a column.
    pub const fn on_unknown(self, unknown: OnUnknown) -> Options {
        Options { unknown, ..self }
    }

    /// What [`Batches`] do with a column that no document had a member for.
    pub const fn on_absent(self, absent: OnAbsent) -> Options {
        Options { absent, ..self }
    }

    /// The size in bytes at which columns are [full](Columns::is_full). This is only information: more can be appended.
    pub const fn batch_bytes(self, bytes: usize) -> Options {
        Options { batch_bytes: bytes, ..self }
    }

    /// The most bytes that columns can have, less than 2 GiB. A document that would exceed it is
    /// [`MemoryLimit`](ErrorKind::MemoryLimit). Growing vectors take up to twice as much.
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
    /// One for each key of the schema's outermost ones, and inside them the targets of their paths.
    root: Members,
    /// For each field of the schema: the position of its column.
    places: Vec<Vec<usize>>,
    schema: Schema,
    len: usize,
    walk: Walk,
    /// How many bytes a row takes at least.
    width: usize,
    /// For each field: whether a document of the rows taken so far had a member for it.
    present: Vec<bool>,
}

impl Columns {
    /// Columns without rows.
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

    /// Appends a document as a row. One traversal; if its members are in the order of the schema, none is searched for.
    ///
    /// # Errors
    /// Errors of the document as far as it is read; values that do not fit, depending on the options;
    /// [`KeyMissing`](ErrorKind::KeyMissing) for a missing required value; [`MemoryLimit`](ErrorKind::MemoryLimit). The
    /// row is then not added, and the next document can be appended.
    pub fn append(&mut self, document: &Document<'_>) -> Result<()> {
        // The size of a row: its fixed part, the text and bytes of the document, and what `Lists` and JSON add. So no
        // offset exceeds the limit.
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

    /// Whether the rows have the size of a batch: time to [take](Columns::take) them.
    pub fn is_full(&self) -> bool {
        self.walk.counts.used >= self.walk.options.batch_bytes
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The columns, in the order of the schema.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Column> {
        self.places.iter().map(|place| self.at(place))
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let index = self.schema.fields().iter().position(|field| field.name() == name)?;
        Some(self.at(&self.places[index]))
    }

    /// How many values did not fit, and became null: with [`OnMismatch::Null`].
    pub fn mismatched(&self) -> u64 {
        self.walk.counts.mismatched
    }

    /// How many members had no column, and how many keys repeated.
    pub fn unknown(&self) -> u64 {
        self.walk.counts.unknown
    }

    /// How many values had a type that their column does not show.
    pub fn lost_types(&self) -> LostTypes {
        self.walk.counts.lost_types
    }

    /// The columns that no document so far had a member for.
    pub fn absent(&self) -> impl Iterator<Item = &Field> {
        let present = self.iter().zip(&self.present).map(|(column, &taken)| taken || column.missing < column.len);
        self.schema.fields().iter().zip(present).filter(|(_, present)| !present).map(|(field, _)| field)
    }

    /// The current columns; afterwards these have no rows, and can be filled again. The counts are kept.
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

/// Makes the column of a field, and those on its path, and returns its position.
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
