//! The objects that represent a value of a type: `{"$oid": "…"}` and similar ones.

use super::read::{Failure, Payload, fail, without_nul};
use crate::scalar::shown;
use crate::typed::to::append_regex;
use crate::typed::to::{append_binary, append_string, begin, patch_length};
use crate::{DateTime, Decimal128, ElementType, ObjectId, Timestamp, ToBson};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use millstream_core::{Error, ErrorKind, Result};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

/// Makes the table of keys.
macro_rules! wrappers {
    ($($kind:ident $key:literal;)*) => {
        /// A key that only the object of one type has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Wrapper {
            $($kind,)*
        }

        impl Wrapper {
            /// The wrapper that this key belongs to.
            #[inline]
            pub(super) fn from_key(key: &str) -> Option<Wrapper> {
                if !key.starts_with('$') {
                    return None;
                }
                match key {
                    $($key => Some(Wrapper::$kind),)*
                    _ => None,
                }
            }

            fn key(self) -> &'static str {
                match self {
                    $(Wrapper::$kind => $key,)*
                }
            }
        }
    };
}

wrappers! {
    Binary "$binary";
    Code "$code";
    Date "$date";
    DbPointer "$dbPointer";
    MaxKey "$maxKey";
    MinKey "$minKey";
    NumberDecimal "$numberDecimal";
    NumberDouble "$numberDouble";
    NumberInt "$numberInt";
    NumberLong "$numberLong";
    Oid "$oid";
    RegularExpression "$regularExpression";
    Scope "$scope";
    Symbol "$symbol";
    Timestamp "$timestamp";
    Undefined "$undefined";
    Uuid "$uuid";
}

impl Wrapper {
    /// The error of this key next to others that do not belong there.
    #[cold]
    pub(super) fn not_alone(self) -> Error {
        wrong(
            format!("other keys next to {:?}", self.key()),
            format!("an object with only the keys that {:?} needs", self.key()),
        )
    }

    /// Reads the value of this key, which was the first, and the end of the object; appends the payload.
    pub(super) fn read<'de, A: MapAccess<'de>>(
        self,
        mut members: A,
        payload: Payload<'_>,
    ) -> Result<ElementType, A::Error> {
        let Payload { failure, .. } = payload;
        let (kind, behind) = match self {
            Wrapper::Code | Wrapper::Scope => return self.read_code(members, payload),
            _ => (self.read_value(&mut members, payload)?, members.next_key::<IgnoredAny>()?),
        };
        match behind {
            None => Ok(kind),
            Some(_) => Err(fail(failure, self.not_alone())),
        }
    }

    fn read_value<'de, A: MapAccess<'de>>(
        self,
        members: &mut A,
        payload: Payload<'_>,
    ) -> Result<ElementType, A::Error> {
        let Payload { out, failure, .. } = payload;
        let mut text = |read: &mut dyn FnMut(&str) -> Result<()>| members.next_value_seed(Text { failure, read });
        match self {
            Wrapper::Oid => text(&mut |text| text.parse::<ObjectId>()?.to_bson(out))?,
            Wrapper::Symbol => text(&mut |text| append_string(out, text))?,
            Wrapper::NumberInt => text(&mut |text| integer::<i32>(text, "a 32-bit integer")?.to_bson(out))?,
            Wrapper::NumberLong => text(&mut |text| long(text)?.to_bson(out))?,
            Wrapper::NumberDouble => text(&mut |text| double(text)?.to_bson(out))?,
            Wrapper::NumberDecimal => text(&mut |text| text.parse::<Decimal128>()?.to_bson(out))?,
            Wrapper::Uuid => text(&mut |text| append_binary(out, 4, &uuid(text)?))?,
            Wrapper::Date => {
                let date = members.next_value_seed(Date { failure })?;
                date.to_bson(out).map_err(|error| fail(failure, error))?;
            }
            Wrapper::Binary => {
                let (base64, subtype) =
                    members.next_value_seed(Pair::<String, String>::new(["base64", "subType"], failure))?;
                binary(out, &base64, &subtype).map_err(|error| fail(failure, error))?;
            }
            Wrapper::RegularExpression => {
                let names = ["pattern", "options"];
                let (pattern, options) = members.next_value_seed(Pair::<String, String>::new(names, failure))?;
                regex(out, &pattern, &options).map_err(|error| fail(failure, error))?;
            }
            Wrapper::Timestamp => {
                let (time, increment) = members.next_value_seed(Pair::<u32, u32>::new(["t", "i"], failure))?;
                Timestamp { time, increment }.to_bson(out).map_err(|error| fail(failure, error))?;
            }
            Wrapper::DbPointer => {
                let (namespace, Oid(id)) =
                    members.next_value_seed(Pair::<String, Oid>::new(["$ref", "$id"], failure))?;
                let id = id.parse::<ObjectId>();
                let appended = id.and_then(|id| append_string(out, &namespace).and_then(|()| id.to_bson(out)));
                appended.map_err(|error| fail(failure, error))?;
            }
            Wrapper::MinKey | Wrapper::MaxKey => {
                if members.next_value::<u64>()? != 1 {
                    return Err(fail(failure, wrong("another number".to_string(), "1".to_string())));
                }
            }
            Wrapper::Undefined => {
                if !members.next_value::<bool>()? {
                    return Err(fail(failure, wrong("false".to_string(), "true".to_string())));
                }
            }
            Wrapper::Code | Wrapper::Scope => unreachable!("read by `read_code`"),
        }
        Ok(self.kind())
    }

    /// Code alone, or with its scope, which may come first.
    fn read_code<'de, A: MapAccess<'de>>(self, mut members: A, payload: Payload<'_>) -> Result<ElementType, A::Error> {
        let Payload { out, failure, depth, .. } = payload;
        let (mut code, mut scope) = (None, None);
        let mut key = Some(self);
        while let Some(wrapper) = key {
            match wrapper {
                Wrapper::Code if code.is_none() => code = Some(members.next_value::<String>()?),
                Wrapper::Scope if scope.is_none() => {
                    let mut bytes = Vec::new();
                    let document = Payload { out: &mut bytes, failure, depth, is_root: false };
                    if members.next_value_seed(document)? != ElementType::Document {
                        let error = wrong("a $scope that is not an object".to_string(), "a document".to_string());
                        return Err(fail(failure, error));
                    }
                    scope = Some(bytes);
                }
                _ => return Err(fail(failure, self.not_alone())),
            }
            key = match members.next_key_seed(PhantomData::<String>)? {
                None => None,
                Some(key) => match Wrapper::from_key(&key) {
                    None => return Err(fail(failure, self.not_alone())),
                    wrapper => wrapper,
                },
            };
        }
        let append = || match (code, scope) {
            (Some(code), None) => append_string(out, &code).map(|()| ElementType::Code),
            (Some(code), Some(scope)) => {
                let start = begin(out);
                append_string(out, &code)?;
                out.extend_from_slice(&scope);
                patch_length(out, start).map(|()| ElementType::CodeWithScope)
            }
            (None, _) => Err(wrong("\"$scope\" alone".to_string(), "\"$code\" next to it".to_string())),
        };
        append().map_err(|error| fail(failure, error))
    }

    fn kind(self) -> ElementType {
        match self {
            Wrapper::Binary | Wrapper::Uuid => ElementType::Binary,
            Wrapper::Code => ElementType::Code,
            Wrapper::Date => ElementType::DateTime,
            Wrapper::DbPointer => ElementType::DbPointer,
            Wrapper::MaxKey => ElementType::MaxKey,
            Wrapper::MinKey => ElementType::MinKey,
            Wrapper::NumberDecimal => ElementType::Decimal128,
            Wrapper::NumberDouble => ElementType::Double,
            Wrapper::NumberInt => ElementType::Int32,
            Wrapper::NumberLong => ElementType::Int64,
            Wrapper::Oid => ElementType::ObjectId,
            Wrapper::RegularExpression => ElementType::Regex,
            Wrapper::Scope => ElementType::CodeWithScope,
            Wrapper::Symbol => ElementType::Symbol,
            Wrapper::Timestamp => ElementType::Timestamp,
            Wrapper::Undefined => ElementType::Undefined,
        }
    }
}

#[cold]
fn wrong(found: String, expected: String) -> Error {
    Error::new(ErrorKind::TextInvalid).with_found(found).with_expected(expected)
}

// The values of the texts.

/// An integer without a plus sign.
fn integer<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T> {
    let parsed = text.parse().ok().filter(|_| !text.starts_with('+'));
    parsed.ok_or_else(|| wrong(shown(text), expected.to_string()))
}

fn long(text: &str) -> Result<i64> {
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

/// The bytes of a UUID: 36 characters, as RFC 9562 has them.
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

fn binary(out: &mut Vec<u8>, base64: &str, subtype: &str) -> Result<()> {
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

fn regex(out: &mut Vec<u8>, pattern: &str, options: &str) -> Result<()> {
    without_nul(pattern)?;
    without_nul(options)?;
    append_regex(out, pattern, options)
}

// The way serde passes them.

/// Text, and its parser.
struct Text<'r> {
    failure: &'r RefCell<Failure>,
    read: &'r mut dyn FnMut(&str) -> Result<()>,
}

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, tokens: D) -> Result<(), D::Error> {
        tokens.deserialize_str(self)
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        (self.read)(text).map_err(|error| {
            // Offsets in a text's error are counted from its own start.
            fail(self.failure, error.without_offset())
        })
    }
}

/// A date: text, or an object with milliseconds.
struct Date<'r> {
    failure: &'r RefCell<Failure>,
}

impl<'de> DeserializeSeed<'de> for Date<'_> {
    type Value = DateTime;

    fn deserialize<D: serde::Deserializer<'de>>(self, tokens: D) -> Result<DateTime, D::Error> {
        tokens.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Date<'_> {
    type Value = DateTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"a date as text or {"$numberLong": "…"}"#)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<DateTime, E> {
        DateTime::from_rfc3339(text).map_err(|error| fail(self.failure, error.without_offset()))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<DateTime, A::Error> {
        let text = only(members, "$numberLong")?;
        long(&text).map(DateTime).map_err(|error| fail(self.failure, error))
    }
}

/// An object id inside another wrapper, not checked yet.
struct Oid(String);

impl<'de> serde::Deserialize<'de> for Oid {
    fn deserialize<D: serde::Deserializer<'de>>(tokens: D) -> Result<Oid, D::Error> {
        struct Inside;

        impl<'de> Visitor<'de> for Inside {
            type Value = Oid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"{"$oid": "…"}"#)
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Oid, A::Error> {
                only(members, "$oid").map(Oid)
            }
        }

        tokens.deserialize_map(Inside)
    }
}

/// The text of an object's only member.
fn only<'de, A: MapAccess<'de>>(mut members: A, name: &'static str) -> Result<String, A::Error> {
    use serde::de::Error as _;
    match members.next_key::<String>()? {
        Some(key) if key == name => {}
        Some(key) => return Err(A::Error::unknown_field(&key, &[])),
        None => return Err(A::Error::missing_field(name)),
    }
    let value = members.next_value()?;
    match members.next_key::<String>()? {
        None => Ok(value),
        Some(key) => Err(A::Error::unknown_field(&key, &[])),
    }
}

/// An object with exactly two members, in any order.
struct Pair<'r, A, B> {
    names: [&'static str; 2],
    failure: &'r RefCell<Failure>,
    types: PhantomData<(A, B)>,
}

impl<'r, A, B> Pair<'r, A, B> {
    fn new(names: [&'static str; 2], failure: &'r RefCell<Failure>) -> Self {
        Pair { names, failure, types: PhantomData }
    }
}

impl<'de, A: serde::Deserialize<'de>, B: serde::Deserialize<'de>> DeserializeSeed<'de> for Pair<'_, A, B> {
    type Value = (A, B);

    fn deserialize<D: serde::Deserializer<'de>>(self, tokens: D) -> Result<(A, B), D::Error> {
        tokens.deserialize_map(self)
    }
}

impl<'de, A: serde::Deserialize<'de>, B: serde::Deserialize<'de>> Visitor<'de> for Pair<'_, A, B> {
    type Value = (A, B);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {:?} and {:?}", self.names[0], self.names[1])
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(A, B), M::Error> {
        let (mut first, mut second) = (None, None);
        while let Some(key) = members.next_key::<String>()? {
            if key == self.names[0] && first.is_none() {
                first = Some(members.next_value()?);
            } else if key == self.names[1] && second.is_none() {
                second = Some(members.next_value()?);
            } else {
                return Err(fail(self.failure, self.not_these(&format!("the key {}", shown(&key)))));
            }
        }
        match (first, second) {
            (Some(first), Some(second)) => Ok((first, second)),
            _ => Err(fail(self.failure, self.not_these("fewer keys"))),
        }
    }
}

impl<A, B> Pair<'_, A, B> {
    #[cold]
    fn not_these(&self, found: &str) -> Error {
        wrong(found.to_string(), format!("{:?} and {:?}", self.names[0], self.names[1]))
    }
}
