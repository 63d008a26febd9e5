//! Serialisation of owned values and documents.

use super::json::{One, Two};
use super::types::Bytes;
use crate::{Map, ToBson, Value, ValueRef};
use serde::ser::{Error, Serialize, SerializeMap, Serializer};

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// In human-readable formats, a value that serde cannot represent is written as Extended JSON.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let borrowed = match self {
            Value::Document(map) => return map.serialize(serializer),
            Value::Array(values) => return values.serialize(serializer),
            Value::CodeWithScope { code, scope } if serializer.is_human_readable() => {
                return Two(One("$code", code), One("$scope", scope)).serialize(serializer);
            }
            Value::CodeWithScope { .. } | Value::Regex { .. } if !serializer.is_human_readable() => {
                let mut payload = Vec::new();
                self.to_bson(&mut payload).map_err(S::Error::custom)?;
                return serializer.serialize_newtype_struct(self.kind().marker(), &Bytes(&payload));
            }
            leaf => leaf.as_leaf().unwrap_or(ValueRef::Null), // the others are above
        };
        borrowed.serialize(serializer)
    }
}
