//! The runners for BSON that are written in Rust: Millstream, the `bson` crate, and JSON parsers on the same records.
//! The runners in C, Go, JavaScript and Python are in `benchmarks/competitors/bson`.
//!
//! The input is in memory before the clock starts, unless reading is measured. The first pass is not timed: it sums all
//! decoded fields, which is the answer. Each of the following passes is timed; they decode the same documents and drop
//! the results. The output is `answer… ns=… allocations=…`: see [`passes`].

mod allocations;
mod columns;
mod encode;
mod input;
mod orders;
mod passes;
mod produce;
mod records;
mod tally;
mod untyped;
mod weights;
mod wide;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::passes::Passes;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    work: Work,
    #[command(flatten)]
    passes: Passes,
}

#[derive(Subcommand)]
enum Work {
    /// Small typed records.
    Records { way: records::Way, file: PathBuf },
    /// Nested documents.
    Orders { way: orders::Way, file: PathBuf },
    /// Documents without a known schema.
    Untyped { way: untyped::Way, file: PathBuf },
    /// Members of one large document.
    Wide { way: wide::Way, file: PathBuf, gets: u64 },
    /// Arrays of numbers.
    Weights { way: weights::Way, file: PathBuf },
    /// Small typed records as columns.
    Columns { way: columns::Way, file: PathBuf },
    /// Encoding of small typed records.
    Encode { way: encode::Way, file: PathBuf },
    /// Writes small records to standard output, up to a given size.
    Produce(produce::Producer),
}

fn main() -> Result<()> {
    let _sampler = millstream_runners::sample::from_environment();
    let Options { work, passes } = Options::parse();
    let answer = match work {
        Work::Records { way, file } => records::run(way, &input::read(&file)?, &passes)?,
        Work::Orders { way, file } => orders::run(way, &input::read(&file)?, &passes)?,
        Work::Untyped { way, file } => untyped::run(way, &input::read(&file)?, &passes)?,
        Work::Wide { way, file, gets } => wide::run(way, &input::read(&file)?, gets, &passes)?,
        Work::Weights { way, file } => weights::run(way, &file, &passes)?,
        Work::Columns { way, file } => columns::run(way, &input::read(&file)?, &passes)?,
        Work::Encode { way, file } => encode::run(way, &input::read(&file)?, &passes)?,
        Work::Produce(producer) => return Ok(producer.run()?),
    };
    writeln!(io::stdout(), "{answer}")?;
    Ok(())
}
