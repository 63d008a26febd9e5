//! JSON lines: one object for each row, with all columns, also those that are null.
//!
//! It is implemented here, because arrow-json writes NaN as null and binary data in hexadecimal.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use millstream::{Error, Result};

use super::cells::{Column, check_names, key};
use crate::escape::make_visible;

/// The bytes that are collected before they are written.
const LOT: usize = 64 << 10;

/// JSON lines that are being written.
pub(crate) struct JsonTable<W> {
    schema: SchemaRef,
    /// For each column, the text before its values.
    keys: Vec<Vec<u8>>,
    is_seen: bool,
    out: W,
    lines: Vec<u8>,
    rows: u64,
}

impl<W: Write> JsonTable<W> {
    pub(super) fn new(schema: &SchemaRef, is_seen: bool, out: W) -> Result<JsonTable<W>> {
        check_names(schema)?;
        let keys = schema.fields().iter().enumerate().map(|(i, field)| key(i, field.name())).collect();
        Ok(JsonTable { schema: schema.clone(), keys, is_seen, out, lines: Vec::new(), rows: 0 })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.schema.fields().iter().zip(batch.columns());
        let columns = columns.map(|(field, array)| Column::new(field, array)).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let start = self.lines.len();
            for (i, (column, key)) in columns.iter().zip(&self.keys).enumerate() {
                self.lines.extend_from_slice(key);
                column.append_json(row, &mut self.lines).map_err(|error| {
                    error.with_path(self.schema.field(i).name()).with_record(self.rows + row as u64)
                })?;
            }
            self.lines.extend_from_slice(if columns.is_empty() { b"{}\n" } else { b"}\n" });
            if self.is_seen {
                let mut line = self.lines.split_off(start);
                line.pop();
                make_visible(&mut line);
                self.lines.append(&mut line);
                self.lines.push(b'\n');
            }
            if self.lines.len() > LOT {
                self.out.write_all(&self.lines).map_err(Error::from_io)?;
                self.lines.clear();
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<W> {
        self.out.write_all(&self.lines).map_err(Error::from_io)?;
        Ok(self.out)
    }
}
