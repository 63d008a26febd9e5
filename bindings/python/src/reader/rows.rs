//! Records of CSV as lists and dicts.

use std::sync::Arc;

use millstream::frame::Csv;
use millstream::{Error, ErrorKind};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::batch::Loose;
use crate::error;
use crate::record::{Encoding, Place};

use super::Reader;

/// How many records are taken from the reader at once.
const BATCH: usize = 256;

/// An iterator over the records of CSV of a reader.
#[pyclass(generic, module = "millstream._native")]
pub struct Rows {
    reader: Py<Reader>,
    csv: Csv,
    encoding: Encoding,
    name: Arc<str>,
    batch: Option<Loose>,
    next: usize,
    /// Whether the first record is a header, and the others are dicts with its names.
    has_header: bool,
    names: Option<Vec<Py<PyAny>>>,
}

impl Rows {
    pub fn new(reader: Py<Reader>, csv: Csv, encoding: Encoding, name: Arc<str>, has_header: bool) -> Rows {
        Rows { reader, csv, encoding, name, batch: None, next: 0, has_header, names: None }
    }

    /// Returns the fields of the next record, and its number; a line that is not a record is skipped.
    fn fields<'py>(&mut self, py: Python<'py>) -> PyResult<Option<(Vec<Bound<'py, PyAny>>, u64)>> {
        loop {
            if let Some(batch) = &self.batch {
                let core = batch.core();
                while let Some(record) = core.get(self.next) {
                    let (index, number) = (self.next, core.first_record() + self.next as u64);
                    self.next += 1;
                    if self.csv.skips(record) {
                        continue;
                    }
                    let mut fields = self.csv.fields(record);
                    let mut row = Vec::with_capacity(self.names.as_ref().map_or(0, Vec::len));
                    while let Some(raw) = fields.next_raw() {
                        let field = self.csv.unquote(raw);
                        row.push(self.encoding.decode(py, &field).map_err(|cause| {
                            let before = raw.as_ptr() as usize - record.as_ptr() as usize;
                            let offset = core.offset() + u64::from(core.offsets()[index]) + before as u64;
                            let place = Place { name: &self.name, offset, record: Some(number), line: None };
                            self.encoding.not_text(py, &field, &place, cause)
                        })?);
                    }
                    return Ok(Some((row, number)));
                }
            }
            (self.batch, self.next) = (self.reader.get().next_loose(py, BATCH)?, 0);
            if self.batch.is_none() {
                return Ok(None);
            }
        }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((mut row, mut number)) = self.fields(py)? else { return Ok(None) };
        if !self.has_header {
            return PyList::new(py, row).map(|row| Some(row.into_any()));
        }
        if self.names.is_none() {
            self.names = Some(row.into_iter().map(Bound::unbind).collect());
            match self.fields(py)? {
                Some(next) => (row, number) = next,
                None => return Ok(None),
            }
        }
        let names = self.names.as_deref().unwrap_or_default();
        if names.len() != row.len() {
            let error = Error::new(ErrorKind::FieldCountMismatch)
                .with_name(&*self.name)
                .with_record(number)
                .with_found(format!("{} field{}", row.len(), if row.len() == 1 { "" } else { "s" }))
                .with_expected(format!("{}, as in the header", names.len()));
            return Err(error::raise(py, &error));
        }
        let dict = PyDict::new(py);
        for (name, field) in names.iter().zip(row) {
            dict.set_item(name, field)?;
        }
        Ok(Some(dict.into_any()))
    }

    /// There is no `__clear__`, because the reader drops its references to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)
    }
}
