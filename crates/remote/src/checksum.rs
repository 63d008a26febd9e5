//! The checksum that a store keeps of a whole object, compared with the bytes that are delivered.
//!
//! Amazon S3 sends it as `x-amz-checksum-…`, if the request asks for it and the object was uploaded with one. Its type must
//! be `FULL_OBJECT`: a checksum of the parts' checksums could not be computed without knowing the parts. Google Cloud
//! Storage sends CRC-32C in `x-goog-hash`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use crc_fast::{CrcAlgorithm, Digest};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use millstream_core::error::{Error, Result};

use crate::answer::wrong;

/// A checksum of the bytes so far, and the one that the store announced.
pub(crate) struct Checksum {
    name: &'static str,
    digest: Digest,
    expected: Vec<u8>,
}

impl Checksum {
    /// Returns the checksum in the headers of an answer, if there is one of the whole object.
    pub(crate) fn announced(headers: &HeaderMap) -> Option<Checksum> {
        of_amazon(headers).or_else(|| of_google(headers))
    }

    fn new(name: &'static str, algorithm: CrcAlgorithm, size: usize, text: &[u8]) -> Option<Checksum> {
        let expected = BASE64.decode(text).ok().filter(|bytes| bytes.len() == size)?;
        Some(Checksum { name, digest: Digest::new(algorithm), expected })
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
    }

    /// Compares the checksums after the last byte.
    pub(crate) fn check(&self) -> Result<()> {
        let found = self.digest.finalize().to_be_bytes();
        let found = &found[found.len() - self.expected.len()..];
        if found == self.expected {
            return Ok(());
        }
        let shown = |bytes: &[u8]| format!("the checksum {} {}", self.name, BASE64.encode(bytes));
        Err(different(shown(found), shown(&self.expected)))
    }
}

fn different(found: String, expected: String) -> Error {
    wrong(found).with_expected(expected + ", which the store has of the whole object")
}

fn of_amazon(headers: &HeaderMap) -> Option<Checksum> {
    if headers.get("x-amz-checksum-type")?.as_bytes() != b"FULL_OBJECT" {
        return None;
    }
    [
        ("x-amz-checksum-crc64nvme", "CRC64NVME", CrcAlgorithm::Crc64Nvme, 8),
        ("x-amz-checksum-crc32c", "CRC32C", CrcAlgorithm::Crc32Iscsi, 4),
        ("x-amz-checksum-crc32", "CRC32", CrcAlgorithm::Crc32IsoHdlc, 4),
    ]
    .into_iter()
    .find_map(|(header, name, algorithm, size)| Checksum::new(name, algorithm, size, headers.get(header)?.as_bytes()))
}

fn of_google(headers: &HeaderMap) -> Option<Checksum> {
    // The hash is that of the stored bytes, which the store may decode on the way.
    let stored = headers.get("x-goog-stored-content-encoding").map_or(&b"identity"[..], HeaderValue::as_bytes);
    if stored != headers.get(CONTENT_ENCODING).map_or(&b"identity"[..], HeaderValue::as_bytes) {
        return None;
    }
    let mut hashes =
        headers.get_all("x-goog-hash").into_iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
    let text = hashes.find_map(|hash| hash.trim_ascii().strip_prefix(b"crc32c="))?;
    Checksum::new("CRC32C", CrcAlgorithm::Crc32Iscsi, 4, text)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    /// The check values of the algorithms: those of the text `123456789`, in the catalogue of parametrised CRC algorithms.
    #[test]
    fn every_algorithm_has_its_check_value() {
        let amazon = ("x-amz-checksum-type", "FULL_OBJECT");
        for pairs in [
            &[amazon, ("x-amz-checksum-crc64nvme", "rosUhgp5mIg=")][..],
            &[amazon, ("x-amz-checksum-crc32c", "4waSgw==")],
            &[amazon, ("x-amz-checksum-crc32", "y/Q5Jg==")],
            &[("x-goog-hash", "md5=x, crc32c=4waSgw==")],
        ] {
            let mut checksum = Checksum::announced(&headers(pairs)).unwrap();
            assert!(checksum.check().is_err());
            checksum.update(b"12345");
            checksum.update(b"6789");
            assert_eq!(checksum.check().map_err(|error| error.to_string()), Ok(()), "{pairs:?}");
            checksum.update(b"0");
            assert!(checksum.check().unwrap_err().to_string().contains("which the store has of the whole object"));
        }
    }

    #[test]
    fn other_checksums_are_not_compared() {
        for pairs in [
            &[("x-amz-checksum-crc32", "y/Q5Jg==")][..],
            &[("x-amz-checksum-type", "COMPOSITE"), ("x-amz-checksum-crc32", "y/Q5Jg==")],
            &[("x-amz-checksum-type", "FULL_OBJECT"), ("x-amz-checksum-crc32", "y/Q5Jg==-2")],
            &[("x-amz-checksum-type", "FULL_OBJECT"), ("x-amz-checksum-crc64nvme", "y/Q5Jg==")],
            &[("x-goog-hash", "md5=x")],
            &[("x-goog-stored-content-encoding", "gzip"), ("x-goog-hash", "crc32c=4waSgw==")],
        ] {
            assert!(Checksum::announced(&headers(pairs)).is_none(), "{pairs:?}");
        }
    }
}
