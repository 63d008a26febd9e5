//! Julia files as Python objects.
//!
//! The graph is traversed with a list of pending steps, never recursively, so deep values are safe. Mutable Python
//! objects (lists, dicts, `Struct`s) are created empty and filled later, so values that contain themselves are safe
//! too, and shared objects stay shared. `millstream/bson/julia.py` describes how each kind of value is converted.

use std::collections::HashMap;
use std::sync::Arc;

use millstream::bson::julia::{Array, Graph, Id, Kind, Options, Scalar, Value};
use millstream::bson::{Document, Mapped};
use millstream::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::decode::{Trouble, raise};
use crate::error;
use crate::foreign::Bytes;
use crate::memory::{Memory, Owner};
use crate::remote::Location;

/// Values that are not converted yet.
type Values<'g> = Box<dyn Iterator<Item = Value<'g>> + 'g>;

/// The pending steps, the last first.
enum Step<'g, 'py> {
    /// Pushes these values onto the stack.
    Make(Values<'g>),
    /// Turns this many values of the stack into an immutable object.
    Join { id: Option<Id>, make: &'static str, of: String, count: usize },
    /// Turns this many values of the stack into the keys of a dictionary, whose values come later.
    Dict { id: Option<Id>, of: String, count: usize, values: Values<'g> },
    /// Puts this many values of the stack into an object.
    Fill { fill: Bound<'py, PyAny>, count: usize },
}

struct Walk<'g, 'py> {
    /// The module in Python.
    module: Bound<'py, PyModule>,
    /// The owner of the arrays, if it is not memory that Python may change.
    file: Option<Arc<Mapped>>,
    /// Empty while the object is being created.
    made: HashMap<Id, Option<Bound<'py, PyAny>>>,
    steps: Vec<Step<'g, 'py>>,
    later: Vec<(Bound<'py, PyAny>, usize, Values<'g>)>,
    pile: Vec<Bound<'py, PyAny>>,
    /// The number of values that may still be created: dictionaries can share content without being the same object.
    values_left: u64,
}

impl<'g, 'py> Walk<'g, 'py> {
    fn run(mut self, root: Value<'g>) -> Result<Bound<'py, PyAny>, Trouble> {
        let py = self.module.py();
        let mut done = 0_u64;
        self.steps.push(Step::Make(Box::new(std::iter::once(root))));
        loop {
            while let Some(step) = self.steps.pop() {
                self.step(step)?;
                done += 1;
                if done.is_multiple_of(1 << 16) {
                    py.check_signals()?;
                }
            }
            let Some((fill, count, values)) = self.later.pop() else { break };
            self.steps.push(Step::Fill { fill, count });
            self.steps.push(Step::Make(values));
        }
        self.pile.pop().ok_or_else(|| Error::new(ErrorKind::Internal).into())
    }

    fn step(&mut self, step: Step<'g, 'py>) -> Result<(), Trouble> {
        match step {
            Step::Make(mut values) => {
                if let Some(value) = values.next() {
                    self.steps.push(Step::Make(values));
                    self.make(value)?;
                }
            }
            Step::Join { id, make, of, count } => {
                let parts = self.take(count)?;
                let object = self.call(make, (of, parts))?;
                self.put(id, object);
            }
            Step::Dict { id, of, count, values } => {
                let keys = self.take(count)?;
                let (object, fill) = self.call("_dict", (of, keys))?.extract()?;
                self.put(id, object);
                self.later.push((fill, count, values));
            }
            Step::Fill { fill, count } => {
                let parts = self.take(count)?;
                fill.call1((parts,))?;
            }
        }
        Ok(())
    }

    /// Pushes a value onto the stack, or the work for it onto the list.
    fn make(&mut self, value: Value<'g>) -> Result<(), Trouble> {
        let (py, id) = (self.module.py(), value.id());
        match id.and_then(|id| self.made.get(&id)) {
            Some(Some(object)) => {
                self.pile.push(object.clone());
                return Ok(());
            }
            Some(None) => return Err(contains_itself()),
            None => {}
        }
        self.values_left = self.values_left.checked_sub(1).ok_or_else(too_much)?;
        let object = match value.kind() {
            Kind::Scalar(scalar) => self.scalar(scalar)?,
            Kind::String(bytes) => text(py, bytes),
            Kind::Symbol(bytes) => self.call("Symbol", (String::from_utf8_lossy(bytes),))?,
            Kind::Array(array) => match self.numbers(&array)? {
                Some(numbers) => numbers,
                None => return self.open("_array", array.size(), id, array.count(), Box::new(array.elements())),
            },
            Kind::BitArray(size, bits) => {
                let bytes: Vec<u8> = bits.map(|bit| u8::from(bit.as_scalar() == Some(Scalar::Bool(true)))).collect();
                self.call("_numbers", (Py::new(py, Memory(Owner::Bytes(bytes)))?, "Bool", size))?
            }
            Kind::Tuple(parts) | Kind::SimpleVector(parts) => {
                return self.join(id, "_tuple", String::new(), parts.len(), Box::new(parts));
            }
            Kind::NamedTuple(names, parts) => {
                let all = names.chain(parts);
                return self.join(id, "_named_tuple", String::new(), names.len() + parts.len(), Box::new(all));
            }
            Kind::Pair(first, second) => return self.join_two(id, "_pair", first, second),
            Kind::Complex(real, imaginary) => return self.join_two(id, "_complex", real, imaginary),
            Kind::Rational(above, below) => return self.join_two(id, "_rational", above, below),
            Kind::UnitRange(start, stop) => return self.join_two(id, "_range", start, stop),
            Kind::Set(of, elements) => {
                return self.join(id, "_set", of.to_string(), elements.len(), Box::new(elements));
            }
            Kind::Dict(of, keys, values) => {
                self.begin(id);
                let (of, count) = (of.to_string(), keys.len());
                self.steps.push(Step::Dict { id, of, count, values: Box::new(values) });
                self.steps.push(Step::Make(Box::new(keys)));
                return Ok(());
            }
            Kind::Document(members) => {
                let keys = PyList::new(py, members.map(|(key, _)| text(py, key)))?;
                return self.open("_document", keys, id, members.len(), Box::new(members.map(|(_, value)| value)));
            }
            Kind::Struct(of, fields) => {
                return self.open("_struct", of.to_string(), id, fields.len(), Box::new(fields));
            }
            Kind::Ref(of, inner) => {
                let count = usize::from(inner.is_some());
                return self.open("_struct", of.to_string(), id, count, Box::new(inner.into_iter()));
            }
            Kind::Anonymous(captures) => {
                return self.open("_struct", "Function", id, captures.len(), Box::new(captures));
            }
            Kind::Primitive(of, bytes) | Kind::Bits(of, bytes) => {
                self.call("Primitive", (of.to_string(), PyBytes::new(py, bytes)))?
            }
            Kind::Bson(kind, bytes) => self.call("Primitive", (kind.name(), PyBytes::new(py, bytes)))?,
            Kind::Type(of) => self.call("Type", (of.to_string(),))?,
            Kind::Module(path) => self.call("Module", (path.to_string(),))?,
            Kind::Function(path) => self.call("Function", (path.to_string(),))?,
            Kind::Undef => self.module.getattr("undef")?,
            kind => return Err(unknown(&kind)),
        };
        self.put(id, object);
        Ok(())
    }

    /// Creates an empty mutable object, which is filled later.
    fn open(
        &mut self,
        make: &str,
        of: impl IntoPyObject<'py>,
        id: Option<Id>,
        count: usize,
        values: Values<'g>,
    ) -> Result<(), Trouble> {
        let (object, fill) = self.call(make, (of,))?.extract()?;
        self.put(id, object);
        self.later.push((fill, count, values));
        Ok(())
    }

    /// Converts the parts of an immutable object first.
    fn join(
        &mut self,
        id: Option<Id>,
        make: &'static str,
        of: String,
        count: usize,
        parts: Values<'g>,
    ) -> Result<(), Trouble> {
        self.begin(id);
        self.steps.push(Step::Join { id, make, of, count });
        self.steps.push(Step::Make(parts));
        Ok(())
    }

    fn join_two(
        &mut self,
        id: Option<Id>,
        make: &'static str,
        first: Value<'g>,
        second: Value<'g>,
    ) -> Result<(), Trouble> {
        self.join(id, make, String::new(), 2, Box::new([first, second].into_iter()))
    }

    fn begin(&mut self, id: Option<Id>) {
        id.map(|id| self.made.insert(id, None));
    }

    fn put(&mut self, id: Option<Id>, object: Bound<'py, PyAny>) {
        id.map(|id| self.made.insert(id, Some(object.clone())));
        self.pile.push(object);
    }

    fn take(&mut self, count: usize) -> PyResult<Bound<'py, PyList>> {
        PyList::new(self.module.py(), self.pile.drain(self.pile.len() - count..))
    }

    fn call(&self, make: &str, args: impl pyo3::call::PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.module.getattr(make)?.call1(args)
    }

    fn scalar(&self, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
        let py = self.module.py();
        Ok(match scalar {
            Scalar::Nothing => py.None().into_bound(py),
            Scalar::Missing => self.module.getattr("missing")?,
            Scalar::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
            Scalar::Char(value) => match value.to_char() {
                Some(value) => self.call("Char", (value,))?,
                None => self.call("Primitive", ("Char", PyBytes::new(py, &value.0.to_le_bytes())))?,
            },
            Scalar::UInt128(value) => value.into_pyobject(py)?.into_any(),
            scalar => match (scalar.as_f64(), scalar.as_i128()) {
                (Some(value), _) => value.into_pyobject(py)?.into_any(),
                (_, Some(value)) => value.into_pyobject(py)?.into_any(),
                _ => py.None().into_bound(py),
            },
        })
    }

    /// The numpy array, if its elements are numbers; for a file, without a copy.
    fn numbers(&self, array: &Array<'g>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, Some(payload)) = (self.module.py(), array.payload()) else { return Ok(None) };
        let mapped = self.file.as_ref().and_then(|file| {
            let start = payload.as_ptr().addr().checked_sub(file.as_bytes().as_ptr().addr())?;
            let range = start..start.checked_add(payload.len())?;
            (range.end <= file.as_bytes().len()).then(|| Owner::Mapped(file.clone(), range))
        });
        let memory = Memory(mapped.unwrap_or_else(|| Owner::Bytes(payload.to_vec())));
        let made = self.call("_numbers", (Py::new(py, memory)?, array.element_type().to_string(), array.size()))?;
        Ok((!made.is_none()).then_some(made))
    }
}

/// Text, or bytes if it is not valid UTF-8.
fn text<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyAny> {
    match std::str::from_utf8(bytes) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, bytes).into_any(),
    }
}

fn contains_itself() -> Trouble {
    let error = Error::new(ErrorKind::JuliaInvalid).with_found("a tuple, key or element of a set that contains itself");
    error.with_expected("only mutable values that contain themselves").into()
}

fn too_much() -> Trouble {
    Error::new(ErrorKind::MemoryLimit).with_found("more values than `memory` allows").into()
}

fn unknown(kind: &Kind<'_>) -> Trouble {
    Error::new(ErrorKind::Unsupported).with_found(format!("an unknown kind of Julia value: {kind:?}")).into()
}

/// The values of a file, or of bytes.
#[pyfunction]
pub fn julia_load<'py>(
    module: Bound<'py, PyModule>,
    path: Option<Location>,
    data: Option<Bytes>,
    memory: u64,
    types: Vec<(String, Vec<String>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = module.py();
    let file = match path {
        Some(path) => {
            let path = path.file(py, "mapped")?;
            Some(Arc::new(py.detach(|| Mapped::open(path)).map_err(|error| error::raise(py, &error))?))
        }
        None => None,
    };
    let named = |error: Error| match &file {
        Some(file) => raise(py, error.with_name(file.name()).into()),
        None => raise(py, error.into()),
    };
    let read = || -> Result<Graph<'_>, Error> {
        let document = match (&file, &data) {
            (Some(file), _) => file.document()?,
            (None, data) => Document::new(data.as_deref().unwrap_or_default())?,
        };
        let mut options = Options::new().memory(memory);
        for (name, fields) in &types {
            options.describe(name, fields.iter().map(String::as_str))?;
        }
        Graph::read_with(document, &options)
    };
    let graph = py.detach(read).map_err(named)?;
    let walk = Walk {
        module,
        file: file.clone(),
        made: HashMap::new(),
        steps: Vec::new(),
        later: Vec::new(),
        pile: Vec::new(),
        // A value takes at least 16 bytes.
        values_left: memory / 16,
    };
    walk.run(graph.root()).map_err(|trouble| match trouble {
        Trouble::Document(error) => named(error),
        Trouble::Python(raised) => raised,
    })
}
