//! Object stores: what is common to them, and the interface of what differs.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use md5::{Digest, Md5};
use millstream_core::error::{Error, ErrorKind, Result};
use object_store::RetryConfig;
use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::address::{Kind, shown};
use crate::answer::wrong;
use crate::found::{ListedObject, UnfinishedUpload};
use crate::patience::Failure;
use crate::request::{Answer, Call, Part};

/// The characters of a key that a URL contains as they are: those of Amazon's signature version 4, and the separators.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Pairs of a query.
pub(crate) type Query = Vec<(&'static str, String)>;

/// A page of a list: its entries, and the query of the next page, if there is one.
pub(crate) type Page<T> = (Vec<T>, Option<Query>);

/// A bucket of a store, and what its requests need.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) kind: Kind,
    /// The URL of the bucket, without a `/` at its end.
    pub(crate) bucket: Url,
    pub(crate) protocol: &'static dyn Protocol,
    /// `None` if requests are not signed.
    pub(crate) credentials: Option<Arc<dyn Authorize>>,
}

pub(crate) type Authorized<'a> = Pin<Box<dyn Future<Output = Result<HttpRequest, Failure>> + Send + 'a>>;

/// Signs requests. Credentials that have expired are renewed first.
pub(crate) trait Authorize: Send + Sync {
    fn authorize(&self, request: HttpRequest) -> Authorized<'_>;
}

/// What the requests and answers of a store look like.
pub(crate) trait Protocol: Send + Sync {
    /// The header with the identity of a write, by which a lost answer is decided.
    fn write_id(&self) -> HeaderName;

    /// Returns the name with which a request that creates an object sends this header of the user. `None` means that the
    /// header does not describe the object, and is sent with every request.
    fn object_header(&self, name: &HeaderName) -> Option<HeaderName>;

    /// Adds the headers that each request of this method needs.
    fn add_headers(&self, method: &Method, headers: &mut HeaderMap);

    /// Writes an object with one request.
    fn put(&self, object: HeaderMap, body: Bytes, create_new: bool) -> Call;

    /// Begins an upload. `None` means that no request does this, and that the identity of the write is the upload's id.
    fn create(&self, object: HeaderMap) -> Option<Call>;

    /// Returns the id of the upload.
    fn created(&self, answer: &Answer) -> Option<String>;

    fn send_part(&self, upload: &str, number: u32, body: Bytes) -> Call;

    /// Returns what the completion needs of a part that was sent.
    fn part_tag(&self, upload: &str, number: u32, answer: &Answer) -> Option<String>;

    fn complete(&self, upload: &str, parts: &[Part], object: HeaderMap, create_new: bool) -> Call;

    /// Returns whether a completion can have the condition that the object does not exist.
    fn completes_conditionally(&self) -> bool;

    fn has_completed(&self, answer: &Answer) -> bool;

    /// Returns whether a refused completion means that the upload does not exist, so that another program may have completed
    /// it.
    fn has_no_upload(&self, answer: &Answer) -> bool;

    /// Returns whether a request was refused because the object exists.
    fn has_object(&self, answer: &Answer) -> bool;

    /// Asks whether an upload exists.
    fn find(&self, upload: &str) -> Call;

    /// Returns whether this successful answer shows the upload.
    fn is_found(&self, upload: &str, answer: &Answer) -> bool;

    /// Removes an upload. `None` means that there is no such request.
    fn abort(&self, upload: &str) -> Option<Call>;

    /// The query of every page of a list of objects, apart from the prefix.
    fn objects_query(&self) -> &'static [(&'static str, &'static str)];

    /// Parses a page of a list of objects. `url` returns the URL of a key.
    fn objects(&self, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<ListedObject>>;

    /// The query of every page of a list of uploads. `None` means that there is no such list.
    fn uploads_query(&self) -> Option<&'static [(&'static str, &'static str)]>;

    /// Parses a page of a list of uploads.
    fn uploads(&self, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<UnfinishedUpload>>;
}

impl Store {
    /// Returns the URL of an object.
    pub(crate) fn url(&self, key: &str) -> Url {
        let mut url = self.bucket.clone();
        url.set_path(&format!("{}/{}", url.path().trim_end_matches('/'), utf8_percent_encode(key, ESCAPED)));
        url
    }

    /// Returns the URL and the headers of a signed request.
    pub(crate) async fn sign(
        &self,
        method: &Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(Url, HeaderMap), Failure> {
        self.protocol.add_headers(method, &mut headers);
        let Some(credentials) = &self.credentials else { return Ok((url.clone(), headers)) };
        let mut request = HttpRequest::new(HttpRequestBody::from(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.as_str().parse().map_err(|_| wrong("an address that HTTP does not allow"))?;
        *request.headers_mut() = headers;
        let mut request = credentials.authorize(request).await?;
        let headers = std::mem::take(request.headers_mut());
        // Some credentials are part of the query.
        let url = Url::parse(&request.uri().to_string()).map_err(|_| wrong("an address that is no URL"))?;
        Ok((url, headers))
    }
}

/// Parses the address of a store, and appends the bucket.
pub(crate) fn bucket_url(endpoint: &str, bucket: &str) -> Result<Url> {
    let mut url = parse_endpoint(endpoint)?;
    url.set_path(&format!("{}/{bucket}", url.path().trim_end_matches('/')));
    Ok(url)
}

pub(crate) fn parse_endpoint(endpoint: &str) -> Result<Url> {
    Url::parse(endpoint).map_err(|error| {
        Error::new(ErrorKind::InvalidOption)
            .with_found(format!("the endpoint {}: {error}", shown(endpoint)))
            .with_expected("a URL such as http://127.0.0.1:9000")
    })
}

/// How requests for credentials are repeated, which are the only ones that object_store makes.
pub(crate) fn retry() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(10), ..RetryConfig::default() }
}

/// Returns whether a setting is on.
pub(crate) fn is_true(value: Option<&str>) -> bool {
    value.is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes"))
}

/// Returns the error for settings that cannot be used.
pub(crate) fn wrong_settings(store: &str, error: &str, credentials: &str) -> Error {
    Error::new(ErrorKind::OpenFailed)
        .with_found(format!("the settings of {store}: {error}"))
        .with_expected(format!("credentials: {credentials}"))
}

/// Returns the failure for credentials that could not be obtained. The error of object_store could contain a response of
/// the service that has the credentials, so it is not shown.
pub(crate) fn no_credentials(store: &str, credentials: &str) -> Failure {
    let found = format!("no credentials for {store}, also none from the metadata service of this machine");
    Error::new(ErrorKind::OpenFailed).with_found(found).with_expected(format!("credentials: {credentials}")).into()
}

pub(crate) fn cannot_sign() -> Failure {
    wrong("credentials that cannot sign a request").into()
}

/// Encodes the pairs of a query.
pub(crate) fn encode_query(pairs: &[(&str, String)]) -> String {
    const IN_QUERY: &AsciiSet = &ESCAPED.add(b'/');
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, IN_QUERY)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Adds the checksum of a body, which a store compares with what it received.
pub(crate) fn add_checksum(headers: &mut HeaderMap, body: &Bytes) {
    const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
    let sum = data_encoding::BASE64.encode(&Md5::digest(body));
    headers.insert(CONTENT_MD5, HeaderValue::try_from(sum).expect("it is ASCII"));
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
    fn queries_are_encoded_for_the_signature() {
        let pairs = [("uploads", String::new()), ("prefix", "a/b c&".into())];
        assert_eq!(encode_query(&pairs), "uploads=&prefix=a%2Fb%20c%26");
    }

    #[test]
    fn checksums_are_those_of_rfc_1864() {
        let mut headers = HeaderMap::new();
        add_checksum(&mut headers, &Bytes::from_static(b"abc"));
        assert_eq!(headers["content-md5"], "kAFQmDzST7DWlj99KOF/cg==");
    }
}
