//! The native part of Millstream's package for Node.
//!
//! It reads commands, files, descriptors and compressed memory with the core crate, with one thread per reader, and
//! finds the ends of lines. JavaScript's memory is accessed only during a call that received it, so that it need not be
//! pinned or kept alive. No panic and no exception crosses the boundary: failures are data. TypeScript
//! (`src/reader.ts`) defines what a record is and when errors are reported, both for these sources and for data that
//! comes from JavaScript.
//!
//! - `filler`: the thread that reads; the core's hand-over passes its blocks on.
//! - `reader`: the interface for JavaScript.
//! - `command`: the words of a command.
//! - `descriptor`: duplicates descriptors.
//! - `bson`: checks documents and decodes them into columns.
//! - `error`: errors of the core as plain data.

pub mod bson;
mod command;
mod descriptor;
mod error;
mod filler;
mod reader;

use napi_derive::napi;

/// The version of this build. The package accepts only its own version.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
