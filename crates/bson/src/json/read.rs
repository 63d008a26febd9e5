//! Converting Extended JSON to bytes in one pass. serde_json finds the tokens. The code is recursive, but the rules
//! limit the depth.

use super::payload::{Failure, Payload, fail};
use crate::scalar::shown;
use crate::serde_support::marker;
use crate::typed::to::{Positions, append_string, begin, end};
use crate::value::extended::{Wrapper, without_nul};
use crate::{Document, ElementType, Map, Rules};
use millstream_core::{Error, ErrorKind, Result};
use serde::de::{DeserializeSeed, Deserializer as _, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::panic::resume_unwind;
use std::thread;

/// Reads a document from Extended JSON, which may be canonical, relaxed or mixed.
///
/// An integer becomes a 32-bit integer if it fits, otherwise a 64-bit integer or a double. The outermost object is
/// always a document; an inner object with a key such as `$oid` must represent a value of that type and contain nothing
/// else. Other keys with a `$` are ordinary.
///
/// ```
/// use millstream::bson::{DateTime, Value, from_json};
/// let map = from_json(r#"{"at": {"$date": "1970-01-01T00:00:01Z"}, "query": {"$gt": 5000000000}}"#)?;
/// assert_eq!(map["at"], Value::DateTime(DateTime(1000)));
/// assert_eq!(map["query"].as_map().unwrap()["$gt"], Value::Int64(5_000_000_000));
///
/// let error = from_json(r#"{"a": [{"$oid": "no"}]}"#).unwrap_err();
/// assert_eq!(error.kind(), millstream::ErrorKind::TextInvalid);
/// assert_eq!((error.path(), error.offset()), (Some("a.0"), Some(19)));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// [`TextInvalid`](ErrorKind::TextInvalid) with the path and the offset in the text, a few bytes after the error;
/// [`TooDeep`](ErrorKind::TooDeep) beyond the default rules' depth.
pub fn from_json(text: impl AsRef<[u8]>) -> Result<Map> {
    let mut bytes = Vec::new();
    json_to_bson(text, Rules::new(), &mut bytes)?;
    Map::from_document(Document::new(&bytes)?)
}

/// Appends the document in this text as bytes. This function is [`from_json`] without the tree. Only the depth of the
/// rules is used. For a depth above the default of 200, a separate thread with a large enough stack reads the text.
///
/// ```
/// use millstream::bson::{Document, Rules, json_to_bson};
/// let mut bytes = Vec::new();
/// json_to_bson(r#"{"n": 42}"#, Rules::new(), &mut bytes)?;
/// assert_eq!(Document::new(&bytes)?.get::<i32>("n")?, Some(42));
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// As for [`from_json`], and [`Io`](ErrorKind::Io) if the depth needs a thread and the platform has none, such as
/// WebAssembly. In that case nothing is appended.
pub fn json_to_bson(text: impl AsRef<[u8]>, rules: Rules, out: &mut Vec<u8>) -> Result<()> {
    let text = text.as_ref();
    if rules.depth <= SHALLOW {
        return append(text, rules, out);
    }
    thread::scope(|scope| {
        let stack = thread::Builder::new().stack_size(usize::from(rules.depth) * LEVEL);
        let thread = stack.spawn_scoped(scope, || append(text, rules, out)).map_err(Error::from_io)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Up to this depth, the stack of any thread is large enough; above it, a separate thread reads the text.
const SHALLOW: u16 = 200;

/// The stack space for one level in bytes. The largest value that was measured is 6 KiB, without optimisation.
const LEVEL: usize = 16 << 10;

fn append(text: &[u8], rules: Rules, out: &mut Vec<u8>) -> Result<()> {
    let len = out.len();
    let failure = RefCell::new(Failure::default());
    let mut tokens = serde_json::Deserializer::from_slice(text);
    tokens.disable_recursion_limit(); // the rules limit it
    let root = Payload { out, failure: &failure, depth: rules.depth, is_root: true };
    let read = tokens.deserialize_map(root).and_then(|_| tokens.end());
    read.map_err(|error| {
        out.truncate(len);
        failure.into_inner().locate(text, &error)
    })
}

impl<'de> DeserializeSeed<'de> for Payload<'_> {
    type Value = ElementType;

    fn deserialize<D: serde::Deserializer<'de>>(self, tokens: D) -> Result<ElementType, D::Error> {
        tokens.deserialize_any(self)
    }
}

impl<'o> Payload<'o> {
    /// Returns a payload for a value inside this one.
    fn inside(&mut self, depth: u16) -> Payload<'_> {
        Payload { out: self.out, failure: self.failure, depth, is_root: false }
    }

    /// Appends a constant number of bytes.
    fn fixed<const N: usize>(self, kind: ElementType, bytes: [u8; N]) -> ElementType {
        self.out.extend_from_slice(&bytes);
        kind
    }

    /// Appends a JSON number that serde_json passes as text. It is not a 64-bit integer, because those are passed as
    /// integers.
    fn append_number<E: serde::de::Error>(self, text: &str) -> Result<ElementType, E> {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => self.visit_f64(number),
            _ => {
                let error = Error::new(ErrorKind::TextInvalid)
                    .with_found(format!("{} (number out of range)", shown(text)))
                    .with_expected("a number that a double can represent");
                Err(fail(self.failure, error))
            }
        }
    }

    fn open<E: serde::de::Error>(&self) -> Result<u16, E> {
        self.depth.checked_sub(1).ok_or_else(|| {
            let error =
                Error::new(ErrorKind::TooDeep).with_found("nested objects and arrays").with_expected("fewer levels");
            fail(self.failure, error)
        })
    }

    /// Adds the key of the element whose type is at `at` to the path of an error.
    #[cold]
    fn add_key(&self, at: usize) {
        let key = self.out[at + 1..].split(|&byte| byte == 0).next().unwrap_or_default();
        self.failure.borrow_mut().keys.push(String::from_utf8_lossy(key).into_owned());
    }
}

impl<'de> Visitor<'de> for Payload<'_> {
    type Value = ElementType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root { "a document" } else { "a value" })
    }

    fn visit_unit<E>(self) -> Result<ElementType, E> {
        Ok(ElementType::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<ElementType, E> {
        Ok(self.fixed(ElementType::Bool, [u8::from(value)]))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ElementType, E> {
        Ok(match i32::try_from(value) {
            Ok(value) => self.fixed(ElementType::Int32, value.to_le_bytes()),
            Err(_) => self.fixed(ElementType::Int64, value.to_le_bytes()),
        })
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<ElementType, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<ElementType, E> {
        Ok(self.fixed(ElementType::Double, value.to_le_bytes()))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ElementType, E> {
        match append_string(self.out, text) {
            Ok(()) => Ok(ElementType::String),
            Err(error) => Err(fail(self.failure, error)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<ElementType, A::Error> {
        let depth = self.open()?;
        let start = begin(self.out);
        let mut positions = Positions::new();
        loop {
            let at = self.out.len();
            positions.append(self.out, ElementType::Null); // its type is not known yet
            match values.next_element_seed(self.inside(depth)) {
                Ok(Some(kind)) => self.out[at] = kind as u8,
                Ok(None) => {
                    self.out.truncate(at);
                    break;
                }
                Err(error) => {
                    self.add_key(at);
                    return Err(error);
                }
            }
        }
        end(self.out, start).map_err(|error| fail(self.failure, error))?;
        Ok(ElementType::Array)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<ElementType, A::Error> {
        let start = begin(self.out);
        let mut at = self.out.len();
        let mut name = members.next_key_seed(Key { payload: &mut self })?;
        if let Some(Name::Number) = name {
            self.out.truncate(start);
            return self.append_number(&members.next_value::<String>()?);
        }
        let depth = self.open()?;
        while let Some(this) = name {
            match this {
                Name::Member => match members.next_value_seed(self.inside(depth)) {
                    Ok(kind) => self.out[at] = kind as u8,
                    Err(error) => {
                        self.add_key(at);
                        return Err(error);
                    }
                },
                Name::Wrapper(wrapper) if at == start + 4 => {
                    self.out.truncate(start);
                    return wrapper.read(members, self);
                }
                Name::Wrapper(wrapper) => return Err(fail(self.failure, wrapper.not_alone())),
                Name::Number => return Err(A::Error::custom("a number among the members of an object")),
            }
            at = self.out.len();
            name = members.next_key_seed(Key { payload: &mut self })?;
        }
        end(self.out, start).map_err(|error| fail(self.failure, error))?;
        Ok(ElementType::Document)
    }
}

/// What a key indicates about its object.
enum Name {
    /// The object is a document: the key has been appended after a byte for the type.
    Member,
    /// The object represents a value of a type.
    Wrapper(&'static Wrapper),
    /// It is not an object but a number that serde_json passes as text: see [`marker::JSON_NUMBER`].
    Number,
}

/// A key of an object or of the representation of a number.
///
/// The key is requested as an `Option`. For an object, whose key cannot be null, the `Option` is present. For a
/// number, serde_json returns the name for any request. Therefore text in a document cannot imitate that name.
struct Key<'p, 'o> {
    payload: &'p mut Payload<'o>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = Name;

    fn deserialize<D: serde::Deserializer<'de>>(self, tokens: D) -> Result<Name, D::Error> {
        tokens.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Key<'_, '_> {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, key: D) -> Result<Name, D::Error> {
        key.deserialize_str(KeyText { payload: self.payload })
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Name, E> {
        match name {
            marker::JSON_NUMBER => Ok(Name::Number),
            _ => Err(E::invalid_type(Unexpected::Str(name), &self)),
        }
    }
}

/// The key of an object.
struct KeyText<'p, 'o> {
    payload: &'p mut Payload<'o>,
}

impl Visitor<'_> for KeyText<'_, '_> {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Name, E> {
        if !self.payload.is_root
            && let Some(wrapper) = Wrapper::from_key(key)
        {
            return Ok(Name::Wrapper(wrapper));
        }
        self.payload.out.push(0);
        match append_text_without_nul(self.payload.out, key) {
            Ok(()) => Ok(Name::Member),
            Err(error) => Err(fail(self.payload.failure, error)),
        }
    }
}

/// Appends a key or a pattern.
fn append_text_without_nul(out: &mut Vec<u8>, text: &str) -> Result<()> {
    without_nul(text)?;
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer as _;

    /// Creates a text with this many nested objects.
    fn nested(levels: usize) -> String {
        r#"{"a":"#.repeat(levels - 1) + "{}" + &"}".repeat(levels - 1)
    }

    #[test]
    fn depth_is_limited_by_the_rules() {
        // On WebAssembly, greater depths would need a thread, which does not exist.
        let depth = if cfg!(target_family = "wasm") { SHALLOW } else { 1000 };
        let levels = usize::from(depth);
        let read = |text: &str, depth| {
            let mut out = b"before".to_vec();
            let result = json_to_bson(text, Rules::new().depth(depth), &mut out).map_err(|error| error.kind());
            assert_eq!(result.is_ok(), out != b"before");
            result
        };
        assert_eq!(read(&nested(levels), depth), Ok(()));
        assert_eq!(read(&nested(levels + 1), depth), Err(ErrorKind::TooDeep));
        assert_eq!(read(&"[".repeat(1 << 20), depth), Err(ErrorKind::TextInvalid));
        assert_eq!(read(&(r#"{"a":"#.to_string() + &"[".repeat(1 << 20)), depth), Err(ErrorKind::TooDeep));
        assert_eq!(read(&r#"{"a":"#.repeat(1 << 20), depth), Err(ErrorKind::TooDeep));
        let scopes = r#"{"$code":"","$scope":{"a":"#;
        let text = |levels: usize| format!(r#"{{"a":{}1{}}}"#, scopes.repeat(levels), "}}".repeat(levels));
        assert_eq!(read(&text(levels - 1), depth), Ok(()));
        assert_eq!(read(&text(levels), depth), Err(ErrorKind::TooDeep));
    }

    /// A number as serde_json passes it with its feature `arbitrary_precision`: a map with a single key, which returns
    /// the same name for any request.
    #[derive(Clone, Copy)]
    struct NumberText(&'static str, bool);

    impl<'de> serde::Deserializer<'de> for NumberText {
        type Error = serde::de::value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            visitor.visit_map(self)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    impl<'de> MapAccess<'de> for NumberText {
        type Error = serde::de::value::Error;

        fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
            let name = serde::de::value::BorrowedStrDeserializer::new(marker::JSON_NUMBER);
            if std::mem::replace(&mut self.1, true) { Ok(None) } else { seed.deserialize(name).map(Some) }
        }

        fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
            seed.deserialize(self.0.into_deserializer())
        }
    }

    #[test]
    fn numbers_may_come_as_text() {
        for (text, expected) in [("1.5", 1.5), ("-0", -0.0), ("1e-400", 0.0), ("18446744073709551616", 2_f64.powi(64))]
        {
            let (mut out, failure) = (Vec::new(), RefCell::default());
            let payload = Payload { out: &mut out, failure: &failure, depth: 0, is_root: false };
            assert_eq!(payload.deserialize(NumberText(text, false)), Ok(ElementType::Double), "{text}");
            assert_eq!(out, f64::to_le_bytes(expected), "{text}");
        }
        let (mut out, failure) = (Vec::new(), RefCell::default());
        let payload = Payload { out: &mut out, failure: &failure, depth: 0, is_root: false };
        assert!(payload.deserialize(NumberText("1e400", false)).is_err());
        assert_eq!(failure.into_inner().error.unwrap().found(), Some("\"1e400\" (number out of range)"));
        // An object with a key that looks like that name remains an object.
        let text = r#"{"a":{"$serde_json::private::Number":"1.5"}}"#;
        assert_eq!(from_json(text).unwrap().to_json(crate::Json::Canonical).unwrap(), text);
        assert!(from_json(r#"{"a": [1.5, -0, 1e9, 18446744073709551616]}"#).is_ok());
    }

    #[test]
    fn errors_say_where() {
        for (text, offset, path, found) in [
            ("", 0, None, "the end of the text"),
            ("[]", 0, None, "sequence"),
            ("{}x", 2, None, "'x' (trailing characters)"),
            (r#"{"a": {"b": [1, 2x]}}"#, 17, Some("a.b.2"), "'x'"), // before it
            ("{\"a\":\n {\"b\": nul}}", 16, Some("a.b"), "'}'"),
            (r#"{"a": {"$numberInt": 1}}"#, 21, Some("a"), "integer `1`"),
            (r#"{"a": {"$numberInt": "2147483648"}}"#, 32, Some("a"), "\"2147483648\""),
            (r#"{"a": {"b": 1, "$oid": ""}}"#, 20, Some("a"), "other keys next to \"$oid\""),
            (r#"{"a": {"$scope": {}}}"#, 19, Some("a"), "\"$scope\" alone"),
            (r#"{"a": 1e400}"#, 10, Some("a"), "'0' (number out of range)"),
            (r#"{"a\u0000b": 1}"#, 10, None, "\"a\\0b\""),
            (r#"{"a": "\ud800"}"#, 13, Some("a"), "'\"' (unexpected end of hex escape)"),
            (r#"{"a": [[0], [{"": {"$date": "soon"}}]]}"#, 33, Some(r#"a.1.0."""#), "\"soon\""),
        ] {
            let error = from_json(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TextInvalid, "{text}");
            assert_eq!((error.offset(), error.path(), error.found()), (Some(offset), path, Some(found)), "{text}");
        }
        let latin1 = from_json(b"{\"a\": \"\xe9\"}").unwrap_err();
        assert_eq!((latin1.kind(), latin1.path()), (ErrorKind::TextInvalid, Some("a")));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_an_answer() {
        let text = br#"{"a":{"$code":"x","$scope":{"b":[1,-2.5,{"$date":"1970-01-01T00:00:00Z"}]}},"c":{"$minKey":1}}"#;
        from_json(text).unwrap();
        for len in 0..text.len() {
            assert!(from_json(&text[..len]).is_err());
        }
        for bit in 0..text.len() * 8 {
            let mut text = *text;
            text[bit / 8] ^= 1 << (bit % 8);
            if let Ok(map) = from_json(text) {
                map.to_json(super::super::Json::Canonical).unwrap();
            }
        }
    }
}
