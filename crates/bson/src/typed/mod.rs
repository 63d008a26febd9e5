//! Conversion between Rust types and documents: with derived code (`from`, `to`) and with serde (`de`, `ser`). `scalar`
//! implements both for the types of `crate::scalar`.

mod de;
pub mod derive_support;
pub(crate) mod from;
pub(crate) mod marker;
mod scalar;
mod ser;
pub(crate) mod to;

pub use de::{from_document, from_slice};
pub use from::{FromBson, FromKey, FromMembers, decode, decode_document};
pub use ser::{to_buffer, to_vec, to_writer};
pub use to::{ToBson, ToMembers, append_document, append_element, encode, encode_to_buffer, encode_to_writer};
