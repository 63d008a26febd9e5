//! Objects of Python's as a source or a sink: functions that return bytes, files that are objects, memory.
//!
//! Functions are called on the caller's thread only, with the interpreter's lock, which the core's call has given up.

use std::collections::TryReserveError;
use std::io::{Error as IoError, ErrorKind, Result as IoResult};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// Bytes that Python owns, and that cannot change.
pub struct Memory(pub PyBackedBytes);

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A reader's source: `read(n)` returns at most `n` bytes, nothing at the end.
pub fn source(read: Py<PyAny>) -> impl FnMut(&mut [u8]) -> IoResult<usize> + Send + 'static {
    // What a function returned beyond what was asked for.
    let mut left: Option<(PyBackedBytes, usize)> = None;
    move |space| {
        if left.is_none() {
            let bytes = Python::attach(|py| call(py, &read, space.len())).map_err(IoError::other)?;
            let Some(bytes) = bytes else { return Err(ErrorKind::WouldBlock.into()) };
            left = Some((bytes, 0));
        }
        let Some((bytes, used)) = &mut left else { return Ok(0) };
        let rest = &bytes[*used..];
        let count = rest.len().min(space.len());
        space[..count].copy_from_slice(&rest[..count]);
        *used += count;
        if *used == bytes.len() {
            left = None;
        }
        Ok(count)
    }
}

/// `None`: nothing yet, as files that do not block say it.
fn call(py: Python<'_>, read: &Py<PyAny>, len: usize) -> PyResult<Option<PyBackedBytes>> {
    py.check_signals()?;
    let bytes = read.bind(py).call1((len,))?;
    if bytes.is_none() {
        return Ok(None);
    }
    if let Ok(bytes) = bytes.extract() {
        return Ok(Some(bytes));
    }
    match bytes.getattr("__class__")?.getattr("__name__")?.to_string().as_str() {
        "str" => Err(PyTypeError::new_err("the source returned str, not bytes: open it in binary mode")),
        other => Err(PyTypeError::new_err(format!("the source returned {other}, not bytes"))),
    }
}

/// A writer's sink: `write(bytes)` returns how many it took, or nothing for all.
pub fn sink(write: Py<PyAny>) -> impl FnMut(&[u8]) -> IoResult<usize> + Send + 'static {
    move |bytes| {
        let taken = Python::attach(|py| {
            py.check_signals()?;
            write.bind(py).call1((bytes,))?.extract::<Option<usize>>()
        });
        let taken = taken.map_err(IoError::other)?.unwrap_or(bytes.len());
        if taken > bytes.len() {
            return Err(IoError::other(format!("a write that says it took {taken} of {} bytes", bytes.len())));
        }
        Ok(taken)
    }
}

/// The bytes of any object that lends them, such as an array: a copy, because it may change.
pub fn copy(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let buffer = PyBuffer::<u8>::get(object)?;
    let mut bytes = Vec::new();
    reserve(bytes.try_reserve_exact(buffer.len_bytes()))?;
    bytes.resize(buffer.len_bytes(), 0);
    buffer.copy_to_slice(object.py(), &mut bytes)?;
    Ok(bytes)
}

pub fn reserve(reserved: Result<(), TryReserveError>) -> PyResult<()> {
    reserved.map_err(|error| PyMemoryError::new_err(error.to_string()))
}
