//! Objects of Amazon S3 and of stores with the same interface: their URLs, and signed requests.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use millstream_core::error::{Error, ErrorKind, Result};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
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
        let is_unsigned = is_true(AmazonS3ConfigKey::SkipSignature);
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let mut url = Url::parse(&endpoint).map_err(|error| {
            Error::new(ErrorKind::InvalidOption)
                .with_found(format!("the endpoint {}: {error}", crate::address::shown(&endpoint)))
                .with_expected("a URL such as http://127.0.0.1:9000")
        })?;
        let key = utf8_percent_encode(key, ESCAPED);
        let front = url.path().trim_end_matches('/').to_string();
        match url.host_str().filter(|_| in_host).map(|host| format!("{bucket}.{host}")) {
            Some(host) => {
                url.set_host(Some(&host)).map_err(|error| {
                    Error::new(ErrorKind::InvalidOption)
                        .with_found(format!("a bucket in the host name {host}: {error}"))
                })?;
                url.set_path(&format!("{front}/{key}"));
            }
            None => url.set_path(&format!("{front}/{bucket}/{key}")),
        }
        // Only the requests for credentials are made, and repeated, by the store itself.
        let retry = RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(10), ..RetryConfig::default() };
        let builder = builder.with_region(&region).with_endpoint(endpoint).with_allow_http(true).with_retry(retry);
        let store = if is_unsigned { None } else { Some(Arc::new(builder.build().map_err(failed)?)) };
        Ok(S3Object { url, region, store })
    }

    /// Returns the headers of a signed GET. Credentials that have expired are renewed first.
    pub(crate) async fn sign(&self, headers: HeaderMap) -> Result<HeaderMap, Failure> {
        let Some(store) = &self.store else { return Ok(headers) };
        // The error's text could contain a response of the service that has the credentials.
        let credential = store.credentials().get_credential().await.map_err(|_| {
            Failure::Lasting(
                Error::new(ErrorKind::OpenFailed)
                    .with_found("no credentials for S3, also none from the metadata service of this machine")
                    .with_expected(format!("credentials: {CREDENTIALS}")),
            )
        })?;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = self.url.as_str().parse().map_err(|_| wrong("an address that HTTP does not allow"))?;
        *request.headers_mut() = headers;
        AwsAuthorizer::new(&credential, "s3", &self.region)
            .try_authorize(&mut request, None)
            .map_err(|_| wrong("credentials that cannot sign a request"))?;
        Ok(std::mem::take(request.headers_mut()))
    }
}

/// Returns the code and the message of an error document, which other servers do not send.
pub(crate) fn reason(body: &str) -> Option<String> {
    let element = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        let (text, _) = rest.split_once('<')?;
        Some(text.chars().filter(|c| !c.is_control()).take(200).collect::<String>())
    };
    let code = element("Code")?;
    Some(element("Message").map_or_else(|| code.clone(), |message| format!("{code}: {message}")))
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
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>It does\nnot exist.</Message></Error>";
        assert_eq!(reason(body).unwrap(), "NoSuchKey: It doesnot exist.");
        assert_eq!(reason("<Code>A</Code>").unwrap(), "A");
        assert_eq!(reason("<html>"), None);
        assert_eq!(reason("<Code>unfinished"), None);
    }
}
