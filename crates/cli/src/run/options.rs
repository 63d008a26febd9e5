//! The options of `millstream run`, and what their values may be.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::frame::{Endian, LengthPrefixed, PrefixCounts, PrefixWidth};

use crate::hash::Algorithm;
use crate::{escape, size};

use super::each::EachOptions;
use super::sink::Sink;
use super::source::Source;
use super::stages::StageText;

/// The largest buffer that can be asked for. More only moves the memory from the page cache to us.
const BUFFER_LIMIT: u64 = 1 << 30;

/// The largest record limit and record: with its neighbours it has to fit into a batch, whose offsets are 32 bits.
const RECORD_LIMIT: u64 = 1 << 31;

/// The end of `--help` and of the manual page. The lines are short enough for both, and begin with a blank where
/// they must not be joined.
const MORE_HELP: &str = "\
Sources:
  FILE            a file, a FIFO or a device
  -               standard input, as without any source
  tcp:HOST:PORT   what the other side of a connection sends
  unix:PATH       the same of a Unix socket
  -- COMMAND ...  what a command writes; always the last source

A file whose name begins with tcp: or unix: is given as ./NAME.
A command does not see our standard input: its own is /dev/null.

Stages:
  match:REGEX     the records in which REGEX matches: match:^chr1
  not:REGEX       the others: not:^#
  fields:LIST     fields between tabs, as cut -f: fields:1,3-5
  fields:LIST:SEP fields between others: fields:2-:,
  replace/REGEX/TEXT
                  TEXT for each match: 'replace/(\\w+)@(\\w+)/$2 $1'
  take:N          the first N records, then the sources end: take:10
  skip:N          all but the first N records: skip:1
  sample:P[:SEED] a random part, the same ones for a SEED: sample:1%:7
  uniq            the first of neighbours that are alike, as uniq
  noop            all of them

REGEX is that of Rust's regex crate. In fields, a record without any
SEP is left as it is, and fields that are not there are left out. In
replace, any sign can take the place of '/', and \\/ is the sign itself;
in TEXT $1 is what the first group matched, $$ a dollar sign, \\t a tab.

Sizes: 4096, 64K, 1.5MiB (powers of 1024), 2GB (powers of 1000).
Durations: 10ms, 2s, 1m30s.

Exit status:
  0  complete: every source succeeded, every output has all of it
  1  a source or an output failed; one line says which and why
  2  the command line cannot be understood

A consumer that closes the pipe ends it by SIGPIPE. Ctrl-C,
SIGTERM and SIGHUP end it by that signal, after the command is
gone and partial outputs are removed; the same signal again ends
it at once.

Examples:
  Count the records of a command, and know that it succeeded:
    millstream run --count -- find /usr

  Keep the output only if the command succeeds:
    millstream run -o reads.sam -- samtools view -h reads.bam

  See how far a long job is:
    millstream run huge.txt.gz | sort -u > unique.txt

  Log what a server sends:
    millstream run tcp:log.example:5140 --append -o server.log

  Join two files, with a checksum, and figures for machines:
    millstream run a b -o both --hash sha256 --stats both.json

  The second column of what is not a comment, compressed by 8 processes:
    millstream run table.tsv --stage not:^# --stage fields:2 \\
      --each gzip -j 8 -o column.gz --decode off

  At most 1 MB of names a second, and a copy of them:
    find / -print0 | millstream run -0 --rate-limit 1MB \\
      --tee names | xargs -0 ls -ld";

/// Move records from sources to an output
///
/// Copies the bytes of the sources, one source after another, and ends with status 0 only if every source
/// succeeded: a command that exits with another status than 0 or dies by a signal, a compressed file that is
/// damaged or cut short, and a full disk are errors. An output file appears under its name only when it is
/// complete.
///
/// Records (lines, unless an option says otherwise) are counted and limited, never changed.
#[derive(Args)]
#[command(after_help = MORE_HELP)]
pub(crate) struct Options {
    /// Where records come from, one after another: files, '-', tcp:HOST:PORT, unix:PATH
    #[arg(value_name = "SOURCE", value_parser = OsStringValueParser::new().try_map(Source::parse))]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) sources: Vec<Source>,

    /// A command whose standard output is the last source
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,

    /// Where records go: a file, '-', tcp:HOST:PORT or unix:PATH [default: standard output]
    ///
    /// A file is written beside its place and renamed when all of it is there, so that nobody ever sees a part of
    /// it; FIFOs and devices are written directly. If its name ends in .gz, .bgz, .bgzf or .zst it is compressed,
    /// unless --decode is off.
    #[arg(short, long, value_name = "OUTPUT", help_heading = "Output", conflicts_with = "count")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<Sink>,

    /// Append to output files instead of replacing them
    #[arg(long, help_heading = "Output", conflicts_with = "count")]
    pub(crate) append: bool,

    /// Write output files in place, and keep what was written if the run fails
    #[arg(long, help_heading = "Output", conflicts_with = "count")]
    pub(crate) keep_partial: bool,

    /// Write a copy to this output too; can be given several times
    ///
    /// A file is treated like that of --output: compressed if its name says so, and seen only when it is complete.
    #[arg(long, value_name = "OUTPUT", help_heading = "Output", conflicts_with = "count")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) tee: Vec<Sink>,

    /// Write nothing; print how many records and bytes there are
    ///
    /// Without an output there is no --output, --append, --keep-partial, --tee, --flush or --hash.
    #[arg(long, help_heading = "Output")]
    pub(crate) count: bool,

    /// When bytes leave the output's buffer: when-full, line, or after a delay such as 10ms
    ///
    /// Without this option bytes go on as soon as they come. 'line' hands on whole lines, 'when-full' makes the
    /// fewest system calls, and a delay bounds how long a byte may wait. A file shows nothing before it is
    /// complete, whatever is said here, unless --append or --keep-partial is given too.
    #[arg(long, value_name = "WHEN", help_heading = "Output", conflicts_with = "count", value_parser = Flush::parse)]
    pub(crate) flush: Option<Flush>,

    /// Records end with these bytes; knows \n \r \t \0 \\ \xHH
    #[arg(long, value_name = "BYTES", help_heading = "Records", group = "framing", value_parser = escape::parse)]
    // The whole path: clap's derive would take a plain `Vec<u8>` for an option that is given many times.
    pub(crate) delimiter: Option<std::vec::Vec<u8>>,

    /// Records end with a NUL byte, as those of find -print0
    // -0 as of xargs, the neighbour in a pipeline; -z, as of sort and grep, means compression elsewhere.
    #[arg(short = '0', long, help_heading = "Records", group = "framing")]
    pub(crate) null: bool,

    /// Every record has this size
    #[arg(long, value_name = "SIZE", help_heading = "Records", group = "framing", value_parser = record_size)]
    pub(crate) fixed: Option<usize>,

    /// Every record begins with its length: u8, u16, u32 or u64 with le or be
    ///
    /// Such as u8, u16be or u32le. With ',self' added the length counts itself: u32le,self.
    #[arg(long, value_name = "TYPE", help_heading = "Records", group = "framing", value_parser = Prefix::parse)]
    pub(crate) length_prefixed: Option<Prefix>,

    /// Records are BSON documents, one behind the other, as mongodump writes them
    #[arg(long, help_heading = "Records", group = "framing")]
    pub(crate) bson: bool,

    /// Fail at a longer record than this [default: 64M]
    #[arg(long, value_name = "SIZE", help_heading = "Records", value_parser = record_size)]
    pub(crate) record_limit: Option<usize>,

    /// Send the records through a stage; can be given several times, and they act in that order
    ///
    /// A stage looks at the content of a record, without what ends it; what it lets through goes out as it came.
    /// The forms are explained below, under Stages.
    #[arg(long = "stage", value_name = "STAGE", help_heading = "Work", value_parser = StageText::parse)]
    pub(crate) stages: Vec<StageText>,

    #[command(flatten)]
    pub(crate) each: EachOptions,

    /// Decode compressed sources (gzip, bgzf, zstd; known by their content)
    #[arg(long, value_name = "WHEN", help_heading = "Flow", value_enum, default_value_t = Decode::Auto)]
    pub(crate) decode: Decode,

    /// Size of the buffers for reading and writing
    #[arg(long, value_name = "SIZE", help_heading = "Flow", value_parser = buffer_size)]
    pub(crate) buffer: Option<usize>,

    /// Read ahead by a thread while the output is busy
    #[arg(long, value_name = "WHEN", help_heading = "Flow", value_enum, default_value_t = ReadAhead::Auto)]
    pub(crate) read_ahead: ReadAhead,

    /// Fail when nothing arrives, or nothing is taken, for this long, such as 30s or 5m
    #[arg(long, value_name = "DURATION", help_heading = "Flow", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,

    /// Move at most this many bytes a second
    #[arg(long, value_name = "SIZE", help_heading = "Flow", value_parser = rate)]
    pub(crate) rate_limit: Option<u64>,

    /// Checksum what arrives at the output; print it on standard error, as sha256sum does
    ///
    /// It is that of the bytes at --output or standard output, after compression, so that sha256sum -c agrees;
    /// copies by --tee have none. It is printed only if the run is complete. With --append it is that of the
    /// bytes which were added.
    #[arg(long, value_name = "ALGORITHM", help_heading = "Reports", value_enum, conflicts_with = "count")]
    pub(crate) hash: Option<Algorithm>,

    /// Write what happened to this file, or '-' for standard output, as JSON
    ///
    /// Records, bytes, seconds, rates, the longest record, waiting times, the checksum, and how each source
    /// ended. It is written when the run fails, too. On standard output it needs -o for the records, or takes the
    /// place of what --count prints.
    #[arg(long, value_name = "OUTPUT", help_heading = "Reports")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) stats: Option<Sink>,

    /// Show progress on standard error; auto: if that is a terminal
    #[arg(long, value_name = "WHEN", help_heading = "Reports", value_enum, default_value_t = Show::Auto)]
    pub(crate) progress: Show,
}

impl Options {
    /// The names of all sources that are files, unless there is a command, too.
    pub(super) fn source_files(&self) -> Vec<&OsStr> {
        let sources = self.sources.iter().filter(|_| self.command.is_empty());
        sources
            .filter_map(|source| if let Source::File(path) = source { Some(path.as_os_str()) } else { None })
            .collect()
    }

    /// Every output, with the checksum to be taken of it, in the order in which they are completed: when that of
    /// `--output` is there, all of them are. None if records are only counted.
    pub(super) fn sinks(&self) -> impl Iterator<Item = (&Sink, Option<Algorithm>)> {
        let output = (self.output.as_ref().unwrap_or(&Sink::Stdout), self.hash);
        self.tee.iter().map(|sink| (sink, None)).chain([output]).filter(|_| !self.count)
    }

    /// Whether something is done with the records.
    fn works(&self) -> bool {
        !self.stages.is_empty() || self.each.each.is_some()
    }

    /// Whether somebody asked for what only counting records can tell.
    pub(super) fn wants_records(&self) -> bool {
        self.count || self.stats.is_some() || self.record_limit.is_some() || self.works()
    }
}

/// When bytes leave the output's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    WhenFull,
    Line,
    Delay(Duration),
}

impl Flush {
    fn parse(text: &str) -> Result<Flush, String> {
        match text {
            "when-full" => Ok(Flush::WhenFull),
            "line" => Ok(Flush::Line),
            _ => match humantime::parse_duration(text) {
                Ok(delay) if !delay.is_zero() => Ok(Flush::Delay(delay)),
                _ => Err("expected when-full, line, or a delay such as 10ms".to_string()),
            },
        }
    }
}

/// What a length prefix looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefix {
    width: PrefixWidth,
    endian: Endian,
    counts: PrefixCounts,
}

impl Prefix {
    fn parse(text: &str) -> Result<Prefix, String> {
        let (number, counts) = match text.strip_suffix(",self") {
            Some(number) => (number, PrefixCounts::Itself),
            None => (text, PrefixCounts::Payload),
        };
        let (width, endian) = match number {
            "u8" => (PrefixWidth::U8, Endian::Little),
            "u16le" => (PrefixWidth::U16, Endian::Little),
            "u16be" => (PrefixWidth::U16, Endian::Big),
            "u32le" => (PrefixWidth::U32, Endian::Little),
            "u32be" => (PrefixWidth::U32, Endian::Big),
            "u64le" => (PrefixWidth::U64, Endian::Little),
            "u64be" => (PrefixWidth::U64, Endian::Big),
            _ => return Err("expected u8, u16le, u16be, u32le, u32be, u64le or u64be, perhaps with ',self'".into()),
        };
        Ok(Prefix { width, endian, counts })
    }

    /// The framer for such records.
    pub(crate) fn framer(self) -> LengthPrefixed {
        LengthPrefixed::new(self.width, self.endian).counts(self.counts)
    }
}

/// Whether compressed bytes are decoded on the way in and encoded on the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decode {
    /// Sources by their content, output files by the ending of their names
    Auto,
    /// Neither: bytes are copied as they are
    Off,
}

/// Whether a thread reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadAhead {
    /// If measuring while it runs says that it pays
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// Even if standard error is no terminal: then a line a second
    Always,
    /// Never
    Never,
    /// If standard error is a terminal, and the records do not go to one
    Auto,
}

fn record_size(text: &str) -> Result<usize, String> {
    size::parse(text, 1..=RECORD_LIMIT).map(|size| size as usize)
}

fn buffer_size(text: &str) -> Result<usize, String> {
    size::parse(text, 1..=BUFFER_LIMIT).map(|size| size as usize)
}

fn rate(text: &str) -> Result<u64, String> {
    size::parse(text.strip_suffix("/s").unwrap_or(text), 1..=u64::MAX)
}

fn timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("expected a duration such as 500ms, 30s or 5m".to_string()),
    }
}
