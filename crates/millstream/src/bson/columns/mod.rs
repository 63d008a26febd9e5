//! Documents as columns: vectors of one type, as tables and data frames hold them.
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
//! missing, null or undefined is none in its column. An embedded document is a column of documents, which has a column
//! for each member, as in pymongoarrow; a field with a path of several keys makes a plain column of what is inside.
//! What fits no column is an error with path and offset, or is counted: nothing is dropped silently.
//!
//! The memory is that of Apache Arrow's columns (<https://arrow.apache.org/docs/format/Columnar.html>) in plain
//! vectors; with the feature `arrow` it is handed out as Arrow arrays without a copy.
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
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Result, refuse};
use append::Walk;

/// What happens to a value that does not fit its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMismatch {
    /// It is an error: [`ShapeMismatch`](ErrorKind::ShapeMismatch) or [`ValueOutOfRange`](ErrorKind::ValueOutOfRange).
    #[default]
    Error,
    /// It is none, and counted by [`Columns::mismatched`]. Where a value must be there it is an error still.
    Null,
}

/// What happens to a member that no column reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// It is counted by [`Columns::unknown`].
    #[default]
    Count,
    /// It is an error, [`ShapeMismatch`](ErrorKind::ShapeMismatch): for a schema that was inferred, and should be
    /// whole.
    Error,
}

/// How columns are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    mismatch: OnMismatch,
    unknown: OnUnknown,
    batch_bytes: usize,
    memory_limit: usize,
}

impl Options {
    /// Errors for what does not fit, a count of what is not known, 32 MiB in a batch, at most 1 GiB.
    pub const fn new() -> Options {
        Options { mismatch: OnMismatch::Error, unknown: OnUnknown::Count, batch_bytes: 32 << 20, memory_limit: 1 << 30 }
    }

    /// What happens to a value that does not fit its column.
    pub const fn on_mismatch(self, mismatch: OnMismatch) -> Options {
        Options { mismatch, ..self }
    }

    /// What happens to a member that no column reads.
    pub const fn on_unknown(self, unknown: OnUnknown) -> Options {
        Options { unknown, ..self }
    }

    /// From how many bytes on columns are [full](Columns::is_full). That only tells: more can be appended.
    pub const fn batch_bytes(self, bytes: usize) -> Options {
        Options { batch_bytes: bytes, ..self }
    }

    /// How many bytes columns can have at most, less than 2 GiB. A document that would take more is
    /// [`MemoryLimit`](ErrorKind::MemoryLimit). Vectors that grow take up to twice as much.
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
    /// One for each key of the schema's outermost ones, and inside of them what their paths lead to.
    root: Members,
    /// For each field of the schema: where its column is.
    places: Vec<Vec<usize>>,
    schema: Schema,
    len: usize,
    walk: Walk,
    /// How many bytes a row takes at least.
    width: usize,
}

impl Columns {
    /// Columns without a row.
    ///
    /// # Errors
    /// [`InvalidOption`](ErrorKind::InvalidOption) for a memory limit of 2 GiB or more.
    pub fn new(schema: &Schema, options: Options) -> Result<Columns> {
        let limit = options.memory_limit;
        refuse(&[(limit > i32::MAX as usize, &format_args!("a memory limit of {limit} bytes"), &"less than 2 GiB")])?;
        let mut root = Members::default();
        let places = schema.fields().iter().map(|field| place(&mut root, field)).collect();
        let width = root.width();
        let walk = Walk { options, used: 0, unknown: 0, mismatched: 0 };
        Ok(Columns { root, places, schema: schema.clone(), len: 0, walk, width })
    }

    /// Appends a document as a row. One walk; where its members come in the order of the schema, none is searched for.
    /// Of members with the same key the first counts.
    ///
    /// # Errors
    /// What is wrong with the document as far as it is read; what does not fit, by the options;
    /// [`KeyMissing`](ErrorKind::KeyMissing) where a value must be there; [`MemoryLimit`](ErrorKind::MemoryLimit). The
    /// row is not there then, and the next document can be appended.
    pub fn append(&mut self, document: &Document<'_>) -> Result<()> {
        // All that a row takes: its fixed part, the text and bytes of the document, and what `Lists` and JSON add. So
        // no offset exceeds the limit.
        let before = (self.walk.used, self.walk.unknown, self.walk.mismatched);
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
                (self.walk.used, self.walk.unknown, self.walk.mismatched) = before;
                Err(document.locate(error).with_offset(document.offset()))
            }
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// At most how many bytes the rows take.
    pub fn byte_len(&self) -> usize {
        self.walk.used
    }

    /// Whether the rows take as much as a batch should: time to [take](Columns::take) them.
    pub fn is_full(&self) -> bool {
        self.walk.used >= self.walk.options.batch_bytes
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

    /// How many values did not fit, and are none: with [`OnMismatch::Null`].
    pub fn mismatched(&self) -> u64 {
        self.walk.mismatched
    }

    /// How many members no column reads.
    pub fn unknown(&self) -> u64 {
        self.walk.unknown
    }

    /// The columns as they are; these have no row then, and go on. The counts stay here.
    pub fn take(&mut self) -> Columns {
        let mut root = Members::default();
        self.schema.fields().iter().for_each(|field| drop(place(&mut root, field)));
        let taken = Columns {
            root: std::mem::replace(&mut self.root, root),
            places: self.places.clone(),
            schema: self.schema.clone(),
            len: self.len,
            walk: self.walk.clone(),
            width: self.width,
        };
        (self.len, self.walk.used) = (0, 0);
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

/// Makes the column of a field, and what its path goes through, and says where it is.
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
