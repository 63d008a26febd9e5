//! Converting streams of documents to other formats: Arrow, Parquet, CSV, and Extended JSON with one document per line.
//!
//! A document that does not fit causes an error with its path, offset and record, or is counted; it is never dropped
//! silently. Memory use is bounded by the batches, regardless of the length of the stream. The caller opens and closes
//! the source and the sink, and shows the progress.
//!
//! Arrow and Parquet store embedded documents as structs and arrays as lists. CSV has only plain columns: each member
//! of an embedded document gets a column, which is named by the member's path, and arrays become Extended JSON.

#[cfg(all(test, feature = "parquet"))]
mod tests;

use data_encoding::BASE64;
#[cfg(feature = "parquet")]
use millstream::bson::columns::RecordBatches;
use millstream::bson::columns::{
    Batches, Column, Columns, DataType, Field, LostTypes, OnAbsent, OnMismatch, OnMixed, OnUnknown, Sample, Schema,
    Values,
};
use millstream::bson::{DateTime, Decimal128, Documents, Json, ObjectId, Skipped, join_path};
use millstream::{Error, ErrorKind, Result, Writer};

use crate::tables::csv::{CsvText, empty_line, separate};
#[cfg(feature = "parquet")]
use crate::tables::{self, Table, TextOptions};
use crate::tables::{BinaryOptions, left_out};

use super::json::Style;

/// The minimum memory of the columns of one batch.
const BATCH_BYTES: usize = 16 << 20;

/// The maximum size of the documents in a sample.
const SAMPLE_BYTES: usize = 32 << 20;

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An Arrow IPC file, also called Feather: it can be mapped.
    Arrow,
    /// An Arrow IPC stream, for a pipe.
    ArrowStream,
    /// A Parquet file.
    Parquet,
    /// Extended JSON, one document per line.
    Ndjson,
    /// Comma-separated values, with a line of names. Empty text is quoted, null is not.
    Csv,
}

impl Format {
    /// Rejects a format that this build cannot write.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`], with advice on how to get the format.
    pub fn check(self) -> Result<()> {
        let needs_arrow = matches!(self, Format::Arrow | Format::ArrowStream | Format::Parquet);
        if needs_arrow && !cfg!(feature = "parquet") { Err(left_out("ndjson, csv, or ")) } else { Ok(()) }
    }
}

/// The options for converting documents.
#[derive(Clone, Debug)]
pub struct Options {
    /// The output format.
    pub format: Format,
    /// The columns. Without them, columns are inferred from the first documents.
    pub schema: Option<Schema>,
    /// The number of documents from which columns are inferred, up to 32 MiB of them.
    pub sample: usize,
    /// What happens to an inferred column whose types do not fit together.
    pub mixed: OnMixed,
    /// What happens to a value that does not fit its column.
    pub mismatch: OnMismatch,
    /// What happens to a member without a column.
    pub unknown: OnUnknown,
    /// What happens to a column for which no document has a member.
    pub absent: OnAbsent,
    /// How Parquet is written.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    pub binary: BinaryOptions,
    /// The kind of Extended JSON to write.
    pub json: Json,
    /// The maximum size of the columns of one batch, less than 2 GiB.
    pub memory_limit: usize,
    /// The text for null in CSV. Equal text is quoted.
    pub null: String,
    /// Whether control characters in text are escaped.
    pub is_seen: bool,
}

impl Options {
    /// Creates the default options: columns are inferred from 10,000 documents, and mixed ones become text. A value
    /// that does not fit causes an error, and so does a member that an inferred schema does not have.
    pub fn new(format: Format) -> Options {
        Options {
            format,
            schema: None,
            sample: 10_000,
            mixed: OnMixed::Json,
            mismatch: OnMismatch::Error,
            unknown: OnUnknown::Error,
            absent: OnAbsent::Error,
            binary: BinaryOptions::default(),
            json: Json::Relaxed,
            memory_limit: 1 << 30,
            null: String::new(),
            is_seen: false,
        }
    }

    /// Sets these columns. Members without a column are omitted.
    pub fn with_schema(self, schema: Schema) -> Options {
        Options { schema: Some(schema), unknown: OnUnknown::Ignore, ..self }
    }
}

/// The result of a conversion.
#[derive(Debug)]
pub struct Converted {
    /// The number of documents.
    pub documents: u64,
    /// The counts of values that were changed or omitted.
    pub counts: Counts,
    /// The source of the documents, after its end. It contains the count of skipped bytes, and the reader that must be
    /// closed.
    pub source: Documents,
}

/// Counts of data that the columns do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of values that did not fit and became null.
    pub mismatched: u64,
    /// The number of members without a column.
    pub unknown: u64,
    /// The number of values that have lost their type.
    pub lost_types: LostTypes,
    /// The columns for which no document has a member.
    pub absent: Vec<String>,
}

impl Counts {
    fn of(columns: &Columns) -> Counts {
        Counts {
            mismatched: columns.mismatched(),
            unknown: columns.unknown(),
            lost_types: columns.lost_types(),
            absent: columns.absent().map(|field| field.name().to_string()).collect(),
        }
    }
}

/// A conversion that did not reach the end.
#[derive(Debug)]
pub struct Failed {
    /// The reason.
    pub error: Error,
    /// The data that was skipped before the error.
    pub skipped: Skipped,
}

/// Converts all documents, and calls `progress` after each batch. The caller flushes the sink.
///
/// # Errors
/// Returns errors of the source or a document, with path, offset and record; errors for values that do not fit,
/// depending on the options; and errors of the sink. After an error, the output is an incomplete file.
pub fn convert(
    mut source: Documents,
    options: &Options,
    sink: &mut Writer,
    mut progress: impl FnMut(&Documents),
) -> std::result::Result<Converted, Failed> {
    if options.format == Format::Ndjson {
        let written = ndjson(&mut source, options, sink, progress);
        return converted(written, source, Counts::default());
    }
    let skipped = |source: &Documents| source.skipped().clone();
    let (sample, schema) =
        columns(&mut source, options).map_err(|error| Failed { error, skipped: skipped(&source) })?;
    let limits = millstream::bson::columns::Options::new()
        .on_mismatch(options.mismatch)
        .on_unknown(options.unknown)
        .on_absent(options.absent)
        .batch_bytes(BATCH_BYTES)
        .memory_limit(options.memory_limit);
    let skipped = skipped(&source);
    let mut batches = Batches::new(sample, source, &schema, limits).map_err(|error| Failed { error, skipped })?;
    let (written, batches) = match options.format {
        Format::Csv => (csv(&mut batches, options, sink, &mut progress), batches),
        #[cfg(feature = "parquet")]
        format => tables(batches, format, options, sink, &mut progress),
        #[cfg(not(feature = "parquet"))]
        _ => (Err(left_out("ndjson, csv, or ")), batches),
    };
    let counts = Counts::of(batches.columns());
    converted(written, batches.into_documents(), counts)
}

/// Returns the result, or the error that ended the writing.
fn converted(written: Result<u64>, source: Documents, counts: Counts) -> std::result::Result<Converted, Failed> {
    match written {
        Ok(documents) => Ok(Converted { documents, counts, source }),
        Err(error) => Err(Failed { error, skipped: source.skipped().clone() }),
    }
}

fn ndjson(
    source: &mut Documents,
    options: &Options,
    sink: &mut Writer,
    mut progress: impl FnMut(&Documents),
) -> Result<u64> {
    let style = Style { json: options.json, is_seen: options.is_seen };
    let (mut documents, mut line) = (0, Vec::new());
    let name = source.reader().name().to_string();
    while let Some(batch) = source.next_batch()? {
        for (document, record) in batch.iter().zip(batch.as_batch().first_record()..) {
            let written = style.write_line(&document, &mut line, sink);
            written.map_err(|error| error.with_name(&name).with_record(record))?;
            documents += 1;
        }
        progress(source);
    }
    Ok(documents)
}

/// Returns the columns that the options request, and the documents that were read to infer them.
fn columns(source: &mut Documents, options: &Options) -> Result<(Sample, Schema)> {
    let (sample, schema) = match &options.schema {
        Some(schema) => (Sample::default(), schema.clone()),
        None => {
            let sample = Sample::take(source, options.sample.max(1), SAMPLE_BYTES)?;
            let schema = sample.infer(options.mixed)?;
            (sample, schema)
        }
    };
    // Rows without columns could not be distinguished from missing rows.
    if matches!(options.format, Format::Parquet | Format::Csv) && schema.fields().is_empty() && !sample.is_empty() {
        return Err(Error::new(ErrorKind::ShapeMismatch)
            .with_found("documents without a member")
            .with_expected("at least one column, or another format"));
    }
    let schema = if options.format == Format::Csv { flat(&schema)? } else { schema };
    Ok((sample, schema))
}

/// Converts a schema to plain columns: members are named by their path, and arrays are text.
fn flat(schema: &Schema) -> Result<Schema> {
    let mut fields = Vec::new();
    for field in schema.fields() {
        flatten(field.keys().to_vec(), field.name().to_string(), field.data_type(), &mut fields)?;
    }
    Schema::new(fields)
}

/// The recursion is limited by the maximum depth of a schema.
fn flatten(keys: Vec<String>, name: String, data_type: &DataType, out: &mut Vec<Field>) -> Result<()> {
    let data_type = match data_type {
        DataType::Struct(members) => {
            for member in members {
                let inner: Vec<String> = keys.iter().chain(member.keys()).cloned().collect();
                let name = format!("{name}.{}", join_path([member.name()]));
                flatten(inner, name, member.data_type(), out)?;
            }
            return Ok(());
        }
        DataType::List(_) => DataType::Json,
        plain => plain.clone(),
    };
    out.push(Field::new(&join_path(&keys), data_type)?.named(name));
    Ok(())
}

/// Writes Arrow or Parquet. Also returns the batches, which contain the source.
#[cfg(feature = "parquet")]
fn tables(
    batches: Batches,
    format: Format,
    options: &Options,
    sink: &mut Writer,
    progress: &mut impl FnMut(&Documents),
) -> (Result<u64>, Batches) {
    let kind = match format {
        Format::Parquet => tables::Kind::Parquet,
        Format::ArrowStream => tables::Kind::ArrowStream,
        _ => tables::Kind::Arrow,
    };
    let mut batches = RecordBatches::new(batches);
    let write = || {
        let schema = batches.batches().columns().schema().to_arrow();
        let name = [batches.batches().documents().reader().name().to_string()];
        let source = tables::source_metadata(&name);
        let mut table = Table::new(kind, &schema, &options.binary, &TextOptions::default(), &source, sink)?;
        let mut rows = 0;
        while let Some(batch) = batches.next_batch()? {
            table.write(&batch)?;
            rows += batch.num_rows() as u64;
            progress(batches.batches().documents());
        }
        let rejected = batches.batches().documents().skipped().count();
        table.finish(&tables::metadata(&name, rows, rejected))?;
        Ok(rows)
    };
    let written = write();
    (written, batches.into_batches())
}

fn csv(
    batches: &mut Batches,
    options: &Options,
    sink: &mut Writer,
    progress: &mut impl FnMut(&Documents),
) -> Result<u64> {
    let names: Vec<String> = batches.columns().schema().fields().iter().map(|field| field.name().to_string()).collect();
    let text = CsvText { null: options.null.clone(), is_seen: options.is_seen };
    let (mut rows, mut line, mut value) = (0, Vec::new(), Vec::new());
    text.append_names(&mut line, names.iter().map(String::as_str));
    sink.write(&line)?;
    while let Some(columns) = batches.next_batch()? {
        for row in 0..columns.len() {
            line.clear();
            for (i, column) in columns.iter().enumerate() {
                separate(&mut line, i);
                if !column.is_valid(row) {
                    text.append_null(&mut line);
                } else if is_text(column) {
                    value.clear();
                    append_text(&mut value, column, row);
                    text.append(&mut line, &value);
                } else {
                    append_text(&mut line, column, row);
                }
            }
            if line.is_empty() && !names.is_empty() {
                return Err(empty_line(&names[0]));
            }
            line.push(b'\n');
            sink.write(&line)?;
        }
        rows += Columns::len(&columns) as u64;
        progress(batches.documents());
    }
    Ok(rows)
}

/// Returns whether values of the column could be empty, or contain something that CSV has to quote.
fn is_text(column: &Column) -> bool {
    matches!(column.values(), Values::String(_) | Values::Json(_) | Values::Binary(_))
}

/// Appends a value in CSV: numbers and text unchanged, ids in hexadecimal, dates as in RFC 3339, bytes in Base64.
fn append_text(out: &mut Vec<u8>, column: &Column, row: usize) {
    use std::io::Write as _;
    // Writing to a vector cannot fail.
    let _ = match column.values() {
        Values::Bool(bits) => write!(out, "{}", bits.get(row)),
        Values::Int32(values) => write!(out, "{}", values[row]),
        Values::Int64(values) => write!(out, "{}", values[row]),
        Values::Double(values) => write!(out, "{:?}", values[row]),
        Values::DateTime(values) => write!(out, "{}", DateTime(values[row])),
        Values::Timestamp(values) => write!(out, "{}", values[row]),
        Values::ObjectId(bytes) => {
            write!(out, "{}", ObjectId(bytes[row * 12..].first_chunk().copied().unwrap_or_default()))
        }
        Values::Decimal128(bytes) => {
            write!(out, "{}", Decimal128(bytes[row * 16..].first_chunk().copied().unwrap_or_default()))
        }
        Values::String(pieces) | Values::Json(pieces) => out.write_all(pieces.get(row).unwrap_or_default()),
        Values::Binary(pieces) => {
            let (bytes, start) = (pieces.get(row).unwrap_or_default(), out.len());
            out.resize(start + BASE64.encode_len(bytes.len()), 0);
            BASE64.encode_mut(bytes, &mut out[start..]);
            Ok(())
        }
        // Their rows are null, or they are flattened.
        Values::Null | Values::List(_) | Values::Struct(_) => Ok(()),
        _ => unreachable!("every other type is written above"),
    };
}
