//! Python objects as a source or a sink: functions that return bytes, file-like objects, memory.
//!
//! Functions are called only on the caller's thread, with the interpreter lock, which the core's call has released. The
//! standard input of a command is different: the core's thread takes it from an iterator.

use std::io::{Error as IoError, ErrorKind, Read, Result as IoResult};
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyIterator, PyMemoryView, PyString};

/// A function that the core calls and owns.
#[derive(Clone)]
pub struct Function(Arc<Mutex<Option<Py<PyAny>>>>);

/// A function as the garbage collector sees it: it can refer back to the reader or writer that calls it.
#[derive(Default)]
pub struct Functions(Vec<Weak<Mutex<Option<Py<PyAny>>>>>);

impl Function {
    /// # Errors
    /// For an object that is not callable.
    pub fn new(py: Python<'_>, function: Py<PyAny>) -> PyResult<Function> {
        if !function.bind(py).is_callable() {
            let kind = function.bind(py).get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!("expected a function, not an object of the type {kind}")));
        }
        Ok(Function(Arc::new(Mutex::new(Some(function)))))
    }

    fn bind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &*self.0.lock() {
            Some(function) => Ok(function.bind(py).clone()),
            None => Err(PyRuntimeError::new_err("the garbage collector has cleared the function")),
        }
    }

    pub fn call<'py>(&self, py: Python<'py>, args: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.bind(py)?.call1(args)
    }
}

impl Functions {
    pub fn add(&mut self, function: &Function) {
        self.0.push(Arc::downgrade(&function.0));
    }

    /// Shows each reference to the collector once: all clones of a `Function` share one.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for function in self.0.iter().filter_map(Weak::upgrade) {
            // A locked function is in use, so it is not garbage.
            if let Some(function) = function.try_lock() {
                visit.call(function.as_ref())?;
            }
        }
        Ok(())
    }

    /// Drops the references.
    pub fn clear(&self) {
        for function in self.0.iter().filter_map(Weak::upgrade) {
            let taken = function.lock().take();
            // Dropping may call this function again.
            drop(taken);
        }
    }
}

/// The bytes of an object: those of `bytes` itself, and a copy of any other object that supports the buffer protocol,
/// such as a memoryview, an array or a mapped file, because its bytes may change.
pub struct Bytes(PyBackedBytes);

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Bytes> {
        let bytes = match object.cast::<PyBytes>() {
            Ok(bytes) => bytes.to_owned(),
            // `bytes(view)` has the items of any format and shape in order.
            Err(_) => PyMemoryView::from(&object)?.call_method0("tobytes")?.cast_into::<PyBytes>()?,
        };
        Ok(Bytes(bytes.into()))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// A reader's source: `read(n)` returns at most `n` bytes, and none at the end.
pub fn source(read: Function) -> impl FnMut(&mut [u8]) -> IoResult<usize> + Send + 'static {
    let mut pieces = Pieces::new(move |len| {
        let bytes = Python::attach(|py| call(py, &read, len)).map_err(IoError::other)?;
        bytes.ok_or_else(|| ErrorKind::WouldBlock.into())
    });
    move |space| pieces.read(space)
}

/// The standard input of a command: the bytes or the text that an iterator returns. The core's thread calls it.
pub fn input(iterator: Py<PyIterator>) -> impl Read + Send + 'static {
    let iterator = Shared(Some(iterator));
    Pieces::new(move |_| Python::attach(|py| iterator.next_piece(py)).map_err(IoError::other))
}

/// An object that a thread without the interpreter lock drops.
struct Shared(Option<Py<PyIterator>>);

impl Shared {
    /// Returns the next piece, or no bytes at the end.
    fn next_piece(&self, py: Python<'_>) -> PyResult<PyBackedBytes> {
        let Some(iterator) = &self.0 else { return Ok(PyBytes::new(py, b"").into()) };
        for piece in iterator.bind(py).clone() {
            let piece = piece?;
            let bytes = match piece.cast::<PyString>() {
                Ok(text) => text.encode_utf8()?.into(),
                Err(_) => piece.extract::<Bytes>()?.0,
            };
            if !bytes.is_empty() {
                return Ok(bytes);
            }
        }
        Ok(PyBytes::new(py, b"").into())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(iterator) = self.0.take() {
            let mut kept = Some(iterator);
            Python::try_attach(|_| kept = None);
            // At the end of the program there is no interpreter that could drop it.
            std::mem::forget(kept);
        }
    }
}

/// Bytes that a function returns piece by piece: it is called with the number of bytes that are requested. No bytes are
/// the end.
struct Pieces<F> {
    next: F,
    /// A piece that was longer than requested, and how much of it has been used.
    left: Option<(PyBackedBytes, usize)>,
}

impl<F: FnMut(usize) -> IoResult<PyBackedBytes>> Pieces<F> {
    fn new(next: F) -> Pieces<F> {
        Pieces { next, left: None }
    }
}

impl<F: FnMut(usize) -> IoResult<PyBackedBytes>> Read for Pieces<F> {
    fn read(&mut self, space: &mut [u8]) -> IoResult<usize> {
        let (bytes, used) = match self.left.take() {
            Some(left) => left,
            None => ((self.next)(space.len())?, 0),
        };
        let count = (bytes.len() - used).min(space.len());
        space[..count].copy_from_slice(&bytes[used..used + count]);
        if used + count < bytes.len() {
            self.left = Some((bytes, used + count));
        }
        Ok(count)
    }
}

/// Calls `read`. `None` means that there is no data yet, as in non-blocking files.
fn call(py: Python<'_>, read: &Function, len: usize) -> PyResult<Option<PyBackedBytes>> {
    py.check_signals()?;
    let bytes = read.call(py, (len,))?;
    if bytes.is_none() {
        return Ok(None);
    }
    if let Ok(bytes) = bytes.extract() {
        return Ok(Some(bytes));
    }
    match bytes.getattr("__class__")?.getattr("__name__")?.to_string().as_str() {
        "str" => Err(PyTypeError::new_err("the source returned str, not bytes: open it in binary mode")),
        other => Err(PyTypeError::new_err(format!("the source returned {other}, not bytes"))),
    }
}

/// A writer's sink: `write(bytes)` returns how many bytes it accepted, or `None` for all.
pub fn sink(write: Function) -> impl FnMut(&[u8]) -> IoResult<usize> + Send + 'static {
    move |bytes| {
        let taken = Python::attach(|py| {
            py.check_signals()?;
            write.call(py, (bytes,))?.extract::<Option<usize>>()
        });
        let taken = taken.map_err(IoError::other)?.unwrap_or(bytes.len());
        if taken > bytes.len() {
            return Err(IoError::other(format!("a write that reports {taken} of {} bytes", bytes.len())));
        }
        Ok(taken)
    }
}
