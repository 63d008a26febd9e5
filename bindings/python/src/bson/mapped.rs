//! One document of a mapped file: members are looked up in place, and arrays of numbers are views without a copy.

use std::sync::Arc;

use millstream::bson::{Array, Document, ElementType, Mapped as CoreMapped};
use pyo3::prelude::*;

use super::Types;
use super::decode::{Decoder, raise};
use crate::error;
use crate::memory::{Memory, Owner};
use crate::remote::Location;

/// The name of a value's type, the object if there is one, and the subtype for binary data.
type Found<'py> = (&'static str, Option<Bound<'py, PyAny>>, u8);

/// A mapped file.
#[pyclass(frozen, module = "millstream._native")]
pub struct Mapped {
    file: Arc<CoreMapped>,
    types: Py<Types>,
}

#[pymethods]
impl Mapped {
    #[new]
    fn new(py: Python<'_>, path: Location, types: Py<Types>) -> PyResult<Mapped> {
        let path = path.file(py, "mapped")?;
        let file = py.detach(|| CoreMapped::open(path)).map_err(|error| error::raise(py, &error))?;
        file.document().map_err(|error| error::raise(py, &error))?;
        Ok(Mapped { file: Arc::new(file), types })
    }

    #[getter]
    fn name(&self) -> &str {
        self.file.name()
    }

    /// The keys of the document at this path.
    fn keys(&self, py: Python<'_>, path: Vec<String>) -> PyResult<Vec<String>> {
        let document = self.file.document().map_err(|error| error::raise(py, &error))?;
        let mut keys = Vec::new();
        let found = match path.is_empty() {
            true => Ok(document),
            // An array is a document whose keys are numbers.
            false => match document.require_path::<Array<'_>>(&path) {
                Ok(array) => Ok(array.as_document()),
                Err(_) => document.require_path::<Document<'_>>(&path),
            },
        };
        for element in found.map_err(|error| error::raise(py, &error.with_name(self.file.name())))? {
            keys.push(
                element
                    .and_then(|element| element.key().map(str::to_owned))
                    .map_err(|error| error::raise(py, &error))?,
            );
        }
        Ok(keys)
    }

    /// The value at a path: a document or an array as its type's name alone, binary data as memory and its subtype,
    /// anything else as a Python object.
    fn find<'py>(&self, py: Python<'py>, path: Vec<String>) -> PyResult<Option<Found<'py>>> {
        let raised = |error: millstream::Error| error::raise(py, &error.with_name(self.file.name()));
        let document = self.file.document().map_err(raised)?;
        let Some(element) = document.find_path(&path).map_err(raised)? else { return Ok(None) };
        let kind = element.kind();
        Ok(Some(match kind {
            ElementType::Document | ElementType::Array => (kind.name(), None, 0),
            ElementType::Binary => {
                let binary: millstream::bson::Binary<&[u8]> = element.get().map_err(raised)?;
                let whole = self.file.as_bytes();
                // The offset of the value: both slices are parts of the mapped memory.
                let start = binary.bytes.as_ptr().addr() - whole.as_ptr().addr();
                let range = start..start + binary.bytes.len();
                let memory = Py::new(py, Memory(Owner::Mapped(self.file.clone(), range)))?;
                (kind.name(), Some(memory.into_bound(py).into_any()), binary.subtype)
            }
            _ => (kind.name(), Some(self.object(py, path)?), 0),
        }))
    }

    /// The value at a path, as Python objects.
    fn object<'py>(&self, py: Python<'py>, path: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let raised = |error: millstream::Error| error::raise(py, &error.with_name(self.file.name()));
        let document = self.file.document().map_err(raised)?;
        let mut decoder = Decoder::new(py, self.types.get());
        if path.is_empty() {
            let made = decoder.document(&mut document.cursor());
            return made.map(Bound::into_any).map_err(|trouble| raise(py, trouble));
        }
        let Some(element) = document.find_path(&path).map_err(raised)? else {
            return Err(raised(millstream::Error::new(millstream::ErrorKind::KeyMissing).with_path(path.join("."))));
        };
        let (kind, at) = (element.kind(), element.payload());
        let start = at.as_ptr().addr() - document.as_bytes().as_ptr().addr();
        let made = document.read_at(start, document.cursor().depth_left(), |cursor| Ok(decoder.value(kind, cursor)));
        made.map_err(raised)?.map_err(|trouble| raise(py, trouble))
    }
}
