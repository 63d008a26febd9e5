//! The reader for Python.
//!
//! Buffered data is taken while holding the interpreter lock; everything else is done without it. A reader serves one
//! call at a time: a call from another thread raises an exception and never waits.

mod json;
#[allow(unsafe_code)] // a type for C
mod lines;
mod rows;

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream::frame::{Csv, CsvRagged, Delimiter, Framer as CoreFramer, Lines};

use millstream::splits::Framing;
use millstream::{Command, CommandEnd, Error, ErrorKind, Position, Reader as CoreReader, ReaderBuilder, Remote, Waits};
use parking_lot::{Mutex, MutexGuard};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PySlice, PyString, PyType};

use crate::batch::{Batch, Loose};
use crate::columns::{self, Growing, Layout, Table};
use crate::command::{self, duplicate};
use crate::error;
use crate::foreign::{self, Function, Functions};
use crate::framer::{Framer, Spec, Words};
use crate::memory::Block;
use crate::number::Whole;
use crate::options::{Items, Options, take};
use crate::record::{Encoding, Place};
use crate::remote::{self, Location};
use crate::splits::Split;
use crate::wait::{Deadline, Patience, Token, once, unclosed};
pub use json::JsonRecords;
use json::Values;
use rows::{Pending, Rows};

/// Reads a source record by record, as `bytes`, or as `str` if an encoding is given.
///
/// A reader is created by a function: `open`, `open_split`, `command`, `pipeline`, `shell`, `stdin`, `tcp`, `from_bytes`,
/// `from_fd`, `from_file`, `from_callback`. Records are lines by default. As `bytes`, lines have no line ends. As `str`, the
/// iteration yields lines with their line ends, like a Python text file with `newline=""`, so that `csv.reader` and
/// others find the line feeds inside quotes; `keep_delimiter=False` removes the line ends. Records in batches and pipes
/// have no line ends.
///
/// A reader is also a file: without an encoding in binary mode (an `io.BufferedIOBase`), with an encoding in text mode
/// (an `io.TextIOBase`). Its `readline` keeps the line feeds, as in files; the iteration does not. Every call continues
/// where the previous call ended, even if that was another method.
///
/// One call at a time: a call from another thread raises `InUse`.
#[pyclass(frozen, subclass, weakref, generic, module = "millstream")]
pub struct Reader {
    state: Mutex<State>,
    token: Token,
    encoding: Encoding,
    items: Items,
    /// The framer, if it finds records of CSV.
    csv: Option<Csv>,
    /// How values of JSON are found, if records are JSON.
    json: Option<JsonRecords>,
    /// Whether commands are running until the end.
    is_command: bool,
    /// Whether an error has been reported; then dropping the reader reports none.
    has_failed: AtomicBool,
    name: Arc<str>,
    functions: Functions,
}

/// A reader of bytes: a file in binary mode.
#[pyclass(frozen, extends = Reader, generic, module = "millstream._native")]
pub struct BinaryReader;

/// A reader of text: a file in text mode.
#[pyclass(frozen, extends = Reader, generic, module = "millstream._native")]
pub struct TextReader;

struct State {
    /// `None` after the reader is closed.
    reader: Option<CoreReader>,
    framer: Box<dyn CoreFramer + Send>,
    ends: Vec<CommandEnd>,
    /// Python's decoder of a number of characters, and the offset up to which it has decoded.
    decoder: Option<(Py<PyAny>, u64)>,
    /// The batch of an iterator over the rows of CSV or the values of JSON. Every other call makes its unused records unread again.
    rows: Option<Pending>,
    /// The header of CSV, once it has been read.
    header: Option<Vec<Py<PyAny>>>,
}

/// An open reader, for one call.
struct Open<'a>(MutexGuard<'a, State>);

/// The reader and its framer as separate borrows.
fn parts(state: &mut State) -> Option<(&mut CoreReader, &mut (dyn CoreFramer + Send))> {
    Some((state.reader.as_mut()?, &mut *state.framer))
}

impl Deref for Open<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Open<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

impl Reader {
    /// Returns up to `max` records, as many as are available, or `None` at the end.
    pub fn next_loose(&self, py: Python<'_>, max: usize) -> PyResult<Option<Loose>> {
        let mut state = self.enter(py)?;
        self.wait(py, &mut state, |reader, framer| Ok(reader.next_batch_of(framer, max)?.map(Loose::from)))
    }

    fn new_rows(slf: Py<Reader>, py: Python<'_>, has_header: bool, ragged: &str) -> PyResult<Rows> {
        let Some(csv) = slf.get().csv.clone() else {
            return Err(error::refuse(py, "rows of records that are not CSV", "a reader with framer=Framer.csv()"));
        };
        let choices = [("error", CsvRagged::Error), ("pad", CsvRagged::Pad), ("collect", CsvRagged::Collect)];
        let ragged = error::choose(py, "ragged", ragged, &choices)?;
        Ok(Rows::new(slf, csv, has_header, ragged))
    }

    /// Opens a source. `open` is called again after it was interrupted by a signal.
    pub fn open(
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        mut open: impl FnMut(ReaderBuilder) -> Result<CoreReader, Error> + Send,
    ) -> PyResult<Reader> {
        Reader::open_by(py, keywords, |token, options| token.wait(py, || open(options.builder().cancel(token.core()))))
    }

    /// Opens an object.
    pub fn open_object(py: Python<'_>, keywords: &Bound<'_, PyDict>, remote: Remote) -> PyResult<Reader> {
        Reader::open_by(py, keywords, |token, options| {
            token.once(py, || {
                remote::check_process(|| remote.name())?;
                options.builder().cancel(token.core()).url(remote)
            })
        })
    }

    /// Opens a source by a function that handles signals.
    fn open_by(
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        open: impl FnOnce(&Token, &Options) -> PyResult<Result<CoreReader, Error>>,
    ) -> PyResult<Reader> {
        let options = Options::new(py, keywords)?;
        let mut token = Token::new();
        let framer = options.framer.build().map_err(|error| error::raise(py, &error))?;
        let opened = open(&token, &options)?;
        let reader = opened.map_err(|error| error::raise(py, &error))?;
        let handle = reader.progress_handle();
        token.limit(
            options.stall_timeout.map(|limit| Patience { limit, progress: Box::new(move || handle.source_bytes()) }),
        );
        Ok(Reader {
            token,
            functions: options.functions(),
            encoding: options.encoding,
            items: options.items,
            csv: options.framer.csv(),
            json: match options.framer.json_lines() {
                _ if options.has_elements => Some(JsonRecords::Elements),
                lines => lines.map(JsonRecords::Lines),
            },
            is_command: false,
            has_failed: AtomicBool::new(false),
            name: reader.name().into(),
            state: Mutex::new(State {
                reader: Some(reader),
                framer,
                ends: Vec::new(),
                decoder: None,
                rows: None,
                header: None,
            }),
        })
    }

    /// The object of the class that belongs to its records.
    fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let is_text = self.encoding.is_text();
        let base = PyClassInitializer::from(self);
        Ok(match is_text {
            true => Py::new(py, base.add_subclass(TextReader))?.into_any(),
            false => Py::new(py, base.add_subclass(BinaryReader))?.into_any(),
        })
    }

    /// Starts commands and reads the output of the last one.
    fn run(py: Python<'_>, keywords: &Bound<'_, PyDict>, commands: Vec<Command>) -> PyResult<Py<PyAny>> {
        // Starting a command does not wait, so no signal can interrupt it.
        let mut commands = Some(commands);
        let mut reader = Reader::open(py, keywords, |builder| builder.pipeline(commands.take().unwrap_or_default()))?;
        reader.is_command = true;
        reader.into_object(py)
    }

    /// The reader, unless it is in use or closed.
    fn enter(&self, py: Python<'_>) -> PyResult<Open<'_>> {
        let state = self.state(py)?;
        match state.reader {
            Some(_) => Ok(Open(state)),
            None => Err(error::closed(py, &self.name)),
        }
    }

    #[inline]
    fn state(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        let mut state = self.state_of_rows(py)?;
        if let Some(rows) = state.rows.take()
            && let Some(reader) = &mut state.reader
        {
            let given_back = reader.give_back(rows.left());
            debug_assert!(given_back.is_ok(), "the reader was used after its batch");
        }
        Ok(state)
    }

    /// The state for an iterator over rows, which uses the records of its batch.
    #[inline]
    fn state_of_rows(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        // After a panic the reader is still usable, because it tracks its own state.
        self.state.try_lock().ok_or_else(|| error::in_use(py, &self.name))
    }

    /// Passes on the next line, if it is in the buffer and the reader is not in use.
    #[inline]
    pub fn take_buffered<T>(&self, work: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.state.try_lock()?.reader.as_mut()?.buffered_line().map(work)
    }

    /// Runs a function that may wait for the source.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        state: &mut State,
        mut work: impl FnMut(&mut CoreReader, &mut (dyn CoreFramer + Send)) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = self.token.wait(py, || match parts(state) {
            Some((reader, framer)) => work(reader, framer),
            None => Err(Error::new(ErrorKind::Closed)),
        });
        self.has_failed.fetch_or(!matches!(done, Ok(Ok(_))), Ordering::Relaxed);
        done?.map_err(|error| error::raise(py, &error.with_name(&*self.name)))
    }

    /// Runs long work in slices.
    fn slices<T: Send>(
        &self,
        py: Python<'_>,
        slice: impl FnMut(Deadline) -> Result<Option<T>, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        let done = self.token.slices(py, slice);
        self.has_failed.fetch_or(!matches!(done, Ok(Ok(_))), Ordering::Relaxed);
        done
    }

    /// Returns the next record if it is in the buffer.
    #[inline]
    fn buffered_record<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((reader, framer)) = parts(state) else { return Ok(None) };
        match self.items {
            Items::Lines => self.buffered(py, reader, 0, CoreReader::buffered_line),
            Items::WholeLines => self.buffered(py, reader, 0, CoreReader::buffered_line_raw),
            Items::Records => {
                let head = framer.trim().head;
                self.buffered(py, reader, head, |reader| reader.buffered_frame(framer))
            }
        }
    }

    /// Returns what `take` finds in the buffer. `head` bytes before it are not its content.
    #[inline]
    fn buffered<'py>(
        &self,
        py: Python<'py>,
        reader: &mut CoreReader,
        head: u32,
        take: impl for<'r> FnOnce(&'r mut CoreReader) -> Option<&'r [u8]>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let position = reader.position();
        let Some(record) = take(reader) else { return Ok(None) };
        let cause = match self.encoding.decode(py, record) {
            Ok(object) => return Ok(Some(object)),
            Err(cause) => cause,
        };
        let record = record.to_vec();
        Err(self.bad_record(py, reader, &record, position, head, cause))
    }

    /// Returns the exception for the last record, which is not text. It was taken at this position, and the first bytes
    /// there are not its content.
    #[cold]
    fn bad_record(
        &self,
        py: Python<'_>,
        reader: &CoreReader,
        record: &[u8],
        at: Position,
        head: u32,
        cause: PyErr,
    ) -> PyErr {
        // Only the reader knows whether the records are lines.
        let line = reader.locate(Error::new(ErrorKind::Utf8Invalid)).line();
        let offset = at.bytes + u64::from(head);
        let place = Place { name: &self.name, offset, record: Some(at.records), line };
        self.encoding.not_text(py, record, &place, cause)
    }

    /// Returns the object for a record that was taken at this position by a call that may have waited.
    fn record<'py>(
        &self,
        py: Python<'py>,
        state: &State,
        record: &[u8],
        at: Position,
        head: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.encoding.decode(py, record).map_err(|cause| match &state.reader {
            Some(reader) => self.bad_record(py, reader, record, at, head, cause),
            None => cause,
        })
    }

    /// Handles a reader that was not closed.
    fn abandon(&self, py: Python<'_>, reader: Option<CoreReader>) {
        let Some(reader) = reader else { return };
        if self.token.is_inherited() {
            return std::mem::forget(reader);
        }
        if self.is_command && !reader.has_ended() && !self.has_failed.load(Ordering::Relaxed) {
            unclosed(py, &format!("the reader of {} was not closed: its command is stopped before its end", self.name));
        }
        self.token.settle();
        // Closing may have to wait for a command to exit.
        py.detach(|| drop(reader));
    }

    /// Returns the next record if it is not in the buffer.
    #[cold]
    fn read_record<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Option<Bound<'py, PyAny>>> {
        let record = self.wait(py, state, |reader, framer| {
            let mut position = reader.position();
            let record = match self.items {
                Items::Lines => reader.next_line()?,
                Items::WholeLines => reader.next_frame(&mut Lines::untrimmed())?,
                Items::Records => reader.next_frame(framer)?,
            };
            let record = record.map(<[u8]>::to_vec);
            // If it continued after a record that was skipped, the position before is that record's.
            position.records = reader.position().records.saturating_sub(1);
            Ok(record.map(|record| (record, position)))
        })?;
        let head = if self.items == Items::Records { state.framer.trim().head } else { 0 };
        record.map(|(record, position)| self.record(py, state, &record, position, head)).transpose()
    }

    /// Returns all bytes up to the end, or `max` bytes. Data read before an error is in the exception's `partial`.
    fn read_all<'py>(&self, py: Python<'py>, state: &mut State, max: usize) -> PyResult<Bound<'py, PyBytes>> {
        let Some(reader) = &state.reader else { return Err(error::closed(py, &self.name)) };
        let mut pieces = Pieces::new(py, expected(reader, max))?;
        let mut count = 0;
        loop {
            let done = self.slices(py, |deadline| {
                let Some((reader, _)) = parts(state) else { return Err(Error::new(ErrorKind::Closed)) };
                while count < max {
                    if reader.buffer().is_empty() && reader.fill()? == 0 {
                        break;
                    }
                    let piece = &reader.buffer()[..reader.buffer().len().min(max - count)];
                    let appended = pieces.append(piece);
                    if appended == 0 {
                        return Ok(Some(false));
                    }
                    reader.consume(appended);
                    count += appended;
                    if deadline.has_passed() {
                        return Ok(None);
                    }
                }
                Ok(Some(true))
            });
            let raised = match done {
                Ok(Ok(true)) => return pieces.finish(py),
                Ok(Ok(false)) => match self.append_more(py, state, &mut pieces, max - count) {
                    Ok(appended) => {
                        count += appended;
                        continue;
                    }
                    Err(raised) => raised,
                },
                Ok(Err(error)) => error::raise(py, &error),
                Err(raised) => raised,
            };
            raised.value(py).setattr("partial", pieces.finish(py)?)?;
            return Err(raised);
        }
    }

    /// Appends bytes of the buffer to pieces that need the interpreter lock for that.
    fn append_more(&self, py: Python<'_>, state: &mut State, pieces: &mut Pieces, max: usize) -> PyResult<usize> {
        py.check_signals()?;
        let Some((reader, _)) = parts(state) else { return Err(error::closed(py, &self.name)) };
        let count = reader.buffer().len().min(max);
        pieces.append_more(py, &reader.buffer()[..count])?;
        reader.consume(count);
        Ok(count)
    }

    /// Fills the buffer, with at most this many reads.
    fn read_into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, mut reads: usize) -> PyResult<usize> {
        let mut state = self.enter(py)?;
        self.refuse_text(py, "readinto")?;
        let space = PyMemoryView::from(buffer)?.call_method1("cast", ("B",))?;
        let (len, mut done) = (space.len()?, 0);
        while done < len && reads > 0 {
            let piece = self.read_piece(py, &mut state, |buffer| buffer.len().min(len - done).min(256 << 10))?;
            if piece.as_bytes().is_empty() {
                break;
            }
            let end = done + piece.as_bytes().len();
            space.set_item(PySlice::new(py, isize::try_from(done)?, isize::try_from(end)?, 1), piece)?;
            (done, reads) = (end, reads - 1);
        }
        Ok(done)
    }

    /// Fails if the records are text: then no method has bytes.
    fn refuse_text(&self, py: Python<'_>, method: &str) -> PyResult<()> {
        match self.encoding.is_text() {
            true => unsupported(py, &format!("{method} of a reader with an encoding, which reads text")),
            false => Ok(()),
        }
    }

    /// Returns up to this many characters, in text up to the end of the line if that comes before.
    fn read_text<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        max: usize,
        to_line_end: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(reader) = &mut state.reader else { return Err(error::closed(py, &self.name)) };
        if matches!(self.encoding, Encoding::Utf8) && reader.buffer().len() >= max {
            let mut piece = &reader.buffer()[..max];
            if to_line_end && let Some(end) = memchr::memchr(b'\n', piece) {
                piece = &piece[..=end];
            }
            if piece.is_ascii() {
                let text = PyString::from_bytes(py, piece)?;
                let count = piece.len();
                reader.consume(count);
                return Ok(text.into_any());
            }
        }
        let decoder = match state.decoder.take().filter(|(_, offset)| *offset == reader.position().bytes) {
            Some((decoder, _)) => decoder.into_bound(py),
            None => self.encoding.decoder(py)?,
        };
        // `held` bytes in front of the buffer may be part of a character.
        let (mut text, mut count, mut held) = (PyString::new(py, "").into_any(), 0, 0);
        while count < max {
            let is_end = match &state.reader {
                Some(reader) if reader.buffer().len() <= held => self.wait(py, state, |reader, _| reader.fill())? == 0,
                _ => false,
            };
            let Some(reader) = &mut state.reader else { return Err(error::closed(py, &self.name)) };
            // A character has at least one byte, so these bytes have at most as many characters as are missing.
            let piece = &reader.buffer()[..reader.buffer().len().min(held + max - count)];
            let line_end = memchr::memchr(b'\n', piece).filter(|_| to_line_end);
            let piece = PyBytes::new(py, &piece[..line_end.map_or(piece.len(), |end| end + 1)]);
            let mut len = piece.as_bytes().len();
            let mut decoded = decoder.call_method1("decode", (&piece, is_end));
            let too_many = decoded.as_ref().is_ok_and(|text| text.len().is_ok_and(|len| len > max - count));
            if too_many {
                // The bytes that were held are no character, and have been replaced by one.
                len = held;
                decoded = decoder.call_method1("decode", (PyBytes::new(py, &piece.as_bytes()[..len]), true));
            }
            let (pending, flags) = decoder.call_method0("getstate")?.extract::<(PyBackedBytes, Py<PyAny>)>()?;
            decoder.call_method1("setstate", ((PyBytes::new(py, b""), flags),))?;
            held = pending.len();
            reader.consume(len - held);
            let decoded = decoded.map_err(|cause| self.not_text(py, state, cause, |before| text.add(before)))?;
            count += decoded.len()?;
            text = text.add(decoded)?;
            if is_end || (line_end.is_some() && !too_many) {
                break;
            }
        }
        let offset = state.reader.as_ref().map_or(0, |reader| reader.position().bytes);
        state.decoder = Some((decoder.unbind(), offset));
        Ok(text)
    }

    /// Takes as many bytes of the buffer as `count` returns for it, after a read if it is empty. None are the end.
    fn read_piece<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        count: impl FnOnce(&[u8]) -> usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if state.reader.as_ref().is_some_and(|reader| reader.buffer().is_empty()) {
            self.wait(py, state, |reader, _| reader.fill())?;
        }
        let Some(reader) = &mut state.reader else { return Err(error::closed(py, &self.name)) };
        let count = count(reader.buffer());
        let piece = PyBytes::new(py, &reader.buffer()[..count]);
        reader.consume(count);
        Ok(piece)
    }

    /// The exception for bytes, up to the current position, that a decoder of Python has refused. The text before them
    /// is its `partial`.
    fn not_text<'py>(
        &self,
        py: Python<'py>,
        state: &State,
        cause: PyErr,
        partial: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyErr {
        let described = || -> PyResult<PyErr> {
            let bytes = cause.value(py).getattr("object")?.cast_into::<PyBytes>()?;
            let end = state.reader.as_ref().map_or(0, |reader| reader.position().bytes);
            let place =
                Place { name: &self.name, offset: end - bytes.as_bytes().len() as u64, record: None, line: None };
            let raised = self.encoding.not_text(py, bytes.as_bytes(), &place, cause.clone_ref(py));
            let start: usize = cause.value(py).getattr("start")?.extract()?;
            let before = self.encoding.decode(py, &bytes.as_bytes()[..start])?;
            raised.value(py).setattr("partial", partial(before)?)?;
            Ok(raised)
        };
        described().unwrap_or(cause)
    }

    /// Returns all text up to the end.
    fn read_all_text<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Bound<'py, PyAny>> {
        let decode = |bytes: &Bound<'py, PyBytes>| self.encoding.decode(py, bytes.as_bytes());
        match self.read_all(py, state, usize::MAX) {
            Ok(bytes) => decode(&bytes).map_err(|cause| self.not_text(py, state, cause, Ok)),
            Err(raised) => {
                // The bytes may end inside a character.
                let bytes = raised.value(py).getattr("partial")?.cast_into::<PyBytes>()?;
                let text = decode(&bytes).or_else(|cause| {
                    let start: usize = cause.value(py).getattr("start")?.extract()?;
                    self.encoding.decode(py, &bytes.as_bytes()[..start])
                })?;
                raised.value(py).setattr("partial", text)?;
                Err(raised)
            }
        }
    }

    /// Returns the bytes up to the delimiter of this framer, including it, or what is left of them; text if the records
    /// are text.
    fn read_frame<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        framer: &mut (dyn CoreFramer + Send),
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(found) = self.buffered_frame(py, state, framer)? {
            return Ok(found);
        }
        let (record, position) = self.wait(py, state, |reader, _| {
            let position = reader.position();
            Ok((reader.next_frame(framer)?.map(<[u8]>::to_vec), position))
        })?;
        self.record(py, state, &record.unwrap_or_default(), position, 0)
    }

    fn buffered_frame<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        framer: &mut (dyn CoreFramer + Send),
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((reader, _)) = parts(state) else { return Err(error::closed(py, &self.name)) };
        self.buffered(py, reader, 0, |reader| reader.buffered_frame(framer))
    }

    /// Takes the core's reader, for code that continues reading by itself. This object is closed then.
    pub fn take(&self, py: Python<'_>) -> PyResult<CoreReader> {
        let mut state = self.enter(py)?;
        state.reader.take().ok_or_else(|| error::closed(py, &self.name))
    }

    /// Runs a function that may wait for the source of a taken reader. Signals and the reader's time limit interrupt
    /// the wait.
    pub fn watch<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnMut() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        self.token.wait(py, work)
    }

    /// The framer, if it finds records of CSV.
    pub fn csv(&self) -> Option<Csv> {
        self.csv.clone()
    }

    /// How values of JSON are found, if records are JSON.
    pub fn json_records(&self) -> Option<&JsonRecords> {
        self.json.as_ref()
    }

    /// Runs a function that cannot continue after an interrupted wait, for a taken reader.
    pub fn once<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> PyResult<Result<T, Error>> {
        once(py, self.token.core(), work)
    }

    fn close_state(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        let Some(mut reader) = state.reader.take() else { return Ok(()) };
        if self.token.is_inherited() {
            // The commands belong to another process, so they must not be stopped here.
            std::mem::forget(reader);
            return Ok(());
        }
        // The token is reset, because the commands must be waited for. This takes about two seconds.
        self.token.settle();
        let closed = py.detach(|| reader.try_close());
        state.ends = reader.command_ends().to_vec();
        py.detach(|| drop(reader));
        closed.map_err(|error| error::raise(py, &error))
    }
}

#[pymethods]
impl Reader {
    #[staticmethod]
    #[pyo3(signature = (path, **options))]
    fn path(py: Python<'_>, path: Location, options: Option<Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let mapped = take(&options, "mapped")?.unwrap_or(false);
        let reader = match path {
            Location::Object(remote) if !mapped => Reader::open_object(py, &options, remote)?,
            path => {
                let path = path.file(py, "mapped")?;
                Reader::open(py, &options, |builder| if mapped { builder.mapped(&path) } else { builder.path(&path) })?
            }
        };
        reader.into_object(py)
    }

    #[staticmethod]
    #[pyo3(signature = (split, **options))]
    fn split(py: Python<'_>, split: &Bound<'_, Split>, options: Option<Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let (split, options) = (&split.get().0, options.unwrap_or_else(|| PyDict::new(py)));
        let is_given = |key| options.get_item(key).map(|value| value.is_some_and(|value| !value.is_none()));
        if !is_given("framer")? && !is_given("delimiter")? {
            match Spec::try_from(split.framing()).map_err(|error| error::raise(py, &error))? {
                Spec::Lines { .. } => {}
                // So `keep_delimiter` applies to it.
                Spec::Delimiter { bytes, .. } => options.set_item("delimiter", PyBytes::new(py, &bytes))?,
                spec => options.set_item("framer", Framer { spec })?,
            }
        }
        // Finding the first record may take long, and would start again after each signal.
        let mut reader = Reader::open_by(py, &options, |token, options| {
            let open = || {
                if split.url().is_some() {
                    remote::check_process(|| split.name())?;
                }
                options.builder().cancel(token.core()).split(split)
            };
            once(py, token.core(), open)
        })?;
        if matches!(split.framing(), Framing::JsonElements { .. }) {
            reader.json = Some(JsonRecords::Elements);
        }
        reader.into_object(py)
    }

    #[staticmethod]
    #[pyo3(signature = (argvs, **options))]
    fn commands(
        py: Python<'_>,
        argvs: Vec<Vec<std::ffi::OsString>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let mut commands = Vec::with_capacity(argvs.len());
        let shared = options.copy()?;
        for argv in argvs {
            // Each command gets all of these options; the remaining ones are the reader's.
            shared.update(options.as_mapping())?;
            commands.push(command::command(py, command::Words::Argv(argv), &shared)?);
            // It is that of the first command.
            take::<Py<PyAny>>(&options, "stdin")?;
        }
        Reader::run(py, &shared, commands)
    }

    #[staticmethod]
    #[pyo3(signature = (line, **options))]
    fn shell(py: Python<'_>, line: std::ffi::OsString, options: Option<Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let command = command::command(py, command::Words::Shell(line), &options)?;
        Reader::run(py, &options, vec![command])
    }

    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn stdin(py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        Reader::open(py, &options, ReaderBuilder::stdin)?.into_object(py)
    }

    #[staticmethod]
    #[pyo3(signature = (fd, **options))]
    fn fd(py: Python<'_>, fd: Whole<RawFd>, options: Option<Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let (fd, options) = (fd.0, options.unwrap_or_else(|| PyDict::new(py)));
        let owned = duplicate(py, fd)?;
        Reader::open(py, &options, |builder| builder.duplicate_of(fd, owned.try_clone()?))?.into_object(py)
    }

    #[staticmethod]
    #[pyo3(signature = (memory, **options))]
    fn memory(py: Python<'_>, memory: foreign::Bytes, options: Option<Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let mut memory = Some(memory);
        Reader::open(py, &options, |builder| match memory.take() {
            Some(memory) => builder.memory(memory),
            None => Err(Error::new(ErrorKind::Internal)),
        })?
        .into_object(py)
    }

    #[staticmethod]
    #[pyo3(signature = (read, **options))]
    fn callback(py: Python<'_>, read: Py<PyAny>, options: Option<Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let read = Function::new(py, read)?;
        let mut source = Some(foreign::source(read.clone()));
        let mut reader = Reader::open(py, &options, |builder| match source.take() {
            Some(source) => builder.callback(source),
            None => Err(Error::new(ErrorKind::Internal)),
        })?;
        reader.functions.add(&read);
        reader.into_object(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __clear__(&self) {
        self.functions.clear();
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        match (&slf.get().encoding, slf.get().items) {
            (Encoding::Bytes, Items::Lines) => lines::iterate(slf),
            _ => Ok(slf.into_any()),
        }
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.state(py)?;
        if state.reader.is_none() {
            return Err(error::closed(py, &self.name));
        }
        match self.buffered_record(py, &mut state)? {
            None => self.read_record(py, &mut state),
            record => Ok(record),
        }
    }

    /// Returns an iterator over the records that are in the buffer, which never waits.
    fn _buffered(slf: Py<Self>) -> Buffered {
        Buffered(slf)
    }

    /// Does what happens when the last reference is dropped, but now.
    fn _drop(&self, py: Python<'_>) -> PyResult<()> {
        let reader = self.state(py)?.reader.take();
        self.abandon(py, reader);
        Ok(())
    }

    /// The next records, as many as are available, as a `Batch`; `None` at the end.
    #[pyo3(signature = (max_records = None))]
    fn next_batch(&self, py: Python<'_>, max_records: Option<Whole<usize>>) -> PyResult<Option<Batch>> {
        let batch = self.next_loose(py, at_most(py, max_records)?)?;
        batch.map(|batch| batch.into_batch(py, self.encoding.clone(), self.name.clone())).transpose()
    }

    /// An iterator over the results of `next_batch`.
    #[pyo3(signature = (max_records = None))]
    fn batches(slf: Py<Self>, py: Python<'_>, max_records: Option<Whole<usize>>) -> PyResult<Batches> {
        at_most(py, max_records)?;
        Ok(Batches { reader: slf, max_records })
    }

    /// An iterator over the records of CSV, each as a list of its fields, for a reader with `Framer.csv`. Blank lines and
    /// comments are not records. Once `dicts` has read the header, rows have as many fields, and `ragged` works as in `dicts`.
    #[pyo3(signature = (*, ragged = "error"))]
    fn rows(slf: Py<Self>, py: Python<'_>, ragged: &str) -> PyResult<Rows> {
        Reader::new_rows(slf, py, false, ragged)
    }

    /// An iterator over the records of CSV, each as a dict from the header's names to its fields. The header is the first
    /// record, which the reader keeps for later iterators. A record with another number of fields is an error, after which
    /// the iterator continues with the next record. With `ragged="pad"`, fields that are missing at its end are empty; a
    /// record with more fields than the header is still an error. With `ragged="collect"`, it has them as a list with the
    /// key `None`, as in `csv.DictReader`.
    #[pyo3(signature = (*, ragged = "error"))]
    fn dicts(slf: Py<Self>, py: Python<'_>, ragged: &str) -> PyResult<Rows> {
        Reader::new_rows(slf, py, true, ragged)
    }

    /// An iterator over the records of JSON as values, for a reader with `Framer.json_lines` or `json_elements`. Blank lines
    /// are not records.
    ///
    /// `loads` gets the bytes of a record, such as `orjson.loads`: `json.loads` by default, for UTF-8. If it raises a
    /// `ValueError`, that is the cause of an error of the kind `json_invalid` with the record and its line, and the
    /// iterator continues with the next record.
    #[pyo3(signature = (loads = None))]
    fn json(slf: Py<Self>, py: Python<'_>, loads: Option<Py<PyAny>>) -> PyResult<Values> {
        let Some(records) = slf.get().json.clone() else {
            let expected = "a reader with framer=Framer.json_lines(), or with json_elements";
            return Err(error::refuse(py, "values of records that are not JSON", expected));
        };
        let loads = loads.map(|loads| Function::new(py, loads)).transpose()?;
        Ok(Values::new(slf, records, loads))
    }

    /// Counts the records up to the end, without creating them. The record limit does not apply.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let mut open = self.enter(py)?;
        let state: &mut State = &mut open;
        let records = |state: &State| state.reader.as_ref().map_or(0, |reader| reader.position().records);
        let before = records(state);
        let done = self.slices(py, |deadline| {
            let Some((reader, framer)) = parts(state) else { return Err(Error::new(ErrorKind::Closed)) };
            loop {
                let ended = match reader.next_batch(framer) {
                    Ok(batch) => batch.is_none(),
                    Err(error) if error.kind() == ErrorKind::RecordTooLong => !reader.skip_record(framer)?,
                    Err(error) => return Err(error),
                };
                if ended {
                    return Ok(Some(()));
                }
                if deadline.has_passed() {
                    return Ok(None);
                }
            }
        })?;
        done.map_err(|error| error::raise(py, &error))?;
        Ok(records(state) - before)
    }

    /// The records' fields as columns of these types, up to the end, or of `max_records`, as a `Table`.
    ///
    /// A type is `int` (64 bits), `float`, `str`, `bytes`, the name of a numpy number type (`"int32"`) or that type, and
    /// `None` for a field to ignore. A field equal to `missing` (for example `""`) is a missing value; any other field
    /// that is not of its type raises a `NumberError` or `EncodingError` with the line and column, and the column's name
    /// as `path`; the earlier rows are in its `partial`. Fields after the last column are ignored; too few are an error.
    /// Quotes have no meaning: for CSV with quotes use `millstream.columns`. `workers` threads build the columns, including
    /// this one: up to four by default.
    #[pyo3(signature = (sep, types, *, missing = None, max_records = None, workers = None))]
    fn columns(
        &self,
        py: Python<'_>,
        sep: Words,
        types: Bound<'_, PyAny>,
        missing: Option<String>,
        max_records: Option<Whole<usize>>,
        workers: Option<Whole<usize>>,
    ) -> PyResult<Table> {
        let mut open = self.enter(py)?;
        let state: &mut State = &mut open;
        let layout = Layout::new(py, sep.into_bytes(), &types, missing)?;
        if matches!(self.encoding, Encoding::Codec { .. }) && layout.has_text() {
            let (encoding, errors) = self.encoding.names();
            let found = format!("columns of str with encoding={encoding:?}, errors={errors:?}");
            return Err(error::refuse(py, found, "encoding=\"utf-8\", or columns of bytes"));
        }
        let workers = workers.map_or_else(columns::enough_workers, |Whole(workers)| workers);
        if workers == 0 {
            return Err(error::refuse(py, "workers=0", "at least 1"));
        }
        let mut table = Growing::new(layout, workers).map_err(|error| error::raise(py, &error))?;
        let max = max_records.map_or(usize::MAX, |Whole(max)| max);
        let done = self.slices(py, |deadline| {
            let Some((reader, framer)) = parts(state) else { return Err(Error::new(ErrorKind::Closed)) };
            while table.records() < max {
                let next = reader.next_batch_of(framer, max - table.records());
                let Some(batch) = next.or_else(|error| table.settle().and(Err(error)))? else { break };
                table.append(&batch)?;
                if deadline.has_passed() {
                    return Ok(None);
                }
            }
            table.settle().map(Some)
        });
        let raised = match done {
            Ok(Ok(())) => return py.detach(|| table.finish()).map_err(|error| error::raise(py, &error)),
            Ok(Err(error)) => error::raise(py, &error.with_name(&*self.name)),
            Err(raised) => raised,
        };
        // If a signal interrupted it, some blocks are still waiting.
        drop(py.detach(|| table.settle()));
        let partial = py.detach(|| table.finish()).map_err(|error| error::raise(py, &error))?;
        raised.value(py).setattr("partial", Py::new(py, partial)?)?;
        Err(raised)
    }

    /// Skips a record, however long, and returns whether there was one.
    fn skip_record(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.enter(py)?;
        self.wait(py, &mut state, |reader, framer| reader.skip_record(framer))
    }

    /// Up to `size` bytes, or characters if there is an encoding; all that are left if negative. Data read before an
    /// error is in its `partial`.
    #[pyo3(signature = (size = -1, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        let (mut state, limit) = (self.enter(py)?, limit(size));
        if self.encoding.is_text() {
            return match limit {
                usize::MAX => self.read_all_text(py, &mut state),
                limit => self.read_text(py, &mut state, limit, false),
            };
        }
        if let Some((reader, _)) = parts(&mut state)
            && let Some(bytes) = reader.buffer().get(..limit)
        {
            let bytes = PyBytes::new(py, bytes).into_any();
            reader.consume(limit);
            return Ok(bytes);
        }
        self.read_all(py, &mut state, limit).map(Bound::into_any)
    }

    /// Available bytes, after at most one read.
    #[pyo3(signature = (size = -1, /))]
    fn read1<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.enter(py)?;
        self.refuse_text(py, "read1")?;
        match limit(size) {
            0 => Ok(PyBytes::new(py, b"")),
            limit => self.read_piece(py, &mut state, |buffer| buffer.len().min(limit)),
        }
    }

    /// Fills memory, and returns how many bytes there were.
    fn readinto(&self, py: Python<'_>, buffer: Bound<'_, PyAny>) -> PyResult<usize> {
        self.read_into(py, &buffer, usize::MAX)
    }

    /// Fills memory like `readinto`, after at most one read.
    fn readinto1(&self, py: Python<'_>, buffer: Bound<'_, PyAny>) -> PyResult<usize> {
        self.read_into(py, &buffer, 1)
    }

    /// The next line with its line feed, as in files; nothing at the end. `size` limits its bytes or characters.
    #[pyo3(signature = (size = -1, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        let (mut state, limit) = (self.enter(py)?, limit(size));
        if limit != usize::MAX {
            return match self.encoding.is_text() {
                true => self.read_text(py, &mut state, limit, true),
                false => self.read_until_limit(py, &mut state, limit),
            };
        }
        let Some((reader, _)) = parts(&mut state) else { return Err(error::closed(py, &self.name)) };
        if let Some(line) = self.buffered(py, reader, 0, CoreReader::buffered_line_raw)? {
            return Ok(line);
        }
        self.read_frame(py, &mut state, &mut Lines::untrimmed())
    }

    /// Lines as a list, up to a number of bytes or characters.
    #[pyo3(signature = (hint = -1, /))]
    fn readlines<'py>(slf: &Bound<'py, Self>, hint: Option<isize>) -> PyResult<Bound<'py, PyList>> {
        let (py, limit, mut count) = (slf.py(), limit(hint), 0);
        let lines = PyList::empty(py);
        loop {
            let line = slf.get().readline(py, None).or_else(|raised| {
                raised.value(py).setattr("partial", &lines)?;
                Err(raised)
            })?;
            let len = line.len()?;
            if len == 0 {
                return Ok(lines);
            }
            lines.append(line)?;
            count += len;
            if limit != 0 && count > limit {
                return Ok(lines);
            }
        }
    }

    /// The data up to a delimiter, including it; at the end the rest, or nothing.
    #[pyo3(signature = (delimiter = Words::Byte(Whole(b'\n'))))]
    fn readuntil<'py>(&self, py: Python<'py>, delimiter: Words) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.enter(py)?;
        let framer = Delimiter::bytes(delimiter.into_bytes()).map_err(|error| error::raise(py, &error))?;
        self.read_frame(py, &mut state, &mut framer.untrimmed())
    }

    /// Returns the data up to this delimiter, including it, if it is in the buffer; this never waits.
    fn _read_buffered<'py>(&self, py: Python<'py>, delimiter: Words) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.enter(py)?;
        let framer = Delimiter::bytes(delimiter.into_bytes()).map_err(|error| error::raise(py, &error))?;
        self.buffered_frame(py, &mut state, &mut framer.untrimmed())
    }

    /// The content of the buffer, after one read if it is empty. Nothing is consumed.
    #[pyo3(signature = (size = 0, /))]
    fn peek<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let _ = size;
        let mut state = self.enter(py)?;
        self.refuse_text(py, "peek")?;
        if state.reader.as_ref().is_some_and(|reader| reader.buffer().is_empty()) {
            self.wait(py, &mut state, |reader, _| reader.fill())?;
        }
        let buffer = state.reader.as_ref().map_or(&[][..], CoreReader::buffer);
        Ok(PyBytes::new(py, &buffer[..buffer.len().min(64 << 10)]))
    }

    /// Whether the next batch requires a wait; `None` if unknown, as for a function.
    fn waits(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        let state = self.enter(py)?;
        Ok(match state.reader.as_ref().map(CoreReader::waits) {
            Some(Waits::Unknown) => None,
            waits => Some(waits == Some(Waits::Yes)),
        })
    }

    /// The file descriptor that is readable when the next batch requires no wait, if there is one.
    fn waits_for(&self, py: Python<'_>) -> PyResult<Option<RawFd>> {
        let state = self.enter(py)?;
        Ok(state.reader.as_ref().and_then(CoreReader::waits_for).map(|fd| fd.as_raw_fd()))
    }

    /// The bytes that end a record when it is written again.
    #[getter]
    fn terminator<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.enter(py)?.framer.terminator()))
    }

    /// Ends a wait of another thread, which raises `Cancelled`; if no thread waits, the next call does.
    fn cancel(&self) {
        self.token.cancel();
    }

    /// Ends the reading at the current position, and stops its commands: within two seconds. An error that ended the
    /// reading is raised again, unless a time limit caused it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state(py)?;
        self.close_state(py, &mut state)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        drop(slf.get().enter(slf.py())?);
        Ok(slf)
    }

    #[pyo3(signature = (kind, value, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (kind, traceback);
        match (self.close(py), value) {
            // The exception that ended the block is raised. A failure that was reported before and has not caused it
            // becomes its context.
            (Err(failed), Some(value)) => {
                if value.getattr("__context__")?.is_none() {
                    value.setattr("__context__", failed.into_value(py))?;
                }
                Ok(())
            }
            (closed, _) => closed,
        }
    }

    /// The name of the source in error messages.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// `"rb"`, or `"r"` if there is an encoding.
    #[getter]
    fn mode(&self) -> &'static str {
        if self.encoding.is_text() { "r" } else { "rb" }
    }

    /// Whether the reader is closed.
    #[getter]
    fn closed(&self) -> bool {
        // Another thread is using the reader, so it stays open.
        self.state.try_lock().is_some_and(|state| state.reader.is_none())
    }

    /// How many bytes and records have been taken.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let state = self.enter(py)?;
        let position = state.reader.as_ref().map(CoreReader::position).unwrap_or_default();
        Ok((position.bytes, position.records))
    }

    /// How many bytes have been taken.
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.position(py).map(|position| position.0)
    }

    /// How commands ended, for those that have ended so far: a list of `CommandEnd`.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let state = self.state(py)?;
        let ends = state.reader.as_ref().map_or(&state.ends[..], |reader| reader.command_ends());
        ends.iter().map(|end| error::command_end(py, end)).collect()
    }

    /// True.
    fn readable(&self, py: Python<'_>) -> PyResult<bool> {
        self.enter(py).map(|_| true)
    }

    /// False.
    fn writable(&self) -> bool {
        false
    }

    /// False.
    fn seekable(&self) -> bool {
        false
    }

    /// False.
    fn isatty(&self) -> bool {
        false
    }

    /// Does nothing, as for other files that are only read.
    fn flush(&self) {}

    /// Raises `io.UnsupportedOperation`: a reader's buffer is ahead of its descriptor.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        unsupported(py, "fileno")
    }

    /// Raises `io.UnsupportedOperation`.
    #[pyo3(signature = (offset, whence = 0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<u64> {
        let _ = (offset, whence);
        unsupported(py, "seek")
    }

    /// Raises `io.UnsupportedOperation`.
    #[pyo3(signature = (size = None))]
    fn truncate(&self, py: Python<'_>, size: Option<u64>) -> PyResult<u64> {
        let _ = size;
        unsupported(py, "truncate")
    }

    /// Raises `io.UnsupportedOperation`.
    fn detach(&self, py: Python<'_>) -> PyResult<()> {
        unsupported(py, "detach")
    }

    /// Raises `io.UnsupportedOperation`.
    fn write(&self, py: Python<'_>, bytes: Bound<'_, PyAny>) -> PyResult<usize> {
        let _ = bytes;
        unsupported(py, "write")
    }

    fn __repr__(&self) -> String {
        format!("<millstream.Reader {:?}>", self.name)
    }
}

impl Reader {
    /// Reads a line of at most `max` bytes.
    fn read_until_limit<'py>(&self, py: Python<'py>, state: &mut State, max: usize) -> PyResult<Bound<'py, PyAny>> {
        let line = self.wait(py, state, |reader, _| {
            let mut scanned = 0;
            loop {
                let unread = reader.buffer();
                let end = memchr::memchr(b'\n', &unread[scanned..]).map(|at| scanned + at + 1);
                let most = unread.len().min(max);
                if end.is_some() || unread.len() >= max {
                    let line = unread[..end.unwrap_or(most).min(max)].to_vec();
                    reader.consume(line.len());
                    return Ok(line);
                }
                scanned = unread.len();
                if reader.fill()? == 0 {
                    let line = reader.buffer().to_vec();
                    reader.consume(line.len());
                    return Ok(line);
                }
            }
        })?;
        Ok(PyBytes::new(py, &line).into_any())
    }
}

#[pymethods]
impl TextReader {
    /// The encoding.
    #[getter]
    fn encoding(slf: PyRef<'_, Self>) -> String {
        slf.as_super().encoding.names().0
    }

    /// How bytes that are not text are handled.
    #[getter]
    fn errors(slf: PyRef<'_, Self>) -> String {
        slf.as_super().encoding.names().1
    }

    /// `None`, as in files: line ends are not converted.
    #[getter]
    fn newlines(&self) -> Option<String> {
        None
    }
}

/// Bytes that are collected: in their final place if their number is known, else in Python's `BytesIO`, which returns
/// its memory without a copy.
enum Pieces {
    Sized(Block),
    Growing(Py<PyAny>),
}

impl Pieces {
    fn new(py: Python<'_>, expected: Option<usize>) -> PyResult<Pieces> {
        Ok(match expected {
            Some(expected) => Pieces::Sized(Block::new(py, expected)?),
            None => Pieces::Growing(py.import("io")?.call_method0("BytesIO")?.unbind()),
        })
    }

    /// Appends some of these bytes, and returns their number; if it is 0, `append_more` is needed.
    fn append(&mut self, bytes: &[u8]) -> usize {
        match self {
            Pieces::Sized(block) => block.append(bytes),
            Pieces::Growing(_) => 0,
        }
    }

    /// Appends these bytes.
    fn append_more(&mut self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        if let Pieces::Sized(_) = self {
            let Pieces::Sized(block) = std::mem::replace(self, Pieces::new(py, None)?) else { return Ok(()) };
            self.append_more(py, block.finish(py).as_bytes())?;
        }
        if let Pieces::Growing(file) = self {
            file.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
        }
        Ok(())
    }

    fn finish(self, py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
        match self {
            Pieces::Sized(block) => Ok(block.finish(py)),
            Pieces::Growing(file) => Ok(file.bind(py).call_method0("getvalue")?.cast_into()?),
        }
    }
}

/// How many bytes a read of at most `max` bytes will return, as far as known.
fn expected(reader: &CoreReader, max: usize) -> Option<usize> {
    let progress = reader.progress();
    let left = match progress.format {
        Some(_) => None,
        None => progress.source_size.map(|size| size.saturating_sub(progress.bytes)),
    };
    match left {
        Some(left) => Some(usize::try_from(left).map_or(max, |left| left.min(max))),
        None => Some(max).filter(|max| *max <= 1 << 20),
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let reader = state.reader.take();
        Python::try_attach(|py| self.abandon(py, reader));
    }
}

/// An iterator over the records in a reader's buffer. After its end it continues when the buffer has been filled.
#[pyclass(frozen, module = "millstream._native")]
pub struct Buffered(Py<Reader>);

#[pymethods]
impl Buffered {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reader = self.0.get();
        match reader.state.try_lock() {
            Some(mut state) => reader.buffered_record(py, &mut state),
            None => Ok(None),
        }
    }

    /// There is no `__clear__`, because the reader drops its references to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

/// An iterator over the batches of a reader.
#[pyclass(frozen, generic, module = "millstream._native")]
pub struct Batches {
    reader: Py<Reader>,
    max_records: Option<Whole<usize>>,
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.reader.get().next_batch(py, self.max_records)
    }

    /// There is no `__clear__`, because the reader drops its references to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)
    }
}

/// Returns the maximum number of records in a batch.
fn at_most(py: Python<'_>, max_records: Option<Whole<usize>>) -> PyResult<usize> {
    match max_records {
        None => Ok(usize::MAX),
        Some(Whole(0)) => Err(error::refuse(py, "max_records=0", "at least 1")),
        Some(Whole(max)) => Ok(max),
    }
}

fn limit(size: Option<isize>) -> usize {
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX)
}

fn unsupported<T>(py: Python<'_>, what: &str) -> PyResult<T> {
    let class = py.import("io")?.getattr("UnsupportedOperation")?.cast_into::<PyType>()?;
    Err(PyErr::from_type(class, (what.to_owned(),)))
}
