//! The options of `millstream convert`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};

use crate::run::{DialectOptions, Patterns, Ragged, Reading, RejectOptions, Show, Sink, Source};
use crate::size;
use crate::tables::Packing;
use millstream::is_trick;

use super::document_options::DocumentOptions;
use super::formats::{From, To};

/// The end of `--help` and of the manual page.
const MORE_HELP: &str = "\
Formats by name:
  .txt .log         lines      one column, 'line'
  .csv, .tsv .tab   csv, tsv   columns named by the header
  .bson             bson       documents, as mongodump writes them
  .parquet          parquet
  .arrow .feather   arrow      a file of Arrow IPC
  .arrows           arrow-stream
  .jsonl .ndjson    jsonl      JSON, one value per line
  .json             json       the elements of an array of a document

A compressed file has the name of its format and an ending such as .gz:
orders.csv.gz. Commands and standard input need --from.

Exit status:
  0  complete: the output has every record, or --rejects or
     --max-rejects accounts for those that it lacks
  1  a source or an output failed, or a record did not fit; no output
     appears. With --on-bad skip, it appears without the bad records
  2  the command line is invalid

Examples:
  A CSV file as Parquet, on two threads:
    millstream convert orders.csv.gz -o orders.parquet -j 2

  The output of a command as an Arrow stream for another one:
    millstream convert --from tsv --to arrow-stream -- zcat x.gz | prog

  See the types, change one, and use them:
    millstream convert orders.csv --print-schema > types.json
    millstream convert orders.csv --schema types.json -o orders.parquet

  Keep bad records in a file, if they are at most one percent:
    millstream convert a.csv b.csv -o all.parquet \\
      --rejects bad.jsonl --max-rejects 1%

  Print a Parquet file as CSV:
    millstream convert orders.parquet --to csv | head";

/// Convert records into Parquet, Arrow, CSV or JSON lines
///
/// Types are inferred from the first records (--infer), or given (--schema). An inferred type prints every value back
/// without loss, and a later value that does not fit is an error with its position, or a counted reject; it never
/// becomes null. The output appears only when it is complete. Memory use does not depend on the length of the sources.
#[derive(Args)]
#[command(after_help = MORE_HELP)]
pub(crate) struct Options {
    /// The sources, one after another: files, '-', URLs, tcp:HOST:PORT, unix:PATH
    ///
    /// All of them have the same columns. Those of a later file of CSV are found by the names in its header.
    #[arg(value_name = "SOURCE", value_parser = OsStringValueParser::new().try_map(Source::parse))]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(super) sources: Vec<Source>,

    /// A command whose standard output is the last source
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,

    #[command(flatten)]
    patterns: Patterns,

    /// The format of the sources [default: by their names]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(super) from: Option<From>,

    /// The format of the output [default: by its name]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(super) to: Option<To>,

    /// The output: a file or URL (visible when complete), '-', tcp:HOST:PORT or unix:PATH [default: standard output]
    #[arg(short, long, value_name = "OUTPUT", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse))]
    pub(super) output: Option<Sink>,

    /// Write several outputs, each of about this size: -o 'out-{}.parquet' names them out-00000.parquet and so on
    ///
    /// A part ends after the rows that reach the size, counted before any compression that the name implies. The parts
    /// appear when all of them are complete. Parts of an earlier conversion must be removed before.
    #[arg(long, value_name = "SIZE", requires = "output", value_parser = part_size)]
    pub(super) parts: Option<u64>,

    /// The number of threads that parse records and encode columns [default: 1]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) jobs: Option<u16>,

    /// From how many records types are inferred, 'all', or 'off' for text [default: 10000]
    ///
    /// At most 64 MiB of records. With 'all', the sources are read twice: files, or objects with a strong ETag on a server
    /// with ranges. Values of BSON have types, which are those of the columns; with 'off', columns of JSON and BSON are the
    /// text of their values.
    #[arg(long, value_name = "COUNT", help_heading = "Types", value_parser = Infer::parse)]
    pub(super) infer: Option<Infer>,

    /// The columns and their types: a file of JSON as --print-schema prints it
    ///
    /// Columns of CSV and members of JSON and BSON are found by name; those without a field in the schema are left out.
    #[arg(long, value_name = "FILE", help_heading = "Types", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "infer")]
    pub(super) schema: Option<PathBuf>,

    /// Print the schema of the first source as JSON, and convert nothing
    #[arg(long, help_heading = "Types")]
    #[arg(conflicts_with_all = ["output", "parts", "to", "count", "stats", "rejects", "max_rejects"])]
    pub(super) print_schema: bool,

    /// A text that is null, such as NA or ''; can be given several times [default: none is]
    ///
    /// A field of CSV in quotes is never null. For output of CSV, the first one is the text for null; by default null
    /// is an empty field, and empty text is quoted.
    #[arg(long, value_name = "TEXT", help_heading = "Types", value_parser = null_text)]
    pub(super) null: Vec<String>,

    /// Infer decimal numbers, which keep every digit, instead of floating point numbers
    #[arg(long, help_heading = "Types")]
    pub(super) decimals: bool,

    /// Infer floating point numbers from NaN, inf and -inf, too
    #[arg(long, help_heading = "Types")]
    pub(super) special_numbers: bool,

    /// The first record of CSV is no header: columns are named 0, 1, 2, ...
    #[arg(long, help_heading = "Records")]
    pub(super) no_header: bool,

    /// What to do with a record of CSV that has another number of fields than the first one [default: error]
    #[arg(long, value_name = "HOW", help_heading = "Records", value_enum)]
    pub(super) ragged: Option<Ragged>,

    #[command(flatten)]
    pub(super) dialect: DialectOptions,

    /// Where the array is in a document of JSON: a JSON pointer such as /a/items [default: the document itself]
    #[arg(long, value_name = "PATH", help_heading = "Records")]
    pub(super) json_pointer: Option<String>,

    /// Which of several members of an object of JSON with the same name is taken [default: error]
    #[arg(long, value_name = "WHICH", help_heading = "Records", value_enum)]
    pub(super) json_duplicates: Option<Duplicates>,

    #[command(flatten)]
    pub(super) bad: RejectOptions,

    #[command(flatten)]
    pub(super) documents: DocumentOptions,

    /// The compression of Parquet [default: zstd:3] or Arrow [default: none]: zstd, zstd:LEVEL, snappy, lz4 or none
    ///
    /// snappy is for Parquet only, and lz4 for Arrow only. A compressed Arrow file cannot be mapped without decoding it.
    #[arg(long, value_name = "HOW", help_heading = "Parquet and Arrow", value_parser = Packing::parse)]
    pub(super) compression: Option<Packing>,

    /// The most rows of a row group; it also ends when it takes 64 MiB of memory [default: 1048576]
    #[arg(long, value_name = "ROWS", help_heading = "Parquet and Arrow", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) row_group_size: Option<u32>,

    /// Whether repeated values are stored once, in a dictionary for each row group [default: on]
    #[arg(long, value_name = "WHEN", help_heading = "Parquet and Arrow", value_enum)]
    pub(super) dictionary: Option<Switch>,

    #[command(flatten)]
    pub(super) reading: Reading,

    /// Print the number of rows, and of bytes read
    ///
    /// Printed on standard output, or on standard error if standard output is the output. On a terminal, standard error
    /// shows it even without this option.
    #[arg(long, help_heading = "Reports")]
    pub(super) count: bool,

    /// Write statistics as JSON to this file, or '-' for standard output; also if the conversion fails
    #[arg(long, value_name = "OUTPUT", help_heading = "Reports", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse))]
    pub(super) stats: Option<Sink>,

    /// Show progress on standard error; auto: only on a terminal
    #[arg(long, value_name = "WHEN", help_heading = "Reports", value_enum, default_value_t = Show::Auto)]
    pub(super) progress: Show,
}

/// From which records types are inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Infer {
    First(usize),
    All,
    Off,
}

impl Infer {
    fn parse(text: &str) -> Result<Infer, String> {
        match text {
            "all" => Ok(Infer::All),
            "off" => Ok(Infer::Off),
            number => {
                let number = number.parse::<u32>().ok().filter(|&number| number > 0);
                number
                    .map(|number| Infer::First(number as usize))
                    .ok_or("expected a number, 'all' or 'off'".to_string())
            }
        }
    }
}

/// Which of several members of an object with the same name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Duplicates {
    /// None: the record is bad
    Error,
    First,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// Reads a file that an option names.
///
/// # Errors
/// Returns the errors of reading, and text that is not UTF-8.
#[cfg(feature = "parquet")]
pub(super) fn read_text(path: &std::path::Path) -> millstream::Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        millstream::Error::new(millstream::ErrorKind::OpenFailed).with_name(path.display().to_string()).with_io(error)
    })
}

fn part_size(text: &str) -> Result<u64, String> {
    size::parse(text, 1..=u64::MAX)
}

/// Parses a text for null, which CSV has without quotes.
fn null_text(text: &str) -> Result<String, String> {
    match text.contains([',', '"', '\r', '\n']) || text.contains(is_trick) {
        true => Err("expected a text without commas, quotes and control characters, such as NULL".into()),
        false => Ok(text.to_string()),
    }
}

impl Options {
    /// Replaces patterns of names with what they match.
    ///
    /// # Errors
    /// Returns errors of listing, and patterns that match nothing.
    #[cfg(feature = "parquet")]
    pub(super) fn expand(&mut self) -> millstream::Result<()> {
        let is_last = self.command.is_empty();
        self.patterns.replace(&mut self.sources, is_last, self.reading.settings().network())
    }

    /// Returns the words after `--`, if they are a command.
    pub(crate) fn command(&self) -> Option<&[OsString]> {
        Some(&self.command)
    }

    /// Returns whether standard input is the source because no other is given.
    pub(crate) fn reads_input(&self) -> bool {
        self.sources.is_empty() && self.command.is_empty()
    }
}
