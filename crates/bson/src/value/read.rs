//! Reading owned values from bytes. The code is recursive, but each level counts towards the depth that the rules
//! allow.

use super::Value;
use crate::{Array, Cursor, Document, ElementType, FromBson, Map, ObjectId, Strictness, Utf8, ValueRef};
use millstream_core::{Error, Result};
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

impl FromBson<'_> for Map {
    fn from_bson(kind: ElementType, cursor: &mut Cursor<'_>) -> Result<Map> {
        match kind {
            ElementType::Document => read_document(cursor),
            _ => Err(cursor.mismatch(kind, "a document")),
        }
    }
}

impl Map {
    /// Reads the document that consists of these bytes, with the default rules.
    ///
    /// # Errors
    /// Errors in the document: see [`Document::check`].
    pub fn from_slice(bytes: &[u8]) -> Result<Map> {
        Map::from_document(Document::new(bytes)?)
    }

    /// Copies the whole content of a document, with its rules.
    ///
    /// # Errors
    /// Errors in the document: see [`Document::check`].
    pub fn from_document(document: Document<'_>) -> Result<Map> {
        if document.rules().strictness == Strictness::Strict {
            document.check()?;
        }
        read_document(&mut document.cursor()).map_err(|error| document.locate(error))
    }
}

/// Reads the document at the cursor.
fn read_document(cursor: &mut Cursor<'_>) -> Result<Map> {
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

/// Reads values without an inner document. It is a separate function, so that the recursion needs little stack.
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
        _ => Value::try_from(ValueRef::from_bson(kind, cursor)?)?,
    })
}

/// # Errors
/// Errors in the array.
impl TryFrom<Array<'_>> for Vec<Value> {
    type Error = Error;

    fn try_from(array: Array<'_>) -> Result<Vec<Value>> {
        let document = array.as_document();
        read_array(&mut document.cursor()).map_err(|error| document.locate(error))
    }
}
