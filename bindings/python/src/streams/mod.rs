//! Columns of any source: a stream of Arrow record batches, which pyarrow, pandas and polars accept without a copy.
//!
//! - `records`: those of CSV, lines and JSON. Those of documents are in `bson::columns`.

mod records;

pub use records::{inferred_schema, record_columns};

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader, new_empty_array};
use arrow_schema::{ArrowError, SchemaRef};
use millstream::bson::columns::LostTypes;
use millstream::{Error, Reader as CoreReader};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple};

use crate::columns::Table;
use crate::reader::Reader;
use crate::remote::Location;
use crate::{arrow, error, foreign};

/// Records or documents as columns, through Arrow's PyCapsule interface. They can be taken once.
///
/// `columns[name]` is one column as a numpy array, as that of a `Table`. It decodes all columns and keeps them; from
/// then on, they can be taken any number of times. The counts are those of the batches that have been taken.
///
/// `unknown`, `mismatched` and `lost_types` are counted for documents, `rejected` and `rejects` for other records.
#[pyclass(frozen, module = "millstream._native")]
pub struct Columns {
    content: Mutex<Content>,
    counts: Arc<Mutex<Counts>>,
}

/// What is left of the columns.
enum Content {
    /// Records that have not been decoded.
    Stream(Box<Stream>),
    /// All columns, decoded because one of them was needed alone.
    Table(Py<Table>),
    Taken,
}

/// What the taken columns do not show.
#[derive(Default)]
pub struct Counts {
    pub unknown: u64,
    pub mismatched: u64,
    pub lost_types: LostTypes,
    pub rejected: u64,
    /// The first bad records.
    pub rejects: Vec<(Error, Vec<u8>)>,
}

/// The source of columns.
#[derive(FromPyObject)]
pub enum Source {
    Reader(Py<Reader>),
    Bytes(foreign::Bytes),
    Path(Location),
}

impl Source {
    /// Takes the reader, and its owner in Python if there is one.
    pub fn open(self, py: Python<'_>) -> PyResult<(CoreReader, Option<Py<Reader>>)> {
        let opened = match self {
            Source::Reader(reader) => return Ok((reader.get().take(py)?, Some(reader))),
            // A reader, which handles signals while it waits for the network.
            Source::Path(Location::Object(remote)) => {
                let reader = Py::new(py, Reader::open_object(py, &PyDict::new(py), remote)?)?;
                return Ok((reader.get().take(py)?, Some(reader)));
            }
            Source::Bytes(bytes) => CoreReader::memory(bytes),
            Source::Path(Location::Path(path)) => py.detach(|| CoreReader::path(path)),
        };
        opened.map(|reader| (reader, None)).map_err(|error| error::raise(py, &error))
    }
}

/// Batches of columns, whatever they are made of.
pub trait Batched: Send {
    fn schema(&self) -> SchemaRef;

    /// The next batch; after a wait that was interrupted, the next call continues.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error>;

    /// Updates the counts after a batch.
    fn count(&mut self, counts: &mut Counts);

    /// Adds the options that can help to an error.
    fn advise(&self, error: Error) -> Error;
}

/// The batches and their counters.
struct Stream {
    batches: Box<dyn Batched>,
    /// The owner of the waits that are checked for signals and time limits.
    reader: Option<Py<Reader>>,
    counts: Arc<Mutex<Counts>>,
}

impl Columns {
    pub fn new(batches: impl Batched + 'static, reader: Option<Py<Reader>>) -> Columns {
        let counts = Arc::new(Mutex::new(Counts::default()));
        let stream = Stream { batches: Box::new(batches), reader, counts: Arc::clone(&counts) };
        Columns { content: Mutex::new(Content::Stream(Box::new(stream))), counts }
    }
}

#[pymethods]
impl Columns {
    /// The names of the columns.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let schema = match &*self.content.lock() {
            Content::Stream(stream) => RecordBatchReader::schema(&**stream),
            Content::Table(table) => table.get().schema(),
            Content::Taken => return Err(taken()),
        };
        PyTuple::new(py, schema.fields().iter().map(|field| field.name()))
    }

    /// The names of the columns, so that `dict(columns)` has all columns.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.names(py)
    }

    /// One column as a numpy array: see `Table`. This decodes all columns and keeps them.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        // Decoding releases the interpreter lock, so this lock must not be held.
        let content = std::mem::replace(&mut *self.content.lock(), Content::Taken);
        let table = match content {
            Content::Stream(stream) => Py::new(py, whole(py, *stream)?)?,
            Content::Table(table) => table,
            Content::Taken => return Err(taken()),
        };
        let column = table.get().column(py, name);
        *self.content.lock() = Content::Table(table);
        column
    }

    /// How many members had no column and how many keys repeated, in the batches that have been taken.
    #[getter]
    fn unknown(&self) -> u64 {
        self.counts.lock().unknown
    }

    /// How many values did not fit their column and are null, in the batches that have been taken.
    #[getter]
    fn mismatched(&self) -> u64 {
        self.counts.lock().mismatched
    }

    /// How many values lost their type, by type: symbols and JavaScript become text, bytes have no subtype.
    #[getter]
    fn lost_types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let LostTypes { code, symbol, subtype, undefined, .. } = self.counts.lock().lost_types;
        let types = PyDict::new(py);
        for (name, count) in [("javascript", code), ("symbol", symbol), ("binData", subtype), ("undefined", undefined)]
        {
            if count > 0 {
                types.set_item(name, count)?;
            }
        }
        Ok(types)
    }

    /// How many bad records were left out.
    #[getter]
    fn rejected(&self) -> u64 {
        self.counts.lock().rejected
    }

    /// The first 1,000 bad records that were left out: the error and the bytes of each.
    #[getter]
    fn rejects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let counts = self.counts.lock();
        let rejects = counts.rejects.iter().map(|(error, raw)| (error::raise(py, error), PyBytes::new(py, raw)));
        PyList::new(py, rejects.collect::<Vec<_>>())
    }

    /// The bad records that were left out since the last call. Only with `keeps`, these are all of them.
    fn take_rejects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rejects = std::mem::take(&mut self.counts.lock().rejects);
        let rejects = rejects.iter().map(|(error, raw)| (error::raise(py, error), PyBytes::new(py, raw)));
        PyList::new(py, rejects.collect::<Vec<_>>())
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows an implementation to ignore the requested schema.
        let _ = requested_schema;
        let content = std::mem::replace(&mut *self.content.lock(), Content::Taken);
        match content {
            Content::Stream(stream) => arrow::stream(py, *stream),
            Content::Table(table) => {
                let stream = table.get().stream(py);
                *self.content.lock() = Content::Table(table);
                stream
            }
            Content::Taken => Err(taken()),
        }
    }
}

fn taken() -> PyErr {
    PyRuntimeError::new_err("these columns have already been taken")
}

/// Decodes all columns. The rows before an error are in the exception's `partial`.
fn whole(py: Python<'_>, mut stream: Stream) -> PyResult<Table> {
    let schema = RecordBatchReader::schema(&stream);
    let (mut columns, mut rows) = (vec![Vec::new(); schema.fields().len()], 0);
    let failed = loop {
        match py.detach(|| stream.next_batch()) {
            Ok(Some(batch)) => {
                rows += batch.num_rows();
                columns.iter_mut().zip(batch.columns()).for_each(|(parts, column)| parts.push(column.clone()));
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    for (parts, field) in columns.iter_mut().zip(schema.fields()).filter(|(parts, _)| parts.is_empty()) {
        parts.push(new_empty_array(field.data_type()));
    }
    let table = Table::new(schema, rows, columns);
    let Some(error) = failed else { return Ok(table) };
    let raised = as_python(py, error);
    raised.value(py).setattr("partial", Py::new(py, table)?)?;
    Err(raised)
}

/// The exception for an error of [`Stream::next_batch`].
fn as_python(py: Python<'_>, error: ArrowError) -> PyErr {
    let ArrowError::ExternalError(inner) = error else { return PyRuntimeError::new_err(error.to_string()) };
    match inner.downcast::<PyErr>().map_err(|inner| inner.downcast::<Error>()) {
        Ok(raised) => *raised,
        Err(Ok(error)) => error::raise(py, &error),
        Err(Err(other)) => PyRuntimeError::new_err(other.to_string()),
    }
}

impl Stream {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let external = |error: Box<dyn std::error::Error + Send + Sync>| ArrowError::ExternalError(error);
        let batches = &mut self.batches;
        let next = match &self.reader {
            Some(reader) => {
                let _lock = arrow::Lock::take();
                Python::attach(|py| reader.get().watch(py, || batches.next_batch()))
                    .map_err(|error| external(error.into()))?
            }
            None => batches.next_batch(),
        };
        batches.count(&mut self.counts.lock());
        next.map_err(|error| external(batches.advise(error).into()))
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}
