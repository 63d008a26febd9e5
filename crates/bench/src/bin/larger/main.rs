//! Reads pairs of numbers from standard input and prints the larger of each: in Millstream's way, or in the one that
//! most people write in Rust. The first line says how many pairs there are. Other languages: `bench/rivals/larger`.

use std::io::{self, BufRead, BufWriter, Write};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

#[derive(Parser)]
struct Options {
    way: Way,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// `lines()` and `parse`.
    Lines,
}

fn main() -> Result<()> {
    match Options::parse().way {
        Way::Lines => lines(),
    }
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
