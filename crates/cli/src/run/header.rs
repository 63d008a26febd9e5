//! `--header`: the first record of each source of CSV is its header.

use millstream::frame::{Csv, Framer};
use millstream::splits::Split;
use millstream::{Error, ErrorKind, Reader, Result};

/// The header of a source.
#[derive(Clone)]
pub(super) struct Header {
    /// The name of the source.
    source: String,
    /// Comments and blank lines before the header.
    before: Vec<u8>,
    /// The header as it is in the source, with its line end, if it has one.
    line: Vec<u8>,
    names: Vec<Vec<u8>>,
    /// Whether the source contains it. Otherwise it comes from a split that begins after it.
    is_read: bool,
}

impl Header {
    /// Returns the header that a split contains, if the split begins after it.
    pub(super) fn of_split(split: &Split, csv: &Csv) -> Option<Header> {
        let content = split.header().filter(|_| split.begin() > 0)?.as_bytes();
        let names = csv.fields(content).map(|name| name.into_owned()).collect();
        let mut header =
            Header { source: split.name(), before: Vec::new(), line: content.to_vec(), names, is_read: false };
        header.terminate(csv);
        Some(header)
    }

    /// Reads the header of a source.
    ///
    /// # Errors
    /// Returns the errors of reading, and [`ErrorKind::CsvInvalid`] for a source without a record.
    pub(super) fn read(reader: &mut Reader, csv: &Csv) -> Result<Header> {
        let source = reader.name().to_string();
        let (mut csv, mut before) = (csv.clone(), Vec::new());
        while let Some(batch) = reader.next_batch_of(&mut csv, 1)? {
            let (content, line) = (batch.get(0).unwrap_or_default(), batch.bytes());
            if csv.skips(content) {
                before.extend_from_slice(line);
                continue;
            }
            let names = csv.fields(content).map(|name| name.into_owned()).collect();
            return Ok(Header { source, before, line: line.to_vec(), names, is_read: true });
        }
        Err(Error::new(ErrorKind::CsvInvalid)
            .with_name(source)
            .with_found("no record")
            .with_expected("a header, because of --header"))
    }

    /// Adds a line end to a header that has none, because records follow.
    pub(super) fn terminate(&mut self, csv: &Csv) {
        let ends_with_cr = csv.trim().carriage_return && self.line.ends_with(b"\r");
        if !ends_with_cr && !self.line.ends_with(csv.terminator()) {
            self.line.extend_from_slice(csv.terminator());
        }
    }

    /// Returns the header after a stage.
    pub(super) fn with(&self, line: Vec<u8>, names: Vec<Vec<u8>>) -> Header {
        Header { source: self.source.clone(), before: Vec::new(), line, names, is_read: self.is_read }
    }

    /// Returns an error unless the headers have the same names in the same order.
    pub(super) fn check(&self, other: &Header) -> Result<()> {
        if self.names == other.names {
            return Ok(());
        }
        Err(Error::new(ErrorKind::CsvInvalid)
            .with_name(other.source.clone())
            .with_found(format!("the header {}", listed(&other.names)))
            .with_expected(format!("that of {}, which is {}", self.source, listed(&self.names))))
    }

    /// Returns where the fields of this header are in another one, which has the same names, each one time.
    ///
    /// # Errors
    /// Returns [`ErrorKind::CsvInvalid`] for other names.
    pub(super) fn order_in(&self, other: &Header) -> Result<Vec<usize>> {
        let position = |name| other.names.iter().position(|other| other == name);
        let order: Option<Vec<usize>> = self.names.iter().map(position).collect();
        let mut seen = vec![false; other.names.len()];
        order.iter().flatten().for_each(|&i| seen[i] = true);
        match order {
            Some(order) if order.len() == other.names.len() && seen.iter().all(|&seen| seen) => Ok(order),
            _ => Err(Error::new(ErrorKind::CsvInvalid)
                .with_name(other.source.clone())
                .with_found(format!("the header {}", listed(&other.names)))
                .with_expected(format!("the names of {}, each one time: {}", self.source, listed(&self.names)))),
        }
    }

    /// Returns the comments and blank lines before the header.
    pub(super) fn before(&self) -> &[u8] {
        &self.before
    }

    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Returns whether the header is a part of the source, and so of the output.
    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    /// Returns the number of bytes that were read.
    pub(super) fn len(&self) -> u64 {
        if self.is_read { (self.before.len() + self.line.len()) as u64 } else { 0 }
    }
}

/// Returns names as a list, each as `fields` accepts it.
pub(super) fn listed(names: &[Vec<u8>]) -> String {
    let csv = Csv::new();
    let shown = names.iter().map(|name| match name.iter().any(|byte| b",:\"".contains(byte)) {
        true => String::from_utf8_lossy(&csv.quote(name).unwrap_or_default()).into_owned(),
        false => String::from_utf8_lossy(name).into_owned(),
    });
    shown.collect::<Vec<_>>().join(",")
}
