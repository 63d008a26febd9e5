//! The native part of Millstream's package for Node.
//!
//! It reads and writes commands, files, descriptors and remote objects, and reads compressed memory, with the core crate,
//! with one thread per reader and writer, and finds the ends of lines. JavaScript's memory is accessed only during a call
//! that received it, so that it need not be pinned or kept alive. No panic and no exception crosses the boundary: failures
//! are data. TypeScript (`src/reader.ts`, `src/writer.ts`) defines what a record is, when bytes are passed on and when
//! errors are reported, both for these streams and for data that comes from or goes to JavaScript.
//!
//! - `filler`: the thread that reads; the core's hand-over passes its blocks on.
//! - `reader`: its interface for JavaScript.
//! - `columns`: the thread that turns records into columns.
//! - `splits`: plans that divide files.
//! - `drainer`: the thread that writes.
//! - `writer`: its interface for JavaScript.
//! - `options`: the library's options by name.
//! - `wake`: wakes JavaScript's thread.
//! - `command`: the words of a command.
//! - `descriptor`: duplicates descriptors.
//! - `remote`: descriptions of remote objects.
//! - `bson`: checks documents and decodes them into columns.
//! - `error`: errors of the core as plain data.

pub mod bson;
mod columns;
mod command;
mod descriptor;
mod drainer;
mod error;
mod filler;
mod options;
mod reader;
mod remote;
mod splits;
mod wake;
pub mod writer;

use napi_derive::napi;

/// The version of this build. The package accepts only its own version.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
