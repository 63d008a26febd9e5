//! Checks of the options, without a request.

use std::ops::RangeInclusive;

use http::{HeaderMap, HeaderName, HeaderValue};
use millstream_core::error::{Error, ErrorKind, Result};

use crate::address::{Address, Kind};
use crate::azure;
use crate::client::certificates;
use crate::remote::Remote;

/// The default sizes of parts: small ones at first, so that many are sent at a time in little memory, and larger ones for
/// objects of which the small ones would be too many. With the maximum of 10,000 parts, these are 150.8 GiB.
const DEFAULT: PartSizes = PartSizes { first: 5 << 20, small: 500, later: 16 << 20 };

/// How many bytes of parts are in memory by default, with the part that is being filled.
const IN_MEMORY: usize = 88 << 20;

/// The sizes of parts that Amazon S3 and Google Cloud Storage accept.
const PART_SIZES: RangeInclusive<u64> = 5 << 20..=5 << 30;

/// The sizes of parts for Azure Blob Storage, which limits blocks to 4000 MiB.
const BLOCK_SIZES: RangeInclusive<u64> = 5 << 20..=4000 << 20;

/// The sizes of the parts of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartSizes {
    first: usize,
    /// How many parts have the size `first`.
    small: u64,
    later: usize,
}

impl PartSizes {
    /// Returns the size of the part with this number, from 1 on.
    pub(crate) fn of(self, number: u64) -> usize {
        if number <= self.small { self.first } else { self.later }
    }

    /// Returns how many parts of this size are sent at a time.
    pub(crate) fn connections(size: usize) -> usize {
        (IN_MEMORY / size.max(1)).saturating_sub(1).clamp(4, 16)
    }

    /// Returns sizes that do not differ.
    pub(crate) fn equal(self) -> PartSizes {
        PartSizes { first: self.later, ..self }
    }

    /// Returns the size of the largest object with this many parts.
    fn total(self, parts: u64) -> u64 {
        let small = parts.min(self.small);
        small.saturating_mul(self.first as u64).saturating_add((parts - small).saturating_mul(self.later as u64))
    }
}

impl Remote {
    /// Returns the sizes of the parts.
    pub(crate) fn checked_part_sizes(&self) -> Result<PartSizes> {
        let refuse = |found: String, expected: String| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        let hint = self.size_hint.unwrap_or(0);
        let needed = hint.div_ceil(self.part_limit);
        let size = match self.part_size {
            None if hint <= DEFAULT.total(self.part_limit) => return Ok(DEFAULT),
            // Whole MiB, because some stores require it.
            None => needed.div_ceil(1 << 20) << 20,
            Some(size) if size < needed => {
                return refuse(
                    format!("parts of {size} bytes for {hint} bytes"),
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
            Ok(bytes) if sizes.contains(&size) || self.part_limit < 10_000 && bytes > 0 => {
                Ok(PartSizes { first: bytes, small: 0, later: bytes })
            }
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
        self.checked_part_sizes().map(drop).map_err(|error| error.with_name(self.name()))
    }

    /// Returns how many bytes an object has at most that is uploaded with these options.
    ///
    /// ```
    /// use millstream_remote::Remote;
    /// assert_eq!(Remote::new("s3://bucket/key").part_size(5 << 20).upload_limit()?, 50_000 << 20);
    /// # Ok::<(), millstream_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`check_upload`](Self::check_upload).
    pub fn upload_limit(&self) -> Result<u64> {
        self.check_upload()?;
        Ok(self.checked_part_sizes()?.total(self.part_limit))
    }

    /// Checks that the object can be stored and appear later, without a request: see [`Upload::stage`](crate::Upload::stage).
    ///
    /// # Errors
    /// Returns the errors of [`check_upload`](Self::check_upload), and [`ErrorKind::Unsupported`] for Azure, which can
    /// neither list nor remove what is stored of an object.
    pub fn check_staging(&self) -> Result<()> {
        self.check_upload()?;
        match Address::parse(&self.url)? {
            Address::Store { kind: Kind::Azure, .. } => Err(Error::new(ErrorKind::Unsupported)
                .with_name(self.name())
                .with_found("an object of Azure that should appear later")
                .with_expected("s3:// or gs://: Azure can neither list nor remove the blocks of an unfinished object")),
            _ => Ok(()),
        }
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
        if self.range_size == 0 || self.connections == Some(0) {
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
        if self.url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("az://")) {
            azure::check_metadata(self)?;
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
    fn the_sizes_of_parts_follow_from_the_options() {
        let sizes = |remote: Remote| remote.checked_part_sizes();
        let remote = || Remote::new("s3://b/k");
        let default = sizes(remote()).unwrap();
        assert_eq!([1, 500, 501, 10_000].map(|number| default.of(number) >> 20), [5, 5, 16, 16]);
        assert_eq!(default.equal().of(1), 16 << 20);
        // 150 GiB fit, and more needs other parts.
        assert_eq!(sizes(remote().size_hint(150 << 30)).unwrap(), default);
        assert_eq!(remote().upload_limit().unwrap(), (2500 + 9500 * 16) << 20);
        assert!(remote().size_hint(1 << 40).upload_limit().unwrap() >= 1 << 40);
        let large = sizes(remote().size_hint(1 << 40)).unwrap();
        assert_eq!((large.of(1) >> 20, large.of(10_000) >> 20), (105, 105));
        assert!(large.of(1) as u64 * 10_000 >= 1 << 40);
        assert_eq!(sizes(remote().part_size(5 << 20)).unwrap().of(1), 5 << 20);
        let error = sizes(remote().part_size(5 << 20).size_hint(1 << 40)).unwrap_err().to_string();
        assert!(error.contains("at most 10000 parts"), "{error}");
        assert!(sizes(remote().part_size(1)).is_err() && sizes(remote().part_size(6 << 30)).is_err());
        // Memory for the parts that are sent and the one that is filled.
        for (size, connections) in [(1 << 20, 16), (5 << 20, 16), (8 << 20, 10), (16 << 20, 4), (1 << 30, 4)] {
            assert_eq!(PartSizes::connections(size), connections, "{size}");
        }
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
