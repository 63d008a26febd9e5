//! BSON: documents as bytes, read in place.
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
//! | task | use |
//! |---|---|
//! | read a few members, traverse, or view arrays without a copy | [`Document`], [`Array`], [`Element`], [`ValueRef`] |
//! | convert documents to Rust types and back | two families of names: see below |
//! | write a document member by member | [`Builder`] |
//! | look up many members of one document | [`Document::index`], [`Index`] |
//! | read arrays of numbers that are stored as bytes, without a copy | [`View`], [`AnyView`], [`Vector`] |
//! | own a single document of a stream | [`DocumentBuf`] |
//! | open a file without reading it | `Mapped`, in `millstream` |
//! | write arrays that can be used as slices of a mapped file | [`append_aligned`] |
//! | implement decoding by hand | [`Cursor`], [`FromBson`] |
//! | build, change or store documents of any shape | [`Map`], [`Value`] |
//! | write and read Extended JSON | [`Document::to_json`], [`Document::append_json`], [`from_json`], [`json_to_bson`] |
//! | validate every byte of a document | [`Document::check`] |
//! | read consecutive documents from any source | [`Documents`] |
//! | convert documents to columns or Arrow arrays | [`columns`] |
//! | read and write the files of Julia's BSON.jl | the crate `millstream-bson-julia` |
//! | take a document apart, for another language | [`Parts`], [`Document::members_from`] |
//!
//! Two families of functions convert Rust types. They have different names. Derived types are faster;
//! serde supports all types that already implement its traits, and all of its attributes. A type can support both, with
//! the same results.
//!
//! | | `#[derive(FromBson, ToBson)]` | serde |
//! |---|---|---|
//! | names | like a codec's: `decode`, `encode` | like other formats' crates: `from_slice`, `to_vec` |
//! | from bytes | [`decode`] | [`from_slice`] |
//! | from a document, with its rules ([`Rules`]) | [`decode_document`] | [`from_document`] |
//! | into a new vector | [`encode`] | [`to_vec`] |
//! | appended to a buffer | [`encode_to_buffer`] | [`to_buffer`] |
//! | into a `Writer`, as one record | [`encode_to_writer`] | [`to_writer`] |
//!
//! (Functions that append to an open document belong to the first family: [`append_element`], [`append_document`],
//! [`Builder`]. [`Map::from_slice`] and [`Map::to_vec`] need neither.) Strict rules are checked by the two functions
//! that take a document, [`decode_document`] by reference and [`from_document`] by value: functions that read bytes use the
//! default rules.
//!
//! The cursor gives these guarantees: every length is checked before it is used; nothing is allocated for a length
//! whose bytes do not exist; skipping is iterative; nesting is limited ([`Rules::depth`]). An error contains what was
//! found and expected, the [key path](millstream_core::Error::path) and the byte offset. This crate does not
//! open, read or write files, and it does not execute or resolve anything that a document names.
//!
//! This crate needs no operating system: streams are read through [`ReadRecords`](millstream_core::ReadRecords) and
//! written through [`WriteRecord`](millstream_core::WriteRecord). Most programs use it as `millstream::bson`, through
//! the feature `bson` of `millstream`, which adds files, mapped files and commands.
//!
//! Writing is limited, too: [`Builder::new`] and serde allow 200 nested documents and arrays, like [`Rules::new`] for
//! reading; derived types, [`append_document`], [`Map`] and [`Value`] allow 1,000, the maximum that a reader can allow.
//!
//! The handling of duplicate keys, which [`Strictness::Strict`] rejects:
//!
//! | access | result |
//! |---|---|
//! | a lookup ([`Document::get`], [`Index`], [`Map::get`]) | the first |
//! | a Rust map (`BTreeMap`, `HashMap`) | the last |
//! | a struct, the tag of an enum | an error |
//! | [`Map`] and [`Value`] | all, in order |
//!
//! The format: <https://bsonspec.org/spec.html> (version 1.1). The names of types are MongoDB's `$type` aliases.

pub mod columns;
mod document;
mod json;
mod numbers;
mod scalar;
mod serde_support;
mod typed;
mod value;
mod wire;

pub use document::{
    Array, Builder, Checking, Document, DocumentBatch, DocumentBuf, Documents, Element, Elements, Index, Mark, OnBad,
    Parts, Skipped, SkippedPlace, decode, decode_document,
};
pub use json::{Json, from_json, json_to_bson};
pub use numbers::{
    Alignment, AnyView, Bits, Number, NumberType, Numbers, NumbersOf, PADDING_KEY, Vector, VectorOf, View,
    append_aligned,
};
pub use scalar::*;
pub use serde_support::{from_document, from_slice, to_buffer, to_vec, to_writer};
#[doc(hidden)]
pub use typed::derive_support;
pub use typed::{
    FromBson, FromKey, FromMembers, ToBson, ToMembers, append_document, append_element, encode, encode_to_buffer,
    encode_to_writer,
};
pub use value::{Binary, Map, Value, ValueRef};
pub use wire::{Cursor, ElementType, Layout, Outer, Rules, Strictness, Utf8, join_path, split_path};

/// For Millstream's other crates only. It can change in any version.
#[doc(hidden)]
pub mod internal {
    pub use crate::typed::to::{begin, end, length};
    pub use crate::wire::path::path_at;
}

/// Derived code looks for `derive_support` in a module of this name: `#[bson(crate = "millstream_bson")]`.
#[doc(hidden)]
pub mod bson {
    pub use crate::derive_support;
}
