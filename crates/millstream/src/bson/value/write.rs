//! Owned values into bytes. Recursion, down to as many levels as any rules allow.

use super::Value;
use crate::bson::to::{Positions, append_binary, append_cstring, append_string, begin, end, patch_length};
use crate::bson::{ElementType, Map, Rules, ToBson};
use crate::error::{Error, ErrorKind, Result};
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
    let start = begin(out);
    for (key, value) in &map.members {
        out.push(value.kind() as u8);
        append_cstring(out, key)?;
        append_value(out, value, depth)?;
    }
    end(out, start)
}

fn append_array(out: &mut Vec<u8>, values: &[Value], depth: u16) -> Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    let start = begin(out);
    let mut positions = Positions::new();
    for value in values {
        positions.append(out, value.kind());
        append_value(out, value, depth)?;
    }
    end(out, start)
}

fn append_code_with_scope(out: &mut Vec<u8>, code: &str, scope: &Map, depth: u16) -> Result<()> {
    let start = begin(out);
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

/// More documents and arrays inside each other than a reader can allow.
#[cold]
pub(in crate::bson) fn too_deep() -> Error {
    Error::new(ErrorKind::TooDeep)
        .with_found(format!("more than {} documents and arrays inside each other", Rules::MOST_DEPTH))
        .with_expected(format!("at most {}", Rules::MOST_DEPTH))
}
