//! Sinks that call the caller's code: any `std::io::Write`, or a function.
//!
//! Such a call cannot be interrupted while it runs; a cancel token is checked between calls. `Interrupted` is retried.
//! `WouldBlock` is an error like any other, because there is no descriptor to wait for: the bytes stay in the writer's
//! buffer and a later flush tries again.

use std::io;

use crate::error::{Error, Result};
use crate::os::cancel::Wait;
use crate::sink::Sink;

/// A sink that writes to an arbitrary [`io::Write`].
pub(crate) struct WriteSink<W> {
    pub(crate) inner: W,
    pub(crate) wait: Wait,
}

impl<W: io::Write + Send> Sink for WriteSink<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        call(&self.wait, bytes, |bytes| self.inner.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        loop {
            match self.inner.flush() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.wait.check()?,
                other => return other.map_err(Error::from_io),
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.flush()
    }
}

/// A sink that calls a function, which accepts bytes and returns their number.
pub(crate) struct CallbackSink<F> {
    pub(crate) function: F,
    pub(crate) wait: Wait,
}

impl<F: FnMut(&[u8]) -> io::Result<usize> + Send> Sink for CallbackSink<F> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        call(&self.wait, bytes, &mut self.function)
    }
}

fn call(wait: &Wait, bytes: &[u8], mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> Result<usize> {
    loop {
        wait.check()?;
        match write(bytes) {
            Ok(0) if !bytes.is_empty() => return Err(Error::from_io(io::ErrorKind::WriteZero.into())),
            // This is the caller's code: a wrong count must not corrupt the writer's position.
            Ok(taken) if taken > bytes.len() => {
                return Err(Error::from_io(io::Error::other("the callback accepted more bytes than it was given"))
                    .with_found(format!("{taken} bytes"))
                    .with_expected(format!("at most {}", bytes.len())));
            }
            Ok(taken) => return Ok(taken),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::from_io(error)),
        }
    }
}
