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
#![doc = include_str!("derive.md")]

mod attributes;
mod case;
mod from;
mod shape;
mod to;

use proc_macro::TokenStream;
use shape::Shape;

/// Implements `FromBson`, and `FromMembers` if the type is a document.
///
#[doc = include_str!("derive.md")]
#[proc_macro_derive(FromBson, attributes(bson))]
pub fn from_bson(input: TokenStream) -> TokenStream {
    derive(input, from::implement)
}

/// Implements `ToBson`, and `ToMembers` if the type is a document.
///
#[doc = include_str!("derive.md")]
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
