//! The crate `csv`, with one reused `ByteRecord`.

use std::fs::File;
use std::path::Path;

use anyhow::Result;
use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::tally::{Records, Tally, texts};

/// Larger than the default of 8 KiB, which costs more system calls.
const BUFFER: usize = 256 << 10;

fn open(file: &Path) -> Result<Reader<File>> {
    Ok(ReaderBuilder::new().has_headers(false).flexible(true).buffer_capacity(BUFFER).from_path(file)?)
}

/// Counts the records.
pub fn count(file: &Path) -> Result<u64> {
    let (mut reader, mut record, mut count) = (open(file)?, ByteRecord::new(), 0);
    while reader.read_byte_record(&mut record)? {
        count += 1;
    }
    Ok(count)
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
