//! The runners in Rust: readers of a file or of a command's output, plans of splits, and a producer with configurable timing.
//!
//! Each prints its results as `key=number` words and exits with 0 only if its source succeeded.

mod anywhere;
mod competitors;
mod consumer;
mod plan;
mod producer;
mod reader;
mod source;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::consumer::Effort;
use crate::plan::Plan;
use crate::producer::Producer;
use crate::reader::ReaderOptions;
use crate::source::Source;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    runner: Runner,
}

#[derive(Subcommand)]
enum Runner {
    /// Lines with `Reader::next_line`.
    NextLine {
        #[command(flatten)]
        reader: ReaderOptions,
        #[command(flatten)]
        effort: Effort,
    },
    /// Lines with `Reader::next_batch`.
    NextBatch(ReaderOptions),
    /// Lines with std's `BufReader::read_until`.
    ReadUntil {
        #[command(flatten)]
        source: Source,
        /// The buffer of the `BufReader`; the default is std's.
        #[arg(long, default_value_t = 8192)]
        buffer: usize,
    },
    /// Lines with bstr's `for_byte_line` on a `BufReader`.
    ForByteLine {
        #[command(flatten)]
        source: Source,
        #[arg(long, default_value_t = 8192)]
        buffer: usize,
    },
    /// The lower limit: read all bytes without finding lines.
    Drain {
        #[command(flatten)]
        source: Source,
        #[arg(long, default_value_t = 1 << 20)]
        buffer: usize,
    },
    /// A plan of splits, or one pass over the file.
    Plan(Plan),
    /// Lines at random places of a gzip file with an index.
    Anywhere {
        file: PathBuf,
        /// The number of places.
        #[arg(long)]
        places: u64,
    },
    /// Writes lines to standard output.
    Produce(Producer),
}

fn main() -> anyhow::Result<()> {
    let _sampler = millstream_runners::sample::from_environment();
    let answer = match Options::parse().runner {
        Runner::NextLine { reader, effort } => reader.next_line(effort)?,
        Runner::NextBatch(reader) => reader.next_batch()?,
        Runner::ReadUntil { source, buffer } => competitors::read_until(&source, buffer)?.to_string(),
        Runner::ForByteLine { source, buffer } => competitors::for_byte_line(&source, buffer)?.to_string(),
        Runner::Drain { source, buffer } => format!("bytes={}", competitors::drain(&source, buffer)?),
        Runner::Plan(plan) => plan.run()?,
        Runner::Anywhere { file, places } => anywhere::read(&file, places)?,
        // Not std's standard output, which would split the writes at line ends.
        Runner::Produce(producer) => {
            return Ok(producer.run(&mut File::from(io::stdout().as_fd().try_clone_to_owned()?))?);
        }
    };
    writeln!(io::stdout(), "{answer}")?;
    Ok(())
}
