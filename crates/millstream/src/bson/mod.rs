//! BSON: documents as bytes that are looked at where they lie.
//!
//! ```
//! use millstream::bson::{Document, ObjectId};
//!
//! let bytes = b"\x16\0\0\0\x10n\0\x2a\0\0\0\x02s\0\x03\0\0\0hi\0\0";
//! let document = Document::new(bytes)?;
//! assert_eq!(document.get::<i32>("n")?, Some(42));
//! assert_eq!(document.get::<&str>("s")?, Some("hi")); // borrowed from `bytes`
//! assert_eq!(document.get::<ObjectId>("_id")?, None);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | look at a few members, walk, or view arrays without a copy | [`Document`], [`Array`], [`Element`], [`ValueRef`] |
//! | turn documents into Rust types and back | two families of names: see below |
//! | write a document member by member | [`Builder`] |
//! | look up many members of one document | [`Document::index`], [`Index`] |
//! | read arrays of numbers that are stored as bytes, without a copy | [`View`], [`AnyView`], [`Vector`] |
//! | open a file without reading it, or own one document of a stream | [`Mapped`], [`DocumentBuf`] |
//! | write arrays that a mapped file lends as slices | [`append_aligned`] |
//! | write code that decodes by itself | [`Cursor`], [`FromBson`] |
//! | build, change or keep documents of any shape | [`Map`], [`Value`] |
//! | write and read Extended JSON | [`Document::to_json`], [`Document::append_json`], [`from_json`], [`json_to_bson`] |
//! | know that a document is right in every byte | [`Document::check`] |
//! | read documents that follow each other, from any source | [`Documents`] |
//! | have them as columns, or as Arrow arrays | [`columns`] |
//! | read and write the files of Julia's BSON.jl | [`julia::Graph`], [`julia::Builder`] |
//! | take a document apart, for another language | [`Parts`], [`Document::members_from`] |
//!
//! Rust types come and go by one of two families of functions, whose names tell them apart. Derived types cost less;
//! serde has whatever types already know it, and all of its attributes. A type can have both, and both agree.
//!
//! | | `#[derive(FromBson, ToBson)]` | serde |
//! |---|---|---|
//! | the names | as of codecs: `decode`, `encode` | as in other formats' crates: `from_slice`, `to_vec` |
//! | out of bytes | [`decode`] | [`from_slice`] |
//! | out of a document, by its rules ([`Rules`]) | [`decode_document`] | [`from_document`] |
//! | into a new vector | [`encode`] | [`to_vec`] |
//! | appended to a buffer | [`encode_to_buffer`] | [`to_buffer`] |
//! | into a [`Writer`](crate::Writer), as one record | [`encode_to_writer`] | [`to_writer`] |
//!
//! (What appends to a document that is open is of the first family: [`append_element`], [`append_document`],
//! [`Builder`]. [`Map::from_slice`] and [`Map::to_vec`] need neither.) Strict rules are checked by the two that take a
//! document: what reads bytes goes by the default ones.
//!
//! The walker promises: every length is checked before it is used; nothing is allocated for a length whose bytes are
//! not there; skipping is iterative; nesting is limited ([`Rules::depth`]). An error says what was found and expected,
//! the [path of keys](crate::Error::path) and the byte offset. Only what takes a [`Reader`](crate::Reader),
//! a [`Writer`](crate::Writer) or a path does input or output, and nothing here runs or resolves anything that a
//! document names.
//!
//! Writing is limited, too: [`Builder::new`] and serde nest 200 documents and arrays, as many as [`Rules::new`] reads;
//! derived types, [`append_document`], [`Map`] and [`Value`] 1,000, the most that a reader can allow.
//!
//! Where a key is there more than once, which [`Strictness::Strict`] refuses:
//!
//! | what looks | has |
//! |---|---|
//! | a look-up ([`Document::get`], [`Index`], [`Map::get`]) | the first |
//! | a map of Rust's (`BTreeMap`, `HashMap`) | the last |
//! | a struct, the tag of an enum | an error |
//! | [`Map`] and [`Value`] | all, in their order |
//!
//! The format: <https://bsonspec.org/spec.html> (version 1.1). Names of types are those of MongoDB's `$type` aliases.

mod aligned;
mod binary;
mod build;
mod check;
pub mod columns;
mod cursor;
mod de;
#[doc(hidden)]
pub mod derive_support;
mod document;
mod from;
mod index;
mod json;
pub mod julia;
mod map;
mod mapped;
mod marker;
mod owned;
mod parts;
mod path;
mod quick;
mod rules;
mod scalar;
mod ser;
mod stream;
mod text;
mod to;
mod value;
mod value_ref;
mod vector;
mod view;

pub use aligned::{Alignment, PADDING_KEY, append_aligned};
pub use binary::Binary;
pub use build::{Builder, Mark};
pub use cursor::{Cursor, Outer};
pub use de::{from_document, from_slice};
pub use document::{Array, Document, Element, Elements};
pub use from::{FromBson, FromKey, FromMembers, decode, decode_document};
pub use index::Index;
pub use json::{Json, from_json, json_to_bson};
pub use map::Map;
pub use mapped::{Mapped, MappedDocuments};
pub use millstream_derive::{FromBson, ToBson};
pub use owned::DocumentBuf;
pub use parts::Parts;
pub use path::{join_path, split_path};
pub use rules::{Rules, Strictness, Utf8};
pub use scalar::{DateTime, Decimal128, ObjectId, Timestamp};
pub use ser::{to_buffer, to_vec, to_writer};
pub use stream::{Checking, DocumentBatch, Documents, OnBad, Skipped, SkippedPlace};
pub use to::{ToBson, ToMembers, append_document, append_element, encode, encode_to_buffer, encode_to_writer};
pub use value::Value;
pub use value_ref::ValueRef;
pub use vector::{Bits, Vector, VectorOf};
pub use view::{AnyView, Number, NumberType, Numbers, NumbersOf, View};

/// Makes the table of types: byte, Rust name, MongoDB's alias.
macro_rules! element_types {
    ($($(#[doc = $doc:literal])* $byte:literal $kind:ident $name:literal;)*) => {
        /// The types that a value can have, with the byte that announces each.
        ///
        /// ```
        /// use millstream::bson::ElementType;
        /// assert_eq!(ElementType::from_byte(0x12), Some(ElementType::Int64));
        /// assert_eq!(ElementType::Int64.name(), "long");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum ElementType {
            $($(#[doc = $doc])* $kind = $byte,)*
        }

        impl ElementType {
            /// Every type, in the order of the specification.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$kind),*];

            /// The type that this byte announces; 0 ends a document and is no type.
            #[inline(always)] // a comparison or two; the compiler makes a call of it, for each value
            pub const fn from_byte(byte: u8) -> Option<ElementType> {
                match byte {
                    $($byte => Some(ElementType::$kind),)*
                    _ => None,
                }
            }

            /// The name of the type: MongoDB's alias for `$type`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ElementType::$kind => $name,)*
                }
            }
        }
    };
}

element_types! {
    /// A 64-bit floating point number.
    0x01 Double "double";
    /// UTF-8 text.
    0x02 String "string";
    /// A document.
    0x03 Document "object";
    /// An array: a document whose keys are "0", "1", ….
    0x04 Array "array";
    /// Bytes with a subtype.
    0x05 Binary "binData";
    /// No value (deprecated).
    0x06 Undefined "undefined";
    /// A 12-byte object id.
    0x07 ObjectId "objectId";
    /// True or false.
    0x08 Bool "bool";
    /// Milliseconds since 1970, UTC.
    0x09 DateTime "date";
    /// No value.
    0x0a Null "null";
    /// A regular expression and its options.
    0x0b Regex "regex";
    /// A namespace and an object id (deprecated).
    0x0c DbPointer "dbPointer";
    /// JavaScript.
    0x0d Code "javascript";
    /// A symbol (deprecated).
    0x0e Symbol "symbol";
    /// JavaScript and the document it runs with (deprecated).
    0x0f CodeWithScope "javascriptWithScope";
    /// A 32-bit integer.
    0x10 Int32 "int";
    /// MongoDB's internal timestamp.
    0x11 Timestamp "timestamp";
    /// A 64-bit integer.
    0x12 Int64 "long";
    /// A 128-bit decimal floating point number.
    0x13 Decimal128 "decimal";
    /// Compares higher than everything.
    0x7f MaxKey "maxKey";
    /// Compares lower than everything.
    0xff MinKey "minKey";
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
