//! Names by which types identify themselves to this crate's serializer and deserializer.
//!
//! serde has no dates, object ids or documents that are kept as bytes. These types are passed as a newtype struct with
//! a unique name. This crate's serializer and deserializer recognise the name, which is a constant for the compiler, so
//! the comparison is free. Other formats ignore the name.
//!
//! The `bson` crate does the same. Its names are also listed here, so that its types can be read and written.

use crate::ElementType;

/// For reading: a value of one of this crate's own types, passed in place.
pub(crate) const NATIVE: &str = "$millstream::bson";

/// A name of serde_json for a number passed as text. With its feature `arbitrary_precision`, which any crate can enable
/// for the whole program, numbers that are not 64-bit integers are passed as a map with this key and written as a
/// struct with this name.
pub(crate) const JSON_NUMBER: &str = "$serde_json::private::Number";

/// The names of this crate that are needed as constants. Every type has a name: [`ElementType::marker`].
pub(crate) const DOCUMENT: &str = ElementType::Document.marker();
pub(crate) const ARRAY: &str = ElementType::Array.marker();
pub(crate) const OBJECT_ID: &str = ElementType::ObjectId.marker();
pub(crate) const DATE_TIME: &str = ElementType::DateTime.marker();
pub(crate) const TIMESTAMP: &str = ElementType::Timestamp.marker();
pub(crate) const DECIMAL128: &str = ElementType::Decimal128.marker();

/// A name of the `bson` crate for bytes that are written with subtype 4 and accepted only with subtype 4.
pub(crate) const FOREIGN_UUID: &str = "$__bson_private_uuid";
/// A name of the `bson` crate for a document's bytes.
pub(crate) const FOREIGN_DOCUMENT: &str = "$__private__bson_RawDocument";
/// A name of the `bson` crate for an array's bytes.
pub(crate) const FOREIGN_ARRAY: &str = "$__private__bson_RawArray";
/// A name of the `bson` crate for any value, borrowed if possible.
pub(crate) const FOREIGN_VALUE: &str = "$__private__bson_RawBson";
