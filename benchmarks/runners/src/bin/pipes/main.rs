//! Pipelines in Rust: the cost of one added stage, and a stage that needs processor time, on several threads.
//!
//! The first pass over the input gives the answer; then several passes are timed, and their median is printed. Opening
//! the file and finding the lines are part of a pass.

mod added;
mod hashed;
mod tally;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use millstream::pipe::Stats;
use millstream_runners::times::PipeTimes;

use added::{Stage, Way};
use hashed::Hasher;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    runner: Runner,
    /// Instead of timing passes, measure how a Millstream pipe spends its time during one pass and write the result to
    /// this file as JSON.
    #[arg(long, global = true)]
    stats: Option<PathBuf>,
    /// Print only the answer, if the whole process is timed.
    #[arg(long, global = true)]
    once: bool,
}

impl Options {
    /// Prints the answer and the median time of several passes, or writes how one pass spends its time.
    fn report(&self, mut pass: impl FnMut(bool) -> Result<Pass>) -> Result<()> {
        let (answer, _) = pass(false)?;
        if self.once {
            writeln!(io::stdout(), "{answer}")?;
            return Ok(());
        }
        if let Some(path) = &self.stats {
            let (answer, stats) = pass(true)?;
            let times = PipeTimes::from(stats.context("only Millstream pipes have `--stats`")?);
            fs::write(path, serde_json::to_string(&times)?)?;
            writeln!(io::stdout(), "{answer} ns={:.0}", times.seconds * 1e9)?;
            return Ok(());
        }
        let mut times = Vec::new();
        while times.len() < LEAST || (times.len() < MOST && times.iter().sum::<Duration>() < ENOUGH) {
            let start = Instant::now();
            pass(false)?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        writeln!(io::stdout(), "{answer} ns={}", times[times.len() / 2].as_nanos())?;
        Ok(())
    }
}

/// The result of a pass over the input: its answer and, for a Millstream pipe, its time statistics.
type Pass = (String, Option<Stats>);

#[derive(Subcommand)]
enum Runner {
    /// Lines through a number of stages.
    Added {
        #[arg(long, value_enum)]
        way: Way,
        /// What a stage does.
        #[arg(long, value_enum, default_value_t = Stage::None)]
        stage: Stage,
        /// The number of stages.
        #[arg(long)]
        n: usize,
        input: PathBuf,
    },
    /// The SHA-256 of each line, in order.
    Hashed {
        #[arg(long, value_enum)]
        way: Hasher,
        #[arg(long, default_value_t = 1)]
        threads: usize,
        input: PathBuf,
    },
}

/// The minimum number of timed passes.
const LEAST: usize = 3;
/// The maximum number of timed passes.
const MOST: usize = 15;
/// After the minimum number, passes are timed until their total reaches this time or their number the maximum.
const ENOUGH: Duration = Duration::from_millis(400);

fn main() -> Result<()> {
    let _sampler = millstream_runners::sample::from_environment();
    let options = Options::parse();
    match &options.runner {
        Runner::Added { way, stage, n, input } => {
            options.report(|measured| added::pass(*way, *stage, *n, input, measured))
        }
        Runner::Hashed { way, threads, input } => {
            let pass = way.prepare(*threads)?;
            options.report(|measured| pass(input, measured))
        }
    }
}
