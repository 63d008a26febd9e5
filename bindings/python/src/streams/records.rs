//! Records of CSV and lines as columns.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use millstream::{Error, ErrorKind};
use millstream_columns::{Batches, Infer, OnBad, Options, Ragged, Reject, Schema};
use pyo3::prelude::*;

use super::{Batched, Columns, Counts, Source};
use crate::error;
use crate::framer::{Framer, Spec};
use crate::number::Whole;

/// The number of bad records that are kept.
const KEPT: usize = 1_000;

struct RecordBatches(Batches);

/// Columns of records of CSV or lines. The options are checked by the caller, which names them as Python does.
#[pyfunction]
#[pyo3(signature = (source, framer, *, header, schema, infer, nulls, special_numbers, decimals, pads, skips, threads))]
#[expect(clippy::too_many_arguments, reason = "one for each keyword")]
pub fn record_columns(
    py: Python<'_>,
    source: Source,
    framer: &Framer,
    header: bool,
    schema: Option<&str>,
    infer: Option<Whole<usize>>,
    nulls: Vec<String>,
    special_numbers: bool,
    decimals: bool,
    pads: bool,
    skips: bool,
    threads: Whole<usize>,
) -> PyResult<Columns> {
    let raised = |error: Error| error::raise(py, &error);
    let mut options = Options::new()
        .threads(threads.0)
        .header(header)
        .infer(infer.map_or(Infer::Off, |Whole(most)| Infer::First(most)))
        .nulls(nulls)
        .special_numbers(special_numbers)
        .decimals(decimals)
        .ragged(if pads { Ragged::Pad } else { Ragged::Error })
        .on_bad(if skips { OnBad::Skip } else { OnBad::Stop });
    if let Some(schema) = schema {
        options = options.schema(Schema::from_json(schema).map_err(raised)?);
    }
    let csv = framer.spec.csv();
    if csv.is_none() && framer.spec != (Spec::Lines { keep: false }) {
        let error = Error::new(ErrorKind::InvalidOption).with_found("a framer of other records than CSV and lines");
        return Err(raised(error.with_expected("Framer.csv() or Framer.lines()")));
    }
    let (core, reader) = source.open(py)?;
    let work = || match csv {
        Some(csv) => Batches::csv(core, csv, &options),
        None => Batches::lines(core, &options),
    };
    let batches = match &reader {
        Some(reader) => reader.get().once(py, work)?,
        None => py.detach(work),
    };
    Ok(Columns::new(RecordBatches(batches.map_err(raised)?), reader))
}

impl Batched for RecordBatches {
    fn schema(&self) -> SchemaRef {
        self.0.schema().arrow().clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        self.0.next_batch()
    }

    fn count(&mut self, counts: &mut Counts) {
        counts.rejected = self.0.rejected();
        let more = self.0.take_rejects().into_iter().map(|Reject { error, raw }| (error, raw));
        let free = KEPT - counts.rejects.len();
        counts.rejects.extend(more.take(free));
    }

    fn advise(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::ShapeMismatch || !self.0.schema().is_inferred() {
            return error;
        }
        let expected = error.expected().unwrap_or_default().to_string();
        error.with_expected(format!("{expected} (increase infer, pass a schema, or set on_bad=\"skip\")"))
    }
}
