//! The hand-over between the filler thread and the reader, in a separate crate so that [loom](https://docs.rs/loom) can
//! test it in every order in which two threads can run: `make loom`. As a part of the library it would need all of the
//! library's dependencies, which takes minutes to build instead of seconds.
//!
//! Without `--cfg loom` this crate is empty.
#![cfg(loom)]
// Some parts of the file are unused, because the tests do not need them.
#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../millstream/src/reader/handover.rs"]
mod handover;

pub use millstream_core::{Error, ErrorKind, Result, error};
