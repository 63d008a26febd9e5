//! Errors of the crates that read and write the formats.

use std::io;

use millstream::{Error, ErrorKind};
use parquet::errors::ParquetError;

/// An error of these crates. If a reader or writer of ours caused it, it contains that error.
pub(crate) trait Failure: std::fmt::Display + Sized {
    fn io(self) -> std::result::Result<io::Error, Self>;
}

/// Returns the error of writing: that of the sink if the sink caused it.
pub(crate) fn failed<E: Failure>(error: E) -> Error {
    match error.io() {
        Ok(error) => Error::from_io(error),
        Err(error) => Error::new(ErrorKind::Unsupported)
            .with_found(error.to_string())
            .with_expected("columns that the format can hold"),
    }
}

/// Returns the error of reading: that of the source if the source caused it.
pub(crate) fn read_failed<E: Failure>(error: E) -> Error {
    match error.io() {
        Ok(error) => Error::from_io(error),
        Err(error) => {
            Error::new(ErrorKind::DecodeDamaged).with_found(error.to_string()).with_expected("a complete table")
        }
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
