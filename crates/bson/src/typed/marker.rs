//! Names with which types identify themselves to our serializer and deserializer.
//!
//! serde has no dates, object ids or documents that are kept as bytes. These types are passed as a newtype struct with
//! a unique name: ours is recognised here, and the name is a constant for the compiler, so that it costs nothing. Other
//! formats ignore the name.
//!
//! The `bson` crate does the same. Its names are here too, so that its types in a struct are read and written.

use crate::ElementType;

/// Reading: the value in place, for our own types.
pub(crate) const NATIVE: &str = "$millstream::bson";

/// Of serde_json: a number as text. With its feature `arbitrary_precision`, which any crate can enable for all, numbers
/// that are not 64-bit integers are passed as a map with this key, and written as a struct of this name.
pub(crate) const JSON_NUMBER: &str = "$serde_json::private::Number";

/// Our own names that are spelled out somewhere. Every type has one: [`ElementType::marker`].
pub(crate) const DOCUMENT: &str = ElementType::Document.marker();
pub(crate) const ARRAY: &str = ElementType::Array.marker();
pub(crate) const OBJECT_ID: &str = ElementType::ObjectId.marker();
pub(crate) const DATE_TIME: &str = ElementType::DateTime.marker();
pub(crate) const TIMESTAMP: &str = ElementType::Timestamp.marker();
pub(crate) const DECIMAL128: &str = ElementType::Decimal128.marker();

/// Of the `bson` crate: bytes that are written with subtype 4, and read only with it.
pub(crate) const FOREIGN_UUID: &str = "$__bson_private_uuid";
/// Of the `bson` crate: a document's bytes.
pub(crate) const FOREIGN_DOCUMENT: &str = "$__private__bson_RawDocument";
/// Of the `bson` crate: an array's bytes.
pub(crate) const FOREIGN_ARRAY: &str = "$__private__bson_RawArray";
/// Of the `bson` crate: any value, borrowed where it can be.
pub(crate) const FOREIGN_VALUE: &str = "$__private__bson_RawBson";
