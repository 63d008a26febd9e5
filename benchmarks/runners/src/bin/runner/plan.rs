//! Plans of splits, against reading the same file once.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};
use millstream::frame::{CsvDialect, Endian, LengthPrefixed, PrefixWidth};
use millstream::splits::{Framing, Splits};

/// What to do with the file, several times.
#[derive(Args)]
pub struct Plan {
    way: Way,
    /// The size of a split.
    #[arg(long, default_value_t = 256 << 20)]
    size: u64,
    file: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// Read all bytes, which is what a plan that reads cannot avoid.
    Read,
    Lines,
    Csv,
    Bson,
    /// Lengths of 4 bytes, little-endian.
    Prefixed,
}

/// The number of timed passes; the first one does not count.
const PASSES: usize = 5;

/// The buffer for reading the file.
const BUFFER: usize = 256 << 10;

impl Plan {
    /// Returns the answer, and the median time of a pass.
    pub fn run(&self) -> Result<String> {
        let answer = self.pass()?;
        let mut times = Vec::new();
        for _ in 0..PASSES {
            let start = Instant::now();
            self.pass()?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok(format!("{answer} ns={}", times[PASSES / 2].as_nanos()))
    }

    fn pass(&self) -> Result<String> {
        let framing = match self.way {
            Way::Read => return read(&self.file),
            Way::Lines => Framing::Lines,
            Way::Csv => Framing::Csv { dialect: CsvDialect::new() },
            Way::Bson => Framing::Bson,
            Way::Prefixed => Framing::LengthPrefixed { prefix: LengthPrefixed::new(PrefixWidth::U32, Endian::Little) },
        };
        let plan = Splits::plan(&self.file, framing, self.size)?;
        let records = plan.records().map(|records| format!(" count={records}")).unwrap_or_default();
        Ok(format!("splits={}{records}", plan.len()))
    }
}

fn read(file: &Path) -> Result<String> {
    let mut file = File::open(file)?;
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("bytes={bytes}")),
            read => bytes += read as u64,
        }
    }
}
