//! What the headers of an answer say about its body. All of it is checked: servers and proxies make mistakes.

use http::header::{ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use millstream_core::error::{Error, ErrorKind, Result};

/// The header `Content-Range`: RFC 9110, section 14.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentRange {
    /// The first byte, and the one after the last.
    pub(crate) bytes: (u64, u64),
    /// The number of bytes of the object.
    pub(crate) total: Option<u64>,
}

impl ContentRange {
    /// Parses `bytes FIRST-LAST/TOTAL`, where `TOTAL` may be `*`.
    pub(crate) fn parse(text: &str) -> Option<ContentRange> {
        let (unit, rest) = text.trim().split_once(' ')?;
        let (range, total) = rest.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let total = if total == "*" { None } else { Some(number(total)?) };
        let end = last.checked_add(1)?;
        let is_valid = unit.eq_ignore_ascii_case("bytes") && first <= last && total.is_none_or(|total| end <= total);
        is_valid.then_some(ContentRange { bytes: (first, end), total })
    }
}

/// Parses digits; `str::parse` would accept a sign.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// What the first answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The number of bytes of the object. If it is unknown, the body ends with its last chunk.
    pub(crate) total: Option<u64>,
    /// The number of bytes in the body of this answer.
    pub(crate) body: Option<u64>,
    /// The strong ETag, if the server also has ranges: everything that a second request needs.
    pub(crate) validator: Option<HeaderValue>,
}

impl Facts {
    /// Examines the answer to a request for `bytes=0-`, whose status is 200 or 206.
    pub(crate) fn new(
        status: StatusCode,
        version: Version,
        headers: &HeaderMap,
        allow_unknown_length: bool,
    ) -> Result<Facts> {
        check_encoding(headers)?;
        let length = content_length(headers)?;
        let unknown = || {
            Err(wrong("a body without a length").with_expected(
                "a length or chunks, without which a broken connection \
                 looks like the end; allow it with `allow_unknown_length`",
            ))
        };
        let etag = strong_etag(headers);
        if status == StatusCode::PARTIAL_CONTENT {
            let range = content_range(headers)?;
            if range.bytes.0 != 0 {
                return Err(wrong(format!("a range from byte {}", range.bytes.0)).with_expected("one from byte 0"));
            }
            check_length(length, range)?;
            let Some(total) = range.total else { return unknown() };
            if range.bytes.1 < total && etag.is_none() {
                return Err(wrong(format!("{} of {total} bytes and no strong ETag", range.bytes.1))
                    .with_expected("all bytes, because the others could be of another version"));
            }
            return Ok(Facts { total: Some(total), body: Some(range.bytes.1), validator: etag });
        }
        let has_ranges =
            headers.get(ACCEPT_RANGES).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"bytes"));
        // The layers below report a chunked body without its last chunk, and a stream of HTTP/2 without its end.
        let ends_itself = version >= Version::HTTP_2
            || headers.get(TRANSFER_ENCODING).is_some_and(|value| value.as_bytes().ends_with(b"chunked"));
        if length.is_none() && !ends_itself && !allow_unknown_length {
            return unknown();
        }
        let validator = etag.filter(|_| has_ranges && length.is_some());
        Ok(Facts { total: length, body: length, validator })
    }
}

/// Returns whether an answer with status 206 says that the object is empty, for which there is no valid `Content-Range`:
/// Azurite sends `bytes 0--1/0`.
pub(crate) fn is_empty_range(headers: &HeaderMap) -> bool {
    let is = |name, expected: &[u8]| headers.get(name).is_some_and(|value| value.as_bytes() == expected);
    is(CONTENT_LENGTH, b"0") && is(CONTENT_RANGE, b"bytes 0--1/0")
}

/// Checks the answer to a request for the bytes from `from` up to `to` of an object of `total` bytes.
pub(crate) fn check_range(headers: &HeaderMap, (from, to): (u64, u64), total: u64, etag: &HeaderValue) -> Result<()> {
    check_encoding(headers)?;
    let range = content_range(headers)?;
    if range.bytes != (from, to) || range.total.is_some_and(|found| found != total) {
        let found = range.total.map_or("an unknown number".into(), |total| total.to_string());
        return Err(wrong(format!("bytes {}-{} of {found}", range.bytes.0, range.bytes.1 - 1))
            .with_expected(format!("bytes {from}-{} of {total}, which were requested", to - 1)));
    }
    check_length(content_length(headers)?, range)?;
    match headers.get(ETAG) {
        Some(found) if found != etag => Err(Error::new(ErrorKind::SourceChanged)
            .with_found(format!("the ETag {}", text(found)))
            .with_expected(format!("{}, which was requested", text(etag)))),
        _ => Ok(()),
    }
}

fn content_range(headers: &HeaderMap) -> Result<ContentRange> {
    let value = headers.get(CONTENT_RANGE).ok_or_else(|| wrong("a part without its Content-Range"))?;
    let range = value.to_str().ok().and_then(ContentRange::parse);
    range.ok_or_else(|| wrong(format!("the Content-Range {}", text(value))).with_expected("bytes FIRST-LAST/TOTAL"))
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|value| number(value.trim()));
    length.map(Some).ok_or_else(|| wrong(format!("the Content-Length {}", text(value))).with_expected("a number"))
}

fn check_length(length: Option<u64>, range: ContentRange) -> Result<()> {
    let expected = range.bytes.1 - range.bytes.0;
    match length {
        Some(length) if length != expected => {
            Err(wrong(format!("a body of {length} bytes"))
                .with_expected(format!("the {expected} of its Content-Range")))
        }
        _ => Ok(()),
    }
}

/// Accepts the encodings that a reader detects from the first bytes of the content.
fn check_encoding(headers: &HeaderMap) -> Result<()> {
    for value in headers.get_all(CONTENT_ENCODING) {
        let known = ["", "identity", "aws-chunked", "gzip", "x-gzip", "zstd"];
        let is_known = |name: &[u8]| known.iter().any(|known| name.trim_ascii().eq_ignore_ascii_case(known.as_bytes()));
        if !value.as_bytes().split(|byte| *byte == b',').all(is_known) {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_found(format!("the Content-Encoding {}", text(value)))
                .with_expected("identity, gzip or zstd"));
        }
    }
    Ok(())
}

/// Returns the ETag, if equal ETags mean equal bytes: RFC 9110, section 8.8.1.
pub(crate) fn strong_etag(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(ETAG).filter(|etag| is_strong(etag.as_bytes())).cloned()
}

/// Whether an ETag is a strong one.
pub(crate) fn is_strong(etag: &[u8]) -> bool {
    etag.len() > 2 && etag.starts_with(b"\"") && etag.ends_with(b"\"")
}

/// Returns a header's value for a message.
pub(crate) fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).chars().take(200).collect()
}

pub(crate) fn wrong(found: impl Into<String>) -> Error {
    Error::new(ErrorKind::RemoteFailed).with_found(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn facts(status: u16, pairs: &[(&'static str, &str)]) -> Result<Facts> {
        Facts::new(StatusCode::from_u16(status).unwrap(), Version::HTTP_11, &headers(pairs), false)
    }

    #[test]
    fn ranges_are_parsed_strictly() {
        let parse = ContentRange::parse;
        assert_eq!(parse("bytes 0-9/20"), Some(ContentRange { bytes: (0, 10), total: Some(20) }));
        assert_eq!(parse("Bytes 5-5/*"), Some(ContentRange { bytes: (5, 6), total: None }));
        let wrong =
            ["", "bytes", "bytes 0-9", "bytes 9-0/20", "bytes 0-20/20", "bytes +0-9/20", "items 0-9/20", "bytes */20"];
        for text in wrong.into_iter().chain(["bytes 0-18446744073709551615/*", "bytes -/3", "bytes 0-9/20/1"]) {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_answer_decides_whether_there_may_be_others() {
        let whole = [("content-range", "bytes 0-9/10"), ("content-length", "10"), ("etag", "\"a\"")];
        let found = facts(206, &whole).unwrap();
        assert_eq!((found.total, found.body, found.validator.is_some()), (Some(10), Some(10), true));
        let weak = [("content-range", "bytes 0-9/10"), ("etag", "W/\"a\"")];
        assert_eq!(facts(206, &weak).unwrap().validator, None);
        let plain = [("content-length", "10"), ("etag", "\"a\"")];
        assert_eq!(facts(200, &plain).unwrap().validator, None);
        let ranges = [("content-length", "10"), ("etag", "\"a\""), ("accept-ranges", "bytes")];
        assert!(facts(200, &ranges).unwrap().validator.is_some());
        assert_eq!(facts(200, &[("transfer-encoding", "chunked")]).unwrap().total, None);
    }

    #[test]
    fn answers_that_contradict_themselves_are_refused() {
        for pairs in [
            &[("content-length", "10")][..],
            &[("content-range", "bytes 1-9/10")],
            &[("content-range", "bytes 0-9/10"), ("content-length", "9")],
            &[("content-range", "bytes 0-9/*")],
            &[("content-range", "bytes 0-8/10"), ("etag", "W/\"a\"")],
            &[("content-range", "bytes 0-9/10"), ("content-encoding", "br")],
        ] {
            assert!(facts(206, pairs).is_err(), "{pairs:?}");
        }
        assert!(facts(200, &[]).unwrap_err().to_string().contains("without a length"));
        let allowed = Facts::new(StatusCode::OK, Version::HTTP_10, &headers(&[]), true).unwrap();
        assert_eq!(allowed.total, None);
    }

    #[test]
    fn a_range_must_be_the_one_that_was_requested() {
        let etag = HeaderValue::from_static("\"a\"");
        let check = |pairs: &[(&'static str, &str)]| check_range(&headers(pairs), (10, 20), 30, &etag);
        check(&[("content-range", "bytes 10-19/30"), ("etag", "\"a\"")]).unwrap();
        for range in ["bytes 0-9/30", "bytes 10-19/31", "bytes 10-18/30", "bytes 10-20/30", "x"] {
            assert_eq!(check(&[("content-range", range)]).unwrap_err().kind(), ErrorKind::RemoteFailed, "{range}");
        }
        let other = check(&[("content-range", "bytes 10-19/30"), ("etag", "\"b\"")]).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::SourceChanged);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "(bytes )?[0-9*/ -]{0,30}|.*") {
            if let Some(range) = ContentRange::parse(&text) {
                prop_assert!(range.bytes.0 < range.bytes.1);
                prop_assert!(range.total.is_none_or(|total| range.bytes.1 <= total));
            }
        }
    }
}
