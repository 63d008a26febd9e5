//! Amazon S3 and stores with the same interface.

use std::sync::Arc;

use bytes::Bytes;
use http::header::ETAG;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use millstream_core::error::{Error, ErrorKind, Result};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::client::HttpRequest;
use serde::Deserialize;

use crate::address::Kind;
use crate::answer::is_strong;
use crate::found::{ListedObject, UnfinishedUpload};
use crate::remote::Remote;
use crate::request::{Answer, Call, Part};
use crate::store::{self, Authorize, Authorized, Page, Protocol, Store, add_checksum};
use crate::xml::{Names, document};

/// How to give credentials.
const CREDENTIALS: &str =
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for public objects";

/// Amazon's interface.
pub(crate) static S3: Interface = Interface {
    prefix: "x-amz-",
    write_id: "x-amz-meta-millstream-id",
    describing: &[
        "acl",
        "server-side-encryption",
        "server-side-encryption-aws-kms-key-id",
        "storage-class",
        "tagging",
        "website-redirect-location",
    ],
    only_if_missing: ("if-none-match", "*"),
    completes_conditionally: true,
    reading: &[("accept-encoding", "identity"), ("x-amz-checksum-mode", "ENABLED")],
    // The signature contains the SHA-256 of the body.
    adds_checksums: false,
    namespace: " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"",
};

/// Opens a bucket.
pub(crate) fn open(bucket: &str, options: &Remote) -> Result<Store> {
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let value = |key| builder.get_config_value(&key);
    let region = value(AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".into());
    // The more specific one takes precedence.
    let endpoint = options.endpoint.clone().or_else(|| value(AmazonS3ConfigKey::S3Endpoint));
    let endpoint = endpoint.or_else(|| value(AmazonS3ConfigKey::Endpoint));
    let is_true = |key| store::is_true(value(key).as_deref());
    let in_host = is_true(AmazonS3ConfigKey::VirtualHostedStyleRequest);
    let is_unsigned = options.anonymous || is_true(AmazonS3ConfigKey::SkipSignature);
    let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
    let mut url = store::parse_endpoint(&endpoint)?;
    match url.host_str().filter(|_| in_host).map(|host| format!("{bucket}.{host}")) {
        Some(host) => {
            url.set_host(Some(&host)).map_err(|error| {
                Error::new(ErrorKind::InvalidOption).with_found(format!("a bucket in the host name {host}: {error}"))
            })?;
            let front = url.path().trim_end_matches('/').to_string();
            url.set_path(&front);
        }
        None => url = store::bucket_url(&endpoint, bucket)?,
    }
    let builder = builder.with_region(&region).with_endpoint(endpoint).with_allow_http(true);
    let credentials: Option<Arc<dyn Authorize>> = match is_unsigned {
        true => None,
        false => {
            let store = builder
                .with_retry(store::retry())
                .build()
                .map_err(|error| store::wrong_settings("S3", &error.to_string(), CREDENTIALS))?;
            Some(Arc::new(Signature { store, region }))
        }
    };
    Ok(Store { kind: Kind::S3, bucket: url, protocol: &S3, credentials })
}

/// Amazon's signature version 4.
struct Signature {
    store: AmazonS3,
    region: String,
}

impl Authorize for Signature {
    fn authorize(&self, mut request: HttpRequest) -> Authorized<'_> {
        Box::pin(async move {
            let credential = self.store.credentials().get_credential().await;
            let credential = credential.map_err(|_| store::no_credentials("S3", CREDENTIALS))?;
            AwsAuthorizer::new(&credential, "s3", &self.region)
                .try_authorize(&mut request, None)
                .map_err(|_| store::cannot_sign())?;
            Ok(request)
        })
    }
}

/// Amazon's interface, and what another store may have in its place.
pub(crate) struct Interface {
    /// The beginning of the names of the store's own headers.
    pub(crate) prefix: &'static str,
    pub(crate) write_id: &'static str,
    /// The store's headers that describe an object, without their prefix.
    pub(crate) describing: &'static [&'static str],
    /// The header that lets a request fail if the object exists.
    pub(crate) only_if_missing: (&'static str, &'static str),
    pub(crate) completes_conditionally: bool,
    /// The headers of requests that read.
    pub(crate) reading: &'static [(&'static str, &'static str)],
    pub(crate) adds_checksums: bool,
    /// The namespace of the list of parts.
    pub(crate) namespace: &'static str,
}

impl Interface {
    fn add_condition(&self, headers: &mut HeaderMap, create_new: bool) {
        if create_new {
            let (name, value) = self.only_if_missing;
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
    }

    fn with_body(&self, mut call: Call, body: Bytes) -> Call {
        if self.adds_checksums {
            add_checksum(&mut call.headers, &body);
        }
        Call { body, ..call }
    }
}

impl Protocol for Interface {
    fn write_id(&self) -> HeaderName {
        HeaderName::from_static(self.write_id)
    }

    fn object_header(&self, name: &HeaderName) -> Option<HeaderName> {
        const NAMES: [&str; 6] =
            ["cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires"];
        let own = |name: &str| self.describing.contains(&name) || name.starts_with("meta-");
        let describes = NAMES.contains(&name.as_str()) || name.as_str().strip_prefix(self.prefix).is_some_and(own);
        describes.then(|| name.clone())
    }

    fn add_headers(&self, method: &Method, headers: &mut HeaderMap) {
        if method == Method::GET || method == Method::HEAD {
            for (name, value) in self.reading {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
        }
    }

    fn put(&self, object: HeaderMap, body: Bytes, create_new: bool) -> Call {
        let mut call = Call { headers: object, ..Call::new(Method::PUT, Vec::new()) };
        self.add_condition(&mut call.headers, create_new);
        self.with_body(call, body)
    }

    fn create(&self, object: HeaderMap) -> Option<Call> {
        Some(Call { headers: object, ..Call::new(Method::POST, vec![("uploads", String::new())]) })
    }

    fn created(&self, answer: &Answer) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Created {
            upload_id: String,
        }
        let created: Option<Created> = document(&answer.body, "InitiateMultipartUploadResult");
        created.map(|created| created.upload_id).filter(|id| !id.is_empty())
    }

    fn send_part(&self, upload: &str, number: u32, body: Bytes) -> Call {
        let query = vec![("partNumber", number.to_string()), ("uploadId", upload.to_string())];
        self.with_body(Call::new(Method::PUT, query), body)
    }

    fn part_tag(&self, _: &str, _: u32, answer: &Answer) -> Option<String> {
        answer.headers.get(ETAG)?.to_str().ok().map(str::to_string)
    }

    fn complete(&self, upload: &str, parts: &[Part], _: HeaderMap, create_new: bool) -> Call {
        let mut body = format!("<CompleteMultipartUpload{}>", self.namespace);
        for Part { number, tag } in parts {
            let etag = quick_xml::escape::escape(tag);
            body += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        }
        let body = Bytes::from(body + "</CompleteMultipartUpload>");
        let mut call = Call { body, ..Call::new(Method::POST, vec![("uploadId", upload.to_string())]) };
        self.add_condition(&mut call.headers, create_new);
        call
    }

    fn completes_conditionally(&self) -> bool {
        self.completes_conditionally
    }

    fn has_completed(&self, answer: &Answer) -> bool {
        #[derive(Deserialize)]
        struct Completed {}
        answer.status.is_success() && document::<Completed>(&answer.body, "CompleteMultipartUploadResult").is_some()
    }

    fn has_no_upload(&self, answer: &Answer) -> bool {
        answer.status.as_u16() == 404
    }

    fn has_object(&self, answer: &Answer) -> bool {
        answer.status.as_u16() == 412
    }

    fn find(&self, upload: &str) -> Call {
        Call::new(Method::GET, vec![("max-parts", "1".to_string()), ("uploadId", upload.to_string())])
    }

    fn is_found(&self, _: &str, _: &Answer) -> bool {
        true
    }

    fn abort(&self, upload: &str) -> Option<Call> {
        Some(Call::new(Method::DELETE, vec![("uploadId", upload.to_string())]))
    }

    fn objects_query(&self) -> &'static [(&'static str, &'static str)] {
        &[("encoding-type", "url"), ("list-type", "2"), ("max-keys", "1000")]
    }

    fn objects(&self, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<ListedObject>> {
        let page: ObjectPage = document(body, "ListBucketResult")?;
        let names = Names::new(page.encoding_type.as_deref());
        let entry = |one: Contents| ListedObject {
            url: url(&names.decode(&one.key)),
            size: one.size,
            etag: one.etag.filter(|etag| is_strong(etag.as_bytes())),
        };
        let token = page.next_continuation_token.unwrap_or_default();
        let next = page.is_truncated.then(|| vec![("continuation-token", token)]);
        Some((page.contents.into_iter().map(entry).collect(), next))
    }

    fn uploads_query(&self) -> Option<&'static [(&'static str, &'static str)]> {
        Some(&[("encoding-type", "url"), ("max-uploads", "1000"), ("uploads", "")])
    }

    fn uploads(&self, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<UnfinishedUpload>> {
        let page: UploadPage = document(body, "ListMultipartUploadsResult")?;
        let names = Names::new(page.encoding_type.as_deref());
        let entry = |one: Upload| UnfinishedUpload {
            url: url(&names.decode(&one.key)),
            id: one.upload_id,
            begun: one.initiated.and_then(|time| humantime::parse_rfc3339_weak(&time).ok()),
        };
        let key = names.decode(&page.next_key_marker.unwrap_or_default());
        let id = page.next_upload_id_marker.unwrap_or_default();
        let next = page.is_truncated.then(|| vec![("key-marker", key), ("upload-id-marker", id)]);
        Some((page.uploads.into_iter().map(entry).collect(), next))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectPage {
    #[serde(default)]
    is_truncated: bool,
    next_continuation_token: Option<String>,
    encoding_type: Option<String>,
    #[serde(default)]
    contents: Vec<Contents>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contents {
    key: String,
    size: u64,
    #[serde(rename = "ETag")]
    etag: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UploadPage {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    encoding_type: Option<String>,
    #[serde(rename = "Upload", default)]
    uploads: Vec<Upload>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Upload {
    key: String,
    upload_id: String,
    initiated: Option<String>,
}
