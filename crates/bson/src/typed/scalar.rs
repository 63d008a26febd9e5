//! Reading and writing the types of `scalar/`.

use super::from::{FromBson, exactly};
use super::to::{ToBson, fixed, written};
use crate::{Cursor, DateTime, Decimal128, ElementType, ObjectId, Timestamp};
use millstream_core::Result;

exactly! {
    ObjectId, ObjectId, "an object id", |cursor| cursor.take().map(ObjectId);
    DateTime, DateTime, "a date", |cursor| cursor.i64().map(DateTime);
    Timestamp, Timestamp, "a timestamp", |cursor| cursor.take().map(|bytes| Timestamp::from_bits(u64::from_le_bytes(bytes)));
    Decimal128, Decimal128, "a decimal number", |cursor| cursor.take().map(Decimal128);
}

written! {
    ObjectId, ObjectId, |value, out| fixed(out, value.0);
    DateTime, DateTime, |value, out| fixed(out, value.0.to_le_bytes());
    Timestamp, Timestamp, |value, out| fixed(out, value.to_bits().to_le_bytes());
    Decimal128, Decimal128, |value, out| fixed(out, value.0);
}
