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

use millstream::bson::ElementType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What represents the types that Python lacks: Millstream's classes, or pymongo's.
#[pyclass(frozen, module = "millstream._native")]
pub struct Types {
    /// By the byte of the type; `None` for the types that Python has.
    classes: Vec<Option<Py<PyAny>>>,
    /// The class of dates; `None` if all dates are of the class for those outside Python's range.
    date: Option<Py<PyAny>>,
    zone: Py<PyAny>,
}

#[pymethods]
impl Types {
    #[new]
    fn new(classes: &Bound<'_, PyDict>, date: Option<Py<PyAny>>, zone: Py<PyAny>) -> PyResult<Types> {
        let mut of_types: Vec<Option<Py<PyAny>>> = (0..256).map(|_| None).collect();
        for kind in ElementType::ALL {
            let class = classes.get_item(kind.name())?;
            if class.is_none() && !is_built_in(*kind) {
                return Err(PyTypeError::new_err(format!("there is no class for the type {kind}")));
            }
            of_types[*kind as usize] = class.map(Bound::unbind);
        }
        if of_types.iter().flatten().count() != classes.len() {
            let names: Vec<&str> = ElementType::ALL.iter().map(|kind| kind.name()).collect();
            return Err(PyTypeError::new_err(format!("the types are {}", names.join(", "))));
        }
        Ok(Types { classes: of_types, date, zone })
    }
}

/// Whether its values are made from Python's own types, or from the class of another type.
fn is_built_in(kind: ElementType) -> bool {
    use ElementType as T;
    matches!(
        kind,
        T::Double | T::String | T::Document | T::Array | T::Undefined | T::Bool | T::Null | T::Int32 | T::Int64
            | T::DbPointer // a document
            | T::Symbol // text
            | T::CodeWithScope // code
    )
}

impl Types {
    /// What represents this type, which is not built in.
    fn class<'py>(&self, py: Python<'py>, kind: ElementType) -> &Bound<'py, PyAny> {
        self.classes[kind as usize].as_ref().expect("`new` has checked it").bind(py)
    }
}
