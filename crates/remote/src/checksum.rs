//! The checksum that a store keeps of a whole object, compared with the bytes that are delivered.
//!
//! Amazon S3 sends it as `x-amz-checksum-…`, if the request asks for it and the object was uploaded with one. Its type must
//! be `FULL_OBJECT`: a checksum of the parts' checksums could not be computed without knowing the parts. Google Cloud
//! Storage sends CRC-32C in `x-goog-hash`. If that is requested, the ETag is compared, which many stores make of the MD5 of an
//! object that was uploaded with one request.

use crc_fast::{CrcAlgorithm, Digest};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use http::header::{CONTENT_ENCODING, ETAG};
use http::{HeaderMap, HeaderValue};
use md5::{Digest as _, Md5};
use millstream_core::error::{Error, Result};

use crate::answer::wrong;

/// A checksum of the bytes so far, and the one that the store announced.
pub(crate) struct Checksum {
    name: &'static str,
    digest: Digester,
    expected: Vec<u8>,
}

enum Digester {
    Crc(Box<Digest>),
    Md5(Md5),
}

impl Checksum {
    /// Returns the checksum in the headers of an answer, if there is one of the whole object.
    pub(crate) fn announced(headers: &HeaderMap, md5_etag: bool) -> Option<Checksum> {
        of_amazon(headers).or_else(|| of_google(headers)).or_else(|| of_etag(headers).filter(|_| md5_etag))
    }

    fn new(name: &'static str, algorithm: CrcAlgorithm, size: usize, text: &[u8]) -> Option<Checksum> {
        let expected = BASE64.decode(text).ok().filter(|bytes| bytes.len() == size)?;
        Some(Checksum { name, digest: Digester::Crc(Box::new(Digest::new(algorithm))), expected })
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match &mut self.digest {
            Digester::Crc(digest) => digest.update(bytes),
            Digester::Md5(digest) => digest.update(bytes),
        }
    }

    /// Compares the checksums after the last byte.
    pub(crate) fn check(&self) -> Result<()> {
        let found = match &self.digest {
            Digester::Crc(digest) => {
                let found = digest.finalize().to_be_bytes();
                found[found.len() - self.expected.len()..].to_vec()
            }
            Digester::Md5(digest) => digest.clone().finalize().to_vec(),
        };
        if found == self.expected {
            return Ok(());
        }
        let shown = |bytes: &[u8]| format!("the checksum {} {}", self.name, BASE64.encode(bytes));
        Err(different(shown(&found), shown(&self.expected)))
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

fn of_etag(headers: &HeaderMap) -> Option<Checksum> {
    // Amazon's ETag is no MD5 if the object is encrypted with a key of the user or of the key management service.
    let is_encrypted = headers.contains_key("x-amz-server-side-encryption-customer-algorithm")
        || headers.get("x-amz-server-side-encryption").is_some_and(|value| value.as_bytes().starts_with(b"aws:kms"));
    let digits = headers.get(ETAG)?.as_bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let expected = HEXLOWER_PERMISSIVE.decode(digits).ok().filter(|bytes| bytes.len() == 16 && !is_encrypted)?;
    Some(Checksum { name: "MD5 (ETag)", digest: Digester::Md5(Md5::new()), expected })
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
            &[("etag", MD5)],
        ] {
            let mut checksum = Checksum::announced(&headers(pairs), true).unwrap();
            assert!(checksum.check().is_err());
            checksum.update(b"12345");
            checksum.update(b"6789");
            assert_eq!(checksum.check().map_err(|error| error.to_string()), Ok(()), "{pairs:?}");
            checksum.update(b"0");
            assert!(checksum.check().unwrap_err().to_string().contains("which the store has of the whole object"));
        }
    }

    /// The ETag of the text `123456789`.
    const MD5: &str = "\"25f9e794323b453885f5181f1b624d0b\"";

    #[test]
    fn other_checksums_are_not_compared() {
        for pairs in [
            &[("x-amz-checksum-crc32", "y/Q5Jg==")][..],
            &[("x-amz-checksum-type", "COMPOSITE"), ("x-amz-checksum-crc32", "y/Q5Jg==")],
            &[("x-amz-checksum-type", "FULL_OBJECT"), ("x-amz-checksum-crc32", "y/Q5Jg==-2")],
            &[("x-amz-checksum-type", "FULL_OBJECT"), ("x-amz-checksum-crc64nvme", "y/Q5Jg==")],
            &[("x-goog-hash", "md5=x")],
            &[("x-goog-stored-content-encoding", "gzip"), ("x-goog-hash", "crc32c=4waSgw==")],
            &[("etag", "\"25f9e794323b453885f5181f1b624d0b-2\"")],
            &[("etag", "W/\"25f9e794323b453885f5181f1b624d0b\"")],
            &[("etag", MD5), ("x-amz-server-side-encryption", "aws:kms")],
            &[("etag", MD5), ("x-amz-server-side-encryption-customer-algorithm", "AES256")],
        ] {
            assert!(Checksum::announced(&headers(pairs), true).is_none(), "{pairs:?}");
        }
        assert!(Checksum::announced(&headers(&[("etag", MD5)]), false).is_none());
    }
}
