//! Converts documents into dicts.
//!
//! Most documents use the same few keys, so the objects for keys are reused. The recursion is as deep as the core's
//! rules allow documents to be nested: 200 levels.

use millstream::Error;
use millstream::bson::{Cursor, Document, ElementType, Rules};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use super::Types;
use crate::error;
use crate::foreign::Bytes;

/// The number of keys that are cached.
const KEY_COUNT: usize = 512;

/// The errors of decoding: from the document or from Python.
pub enum Trouble {
    Document(Error),
    Python(PyErr),
}

impl Trouble {
    /// Adds the place of the document to its error.
    fn located(self, place: impl FnOnce(Error) -> Error) -> Trouble {
        match self {
            Trouble::Document(error) => Trouble::Document(place(error)),
            raised @ Trouble::Python(_) => raised,
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Document(error)
    }
}

impl From<PyErr> for Trouble {
    fn from(error: PyErr) -> Trouble {
        Trouble::Python(error)
    }
}

/// Keys as stored in documents, and their objects, by a hash of the key's bytes.
type Keys = Vec<Option<(Box<[u8]>, Py<PyString>)>>;

/// The keys of all calls. A call during another one, from a class that it creates objects of or from another thread,
/// has its own keys.
static KEYS: Mutex<Keys> = Mutex::new(Vec::new());

/// Makes Python objects from documents.
pub struct Decoder<'t, 'py> {
    py: Python<'py>,
    types: &'t Types,
    keys: Keys,
    shared: Option<MutexGuard<'static, Keys>>,
}

impl Drop for Decoder<'_, '_> {
    fn drop(&mut self) {
        if let Some(shared) = &mut self.shared {
            **shared = std::mem::take(&mut self.keys);
        }
    }
}

impl<'t, 'py> Decoder<'t, 'py> {
    pub fn new(py: Python<'py>, types: &'t Types) -> Decoder<'t, 'py> {
        let mut shared = KEYS.try_lock();
        let mut keys = shared.as_deref_mut().map(std::mem::take).unwrap_or_default();
        keys.resize_with(KEY_COUNT, || None);
        Decoder { py, types, keys, shared }
    }

    /// The dict of the document at the cursor.
    pub fn document(&mut self, cursor: &mut Cursor<'_>) -> Result<Bound<'py, PyDict>, Trouble> {
        let outer = cursor.enter()?;
        let dict = PyDict::new(self.py);
        while let Some((kind, key)) = cursor.next()? {
            let key = self.key(cursor, key)?;
            let value = self.value(kind, cursor)?;
            dict.set_item(key, value)?;
        }
        cursor.leave(outer);
        Ok(dict)
    }

    fn list(&mut self, cursor: &mut Cursor<'_>) -> Result<Bound<'py, PyList>, Trouble> {
        let outer = cursor.enter()?;
        let list = PyList::empty(self.py);
        while let Some((kind, _)) = cursor.next()? {
            list.append(self.value(kind, cursor)?)?;
        }
        cursor.leave(outer);
        Ok(list)
    }

    #[inline]
    fn key<'a>(&mut self, cursor: &Cursor<'a>, key: &'a [u8]) -> Result<Bound<'py, PyString>, Trouble> {
        let (first, last) = (key.first().copied().unwrap_or(0), key.last().copied().unwrap_or(0));
        let place = (usize::from(first) * 31 + usize::from(last) * 7 + key.len() * 131) % KEY_COUNT;
        if let Some((known, text)) = &self.keys[place]
            && **known == *key
        {
            return Ok(text.bind(self.py).clone());
        }
        let text = PyString::new(self.py, cursor.key_text(key)?);
        self.keys[place] = Some((key.into(), text.clone().unbind()));
        Ok(text)
    }

    pub fn value(&mut self, kind: ElementType, cursor: &mut Cursor<'_>) -> Result<Bound<'py, PyAny>, Trouble> {
        use ElementType as T;
        let (py, types) = (self.py, self.types);
        Ok(match kind {
            T::Double => PyFloat::new(py, cursor.f64()?).into_any(),
            T::String | T::Symbol => PyString::new(py, cursor.str()?).into_any(),
            T::Document => self.document(cursor)?.into_any(),
            T::Array => self.list(cursor)?.into_any(),
            T::Binary => match cursor.binary()? {
                (0, bytes) => PyBytes::new(py, bytes).into_any(),
                (subtype, bytes) => types.class(py, kind).call1((PyBytes::new(py, bytes), subtype))?,
            },
            T::Undefined | T::Null => py.None().into_bound(py),
            T::Bool => PyBool::new(py, cursor.bool()?).to_owned().into_any(),
            T::DateTime => self.date(cursor.i64()?)?,
            T::Regex => types.class(py, kind).call1((cursor.cstr()?, cursor.cstr()?))?,
            T::DbPointer => {
                let namespace = cursor.str()?;
                let id = self.read_payload(T::ObjectId, cursor)?;
                let reference = PyDict::new(py);
                reference.set_item("$ref", namespace)?;
                reference.set_item("$id", id)?;
                reference.into_any()
            }
            T::Code => types.class(py, kind).call1((cursor.str()?, py.None()))?,
            T::CodeWithScope => {
                let mut inside = cursor.code_with_scope()?;
                let code = PyString::new(py, inside.str()?);
                let scope = self.document(&mut inside)?;
                types.class(py, T::Code).call1((code, scope))?
            }
            T::Int32 => PyInt::new(py, cursor.i32()?).into_any(),
            T::Timestamp => {
                let bits = cursor.i64()? as u64;
                types.class(py, kind).call1(((bits >> 32) as u32, bits as u32))?
            }
            T::Int64 => PyInt::new(py, cursor.i64()?).into_any(),
            T::MinKey | T::MaxKey => types.class(py, kind).clone(),
            // `T::ObjectId`, `T::Decimal128`: the payload has no parts that Python has a type for.
            _ => self.read_payload(kind, cursor)?,
        })
    }

    /// An object of the class for this type, which takes the payload.
    fn read_payload(&self, kind: ElementType, cursor: &mut Cursor<'_>) -> Result<Bound<'py, PyAny>, Trouble> {
        let (rest, start) = (cursor.rest(), cursor.offset());
        cursor.skip(kind)?;
        let payload = &rest[..cursor.offset() - start];
        Ok(self.types.class(self.py, kind).call1((PyBytes::new(self.py, payload),))?)
    }

    /// Python's dates cover the years 1 to 9999; other dates are numbers of milliseconds.
    fn date(&self, milliseconds: i64) -> Result<Bound<'py, PyAny>, Trouble> {
        let (days, within) = (milliseconds.div_euclid(86_400_000), milliseconds.rem_euclid(86_400_000));
        let date = self.types.date.as_ref().filter(|_| (-719_162..=2_932_896).contains(&days));
        let Some(date) = date else {
            return Ok(self.types.class(self.py, ElementType::DateTime).call1((milliseconds,))?);
        };
        let (year, month, day) = civil(days);
        let (seconds, thousandths) = (within / 1000, within % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let parts = (year, month, day, hour, minute, second, thousandths * 1000, &self.types.zone);
        Ok(date.bind(self.py).call1(parts)?)
    }
}

/// The date of a day number counted from the first of 1970: years begin in March here, so that a leap day is the last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, of_month)
}

/// The dict of a document.
#[pyfunction]
pub fn bson_loads<'py>(py: Python<'py>, data: Bytes, types: &Bound<'py, Types>) -> PyResult<Bound<'py, PyDict>> {
    let document = Document::new(&data).map_err(|error| error::raise(py, &error))?;
    one(&mut Decoder::new(py, types.get()), py, &document)
}

/// The dicts of consecutive documents.
#[pyfunction]
pub fn bson_decode_all<'py>(py: Python<'py>, data: Bytes, types: &Bound<'py, Types>) -> PyResult<Bound<'py, PyList>> {
    let (list, mut decoder) = (PyList::empty(py), Decoder::new(py, types.get()));
    let (mut rest, mut count) = (&data[..], 0_u64);
    while !rest.is_empty() {
        let offset = (data.len() - rest.len()) as u64;
        let placed = |error: Error| error.with_offset(0).shift_offset(offset).with_record(count);
        let (document, after) =
            Document::first(rest, Rules::new()).map_err(|error| error::raise(py, &placed(error)))?;
        let made = decoder.document(&mut document.cursor()).map_err(|trouble| trouble.located(placed));
        list.append(made.map_err(|trouble| raise(py, trouble))?)?;
        if count % 4096 == 4095 {
            py.check_signals()?;
        }
        (rest, count) = (after, count + 1);
    }
    Ok(list)
}

fn one<'py>(decoder: &mut Decoder<'_, 'py>, py: Python<'py>, document: &Document<'_>) -> PyResult<Bound<'py, PyDict>> {
    decoder.document(&mut document.cursor()).map_err(|trouble| raise(py, trouble))
}

pub fn raise(py: Python<'_>, trouble: Trouble) -> PyErr {
    match trouble {
        Trouble::Python(raised) => raised,
        Trouble::Document(error) => error::raise(py, &error),
    }
}
