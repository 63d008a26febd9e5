//! The crate `csveee`, which calls a function with each record, on several threads.
//!
//! It needs the number of fields of each record to detect that a thread began inside quotes.

use std::path::Path;

use anyhow::Result;
use csveee::{ParserBuilder, QuoteHandling};

use crate::tally::{Records, Tally, texts};

/// Counts the records, which have this number of fields.
pub fn count<const FIELDS: usize>(file: &Path, quotes: QuoteHandling, threads: usize) -> Result<u64> {
    let builder = ParserBuilder::new().bytes().has_headers(false).quote_handling(quotes).concurrency(threads);
    let count = |count: &mut u64, _: [&mut [u8]; FIELDS]| {
        *count += 1;
        Ok(())
    };
    Ok(builder.build().parse(file, || 0, count, |counts| counts.iter().sum::<u64>())?)
}

/// Visits every field of records of ten fields.
pub fn sum(file: &Path, quotes: QuoteHandling, threads: usize) -> Result<Tally> {
    let builder = ParserBuilder::new().bytes().has_headers(false).quote_handling(quotes).concurrency(threads);
    let add = |tally: &mut Tally, fields: [&mut [u8]; 10]| Ok(tally.record(fields.iter())?);
    let total = |tallies: &mut [Tally]| {
        let mut total = Tally::default();
        tallies.iter().for_each(|tally| total.add(tally));
        total
    };
    Ok(builder.build().parse(file, Tally::default, add, total)?)
}

/// Returns the records, which have two fields.
pub fn records(file: &Path, quotes: QuoteHandling) -> Result<Records> {
    let builder = ParserBuilder::new().bytes().has_headers(false).quote_handling(quotes).concurrency(2);
    let add = |records: &mut Records, fields: [&mut [u8]; 2]| {
        records.push(texts(fields.iter()));
        Ok(())
    };
    Ok(builder.build().parse(file, Records::new, add, |records| records.concat())?)
}
