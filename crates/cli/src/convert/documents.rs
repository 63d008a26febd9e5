//! Documents of BSON as batches: of their columns, or for JSON lines of the documents themselves, which become Extended
//! JSON.
//!
//! Embedded documents are structs, whose members are columns in CSV. Arrays are lists, except in CSV, where they are the
//! text of Extended JSON.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{BinaryArray, RecordBatch};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, SchemaRef};
use millstream::bson::columns::{
    Batches, DataType, Field, Inference, LostTypes, OnAbsent, OnMismatch, OnMixed, OnUnknown, Options as Limits,
    RecordBatches, Reject, Sample, Schema,
};
use millstream::bson::{Checking, Documents, OnBad, join_path};
use millstream::{Error, ErrorKind, Reader, Result};
use millstream_columns::document_schema_from_json;

use crate::run::{DEFAULT_RECORD_LIMIT, MOST_RAW, count_text};

use super::document_options::{Absent, Mismatch, Mixed, Unknown};
use super::formats::To;
use super::options::{Infer, Options, read_text};

/// The minimum memory of the columns of one batch.
const BATCH_BYTES: usize = 16 << 20;

/// The number of documents from which columns are inferred, and the maximum size of them.
const SAMPLE: usize = 10_000;
const SAMPLE_BYTES: usize = 64 << 20;

/// How documents become batches.
pub(super) struct DocumentPlan<'a> {
    options: &'a Options,
    /// The output; `None` if only the schema is printed.
    to: Option<To>,
    /// The columns of `--column` or `--schema`.
    given: Option<Schema>,
    skips: bool,
}

impl<'a> DocumentPlan<'a> {
    /// # Errors
    /// Returns the errors of the columns that the options name.
    pub(super) fn new(options: &'a Options, to: Option<To>, skips: bool) -> Result<DocumentPlan<'a>> {
        let columns = &options.documents.column;
        let given = match &options.schema {
            Some(path) => Some(read_schema(path)?),
            None if columns.is_empty() => None,
            None => Some(Schema::new(columns.iter().cloned())?),
        };
        let plan = DocumentPlan { options, to, given: None, skips };
        let given = given.map(|schema| plan.fit(schema)).transpose()?;
        Ok(DocumentPlan { given, ..plan })
    }

    /// Returns the schema in the form that the output needs.
    fn fit(&self, schema: Schema) -> Result<Schema> {
        if self.to == Some(To::Csv) { Schema::new(without_lists(schema.fields())?) } else { Ok(schema) }
    }

    fn documents(&self, reader: Reader) -> Documents {
        let documents = Documents::new(reader);
        if self.skips { documents.on_bad(OnBad::Skip).keep_bad(MOST_RAW) } else { documents }
    }

    /// Returns whether columns are inferred from all documents.
    pub(super) fn infers_all(&self) -> bool {
        self.given.is_none() && self.options.infer == Some(Infer::All)
    }

    /// Reads the beginning of a source, up to the types of its columns. `known` has those of an earlier reading.
    ///
    /// # Errors
    /// Returns the errors of reading, and of columns that the output cannot have.
    pub(super) fn begin(&self, reader: Reader, known: Option<&Schema>) -> Result<DocumentInput> {
        let mut documents = self.documents(reader);
        if self.to == Some(To::Jsonl) {
            // What is wrong with a document is found here, where its place is known, and not when it is printed.
            let documents = Box::new(documents.checking(Checking::Ahead));
            return Ok(DocumentInput::Whole { documents, rejects: Vec::new() });
        }
        let name = documents.reader().name().to_string();
        let located = |error: Error| error.with_name(&*name);
        let (sample, schema) = match (self.given.as_ref().or(known), self.options.infer) {
            (Some(schema), _) => (Sample::default(), schema.clone()),
            (None, infer) => {
                let most = if let Some(Infer::First(most)) = infer { most } else { SAMPLE };
                let sample = Sample::take(&mut documents, most, SAMPLE_BYTES)?;
                let schema = sample.infer(self.mixed()).map_err(located)?;
                let schema = self.inferred(schema, sample.is_empty()).map_err(located)?;
                (sample, schema)
            }
        };
        let limits = Limits::new()
            .on_mismatch(match self.options.documents.mismatch {
                Some(Mismatch::Null) => OnMismatch::Null,
                Some(Mismatch::Error) | None => OnMismatch::Error,
            })
            .on_unknown(self.unknown())
            // Documents of other sources may have the column.
            .on_absent(OnAbsent::Null)
            .batch_bytes(BATCH_BYTES)
            .memory_limit(self.memory_limit());
        let batches = Batches::new(sample, documents, &schema, limits)?;
        Ok(DocumentInput::Columns {
            batches: Box::new(RecordBatches::new(batches)),
            documents: 0,
            ignores: self.unknown() == OnUnknown::Ignore,
        })
    }

    /// Returns the schema in the form that the options and the output need.
    fn inferred(&self, schema: Schema, is_empty: bool) -> Result<Schema> {
        // Rows without columns could not be distinguished from missing rows.
        if matches!(self.to, Some(To::Parquet | To::Csv)) && schema.fields().is_empty() && !is_empty {
            return Err(Error::new(ErrorKind::ShapeMismatch)
                .with_found("documents without a member")
                .with_expected("at least one column, or another format"));
        }
        self.fit(if self.options.infer == Some(Infer::Off) { as_json(&schema)? } else { schema })
    }

    /// Infers the columns from the documents of all sources.
    ///
    /// # Errors
    /// Returns the errors of reading, and of columns that the output cannot have.
    pub(super) fn infer_all(&self, readers: impl Iterator<Item = Result<Reader>>) -> Result<Schema> {
        let (mut is_empty, mut inference) = (true, Inference::new());
        let mut first = None;
        for reader in readers {
            let mut documents = self.documents(reader?);
            let name = documents.reader().name().to_string();
            first.get_or_insert_with(|| name.clone());
            loop {
                match documents.next() {
                    Ok(Some(document)) => {
                        inference.observe(&document).map_err(|error| error.with_name(&*name))?;
                        is_empty = false;
                    }
                    Ok(None) => break,
                    // It is reported when the documents are converted.
                    Err(error) => drop(documents.take_rejected().ok_or(error)?),
                }
            }
            documents.into_reader().close()?;
        }
        let schema = inference.schema(self.mixed()).and_then(|schema| self.inferred(schema, is_empty));
        schema.map_err(|error| error.with_name(first.unwrap_or_default()))
    }

    fn mixed(&self) -> OnMixed {
        match self.options.documents.mixed {
            Some(Mixed::Error) => OnMixed::Error,
            Some(Mixed::Json) | None => OnMixed::Json,
        }
    }

    fn unknown(&self) -> OnUnknown {
        match self.options.documents.unknown {
            Some(Unknown::Error) => OnUnknown::Error,
            Some(Unknown::Count) => OnUnknown::Count,
            Some(Unknown::Ignore) => OnUnknown::Ignore,
            None if self.given.is_some() => OnUnknown::Ignore,
            None => OnUnknown::Error,
        }
    }

    /// A column usually takes at most four times the memory of its values.
    fn memory_limit(&self) -> usize {
        let record_limit = self.options.reading.record_limit().unwrap_or(DEFAULT_RECORD_LIMIT);
        record_limit.saturating_mul(4).clamp(256 << 20, i32::MAX as usize)
    }

    /// Returns a message about the columns that no document of any source has. Inferred ones are only in bad documents.
    ///
    /// # Errors
    /// Returns [`ErrorKind::KeyMissing`] if the columns were given, depending on the options.
    pub(super) fn check_absent(&self, absent: &[String], name: &str) -> Result<Option<String>> {
        let Some(first) = absent.first().filter(|_| self.given.is_some()) else { return Ok(None) };
        match self.options.documents.absent {
            Some(Absent::Null) => Ok(Some(format!("only nulls in {}, which no document has", absent.join(", ")))),
            Some(Absent::Error) | None => Err(Error::new(ErrorKind::KeyMissing)
                .with_found("no document with this member")
                .with_path(&**first)
                .with_name(name)),
        }
    }
}

fn read_schema(path: &Path) -> Result<Schema> {
    let schema = document_schema_from_json(&read_text(path)?).and_then(|schema| Schema::from_arrow(&schema));
    schema.map_err(|error| error.with_name(path.display().to_string()))
}

/// A schema of the same columns, all of which are the text of JSON.
fn as_json(schema: &Schema) -> Result<Schema> {
    Schema::new(schema.fields().iter().map(|field| Field::of_key(field.name(), DataType::Json)))
}

/// Returns the same columns with arrays as the text of Extended JSON.
fn without_lists(fields: &[Field]) -> Result<Vec<Field>> {
    let without = |field: &Field| {
        let data_type = match field.data_type() {
            DataType::List(_) => DataType::Json,
            // The recursion is limited by the maximum depth of a schema.
            DataType::Struct(members) => DataType::Struct(without_lists(members)?),
            plain => plain.clone(),
        };
        let other = Field::new(&join_path(field.keys()), data_type)?.named(field.name());
        Ok(if field.is_nullable() { other } else { other.required() })
    };
    fields.iter().map(without).collect()
}

/// Documents that are being converted.
pub(super) enum DocumentInput {
    Columns {
        batches: Box<RecordBatches>,
        /// The number of documents so far.
        documents: u64,
        /// Whether members without a column need no mention.
        ignores: bool,
    },
    /// Each row is the bytes of a document.
    Whole { documents: Box<Documents>, rejects: Vec<Reject> },
}

impl DocumentInput {
    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            DocumentInput::Columns { batches, .. } => arrow_array::RecordBatchReader::schema(&**batches),
            DocumentInput::Whole { .. } => whole_schema(),
        }
    }

    /// Returns the columns, for the next source.
    pub(super) fn columns(&self) -> Option<&Schema> {
        match self {
            DocumentInput::Columns { batches, .. } => Some(batches.batches().columns().schema()),
            DocumentInput::Whole { .. } => None,
        }
    }

    /// Returns the next batch, which has no rows if there were only bad documents; `None` at the end.
    ///
    /// # Errors
    /// Returns the errors of the source, and the first document that does not fit, unless these are left out.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            DocumentInput::Columns { batches, documents, .. } => {
                let batch = batches.next_batch()?;
                *documents += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
                Ok(batch)
            }
            DocumentInput::Whole { documents, rejects } => match documents.next_batch() {
                Ok(Some(batch)) => {
                    let (bytes, offsets) = (batch.as_batch().bytes(), batch.as_batch().offsets());
                    // A batch has at most 256 KiB or one document, which is smaller than 2 GiB.
                    whole_batch(bytes, offsets.iter().map(|&offset| offset as i32).collect()).map(Some)
                }
                Ok(None) => Ok(None),
                Err(error) => {
                    let Some(raw) = documents.take_rejected() else { return Err(error) };
                    rejects.push(Reject { error, raw });
                    whole_batch(&[], vec![0]).map(Some)
                }
            },
        }
    }

    /// Takes the bad documents that were left out since the last call.
    pub(super) fn take_rejects(&mut self) -> Vec<Reject> {
        match self {
            DocumentInput::Columns { batches, .. } => batches.take_rejects(),
            DocumentInput::Whole { rejects, .. } => std::mem::take(rejects),
        }
    }

    pub(super) fn reader(&self) -> &Reader {
        match self {
            DocumentInput::Columns { batches, .. } => batches.batches().documents().reader(),
            DocumentInput::Whole { documents, .. } => documents.reader(),
        }
    }

    pub(super) fn into_reader(self) -> Reader {
        match self {
            DocumentInput::Columns { batches, .. } => batches.into_batches().into_documents().into_reader(),
            DocumentInput::Whole { documents, .. } => documents.into_reader(),
        }
    }

    /// Returns the columns that no document had; `None` if there were no documents, or no columns.
    pub(super) fn absent(&self) -> Option<Vec<String>> {
        match self {
            DocumentInput::Columns { batches, documents: 1.., .. } => {
                let absent = batches.batches().columns().absent();
                Some(absent.map(|field| join_path(field.keys())).collect())
            }
            _ => None,
        }
    }

    /// Returns messages about the data that the columns do not contain, or contain as another type.
    pub(super) fn notes(&self) -> Vec<String> {
        let DocumentInput::Columns { batches, documents, ignores } = self else { return Vec::new() };
        let columns = batches.batches().columns();
        let LostTypes { code, symbol, subtype, undefined, .. } = columns.lost_types();
        // Members that should be ignored are not reported.
        let unknown = if *ignores { 0 } else { columns.unknown() };
        let counts = [
            (columns.mismatched(), "value", "did not fit and became null"),
            (unknown, "member", "left out"),
            (code, "value", "of type javascript became text"),
            (symbol, "value", "of type symbol became text"),
            (subtype, "value", "of type binData lost a subtype"),
            (undefined, "value", "of type undefined became null"),
        ];
        let name = self.reader().name();
        let in_documents = count_text(*documents, "document");
        counts
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, noun, what)| format!("{name}: {} {what}, in {in_documents}", count_text(count, noun)))
            .collect()
    }
}

/// The only column of documents that are not divided into columns.
fn whole_schema() -> SchemaRef {
    let document = ArrowField::new("document", ArrowType::Binary, false);
    Arc::new(arrow_schema::Schema::new(vec![document]))
}

/// A batch of documents.
fn whole_batch(bytes: &[u8], offsets: Vec<i32>) -> Result<RecordBatch> {
    let refused = |error: arrow_schema::ArrowError| {
        Error::new(ErrorKind::Internal).with_found(error.to_string()).with_expected("an array that Arrow accepts")
    };
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let array = BinaryArray::try_new(offsets, Buffer::from(bytes), None).map_err(refused)?;
    RecordBatch::try_new(whole_schema(), vec![Arc::new(array)]).map_err(refused)
}
