//! The hand-over between the filler thread and the reader, taken out of the library with the one room that it stands on,
//! so that [loom](https://docs.rs/loom) can try it in every order that two threads can take: `make loom`. Built within
//! the library it would take all of its dependencies with it, which is minutes instead of seconds.
//!
//! Without `--cfg loom` there is nothing here.
#![cfg(loom)]
// Of both files only what the tests use is used.
#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../millstream/src/error.rs"]
mod error;
#[path = "../../millstream/src/reader/handover.rs"]
mod handover;

pub use error::{Error, ErrorKind, Result};
