//! The usual ways to read lines without Millstream.

use std::io::{self, BufRead, BufReader, Read};

use bstr::io::BufReadExt;

use crate::consumer::{Consumer, Tally};
use crate::source::Source;

/// Copies one line at a time into a separate buffer.
pub fn read_until(source: &Source, buffer: usize) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut reader = BufReader::with_capacity(buffer, source.open()?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        tally.record(line.strip_suffix(b"\n").unwrap_or(&line));
        line.clear();
    }
    reader.into_inner().finish()?;
    Ok(tally)
}

/// Calls a closure for each line, directly on the reader's buffer where possible.
pub fn for_byte_line(source: &Source, buffer: usize) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut reader = BufReader::with_capacity(buffer, source.open()?);
    reader.for_byte_line(|line| {
        tally.record(line);
        Ok(true)
    })?;
    reader.into_inner().finish()?;
    Ok(tally)
}

/// Reads all bytes without processing them; returns their number.
pub fn drain(source: &Source, buffer: usize) -> io::Result<u64> {
    let mut stream = source.open()?;
    let mut buffer = vec![0; buffer];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            read => bytes += read as u64,
        }
    }
    stream.finish()?;
    Ok(bytes)
}
