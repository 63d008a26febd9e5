//! Errors of the crates that read and write the formats.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use millstream::{Error, ErrorKind, Result};
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

thread_local! {
    /// Whether a panic on this thread becomes an error.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of these crates that reads a source. If it panics, the source is damaged in a way that they do not expect: the
/// panic becomes an error, and prints nothing.
///
/// # Errors
/// Returns that error, and those of `work`.
pub(crate) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                usual(panic);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    // What `work` has changed is not used after an error.
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        Err(Error::new(ErrorKind::DecodeDamaged)
            .with_found(format!(
                "values that the decoder does not accept ({})",
                text.lines().next().unwrap_or_default()
            ))
            .with_expected("a complete table"))
    })
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
