//! One writer for every format.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use millstream::Result;
use millstream::bson::Json;

use crate::extended_json::Style;

use super::arrow::{ArrowFile, ArrowStream};
use super::csv::CsvText;
use super::documents::ExtendedJson;
use super::json::JsonTable;
use super::parquet::Parquet;
use super::{BinaryOptions, csv};

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An Arrow IPC file, also called Feather: it can be mapped.
    Arrow,
    /// An Arrow IPC stream, for a pipe.
    ArrowStream,
    Parquet,
    /// Comma-separated values, with a line of names.
    Csv,
    /// A JSON object per line.
    JsonLines,
    /// Documents of BSON as Extended JSON, one per line. The only column has their bytes.
    ExtendedJson,
}

/// How formats of text are written.
#[derive(Clone, Debug)]
pub(crate) struct TextOptions {
    /// The text for null in CSV.
    pub(crate) null: String,
    /// Whether the text is printed on a terminal.
    pub(crate) is_seen: bool,
    /// The kind of Extended JSON.
    pub(crate) json: Json,
}

/// A table that is being written.
pub(crate) enum Table<W: Write + Send> {
    Arrow(Box<ArrowFile<W>>),
    ArrowStream(Box<ArrowStream<W>>),
    Parquet(Box<Parquet<W>>),
    Csv(Box<csv::CsvTable<W>>),
    JsonLines(Box<JsonTable<W>>),
    ExtendedJson(ExtendedJson<W>),
}

impl<W: Write + Send> Table<W> {
    /// Begins a table. `source` is the metadata that is known before the rows are.
    ///
    /// # Errors
    /// Returns [`Unsupported`](millstream::ErrorKind::Unsupported) for a column whose type the format does not have.
    pub(crate) fn new(
        kind: Kind,
        schema: &SchemaRef,
        binary: &BinaryOptions,
        text: &TextOptions,
        source: &[(String, String)],
        out: W,
    ) -> Result<Table<W>> {
        Ok(match kind {
            Kind::Arrow => Table::Arrow(Box::new(ArrowFile::new(schema, binary.packing, out)?)),
            Kind::ArrowStream => Table::ArrowStream(Box::new(ArrowStream::new(schema, source, binary.packing, out)?)),
            Kind::Parquet => Table::Parquet(Box::new(Parquet::new(schema, binary, out)?)),
            Kind::Csv => {
                let text = CsvText { null: text.null.clone(), is_seen: text.is_seen };
                Table::Csv(Box::new(csv::CsvTable::new(schema, text, out)?))
            }
            Kind::JsonLines => Table::JsonLines(Box::new(JsonTable::new(schema, text.is_seen, out)?)),
            Kind::ExtendedJson => {
                let style = Style { json: text.json, is_seen: text.is_seen };
                Table::ExtendedJson(ExtendedJson::new(style, out))
            }
        })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Returns errors of the output, and values that the format cannot hold.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Table::Arrow(table) => table.write(batch),
            Table::ArrowStream(table) => table.write(batch),
            Table::Parquet(table) => table.write(batch),
            Table::Csv(table) => table.write(batch),
            Table::JsonLines(table) => table.write(batch),
            Table::ExtendedJson(table) => table.write(batch),
        }
    }

    /// Returns an estimate of the bytes that have not been written yet.
    pub(crate) fn pending(&self) -> usize {
        match self {
            Table::Parquet(table) => table.pending(),
            Table::Arrow(_) | Table::ArrowStream(_) | Table::Csv(_) | Table::JsonLines(_) | Table::ExtendedJson(_) => 0,
        }
    }

    /// Completes the table, and returns the output. Parquet and files of Arrow IPC get the metadata.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub(crate) fn finish(self, metadata: &[(String, String)]) -> Result<W> {
        match self {
            Table::Arrow(table) => table.finish(metadata),
            Table::ArrowStream(table) => table.finish(),
            Table::Parquet(table) => table.finish(metadata),
            Table::Csv(table) => table.finish(),
            Table::JsonLines(table) => table.finish(),
            Table::ExtendedJson(table) => Ok(table.finish()),
        }
    }
}
