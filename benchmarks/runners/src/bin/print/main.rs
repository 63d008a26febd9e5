//! Prints `Hello, `, a number and a tab many times to standard output, with Millstream or in other ways in Rust. The
//! programs in C, C++ and Go are in `benchmarks/competitors/print`.

mod competitors;
mod put;

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
    /// `put!` into a pipe to which pages are passed without copying.
    PutLent,
    /// `put!` into a mapped file.
    PutMapped { path: PathBuf },
    /// Standard output, locked for each write.
    Glacial,
    /// Standard output, locked once.
    Slow,
    /// A `BufWriter` on the locked standard output.
    Fast,
    /// A `BufWriter` on the file descriptor itself.
    Speedy,
    /// A counter that is kept and incremented as text.
    Turbo,
    /// Handwritten digits in a `Vec`, and write(2).
    Vecbuf,
    /// A `BufWriter` of 64 KiB on the file descriptor, with the itoa crate.
    Itoa {
        /// Enlarge the pipe on standard output to this many bytes.
        #[arg(long)]
        pipe: Option<usize>,
    },
    /// A `BufWriter` and `write!`.
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
        Way::Put => put::stdout(numbers)?,
        Way::PutLent => put::lent(numbers)?,
        Way::PutMapped { path } => put::mapped(&path, numbers)?,
        Way::Glacial => competitors::glacial(numbers)?,
        Way::Slow => competitors::slow(numbers)?,
        Way::Fast => competitors::fast(numbers)?,
        Way::Speedy => competitors::speedy(numbers)?,
        Way::Turbo => competitors::turbo(numbers)?,
        Way::Vecbuf => competitors::vecbuf(numbers)?,
        Way::Itoa { pipe } => {
            if let Some(size) = pipe {
                rustix::pipe::fcntl_setpipe_size(io::stdout(), size)?;
            }
            competitors::itoa(numbers)?;
        }
        Way::WriteMacro => competitors::write_macro(numbers)?,
    }
    Ok(())
}
