//! How owned values and documents are written.

use super::json::{One, Two};
use super::types::Bytes;
use crate::bson::{Map, ToBson, Value, ValueRef, marker};
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

/// What serde has no name for is Extended JSON to formats for people.
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
                let name = marker::name_of(self.kind()).unwrap_or(marker::NATIVE);
                return serializer.serialize_newtype_struct(name, &Bytes(&payload));
            }
            Value::CodeWithScope { code, .. } | Value::Code(code) => ValueRef::Code(code),
            Value::Double(value) => ValueRef::Double(*value),
            Value::String(text) => ValueRef::String(text),
            Value::Binary { subtype, bytes } => ValueRef::Binary { subtype: *subtype, bytes },
            Value::Undefined => ValueRef::Undefined,
            Value::ObjectId(id) => ValueRef::ObjectId(*id),
            Value::Bool(value) => ValueRef::Bool(*value),
            Value::DateTime(date) => ValueRef::DateTime(*date),
            Value::Null => ValueRef::Null,
            Value::Regex { pattern, options } => ValueRef::Regex { pattern, options },
            Value::DbPointer { namespace, id } => ValueRef::DbPointer { namespace, id: *id },
            Value::Symbol(symbol) => ValueRef::Symbol(symbol),
            Value::Int32(value) => ValueRef::Int32(*value),
            Value::Timestamp(timestamp) => ValueRef::Timestamp(*timestamp),
            Value::Int64(value) => ValueRef::Int64(*value),
            Value::Decimal128(number) => ValueRef::Decimal128(*number),
            Value::MinKey => ValueRef::MinKey,
            Value::MaxKey => ValueRef::MaxKey,
        };
        borrowed.serialize(serializer)
    }
}
