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

    /// Whether records are text.
    pub fn is_text(&self) -> bool {
        !matches!(self, Encoding::Bytes)
    }

    /// Returns the object for these bytes, or Python's exception if they are not text.
    #[inline]
    pub fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Encoding::Bytes => return Ok(PyBytes::new(py, bytes).into_any()),
            Encoding::Utf8 => PyString::from_bytes(py, bytes),
            Encoding::Codec { encoding, errors } => {
                PyString::from_encoded_object(&PyBytes::new(py, bytes), Some(encoding), Some(errors))
            }
        }
        .map(Bound::into_any)
    }

    /// The names of the encoding and of the error handler, as Python has them.
    pub fn names(&self) -> (String, String) {
        match self {
            Encoding::Codec { encoding, errors } => {
                (encoding.to_string_lossy().into_owned(), errors.to_string_lossy().into_owned())
            }
            _ => ("utf-8".to_owned(), "strict".to_owned()),
        }
    }

    /// Returns Python's decoder for text that comes in pieces.
    pub fn decoder<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (encoding, errors) = self.names();
        py.import("codecs")?.call_method1("getincrementaldecoder", (encoding,))?.call1((errors,))
    }

    /// Returns the error of bytes that are not text, which Python's exception describes, and the index of the first invalid
    /// byte.
    #[cold]
    pub fn invalid(&self, py: Python<'_>, bytes: &[u8], cause: &PyErr) -> (Error, usize) {
        let error = match self {
            Encoding::Codec { encoding, .. } => Error::new(ErrorKind::Utf8Invalid)
                .with_found(cause.value(py).to_string())
                .with_expected(encoding.to_string_lossy()),
            _ => text(bytes).err().unwrap_or_else(|| Error::new(ErrorKind::Utf8Invalid)),
        };
        (error, cause.value(py).getattr("start").and_then(|start| start.extract()).unwrap_or(0))
    }

    /// Returns the exception for bytes that are not text, which Python's exception describes.
    #[cold]
    pub fn not_text(&self, py: Python<'_>, bytes: &[u8], place: &Place<'_>, cause: PyErr) -> PyErr {
        let (error, start) = self.invalid(py, bytes, &cause);
        let start = start as u64;
        let mut error = error.with_name(place.name).with_offset(place.offset + start);
        if let Some(record) = place.record {
            error = error.with_record(record);
        }
        if let Some(line) = place.line {
            error = error.with_line(line).with_column(start + 1);
        }
        error::raise_from(py, &error, cause)
    }
}

/// The place of bytes in their stream.
pub struct Place<'a> {
    pub name: &'a str,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of the record, if they are one.
    pub record: Option<u64>,
    /// The number of the line, if they are one in a text.
    pub line: Option<u64>,
}
