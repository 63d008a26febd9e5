//! Typed access to an owned value, which succeeds if the value has the requested type.

use super::{Map, Value};
use crate::{DateTime, ObjectId};

impl Value {
    /// Whether it is null or undefined.
    pub const fn is_null(&self) -> bool {
        matches!(self, Value::Null | Value::Undefined)
    }

    /// The boolean, if it is one.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as an integer, if it is an integer of either width or a double without a fraction.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int32(value) => Some(i64::from(*value)),
            Value::Int64(value) => Some(*value),
            // 2^63 itself does not fit; every f64 below it does.
            Value::Double(value) if value.fract() == 0.0 && (-(2_f64.powi(63))..2_f64.powi(63)).contains(value) => {
                Some(*value as i64)
            }
            _ => None,
        }
    }

    /// The value as a double, if it is a double or an integer that a double represents exactly.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Double(value) => Some(*value),
            Value::Int32(value) => Some(f64::from(*value)),
            Value::Int64(value) => ((*value as f64) as i128 == i128::from(*value)).then_some(*value as f64),
            _ => None,
        }
    }

    /// The text, if it is a string, a symbol or code.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) | Value::Symbol(text) | Value::Code(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if it is a binary of any subtype.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Binary { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The document, if it is one.
    pub const fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Document(map) => Some(map),
            _ => None,
        }
    }

    /// The document, mutable, if it is one.
    pub const fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Document(map) => Some(map),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The array, mutable, if it is one.
    pub const fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The object id, if it is one.
    pub const fn as_object_id(&self) -> Option<ObjectId> {
        match self {
            Value::ObjectId(id) => Some(*id),
            _ => None,
        }
    }

    /// The date, if it is one.
    pub const fn as_date_time(&self) -> Option<DateTime> {
        match self {
            Value::DateTime(date) => Some(*date),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_where_they_are_exact() {
        for (value, integer, double) in [
            (Value::Double(3.0), Some(3), Some(3.0)),
            (Value::Double(0.5), None, Some(0.5)),
            (Value::Double(2_f64.powi(63)), None, Some(2_f64.powi(63))),
            (Value::Int64(i64::MAX), Some(i64::MAX), None),
            (Value::Int64(1 << 60), Some(1 << 60), Some(2_f64.powi(60))),
            (Value::Null, None, None),
        ] {
            assert_eq!((value.as_i64(), value.as_f64()), (integer, double), "{value:?}");
        }
        assert_ne!(Value::Double(f64::NAN), Value::Double(f64::NAN));
    }
}
