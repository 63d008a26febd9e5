//! The hand-over between the filler thread and the reader, taken out of the library so that
//! [loom](https://docs.rs/loom) can try it in every order that two threads can take: `make loom`. Built within the
//! library it would need all of its dependencies, which takes minutes instead of seconds.
//!
//! Without `--cfg loom` this crate is empty.
#![cfg(loom)]
// Only the parts of the file that the tests use are used.
#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../millstream/src/reader/handover.rs"]
mod handover;

pub use millstream_core::{Error, ErrorKind, Result, error};
