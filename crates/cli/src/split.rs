//! `millstream split`: prints the plan that divides a file, as JSON.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::{Args, ValueEnum, ValueHint};
use indicatif::HumanBytes;
use millstream::splits::{Framing, SplitPin, Splits};
use millstream::{Decode, Remote};

use crate::run::{CsvOptions, JsonOptions, Network, Progress, Records, Show};
use crate::standard::Stream;
use crate::{Ending, message, size};

/// The size of a file of which a pass is announced.
const LARGE: u64 = 10_000_000_000;

/// Divide a file or an object into splits, and print them as JSON
///
/// A split is a range of bytes. A record belongs to the split in which it begins, so the records of all splits, in
/// order, are the records of the file. Each element of "splits" is complete by itself: 'millstream run --split ELEMENT'
/// moves its records, unchanged, here or on another machine:
///
///   millstream split --size 256M huge.log | jq -c '.splits[]' |
///     parallel --keep-order millstream run --split {} --stage match:error
///
/// Lines, most delimiters and records of a fixed size need no pass over the file. BSON, length-prefixed records and CSV
/// are followed from the start of the file, and a JSON document is checked as a whole. A bgzf or zstd file is divided at its blocks or frames, a gzip file at the
/// points of its index ('millstream index'), and sizes are of decoded bytes; files of other formats, and gzip files
/// without an index, are one split, and "note" says why.
///
/// The splits of an object contain its size and its ETag, and every request requires them. They contain the URL as it is
/// given here; give 'run --split' the same options for URLs.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The file or URL to divide
    #[arg(value_hint = ValueHint::FilePath)]
    file: OsString,

    /// The size of a split
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = split_size)]
    size: u64,

    /// What each split stores, to detect another file or another version of it
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Pin::Identity)]
    pin: Pin,

    /// Whether a compressed file is decoded; off: it is divided as it is
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "off"], default_value = "auto")]
    decode: String,

    /// The index of a gzip file, which 'run --split' needs too [default: FILE.gzidx, if it can be used]
    #[arg(long, value_name = "INDEX", value_hint = ValueHint::FilePath)]
    index: Option<PathBuf>,

    #[command(flatten)]
    records: Records,

    #[command(flatten)]
    json: JsonOptions,

    /// How many arrays and objects of JSON may be inside each other, for --json and --json-check [default: 128]
    #[arg(long, value_name = "NUMBER", help_heading = "Records")]
    json_depth: Option<usize>,

    #[command(flatten)]
    csv: CsvOptions,

    /// Count the records, so that each element has the number of its first one
    ///
    /// Errors of 'run --split' then have the numbers of records and lines in the whole file. Lines and delimiters need one
    /// pass over the file for that; all other records are numbered anyway.
    #[arg(long, help_heading = "Records")]
    number: bool,

    /// The first record is a header; every element contains it, for 'run --split ELEMENT --csv --header'
    #[arg(long, help_heading = "Records", requires = "csv")]
    header: bool,

    #[command(flatten)]
    network: Network,
}

#[derive(Clone, Copy, ValueEnum)]
enum Pin {
    /// Nothing: only a shorter file is detected
    None,
    /// Size, modification time and inode, for one machine; for an object, size and ETag
    Identity,
    /// Size and a hash of 64 KiB at both ends, and at the start of each split if planning reads the file, for copies on other
    /// machines
    Ends,
    /// Also a hash of each split, for which the file is read once
    Full,
}

fn split_size(text: &str) -> Result<u64, String> {
    size::parse(text, 1..=u64::MAX)
}

pub(crate) fn run(options: &Options) -> Ending {
    let pin = match options.pin {
        Pin::None => SplitPin::None,
        Pin::Identity => SplitPin::Identity,
        Pin::Ends => SplitPin::Ends,
        Pin::Full => SplitPin::Full,
    };
    let decode = if options.decode == "off" { Decode::Off } else { Decode::Auto };
    let mut builder = Splits::builder().pin(pin).decode(decode).header(options.header).number(options.number);
    if let Some(index) = &options.index {
        builder = builder.index(index);
    }
    let plan = || {
        Stream::Output.check()?;
        options.json.check_depth(options.json_depth, options.records.checks_json())?;
        let framing = match options.csv.framer()? {
            Some(csv) => Framing::Csv { dialect: *csv.dialect() },
            None => {
                let depth = options.json_depth;
                let elements = options.json.framing(depth);
                elements.or_else(|| options.records.framing(depth)).unwrap_or(Framing::Lines)
            }
        };
        let file = &options.file;
        let remote = Remote::is_url(file.as_bytes()).then(|| options.network.remote(&file.to_string_lossy()));
        let (is_remote, name) = (remote.is_some(), remote.as_ref().map_or(file.display().to_string(), Remote::name));
        let (line, shown) = (Arc::new(OnceLock::new()), Show::Auto.is_wanted(true));
        let (begun, updated) = (line.clone(), line.clone());
        let builder = builder
            .before_pass(move |size| {
                if is_remote || size > LARGE {
                    message::say(&format!("{name}: reading all of its {}", HumanBytes(size)));
                }
                if shown {
                    let _ = begun.set(Progress::start(Some(size)));
                }
            })
            .progress(move |bytes| updated.get().into_iter().for_each(|line: &Progress| line.update(bytes, 0, bytes)));
        let plan = match remote {
            Some(remote) => builder.plan_url(remote, framing, options.size),
            None => builder.plan(file, framing, options.size),
        };
        if let Some(line) = Arc::into_inner(line).and_then(OnceLock::into_inner) {
            line.finish();
        }
        plan
    };
    match plan() {
        Ok(plan) => message::print(plan.to_json().as_bytes()),
        Err(error) => message::fail(&error),
    }
}
