//! Files of Julia's BSON.jl and BSONqs as plain data, in and out.
//!
//! [`Graph::read`] makes a graph of a document: Julia's values with their types' names and with their identity, so
//! that what is shared or contains itself in Julia is one [`Value`] here. [`Graph`] shows itself as JSON. What a graph
//! holds can be read into Rust types by serde ([`Value::to`]), or looked at by [`Value::kind`]. [`Builder`] makes
//! graphs out of Rust values, and [`Graph::to_vec`] writes files that BSON.jl loads.
//!
//! It promises: no code is run and no name is looked up, whatever a file says; memory is limited; nothing but serde's
//! part is recursive, and that has a limit, so that depth is no danger; arrays of numbers are borrowed. What it does
//! not do: load the functions with a body that a file may hold (they stay opaque), or know the fields of a type of the
//! user's, whose names and types are not in a file ([`Options::describe`] tells it).
//!
//! A document is understood as something of Julia's where it has a known `tag` and exactly its fields; any other is
//! plain data. To read all of a file as plain data, use [`Document`](crate::bson::Document).
//!
//! The format: <https://github.com/JuliaIO/BSON.jl>, as versions up to 0.3.9 and BSONqs 0.6.3 write it.

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
