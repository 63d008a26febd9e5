//! What a source is expected to deliver: for sources that cannot report where they end, such as standard input.

use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::BorrowedFd;
use crate::os::cancel::Wait;

use super::{ByteSource, Nature};
#[cfg(feature = "hash")]
use crate::hash::{Hasher, parse};

/// What the bytes of a source must be, before any decoding.
#[derive(Clone, Default)]
pub(crate) struct Expectation {
    pub(crate) bytes: Option<u64>,
    /// `ALGORITHM:DIGITS`
    pub(crate) hash: Option<String>,
}

impl Expectation {
    pub(crate) fn is_given(&self) -> bool {
        self.bytes.is_some() || self.hash.is_some()
    }

    /// Checks the hash without a source.
    pub(crate) fn check(&self) -> Result<()> {
        self.hash.as_deref().map_or(Ok(()), |hash| Hash::new(hash).map(drop))
    }

    /// Makes a source fail at its end unless it has delivered what is expected.
    pub(crate) fn of(&self, source: Box<dyn ByteSource>) -> Result<Box<dyn ByteSource>> {
        if !self.is_given() {
            return Ok(source);
        }
        let hash = self.hash.as_deref().map(Hash::new).transpose()?;
        Ok(Box::new(Expected { source, bytes: self.bytes, hash, count: 0 }))
    }
}

/// Returns the error for a source that is not what was expected.
pub(crate) fn mismatch(found: String, expected: String) -> Error {
    Error::new(ErrorKind::ContentMismatch).with_found(found).with_expected(expected)
}

struct Expected {
    source: Box<dyn ByteSource>,
    bytes: Option<u64>,
    hash: Option<Hash>,
    count: u64,
}

impl Expected {
    /// Fails if the source has more bytes than expected, of which none is delivered.
    fn check_end(&mut self, bytes: u64, wait: &Wait) -> Result<usize> {
        match self.source.read(&mut [0; 16], wait)? {
            0 => Ok(0),
            _ => Err(mismatch("more bytes".into(), format!("the end after {bytes} bytes"))),
        }
    }
}

impl ByteSource for Expected {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        let most = match self.bytes {
            Some(bytes) if bytes == self.count => return self.check_end(bytes, wait),
            Some(bytes) => usize::try_from(bytes - self.count).unwrap_or(usize::MAX),
            None => usize::MAX,
        };
        let most = most.min(space.len());
        let count = self.source.read(&mut space[..most], wait)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&space[..count]);
        }
        self.count += count as u64;
        Ok(count)
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        self.source.finish(wait, ends)?;
        if let Some(bytes) = self.bytes.filter(|bytes| *bytes != self.count) {
            return Err(mismatch(format!("the end after {} bytes", self.count), format!("{bytes} bytes")));
        }
        self.hash.as_ref().map_or(Ok(()), Hash::check)
    }

    fn stop(&mut self) {
        self.source.stop();
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) {
        self.source.close(ends);
    }

    fn abandon(self: Box<Self>) {
        self.source.abandon();
    }

    fn nature(&self) -> Nature {
        self.source.nature()
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.source.ready_fd()
    }

    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.source.waits_for()
    }

    fn pending(&self) -> usize {
        self.source.pending()
    }

    fn is_interruptible(&self) -> bool {
        self.source.is_interruptible()
    }
}

/// A hash of the bytes so far, and the expected one.
#[cfg(feature = "hash")]
struct Hash {
    name: &'static str,
    hasher: Hasher,
    /// In lower case.
    expected: String,
}

#[cfg(feature = "hash")]
impl Hash {
    /// Parses `ALGORITHM:DIGITS`.
    fn new(text: &str) -> Result<Hash> {
        let (algorithm, expected) = parse(text).map_err(|expected| {
            Error::new(ErrorKind::InvalidOption).with_found(format!("the hash '{text}'")).with_expected(expected)
        })?;
        Ok(Hash { name: algorithm.name(), hasher: Hasher::new(algorithm), expected })
    }

    fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// Compares the hash of all bytes.
    fn check(&self) -> Result<()> {
        let found = self.hasher.finish();
        if found == self.expected {
            return Ok(());
        }
        Err(mismatch(format!("{}:{found}", self.name), format!("{}:{}", self.name, self.expected)))
    }
}

#[cfg(not(feature = "hash"))]
struct Hash;

#[cfg(not(feature = "hash"))]
impl Hash {
    fn new(_: &str) -> Result<Hash> {
        Err(Error::new(ErrorKind::Unsupported)
            .with_found("an expected hash")
            .with_expected("a build of Millstream with the feature `hash`"))
    }

    fn update(&mut self, _: &[u8]) {}

    fn check(&self) -> Result<()> {
        Ok(())
    }
}
