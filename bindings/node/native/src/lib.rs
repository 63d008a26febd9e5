//! The native part of Millstream's package for Node.
//!
//! It reads commands, files and descriptors by the core crate, on a thread per reader, and says where the lines end. It promises: no
//! memory of JavaScript's is touched outside of a call that was given it, so that nothing has to be pinned, kept alive or
//! believed; no panic and no exception crosses the boundary, failures are data. What a record is, what errors look like
//! and when they are due is decided in TypeScript (`src/source/native.ts`), for both kinds of source alike.
//!
//! - `filler`: the thread, and the blocks between it and JavaScript.
//! - `reader`: what JavaScript sees.
//! - `command`: the words of a command.
//! - `bson`: documents as columns.
//! - `error`: a core error as plain data.

pub mod bson;
mod command;
mod error;
mod filler;
mod reader;

use napi_derive::napi;

/// The version of this build. The package takes no other one than its own.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
