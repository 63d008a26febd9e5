//! Owned values into bytes. Recursion, down to as many levels as any rules allow.

use super::Value;
use crate::bson::to::{append_cstring, append_string, length};
use crate::bson::{ElementType, Map, Rules, ToBson};
use crate::error::{Error, ErrorKind, Result};
use crate::put::Room;
use std::borrow::Cow;

impl ToBson for Value {
    fn element_type(&self) -> ElementType {
        self.kind()
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        append_value(out, self, Rules::MOST_DEPTH)
    }
}

/// Appends a value's payload, with so many levels to go.
fn append_value(out: &mut Vec<u8>, value: &Value, depth: u16) -> Result<()> {
    match value {
        Value::Document(map) => append_map(out, map, depth),
        Value::Array(values) => append_array(out, values, depth),
        Value::CodeWithScope { code, scope } => append_code_with_scope(out, code, scope, depth),
        _ => append_leaf(out, value),
    }
}

pub(in crate::bson) fn append_map(out: &mut Vec<u8>, map: &Map, depth: u16) -> Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    let start = begin_document(out);
    for (key, value) in &map.members {
        out.push(value.kind() as u8);
        append_cstring(out, key)?;
        append_value(out, value, depth)?;
    }
    end_document(out, start)
}

fn append_array(out: &mut Vec<u8>, values: &[Value], depth: u16) -> Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    let start = begin_document(out);
    for (position, value) in values.iter().enumerate() {
        out.push(value.kind() as u8);
        append_position(out, position);
        append_value(out, value, depth)?;
    }
    end_document(out, start)
}

fn append_code_with_scope(out: &mut Vec<u8>, code: &str, scope: &Map, depth: u16) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    append_string(out, code)?;
    append_map(out, scope, depth)?;
    patch_length(out, start)
}

#[inline(never)]
fn append_leaf(out: &mut Vec<u8>, value: &Value) -> Result<()> {
    match value {
        Value::Double(value) => value.to_bson(out),
        Value::String(text) | Value::Code(text) | Value::Symbol(text) => append_string(out, text),
        Value::Binary { subtype, bytes } => append_binary(out, *subtype, bytes),
        Value::ObjectId(id) => id.to_bson(out),
        Value::Bool(value) => value.to_bson(out),
        Value::DateTime(date) => date.to_bson(out),
        Value::Regex { pattern, options } => append_regex(out, pattern, options),
        Value::DbPointer { namespace, id } => {
            append_string(out, namespace)?;
            id.to_bson(out)
        }
        Value::Int32(value) => value.to_bson(out),
        Value::Timestamp(value) => value.to_bson(out),
        Value::Int64(value) => value.to_bson(out),
        Value::Decimal128(value) => value.to_bson(out),
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => Ok(()),
        Value::Document(_) | Value::Array(_) | Value::CodeWithScope { .. } => {
            unreachable!("a {} is written elsewhere", value.kind())
        }
    }
}

/// Appends bytes with their subtype, and the inner length that the old subtype 2 has.
pub(in crate::bson) fn append_binary(out: &mut Vec<u8>, subtype: u8, bytes: &[u8]) -> Result<()> {
    if subtype == 2 {
        out.extend_from_slice(&length(bytes.len() + 4)?);
        out.push(subtype);
    }
    out.extend_from_slice(&length(bytes.len())?);
    if subtype != 2 {
        out.push(subtype);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends a pattern and its options, these in the order of the alphabet.
pub(in crate::bson) fn append_regex(out: &mut Vec<u8>, pattern: &str, options: &str) -> Result<()> {
    append_cstring(out, pattern)?;
    append_cstring(out, &sorted(options))
}

/// The options of a regular expression in the order of the alphabet.
pub(in crate::bson) fn sorted(options: &str) -> Cow<'_, str> {
    if options.is_ascii() && options.as_bytes().is_sorted() {
        return Cow::Borrowed(options);
    }
    let mut letters: Vec<char> = options.chars().collect();
    letters.sort_unstable();
    Cow::Owned(letters.into_iter().collect())
}

/// Appends room for a document's length.
#[inline]
pub(in crate::bson) fn begin_document(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Appends a document's terminator, and fills its length in.
#[inline]
pub(in crate::bson) fn end_document(out: &mut Vec<u8>, start: usize) -> Result<()> {
    out.push(0);
    patch_length(out, start)
}

/// Fills in the length of all that has been appended since.
#[inline]
pub(in crate::bson) fn patch_length(out: &mut [u8], start: usize) -> Result<()> {
    let len = length(out.len() - start)?;
    out[start..start + 4].copy_from_slice(&len);
    Ok(())
}

/// Appends a position in an array as a key.
#[inline]
pub(in crate::bson) fn append_position(out: &mut Vec<u8>, position: usize) {
    if let digit @ 0..10 = position {
        return out.extend_from_slice(&[b'0' + digit as u8, 0]);
    }
    let mut digits = [0; 21];
    let mut room = Room::over(&mut digits);
    room.put(position);
    room.put('\0');
    out.extend_from_slice(room.as_bytes());
}

#[cold]
fn too_deep() -> Error {
    Error::new(ErrorKind::TooDeep)
        .with_found(format!("more than {} documents and arrays inside each other", Rules::MOST_DEPTH))
        .with_expected(format!("at most {}", Rules::MOST_DEPTH))
}
