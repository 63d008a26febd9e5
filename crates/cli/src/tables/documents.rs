//! Documents of BSON as Extended JSON, one per line.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use millstream::Result;
use millstream::bson::{Document, Rules};

use crate::extended_json::Style;

/// Extended JSON that is being written.
pub(crate) struct ExtendedJson<W> {
    style: Style,
    out: W,
    line: Vec<u8>,
}

impl<W: Write> ExtendedJson<W> {
    pub(super) fn new(style: Style, out: W) -> ExtendedJson<W> {
        ExtendedJson { style, out, line: Vec::new() }
    }

    /// Writes the documents in the first column.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for document in batch.column(0).as_binary::<i32>().iter().flatten() {
            let document = Document::with_rules(document, Rules::new())?;
            self.style.write_line(&document, &mut self.line, &mut self.out)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> W {
        self.out
    }
}
