//! What all blocks of a source have in common.

use crate::infer::How;
use crate::options::{Duplicates, Reject};
use crate::schema::{Schema, type_name};
use millstream::frame::{Csv, CsvRagged};
use millstream::{Error, ErrorKind};

/// How blocks of records become batches. All threads share it.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    /// The number of fields of a record.
    pub(crate) fields: usize,
    /// The fields that are columns, if these are not all of them in order.
    pub(crate) picked: Option<Vec<usize>>,
    pub(crate) schema: Schema,
    pub(crate) nulls: Vec<Vec<u8>>,
    pub(crate) ragged: CsvRagged,
    pub(crate) goes_on: bool,
    pub(crate) how: How,
}

/// What the records of a source are.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    Lines,
    Csv(Csv),
    Json(Names),
}

/// How members are assigned to columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) duplicates: Duplicates,
    /// Whether a member without a column is bad. Otherwise it is left out.
    pub(crate) is_closed: bool,
}

/// What a block has become.
pub(crate) struct Parsed {
    pub(crate) batch: arrow_array::RecordBatch,
    pub(crate) rejects: Vec<Reject>,
    /// The error that follows the batch.
    pub(crate) error: Option<Error>,
}

impl Layout {
    /// Returns the dialect of CSV.
    pub(crate) fn csv(&self) -> Option<&Csv> {
        match &self.format {
            Format::Csv(csv) => Some(csv),
            Format::Lines | Format::Json(_) => None,
        }
    }

    /// Describes a text that does not fit its column.
    #[cold]
    pub(crate) fn misfit(&self, kind: ErrorKind, text: Option<&[u8]>, field: &arrow_schema::Field) -> Error {
        self.unfit(kind, text.map(show), field).with_path(field.name())
    }

    /// Describes a value that does not fit its column. `None` is null.
    #[cold]
    pub(crate) fn unfit(&self, kind: ErrorKind, found: Option<String>, field: &arrow_schema::Field) -> Error {
        let name = type_name(field);
        let (kind, expected) = match self.schema.is_inferred() {
            // The kind is the same whatever the value is: the type was a guess.
            true => (ErrorKind::ShapeMismatch, format!("{name}, as in the records from which the type was inferred")),
            false if found.is_none() => (ErrorKind::ValueMissing, format!("{name}, which is not nullable")),
            false => (kind, name),
        };
        Error::new(kind).with_found(found.unwrap_or_else(|| "null".to_string())).with_expected(expected)
    }
}

/// Formats a text for a message: without control characters, and shortened.
pub(crate) fn show(text: &[u8]) -> String {
    const MOST: usize = 64;
    match text {
        [] => "an empty text".to_string(),
        text if text.len() <= MOST => format!("\"{}\"", text.escape_ascii()),
        text => format!("\"{}...\"", text[..MOST].escape_ascii()),
    }
}
