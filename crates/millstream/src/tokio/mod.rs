//! Readers and writers for tokio's tasks, with the feature `tokio`.
//!
//! [`AsyncReader`] is an `AsyncBufRead`, [`Batches`] a `Stream` of batches of records, and [`AsyncWriter`] an
//! `AsyncWrite`. None of them blocks its task:
//!
//! - A socket without decompression and without time limits is read in the task, when tokio reports that its descriptor
//!   is readable.
//! - Everything else has one thread, because files cannot be polled, and because a command's exit status, the start of
//!   a compressed stream and a caller's `Read` can make a reader wait although its descriptor is readable. It is at
//!   most three blocks ahead of the task. Callbacks run on this thread.
//!
//! Dropping one of them cancels its work: the waits of its thread end, and the commands of a reader are stopped as
//! [`Reader::close`](crate::Reader::close) stops them, on the thread. A future that is dropped loses no data.

mod reader;
mod writer;

pub use reader::{AsyncReader, Batches, OwnedBatch};
pub use writer::AsyncWriter;

use crate::error::{Error, ErrorKind};

/// Returns the error for a thread that has ended without a result, which only a panic of a caller's code causes.
fn thread_ended(name: &str) -> Error {
    Error::new(ErrorKind::Internal).with_found("a panic; its message is on standard error").with_name(name)
}
