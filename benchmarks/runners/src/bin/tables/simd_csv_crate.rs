//! The crate `simd-csv`: one reused `ByteRecord`, and the `Splitter`, which finds only the ends of records.

use std::fs::File;
use std::path::Path;

use anyhow::Result;
use simd_csv::{ByteRecord, Reader, ReaderBuilder, SplitterBuilder};

use crate::tally::{Records, Tally, texts};

/// As for the crate `csv`.
const BUFFER: usize = 256 << 10;

fn open(file: &Path) -> Result<Reader<File>> {
    let mut builder = ReaderBuilder::new();
    Ok(builder.has_headers(false).flexible(true).buffer_capacity(BUFFER).from_reader(File::open(file)?))
}

/// Counts the records with the reader.
pub fn count(file: &Path) -> Result<u64> {
    let (mut reader, mut record, mut count) = (open(file)?, ByteRecord::new(), 0);
    while reader.read_byte_record(&mut record)? {
        count += 1;
    }
    Ok(count)
}

/// Counts the records with the splitter.
pub fn split(file: &Path) -> Result<u64> {
    let mut builder = SplitterBuilder::new();
    let mut splitter = builder.has_headers(false).buffer_capacity(BUFFER).from_reader(File::open(file)?);
    Ok(splitter.count_records()?)
}

/// Visits every field.
pub fn sum(file: &Path) -> Result<Tally> {
    let (mut reader, mut record, mut tally) = (open(file)?, ByteRecord::new(), Tally::default());
    while reader.read_byte_record(&mut record)? {
        tally.record(record.iter())?;
    }
    Ok(tally)
}

/// Returns the records.
pub fn records(file: &Path) -> Result<Records> {
    open(file)?.byte_records().map(|record| Ok(texts(record?.iter()))).collect()
}
