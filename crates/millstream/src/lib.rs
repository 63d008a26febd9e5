//! Move records from commands, files and sockets at the speed of the machine, and know that all of them arrived.
//!
//! ```
//! use millstream::Reader;
//!
//! let mut reader = Reader::command(["seq", "1", "1000"])?;
//! let mut longest = 0;
//! while let Some(line) = reader.next_line()? {
//!     longest = longest.max(line.len());
//! }
//! // We are here only if `seq` exited with status 0: otherwise `next_line` has returned an error.
//! assert_eq!(longest, 4);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! The rooms, from source to sink: [`Reader`] (the only code that reads the operating system), [`frame`]
//! (records out of bytes, no input or output), [`scan`] (numbers out of bytes), [`put`](mod@put) (text and numbers
//! into bytes), [`Writer`] (the only code that writes the operating system), and [`error`] (one table of kinds for every
//! language). `ARCHITECTURE.md` in the repository is the map.

pub mod bson;
#[allow(unsafe_code)] // one pointer into memory that the same type owns
mod buffer;
mod cancel;
mod command;
mod connect;
pub mod error;
mod format;
pub mod frame;
pub mod pipe;
#[allow(unsafe_code)] // one check for all parts of a record, then raw pointers
pub mod put;
mod reader;
pub mod scan;
mod sink;
mod source;
mod writer;

pub use cancel::CancelToken;
pub use command::{Command, Stderr, Stdin, Stdout};
pub use error::{CommandEnd, CommandStatus, Error, ErrorKind, Result};
pub use format::Format;
pub use reader::{
    Decode, DecodeLimit, Follow, Latency, Position, Progress, ProgressHandle, ReadAhead, Reader, ReaderBuilder, Values,
    Waits,
};
pub use writer::{
    Durability, Encode, Existing, FlushPolicy, LendPages, Partial, SharedWriter, Writer, WriterBuilder, WriterEnd,
};
