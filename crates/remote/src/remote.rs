//! An object's URL and the options of its requests.

use std::fmt;
use std::time::Duration;

use crate::address::Address;
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
}

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
        }
    }

    /// Returns the URL as messages show it: without user, password, query and fragment, which may be secret.
    pub fn name(&self) -> String {
        crate::address::shown(&self.url)
    }

    /// Adds a header to each request, such as `Authorization`. It is not sent to another host after a redirect. Its
    /// value is not shown in messages.
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
            .finish()
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
