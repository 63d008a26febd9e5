//! Records of CSV as lists and dicts.

use millstream::Error;
use millstream::frame::{Csv, CsvRagged};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::batch::Loose;
use crate::error;

use super::{Reader, State};

/// How many records are taken from the reader at once.
const BATCH: usize = 256;

/// A batch of which some records have been used.
pub struct Pending {
    batch: Loose,
    next: usize,
}

impl Pending {
    pub fn new(batch: Loose) -> Pending {
        Pending { batch, next: 0 }
    }

    /// Returns the next record with its offset and its number, and its line if it is one.
    pub fn next(&mut self) -> Option<(&[u8], u64, u64, Option<u64>)> {
        let (core, index) = (self.batch.core(), self.next);
        let record = core.get(index)?;
        self.next += 1;
        let offset = core.offset() + u64::from(core.offsets()[index]);
        Some((record, offset, core.first_record() + index as u64, self.batch.line(index)))
    }

    /// Returns the index in the batch of the record that was used last.
    fn last(&self) -> usize {
        self.next.saturating_sub(1)
    }

    fn last_record(&self) -> Option<&[u8]> {
        self.batch.core().get(self.last())
    }

    /// Returns the number of records that have not been used.
    pub fn left(&self) -> usize {
        self.batch.core().len() - self.next
    }
}

/// The fields of a record.
type Row<'py> = Vec<Bound<'py, PyAny>>;

/// An iterator over the records of CSV of a reader. It has no position of its own.
#[pyclass(frozen, generic, module = "millstream._native")]
pub struct Rows {
    reader: Py<Reader>,
    csv: Csv,
    /// Whether the first record is a header, and the others are dicts with its names.
    has_header: bool,
    ragged: CsvRagged,
}

impl Rows {
    pub fn new(reader: Py<Reader>, csv: Csv, has_header: bool, ragged: CsvRagged) -> Rows {
        Rows { reader, csv, has_header, ragged }
    }

    /// Returns the next record; a line that is not a record is skipped.
    fn fields<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Option<Row<'py>>> {
        let reader = self.reader.get();
        loop {
            if let Some(pending) = &mut state.rows {
                while let Some((record, ..)) = pending.next() {
                    if self.csv.skips(record) {
                        continue;
                    }
                    let mut row = Vec::with_capacity(state.header.as_ref().map_or(0, Vec::len));
                    for field in self.csv.fields(record) {
                        match reader.encoding.decode(py, &field) {
                            Ok(field) => row.push(field),
                            Err(cause) => return Err(not_text(py, reader, state, cause)),
                        }
                    }
                    return Ok(Some(row));
                }
            }
            state.rows = None;
            if state.reader.is_none() {
                return Err(error::closed(py, &reader.name));
            }
            let next =
                reader.wait(py, state, |reader, framer| Ok(reader.next_batch_of(framer, BATCH)?.map(Loose::from)))?;
            let Some(batch) = next else { return Ok(None) };
            state.rows = Some(Pending::new(batch));
        }
    }
}

/// Returns the exception for the last record, which is not text.
#[cold]
fn not_text(py: Python<'_>, reader: &Reader, state: &State, cause: PyErr) -> PyErr {
    let Some(record) = state.rows.as_ref().and_then(Pending::last_record) else { return cause };
    // The cause is a field's; the message and the exception have the place in the record.
    let cause = reader.encoding.decode(py, record).err().unwrap_or(cause);
    let (error, at) = reader.encoding.invalid(py, record, &cause);
    error::raise_from(py, &locate(reader, state, error, at), cause)
}

/// Adds the place of this byte of the last record to an error.
fn locate(reader: &Reader, state: &State, error: Error, at: usize) -> Error {
    match (&state.reader, &state.rows) {
        (Some(core), Some(pending)) => core.locate_in_batch(error, pending.last(), at),
        _ => error.with_name(&*reader.name),
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reader = self.reader.get();
        let mut state = reader.state_of_rows(py)?;
        let Some(mut row) = self.fields(py, &mut state)? else { return Ok(None) };
        if self.has_header && state.header.is_none() {
            state.header = Some(row.into_iter().map(Bound::unbind).collect());
            match self.fields(py, &mut state)? {
                Some(next) => row = next,
                None => return Ok(None),
            }
        }
        let Some(names) = &state.header else {
            return PyList::new(py, row).map(|row| Some(row.into_any()));
        };
        self.ragged.check(row.len(), names.len(), "the header").map_err(|error| {
            let error = locate(reader, &state, error, 0);
            error::raise(py, &error)
        })?;
        while row.len() < names.len() {
            row.push(reader.encoding.decode(py, b"")?);
        }
        if !self.has_header {
            return PyList::new(py, row).map(|row| Some(row.into_any()));
        }
        let dict = PyDict::new(py);
        let additional = row.split_off(names.len());
        for (name, field) in names.iter().zip(row) {
            dict.set_item(name, field)?;
        }
        if !additional.is_empty() {
            dict.set_item(py.None(), additional)?;
        }
        Ok(Some(dict.into_any()))
    }

    /// There is no `__clear__`, because the reader drops its references to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)
    }
}
