//! The options of `millstream run`, and their values.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::frame::{Endian, LengthPrefixed, PrefixCounts, PrefixWidth};
use millstream::{Encode, Error, ErrorKind, Existing, Partial, WriterBuilder};

use crate::hash::Algorithm;
use crate::{escape, size};

use super::each_options::EachOptions;
use super::sink::Sink;
use super::source::Source;
use super::stages::StageText;

/// The largest buffer allowed. More only moves the memory from the page cache to us.
const BUFFER_LIMIT: u64 = 1 << 30;

/// The largest record limit and record: with its neighbours it has to fit into a batch, whose offsets are 32 bits.
const RECORD_LIMIT: u64 = 1 << 31;

/// The default limit for records: the library's own limit.
const DEFAULT_RECORD_LIMIT: usize = 64 << 20;

/// The end of `--help` and of the manual page. The lines are short enough for both, and begin with a blank where
/// they must not be joined.
const MORE_HELP: &str = "\
Sources:
  FILE            a file, a FIFO or a device
  -               standard input, the default
  tcp:HOST:PORT   what the peer of a connection sends
  unix:PATH       the same for a Unix socket
  -- COMMAND ...  the output of a command; always the last source

Write a file whose name begins with tcp: or unix: as ./NAME.
The standard input of a command is /dev/null.

Stages:
  match:REGEX     records that match REGEX: match:^chr1
  not:REGEX       records that do not match: not:^#
  fields:LIST     tab-separated fields, like cut -f: fields:1,3-5
  fields:LIST:SEP fields separated by SEP: fields:2-:,
  replace/REGEX/TEXT
                  replaces each match with TEXT: 'replace/(\\w+)@(\\w+)/$2 $1'
  take:N          the first N records; then reading stops: take:10
  skip:N          all but the first N records: skip:1
  sample:P[:SEED] a random sample, repeatable with a SEED: sample:1%:7
  uniq            drops adjacent duplicates, like uniq
  noop            all records

REGEX has the syntax of Rust's regex crate. fields leaves a record
without any SEP unchanged and omits fields that do not exist. In
replace, any character can replace '/', and \\/ is the character itself;
in TEXT, $1 is what the first group matched, $$ a dollar sign, \\t a tab.

Sizes: 4096, 64K, 1.5MiB (powers of 1024), 2GB (powers of 1000).
Durations: 10ms, 2s, 1m30s.

Exit status:
  0  complete: every source succeeded, every output has all of the data
  1  a source or an output failed; one line on standard error says
     which and why
  2  the command line is invalid

If the reader of standard output closes the pipe, millstream ends by
SIGPIPE. Ctrl-C, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU and similar signals
end it by the same signal, after the command has ended and partial
outputs are removed; the same signal again ends it immediately.

Examples:
  Count the records of a command, and check that it succeeded:
    millstream run --count -- find /usr

  Keep the output only if the command succeeds:
    millstream run -o reads.sam -- samtools view -h reads.bam

  Watch the progress of a long job:
    millstream run huge.txt.gz | sort -u > unique.txt

  Log what a server sends:
    millstream run tcp:log.example:5140 --append -o server.log

  Join two files, with a checksum and statistics as JSON:
    millstream run a b -o both --hash sha256 --stats both.json

  Compress the second column of all lines but comments with 8 processes:
    millstream run table.tsv --stage not:^# --stage fields:2 \\
      --each gzip -j 8 -o column.gz --decode off

  Pass at most 1 MB of names a second, and keep a copy:
    find / -print0 | millstream run -0 --rate-limit 1MB \\
      --tee names | xargs -0 ls -ld";

/// Move records from sources to an output
///
/// Copies the bytes of the sources, one source after another, and ends with status 0 only if every source succeeded: a
/// command that exits with a non-zero status or is killed by a signal, a compressed file that is damaged or truncated,
/// and a full disk are errors. An output file appears under its name only when it is complete.
///
/// Records (lines by default) are counted and limited, never changed. By default the bytes of the sources are joined
/// unchanged; with --stage, --each, --delimiter or --null, a delimiter missing at the end of a source is added before
/// the next one.
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
    /// A file appears under its name when it is complete, so that no other process ever sees part of it. Until then a
    /// new file has no name, and a replacement is written next to the old file as .NAME.millstream-XXXXXX.tmp, which
    /// only SIGKILL can leave behind. FIFOs and devices are written directly. If the name ends in .gz, .bgz, .bgzf or
    /// .zst, the output is compressed, unless --decode is off.
    #[arg(short, long, value_name = "OUTPUT", help_heading = "Output", conflicts_with = "count")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<Sink>,

    /// Append to output files instead of replacing them
    #[arg(long, help_heading = "Output", conflicts_with = "count")]
    pub(crate) append: bool,

    /// Append to a compressed file without checking that it is complete
    ///
    /// With --append, a compressed output file has to be complete, because data after a truncated stream cannot be
    /// read. A plain gzip file is decoded to find out.
    #[arg(long, help_heading = "Output", requires = "append")]
    pub(crate) append_unchecked: bool,

    /// Write output files in place, and keep what was written if the run fails
    #[arg(long, help_heading = "Output", conflicts_with_all = ["count", "append"])]
    pub(crate) keep_partial: bool,

    /// Also write a copy to this output; can be given several times
    ///
    /// A file is treated like that of --output: compressed if its name implies it, and visible only when it is
    /// complete.
    #[arg(long, value_name = "OUTPUT", help_heading = "Output", conflicts_with = "count")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) tee: Vec<Sink>,

    /// Write no records; print the number of records and bytes
    ///
    /// Cannot be combined with --output, --append, --keep-partial, --tee, --flush or --hash.
    #[arg(long, help_heading = "Output")]
    pub(crate) count: bool,

    /// When to flush the output buffer: when-full, line, or after a delay such as 10ms
    ///
    /// By default bytes are passed on as soon as they arrive. 'line' passes on whole lines, 'when-full' makes the
    /// fewest system calls, and a delay limits how long a byte may wait. A file stays invisible until it is complete,
    /// whatever this option says, unless --append or --keep-partial is also given.
    #[arg(long, value_name = "WHEN", help_heading = "Output", conflicts_with = "count", value_parser = Flush::parse)]
    pub(crate) flush: Option<Flush>,

    /// Records end with these bytes; accepts \n \r \t \0 \\ \xHH
    #[arg(long, value_name = "BYTES", help_heading = "Records", group = "framing", value_parser = escape::parse)]
    // The whole path: clap's derive would take a plain `Vec<u8>` for an option that is given many times.
    pub(crate) delimiter: Option<std::vec::Vec<u8>>,

    /// Records end with a NUL byte, as with find -print0
    // -0 as of xargs, the neighbour in a pipeline; -z, as of sort and grep, means compression elsewhere.
    #[arg(short = '0', long, help_heading = "Records", group = "framing")]
    pub(crate) null: bool,

    /// Every record has this size
    #[arg(long, value_name = "SIZE", help_heading = "Records", group = "framing", value_parser = record_size)]
    pub(crate) fixed: Option<usize>,

    /// Every record begins with its length: u8, u16, u32 or u64 with le or be
    ///
    /// For example u8, u16be or u32le. With ',self' added, the length counts itself: u32le,self.
    #[arg(long, value_name = "TYPE", help_heading = "Records", group = "framing", value_parser = Prefix::parse)]
    pub(crate) length_prefixed: Option<Prefix>,

    /// Records are consecutive BSON documents, as written by mongodump
    #[arg(long, help_heading = "Records", group = "framing")]
    pub(crate) bson: bool,

    /// Fail at a record longer than this, read or made by a stage [default: 64M]
    #[arg(long, value_name = "SIZE", help_heading = "Records", value_parser = record_size)]
    pub(crate) record_limit: Option<usize>,

    /// Send the records through a stage; can be given several times, and stages run in that order
    ///
    /// A stage sees the content of a record without its delimiter; records that it passes are written unchanged. The
    /// forms are explained below, under Stages.
    #[arg(long = "stage", value_name = "STAGE", help_heading = "Work", value_parser = StageText::parse)]
    pub(crate) stages: Vec<StageText>,

    #[command(flatten)]
    pub(crate) each: EachOptions,

    /// Decode compressed sources (gzip, bgzf, zstd; detected by their content)
    #[arg(long, value_name = "WHEN", help_heading = "Flow", value_enum, default_value_t = Decode::Auto)]
    pub(crate) decode: Decode,

    /// The most memory that a decoder's window may use: zstd --long makes frames that need up to 2G [default: 128M]
    #[arg(long, value_name = "SIZE", help_heading = "Flow", value_parser = decode_memory)]
    pub(crate) decode_memory: Option<u64>,

    /// What must not change about a source file while it is read
    #[arg(long, value_name = "WHAT", help_heading = "Flow", value_enum, default_value_t = Pin::Content)]
    pub(crate) pin: Pin,

    /// Size of the buffers for reading and writing
    #[arg(long, value_name = "SIZE", help_heading = "Flow", value_parser = buffer_size)]
    pub(crate) buffer: Option<usize>,

    /// Read ahead on a thread while the output is busy
    #[arg(long, value_name = "WHEN", help_heading = "Flow", value_enum, default_value_t = ReadAhead::Auto)]
    pub(crate) read_ahead: ReadAhead,

    /// Fail if nothing arrives, or nothing is accepted, for this long, such as 30s or 5m
    ///
    /// This applies to sources, outputs and the copies of --each. A copy fails if it writes nothing for this long; a
    /// copy kept alive by --round-robin fails if it neither reads nor writes.
    ///
    /// It also limits how long the peer of an output connection may take to close it at the end, which confirms that
    /// everything arrived; the default for that is 30s.
    #[arg(long, value_name = "DURATION", help_heading = "Flow", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,

    /// Move at most this many bytes a second
    #[arg(long, value_name = "SIZE", help_heading = "Flow", value_parser = rate)]
    pub(crate) rate_limit: Option<u64>,

    /// Print a checksum of the output on standard error, like sha256sum
    ///
    /// It covers the bytes of --output or standard output, after compression, so that sha256sum -c agrees; copies made
    /// by --tee have none. It is printed only if the run is complete. With --append it covers the appended bytes.
    #[arg(long, value_name = "ALGORITHM", help_heading = "Reports", value_enum, conflicts_with = "count")]
    pub(crate) hash: Option<Algorithm>,

    /// Write statistics as JSON to this file, or '-' for standard output
    ///
    /// Records, bytes, seconds, rates, the longest record, waiting times, the checksum, and how each source ended. They
    /// are also written if the run fails. '-' needs -o for the records, or replaces the output of --count.
    #[arg(long, value_name = "OUTPUT", help_heading = "Reports")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse), value_hint = ValueHint::FilePath)]
    pub(crate) stats: Option<Sink>,

    /// Show progress on standard error; auto: if it is a terminal
    #[arg(long, value_name = "WHEN", help_heading = "Reports", value_enum, default_value_t = Show::Auto)]
    pub(crate) progress: Show,
}

impl Options {
    /// The longest record that may be read, or made by a stage.
    pub(super) fn longest_record(&self) -> usize {
        self.record_limit.unwrap_or(DEFAULT_RECORD_LIMIT)
    }

    /// The names of all sources that are files, unless there is also a command.
    pub(super) fn source_files(&self) -> Vec<&OsStr> {
        let sources = self.sources.iter().filter(|_| self.command.is_empty());
        sources
            .filter_map(|source| if let Source::File(path) = source { Some(path.as_os_str()) } else { None })
            .collect()
    }

    /// Every output, with its checksum to compute, in the order of completion: when that of `--output` exists, all of
    /// them do. None if records are only counted.
    pub(super) fn sinks(&self) -> impl Iterator<Item = (&Sink, Option<Algorithm>)> {
        let output = (self.output.as_ref().unwrap_or(&Sink::Stdout), self.hash);
        self.tee.iter().map(|sink| (sink, None)).chain([output]).filter(|_| !self.count)
    }

    /// How the bytes of an output are compressed.
    ///
    /// # Errors
    /// See [`Sink::encode`].
    pub(super) fn encode(&self, sink: &Sink) -> millstream::Result<Encode> {
        match self.decode {
            Decode::Auto => sink.encode(),
            Decode::Off => Ok(Encode::Off),
        }
    }

    /// Adds the options for an output to `builder`: files have options that others do not have.
    pub(super) fn for_output(&self, sink: &Sink, builder: WriterBuilder) -> WriterBuilder {
        let builder = match self.timeout {
            Some(timeout) => builder.stall_timeout(timeout),
            None => builder,
        };
        match sink {
            Sink::File(_) => builder
                .existing(match () {
                    // It has been checked, with a progress line.
                    _ if self.append => Existing::AppendUnchecked,
                    _ => Existing::Replace,
                })
                .partial(if self.keep_partial { Partial::Keep } else { Partial::Remove }),
            Sink::Stdout | Sink::Tcp(_) | Sink::Unix(_) => builder,
        }
    }

    /// Fails if an option or a source would have no effect. Nothing has been opened yet.
    pub(super) fn check(&self) -> millstream::Result<()> {
        if self.sources.iter().filter(|source| **source == Source::Stdin).count() > 1 {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("standard input as a source more than once")
                .with_expected("'-' once: it can be read only once"));
        }
        let has_file = self.sinks().any(|(sink, _)| matches!(sink, Sink::File(_)));
        for (is_given, option) in [(self.append, "--append"), (self.keep_partial, "--keep-partial")] {
            if is_given && !has_file {
                return Err(Error::new(ErrorKind::InvalidOption)
                    .with_found(format!("{option} without a file as output"))
                    .with_expected("-o FILE or --tee FILE"));
            }
        }
        Ok(())
    }

    /// Whether records are processed.
    fn works(&self) -> bool {
        !self.stages.is_empty() || self.each.each.is_some()
    }

    /// Whether sources are joined record by record, with a delimiter added where one is missing: if records are
    /// processed, and not only counted. Otherwise their bytes are joined unchanged.
    pub(super) fn joins_records(&self) -> bool {
        self.works() || self.delimiter.is_some() || self.null
    }

    /// Whether a result was requested that needs counted records.
    pub(super) fn wants_records(&self) -> bool {
        self.count || self.stats.is_some() || self.record_limit.is_some() || self.works()
    }
}

/// When to flush the output buffer.
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

/// The form of a length prefix.
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
    /// Sources by their content, output files by the suffix of their names
    Auto,
    /// Neither: bytes are copied unchanged
    Off,
}

/// What must not change about a source file while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pin {
    /// Its existing content: it may grow
    Content,
    /// Content and size: it may not grow
    Identity,
}

/// Whether a thread reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadAhead {
    /// If measurements during the run show a benefit
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// Even if standard error is not a terminal: then one line a second
    Always,
    /// Never
    Never,
    /// If standard error is a terminal and the records do not go to one
    Auto,
}

pub(crate) fn record_size(text: &str) -> Result<usize, String> {
    size::parse(text, 1..=RECORD_LIMIT).map(|size| size as usize)
}

fn buffer_size(text: &str) -> Result<usize, String> {
    size::parse(text, 1..=BUFFER_LIMIT).map(|size| size as usize)
}

/// The most memory that a decoder's window may use.
pub(crate) fn decode_memory(text: &str) -> Result<u64, String> {
    size::parse(text, 1..=2 << 30)
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
