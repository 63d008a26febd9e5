//! Any value, owned.

mod binary;
pub(crate) mod extended;
mod map;
mod read;
mod value_ref;
mod write;

pub use binary::Binary;
pub use map::Map;
pub use value_ref::ValueRef;

pub(crate) use read::read_document;
pub(crate) use write::append_map;

use crate::{DateTime, Decimal128, ElementType, ObjectId, Timestamp};
use millstream_core::{Error, Result};
use std::borrow::Cow;

/// A value of any type, owned, with all its content.
///
/// Comparison is by type and content: `Int32(1)` is not `Int64(1)`, documents differ if their order does, and a NaN is
/// not equal to itself, as for `f64`.
///
/// A value that was read is never deeper than the [`Rules`](super::Rules) allow, at most 1,000 levels. Comparing,
/// cloning and dropping recurse: code that builds a value a hundred times deeper by hand should also take it apart by
/// hand. Writing it is an error.
///
/// ```
/// use millstream::bson::{Document, Map, Value};
/// let value = Value::from(Map::from([("n", Value::from(42)), ("tags", vec!["a", "b"].into())]));
/// assert_eq!(value.as_map().unwrap()["tags"].as_array().unwrap().len(), 2);
///
/// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
/// assert_eq!(document.require::<Value>("n")?.as_f64(), Some(42.0));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// A 64-bit floating point number.
    Double(f64),
    /// Text.
    String(String),
    /// A document.
    Document(Map),
    /// An array.
    Array(Vec<Value>),
    /// Bytes with a subtype. For the old subtype 2, the inner length is omitted.
    Binary {
        /// The kind of bytes: 0 generic, 4 UUID, ….
        subtype: u8,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// No value (deprecated).
    Undefined,
    /// An object id.
    ObjectId(ObjectId),
    /// True or false.
    Bool(bool),
    /// A point in time.
    DateTime(DateTime),
    /// No value.
    #[default]
    Null,
    /// A regular expression.
    Regex {
        /// The pattern.
        pattern: String,
        /// Its options, one letter each. They are written in alphabetical order, as required by the specification.
        options: String,
    },
    /// A namespace and an object id (deprecated).
    DbPointer {
        /// The namespace.
        namespace: String,
        /// The object id.
        id: ObjectId,
    },
    /// JavaScript, which is treated as text and never executed.
    Code(String),
    /// A symbol (deprecated).
    Symbol(String),
    /// JavaScript and the document it runs with (deprecated).
    CodeWithScope {
        /// The code.
        code: String,
        /// The document.
        scope: Map,
    },
    /// A 32-bit integer.
    Int32(i32),
    /// MongoDB's internal timestamp.
    Timestamp(Timestamp),
    /// A 64-bit integer.
    Int64(i64),
    /// A 128-bit decimal floating point number.
    Decimal128(Decimal128),
    /// Compares lower than everything.
    MinKey,
    /// Compares higher than everything.
    MaxKey,
}

impl Value {
    /// The same, borrowed; `None` for what holds values: documents, arrays, code with its scope.
    pub(crate) fn as_leaf(&self) -> Option<ValueRef<'_>> {
        Some(match self {
            Value::Document(_) | Value::Array(_) | Value::CodeWithScope { .. } => return None,
            Value::Double(value) => ValueRef::Double(*value),
            Value::String(text) => ValueRef::String(text),
            Value::Binary { subtype, bytes } => ValueRef::Binary { subtype: *subtype, bytes },
            Value::Undefined => ValueRef::Undefined,
            Value::ObjectId(id) => ValueRef::ObjectId(*id),
            Value::Bool(value) => ValueRef::Bool(*value),
            Value::DateTime(date) => ValueRef::DateTime(*date),
            Value::Null => ValueRef::Null,
            Value::Regex { pattern, options } => ValueRef::Regex { pattern, options },
            Value::DbPointer { namespace, id } => ValueRef::DbPointer { namespace, id: *id },
            Value::Code(code) => ValueRef::Code(code),
            Value::Symbol(symbol) => ValueRef::Symbol(symbol),
            Value::Int32(value) => ValueRef::Int32(*value),
            Value::Timestamp(timestamp) => ValueRef::Timestamp(*timestamp),
            Value::Int64(value) => ValueRef::Int64(*value),
            Value::Decimal128(number) => ValueRef::Decimal128(*number),
            Value::MinKey => ValueRef::MinKey,
            Value::MaxKey => ValueRef::MaxKey,
        })
    }

    /// Its type.
    pub const fn kind(&self) -> ElementType {
        match self {
            Value::Double(_) => ElementType::Double,
            Value::String(_) => ElementType::String,
            Value::Document(_) => ElementType::Document,
            Value::Array(_) => ElementType::Array,
            Value::Binary { .. } => ElementType::Binary,
            Value::Undefined => ElementType::Undefined,
            Value::ObjectId(_) => ElementType::ObjectId,
            Value::Bool(_) => ElementType::Bool,
            Value::DateTime(_) => ElementType::DateTime,
            Value::Null => ElementType::Null,
            Value::Regex { .. } => ElementType::Regex,
            Value::DbPointer { .. } => ElementType::DbPointer,
            Value::Code(_) => ElementType::Code,
            Value::Symbol(_) => ElementType::Symbol,
            Value::CodeWithScope { .. } => ElementType::CodeWithScope,
            Value::Int32(_) => ElementType::Int32,
            Value::Timestamp(_) => ElementType::Timestamp,
            Value::Int64(_) => ElementType::Int64,
            Value::Decimal128(_) => ElementType::Decimal128,
            Value::MinKey => ElementType::MinKey,
            Value::MaxKey => ElementType::MaxKey,
        }
    }

    /// Whether it is null or undefined.
    pub const fn is_null(&self) -> bool {
        matches!(self, Value::Null | Value::Undefined)
    }

    /// True or false.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// An integer of either width, or a double with an integer value.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int32(value) => Some(i64::from(*value)),
            Value::Int64(value) => Some(*value),
            // 2^63 itself does not fit; every f64 below it does.
            Value::Double(value) if value.fract() == 0.0 && (-(2_f64.powi(63))..2_f64.powi(63)).contains(value) => {
                Some(*value as i64)
            }
            _ => None,
        }
    }

    /// A double, or an integer that a double represents exactly.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Double(value) => Some(*value),
            Value::Int32(value) => Some(f64::from(*value)),
            Value::Int64(value) => ((*value as f64) as i128 == i128::from(*value)).then_some(*value as f64),
            _ => None,
        }
    }

    /// Text: a string, a symbol or code.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) | Value::Symbol(text) | Value::Code(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes, of any subtype.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Binary { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// A document.
    pub const fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Document(map) => Some(map),
            _ => None,
        }
    }

    /// A document, mutable.
    pub const fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Document(map) => Some(map),
            _ => None,
        }
    }

    /// An array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// An array, mutable.
    pub const fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// An object id.
    pub const fn as_object_id(&self) -> Option<ObjectId> {
        match self {
            Value::ObjectId(id) => Some(*id),
            _ => None,
        }
    }

    /// A point in time.
    pub const fn as_date_time(&self) -> Option<DateTime> {
        match self {
            Value::DateTime(date) => Some(*date),
            _ => None,
        }
    }
}

// From Rust types.

macro_rules! from {
    ($($type:ty, |$value:ident| $make:expr;)*) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Value {
                $make
            }
        })*
    };
}

from! {
    f64, |value| Value::Double(value);
    f32, |value| Value::Double(value.into());
    bool, |value| Value::Bool(value);
    i8, |value| Value::Int32(value.into());
    i16, |value| Value::Int32(value.into());
    i32, |value| Value::Int32(value);
    i64, |value| Value::Int64(value);
    &[u8], |bytes| Value::Binary { subtype: 0, bytes: bytes.to_vec() };
    Vec<u8>, |bytes| Value::Binary { subtype: 0, bytes };
    u16, |value| Value::Int32(value.into());
    u32, |value| Value::Int64(value.into());
    &str, |value| Value::String(value.to_string());
    String, |value| Value::String(value);
    Cow<'_, str>, |value| Value::String(value.into_owned());
    ObjectId, |value| Value::ObjectId(value);
    DateTime, |value| Value::DateTime(value);
    Timestamp, |value| Value::Timestamp(value);
    Decimal128, |value| Value::Decimal128(value);
    Map, |value| Value::Document(value);
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        values.into_iter().collect()
    }
}

/// Bytes with their subtype. (There is no `From<u8>`: many of them are bytes, as for [`ToBson`](super::ToBson), and not
/// an array of numbers.)
impl<B: Into<Vec<u8>>> From<Binary<B>> for Value {
    fn from(binary: Binary<B>) -> Value {
        Value::Binary { subtype: binary.subtype, bytes: binary.bytes.into() }
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Value {
        Value::Array(values.into_iter().map(Into::into).collect())
    }
}

/// Null for `None`.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// # Errors
/// What is wrong with the documents and arrays in it.
impl TryFrom<ValueRef<'_>> for Value {
    type Error = Error;

    #[inline]
    fn try_from(value: ValueRef<'_>) -> Result<Value> {
        Ok(match value {
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::String(text) => Value::String(text.to_string()),
            ValueRef::Document(document) => Value::Document(Map::from_document(document)?),
            ValueRef::Array(array) => Value::Array(Vec::try_from(array)?),
            ValueRef::Binary { subtype, bytes } => Value::Binary { subtype, bytes: bytes.to_vec() },
            ValueRef::Undefined => Value::Undefined,
            ValueRef::ObjectId(id) => Value::ObjectId(id),
            ValueRef::Bool(value) => Value::Bool(value),
            ValueRef::DateTime(date) => Value::DateTime(date),
            ValueRef::Null => Value::Null,
            ValueRef::Regex { pattern, options } => {
                Value::Regex { pattern: pattern.to_string(), options: options.to_string() }
            }
            ValueRef::DbPointer { namespace, id } => Value::DbPointer { namespace: namespace.to_string(), id },
            ValueRef::Code(text) => Value::Code(text.to_string()),
            ValueRef::Symbol(text) => Value::Symbol(text.to_string()),
            ValueRef::CodeWithScope { code, scope } => {
                Value::CodeWithScope { code: code.to_string(), scope: Map::from_document(scope)? }
            }
            ValueRef::Int32(value) => Value::Int32(value),
            ValueRef::Timestamp(value) => Value::Timestamp(value),
            ValueRef::Int64(value) => Value::Int64(value),
            ValueRef::Decimal128(value) => Value::Decimal128(value),
            ValueRef::MinKey => Value::MinKey,
            ValueRef::MaxKey => Value::MaxKey,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Rules, Strictness, Utf8};
    use millstream_core::ErrorKind;

    /// This many nested arrays.
    fn nested(levels: usize) -> Value {
        (1..levels).fold(Value::Array(Vec::new()), |inner, _| Value::Array(vec![inner]))
    }

    #[test]
    fn depth_is_limited_both_ways() {
        let most = Map::from([("a", nested(999))]);
        let bytes = most.to_vec().unwrap();
        let deep = Rules::new().depth(1000);
        assert_eq!(Map::from_document(Document::with_rules(&bytes, deep).unwrap()).unwrap(), most);
        let error = Map::from_slice(&bytes).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::TooDeep, Some(7 + 199 * 7)));
        assert_eq!(Map::from([("a", nested(1000))]).to_vec().unwrap_err().kind(), ErrorKind::TooDeep);
    }

    #[test]
    fn scopes_take_a_level_each() {
        let inner = (0..999)
            .fold(Map::new(), |scope, _| Map::from([("c", Value::CodeWithScope { code: String::new(), scope })]));
        let bytes = inner.to_vec().unwrap();
        let read = |depth| Document::with_rules(&bytes, Rules::new().depth(depth)).and_then(Map::from_document);
        assert_eq!(read(1000).unwrap(), inner);
        assert_eq!(read(999).unwrap_err().kind(), ErrorKind::TooDeep);
        let deeper = Map::from([("c", inner)]);
        assert_eq!(deeper.to_vec().unwrap_err().kind(), ErrorKind::TooDeep);
    }

    #[test]
    fn rules_decide_about_text_and_keys() {
        // {"\xff": "a\xff", "r": /\xff/}
        let bytes = b"\x15\0\0\0\x02\xff\0\x03\0\0\0a\xff\0\x0br\0\xff\0\0\0";
        let error = Map::from_slice(bytes).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Utf8Invalid, Some(5)));
        let lossy = Document::with_rules(bytes, Rules::new().utf8(Utf8::Lossy)).unwrap();
        let regex = Value::Regex { pattern: "\u{fffd}".to_string(), options: String::new() };
        assert_eq!(Map::from_document(lossy).unwrap(), Map::from([("\u{fffd}", "a\u{fffd}".into()), ("r", regex)]));

        let twice = b"\x0b\0\0\0\x0aa\0\x0aa\0\0";
        assert_eq!(Map::from_slice(twice).unwrap().len(), 2);
        let strict = Document::with_rules(twice, Rules::new().strictness(Strictness::Strict)).unwrap();
        assert_eq!(Map::from_document(strict).unwrap_err().kind(), ErrorKind::DocumentInvalid);
    }

    #[test]
    fn numbers_are_taken_where_they_are_exact() {
        for (value, integer, double) in [
            (Value::Double(3.0), Some(3), Some(3.0)),
            (Value::Double(0.5), None, Some(0.5)),
            (Value::Double(2_f64.powi(63)), None, Some(2_f64.powi(63))),
            (Value::Int64(i64::MAX), Some(i64::MAX), None),
            (Value::Int64(1 << 60), Some(1 << 60), Some(2_f64.powi(60))),
            (Value::Null, None, None),
        ] {
            assert_eq!((value.as_i64(), value.as_f64()), (integer, double), "{value:?}");
        }
        assert_ne!(Value::Double(f64::NAN), Value::Double(f64::NAN));
    }

    #[test]
    fn positions_are_keys() {
        let array = Value::from(vec![Value::Null; 120]);
        let bytes = Map::from([("a", array)]).to_vec().unwrap();
        let strict = Rules::new().strictness(Strictness::Strict);
        Document::with_rules(&bytes, strict).unwrap().check().unwrap();
    }

    #[test]
    fn what_bson_has_no_room_for() {
        for value in [
            Map::from([("a\0", 1)]).into(),
            Value::Regex { pattern: "\0".to_string(), options: String::new() },
            Value::Regex { pattern: String::new(), options: "i\0".to_string() },
        ] {
            assert_eq!(Map::from([("v", value)]).to_vec().unwrap_err().kind(), ErrorKind::ValueOutOfRange);
        }
    }
}
