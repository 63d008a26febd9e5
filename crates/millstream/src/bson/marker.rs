//! Names by which types make themselves known to our serializer and deserializer.
//!
//! serde knows no dates, object ids or documents that are kept as bytes. Such a type travels as a newtype struct of a
//! name that nobody else has: ours is caught here, and the name is a constant where the compiler sees it, so that it
//! costs nothing. Other formats ignore the name.
//!
//! The `bson` crate does the same. Its names are here too, so that its types in a struct are read and written.

use super::ElementType;

/// Reading: the value as it lies there, for our own types.
pub(crate) const NATIVE: &str = "$millstream::bson";

/// Of serde_json: a number as text. With its feature `arbitrary_precision`, which any crate can switch on for all,
/// numbers that are no 64-bit integers are handed over as a map with this key, and written as a struct of this name.
pub(crate) const JSON_NUMBER: &str = "$serde_json::private::Number";

/// Makes the table of names: one for each type that serde does not have.
macro_rules! markers {
    ($($name:ident $kind:ident $text:literal;)*) => {
        $(pub(crate) const $name: &str = $text;)*

        /// The type that a newtype struct of this name is written as; its content is the payload.
        #[inline]
        pub(crate) fn kind_of(name: &str) -> Option<ElementType> {
            match name {
                $($name => Some(ElementType::$kind),)*
                _ => None,
            }
        }

        /// The name for a value of this type, if it needs one.
        pub(crate) const fn name_of(kind: ElementType) -> Option<&'static str> {
            match kind {
                $(ElementType::$kind => Some($name),)*
                _ => None,
            }
        }
    };
}

markers! {
    DOCUMENT Document "$millstream::bson::document";
    ARRAY Array "$millstream::bson::array";
    BINARY Binary "$millstream::bson::binary";
    UNDEFINED Undefined "$millstream::bson::undefined";
    OBJECT_ID ObjectId "$millstream::bson::objectId";
    DATE_TIME DateTime "$millstream::bson::date";
    REGEX Regex "$millstream::bson::regex";
    DB_POINTER DbPointer "$millstream::bson::dbPointer";
    CODE Code "$millstream::bson::javascript";
    SYMBOL Symbol "$millstream::bson::symbol";
    CODE_WITH_SCOPE CodeWithScope "$millstream::bson::javascriptWithScope";
    TIMESTAMP Timestamp "$millstream::bson::timestamp";
    DECIMAL128 Decimal128 "$millstream::bson::decimal";
    MAX_KEY MaxKey "$millstream::bson::maxKey";
    MIN_KEY MinKey "$millstream::bson::minKey";
}

/// Of the `bson` crate: bytes that are written with subtype 4, and read only with it.
pub(crate) const FOREIGN_UUID: &str = "$__bson_private_uuid";
/// Of the `bson` crate: a document's bytes.
pub(crate) const FOREIGN_DOCUMENT: &str = "$__private__bson_RawDocument";
/// Of the `bson` crate: an array's bytes.
pub(crate) const FOREIGN_ARRAY: &str = "$__private__bson_RawArray";
/// Of the `bson` crate: any value, borrowed where it can be.
pub(crate) const FOREIGN_VALUE: &str = "$__private__bson_RawBson";
