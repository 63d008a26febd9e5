//! A store for the tests of one kind of store, and what objects of every store have to be like.

use std::process::{Command, Stdio};

use millstream::splits::{Framing, Splits};
use millstream::{ErrorKind, Reader, Remote};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::read::{LARGE, begin, compressed, content, expect, expect_splits, read_all, read_rest};
use crate::server::{Server, request};
use crate::versitygw::{KEY, REGION, SECRET};

/// The account of Azurite and its key, which are the same everywhere.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    S3,
    Gcs,
    Azure,
}

impl Kind {
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Kind::S3 => "s3",
            Kind::Gcs => "gs",
            Kind::Azure => "az",
        }
    }
}

/// A store with the empty bucket `bucket`.
pub(crate) struct Store {
    pub(crate) address: String,
    pub(crate) kind: Kind,
}

impl Store {
    pub(crate) fn address_of(&self, key: &str) -> String {
        format!("{}://bucket/{key}", self.kind.scheme())
    }

    pub(crate) fn url(&self, key: &str) -> Remote {
        Remote::new(self.address_of(key))
    }

    /// Sends a signed request.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &[u8],
    ) -> (u16, String) {
        let mut signed = HttpRequest::new(HttpRequestBody::from(body.to_vec()));
        *signed.method_mut() = method.parse().unwrap();
        *signed.uri_mut() = format!("http://{}{path}", self.address).parse().unwrap();
        for (name, value) in headers {
            signed.headers_mut().insert(*name, value.parse().unwrap());
        }
        match self.kind {
            Kind::S3 => {
                let credential = AwsCredential { key_id: KEY.into(), secret_key: SECRET.into(), token: None };
                AwsAuthorizer::new(&credential, "s3", REGION).try_authorize(&mut signed, None).unwrap();
            }
            Kind::Gcs => {}
            Kind::Azure => {
                let length = body.len().to_string().parse().unwrap();
                signed.headers_mut().insert("content-length", length);
                let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(ACCOUNT_KEY).unwrap());
                AzureAuthorizer::new(&credential, ACCOUNT).try_authorize(&mut signed).unwrap();
                signed.headers_mut().remove("content-length");
            }
        }
        let headers = signed.headers().iter();
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().into())).collect();
        request(&self.address, method, path, &headers, body)
    }

    fn create_bucket(&self) {
        let (status, answer) = match self.kind {
            Kind::S3 => {
                let body = "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                            <LocationConstraint>eu-north-1</LocationConstraint></CreateBucketConfiguration>";
                self.request("PUT", "/bucket", &[], body.as_bytes())
            }
            Kind::Gcs => self.request("POST", "/storage/v1/b", &[], br#"{"name": "bucket"}"#),
            Kind::Azure => self.request("PUT", &format!("/{ACCOUNT}/bucket?restype=container"), &[], b""),
        };
        assert!(matches!(status, 200 | 201), "{status} {answer}");
    }

    pub(crate) fn put(&self, key: &str, body: &[u8]) {
        self.put_encoded(key, "", body);
    }

    /// Stores an object with this `Content-Encoding`.
    fn put_encoded(&self, key: &str, encoding: &'static str, body: &[u8]) {
        let (status, answer) = match self.kind {
            Kind::S3 if encoding.is_empty() => self.request("PUT", &self.path(key), &[], body),
            Kind::S3 => self.request("PUT", &self.path(key), &[("content-encoding", encoding)], body),
            Kind::Gcs => {
                let query = format!("uploadType=media&name={}&contentEncoding={encoding}", escaped(key));
                self.request("POST", &format!("/upload/storage/v1/b/bucket/o?{query}"), &[], body)
            }
            Kind::Azure => {
                let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-blob-content-encoding", encoding)];
                let count = if encoding.is_empty() { 1 } else { 2 };
                self.request("PUT", &self.path(key), &headers[..count], body)
            }
        };
        assert!(matches!(status, 200 | 201), "{key}: {status} {answer}");
    }

    /// Begins an upload of S3 and sends a part, like a program that is killed then. Returns the upload's id.
    pub(crate) fn begin(&self, key: &str) -> String {
        let (status, answer) = self.request("POST", &format!("{}?uploads=", self.path(key)), &[], b"");
        let id = answer.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once("</UploadId>"));
        let (id, _) = id.unwrap_or_else(|| panic!("{key}: {status} {answer}"));
        let part = format!("{}?partNumber=1&uploadId={id}", self.path(key));
        let (status, answer) = self.request("PUT", &part, &[], b"one");
        assert_eq!(status, 200, "{key}: {answer}");
        id.into()
    }

    pub(crate) fn remove(&self, key: &str) {
        let path = match self.kind {
            Kind::Gcs => format!("/storage/v1/b/bucket/o/{}", escaped(key)),
            _ => self.path(key),
        };
        let (status, answer) = self.request("DELETE", &path, &[], b"");
        assert!(matches!(status, 200 | 202 | 204), "{key}: {status} {answer}");
    }

    fn path(&self, key: &str) -> String {
        let account = if self.kind == Kind::Azure { format!("/{ACCOUNT}") } else { String::new() };
        format!("{account}/bucket/{}", escaped(key))
    }

    /// The variables that lead to the store.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let url = format!("http://{}", self.address);
        let text = str::to_string;
        match self.kind {
            Kind::S3 => vec![
                ("AWS_ENDPOINT_URL", url),
                ("AWS_REGION", text(REGION)),
                ("AWS_ACCESS_KEY_ID", text(KEY)),
                ("AWS_SECRET_ACCESS_KEY", text(SECRET)),
            ],
            Kind::Gcs => {
                let key = r#"{"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": true}"#;
                vec![("GOOGLE_BASE_URL", url), ("GOOGLE_SERVICE_ACCOUNT_KEY", text(key))]
            }
            Kind::Azure => vec![("AZURE_STORAGE_USE_EMULATOR", text("true")), ("AZURITE_BLOB_STORAGE_URL", url)],
        }
    }
}

fn escaped(key: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    utf8_percent_encode(key, ESCAPED).to_string()
}

/// Runs the rest of `test` with a store, in a process with the variables that lead to the store: a program must not
/// change its own environment.
pub(crate) fn with_store(
    test: &str,
    kind: Kind,
    start: fn() -> Option<Server>,
    variables: &[(&str, &str)],
    rest: impl FnOnce(&Store),
) {
    const ADDRESS: &str = "MILLSTREAM_STORE";
    if let Ok(address) = std::env::var(ADDRESS) {
        let store = Store { address, kind };
        store.create_bucket();
        rest(&store);
        return;
    }
    let Some(server) = start() else { return };
    let mut command = Command::new(std::env::current_exe().unwrap());
    // The machine's own settings are not used.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["AWS_", "GOOGLE_", "AZURE_", "AZURITE_"].iter().any(|start| name.starts_with(start)) {
            command.env_remove(name);
        }
    }
    let store = Store { address: server.address.clone(), kind };
    command.args([test, "--exact", "--nocapture"]).env(ADDRESS, &server.address).envs(store.variables());
    let output = command.envs(variables.iter().copied()).stderr(Stdio::inherit()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    // A filter that selects no test succeeds, too.
    assert!(output.status.success() && printed.contains("1 passed"), "{}: {printed}", output.status);
}

pub(crate) fn every_length(store: &Store) {
    for length in [0, 1, LARGE] {
        let bytes = content(1, length);
        store.put("a", &bytes);
        expect(store.url("a"), &bytes);
        expect(store.url("a").range_size(1_000_000).connections(5), &bytes);
    }
}

/// Stores and reads objects with many names: those of all stores apart from the missing ones, and more.
pub(crate) fn every_key(store: &Store, missing: &[&str], more: &[&'static str]) {
    let keys = [
        "a b",
        "a+b",
        "100%",
        "a%20b",
        "a#b",
        "a?b=c&d",
        "a=b;c,d",
        "é/ü",
        "日本",
        "(a)*'!\"",
        "a\\b",
        "a@b:c",
        "[a]{b}|^`<>",
        "~a_b-c.d",
        "b//c",
        "/d",
        "e/",
    ];
    // It may be a folder, which has no content.
    let content = |key: &'static str| if key.ends_with('/') { "" } else { key };
    let keys = || keys.iter().chain(more).filter(|key| !missing.contains(key));
    for key in keys() {
        store.put(key, content(key).as_bytes());
    }
    // If two keys lead to the same object, it has the content of the last one.
    for key in keys() {
        expect(store.url(key), content(key).as_bytes());
    }
}

pub(crate) fn compression(store: &Store) {
    let text = content(2, 3_000_000);
    let once = compressed(&text);
    let twice = compressed(&once);
    store.put("a.gz", &once);
    expect(store.url("a.gz").range_size(500_000).connections(3), &text);
    store.put("twice.gz", &twice);
    expect(store.url("twice.gz"), &once);
    store.put_encoded("encoded", "gzip", &once);
    expect(store.url("encoded"), &text);
}

pub(crate) fn changes(store: &Store) {
    let bytes = content(3, LARGE);
    store.put("a", &bytes);
    let (reader, found) = begin(store.url("a"));
    store.put("a", &content(4, LARGE));
    let (found, error) = read_rest(reader, found);
    assert!(found.len() < LARGE && bytes.starts_with(&found), "{} wrong bytes", found.len());
    assert_eq!(error.expect("another version").kind(), ErrorKind::SourceChanged);

    store.put("a", &bytes);
    let (reader, found) = begin(store.url("a"));
    store.remove("a");
    let (found, error) = read_rest(reader, found);
    assert!(found.len() < LARGE && bytes.starts_with(&found), "{} wrong bytes", found.len());
    assert_eq!(error.expect("a deleted object").kind(), ErrorKind::SourceChanged);
}

/// The splits of an object together are the object, and require its version.
pub(crate) fn splits(store: &Store) {
    for length in [0, 1, 3_000_000] {
        let bytes = content(5, length);
        store.put("a", &bytes);
        expect_splits(store.url("a"), &bytes);
    }
    let plan = Splits::builder().plan_url(store.url("a"), Framing::Fixed { len: 1000 }, 1_000_000).unwrap();
    store.put("a", &content(6, 3_000_000));
    for split in &plan {
        let error = Reader::split(split).and_then(|mut reader| reader.next_line().map(drop)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceChanged, "{error}");
    }
}

#[track_caller]
pub(crate) fn is_refused(remote: Remote, parts: &[&str]) {
    let (found, error) = read_all(remote);
    let error = error.expect("an error");
    assert_eq!((found.len(), error.kind()), (0, ErrorKind::OpenFailed), "{error}");
    let message = error.to_string();
    assert!(parts.iter().all(|part| message.contains(part)) && !message.contains(SECRET), "{message}");
}

pub(crate) fn missing_objects(store: &Store) {
    let (no_key, no_bucket) = match store.kind {
        Kind::S3 => ("NoSuchKey", "NoSuchBucket"),
        // fake-gcs-server sends no documents.
        Kind::Gcs => ("404", "404"),
        Kind::Azure => ("BlobNotFound", "ContainerNotFound"),
    };
    is_refused(store.url("missing"), &[&store.address_of("missing"), "404", no_key]);
    let other = format!("{}://other-bucket/a", store.kind.scheme());
    is_refused(Remote::new(&other), &[&other, "404", no_bucket]);
}
