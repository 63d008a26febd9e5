//! The part of [`millstream`](https://docs.rs/millstream) that needs no operating system: errors, formats, the buffer
//! of the reading side, records, numbers and text. Programs depend on `millstream`, which re-exports all of this.
//!
//! This crate does no I/O and starts no process and no thread. It builds on every target of Rust's standard library,
//! including WebAssembly and Windows.

mod argv;
#[allow(unsafe_code)] // one pointer into memory that the same type owns
mod buffer;
pub mod error;
mod format;
pub mod frame;
mod json;
#[allow(unsafe_code)] // writes through raw pointers, after one check for all parts of a record
pub mod put;
mod records;
mod refusal;
pub mod scan;
#[cfg(feature = "serde")]
mod serde;

pub use error::{CommandEnd, CommandStatus, Error, ErrorKind, Result};
pub use format::Format;
pub use records::{InMemory, ReadRecords, WriteRecord};

/// Items for the other crates of Millstream only. They can change with any version.
#[doc(hidden)]
pub mod internal {
    pub use crate::argv::{is_trick, show_argv};
    pub use crate::buffer::{Buffer, Lent, NoMemory};
    pub use crate::format::{Codec, Guess, Known, SNIFF, guess, is_known, may_begin};
    pub use crate::frame::simd::index;
    pub use crate::json::{DEPTH, Followed, JsonElements, SEPARATOR, token as json_tokens};
    pub use crate::put::json::{append_escaped, append_json};
    pub use crate::put::parts::{Parts, SLACK, append, need};
    pub use crate::refusal::{Refusal, refuse};
    pub use crate::scan::digits::sixteen_digits;
    pub use crate::scan::quick::quick;
    pub use crate::scan::token::{Extent, Tokens, Value};
}
