//! Extended JSON out of bytes: iterative but for scopes, each of which takes a level of the depth.

use super::Json;
use super::double::append_double;
use crate::bson::cursor::Outer;
use crate::bson::value::sorted;
use crate::bson::{Cursor, DateTime, Decimal128, ElementType, ObjectId, Timestamp, Utf8};
use crate::error::Result;
use crate::put::{Room, append, append_json, hex};
use crate::put_parts;
use data_encoding::BASE64;
use std::borrow::Cow;

/// A document or array that is open.
struct Open<'a> {
    outer: Outer<'a>,
    is_array: bool,
    /// Whether nothing has been written in it.
    is_new: bool,
}

/// Appends the document that the cursor is at.
pub(super) fn append_document(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, mode: Json) -> Result<()> {
    append_value(out, cursor, ElementType::Document, mode)
}

/// Appends the value of this type that the cursor is at.
pub(in crate::bson) fn append_value(
    out: &mut Vec<u8>,
    cursor: &mut Cursor<'_>,
    kind: ElementType,
    mode: Json,
) -> Result<()> {
    let mut open = Vec::new();
    begin_value(out, cursor, kind, mode, &mut open)?;
    while let Some(top) = open.last_mut() {
        let Some((kind, key)) = cursor.next()? else {
            out.push(if top.is_array { b']' } else { b'}' });
            cursor.leave(top.outer);
            open.pop();
            continue;
        };
        if !std::mem::take(&mut top.is_new) {
            out.push(b',');
        }
        let key = match cursor.rules().utf8 {
            Utf8::Checked => Cow::Borrowed(cursor.key_text(key)?),
            Utf8::Lossy => String::from_utf8_lossy(key),
        };
        if !top.is_array {
            append_json(out, &key);
            out.push(b':');
        }
        begin_value(out, cursor, kind, mode, &mut open)?;
    }
    Ok(())
}

/// Appends a value, or only the beginning of a document or array, which is open then.
#[inline]
fn begin_value<'a>(
    out: &mut Vec<u8>,
    cursor: &mut Cursor<'a>,
    kind: ElementType,
    mode: Json,
    open: &mut Vec<Open<'a>>,
) -> Result<()> {
    let is_array = match kind {
        ElementType::Document => false,
        ElementType::Array => true,
        ElementType::CodeWithScope => return append_code_with_scope(out, cursor, mode),
        _ => return append_leaf(out, cursor, kind, mode),
    };
    open.push(Open { outer: cursor.enter()?, is_array, is_new: true });
    out.push(if is_array { b'[' } else { b'{' });
    Ok(())
}

fn append_code_with_scope(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, mode: Json) -> Result<()> {
    let mut inside = cursor.code_with_scope()?;
    out.extend_from_slice(br#"{"$code":"#);
    append_json(out, &inside.text()?);
    out.extend_from_slice(br#","$scope":"#);
    append_document(out, &mut inside, mode)?;
    out.push(b'}');
    Ok(())
}

/// Appends what has no document in it.
fn append_leaf(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, kind: ElementType, mode: Json) -> Result<()> {
    let relaxed = mode == Json::Relaxed;
    match kind {
        ElementType::String => append_json(out, &cursor.text()?),
        ElementType::Int32 => match (cursor.i32()?, relaxed) {
            (number, true) => append(out, &put_parts!(number)),
            (number, false) => append(out, &put_parts!(r#"{"$numberInt":""#, number, r#""}"#)),
        },
        ElementType::Int64 => match (cursor.i64()?, relaxed) {
            (number, true) => append(out, &put_parts!(number)),
            (number, false) => append(out, &put_parts!(r#"{"$numberLong":""#, number, r#""}"#)),
        },
        ElementType::Double => match cursor.f64()? {
            number if relaxed && number.is_finite() => append_double(out, number),
            number => {
                out.extend_from_slice(br#"{"$numberDouble":""#);
                append_double(out, number);
                out.extend_from_slice(br#""}"#);
            }
        },
        ElementType::Bool => out.extend_from_slice(if cursor.bool()? { b"true" } else { b"false" }),
        ElementType::Null => out.extend_from_slice(b"null"),
        ElementType::DateTime => append_date(out, DateTime(cursor.i64()?), relaxed),
        ElementType::ObjectId => append_object_id(out, ObjectId(cursor.take()?)),
        ElementType::Binary => {
            let (subtype, bytes) = cursor.binary()?;
            append_binary(out, subtype, bytes);
        }
        ElementType::Decimal128 => append_decimal(out, Decimal128(cursor.take()?)),
        ElementType::Timestamp => {
            let Timestamp { time, increment } = Timestamp::from_bits(u64::from_le_bytes(cursor.take()?));
            append(out, &put_parts!(r#"{"$timestamp":{"t":"#, time, r#","i":"#, increment, "}}"));
        }
        ElementType::Regex => append_regex(out, cursor)?,
        ElementType::Code => append_wrapped(out, br#"{"$code":"#, &cursor.text()?),
        ElementType::Symbol => append_wrapped(out, br#"{"$symbol":"#, &cursor.text()?),
        ElementType::DbPointer => {
            append_wrapped(out, br#"{"$dbPointer":{"$ref":"#, &cursor.text()?);
            out.pop();
            out.extend_from_slice(br#","$id":"#);
            append_object_id(out, ObjectId(cursor.take()?));
            out.extend_from_slice(b"}}");
        }
        ElementType::Undefined => out.extend_from_slice(br#"{"$undefined":true}"#),
        ElementType::MinKey => out.extend_from_slice(br#"{"$minKey":1}"#),
        ElementType::MaxKey => out.extend_from_slice(br#"{"$maxKey":1}"#),
        ElementType::Document | ElementType::Array | ElementType::CodeWithScope => {
            unreachable!("a {kind} is written elsewhere")
        }
    }
    Ok(())
}

/// Appends an object with one member, which is text.
fn append_wrapped(out: &mut Vec<u8>, before: &[u8], text: &str) {
    out.extend_from_slice(before);
    append_json(out, text);
    out.push(b'}');
}

fn append_object_id(out: &mut Vec<u8>, id: ObjectId) {
    append(out, &put_parts!(r#"{"$oid":""#, id.digits(), r#""}"#));
}

fn append_date(out: &mut Vec<u8>, date: DateTime, relaxed: bool) {
    if relaxed && date.0 >= 0 {
        let mut text = [0; DateTime::LONGEST];
        let mut room = Room::over(&mut text);
        if date.put_rfc3339(&mut room) {
            return append(out, &put_parts!(r#"{"$date":""#, room.as_bytes(), r#""}"#));
        }
    }
    append(out, &put_parts!(r#"{"$date":{"$numberLong":""#, date.0, r#""}}"#));
}

fn append_binary(out: &mut Vec<u8>, subtype: u8, bytes: &[u8]) {
    out.extend_from_slice(br#"{"$binary":{"base64":""#);
    let start = out.len();
    out.resize(start + BASE64.encode_len(bytes.len()), 0);
    BASE64.encode_mut(bytes, &mut out[start..]);
    let zero = if subtype < 16 { "0" } else { "" };
    append(out, &put_parts!(r#"","subType":""#, zero, hex(subtype), r#""}}"#));
}

fn append_decimal(out: &mut Vec<u8>, number: Decimal128) {
    let mut text = [0; Decimal128::LONGEST];
    let mut room = Room::over(&mut text);
    number.put_text(&mut room);
    append(out, &put_parts!(r#"{"$numberDecimal":""#, room.as_bytes(), r#""}"#));
}

fn append_regex(out: &mut Vec<u8>, cursor: &mut Cursor<'_>) -> Result<()> {
    let start = cursor.offset();
    let pattern = cursor.cstring()?;
    let pattern = cursor.text_of(pattern, start)?;
    let start = cursor.offset();
    let options = cursor.cstring()?;
    let options = cursor.text_of(options, start)?;
    append_wrapped(out, br#"{"$regularExpression":{"pattern":"#, &pattern);
    out.pop();
    append_wrapped(out, br#","options":"#, &sorted(&options));
    out.push(b'}');
    Ok(())
}
