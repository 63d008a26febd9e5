//! Arrow IPC. Small batches are joined, because each has a header and its own buffers.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use millstream::{Error, ErrorKind, Result};

use super::{Packing, failed};

/// The rows and the memory of a joined batch.
const ROWS: usize = 1 << 16;
const BYTES: usize = 16 << 20;

/// Batches that are joined before they are written.
struct Joined {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Joined {
    fn new(schema: &SchemaRef) -> Joined {
        Joined { schema: schema.clone(), batches: Vec::new(), rows: 0, bytes: 0 }
    }

    /// Adds a batch. Returns the batch to write, if there is one.
    fn add(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        self.rows += batch.num_rows();
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch.clone());
        if self.rows >= ROWS || self.bytes >= BYTES { self.take() } else { Ok(None) }
    }

    fn take(&mut self) -> Result<Option<RecordBatch>> {
        (self.rows, self.bytes) = (0, 0);
        match &std::mem::take(&mut self.batches)[..] {
            [] => Ok(None),
            [batch] => Ok(Some(batch.clone())),
            batches => concat_batches(&self.schema, batches).map(Some).map_err(failed),
        }
    }
}

/// Returns the options for this compression.
fn options(packing: Option<Packing>) -> Result<IpcWriteOptions> {
    let options = IpcWriteOptions::default();
    match packing {
        None | Some(Packing::None) => Ok(options),
        Some(Packing::Lz4) => options.try_with_compression(Some(CompressionType::LZ4_FRAME)).map_err(failed),
        Some(Packing::Zstd(level)) => options
            .try_with_compression(Some(CompressionType::ZSTD))
            .and_then(|options| options.try_with_compression_level(Some(level.into())))
            .map_err(failed),
        Some(Packing::Snappy) => {
            let error = Error::new(ErrorKind::InvalidOption).with_found("snappy for Arrow IPC");
            Err(error.with_expected("lz4, zstd or no compression"))
        }
    }
}

/// An Arrow IPC file.
pub(crate) struct ArrowFile<W: Write> {
    joined: Joined,
    writer: FileWriter<W>,
}

impl<W: Write> ArrowFile<W> {
    pub(super) fn new(schema: &SchemaRef, packing: Option<Packing>, out: W) -> Result<ArrowFile<W>> {
        let writer = FileWriter::try_new_with_options(out, schema, options(packing)?).map_err(failed)?;
        Ok(ArrowFile { joined: Joined::new(schema), writer })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self.joined.add(batch)? {
            Some(batch) => self.writer.write(&batch).map_err(failed),
            None => Ok(()),
        }
    }

    pub(super) fn finish(mut self, metadata: &[(String, String)]) -> Result<W> {
        if let Some(batch) = self.joined.take()? {
            self.writer.write(&batch).map_err(failed)?;
        }
        metadata.iter().for_each(|(key, value)| self.writer.write_metadata(key, value));
        self.writer.into_inner().map_err(failed)
    }
}

/// An Arrow IPC stream. Its only place for metadata is the schema, at its beginning.
pub(crate) struct ArrowStream<W: Write> {
    joined: Joined,
    writer: StreamWriter<W>,
}

impl<W: Write> ArrowStream<W> {
    pub(super) fn new(
        schema: &SchemaRef,
        source: &[(String, String)],
        packing: Option<Packing>,
        out: W,
    ) -> Result<ArrowStream<W>> {
        let mut metadata = schema.metadata().clone();
        metadata.extend(source.iter().cloned());
        let described = Arc::new(schema.as_ref().clone().with_metadata(metadata));
        let writer = StreamWriter::try_new_with_options(out, &described, options(packing)?).map_err(failed)?;
        Ok(ArrowStream { joined: Joined::new(schema), writer })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self.joined.add(batch)? {
            Some(batch) => self.writer.write(&batch).map_err(failed),
            None => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Result<W> {
        if let Some(batch) = self.joined.take()? {
            self.writer.write(&batch).map_err(failed)?;
        }
        self.writer.into_inner().map_err(failed)
    }
}
