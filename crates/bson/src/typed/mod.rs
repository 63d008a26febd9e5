//! Conversion between Rust types and values with traits that types can derive (`from`, `to`). `scalar` implements them
//! for the types of `crate::scalar`.

pub mod derive_support;
pub(crate) mod from;
mod scalar;
pub(crate) mod to;

pub use from::{FromBson, FromKey, FromMembers};
pub use to::{ToBson, ToMembers, append_document, append_element, encode, encode_to_buffer, encode_to_writer};
