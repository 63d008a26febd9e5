//! A source as batches of columns.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use millstream::frame::{Csv, CsvDialect, CsvRagged};
use millstream::{CancelToken, Error, ErrorKind, Reader, ReaderBuilder, Result, SourceVersion};
use millstream_columns::{self as columns, Batches, Records, Schema};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::run::{DEFAULT_RECORD_LIMIT, Reject, Source};
use crate::tables::{contained, read_failed};

use super::arrow::{ArrowFile, ArrowStream};
use super::documents::{DocumentInput, DocumentPlan};
use super::formats::{From, To};
use super::options::{Duplicates, Infer, Options, read_text};

/// The size of the buffer, which is the size of the blocks that become batches.
const CAPACITY: usize = 1 << 20;

/// The rows of a batch of Parquet.
const ROWS: usize = 8192;

/// How sources are read.
pub(super) struct How<'a> {
    options: &'a Options,
    pub(super) from: From,
    sources: &'a [Source],
    csv: Csv,
    columns: columns::Options,
    /// The schema of `--schema`.
    schema: Option<Schema>,
    /// How documents of BSON are read, if the sources contain them.
    documents: Option<DocumentPlan<'a>>,
    token: CancelToken,
    /// The sources that have been read to infer types from all records, for the second reading.
    versions: RefCell<VecDeque<SourceVersion>>,
}

impl<'a> How<'a> {
    /// # Errors
    /// Returns the errors of the dialect of CSV and of reading the schema.
    pub(super) fn new(
        options: &'a Options,
        from: From,
        to: Option<To>,
        sources: &'a [Source],
        token: &CancelToken,
    ) -> Result<How<'a>> {
        let dialect = match from {
            From::Tsv => CsvDialect::new().delimiter(b'\t'),
            _ => CsvDialect::new(),
        };
        let skips = options.bad.skips();
        let (schema, documents) = match from {
            From::Bson => (None, Some(DocumentPlan::new(options, to, skips)?)),
            _ => (options.schema.as_deref().map(read_schema).transpose()?, None),
        };
        let mut of_columns = columns::Options::new()
            .threads(options.jobs.unwrap_or(1).into())
            .header(!options.no_header)
            // For JSON, they are only for the output.
            .nulls(options.null.iter().filter(|_| !from.is_json()).map(String::as_str))
            .duplicates(match options.json_duplicates {
                Some(Duplicates::First) => columns::Duplicates::First,
                Some(Duplicates::Last) => columns::Duplicates::Last,
                Some(Duplicates::Error) | None => columns::Duplicates::Error,
            })
            .special_numbers(options.special_numbers)
            .decimals(options.decimals)
            .ragged(options.ragged.map_or(CsvRagged::Error, CsvRagged::from))
            .on_bad(if skips { columns::OnBad::Skip } else { columns::OnBad::Stop });
        match options.infer {
            Some(Infer::First(count)) => of_columns = of_columns.infer(columns::Infer::First(count)),
            Some(Infer::Off) => of_columns = of_columns.infer(columns::Infer::Off),
            Some(Infer::All) | None => {}
        }
        let csv = options.dialect.framer(dialect)?;
        let (token, versions) = (token.clone(), RefCell::default());
        Ok(How { options, from, sources, csv, columns: of_columns, schema, documents, token, versions })
    }

    /// The records of CSV and JSON.
    fn records(&self) -> Records {
        match self.from {
            From::Lines => Records::Lines,
            From::Jsonl => Records::JsonLines,
            From::Json => Records::JsonElements,
            _ => Records::Csv(Box::new(self.csv.clone())),
        }
    }

    fn record_limit(&self) -> usize {
        self.options.reading.record_limit().unwrap_or(DEFAULT_RECORD_LIMIT)
    }

    fn builder(&self) -> ReaderBuilder {
        let builder = self.options.reading.reader(CAPACITY).cancel(&self.token);
        match self.from {
            From::Json => builder.json_elements(self.options.json_pointer.as_deref().unwrap_or_default()),
            _ => builder,
        }
    }

    /// Returns a message about the columns that no document of any source has.
    ///
    /// # Errors
    /// Returns [`ErrorKind::KeyMissing`] if the columns were given, depending on the options.
    pub(super) fn check_absent(&self, absent: &[String], name: &str) -> Result<Option<String>> {
        self.documents.as_ref().map_or(Ok(None), |plan| plan.check_absent(absent, name))
    }

    /// Opens a source.
    ///
    /// # Errors
    /// Returns the errors of opening.
    pub(super) fn open(&self, source: &Source) -> Result<Opened> {
        if let Some(version) = self.versions.borrow_mut().pop_front() {
            return version.open().map(|reader| Opened::Reader(Box::new(reader)));
        }
        match (self.from, source) {
            (From::Parquet | From::Arrow, Source::File(path)) => {
                let name = path.display().to_string();
                let open = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata.len())));
                let (file, size) =
                    open.map_err(|error| Error::new(ErrorKind::OpenFailed).with_name(&name).with_io(error))?;
                Ok(Opened::File { file, name, size })
            }
            _ => source
                .open(self.builder(), self.options.reading.settings())
                .map(|reader| Opened::Reader(Box::new(reader))),
        }
    }

    /// Reads the beginning of a source, up to the types of its columns. `first` has those of an earlier source.
    ///
    /// # Errors
    /// Returns the errors of reading, and other columns than those of `first`.
    pub(super) fn begin(&self, opened: Opened, first: Option<&Columns>) -> Result<Input> {
        match (opened, &self.documents) {
            (Opened::Reader(reader), Some(plan)) => match first {
                Some(Columns::Documents(schema)) => plan.begin(*reader, Some(schema)),
                _ if plan.infers_all() => {
                    let schema = plan.infer_all(self.all(*reader))?;
                    plan.begin(self.first_again()?, Some(&schema))
                }
                _ => plan.begin(*reader, None),
            }
            .map(Input::Documents),
            (Opened::Reader(reader), None) if self.from == From::ArrowStream => {
                let name = reader.name().to_string();
                let stream = ArrowStream::new(*reader, self.record_limit());
                Ok(Input::ArrowStream(Box::new(stream.map_err(|error| error.with_name(name))?)))
            }
            (Opened::Reader(reader), None) => {
                let first = if let Some(Columns::Records(schema)) = first { Some(schema) } else { None };
                let (reader, schema) = match (&self.schema, first) {
                    (Some(schema), _) | (None, Some(schema)) => (*reader, Some(schema.clone())),
                    (None, None) if self.options.infer == Some(Infer::All) => {
                        let schema = Batches::infer(self.all(*reader), &self.records(), &self.columns)?;
                        (self.first_again()?, Some(schema))
                    }
                    (None, None) => (*reader, None),
                };
                let options = match schema {
                    Some(schema) => self.columns.clone().schema(schema),
                    None => self.columns.clone(),
                };
                let name = reader.name().to_string();
                let mut batches = Batches::of(reader, self.records(), &options)?;
                if batches.schema().arrow().fields().is_empty() {
                    // An error of the source may be the reason.
                    batches.next_batch()?;
                    let (found, expected) = match self.from.is_json() {
                        true => ("no member of an object", "at least one in the first records, or --schema"),
                        false => ("no record", "a header, or at least one record with --no-header"),
                    };
                    let error = Error::new(ErrorKind::ShapeMismatch).with_found(found).with_expected(expected);
                    return Err(error.with_name(name));
                }
                Ok(Input::Records(Box::new(batches)))
            }
            (Opened::File { file, name, size }, _) if self.from == From::Parquet => {
                let reader = contained(|| {
                    ParquetRecordBatchReaderBuilder::try_new(file)
                        .and_then(|builder| builder.with_batch_size(ROWS).build())
                        .map_err(read_failed)
                });
                let reader = reader.map_err(|error| error.with_name(&name))?;
                Ok(Input::Parquet { reader, table: FileTable { name, size, is_done: false } })
            }
            (Opened::File { file, name, size }, _) => {
                let reader = ArrowFile::new(file, self.record_limit()).map_err(|error| error.with_name(&name))?;
                Ok(Input::Arrow { reader: Box::new(reader), table: FileTable { name, size, is_done: false } })
            }
        }
    }
}

impl How<'_> {
    /// Opens all sources but the first, which is open, and remembers the versions of all for the second reading.
    ///
    /// # Errors
    /// The iterator returns the errors of opening, and a source that can be read only once.
    fn all(&self, first: Reader) -> impl Iterator<Item = Result<Reader>> {
        let settings = self.options.reading.settings();
        let rest = self.sources[1..].iter().map(move |source| source.open(self.builder(), settings));
        std::iter::once(Ok(first)).chain(rest).map(|reader| {
            let reader = reader?;
            self.versions.borrow_mut().push_back(Batches::version(&reader)?);
            Ok(reader)
        })
    }

    /// Returns the first of [`all`](Self::all) sources at its start.
    fn first_again(&self) -> Result<Reader> {
        let first = self.versions.borrow_mut().pop_front();
        first.ok_or_else(|| Error::new(ErrorKind::Internal).with_found("no source"))?.open()
    }
}

fn read_schema(path: &std::path::Path) -> Result<Schema> {
    Schema::from_json(&read_text(path)?).map_err(|error| error.with_name(path.display().to_string()))
}

/// A source that is open.
pub(super) enum Opened {
    Reader(Box<Reader>),
    /// A file that is not read from its start to its end.
    File {
        file: File,
        name: String,
        size: u64,
    },
}

impl Opened {
    pub(super) fn name(&self) -> &str {
        match self {
            Opened::Reader(reader) => reader.name(),
            Opened::File { name, .. } => name,
        }
    }

    /// Returns the size of the source, if it is known.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Opened::Reader(reader) => reader.progress().source_size,
            Opened::File { size, .. } => Some(*size),
        }
    }
}

/// The columns of a source, for the next one.
#[derive(Clone)]
pub(super) enum Columns {
    Records(Schema),
    Documents(millstream::bson::columns::Schema),
}

/// A source whose columns are known.
pub(super) enum Input {
    Records(Box<Batches>),
    Documents(DocumentInput),
    Parquet { reader: ParquetRecordBatchReader, table: FileTable },
    Arrow { reader: Box<ArrowFile<File>>, table: FileTable },
    ArrowStream(Box<ArrowStream<Reader>>),
}

/// A file whose format does not tell the position of a row.
pub(super) struct FileTable {
    name: String,
    size: u64,
    is_done: bool,
}

/// How much of a source has been read.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    /// After decoding.
    pub(super) bytes: u64,
    /// Before decoding.
    pub(super) source_bytes: u64,
}

impl Input {
    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Input::Records(batches) => batches.schema().arrow().clone(),
            Input::Documents(documents) => documents.schema(),
            Input::Parquet { reader, .. } => arrow_array::RecordBatchReader::schema(reader),
            Input::Arrow { reader, .. } => reader.schema(),
            Input::ArrowStream(reader) => reader.schema(),
        }
    }

    /// Returns the columns for the next source.
    pub(super) fn columns(&self) -> Option<Columns> {
        match self {
            Input::Records(batches) => Some(Columns::Records(batches.schema().clone())),
            Input::Documents(documents) => documents.columns().cloned().map(Columns::Documents),
            Input::Parquet { .. } | Input::Arrow { .. } | Input::ArrowStream(_) => None,
        }
    }

    /// Returns the next batch; `None` at the end, which means that the source succeeded.
    ///
    /// # Errors
    /// Returns the errors of the source, and the first record that does not fit, unless these are left out.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Input::Records(batches) => batches.next_batch(),
            Input::Documents(documents) => documents.next(),
            Input::Parquet { reader, table } => {
                table.counted(contained(|| reader.next().transpose().map_err(read_failed)))
            }
            Input::Arrow { reader, table } => table.counted(reader.next()),
            Input::ArrowStream(stream) => {
                let batch = stream.next().and_then(|batch| match batch {
                    // The stream has its own end marker.
                    None if stream.source_mut().fill()? > 0 => Err(Error::new(ErrorKind::DecodeDamaged)
                        .with_found("bytes after the end of the Arrow stream")
                        .with_expected("the end of the source")),
                    batch => Ok(batch),
                });
                batch.map_err(|error| error.with_name(stream.source().name()))
            }
        }
    }

    /// Takes the bad records that were left out since the last call.
    pub(super) fn take_rejects(&mut self) -> Vec<Reject> {
        match self {
            Input::Records(batches) => {
                batches.take_rejects().into_iter().map(|reject| Reject::new(reject.error, &reject.raw)).collect()
            }
            Input::Documents(documents) => {
                documents.take_rejects().into_iter().map(|reject| Reject::new(reject.error, &reject.raw)).collect()
            }
            Input::Parquet { .. } | Input::Arrow { .. } | Input::ArrowStream(_) => Vec::new(),
        }
    }

    pub(super) fn position(&self) -> Position {
        let of_reader =
            |reader: &Reader| Position { bytes: reader.position().bytes, source_bytes: reader.progress().source_bytes };
        match self {
            Input::Records(batches) => of_reader(batches.reader()),
            Input::Documents(documents) => of_reader(documents.reader()),
            Input::ArrowStream(stream) => of_reader(stream.source()),
            Input::Parquet { table, .. } | Input::Arrow { table, .. } => {
                let bytes = if table.is_done { table.size } else { 0 };
                Position { bytes, source_bytes: bytes }
            }
        }
    }

    /// Closes the source. A command that is still running is stopped.
    ///
    /// # Errors
    /// Returns how the source ended, unless the end of the batches has already told it.
    pub(super) fn close(self) -> Result<()> {
        match self {
            Input::Records(batches) => batches.into_reader().close().map(drop),
            Input::Documents(documents) => documents.into_reader().close().map(drop),
            Input::ArrowStream(mut stream) => stream.source_mut().try_close().map(drop),
            Input::Parquet { .. } | Input::Arrow { .. } => Ok(()),
        }
    }
}

impl FileTable {
    fn counted(&mut self, batch: Result<Option<RecordBatch>>) -> Result<Option<RecordBatch>> {
        match batch {
            Ok(None) => {
                self.is_done = true;
                Ok(None)
            }
            batch => batch.map_err(|error| error.with_name(&self.name)),
        }
    }
}
