//! Millstream's way: one `put!` for each record.

use std::path::Path;

use millstream::{Result, Writer, put};

/// Into whatever standard output is.
pub fn stdout(numbers: impl Iterator<Item = u64>) -> Result<()> {
    records(Writer::stdout()?, numbers)
}

/// Into a mapped file.
pub fn mapped(path: &Path, numbers: impl Iterator<Item = u64>) -> Result<()> {
    records(Writer::mapped(path)?, numbers)
}

fn records(mut out: Writer, numbers: impl Iterator<Item = u64>) -> Result<()> {
    for number in numbers {
        put!(out, "Hello, ", number, '\t')?;
    }
    out.close()?;
    Ok(())
}
