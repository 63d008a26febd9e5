//! Documents as columns: a stream of Arrow record batches, which pyarrow, pandas and polars accept without a copy.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader, new_empty_array};
use arrow_schema::{ArrowError, SchemaRef};
use millstream::bson::Documents;
use millstream::bson::columns::{
    Batches, DataType, Field, LostTypes, OnAbsent, OnMismatch, OnMixed, OnUnknown, Options, RecordBatches, Sample,
    Schema,
};
use millstream::{Error, ErrorKind, Reader as CoreReader};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::columns::Table;
use crate::reader::Reader;
use crate::{arrow, error, foreign};

/// The default number of documents to infer columns from, and their maximum size, as in the command.
const SAMPLE: (usize, usize) = (10_000, 32 << 20);

/// Columns, which can be taken only once.
#[pyclass(frozen, module = "millstream._native")]
pub struct Columns {
    content: Mutex<Content>,
    counts: Arc<Mutex<Counts>>,
}

/// What is left of the columns.
enum Content {
    /// Documents that have not been decoded.
    Stream(Box<Stream>),
    /// All columns, decoded because one of them was needed alone.
    Table(Py<Table>),
    Taken,
}

/// Counters of the values that the taken columns do not show.
#[derive(Clone, Copy, Default)]
struct Counts {
    unknown: u64,
    mismatched: u64,
    lost_types: LostTypes,
}

#[derive(FromPyObject)]
pub enum Source {
    Reader(Py<Reader>),
    Bytes(foreign::Bytes),
    Path(PathBuf),
}

/// The batches and their counters.
struct Stream {
    batches: RecordBatches,
    /// The owner of the waits that are checked for signals and time limits.
    reader: Option<Py<Reader>>,
    counts: Arc<Mutex<Counts>>,
    is_inferred: bool,
}

/// The caller's options, as Python words.
struct Wishes {
    infer: usize,
    mixed: OnMixed,
    options: Options,
    schema: Option<Schema>,
}

#[pymethods]
impl Columns {
    #[new]
    #[pyo3(signature = (source, *, schema = None, infer = None, mixed = None, mismatch = None, unknown = None, absent = None))]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword")]
    fn new(
        py: Python<'_>,
        source: Source,
        schema: Option<Bound<'_, PyDict>>,
        infer: Option<i64>,
        mixed: Option<&str>,
        mismatch: Option<&str>,
        unknown: Option<&str>,
        absent: Option<&str>,
    ) -> PyResult<Columns> {
        let wishes =
            Wishes::new(schema, infer, mixed, mismatch, unknown, absent).map_err(|error| error::raise(py, &error))?;
        let is_inferred = wishes.schema.is_none();
        let (core, reader) = match source {
            Source::Reader(reader) => (reader.get().take(py)?, Some(reader)),
            Source::Bytes(bytes) => (raised(py, CoreReader::memory(bytes))?, None),
            Source::Path(path) => (raised(py, py.detach(|| CoreReader::path(path)))?, None),
        };
        let mut documents = Some(Documents::new(core));
        let mut sample = Sample::default();
        let mut batches = || {
            let Some(stream) = documents.as_mut() else { return Err(Error::new(ErrorKind::Closed)) };
            if is_inferred {
                // After an interrupted wait, it continues with the data that it has.
                sample.extend(stream, wishes.infer, SAMPLE.1)?;
            }
            let schema = match &wishes.schema {
                Some(schema) => schema.clone(),
                None => sample.infer(wishes.mixed)?,
            };
            let Some(stream) = documents.take() else { return Err(Error::new(ErrorKind::Closed)) };
            Batches::new(std::mem::take(&mut sample), stream, &schema, wishes.options.clone())
        };
        let batches = match &reader {
            Some(reader) => raised(py, reader.get().watch(py, batches)?)?,
            None => raised(py, py.detach(&mut batches))?,
        };
        let counts = Arc::new(Mutex::new(Counts::default()));
        let stream = Stream { batches: RecordBatches::new(batches), reader, counts: Arc::clone(&counts), is_inferred };
        Ok(Columns { content: Mutex::new(Content::Stream(Box::new(stream))), counts })
    }

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

    /// The number of members without a column and of duplicate keys, so far.
    #[getter]
    fn unknown(&self) -> u64 {
        self.counts.lock().unknown
    }

    /// The number of values that did not fit and are null, so far.
    #[getter]
    fn mismatched(&self) -> u64 {
        self.counts.lock().mismatched
    }

    /// The number of values whose type their column does not show, so far.
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

fn raised<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| error::raise(py, &error))
}

impl Stream {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let external = |error: Box<dyn std::error::Error + Send + Sync>| ArrowError::ExternalError(error);
        let batches = &mut self.batches;
        let next = match &self.reader {
            Some(reader) => Python::attach(|py| reader.get().watch(py, || batches.next_batch()))
                .map_err(|error| external(error.into()))?,
            None => batches.next_batch(),
        };
        let columns = self.batches.batches().columns();
        *self.counts.lock() =
            Counts { unknown: columns.unknown(), mismatched: columns.mismatched(), lost_types: columns.lost_types() };
        next.map_err(|error| external(advised(error, self.is_inferred).into()))
    }
}

/// Adds the options that can help to the error.
fn advised(error: Error, is_inferred: bool) -> Error {
    let options = match error.kind() {
        ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange if is_inferred => {
            "increase infer, pass a schema, or set mismatch or unknown"
        }
        ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange => "change the schema, or set mismatch or unknown",
        ErrorKind::KeyMissing => "check the path, or make it a column of nulls by absent=\"null\"",
        _ => return error,
    };
    let expected = match error.expected() {
        Some(expected) => format!("{expected} ({options})"),
        None => format!("one ({options})"),
    };
    error.with_expected(expected)
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        RecordBatchReader::schema(&self.batches)
    }
}

impl Wishes {
    fn new(
        schema: Option<Bound<'_, PyDict>>,
        infer: Option<i64>,
        mixed: Option<&str>,
        mismatch: Option<&str>,
        unknown: Option<&str>,
        absent: Option<&str>,
    ) -> Result<Wishes, Error> {
        for (given, option) in [(infer.is_some(), "infer"), (mixed.is_some(), "mixed")] {
            if given && schema.is_some() {
                return Err(refused(format!("{option} with a schema"), "one of both"));
            }
        }
        if absent.is_some() && schema.is_none() {
            return Err(refused("absent without a schema".into(), "it with a schema only"));
        }
        let infer = match infer {
            None => SAMPLE.0,
            Some(count) => usize::try_from(count)
                .ok()
                .filter(|&count| count > 0)
                .ok_or_else(|| refused(format!("infer={count}"), "1 document or more"))?,
        };
        let unknown = word(
            "unknown",
            unknown,
            &[("error", OnUnknown::Error), ("count", OnUnknown::Count), ("ignore", OnUnknown::Ignore)],
        )?;
        let usual = if schema.is_some() { OnUnknown::Ignore } else { OnUnknown::Error };
        let mismatch = word("mismatch", mismatch, &[("error", OnMismatch::Error), ("null", OnMismatch::Null)])?;
        let absent = word("absent", absent, &[("error", OnAbsent::Error), ("null", OnAbsent::Null)])?;
        Ok(Wishes {
            infer,
            mixed: word("mixed", mixed, &[("json", OnMixed::Json), ("error", OnMixed::Error)])?.unwrap_or_default(),
            options: Options::new()
                .on_unknown(unknown.unwrap_or(usual))
                .on_mismatch(mismatch.unwrap_or_default())
                .on_absent(absent.unwrap_or_default()),
            schema: schema.map(|schema| fields(&schema, 0).and_then(Schema::new)).transpose()?,
        })
    }
}

#[cold]
fn refused(found: String, expected: &str) -> Error {
    Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected)
}

/// The meaning of an option's word.
fn word<T: Copy>(option: &str, given: Option<&str>, words: &[(&str, T)]) -> Result<Option<T>, Error> {
    let Some(given) = given else { return Ok(None) };
    match words.iter().find(|(word, _)| *word == given) {
        Some(&(_, meaning)) => Ok(Some(meaning)),
        None => {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
            Err(refused(format!("{option}={given:?}"), &words.join(" or ")))
        }
    }
}

/// The maximum nesting depth of types; the schema checks it again, with the path.
const MOST_DEPTH: usize = 70;

/// The columns named by a dict: by their paths, or by their keys inside a document.
fn fields(names: &Bound<'_, PyDict>, depth: usize) -> Result<Vec<Field>, Error> {
    names
        .iter()
        .map(|(name, kind)| {
            let text = |object: &Bound<'_, PyAny>| object.extract::<String>().ok();
            let Some(name) = text(&name) else { return Err(refused(shown(&name), "a path")) };
            let (kind, is_required) = match kind.cast::<PyString>().ok().and_then(|kind| text(kind.as_any())) {
                Some(kind) => match kind.strip_suffix('!') {
                    Some(kind) => (named(kind)?, true),
                    None => (named(&kind)?, false),
                },
                None => (data_type(&kind, depth + 1)?, false),
            };
            let field = if depth == 0 { Field::new(&name, kind)? } else { Field::of_key(name, kind) };
            Ok(if is_required { field.required() } else { field })
        })
        .collect()
}

fn data_type(kind: &Bound<'_, PyAny>, depth: usize) -> Result<DataType, Error> {
    if depth > MOST_DEPTH {
        return Err(refused("types that are nested too deep".into(), "at most 64 levels"));
    }
    if let Ok(members) = kind.cast::<PyDict>() {
        return Ok(DataType::Struct(fields(members, depth)?));
    }
    if let Ok(list) = kind.cast::<PyList>()
        && let (1, Ok(item)) = (list.len(), list.get_item(0))
    {
        return Ok(DataType::List(Box::new(data_type(&item, depth + 1)?)));
    }
    match kind.extract::<String>() {
        Ok(name) => named(&name),
        Err(_) => Err(refused(shown(kind), "the name of a type, a list of one type, or a dict of members")),
    }
}

fn shown(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "an object".into(), |text| text.to_string())
}

fn named(name: &str) -> Result<DataType, Error> {
    Ok(match name {
        "null" => DataType::Null,
        "bool" => DataType::Bool,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "double" => DataType::Double,
        "string" => DataType::String,
        "binData" => DataType::Binary,
        "objectId" => DataType::ObjectId,
        "date" => DataType::DateTime,
        "timestamp" => DataType::Timestamp,
        "decimal" => DataType::Decimal128,
        "json" => DataType::Json,
        _ => {
            return Err(refused(
                format!("the type {name:?}"),
                "null, bool, int, long, double, string, binData, objectId, date, timestamp, decimal or json",
            ));
        }
    })
}
