//! Moves records from commands, files and sockets at the speed of the hardware, and reports whether every record
//! arrived.
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
//! The main modules, from source to sink, are [`Reader`] (does all reading), [`frame`] (splits bytes into records and
//! does no I/O), [`scan`] (parses numbers), [`put`](mod@put) (formats text and numbers), [`Writer`] (does all writing),
//! and [`error`] (one table of error kinds for every language). `ARCHITECTURE.md` in the repository describes the code.

#[cfg(feature = "bson")]
pub mod bson;
pub mod csv;
mod features;
#[cfg(feature = "hash")]
#[doc(hidden)] // for the command line
pub mod hash;
#[cfg(feature = "splits")]
pub mod job;
pub mod options;
mod os;
mod panicked;
pub mod pipe;
mod reader;
pub mod remote;
mod sink;
mod source;
#[cfg(feature = "splits")]
pub mod splits;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(feature = "splits")]
mod versioned;
#[cfg(any(feature = "compression", feature = "splits"))]
#[doc(hidden)] // for the command line
pub mod workers;
mod writer;

#[doc(hidden)] // for a `match` that names every format
pub use millstream_core::internal::Codec;
#[doc(hidden)] // for the command line
pub use millstream_core::internal::{is_trick, show_argv};
#[doc(hidden)] // for the columns
pub use millstream_core::internal::{json_tokens, sixteen_digits};
pub use millstream_core::{
    CommandEnd, CommandStatus, Error, ErrorKind, Format, Result, error, frame, put, put_parts, scan,
};
pub use os::cancel::CancelToken;
pub use os::command::{Command, InputStream, ProcessGroup, Stderr, Stdin, Stdout};
#[doc(hidden)] // for the command line
pub use os::command::{Stopwatch, guard};
#[doc(hidden)] // for the command line
pub use os::pinned::PinnedFile;
#[doc(hidden)]
pub use reader::BatchCopy;
#[doc(hidden)]
pub use reader::BatchLines;
#[doc(hidden)] // for bindings whose reader must not sleep
pub use reader::handover;
pub use reader::{
    Decode, Follow, Latency, Pin, Position, Progress, ProgressHandle, ReadAhead, Reader, ReaderBuilder, Source,
    SourceVersion, Values, Waits,
};
pub use remote::Remote;
#[cfg(feature = "compression")]
pub use source::gzip_index::{GzipAt, GzipIndex, GzipIndexer};
pub use writer::{
    Durability, Encode, Existing, FlushPolicy, LendPages, Partial, SharedWriter, Writer, WriterBuilder, WriterEnd,
};
