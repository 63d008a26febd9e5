//! The writer that Python sees.
//!
//! What fits in the buffer is copied with the interpreter's lock, everything else is done without it. A writer is for one call
//! at a time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millstream::put::Room;
use millstream::{
    Durability, Encode, Error, Existing, FlushPolicy, Partial, Writer as CoreWriter, WriterBuilder,
    WriterEnd as CoreEnd,
};
use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::command::{self, duplicate, take};
use crate::error;
use crate::foreign::{self, Function, Functions};
use crate::options::{seconds, word};
use crate::wait::{Patience, Token};

/// Records into a sink.
#[pyclass(frozen, weakref, module = "millstream")]
pub struct Writer {
    state: Mutex<State>,
    token: Token,
    /// How many bytes the sink has taken, for the time limit.
    written: Arc<AtomicU64>,
    /// Whether there is a time limit, which does not hold for what a command does when its input has ended.
    limited_command: bool,
    name: String,
    functions: Functions,
}

struct State {
    /// Nothing once it is closed or given up.
    writer: Option<CoreWriter>,
    /// What `put` puts together.
    line: Vec<u8>,
}

/// How a writer ended.
#[pyclass(frozen, get_all, module = "millstream")]
pub struct WriterEnd {
    /// Bytes accepted.
    bytes: u64,
    /// Bytes handed to the system, after encoding.
    written: u64,
    /// All that was written, if the sink was memory.
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
    fn open(
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        open: impl FnOnce(WriterBuilder) -> Result<CoreWriter, Error> + Send,
    ) -> PyResult<Writer> {
        let mut token = Token::new(py)?;
        let (builder, policy, limit) = builder(py, keywords)?;
        let written = Arc::new(AtomicU64::new(0));
        let progress = written.clone();
        token
            .limit(limit.map(|limit| Patience { limit, progress: Box::new(move || progress.load(Ordering::Relaxed)) }));
        if matches!(policy, Some(FlushPolicy::Delay(_))) {
            token.deafen();
        }
        let builder = builder.cancel(token.core());
        if let Some((key, _)) = keywords.iter().next() {
            return Err(PyTypeError::new_err(format!("unknown option {key}")));
        }
        let writer = py.detach(|| open(builder)).map_err(|error| error::raise(py, &error))?;
        let name = writer.name().to_owned();
        let state = Mutex::new(State { writer: Some(writer), line: Vec::new() });
        Ok(Writer { state, token, written, limited_command: false, name, functions: Functions::default() })
    }

    /// Does what may wait for the sink.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        writer: &mut CoreWriter,
        mut work: impl FnMut(&mut CoreWriter) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = self.token.wait(py, || {
            let done = work(writer);
            self.written.store(writer.written(), Ordering::Relaxed);
            done
        })?;
        done.map_err(|error| error::raise(py, &error))
    }

    fn state(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
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
    #[staticmethod]
    #[pyo3(signature = (path, **options))]
    fn path(py: Python<'_>, path: PathBuf, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        Writer::open(py, &keywords(py, options), |builder| builder.path(path))
    }

    #[staticmethod]
    #[pyo3(signature = (argv, **options))]
    fn command(py: Python<'_>, argv: Vec<OsString>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let options = keywords(py, options);
        let command = command::command(py, command::Words::Argv(argv), &options)?;
        let limited_command = options.contains("stall_timeout")?;
        let mut writer = Writer::open(py, &options, |builder| builder.command(command))?;
        writer.limited_command = limited_command;
        Ok(writer)
    }

    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn stdout(py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        Writer::open(py, &keywords(py, options), WriterBuilder::stdout)
    }

    #[staticmethod]
    #[pyo3(signature = (fd, **options))]
    fn fd(py: Python<'_>, fd: i32, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let owned = duplicate(py, fd)?;
        Writer::open(py, &keywords(py, options), |builder| builder.fd(owned))
    }

    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn memory(py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        Writer::open(py, &keywords(py, options), WriterBuilder::memory)
    }

    #[staticmethod]
    #[pyo3(signature = (write, **options))]
    fn callable(py: Python<'_>, write: Py<PyAny>, options: Option<Bound<'_, PyDict>>) -> PyResult<Writer> {
        let write = Function::new(write);
        let sink = foreign::sink(write.clone());
        let mut writer = Writer::open(py, &keywords(py, options), |builder| builder.callback(sink))?;
        writer.functions.add(&write);
        Ok(writer)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __clear__(&self) {
        self.functions.clear();
    }

    /// Writes bytes, or text in UTF-8; how many bytes there were.
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
        let bytes = foreign::copy(data)?;
        self.send(py, writer, &bytes)?;
        Ok(bytes.len())
    }

    /// Writes values as `print` does: text, bytes, and numbers.
    #[pyo3(signature = (*values, sep = " ", end = "\n"))]
    fn put(&self, py: Python<'_>, values: &Bound<'_, PyTuple>, sep: &str, end: &str) -> PyResult<()> {
        let mut state = self.state(py)?;
        let State { writer, line } = &mut *state;
        let writer = writer.as_mut().ok_or_else(|| error::closed(py, &self.name))?;
        line.clear();
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                line.extend_from_slice(sep.as_bytes());
            }
            append(line, &value)?;
        }
        line.extend_from_slice(end.as_bytes());
        self.send(py, writer, line)
    }

    fn writelines(&self, py: Python<'_>, lines: &Bound<'_, PyAny>) -> PyResult<()> {
        for line in lines.try_iter()? {
            self.write(py, &line?)?;
        }
        Ok(())
    }

    /// Hands everything to the system.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state(py)?;
        let writer = state.writer.as_mut().ok_or_else(|| error::closed(py, &self.name))?;
        self.wait(py, writer, CoreWriter::flush)
    }

    /// Ends the writing, and says whether all went well; a file appears now. Where it fails it can be repeated.
    fn close(&self, py: Python<'_>) -> PyResult<Option<WriterEnd>> {
        let mut state = self.state(py)?;
        let Some(writer) = &mut state.writer else { return Ok(None) };
        let end = if self.limited_command {
            self.wait(py, writer, CoreWriter::flush)?;
            self.token.wait_long(py, || writer.try_close())?.map_err(|error| error::raise(py, &error))?
        } else {
            self.wait(py, writer, CoreWriter::try_close)?
        };
        state.writer = None;
        end_of(py, end).map(Some)
    }

    /// Gives up what is not closed: a file that was to appear whole does not appear.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.state(py)?.writer.take();
        self.token.settle();
        py.detach(|| drop(writer));
        Ok(())
    }

    fn cancel(&self) {
        self.token.cancel();
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Closes, or gives up after an exception.
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

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

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

    fn writable(&self) -> bool {
        true
    }

    fn readable(&self) -> bool {
        false
    }

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
        if writer.is_some() {
            self.token.settle();
            Python::try_attach(|py| py.detach(|| drop(writer)));
        }
    }
}

fn keywords<'py>(py: Python<'py>, options: Option<Bound<'py, PyDict>>) -> Bound<'py, PyDict> {
    options.unwrap_or_else(|| PyDict::new(py))
}

fn builder(
    py: Python<'_>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<(WriterBuilder, Option<FlushPolicy>, Option<Duration>)> {
    let mut builder = CoreWriter::builder();
    if let Some(bytes) = take(keywords, "capacity")? {
        builder = builder.capacity(bytes);
    }
    let delay = keywords
        .get_item("flush")?
        .filter(|flush| flush.is_instance_of::<PyFloat>() || flush.is_instance_of::<PyInt>());
    let policy: Option<FlushPolicy> = match delay {
        Some(_) => seconds(py, keywords, "flush")?.map(FlushPolicy::Delay),
        None => word(
            py,
            keywords,
            "flush",
            &[("auto", FlushPolicy::Auto), ("full", FlushPolicy::WhenFull), ("line", FlushPolicy::Line)],
        )?,
    };
    if let Some(policy) = policy {
        builder = builder.flush_policy(policy);
    }
    let encodings = [
        ("auto", Encode::Auto),
        ("off", Encode::Off),
        ("gzip", Encode::Gzip),
        ("bgzf", Encode::Bgzf),
        ("zstd", Encode::Zstd),
    ];
    if let Some(encode) = word(py, keywords, "encode", &encodings)? {
        builder = builder.encode(encode);
    }
    if let Some(level) = take(keywords, "level")? {
        builder = builder.level(level);
    }
    if let Some(existing) =
        word(py, keywords, "existing", &[("replace", Existing::Replace), ("append", Existing::Append)])?
    {
        builder = builder.existing(existing);
    }
    if let Some(partial) = word(py, keywords, "partial", &[("remove", Partial::Remove), ("keep", Partial::Keep)])? {
        builder = builder.partial(partial);
    }
    let durabilities = [("cached", Durability::Cached), ("data", Durability::Data), ("all", Durability::All)];
    if let Some(durability) = word(py, keywords, "durability", &durabilities)? {
        builder = builder.durability(durability);
    }
    let limit = seconds(py, keywords, "stall_timeout")?;
    if let Some(limit) = limit {
        builder = builder.stall_timeout(limit);
    }
    if let Some(name) = take::<String>(keywords, "name")? {
        builder = builder.name(name);
    }
    Ok((builder, policy, limit))
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
    } else if let Ok(bytes) = foreign::copy(value) {
        line.extend_from_slice(&bytes);
    } else {
        line.extend_from_slice(value.str()?.to_str()?.as_bytes());
    }
    Ok(())
}

fn part(line: &mut Vec<u8>, number: impl millstream::put::Part) {
    let mut space = [0; 64];
    let mut room = Room::over(&mut space);
    room.put(number);
    line.extend_from_slice(room.as_bytes());
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
