//! The writer for Python.
//!
//! Data that fits in the buffer is copied while holding the interpreter lock; everything else is done without it. A
//! writer serves one call at a time.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use millstream::put::Spare;
use millstream::{Error, ErrorKind, Remote, Writer as CoreWriter, WriterBuilder, WriterEnd as CoreEnd};
use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyMemoryView, PyString, PyTuple};

use crate::command::{self, duplicate};
use crate::error;
use crate::foreign::{self, Function, Functions};
use crate::number::Whole;
use crate::remote::{self, Location};
use crate::wait::{Patience, Token, unclosed};
use crate::writer_options::WriterOptions;

/// How long the sink of a writer that was not closed may accept no data.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes records to a sink: `Writer.path`, `fd`, `stdout`, `command`, `memory` or `callback` creates one.
///
/// Only `close`, which `with` calls, reports whether everything succeeded. After an exception, `with` aborts the writer
/// instead: then a file that appears only if it is complete does not appear. A writer that is not closed is flushed when
/// it is garbage-collected, and reports a loss; Python's development mode warns of it.
///
/// One call at a time: a call from another thread raises `InUse`.
#[pyclass(frozen, weakref, module = "millstream")]
pub struct Writer {
    state: Mutex<State>,
    token: Token,
    /// The number of bytes that the sink has accepted, for the time limit.
    written: Arc<AtomicU64>,
    /// Whether the time limit does not apply to closing: a command may work for a long time after its input has ended,
    /// and a connection has its own limit.
    waits_long: bool,
    /// Whether it writes to memory: nothing is lost if it is not closed.
    is_memory: bool,
    /// Whether it writes an object, whose unfinished upload takes time to remove.
    is_object: bool,
    /// Whether an error has been reported; then dropping the writer reports none.
    has_failed: AtomicBool,
    name: String,
    functions: Functions,
}

struct State {
    /// `None` after the writer is closed or aborted.
    writer: Option<CoreWriter>,
    /// The text that `put` collects.
    line: Vec<u8>,
}

/// How a writer ended.
#[pyclass(frozen, get_all, module = "millstream")]
pub struct WriterEnd {
    /// Bytes accepted.
    bytes: u64,
    /// Bytes passed to the system, after encoding.
    written: u64,
    /// Everything that was written, if the sink was memory.
    memory: Option<Py<PyBytes>>,
    /// How the commands ended.
    commands: Vec<Py<PyAny>>,
}

#[pymethods]
impl WriterEnd {
    fn __repr__(&self) -> String {
        format!("<WriterEnd of {} bytes>", self.bytes)
    }
}

impl Writer {
    /// Opens a sink. `open` is called again if a signal interrupted it.
    fn open(
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        mut open: impl FnMut(WriterBuilder) -> Result<CoreWriter, Error> + Send,
    ) -> PyResult<Writer> {
        Writer::open_by(py, keywords, |token, options| token.wait(py, || open(options.builder().cancel(token.core()))))
    }

    /// Opens an object.
    fn open_object(py: Python<'_>, keywords: &Bound<'_, PyDict>, remote: Remote) -> PyResult<Writer> {
        let mut writer = Writer::open_by(py, keywords, |token, options| {
            token.once(py, || {
                remote::check_process(|| remote.name())?;
                options.builder().cancel(token.core()).url(remote)
            })
        })?;
        writer.is_object = true;
        Ok(writer)
    }

    /// Opens a sink by a function that handles signals.
    fn open_by(
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        open: impl FnOnce(&Token, &WriterOptions) -> PyResult<Result<CoreWriter, Error>>,
    ) -> PyResult<Writer> {
        let options = WriterOptions::new(py, keywords)?;
        let mut token = Token::new();
        let written = Arc::new(AtomicU64::new(0));
        let progress = written.clone();
        token.limit(
            options
                .stall_timeout
                .map(|limit| Patience { limit, progress: Box::new(move || progress.load(Ordering::Relaxed)) }),
        );
        let opened = open(&token, &options)?;
        let writer = opened.map_err(|error| error::raise(py, &error))?;
        let name = writer.name().to_owned();
        let state = Mutex::new(State { writer: Some(writer), line: Vec::new() });
        let waits_long = options.linger.is_some();
        let has_failed = AtomicBool::new(false);
        let (is_memory, is_object, functions) = (false, false, Functions::default());
        Ok(Writer { state, token, written, waits_long, is_memory, is_object, has_failed, name, functions })
    }

    /// Runs a function that may wait for the sink.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        writer: &mut CoreWriter,
        work: impl FnMut(&mut CoreWriter) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.wait_for(py, self.token.patience(), writer, work)
    }

    fn wait_for<T: Send>(
        &self,
        py: Python<'_>,
        patience: Option<&Patience>,
        writer: &mut CoreWriter,
        mut work: impl FnMut(&mut CoreWriter) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = self.token.wait_for(py, patience, || {
            let done = work(writer);
            self.written.store(writer.written(), Ordering::Relaxed);
            done
        });
        let done = done.and_then(|done| done.map_err(|error| error::raise(py, &error.with_name(&*self.name))));
        self.has_failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    }

    /// Handles a writer that was not closed.
    fn abandon(&self, py: Python<'_>, writer: Option<CoreWriter>) {
        let Some(mut writer) = writer else { return };
        if self.token.is_inherited() {
            return std::mem::forget(writer);
        }
        self.token.settle();
        // An exception that is being handled was not raised here.
        let raising = PyErr::take(py);
        if !self.is_memory && !self.has_failed.load(Ordering::Relaxed) {
            unclosed(py, &format!("the writer to {} was not closed, which reports whether it succeeded", self.name));
        }
        self.forget(py, &mut writer);
        self.discard(py, writer, true);
        if let Some(raising) = raising {
            raising.restore(py);
        }
    }

    /// Aborts. Removing an unfinished upload takes at most ten seconds, or one if it `hurries`.
    fn discard(&self, py: Python<'_>, mut writer: CoreWriter, hurries: bool) {
        if self.is_object && hurries {
            self.token.core().cancel();
        }
        py.detach(|| writer.abort());
    }

    /// Writes the bytes as long as the sink accepts data, and reports losses.
    fn forget(&self, py: Python<'_>, writer: &mut CoreWriter) {
        let finalizing = py.import("sys").and_then(|sys| sys.call_method0("is_finalizing")?.is_truthy());
        // While the program runs, its garbage collector must not wait for a sink that accepts no data. At the end of
        // the program it waits indefinitely, and signals get the dispositions that they had before Python started.
        let patience = (!finalizing.unwrap_or(true)).then(|| {
            let written = self.written.clone();
            Patience { limit: PATIENCE, progress: Box::new(move || written.load(Ordering::Relaxed)) }
        });
        let was_reported = self.has_failed.load(Ordering::Relaxed);
        let patience = patience.as_ref().or(self.token.patience());
        let Err(raised) = self.wait_for(py, patience, writer, CoreWriter::hand_over) else { return };
        if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            // The signal's exception cannot be raised here, so the signal is sent to the main thread again.
            let again = py.import("_thread").and_then(|threads| threads.call_method0("interrupt_main"));
            again.map_or_else(|error| error.write_unraisable(py, None), drop);
        } else if !was_reported {
            let place = PyString::new(py, &format!("the writer to {}, which was not closed", self.name));
            raised.write_unraisable(py, Some(&place));
        }
    }

    fn state(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        if self.token.is_inherited() {
            // Bytes that are put into the buffer now would be lost.
            self.token.wait(py, || Ok(()))?.map_err(|error| error::raise(py, &error.with_name(&self.name)))?;
        }
        self.state.try_lock().ok_or_else(|| error::in_use(py, &self.name))
    }

    fn send(&self, py: Python<'_>, writer: &mut CoreWriter, bytes: &[u8]) -> PyResult<()> {
        if writer.write_buffered(bytes) {
            return Ok(());
        }
        self.wait(py, writer, |writer| writer.write(bytes))
    }
}

#[pymethods]
impl Writer {
    /// A file or an object of a store (see `Remote`), which appears complete when the writer is closed; compressed
    /// according to the suffix of its name.
    #[staticmethod]
    #[pyo3(signature = (path, **options))]
    fn path(py: Python<'_>, path: Location, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let options = keywords(py, options);
        match path {
            Location::Path(path) => Writer::open(py, &options, |builder| builder.path(&path)),
            Location::Object(remote) => Writer::open_object(py, &options, remote),
        }
    }

    /// A command's standard input. `close` raises `CommandFailed` if it fails. The options are also those of
    /// `millstream.command` for a command, except `stdin`.
    #[staticmethod]
    #[pyo3(signature = (argv, **options))]
    fn command(py: Python<'_>, argv: Vec<OsString>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let options = keywords(py, options);
        if options.contains("stdin")? {
            return Err(PyTypeError::new_err("unknown option stdin: the writer is the command's standard input"));
        }
        let mut command = Some(command::command(py, command::Words::Argv(argv), &options)?);
        // The command is started once: starting it does not wait, so no signal can interrupt it.
        let mut writer = Writer::open(py, &options, |builder| match command.take() {
            Some(command) => builder.command(command),
            None => Err(Error::new(ErrorKind::Internal)),
        })?;
        writer.waits_long = true;
        Ok(writer)
    }

    /// Standard output. Flush before other code prints.
    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn stdout(py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        Writer::open(py, &keywords(py, options), WriterBuilder::stdout)
    }

    /// A duplicate of a file descriptor, which stays open.
    #[staticmethod]
    #[pyo3(signature = (fd, **options))]
    fn fd(py: Python<'_>, fd: Whole<RawFd>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let (owned, options) = (duplicate(py, fd.0)?, keywords(py, options));
        Writer::open(py, &options, |builder| builder.duplicate_of(fd.0, owned.try_clone()?))
    }

    /// Memory: see `WriterEnd.memory`.
    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn memory(py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let mut writer = Writer::open(py, &keywords(py, options), WriterBuilder::memory)?;
        writer.is_memory = true;
        Ok(writer)
    }

    /// A function, such as the `write` of a file; it returns how many bytes it accepted, or `None` for all.
    #[staticmethod]
    #[pyo3(signature = (write, **options))]
    fn callback(py: Python<'_>, write: Py<PyAny>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let write = Function::new(py, write)?;
        let mut writer =
            Writer::open(py, &keywords(py, options), |builder| builder.callback(foreign::sink(write.clone())))?;
        writer.functions.add(&write);
        Ok(writer)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __clear__(&self) {
        self.functions.clear();
    }

    /// Writes bytes or UTF-8 text, and returns the number of bytes.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut state = self.state(py)?;
        let writer = state.writer.as_mut().ok_or_else(|| error::closed(py, &self.name))?;
        if let Ok(bytes) = data.cast::<PyBytes>() {
            self.send(py, writer, bytes.as_bytes())?;
            return Ok(bytes.as_bytes().len());
        }
        if let Ok(text) = data.cast::<PyString>() {
            let text = text.to_str()?;
            self.send(py, writer, text.as_bytes())?;
            return Ok(text.len());
        }
        let bytes: foreign::Bytes = data.extract()?;
        self.send(py, writer, &bytes)?;
        Ok(bytes.len())
    }

    /// Writes bytes or UTF-8 text if they fit in the buffer, which never waits, and returns their number.
    fn _write_buffered(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let mut state = self.state(py)?;
        let writer = state.writer.as_mut().ok_or_else(|| error::closed(py, &self.name))?;
        let bytes = match (data.cast::<PyBytes>(), data.cast::<PyString>()) {
            (Ok(bytes), _) => bytes.as_bytes(),
            (_, Ok(text)) => text.to_str()?.as_bytes(),
            _ => return Ok(None),
        };
        Ok(writer.write_buffered(bytes).then_some(bytes.len()))
    }

    /// Writes values if they fit in the buffer, which never waits, and returns whether they did.
    #[pyo3(signature = (*values, sep = " ", end = "\n"))]
    fn _put_buffered(&self, py: Python<'_>, values: &Bound<'_, PyTuple>, sep: &str, end: &str) -> PyResult<bool> {
        let mut state = self.state(py)?;
        let State { writer, line } = &mut *state;
        let writer = writer.as_mut().ok_or_else(|| error::closed(py, &self.name))?;
        print(line, values, sep, end)?;
        Ok(writer.write_buffered(line))
    }

    /// Does what happens when the last reference is dropped, but now.
    fn _drop(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.state(py)?.writer.take();
        self.abandon(py, writer);
        Ok(())
    }

    /// Ends after an exception in a pipe: bytes that were accepted are written if the sink takes them within a second,
    /// unless the output appears only if it is complete.
    fn _give_up(&self, py: Python<'_>) -> PyResult<()> {
        if self.token.is_inherited() {
            return Ok(());
        }
        if let Some(mut writer) = self.state(py)?.writer.take() {
            self.token.settle();
            // The exception is what the program needs to know.
            self.has_failed.store(true, Ordering::Relaxed);
            self.forget(py, &mut writer);
            self.discard(py, writer, is_interrupted(py));
        }
        Ok(())
    }

    /// Writes values as `print` does. Numbers and booleans look the same as in every language of Millstream.
    #[pyo3(signature = (*values, sep = " ", end = "\n"))]
    fn put(&self, py: Python<'_>, values: &Bound<'_, PyTuple>, sep: &str, end: &str) -> PyResult<()> {
        let mut state = self.state(py)?;
        let State { writer, line } = &mut *state;
        let writer = writer.as_mut().ok_or_else(|| error::closed(py, &self.name))?;
        print(line, values, sep, end)?;
        self.send(py, writer, line)
    }

    /// Writes pieces of bytes or text; no line ends are added.
    fn writelines(&self, py: Python<'_>, lines: &Bound<'_, PyAny>) -> PyResult<()> {
        for line in lines.try_iter()? {
            self.write(py, &line?)?;
        }
        Ok(())
    }

    /// Passes everything to the system.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state(py)?;
        let writer = state.writer.as_mut().ok_or_else(|| error::closed(py, &self.name))?;
        self.wait(py, writer, CoreWriter::flush)
    }

    /// Ends the writing, and reports whether everything succeeded, as a `WriterEnd`; a file appears now. `None` if it was
    /// closed before. If closing fails, it can be repeated.
    fn close(&self, py: Python<'_>) -> PyResult<Option<WriterEnd>> {
        let mut state = self.state(py)?;
        let Some(writer) = &mut state.writer else { return Ok(None) };
        let mut end = None;
        let mut close = |writer: &mut CoreWriter| {
            end = Some(writer.try_close()?);
            Ok(())
        };
        let closed = if self.waits_long {
            self.wait(py, writer, CoreWriter::flush)?;
            self.token.wait_long(py, || close(writer))?.map_err(|error| {
                self.has_failed.store(true, Ordering::Relaxed);
                error::raise(py, &error)
            })
        } else {
            self.wait(py, writer, close)
        };
        // A signal handler may have raised an exception although the writer was closed.
        if end.is_some() {
            state.writer = None;
        }
        closed?;
        end.map(|end| end_of(py, end)).transpose()
    }

    /// Gives up: the content of the buffer is discarded, and a file that appears only if it is complete does not appear.
    ///
    /// It does not wait for the sink to accept anything; a command is stopped if it does not exit within two seconds.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        if self.token.is_inherited() {
            // The file and the command belong to the other process, so there is nothing to abort.
            return Ok(());
        }
        let writer = self.state(py)?.writer.take();
        self.token.settle();
        if let Some(writer) = writer {
            self.discard(py, writer, is_interrupted(py));
        }
        Ok(())
    }

    /// Ends a wait of another thread, which raises `Cancelled`; if no thread waits, the next call does.
    fn cancel(&self) {
        self.token.cancel();
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Closes, or aborts after an exception.
    #[pyo3(signature = (kind, value, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        match kind {
            Some(_) => self.abort(py),
            None => self.close(py).map(drop),
        }
    }

    /// The name of the sink in error messages.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Whether the writer is closed or aborted.
    #[getter]
    fn closed(&self) -> bool {
        self.state.try_lock().is_some_and(|state| state.writer.is_none())
    }

    /// Bytes accepted so far.
    #[getter]
    fn accepted(&self, py: Python<'_>) -> PyResult<u64> {
        let state = self.state(py)?;
        state.writer.as_ref().map(CoreWriter::accepted).ok_or_else(|| error::closed(py, &self.name))
    }

    /// True.
    fn writable(&self) -> bool {
        true
    }

    /// False.
    fn readable(&self) -> bool {
        false
    }

    /// False.
    fn seekable(&self) -> bool {
        false
    }

    fn __repr__(&self) -> String {
        format!("<millstream.Writer {:?}>", self.name)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let writer = self.state.get_mut().writer.take();
        Python::try_attach(|py| self.abandon(py, writer));
    }
}

/// Whether Ctrl-C is being handled: the user does not want to wait.
fn is_interrupted(py: Python<'_>) -> bool {
    let handled = py.import("sys").and_then(|sys| sys.call_method0("exception"));
    handled.is_ok_and(|exception| exception.is_instance_of::<PyKeyboardInterrupt>())
}

fn keywords<'py>(py: Python<'py>, options: Option<Bound<'py, PyDict>>) -> Bound<'py, PyDict> {
    options.unwrap_or_else(|| PyDict::new(py))
}

/// The text of several values.
fn print(line: &mut Vec<u8>, values: &Bound<'_, PyTuple>, sep: &str, end: &str) -> PyResult<()> {
    line.clear();
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            line.extend_from_slice(sep.as_bytes());
        }
        append(line, &value)?;
    }
    line.extend_from_slice(end.as_bytes());
    Ok(())
}

/// The text of a value, as in every language.
fn append(line: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(text) = value.cast::<PyString>() {
        line.extend_from_slice(text.to_str()?.as_bytes());
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        line.extend_from_slice(bytes.as_bytes());
    } else if let Ok(bool) = value.cast::<PyBool>() {
        line.extend_from_slice(if bool.is_true() { b"true" } else { b"false" });
    } else if let Ok(int) = value.cast::<PyInt>() {
        match int.extract::<i64>() {
            Ok(int) => part(line, int),
            Err(_) => line.extend_from_slice(value.str()?.to_str()?.as_bytes()),
        }
    } else if let Ok(float) = value.cast::<PyFloat>() {
        part(line, float.value());
    } else if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        line.extend_from_slice(&value.extract::<foreign::Bytes>()?);
    } else if is_numpy_bool(value)? {
        line.extend_from_slice(if value.is_truthy()? { b"true" } else { b"false" });
    } else {
        line.extend_from_slice(value.str()?.to_str()?.as_bytes());
    }
    Ok(())
}

/// Whether a value is a boolean of numpy, which is no subclass of Python's. Its class is named `bool_` before numpy 2.
fn is_numpy_bool(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = value.get_type();
    let name = kind.name()?;
    Ok((name == "bool" || name == "bool_") && kind.module()? == "numpy")
}

fn part(line: &mut Vec<u8>, number: impl millstream::put::Part) {
    let mut space = [0; 64];
    let mut spare = Spare::over(&mut space);
    spare.put(number);
    line.extend_from_slice(spare.as_bytes());
}

fn end_of(py: Python<'_>, end: CoreEnd) -> PyResult<WriterEnd> {
    let commands = end.commands.iter().map(|end| error::command_end(py, end).map(Bound::unbind));
    Ok(WriterEnd {
        bytes: end.bytes,
        written: end.written,
        memory: end.memory.map(|memory| PyBytes::new(py, &memory).unbind()),
        commands: commands.collect::<PyResult<_>>()?,
    })
}
