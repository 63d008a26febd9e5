//! Extended JSON for the types that both JSON and serde lack, converted to and from a small tree.
//!
//! [`Part`] is used for serde and for types without a faster function in `json/write`. The table of keys is used for
//! serde and for `json/read`.

use crate::scalar::shown;
use crate::typed::to::{append_binary, append_regex, append_string};
use crate::{
    Cursor, DateTime, Decimal128, Document, ElementType, FromBson, Map, ObjectId, Rules, Timestamp, ToBson, Value,
    ValueRef,
};
use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// A part of an Extended JSON value.
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

    /// Converts a value; `None` for the types that serde supports.
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

/// The expected content after the key of an object that represents a value, and the function that appends its payload.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Text.
    Text(fn(&str, &mut Vec<u8>) -> Result<()>),
    /// An object with these two members, both text.
    Texts([&'static str; 2], fn(&str, &str, &mut Vec<u8>) -> Result<()>),
    /// An object with these two members, both numbers.
    Numbers([&'static str; 2], fn(u32, u32, &mut Vec<u8>) -> Result<()>),
    /// An object with these two members, text and an object id.
    TextAndId([&'static str; 2], fn(&str, ObjectId, &mut Vec<u8>) -> Result<()>),
    /// A date: text or an object with milliseconds.
    Date,
    /// The number 1; there is no payload.
    One,
    /// `true`; there is no payload.
    True,
    /// Code, with or without a scope in the same object.
    Code,
    /// The document with which code is run.
    Scope,
}

/// A key that occurs only in the objects of one type.
pub(crate) struct Wrapper {
    pub(crate) key: &'static str,
    pub(crate) kind: ElementType,
    pub(crate) shape: Shape,
    /// Whether [`Part::of`] creates it; others are only read.
    is_made: bool,
}

/// Creates the table of keys.
macro_rules! wrappers {
    ($($key:literal $kind:ident $is_made:ident $shape:expr;)*) => {
        impl Wrapper {
            /// The wrapper that this key belongs to.
            #[inline]
            pub(crate) fn from_key(key: &str) -> Option<&'static Wrapper> {
                if !key.starts_with('$') {
                    return None;
                }
                match key {
                    $($key => {
                        static WRAPPER: Wrapper =
                            Wrapper { key: $key, kind: ElementType::$kind, shape: $shape, is_made: $is_made };
                        Some(&WRAPPER)
                    })*
                    _ => None,
                }
            }
        }
    };
}

wrappers! {
    "$binary" Binary true Shape::Texts(["base64", "subType"], binary);
    "$code" Code true Shape::Code;
    "$date" DateTime true Shape::Date;
    "$dbPointer" DbPointer true Shape::TextAndId(["$ref", "$id"], |namespace, id, out| {
        append_string(out, namespace)?;
        id.to_bson(out)
    });
    "$maxKey" MaxKey true Shape::One;
    "$minKey" MinKey true Shape::One;
    "$numberDecimal" Decimal128 true Shape::Text(|text, out| text.parse::<Decimal128>()?.to_bson(out));
    "$numberDouble" Double false Shape::Text(|text, out| double(text)?.to_bson(out));
    "$numberInt" Int32 false Shape::Text(|text, out| integer::<i32>(text, "a 32-bit integer")?.to_bson(out));
    "$numberLong" Int64 false Shape::Text(|text, out| long(text)?.to_bson(out));
    "$oid" ObjectId true Shape::Text(|text, out| text.parse::<ObjectId>()?.to_bson(out));
    "$regularExpression" Regex true Shape::Texts(["pattern", "options"], regex);
    "$scope" CodeWithScope false Shape::Scope;
    "$symbol" Symbol true Shape::Text(|text, out| append_string(out, text));
    "$timestamp" Timestamp true Shape::Numbers(["t", "i"], |time, increment, out| {
        Timestamp { time, increment }.to_bson(out)
    });
    "$undefined" Undefined true Shape::True;
    "$uuid" Binary false Shape::Text(|text, out| append_binary(out, 4, &uuid(text)?));
}

#[cold]
pub(crate) fn wrong(found: String, expected: String) -> Error {
    Error::new(ErrorKind::TextInvalid).with_found(found).with_expected(expected)
}

/// Rejects text that contains a NUL where BSON does not allow one.
pub(crate) fn without_nul(text: &str) -> Result<()> {
    match memchr::memchr(0, text.as_bytes()) {
        None => Ok(()),
        Some(_) => Err(wrong(shown(text), "a key, pattern or options without a NUL".to_string())),
    }
}

// Parsing of the texts.

/// Parses an integer without a plus sign.
fn integer<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T> {
    let parsed = text.parse().ok().filter(|_| !text.starts_with('+'));
    parsed.ok_or_else(|| wrong(shown(text), expected.to_string()))
}

pub(crate) fn long(text: &str) -> Result<i64> {
    integer(text, "a 64-bit integer")
}

fn double(text: &str) -> Result<f64> {
    let is_decimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    match text {
        "Infinity" => Ok(f64::INFINITY),
        "-Infinity" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        _ => {
            text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite()).ok_or_else(|| {
                wrong(shown(text), "a double as text, \"Infinity\", \"-Infinity\" or \"NaN\"".to_string())
            })
        }
    }
}

/// Parses a UUID of 36 characters, as in RFC 9562.
fn uuid(text: &str) -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let digits: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = digits.iter().map(|group| group.len()).collect();
    let decoded =
        lengths == [8, 4, 4, 4, 12] && HEXLOWER_PERMISSIVE.decode_mut(digits.concat().as_bytes(), &mut bytes).is_ok();
    if decoded {
        Ok(bytes)
    } else {
        Err(wrong(shown(text), "a UUID: 32 hexadecimal digits in five groups".to_string()))
    }
}

fn binary(base64: &str, subtype: &str, out: &mut Vec<u8>) -> Result<()> {
    let Some(subtype) =
        u8::from_str_radix(subtype, 16).ok().filter(|_| (1..=2).contains(&subtype.len()) && !subtype.starts_with('+'))
    else {
        return Err(wrong(format!("the subType {}", shown(subtype)), "one or two hexadecimal digits".to_string()));
    };
    match BASE64.decode(base64.as_bytes()) {
        Ok(bytes) => append_binary(out, subtype, &bytes),
        Err(error) => Err(wrong(
            format!("base64 that is invalid at its byte {}", error.position),
            "base64 with padding".to_string(),
        )),
    }
}

fn regex(pattern: &str, options: &str, out: &mut Vec<u8>) -> Result<()> {
    without_nul(pattern)?;
    without_nul(options)?;
    append_regex(out, pattern, options)
}

/// The key for a number that no text represents exactly; the value is its bytes.
const DECIMAL_BYTES: &str = "$numberDecimalBytes";

/// Whether an object with this key is not a document but a value of a type that serde lacks.
pub(crate) fn is_key(key: &str) -> bool {
    key == DECIMAL_BYTES || Wrapper::from_key(key).is_some_and(|wrapper| wrapper.is_made)
}

/// The value that an object with this key represents, if the object is exactly what [`Part::of`] creates.
pub(crate) fn value_of(key: &str, body: Value) -> Option<Value> {
    if let (DECIMAL_BYTES, Value::Binary { subtype: 0, bytes }) = (key, &body) {
        return Some(Value::Decimal128(Decimal128(bytes.as_slice().try_into().ok()?)));
    }
    let Wrapper { kind, shape, .. } = Wrapper::from_key(key).filter(|wrapper| wrapper.is_made)?;
    let mut payload = Vec::new();
    let appended = match (shape, body) {
        (Shape::Text(append), Value::String(text)) => append(&text, &mut payload),
        (Shape::Texts(names, append), Value::Document(body)) => {
            let [Value::String(first), Value::String(second)] = exactly(body, *names)? else { return None };
            // `json/read` also accepts a single digit and upper-case letters.
            if *kind == ElementType::Binary && HEXLOWER.decode(second.as_bytes()).is_err() {
                return None;
            }
            append(&first, &second, &mut payload)
        }
        (Shape::Numbers(names, append), Value::Document(body)) => {
            let [first, second] = exactly(body, *names)?.map(|part| part.as_i64().map(u32::try_from));
            append(first?.ok()?, second?.ok()?, &mut payload)
        }
        (Shape::TextAndId(names, append), Value::Document(body)) => {
            let [Value::String(text), Value::ObjectId(id)] = exactly(body, *names)? else { return None };
            append(&text, id, &mut payload)
        }
        (Shape::Date, Value::Document(body)) => {
            let [Value::String(milliseconds)] = exactly(body, ["$numberLong"])? else { return None };
            DateTime(milliseconds.parse().ok()?).to_bson(&mut payload)
        }
        (Shape::Code, Value::String(code)) => append_string(&mut payload, &code),
        (Shape::One, Value::Int32(1) | Value::Int64(1)) | (Shape::True, Value::Bool(true)) => Ok(()),
        _ => return None,
    };
    appended.ok()?;
    Value::from_bson(*kind, &mut Cursor::new(&payload, Rules::new())).ok()
}

/// Returns the values of these keys, if there are no others.
fn exactly<const N: usize>(mut body: Map, keys: [&str; N]) -> Option<[Value; N]> {
    let values = keys.map(|key| body.remove(key));
    if !body.is_empty() || values.contains(&None) {
        return None;
    }
    Some(values.map(Option::unwrap_or_default))
}
