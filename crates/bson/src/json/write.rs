//! Converts bytes to Extended JSON. The conversion is iterative except for scopes, each of which counts as a level of
//! the depth.
//!
//! The text is appended to a vector; a [`Drain`] may remove it in pieces.

use super::Json;
use super::double::append_double;
use crate::typed::to::sorted;
use crate::value::extended::Part;
use crate::wire::cursor::Outer;
use crate::{Cursor, DateTime, Decimal128, ElementType, FromBson, ObjectId, Timestamp, Utf8, ValueRef};
use data_encoding::BASE64;
use millstream_core::internal::{append as put, append_escaped, append_json};
use millstream_core::put::{Spare, hex};
use millstream_core::put_parts;
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// An open document or array.
struct Open<'a> {
    outer: Outer<'a>,
    is_array: bool,
    /// Whether it has no member yet.
    is_new: bool,
}

/// What to do with the text while it grows.
trait Drain {
    /// Whether long texts are written in pieces.
    const IN_PIECES: bool;

    /// Removes the text if it is long. The text is valid UTF-8 at that point.
    fn drain(&mut self, out: &mut Vec<u8>) -> Result<()>;
}

/// Keeps the whole text in the vector.
struct Keep;

impl Drain for Keep {
    const IN_PIECES: bool = false;

    #[inline]
    fn drain(&mut self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}

/// The approximate length of a piece. It is a multiple of 3, so that Base64 can be split.
const PIECE: usize = 48 << 10;

/// Passes pieces to a sink.
struct Pieces<'s> {
    sink: &'s mut dyn FnMut(&[u8]) -> Result<()>,
    /// The error of the sink, which must be distinguished from errors of the document.
    failed: Option<Error>,
}

impl Drain for Pieces<'_> {
    const IN_PIECES: bool = true;

    fn drain(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if out.len() < PIECE {
            return Ok(());
        }
        let result = (self.sink)(out);
        out.clear();
        result.map_err(|error| {
            self.failed = Some(error);
            Error::new(ErrorKind::Io)
        })
    }
}

/// Writes the value of this type at the cursor to a sink, in pieces. The second error is the sink's error.
pub(super) fn write_value(
    cursor: &mut Cursor<'_>,
    kind: ElementType,
    mode: Json,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Result<()>> {
    let (mut out, mut pieces) = (Vec::new(), Pieces { sink, failed: None });
    match append(&mut out, cursor, kind, mode, &mut pieces) {
        Ok(()) => Ok((pieces.sink)(&out)),
        Err(error) => pieces.failed.map_or(Err(error), |failed| Ok(Err(failed))),
    }
}

/// Appends the value of this type at the cursor.
pub(crate) fn append_value(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, kind: ElementType, mode: Json) -> Result<()> {
    append(out, cursor, kind, mode, &mut Keep)
}

fn append<D: Drain>(
    out: &mut Vec<u8>,
    cursor: &mut Cursor<'_>,
    kind: ElementType,
    mode: Json,
    drain: &mut D,
) -> Result<()> {
    let mut open = Vec::new();
    begin_value(out, cursor, kind, mode, &mut open, drain)?;
    while let Some(top) = open.last_mut() {
        drain.drain(out)?;
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
            append_text(out, &key, drain)?;
            out.push(b':');
        }
        begin_value(out, cursor, kind, mode, &mut open, drain)?;
    }
    Ok(())
}

/// Appends a value. For a document or array, only the beginning is appended, and the document or array becomes open.
#[inline]
fn begin_value<'a, D: Drain>(
    out: &mut Vec<u8>,
    cursor: &mut Cursor<'a>,
    kind: ElementType,
    mode: Json,
    open: &mut Vec<Open<'a>>,
    drain: &mut D,
) -> Result<()> {
    let is_array = match kind {
        ElementType::Document => false,
        ElementType::Array => true,
        ElementType::CodeWithScope => return append_code_with_scope(out, cursor, mode, drain),
        _ => return append_leaf(out, cursor, kind, mode, drain),
    };
    open.push(Open { outer: cursor.enter()?, is_array, is_new: true });
    out.push(if is_array { b'[' } else { b'{' });
    Ok(())
}

fn append_code_with_scope<D: Drain>(
    out: &mut Vec<u8>,
    cursor: &mut Cursor<'_>,
    mode: Json,
    drain: &mut D,
) -> Result<()> {
    let mut inside = cursor.code_with_scope()?;
    out.extend_from_slice(br#"{"$code":"#);
    append_text(out, &inside.text()?, drain)?;
    out.extend_from_slice(br#","$scope":"#);
    append(out, &mut inside, ElementType::Document, mode, drain)?;
    out.push(b'}');
    Ok(())
}

/// Appends a value without an inner document.
fn append_leaf<D: Drain>(
    out: &mut Vec<u8>,
    cursor: &mut Cursor<'_>,
    kind: ElementType,
    mode: Json,
    drain: &mut D,
) -> Result<()> {
    let relaxed = mode == Json::Relaxed;
    match kind {
        ElementType::String => append_text(out, &cursor.text()?, drain)?,
        ElementType::Int32 => match (cursor.i32()?, relaxed) {
            (number, true) => put(out, &put_parts!(number)),
            (number, false) => put(out, &put_parts!(r#"{"$numberInt":""#, number, r#""}"#)),
        },
        ElementType::Int64 => match (cursor.i64()?, relaxed) {
            (number, true) => put(out, &put_parts!(number)),
            (number, false) => put(out, &put_parts!(r#"{"$numberLong":""#, number, r#""}"#)),
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
            append_binary(out, subtype, bytes, drain)?;
        }
        ElementType::Decimal128 => append_decimal(out, Decimal128(cursor.take()?)),
        ElementType::Timestamp => {
            let Timestamp { time, increment } = Timestamp::from_bits(u64::from_le_bytes(cursor.take()?));
            put(out, &put_parts!(r#"{"$timestamp":{"t":"#, time, r#","i":"#, increment, "}}"));
        }
        ElementType::Regex => append_regex(out, cursor, drain)?,
        ElementType::Code => append_wrapped(out, br#"{"$code":"#, &cursor.text()?, drain)?,
        ElementType::Symbol => append_wrapped(out, br#"{"$symbol":"#, &cursor.text()?, drain)?,
        ElementType::DbPointer => {
            append_wrapped(out, br#"{"$dbPointer":{"$ref":"#, &cursor.text()?, drain)?;
            out.pop();
            out.extend_from_slice(br#","$id":"#);
            append_object_id(out, ObjectId(cursor.take()?));
            out.extend_from_slice(b"}}");
        }
        ElementType::Document | ElementType::Array | ElementType::CodeWithScope => {
            unreachable!("a {kind} is written elsewhere")
        }
        // Rare types are handled together.
        _ => {
            let part = Part::of(ValueRef::from_bson(kind, cursor)?);
            append_part(out, &part.unwrap_or_else(|| unreachable!("a {kind} is written elsewhere")));
        }
    }
    Ok(())
}

fn append_part(out: &mut Vec<u8>, part: &Part<'_>) {
    match part {
        Part::Text(text) => append_json(out, text),
        Part::Number(number) => put(out, &put_parts!(*number)),
        Part::True => out.extend_from_slice(b"true"),
        Part::Object(parts) => {
            for (index, (name, part)) in parts.iter().enumerate() {
                put(out, &put_parts!(if index == 0 { "{\"" } else { ",\"" }, *name, "\":"));
                append_part(out, part);
            }
            out.push(b'}');
        }
        Part::Bytes(_) | Part::Document(_) => unreachable!("what has these is written elsewhere"),
    }
}

/// Appends quoted text.
#[inline]
fn append_text<D: Drain>(out: &mut Vec<u8>, text: &str, drain: &mut D) -> Result<()> {
    if !D::IN_PIECES || text.len() <= PIECE {
        append_json(out, text);
        return Ok(());
    }
    out.push(b'"');
    let mut rest = text;
    while !rest.is_empty() {
        drain.drain(out)?;
        let (piece, others) = rest.split_at(rest.floor_char_boundary(PIECE));
        append_escaped(out, piece);
        rest = others;
    }
    out.push(b'"');
    Ok(())
}

/// Appends an object with one text member. Its last byte has not been appended yet.
fn append_wrapped<D: Drain>(out: &mut Vec<u8>, before: &[u8], text: &str, drain: &mut D) -> Result<()> {
    out.extend_from_slice(before);
    append_text(out, text, drain)?;
    out.push(b'}');
    Ok(())
}

fn append_object_id(out: &mut Vec<u8>, id: ObjectId) {
    put(out, &put_parts!(r#"{"$oid":""#, id.digits(), r#""}"#));
}

fn append_date(out: &mut Vec<u8>, date: DateTime, relaxed: bool) {
    if relaxed && date.0 >= 0 {
        let mut text = [0; DateTime::LONGEST];
        let mut spare = Spare::over(&mut text);
        if date.put_rfc3339(&mut spare) {
            return put(out, &put_parts!(r#"{"$date":""#, spare.as_bytes(), r#""}"#));
        }
    }
    put(out, &put_parts!(r#"{"$date":{"$numberLong":""#, date.0, r#""}}"#));
}

fn append_binary<D: Drain>(out: &mut Vec<u8>, subtype: u8, bytes: &[u8], drain: &mut D) -> Result<()> {
    out.extend_from_slice(br#"{"$binary":{"base64":""#);
    for piece in bytes.chunks(if D::IN_PIECES { PIECE } else { bytes.len().max(1) }) {
        drain.drain(out)?;
        let start = out.len();
        out.resize(start + BASE64.encode_len(piece.len()), 0);
        BASE64.encode_mut(piece, &mut out[start..]);
    }
    let zero = if subtype < 16 { "0" } else { "" };
    put(out, &put_parts!(r#"","subType":""#, zero, hex(subtype), r#""}}"#));
    Ok(())
}

fn append_decimal(out: &mut Vec<u8>, number: Decimal128) {
    let mut text = [0; Decimal128::LONGEST];
    let mut spare = Spare::over(&mut text);
    number.put_text(&mut spare);
    put(out, &put_parts!(r#"{"$numberDecimal":""#, spare.as_bytes(), r#""}"#));
}

fn append_regex<D: Drain>(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, drain: &mut D) -> Result<()> {
    let start = cursor.offset();
    let pattern = cursor.cstring()?;
    let pattern = cursor.text_of(pattern, start)?;
    let start = cursor.offset();
    let options = cursor.cstring()?;
    let options = cursor.text_of(options, start)?;
    append_wrapped(out, br#"{"$regularExpression":{"pattern":"#, &pattern, drain)?;
    out.pop();
    append_wrapped(out, br#","options":"#, &sorted(&options), drain)?;
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Document, append_document, append_element};

    #[test]
    fn pieces_are_the_same_text() {
        let text = "\"ü\u{1}\\世 ".repeat(40_000);
        let mut bytes = Vec::new();
        append_document(&mut bytes, |out| {
            append_element(out, "text", &text)?;
            append_element(out, &text, &1)?;
            append_element(out, "data", &Binary { subtype: 5, bytes: vec![0xab; 200_000] })?;
            append_element(out, "list", &(0..50_000).collect::<Vec<i32>>())?;
            for kind in [ElementType::Code, ElementType::Symbol, ElementType::DbPointer] {
                out.push(kind as u8);
                out.extend_from_slice(b"k\0");
                out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
                out.push(0);
                out.extend_from_slice(if kind == ElementType::DbPointer { &[7; 12] } else { &[] });
            }
            out.push(ElementType::Regex as u8);
            out.extend_from_slice(b"r\0");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\0im\0");
            append_element(out, "empty", &Binary { subtype: 0, bytes: Vec::<u8>::new() })
        })
        .unwrap();
        let document = Document::new(&bytes).unwrap();
        for mode in [Json::Relaxed, Json::Canonical] {
            let (mut joined, mut longest, mut count) = (String::new(), 0, 0);
            let written = document.write_json(mode, |piece| {
                joined.push_str(std::str::from_utf8(piece).unwrap());
                (longest, count) = (longest.max(piece.len()), count + 1);
                Ok(())
            });
            written.unwrap();
            assert_eq!(joined, document.to_json(mode).unwrap());
            assert!(count > 20 && longest < 8 * PIECE, "{count} pieces, the longest of {longest} bytes");
            let refuse = |_: &[u8]| Err(Error::new(ErrorKind::Stalled));
            let refused = document.write_json(mode, refuse).unwrap_err();
            assert_eq!((refused.kind(), refused.offset(), refused.path()), (ErrorKind::Stalled, None, None));
        }
    }
}
