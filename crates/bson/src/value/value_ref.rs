//! Any value, borrowed.

use crate::typed::to::append_regex;
use crate::typed::to::{append_binary, append_string, begin, patch_length};
use crate::{Array, Cursor, DateTime, Decimal128, Document, ElementType, FromBson, ObjectId, Timestamp, ToBson};
use millstream_core::Result;

/// A value of any type, borrowed from the document's bytes. The content of documents and arrays in it is not checked.
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
        /// The kind of bytes: 0 generic, 4 UUID, ….
        subtype: u8,
        /// The bytes.
        bytes: &'a [u8],
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
    /// Compares lower than everything.
    MinKey,
    /// Compares higher than everything.
    MaxKey,
}

impl ValueRef<'_> {
    /// Its type.
    pub const fn kind(&self) -> ElementType {
        match self {
            ValueRef::Double(_) => ElementType::Double,
            ValueRef::String(_) => ElementType::String,
            ValueRef::Document(_) => ElementType::Document,
            ValueRef::Array(_) => ElementType::Array,
            ValueRef::Binary { .. } => ElementType::Binary,
            ValueRef::Undefined => ElementType::Undefined,
            ValueRef::ObjectId(_) => ElementType::ObjectId,
            ValueRef::Bool(_) => ElementType::Bool,
            ValueRef::DateTime(_) => ElementType::DateTime,
            ValueRef::Null => ElementType::Null,
            ValueRef::Regex { .. } => ElementType::Regex,
            ValueRef::DbPointer { .. } => ElementType::DbPointer,
            ValueRef::Code(_) => ElementType::Code,
            ValueRef::Symbol(_) => ElementType::Symbol,
            ValueRef::CodeWithScope { .. } => ElementType::CodeWithScope,
            ValueRef::Int32(_) => ElementType::Int32,
            ValueRef::Timestamp(_) => ElementType::Timestamp,
            ValueRef::Int64(_) => ElementType::Int64,
            ValueRef::Decimal128(_) => ElementType::Decimal128,
            ValueRef::MinKey => ElementType::MinKey,
            ValueRef::MaxKey => ElementType::MaxKey,
        }
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
