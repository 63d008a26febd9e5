//! Converts errors of the core to Python exceptions.
//!
//! The classes are written in Python (`millstream/_errors.py`), which chooses one by the error's kind. An exception
//! raised by Python code, such as a source that is a function, is raised again unchanged.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use millstream::bson::join_path;
use millstream::{CommandEnd, CommandStatus, Error, ErrorKind};
use pyo3::exceptions::PyUnicodeDecodeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

/// Returns the exception for an error of the core.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    if let Some(raised) = raised(error) {
        return raised.clone_ref(py);
    }
    exception(py, error, None).unwrap_or_else(|failed| failed)
}

/// Returns the exception for an error of the core, with a Python exception as its cause. For a `UnicodeDecodeError` it
/// has the same details instead: it is one, too.
pub fn raise_from(py: Python<'_>, error: &Error, cause: PyErr) -> PyErr {
    exception(py, error, Some(cause)).unwrap_or_else(|failed| failed)
}

/// Returns the exception for a reader or writer that another thread, or its own source, is using.
pub fn in_use(py: Python<'_>, name: &str) -> PyErr {
    let error = Error::new(ErrorKind::Closed)
        .with_name(name)
        .with_found("a call during another one")
        .with_expected("one call at a time");
    let raised = class(py, "in_use").and_then(|make| make.call1((details(py, &error)?,)));
    raised.map_or_else(|failed| failed, |exception| PyErr::from_value(exception.into_any()))
}

/// Returns the exception for an object that has been closed.
pub fn closed(py: Python<'_>, name: &str) -> PyErr {
    let error = Error::new(ErrorKind::Closed).with_name(name).with_found("a call after close");
    raise(py, &error)
}

/// Returns the exception for a reader or writer that is `"closed"` or `"in_use"`, for code written in Python.
#[pyfunction]
pub fn state_error(py: Python<'_>, state: &str, name: &str) -> Py<PyAny> {
    let raised = if state == "in_use" { in_use(py, name) } else { closed(py, name) };
    raised.into_value(py).into_any()
}

/// Returns the exception for an invalid argument.
pub fn refuse(py: Python<'_>, found: impl Into<String>, expected: impl Into<String>) -> PyErr {
    raise(py, &Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
}

/// Returns what the word of an option means, or the exception for another word.
pub fn choose<T: Copy>(py: Python<'_>, option: &str, found: &str, choices: &[(&str, T)]) -> PyResult<T> {
    choices.iter().find(|(word, _)| *word == found).map(|&(_, choice)| choice).ok_or_else(|| {
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
        refuse(py, format!("{option}={found:?}"), words.join(" or "))
    })
}

/// Returns the exception for an invalid argument, for code written in Python.
#[pyfunction]
pub fn option_error(py: Python<'_>, found: String, expected: String) -> Py<PyAny> {
    refuse(py, found, expected).into_value(py).into_any()
}

/// Returns the exception for a document that does not match the requested type: `key_missing`, `value_out_of_range` or
/// `shape_mismatch`.
#[pyfunction]
#[pyo3(signature = (kind, keys, found, expected, record = None))]
pub fn document_error(
    py: Python<'_>,
    kind: &str,
    keys: Vec<String>,
    found: String,
    expected: String,
    record: Option<u64>,
) -> Py<PyAny> {
    let kind = match kind {
        "key_missing" => ErrorKind::KeyMissing,
        "value_out_of_range" => ErrorKind::ValueOutOfRange,
        _ => ErrorKind::ShapeMismatch,
    };
    let mut error = Error::new(kind).with_found(found).with_expected(expected);
    if !keys.is_empty() {
        error = error.with_path(join_path(keys));
    }
    if let Some(record) = record {
        error = error.with_record(record);
    }
    raise(py, &error).into_value(py).into_any()
}

/// Returns the advice of each kind, for tests.
#[pyfunction]
pub fn hints() -> HashMap<&'static str, String> {
    ErrorKind::ALL.iter().map(|&kind| (kind.name(), hint(&Error::new(kind)))).collect()
}

/// Returns the advice without what Python lacks.
fn hint(error: &Error) -> String {
    error.advice_with(|name| (name != "depth").then(|| format!("`{name}`")))
}

/// Returns the exception that a pipe raises: `stage_failed` or `cancelled`.
#[pyfunction]
#[pyo3(signature = (kind, name, record = None, offset = None, line = None, found = None))]
pub fn pipe_error(
    py: Python<'_>,
    kind: &str,
    name: Option<String>,
    record: Option<u64>,
    offset: Option<u64>,
    line: Option<u64>,
    found: Option<String>,
) -> Py<PyAny> {
    let mut error = Error::new(if kind == "cancelled" { ErrorKind::Cancelled } else { ErrorKind::StageFailed });
    if let Some(name) = name {
        error = error.with_name(name);
    }
    if let Some(record) = record {
        error = error.with_record(record);
    }
    if let Some(offset) = offset {
        error = error.with_offset(offset);
    }
    if let Some(line) = line {
        error = error.with_line(line);
    }
    if let Some(found) = found {
        error = error.with_found(found);
    }
    raise(py, &error).into_value(py).into_any()
}

/// Returns the exception of Python code, if it caused this error.
pub fn raised(error: &Error) -> Option<&PyErr> {
    error.io()?.get_ref()?.downcast_ref()
}

/// How a command ended, as a Python object.
pub fn command_end<'py>(py: Python<'py>, end: &CommandEnd) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("millstream._command")?.getattr("CommandEnd")?;
    class.call1((argv(py, &end.argv)?, status(end.status), PyBytes::new(py, &end.stderr_tail)))
}

fn exception(py: Python<'_>, error: &Error, cause: Option<PyErr>) -> PyResult<PyErr> {
    let text = cause.as_ref().filter(|cause| cause.is_instance_of::<PyUnicodeDecodeError>(py));
    let text = text.map(|cause| cause.value(py));
    let exception = class(py, "from_native")?.call1((details(py, error)?, py.None(), text))?;
    let raised = PyErr::from_value(exception);
    if text.is_none() {
        raised.set_cause(py, cause);
    }
    Ok(raised)
}

fn class<'py>(py: Python<'py>, name: &'static str) -> PyResult<Bound<'py, PyAny>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || py.import("millstream._errors").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

fn details<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
    let details = PyDict::new(py);
    let hint = hint(error);
    details.set_item("message", format!("{}; {hint}", error.without_advice()))?;
    details.set_item("code", error.kind().code())?;
    details.set_item("kind", error.kind().name())?;
    details.set_item("hint", hint)?;
    details.set_item("name", error.name())?;
    details.set_item("offset", error.offset())?;
    details.set_item("record", error.record())?;
    details.set_item("line", error.line())?;
    details.set_item("column", error.column())?;
    details.set_item("path", error.path())?;
    details.set_item("found", error.found())?;
    details.set_item("expected", error.expected())?;
    details.set_item("written", error.written())?;
    details.set_item("errno", error.errno())?;
    if let Some(end) = error.command() {
        details.set_item("argv", argv(py, &end.argv)?)?;
        details.set_item("status", status(end.status))?;
        details.set_item("stderr_tail", PyBytes::new(py, &end.stderr_tail))?;
    }
    Ok(details)
}

/// The status as in `subprocess`: the negative signal number if a signal killed the command.
fn status(status: CommandStatus) -> Option<i32> {
    match status {
        CommandStatus::Exited(status) => Some(status),
        CommandStatus::Signaled(signal) => Some(-signal),
        _ => None,
    }
}

fn argv<'py>(py: Python<'py>, argv: &[OsString]) -> PyResult<Bound<'py, PyTuple>> {
    let words = argv.iter().map(|word| match word.to_str() {
        Some(text) => text.to_owned(),
        None => String::from_utf8_lossy(&word.clone().into_vec()).into_owned(),
    });
    PyTuple::new(py, words.collect::<Vec<_>>())
}
