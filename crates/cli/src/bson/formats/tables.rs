//! Writes Arrow and Parquet, with the crates of the Arrow project. This module requires the feature `parquet`.

use std::io;

use arrow_ipc::writer::{FileWriter, StreamWriter};
use millstream::bson::Documents;
use millstream::bson::columns::{Batches, RecordBatches};
use millstream::{Error, ErrorKind, Result, Writer};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{Format, Packing};

/// The memory of a row group of Parquet before it is written. The written size is smaller.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Writes all batches, calls `progress` after each, and returns the number of rows.
pub(super) fn write(
    batches: Batches,
    format: Format,
    packing: Packing,
    sink: &mut Writer,
    progress: &mut impl FnMut(&Documents),
) -> (Result<u64>, Batches) {
    let mut batches = RecordBatches::new(batches);
    let written = match format {
        Format::Parquet => parquet(&mut batches, packing, sink, progress),
        _ => arrow(&mut batches, format, sink, progress),
    };
    (written, batches.into_batches())
}

fn arrow(
    batches: &mut RecordBatches,
    format: Format,
    sink: &mut Writer,
    progress: &mut impl FnMut(&Documents),
) -> Result<u64> {
    let schema = batches.batches().columns().schema().to_arrow();
    let mut rows = 0;
    macro_rules! write_all {
        ($writer:expr) => {{
            let mut writer = $writer.map_err(failed)?;
            while let Some(batch) = batches.next_batch()? {
                writer.write(&batch).map_err(failed)?;
                rows += batch.num_rows() as u64;
                progress(batches.batches().documents());
            }
            writer.finish().map_err(failed)?;
        }};
    }
    match format {
        Format::ArrowStream => write_all!(StreamWriter::try_new(sink, &schema)),
        _ => write_all!(FileWriter::try_new(sink, &schema)),
    }
    Ok(rows)
}

fn parquet(
    batches: &mut RecordBatches,
    packing: Packing,
    sink: &mut Writer,
    progress: &mut impl FnMut(&Documents),
) -> Result<u64> {
    let compression = match packing {
        Packing::Zstd => Compression::ZSTD(ZstdLevel::try_new(3).map_err(failed)?),
        Packing::Snappy => Compression::SNAPPY,
        Packing::None => Compression::UNCOMPRESSED,
    };
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = batches.batches().columns().schema().to_arrow();
    let mut writer = ArrowWriter::try_new(sink, schema, Some(properties)).map_err(failed)?;
    let mut rows = 0;
    while let Some(batch) = batches.next_batch()? {
        writer.write(&batch).map_err(failed)?;
        rows += batch.num_rows() as u64;
        if writer.memory_size() > ROW_GROUP_BYTES {
            writer.flush().map_err(failed)?;
        }
        progress(batches.batches().documents());
    }
    writer.close().map_err(failed)?;
    Ok(rows)
}

/// An error of the crates that write the formats. If the sink caused it, it is converted to the sink's error.
trait Failure: std::fmt::Display + Sized {
    fn io(self) -> std::result::Result<io::Error, Self>;
}

fn failed<E: Failure>(error: E) -> Error {
    match error.io() {
        Ok(error) => Error::from_io(error),
        Err(error) => Error::new(ErrorKind::Unsupported)
            .with_found(error.to_string())
            .with_expected("columns that the format can hold"),
    }
}

impl Failure for arrow_schema::ArrowError {
    fn io(self) -> std::result::Result<io::Error, Self> {
        match self {
            arrow_schema::ArrowError::IoError(_, error) => Ok(error),
            other => Err(other),
        }
    }
}

impl Failure for ParquetError {
    fn io(self) -> std::result::Result<io::Error, Self> {
        match self {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => Ok(*error),
                Err(error) => Err(ParquetError::External(error)),
            },
            other => Err(other),
        }
    }
}
