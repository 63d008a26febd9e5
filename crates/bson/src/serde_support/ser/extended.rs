//! Structs of the `bson` crate that represent a type that serde lacks.
//!
//! These structs have a known name and the members of Extended JSON. Each one is first written as a document; when
//! the document is complete, it is replaced by the value that it represents.

use super::{Open, Slot};
use crate::serde_support::marker;
use crate::typed::to;
use crate::typed::to::append_regex;
use crate::{DateTime, Decimal128, Document, ElementType, ObjectId, Timestamp, ToBson, ValueRef};
use data_encoding::BASE64;
use millstream_core::{Error, ErrorKind, Result};

/// A document that will be replaced by a value of this type.
pub(super) struct Extended<'o> {
    pub(super) open: Open<'o>,
    kind: ElementType,
    type_at: usize,
}

impl<'o> Extended<'o> {
    /// The type that a struct with this name represents.
    #[inline]
    pub(super) fn kind_of(name: &str) -> Option<ElementType> {
        Some(match name {
            "$oid" => ElementType::ObjectId,
            "$date" => ElementType::DateTime,
            "$binary" => ElementType::Binary,
            "$timestamp" => ElementType::Timestamp,
            "$minKey" => ElementType::MinKey,
            "$maxKey" => ElementType::MaxKey,
            "$code" => ElementType::Code,
            "$codeWithScope" => ElementType::CodeWithScope,
            "$symbol" => ElementType::Symbol,
            "$undefined" => ElementType::Undefined,
            "$regularExpression" => ElementType::Regex,
            "$dbPointer" => ElementType::DbPointer,
            "$numberDecimal" => ElementType::Decimal128,
            marker::JSON_NUMBER => ElementType::Double, // or an integer, which is known only when it is complete
            _ => return None,
        })
    }

    pub(super) fn open(mut slot: Slot<'o>, kind: ElementType) -> Result<Extended<'o>> {
        slot.announce(kind)?;
        let Some(type_at) = slot.type_at else { return Err(super::no_document(kind)) };
        if kind == ElementType::Double {
            slot.depth = slot.depth.max(1); // a number does not count as a level
        }
        Ok(Extended { open: slot.open(ElementType::Document)?, kind, type_at })
    }

    pub(super) fn close(self) -> Result<()> {
        let Extended { open: Open { out, start, .. }, kind, type_at } = self;
        to::end(out, start)?;
        let mut payload = Vec::new();
        let written = Document::new(&out[start..]).and_then(|document| match kind {
            ElementType::Double => append_number(document.require(marker::JSON_NUMBER)?, &mut payload),
            _ => append(kind, document, &mut payload).map(|()| kind),
        });
        out.truncate(start);
        out[type_at] = super::UNKNOWN; // for the path of an error
        out[type_at] = written.map_err(|error| no_such(kind, error))? as u8;
        out.extend_from_slice(&payload);
        Ok(())
    }
}

/// Appends the payload of the value that an Extended JSON document represents.
fn append(kind: ElementType, document: Document<'_>, out: &mut Vec<u8>) -> Result<()> {
    match kind {
        ElementType::ObjectId => object_id(document.require("$oid")?)?.to_bson(out),
        ElementType::DateTime => {
            let text: &str = document.require::<Document<'_>>("$date")?.require("$numberLong")?;
            DateTime(text.parse().map_err(|_| bad(text))?).to_bson(out)
        }
        ElementType::Binary => {
            let body: Document<'_> = document.require("$binary")?;
            if let Some(bytes) = body.get::<&[u8]>("bytes")? {
                return to::append_binary(out, body.require("subType")?, bytes); // from their borrowed type
            }
            let (bytes, subtype): (&str, &str) = (body.require("base64")?, body.require("subType")?);
            let bytes = BASE64.decode(bytes.as_bytes()).map_err(|_| bad(bytes))?;
            let subtype = u8::from_str_radix(subtype, 16).map_err(|_| bad(subtype))?;
            to::append_binary(out, subtype, &bytes)
        }
        ElementType::Timestamp => {
            let body: Document<'_> = document.require("$timestamp")?;
            Timestamp { time: body.require("t")?, increment: body.require("i")? }.to_bson(out)
        }
        ElementType::Regex => {
            let body: Document<'_> = document.require("$regularExpression")?;
            append_regex(out, body.require("pattern")?, body.require("options")?)
        }
        ElementType::DbPointer => {
            let body: Document<'_> = document.require("$dbPointer")?;
            to::append_string(out, body.require("$ref")?)?;
            match body.get("$id")? {
                Some(ValueRef::ObjectId(id)) => id.to_bson(out),
                Some(ValueRef::Document(id)) => object_id(id.require("$oid")?)?.to_bson(out),
                _ => object_id(body.require("$oid")?)?.to_bson(out),
            }
        }
        ElementType::Code => document.require::<&str>("$code")?.to_bson(out),
        ElementType::Symbol => document.require::<&str>("$symbol")?.to_bson(out),
        ElementType::CodeWithScope => {
            let start = to::begin(out);
            document.require::<&str>("$code")?.to_bson(out)?;
            document.require::<Document<'_>>("$scope")?.to_bson(out)?;
            to::patch_length(out, start)
        }
        ElementType::Decimal128 => match document.get::<&[u8]>("$numberDecimalBytes")? {
            Some(bytes) => Decimal128(bytes.try_into().map_err(|_| bad("another number of bytes"))?).to_bson(out),
            None => {
                let text: &str = document.require("$numberDecimal")?;
                text.parse::<Decimal128>()?.to_bson(out)
            }
        },
        ElementType::MinKey | ElementType::MaxKey | ElementType::Undefined => Ok(()),
        _ => unreachable!("a {kind} has no document that represents it"),
    }
}

/// Appends a serde_json number as it would be written without the feature `arbitrary_precision`.
fn append_number(text: &str, out: &mut Vec<u8>) -> Result<ElementType> {
    let number = match text.parse::<i64>() {
        Ok(integer) if text != "-0" => ValueRef::Int64(integer),
        _ => match text.parse::<f64>() {
            Ok(_) if text.parse::<u64>().is_ok() => return Err(super::too_large(text)),
            Ok(double) if double.is_finite() => ValueRef::Double(double),
            _ => return Err(bad(text)),
        },
    };
    number.to_bson(out)?;
    Ok(number.kind())
}

fn object_id(text: &str) -> Result<ObjectId> {
    text.parse()
}

#[cold]
fn bad(text: &str) -> Error {
    Error::new(ErrorKind::ShapeMismatch).with_found(format!("{text:?}"))
}

/// The error for a struct whose content does not represent a value of this type.
#[cold]
fn no_such(kind: ElementType, error: Error) -> Error {
    let expected = match kind {
        ElementType::Double => "a number".to_string(),
        _ => format!("the Extended JSON of a value of type {kind}"),
    };
    Error::new(error.kind()).with_found(error.found().unwrap_or("another member").to_string()).with_expected(expected)
}
