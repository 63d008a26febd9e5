//! Requests to stores, and their answers.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};
use millstream_core::error::Error;

use crate::answer::{text, wrong};
use crate::patience::Failure;
use crate::xml::error_document;

/// A request to a store, apart from those for the content of an object.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Pairs of the query; they are encoded.
    pub(crate) query: Vec<(&'static str, String)>,
    /// The headers of this call; those of the user that belong to every request are added.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// How long the answer may take after the body was sent; the idle timeout if it is not set.
    pub(crate) limit: Option<Duration>,
}

impl Call {
    /// Returns a call without a body and headers.
    pub(crate) fn new(method: Method, query: Vec<(&'static str, String)>) -> Call {
        Call { method, query, headers: HeaderMap::new(), body: Bytes::new(), limit: None }
    }
}

/// The answer to a call, whatever its status.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the code of the error document in the body, which may have a status of success.
    pub(crate) fn code(&self) -> Option<String> {
        error_document(&self.body).map(|document| document.code).or_else(|| error_header(&self.headers))
    }

    /// Returns whether the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        // Stores answer 400 to a body that arrives too slowly, and to one that was damaged on its way.
        const CODES: [&str; 7] = [
            "RequestTimeout",
            "InternalError",
            "SlowDown",
            "ServiceUnavailable",
            "BadDigest",
            "Md5Mismatch",
            "XAmzContentSHA256Mismatch",
        ];
        is_passing(self.status) || self.code().is_some_and(|code| CODES.contains(&code.as_str()))
    }

    /// Returns the failure that this answer means.
    pub(crate) fn failure(&self) -> Failure {
        let mut found = shown_status(self.status);
        let reason = error_document(&self.body).map(|document| document.to_string());
        if let Some(reason) = reason.or_else(|| error_header(&self.headers)) {
            found += &format!(" ({reason})");
        }
        match self.is_passing() {
            true => Failure::Passing {
                error: wrong(found),
                retry_after: retry_after(&self.headers),
                may_have_arrived: true,
            },
            false => about_region(wrong(found), self.status, &self.headers).into(),
        }
    }
}

/// Adds advice to the error of an answer that the bucket is in another region than the one that the request was signed for.
/// Amazon redirects, or answers 400, according to the endpoint.
pub(crate) fn about_region(error: Error, status: StatusCode, headers: &HeaderMap) -> Error {
    let is_malformed = || error.found().is_some_and(|found| found.contains("AuthorizationHeaderMalformed"));
    match headers.get("x-amz-bucket-region").map(text) {
        Some(region) if status.is_redirection() || status == StatusCode::BAD_REQUEST && is_malformed() => error
            .with_expected(format!("a request for the region {region}, in which the bucket is"))
            .with_advice(format!("set AWS_REGION={region}, and the endpoint of this region if you set one")),
        _ => error,
    }
}

/// A part that the store has accepted.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) number: u32,
    /// What the completion says about it.
    pub(crate) tag: String,
}

/// Returns whether the same request may succeed later.
pub(crate) fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// Returns the code of an error in the headers, where Azure has it too.
fn error_header(headers: &HeaderMap) -> Option<String> {
    headers.get("x-ms-error-code").map(text)
}

pub(crate) fn shown_status(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("the answer {} {reason}", status.as_u16()),
        None => format!("the answer {}", status.as_u16()),
    }
}

/// Returns the seconds that a server requests. Dates are not examined: clocks differ.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_server_requests_a_delay_in_seconds() {
        for (text, expected) in [
            ("120", Some(120)),
            (" 3 ", Some(3)),
            ("0", Some(0)),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("Fri, 31 Dec 2100 23:59:59 GMT", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            let expected = expected.map(Duration::from_secs);
            assert_eq!(retry_after(&headers), expected, "{text:?}");
            for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
                let answer = Answer { status, headers: headers.clone(), body: String::new() };
                let Failure::Passing { retry_after, .. } = answer.failure() else { panic!("{status} is final") };
                assert_eq!(retry_after, expected, "{status}: {text:?}");
            }
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
