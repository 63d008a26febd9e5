//! Shares one writer between several producing threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::writer::{Writer, WriterEnd};
use millstream_core::internal;

/// A [`Writer`] that several threads can use at the same time. It is cheap to clone and never splits a record.
///
/// A record is the argument of one call of [`write_record`](Self::write_record) or [`put!`](crate::put!), with its
/// delimiter. Each record is written exactly one time and in one piece. Records of one thread keep their order; records
/// of different threads are in the order in which the calls acquired the lock. Each call acquires a lock, so threads
/// with many small records should collect some of them and use [`write_records`](Self::write_records).
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
#[must_use = "output is complete only after `close`; dropping a writer reports no error"]
pub struct SharedWriter {
    writer: Arc<Mutex<Writer>>,
    name: Arc<str>,
}

impl SharedWriter {
    pub(super) fn new(writer: Writer) -> SharedWriter {
        SharedWriter { name: writer.name().into(), writer: Arc::new(Mutex::new(writer)) }
    }

    /// Returns the name of the sink in error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes one record.
    ///
    /// # Errors
    /// Returns the errors of [`Writer::write`]; no part of the record was accepted. After a close, returns
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn write_record(&self, record: &[u8]) -> Result<()> {
        self.with(|writer| writer.write(record))
    }

    /// Writes several records without records of another thread between them.
    ///
    /// # Errors
    /// Returns the errors of [`Writer::write`] for the first record that was not accepted. Earlier records were
    /// accepted; [`Error::record`](crate::Error::record) returns their number.
    pub fn write_records<R: AsRef<[u8]>>(&self, records: impl IntoIterator<Item = R>) -> Result<()> {
        self.with(|writer| {
            for (number, record) in records.into_iter().enumerate() {
                writer.write(record.as_ref()).map_err(|error| error.with_record(number as u64))?;
            }
            Ok(())
        })
    }

    /// Writes one record that consists of the parts passed to [`put!`](crate::put!).
    ///
    /// # Errors
    /// Returns the errors of [`write_record`](Self::write_record); no part of the record was accepted.
    #[doc(hidden)]
    pub fn put_parts(&self, parts: &impl internal::Parts) -> Result<()> {
        self.with(|writer| writer.put_parts(parts))
    }

    /// Passes all bytes written so far, by all threads, to the operating system.
    ///
    /// # Errors
    /// Returns the errors of [`Writer::flush`]. After a close, returns [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn flush(&self) -> Result<()> {
        self.with(Writer::flush)
    }

    /// Closes the writer for all threads: their later calls fail with [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    ///
    /// # Errors
    /// Returns the errors of [`Writer::try_close`]. If the call fails, it may be repeated. It returns `Closed` if
    /// another thread has closed the writer.
    pub fn close(&self) -> Result<WriterEnd> {
        self.with(Writer::try_close)
    }

    /// Closes the writer for all threads like [`Writer::abort`]. A call that is running on another thread finishes
    /// first.
    pub fn abort(&self) {
        self.lock().abort();
    }

    fn with<T>(&self, act: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        act(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic on another thread, which only the caller's code can cause, leaves the writer in a valid state.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
