//! Values that serde cannot represent, as Extended JSON, for human-readable formats.

use crate::ValueRef;
use crate::value::extended::Part;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Writes a value that serde cannot represent as Extended JSON.
pub(crate) fn extended<S: Serializer>(serializer: S, value: ValueRef<'_>) -> Result<S::Ok, S::Error> {
    match Part::of(value) {
        Some(part) => part.serialize(serializer),
        // Types that serde supports.
        None => value.serialize(serializer),
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Part::Text(text) => serializer.serialize_str(text),
            Part::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Part::Number(number) => serializer.serialize_i64(*number),
            Part::True => serializer.serialize_bool(true),
            Part::Document(document) => document.serialize(serializer),
            Part::Object(parts) => {
                let mut map = serializer.serialize_map(Some(parts.len()))?;
                for (name, part) in parts {
                    map.serialize_entry(name, part)?;
                }
                map.end()
            }
        }
    }
}

/// `{"name": value}`.
pub(super) struct One<T>(pub(super) &'static str, pub(super) T);

impl<T: Serialize> Serialize for One<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &self.1)?;
        map.end()
    }
}

/// `{"name": value, "name": value}`.
pub(super) struct Two<T, U>(pub(super) One<T>, pub(super) One<U>);

impl<T: Serialize, U: Serialize> Serialize for Two<T, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(self.0.0, &self.0.1)?;
        map.serialize_entry(self.1.0, &self.1.1)?;
        map.end()
    }
}
