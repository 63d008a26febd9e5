//! Reading objects that represent a value of a type, such as `{"$oid": "…"}`. `value/extended` contains their table.

use super::payload::{Failure, Payload, fail};
use crate::scalar::shown;
use crate::typed::to::{append_string, begin, patch_length};
use crate::value::extended::{Shape, Wrapper, long, wrong};
use crate::{DateTime, ElementType, ToBson};
use millstream_core::{Error, Result};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

impl Wrapper {
    /// The error if this key is next to other keys, which is not allowed.
    #[cold]
    pub(super) fn not_alone(&self) -> Error {
        wrong(
            format!("other keys next to {:?}", self.key),
            format!("an object with only the keys that {:?} needs", self.key),
        )
    }

    /// Reads the value of this key, which is the object's first key, and the end of the object. Appends the payload.
    pub(super) fn read<'de, A: MapAccess<'de>>(
        &self,
        mut members: A,
        payload: Payload<'_>,
    ) -> Result<ElementType, A::Error> {
        let Payload { failure, .. } = payload;
        let (kind, after) = match self.shape {
            Shape::Code | Shape::Scope => return self.read_code(members, payload),
            _ => (self.read_value(&mut members, payload)?, members.next_key::<IgnoredAny>()?),
        };
        match after {
            None => Ok(kind),
            Some(_) => Err(fail(failure, self.not_alone())),
        }
    }

    fn read_value<'de, A: MapAccess<'de>>(
        &self,
        members: &mut A,
        payload: Payload<'_>,
    ) -> Result<ElementType, A::Error> {
        let Payload { out, failure, .. } = payload;
        let appended = match self.shape {
            Shape::Text(append) => {
                members.next_value_seed(Text { failure, read: &mut |text| append(text, out) })?;
                Ok(())
            }
            Shape::Texts(names, append) => {
                let (first, second) = members.next_value_seed(Pair::<String, String>::new(names, failure))?;
                append(&first, &second, out)
            }
            Shape::Numbers(names, append) => {
                let (first, second) = members.next_value_seed(Pair::<u32, u32>::new(names, failure))?;
                append(first, second, out)
            }
            Shape::TextAndId(names, append) => {
                let (text, Oid(id)) = members.next_value_seed(Pair::<String, Oid>::new(names, failure))?;
                id.parse().and_then(|id| append(&text, id, out))
            }
            Shape::Date => members.next_value_seed(Date { failure })?.to_bson(out),
            Shape::One => match members.next_value::<u64>()? {
                1 => Ok(()),
                _ => Err(wrong("another number".to_string(), "1".to_string())),
            },
            Shape::True => match members.next_value::<bool>()? {
                true => Ok(()),
                false => Err(wrong("false".to_string(), "true".to_string())),
            },
            Shape::Code | Shape::Scope => unreachable!("read by `read_code`"),
        };
        appended.map(|()| self.kind).map_err(|error| fail(failure, error))
    }

    /// Reads code alone or with its scope. The scope may come first.
    fn read_code<'de, A: MapAccess<'de>>(&self, mut members: A, payload: Payload<'_>) -> Result<ElementType, A::Error> {
        let Payload { out, failure, depth, .. } = payload;
        let (mut code, mut scope) = (None, None);
        let mut key = Some(self);
        while let Some(wrapper) = key {
            match wrapper.shape {
                Shape::Code if code.is_none() => code = Some(members.next_value::<String>()?),
                Shape::Scope if scope.is_none() => {
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
}

// The values in the form in which serde passes them.

/// Text with its parser.
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
            // The offsets in a text's error are counted from the start of the text.
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

/// An object id inside another wrapper, which has not been checked yet.
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

/// Reads the text of an object's only member.
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

/// An object with exactly two members in any order.
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
