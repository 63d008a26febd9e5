//! BSON for Python.
//!
//! - `decode`: documents into dicts. `encode`: dicts into documents.
//! - `mapped`: one document of a mapped file, whose arrays are views without a copy.
//! - `columns`: documents as Arrow's stream of batches. `julia`: Julia files.

pub mod columns;
pub mod decode;
pub mod encode;
pub mod julia;
pub mod mapped;

use pyo3::prelude::*;

/// The classes for the types that Python lacks: Millstream's, or pymongo's.
#[pyclass(frozen, module = "millstream._native")]
pub struct Types {
    object_id: Py<PyAny>,
    /// `None` if all dates are `other_date`.
    date: Option<Py<PyAny>>,
    /// Dates outside Python's range.
    other_date: Py<PyAny>,
    decimal: Py<PyAny>,
    binary: Py<PyAny>,
    regex: Py<PyAny>,
    code: Py<PyAny>,
    timestamp: Py<PyAny>,
    min_key: Py<PyAny>,
    max_key: Py<PyAny>,
    zone: Py<PyAny>,
}

#[pymethods]
impl Types {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each type")]
    fn new(
        object_id: Py<PyAny>,
        date: Option<Py<PyAny>>,
        other_date: Py<PyAny>,
        decimal: Py<PyAny>,
        binary: Py<PyAny>,
        regex: Py<PyAny>,
        code: Py<PyAny>,
        timestamp: Py<PyAny>,
        min_key: Py<PyAny>,
        max_key: Py<PyAny>,
        zone: Py<PyAny>,
    ) -> Types {
        Types { object_id, date, other_date, decimal, binary, regex, code, timestamp, min_key, max_key, zone }
    }
}
