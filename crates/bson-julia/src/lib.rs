//! Files of Julia's BSON.jl and BSONqs as plain data, reading and writing.
//!
//! [`Graph::read`] makes a graph from a document: Julia's values with their types' names and their identity, so that
//! objects that are shared or contain themselves in Julia are one [`Value`] here. The [`Display`](std::fmt::Display) of
//! a [`Graph`] is JSON. Its content can be read into Rust types with serde ([`Value::to`]), or inspected with
//! [`Value::kind`]. [`Builder`] makes graphs from Rust values, and [`Graph::to_vec`] writes files that BSON.jl loads.
//!
//! It promises: no code is executed and no name is looked up, whatever a file contains; memory is limited; only serde's
//! part is recursive, and its depth is limited; arrays of numbers are borrowed. What it does not do: load functions
//! with a body that a file may contain (they stay opaque), or know the fields of a user-defined type, whose names and
//! types are not in a file (use [`Options::describe`]).
//!
//! A document is interpreted as a Julia object if it has a known `tag` and exactly its fields; any other is plain data.
//! To read all of a file as plain data, use [`Document`](millstream_bson::Document).
//!
//! The format: <https://github.com/JuliaIO/BSON.jl>, as written by versions up to 0.3.9 and BSONqs 0.6.3.

mod build;
mod de;
mod known;
mod layout;
mod node;
mod raise;
mod read;
mod scalar;
mod show;
mod tag;
mod types;
mod value;
mod write;

pub use build::{Builder, Number};
pub use node::{Graph, Id};
pub use read::Options;
pub use scalar::{Char, Scalar};
pub use types::{Type, TypeKind};
pub use value::{Array, Kind, Members, Path, Value, Values};
