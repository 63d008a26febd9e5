//! The runners for CSV that are written in Rust: Millstream and the crates `csv`, `simd-csv` and `csveee`. The others are
//! in `benchmarks/competitors/python/tables.py`.
//!
//! There is no header: the first record is a record like any other. Every runner reads the file itself. `sum` visits
//! the content of every field, without its quotes, and adds up the numbers of the second column. `show` prints all
//! records as JSON, to compare what programs read in a small file.

mod csv_crate;
mod csveee_crate;
mod millstream_reader;
mod simd_csv_crate;
mod tally;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};

use crate::tally::{Records, Tally};

#[derive(Parser)]
struct Options {
    work: Work,
    way: Way,
    file: PathBuf,
    /// The number of threads, for those that can use several.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The number of columns, for those that must know it: 10, or 2 as in a file that `show` prints.
    #[arg(long, default_value_t = 10)]
    columns: usize,
    /// Do the work several times and print the median time of a pass.
    #[arg(long)]
    passes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Work {
    /// Counts the records.
    Count,
    /// Visits every field, and sums the second column.
    Sum,
    /// Prints the records.
    Show,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// `frame::Csv`.
    Millstream,
    /// The same with quotes in unquoted fields as content.
    MillstreamLiteral,
    /// `csv::ByteRecord`.
    Csv,
    /// `simd_csv::ByteRecord`.
    SimdCsv,
    /// `simd_csv::Splitter`, which only counts.
    SimdCsvSplitter,
    /// `csveee` with its default, in which every quote begins or ends a quoted part.
    Csveee,
    /// `csveee`, in which a quote inside an unquoted field is content.
    CsveeeLiteral,
    /// `csveee`, in which a quote inside an unquoted field is an error.
    CsveeeStrict,
}

/// The number of timed passes.
const PASSES: usize = 3;

fn main() -> Result<()> {
    let _sampler = millstream_runners::sample::from_environment();
    let options = Options::parse();
    if options.work == Work::Show {
        serde_json::to_writer(io::stdout(), &records(&options)?)?;
        return Ok(());
    }
    let answer = pass(&options)?;
    let mut time = String::new();
    if options.passes {
        let times: Result<Vec<Duration>> = (0..PASSES)
            .map(|_| {
                let start = Instant::now();
                pass(&options)?;
                Ok(start.elapsed())
            })
            .collect();
        let mut times = times?;
        times.sort_unstable();
        time = format!(" ns={}", times[PASSES / 2].as_nanos());
    }
    writeln!(io::stdout(), "{answer}{time}")?;
    Ok(())
}

fn pass(Options { work, way, file, threads, columns, .. }: &Options) -> Result<String> {
    if *work == Work::Sum {
        return Ok(sum(*way, file, *threads)?.to_string());
    }
    let csveee_count = |quotes| match columns {
        2 => csveee_crate::count::<2>(file, quotes, *threads),
        10 => csveee_crate::count::<10>(file, quotes, *threads),
        _ => bail!("{columns} columns, expected 2 or 10"),
    };
    let count = match way {
        Way::Millstream => millstream_reader::count(file, false)?,
        Way::MillstreamLiteral => millstream_reader::count(file, true)?,
        Way::Csv => csv_crate::count(file)?,
        Way::SimdCsv => simd_csv_crate::count(file)?,
        Way::SimdCsvSplitter => simd_csv_crate::split(file)?,
        Way::Csveee => csveee_count(csveee::QuoteHandling::Toggle)?,
        Way::CsveeeLiteral => csveee_count(csveee::QuoteHandling::Literal)?,
        Way::CsveeeStrict => csveee_count(csveee::QuoteHandling::Strict)?,
    };
    Ok(format!("count={count}"))
}

fn sum(way: Way, file: &Path, threads: usize) -> Result<Tally> {
    Ok(match way {
        Way::Millstream => millstream_reader::sum(file, threads)?,
        Way::Csv => csv_crate::sum(file)?,
        Way::SimdCsv => simd_csv_crate::sum(file)?,
        Way::Csveee => csveee_crate::sum(file, csveee::QuoteHandling::Toggle, threads)?,
        Way::CsveeeLiteral => csveee_crate::sum(file, csveee::QuoteHandling::Literal, threads)?,
        _ => bail!("this way cannot sum"),
    })
}

fn records(Options { way, file, .. }: &Options) -> Result<Records> {
    Ok(match way {
        Way::Millstream => millstream_reader::records(file, false)?,
        Way::MillstreamLiteral => millstream_reader::records(file, true)?,
        Way::Csv => csv_crate::records(file)?,
        Way::SimdCsv => simd_csv_crate::records(file)?,
        Way::SimdCsvSplitter => bail!("the splitter finds no fields"),
        Way::Csveee => csveee_crate::records(file, csveee::QuoteHandling::Toggle)?,
        Way::CsveeeLiteral => csveee_crate::records(file, csveee::QuoteHandling::Literal)?,
        Way::CsveeeStrict => csveee_crate::records(file, csveee::QuoteHandling::Strict)?,
    })
}
