//! A record as an object of Python's: bytes, or text.

use std::ffi::CString;

use millstream::frame::text;
use millstream::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error;

/// What records are made into.
#[derive(Clone)]
pub enum Encoding {
    Bytes,
    /// Strict, the usual case.
    Utf8,
    /// By Python's codecs.
    Codec {
        encoding: CString,
        errors: CString,
    },
}

impl Encoding {
    /// # Errors
    /// For an encoding that Python does not know.
    pub fn new(py: Python<'_>, encoding: Option<String>, errors: Option<String>) -> PyResult<Encoding> {
        let errors = errors.unwrap_or_else(|| "strict".to_owned());
        let Some(encoding) = encoding else { return Ok(Encoding::Bytes) };
        let codecs = py.import("codecs")?;
        let known: String = codecs.call_method1("lookup", (&encoding,))?.getattr("name")?.extract()?;
        codecs.call_method1("lookup_error", (&errors,))?;
        if known == "utf-8" && errors == "strict" {
            return Ok(Encoding::Utf8);
        }
        Ok(Encoding::Codec { encoding: CString::new(known)?, errors: CString::new(errors)? })
    }

    /// The object for a record; `number` is asked where it is no text.
    #[inline]
    pub fn record<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        number: impl FnOnce() -> u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Encoding::Bytes => Ok(PyBytes::new(py, bytes).into_any()),
            Encoding::Utf8 => match PyString::from_bytes(py, bytes) {
                Ok(text) => Ok(text.into_any()),
                Err(cause) => {
                    let error = text(bytes).err().unwrap_or_else(|| Error::new(ErrorKind::Utf8Invalid));
                    Err(error::raise_from(py, &error.with_record(number()), cause))
                }
            },
            Encoding::Codec { encoding, errors } => {
                let decoded = PyString::from_encoded_object(&PyBytes::new(py, bytes), Some(encoding), Some(errors));
                decoded.map(Bound::into_any).map_err(|cause| {
                    let error = Error::new(ErrorKind::Utf8Invalid)
                        .with_found(cause.value(py).to_string())
                        .with_expected(encoding.to_string_lossy())
                        .with_record(number());
                    error::raise_from(py, &error, cause)
                })
            }
        }
    }
}
