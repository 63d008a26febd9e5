//! Objects of S3 stores: versitygw checks signatures and keeps files; moto imitates Amazon's answers.

use std::process::{Command, Stdio};

use millstream::{ErrorKind, Remote};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::read::{LARGE, begin, compressed, content, expect, read_all, read_rest};
use crate::server::{Server, request};

const KEY: &str = "some-key";
const SECRET: &str = "some-secret";
const REGION: &str = "eu-north-1";

pub(crate) fn versitygw() -> Option<Server> {
    Server::start("versitygw", |port, place| {
        let folder = |name: &str| {
            let path = place.join(name);
            std::fs::create_dir_all(&path).unwrap();
            path.to_str().unwrap().to_string()
        };
        let address = format!("127.0.0.1:{port}");
        let words = ["--access", KEY, "--secret", SECRET, "--region", REGION, "--port", &address, "posix"];
        // Some file systems have no attributes, in which it would keep the ETags otherwise.
        let posix = ["--sidecar".into(), folder("attributes"), folder("objects")];
        words.into_iter().map(String::from).chain(posix).collect()
    })
}

pub(crate) fn moto() -> Option<Server> {
    Server::start("moto_server", |port, _| vec!["--host=127.0.0.1".into(), format!("--port={port}")])
}

/// A store with the empty bucket `bucket`.
pub(crate) struct Store {
    pub(crate) address: String,
}

impl Store {
    /// Sends a signed request.
    fn request(&self, method: &str, path: &str, headers: &[(&'static str, &str)], body: &[u8]) -> (u16, String) {
        let mut signed = HttpRequest::new(HttpRequestBody::from(body.to_vec()));
        *signed.method_mut() = method.parse().unwrap();
        *signed.uri_mut() = format!("http://{}{path}", self.address).parse().unwrap();
        for (name, value) in headers {
            signed.headers_mut().insert(*name, value.parse().unwrap());
        }
        let credential = AwsCredential { key_id: KEY.into(), secret_key: SECRET.into(), token: None };
        AwsAuthorizer::new(&credential, "s3", REGION).try_authorize(&mut signed, None).unwrap();
        let headers = signed.headers().iter();
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().into())).collect();
        request(&self.address, method, path, &headers, body)
    }

    pub(crate) fn put(&self, key: &str, body: &[u8]) {
        self.put_with(key, &[], body);
    }

    /// Begins an upload and sends a part, like a program that is killed then.
    pub(crate) fn begin(&self, key: &str) {
        let (status, answer) = self.request("POST", &format!("{}?uploads=", path(key)), &[], b"");
        let id = answer.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once("</UploadId>"));
        let (id, _) = id.unwrap_or_else(|| panic!("{key}: {status} {answer}"));
        let part = format!("{}?partNumber=1&uploadId={id}", path(key));
        let (status, answer) = self.request("PUT", &part, &[], b"one");
        assert_eq!(status, 200, "{key}: {answer}");
    }

    pub(crate) fn remove(&self, key: &str) {
        let (status, answer) = self.request("DELETE", &path(key), &[], b"");
        assert_eq!(status, 204, "{key}: {answer}");
    }

    fn put_with(&self, key: &str, headers: &[(&'static str, &str)], body: &[u8]) {
        let (status, answer) = self.request("PUT", &path(key), headers, body);
        assert_eq!(status, 200, "{key}: {answer}");
    }
}

fn path(key: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    format!("/bucket/{}", utf8_percent_encode(key, ESCAPED))
}

/// Runs the rest of `test` with a store, in a process with the variables that lead to the store: a program must not
/// change its own environment.
pub(crate) fn with_store(
    test: &str,
    start: fn() -> Option<Server>,
    variables: &[(&str, &str)],
    rest: impl FnOnce(&Store),
) {
    const ADDRESS: &str = "MILLSTREAM_STORE";
    if let Ok(address) = std::env::var(ADDRESS) {
        let store = Store { address };
        let body = "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                    <LocationConstraint>eu-north-1</LocationConstraint></CreateBucketConfiguration>";
        let (status, answer) = store.request("PUT", "/bucket", &[], body.as_bytes());
        assert_eq!(status, 200, "{answer}");
        rest(&store);
        return;
    }
    let Some(server) = start() else { return };
    let mut command = Command::new(std::env::current_exe().unwrap());
    // The machine's own settings are not used.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    command.args([test, "--exact", "--nocapture"]).env(ADDRESS, &server.address);
    command.env("AWS_ENDPOINT_URL", server.url("")).env("AWS_REGION", REGION);
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    let output = command.envs(variables.iter().copied()).stderr(Stdio::inherit()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    // A filter that selects no test succeeds, too.
    assert!(output.status.success() && printed.contains("1 passed"), "{}: {printed}", output.status);
}

pub(crate) fn url(key: &str) -> Remote {
    Remote::new(format!("s3://bucket/{key}"))
}

#[test]
fn objects_of_versitygw() {
    with_store("s3::objects_of_versitygw", versitygw, &[], |store| {
        every_length(store);
        // It keeps objects in files, for which `b//c` and `b/c` are the same name.
        every_key(store, &[]);
        compression(store);
        changes(store);
        missing_objects();
    });
}

#[test]
fn objects_of_moto() {
    with_store("s3::objects_of_moto", moto, &[], |store| {
        every_length(store);
        every_key(store, &["b/c", "d", "e"]);
        compression(store);
        changes(store);
        missing_objects();
    });
}

fn every_length(store: &Store) {
    for length in [0, 1, LARGE] {
        let bytes = content(1, length);
        store.put("a", &bytes);
        expect(url("a"), &bytes);
        expect(url("a").range_size(1_000_000).connections(5), &bytes);
    }
}

fn every_key(store: &Store, more: &[&'static str]) {
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
    let keys = || keys.iter().chain(more);
    for key in keys() {
        store.put(key, content(key).as_bytes());
    }
    // If two keys lead to the same object, it has the content of the last one.
    for key in keys() {
        expect(url(key), content(key).as_bytes());
    }
}

fn compression(store: &Store) {
    let text = content(2, 3_000_000);
    let once = compressed(&text);
    let twice = compressed(&once);
    store.put("a.gz", &once);
    expect(url("a.gz").range_size(500_000).connections(3), &text);
    store.put("twice.gz", &twice);
    expect(url("twice.gz"), &once);
    store.put_with("encoded", &[("content-encoding", "gzip")], &once);
    expect(url("encoded"), &text);
}

fn changes(store: &Store) {
    let bytes = content(3, LARGE);
    store.put("a", &bytes);
    let (reader, found) = begin(url("a"));
    store.put("a", &content(4, LARGE));
    let (found, error) = read_rest(reader, found);
    assert!(found.len() < LARGE && bytes.starts_with(&found), "{} wrong bytes", found.len());
    assert_eq!(error.expect("another version").kind(), ErrorKind::SourceChanged);

    store.put("a", &bytes);
    let (reader, found) = begin(url("a"));
    store.remove("a");
    let (found, error) = read_rest(reader, found);
    assert!(found.len() < LARGE && bytes.starts_with(&found), "{} wrong bytes", found.len());
    assert_eq!(error.expect("a deleted object").kind(), ErrorKind::SourceChanged);
}

#[track_caller]
fn is_refused(remote: Remote, parts: &[&str]) {
    let (found, error) = read_all(remote);
    let error = error.expect("an error");
    assert_eq!((found.len(), error.kind()), (0, ErrorKind::OpenFailed), "{error}");
    let message = error.to_string();
    assert!(parts.iter().all(|part| message.contains(part)) && !message.contains(SECRET), "{message}");
}

fn missing_objects() {
    is_refused(url("missing"), &["s3://bucket/missing", "404", "NoSuchKey"]);
    is_refused(Remote::new("s3://other-bucket/a"), &["s3://other-bucket/a", "404", "NoSuchBucket"]);
}

#[test]
fn a_wrong_secret_is_refused() {
    let variables = [("AWS_SECRET_ACCESS_KEY", "another-secret")];
    with_store("s3::a_wrong_secret_is_refused", versitygw, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(url("a"), &["s3://bucket/a", "403", "SignatureDoesNotMatch"]);
    });
}

#[test]
fn an_unknown_key_is_refused() {
    let variables = [("AWS_ACCESS_KEY_ID", "another-key")];
    with_store("s3::an_unknown_key_is_refused", versitygw, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(url("a"), &["s3://bucket/a", "No user exists with the provided access key"]);
    });
}

#[test]
fn a_wrong_region_is_refused() {
    with_store("s3::a_wrong_region_is_refused", versitygw, &[("AWS_REGION", "us-west-1")], |store| {
        store.put("a", b"one\n");
        is_refused(url("a"), &["s3://bucket/a", "us-west-1", REGION]);
    });
}

#[test]
fn public_objects_need_no_credentials() {
    let variables = [("AWS_SKIP_SIGNATURE", "true"), ("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    with_store("s3::public_objects_need_no_credentials", versitygw, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(url("a"), &["s3://bucket/a", "403", "AccessDenied"]);
        let policy = br#"{"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}]}"#;
        let (status, answer) = store.request("PUT", "/bucket?policy=", &[], policy);
        assert!(matches!(status, 200 | 204), "{status} {answer}");
        expect(url("a"), b"one\n");
        expect(format!("http://{}/bucket/a", store.address), b"one\n");
        is_refused(url("missing"), &["s3://bucket/missing", "40"]);
    });
}
