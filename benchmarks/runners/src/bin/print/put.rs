//! Printing with Millstream: one `put!` for each record.

use std::path::Path;

use millstream::{LendPages, Result, Writer, put};

/// Writes to standard output of any kind.
pub fn stdout(numbers: impl Iterator<Item = u64>) -> Result<()> {
    records(Writer::stdout()?, numbers)
}

/// Writes to a pipe and passes pages to it without copying; the measuring process reads them with read(2).
pub fn lent(numbers: impl Iterator<Item = u64>) -> Result<()> {
    records(Writer::builder().lend_pages(LendPages::ConsumerCopies).stdout()?, numbers)
}

/// Writes to a mapped file.
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
