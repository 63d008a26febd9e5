//! Millstream, used through its public interface.

use std::path::Path;

use anyhow::{Context, Result};
use millstream::Reader;
use millstream::frame::{Batch, Csv, CsvDialect, CsvPositions, CsvStrayQuotes};
use millstream::splits::{Framing, Split, Splits};

use crate::tally::{Records, Tally, texts};

/// The size of the splits that several threads read.
const SPLIT: u64 = 4 << 20;

fn framer(is_literal: bool) -> Result<Csv> {
    let stray = if is_literal { CsvStrayQuotes::Literal } else { CsvStrayQuotes::Error };
    Ok(Csv::with(CsvDialect::new().stray_quotes(stray))?)
}

fn each_batch(reader: &mut Reader, csv: &mut Csv, mut each: impl FnMut(&Csv, &Batch<'_>) -> Result<()>) -> Result<()> {
    let view = csv.clone();
    while let Some(batch) = reader.next_batch(csv)? {
        each(&view, &batch)?;
    }
    Ok(())
}

/// Counts the records that are not skipped.
pub fn count(file: &Path, is_literal: bool) -> Result<u64> {
    let mut count = 0;
    each_batch(&mut Reader::path(file)?, &mut framer(is_literal)?, |csv, batch| {
        count += (batch.len() - csv.count_skipped(batch)) as u64;
        Ok(())
    })?;
    Ok(count)
}

/// Visits the fields of the records that begin before `end`. Also returns the offset after the last one.
fn tally(mut reader: Reader, end: u64) -> Result<(Tally, u64)> {
    let (mut tally, mut csv, mut positions) = (Tally::default(), framer(false)?, CsvPositions::new());
    while reader.position().bytes < end
        && let Some(batch) = reader.next_batch(&mut csv)?
    {
        let starts = &batch.offsets()[..batch.len()];
        let count = starts.partition_point(|&start| batch.offset() + u64::from(start) < end);
        for row in csv.rows(batch.first(count), &mut positions) {
            tally.record(row.iter())?;
        }
        let later = batch.len() - count;
        if later > 0 {
            reader.give_back(later)?;
        }
    }
    Ok((tally, reader.position().bytes))
}

/// Visits every field.
pub fn sum(file: &Path, threads: usize) -> Result<Tally> {
    if threads == 1 {
        return Ok(tally(Reader::path(file)?, u64::MAX)?.0);
    }
    let splits = Splits::builder().assume(file, Framing::Csv { dialect: CsvDialect::new() }, SPLIT)?;
    let splits = splits.context("the file is compressed")?;
    let work = |split: &Split| {
        let end = split.end().filter(|_| split.is_assumed()).unwrap_or(u64::MAX);
        let read = Reader::split(split).map_err(anyhow::Error::from).and_then(|reader| tally(reader, end));
        Ok(match read {
            Ok((tally, end)) => (Ok(tally), end),
            Err(error) => (Err(error), end),
        })
    };
    let mut total = Tally::default();
    splits.parallel(threads, work, |tally| {
        total.add(&tally?);
        Ok::<(), anyhow::Error>(())
    })?;
    Ok(total)
}

/// Returns the records.
pub fn records(file: &Path, is_literal: bool) -> Result<Records> {
    let mut records = Records::new();
    each_batch(&mut Reader::path(file)?, &mut framer(is_literal)?, |csv, batch| {
        let found = batch.iter().filter(|record| !csv.skips(record));
        records.extend(found.map(|record| texts(csv.fields(record))));
        Ok(())
    })?;
    Ok(records)
}
