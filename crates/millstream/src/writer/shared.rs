//! One writer for several producing threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::writer::{Writer, WriterEnd};
use millstream_core::internal;

/// A [`Writer`] that several threads use at the same time: cheap to clone, and it never tears a record.
///
/// A record is the argument of one call of [`write_record`](Self::write_record) or [`put!`](crate::put!), with its
/// delimiter. Each record is in the output once and in one piece; records of one thread keep their order, those of
/// different threads are in the order in which the calls acquired the lock. Each call takes a lock: threads with many
/// small records should collect some and use [`write_records`](Self::write_records).
///
/// Dropping the last clone does what dropping the writer does; only [`close`](Self::close) reports errors.
///
/// ```
/// use millstream::{Writer, put};
/// let writer = Writer::memory()?.shared();
/// std::thread::scope(|scope| {
///     for name in ["one", "two"] {
///         let writer = writer.clone();
///         scope.spawn(move || put!(writer, name, '\n'));
///     }
/// });
/// let output = writer.close()?.memory.unwrap();
/// assert!(output == b"one\ntwo\n" || output == b"two\none\n");
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedWriter {
    writer: Arc<Mutex<Writer>>,
    name: Arc<str>,
}

impl SharedWriter {
    pub(super) fn new(writer: Writer) -> SharedWriter {
        SharedWriter { name: writer.name().into(), writer: Arc::new(Mutex::new(writer)) }
    }

    /// The name of the sink in error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes one record.
    ///
    /// # Errors
    /// Those of [`Writer::write`]: nothing of the record was accepted. Also after a close, with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn write_record(&self, record: &[u8]) -> Result<()> {
        self.with(|writer| writer.write(record))
    }

    /// Writes several records, with no record of another thread between them.
    ///
    /// # Errors
    /// Those of [`Writer::write`], for the first record that was not accepted. Earlier ones were;
    /// [`Error::record`](crate::Error::record) says how many.
    pub fn write_records<R: AsRef<[u8]>>(&self, records: impl IntoIterator<Item = R>) -> Result<()> {
        self.with(|writer| {
            for (number, record) in records.into_iter().enumerate() {
                writer.write(record.as_ref()).map_err(|error| error.with_record(number as u64))?;
            }
            Ok(())
        })
    }

    /// Writes one record, made of parts by [`put!`](crate::put!).
    ///
    /// # Errors
    /// As [`write_record`](Self::write_record): none of the record was accepted then.
    #[doc(hidden)]
    pub fn put_parts(&self, parts: &impl internal::Parts) -> Result<()> {
        self.with(|writer| writer.put_parts(parts))
    }

    /// Hands everything written so far, by all threads, to the system.
    ///
    /// # Errors
    /// Those of [`Writer::flush`], so after a close [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn flush(&self) -> Result<()> {
        self.with(Writer::flush)
    }

    /// Closes the writer for all threads: their later calls fail with [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    ///
    /// # Errors
    /// Those of [`Writer::try_close`]: it may be repeated if it failed, and returns `Closed` if another thread has
    /// closed the writer.
    pub fn close(&self) -> Result<WriterEnd> {
        self.with(Writer::try_close)
    }

    /// Gives up for all threads, like [`Writer::abort`]. A running call of another thread finishes first.
    pub fn abort(&self) {
        self.lock().abort();
    }

    fn with<T>(&self, act: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        act(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic elsewhere, which only the caller's code can cause, leaves a writer that keeps its promises.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
