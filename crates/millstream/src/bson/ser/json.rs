//! What serde has no name for, as Extended JSON, for formats for people.

use crate::bson::ValueRef;
use data_encoding::{BASE64, HEXLOWER};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Writes what serde has no name for as Extended JSON.
pub(super) fn extended<S: Serializer>(serializer: S, value: ValueRef<'_>) -> Result<S::Ok, S::Error> {
    match value {
        ValueRef::ObjectId(id) => One("$oid", id).serialize(serializer),
        ValueRef::DateTime(date) => One("$date", One("$numberLong", date.0.to_string())).serialize(serializer),
        ValueRef::Decimal128(number) => One("$numberDecimal", number).serialize(serializer),
        ValueRef::Timestamp(stamp) => {
            One("$timestamp", Two(One("t", stamp.time), One("i", stamp.increment))).serialize(serializer)
        }
        ValueRef::Binary { subtype, bytes } => {
            let (text, subtype) = (BASE64.encode(bytes), HEXLOWER.encode(&[subtype]));
            One("$binary", Two(One("base64", text), One("subType", subtype))).serialize(serializer)
        }
        ValueRef::Regex { pattern, options } => {
            One("$regularExpression", Two(One("pattern", pattern), One("options", options))).serialize(serializer)
        }
        ValueRef::DbPointer { namespace, id } => {
            One("$dbPointer", Two(One("$ref", namespace), One("$id", One("$oid", id)))).serialize(serializer)
        }
        ValueRef::Code(code) => One("$code", code).serialize(serializer),
        ValueRef::Symbol(symbol) => One("$symbol", symbol).serialize(serializer),
        ValueRef::CodeWithScope { code, scope } => Two(One("$code", code), One("$scope", scope)).serialize(serializer),
        ValueRef::Undefined => One("$undefined", true).serialize(serializer),
        ValueRef::MinKey => One("$minKey", 1).serialize(serializer),
        ValueRef::MaxKey => One("$maxKey", 1).serialize(serializer),
        // The rest are types that serde has.
        other => other.serialize(serializer),
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

/// The same with two members.
pub(super) struct Two<T, U>(pub(super) One<T>, pub(super) One<U>);

impl<T: Serialize, U: Serialize> Serialize for Two<T, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(self.0.0, &self.0.1)?;
        map.serialize_entry(self.1.0, &self.1.1)?;
        map.end()
    }
}
