//! Reads pairs of numbers from standard input and prints the larger of each, with Millstream or in the usual way in
//! Rust. The first line contains the number of pairs. Programs in other languages are in `benchmarks/competitors/larger`.

use std::io::{self, BufRead, BufWriter, Write};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use millstream::{Reader, Writer, put};

#[derive(Parser)]
struct Options {
    way: Way,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// Millstream's `require` and `put!`.
    Scan,
    /// `lines()` and `parse`.
    Lines,
}

fn main() -> Result<()> {
    let _sampler = millstream_runners::sample::from_environment();
    match Options::parse().way {
        Way::Scan => Ok(scan()?),
        Way::Lines => lines(),
    }
}

fn scan() -> millstream::Result<()> {
    let mut reader = Reader::stdin()?;
    let mut out = Writer::stdout()?;
    for _ in 0..reader.require::<u32>()? {
        let (a, b) = reader.require::<(u32, u32)>()?;
        put!(out, a.max(b), '\n')?;
    }
    out.close()?;
    reader.close()?;
    Ok(())
}

fn lines() -> Result<()> {
    let mut lines = io::stdin().lock().lines();
    let mut out = BufWriter::new(io::stdout().lock());
    let count: u32 = lines.next().context("no first line")??.parse()?;
    for _ in 0..count {
        let line = lines.next().context("too few lines")??;
        let (a, b) = line.split_once(' ').context("no two numbers")?;
        let (a, b): (u32, u32) = (a.parse()?, b.parse()?);
        writeln!(out, "{}", a.max(b))?;
    }
    Ok(out.flush()?)
}
