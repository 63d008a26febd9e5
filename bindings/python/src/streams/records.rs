//! Records of CSV, lines and JSON as columns.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use millstream::frame::CsvRagged;
use millstream::{CancelToken, Error, Reader as CoreReader};
use millstream_columns::{Batches, Duplicates, Infer, KEPT_REJECTS, OnBad, Options, Records, Reject, Schema};
use pyo3::prelude::*;

use super::{Batched, Columns, Counts, Source};
use crate::error;
use crate::framer::{Framer, Spec};
use crate::number::Whole;
use crate::reader::{JsonRecords, Reader};
use crate::remote::{Location, check_process};
use crate::wait::once;

struct RecordBatches {
    batches: Batches,
    /// The number of rejects that are kept.
    kept: usize,
}

/// From which records types are inferred: a number of them, `all` or `off`.
#[derive(FromPyObject)]
pub enum Inference {
    First(Whole<i64>),
    Word(String),
}

/// Columns of records. Without a framer, the records are those of the reader.
///
/// `names` are the names of the columns of CSV without a header. `keeps` is whether all bad records are kept, and not
/// only the first ones.
#[pyfunction]
#[pyo3(signature = (source, framer, *, header, schema, infer, nulls, special_numbers, decimals, duplicates, ragged, on_bad, threads, names = None, keeps = false))]
#[expect(clippy::too_many_arguments, reason = "one for each keyword")]
pub fn record_columns(
    py: Python<'_>,
    source: Source,
    framer: Option<&Framer>,
    header: bool,
    schema: Option<&str>,
    infer: Inference,
    nulls: Vec<String>,
    special_numbers: bool,
    decimals: bool,
    duplicates: &str,
    ragged: &str,
    on_bad: &str,
    threads: Whole<usize>,
    names: Option<Vec<String>>,
    keeps: bool,
) -> PyResult<Columns> {
    let raised = |error: Error| error::raise(py, &error);
    let infer = match infer {
        Inference::First(Whole(most)) if most > 0 => Infer::First(most as usize),
        Inference::Word(word) if word == "all" => Infer::All,
        Inference::Word(word) if word == "off" => Infer::Off,
        Inference::First(Whole(number)) => return Err(wrong_infer(py, &number)),
        Inference::Word(word) => return Err(wrong_infer(py, &word)),
    };
    let ragged = error::choose(py, "ragged", ragged, &[("error", CsvRagged::Error), ("pad", CsvRagged::Pad)])?;
    let mut options = of_values(py, nulls, special_numbers, decimals, duplicates, on_bad)?
        .threads(threads.0)
        .header(header)
        .infer(infer)
        .ragged(ragged);
    if let Some(schema) = schema {
        options = options.schema(Schema::from_json(schema).map_err(raised)?);
    }
    let records = match (framer, &source) {
        (Some(framer), _) => records(framer),
        (None, Source::Reader(reader)) => records_of(reader.get()),
        (None, _) => None,
    };
    let records = records.ok_or_else(|| no_columns(py))?;
    if let Some(names) = names {
        options = options.names(names);
    }
    let (core, reader) = source.open(py)?;
    let work = || Batches::of(core, records, &options);
    let batches = match &reader {
        Some(reader) => reader.get().once(py, work)?,
        None => py.detach(work),
    };
    let kept = if keeps { usize::MAX } else { KEPT_REJECTS };
    Ok(Columns::new(RecordBatches { batches: batches.map_err(raised)?, kept }, reader))
}

/// The schema, as JSON, of the columns that all records of these files and objects can have. Each is read once.
#[pyfunction]
#[pyo3(signature = (sources, framer, *, header = true, nulls = Vec::new(), special_numbers = false, decimals = false, duplicates = "error", on_bad = "stop"))]
#[expect(clippy::too_many_arguments, reason = "one for each keyword")]
pub fn inferred_schema(
    py: Python<'_>,
    sources: Vec<Location>,
    framer: &Framer,
    header: bool,
    nulls: Vec<String>,
    special_numbers: bool,
    decimals: bool,
    duplicates: &str,
    on_bad: &str,
) -> PyResult<String> {
    let options = of_values(py, nulls, special_numbers, decimals, duplicates, on_bad)?.header(header);
    let records = records(framer).ok_or_else(|| no_columns(py))?;
    let token = CancelToken::lazy();
    let open = |source: Location| {
        let builder = CoreReader::builder().cancel(&token);
        let reader = match source {
            Location::Path(path) => builder.path(path),
            Location::Object(remote) => check_process(|| remote.name()).and_then(|()| builder.url(remote)),
        }?;
        // An error if it can be read only once.
        Batches::version(&reader).map(|_| reader)
    };
    let infer = || Batches::infer(sources.into_iter().map(open), &records, &options);
    once(py, &token, infer)?.map(|schema| schema.to_json()).map_err(|error| error::raise(py, &error))
}

/// The options that decide what the text of a value is.
fn of_values(
    py: Python<'_>,
    nulls: Vec<String>,
    special_numbers: bool,
    decimals: bool,
    duplicates: &str,
    on_bad: &str,
) -> PyResult<Options> {
    let choices = [("error", Duplicates::Error), ("first", Duplicates::First), ("last", Duplicates::Last)];
    let duplicates = error::choose(py, "duplicates", duplicates, &choices)?;
    let on_bad = error::choose(py, "on_bad", on_bad, &[("stop", OnBad::Stop), ("skip", OnBad::Skip)])?;
    let options = Options::new().nulls(nulls).special_numbers(special_numbers).decimals(decimals);
    Ok(options.duplicates(duplicates).on_bad(on_bad))
}

fn wrong_infer(py: Python<'_>, found: &dyn std::fmt::Debug) -> PyErr {
    error::refuse(py, format!("infer={found:?}"), "1 or more, \"all\" or \"off\"")
}

/// The exception for a framer of other records than those of CSV, lines and JSON.
fn no_columns(py: Python<'_>) -> PyErr {
    let expected = "format=\"csv\", \"tsv\", \"lines\", \"jsonl\" or \"json\", or such a framer";
    error::refuse(py, "a framer of other records than those of CSV, lines and JSON", expected)
}

/// The records that a reader finds, if it is known that they can be columns.
fn records_of(reader: &Reader) -> Option<Records> {
    match reader.json_records() {
        Some(JsonRecords::Lines(_)) => Some(Records::JsonLines),
        Some(JsonRecords::Elements) => Some(Records::JsonElements),
        None => reader.csv().map(|csv| Records::Csv(Box::new(csv))),
    }
}

/// The records that a framer finds, if they can be columns.
fn records(framer: &Framer) -> Option<Records> {
    match &framer.spec {
        Spec::Lines { keep: false } => Some(Records::Lines),
        Spec::JsonLines(_) => Some(Records::JsonLines),
        _ => framer.spec.csv().map(|csv| Records::Csv(Box::new(csv))),
    }
}

impl Batched for RecordBatches {
    fn schema(&self) -> SchemaRef {
        self.batches.schema().arrow().clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        self.batches.next_batch()
    }

    fn count(&mut self, counts: &mut Counts) {
        counts.rejected = self.batches.rejected();
        let more = self.batches.take_rejects().into_iter().map(|Reject { error, raw }| (error, raw));
        let free = self.kept - counts.rejects.len();
        counts.rejects.extend(more.take(free));
    }

    fn advise(&self, error: Error) -> Error {
        self.batches.schema().advise(error, "on_bad=\"skip\"")
    }
}
