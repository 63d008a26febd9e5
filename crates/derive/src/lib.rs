//! `#[derive(FromBson, ToBson)]`: BSON documents directly to Rust types and back.
//!
//! Use them from `millstream::bson`, next to the traits of the same names. The generated code reads members directly
//! from the document into the fields. A member in the order of the fields is recognised by one comparison; in any other
//! order it is found by its name. Borrowed types allocate no memory.
//!
//! ```
//! use millstream::bson::{self, DateTime, FromBson, ToBson};
//!
//! #[derive(Debug, PartialEq, FromBson, ToBson)]
//! struct Record<'a> {
//!     id: i64,
//!     name: &'a str, // borrowed from the document
//!     #[bson(rename = "at")]
//!     created: DateTime,
//!     #[bson(default, skip_if = "Vec::is_empty")]
//!     tags: Vec<&'a str>,
//!     score: Option<f64>, // a missing member, or null
//! }
//!
//! let record = Record { id: 1, name: "one", created: DateTime(0), tags: vec![], score: None };
//! let bytes = bson::encode(&record)?;
//! assert_eq!(bson::decode::<Record>(&bytes)?, record);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! # Shapes, as in serde by default
//!
//! | Rust | BSON |
//! |---|---|
//! | a struct with named fields | a document |
//! | a struct with one field without a name | the value of the field |
//! | a tuple struct | an array of that many values |
//! | `struct Nothing;` | null |
//! | a variant without fields | its name, a string |
//! | any other variant | a document with one member: its name, and the form of a struct with the same fields |
//! | a variant of an enum with `#[bson(tag = "…")]` | a document: the tag with the variant's name, and its members |
//!
//! A missing member is `None` for an `Option`, and otherwise an error
//! ([`KeyMissing`](https://docs.rs/millstream/latest/millstream/enum.ErrorKind.html)). A duplicate member is an error.
//! Members without a field are ignored. Errors have the key path and the offset.
//!
//! # Attributes
//!
//! | on a struct or an enum | effect |
//! |---|---|
//! | `rename_all = "…"` | names in `lowercase`, `UPPERCASE`, `PascalCase`, `camelCase`, `snake_case`, `SCREAMING_SNAKE_CASE`, `kebab-case` or `SCREAMING-KEBAB-CASE`; also on a variant, for its fields |
//! | `deny_unknown` | a member without a field is an error |
//! | `tag = "…"` | on an enum: the variant's name is a member among its fields |
//! | `crate = "…"` | the path of `millstream`, for crates that re-export it |
//!
//! | on a field | effect |
//! |---|---|
//! | `rename = "…"` | its key; also on a variant |
//! | `alias = "…"` | an additional key that is read; may be repeated; also on a variant |
//! | `default`, `default = "path"` | the value if the member is missing: `Default::default()`, or the result of this function |
//! | `skip` | neither read (it is its default) nor written |
//! | `skip_if = "path"` | not written if this function, called with a reference to it, returns true |
//! | `flatten` | its members are those of the enclosing document; for structs, enums with a tag, maps, and `Option` of them |
//! | `with = "module"` | `from_bson(kind, cursor)`, `element_type(&value)` and `to_bson(&value, out)` of this module instead of the traits' |

mod attributes;
mod case;
mod from;
mod shape;
mod to;

use proc_macro::TokenStream;
use shape::Shape;

/// Implements `FromBson`, and `FromMembers` if the type is a document.
#[proc_macro_derive(FromBson, attributes(bson))]
pub fn from_bson(input: TokenStream) -> TokenStream {
    derive(input, from::implement)
}

/// Implements `ToBson`, and `ToMembers` if the type is a document.
#[proc_macro_derive(ToBson, attributes(bson))]
pub fn to_bson(input: TokenStream) -> TokenStream {
    derive(input, to::implement)
}

fn derive(input: TokenStream, implement: fn(&Shape) -> proc_macro2::TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    match Shape::new(input) {
        Ok(shape) => implement(&shape).into(),
        Err(error) => error.into_compile_error().into(),
    }
}
