//! The library's options on the command line: each is `--` and its name, with hyphens.
//!
//! They come from the library's tables, so that a new option is available here without additional code. This module
//! adds what a table does not contain: the limits of numbers, and the help if the command differs from the library.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use millstream::options::{Set, Setting, Word};

use crate::size;

/// The maximum record limit and record length: a record and its neighbours have to fit into a batch, whose offsets have
/// 32 bits.
const RECORD_LIMIT: u64 = 1 << 31;

/// Options that the command has in another form, or does not have; `vectors/options.tsv` lists the reasons.
const OTHERWISE: [&str; 9] = [
    "name",
    "lend_pages",
    "read_ahead_capacity",
    "follow",
    "json_elements",
    "process_group",
    "stderr_limit",
    "range_size",
    "connections",
];

/// Returns the range of a number; other numbers have no limit.
fn range(name: &str) -> RangeInclusive<u64> {
    match name {
        // A larger buffer only moves memory from the page cache to this process.
        "capacity" => 1..=1 << 30,
        "record_limit" => 1..=RECORD_LIMIT,
        "decode_memory" => 1..=2 << 30,
        "level" => 0..=22,
        "expect_bytes" | "expect_records" => 0..=u64::MAX,
        "block_size" => 4096..=64 << 20,
        "stop_signal" => 1..=i32::MAX as u64,
        "part_size" => 5 << 20..=5 << 30,
        "size_hint" => 0..=1 << 50,
        _ => 1..=u64::MAX,
    }
}

/// Returns the help if the command differs from the library: a line, and more for the long help.
fn help(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "capacity" => ("Size of the buffers for reading and writing", ""),
        "read_ahead" => ("Read ahead on a thread while the output is busy", ""),
        "record_limit" => ("Fail at a record longer than this, read or made by a stage [default: 64M]", ""),
        "decode" => ("Decode compressed sources, such as gzip or xz, detected by their content [default: auto]", ""),
        "decode_limit" => ("Fail if a source has more decoded bytes than this", ""),
        "decode_ratio" => ("Fail if a source has more decoded bytes than this for each compressed byte", ""),
        "decode_memory" => (
            "The maximum memory of a decoder's window: zstd --long makes frames that need up to 2G \
             [default: 128M]",
            "",
        ),
        "stall_timeout" => (
            "Fail if no bytes move for this long, such as 30s or 5m",
            "Bytes move if they arrive or are accepted. This applies to sources, outputs and the copies of --each. A copy fails if it writes no bytes for this \
             long; a copy kept alive by --round-robin fails if it neither reads nor writes.",
        ),
        "json_depth" => (
            "Fail if more arrays and objects than this are inside each other in JSON of --json, --json-check or --from json [default: 128]",
            "",
        ),
        "expect_bytes" => (
            "Fail unless the source has this many bytes, before any decoding",
            "This, --expect-hash and --expect-records are for sources that cannot report where they end, such as standard \
             input: they look complete if the program that writes them is killed.",
        ),
        "expect_hash" => (
            "Fail unless the source's bytes, before any decoding, have this hash, such as sha256:DIGITS",
            "The algorithms are those of --hash.",
        ),
        "expect_records" => ("Fail unless the source has this many records", ""),
        "total_timeout" => ("Fail if reading a source takes longer than this in total, such as 1h", ""),
        "success_statuses" => (
            "The exit statuses with which a command succeeds, such as 0,1 [default: 0]",
            "This and the following options apply to the commands after --, to the line of --shell and to the copies of --each.",
        ),
        "success_signals" => ("The numbers of the signals that may kill a command without an error, such as 13,15", ""),
        "stop_signal" => (
            "The number of the signal that stops a command [default: 15]",
            "A command is stopped if no more of its output is needed, or if the run fails. Its pipes are closed first, \
             and a command that exits within a second is not signalled. If a time limit ends it, it is signalled at once.",
        ),
        "stop_grace" => ("How long a command may continue after that signal before it is killed [default: 1s]", ""),
        "pin" => ("Which properties of a source file must not change while it is read", ""),
        "flush_policy" => (
            "When to flush the output buffer [default: as soon as bytes arrive]",
            "A file stays invisible until it is complete, regardless of this option, unless --append or \
             --keep-partial is also given.",
        ),
        "flush_delay" => ("Flush the output buffer at most this long after a byte arrived, such as 10ms", ""),
        "encode" => (
            "Compress the outputs; a level may follow, as in zstd:19",
            "By default an output file is compressed if its name implies that, as NAME.gz does.",
        ),
        "block_size" => (
            "Compress blocks of this size independently, on all processors; for gzip and zstd",
            "The output consists of members of gzip or frames of zstd, which every decoder accepts, and is slightly larger. \
             A file of zstd frames can be divided by -j and 'millstream split'. From 4096 to 64M; bgzf always has blocks.",
        ),
        "level" => ("The level of compression: 0 to 9 (6 by default); for zstd 1 to 22 (3)", ""),
        "existing" => ("What to do with an output file that exists", "--append is short for --existing append."),
        "partial" => ("What to do with an incomplete output file", "--keep-partial is short for --partial keep."),
        "durability" => ("What the end of an output file waits for", ""),
        "linger" => (
            "How long the peer of an output connection may take to close it at the end \
             [default: --stall-timeout, or 30s]",
            "This confirms that all bytes arrived. With 0s there is no wait.",
        ),
        "endpoint" => ("The address of a store [default: that of the environment, or the store's usual one]", ""),
        "anonymous" => ("Do not sign requests to a store: for public objects", ""),
        "ca_file" => ("A file of certificates (PEM) to trust, in addition to those of the system", ""),
        "netrc" => ("Take user and password for web servers from ~/.netrc, or from the file that NETRC names", ""),
        "md5_etag" => ("Compare the MD5 of a whole object with its ETag, if it has no other checksum", ""),
        "retry_for" => ("Repeat failed requests until there has been no progress for this long [default: 5m]", ""),
        "idle_timeout" => ("Give up a connection that moves no bytes for this long, and resume [default: 10s]", ""),
        "allow_unknown_length" => {
            ("Accept a body of a web server with neither a length nor chunks, whose end cannot be known", "")
        }
        "allow_link_local" => ("Allow link-local addresses, where clouds keep the credentials of a machine", ""),
        "part_size" => (
            "Upload objects in parts of this size, from 5M to 5G [default: 5M, 16M from part 501 on]",
            "An object has at most 10,000 parts: 150 GiB by default, or what --size-hint needs. Parts of up to 88 MiB together are in memory, or 5 parts.",
        ),
        "size_hint" => ("The expected size of an object that is uploaded [default: that of the source files]", ""),
        _ => return None,
    })
}

/// The value of an option.
#[derive(Clone)]
pub(super) enum Value {
    Number(u64),
    List(Vec<i32>),
    Time(Duration),
    Text(String),
    Flag,
    Word(&'static str),
    /// An encoding with a level.
    Level(&'static str, u64),
}

/// The options that were given, with their values.
#[derive(Clone, Default)]
pub(super) struct Given(Vec<(&'static str, Value)>);

impl Given {
    /// Sets the options in this table that were given and that `wanted` accepts.
    pub(super) fn apply<B>(&self, table: &[Setting<B>], wanted: impl Fn(&str) -> bool, builder: B) -> B {
        let given = self.0.iter().filter(|(name, _)| wanted(name));
        given.fold(builder, |builder, (name, value)| {
            let Some(option) = table.iter().find(|option| option.name == *name) else { return builder };
            match (&option.set, value) {
                (Set::Number(set), Value::Number(number)) => set(builder, *number),
                (Set::List(set), Value::List(list)) => set(builder, list),
                (Set::Time(set), Value::Time(time)) => set(builder, *time),
                (Set::Text(set), Value::Text(text)) => set(builder, text.clone()),
                (Set::Flag(set), Value::Flag) => set(builder, true),
                (Set::Word(words), Value::Word(found)) => match words.iter().find(|word| word.word == *found) {
                    Some(word) => (word.set)(builder),
                    None => builder,
                },
                _ => builder,
            }
        })
    }

    /// Adds the options with these names that were given.
    pub(super) fn add(&mut self, matches: &ArgMatches, names: impl Iterator<Item = &'static str>) {
        for name in names.filter(|name| !OTHERWISE.contains(name)) {
            if !self.has(name) && matches.value_source(name) == Some(ValueSource::CommandLine) {
                match matches.get_one::<Value>(name) {
                    Some(&Value::Level(word, level)) => {
                        self.0.extend([(name, Value::Word(word)), ("level", Value::Number(level))]);
                    }
                    value => self.0.extend(value.map(|value| (name, value.clone()))),
                }
            }
        }
    }

    /// Adds an option as if it had been given.
    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        self.0.push((name, value));
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(given, _)| *given == name).map(|(_, value)| value)
    }

    /// Returns whether an option was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|value| if let Value::Number(number) = value { Some(*number) } else { None })
    }

    pub(super) fn time(&self, name: &str) -> Option<Duration> {
        self.get(name).and_then(|value| if let Value::Time(time) = value { Some(*time) } else { None })
    }

    pub(super) fn word(&self, name: &str) -> Option<&'static str> {
        self.get(name).and_then(|value| if let Value::Word(word) = value { Some(*word) } else { None })
    }
}

fn hash(text: &str) -> Result<Value, String> {
    match millstream::hash::parse(text) {
        Ok(_) => Ok(Value::Text(text.into())),
        Err(expected) => Err(format!("expected {expected}")),
    }
}

/// Returns the argument of an option, unless the command has it in another form.
pub(super) fn arg<B>(option: &Setting<B>) -> Option<Arg> {
    if OTHERWISE.contains(&option.name) {
        return None;
    }
    let name = option.name;
    let mut default = None;
    let (takes, parser) = match option.set {
        Set::Number(_) => {
            let takes = if matches!(name, "level" | "decode_ratio" | "stop_signal" | "json_depth" | "expect_records") {
                "NUMBER"
            } else {
                "SIZE"
            };
            let parse = move |text: &str| size::parse(text, range(name)).map(Value::Number);
            (takes, ValueParser::new(parse))
        }
        Set::Time(_) => (
            "DURATION",
            ValueParser::new(move |text: &str| time(text, matches!(name, "linger" | "stop_grace" | "retry_for"))),
        ),
        Set::List(_) => ("NUMBERS", ValueParser::new(numbers)),
        Set::Word(words) => {
            default = words.iter().find(|word| word.is_default).map(|word| word.word);
            match name {
                "encode" => ("FORMAT", ValueParser::new(Encoding(self::words(words)))),
                _ => ("HOW", self::words(words).into()),
            }
        }
        Set::Text(_) if name == "expect_hash" => ("ALGORITHM:DIGITS", ValueParser::new(hash)),
        Set::Text(_) => {
            let name = if name == "ca_file" { "FILE" } else { "URL" };
            (name, ValueParser::new(|text: &str| Ok::<_, String>(Value::Text(text.into()))))
        }
        Set::Flag(_) => ("", ValueParser::new(|_: &str| Ok::<_, String>(Value::Flag))),
        Set::Numbers(_) => return None,
    };
    let (short, long) = help(name).unwrap_or((option.about, ""));
    let short = match default {
        Some(word) if !short.contains("[default") => format!("{short} [default: {}]", hyphens(word)),
        _ => short.to_string(),
    };
    let arg = Arg::new(name).long(hyphens(name)).value_parser(parser).help(&short);
    let arg = match option.set {
        Set::Flag(_) => arg.num_args(0).default_missing_value("true"),
        _ => arg.value_name(takes),
    };
    Some(if long.is_empty() { arg } else { arg.long_help(format!("{short}\n\n{long}")) })
}

/// Parses one of these words, which the long help explains.
fn words<B>(words: &'static [Word<B>]) -> impl TypedValueParser<Value = Value> {
    let values = words.iter().map(|word| PossibleValue::new(hyphens(word.word)).help(word.about));
    let known: Vec<&'static str> = words.iter().map(|word| word.word).collect();
    let parser = PossibleValuesParser::new(values);
    parser.map(move |found| Value::Word(known.iter().find(|word| hyphens(word) == found).expect("it is one")))
}

/// Parses one of the words that the inner parser accepts, with a level after a colon if one is given.
#[derive(Clone)]
struct Encoding<P>(P);

impl<P: TypedValueParser<Value = Value>> TypedValueParser for Encoding<P> {
    type Value = Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<Value, clap::Error> {
        let Some((word, level)) = text.to_str().and_then(|text| text.split_once(':')) else {
            return self.0.parse_ref(command, arg, text);
        };
        let parse_level = |text: &str| {
            let level = text.parse().ok().filter(|level| range("level").contains(level));
            level.ok_or_else(|| format!("expected a level from 0 to {} after the colon", range("level").end()))
        };
        let level = parse_level.parse_ref(command, arg, OsStr::new(level))?;
        match self.0.parse_ref(command, arg, OsStr::new(word))? {
            Value::Word(word) => Ok(Value::Level(word, level)),
            value => Ok(value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

fn numbers(text: &str) -> Result<Value, String> {
    let numbers = text.split(',').map(|number| number.trim().parse());
    numbers.collect::<Result<_, _>>().map(Value::List).map_err(|_| "expected numbers separated by commas".to_string())
}

fn hyphens(name: &str) -> String {
    name.replace('_', "-")
}

fn time(text: &str, may_be_zero: bool) -> Result<Value, String> {
    match humantime::parse_duration(text) {
        Ok(time) if may_be_zero || !time.is_zero() => Ok(Value::Time(time)),
        _ => Err("expected a duration such as 500ms, 30s or 5m".to_string()),
    }
}

pub(crate) fn record_size(text: &str) -> Result<usize, String> {
    size::parse(text, range("record_limit")).map(|size| size as usize)
}
