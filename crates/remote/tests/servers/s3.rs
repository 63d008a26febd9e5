//! Objects of S3 stores: versitygw and s3s-fs check signatures and keep files; moto imitates Amazon's answers.

use millstream::Remote;

use crate::read::expect;
use crate::server::Server;
use crate::store::{
    Kind, changes, compression, every_key, every_length, is_refused, missing_objects, splits, with_store,
};
use crate::versitygw::{KEY, REGION, SECRET, versitygw};

/// An independent implementation of the interface, in Rust.
pub(crate) fn s3s_fs() -> Option<Server> {
    Server::start_if_deep("s3s-fs", |port, place| {
        let folder = place.join("objects");
        std::fs::create_dir(&folder).unwrap();
        let (port, folder) = (port.to_string(), folder.to_str().unwrap());
        let words = ["--host", "127.0.0.1", "--port", &port, "--access-key", KEY, "--secret-key", SECRET, folder];
        words.map(String::from).into()
    })
}

pub(crate) fn moto() -> Option<Server> {
    Server::start("moto_server", |port, _| vec!["--host=127.0.0.1".into(), format!("--port={port}")])
}

#[test]
fn objects_of_versitygw() {
    with_store("s3::objects_of_versitygw", Kind::S3, versitygw, &[], |store| {
        every_length(store);
        // It keeps objects in files, for which `b//c` and `b/c` are the same name.
        every_key(store, &[], &["a\nb"]);
        compression(store);
        changes(store);
        splits(store);
        missing_objects(store);
    });
}

#[test]
fn objects_of_moto() {
    with_store("s3::objects_of_moto", Kind::S3, moto, &[], |store| {
        every_length(store);
        every_key(store, &[], &["b/c", "d", "e"]);
        compression(store);
        changes(store);
        splits(store);
        missing_objects(store);
    });
}

#[test]
fn objects_of_s3s_fs() {
    with_store("s3::objects_of_s3s_fs", Kind::S3, s3s_fs, &[], |store| {
        every_length(store);
        // It keeps objects in files, and refuses a name that is the path of another folder, or of a folder that exists.
        every_key(store, &["/d", "e/"], &["a\nb"]);
        compression(store);
        changes(store);
        splits(store);
        // It does not distinguish a missing bucket.
        for url in ["s3://bucket/missing", "s3://other-bucket/a"] {
            is_refused(Remote::new(url), &[url, "404", "NoSuchKey"]);
        }
    });
}

#[test]
fn a_wrong_secret_is_refused_by_s3s_fs() {
    let variables = [("AWS_SECRET_ACCESS_KEY", "another-secret")];
    with_store("s3::a_wrong_secret_is_refused_by_s3s_fs", Kind::S3, s3s_fs, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(store.url("a"), &["s3://bucket/a", "403", "SignatureDoesNotMatch"]);
    });
}

#[test]
fn a_wrong_secret_is_refused() {
    let variables = [("AWS_SECRET_ACCESS_KEY", "another-secret")];
    with_store("s3::a_wrong_secret_is_refused", Kind::S3, versitygw, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(store.url("a"), &["s3://bucket/a", "403", "SignatureDoesNotMatch"]);
    });
}

#[test]
fn an_unknown_key_is_refused() {
    let variables = [("AWS_ACCESS_KEY_ID", "another-key")];
    with_store("s3::an_unknown_key_is_refused", Kind::S3, versitygw, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(store.url("a"), &["s3://bucket/a", "No user exists with the provided access key"]);
    });
}

#[test]
fn a_wrong_region_is_refused() {
    with_store("s3::a_wrong_region_is_refused", Kind::S3, versitygw, &[("AWS_REGION", "us-west-1")], |store| {
        store.put("a", b"one\n");
        is_refused(store.url("a"), &["s3://bucket/a", "us-west-1", REGION]);
    });
}

#[test]
fn public_objects_need_no_credentials() {
    let variables = [("AWS_SKIP_SIGNATURE", "true"), ("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    with_store("s3::public_objects_need_no_credentials", Kind::S3, versitygw, &variables, |store| {
        store.put("a", b"one\n");
        is_refused(store.url("a"), &["s3://bucket/a", "403", "AccessDenied"]);
        let policy = br#"{"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}]}"#;
        let (status, answer) = store.request("PUT", "/bucket?policy=", &[], policy);
        assert!(matches!(status, 200 | 204), "{status} {answer}");
        expect(store.url("a"), b"one\n");
        expect(format!("http://{}/bucket/a", store.address), b"one\n");
        is_refused(store.url("missing"), &["s3://bucket/missing", "40"]);
    });
}
