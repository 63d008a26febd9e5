//! Converts dicts into documents.

use millstream::bson::{Binary, Builder, Cursor, DateTime, ElementType, Map, Rules, Timestamp, ToBson, Value};
use millstream::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::decode::{Trouble, raise};
use crate::foreign;

/// The document of a dict. `other` classifies an object that is not of a built-in type: the name of its type and its
/// parts, or its payload.
#[pyfunction]
pub fn bson_dumps<'py>(
    py: Python<'py>,
    document: &Bound<'py, PyDict>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut builder = Builder::new();
    let built = members(&mut builder, document, other).and_then(|()| Ok(builder.into_bytes()?));
    built.map(|bytes| PyBytes::new(py, &bytes)).map_err(|trouble| raise(py, trouble))
}

fn members(builder: &mut Builder, dict: &Bound<'_, PyDict>, other: &Bound<'_, PyAny>) -> Result<(), Trouble> {
    for (key, value) in dict {
        let Ok(key) = key.cast::<PyString>() else {
            let found = key.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a key of a document is str, not {found}")).into());
        };
        put(builder, Some(key.to_str()?), &value, other)?;
    }
    Ok(())
}

/// Appends a value, under its key or to an array.
fn put(
    builder: &mut Builder,
    key: Option<&str>,
    value: &Bound<'_, PyAny>,
    other: &Bound<'_, PyAny>,
) -> Result<(), Trouble> {
    // A user's subclass of a built-in type may represent something else, which `other` determines.
    if let Ok(text) = value.cast_exact::<PyString>() {
        add(builder, key, text.to_str()?)
    } else if let Ok(bool) = value.cast::<PyBool>() {
        add(builder, key, &bool.is_true())
    } else if let Ok(int) = value.cast_exact::<PyInt>() {
        match int.extract::<i64>() {
            // The smallest type that fits, as in other drivers.
            Ok(int) => match i32::try_from(int) {
                Ok(int) => add(builder, key, &int),
                Err(_) => add(builder, key, &int),
            },
            Err(_) => Err(Error::new(ErrorKind::ValueOutOfRange)
                .with_found(int.str()?.to_string())
                .with_expected("a 64-bit integer")
                .into()),
        }
    } else if let Ok(float) = value.cast_exact::<PyFloat>() {
        add(builder, key, &float.value())
    } else if let Ok(dict) = value.cast::<PyDict>() {
        match key {
            Some(key) => builder.open_document(key)?,
            None => builder.push_document()?,
        }
        members(builder, dict, other)?;
        Ok(builder.close()?)
    } else if value.is_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>() {
        match key {
            Some(key) => builder.open_array(key)?,
            None => builder.push_array()?,
        }
        for item in value.try_iter()? {
            put(builder, None, &item?, other)?;
        }
        Ok(builder.close()?)
    } else if value.is_none() {
        add(builder, key, &Value::Null)
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        add(builder, key, &Binary { subtype: 0, bytes: bytes.as_bytes() })
    } else {
        put_other(builder, key, value, other)
    }
}

fn put_other(
    builder: &mut Builder,
    key: Option<&str>,
    value: &Bound<'_, PyAny>,
    other: &Bound<'_, PyAny>,
) -> Result<(), Trouble> {
    let (word, parts): (String, Bound<'_, PyTuple>) = other.call1((value,))?.extract()?;
    let part = |number| parts.get_item(number);
    match word.as_str() {
        // The value represents another object.
        "as" => put(builder, key, &part(0)?, other),
        "date" => add(builder, key, &DateTime(part(0)?.extract()?)),
        "binData" => {
            let bytes = part(0)?.extract::<foreign::Bytes>()?.to_vec();
            add(builder, key, &Binary { subtype: part(1)?.extract()?, bytes })
        }
        "regex" => add(builder, key, &Value::Regex { pattern: part(0)?.extract()?, options: part(1)?.extract()? }),
        "javascript" if part(1)?.is_none() => add(builder, key, &Value::Code(part(0)?.extract()?)),
        "javascript" => {
            let mut scope = Builder::new();
            members(&mut scope, part(1)?.cast::<PyDict>().map_err(PyErr::from)?, other)?;
            let scope = Map::from_slice(&scope.into_bytes()?)?;
            add(builder, key, &Value::CodeWithScope { code: part(0)?.extract()?, scope })
        }
        "timestamp" => add(builder, key, &Timestamp { time: part(0)?.extract()?, increment: part(1)?.extract()? }),
        name => match ElementType::ALL.iter().find(|kind| kind.name() == name) {
            Some(kind) => add(
                builder,
                key,
                &Payload { kind: *kind, bytes: part(0)?.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes() },
            ),
            None => Err(PyTypeError::new_err(format!("{name} is not a BSON type")).into()),
        },
    }
}

/// A value of this type, as it is stored.
struct Payload<'p> {
    kind: ElementType,
    bytes: &'p [u8],
}

impl ToBson for Payload<'_> {
    fn element_type(&self) -> ElementType {
        self.kind
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut cursor = Cursor::new(self.bytes, Rules::new());
        cursor.skip(self.kind)?;
        if !cursor.rest().is_empty() {
            return Err(Error::new(ErrorKind::ValueOutOfRange)
                .with_found(format!("{} bytes for a value of type {}", self.bytes.len(), self.kind))
                .with_expected(cursor.offset().to_string()));
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

fn add<T: ToBson + ?Sized>(builder: &mut Builder, key: Option<&str>, value: &T) -> Result<(), Trouble> {
    match key {
        Some(key) => builder.append(key, value)?,
        None => builder.push(value)?,
    }
    Ok(())
}
