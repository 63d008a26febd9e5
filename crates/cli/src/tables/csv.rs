//! CSV in which text that is empty differs from null: empty text is quoted, null is not.
//!
//! It is implemented here, because the `csv` crate cannot quote one empty field and leave another without quotes.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use millstream::{Error, ErrorKind, Result};

use super::cells::{Column, flat_names};
use crate::escape::visible_lines;

/// The bytes that are collected before they are written.
const LOT: usize = 64 << 10;

/// How fields of CSV are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct CsvText {
    /// The text for null. Equal text is quoted.
    pub(crate) null: String,
    /// Whether control characters in text are escaped, because the text is printed on a terminal.
    pub(crate) is_seen: bool,
}

impl CsvText {
    /// Appends the line of names. Without columns there is none.
    pub(crate) fn append_names<'a>(&self, line: &mut Vec<u8>, names: impl Iterator<Item = &'a str>) {
        let mut count = 0;
        for name in names {
            separate(line, count);
            self.append(line, name.as_bytes());
            count += 1;
        }
        if count > 0 {
            line.push(b'\n');
        }
    }

    /// Appends a field of text, which is quoted if it is empty, reads as null, or contains a comma, a quote or a line
    /// end.
    pub(crate) fn append(&self, line: &mut Vec<u8>, text: &[u8]) {
        let shown =
            if self.is_seen { visible_lines(&String::from_utf8_lossy(text)).into_owned().into_bytes() } else { vec![] };
        let text = if self.is_seen { &shown } else { text };
        if !text.is_empty() && text != self.null.as_bytes() && !text.iter().any(|byte| b",\"\r\n".contains(byte)) {
            line.extend_from_slice(text);
            return;
        }
        line.push(b'"');
        for &byte in text {
            line.extend_from_slice(if byte == b'"' { b"\"\"" } else { std::slice::from_ref(&byte) });
        }
        line.push(b'"');
    }

    /// Appends the field for null.
    pub(crate) fn append_null(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(self.null.as_bytes());
    }
}

/// Separates a field from the previous one.
pub(crate) fn separate(line: &mut Vec<u8>, index: usize) {
    if index > 0 {
        line.push(b',');
    }
}

/// Returns the error for a row that would be an empty line, which most readers skip.
#[cold]
pub(crate) fn empty_line(name: &str) -> Error {
    Error::new(ErrorKind::InvalidOption)
        .with_found(format!("null in the only column, {name}, which would become an empty line"))
        .with_expected("a column that every row has, or a text for null: --null TEXT")
}

/// CSV that is being written. Each member of a struct is a column, which is named by its path; lists are JSON.
pub(crate) struct CsvTable<W> {
    text: CsvText,
    schema: SchemaRef,
    names: Vec<String>,
    out: W,
    lines: Vec<u8>,
    value: Vec<u8>,
    rows: u64,
}

impl<W: Write> CsvTable<W> {
    pub(crate) fn new(schema: &SchemaRef, text: CsvText, out: W) -> Result<CsvTable<W>> {
        let names = flat_names(schema)?;
        let mut lines = Vec::new();
        text.append_names(&mut lines, names.iter().map(String::as_str));
        Ok(CsvTable { text, schema: schema.clone(), names, out, lines, value: Vec::new(), rows: 0 })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut columns = Vec::with_capacity(self.names.len());
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            Column::new(field, array)?.flatten(None, &mut columns);
        }
        let located = |error: Error, i: usize, row: usize, rows: u64| {
            error.with_path(&*self.names[i]).with_record(rows + row as u64)
        };
        for row in 0..batch.num_rows() {
            let start = self.lines.len();
            for (i, column) in columns.iter().enumerate() {
                separate(&mut self.lines, i);
                if column.is_null(row) {
                    self.text.append_null(&mut self.lines);
                } else if column.is_text() {
                    self.value.clear();
                    column.append(row, &mut self.value).map_err(|error| located(error, i, row, self.rows))?;
                    self.text.append(&mut self.lines, &self.value);
                } else {
                    column.append(row, &mut self.lines).map_err(|error| located(error, i, row, self.rows))?;
                }
            }
            if self.lines.len() == start && columns.len() == 1 {
                return Err(empty_line(&self.names[0]));
            }
            self.lines.push(b'\n');
            if self.lines.len() > LOT {
                self.out.write_all(&self.lines).map_err(Error::from_io)?;
                self.lines.clear();
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<W> {
        self.out.write_all(&self.lines).map_err(Error::from_io)?;
        Ok(self.out)
    }
}
