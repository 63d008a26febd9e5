//! The download of an object: ranges in flight, delivered in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::HeaderValue;
use millstream_core::error::{Error, Result};

use crate::answer::Facts;
use crate::checksum::Checksum;
use crate::client::Target;
use crate::range::{Part, Place};
use crate::remote::Remote;

/// The size of the first range after the expected end of reading.
const BEYOND: u64 = 64 << 10;

/// The most memory for ranges by default, as a number of them: 80 MiB. It also limits how many are requested early.
const MEMORY: u64 = 10;

/// Returns how many ranges are requested at a time by default, and their size in eighths of the range size, if a connection
/// delivers `rate` bytes per second; 0 means that this is unknown. Many slow connections are faster together. For fast ones the
/// number of requests matters.
fn ranges(rate: u64) -> (u64, u64) {
    match rate {
        0..32_000_000 => (16, 4),
        32_000_000..200_000_000 => (8, 8),
        200_000_000.. => (5, 16),
    }
}

/// An open object, which delivers its bytes in order.
///
/// It delivers all bytes of one version of the object, or fails: see [`read`](Object::read).
pub struct Object {
    name: String,
    target: Arc<Target>,
    /// The strong ETag, if more than one request is possible.
    validator: Option<HeaderValue>,
    total: Option<u64>,
    /// The number of bytes that were delivered.
    position: u64,
    /// The checksum that the store announced.
    checksum: Option<Checksum>,
    /// The first byte that has not been requested.
    next: u64,
    /// Where the caller probably stops reading: ranges after it are requested one at a time.
    expected_end: u64,
    /// The size of the next of these ranges.
    beyond: u64,
    parts: VecDeque<Part>,
    /// The failure after the bytes that were delivered.
    failure: Option<Error>,
}

impl Object {
    /// Returns an object of which the first answer has arrived. `part` is its beginning, up to `end`.
    pub(crate) fn opened(
        name: String,
        target: Arc<Target>,
        facts: Facts,
        checksum: Option<Checksum>,
        (part, end): (Part, Option<u64>),
    ) -> Result<Object> {
        let mut object = Object { checksum, ..Object::at(name, target, facts.validator, facts.total, 0) };
        object.parts.push_back(part);
        object.next = end.unwrap_or(u64::MAX);
        let Remote { first_range, range_size, .. } = object.target.options;
        if first_range >= range_size {
            object.request_ahead()?;
        }
        Ok(object)
    }

    /// Returns an object that delivers the bytes from `begin` on, of which none has been requested.
    fn at(name: String, target: Arc<Target>, validator: Option<HeaderValue>, total: Option<u64>, begin: u64) -> Object {
        Object {
            name,
            target,
            validator,
            total,
            position: begin,
            checksum: None,
            next: begin,
            expected_end: u64::MAX,
            beyond: BEYOND,
            parts: VecDeque::new(),
            failure: None,
        }
    }

    /// Returns an object that delivers the bytes of the version with this ETag and this size from `begin` on. Ranges up to
    /// `expected_end` are requested ahead; after it, one at a time.
    pub(crate) fn of_version(
        name: String,
        target: Arc<Target>,
        (etag, size): (HeaderValue, u64),
        begin: u64,
        expected_end: u64,
    ) -> Result<Object> {
        let mut object = Object { expected_end, ..Object::at(name, target, Some(etag), Some(size), begin) };
        object.request_ahead()?;
        Ok(object)
    }

    /// Returns the URL without user, password and query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes of the object, if it was announced.
    pub fn size(&self) -> Option<u64> {
        self.total
    }

    /// Returns the number of bytes that were delivered.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns what other requests for the same version need, if there can be any: the target, the ETag and the size.
    pub(crate) fn pinned(&self) -> Option<(Arc<Target>, HeaderValue, u64)> {
        let (etag, size) = self.validator.clone().zip(self.total)?;
        Some((self.target.clone(), etag, size))
    }

    /// Reads bytes into `block` and returns their number. 0 means that all of the object has been delivered. While it waits,
    /// `check` is called every 20 ms; an error of it ends the wait, and the next call continues.
    ///
    /// # Errors
    /// Fails with `SourceChanged` if the object changed, and with `RemoteFailed` if the server's answers contradict each
    /// other, end early without a way to resume, or fail for longer than the options allow. The bytes before the failure are
    /// delivered first.
    pub fn read(&mut self, block: &mut [u8], mut check: impl FnMut() -> Result<()>) -> Result<usize> {
        self.failure.take().map_or(Ok(()), Err)?;
        // The rest of an object that was opened in advance is not requested before its first range has been read.
        if self.parts.len() != 1 {
            self.request_ahead()?;
        }
        let mut count = 0;
        while count < block.len() {
            match self.take(&mut block[count..], count == 0, &mut check) {
                Ok(0) => break,
                Ok(taken) => count += taken,
                Err(error) if count == 0 => return Err(error),
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            }
        }
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&block[..count]);
            if count == 0 && !block.is_empty() {
                checksum.check()?;
            }
        }
        Ok(count)
    }

    /// Takes the next bytes and returns their number; 0 at the end, and if there are none yet unless `wait` is true.
    fn take(&mut self, block: &mut [u8], wait: bool, check: &mut dyn FnMut() -> Result<()>) -> Result<usize> {
        while let Some(part) = self.parts.front_mut() {
            match part.read(block, wait, check)? {
                None => break,
                Some(0) => {
                    self.parts.pop_front();
                    // What follows the expected end is requested when it is needed.
                    if wait || self.next < self.expected_end {
                        self.request_ahead()?;
                    }
                }
                Some(count) => {
                    self.position += count as u64;
                    return Ok(count);
                }
            }
        }
        Ok(0)
    }

    /// Requests the following ranges, as many as may be in flight.
    fn request_ahead(&mut self) -> Result<()> {
        let (Some(total), Some(_)) = (self.total, &self.validator) else { return Ok(()) };
        let Remote { connections, range_size, .. } = self.target.options;
        let (count, size) = match connections {
            Some(count) => (count as u64, range_size),
            None => {
                let (count, eighths) = ranges(self.target.rate.load(Ordering::Relaxed));
                (count, range_size.saturating_mul(eighths).div_ceil(8))
            }
        };
        // Ranges of two sizes may be in flight.
        let memory = connections.map_or(MEMORY, |count| count as u64).saturating_mul(range_size);
        // While the last bytes of a range arrive, the next request is on its way, so its connection is never idle.
        let mut busy = self.parts.iter().filter(|part| !part.is_nearly_complete()).count() as u64;
        while self.next < total && busy < count {
            let len = if self.next < self.expected_end {
                size.min(self.expected_end - self.next)
            } else if self.parts.is_empty() {
                let len = self.beyond.min(size);
                self.beyond = len.saturating_mul(2);
                len
            } else {
                break;
            };
            if !self.parts.is_empty() && self.next - self.position + len > memory {
                break;
            }
            let end = total.min(self.next.saturating_add(len));
            let version = self.validator.clone().zip(self.total);
            let place = Place { target: self.target.clone(), version, begin: self.next, end: Some(end) };
            self.parts.push_back(Part::start(place)?);
            self.next = end;
            busy += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_connections_have_fewer_and_larger_ranges() {
        assert_eq!(
            [0, 31_999_999, 32_000_000, 199_999_999, 200_000_000, u64::MAX].map(|rate| ranges(rate).1),
            [4, 4, 8, 8, 16, 16]
        );
        // The most memory is not exceeded.
        assert!([0, 100_000_000, 300_000_000].map(ranges).iter().all(|(count, eighths)| count * eighths <= 8 * MEMORY));
    }
}
