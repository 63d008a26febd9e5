//! Values of any type, owned or borrowed from a document.

mod access;
mod binary;
pub(crate) mod extended;
mod map;
mod read;
mod write;

pub use binary::Binary;
pub use map::Map;

use crate::typed::to::{append_binary, append_regex, append_string, begin, patch_length};
use crate::wire::kind_of;
use crate::{
    Array, Cursor, DateTime, Decimal128, Document, Element, ElementType, FromBson, ObjectId, Timestamp, ToBson,
};
use millstream_core::{Error, Result};
use std::borrow::Cow;

/// An owned value of any type, with its whole content.
///
/// Values are compared by type and content: `Int32(1)` does not equal `Int64(1)`, documents with different orders are
/// different, and NaN does not equal itself, as for `f64`.
///
/// The depth of a value that was read is limited by the [`Rules`](super::Rules), to at most 1,000 levels. Comparing,
/// cloning and dropping are recursive, so code that builds a much deeper value must also take it apart without
/// recursion. Writing such a value fails.
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
        /// The subtype, such as 0 for generic bytes and 4 for a UUID.
        subtype: u8,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// No value (deprecated).
    Undefined,
    /// An object id.
    ObjectId(ObjectId),
    /// A boolean.
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
        /// The options, one letter each. They are written in alphabetical order, as the specification requires.
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
    /// Compares lower than all other values.
    MinKey,
    /// Compares higher than all other values.
    MaxKey,
}

/// A value of any type that borrows the document's bytes. The content of documents and arrays is not checked.
///
/// ```
/// use millstream::bson::{Document, ValueRef};
/// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
/// assert_eq!(document.get("n")?, Some(ValueRef::Int32(42)));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// A 64-bit floating point number.
    Double(f64),
    /// Text.
    String(&'a str),
    /// A document.
    Document(Document<'a>),
    /// An array.
    Array(Array<'a>),
    /// Bytes with a subtype. For the old subtype 2, the inner length is omitted.
    Binary {
        /// The subtype, such as 0 for generic bytes and 4 for a UUID.
        subtype: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// No value (deprecated).
    Undefined,
    /// An object id.
    ObjectId(ObjectId),
    /// A boolean.
    Bool(bool),
    /// A point in time.
    DateTime(DateTime),
    /// No value.
    Null,
    /// A regular expression.
    Regex {
        /// The pattern.
        pattern: &'a str,
        /// Its options, one letter each.
        options: &'a str,
    },
    /// A namespace and an object id (deprecated).
    DbPointer {
        /// The namespace.
        namespace: &'a str,
        /// The object id.
        id: ObjectId,
    },
    /// JavaScript, which is treated as text and never executed.
    Code(&'a str),
    /// A symbol (deprecated).
    Symbol(&'a str),
    /// JavaScript and the document it runs with (deprecated).
    CodeWithScope {
        /// The code.
        code: &'a str,
        /// The document.
        scope: Document<'a>,
    },
    /// A 32-bit integer.
    Int32(i32),
    /// MongoDB's internal timestamp.
    Timestamp(Timestamp),
    /// A 64-bit integer.
    Int64(i64),
    /// A 128-bit decimal floating point number.
    Decimal128(Decimal128),
    /// Compares lower than all other values.
    MinKey,
    /// Compares higher than all other values.
    MaxKey,
}

impl Value {
    /// Borrows the value; `None` for values that contain others: documents, arrays, code with scope.
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

    /// The type of the value.
    pub const fn kind(&self) -> ElementType {
        kind_of!(self, Value)
    }
}

impl ValueRef<'_> {
    /// The type of the value.
    pub const fn kind(&self) -> ElementType {
        kind_of!(self, ValueRef)
    }
}

// Conversions from Rust types.

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

/// Bytes with their subtype. (There is no `From<u8>`, because a vector of `u8` is written as bytes and not as an
/// array of numbers, as with [`ToBson`](super::ToBson).)
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

/// `None` becomes null.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// # Errors
/// Errors in the documents and arrays that it contains.
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

impl<'a> Element<'a> {
    /// Decodes the value.
    ///
    /// # Errors
    /// Errors in the value, including [`Utf8Invalid`](millstream_core::ErrorKind::Utf8Invalid).
    #[inline]
    pub fn value(&self) -> Result<ValueRef<'a>> {
        self.get()
    }
}

impl<'a> FromBson<'a> for ValueRef<'a> {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'a>) -> Result<Self> {
        Ok(match kind {
            ElementType::Double => ValueRef::Double(cursor.f64()?),
            ElementType::String => ValueRef::String(cursor.str()?),
            ElementType::Document => ValueRef::Document(Document::at(cursor)?),
            ElementType::Array => ValueRef::Array(Array::at(cursor)?),
            ElementType::Binary => {
                let (subtype, bytes) = cursor.binary()?;
                ValueRef::Binary { subtype, bytes }
            }
            ElementType::Undefined => ValueRef::Undefined,
            ElementType::ObjectId => ValueRef::ObjectId(ObjectId(cursor.take()?)),
            ElementType::Bool => ValueRef::Bool(cursor.bool()?),
            ElementType::DateTime => ValueRef::DateTime(DateTime(cursor.i64()?)),
            ElementType::Null => ValueRef::Null,
            ElementType::Regex => ValueRef::Regex { pattern: cursor.cstr()?, options: cursor.cstr()? },
            ElementType::DbPointer => ValueRef::DbPointer { namespace: cursor.str()?, id: ObjectId(cursor.take()?) },
            ElementType::Code => ValueRef::Code(cursor.str()?),
            ElementType::Symbol => ValueRef::Symbol(cursor.str()?),
            ElementType::CodeWithScope => {
                let mut inside = cursor.code_with_scope()?;
                ValueRef::CodeWithScope { code: inside.str()?, scope: Document::at(&mut inside)? }
            }
            ElementType::Int32 => ValueRef::Int32(cursor.i32()?),
            ElementType::Timestamp => ValueRef::Timestamp(Timestamp::from_bits(u64::from_le_bytes(cursor.take()?))),
            ElementType::Int64 => ValueRef::Int64(cursor.i64()?),
            ElementType::Decimal128 => ValueRef::Decimal128(Decimal128(cursor.take()?)),
            ElementType::MinKey => ValueRef::MinKey,
            ElementType::MaxKey => ValueRef::MaxKey,
        })
    }
}

impl ToBson for ValueRef<'_> {
    fn element_type(&self) -> ElementType {
        self.kind()
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        match *self {
            ValueRef::Double(value) => value.to_bson(out),
            ValueRef::String(text) | ValueRef::Code(text) | ValueRef::Symbol(text) => append_string(out, text),
            ValueRef::Document(document) => document.to_bson(out),
            ValueRef::Array(array) => array.to_bson(out),
            ValueRef::Binary { subtype, bytes } => append_binary(out, subtype, bytes),
            ValueRef::Undefined | ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey => Ok(()),
            ValueRef::ObjectId(id) => id.to_bson(out),
            ValueRef::Bool(value) => value.to_bson(out),
            ValueRef::DateTime(date) => date.to_bson(out),
            ValueRef::Regex { pattern, options } => append_regex(out, pattern, options),
            ValueRef::DbPointer { namespace, id } => {
                append_string(out, namespace)?;
                id.to_bson(out)
            }
            ValueRef::CodeWithScope { code, scope } => {
                let start = begin(out);
                append_string(out, code)?;
                scope.to_bson(out)?;
                patch_length(out, start)
            }
            ValueRef::Int32(value) => value.to_bson(out),
            ValueRef::Timestamp(timestamp) => timestamp.to_bson(out),
            ValueRef::Int64(value) => value.to_bson(out),
            ValueRef::Decimal128(decimal) => decimal.to_bson(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Rules, Strictness, Utf8};
    use millstream_core::ErrorKind;

    /// Creates this many nested arrays.
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
    fn positions_are_keys() {
        let array = Value::from(vec![Value::Null; 120]);
        let bytes = Map::from([("a", array)]).to_vec().unwrap();
        let strict = Rules::new().strictness(Strictness::Strict);
        Document::with_rules(&bytes, strict).unwrap().check().unwrap();
    }

    #[test]
    fn values_that_bson_has_no_type_for() {
        for value in [
            Map::from([("a\0", 1)]).into(),
            Value::Regex { pattern: "\0".to_string(), options: String::new() },
            Value::Regex { pattern: String::new(), options: "i\0".to_string() },
        ] {
            assert_eq!(Map::from([("v", value)]).to_vec().unwrap_err().kind(), ErrorKind::ValueOutOfRange);
        }
    }
}
