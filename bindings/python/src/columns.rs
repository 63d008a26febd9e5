//! Delimited text as columns of one type each: a table, in the memory of Apache Arrow.
//!
//! A batch of records is split once, by the core's framer for the separator; of a few batches each column then takes its
//! fields in one loop, several columns at a time on as many threads.

use std::sync::Arc;
use std::thread;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, PrimitiveArray, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use millstream::frame::{Batch, Delimiter, Framer, text};
use millstream::scan::{self, Number, Separator};
use millstream::{Error, ErrorKind};
use parking_lot::Mutex;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyMapping, PyString, PyTuple, PyType};

use crate::error;
use crate::memory::{Memory, Owner};

/// So much text in a column begins a new block of rows, and so long is a record at most: then all offsets fit.
const MOST_TEXT: usize = 1 << 29;

/// How many bytes of records are put into columns at once, by several threads: some milliseconds of work, because on a busy
/// machine a thread is not there at once. Below `FEW` it is one thread.
const WAITING: usize = 8 << 20;
const FEW: usize = 1 << 20;

/// What the columns are.
pub struct Layout {
    /// Of each field that is a column, and of those between that are none.
    columns: Vec<Option<(String, Kind)>>,
    separator: u8,
    /// A field of these bytes is no value.
    missing: Option<Vec<u8>>,
    /// Whether records are lines, as the core's numbers know them.
    lines: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Text,
    Bytes,
}

/// The words for types. NumPy's own types have these names, too.
const KINDS: &[(&str, Kind)] = &[
    ("int8", Kind::Int8),
    ("int16", Kind::Int16),
    ("int32", Kind::Int32),
    ("int64", Kind::Int64),
    ("uint8", Kind::UInt8),
    ("uint16", Kind::UInt16),
    ("uint32", Kind::UInt32),
    ("uint64", Kind::UInt64),
    ("float32", Kind::Float32),
    ("float64", Kind::Float64),
    ("int", Kind::Int64),
    ("float", Kind::Float64),
    ("str", Kind::Text),
    ("bytes", Kind::Bytes),
];

impl Layout {
    /// From the arguments of `Reader.columns`: types by name, or in a sequence.
    pub fn new(
        py: Python<'_>,
        separator: Vec<u8>,
        types: &Bound<'_, PyAny>,
        missing: Option<String>,
        lines: bool,
    ) -> PyResult<Layout> {
        let &[separator] = &separator[..] else {
            return Err(error::refuse(py, format!("a separator of {} bytes", separator.len()), "one byte"));
        };
        if !separator.is_ascii() {
            return Err(error::refuse(py, format!("the separator 0x{separator:02x}"), "a byte of ASCII"));
        }
        let mut columns: Vec<Option<(String, Kind)>> = Vec::new();
        let mut add = |name: String, kind: &Bound<'_, PyAny>| -> PyResult<()> {
            if columns.iter().flatten().any(|(other, _)| *other == name) {
                return Err(error::refuse(py, format!("two columns {name:?}"), "a name for each"));
            }
            columns.push(if kind.is_none() { None } else { Some((name, Kind::of(kind)?)) });
            Ok(())
        };
        match types.cast::<PyMapping>() {
            Ok(mapping) => {
                for item in mapping.items()? {
                    let (name, kind) = item.extract::<(String, Bound<'_, PyAny>)>()?;
                    add(name, &kind)?;
                }
            }
            Err(_) => {
                for (number, kind) in types.try_iter()?.enumerate() {
                    add(number.to_string(), &kind?)?;
                }
            }
        }
        while columns.last().is_some_and(Option::is_none) {
            columns.pop();
        }
        if columns.is_empty() {
            return Err(error::refuse(py, "no column", "at least one type"));
        }
        Ok(Layout { columns, separator, missing: missing.map(String::into_bytes), lines })
    }
}

impl Kind {
    fn of(python: &Bound<'_, PyAny>) -> PyResult<Kind> {
        let name = match python.cast::<PyType>() {
            Ok(class) => class.name()?.to_string(),
            Err(_) => python.str()?.to_string(),
        };
        KINDS.iter().find(|(word, _)| *word == name).map(|(_, kind)| *kind).ok_or_else(|| {
            let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
            error::refuse(python.py(), format!("the type {name}"), format!("{} or None", words.join(", ")))
        })
    }

    fn column(self) -> Box<dyn Column> {
        match self {
            Kind::Int8 => Box::new(Numbers::<Int8Type>::new()),
            Kind::Int16 => Box::new(Numbers::<Int16Type>::new()),
            Kind::Int32 => Box::new(Numbers::<Int32Type>::new()),
            Kind::Int64 => Box::new(Numbers::<Int64Type>::new()),
            Kind::UInt8 => Box::new(Numbers::<UInt8Type>::new()),
            Kind::UInt16 => Box::new(Numbers::<UInt16Type>::new()),
            Kind::UInt32 => Box::new(Numbers::<UInt32Type>::new()),
            Kind::UInt64 => Box::new(Numbers::<UInt64Type>::new()),
            Kind::Float32 => Box::new(Numbers::<Float32Type>::new()),
            Kind::Float64 => Box::new(Numbers::<Float64Type>::new()),
            Kind::Text => Box::new(Pieces::new(true)),
            Kind::Bytes => Box::new(Pieces::new(false)),
        }
    }
}

/// The fields of a column in a batch.
struct Fields<'a> {
    bytes: &'a [u8],
    /// Of each record: where its fields begin, and one byte behind its end.
    bounds: &'a [u32],
    /// How many bounds a record has.
    stride: usize,
    column: usize,
    missing: Option<&'a [u8]>,
    /// What ends a field besides the end of a line, if nothing else does: then numbers need not know where it is.
    separator: Option<Separator>,
    /// Whether all of it is UTF-8.
    is_text: bool,
}

impl<'a> Fields<'a> {
    /// Where the fields are, each with what is missing already told apart.
    fn iter(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a, '_> {
        self.bounds.chunks_exact(self.stride).map(|record| {
            let (start, end) = (record[self.column] as usize, record[self.column + 1] as usize - 1);
            (start, &self.bytes[start..end])
        })
    }

    fn is_missing(&self, field: &[u8]) -> bool {
        self.missing.is_some_and(|missing| missing == field)
    }
}

/// A field that is no value of its column.
struct Wrong {
    row: usize,
    column: usize,
    kind: ErrorKind,
    found: String,
    expected: String,
    /// Where it is in the batch.
    at: usize,
}

/// A column that grows.
trait Column: Send {
    /// Appends its fields of a batch, up to the first one that is wrong.
    fn append(&mut self, fields: &Fields<'_>) -> Result<(), Wrong>;

    /// Forgets all rows behind these.
    fn truncate(&mut self, rows: usize);

    /// How many bytes its text has.
    fn text_len(&self) -> usize {
        0
    }

    /// The rows as an array, without a copy. None are left.
    fn take(&mut self) -> ArrayRef;

    fn data_type(&self) -> DataType;
}

struct Numbers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn new() -> Numbers<T> {
        Numbers { values: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }
}

impl<T: ArrowPrimitiveType<Native: Number>> Column for Numbers<T> {
    fn append(&mut self, fields: &Fields<'_>) -> Result<(), Wrong> {
        let before = self.values.len();
        for (at, field) in fields.iter() {
            if fields.is_missing(field) {
                self.values.push(T::Native::default());
                self.nulls.append_null();
                continue;
            }
            let quick = fields.separator.and_then(|ends| scan::columns(&fields.bytes[at..], ends).next()?.ok());
            let value = match quick {
                Some(value) => value,
                None => scan::parse::<T::Native>(field).map_err(|kind| Wrong {
                    row: self.values.len() - before,
                    column: fields.column,
                    kind,
                    found: show(field),
                    expected: format!("a number ({})", T::DATA_TYPE.to_string().to_lowercase()),
                    at,
                })?,
            };
            self.values.push(value);
            self.nulls.append_non_null();
        }
        Ok(())
    }

    fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.nulls.truncate(rows);
    }

    fn take(&mut self) -> ArrayRef {
        let values = std::mem::take(&mut self.values);
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), self.nulls.finish()))
    }

    fn data_type(&self) -> DataType {
        T::DATA_TYPE
    }
}

struct Pieces {
    is_text: bool,
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    nulls: NullBufferBuilder,
}

impl Pieces {
    fn new(is_text: bool) -> Pieces {
        Pieces { is_text, offsets: vec![0], bytes: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }
}

impl Column for Pieces {
    fn append(&mut self, fields: &Fields<'_>) -> Result<(), Wrong> {
        let before = self.offsets.len();
        for (at, field) in fields.iter() {
            if fields.is_missing(field) {
                self.nulls.append_null();
            } else {
                if self.is_text && !fields.is_text {
                    text(field).map_err(|error| Wrong {
                        row: self.offsets.len() - before,
                        column: fields.column,
                        kind: ErrorKind::Utf8Invalid,
                        found: error.found().map_or_else(|| show(field), str::to_owned),
                        expected: "text in UTF-8".to_owned(),
                        at,
                    })?;
                }
                self.bytes.extend_from_slice(field);
                self.nulls.append_non_null();
            }
            // It fits: see `MOST_TEXT`.
            self.offsets.push(self.bytes.len() as i32);
        }
        Ok(())
    }

    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        self.bytes.truncate(self.offsets.last().map_or(0, |&end| end as usize));
        self.nulls.truncate(rows);
    }

    fn text_len(&self) -> usize {
        self.bytes.len()
    }

    fn take(&mut self) -> ArrayRef {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.offsets, vec![0])));
        let bytes = Buffer::from_vec(std::mem::take(&mut self.bytes));
        match self.is_text {
            true => Arc::new(StringArray::new(offsets, bytes, self.nulls.finish())),
            false => Arc::new(BinaryArray::new(offsets, bytes, self.nulls.finish())),
        }
    }

    fn data_type(&self) -> DataType {
        if self.is_text { DataType::Utf8 } else { DataType::Binary }
    }
}

/// A field for a message: nothing that a terminal would obey, and not too much.
fn show(field: &[u8]) -> String {
    const MOST: usize = 64;
    match field {
        [] => "an empty field".to_owned(),
        field if field.len() <= MOST => field.escape_ascii().to_string(),
        field => format!("{}...", field[..MOST].escape_ascii()),
    }
}

/// A table that grows, batch by batch.
pub struct Growing {
    layout: Layout,
    /// Each with the number of its field.
    columns: Vec<(usize, Box<dyn Column>)>,
    schema: SchemaRef,
    /// Rows of the columns, and blocks of rows that came before.
    rows: usize,
    blocks: Vec<RecordBatch>,
    /// Records that are in no column yet.
    waiting: Waiting,
}

/// Records with their fields, of several batches, so that starting threads for them pays.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// As [`Fields`] has them.
    bounds: Vec<u32>,
    rows: usize,
    /// Where the first one is in the stream: bytes and records.
    position: (u64, u64),
    /// A record that has too few fields, behind all others.
    wrong: Option<Wrong>,
    separators: Vec<u32>,
}

impl Growing {
    pub fn new(layout: Layout) -> Growing {
        let named = layout.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.as_ref()?)));
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (at, (name, kind)) in named {
            let column = kind.column();
            fields.push(Field::new(name, column.data_type(), layout.missing.is_some()));
            columns.push((at, column));
        }
        let schema = Arc::new(Schema::new(fields));
        Growing { layout, columns, schema, rows: 0, blocks: Vec::new(), waiting: Waiting::default() }
    }

    /// Appends the records of a batch as rows.
    ///
    /// # Errors
    /// For the first field that is wrong, in the order of the records; the rows before it are there.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let len = batch.bytes().len();
        if len > MOST_TEXT {
            return Err(Error::new(ErrorKind::MemoryLimit)
                .with_record(batch.first_record())
                .with_offset(batch.offset())
                .with_found(format!("a record of {len} bytes"))
                .with_expected(format!("at most {MOST_TEXT} for columns")));
        }
        self.waiting.split(batch, self.layout.separator, self.layout.columns.len());
        match self.waiting.bytes.len() >= WAITING || self.waiting.wrong.is_some() {
            true => self.settle(),
            false => Ok(()),
        }
    }

    /// Puts what is waiting into the columns.
    ///
    /// # Errors
    /// As [`append`](Growing::append).
    pub fn settle(&mut self) -> Result<(), Error> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let fields = Fields {
            bytes: &waiting.bytes,
            bounds: &waiting.bounds,
            stride: self.layout.columns.len() + 1,
            column: 0,
            missing: self.layout.missing.as_deref(),
            separator: self.layout.lines.then_some(Separator::Byte(self.layout.separator)),
            is_text: std::str::from_utf8(&waiting.bytes).is_ok(),
        };
        let wrong = append_all(&mut self.columns, &fields);
        // A field that is wrong is in front of a record that has too few.
        let Some(wrong) = wrong.or(waiting.wrong.take()) else {
            self.rows += waiting.rows;
            if self.columns.iter().any(|(_, column)| column.text_len() > MOST_TEXT) {
                self.end_block();
            }
            waiting.clear();
            self.waiting = waiting;
            return Ok(());
        };
        self.rows += wrong.row;
        for (_, column) in &mut self.columns {
            column.truncate(self.rows);
        }
        let name = match self.layout.columns.get(wrong.column) {
            Some(Some((name, _))) => name.clone(),
            _ => wrong.column.to_string(),
        };
        let (offset, first_record) = waiting.position;
        Err(Error::new(wrong.kind)
            .with_record(first_record + wrong.row as u64)
            .with_offset(offset + wrong.at as u64)
            .with_path(name)
            .with_found(wrong.found)
            .with_expected(wrong.expected))
    }

    fn end_block(&mut self) {
        let arrays: Vec<ArrayRef> = self.columns.iter_mut().map(|(_, column)| column.take()).collect();
        self.rows = 0;
        // Columns of this schema and of one length, as they have grown.
        self.blocks.extend(RecordBatch::try_new(self.schema.clone(), arrays).ok());
    }

    /// How many records have been appended.
    pub fn rows(&self) -> usize {
        self.waiting.rows + self.rows + self.blocks.iter().map(RecordBatch::num_rows).sum::<usize>()
    }

    /// What is in the columns.
    pub fn finish(mut self) -> Table {
        if self.rows > 0 || self.blocks.is_empty() {
            self.end_block();
        }
        Table { schema: self.schema, blocks: self.blocks }
    }
}

impl Waiting {
    /// Adds the records of a batch, up to the first that has too few fields.
    fn split(&mut self, batch: &Batch<'_>, separator: u8, count: usize) {
        let (bytes, base) = (batch.bytes(), self.bytes.len());
        if self.rows == 0 {
            self.position = (batch.offset(), batch.first_record());
        }
        self.bytes.extend_from_slice(bytes);
        self.separators.clear();
        let mut framer = Delimiter::byte(separator);
        if !framer.batch(bytes, true, usize::MAX, &mut self.separators).unwrap_or(true) {
            // The end of the bytes, which is no separator.
            self.separators.pop();
        }
        let mut separators = self.separators.iter().copied().peekable();
        for record in batch.iter() {
            let start = record.as_ptr().addr() - bytes.as_ptr().addr();
            let end = start + record.len();
            while separators.next_if(|&behind| behind as usize <= start).is_some() {}
            let complete = self.bounds.len();
            self.bounds.push((base + start) as u32);
            for column in 1..count {
                let Some(behind) = separators.next_if(|&behind| behind as usize <= end) else {
                    self.bounds.truncate(complete);
                    self.wrong = Some(Wrong {
                        row: self.rows,
                        column,
                        kind: ErrorKind::ValueMissing,
                        found: if column == 1 { "1 field".to_owned() } else { format!("{column} fields") },
                        expected: format!("at least {count}"),
                        at: base + end,
                    });
                    return;
                };
                self.bounds.push(base as u32 + behind);
            }
            // Fields behind the last column are left aside.
            let behind = separators.peek().map_or(end + 1, |&behind| (behind as usize).min(end + 1));
            self.bounds.push((base + behind) as u32);
            self.rows += 1;
        }
    }

    /// Forgets all, and keeps the memory.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bounds.clear();
        self.rows = 0;
    }
}

/// Appends each column's fields, on several threads where there is enough to do: what is wrong in the first record where
/// something is.
fn append_all(columns: &mut [(usize, Box<dyn Column>)], fields: &Fields<'_>) -> Option<Wrong> {
    let threads = match fields.bytes.len() {
        0..FEW => 1,
        _ => thread::available_parallelism().map_or(1, usize::from).min(columns.len()),
    };
    let mut jobs: Vec<_> = columns.iter_mut().collect();
    // The longest ones first, so that no thread is left with one at the end.
    jobs.sort_by_key(|(_, column)| column.text_len());
    let jobs = Mutex::new(jobs);
    let work = || {
        let mut first: Option<Wrong> = None;
        loop {
            let Some((at, column)) = jobs.lock().pop() else { return first };
            if let Err(wrong) = column.append(&Fields { column: *at, ..*fields }) {
                first = Some(wrong).into_iter().chain(first).min_by_key(|wrong| (wrong.row, wrong.column));
            }
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let first = work();
        let others = others.into_iter().filter_map(|other| other.join().ok().flatten());
        first.into_iter().chain(others).min_by_key(|wrong| (wrong.row, wrong.column))
    })
}

/// Columns of one length, each with its name and type.
#[pyclass(frozen, module = "millstream")]
pub struct Table {
    schema: SchemaRef,
    blocks: Vec<RecordBatch>,
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
        self.blocks.iter().map(RecordBatch::num_rows).sum()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some((at, field)) = self.schema.column_with_name(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let columns = self.blocks.iter().map(|block| block.column(at));
        let make = py.import("millstream._table")?.getattr("column")?;
        if matches!(field.data_type(), DataType::Utf8 | DataType::Binary) {
            let values = PyList::empty(py);
            for column in columns {
                append_objects(&values, column)?;
            }
            return make.call1(("object", values));
        }
        let parts = PyList::empty(py);
        for column in columns {
            let data = column.to_data();
            let bytes = data.buffers()[0].clone();
            let valid = column.nulls().map(valid_bytes);
            parts
                .append((Py::new(py, Memory(Owner::Buffer(bytes)))?, valid.map(|valid| Memory(Owner::Bytes(valid)))))?;
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
        let blocks = RecordBatchIterator::new(self.blocks.clone().into_iter().map(Ok), self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(blocks));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("<Table of {} rows, {}>", self.__len__(), columns.collect::<Vec<_>>().join(", "))
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
            values.append(value.map(|value| pyo3::types::PyBytes::new(py, value)))?;
        }
    }
    Ok(())
}
