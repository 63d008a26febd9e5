//! Framers for Python.

use millstream::frame::{
    Bson, Delimiter, Endian, Fixed, Framer as CoreFramer, LengthPrefixed, Lines, Predicate, PrefixCounts, PrefixWidth,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error;
use crate::number::Whole;

/// A way to find records, usable by any number of readers.
#[pyclass(frozen, eq, module = "millstream")]
#[derive(Clone, PartialEq)]
pub struct Framer {
    pub spec: Spec,
}

#[derive(Clone, PartialEq)]
pub enum Spec {
    Lines { keep: bool },
    Delimiter { bytes: Vec<u8>, keep: bool },
    AnyOf { bytes: Vec<u8>, keep: bool },
    Fixed(usize),
    LengthPrefixed { width: PrefixWidth, endian: Endian, counts: PrefixCounts },
    Bson,
}

impl Spec {
    /// The core's framer.
    pub fn build(&self) -> Result<Box<dyn CoreFramer + Send>, millstream::Error> {
        Ok(match self {
            Spec::Lines { keep: false } => Box::new(Lines::new()),
            Spec::Lines { keep: true } => Box::new(Lines::untrimmed()),
            Spec::Delimiter { bytes, keep } => {
                let framer = Delimiter::bytes(bytes.clone())?;
                Box::new(if *keep { framer.untrimmed() } else { framer })
            }
            Spec::AnyOf { bytes, keep } => {
                let bytes = bytes.clone();
                let framer = Predicate::new(move |byte| bytes.contains(&byte));
                Box::new(if *keep { framer.untrimmed() } else { framer })
            }
            Spec::Fixed(len) => Box::new(Fixed::new(*len)?),
            Spec::LengthPrefixed { width, endian, counts } => {
                Box::new(LengthPrefixed::new(*width, *endian).counts(*counts))
            }
            Spec::Bson => Box::new(Bson::new()),
        })
    }
}

#[pymethods]
impl Framer {
    /// Records are lines, without the line feed and a carriage return before it.
    #[staticmethod]
    #[pyo3(signature = (*, keep_delimiter = false))]
    fn lines(keep_delimiter: bool) -> Framer {
        Framer { spec: Spec::Lines { keep: keep_delimiter } }
    }

    /// Records end with this byte, byte string, or UTF-8 text.
    #[staticmethod]
    #[pyo3(signature = (delimiter, *, keep_delimiter = false))]
    fn delimiter(py: Python<'_>, delimiter: Words, keep_delimiter: bool) -> PyResult<Framer> {
        checked(py, Spec::Delimiter { bytes: delimiter.into_bytes(), keep: keep_delimiter })
    }

    /// Records end after any of these bytes.
    #[staticmethod]
    #[pyo3(signature = (delimiters, *, keep_delimiter = false))]
    fn any_of(py: Python<'_>, delimiters: PyBackedBytes, keep_delimiter: bool) -> PyResult<Framer> {
        checked(py, Spec::AnyOf { bytes: delimiters.to_vec(), keep: keep_delimiter })
    }

    /// Records have this many bytes.
    #[staticmethod]
    fn fixed(py: Python<'_>, length: Whole<usize>) -> PyResult<Framer> {
        checked(py, Spec::Fixed(length.0))
    }

    /// Records are preceded by their length, which has 1, 2, 4 or 8 bytes and may count itself.
    #[staticmethod]
    #[pyo3(signature = (width = Whole(4), *, endian = "little", counts = "payload"))]
    fn length_prefixed(py: Python<'_>, width: Whole<u32>, endian: &str, counts: &str) -> PyResult<Framer> {
        let width = match width.0 {
            1 => PrefixWidth::U8,
            2 => PrefixWidth::U16,
            4 => PrefixWidth::U32,
            8 => PrefixWidth::U64,
            other => return Err(error::refuse(py, format!("a prefix of {other} bytes"), "1, 2, 4 or 8")),
        };
        let endian = match endian {
            "little" => Endian::Little,
            "big" => Endian::Big,
            other => return Err(error::refuse(py, format!("the byte order {other:?}"), "\"little\" or \"big\"")),
        };
        let counts = match counts {
            "payload" => PrefixCounts::Payload,
            "itself" => PrefixCounts::Itself,
            other => {
                return Err(error::refuse(py, format!("a length that counts {other:?}"), "\"payload\" or \"itself\""));
            }
        };
        checked(py, Spec::LengthPrefixed { width, endian, counts })
    }

    /// BSON documents.
    #[staticmethod]
    fn bson() -> Framer {
        Framer { spec: Spec::Bson }
    }
}

fn checked(py: Python<'_>, spec: Spec) -> PyResult<Framer> {
    spec.build().map_err(|error| error::raise(py, &error))?;
    Ok(Framer { spec })
}

/// A delimiter as bytes, as text, or as the number of a byte.
#[derive(FromPyObject)]
pub enum Words {
    Bytes(PyBackedBytes),
    Text(String),
    Byte(Whole<u8>),
}

impl Words {
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Words::Bytes(bytes) => bytes.to_vec(),
            Words::Text(text) => text.into_bytes(),
            Words::Byte(Whole(byte)) => vec![byte],
        }
    }
}
