//! Lines at random places of a gzip file with an index.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use millstream::GzipIndex;

use crate::consumer::{Consumer, Tally};

/// Reads the first whole line after each of these places, which spread over the file in a fixed order. The time
/// includes reading the index, once.
pub fn read(file: &Path, places: u64) -> Result<String> {
    let (start, mut tally) = (Instant::now(), Tally::default());
    let index = GzipIndex::load(GzipIndex::usual_path(file))?;
    let mut line = Vec::new();
    for place in 0..places {
        let offset = (u128::from(place * 2_654_435_761 % (1 << 32)) * u128::from(index.decoded_len())) >> 32;
        let mut bytes = BufReader::new(index.open(file, offset as u64)?);
        bytes.skip_until(b'\n')?;
        line.clear();
        if bytes.read_until(b'\n', &mut line)? > 0 {
            tally.record(line.strip_suffix(b"\n").unwrap_or(&line));
        }
    }
    Ok(format!("{tally} ns={}", start.elapsed().as_nanos()))
}
