//! `millstream split`: prints the plan that divides a file, as JSON.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use millstream::Decode;
use millstream::splits::{Framing, SplitPin, Splits};

use crate::run::{CsvOptions, Records};
use crate::standard::Stream;
use crate::{Ending, message, size};

/// Divide a file into splits, and print them as JSON
///
/// A split is a range of bytes. A record belongs to the split in which it begins, so the records of all splits, in
/// order, are the records of the file. Each element of "splits" is complete by itself: 'millstream run --split ELEMENT'
/// moves its records, unchanged, here or on another machine:
///
///   millstream split --size 256M huge.log | jq -c '.splits[]' |
///     parallel --keep-order millstream run --split {} --stage match:error
///
/// Lines, most delimiters and records of a fixed size need no pass over the file. BSON, length-prefixed records and CSV
/// are followed from the start of the file. A bgzf or zstd file is divided at its blocks or frames, a gzip file at the
/// points of its index ('millstream index'), and sizes are of decoded bytes; files of other formats, and gzip files
/// without an index, are one split, and "note" says why.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The file to divide
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

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
    csv: CsvOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum Pin {
    /// Nothing: only a shorter file is detected
    None,
    /// Size, modification time and inode, for one machine
    Identity,
    /// Size and a hash of 64 KiB at both ends, for copies on other machines
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
    let mut builder = Splits::builder().pin(pin).decode(decode);
    if let Some(index) = &options.index {
        builder = builder.index(index);
    }
    let plan = || {
        Stream::Output.check()?;
        let framing = match options.csv.framer()? {
            Some(csv) => Framing::Csv { dialect: *csv.dialect() },
            None => options.records.framing().unwrap_or(Framing::Lines),
        };
        builder.plan(&options.file, framing, options.size)
    };
    match plan() {
        Ok(plan) => message::print(plan.to_json().as_bytes()),
        Err(error) => message::fail(&error),
    }
}
