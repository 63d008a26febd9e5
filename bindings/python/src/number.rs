//! Whole numbers as arguments. Booleans are not accepted, and a number that is out of range is an invalid argument.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::error;

/// A whole number.
#[derive(Clone, Copy)]
pub struct Whole<T>(pub T);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Whole<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Whole<T>> {
        refuse_bool(&object)?;
        object.extract::<T>().map(Whole).map_err(|error| {
            let error: PyErr = error.into();
            match error.is_instance_of::<PyOverflowError>(object.py()) {
                true => error::refuse(object.py(), object.to_string(), "a whole number within the range"),
                false => error,
            }
        })
    }
}

/// Python's booleans are numbers too, but passing one where a number is expected is a mistake.
pub fn refuse_bool(object: &Bound<'_, PyAny>) -> PyResult<()> {
    match object.is_instance_of::<PyBool>() {
        true => Err(PyTypeError::new_err(format!("expected a number, not {object}"))),
        false => Ok(()),
    }
}
