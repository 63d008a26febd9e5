//! The native part of Millstream's package for Node.
//!
//! It reads commands, files, descriptors and compressed memory by the core crate, on a thread per reader, and finds the ends
//! of lines. It promises: no memory of JavaScript's is touched outside of a call that was given it, so that nothing has to
//! be pinned, kept alive or believed; no panic and no exception crosses the boundary, failures are data. What a record is,
//! and when errors are due, is decided in TypeScript (`src/reader.ts`), for these sources and for those that JavaScript
//! delivers alike.
//!
//! - `filler`: the thread that reads; the core's hand-over passes its blocks on.
//! - `reader`: what JavaScript sees.
//! - `command`: the words of a command.
//! - `bson`: documents, checked or as columns.
//! - `error`: a core error as plain data.

pub mod bson;
mod command;
mod error;
mod filler;
mod reader;

use napi_derive::napi;

/// The version of this build. The package accepts only its own version.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
