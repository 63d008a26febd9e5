//! Records of JSON as values.

use millstream::frame::{Delimiter, Framer, JsonLines};
use millstream::{Error, ErrorKind};
use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

use crate::batch::Loose;
use crate::error;
use crate::foreign::{Function, Functions};

use super::{Pending, Reader, State};

/// How many records are taken from the reader at once.
const BATCH: usize = 256;

/// The byte order mark of UTF-8, which a line may begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// How a reader finds values of JSON.
#[derive(Clone)]
pub enum JsonRecords {
    Lines(JsonLines),
    /// The elements of an array, each followed by a byte that no valid document contains.
    Elements,
}

impl JsonRecords {
    fn framer(&self) -> Box<dyn Framer + Send> {
        match self {
            JsonRecords::Lines(lines) => Box::new(lines.clone()),
            JsonRecords::Elements => Box::new(Delimiter::byte(0x1e)),
        }
    }
}

/// An iterator over the values of JSON of a reader. It has no position of its own.
#[pyclass(frozen, generic, module = "millstream._native")]
pub struct Values {
    reader: Py<Reader>,
    records: JsonRecords,
    /// The function that converts bytes, or `None` for `json.loads`.
    loads: Option<Function>,
}

/// The content of a record and its place.
struct Record {
    content: Vec<u8>,
    number: u64,
    /// The offset of the content, and the line, if records are lines.
    line: Option<(u64, u64)>,
}

impl Values {
    pub fn new(reader: Py<Reader>, records: JsonRecords, loads: Option<Function>) -> Values {
        Values { reader, records, loads }
    }

    /// Returns the next record; a blank line is skipped.
    fn next(&self, py: Python<'_>, state: &mut State) -> PyResult<Option<Record>> {
        let reader = self.reader.get();
        loop {
            if let Some(pending) = &mut state.rows {
                while let Some((content, offset, number, line)) = pending.next() {
                    let content = match &self.records {
                        JsonRecords::Lines(lines) if lines.skips(content) => continue,
                        _ => content.to_vec(),
                    };
                    let line = line.map(|line| (offset, line));
                    return Ok(Some(Record { content, number, line }));
                }
            }
            state.rows = None;
            if state.reader.is_none() {
                return Err(error::closed(py, &reader.name));
            }
            let mut framer = self.records.framer();
            let next =
                reader.wait(py, state, |reader, _| Ok(reader.next_batch_of(&mut *framer, BATCH)?.map(Loose::from)))?;
            let Some(batch) = next else { return Ok(None) };
            state.rows = Some(Pending::new(batch));
        }
    }

    fn value<'py>(&self, py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        match &self.loads {
            Some(loads) => loads.call(py, (PyBytes::new(py, content),)),
            // For bytes, it would guess the encoding.
            None => LOADS.import(py, "json", "loads")?.call1((PyString::from_bytes(py, content)?,)),
        }
    }

    /// Returns the exception for a record that is not valid.
    #[cold]
    fn invalid(&self, py: Python<'_>, record: &Record, content: &[u8], cause: PyErr) -> PyErr {
        let before = (record.content.len() - content.len()) as u64;
        let (error, at) = if self.loads.is_none()
            && let Err(invalid) = std::str::from_utf8(content)
        {
            (Error::new(ErrorKind::Utf8Invalid), Some(invalid.valid_up_to() as u64))
        } else if cause.is_instance_of::<PyRecursionError>(py) {
            (Error::new(ErrorKind::TooDeep).with_found(cause.value(py).to_string()), None)
        } else if cause.is_instance_of::<PyValueError>(py) {
            // A `JSONDecodeError` has the number of characters before the place.
            let message = cause.value(py).getattr("msg").and_then(|message| message.extract::<String>());
            let characters = cause.value(py).getattr("pos").and_then(|at| at.extract::<usize>()).ok();
            let at = characters.and_then(|count| {
                let text = std::str::from_utf8(content).ok()?;
                Some(text.char_indices().nth(count).map_or(text.len(), |(at, _)| at) as u64)
            });
            let found = message.unwrap_or_else(|_| cause.value(py).to_string());
            (Error::new(ErrorKind::JsonInvalid).with_found(found).with_expected("a value of JSON"), at)
        } else {
            return cause;
        };
        let mut error = error.with_name(&*self.reader.get().name).with_record(record.number);
        // The offset of an element in its document is not known.
        if let Some((offset, line)) = record.line {
            error = error.with_line(line);
            if let Some(at) = at {
                error = error.with_offset(offset + before + at).with_column(before + at + 1);
            }
        }
        error::raise_from(py, &error, cause)
    }
}

#[pymethods]
impl Values {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.reader.get().state_of_rows(py)?;
        let Some(record) = self.next(py, &mut state)? else { return Ok(None) };
        // The function may use the reader.
        drop(state);
        let content = record.content.strip_prefix(MARK).unwrap_or(&record.content);
        self.value(py, content).map(Some).map_err(|cause| self.invalid(py, &record, content, cause))
    }

    /// There is no `__clear__`, because the reader drops its references to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)?;
        let mut functions = Functions::default();
        self.loads.iter().for_each(|loads| functions.add(loads));
        functions.traverse(&visit)
    }
}
