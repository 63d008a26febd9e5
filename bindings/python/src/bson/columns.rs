//! Documents as columns: a stream of Arrow's record batches, which pyarrow, pandas and polars take over without a copy.

use std::path::PathBuf;

use millstream::Reader;
use millstream::bson::Documents;
use millstream::bson::columns::{Batches, OnMixed, Options, RecordBatches, Sample};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyCapsule;

use crate::{arrow, error, foreign};

/// How many documents, and how many bytes of them, say what the columns are.
const SAMPLE: (usize, usize) = (1000, 16 << 20);

/// Columns, which can be taken once.
#[pyclass(frozen, module = "millstream._native")]
pub struct Columns(Mutex<Option<RecordBatches>>);

#[derive(FromPyObject)]
pub enum Source {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

#[pymethods]
impl Columns {
    #[new]
    fn new(py: Python<'_>, source: Source) -> PyResult<Columns> {
        let batches = py.detach(|| {
            let reader = match source {
                Source::Bytes(bytes) => Reader::memory(foreign::Memory(bytes))?,
                Source::Path(path) => Reader::path(path)?,
            };
            let mut documents = Documents::new(reader);
            let sample = Sample::take(&mut documents, SAMPLE.0, SAMPLE.1)?;
            let schema = sample.infer(OnMixed::Json)?;
            Batches::new(sample, documents, &schema, Options::new())
        });
        let batches = batches.map_err(|error| error::raise(py, &error))?;
        Ok(Columns(Mutex::new(Some(RecordBatches::new(batches)))))
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request may be left aside, says the interface.
        let _ = requested_schema;
        let taken = self.0.lock().take();
        let batches = taken.ok_or_else(|| PyRuntimeError::new_err("these columns have been taken already"))?;
        arrow::stream(py, batches)
    }
}
