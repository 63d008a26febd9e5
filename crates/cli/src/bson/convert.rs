//! `millstream bson convert`: converts a stream of documents to Arrow, Parquet, CSV, or Extended JSON with one document
//! per line.

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::bson::Json;
use millstream::bson::columns::{DataType, Field, OnAbsent, OnMismatch, OnMixed, OnUnknown, Schema};
use millstream::{Error, ErrorKind, Result, Writer};

use crate::escape::is_trick;
#[cfg(feature = "parquet")]
use crate::run::{DEFAULT_RECORD_LIMIT, Decoding, Source};
use crate::run::{Network, OnBad, Show, Sink, count_text};
use crate::signals::Signals;
use crate::{Ending, message};

use crate::tables::{BinaryOptions, Packing};

use super::formats::{self, Format};
use super::get::is_seen;
use super::input::{Limit, Stream};
use super::{Done, unusable};

/// Convert documents to Arrow, Parquet, CSV, or Extended JSON
///
/// Columns are inferred from the first documents (--infer), or named (--column). By default a value that does not fit
/// its column, a member without a column, and a duplicate key are errors with their position. With options they are
/// counted instead, and the counts are printed on standard error at the end, together with the types that columns
/// cannot represent. Memory use does not depend on the length of the stream.
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) stream: Stream,

    #[command(flatten)]
    limit: Limit,

    #[command(flatten)]
    network: Network,

    /// The output format
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: To,

    /// The output: a file or URL (visible when complete), '-', tcp:HOST:PORT or unix:PATH [default: standard output]
    #[arg(short, long, value_name = "OUTPUT", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse))]
    output: Option<Sink>,

    /// A column, as PATH:TYPE; can be given several times; replaces the inferred columns
    ///
    /// The types: bool, int, long, double, string, binData, objectId, date, timestamp, decimal, json.
    #[arg(long, value_name = "PATH:TYPE", value_parser = column)]
    column: Vec<Field>,

    /// The number of documents to infer columns from, at most 32 MiB of them [default: 10000]
    #[arg(long, value_name = "COUNT", conflicts_with = "column", value_parser = clap::value_parser!(u32).range(1..))]
    infer: Option<u32>,

    /// What to do with an inferred column whose types do not fit together: JSON text, or an error [default: json]
    #[arg(long, value_name = "HOW", value_enum, conflicts_with = "column")]
    mixed: Option<Mixed>,

    /// What to do with a value that does not fit its column: an error, or null and count it [default: error]
    #[arg(long, value_name = "HOW", value_enum)]
    mismatch: Option<Mismatch>,

    /// What to do with a member without a column, and with a duplicate key [default: error; with --column: ignore]
    #[arg(long, value_name = "HOW", value_enum)]
    unknown: Option<Unknown>,

    /// What to do with a column of --column that no document has: an error, or nulls and a message [default: error]
    #[arg(long, value_name = "HOW", value_enum, requires = "column")]
    absent: Option<Absent>,

    /// The compression of Parquet [default: zstd:3] or Arrow [default: none]: zstd, zstd:LEVEL, snappy, lz4 or none
    ///
    /// snappy is for Parquet only, and lz4 for Arrow only. A compressed Arrow file cannot be mapped without decoding it.
    #[arg(long, value_name = "HOW", value_parser = Packing::parse)]
    compression: Option<Packing>,

    /// The text for null in CSV; equal text and empty text are quoted [default: empty]
    #[arg(long, value_name = "TEXT", value_parser = null_text)]
    null: Option<String>,

    /// Keep every type in Extended JSON: {"$numberInt": "1"}
    #[arg(long)]
    canonical: bool,

    /// What to do with a document that is not valid BSON: stop, or leave it out and report its position
    ///
    /// For valid documents whose values or members do not fit the columns, see --mismatch and --unknown.
    #[arg(long, value_name = "HOW", alias = "on-error", value_enum, default_value_t = OnBad::Stop)]
    on_bad: OnBad,

    /// Print the number of documents converted, and their bytes
    ///
    /// Printed on standard output, or on standard error if standard output is the output. On a terminal, standard error
    /// shows it even without this option.
    #[arg(long)]
    count: bool,

    /// How Parquet and Arrow are written, apart from the compression.
    #[arg(skip)]
    binary: BinaryOptions,

    /// Whether `millstream convert` has been called, which has fewer options.
    #[arg(skip)]
    is_general: bool,
}

/// A conversion that `millstream convert` requests.
#[cfg(feature = "parquet")]
pub(crate) struct Conversion {
    pub(crate) source: Source,
    pub(crate) decoding: Decoding,
    pub(crate) network: Network,
    pub(crate) progress: Show,
    pub(crate) record_limit: Option<usize>,
    pub(crate) to: To,
    pub(crate) output: Option<Sink>,
    pub(crate) infer: Option<u32>,
    pub(crate) binary: BinaryOptions,
    pub(crate) null: Option<String>,
    pub(crate) on_bad: Option<OnBad>,
    pub(crate) count: bool,
}

#[cfg(feature = "parquet")]
impl From<Conversion> for Options {
    fn from(wanted: Conversion) -> Options {
        let Conversion {
            source,
            decoding,
            network,
            progress,
            record_limit,
            to,
            output,
            infer,
            binary,
            null,
            on_bad,
            count,
        } = wanted;
        Options {
            stream: Stream::new(source, decoding, progress),
            limit: Limit { record_limit: record_limit.unwrap_or(DEFAULT_RECORD_LIMIT) },
            network,
            to,
            output,
            column: Vec::new(),
            infer,
            mixed: None,
            mismatch: None,
            unknown: None,
            absent: None,
            compression: None,
            null,
            canonical: false,
            on_bad: on_bad.unwrap_or(OnBad::Stop),
            count,
            binary,
            is_general: true,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// An Arrow IPC file (Feather)
    Arrow,
    /// An Arrow IPC stream, for a pipe
    ArrowStream,
    /// A Parquet file
    Parquet,
    /// Extended JSON, one document per line
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
    /// Both cause an error
    Error,
    /// Both are omitted and counted; the first value of a key is kept
    Count,
    /// The member is omitted, the duplicate key is an error
    Ignore,
}

#[derive(Clone, Copy, ValueEnum)]
enum Absent {
    Error,
    Null,
}

/// Parses the text for null in CSV, which is never quoted.
fn null_text(text: &str) -> std::result::Result<String, String> {
    match text.contains([',', '"', '\r', '\n']) || text.contains(is_trick) {
        true => Err("expected a text without commas, quotes and control characters, such as NULL".into()),
        false => Ok(text.to_string()),
    }
}

/// Parses `PATH:TYPE`.
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
    Field::new(path, data_type).map_err(|error| error.without_advice().to_string())
}

impl Options {
    /// Rejects options that do not apply to the format.
    fn check(&self) -> Result<()> {
        let columns = self.to != To::Ndjson;
        let rows = [
            (self.canonical, "--canonical", "--to ndjson", !columns),
            (!self.column.is_empty(), "--column", "a format with columns", columns),
            (self.infer.is_some(), "--infer", "a format with columns", columns),
            (self.mixed.is_some(), "--mixed", "a format with columns", columns),
            (self.mismatch.is_some(), "--mismatch", "a format with columns", columns),
            (self.unknown.is_some(), "--unknown", "a format with columns", columns),
            (self.compression.is_some(), "--compression", "--to parquet or arrow", self.is_binary()),
            (self.null.is_some(), "--null", "--to csv", self.to == To::Csv),
        ];
        let to = || self.to.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
        if let Some((_, option, expected, _)) = rows.into_iter().find(|&(given, _, _, has_use)| given && !has_use) {
            return Err(unusable(format!("{option} with --to {}", to()), expected));
        }
        let packing = self.compression.or(self.binary.packing);
        match packing.and_then(|packing| Some((packing, packing.instead(self.to == To::Parquet)?))) {
            Some((packing, instead)) => {
                Err(unusable(format!("--compression {} with --to {}", packing.name(), to()), instead))
            }
            None => Ok(()),
        }
    }

    fn is_binary(&self) -> bool {
        matches!(self.to, To::Parquet | To::Arrow | To::ArrowStream)
    }

    fn as_formats(&self) -> Result<formats::Options> {
        let format = match self.to {
            To::Arrow => Format::Arrow,
            To::ArrowStream => Format::ArrowStream,
            To::Parquet => Format::Parquet,
            To::Ndjson => Format::Ndjson,
            To::Csv => Format::Csv,
        };
        format.check()?;
        let mut options = formats::Options::new(format);
        if !self.column.is_empty() {
            options = options.with_schema(Schema::new(self.column.iter().cloned())?);
        } else {
            options.sample = self.infer.map_or(options.sample, |count| count as usize);
        }
        options.unknown = match self.unknown {
            Some(Unknown::Error) => OnUnknown::Error,
            Some(Unknown::Count) => OnUnknown::Count,
            Some(Unknown::Ignore) => OnUnknown::Ignore,
            None => options.unknown,
        };
        options.mixed = match self.mixed {
            Some(Mixed::Error) => OnMixed::Error,
            Some(Mixed::Json) | None => OnMixed::Json,
        };
        options.mismatch = match self.mismatch {
            Some(Mismatch::Null) => OnMismatch::Null,
            Some(Mismatch::Error) | None => OnMismatch::Error,
        };
        options.absent = match self.absent {
            Some(Absent::Null) => OnAbsent::Null,
            Some(Absent::Error) | None => OnAbsent::Error,
        };
        options.binary = self.binary;
        if let Some(packing) = self.compression {
            options.binary.packing = Some(packing);
        }
        options.json = if self.canonical { Json::Canonical } else { Json::Relaxed };
        // A column usually takes at most four times the memory of its values.
        options.memory_limit = self.limit.record_limit.saturating_mul(4).clamp(256 << 20, i32::MAX as usize);
        options.null = self.null.clone().unwrap_or_default();
        options.is_seen = self.output.as_ref().is_none_or(|sink| *sink == Sink::Stdout) && is_seen();
        Ok(options)
    }

    /// Returns advice about an error of columns, in terms of this command's options.
    fn advice(&self, error: &Error) -> Option<&'static str> {
        let is_repeated = error.expected().is_some_and(|expected| expected.starts_with("each key once"));
        match error.kind() {
            ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange if self.is_general => {
                Some("raise --infer, or use 'millstream bson convert', which has --column, --mismatch and --unknown")
            }
            ErrorKind::ShapeMismatch if is_repeated => Some("--unknown count keeps the first value"),
            ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange if self.column.is_empty() => {
                Some("raise --infer, name the columns with --column, or see --mismatch and --unknown")
            }
            ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange => {
                Some("name another type with --column, or see --mismatch and --unknown")
            }
            ErrorKind::MemoryLimit => Some("raise --record-limit if the source is trusted"),
            ErrorKind::KeyMissing => Some("check the path, or make it a column of nulls with --absent null"),
            _ => None,
        }
    }
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    options.check()?;
    let formats = options.as_formats()?;
    let sink = options.output.as_ref().unwrap_or(&Sink::Stdout);
    let encode = sink.encode().map_err(|error| {
        let expected = error.expected().unwrap_or_default();
        unusable(error.found().unwrap_or_default(), format!("{expected}, or no compression"))
    })?;
    if options.stream.shows_progress(true) {
        sink.state_limit(&options.network);
    }
    let input = options
        .stream
        .open(options.limit.record_limit, &options.network, signals, true)?
        .with(|documents| documents.on_bad(options.on_bad.into()));
    let mut out: Writer = sink.open(Writer::builder().cancel(signals.token()).encode(encode), &options.network)?;
    let (documents, watch) = input.into_parts();
    let name = documents.reader().name().to_string();
    let converted = match formats::convert(documents, &formats, &mut out, |documents| watch.show(documents)) {
        Ok(converted) => converted,
        Err(failed) => {
            watch.fail(&name, &failed.skipped);
            let error = failed.error.with_name(&name);
            return match options.advice(&error) {
                Some(advice) if signals.caught().is_none() => Ok(message::fail_with_advice(&error, Some(advice))),
                _ => Err(error),
            };
        }
    };
    let counts = converted.counts;
    let bytes = converted.source.reader().position().bytes - converted.source.skipped().bytes();
    // The source must have succeeded before the output appears.
    let ending = watch.close(converted.source, Ok(()))?;
    out.close()?;
    let in_documents = count_text(converted.documents, "document");
    // Members that should be ignored are not reported.
    let unknown = if formats.unknown == OnUnknown::Ignore { 0 } else { counts.unknown };
    let lost = counts.lost_types;
    // The counts are part of the output: without them, omitted data would be lost silently.
    let tell = |line: &str| message::note(message::printable(&format!("millstream: {name}: {line}")).as_bytes());
    for (count, noun, what) in [
        (counts.mismatched, "value", "did not fit and became null"),
        (unknown, "member", "left out"),
        (lost.code, "value", "of type javascript became text"),
        (lost.symbol, "value", "of type symbol became text"),
        (lost.subtype, "value", "of type binData lost a subtype"),
        (lost.undefined, "value", "of type undefined became null"),
    ] {
        if count > 0 {
            tell(&format!("{} {what}, in {in_documents}", count_text(count, noun)))?;
        }
    }
    if !counts.absent.is_empty() && converted.documents > 0 {
        tell(&format!("only nulls in {}, which no document has", counts.absent.join(", ")))?;
    }
    let prints = *sink == Sink::Stdout;
    let line = format!("{in_documents}, {}", count_text(bytes, "byte"));
    match options.count && !prints {
        true => match message::print(format!("{line}\n").as_bytes()) {
            Ending::COMPLETE => {}
            other => return Ok(other),
        },
        // The requested count is part of the output, too.
        false if options.count => message::note(line.as_bytes())?,
        false if Show::Auto.is_wanted(prints) => drop(message::note(line.as_bytes())),
        false => {}
    }
    Ok(ending)
}
