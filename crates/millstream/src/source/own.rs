//! Sources that a program defines itself: the [`Source`] trait, and the checks of its implementations.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::foreign::read_patiently;
use super::{ByteSource, Nature};
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::BorrowedFd;
use crate::os::cancel::Wait;

/// A source of bytes that a program defines, such as an object in a remote store; [`Reader::source`](crate::Reader::source)
/// reads it.
///
/// Only [`read`](Source::read) is required. A source that has a descriptor to poll ([`ready_fd`](Source::ready_fd)) is
/// read on the caller's thread, and must not block. All methods of any other source are called on a separate thread,
/// which reads ahead: its calls may block, and a cancel token or a stall timeout still interrupts the reader
/// immediately. At most [`read_ahead_capacity`](crate::ReaderBuilder::read_ahead_capacity) bytes are read ahead.
///
/// The reader reports a source's mistakes as errors, after all the data that it delivered: a panic, a count that
/// exceeds the block, bytes after its end, or a different number of bytes than it announced.
///
/// ```
/// use millstream::{Reader, Source};
///
/// /// An object of a remote store, which is fetched a part at a time.
/// struct Object {
///     key: String,
///     size: u64,
///     at: u64,
/// }
///
/// impl Object {
///     /// Fetches the bytes that begin at `self.at`.
///     fn fetch(&self, part: &mut [u8]) -> std::io::Result<()> {
///         part.fill(b'\n'); // a real source would send a request for this range of bytes
///         Ok(())
///     }
/// }
///
/// impl Source for Object {
///     fn read(&mut self, block: &mut [u8]) -> std::io::Result<usize> {
///         let count = (self.size - self.at).min(block.len() as u64) as usize;
///         self.fetch(&mut block[..count])?;
///         self.at += count as u64;
///         Ok(count)
///     }
///
///     fn size(&self) -> Option<u64> {
///         Some(self.size)
///     }
///
///     fn place(&self) -> Option<(String, u64)> {
///         Some((self.key.clone(), self.at))
///     }
/// }
///
/// let mut reader = Reader::source(Object { key: "logs/today".into(), size: 1_000_000, at: 0 })?;
/// assert_eq!(reader.name(), "logs/today");
/// while reader.next_line()?.is_some() {}
/// assert_eq!(reader.position().records, 1_000_000);
/// # Ok::<(), millstream::Error>(())
/// ```
pub trait Source: Send {
    /// Reads bytes into `block`, which is not empty, and returns the number of bytes. 0 means the end; the source is
    /// read one more time to check that.
    ///
    /// # Errors
    /// [`Interrupted`](io::ErrorKind::Interrupted) and [`WouldBlock`](io::ErrorKind::WouldBlock) request another call.
    /// After `WouldBlock`, the next call is made when [`ready_fd`](Source::ready_fd) is readable, or 0.2 ms later. Any
    /// other error ends the stream: the reader reports it after all earlier bytes, and does not call the source again.
    /// An [`Error`](crate::Error) that is converted to an [`io::Error`] keeps its kind.
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize>;

    /// Reports whether the source succeeded. This is called one time, at the end of the bytes, but not by a reader that
    /// is closed before the end.
    ///
    /// # Errors
    /// Returns the source's failure. The reader reports it after all bytes.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns a descriptor that polls as readable when [`read`](Source::read) does not block. It must either always or
    /// never return a descriptor.
    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns a function that makes a blocked [`read`](Source::read) or [`finish`](Source::finish) on the other thread
    /// return soon, with any result. The reader requests the function one time, before the first read, and calls it if
    /// the reader is closed or dropped before the end. The reader then waits for the source's thread, for at most two
    /// seconds. Without this function, the thread and the source remain until the blocked call returns.
    fn canceller(&self) -> Option<Box<dyn FnOnce() + Send>> {
        None
    }

    /// Returns the exact number of bytes that the source will deliver, if it is known before the first read. If the
    /// source delivers fewer, reading fails with [`ErrorKind::SourceShrank`]; if it delivers more, with
    /// [`ErrorKind::SourceChanged`].
    fn size(&self) -> Option<u64> {
        None
    }

    /// Returns the origin of the next byte, for messages: the name of an object, and the byte position in it. The name
    /// at the start is the reader's name, unless [`name`](crate::ReaderBuilder::name) sets one. An error of the source
    /// has the name and the position at the time of the error.
    fn place(&self) -> Option<(String, u64)> {
        None
    }
}

/// A user-defined source whose behaviour is checked: its mistakes become errors.
pub(crate) struct Checked<S> {
    source: S,
    size: Option<u64>,
    delivered: u64,
    /// Whether the source succeeded, if it has reached its end.
    end: Option<Result<()>>,
}

impl<S: Source> Checked<S> {
    pub(crate) fn new(source: S) -> Result<Checked<S>> {
        let size = guarded(|| Ok(source.size()))?;
        Ok(Checked { source, size, delivered: 0, end: None })
    }

    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    pub(crate) fn canceller(&self) -> Result<Option<Box<dyn FnOnce() + Send>>> {
        Ok(guarded(|| Ok(self.source.canceller()))?)
    }

    pub(crate) fn place(&self) -> Result<Option<(String, u64)>> {
        Ok(guarded(|| Ok(self.source.place()))?)
    }

    fn read_checked(&mut self, block: &mut [u8], wait: &Wait) -> Result<usize> {
        let source = &mut self.source;
        let read = |block: &mut [u8]| {
            if let Some(fd) = guarded(|| Ok(source.ready_fd()))? {
                wait.readable(fd)?;
            }
            guarded(|| source.read(block))
        };
        let count = read_patiently(read, block, wait)?;
        self.delivered += count as u64;
        if count == 0 {
            self.check_end()?;
        }
        Ok(count)
    }

    /// Checks, after a read of 0 bytes, that this is the end, and returns whether the source succeeded.
    fn check_end(&mut self) -> Result<()> {
        match guarded(|| self.source.read(&mut [0])) {
            Ok(0) => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
            _ => return Err(wrong("a source that continues after its end", "0 bytes at the end and after it only")),
        }
        guarded(|| self.source.finish())?;
        let off = |kind, size| {
            Err(Error::new(kind)
                .with_found(format!("{} bytes", self.delivered))
                .with_expected(format!("the {size} bytes that the source announced")))
        };
        match self.size {
            Some(size) if self.delivered < size => off(ErrorKind::SourceShrank, size),
            Some(size) if self.delivered > size => off(ErrorKind::SourceChanged, size),
            _ => Ok(()),
        }
    }
}

impl<S: Source> ByteSource for Checked<S> {
    /// An error of the source is treated as an end at which the source has failed, so that bytes that a decoder holds
    /// back are delivered first.
    fn read(&mut self, block: &mut [u8], wait: &Wait) -> Result<usize> {
        if self.end.is_some() {
            return Ok(0);
        }
        match self.read_checked(block, wait) {
            Ok(0) => self.end = Some(Ok(())),
            Err(error) if error.kind() != ErrorKind::Cancelled => {
                let place = self.place().ok().flatten();
                self.end = Some(Err(match place {
                    Some((name, offset)) => error.with_name(name).with_offset(offset),
                    None => error,
                }));
            }
            other => return other,
        }
        Ok(0)
    }

    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        outcome(&self.end)
    }

    fn nature(&self) -> Nature {
        Nature::Device
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        guarded(|| Ok(self.source.ready_fd())).ok().flatten()
    }
}

/// Returns how a source ended. It may be called repeatedly.
pub(crate) fn outcome(end: &Option<Result<()>>) -> Result<()> {
    match end {
        Some(Err(error)) => Err(error.again()),
        Some(Ok(())) | None => Ok(()),
    }
}

/// Calls the program's code. A panic, or an error after which a reader would continue, becomes an error that ends the
/// stream.
pub(crate) fn guarded<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // After a panic the source is not used again, except for its place.
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(wrong("a panic in the source; its message is on standard error", "an error that `read` returns").into())
    });
    result.map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(ours) if ours.kind().is_resumable() => {
            wrong(format!("a source that failed: {}", ours.without_advice()), "an error that ends the stream").into()
        }
        _ => error,
    })
}

fn wrong(found: impl Into<String>, expected: &str) -> Error {
    Error::new(ErrorKind::Io).with_found(found).with_expected(expected)
}
