//! Prints `Hello, ` number tab, many times, to standard output: in Millstream's way, or in one of those that are
//! written in Rust without it. The ways of C, C++ and Go are in `benchmarks/rivals/print`.

mod ours;
mod rivals;

use std::io;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use millstream_runners::numbers::{RandomLengths, SEED};

#[derive(Parser)]
struct Options {
    numbers: Numbers,
    count: usize,
    #[command(subcommand)]
    way: Way,
}

#[derive(Clone, Copy, ValueEnum)]
enum Numbers {
    /// 0, 1, 2, …
    Counter,
    /// One to ten digits.
    Random,
}

#[derive(Subcommand)]
enum Way {
    /// Millstream's `put!`.
    Put,
    /// The same into a pipe that is lent pages.
    PutLent,
    /// The same into a mapped file.
    PutMapped { path: PathBuf },
    /// Standard output, locked for each write.
    Glacial,
    /// Standard output, locked once.
    Slow,
    /// A `BufWriter` on the locked standard output.
    Fast,
    /// A `BufWriter` on the file descriptor itself.
    Speedy,
    /// A counter kept as text and counted by hand.
    Turbo,
    /// Digits made by hand in a `Vec`, and write(2).
    Vecbuf,
    /// A `BufWriter` of 64 KiB on the file descriptor, and the itoa crate.
    Itoa {
        /// Enlarge the pipe that standard output is, to this many bytes.
        #[arg(long)]
        pipe: Option<usize>,
    },
    /// The same with `write!`.
    WriteMacro,
}

fn main() -> Result<()> {
    let _sampler = millstream_runners::sample::from_environment();
    let Options { numbers, count, way } = Options::parse();
    match numbers {
        Numbers::Counter => print(way, 0..count as u64),
        Numbers::Random => print(way, RandomLengths::new(SEED).take(count)),
    }
}

fn print(way: Way, numbers: impl Iterator<Item = u64>) -> Result<()> {
    match way {
        Way::Put => ours::stdout(numbers)?,
        Way::PutLent => ours::lent(numbers)?,
        Way::PutMapped { path } => ours::mapped(&path, numbers)?,
        Way::Glacial => rivals::glacial(numbers)?,
        Way::Slow => rivals::slow(numbers)?,
        Way::Fast => rivals::fast(numbers)?,
        Way::Speedy => rivals::speedy(numbers)?,
        Way::Turbo => rivals::turbo(numbers)?,
        Way::Vecbuf => rivals::vecbuf(numbers)?,
        Way::Itoa { pipe } => {
            if let Some(size) = pipe {
                rustix::pipe::fcntl_setpipe_size(io::stdout(), size)?;
            }
            rivals::itoa(numbers)?;
        }
        Way::WriteMacro => rivals::write_macro(numbers)?,
    }
    Ok(())
}
