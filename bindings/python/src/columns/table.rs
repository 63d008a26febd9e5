//! The table for Python.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, RecordBatch, RecordBatchIterator, StringArray,
    make_array, new_empty_array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyString, PyTuple};

use crate::arrow;
use crate::memory::{Memory, Owner};

/// Columns of equal length, each with its name and type.
///
/// `table[name]` is a column: numbers as a numpy array, read-only and not copied; text as objects. For missing values,
/// floating point numbers are NaN, integers are masked, and objects are `None`. `len(table)` is the number of rows.
/// Through Arrow's PyCapsule interface, pyarrow, polars and pandas accept a table without a copy.
#[pyclass(frozen, module = "millstream")]
pub struct Table {
    schema: SchemaRef,
    rows: usize,
    /// Each column has one part, or parts of the same lengths as the other columns that have several.
    columns: Vec<Vec<ArrayRef>>,
}

impl Table {
    pub fn new(schema: SchemaRef, rows: usize, columns: Vec<Vec<ArrayRef>>) -> Table {
        Table { schema, rows, columns }
    }

    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Returns one column as a numpy array.
    pub fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some((at, field)) = self.schema.column_with_name(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let make = py.import("millstream._table")?.getattr("column")?;
        let parts = PyList::empty(py);
        if has_objects(field.data_type()) {
            for part in &self.columns[at] {
                append_objects(&parts, part)?;
            }
            return make.call1(("object", parts));
        }
        let Some(dtype) = dtype(field.data_type()) else {
            return Err(PyTypeError::new_err(format!(
                "found the column {name:?} of Arrow's type {}, expected a type that numpy has; pass the table to \
                 pyarrow.table or polars.DataFrame and take the column there",
                field.data_type()
            )));
        };
        for part in &self.columns[at] {
            let valid = part.nulls().map(|nulls| Memory(Owner::Bytes(valid_bytes(nulls))));
            parts.append((Py::new(py, Memory(values(part)))?, valid))?;
        }
        make.call1((dtype, parts))
    }

    /// Returns the table as a stream of Arrow batches.
    pub fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let blocks = self.blocks().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        arrow::stream(py, RecordBatchIterator::new(blocks.into_iter().map(Ok), self.schema.clone()))
    }

    /// Returns the table as blocks of rows, without a copy.
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

    /// The names of the columns, so that `dict(table)` has all columns.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.names(py)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.schema.column_with_name(name).is_some()
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.rows
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, name)
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
        self.stream(py)
    }

    /// Supports pickle with the types and the memory of each part.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Contents)> {
        let fields = self.schema.fields().iter();
        let types = fields.map(|field| (field.name().clone(), field.data_type().to_string(), field.is_nullable()));
        let pickled = self.columns.iter().map(|parts| parts.iter().map(|part| Part::of(py, part)).collect());
        let restore = py.get_type::<Table>().getattr("_restore")?;
        Ok((restore, (self.rows, types.collect(), pickled.collect())))
    }

    /// Restores a table. A pickle can contain anything, so all of it is checked.
    #[staticmethod]
    fn _restore(rows: usize, types: Vec<Named>, columns: Vec<Vec<Part>>) -> PyResult<Table> {
        let mut fields = Vec::new();
        for (name, kind, nullable) in types {
            let kind = kind.parse::<DataType>().ok().filter(|kind| kind.is_primitive() || is_text(kind));
            fields.push(Field::new(name, kind.ok_or_else(|| broken("a type without a column"))?, nullable));
        }
        if columns.len() != fields.len() {
            return Err(broken("columns without a type"));
        }
        let parts = columns.into_iter().zip(&fields).map(|(parts, field)| {
            let parts = parts.into_iter().map(|part| part.restore(field)).collect::<PyResult<Vec<_>>>()?;
            let len: usize = parts.iter().map(|part| part.len()).sum();
            if len == rows && (rows == 0 || !parts.is_empty()) {
                Ok(parts)
            } else {
                Err(broken("a column of a different length"))
            }
        });
        let columns = parts.collect::<PyResult<Vec<_>>>()?;
        let most = columns.iter().map(Vec::len).max().unwrap_or_default();
        if rows > 0 && columns.iter().any(|parts| parts.len() != 1 && parts.len() != most) {
            return Err(broken("columns whose parts differ in length"));
        }
        let table = Table::new(Arc::new(Schema::new(fields)), rows, columns);
        table.blocks().map_err(|error| broken(&error.to_string()))?;
        Ok(table)
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("<Table of {} rows, {}>", self.rows, columns.collect::<Vec<_>>().join(", "))
    }
}

/// A table in a pickle: the number of rows, the columns and their parts.
type Contents = (usize, Vec<Named>, Vec<Vec<Part>>);

/// A column in a pickle: its name, its type, and whether values can be missing.
type Named = (String, String, bool);

/// A part of a column in a pickle: its length, its memory, and a byte for each row if values can be missing.
#[derive(FromPyObject, IntoPyObject)]
struct Part(usize, Vec<Py<PyBytes>>, Option<Py<PyBytes>>);

impl Part {
    fn of(py: Python<'_>, part: &ArrayRef) -> Part {
        let data = part.to_data();
        let buffers = data.buffers().iter().map(|buffer| PyBytes::new(py, buffer).unbind());
        let valid = part.nulls().map(|nulls| PyBytes::new(py, &valid_bytes(nulls)).unbind());
        Part(part.len(), buffers.collect(), valid)
    }

    fn restore(self, field: &Field) -> PyResult<ArrayRef> {
        let Part(len, buffers, valid) = self;
        Python::attach(|py| {
            if valid.as_ref().is_some_and(|valid| valid.as_bytes(py).len() != len) {
                return Err(broken("a column of a different length"));
            }
            let buffers = buffers.iter().map(|bytes| Buffer::from(bytes.as_bytes(py))).collect();
            let nulls = valid.map(|valid| valid.as_bytes(py).iter().map(|byte| *byte != 0).collect::<NullBuffer>());
            let empty = new_empty_array(field.data_type()).to_data().into_builder();
            let data = empty.len(len).buffers(buffers).nulls(nulls).build();
            data.map(make_array).map_err(|error| broken(&error.to_string()))
        })
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::Binary)
}

/// Whether a column is an array of Python objects.
fn has_objects(kind: &DataType) -> bool {
    is_text(kind) || matches!(kind, DataType::FixedSizeBinary(_) | DataType::Null)
}

/// The name of the type of numbers in numpy, if it has the type.
fn dtype(kind: &DataType) -> Option<String> {
    match kind {
        DataType::Boolean => Some("bool".into()),
        // In UTC, as all times of numpy.
        DataType::Timestamp(TimeUnit::Millisecond, _) => Some("datetime64[ms]".into()),
        kind if kind.is_numeric() => Some(kind.to_string().to_lowercase()),
        _ => None,
    }
}

/// The numbers of a part; booleans have one byte each.
fn values(part: &ArrayRef) -> Owner {
    if let Some(values) = part.as_any().downcast_ref::<BooleanArray>() {
        return Owner::Bytes(values.values().iter().map(u8::from).collect());
    }
    let data = part.to_data();
    let width = part.data_type().primitive_width().unwrap_or(1);
    Owner::Buffer(data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width))
}

fn broken(what: &str) -> PyErr {
    PyValueError::new_err(format!("a pickle that does not contain a table: {what}"))
}

/// A byte for each row: 1 if there is a value.
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
    } else if let Some(bytes) = column.as_any().downcast_ref::<FixedSizeBinaryArray>() {
        for value in bytes {
            values.append(value.map(|value| PyBytes::new(py, value)))?;
        }
    } else {
        (0..column.len()).try_for_each(|_| values.append(py.None()))?; // nulls
    }
    Ok(())
}
