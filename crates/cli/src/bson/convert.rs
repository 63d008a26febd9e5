//! `millstream bson convert`: a stream of documents as Arrow, Parquet, CSV, or Extended JSON one a line.

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::bson::columns::{DataType, Field, OnMismatch, OnMixed, OnUnknown, Schema};
use millstream::bson::{Json, OnBad};
use millstream::{Result, Writer};

use crate::run::{Decode, Show, Sink, count_text};
use crate::signals::Signals;
use crate::{Ending, message};

use super::Done;
use super::formats::{self, Format, Packing};
use super::input::{OnError, Stream};

/// Convert documents to Arrow, Parquet, CSV, or Extended JSON
///
/// Columns are those of the first documents (--infer), or those that are named (--column). A value that does not fit
/// its column, or a member that no column reads, is an error that says where; options make it a count that is told at the end.
/// Memory is bounded, however long the stream is.
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    stream: Stream,

    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: To,

    /// Where to: a file (seen when it is complete), '-', tcp:HOST:PORT or unix:PATH [default: standard output]
    #[arg(short, long, value_name = "OUTPUT", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse))]
    output: Option<Sink>,

    /// A column, as PATH:TYPE; can be given several times, and then there are no others
    ///
    /// The types: bool, int, long, double, string, binData, objectId, date, timestamp, decimal, json. Members that no column
    /// reads are left out.
    #[arg(long, value_name = "PATH:TYPE", value_parser = column)]
    column: Vec<Field>,

    /// From how many documents to infer columns
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, conflicts_with = "column")]
    infer: usize,

    /// A column whose values have types that do not go together: JSON text, or an error
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Mixed::Json)]
    mixed: Mixed,

    /// A value that does not fit its column: an error, or null and counted
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Mismatch::Error)]
    mismatch: Mismatch,

    /// A member that no inferred column reads: an error, or left out and counted
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Unknown::Error, conflicts_with = "column")]
    unknown: Unknown,

    /// How Parquet is compressed
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Compression::Zstd)]
    compression: Compression,

    /// Keep every type in Extended JSON: {"$numberInt": "1"}
    #[arg(long)]
    canonical: bool,

    /// What to do at a document that is wrong: stop, or skip it and say what is wrong with each
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnError::Stop)]
    on_error: OnError,

    /// Print how many documents were converted, and their bytes
    ///
    /// On standard output, unless that is the output: then on standard error, where it is said without this option, too,
    /// if that is a terminal.
    #[arg(long)]
    count: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum To {
    /// An Arrow IPC file (Feather)
    Arrow,
    /// An Arrow IPC stream, for a pipe
    ArrowStream,
    /// A Parquet file
    Parquet,
    /// Extended JSON, one document a line
    Ndjson,
    /// Comma-separated values
    Csv,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mixed {
    Json,
    Error,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mismatch {
    Error,
    Null,
}

#[derive(Clone, Copy, ValueEnum)]
enum Unknown {
    Error,
    Count,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compression {
    Zstd,
    Snappy,
    None,
}

/// What `PATH:TYPE` means.
fn column(text: &str) -> std::result::Result<Field, String> {
    const EXPECTED: &str = "expected PATH:TYPE, with bool, int, long, double, string, binData, objectId, date, \
                            timestamp, decimal or json for the type";
    let (path, data_type) = text.rsplit_once(':').ok_or(EXPECTED)?;
    let data_type = match data_type {
        "bool" => DataType::Bool,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "double" => DataType::Double,
        "string" => DataType::String,
        "binData" => DataType::Binary,
        "objectId" => DataType::ObjectId,
        "date" => DataType::DateTime,
        "timestamp" => DataType::Timestamp,
        "decimal" => DataType::Decimal128,
        "json" => DataType::Json,
        _ => return Err(EXPECTED.into()),
    };
    Field::new(path, data_type).map_err(|error| format!("{error:#}"))
}

impl Options {
    fn as_formats(&self) -> Result<formats::Options> {
        let format = match self.to {
            To::Arrow => Format::Arrow,
            To::ArrowStream => Format::ArrowStream,
            To::Parquet => Format::Parquet,
            To::Ndjson => Format::Ndjson,
            To::Csv => Format::Csv,
        };
        let mut options = formats::Options::new(format);
        if !self.column.is_empty() {
            options = options.with_schema(Schema::new(self.column.iter().cloned())?);
        } else {
            options.sample = self.infer;
            options.unknown = match self.unknown {
                Unknown::Error => OnUnknown::Error,
                Unknown::Count => OnUnknown::Count,
            };
        }
        options.mixed = match self.mixed {
            Mixed::Json => OnMixed::Json,
            Mixed::Error => OnMixed::Error,
        };
        options.mismatch = match self.mismatch {
            Mismatch::Error => OnMismatch::Error,
            Mismatch::Null => OnMismatch::Null,
        };
        options.packing = match self.compression {
            Compression::Zstd => Packing::Zstd,
            Compression::Snappy => Packing::Snappy,
            Compression::None => Packing::None,
        };
        options.json = if self.canonical { Json::Canonical } else { Json::Relaxed };
        Ok(options)
    }
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let formats = options.as_formats()?;
    let sink = options.output.as_ref().unwrap_or(&Sink::Stdout);
    let input = options.stream.open(signals, true)?.with(|documents| documents.on_bad(OnBad::from(options.on_error)));
    let encode = sink.encode(Decode::Auto)?;
    let mut out: Writer = sink.open(Writer::builder().cancel(signals.token()).encode(encode))?;
    let (documents, watch) = input.into_parts();
    let name = documents.reader().name().to_string();
    let converted = match formats::convert(documents, &formats, &mut out, |documents| watch.show(documents)) {
        Ok(converted) => converted,
        Err(failed) => {
            watch.fail(&name, &failed.skipped);
            return Err(failed.error.with_name(&name));
        }
    };
    let (mismatched, unknown) = (converted.mismatched, converted.unknown);
    let bytes = converted.source.reader().position().bytes - converted.source.skipped().bytes();
    // The source has to have succeeded before the output appears.
    let ending = watch.close(converted.source, Ok(()))?;
    out.close()?;
    let in_documents = count_text(converted.documents, "document");
    // Who names columns knows that there are others.
    let unknown = if options.column.is_empty() { unknown } else { 0 };
    for (count, noun, what) in [(mismatched, "value", "did not fit and became null"), (unknown, "member", "left out")] {
        if count > 0 {
            message::say(&format!("{name}: {} {what}, in {in_documents}", count_text(count, noun)));
        }
    }
    let prints = *sink == Sink::Stdout;
    let line = format!("{in_documents}, {}", count_text(bytes, "byte"));
    match options.count && !prints {
        true => match message::print(format!("{line}\n").as_bytes()) {
            Ending::COMPLETE => {}
            other => return Ok(other),
        },
        false if options.count || Show::Auto.is_wanted(prints) => message::note(&line),
        false => {}
    }
    Ok(ending)
}
