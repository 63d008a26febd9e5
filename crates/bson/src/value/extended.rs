//! Extended JSON of the types that neither JSON nor serde has, as a small tree, and back.
//!
//! All that is not in a hurry goes by this: serde both ways, and types for which `json/write` has no way of its own. What
//! reads all of Extended JSON is `json/wrapper`.

use crate::{DateTime, Decimal128, Document, Map, Timestamp, Value, ValueRef};
use data_encoding::{BASE64, HEXLOWER};
use std::borrow::Cow;

/// A piece of Extended JSON.
pub(crate) enum Part<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    Number(i64),
    True,
    Document(Document<'a>),
    Object(Vec<(&'static str, Part<'a>)>),
}

impl<'a> Part<'a> {
    /// An object with one member.
    pub(crate) fn one(name: &'static str, part: Part<'a>) -> Part<'a> {
        Part::Object(vec![(name, part)])
    }

    pub(crate) fn made(text: impl ToString) -> Part<'a> {
        Part::Text(Cow::Owned(text.to_string()))
    }

    /// What a value is; `None` for the types that serde has.
    pub(crate) fn of(value: ValueRef<'a>) -> Option<Part<'a>> {
        let one = Part::one;
        let text = |text: &'a str| Part::Text(Cow::Borrowed(text));
        let number = |number: u32| Part::Number(number.into());
        Some(match value {
            ValueRef::ObjectId(id) => one("$oid", Part::made(id)),
            ValueRef::DateTime(date) => one("$date", one("$numberLong", Part::made(date.0))),
            ValueRef::Decimal128(number) => one("$numberDecimal", Part::made(number)),
            ValueRef::Timestamp(stamp) => {
                one("$timestamp", Part::Object(vec![("t", number(stamp.time)), ("i", number(stamp.increment))]))
            }
            ValueRef::Binary { subtype, bytes } => {
                let (base64, subtype) = (BASE64.encode(bytes), HEXLOWER.encode(&[subtype]));
                one("$binary", Part::Object(vec![("base64", Part::made(base64)), ("subType", Part::made(subtype))]))
            }
            ValueRef::Regex { pattern, options } => {
                one("$regularExpression", Part::Object(vec![("pattern", text(pattern)), ("options", text(options))]))
            }
            ValueRef::DbPointer { namespace, id } => {
                let id = one("$oid", Part::made(id));
                one("$dbPointer", Part::Object(vec![("$ref", text(namespace)), ("$id", id)]))
            }
            ValueRef::Code(code) => one("$code", text(code)),
            ValueRef::Symbol(symbol) => one("$symbol", text(symbol)),
            ValueRef::CodeWithScope { code, scope } => {
                Part::Object(vec![("$code", text(code)), ("$scope", Part::Document(scope))])
            }
            ValueRef::Undefined => one("$undefined", Part::True),
            ValueRef::MinKey => one("$minKey", Part::Number(1)),
            ValueRef::MaxKey => one("$maxKey", Part::Number(1)),
            ValueRef::Double(_)
            | ValueRef::String(_)
            | ValueRef::Document(_)
            | ValueRef::Array(_)
            | ValueRef::Bool(_)
            | ValueRef::Null
            | ValueRef::Int32(_)
            | ValueRef::Int64(_) => return None,
        })
    }
}

/// The keys that say: this is no document, but the value of a type that serde does not have.
pub(crate) const KEYS: &[&str] = &[
    "$oid",
    "$date",
    "$numberDecimal",
    "$numberDecimalBytes",
    "$timestamp",
    "$binary",
    "$regularExpression",
    "$dbPointer",
    "$code",
    "$symbol",
    "$undefined",
    "$minKey",
    "$maxKey",
];

/// The value that an object with this key stands for, if it is exactly what [`Part::of`] makes.
pub(crate) fn value_of(key: &str, body: Value) -> Option<Value> {
    Some(match (key, body) {
        ("$oid", Value::String(text)) => Value::ObjectId(text.parse().ok()?),
        ("$date", Value::Document(body)) => {
            let [Value::String(milliseconds)] = exactly(body, ["$numberLong"])? else { return None };
            Value::DateTime(DateTime(milliseconds.parse().ok()?))
        }
        ("$numberDecimal", Value::String(text)) => Value::Decimal128(text.parse().ok()?),
        ("$numberDecimalBytes", Value::Binary { subtype: 0, bytes }) => {
            Value::Decimal128(Decimal128(bytes.try_into().ok()?))
        }
        ("$timestamp", Value::Document(body)) => {
            let [time, increment] = exactly(body, ["t", "i"])?.map(|part| part.as_i64().map(u32::try_from));
            Value::Timestamp(Timestamp { time: time?.ok()?, increment: increment?.ok()? })
        }
        ("$binary", Value::Document(body)) => {
            let [Value::String(text), Value::String(subtype)] = exactly(body, ["base64", "subType"])? else {
                return None;
            };
            let [subtype] = HEXLOWER.decode(subtype.as_bytes()).ok()?[..] else { return None };
            Value::Binary { subtype, bytes: BASE64.decode(text.as_bytes()).ok()? }
        }
        ("$regularExpression", Value::Document(body)) => {
            let [Value::String(pattern), Value::String(options)] = exactly(body, ["pattern", "options"])? else {
                return None;
            };
            Value::Regex { pattern, options }
        }
        ("$dbPointer", Value::Document(body)) => {
            let [Value::String(namespace), Value::ObjectId(id)] = exactly(body, ["$ref", "$id"])? else { return None };
            Value::DbPointer { namespace, id }
        }
        ("$code", Value::String(code)) => Value::Code(code),
        ("$symbol", Value::String(text)) => Value::Symbol(text),
        ("$undefined", Value::Bool(true)) => Value::Undefined,
        ("$minKey", Value::Int32(1) | Value::Int64(1)) => Value::MinKey,
        ("$maxKey", Value::Int32(1) | Value::Int64(1)) => Value::MaxKey,
        _ => return None,
    })
}

/// The values of these keys, if there are no others.
fn exactly<const N: usize>(mut body: Map, keys: [&str; N]) -> Option<[Value; N]> {
    let values = keys.map(|key| body.remove(key));
    if !body.is_empty() || values.contains(&None) {
        return None;
    }
    Some(values.map(Option::unwrap_or_default))
}
