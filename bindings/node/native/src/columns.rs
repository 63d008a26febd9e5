//! The thread that turns the records of a reader into columns, and its interface for JavaScript.
//!
//! ```text
//!    filler ──blocks──► core reader ──batches──► IPC writer ──[chunk]──► memory of JavaScript's
//!                                  thread                channel         JavaScript's thread
//! ```
//!
//! The chunks together are one stream of Arrow's IPC format: the schema, a message for each batch, and the end, which
//! means that the source succeeded. At most two of them are ahead of JavaScript, which never waits.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, OnceLock};

use arrow_ipc::writer::StreamWriter;
use millstream::{Error, ErrorKind, ReadAhead, Reader, ReaderBuilder};
use millstream_columns::{Batches, Described, Infer, KEPT_REJECTS, Reject, Schema};
use napi::bindgen_prelude::{Buffer, BufferSlice, Function};
use napi_derive::napi;

use crate::error::Failure;
use crate::filler::Shared;
use crate::reader::NativeReader;
use crate::wake::waking;

/// What the columns are. TypeScript has checked the options.
#[napi(object, object_to_js = false)]
pub struct ColumnsOptions {
    /// The records and their options, as C describes them.
    pub text: String,
    /// The columns, as JSON.
    pub schema: Option<String>,
    /// The name of the source in messages.
    pub name: String,
    pub record_limit: f64,
    pub expect_records: Option<f64>,
}

/// A record that was left out.
#[napi(object, object_from_js = false)]
pub struct LeftOut {
    pub failure: Failure,
    pub raw: Buffer,
}

/// A part of the stream, and what was counted up to its end.
struct Chunk {
    bytes: Vec<u8>,
    rows: u64,
    rejected: u64,
    rejects: Vec<Reject>,
}

/// A part of the stream, or its end after the last part.
type Next = Result<Chunk, Option<Error>>;

/// What the thread and JavaScript share.
#[derive(Default)]
struct Outside {
    /// The columns as JSON, once they are known.
    schema: OnceLock<String>,
    is_gone: AtomicBool,
}

/// What JavaScript has received.
#[derive(Default)]
struct Received {
    front: Option<Vec<u8>>,
    rows: u64,
    rejected: u64,
    rejects: Vec<Reject>,
    /// After the last chunk, the end or the error.
    outcome: Option<Option<Error>>,
}

/// Columns that a thread makes.
#[napi]
pub struct NativeRecordColumns {
    outside: Arc<Outside>,
    source: Arc<Shared>,
    /// `None` once stopped.
    chunks: RefCell<Option<Receiver<Next>>>,
    received: RefCell<Received>,
}

#[napi]
impl NativeRecordColumns {
    /// Returns why these options are refused, if they are.
    #[napi]
    pub fn refusal(text: String, schema: Option<String>) -> Option<Failure> {
        let described = text.parse::<Described>().map(drop);
        described
            .and_then(|()| schema.map_or(Ok(()), |schema| Schema::from_json(&schema).map(drop)))
            .err()
            .as_ref()
            .map(Failure::from)
    }

    /// Starts the thread, which takes all data of the reader. `wake` is called when there is a chunk or an outcome, and
    /// when the thread ends.
    #[napi(factory)]
    pub fn start(
        reader: &NativeReader,
        options: ColumnsOptions,
        wake: Function<(), ()>,
    ) -> napi::Result<NativeRecordColumns> {
        let wake = waking(wake)?;
        let (sender, chunks) = sync_channel(1);
        let outside = Arc::new(Outside::default());
        let source = reader.shared.clone();
        let (shared, filler) = (outside.clone(), source.clone());
        std::thread::Builder::new().name("millstream".to_owned()).spawn(move || {
            let send = |next| {
                let is_wanted = SyncSender::send(&sender, next).is_ok();
                wake();
                is_wanted
            };
            let made = catch_unwind(AssertUnwindSafe(|| make(&filler, &options, &shared.schema, &send)));
            let made =
                made.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal).with_found("a thread that panicked")));
            if made.is_err() {
                // Nothing is read after it.
                filler.stop();
            }
            send(Err(made.err()));
            shared.is_gone.store(true, Ordering::Release);
            wake();
        })?;
        Ok(NativeRecordColumns { outside, source, chunks: RefCell::new(Some(chunks)), received: RefCell::default() })
    }

    /// Returns the size of the next chunk, 0 if there is none yet, or -1 if there is an outcome.
    #[napi]
    pub fn front(&self) -> f64 {
        let received = &mut *self.received.borrow_mut();
        while received.front.is_none() && received.outcome.is_none() {
            match self.chunks.borrow().as_ref().map_or(Err(TryRecvError::Disconnected), Receiver::try_recv) {
                Ok(Ok(Chunk { bytes, rows, rejected, rejects })) => {
                    received.front = (!bytes.is_empty()).then_some(bytes);
                    (received.rows, received.rejected) = (rows, rejected);
                    received.rejects.extend(rejects);
                }
                Ok(Err(outcome)) => received.outcome = Some(outcome),
                Err(TryRecvError::Empty) => return 0.0,
                Err(TryRecvError::Disconnected) => received.outcome = Some(None),
            }
        }
        received.front.as_ref().map_or(-1.0, |bytes| bytes.len() as f64)
    }

    /// Copies that chunk into memory of its size. Returns false and copies nothing if the size differs.
    #[napi]
    pub fn take(&self, mut target: BufferSlice) -> bool {
        let Some(bytes) = self.received.borrow_mut().front.take_if(|bytes| bytes.len() == target.len()) else {
            return false;
        };
        target.copy_from_slice(&bytes);
        true
    }

    /// Returns the columns as JSON once they are known.
    #[napi]
    pub fn schema(&self) -> Option<String> {
        self.outside.schema.get().cloned()
    }

    /// Returns the numbers of rows and of records that were left out, up to the end of the last chunk.
    #[napi]
    pub fn counts(&self) -> Vec<f64> {
        let received = self.received.borrow();
        vec![received.rows as f64, received.rejected as f64]
    }

    /// Takes the records that were left out since the last call.
    #[napi]
    pub fn rejects(&self) -> Vec<LeftOut> {
        let rejects = std::mem::take(&mut self.received.borrow_mut().rejects);
        let left_out = |Reject { error, raw }| LeftOut { failure: Failure::with_place(&error), raw: raw.into() };
        rejects.into_iter().map(left_out).collect()
    }

    /// Returns the error, if there is an outcome.
    #[napi]
    pub fn failure(&self) -> Option<Failure> {
        self.received.borrow().outcome.as_ref()?.as_ref().map(Failure::with_place)
    }

    /// Requests that the source is closed and that the thread ends.
    #[napi]
    pub fn stop(&self) {
        self.chunks.take();
        self.source.stop();
    }

    /// Whether the thread has ended.
    #[napi]
    pub fn is_gone(&self) -> bool {
        self.outside.is_gone.load(Ordering::Acquire)
    }
}

/// Stops the thread. An environment that ends, such as a worker's, drops all columns.
impl Drop for NativeRecordColumns {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread's function: passes on all chunks, until `send` returns false because they are not needed.
fn make(
    filler: &Arc<Shared>,
    options: &ColumnsOptions,
    known: &OnceLock<String>,
    send: &impl Fn(Next) -> bool,
) -> Result<(), Error> {
    let reading = |builder: ReaderBuilder| {
        let builder = builder.record_limit(options.record_limit as usize).name(&*options.name);
        match options.expect_records {
            Some(count) => builder.expect_records(count as u64),
            None => builder,
        }
    };
    let Described { records, options: mut how } = options.text.parse()?;
    if let Some(schema) = &options.schema {
        how = how.schema(Schema::from_json(schema)?);
    }
    let mut reader = reading(Reader::builder().read_ahead(ReadAhead::Off)).callback(filler.bytes())?;
    if how.reads_twice() {
        match filler.version() {
            // The other thread reads for the first time, and this one for the second time.
            Some(version) => {
                let version = version?.with(reading);
                let schema = Batches::infer([Ok(reader)], &records, &how)?;
                how = how.schema(schema);
                reader = version.open()?;
            }
            // Reading reports why the source could not be opened.
            None => how = how.infer(Infer::Off),
        }
    }
    let mut batches = Batches::of(reader, records, &how)?;
    let schema = batches.schema().clone();
    known.get_or_init(|| schema.to_json());
    let mut writer = StreamWriter::try_new(Vec::new(), schema.arrow()).map_err(unwritten)?;
    let head = std::mem::take(writer.get_mut());
    let mut is_wanted = send(Ok(Chunk { bytes: head, rows: 0, rejected: 0, rejects: Vec::new() }));
    let mut kept = 0;
    while is_wanted {
        let next = batches.next_batch();
        match &next {
            Ok(Some(batch)) => writer.write(batch),
            Ok(None) => writer.finish(),
            Err(_) => Ok(()),
        }
        .map_err(unwritten)?;
        let bytes = std::mem::take(writer.get_mut());
        let mut rejects = batches.take_rejects();
        rejects.truncate(KEPT_REJECTS - kept);
        kept += rejects.len();
        is_wanted = send(Ok(Chunk { bytes, rows: batches.rows(), rejected: batches.rejected(), rejects }));
        match next {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => return Err(schema.advise(error, "onBad to \"skip\"")),
        }
    }
    Ok(())
}

/// The error of columns that the format cannot express.
fn unwritten(error: arrow_schema::ArrowError) -> Error {
    Error::new(ErrorKind::Internal).with_found(error.to_string())
}
