//! Millstream, used through its public interface.

use std::path::Path;

use anyhow::Result;
use millstream::Reader;
use millstream::frame::{Batch, Csv, CsvDialect, CsvStrayQuotes};
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

fn tally(mut reader: Reader) -> Result<Tally> {
    let mut tally = Tally::default();
    each_batch(&mut reader, &mut framer(false)?, |csv, batch| {
        for record in batch.iter().filter(|record| !csv.skips(record)) {
            tally.record(csv.fields(record))?;
        }
        Ok(())
    })?;
    Ok(tally)
}

/// Visits every field.
pub fn sum(file: &Path, threads: usize) -> Result<Tally> {
    if threads == 1 {
        return tally(Reader::path(file)?);
    }
    let plan = Splits::plan(file, Framing::Csv { dialect: CsvDialect::new() }, SPLIT)?;
    let mut total = Tally::default();
    let work = |split: &Split| Ok(Reader::split(split).map_err(anyhow::Error::from).and_then(tally));
    plan.parallel(threads, work, |tally| {
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
