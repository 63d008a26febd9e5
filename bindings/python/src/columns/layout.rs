//! The definition of the columns.

use arrow_schema::{DataType, Field};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyType};

use crate::error;

/// The names of types. NumPy's own types have these names, too.
const KINDS: &[(&str, DataType)] = &[
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
    ("int", DataType::Int64),
    ("float", DataType::Float64),
    ("str", DataType::Utf8),
    ("bytes", DataType::Binary),
];

/// The columns, and how fields are separated.
pub struct Layout {
    /// For each field up to the last column, its column if it has one.
    pub columns: Vec<Option<Field>>,
    pub separator: u8,
    /// A field of these bytes is a missing value.
    pub missing: Option<Vec<u8>>,
}

impl Layout {
    /// Creates a layout from the arguments of `Reader.columns`: types by name, or in a sequence.
    pub fn new(
        py: Python<'_>,
        separator: Vec<u8>,
        types: &Bound<'_, PyAny>,
        missing: Option<String>,
    ) -> PyResult<Layout> {
        let &[separator] = &separator[..] else {
            return Err(error::refuse(py, format!("a separator of {} bytes", separator.len()), "one byte"));
        };
        let mut columns: Vec<Option<Field>> = Vec::new();
        let mut add = |name: String, kind: &Bound<'_, PyAny>| -> PyResult<()> {
            if columns.iter().flatten().any(|other| *other.name() == name) {
                return Err(error::refuse(py, format!("two columns {name:?}"), "a name for each"));
            }
            let field = |kind| Field::new(name, kind, missing.is_some());
            columns.push(if kind.is_none() { None } else { Some(field(kind_of(kind)?)) });
            Ok(())
        };
        match types.cast::<PyMapping>() {
            Ok(mapping) => {
                for item in mapping.items()? {
                    let (name, kind) = item.extract::<(String, Bound<'_, PyAny>)>()?;
                    add(name, &kind)?;
                }
            }
            Err(_) => {
                for (number, kind) in types.try_iter()?.enumerate() {
                    add(number.to_string(), &kind?)?;
                }
            }
        }
        Ok(Layout { columns, separator, missing: missing.map(String::into_bytes) })
    }

    /// Whether a column is text.
    pub fn has_text(&self) -> bool {
        self.columns.iter().flatten().any(|column| *column.data_type() == DataType::Utf8)
    }
}

fn kind_of(python: &Bound<'_, PyAny>) -> PyResult<DataType> {
    let name = match python.cast::<PyType>() {
        Ok(class) => class.name()?.to_string(),
        Err(_) => python.str()?.to_string(),
    };
    KINDS.iter().find(|(word, _)| *word == name).map(|(_, kind)| kind.clone()).ok_or_else(|| {
        let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
        error::refuse(python.py(), format!("the type {name}"), format!("{} or None", words.join(", ")))
    })
}
