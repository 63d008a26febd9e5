//! What JavaScript calls of the core, in Node and in browsers.
//!
//! It promises: no pointer from JavaScript is dereferenced, and an error is data, not a panic. JavaScript reads and
//! writes the module's memory between calls; `bindings/node/src/core.ts` is the only code that does.
//!
//! - `exports`: the functions of the WebAssembly module.
//! - `documents`: BSON documents, checked or as columns; Node's native part uses them too.
//! - `failure`: an error as JSON.

pub mod documents;
#[cfg(target_family = "wasm")]
mod exports;
mod failure;

use failure::failure;
