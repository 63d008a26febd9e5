//! Objects of Amazon S3 and of stores with the same interface: their URLs, and signed requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use millstream_core::error::{Error, ErrorKind, Result};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;
use url::Url;

use crate::answer::wrong;
use crate::patience::Failure;
use crate::remote::Remote;

/// The characters of a key that a URL contains as they are: those of signature version 4, and the separators.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// How to give credentials.
const CREDENTIALS: &str =
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for public objects";

/// An object, and what its requests need.
pub(crate) struct S3Object {
    pub(crate) url: Url,
    /// The URL without the key, and without a `/` at its end.
    bucket: Url,
    region: String,
    /// `None` if requests are not signed.
    store: Option<Arc<AmazonS3>>,
}

impl S3Object {
    pub(crate) fn new(bucket: &str, key: &str, options: &Remote) -> Result<S3Object> {
        let failed = |error: object_store::Error| {
            Error::new(ErrorKind::OpenFailed)
                .with_found(format!("the settings of S3: {error}"))
                .with_expected(format!("credentials: {CREDENTIALS}"))
        };
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let value = |key| builder.get_config_value(&key);
        let region = value(AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".into());
        let endpoint = value(AmazonS3ConfigKey::Endpoint);
        let is_true =
            |key| value(key).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes"));
        let in_host = is_true(AmazonS3ConfigKey::VirtualHostedStyleRequest);
        let is_unsigned = options.anonymous || is_true(AmazonS3ConfigKey::SkipSignature);
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let mut url = Url::parse(&endpoint).map_err(|error| {
            Error::new(ErrorKind::InvalidOption)
                .with_found(format!("the endpoint {}: {error}", crate::address::shown(&endpoint)))
                .with_expected("a URL such as http://127.0.0.1:9000")
        })?;
        let front = url.path().trim_end_matches('/').to_string();
        match url.host_str().filter(|_| in_host).map(|host| format!("{bucket}.{host}")) {
            Some(host) => {
                url.set_host(Some(&host)).map_err(|error| {
                    Error::new(ErrorKind::InvalidOption)
                        .with_found(format!("a bucket in the host name {host}: {error}"))
                })?;
                url.set_path(&front);
            }
            None => url.set_path(&format!("{front}/{bucket}")),
        }
        // Only the requests for credentials are made, and repeated, by the store itself.
        let retry = RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(10), ..RetryConfig::default() };
        let builder = builder.with_region(&region).with_endpoint(endpoint).with_allow_http(true).with_retry(retry);
        let store = if is_unsigned { None } else { Some(Arc::new(builder.build().map_err(failed)?)) };
        let bucket = url;
        let url = if key.is_empty() { bucket.clone() } else { with_key(&bucket, key) };
        Ok(S3Object { url, bucket, region, store })
    }

    /// Returns another object of the same bucket.
    pub(crate) fn sibling(&self, key: &str) -> S3Object {
        S3Object {
            url: with_key(&self.bucket, key),
            bucket: self.bucket.clone(),
            region: self.region.clone(),
            store: self.store.clone(),
        }
    }

    /// Returns the headers of a signed request. Credentials that have expired are renewed first.
    pub(crate) async fn sign(
        &self,
        method: &Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HeaderMap, Failure> {
        let Some(store) = &self.store else { return Ok(headers) };
        // The error's text could contain a response of the service that has the credentials.
        let credential = store.credentials().get_credential().await.map_err(|_| {
            Failure::Lasting(
                Error::new(ErrorKind::OpenFailed)
                    .with_found("no credentials for S3, also none from the metadata service of this machine")
                    .with_expected(format!("credentials: {CREDENTIALS}")),
            )
        })?;
        let mut request = HttpRequest::new(HttpRequestBody::from(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.as_str().parse().map_err(|_| wrong("an address that HTTP does not allow"))?;
        *request.headers_mut() = headers;
        AwsAuthorizer::new(&credential, "s3", &self.region)
            .try_authorize(&mut request, None)
            .map_err(|_| wrong("credentials that cannot sign a request"))?;
        Ok(std::mem::take(request.headers_mut()))
    }
}

fn with_key(bucket: &Url, key: &str) -> Url {
    let mut url = bucket.clone();
    url.set_path(&format!("{}/{}", bucket.path().trim_end_matches('/'), utf8_percent_encode(key, ESCAPED)));
    url
}

/// Encodes the pairs of a query.
pub(crate) fn query(pairs: &[(&str, String)]) -> String {
    const IN_QUERY: &AsciiSet = &ESCAPED.add(b'/');
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, IN_QUERY)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The names in a list, which a store encodes if that was requested: XML cannot contain all characters.
pub(crate) struct Names {
    is_encoded: bool,
}

impl Names {
    /// `encoding` is the `EncodingType` of the list.
    pub(crate) fn new(encoding: Option<&str>) -> Names {
        Names { is_encoded: encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("url")) }
    }

    pub(crate) fn decode(&self, name: &str) -> String {
        match self.is_encoded {
            true => percent_decode_str(&name.replace('+', " ")).decode_utf8_lossy().into_owned(),
            false => name.into(),
        }
    }
}

/// Returns whether a header describes the object, so that it belongs to the request that creates it and to no other.
pub(crate) fn describes_object(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "expires",
        "x-amz-acl",
        "x-amz-server-side-encryption",
        "x-amz-server-side-encryption-aws-kms-key-id",
        "x-amz-storage-class",
        "x-amz-tagging",
        "x-amz-website-redirect-location",
    ];
    NAMES.contains(&name) || name.starts_with("x-amz-meta-")
}

/// The document with which a store explains an error. The text is shown, so it has no control characters.
#[derive(Debug, Deserialize)]
#[serde(rename = "Error", rename_all = "PascalCase")]
pub(crate) struct ErrorDocument {
    pub(crate) code: String,
    #[serde(default)]
    message: String,
}

impl fmt::Display for ErrorDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
        f.write_str(&shown(&self.code))?;
        match self.message.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", shown(&self.message)),
        }
    }
}

/// Parses an error document, which other servers do not send.
pub(crate) fn error_document(body: &str) -> Option<ErrorDocument> {
    document(body, "Error")
}

/// Parses a document whose root has this name.
pub(crate) fn document<T: for<'de> Deserialize<'de>>(body: &str, root: &str) -> Option<T> {
    // The deserializer does not check the name of the root. A store may send blanks while it works on a request.
    let mut reader = quick_xml::Reader::from_str(body);
    let found = loop {
        match reader.read_event().ok()? {
            quick_xml::events::Event::Start(start) => break start.local_name().as_ref() == root.as_bytes(),
            quick_xml::events::Event::Empty(_) | quick_xml::events::Event::Eof => return None,
            _ => {}
        }
    };
    if found { quick_xml::de::from_str(body.trim_ascii()).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_for_the_signature() {
        let encode = |key| utf8_percent_encode(key, ESCAPED).to_string();
        assert_eq!(encode("a/b-c_d.e~f"), "a/b-c_d.e~f");
        assert_eq!(encode("a b//100%#?+\n"), "a%20b//100%25%23%3F%2B%0A");
        assert_eq!(encode("é"), "%C3%A9");
    }

    #[test]
    fn the_reason_of_a_refusal_is_found() {
        let reason = |body| error_document(body).map(|document| document.to_string());
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>It does\nnot exist.</Message></Error>";
        assert_eq!(reason(body).unwrap(), "NoSuchKey: It doesnot exist.");
        assert_eq!(reason(" \n <Error xmlns=\"http://a/\"><Code>A</Code><Other/></Error>").unwrap(), "A");
        for body in ["<html>", "<Error><Code>unfinished", "", "<Other><Code>A</Code></Other>", "<Error/>"] {
            assert_eq!(reason(body), None, "{body}");
        }
    }

    #[test]
    fn queries_are_encoded_for_the_signature() {
        assert_eq!(query(&[("uploads", String::new()), ("prefix", "a/b c&".into())]), "uploads=&prefix=a%2Fb%20c%26");
    }
}
