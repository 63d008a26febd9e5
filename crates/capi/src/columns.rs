//! Records of CSV, lines and JSON as columns, through Arrow's C data interface:
//! <https://arrow.apache.org/docs/format/CDataInterface.html>.
//!
//!     millstream_columns *columns;
//!     struct ArrowArray batch;
//!     code = millstream_columns_new(reader, "delimiter=3b null=NA", NULL, &columns, &error);
//!     while (code == MILLSTREAM_OK &&
//!            (code = millstream_columns_next(columns, &batch, &error)) == MILLSTREAM_OK && batch.release != NULL) {
//!         use(&batch);
//!         batch.release(&batch);
//!     }
//!
//! A batch is a struct array: its children are the columns. Types are inferred from the first records or given by a
//! schema; docs/types.md has the rules. A value that does not fit is an error with its place, or, by option, a bad
//! record that is left out, counted and kept. It never becomes null. The end means that the source succeeded.
//!
//! millstream_columns_stream() gives the batches to a library that reads the C stream interface.

use std::collections::VecDeque;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ::millstream_columns::{Batches, Described, KEPT_REJECTS, Reject, Schema};
use arrow_array::ffi::{FFI_ArrowArray as ArrowArray, FFI_ArrowSchema as ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream as ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use millstream::{Error, ErrorKind, Result};

use crate::boundary::{c_string, call, caught, free, given, lend, out, text};
use crate::error::{millstream_code, millstream_error};
use crate::reader::millstream_reader;

/// Reads records as columns. It is freed by millstream_columns_free().
pub struct millstream_columns {
    shared: Arc<Shared>,
    // Text that C reads:
    name: CString,
    schema: CString,
    raw: Vec<u8>,
}

/// What the handle and the streams created from it have in common.
struct Shared {
    state: Mutex<State>,
    schema: SchemaRef,
    rows: AtomicU64,
    rejected: AtomicU64,
}

struct State {
    /// `None` once closed.
    batches: Option<Batches>,
    /// The last error that a stream has reported.
    failure: Option<Error>,
    /// Those that C has not taken yet, and how many are kept at most from now on.
    rejects: VecDeque<Reject>,
    to_keep: usize,
}

impl Shared {
    /// Waits until no other call uses the batches.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        self.state
            .lock()
            .map_err(|_| Error::new(ErrorKind::Closed).with_found("a handle whose last call has not returned"))
    }

    fn next(&self) -> Result<Option<RecordBatch>> {
        let mut guard = self.lock()?;
        let state = &mut *guard;
        let batches = state.batches.as_mut().ok_or_else(|| Error::new(ErrorKind::Closed))?;
        let next = batches.next_batch();
        let rejects = batches.take_rejects();
        self.rows.store(batches.rows(), Ordering::Relaxed);
        self.rejected.store(batches.rejected(), Ordering::Relaxed);
        let next = next.map_err(|error| batches.schema().advise(error, "on_bad to skip"));
        let kept = rejects.len().min(state.to_keep);
        state.to_keep -= kept;
        state.rejects.extend(rejects.into_iter().take(kept));
        next
    }
}

/// The batches as a stream of Arrow.
struct Stream(Arc<Shared>);

impl Iterator for Stream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let error = match caught(|| self.0.next()) {
            Ok(next) => return next.map(Ok),
            Err(error) => error,
        };
        // A NUL would end the text for C.
        let message = error.to_string().replace('\0', "\u{fffd}");
        if let Ok(mut state) = self.0.lock() {
            state.failure = Some(error);
        }
        Some(Err(ArrowError::ExternalError(message.into())))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }
}

fn export(schema: &SchemaRef) -> Result<ArrowSchema> {
    ArrowSchema::try_from(&**schema).map_err(|_| {
        Error::new(ErrorKind::ShapeMismatch)
            .with_found("a NUL in the name of a column")
            .with_expected("names without it")
    })
}

/// Creates columns of the records that `reader` has not delivered yet. It takes ownership of the reader, even if this
/// fails: the caller must neither use nor free it again. The options of the reader still apply, such as cancel tokens
/// and time limits. The header and the records from which types are inferred are read during this call.
///
/// `options` is NULL or a text of options, `name=value` separated by spaces, such as "header=off null=NA null=":
///
/// - format=csv: `csv`; `tsv`, which is CSV with tabs as delimiters; `lines`, which are one column of text, `line`;
///   `jsonl`, whose lines are objects of JSON; or `json`, the elements of an array of a document, for which the reader
///   must have the option of millstream_reader_options_set_json_elements();
/// - header=on: whether the first record of CSV names the columns; with `off` their names are 0, 1, ...;
/// - infer=10000: the number of records from which types are inferred; with `off`, columns are text, and those of JSON
///   the text of their values; with `all`, all records are read during this call, and then again from the same version
///   of the source, which is a regular file given by its path, memory, or an object with a strong ETag on a server with
///   ranges; any other source, and a reader that has delivered records, is MILLSTREAM_INVALID_OPTION;
/// - null=TEXT: a text that is null outside quotes; several can be given, and none is by default. `%` and two
///   hexadecimal digits are a byte, such as `%20`. JSON refuses it, because it has a null of its own;
/// - special_numbers=off: whether NaN, inf and -inf are numbers;
/// - decimals=off: whether inferred numbers with a fraction are decimals instead of floating point numbers;
/// - duplicates=error: what to do with an object of JSON that has several members with the same name: it is a bad
///   record, or the `first` or the `last` of them counts;
/// - ragged=error: what to do with a record that has another number of fields than the first one; `pad` fills missing
///   fields at its end with nulls;
/// - on_bad=stop: what to do with a record that is not valid or has a value that does not fit; `skip` leaves it out,
///   counts it, and keeps it for millstream_columns_next_reject();
/// - threads=N: the number of threads that turn records into columns, by default that of the processors;
/// - all options of millstream_framer_csv().
///
/// `schema` is NULL or a JSON text of the columns and their types, which are not inferred then, such as
/// {"fields": [{"name": "id", "type": "int64", "nullable": false}]}.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_columns_new(
    reader: Option<Box<millstream_reader>>,
    options: *const c_char,
    schema: *const c_char,
    columns: Option<&mut MaybeUninit<Box<millstream_columns>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let reader = given(reader, "reader")?;
        let made = out(columns, "columns")?;
        // SAFETY: C lends strings for this call.
        let (options, schema) = unsafe {
            let options = if options.is_null() { "" } else { text(options, "options")? };
            (options, if schema.is_null() { None } else { Some(text(schema, "schema")?) })
        };
        let Described { records, mut options } = options.parse()?;
        if let Some(schema) = schema {
            options = options.schema(Schema::from_json(schema)?);
        }
        let reader = reader.into_core()?;
        let name = c_string(reader.name());
        let batches = Batches::of(reader, records, &options)?;
        let arrow = batches.schema().arrow().clone();
        // This cannot fail later.
        drop(export(&arrow).map_err(|error| error.with_name(batches.reader().name()))?);
        let schema = c_string(batches.schema().to_json());
        let (rows, rejected) = (AtomicU64::new(0), AtomicU64::new(0));
        let state = Mutex::new(State {
            batches: Some(batches),
            failure: None,
            rejects: VecDeque::new(),
            to_keep: KEPT_REJECTS,
        });
        let shared = Arc::new(Shared { state, schema: arrow, rows, rejected });
        made.write(Box::new(millstream_columns { shared, name, schema, raw: Vec::new() }));
        Ok(())
    })
}

/// Returns the columns and their types as the JSON text that millstream_columns_new() takes; NULL only if `columns` is
/// NULL. It is valid until the columns are freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_schema_json(columns: Option<&millstream_columns>) -> *const c_char {
    columns.map_or(std::ptr::null(), |columns| columns.schema.as_ptr())
}

/// Returns the name of the source in error messages; NULL only if `columns` is NULL. It is valid until the columns are
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_name(columns: Option<&millstream_columns>) -> *const c_char {
    columns.map_or(std::ptr::null(), |columns| columns.name.as_ptr())
}

/// Writes the type of all batches to `schema`: a struct whose children are the columns. The caller releases it.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_schema(
    columns: Option<&millstream_columns>,
    schema: Option<&mut MaybeUninit<ArrowSchema>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(schema, "schema")?;
        to.write(export(&given(columns, "columns")?.shared.schema)?);
        Ok(())
    })
}

/// Writes the next batch to `batch`, which has at least one row, unless many bad records precede it. The caller releases
/// it; it stays valid after the columns are freed. At the end, its `release` is NULL. The rows before a bad record or an
/// error of the source come first; after the error the columns are at their end, except that the next call continues
/// after MILLSTREAM_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_next(
    columns: Option<&mut millstream_columns>,
    batch: Option<&mut MaybeUninit<ArrowArray>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(batch, "batch")?;
        if let Some(next) = given(columns, "columns")?.shared.next()? {
            to.write(ArrowArray::new(&StructArray::from(next).to_data()));
        }
        Ok(())
    })
}

/// Writes a stream of the batches that were not read yet to `stream`. Its consumer releases it, before or after the
/// columns are freed. Both read the same records. After its get_next() has failed, get_last_error() returns the
/// message, and millstream_columns_failure() the error.
///
/// Calls on the stream and on the columns may run at the same time: each waits until the other has returned.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_stream(
    columns: Option<&millstream_columns>,
    stream: Option<&mut MaybeUninit<ArrowArrayStream>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(stream, "stream")?;
        let shared = given(columns, "columns")?.shared.clone();
        to.write(ArrowArrayStream::new(Box::new(Stream(shared))));
        Ok(())
    })
}

/// Fails with the last error that a stream of these columns has reported, if this function has not returned it yet.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_failure(
    columns: Option<&millstream_columns>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || match given(columns, "columns")?.shared.lock()?.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(()),
    })
}

/// Returns the numbers of rows that were delivered and of bad records that were left out so far.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_counts(
    columns: Option<&millstream_columns>,
    rows: Option<&mut MaybeUninit<u64>>,
    rejected: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (rows, rejected) = (out(rows, "rows")?, out(rejected, "rejected")?);
        let shared = &given(columns, "columns")?.shared;
        rows.write(shared.rows.load(Ordering::Relaxed));
        rejected.write(shared.rejected.load(Ordering::Relaxed));
        Ok(())
    })
}

/// Takes the next bad record that was left out, of the first 1,000 that were; batches and streams add them. The reason
/// is written to `reason`, with the place; the caller frees it with millstream_error_free(). `raw` and `raw_len` are the
/// bytes of the record without its line end, valid until the next call of this function or until the columns are freed.
/// If there is none at the moment, `reason` and `raw` are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_next_reject(
    columns: Option<&mut millstream_columns>,
    reason: Option<&mut MaybeUninit<Box<millstream_error>>>,
    raw: Option<&mut MaybeUninit<*const c_char>>,
    raw_len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (reason, raw, raw_len) = (out(reason, "reason")?, out(raw, "raw")?, out(raw_len, "raw_len")?);
        let columns = given(columns, "columns")?;
        let next = columns.shared.lock()?.rejects.pop_front();
        if let Some(next) = next {
            columns.raw = next.raw;
            raw.write(lend(&columns.raw));
            raw_len.write(columns.raw.len());
            reason.write(Box::new(millstream_error::new(next.error)));
        }
        Ok(())
    })
}

/// Closes the columns and their streams, as millstream_reader_close() closes a reader: a command that still runs is
/// stopped. Batches stay valid, and the columns must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_close(
    columns: Option<&mut millstream_columns>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let columns = given(columns, "columns")?;
        let batches = columns.shared.lock()?.batches.take();
        match batches {
            Some(batches) => batches.into_reader().close().map(drop),
            None => Err(Error::new(ErrorKind::Closed).with_name(columns.name.to_string_lossy())),
        }
    })
}

/// Frees columns, and their reader once their streams are released. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_columns_free(columns: Option<Box<millstream_columns>>) {
    free(columns);
}
