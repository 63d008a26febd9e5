//! Documents as columns.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use millstream::bson::Documents;
use millstream::bson::columns::{
    Batches, DataType, Field, OnAbsent, OnMismatch, OnMixed, OnUnknown, Options, RecordBatches, Sample, Schema,
};
use millstream::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error;
use crate::streams::{Batched, Columns, Counts, Source};

/// The default number of documents to infer columns from, and their maximum size, as in the command.
const SAMPLE: (usize, usize) = (10_000, 32 << 20);

struct DocumentBatches {
    batches: RecordBatches,
    is_inferred: bool,
}

/// The caller's options, as Python words.
struct Wishes {
    infer: usize,
    mixed: OnMixed,
    options: Options,
    schema: Option<Schema>,
}

/// Columns of documents.
#[pyfunction]
#[pyo3(signature = (source, *, schema = None, infer = None, mixed = None, mismatch = None, unknown = None, absent = None))]
#[expect(clippy::too_many_arguments, reason = "one for each keyword")]
pub fn document_columns(
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
    let (core, reader) = source.open(py)?;
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
    Ok(Columns::new(DocumentBatches { batches: RecordBatches::new(batches), is_inferred }, reader))
}

impl Batched for DocumentBatches {
    fn schema(&self) -> SchemaRef {
        RecordBatchReader::schema(&self.batches)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        self.batches.next_batch()
    }

    fn count(&mut self, counts: &mut Counts) {
        let columns = self.batches.batches().columns();
        (counts.unknown, counts.mismatched) = (columns.unknown(), columns.mismatched());
        counts.lost_types = columns.lost_types();
    }

    fn advise(&self, error: Error) -> Error {
        advised(error, self.is_inferred)
    }
}

fn raised<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| error::raise(py, &error))
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
