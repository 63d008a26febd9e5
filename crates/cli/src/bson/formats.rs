//! Streams of documents into other formats: Arrow, Parquet, CSV, and Extended JSON one a line.
//!
//! It promises: a document that does not fit is an error with its path, offset and record, or is counted, never dropped
//! silently; memory is bounded by the batches, whatever the stream is long. It does not open, close or show anything:
//! who calls does.
//!
//! Arrow and Parquet hold embedded documents as structs and arrays as lists. CSV holds only plain columns: members of
//! embedded documents get a column each, named by their path, and arrays are Extended JSON.

#[cfg(test)]
mod tests;

use std::io;

use arrow_ipc::writer::{FileWriter, StreamWriter};
use data_encoding::BASE64;
use millstream::bson::columns::{
    Batches, Columns, DataType, Field, OnMismatch, OnMixed, OnUnknown, RecordBatches, Sample, Schema, Values,
};
use millstream::bson::{DateTime, Decimal128, Documents, Json, ObjectId, Skipped, join_path};
use millstream::{Error, ErrorKind, Result, Writer};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// How much memory the columns of one batch take at least.
const BATCH_BYTES: usize = 16 << 20;

/// How much memory a row group of Parquet takes before it is written out. What is written is smaller.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// How many bytes of documents a sample has at most.
const SAMPLE_BYTES: usize = 32 << 20;

/// What documents are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An Arrow IPC file, also called Feather: it can be mapped.
    Arrow,
    /// An Arrow IPC stream, for a pipe.
    ArrowStream,
    /// A Parquet file.
    Parquet,
    /// Extended JSON, one document a line.
    Ndjson,
    /// Comma-separated values, with a line of names. What is missing is empty.
    Csv,
}

/// How Parquet is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// By zstd, level 3: smaller than snappy at little more time, and read by every current tool.
    #[default]
    Zstd,
    /// By snappy, for readers that know nothing else.
    Snappy,
    /// Not at all.
    None,
}

/// How documents are converted.
#[derive(Clone, Debug)]
pub struct Options {
    /// To what.
    pub format: Format,
    /// The columns; without them they are inferred from the first documents.
    pub schema: Option<Schema>,
    /// From how many documents columns are inferred, as far as these have 32 MiB.
    pub sample: usize,
    /// What happens to an inferred column whose values have types that do not go together.
    pub mixed: OnMixed,
    /// What happens to a value that does not fit its column.
    pub mismatch: OnMismatch,
    /// What happens to a member that no column reads.
    pub unknown: OnUnknown,
    /// How Parquet is compressed.
    pub packing: Packing,
    /// Which Extended JSON is written.
    pub json: Json,
}

impl Options {
    /// Columns are inferred from 10,000 documents, mixed ones are text; what does not fit is an error, and so is what
    /// an inferred schema does not know.
    pub fn new(format: Format) -> Options {
        Options {
            format,
            schema: None,
            sample: 10_000,
            mixed: OnMixed::Json,
            mismatch: OnMismatch::Error,
            unknown: OnUnknown::Error,
            packing: Packing::default(),
            json: Json::Relaxed,
        }
    }

    /// With these columns: members that are not among them are counted.
    pub fn with_schema(self, schema: Schema) -> Options {
        Options { schema: Some(schema), unknown: OnUnknown::Count, ..self }
    }
}

/// What has been converted.
#[derive(Debug)]
pub struct Converted {
    /// How many documents.
    pub documents: u64,
    /// How many values did not fit and are none.
    pub mismatched: u64,
    /// How many members no column reads.
    pub unknown: u64,
    /// Where the documents came from, at their end: knows what was skipped, and has the reader to close.
    pub source: Documents,
}

/// How far it came, and why not to the end.
#[derive(Debug)]
pub struct Failed {
    /// What went wrong.
    pub error: Error,
    /// What was passed over before that.
    pub skipped: Skipped,
}

/// Converts all documents, and calls `progress` after each batch. The sink is flushed by who closes it.
///
/// # Errors
/// What is wrong with the source or a document, with path, offset and record; what does not fit, by the options; how
/// the sink failed. What was written then is no whole file.
pub fn convert(
    mut source: Documents,
    options: &Options,
    sink: &mut Writer,
    mut progress: impl FnMut(&Documents),
) -> std::result::Result<Converted, Failed> {
    if options.format == Format::Ndjson {
        let written = ndjson(&mut source, options.json, sink, progress);
        return converted(written, source, (0, 0));
    }
    let skipped = |source: &Documents| source.skipped().clone();
    let (sample, schema) =
        columns(&mut source, options).map_err(|error| Failed { error, skipped: skipped(&source) })?;
    let limits = millstream::bson::columns::Options::new()
        .on_mismatch(options.mismatch)
        .on_unknown(options.unknown)
        .batch_bytes(BATCH_BYTES);
    let skipped = skipped(&source);
    let mut batches = Batches::new(sample, source, &schema, limits).map_err(|error| Failed { error, skipped })?;
    let (written, batches) = match options.format {
        Format::Csv => (csv(&mut batches, sink, &mut progress), batches),
        format => {
            let mut batches = RecordBatches::new(batches);
            let written = match format {
                Format::Parquet => parquet(&mut batches, options.packing, sink, &mut progress),
                _ => arrow(&mut batches, format, sink, &mut progress),
            };
            (written, batches.into_batches())
        }
    };
    let counts = (batches.columns().mismatched(), batches.columns().unknown());
    converted(written, batches.into_documents(), counts)
}

/// What so many documents, or the error behind them, come to.
fn converted(
    written: Result<u64>,
    source: Documents,
    (mismatched, unknown): (u64, u64),
) -> std::result::Result<Converted, Failed> {
    match written {
        Ok(documents) => Ok(Converted { documents, mismatched, unknown, source }),
        Err(error) => Err(Failed { error, skipped: source.skipped().clone() }),
    }
}

fn ndjson(source: &mut Documents, json: Json, sink: &mut Writer, mut progress: impl FnMut(&Documents)) -> Result<u64> {
    let (mut documents, mut line) = (0, Vec::new());
    let name = source.reader().name().to_string();
    while let Some(batch) = source.next_batch()? {
        for (document, record) in batch.iter().zip(batch.as_batch().first_record()..) {
            line.clear();
            let appended = document.append_json(&mut line, json);
            appended.map_err(|error| error.with_name(&name).with_record(record))?;
            line.push(b'\n');
            sink.write(&line)?;
            documents += 1;
        }
        progress(source);
    }
    Ok(documents)
}

/// The columns that the options ask for, and the documents that were read to know them.
fn columns(source: &mut Documents, options: &Options) -> Result<(Sample, Schema)> {
    let (sample, schema) = match &options.schema {
        Some(schema) => (Sample::default(), schema.clone()),
        None => {
            let sample = Sample::take(source, options.sample.max(1), SAMPLE_BYTES)?;
            let schema = sample.infer(options.mixed)?;
            (sample, schema)
        }
    };
    let schema = if options.format == Format::Csv { flat(&schema)? } else { schema };
    Ok((sample, schema))
}

/// The same with plain columns only: members by their path, arrays as text.
fn flat(schema: &Schema) -> Result<Schema> {
    let mut fields = Vec::new();
    for field in schema.fields() {
        flatten(field.keys().to_vec(), field.name().to_string(), field.data_type(), &mut fields)?;
    }
    Schema::new(fields)
}

/// Recursion is as deep as a schema may be.
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

fn arrow(
    batches: &mut RecordBatches,
    format: Format,
    sink: &mut Writer,
    progress: &mut impl FnMut(&Documents),
) -> Result<u64> {
    let schema = batches.batches().columns().schema().to_arrow();
    let mut rows = 0;
    macro_rules! write_all {
        ($writer:expr) => {{
            let mut writer = $writer.map_err(failed)?;
            while let Some(batch) = batches.next_batch()? {
                writer.write(&batch).map_err(failed)?;
                rows += batch.num_rows() as u64;
                progress(batches.batches().documents());
            }
            writer.finish().map_err(failed)?;
        }};
    }
    match format {
        Format::ArrowStream => write_all!(StreamWriter::try_new(sink, &schema)),
        _ => write_all!(FileWriter::try_new(sink, &schema)),
    }
    Ok(rows)
}

fn parquet(
    batches: &mut RecordBatches,
    packing: Packing,
    sink: &mut Writer,
    progress: &mut impl FnMut(&Documents),
) -> Result<u64> {
    let compression = match packing {
        Packing::Zstd => Compression::ZSTD(ZstdLevel::try_new(3).map_err(failed)?),
        Packing::Snappy => Compression::SNAPPY,
        Packing::None => Compression::UNCOMPRESSED,
    };
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = batches.batches().columns().schema().to_arrow();
    let mut writer = ArrowWriter::try_new(sink, schema, Some(properties)).map_err(failed)?;
    let mut rows = 0;
    while let Some(batch) = batches.next_batch()? {
        writer.write(&batch).map_err(failed)?;
        rows += batch.num_rows() as u64;
        if writer.memory_size() > ROW_GROUP_BYTES {
            writer.flush().map_err(failed)?;
        }
        progress(batches.batches().documents());
    }
    writer.close().map_err(failed)?;
    Ok(rows)
}

fn csv(batches: &mut Batches, sink: &mut Writer, progress: &mut impl FnMut(&Documents)) -> Result<u64> {
    let names: Vec<String> = batches.columns().schema().fields().iter().map(|field| field.name().to_string()).collect();
    let mut rows = 0;
    {
        let mut writer = csv::Writer::from_writer(sink);
        if !names.is_empty() {
            writer.write_record(&names).map_err(failed)?;
        }
        let mut value = Vec::new();
        while let Some(columns) = batches.next_batch()? {
            for row in 0..columns.len() {
                for column in columns.iter() {
                    value.clear();
                    append_text(&mut value, column, row);
                    writer.write_field(&value).map_err(failed)?;
                }
                writer.write_record(None::<&[u8]>).map_err(failed)?;
            }
            rows += Columns::len(&columns) as u64;
            progress(batches.documents());
        }
        writer.flush().map_err(Error::from_io)?;
    }
    Ok(rows)
}

/// A value as CSV has it: numbers and text as they are, ids in hexadecimal, dates as in RFC 3339, bytes in Base64.
fn append_text(out: &mut Vec<u8>, column: &millstream::bson::columns::Column, row: usize) {
    use std::io::Write as _;
    if !column.is_valid(row) {
        return;
    }
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
        Values::Binary(pieces) => out.write_all(BASE64.encode(pieces.get(row).unwrap_or_default()).as_bytes()),
        // Flattening leaves none of the others.
        _ => Ok(()),
    };
}

/// An error of the crates that write the formats: the sink's own, if that is what it was.
trait Failure: std::fmt::Display + Sized {
    fn io(self) -> std::result::Result<io::Error, Self>;
}

fn failed<E: Failure>(error: E) -> Error {
    match error.io() {
        Ok(error) => Error::from_io(error),
        Err(error) => Error::new(ErrorKind::Unsupported)
            .with_found(error.to_string())
            .with_expected("columns that the format can hold"),
    }
}

impl Failure for arrow_schema::ArrowError {
    fn io(self) -> std::result::Result<io::Error, Self> {
        match self {
            arrow_schema::ArrowError::IoError(_, error) => Ok(error),
            other => Err(other),
        }
    }
}

impl Failure for ParquetError {
    fn io(self) -> std::result::Result<io::Error, Self> {
        match self {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => Ok(*error),
                Err(error) => Err(ParquetError::External(error)),
            },
            other => Err(other),
        }
    }
}

impl Failure for csv::Error {
    fn io(self) -> std::result::Result<io::Error, Self> {
        match self.into_kind() {
            csv::ErrorKind::Io(error) => Ok(error),
            other => Ok(io::Error::other(format!("{other:?}"))),
        }
    }
}
