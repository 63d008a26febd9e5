//! The table that Python sees.

use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchIterator, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyString, PyTuple};

use crate::arrow;
use crate::memory::{Memory, Owner};

/// Columns of one length, each with its name and type.
#[pyclass(frozen, module = "millstream")]
pub struct Table {
    schema: SchemaRef,
    rows: usize,
    /// Each in one part, or in as many as the others that are not in one: those are as long as theirs.
    columns: Vec<Vec<ArrayRef>>,
}

impl Table {
    pub fn new(schema: SchemaRef, rows: usize, columns: Vec<Vec<ArrayRef>>) -> Table {
        Table { schema, rows, columns }
    }

    /// The same in blocks of rows, without a copy.
    fn blocks(&self) -> Result<Vec<RecordBatch>, ArrowError> {
        let parts = self.columns.iter().max_by_key(|parts| parts.len()).map(Vec::as_slice).unwrap_or_default();
        let mut blocks = Vec::new();
        let mut start = 0;
        for (number, part) in parts.iter().enumerate().filter(|_| self.rows > 0) {
            let column = |of: &Vec<ArrayRef>| match of.len() == parts.len() {
                true => of[number].clone(),
                false => of[0].slice(start, part.len()),
            };
            blocks.push(RecordBatch::try_new(self.schema.clone(), self.columns.iter().map(column).collect())?);
            start += part.len();
        }
        Ok(blocks)
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.schema.fields().iter().map(|field| field.name()))
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.names(py)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.schema.column_with_name(name).is_some()
    }

    /// How many rows there are.
    fn __len__(&self) -> usize {
        self.rows
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some((at, field)) = self.schema.column_with_name(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let make = py.import("millstream._table")?.getattr("column")?;
        let parts = PyList::empty(py);
        if matches!(field.data_type(), DataType::Utf8 | DataType::Binary) {
            for part in &self.columns[at] {
                append_objects(&parts, part)?;
            }
            return make.call1(("object", parts));
        }
        for part in &self.columns[at] {
            let values = Memory(Owner::Buffer(part.to_data().buffers()[0].clone()));
            let valid = part.nulls().map(|nulls| Memory(Owner::Bytes(valid_bytes(nulls))));
            parts.append((Py::new(py, values)?, valid))?;
        }
        make.call1((field.data_type().to_string().to_lowercase(), parts))
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
        let blocks = self.blocks().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        arrow::stream(py, RecordBatchIterator::new(blocks.into_iter().map(Ok), self.schema.clone()))
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("<Table of {} rows, {}>", self.rows, columns.collect::<Vec<_>>().join(", "))
    }
}

/// A byte for each row: 1 where there is a value.
fn valid_bytes(nulls: &NullBuffer) -> Vec<u8> {
    nulls.iter().map(u8::from).collect()
}

fn append_objects(values: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()> {
    let py = values.py();
    if let Some(text) = column.as_any().downcast_ref::<StringArray>() {
        for value in text {
            values.append(value.map(|value| PyString::new(py, value)))?;
        }
    } else if let Some(bytes) = column.as_any().downcast_ref::<BinaryArray>() {
        for value in bytes {
            values.append(value.map(|value| PyBytes::new(py, value)))?;
        }
    }
    Ok(())
}
