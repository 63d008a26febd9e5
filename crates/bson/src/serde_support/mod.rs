//! Conversion between Rust types and documents with serde. `scalar` implements it for the types of `crate::scalar`.

mod de;
pub(crate) mod marker;
mod scalar;
mod ser;

pub use de::{from_document, from_slice};
pub use ser::{to_buffer, to_vec, to_writer};
