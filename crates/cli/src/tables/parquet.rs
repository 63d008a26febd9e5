//! Parquet. The columns of a row group are encoded on several threads.
//!
//! A column is always with one thread at a time. While the threads encode a batch, the caller can make the next one:
//! the column's writer is taken back only when the column has more values.

use std::io::Write;

use arrow_array::{ArrayRef, RecordBatch, new_empty_array};
use arrow_schema::{FieldRef, SchemaRef};
use millstream::workers::{Work, Workers};
use millstream::{Error, ErrorKind, Result};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::{BinaryOptions, LEVEL, Packing, failed};

/// The memory of a row group before it is written. The written size is smaller.
const GROUP_BYTES: usize = 64 << 20;

/// The memory of the batches that are passed to other threads together.
const LOT_BYTES: usize = 2 << 20;

/// A Parquet file that is being written.
pub(crate) struct Parquet<W: Write + Send> {
    file: SerializedFileWriter<Held<W>>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// For each field, the number of its columns in the file.
    leaves: Vec<usize>,
    /// Batches that are not with the threads yet.
    lot: Vec<RecordBatch>,
    lot_bytes: usize,
    lot_limit: usize,
    /// The columns of the current row group that are not with a thread, in the order of the fields.
    idle: Vec<Column>,
    /// The number of fields whose columns are with the threads, which return them in the order of the fields.
    busy: usize,
    workers: Workers<Column>,
    group_rows: usize,
    most_rows: usize,
    /// The memory of the current row group, as far as it is known.
    pending: usize,
}

/// An output that can be taken out of a finished file.
struct Held<W>(Option<W>);

impl<W: Write> Write for Held<W> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.0.as_mut().map_or(Ok(0), |out| out.write(data))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// The columns of a field, and values to add to them.
struct Column {
    field: FieldRef,
    writers: Vec<ArrowColumnWriter>,
    arrays: Vec<ArrayRef>,
    /// The memory of the writers.
    memory: usize,
    /// Whether no more values follow.
    ends: bool,
    chunks: Vec<ArrowColumnChunk>,
    result: std::result::Result<(), ParquetError>,
}

impl Column {
    fn encode(&mut self) -> std::result::Result<(), ParquetError> {
        for array in self.arrays.drain(..) {
            for (leaf, writer) in compute_leaves(&self.field, &array)?.iter().zip(&mut self.writers) {
                writer.write(leaf)?;
            }
        }
        self.memory = self.writers.iter().map(ArrowColumnWriter::memory_size).sum();
        if self.ends {
            for writer in self.writers.drain(..) {
                self.chunks.push(writer.close()?);
            }
        }
        Ok(())
    }
}

impl<W: Write + Send> Parquet<W> {
    pub(super) fn new(schema: &SchemaRef, options: &BinaryOptions, out: W) -> Result<Parquet<W>> {
        let compression = match options.packing.unwrap_or(Packing::Zstd(LEVEL)) {
            Packing::Zstd(level) => Compression::ZSTD(ZstdLevel::try_new(level.into()).map_err(failed)?),
            Packing::Snappy => Compression::SNAPPY,
            Packing::None => Compression::UNCOMPRESSED,
            Packing::Lz4 => {
                let error = Error::new(ErrorKind::InvalidOption).with_found("LZ4 for Parquet");
                return Err(error.with_expected("zstd, snappy or no compression"));
            }
        };
        let properties =
            WriterProperties::builder().set_compression(compression).set_dictionary_enabled(options.dictionary).build();
        // It adds the schema of Arrow to the metadata.
        let writer = ArrowWriter::try_new(Held(Some(out)), schema.clone(), Some(properties)).map_err(failed)?;
        let (file, factory) = writer.into_serialized_writer().map_err(failed)?;
        let leaves = schema.fields().iter().map(|field| {
            compute_leaves(field, &new_empty_array(field.data_type())).map(|leaves| leaves.len()).map_err(failed)
        });
        let threads = if options.threads > 1 { options.threads } else { 0 };
        let new_work = || -> Work<Column> { Box::new(|column: &mut Column| column.result = column.encode()) };
        Ok(Parquet {
            file,
            factory,
            schema: schema.clone(),
            leaves: leaves.collect::<Result<_>>()?,
            lot: Vec::new(),
            lot_bytes: 0,
            lot_limit: if threads > 0 { LOT_BYTES } else { 0 },
            idle: Vec::new(),
            busy: 0,
            workers: Workers::with_at_most(threads, new_work),
            group_rows: 0,
            most_rows: options.group_rows,
            pending: 0,
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let count = rest.num_rows().min(self.most_rows - self.group_rows);
            let first = rest.slice(0, count);
            rest = rest.slice(count, rest.num_rows() - count);
            self.group_rows += count;
            self.lot_bytes += first.get_array_memory_size();
            self.lot.push(first);
            if self.group_rows < self.most_rows && self.lot_bytes > self.lot_limit {
                self.pending = self.encode(false)?;
            }
            if self.group_rows == self.most_rows || self.pending > GROUP_BYTES {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Returns the memory of the row group that has not been written. Its size in the file is smaller.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Passes the batches of the lot to the threads. Returns the memory of the row group, as far as it is known.
    fn encode(&mut self, ends: bool) -> Result<usize> {
        if self.busy == 0 && self.idle.is_empty() {
            self.begin_group()?;
        }
        let lot = std::mem::take(&mut self.lot);
        self.lot_bytes = 0;
        let mut memory = 0;
        let mut idle = std::mem::take(&mut self.idle).into_iter();
        for i in 0..self.leaves.len() {
            let mut column = match idle.next() {
                Some(column) => column,
                None => self.take()?,
            };
            memory += column.memory;
            column.ends = ends;
            column.arrays.extend(lot.iter().map(|batch| batch.column(i).clone()));
            self.workers.give(column);
            self.busy += 1;
        }
        Ok(memory)
    }

    fn begin_group(&mut self) -> Result<()> {
        let index = self.file.flushed_row_groups().len();
        let mut writers = self.factory.create_column_writers(index).map_err(failed)?.into_iter();
        self.idle = self
            .schema
            .fields()
            .iter()
            .zip(&self.leaves)
            .map(|(field, &leaves)| Column {
                field: field.clone(),
                writers: writers.by_ref().take(leaves).collect(),
                arrays: Vec::new(),
                memory: 0,
                ends: false,
                chunks: Vec::new(),
                result: Ok(()),
            })
            .collect();
        Ok(())
    }

    /// Takes the first column back from the threads.
    fn take(&mut self) -> Result<Column> {
        let mut column = self.workers.take()?.ok_or_else(|| Error::new(ErrorKind::Internal).with_found("no column"))?;
        self.busy -= 1;
        std::mem::replace(&mut column.result, Ok(())).map_err(failed)?;
        Ok(column)
    }

    /// Writes the row group.
    fn end_group(&mut self) -> Result<()> {
        (self.group_rows, self.pending) = (0, 0);
        self.encode(true)?;
        let mut columns = Vec::with_capacity(self.busy);
        while self.busy > 0 {
            columns.push(self.take()?);
        }
        let mut group = self.file.next_row_group().map_err(failed)?;
        for chunk in columns.into_iter().flat_map(|column| column.chunks) {
            chunk.append_to_row_group(&mut group).map_err(failed)?;
        }
        group.close().map_err(failed).map(drop)
    }

    pub(super) fn finish(mut self, metadata: &[(String, String)]) -> Result<W> {
        if self.group_rows > 0 {
            self.end_group()?;
        }
        for (key, value) in metadata {
            self.file.append_key_value_metadata(KeyValue::new(key.clone(), value.clone()));
        }
        // `SerializedFileWriter::into_inner` would turn an error of the output into text, and fails after `finish`.
        self.file.finish().map_err(failed)?;
        self.file.inner_mut().0.take().ok_or_else(|| Error::new(ErrorKind::Internal).with_found("no output"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, StringArray, StructArray};
    use arrow_schema::{DataType, Field, Fields, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn row_groups_have_the_requested_rows_on_any_number_of_threads() {
        let inner = Fields::from(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
        let schema = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("s", DataType::Struct(inner.clone()), true),
            Field::new("t", DataType::Utf8, true),
        ]));
        for threads in [1, 3] {
            let options = BinaryOptions { group_rows: 70_000, threads, ..BinaryOptions::default() };
            let mut table = Parquet::new(&schema, &options, Vec::new()).unwrap();
            for first in (0..200_000).step_by(40_000) {
                let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 40_000));
                let texts: ArrayRef =
                    Arc::new(StringArray::from_iter_values((first..first + 40_000).map(|i| format!("text {i}"))));
                let both = StructArray::new(inner.clone(), vec![numbers.clone(), texts.clone()], None);
                let batch = RecordBatch::try_new(schema.clone(), vec![numbers, Arc::new(both), texts]).unwrap();
                table.write(&batch).unwrap();
            }
            let bytes = table.finish(&[("key".to_string(), "value".to_string())]).unwrap();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file.reopen().unwrap()).unwrap();
            let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
            assert_eq!(groups, [70_000, 70_000, 60_000]);
            let mut expected = 0;
            for batch in reader.build().unwrap() {
                let batch = batch.unwrap();
                let texts = batch.column(1).as_struct().column(1).as_string::<i32>();
                for (row, &number) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
                    assert_eq!((number, texts.value(row)), (expected, &*format!("text {expected}")));
                    expected += 1;
                }
            }
            assert_eq!(expected, 200_000);
        }
    }
}
