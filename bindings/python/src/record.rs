//! Records as Python objects: bytes or text.

use std::ffi::CString;

use millstream::frame::text;
use millstream::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error;

/// The conversion of records.
#[derive(Clone)]
pub enum Encoding {
    Bytes,
    /// Strict UTF-8, the usual case.
    Utf8,
    /// Conversion by Python's codecs.
    Codec {
        encoding: CString,
        errors: CString,
    },
}

impl Encoding {
    /// # Errors
    /// Returns an error if Python does not know the encoding or the error handler.
    pub fn new(py: Python<'_>, encoding: Option<String>, errors: Option<String>) -> PyResult<Encoding> {
        let Some(encoding) = encoding else {
            return match errors {
                Some(errors) => {
                    Err(error::refuse(py, format!("errors={errors:?} without an encoding"), "an encoding too"))
                }
                None => Ok(Encoding::Bytes),
            };
        };
        let errors = errors.unwrap_or_else(|| "strict".to_owned());
        let codecs = py.import("codecs")?;
        let unknown = |cause: PyErr, option: &str, word: &str, expected: &str| {
            let error = Error::new(ErrorKind::InvalidOption).with_found(format!("{option}={word:?}"));
            error::raise_from(py, &error.with_expected(expected), cause)
        };
        let codec = codecs.call_method1("lookup", (&encoding,));
        let codec = codec.map_err(|cause| unknown(cause, "encoding", &encoding, "an encoding known to Python"))?;
        if !codec.getattr("_is_text_encoding").and_then(|is_text| is_text.is_truthy()).unwrap_or(true) {
            return Err(error::refuse(py, format!("encoding={encoding:?}"), "a text encoding"));
        }
        let known: String = codec.getattr("name")?.extract()?;
        let handler = codecs.call_method1("lookup_error", (&errors,));
        handler.map_err(|cause| {
            unknown(cause, "errors", &errors, "\"strict\", \"replace\" or another error handler of Python")
        })?;
        if known == "utf-8" && errors == "strict" {
            return Ok(Encoding::Utf8);
        }
        Ok(Encoding::Codec { encoding: CString::new(known)?, errors: CString::new(errors)? })
    }

    /// Returns whether splitting the bytes at line feeds also splits the text into lines.
    pub fn has_lines(&self, py: Python<'_>) -> PyResult<bool> {
        let Encoding::Codec { encoding, .. } = self else { return Ok(true) };
        let decoded = PyString::from_encoded_object(&PyBytes::new(py, b"\n"), Some(encoding), Some(c"replace"))?;
        Ok(decoded == "\n")
    }

    /// Returns the object for a record; `number` is called if the record is not text.
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
