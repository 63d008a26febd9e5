//! Objects of S3 stores as sinks. The tests of the library's `Writer::url` have a store that fails as stores do.

use std::sync::{Arc, Mutex};

use millstream::remote::{Objects, Outcome, Uploads, outcome};
use millstream::{ErrorKind, Existing, Remote, Writer};

use crate::read::{content, expect};
use crate::s3::{Store, moto, url, versitygw, with_store};

/// The smallest part that stores accept.
const PART: usize = 5 << 20;

fn parts(key: &str) -> Remote {
    url(key).part_size(PART as u64)
}

fn write(remote: Remote, bytes: &[u8]) {
    let mut writer = Writer::url(remote).unwrap();
    writer.write(bytes).unwrap();
    writer.close().unwrap();
}

/// The unfinished uploads of the bucket.
fn unfinished() -> Vec<String> {
    let listed = Uploads::new(Remote::new("s3://bucket")).unwrap();
    listed.map(|upload| upload.unwrap().url).collect()
}

#[test]
fn objects_written_to_versitygw() {
    with_store("sink::objects_written_to_versitygw", versitygw, &[], |store| {
        every_length();
        // It keeps objects in files, so a folder cannot have the name of an object.
        every_key(&[]);
        failures();
        existing_objects(store);
        what_is_left(store);
        a_list();
    });
}

#[test]
fn objects_written_to_moto() {
    with_store("sink::objects_written_to_moto", moto, &[], |store| {
        every_length();
        every_key(&["b//c", "/d"]);
        failures();
        existing_objects(store);
        what_is_left(store);
        a_list();
    });
}

fn every_length() {
    for length in [0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1_000_000] {
        let bytes = content(5, length);
        write(parts("a"), &bytes);
        expect(url("a"), &bytes);
    }
    assert_eq!(unfinished(), [""; 0]);
}

fn every_key(more: &[&str]) {
    let long = content(6, PART + 1);
    for key in ["a b", "a+b", "100%", "a#b", "a?b=c&d", "é/ü", "(a)*'!", "a\\b", "~a_b-c.d"].iter().chain(more) {
        write(parts(key), key.as_bytes());
        expect(url(key), key.as_bytes());
        write(parts(key), &long);
        expect(url(key), &long);
    }
}

fn failures() {
    let missing = Writer::url(Remote::new("s3://other-bucket/a")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::OpenFailed, "{missing}");
    assert!(missing.to_string().contains("NoSuchBucket"), "{missing}");
    for length in [1000, PART + 1, 3 * PART] {
        let mut writer = Writer::url(parts("failed")).unwrap();
        writer.write(&content(7, length)).unwrap();
        drop(writer);
    }
    assert_eq!(unfinished(), [""; 0]);
    let error = millstream::Reader::builder().url(url("failed")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OpenFailed);
}

fn existing_objects(store: &Store) {
    let open = || Writer::builder().existing(Existing::CreateNew).url(parts("new"));
    for length in [1000, PART + 1] {
        let mut writer = open().unwrap();
        writer.write(&content(8, length)).unwrap();
        store.put("new", b"of another program");
        assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(open().unwrap_err().kind(), ErrorKind::AlreadyExists);
        expect(url("new"), b"of another program");
        store.remove("new");
        let mut writer = open().unwrap();
        writer.write(&content(8, length)).unwrap();
        writer.close().unwrap();
        expect(url("new"), &content(8, length));
        store.remove("new");
    }
    assert_eq!(unfinished(), [""; 0]);
}

fn what_is_left(store: &Store) {
    ["left/a b", "left/é"].iter().for_each(|key| store.begin(key));
    let mut uploads = Uploads::new(Remote::new("s3://bucket/left/")).unwrap();
    let found: Vec<_> = uploads.by_ref().map(Result::unwrap).collect();
    let urls: Vec<_> = found.iter().map(|upload| &*upload.url).collect();
    assert_eq!(urls, ["s3://bucket/left/a b", "s3://bucket/left/é"]);
    assert!(found.iter().all(|upload| upload.begun.is_some()));
    let look = |id: &str| outcome(url("left/a b"), "0123", Some(id)).unwrap();
    assert_eq!(look(&found[0].id), Outcome::NotWritten);
    for upload in &found {
        uploads.abort(upload).unwrap();
    }
    assert_eq!(look(&found[0].id), Outcome::Unknown);
    assert_eq!(unfinished(), [""; 0]);
}

fn a_list() {
    let keys = ["list/a b#%?+", "list/b/c", "list/é"];
    keys.iter().for_each(|key| write(url(key), b"1234"));
    let listed: Vec<_> = Objects::new(url("list/")).unwrap().map(Result::unwrap).collect();
    let urls: Vec<_> = listed.iter().map(|object| object.url.clone()).collect();
    assert_eq!(urls, keys.map(|key| format!("s3://bucket/{key}")));
    assert!(listed.iter().all(|object| object.size == 4));
}

#[test]
fn uploads_without_permission_are_refused() {
    let variables = [("AWS_SECRET_ACCESS_KEY", "another-secret")];
    with_store("sink::uploads_without_permission_are_refused", versitygw, &variables, |_| {
        let left = Arc::new(Mutex::new(0));
        let remote = url("a").on_unfinished({
            let left = left.clone();
            move |_| *left.lock().unwrap() += 1
        });
        let error = Writer::url(remote).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OpenFailed);
        assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
        assert_eq!(*left.lock().unwrap(), 0);
    });
}
