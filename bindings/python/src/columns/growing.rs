//! Turns batches into a table.

use std::sync::Arc;
use std::thread;

use arrow_array::{Array, ArrayRef, new_empty_array};
use arrow_schema::{DataType, Schema};
use millstream::frame::Batch;
use millstream::{Error, ErrorKind};
use millstream_columns::Delimited;

use super::layout::Layout;
use super::table::Table;

/// The default number of parsing threads: with more, the reading thread would not keep up.
pub fn enough_workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(4)
}

/// A table that grows, batch by batch.
pub struct Growing {
    table: Delimited,
    /// For each column, its parts.
    columns: Vec<Vec<ArrayRef>>,
}

impl Growing {
    pub fn new(layout: Layout, workers: usize) -> Result<Growing, Error> {
        let Layout { columns, separator, missing } = layout;
        Ok(Growing { table: Delimited::new(columns, separator, missing, workers)?, columns: Vec::new() })
    }

    /// Appends the records of a batch as rows, possibly later.
    ///
    /// # Errors
    /// For the first invalid field, in the order of the records; the earlier rows are kept.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        self.table.append(batch, &mut self.columns)
    }

    /// Waits until all appended records are in the columns.
    ///
    /// # Errors
    /// The same errors as [`append`](Growing::append).
    pub fn settle(&mut self) -> Result<(), Error> {
        self.table.finish(&mut self.columns)
    }

    /// The number of appended records.
    pub fn records(&self) -> usize {
        self.table.records()
    }

    /// The content of the columns. Numbers are in one part, as numpy requires; text is not copied again.
    ///
    /// # Errors
    /// If the parts of a column cannot be joined, which is a bug.
    pub fn finish(mut self) -> Result<Table, Error> {
        let fields = self.table.fields();
        self.columns.resize_with(fields.len(), Vec::new);
        let columns = self.columns.into_iter().zip(&fields).map(|(parts, field)| match field.data_type() {
            DataType::Utf8 | DataType::Binary => Ok(parts),
            plain if parts.is_empty() => Ok(vec![new_empty_array(plain)]),
            _ => {
                let all: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
                arrow_select::concat::concat(&all).map(|joined| vec![joined])
            }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(|error| Error::new(ErrorKind::Internal).with_found(error.to_string()))?;
        Ok(Table::new(Arc::new(Schema::new(fields)), self.table.rows(), columns))
    }
}
