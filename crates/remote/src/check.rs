//! Checks of the options, without a request.

use std::ops::RangeInclusive;

use http::{HeaderMap, HeaderName, HeaderValue};
use millstream_core::error::{Error, ErrorKind, Result};

use crate::address::{Address, Kind};
use crate::client::certificates;
use crate::remote::Remote;

/// The default size of a part: with the maximum of 10,000 parts, objects of up to 156 GiB.
const PART_SIZE: u64 = 16 << 20;

/// The sizes of parts that Amazon S3 and Google Cloud Storage accept.
const PART_SIZES: RangeInclusive<u64> = 5 << 20..=5 << 30;

/// The sizes of parts for Azure Blob Storage, which limits blocks to 4000 MiB.
const BLOCK_SIZES: RangeInclusive<u64> = 5 << 20..=4000 << 20;

impl Remote {
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
        let sizes = match Address::parse(&self.url)? {
            Address::Store { kind: Kind::Azure, .. } => BLOCK_SIZES,
            _ => PART_SIZES,
        };
        // The limit is reduced by tests, which use small parts as well.
        match usize::try_from(size) {
            Ok(bytes) if sizes.contains(&size) || self.part_limit < 10_000 && bytes > 0 => Ok(bytes),
            _ => {
                let (least, most) = (sizes.start(), sizes.end());
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
                .with_expected(
                    "s3://, gs:// or az://: web servers have no way to complete an upload of unknown length",
                ));
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
        certificates(self)?;
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
