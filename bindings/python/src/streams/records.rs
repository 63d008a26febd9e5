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
    First(Whole<usize>),
    Word(String),
}

/// Columns of records. The options are checked by the caller, which names them as Python does. Without a framer, the
/// records are those of the reader.
///
/// `names` are the names of the columns of CSV without a header. `keeps` is whether all bad records are kept, and not
/// only the first ones.
#[pyfunction]
#[pyo3(signature = (source, framer, *, header, schema, infer, nulls, special_numbers, decimals, duplicates, pads, skips, threads, names = None, keeps = false))]
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
    pads: bool,
    skips: bool,
    threads: Whole<usize>,
    names: Option<Vec<String>>,
    keeps: bool,
) -> PyResult<Columns> {
    let raised = |error: Error| error::raise(py, &error);
    let mut options = of_values(nulls, special_numbers, decimals, duplicates)
        .threads(threads.0)
        .header(header)
        .infer(match infer {
            Inference::First(Whole(most)) => Infer::First(most),
            Inference::Word(word) if word == "all" => Infer::All,
            Inference::Word(_) => Infer::Off,
        })
        .ragged(if pads { CsvRagged::Pad } else { CsvRagged::Error })
        .on_bad(if skips { OnBad::Skip } else { OnBad::Stop });
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
    let options = of_values(nulls, special_numbers, decimals, duplicates).header(header).on_bad(if on_bad == "skip" {
        OnBad::Skip
    } else {
        OnBad::Stop
    });
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
fn of_values(nulls: Vec<String>, special_numbers: bool, decimals: bool, duplicates: &str) -> Options {
    Options::new().nulls(nulls).special_numbers(special_numbers).decimals(decimals).duplicates(match duplicates {
        "first" => Duplicates::First,
        "last" => Duplicates::Last,
        _ => Duplicates::Error,
    })
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
