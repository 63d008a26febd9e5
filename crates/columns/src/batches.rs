//! Blocks of records become batches, on this thread or on several.

mod all;

use crate::infer::Inferred;
use crate::json::{self, Guesses, MOST_COLUMNS};
use crate::layout::{Format, Layout, Names, Parsed, show};
use crate::options::{Infer, OnBad, Options, Reject};
use crate::rows;
use crate::schema::Schema;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, SchemaRef};
use millstream::frame::{Csv, CsvPositions, CsvRagged, Delimiter, Framer, JsonLines, Lines};
use millstream::workers::{Work, Workers};
use millstream::{BatchCopy, Error, ErrorKind, Reader, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes of the records from which types are inferred.
const SAMPLE_BYTES: usize = 64 << 20;

/// About how much memory bad records take before they are to be taken.
const MOST_REJECTS: usize = 16 << 20;

/// The longest record: positions in a block are signed 32-bit integers in Arrow.
const LONGEST: usize = 1 << 30;

/// The most values of a block of JSON, null or not.
const MOST_CELLS: usize = 4 << 20;

/// The most threads for which the fields of CSV are found with the records, by the thread that reads. This takes less time than
/// another pass, but reading would be the limit of more threads.
const MOST_THREADS_FIELDS: usize = 3;

/// The longest block whose fields are found with its records, and whose memory is used again. Only one that consists of a long
/// record is longer.
const LONGEST_KEPT: usize = 4 << 20;

/// The records of a reader as batches of columns.
pub struct Batches {
    reader: Reader,
    framer: AnyFramer,
    /// Whether the fields of CSV are found with the records.
    finds_fields: bool,
    /// Whether the records are elements of a document, whose offsets in it are not known.
    is_document: bool,
    layout: Arc<Layout>,
    workers: Workers<Piece>,
    /// The blocks that were read to infer the types, and the error after them.
    sample: VecDeque<Piece>,
    spare: Vec<(BatchCopy, CsvPositions)>,
    /// The most records of a block.
    most_records: usize,
    /// Whether no more blocks are to be read.
    is_ended: bool,
    /// The error that follows all pieces.
    error: Option<Error>,
    rejects: Vec<Reject>,
    /// About how much memory the rejects take.
    rejects_bytes: usize,
    rows: u64,
    rejected: u64,
}

/// Finds the records.
enum AnyFramer {
    Csv(Box<Csv>),
    Other(Box<dyn Framer + Send>),
}

impl AnyFramer {
    fn get(&mut self) -> &mut dyn Framer {
        match self {
            AnyFramer::Csv(csv) => &mut **csv,
            AnyFramer::Other(other) => &mut **other,
        }
    }
}

/// A block on its way.
struct Piece {
    block: BatchCopy,
    /// Its fields, if they were found with its records.
    positions: CsvPositions,
    /// A record that the framer refused.
    reject: Option<Reject>,
    result: Option<Result<Parsed>>,
}

impl Piece {
    fn new(block: BatchCopy, positions: CsvPositions) -> Piece {
        Piece { block, positions, reject: None, result: None }
    }

    /// Returns about how much memory it takes.
    fn size(&self) -> usize {
        self.block.batch().bytes().len() + self.reject.as_ref().map_or(0, size_of_reject)
    }
}

/// Returns about how much memory a bad record takes. The error has texts, too.
fn size_of_reject(reject: &Reject) -> usize {
    size_of::<Reject>() + 2 * reject.raw.len() + 256
}

/// What the records of a reader are.
#[derive(Clone, Debug)]
pub enum Records {
    /// See [`Batches::csv`].
    Csv(Box<Csv>),
    /// See [`Batches::lines`].
    Lines,
    /// See [`Batches::json_lines`].
    JsonLines,
    /// See [`Batches::json_elements`].
    JsonElements,
}

impl Batches {
    /// Reads records of any kind.
    ///
    /// # Errors
    /// Returns the errors of the function for these records.
    pub fn of(reader: Reader, records: Records, options: &Options) -> Result<Batches> {
        match records {
            Records::Csv(csv) => Batches::csv(reader, *csv, options),
            Records::Lines => Batches::lines(reader, options),
            Records::JsonLines => Batches::json_lines(reader, options),
            Records::JsonElements => Batches::json_elements(reader, options),
        }
    }

    /// Reads records of CSV.
    ///
    /// # Errors
    /// Returns the errors of reading the header and the records from which types are inferred, and those of
    /// [`Infer::All`];
    /// [`KeyMissing`](ErrorKind::KeyMissing) if the header lacks a column of the schema;
    /// [`InvalidOption`](ErrorKind::InvalidOption) for [`CsvRagged::Collect`];
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) if it lacks a name, has one twice, or has one that an inferred schema
    /// lacks; [`Utf8Invalid`](ErrorKind::Utf8Invalid) if a name is not UTF-8.
    pub fn csv(reader: Reader, csv: Csv, options: &Options) -> Result<Batches> {
        let (mut reader, options) = all::prepare(reader, options, || Records::Csv(Box::new(csv.clone())))?;
        let options = &*options;
        if options.ragged == CsvRagged::Collect {
            let error = Error::new(ErrorKind::InvalidOption).with_found("fields without a name, in columns");
            return Err(error.with_expected("ragged records that are errors, or padded").with_name(reader.name()));
        }
        let (names, count) = names(&mut reader, &csv, options)?;
        let layout = Layout {
            format: Format::Csv(csv.clone()),
            fields: count,
            picked: None,
            schema: text_schema(&names)?,
            nulls: options.nulls.clone(),
            ragged: options.ragged,
            goes_on: options.on_bad == OnBad::Skip,
            how: options.how(),
        };
        let mut batches = Batches::new(reader, AnyFramer::Csv(Box::new(csv)), layout, options);
        let layout = match &options.schema {
            Some(schema) => {
                pick(&batches.layout, &names, schema).map_err(|error| error.with_name(batches.reader.name()))?
            }
            None => Layout { schema: batches.infer_texts(&names, options)?, ..Layout::clone(&batches.layout) },
        };
        batches.use_layout(layout, options);
        Ok(batches)
    }

    /// Reads lines as one column of text, `line`. Lines that are not UTF-8 are bad, unless the schema says `binary`.
    ///
    /// # Errors
    /// Returns [`KeyMissing`](ErrorKind::KeyMissing) for a schema with other columns.
    pub fn lines(reader: Reader, options: &Options) -> Result<Batches> {
        let names = ["line".to_string()];
        let layout = Layout {
            format: Format::Lines,
            fields: 1,
            picked: None,
            schema: text_schema(&names)?,
            nulls: options.nulls.clone(),
            ragged: options.ragged,
            goes_on: options.on_bad == OnBad::Skip,
            how: options.how(),
        };
        let mut batches = Batches::new(reader, AnyFramer::Other(Box::new(Lines::new())), layout, options);
        if let Some(schema) = &options.schema {
            let layout =
                pick(&batches.layout, &names, schema).map_err(|error| error.with_name(batches.reader.name()))?;
            batches.use_layout(layout, options);
        }
        Ok(batches)
    }

    /// Reads lines of JSON. Each is an object, whose members are the columns; blank lines are not records.
    ///
    /// Numbers are converted from their text. Strings are `string`, whatever they contain, objects `struct` and arrays
    /// `list`. Columns of values of different types, and of objects that are always empty, are `json`: the text of each
    /// value. A member that is missing is null.
    ///
    /// ```
    /// use millstream::Reader;
    /// use millstream_columns::{Batches, Options};
    /// let text = "{\"id\": 1, \"tags\": [\"a\"]}\n{\"id\": 2.5, \"tags\": null}\n";
    /// let mut batches = Batches::json_lines(Reader::memory(text)?, &Options::new())?;
    /// assert_eq!(
    ///     batches.schema().to_json(),
    ///     r#"{"fields":[{"name":"id","type":"float64"},{"name":"tags","type":"list","item":{"type":"string"}}]}"#,
    /// );
    /// assert_eq!(batches.next_batch()?.map(|batch| batch.num_rows()), Some(2));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of reading the records from which types are inferred, and those of [`Infer::All`];
    /// [`MemoryLimit`](ErrorKind::MemoryLimit) if these have more than 10,000 columns, with those inside others;
    /// [`InvalidOption`](ErrorKind::InvalidOption) for [`Options::nulls`].
    pub fn json_lines(reader: Reader, options: &Options) -> Result<Batches> {
        let (reader, options) = all::prepare(reader, options, || Records::JsonLines)?;
        Batches::json(reader, Box::new(JsonLines::new()), &options)
    }

    /// Reads the elements of an array of a JSON document like [lines of JSON](Batches::json_lines). The reader must have
    /// the option [`json_elements`](millstream::ReaderBuilder::json_elements).
    ///
    /// ```
    /// use millstream::Reader;
    /// use millstream_columns::{Batches, Options};
    /// let reader = Reader::builder().json_elements("/items").memory(r#"{"items": [{"a": true}, {"a": null}]}"#)?;
    /// let mut batches = Batches::json_elements(reader, &Options::new())?;
    /// assert_eq!(batches.next_batch()?.map(|batch| batch.num_rows()), Some(2));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Batches::json_lines`].
    pub fn json_elements(reader: Reader, options: &Options) -> Result<Batches> {
        let (reader, options) = all::prepare(reader, options, || Records::JsonElements)?;
        Ok(Batches { is_document: true, ..Batches::json(reader, Box::new(elements()), &options)? })
    }

    fn json(reader: Reader, framer: Box<dyn Framer + Send>, options: &Options) -> Result<Batches> {
        if !options.nulls.is_empty() {
            let error = Error::new(ErrorKind::InvalidOption).with_found("texts that are null, for JSON");
            return Err(error.with_expected("no such texts: null is a value of JSON").with_name(reader.name()));
        }
        let given = options.schema.clone();
        let names = Names { duplicates: options.duplicates, is_closed: given.as_ref().is_none_or(Schema::is_inferred) };
        let needs_types = given.is_none();
        let layout = Layout {
            format: Format::Json(names),
            fields: 0,
            picked: None,
            schema: given.map_or_else(|| text_schema(&[]), Ok)?,
            nulls: Vec::new(),
            ragged: options.ragged,
            goes_on: options.on_bad == OnBad::Skip,
            how: options.how(),
        };
        let mut batches = Batches::new(reader, AnyFramer::Other(framer), layout, options);
        if needs_types {
            let schema = batches.infer_json(options)?;
            let layout = Layout { schema, ..Layout::clone(&batches.layout) };
            batches.use_layout(layout, options);
        }
        Ok(batches)
    }

    /// Infers the columns of JSON from the next records, which stay in the sample.
    fn infer_json(&mut self, options: &Options) -> Result<Schema> {
        let most = if let Infer::First(most) = options.infer { most } else { 10_000 };
        let mut guesses = Guesses::default();
        let (mut records, mut bytes, mut columns) = (0, 0, 0);
        while records < most && bytes < SAMPLE_BYTES {
            let Some(piece) = self.read()? else { break };
            records += json::observe(&piece.block, most - records, options, &mut guesses, &mut columns);
            bytes += piece.size();
            self.sample.push_back(piece);
        }
        self.json_schema(&guesses, columns, options)
    }

    fn json_schema(&self, guesses: &Guesses, columns: usize, options: &Options) -> Result<Schema> {
        if columns > MOST_COLUMNS {
            return Err(Error::new(ErrorKind::MemoryLimit)
                .with_name(self.reader.name())
                .with_found(format!("more than {MOST_COLUMNS} columns, with those inside others"))
                .with_expected("at most that many, or a schema in which objects with varying names are json"));
        }
        let fields = match options.infer {
            Infer::First(_) | Infer::All => guesses.fields(options.how()),
            Infer::Off => guesses.json_fields(),
        };
        Schema::inferred(Arc::new(arrow_schema::Schema::new(fields)))
    }

    fn new(reader: Reader, framer: AnyFramer, layout: Layout, options: &Options) -> Batches {
        let layout = Arc::new(layout);
        Batches {
            most_records: most_records(&layout),
            reader,
            framer,
            finds_fields: false,
            is_document: false,
            workers: workers(&layout, options.threads),
            layout,
            sample: VecDeque::new(),
            spare: Vec::new(),
            is_ended: false,
            error: None,
            rejects: Vec::new(),
            rejects_bytes: 0,
            rows: 0,
            rejected: 0,
        }
    }

    fn use_layout(&mut self, layout: Layout, options: &Options) {
        self.layout = Arc::new(layout);
        self.most_records = most_records(&self.layout);
        self.workers = workers(&self.layout, options.threads);
        self.finds_fields = options.threads <= MOST_THREADS_FIELDS;
    }

    /// Infers the columns from the next records, which stay in the sample.
    fn infer_texts(&mut self, names: &[String], options: &Options) -> Result<Schema> {
        let Infer::First(most) = options.infer else {
            // All records give the types by a schema.
            return inferred(names, names.iter().map(|_| DataType::Utf8));
        };
        let mut columns = vec![Inferred::default(); names.len()];
        let (mut records, mut bytes) = (0, 0);
        let (mut scratch, mut positions) = (rows::Scratch::default(), CsvPositions::new());
        while records < most && bytes < SAMPLE_BYTES {
            let Some(piece) = self.read()? else { break };
            records += self.layout.observe(&piece.block, &mut positions, &mut scratch, most - records, &mut columns);
            bytes += piece.size();
            self.sample.push_back(piece);
        }
        let types = columns.iter().map(|column| column.data_type(options.how()).unwrap_or(DataType::Utf8));
        inferred(names, types)
    }

    /// Reads the next block. Returns `None` at the end, or at an error, which is kept.
    fn read(&mut self) -> Result<Option<Piece>> {
        if self.is_ended {
            return Ok(None);
        }
        let (mut block, mut positions) = self.spare.pop().unwrap_or_default();
        match block.refill(&mut self.reader, self.framer.get(), self.most_records) {
            Ok(true) if block.batch().bytes().len() <= LONGEST => {
                if let AnyFramer::Csv(csv) = &mut self.framer
                    && self.finds_fields
                    && block.batch().bytes().len() <= LONGEST_KEPT
                {
                    csv.take_fields(&mut positions);
                }
                Ok(Some(Piece::new(block, positions)))
            }
            Ok(true) => {
                let error = Error::new(ErrorKind::MemoryLimit)
                    .with_name(self.reader.name())
                    .with_found(format!("a record of {} bytes", block.batch().bytes().len()))
                    .with_expected(format!("at most {LONGEST} for columns"));
                (self.is_ended, self.error) = (true, Some(block.locate(error, 0, 0)));
                Ok(None)
            }
            Ok(false) => {
                self.is_ended = true;
                Ok(None)
            }
            Err(error) if self.layout.goes_on && is_of_record(&error) => {
                let mut raw = Vec::new();
                // The rest of a long record is not kept.
                match self.reader.skip_record_into(&mut self.framer.get(), &mut raw, LONGEST / 1024) {
                    Ok(_) => Ok(Some(Piece { reject: Some(Reject { error, raw }), ..Piece::new(block, positions) })),
                    Err(error) => {
                        (self.is_ended, self.error) = (true, Some(error));
                        Ok(None)
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                // The next call continues.
                self.spare.push((block, positions));
                Err(error)
            }
            Err(error) => {
                (self.is_ended, self.error) = (true, Some(error));
                Ok(None)
            }
        }
    }

    /// Returns the columns.
    pub fn schema(&self) -> &Schema {
        &self.layout.schema
    }

    /// Returns the next batch; `None` at the end, which means that the source succeeded. A batch has at least one row, unless
    /// 16 MiB of bad records precede it: these should be [taken](Self::take_rejects) first.
    ///
    /// # Errors
    /// Returns, after all rows before it, the first bad record by default, and errors of the source. After
    /// [`Cancelled`](ErrorKind::Cancelled), the next call continues.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            while self.workers.has_capacity() {
                let piece = match self.sample.pop_front() {
                    Some(piece) => Some(piece),
                    None => self.read()?,
                };
                let Some(piece) = piece else { break };
                self.workers.give(piece);
            }
            let Some(piece) = self.workers.take()? else {
                return match self.error.take() {
                    Some(error) => Err(error),
                    None => Ok(None),
                };
            };
            let Piece { mut block, positions, reject, result } = piece;
            self.rejected += u64::from(reject.is_some());
            self.keep(reject);
            let Some(result) = result else {
                match self.rejects_bytes > MOST_REJECTS {
                    true => return Ok(Some(RecordBatch::new_empty(self.layout.schema.arrow().clone()))),
                    false => continue,
                }
            };
            if block.batch().bytes().len() <= LONGEST_KEPT {
                block.clear();
                self.spare.push((block, positions));
            }
            let Parsed { batch, rejects, error } = match result {
                Ok(parsed) => parsed,
                Err(error) => return self.fail(error),
            };
            self.rejected += rejects.len() as u64;
            let (name, is_document) = (self.reader.name(), self.is_document);
            let place = |error: Error| {
                let error = error.with_name(name);
                if is_document { error.without_offset() } else { error }
            };
            let error = error.map(place);
            let rejects: Vec<_> =
                rejects.into_iter().map(|Reject { error, raw }| Reject { error: place(error), raw }).collect();
            self.keep(rejects);
            if let Some(error) = error {
                // Nothing follows the rows before the error.
                while self.workers.take()?.is_some() {}
                self.sample.clear();
                self.is_ended = true;
                self.error = Some(error);
            }
            if batch.num_rows() > 0 || self.rejects_bytes > MOST_REJECTS {
                self.rows += batch.num_rows() as u64;
                return Ok(Some(batch));
            }
        }
    }

    fn keep(&mut self, rejects: impl IntoIterator<Item = Reject>) {
        for reject in rejects {
            self.rejects_bytes += size_of_reject(&reject);
            self.rejects.push(reject);
        }
    }

    fn fail(&mut self, error: Error) -> Result<Option<RecordBatch>> {
        self.is_ended = true;
        Err(error)
    }

    /// Takes the bad records that were left out before the end of the last batch, in order.
    pub fn take_rejects(&mut self) -> Vec<Reject> {
        self.rejects_bytes = 0;
        std::mem::take(&mut self.rejects)
    }

    /// Returns the number of rows of all batches so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of bad records that were left out so far.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Returns the reader, for its progress.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the reader, which must be closed to learn how its source ended if not all batches were read.
    pub fn into_reader(self) -> Reader {
        self.reader
    }
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.layout.schema.arrow().clone()
    }
}

/// The framer of the elements that a reader delivers.
fn elements() -> Delimiter {
    const SEPARATOR: u8 = 0x1e;
    Delimiter::byte(SEPARATOR)
}

/// Returns whether reading may continue after this error, because it is the error of one record.
fn is_of_record(error: &Error) -> bool {
    // Those about JSON are errors of a document, which ends there. Records of JSON are checked when they are parsed.
    matches!(error.kind(), ErrorKind::CsvInvalid | ErrorKind::RecordTooLong)
}

/// Memory that one thread uses for one block after another.
#[derive(Default)]
struct Scratch {
    texts: rows::Scratch,
    json: json::Scratch,
}

/// Turns the records of a block into a batch.
fn parse(layout: &Layout, piece: &mut Piece, scratch: &mut Scratch) -> Result<Parsed> {
    let Piece { block, positions, .. } = piece;
    match layout.format {
        Format::Json(names) => layout.parse_json(names, block, &mut scratch.json),
        Format::Lines | Format::Csv(_) => layout.parse_texts(block, positions, &mut scratch.texts),
    }
}

/// Returns the most records of a block. A record of JSON can be shorter than its row, which has all columns.
fn most_records(layout: &Layout) -> usize {
    fn count(fields: &Fields) -> usize {
        let inner = |field: &FieldRef| match field.data_type() {
            DataType::Struct(members) => count(members),
            _ => 1,
        };
        fields.iter().map(inner).sum()
    }
    match (&layout.format, count(layout.schema.arrow().fields())) {
        (Format::Lines | Format::Csv(_), _) => usize::MAX,
        // The columns are not known yet.
        (Format::Json(_), 0) => 1_000,
        (Format::Json(_), columns) => (MOST_CELLS / columns).max(100),
    }
}

/// Creates the threads that turn blocks into batches.
fn workers(layout: &Arc<Layout>, threads: usize) -> Workers<Piece> {
    let layout = layout.clone();
    let new_work = move || -> Work<Piece> {
        let (layout, mut scratch) = (layout.clone(), Scratch::default());
        Box::new(move |piece: &mut Piece| {
            if piece.reject.is_none() {
                piece.result = Some(parse(&layout, piece, &mut scratch));
            }
        })
    };
    Workers::with_at_most(if threads > 1 { threads } else { 0 }, new_work)
}

/// Reads the header, unless the names are known. Returns the names of the columns and the number of fields.
fn names(reader: &mut Reader, csv: &Csv, options: &Options) -> Result<(Vec<String>, usize)> {
    if let Some(names) = &options.names {
        return Ok((names.clone(), names.len()));
    }
    let mut framer = csv.clone();
    let name = reader.name().to_string();
    let locate = |error: Error, record: u64| error.with_name(&*name).with_record(record);
    loop {
        let position = reader.position().records;
        let Some(batch) = reader.next_batch_of(&mut framer, 1)? else { return Ok((Vec::new(), 0)) };
        let record = batch.get(0).unwrap_or_default();
        if csv.skips(record) {
            continue;
        }
        let fields: Vec<Vec<u8>> = csv.fields(record).map(std::borrow::Cow::into_owned).collect();
        if !options.header {
            // The record is data, too.
            reader.give_back(1)?;
            return Ok(((0..fields.len()).map(|i| i.to_string()).collect(), fields.len()));
        }
        let mut names = Vec::with_capacity(fields.len());
        for field in fields {
            let text = String::from_utf8(field).map_err(|error| {
                let error = Error::new(ErrorKind::Utf8Invalid).with_found(show(error.as_bytes()));
                locate(error.with_expected("a name of a column in UTF-8"), position)
            })?;
            if names.contains(&text) {
                let error = Error::new(ErrorKind::ShapeMismatch).with_found(format!("two columns {text:?}"));
                return Err(locate(error.with_expected("a different name for each, or no header"), position));
            }
            names.push(text);
        }
        let count = names.len();
        return Ok((names, count));
    }
}

/// The schema of columns of text.
fn text_schema(names: &[String]) -> Result<Schema> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
    Schema::new(Arc::new(arrow_schema::Schema::new(fields)))
}

/// The schema of inferred columns.
fn inferred(names: &[String], types: impl Iterator<Item = DataType>) -> Result<Schema> {
    let fields: Vec<Field> = names.iter().zip(types).map(|(name, of)| Field::new(name, of, true)).collect();
    Schema::inferred(Arc::new(arrow_schema::Schema::new(fields)))
}

/// Finds the columns of a schema among the names of the fields.
fn pick(layout: &Layout, names: &[String], schema: &Schema) -> Result<Layout> {
    let found = || if names.is_empty() { "no column".to_string() } else { format!("the columns {}", names.join(", ")) };
    let picked = schema.arrow().fields().iter().map(|field| {
        names.iter().position(|name| name == field.name()).ok_or_else(|| {
            Error::new(ErrorKind::KeyMissing)
                .with_path(field.name())
                .with_found(found())
                .with_expected("those of the schema")
        })
    });
    let picked = picked.collect::<Result<Vec<usize>>>()?;
    if schema.is_inferred()
        && let Some(other) = names.iter().find(|&name| schema.arrow().column_with_name(name).is_none())
    {
        let error = Error::new(ErrorKind::ShapeMismatch).with_path(other).with_found("a column that was not inferred");
        return Err(error.with_expected("the columns of the other source, or a schema"));
    }
    let picked = (!picked.iter().copied().eq(0..names.len())).then_some(picked);
    Ok(Layout { picked, schema: schema.clone(), ..layout.clone() })
}
