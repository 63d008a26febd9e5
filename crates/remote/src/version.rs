//! One version of an object, with ranges that are requested in any order.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use millstream_core::error::{Error, ErrorKind, Result};

use crate::address::shown;
use crate::answer::{Facts, strong_etag};
use crate::client::{Target, wait_for};
use crate::object::Object;
use crate::opening::first_answer;
use crate::range::{Part, Place};
use crate::remote::Remote;

/// One version of an object: its size and its strong ETag, which every request requires.
#[derive(Clone)]
pub struct Version {
    pub(crate) name: String,
    pub(crate) target: Arc<Target>,
    pub(crate) etag: HeaderValue,
    pub(crate) size: u64,
}

impl Version {
    /// Requests an object's first byte, and returns its current version. Returns `None` if the server has no ranges of it or
    /// sends no strong ETag. `check` is called every 20 ms; an error of it ends the wait.
    ///
    /// # Errors
    /// Fails like [`Opening`](crate::Opening).
    pub fn current(remote: Remote, mut check: impl FnMut() -> Result<()>) -> Result<Option<Version>> {
        let name = shown(&remote.url);
        let named = |error: Error| error.with_name(&name);
        let target = Arc::new(Target::new(remote).map_err(named)?);
        let first = target.clone();
        let response = wait_for(async move { first_answer(&first, Some(1)).await }, &mut check)?.map_err(named)?;
        let Some(etag) = strong_etag(response.headers()) else { return Ok(None) };
        let facts = Facts::new(response.status(), response.version(), response.headers(), true).map_err(named)?;
        let has_ranges = facts.validator.is_some() || facts.total == Some(0);
        Ok(facts.total.filter(|_| has_ranges).map(|size| Version { name, target, etag, size }))
    }

    /// Returns a version of which the size and the ETag are known, without a request.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if the URL, an option or the ETag is invalid.
    pub fn known(remote: Remote, size: u64, etag: &str) -> Result<Version> {
        let name = shown(&remote.url);
        let invalid = || Error::new(ErrorKind::InvalidOption).with_found("an ETag that is not valid");
        let etag = HeaderValue::from_str(etag).map_err(|_| invalid().with_name(&name))?;
        let target = Target::new(remote).map_err(|error| error.with_name(&name))?;
        Ok(Version { name, target: Arc::new(target), etag, size })
    }

    /// Returns the URL without user, password and query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the strong ETag, with its quotes.
    pub fn etag(&self) -> String {
        String::from_utf8_lossy(self.etag.as_bytes()).into_owned()
    }

    /// Reads bytes at `offset` with one request, and returns their number: the length of `space`, or fewer at the end of the
    /// object. `check` is called every 20 ms; an error of it ends the wait.
    ///
    /// # Errors
    /// Fails like [`Object::read`].
    pub fn read_at(&self, space: &mut [u8], offset: u64, mut check: impl FnMut() -> Result<()>) -> Result<usize> {
        let len = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(space.len());
        if len == 0 {
            return Ok(0);
        }
        let version = Some((self.etag.clone(), self.size));
        let place = Place { target: self.target.clone(), version, begin: offset, end: Some(offset + len as u64) };
        let named = |error: Error| error.with_name(&self.name);
        let mut part = Part::start(place).map_err(named)?;
        let mut count = 0;
        while let Some(read) =
            part.read(&mut space[count..len], true, &mut check).map_err(named)?.filter(|&read| read > 0)
        {
            count += read;
        }
        Ok(count)
    }

    /// Returns an object that delivers the bytes from `begin` on. Ranges up to `expected_end` are requested ahead; after it,
    /// one at a time.
    ///
    /// # Errors
    /// Fails if there is no thread for the network.
    pub fn open(&self, begin: u64, expected_end: u64) -> Result<Object> {
        let version = (self.etag.clone(), self.size);
        Object::of_version(self.name.clone(), self.target.clone(), version, begin, expected_end)
    }
}

impl Object {
    /// Returns the version that is being read. `None` if the server has no ranges of it or sends no strong ETag, so that
    /// another request could be answered with other bytes.
    pub fn version(&self) -> Option<Version> {
        let (target, etag, size) = self.pinned()?;
        Some(Version { name: self.name().to_string(), target, etag, size })
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Version")
            .field("name", &self.name)
            .field("size", &self.size)
            .field("etag", &self.etag)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let remote = Remote::new("http://me:s3cret@host/a?X-Amz-Signature=s3cret#s3cret");
        let version = Version::known(remote.header("Authorization", "Bearer s3cret"), 3, "\"v1\"").unwrap();
        let text = format!("{version:?}");
        assert!(text.contains("http://host/a") && text.contains("v1"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
