//! Reads and writes files of Julia's BSON.jl and BSONqs as plain data.
//!
//! [`Graph::read`] creates a graph from a document. The graph contains Julia's values with the names of their types and
//! their identity: an object that is shared or contains itself in Julia is one [`Value`] here. The
//! [`Display`](std::fmt::Display) output of a [`Graph`] is JSON. Its content can be read into Rust types with serde
//! ([`Value::to`]) or inspected with [`Value::kind`]. [`Builder`] creates graphs from Rust values, and
//! [`Graph::to_vec`] writes files that BSON.jl loads.
//!
//! The crate gives these guarantees: no code is executed and no name is looked up, whatever a file contains; memory is
//! limited; only the part that uses serde is recursive, and its depth is limited; arrays of numbers are borrowed. It
//! has these limits: it does not load functions with a body (they stay opaque), and it does not know the fields of
//! user-defined types, because a file contains neither their names nor their types (use [`Options::describe`]).
//!
//! A document is interpreted as a Julia object if it has a known `tag` and exactly the fields of this tag; any other
//! document is plain data. To read a whole file as plain data, use [`Document`](millstream_bson::Document).
//!
//! The format is defined by <https://github.com/JuliaIO/BSON.jl>, as written by versions up to 0.3.9 and by BSONqs
//! 0.6.3.

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
