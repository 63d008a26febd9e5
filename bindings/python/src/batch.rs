//! Many records at once for Python: a copy of the core's batch, which lives as long as it is referenced.

use std::sync::Arc;

use millstream::frame::{Batch as CoreBatch, Trim};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PySlice};

use crate::memory::{Memory, Owner};
use crate::record::{Encoding, Place};

/// Many records at once: one block of bytes, and the offset of each record. A sequence of records.
///
/// Offsets, positions and record numbers are counted from the start of the stream and from 0. A batch keeps its memory
/// as long as it, or a view of it, is referenced.
#[pyclass(frozen, sequence, module = "millstream")]
pub struct Batch {
    data: Py<Memory>,
    offsets: Py<Memory>,
    trim: Trim,
    terminated: bool,
    position: (u64, u64),
    first_line: Option<u64>,
    encoding: Encoding,
    /// The name of the source.
    name: Arc<str>,
}

/// A batch whose Python objects do not exist yet: a thread without the interpreter lock can create it.
pub struct Loose {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    trim: Trim,
    terminated: bool,
    position: (u64, u64),
    first_line: Option<u64>,
}

impl From<CoreBatch<'_>> for Loose {
    fn from(batch: CoreBatch<'_>) -> Loose {
        Loose {
            bytes: batch.bytes().to_vec(),
            offsets: batch.offsets().to_vec(),
            trim: batch.trim(),
            terminated: batch.terminated(),
            position: (batch.offset(), batch.first_record()),
            first_line: batch.first_line(),
        }
    }
}

impl Loose {
    pub fn core(&self) -> CoreBatch<'_> {
        CoreBatch::new(&self.bytes, &self.offsets, self.trim, self.terminated).at(self.position.0, self.position.1)
    }

    /// Returns the line number of a record, if it and all records before it are lines.
    pub fn line(&self, index: usize) -> Option<u64> {
        self.first_line.map(|first| first + index as u64)
    }

    pub fn into_batch(self, py: Python<'_>, encoding: Encoding, name: Arc<str>) -> PyResult<Batch> {
        Ok(Batch {
            data: Py::new(py, Memory(Owner::Bytes(self.bytes)))?,
            offsets: Py::new(py, Memory(Owner::Offsets(self.offsets)))?,
            trim: self.trim,
            terminated: self.terminated,
            position: self.position,
            first_line: self.first_line,
            encoding,
            name,
        })
    }
}

impl Batch {
    fn offsets(&self) -> &[u32] {
        match &self.offsets.get().0 {
            Owner::Offsets(offsets) => offsets,
            _ => &[0],
        }
    }

    fn core(&self) -> CoreBatch<'_> {
        CoreBatch::new(self.data.get().bytes(), self.offsets(), self.trim, self.terminated)
    }

    fn record<'py>(&self, py: Python<'py>, number: usize, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.encoding.decode(py, bytes).map_err(|cause| {
            let place = Place {
                name: &self.name,
                offset: self.position.0 + u64::from(self.offsets()[number] + self.trim.head),
                record: Some(self.position.1 + number as u64),
                line: self.first_line.map(|first| first + number as u64),
            };
            self.encoding.not_text(py, bytes, &place, cause)
        })
    }
}

#[pymethods]
impl Batch {
    /// The block of bytes, including delimiters: a read-only view.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(self.data.bind(py))
    }

    /// The offsets of the records in `data`, followed by the end of the last one: numpy's `uint32`, or a view without
    /// numpy.
    #[getter]
    #[pyo3(name = "offsets")]
    fn py_offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static FROMBUFFER: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
        let numpy = FROMBUFFER.get_or_init(py, || {
            py.import("numpy").and_then(|numpy| numpy.getattr("frombuffer")).map(Bound::unbind).ok()
        });
        match numpy {
            Some(frombuffer) => frombuffer.bind(py).call1((&self.offsets, "=u4")),
            None => PyMemoryView::from(self.offsets.bind(py))?.call_method1("cast", ("I",)),
        }
    }

    /// The number of its first record in the stream.
    #[getter]
    fn first_record(&self) -> u64 {
        self.position.1
    }

    /// The line number of its first record (the first is 1), if it and all records before it are lines.
    #[getter]
    fn first_line(&self) -> Option<u64> {
        self.first_line
    }

    /// The position of `data` in the stream, in bytes.
    #[getter]
    fn offset(&self) -> u64 {
        self.position.0
    }

    /// Whether the last record ends with its delimiter. All others do.
    #[getter]
    fn terminated(&self) -> bool {
        self.terminated
    }

    /// How many bytes of each record are not content: at the front, at the end if it is terminated, and whether a
    /// carriage return before those is not content either.
    #[getter]
    fn trim(&self) -> (u32, u32, bool) {
        (self.trim.head, self.trim.tail, self.trim.carriage_return)
    }

    /// The records as a list.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let batch = self.core();
        if matches!(self.encoding, Encoding::Bytes) {
            return PyList::new(py, batch.iter().map(|bytes| PyBytes::new(py, bytes)));
        }
        let records = batch.iter().enumerate().map(|(number, bytes)| self.record(py, number, bytes));
        PyList::new(py, records.collect::<PyResult<Vec<_>>>()?)
    }

    fn __len__(&self) -> usize {
        self.core().len()
    }

    /// A record, or a list of several.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if index.is_instance_of::<PySlice>() {
            return self.to_list(py)?.as_any().get_item(index);
        }
        let index: isize = index.extract()?;
        let batch = self.core();
        let number = if index < 0 { index + batch.len() as isize } else { index };
        let bytes = usize::try_from(number).ok().and_then(|number| batch.get(number));
        match bytes {
            Some(bytes) => self.record(py, number as usize, bytes),
            None => Err(PyIndexError::new_err(format!("record {index} of {}", batch.len()))),
        }
    }

    /// The position of the first record that is equal to this value.
    #[pyo3(signature = (value, start = 0, stop = isize::MAX, /))]
    fn index(&self, py: Python<'_>, value: &Bound<'_, PyAny>, start: isize, stop: isize) -> PyResult<usize> {
        self.to_list(py)?.call_method1("index", (value, start, stop))?.extract()
    }

    /// The number of records that are equal to this value.
    fn count(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.to_list(py)?.call_method1("count", (value,))?.extract()
    }

    fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.to_list(py)?.contains(value)
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_list(py)?.call_method0("__reversed__")
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<BatchRecords>> {
        Py::new(slf.py(), BatchRecords { batch: slf.clone().unbind(), next: 0 })
    }

    fn __repr__(&self) -> String {
        format!("<Batch of {} records from {} on>", self.core().len(), self.position.1)
    }
}

/// The records of a batch, one after another.
#[pyclass(module = "millstream._native")]
pub struct BatchRecords {
    batch: Py<Batch>,
    next: usize,
}

#[pymethods]
impl BatchRecords {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = self.batch.get();
        let Some(bytes) = batch.core().get(self.next) else { return Ok(None) };
        self.next += 1;
        batch.record(py, self.next - 1, bytes).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.batch.get().core().len() - self.next
    }
}
