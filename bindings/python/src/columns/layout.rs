//! The definition of the columns.

use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyType};

use super::kind::{KINDS, Kind};
use crate::error;

/// The columns, and how fields are separated.
pub struct Layout {
    /// For each field up to the last column, its column if it has one.
    pub columns: Vec<Option<Column>>,
    pub separator: u8,
    /// A field of these bytes is a missing value.
    pub missing: Option<Vec<u8>>,
    /// Whether records are lines, as the core's number parser requires.
    pub lines: bool,
}

/// A field that is a column.
pub struct Column {
    pub name: String,
    pub kind: &'static dyn Kind,
}

impl Layout {
    /// Creates a layout from the arguments of `Reader.columns`: types by name, or in a sequence.
    pub fn new(
        py: Python<'_>,
        separator: Vec<u8>,
        types: &Bound<'_, PyAny>,
        missing: Option<String>,
        lines: bool,
    ) -> PyResult<Layout> {
        let &[separator] = &separator[..] else {
            return Err(error::refuse(py, format!("a separator of {} bytes", separator.len()), "one byte"));
        };
        if !separator.is_ascii() {
            return Err(error::refuse(py, format!("the separator 0x{separator:02x}"), "a byte of ASCII"));
        }
        let mut columns: Vec<Option<Column>> = Vec::new();
        let mut add = |name: String, kind: &Bound<'_, PyAny>| -> PyResult<()> {
            if columns.iter().flatten().any(|other| other.name == name) {
                return Err(error::refuse(py, format!("two columns {name:?}"), "a name for each"));
            }
            columns.push(if kind.is_none() { None } else { Some(Column { name, kind: kind_of(kind)? }) });
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
        while columns.last().is_some_and(Option::is_none) {
            columns.pop();
        }
        if columns.is_empty() {
            return Err(error::refuse(py, "no column", "at least one type"));
        }
        Ok(Layout { columns, separator, missing: missing.map(String::into_bytes), lines })
    }

    /// The columns, each with the number of its field.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.as_ref()?)))
    }

    /// Whether a column is text.
    pub fn has_text(&self) -> bool {
        self.columns().any(|(_, column)| column.kind.data_type() == DataType::Utf8)
    }

    /// The name of a field in errors: its column's name, or its number.
    pub fn name(&self, field: usize) -> String {
        match self.columns.get(field) {
            Some(Some(column)) => column.name.clone(),
            _ => field.to_string(),
        }
    }
}

fn kind_of(python: &Bound<'_, PyAny>) -> PyResult<&'static dyn Kind> {
    let name = match python.cast::<PyType>() {
        Ok(class) => class.name()?.to_string(),
        Err(_) => python.str()?.to_string(),
    };
    KINDS.iter().find(|(word, _)| *word == name).map(|(_, kind)| *kind).ok_or_else(|| {
        let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
        error::refuse(python.py(), format!("the type {name}"), format!("{} or None", words.join(", ")))
    })
}
