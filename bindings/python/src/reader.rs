//! The reader for Python.
//!
//! Buffered data is taken while holding the interpreter lock; everything else is done without it. A reader serves one
//! call at a time: a call from another thread raises an exception and never waits.

#[allow(unsafe_code)] // a type for C
mod lines;

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use millstream::frame::{Delimiter, Framer as CoreFramer, Lines};

use millstream::{Command, CommandEnd, Error, ErrorKind, Reader as CoreReader, ReaderBuilder, Waits};
use parking_lot::{Mutex, MutexGuard};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PySlice, PyType};

use crate::batch::{Batch, Loose};
use crate::columns::{self, Growing, Layout, Table};
use crate::command::{self, duplicate};
use crate::error;
use crate::foreign::{self, Function, Functions};
use crate::framer::{Spec, Words};
use crate::number::Whole;
use crate::options::{Items, Options, take};
use crate::record::Encoding;
use crate::wait::{Deadline, Patience, Token, unclosed};

/// A source, record by record.
#[pyclass(frozen, weakref, generic, module = "millstream")]
pub struct Reader {
    state: Mutex<State>,
    token: Token,
    encoding: Encoding,
    items: Items,
    /// Whether the framer finds lines and removes their ends.
    plain_lines: bool,
    /// Whether commands are running until the end.
    is_command: bool,
    /// Whether an error has been reported; then dropping the reader reports none.
    has_failed: AtomicBool,
    name: String,
    functions: Functions,
}

struct State {
    /// `None` after the reader is closed.
    reader: Option<CoreReader>,
    framer: Box<dyn CoreFramer + Send>,
    ends: Vec<CommandEnd>,
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
    /// Opens a source. `open` is called again after it was interrupted by a signal.
    pub fn open(
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        mut open: impl FnMut(ReaderBuilder) -> Result<CoreReader, Error> + Send,
    ) -> PyResult<Reader> {
        let options = Options::new(py, keywords)?;
        let mut token = Token::new(py)?;
        let framer = options.framer.build().map_err(|error| error::raise(py, &error))?;
        let opened = token.wait(py, || open(options.builder().cancel(token.core())))?;
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
            plain_lines: options.framer == Spec::Lines { keep: false },
            is_command: false,
            has_failed: AtomicBool::new(false),
            name: reader.name().to_owned(),
            state: Mutex::new(State { reader: Some(reader), framer, ends: Vec::new() }),
        })
    }

    /// Starts commands and reads the output of the last one.
    fn run(py: Python<'_>, keywords: &Bound<'_, PyDict>, commands: Vec<Command>) -> PyResult<Reader> {
        // Starting a command does not wait, so no signal can interrupt it.
        let mut commands = Some(commands);
        let mut reader = Reader::open(py, keywords, |builder| builder.pipeline(commands.take().unwrap_or_default()))?;
        reader.is_command = true;
        Ok(reader)
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
        done?.map_err(|error| error::raise(py, &error))
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
        let record = match self.items {
            Items::Lines => reader.buffered_line(),
            Items::WholeLines => reader.buffered_line_raw(),
            Items::Records => reader.buffered_frame(framer),
        };
        let Some(record) = record else { return Ok(None) };
        match &self.encoding {
            Encoding::Bytes => Ok(Some(PyBytes::new(py, record).into_any())),
            encoding => {
                // The record's number is computed only if it is needed.
                encoding.record(py, record, || 0).map(Some).or_else(|error| {
                    error.value(py).setattr("record", reader.position().records - 1)?;
                    Err(error)
                })
            }
        }
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
        let (record, number) = self.wait(py, state, |reader, framer| {
            let record = match self.items {
                Items::Lines => reader.next_line()?,
                Items::WholeLines => reader.next_frame(&mut Lines::untrimmed())?,
                Items::Records => reader.next_frame(framer)?,
            };
            let record = record.map(<[u8]>::to_vec);
            Ok((record, reader.position().records))
        })?;
        record.map(|record| self.encoding.record(py, &record, || number - 1)).transpose()
    }

    /// Returns at most `max` available bytes; waits for at least one.
    fn read_once(&self, py: Python<'_>, state: &mut State, max: usize) -> PyResult<Vec<u8>> {
        self.wait(py, state, |reader, _| {
            let mut piece = Vec::new();
            if reader.buffer().is_empty() && max > 0 {
                reader.fill()?;
            }
            let count = reader.buffer().len().min(max);
            piece.extend_from_slice(&reader.buffer()[..count]);
            reader.consume(count);
            Ok(piece)
        })
    }

    /// Returns all bytes up to the end, or `max` bytes. Data read before an error is in the exception's `partial`.
    fn read_all(&self, py: Python<'_>, state: &mut State, max: usize) -> PyResult<Vec<u8>> {
        let mut bytes = Vec::new();
        let done = self.slices(py, |deadline| {
            let Some((reader, _)) = parts(state) else { return Err(Error::new(ErrorKind::Closed)) };
            while bytes.len() < max {
                if reader.buffer().is_empty() && reader.fill()? == 0 {
                    return Ok(Some(()));
                }
                let count = reader.buffer().len().min(max - bytes.len());
                if bytes.try_reserve(count).is_err() {
                    return Err(Error::new(ErrorKind::MemoryLimit)
                        .with_found(format!("{} bytes and more", bytes.len()))
                        .with_expected("data that fits in memory"));
                }
                bytes.extend_from_slice(&reader.buffer()[..count]);
                reader.consume(count);
                if deadline.has_passed() {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        });
        let raised = match done {
            Ok(Ok(())) => return Ok(bytes),
            Ok(Err(error)) => error::raise(py, &error),
            Err(raised) => raised,
        };
        raised.value(py).setattr("partial", PyBytes::new(py, &bytes))?;
        Err(raised)
    }

    /// Fills the buffer, with at most this many reads.
    fn read_into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, mut reads: usize) -> PyResult<usize> {
        let mut state = self.enter(py)?;
        let space = PyMemoryView::from(buffer)?.call_method1("cast", ("B",))?;
        let (len, mut done) = (space.len()?, 0);
        while done < len && reads > 0 {
            let bytes = self.read_once(py, &mut state, (len - done).min(256 << 10))?;
            if bytes.is_empty() {
                break;
            }
            let end = done + bytes.len();
            let place = PySlice::new(py, isize::try_from(done)?, isize::try_from(end)?, 1);
            space.set_item(place, PyBytes::new(py, &bytes))?;
            (done, reads) = (end, reads - 1);
        }
        Ok(done)
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
    fn path(py: Python<'_>, path: std::path::PathBuf, options: Option<Bound<'_, PyDict>>) -> PyResult<Reader> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let mapped = take(&options, "mapped")?.unwrap_or(false);
        Reader::open(py, &options, |builder| if mapped { builder.mapped(&path) } else { builder.path(&path) })
    }

    #[staticmethod]
    #[pyo3(signature = (argvs, **options))]
    fn commands(
        py: Python<'_>,
        argvs: Vec<Vec<std::ffi::OsString>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Reader> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let mut commands = Vec::with_capacity(argvs.len());
        let shared = options.copy()?;
        for argv in argvs {
            // Each command gets all of these options; the remaining ones are the reader's.
            shared.update(options.as_mapping())?;
            commands.push(command::command(py, command::Words::Argv(argv), &shared)?);
        }
        Reader::run(py, &shared, commands)
    }

    #[staticmethod]
    #[pyo3(signature = (line, **options))]
    fn shell(py: Python<'_>, line: std::ffi::OsString, options: Option<Bound<'_, PyDict>>) -> PyResult<Reader> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let command = command::command(py, command::Words::Shell(line), &options)?;
        Reader::run(py, &options, vec![command])
    }

    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn stdin(py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<Reader> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        Reader::open(py, &options, ReaderBuilder::stdin)
    }

    #[staticmethod]
    #[pyo3(signature = (fd, **options))]
    fn fd(py: Python<'_>, fd: Whole<RawFd>, options: Option<Bound<'_, PyDict>>) -> PyResult<Reader> {
        let (fd, options) = (fd.0, options.unwrap_or_else(|| PyDict::new(py)));
        let owned = duplicate(py, fd)?;
        if !options.contains("name")? {
            options.set_item("name", format!("file descriptor {fd}"))?;
        }
        Reader::open(py, &options, |builder| builder.borrow_fd(&owned))
    }

    #[staticmethod]
    #[pyo3(signature = (memory, **options))]
    fn memory(py: Python<'_>, memory: foreign::Bytes, options: Option<Bound<'_, PyDict>>) -> PyResult<Reader> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let mut memory = Some(memory);
        Reader::open(py, &options, |builder| match memory.take() {
            Some(memory) => builder.memory(memory),
            None => Err(Error::new(ErrorKind::Internal)),
        })
    }

    /// Calls `read(n)` for at most `n` bytes.
    #[staticmethod]
    #[pyo3(signature = (read, **options))]
    fn callback(py: Python<'_>, read: Py<PyAny>, options: Option<Bound<'_, PyDict>>) -> PyResult<Reader> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let read = Function::new(py, read)?;
        let mut source = Some(foreign::source(read.clone()));
        let mut reader = Reader::open(py, &options, |builder| match source.take() {
            Some(source) => builder.callback(source),
            None => Err(Error::new(ErrorKind::Internal)),
        })?;
        reader.functions.add(&read);
        Ok(reader)
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

    /// Returns the next records, as many as are available, or `None` at the end.
    #[pyo3(signature = (max_records = None))]
    fn next_batch(&self, py: Python<'_>, max_records: Option<Whole<usize>>) -> PyResult<Option<Batch>> {
        let mut state = self.enter(py)?;
        let max = at_most(py, max_records)?;
        let batch =
            self.wait(py, &mut state, |reader, framer| Ok(reader.next_batch_of(framer, max)?.map(Loose::from)))?;
        batch.map(|batch| batch.into_batch(py, self.encoding.clone())).transpose()
    }

    /// Returns an iterator over the results of `next_batch`.
    #[pyo3(signature = (max_records = None))]
    fn batches(slf: Py<Self>, py: Python<'_>, max_records: Option<Whole<usize>>) -> PyResult<Batches> {
        at_most(py, max_records)?;
        Ok(Batches { reader: slf, max_records })
    }

    /// Counts the records up to the end, without creating them.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let mut open = self.enter(py)?;
        let (state, mut count): (&mut State, _) = (&mut open, 0);
        let done = self.slices(py, |deadline| {
            let Some((reader, framer)) = parts(state) else { return Err(Error::new(ErrorKind::Closed)) };
            loop {
                let Some(batch) = reader.next_batch(framer)? else { return Ok(Some(())) };
                count += batch.len() as u64;
                if deadline.has_passed() {
                    return Ok(None);
                }
            }
        })?;
        done.map_err(|error| error::raise(py, &error))?;
        Ok(count)
    }

    /// Returns the records' fields as columns of these types, up to the end or for `max_records` records.
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
        let layout = Layout::new(py, sep.into_bytes(), &types, missing, self.plain_lines)?;
        let workers = workers.map_or_else(columns::enough_workers, |Whole(workers)| workers);
        if workers == 0 {
            return Err(error::refuse(py, "workers=0", "at least 1"));
        }
        let (mut table, max) = (Growing::new(layout, workers), max_records.map_or(usize::MAX, |Whole(max)| max));
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
            Ok(Ok(())) => return Ok(py.detach(|| table.finish())),
            Ok(Err(error)) => error::raise(py, &error.with_name(&self.name)),
            Err(raised) => raised,
        };
        // If a signal interrupted it, some blocks are still waiting.
        drop(py.detach(|| table.settle()));
        raised.value(py).setattr("partial", Py::new(py, table.finish())?)?;
        Err(raised)
    }

    /// Skips a record of any length, and returns whether there was one.
    fn skip_record(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.enter(py)?;
        self.wait(py, &mut state, |reader, framer| reader.skip_record(framer))
    }

    #[pyo3(signature = (size = -1, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.enter(py)?;
        let bytes = self.read_all(py, &mut state, limit(size))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (size = -1, /))]
    fn read1<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.enter(py)?;
        let bytes = self.read_once(py, &mut state, limit(size))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn readinto(&self, py: Python<'_>, buffer: Bound<'_, PyAny>) -> PyResult<usize> {
        self.read_into(py, &buffer, usize::MAX)
    }

    fn readinto1(&self, py: Python<'_>, buffer: Bound<'_, PyAny>) -> PyResult<usize> {
        self.read_into(py, &buffer, 1)
    }

    /// Returns the next line with its line feed, as in files; at the end, the result is empty.
    #[pyo3(signature = (size = -1, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.enter(py)?;
        let limit = limit(size);
        if limit != usize::MAX {
            return self.read_until_limit(py, &mut state, limit);
        }
        let Some((reader, _)) = parts(&mut state) else { return Err(error::closed(py, &self.name)) };
        if let Some(line) = reader.buffered_frame(&mut Lines::untrimmed()) {
            return Ok(PyBytes::new(py, line));
        }
        let line =
            self.wait(py, &mut state, |reader, _| Ok(reader.next_frame(&mut Lines::untrimmed())?.map(<[u8]>::to_vec)))?;
        Ok(PyBytes::new(py, &line.unwrap_or_default()))
    }

    #[pyo3(signature = (hint = -1, /))]
    fn readlines<'py>(slf: &Bound<'py, Self>, hint: Option<isize>) -> PyResult<Bound<'py, PyList>> {
        let (py, limit, mut bytes) = (slf.py(), limit(hint), 0);
        let lines = PyList::empty(py);
        loop {
            let line = slf.get().readline(py, None).or_else(|raised| {
                raised.value(py).setattr("partial", &lines)?;
                Err(raised)
            })?;
            let len = line.as_bytes().len();
            if len == 0 {
                return Ok(lines);
            }
            lines.append(line)?;
            bytes += len;
            if limit != 0 && bytes >= limit {
                return Ok(lines);
            }
        }
    }

    /// Returns the bytes up to this delimiter, including it; at the end, the remaining bytes, if any.
    #[pyo3(signature = (delimiter = Words::Byte(Whole(b'\n'))))]
    fn readuntil<'py>(&self, py: Python<'py>, delimiter: Words) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.enter(py)?;
        let framer = Delimiter::bytes(delimiter.into_bytes()).map_err(|error| error::raise(py, &error))?;
        let mut framer = framer.untrimmed();
        let Some((reader, _)) = parts(&mut state) else { return Err(error::closed(py, &self.name)) };
        if let Some(record) = reader.buffered_frame(&mut framer) {
            return Ok(PyBytes::new(py, record));
        }
        let record = self.wait(py, &mut state, |reader, _| Ok(reader.next_frame(&mut framer)?.map(<[u8]>::to_vec)))?;
        Ok(PyBytes::new(py, &record.unwrap_or_default()))
    }

    /// Returns the bytes up to this delimiter, including it, if they are in the buffer; this never waits.
    fn _read_buffered<'py>(&self, py: Python<'py>, delimiter: Words) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut state = self.enter(py)?;
        let framer = Delimiter::bytes(delimiter.into_bytes()).map_err(|error| error::raise(py, &error))?;
        let found = parts(&mut state).and_then(|(reader, _)| reader.buffered_frame(&mut framer.untrimmed()));
        Ok(found.map(|found| PyBytes::new(py, found)))
    }

    /// Returns the content of the buffer, after one read if it is empty. No bytes are consumed.
    #[pyo3(signature = (size = 0, /))]
    fn peek<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let _ = size;
        let mut state = self.enter(py)?;
        let bytes = self.wait(py, &mut state, |reader, _| {
            if reader.buffer().is_empty() {
                reader.fill()?;
            }
            Ok(reader.buffer()[..reader.buffer().len().min(64 << 10)].to_vec())
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns whether the next batch requires a wait, or `None` if that is unknown.
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

    /// The bytes that end a record when it is written.
    #[getter]
    fn terminator<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.enter(py)?.framer.terminator()))
    }

    /// Interrupts a wait of another thread, which raises `Cancelled`; if no thread waits, the next call raises it.
    fn cancel(&self) {
        self.token.cancel();
    }

    /// Stops reading at the current position, and stops the commands.
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

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn mode(&self) -> &'static str {
        "rb"
    }

    #[getter]
    fn closed(&self) -> bool {
        // Another thread is using the reader, so it stays open.
        self.state.try_lock().is_some_and(|state| state.reader.is_none())
    }

    /// The position: bytes and records.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let state = self.enter(py)?;
        let position = state.reader.as_ref().map(CoreReader::position).unwrap_or_default();
        Ok((position.bytes, position.records))
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.position(py).map(|position| position.0)
    }

    /// Returns how commands ended, for those that have ended so far.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let state = self.state(py)?;
        let ends = state.reader.as_ref().map_or(&state.ends[..], |reader| reader.command_ends());
        ends.iter().map(|end| error::command_end(py, end)).collect()
    }

    fn readable(&self, py: Python<'_>) -> PyResult<bool> {
        self.enter(py).map(|_| true)
    }

    fn writable(&self) -> bool {
        false
    }

    fn seekable(&self) -> bool {
        false
    }

    fn isatty(&self) -> bool {
        false
    }

    fn flush(&self) {}

    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        unsupported(py, "fileno")
    }

    #[pyo3(signature = (offset, whence = 0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<u64> {
        let _ = (offset, whence);
        unsupported(py, "seek")
    }

    #[pyo3(signature = (size = None))]
    fn truncate(&self, py: Python<'_>, size: Option<u64>) -> PyResult<u64> {
        let _ = size;
        unsupported(py, "truncate")
    }

    fn detach(&self, py: Python<'_>) -> PyResult<()> {
        unsupported(py, "detach")
    }

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
    fn read_until_limit<'py>(&self, py: Python<'py>, state: &mut State, max: usize) -> PyResult<Bound<'py, PyBytes>> {
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
        Ok(PyBytes::new(py, &line))
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
