//! The functions of the core that JavaScript calls, in Node and in browsers.
//!
//! No pointer from JavaScript is dereferenced, and errors are data, not panics. JavaScript reads and writes the
//! module's memory between calls; only `bindings/node/src/core.ts` does this.
//!
//! - `exports`: the functions of the WebAssembly module.
//! - `documents`: checks BSON documents and decodes them into columns; Node's native part uses it too.
//! - `rows`: splits records of CSV into fields.
//! - `failure`: an error as JSON, and its advice as JavaScript spells options; Node's native part uses this too.

pub mod documents;
#[cfg(target_family = "wasm")]
mod exports;
pub mod failure;
#[cfg(target_family = "wasm")]
mod rows;

use failure::failure;
