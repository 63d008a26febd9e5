//! Other people's code as a source: any `Read`, and callbacks.

use std::io::{ErrorKind, Read};

use super::{Nature, Source};
use crate::cancel::Wait;
use crate::error::{Error, Result};

/// Any `std::io::Read`. It may be read on another thread, and no token can end a read of it that blocks.
pub(crate) struct ReadSource<R>(pub(crate) R);

impl<R: Read + Send> Source for ReadSource<R> {
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

/// A callback that fills a slice. It is only ever called on the caller's thread.
pub(crate) struct CallbackSource<F>(pub(crate) F);

impl<F: FnMut(&mut [u8]) -> std::io::Result<usize> + Send> Source for CallbackSource<F> {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        read_patiently(&mut self.0, space, wait)
    }

    fn nature(&self) -> Nature {
        Nature::CallerOnly
    }
}

/// Calls `read` until it does something. `WouldBlock` is answered by a short sleep: there is nothing to poll.
fn read_patiently(
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
                    .with_found(format!("a read that says it filled {count} bytes"))
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
