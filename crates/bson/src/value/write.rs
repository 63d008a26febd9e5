//! Writing owned values as bytes. The code is recursive, up to the maximum depth that any rules allow.

use super::Value;
use crate::typed::to::{Positions, append_binary, append_cstring, append_string, begin, end, patch_length, too_deep};
use crate::{ElementType, Map, Rules, ToBson};
use millstream_core::Result;

impl ToBson for Value {
    fn element_type(&self) -> ElementType {
        self.kind()
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        append_value(out, self, Rules::MOST_DEPTH)
    }
}

impl ToBson for Map {
    fn element_type(&self) -> ElementType {
        ElementType::Document
    }

    fn to_bson(&self, out: &mut Vec<u8>) -> Result<()> {
        append_map(out, self, Rules::MOST_DEPTH)
    }
}

impl Map {
    /// Serialises the document.
    ///
    /// # Errors
    /// [`ValueOutOfRange`](millstream_core::ErrorKind::ValueOutOfRange) for a key or pattern that contains a NUL, and
    /// for more than 2 GiB; [`TooDeep`](millstream_core::ErrorKind::TooDeep) for more than 1,000 levels.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.to_bson(&mut bytes)?;
        Ok(bytes)
    }
}

/// Appends a value's payload. `depth` is the number of levels left.
fn append_value(out: &mut Vec<u8>, value: &Value, depth: u16) -> Result<()> {
    match value {
        Value::Document(map) => append_map(out, map, depth),
        Value::Array(values) => append_array(out, values, depth),
        Value::CodeWithScope { code, scope } => append_code_with_scope(out, code, scope, depth),
        _ => append_leaf(out, value),
    }
}

fn append_map(out: &mut Vec<u8>, map: &Map, depth: u16) -> Result<()> {
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
        Value::Int32(value) => value.to_bson(out),
        Value::Int64(value) => value.to_bson(out),
        Value::Decimal128(value) => value.to_bson(out),
        // Rarer types take one more call.
        _ => match value.as_leaf() {
            Some(leaf) => leaf.to_bson(out),
            None => unreachable!("a {} is written elsewhere", value.kind()),
        },
    }
}
