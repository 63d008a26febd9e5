//! The options of `millstream run`, and their values.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::frame::{Csv, JsonLines};
use millstream::options::WRITER;
use millstream::splits::{Framing, Split};
use millstream::{
    Encode, Error, ErrorKind, Existing, FlushPolicy, Format, Partial, ReaderBuilder, Writer, WriterBuilder, show_argv,
};

use crate::size;
use millstream::hash::Algorithm;

use super::csv::{CsvOptions, TableOptions};
use super::each_options::EachOptions;
use super::framing::Records;
use super::json::JsonOptions;
use super::pattern::{List, Patterns};
use super::rejects::BadOptions;
use super::settings::Settings;
use super::sink::Sink;
use super::source::Source;
use super::stages::{Blanks, StageText};

/// The options of a writer's buffer.
const BUFFER: [&str; 3] = ["capacity", "flush_policy", "flush_delay"];

/// The options for files that the reader opens and decodes itself.
const OF_DECODED_FILES: [&str; 5] = ["decode", "decode_limit", "decode_ratio", "decode_memory", "follow"];

/// The default limit for records, which is the library's default.
pub(crate) const DEFAULT_RECORD_LIMIT: usize = 64 << 20;

/// The options in the summary that `--help` prints.
pub(crate) const IN_SUMMARY: [&str; 19] = [
    "sources",
    "command",
    "shell",
    "help",
    "help_all",
    "output",
    "append",
    "tee",
    "count",
    "encode",
    "delimiter",
    "bson",
    "csv",
    "stages",
    "each",
    "jobs",
    "stall_timeout",
    "hash",
    "stats",
];

/// The help, which begins with examples.
const HELP: &str = "\
{about-with-newline}
Examples:
  millstream run --count -- find /usr                   count the records of a command
  millstream run -o c3 --shell 'zcat a.gz | cut -f3'    keep the output only if both succeed
  millstream run huge.txt.gz | sort -u > unique.txt     show the progress of a long job
  millstream run tcp:log.example:5140 --append -o log   log what a server sends
  millstream run a b -o both.zst --hash sha256          join and compress files, with a checksum
  millstream run t.tsv --stage not:^# --stage fields:2  the second column of lines but comments
  millstream run huge.log --each 'wc -w' -j 8           a command for each block of lines, 8 at once

{usage-heading} {usage}

{all-args}{after-help}";

/// The end of the summary.
const MORE: &str = "All options: millstream run --help-all. Manual page: millstream man run | man -l -";

/// The end of `--help-all` and of the manual page. The lines are short enough for both, and begin with a blank where
/// they must not be joined.
pub(super) const MORE_HELP: &str = "\
Sources:
  FILE            a file, a FIFO or a device
  -               standard input, the default
  https://...     an object of a web server, also http://
  s3://BUCKET/KEY an object of S3 or a compatible store, by the settings in
                  the environment (AWS_ENDPOINT_URL, AWS_REGION, ...)
  gs://BUCKET/KEY an object of Google Cloud Storage
                  (GOOGLE_APPLICATION_CREDENTIALS, ...)
  az://CONTAINER/KEY
                  an object of Azure Blob Storage
                  (AZURE_STORAGE_ACCOUNT_NAME, ...)
  tcp:HOST:PORT   what the peer of a connection sends
  unix:PATH       the same for a Unix socket
  -- COMMAND ...  the output of a command; always the last source
  --shell LINE    the output of a line for bash; always the last source
  --pipeline WORD -- COMMAND ... WORD COMMAND ...
                  the output of the last command of several, without a
                  shell, each of which reads the output of the previous
                  one; always the last source

Write a file whose name begins with tcp: or unix: as ./NAME.
The standard input of a command is /dev/null.

Stages:
  match:REGEX     records that match REGEX: match:^chr1
  not:REGEX       records that do not match: not:^#
  fields:LIST     tab-separated fields, like cut -f: fields:1,3-5
  fields:LIST:SEP fields separated by SEP: fields:2-:,
                  with --csv the fields of a record of CSV, which keep
                  their quotes; with --header also by name: fields:id,\"a b\"
  replace/REGEX/TEXT
                  replaces each match with TEXT: 'replace/(\\w+)@(\\w+)/$2 $1'
  take:N          the first N records; then reading stops: take:10
  skip:N          all but the first N records: skip:1
  sample:P[:SEED] a random sample, repeatable with a SEED: sample:1%:7
  uniq            drops adjacent duplicates, like uniq
  noop            all records

REGEX has the syntax of Rust's regex crate. fields writes each field
once, in the order of the record. It leaves a record without any SEP
unchanged and omits fields that do not exist; with --csv that is an
error, unless --csv-ragged is given. In
replace, any character can replace '/', and \\/ is the character itself;
in TEXT, $1 is what the first group matched, $$ a dollar sign, \\t a tab.

Sizes: 4096, 64K, 1.5MiB (powers of 1024), 2GB (powers of 1000).
Durations: 10ms, 2s, 1m30s.

Exit status:
  0  complete: every source succeeded, every output has all of the data
  1  a source or an output failed, or --on-bad skip left out records;
     standard error says which and why
  2  the command line is invalid
  3  it is unknown whether an object was written

If the reader of standard output closes the pipe, millstream ends by
SIGPIPE. Ctrl-C, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU and similar signals
end it by the same signal, after the command has ended and partial
outputs are removed; the same signal again ends it immediately.";

/// Move records from sources to an output
///
/// Copies the bytes of the sources, one source after another, and ends with status 0 only if every source succeeded: a
/// command that exits with a non-zero status or is killed by a signal, a compressed file that is damaged or truncated,
/// and a full disk are errors. An output file appears under its name only when it is complete.
///
/// Records (lines by default) are counted and limited, never changed. By default the bytes of the sources are joined
/// unchanged; with --stage, --each, --delimiter, --null, --csv or --jsonl, a delimiter missing at the end of a source is
/// added before the next one.
#[derive(Args)]
#[command(help_template = HELP, after_help = MORE, after_long_help = MORE_HELP)]
pub(crate) struct Options {
    /// The sources, one after another: files, '-', URLs, tcp:HOST:PORT, unix:PATH
    #[arg(value_name = "SOURCE", value_parser = OsStringValueParser::new().try_map(Source::parse))]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) sources: Vec<Source>,

    #[command(flatten)]
    patterns: Patterns,

    /// The objects after the sources, which match the last pattern and have not been listed.
    #[arg(skip)]
    pub(super) rest: RefCell<Option<List>>,

    /// A command whose standard output is the last source
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,

    /// A line for bash, such as 'a | b', whose standard output is the last source
    ///
    /// bash runs it with pipefail: it fails if any command of its last pipeline fails, and the error says which one
    /// that was. To end it at the failure of an earlier command, begin it with 'set -e;'. A command that is killed by
    /// SIGPIPE because the next one has read enough, as in 'yes | head', has also failed; --success-statuses 0,141
    /// accepts that, and --pipeline does not need it.
    #[arg(long, value_name = "LINE", value_parser = OsStringValueParser::new().try_map(line))]
    #[arg(conflicts_with = "command", value_hint = ValueHint::CommandString)]
    pub(crate) shell: Option<OsString>,

    /// Run several commands after '--', separated by this word; each reads the output of the previous one
    ///
    /// No shell is involved, so words are passed unchanged: --pipeline : -- zcat a.gz : cut -f3 : sort -u. Choose a
    /// word that no command has as an argument; it is compared with whole words. All commands must succeed. A command
    /// that is killed by SIGPIPE because all later ones have read enough and succeeded has not failed. Options for
    /// commands apply to each of them.
    #[arg(long, value_name = "WORD", conflicts_with = "shell", value_hint = ValueHint::Other)]
    pub(crate) pipeline: Option<OsString>,

    /// A file, a URL, '-', tcp:HOST:PORT or unix:PATH [default: standard output]
    ///
    /// A file appears under its name when it is complete, so that no other process ever sees part of it. Until then a
    /// new file has no name, and a replacement is written next to the old file as .NAME.millstream-XXXXXX.tmp, which
    /// only SIGKILL can leave behind. FIFOs and devices are written directly. If the name implies a compressed
    /// format, as NAME.gz does, the output is compressed, unless --encode is off.
    #[arg(short, long, value_name = "OUTPUT", help_heading = "Output", conflicts_with = "count")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<Sink>,

    /// Append to output files instead of replacing them
    #[arg(long, help_heading = "Output", conflicts_with_all = ["count", "existing"])]
    append: bool,

    /// Fail if an output file or object exists, now or when it is complete
    #[arg(long, help_heading = "Output", conflicts_with_all = ["count", "existing", "append"])]
    create_new: bool,

    /// Append to a compressed file without checking that it is complete
    ///
    /// With --append, a compressed output file must be complete, because data after a truncated stream cannot be read.
    /// A plain gzip file is decoded to check this.
    #[arg(long, help_heading = "Output", requires = "append")]
    append_unchecked: bool,

    /// Write output files in place, and keep the written data if the run fails
    #[arg(long, help_heading = "Output", conflicts_with_all = ["count", "append", "partial"])]
    keep_partial: bool,

    /// Also write a copy to this output; can be given several times
    ///
    /// A file is treated like that of --output: compressed if its name implies it, and visible only when it is
    /// complete.
    #[arg(long, value_name = "OUTPUT", help_heading = "Output", conflicts_with = "count")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) tee: Vec<Sink>,

    /// Write no records; print the number of records and bytes
    ///
    /// Cannot be combined with --output, --append, --keep-partial, --tee or --hash.
    #[arg(long, help_heading = "Output")]
    pub(crate) count: bool,

    #[command(flatten)]
    records: Records,

    /// Move only the records of this split: an element of "splits" that 'millstream split' printed
    ///
    /// The split says how records are found, and names its file or URL; a SOURCE replaces the name, for a copy. The bytes
    /// are unchanged: the outputs of all splits, in order, are the file.
    #[arg(long, value_name = "ELEMENT", help_heading = "Records", value_parser = split)]
    #[arg(conflicts_with_all = ["delimiter", "null", "fixed", "length_prefixed", "bson", "jsonl", "json", "json_pointer"])]
    pub(crate) split: Option<Split>,

    #[command(flatten)]
    pub(crate) json: JsonOptions,

    #[command(flatten)]
    pub(crate) csv: CsvOptions,

    #[command(flatten)]
    pub(crate) table: TableOptions,

    #[command(flatten)]
    pub(crate) bad: BadOptions,

    /// Send the records through a stage; several stages run in the given order
    ///
    /// A stage gets the content of a record without its delimiter; records that it passes on are written unchanged. The
    /// forms are explained below, under Stages.
    #[arg(long = "stage", value_name = "STAGE", help_heading = "Work", value_parser = StageText::parse)]
    pub(crate) stages: Vec<StageText>,

    #[command(flatten)]
    pub(crate) each: EachOptions,

    #[command(flatten)]
    pub(crate) settings: Settings,

    /// Move at most this many bytes per second
    #[arg(long, value_name = "SIZE", help_heading = "Flow", value_parser = rate)]
    pub(crate) rate_limit: Option<u64>,

    /// Print a checksum of the output on standard error: sha256, blake3 or crc32c
    ///
    /// sha256 is printed as by sha256sum, blake3 as by b3sum; crc32c (Castagnoli) detects only accidental changes. The
    /// checksum covers the bytes of --output or standard output, after compression, so that sha256sum -c agrees; copies
    /// made by --tee have none. It is printed only if the run is complete. With --append it covers the appended bytes.
    #[arg(long, value_name = "ALGORITHM", help_heading = "Reports", value_parser = algorithms(), conflicts_with = "count")]
    #[arg(hide_possible_values = true)]
    pub(crate) hash: Option<Algorithm>,

    /// Write statistics as JSON to this file, or '-' for standard output
    ///
    /// They contain the records, bytes, seconds, rates, the longest record, waiting times, the checksum, and how each
    /// source ended, with the status and the times of each of its commands. They are also written if the run fails.
    /// '-' needs -o for the records, or replaces the output of --count.
    #[arg(long, value_name = "OUTPUT", help_heading = "Reports")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) stats: Option<Sink>,

    /// Write an index of the source, a gzip file, to this file while reading it: see 'millstream index'
    ///
    /// The index appears if the run succeeds. With it, a later 'millstream run -j' decodes the file on several threads if
    /// the index is called FILE.gzidx. The source is one file or standard input.
    #[arg(long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub(crate) index: Option<PathBuf>,

    /// Show progress on standard error; auto: only on a terminal
    #[arg(long, value_name = "WHEN", help_heading = "Reports", value_enum, default_value_t = Show::Auto)]
    pub(crate) progress: Show,
}

impl Options {
    /// Returns whether standard input is the source because no other is given.
    pub(crate) fn reads_input(&self) -> bool {
        self.sources.is_empty() && !self.has_command() && self.split.is_none()
    }

    /// Returns whether the last source is a command, several, or a shell line.
    fn has_command(&self) -> bool {
        !self.command.is_empty() || self.shell.is_some()
    }

    /// Returns whether commands are run, as a source or for blocks of records.
    pub(super) fn runs_command(&self) -> bool {
        self.has_command() || self.each.each.is_some()
    }

    /// Returns how records are found, or `None` for the default, which is lines.
    pub(super) fn framing(&self) -> Option<Framing> {
        match &self.split {
            Some(split) => Some(split.framing().clone()).filter(|framing| *framing != Framing::Lines),
            None => {
                let depth = self.json_depth();
                self.json.framing(depth).or_else(|| self.records.framing(depth))
            }
        }
    }

    fn json_depth(&self) -> Option<usize> {
        self.settings.given.number("json_depth").map(|depth| depth as usize)
    }

    /// Returns the framer for records of CSV, if they are requested.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for a dialect that contradicts itself or the split.
    pub(super) fn csv(&self) -> millstream::Result<Option<Csv>> {
        let given = self.csv.framer()?;
        let Some(split) = &self.split else { return Ok(given) };
        let Framing::Csv { dialect } = split.framing() else {
            return match given {
                Some(_) => Err(Error::new(ErrorKind::InvalidOption)
                    .with_found("--csv with a split of other records")
                    .with_expected("--split alone: it says how records are found")),
                None => Ok(None),
            };
        };
        match given {
            Some(csv) if csv.dialect() != dialect => Err(Error::new(ErrorKind::InvalidOption)
                .with_found("a split of another dialect of CSV")
                .with_expected("the same options as for 'millstream split', or none")),
            _ => Csv::with(*dialect).map(Some),
        }
    }

    /// Replaces patterns of names with what they match.
    ///
    /// # Errors
    /// Returns errors of listing, and patterns that match nothing.
    pub(super) fn expand(&mut self) -> millstream::Result<()> {
        let is_last = !self.has_command();
        let network = self.settings.network();
        // A plan for several threads needs all sources.
        if is_last && self.each.jobs.is_none() {
            *self.rest.get_mut() = self.patterns.replace_lazily(&mut self.sources, is_last, network)?;
            return Ok(());
        }
        self.patterns.replace(&mut self.sources, is_last, network)
    }

    /// Returns the sources in order: those that are named, then the command, or standard input if there are none.
    pub(super) fn all_sources(&self) -> Vec<Source> {
        if let Some(split) = &self.split {
            let remote = |url| split.clone().with_remote(self.settings.network().remote(url));
            let split = match (self.sources.as_slice(), split.url()) {
                ([Source::File(path)], _) => split.clone().with_path(path),
                ([Source::Url(url)], _) => remote(url),
                (_, Some(url)) => remote(url),
                (_, None) => split.clone(),
            };
            return vec![Source::Split(Box::new(split))];
        }
        let mut sources = self.sources.clone();
        match (&self.shell, &self.pipeline) {
            (Some(line), _) => sources.push(Source::Shell(line.clone())),
            (None, Some(separator)) => sources.push(Source::Pipeline(self.commands(separator))),
            (None, None) if !self.command.is_empty() => sources.push(Source::Command(self.command.clone())),
            (None, None) => {}
        }
        if sources.is_empty() {
            sources.push(Source::Stdin);
        }
        sources
    }

    /// Returns the commands of `--pipeline`.
    fn commands(&self, separator: &OsStr) -> Vec<Vec<OsString>> {
        self.command.split(|word| word == separator).map(<[OsString]>::to_vec).collect()
    }

    /// Returns the maximum length of a record that is read, or created by a stage.
    pub(super) fn longest_record(&self) -> usize {
        self.settings.given.number("record_limit").map_or(DEFAULT_RECORD_LIMIT, |bytes| bytes as usize)
    }

    /// Returns how long a source or an output may make no progress.
    pub(super) fn stall_timeout(&self) -> Option<Duration> {
        self.settings.given.time("stall_timeout")
    }

    /// Returns whether output files are appended to.
    pub(super) fn appends(&self) -> bool {
        self.append || matches!(self.settings.given.word("existing"), Some("append" | "append_unchecked"))
    }

    /// Returns whether a compressed file to append to is checked.
    pub(super) fn checks_append(&self) -> bool {
        self.appends() && !self.append_unchecked && self.settings.given.word("existing") != Some("append_unchecked")
    }

    /// Returns whether incomplete output files are kept.
    fn keeps_partial(&self) -> bool {
        self.keep_partial || self.settings.given.word("partial") == Some("keep")
    }

    /// Returns whether an option sets when the buffer is flushed.
    pub(super) fn flushes(&self) -> bool {
        self.settings.given.has("flush_policy") || self.settings.given.has("flush_delay")
    }

    /// Returns whether output files are written in place.
    pub(super) fn is_in_place(&self) -> bool {
        self.appends() || self.keeps_partial()
    }

    /// Returns the names of all sources that are files, unless there is also a command.
    pub(super) fn source_files(&self) -> Vec<&OsStr> {
        let sources = self.sources.iter().filter(|_| !self.has_command());
        sources
            .filter_map(|source| if let Source::File(path) = source { Some(path.as_os_str()) } else { None })
            .collect()
    }

    /// Returns every output and the checksum to compute for it, in the order of completion: when the output of
    /// `--output` exists, all of them exist. If records are only counted, no outputs are returned.
    pub(super) fn sinks(&self) -> impl Iterator<Item = (&Sink, Option<Algorithm>)> {
        let output = (self.output.as_ref().unwrap_or(&Sink::Stdout), self.hash);
        self.tee.iter().map(|sink| (sink, None)).chain([output]).filter(|_| !self.count)
    }

    /// Returns the compression of an output.
    ///
    /// # Errors
    /// See [`Sink::encode`].
    pub(super) fn encode(&self, sink: &Sink) -> millstream::Result<Encode> {
        match self.settings.given.word("encode") {
            None | Some("auto") => sink.encode(),
            Some("off") => Ok(Encode::Off),
            Some(word) => {
                let format = Format::ALL.iter().find(|format| format.name() == word);
                Ok(format.copied().expect("the other values are names of formats").into())
            }
        }
    }

    /// Returns a reader builder with the options that apply to every source.
    pub(super) fn reader(&self) -> ReaderBuilder {
        self.json.apply(self.settings.reader(), self.json_depth())
    }

    /// Returns the framer that says which records are no data, if there may be such records.
    ///
    /// # Errors
    /// Returns the errors of [`csv`](Options::csv).
    pub(super) fn blanks(&self) -> millstream::Result<Option<Blanks>> {
        Ok(match (self.csv()?, self.framing()) {
            (Some(csv), _) => Some(Arc::new(csv)),
            (None, Some(Framing::JsonLines { .. })) => Some(Arc::new(JsonLines::new())),
            _ => None,
        })
    }

    /// Returns the number of threads that read and run stages.
    pub(super) fn threads(&self) -> usize {
        match (&self.each.each, self.each.jobs) {
            (None, Some(_)) => self.each.jobs(),
            _ => 1,
        }
    }

    /// Returns a writer builder with the options that do not depend on the output.
    pub(super) fn writer(&self) -> WriterBuilder {
        let builder = Writer::builder().flush_policy(FlushPolicy::WhenFull);
        self.settings.given.apply(WRITER, |name| BUFFER.contains(&name), builder)
    }

    /// Adds the encoding.
    pub(super) fn encoded(&self, encode: Encode, builder: WriterBuilder) -> WriterBuilder {
        let wanted = |name: &str| matches!(name, "level" | "block_size") && encode != Encode::Off;
        self.settings.given.apply(WRITER, wanted, builder.encode(encode))
    }

    /// Adds the options for an output to `builder`: files and connections have options that other outputs do not have.
    pub(super) fn for_output(&self, sink: &Sink, builder: WriterBuilder) -> WriterBuilder {
        let is_file = matches!(sink, Sink::File(_));
        let is_connection = matches!(sink, Sink::Tcp(_) | Sink::Unix(_));
        let wanted = |name: &str| match name {
            "encode" | "level" | "block_size" => false,
            "existing" => is_file || matches!(sink, Sink::Url(_)),
            "partial" | "durability" => is_file,
            "linger" => is_connection,
            _ => !BUFFER.contains(&name),
        };
        let builder = self.settings.given.apply(WRITER, wanted, builder);
        // The file has been checked already, with a progress line.
        let builder = if is_file && self.appends() { builder.existing(Existing::AppendUnchecked) } else { builder };
        let builder = if self.create_new { builder.existing(Existing::CreateNew) } else { builder };
        if is_file && self.keep_partial { builder.partial(Partial::Keep) } else { builder }
    }

    /// Fails if an option or a source would have no effect. No file has been opened yet.
    pub(super) fn check(&self) -> millstream::Result<()> {
        if self.sources.iter().filter(|source| **source == Source::Stdin).count() > 1 {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("standard input as a source more than once")
                .with_expected("'-' once: it can be read only once"));
        }
        if self.split.is_some()
            && (self.has_command() || !matches!(self.sources[..], [] | [Source::File(_) | Source::Url(_)]))
        {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("--split with a source other than one file or URL")
                .with_expected("the file or object of the split, or no source"));
        }
        self.json.check_depth(self.json_depth(), self.records.checks_json())?;
        self.check_expectation()?;
        self.check_fields()?;
        self.check_unordered()?;
        self.check_index()?;
        self.bad.check()?;
        let has_file = self.sinks().any(|(sink, _)| matches!(sink, Sink::File(_)));
        if self.appends() && self.keeps_partial() {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("--existing append with --partial keep")
                .with_expected("one of them: appended bytes stay in any case"));
        }
        if self.appends() && self.sinks().any(|(sink, _)| matches!(sink, Sink::Url(_))) {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("appending to an object")
                .with_expected("a file, or no --append: objects can only be replaced"));
        }
        self.check_pipeline()?;
        if let Some(option) = self.settings.of_command().filter(|_| !self.runs_command()) {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("--{} without a command", option.replace('_', "-")))
                .with_expected("a command after --, --shell or --each"));
        }
        let durable = self.settings.given.has("durability");
        let options =
            [(self.appends(), "--append"), (self.keeps_partial(), "--keep-partial"), (durable, "--durability")];
        for (is_given, option) in options {
            if is_given && !has_file {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found(format!("{option} without a file as output"))
                    .with_expected("-o FILE or --tee FILE"));
            }
        }
        Ok(())
    }

    /// Fails if an expectation of a source could not be compared with all of it.
    fn check_expectation(&self) -> millstream::Result<()> {
        let Some(option) = self.settings.expectation() else { return Ok(()) };
        let (with, expected) = if self.all_sources().len() > 1 {
            ("several sources", "one source")
        } else if self.stages.iter().any(StageText::ends_early) {
            ("the stage 'take', which ends before the source", "other stages")
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidOption)
            .with_found(format!("--{} with {with}", option.replace('_', "-")))
            .with_expected(expected))
    }

    /// Fails if `--pipeline` does not separate commands.
    fn check_pipeline(&self) -> millstream::Result<()> {
        let Some(separator) = &self.pipeline else { return Ok(()) };
        let shown = show_argv(std::slice::from_ref(separator));
        let wrong = |found: String, expected: String| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        let commands = self.commands(separator);
        if commands.len() < 2 {
            return wrong(
                format!("--pipeline {shown} without this word after --"),
                format!("commands separated by it: -- COMMAND ... {shown} COMMAND ..."),
            );
        }
        match commands.iter().position(|argv| argv.first().is_none_or(|program| program.is_empty())) {
            Some(at) => wrong(
                format!("no program as command {} of {} of --pipeline {shown}", at + 1, commands.len()),
                "a program and its arguments before and after each of these words".into(),
            ),
            None => Ok(()),
        }
    }

    /// Fails if `--unordered` has no effect, or makes a result depend on chance.
    fn check_unordered(&self) -> millstream::Result<()> {
        if !self.each.unordered || self.each.each.is_some() {
            return Ok(());
        }
        let wrong = |found: String, expected: &str| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        if self.each.jobs.is_none() {
            return wrong("--unordered without threads".into(), "-j N, or --each COMMAND");
        }
        if let Some(stage) = self.stages.iter().find(|stage| stage.remembers()) {
            let found = format!("--unordered with --stage {}, whose result depends on the order", stage.text());
            return wrong(found, "-j N alone, which keeps the order");
        }
        if self.hash.is_some() {
            return wrong(
                "--unordered with --hash, which would be another one at every run".into(),
                "-j N alone, which keeps the order",
            );
        }
        Ok(())
    }

    /// Fails if the index cannot be made.
    fn check_index(&self) -> millstream::Result<()> {
        if self.index.is_none() {
            return Ok(());
        }
        let wrong = |found: String, expected: &str| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        let sources = self.all_sources();
        let [Source::File(_) | Source::Stdin] = sources.as_slice() else {
            return wrong("--index with other sources".into(), "one gzip file, or standard input");
        };
        if self.each.jobs.is_some() && self.each.each.is_none() {
            return wrong("--index with -j".into(), "one of them: without an index, one thread decodes the file");
        }
        if let Some(name) = OF_DECODED_FILES.into_iter().find(|name| self.settings.given.has(name)) {
            return wrong(format!("--index with --{}", name.replace('_', "-")), "one of them");
        }
        if let Some(stage) = self.stages.iter().find(|stage| stage.ends_early()) {
            return wrong(
                format!("--index with --stage {}, which ends before the file", stage.text()),
                "stages that read the whole file",
            );
        }
        Ok(())
    }

    /// Fails if `--header` or a `fields` stage does not fit the other options.
    fn check_fields(&self) -> millstream::Result<()> {
        let wrong = |found: String, expected: &str| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        if self.table.header && self.split.as_ref().is_some_and(|split| split.header().is_none()) {
            return wrong("--header with a split without one".into(), "a split of 'millstream split --csv --header'");
        }
        if self.table.header && self.each.round_robin {
            return wrong(
                "--header with --round-robin".into(),
                "a new copy for each block, which begins with the header",
            );
        }
        // The parser does not require an option that conflicts with another one that is given.
        if self.table.header && !self.has_csv() {
            return wrong("--header without --csv".into(), "--csv, or lines without a header");
        }
        for stage in &self.stages {
            if self.has_json() && stage.has_fields() {
                return wrong(format!("--stage {} with JSON", stage.text()), "lines, or --csv");
            }
            if self.has_csv() && stage.has_separator() {
                return wrong(format!("a separator in --stage {} with --csv", stage.text()), "--csv-delimiter BYTE");
            }
            if !self.table.header && stage.has_names() {
                return wrong(
                    format!("a name in --stage {}", stage.text()),
                    "numbers of fields, or --csv with --header",
                );
            }
        }
        Ok(())
    }

    /// Returns whether records are those of CSV.
    fn has_csv(&self) -> bool {
        self.csv.csv || matches!(self.framing(), Some(Framing::Csv { .. }))
    }

    /// Returns whether records are values of JSON.
    fn has_json(&self) -> bool {
        self.has_elements() || matches!(self.framing(), Some(Framing::JsonLines { .. }))
    }

    /// Returns whether records are the elements of a JSON document.
    pub(super) fn has_elements(&self) -> bool {
        match &self.split {
            Some(split) => matches!(split.framing(), Framing::JsonElements { .. }),
            None => self.json.is_given(),
        }
    }

    /// Returns whether records are processed.
    fn works(&self) -> bool {
        !self.stages.is_empty() || self.each.each.is_some()
    }

    /// Returns whether sources are joined record by record, with a delimiter added if one is missing. This is the case
    /// if records are processed, and not only counted; otherwise their bytes are joined unchanged.
    pub(super) fn joins_records(&self) -> bool {
        self.works() || self.has_csv() || self.has_json() || matches!(self.framing(), Some(Framing::Delimiter { .. }))
    }

    /// Returns the only source and the byte that ends its records, if copies of --each can read a file without a look at
    /// each record.
    pub(super) fn unread(&self) -> Option<(PathBuf, u8)> {
        let [Source::File(path)] = self.sources.as_slice() else { return None };
        let terminator = match self.framing() {
            None | Some(Framing::Lines) => b'\n',
            Some(Framing::Delimiter { bytes }) if bytes.len() == 1 => bytes[0],
            Some(_) => return None,
        };
        let needs_records = self.each.each.is_none()
            || self.has_command()
            || self.split.is_some()
            || self.each.number
            || self.each.round_robin
            || !self.stages.is_empty()
            || self.has_csv()
            || self.has_json()
            || self.stats.is_some()
            || self.index.is_some()
            || self.rate_limit.is_some()
            || self.bad.skips()
            || self.settings.expectation().is_some()
            || ["record_limit", "follow", "total_timeout"].iter().any(|name| self.settings.given.has(name));
        (!needs_records).then(|| (path.clone(), terminator))
    }

    /// Returns whether a result was requested that needs counted records.
    pub(super) fn wants_records(&self) -> bool {
        self.count
            || self.stats.is_some()
            || ["record_limit", "expect_records"].iter().any(|name| self.settings.given.has(name))
            || self.bad.skips()
            || self.works()
    }
}

fn algorithms() -> impl TypedValueParser<Value = Algorithm> {
    let named = |name: String| Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name))
        .map(move |name| named(name).expect("it is one of them"))
}

fn line(text: OsString) -> Result<OsString, String> {
    if text.is_empty() { Err("expected a line for bash, such as 'a | b'".to_string()) } else { Ok(text) }
}

fn split(text: &str) -> Result<Split, String> {
    Split::from_json(text).map_err(|error| error.without_advice().to_string())
}

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// Always; without a terminal, one line per second
    Always,
    /// Never
    Never,
    /// Only if standard error is a terminal and the records are not written to one
    Auto,
}

fn rate(text: &str) -> Result<u64, String> {
    size::parse(text.strip_suffix("/s").unwrap_or(text), 1..=u64::MAX)
}
