//! An object's URL and the options of its requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::unfinished::UnfinishedUpload;
use http::{HeaderMap, HeaderName, HeaderValue};
use millstream_core::error::{Error, ErrorKind, Result};

/// An object of a web server or an object store: `https://…`, `http://…` or `s3://BUCKET/KEY`, and the options of its
/// requests. Everything after `s3://BUCKET/` is the key as it is, so `%`, `#`, `?` and spaces belong to it.
///
/// Credentials and endpoints of object stores come from the environment: `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_SKIP_SIGNATURE` and the others
/// that the crate object_store reads, or from the machine's metadata service. Proxies come from `HTTP_PROXY`,
/// `HTTPS_PROXY` and `NO_PROXY`.
#[derive(Clone)]
pub struct Remote {
    pub(crate) url: String,
    headers: Vec<(String, String)>,
    pub(crate) endpoint: Option<String>,
    pub(crate) idle_timeout: Duration,
    pub(crate) retry_for: Duration,
    pub(crate) allow_unknown_length: bool,
    pub(crate) allow_link_local: bool,
    pub(crate) range_size: u64,
    pub(crate) connections: usize,
    pub(crate) anonymous: bool,
    part_size: Option<u64>,
    size_hint: Option<u64>,
    pub(crate) part_limit: u64,
    pub(crate) on_unfinished: Option<Report>,
}

/// A function that is called with an upload.
type Report = Arc<dyn Fn(&UnfinishedUpload) + Send + Sync>;

/// The default size of a part: with the maximum of 10,000 parts, objects of up to 156 GiB.
const PART_SIZE: u64 = 16 << 20;

/// The sizes of parts that Amazon S3 accepts.
const PART_SIZES: std::ops::RangeInclusive<u64> = 5 << 20..=5 << 30;

impl Remote {
    /// Returns the object with this URL and the default options.
    pub fn new(url: impl Into<String>) -> Remote {
        Remote {
            url: url.into(),
            headers: Vec::new(),
            endpoint: None,
            idle_timeout: Duration::from_secs(10),
            retry_for: Duration::from_secs(300),
            allow_unknown_length: false,
            allow_link_local: false,
            range_size: 8 << 20,
            connections: 8,
            anonymous: false,
            part_size: None,
            size_hint: None,
            part_limit: 10_000,
            on_unfinished: None,
        }
    }

    /// Returns the URL as messages show it: without user, password, query and fragment, which may be secret.
    pub fn name(&self) -> String {
        crate::address::shown(&self.url)
    }

    /// Adds a header to each request, such as `Authorization`. It is not sent to another host after a redirect. Its
    /// value is not shown in messages.
    ///
    /// Headers that describe an object are sent with the request that creates it, and with no other: `Content-Type` and
    /// other headers of the content, `Cache-Control`, `x-amz-meta-…`, `x-amz-storage-class`, `x-amz-tagging`, `x-amz-acl`,
    /// `x-amz-server-side-encryption`.
    pub fn header(mut self, name: &str, value: &str) -> Remote {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the endpoint of an S3-compatible store, such as `http://127.0.0.1:9000`. The default is `AWS_ENDPOINT_URL`,
    /// or else Amazon's endpoint of the region.
    pub fn endpoint(mut self, url: &str) -> Remote {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets how long a connection may deliver nothing before it is given up and resumed: 10 seconds by default.
    pub fn idle_timeout(mut self, limit: Duration) -> Remote {
        self.idle_timeout = limit;
        self
    }

    /// Sets for how long failed requests are repeated without any progress: 5 minutes by default. 0 means that they are
    /// not repeated.
    pub fn retry_for(mut self, limit: Duration) -> Remote {
        self.retry_for = limit;
        self
    }

    /// Sets whether a body is accepted whose end cannot be known, because it has neither a length nor chunks. Such a
    /// body looks complete if the connection breaks. By default it is refused.
    pub fn allow_unknown_length(mut self, allow: bool) -> Remote {
        self.allow_unknown_length = allow;
        self
    }

    /// Sets whether link-local addresses are allowed, where clouds keep the credentials of a machine. By default, URLs
    /// and redirects to them are refused.
    pub fn allow_link_local(mut self, allow: bool) -> Remote {
        self.allow_link_local = allow;
        self
    }

    /// Sets the size of a range in bytes, and how many are fetched at a time. The default is 8 ranges of 8 MiB, which
    /// needs up to 64 MiB of memory.
    pub fn ranges(mut self, bytes: u64, connections: usize) -> Remote {
        self.range_size = bytes;
        self.connections = connections;
        self
    }

    /// Sets whether requests to an object store are not signed, so that no credentials are needed: for public objects. It
    /// is like `AWS_SKIP_SIGNATURE=true`.
    pub fn anonymous(mut self, anonymous: bool) -> Remote {
        self.anonymous = anonymous;
        self
    }

    /// Sets the size of the parts in which an object is uploaded, from 5 MiB to 5 GiB: 16 MiB by default, or more if
    /// [`size_hint`](Self::size_hint) requires it. An object that is not longer than a part is uploaded with one request.
    ///
    /// An object has at most 10,000 parts, so the default allows 156 GiB. Uploading needs memory for up to 5 parts.
    pub fn part_size(mut self, bytes: u64) -> Remote {
        self.part_size = Some(bytes);
        self
    }

    /// Sets the expected length of an object that is uploaded, in bytes. Parts are as large as this requires.
    pub fn size_hint(mut self, bytes: u64) -> Remote {
        self.size_hint = Some(bytes);
        self
    }

    /// Calls `function` if an upload was given up and could not be removed, for example because the connection is
    /// broken. Such an upload is not visible as an object, but a store may charge for its parts.
    pub fn on_unfinished(mut self, function: impl Fn(&UnfinishedUpload) + Send + Sync + 'static) -> Remote {
        self.on_unfinished = Some(Arc::new(function));
        self
    }

    /// Sets the number of parts that an object may have, for tests.
    #[doc(hidden)]
    pub fn part_limit(mut self, parts: u64) -> Remote {
        self.part_limit = parts;
        self
    }

    /// Returns the size of a part.
    pub(crate) fn checked_part_size(&self) -> Result<usize> {
        let refuse = |found: String, expected: String| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        let needed = self.size_hint.unwrap_or(0).div_ceil(self.part_limit);
        let size = match self.part_size {
            // Whole MiB, because some stores require it.
            None => needed.max(PART_SIZE).div_ceil(1 << 20) << 20,
            Some(size) if size < needed => {
                return refuse(
                    format!("parts of {size} bytes for {} bytes", self.size_hint.unwrap_or(0)),
                    format!("at least {needed}, because an object has at most {} parts", self.part_limit),
                );
            }
            Some(size) => size,
        };
        // The limit is reduced by tests, which use small parts as well.
        match usize::try_from(size) {
            Ok(bytes) if PART_SIZES.contains(&size) || self.part_limit < 10_000 && bytes > 0 => Ok(bytes),
            _ => {
                let (least, most) = (PART_SIZES.start(), PART_SIZES.end());
                refuse(format!("parts of {size} bytes"), format!("{least} to {most} bytes"))
            }
        }
    }

    /// Checks that the object can be uploaded, without a request.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`], or [`ErrorKind::Unsupported`] for a web server.
    pub fn check_upload(&self) -> Result<()> {
        self.check()?;
        if let Address::Web(_) = Address::parse(&self.url)? {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_name(self.name())
                .with_found("an upload to a web server")
                .with_expected("s3://BUCKET/KEY: web servers have no way to complete an upload of unknown length"));
        }
        self.checked_part_size().map(drop).map_err(|error| error.with_name(self.name()))
    }

    /// Checks the URL and the options without a request.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`], or [`ErrorKind::Unsupported`] for the URLs of other stores.
    pub fn check(&self) -> Result<()> {
        Address::parse(&self.url)?;
        self.checked_headers().map(drop).map_err(|error| error.with_name(self.name()))
    }

    /// Checks the options, and returns the headers.
    pub(crate) fn checked_headers(&self) -> Result<HeaderMap> {
        let refuse = |found: &str, expected: &str| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        if self.range_size == 0 || self.connections == 0 {
            return refuse("ranges of 0 bytes, or 0 connections", "at least 1 of each");
        }
        if self.idle_timeout.is_zero() {
            return refuse("an idle timeout of 0 s", "a longer one");
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
                return refuse("an invalid name of a header", "letters, digits and hyphens");
            };
            let Ok(mut value) = HeaderValue::from_str(value) else {
                return refuse("an invalid value of a header", "visible characters of ASCII");
            };
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(headers)
    }
}

impl<T: Into<String>> From<T> for Remote {
    fn from(url: T) -> Remote {
        Remote::new(url)
    }
}

/// Shows the names of headers, but not their values.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("url", &crate::address::shown(&self.url))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("endpoint", &self.endpoint.as_deref().map(crate::address::shown))
            .field("idle_timeout", &self.idle_timeout)
            .field("retry_for", &self.retry_for)
            .field("allow_unknown_length", &self.allow_unknown_length)
            .field("allow_link_local", &self.allow_link_local)
            .field("range_size", &self.range_size)
            .field("connections", &self.connections)
            .field("anonymous", &self.anonymous)
            .field("part_size", &self.part_size)
            .field("size_hint", &self.size_hint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let remote = Remote::new("http://me:s3cret@a/b?key=s3cret").header("Authorization", "Bearer s3cret");
        let text = format!("{:?}", remote.endpoint("http://me:s3cret@host/?token=s3cret"));
        assert!(text.contains("Authorization") && text.contains("http://host/"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }

    #[test]
    fn invalid_headers_are_refused_without_their_value() {
        let check = |name: &str, value: &str| Remote::new("http://a/").header(name, value).check();
        let error = check("A", "b\nc").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert!(!error.to_string().contains("b\nc"), "{error}");
        assert!(check("a b", "c").is_err());
        assert!(check("a", "c").is_ok());
    }
}
