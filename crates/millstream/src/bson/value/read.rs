//! Owned values out of bytes. Recursion, but a level of it takes a level of the depth that the rules allow.

use super::Value;
use crate::bson::{Array, Cursor, ElementType, FromBson, Map, ObjectId, Utf8, ValueRef};
use crate::error::{Error, Result};
use std::borrow::Cow;

impl FromBson<'_> for Value {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'_>) -> Result<Value> {
        match kind {
            ElementType::Document => read_document(cursor).map(Value::Document),
            ElementType::Array => read_array(cursor).map(Value::Array),
            ElementType::CodeWithScope => read_code_with_scope(cursor),
            _ => read_leaf(kind, cursor),
        }
    }
}

/// The document that the cursor is at.
pub(in crate::bson) fn read_document(cursor: &mut Cursor<'_>) -> Result<Map> {
    let outer = cursor.enter()?;
    let mut members = Vec::new();
    while let Some((kind, key)) = cursor.next()? {
        let key = match cursor.rules().utf8 {
            Utf8::Checked => cursor.key_text(key)?.to_string(),
            Utf8::Lossy => String::from_utf8_lossy(key).into_owned(),
        };
        members.push((key, Value::from_bson(kind, cursor)?));
    }
    cursor.leave(outer);
    Ok(Map { members })
}

fn read_array(cursor: &mut Cursor<'_>) -> Result<Vec<Value>> {
    let outer = cursor.enter()?;
    let mut values = Vec::new();
    while let Some((kind, key)) = cursor.next()? {
        if cursor.rules().utf8 == Utf8::Checked {
            cursor.key_text(key)?;
        }
        values.push(Value::from_bson(kind, cursor)?);
    }
    cursor.leave(outer);
    Ok(values)
}

fn read_code_with_scope(cursor: &mut Cursor<'_>) -> Result<Value> {
    let mut inside = cursor.code_with_scope()?;
    let code = inside.text()?.into_owned();
    Ok(Value::CodeWithScope { code, scope: read_document(&mut inside)? })
}

/// What has no document in it. Apart, so that the recursion needs little of the stack.
#[inline(never)]
fn read_leaf(kind: ElementType, cursor: &mut Cursor<'_>) -> Result<Value> {
    let text = |cursor: &mut Cursor<'_>| cursor.text().map(Cow::into_owned);
    Ok(match kind {
        ElementType::String => Value::String(text(cursor)?),
        ElementType::Code => Value::Code(text(cursor)?),
        ElementType::Symbol => Value::Symbol(text(cursor)?),
        ElementType::Regex => {
            let mut text = || {
                let at = cursor.offset();
                let bytes = cursor.cstring()?;
                cursor.text_of(bytes, at).map(Cow::into_owned)
            };
            Value::Regex { pattern: text()?, options: text()? }
        }
        ElementType::DbPointer => Value::DbPointer { namespace: text(cursor)?, id: ObjectId(cursor.take()?) },
        _ => match ValueRef::from_bson(kind, cursor)? {
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::Binary { subtype, bytes } => Value::Binary { subtype, bytes: bytes.to_vec() },
            ValueRef::Undefined => Value::Undefined,
            ValueRef::ObjectId(id) => Value::ObjectId(id),
            ValueRef::Bool(value) => Value::Bool(value),
            ValueRef::DateTime(date) => Value::DateTime(date),
            ValueRef::Null => Value::Null,
            ValueRef::Int32(value) => Value::Int32(value),
            ValueRef::Timestamp(value) => Value::Timestamp(value),
            ValueRef::Int64(value) => Value::Int64(value),
            ValueRef::Decimal128(value) => Value::Decimal128(value),
            ValueRef::MinKey => Value::MinKey,
            ValueRef::MaxKey => Value::MaxKey,
            other => unreachable!("a {} is read elsewhere", other.kind()),
        },
    })
}

/// # Errors
/// What is wrong with the documents and arrays in it.
impl TryFrom<ValueRef<'_>> for Value {
    type Error = Error;

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

/// # Errors
/// What is wrong with it.
impl TryFrom<Array<'_>> for Vec<Value> {
    type Error = Error;

    fn try_from(array: Array<'_>) -> Result<Vec<Value>> {
        let document = array.as_document();
        read_array(&mut document.cursor()).map_err(|error| document.locate(error))
    }
}
