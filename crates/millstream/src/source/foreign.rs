//! Caller-supplied code as a source: any `Read`, and callbacks.

use std::io::{ErrorKind, Read};

use super::{ByteSource, Nature};
use crate::error::{Error, Result};
use crate::os::cancel::Wait;

/// A source that reads any `std::io::Read`. It may be read on another thread, and no token can interrupt a blocked
/// read.
pub(crate) struct ReadSource<R>(pub(crate) R);

impl<R: Read + Send> ByteSource for ReadSource<R> {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        read_patiently(|space| self.0.read(space), space, wait)
    }

    fn nature(&self) -> Nature {
        Nature::Foreign
    }

    fn is_interruptible(&self) -> bool {
        false
    }
}

/// A source that calls a callback to fill a slice, only on the caller's thread.
pub(crate) struct CallbackSource<F>(pub(crate) F);

impl<F: FnMut(&mut [u8]) -> std::io::Result<usize> + Send> ByteSource for CallbackSource<F> {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        read_patiently(&mut self.0, space, wait)
    }

    fn nature(&self) -> Nature {
        Nature::CallerOnly
    }
}

/// Calls `read` until it makes progress. It sleeps briefly after `WouldBlock`, because there is no descriptor to poll.
pub(crate) fn read_patiently(
    mut read: impl FnMut(&mut [u8]) -> std::io::Result<usize>,
    space: &mut [u8],
    wait: &Wait,
) -> Result<usize> {
    let started = std::time::Instant::now();
    loop {
        wait.check()?;
        match read(space) {
            Ok(count) if count <= space.len() => return Ok(count),
            Ok(count) => {
                return Err(Error::new(crate::ErrorKind::Io)
                    .with_found(format!("a read that reports {count} bytes"))
                    .with_expected(format!("at most the {} bytes it was given", space.len())));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait.expired(started)?;
                wait.sleep(std::time::Duration::from_micros(200))?;
            }
            Err(error) => return Err(Error::from_io(error)),
        }
    }
}
