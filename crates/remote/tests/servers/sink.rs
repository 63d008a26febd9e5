//! Objects of S3 stores as sinks. The tests of the library's `Writer::url` have a store that fails as stores do.

use std::sync::{Arc, Mutex};

use millstream::remote::{Objects, Outcome, Uploads, outcome};
use millstream::{ErrorKind, Existing, Remote, Writer};

use crate::azure::azurite;
use crate::read::{compressed, content, expect};
use crate::s3::{moto, s3s_fs};
use crate::store::{ACCOUNT, Kind, Store, with_store};
use crate::versitygw::versitygw;

/// The smallest part that stores accept.
const PART: usize = 5 << 20;

fn parts(store: &Store, key: &str) -> Remote {
    store.url(key).part_size(PART as u64)
}

fn write(remote: Remote, bytes: &[u8]) {
    let mut writer = Writer::url(remote).unwrap();
    writer.write(bytes).unwrap();
    writer.close().unwrap();
}

/// The unfinished uploads of the bucket. Azure and s3s-fs have no list of them.
fn unfinished(store: &Store) -> Vec<String> {
    if store.kind == Kind::Azure {
        return Vec::new();
    }
    let listed = Uploads::new(Remote::new("s3://bucket")).unwrap();
    match listed.map(|upload| upload.map(|upload| upload.url)).collect::<Result<_, _>>() {
        Err(error) if error.to_string().contains("ListMultipartUploads is not implemented") => Vec::new(),
        found => found.unwrap(),
    }
}

#[test]
fn objects_written_to_versitygw() {
    with_store("sink::objects_written_to_versitygw", Kind::S3, versitygw, &[], |store| {
        every_length(store);
        // It keeps objects in files, so a folder cannot have the name of an object.
        every_key(store, &[]);
        missing_bucket(store);
        failures(store);
        existing_objects(store);
        what_is_left(store);
        a_list(store, &NAMES);
    });
}

#[test]
fn objects_written_to_moto() {
    with_store("sink::objects_written_to_moto", Kind::S3, moto, &[], |store| {
        every_length(store);
        every_key(store, &["b//c", "/d"]);
        missing_bucket(store);
        failures(store);
        existing_objects(store);
        what_is_left(store);
        a_list(store, &NAMES);
    });
}

#[test]
fn objects_written_to_s3s_fs() {
    with_store("sink::objects_written_to_s3s_fs", Kind::S3, s3s_fs, &[], |store| {
        every_length(store);
        every_key(store, &["b//c"]);
        failures(store);
        existing_objects(store);
        // It says that names are encoded, and does not encode them.
        a_list(store, &["list/a b", "list/b/c", "list/é"]);
        let id = store.begin("left");
        assert_eq!(outcome(store.url("left"), "0123", Some(&id)).unwrap(), Outcome::NotWritten);
        // It creates missing buckets.
        for length in [1000, PART + 1] {
            let remote = || Remote::new("s3://other-bucket/a").part_size(PART as u64);
            write(remote(), &content(7, length));
            expect(remote(), &content(7, length));
        }
    });
}

#[test]
fn objects_written_to_azurite() {
    with_store("sink::objects_written_to_azurite", Kind::Azure, azurite, &[], |store| {
        every_length(store);
        every_key(store, &["b//c", "/d", "a\nb", "日本"]);
        missing_bucket(store);
        failures(store);
        existing_objects(store);
        a_list(store, &NAMES);
        blocks_of_two_writers(store);
        headers_of_blobs(store);
        a_long_list(store);
    });
}

/// The blocks of a write never appear in an object of another one.
fn blocks_of_two_writers(store: &Store) {
    let [mut first, mut second] = [0, 1].map(|_| Writer::url(parts(store, "two")).unwrap());
    for at in 0..3 {
        first.write(&content(at, PART)).unwrap();
        second.write(&content(10 + at, PART)).unwrap();
    }
    second.close().unwrap();
    let second: Vec<u8> = (0..3).flat_map(|at| content(10 + at, PART)).collect();
    expect(store.url("two"), &second);
    let error = first.close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RemoteFailed, "{error}");
    assert!(error.to_string().contains("InvalidBlockList"), "{error}");
    expect(store.url("two"), &second);
    assert_eq!(Uploads::new(Remote::new("az://bucket")).err().map(|error| error.kind()), Some(ErrorKind::Unsupported));
    let look = outcome(store.url("two"), "0123", Some("0123")).unwrap();
    assert_eq!(look, Outcome::Unknown);
}

/// They describe the object, not the list of blocks that completes it.
fn headers_of_blobs(store: &Store) {
    for length in [10, 2 * PART] {
        // Random bytes are not compressed.
        let text = content(9, length);
        let remote = parts(store, "headers").header("Content-Encoding", "gzip").header("Content-Type", "text/csv");
        write(remote.header("x-ms-meta-team", "one"), &compressed(&text));
        expect(store.url("headers"), &text);
        let path = format!("/{ACCOUNT}/bucket?comp=list&include=metadata&prefix=headers&restype=container");
        let (_, list) = store.request("GET", &path, &[], b"");
        for part in ["Type>text/csv</", "Encoding>gzip</", "<team>one</team>", "<millstream_id>"] {
            assert!(list.contains(part), "{length}: {list}");
        }
    }
}

/// A list of several pages.
fn a_long_list(store: &Store) {
    (0..1003).for_each(|at| store.put(&format!("many/{at:04}"), b""));
    let urls: Vec<_> = Objects::new(store.url("many/")).unwrap().map(|object| object.unwrap().url).collect();
    assert_eq!(urls, (0..1003).map(|at| store.address_of(&format!("many/{at:04}"))).collect::<Vec<_>>());
}

fn every_length(store: &Store) {
    for length in [0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1_000_000] {
        let bytes = content(5, length);
        write(parts(store, "a"), &bytes);
        expect(store.url("a"), &bytes);
    }
    assert_eq!(unfinished(store), [""; 0]);
}

fn every_key(store: &Store, more: &[&str]) {
    let long = content(6, PART + 1);
    for key in ["a b", "a+b", "100%", "a#b", "a?b=c&d", "é/ü", "(a)*'!", "a\\b", "~a_b-c.d"].iter().chain(more) {
        write(parts(store, key), key.as_bytes());
        expect(store.url(key), key.as_bytes());
        write(parts(store, key), &long);
        expect(store.url(key), &long);
    }
}

fn missing_bucket(store: &Store) {
    let missing = Writer::url(Remote::new(format!("{}://other-bucket/a", store.kind.scheme()))).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::OpenFailed, "{missing}");
    let code = if store.kind == Kind::Azure { "ContainerNotFound" } else { "NoSuchBucket" };
    assert!(missing.to_string().contains(code), "{missing}");
}

fn failures(store: &Store) {
    for length in [1000, PART + 1, 3 * PART] {
        let mut writer = Writer::url(parts(store, "failed")).unwrap();
        writer.write(&content(7, length)).unwrap();
        drop(writer);
    }
    assert_eq!(unfinished(store), [""; 0]);
    let error = millstream::Reader::builder().url(store.url("failed")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OpenFailed);
}

fn existing_objects(store: &Store) {
    let open = || Writer::builder().existing(Existing::CreateNew).url(parts(store, "new"));
    for length in [1000, PART + 1] {
        let mut writer = open().unwrap();
        writer.write(&content(8, length)).unwrap();
        store.put("new", b"of another program");
        assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(open().unwrap_err().kind(), ErrorKind::AlreadyExists);
        expect(store.url("new"), b"of another program");
        store.remove("new");
        let mut writer = open().unwrap();
        writer.write(&content(8, length)).unwrap();
        writer.close().unwrap();
        expect(store.url("new"), &content(8, length));
        store.remove("new");
    }
    assert_eq!(unfinished(store), [""; 0]);
}

fn what_is_left(store: &Store) {
    ["left/a b", "left/é"].iter().for_each(|key| drop(store.begin(key)));
    let mut uploads = Uploads::new(Remote::new("s3://bucket/left/")).unwrap();
    let found: Vec<_> = uploads.by_ref().map(Result::unwrap).collect();
    let urls: Vec<_> = found.iter().map(|upload| &*upload.url).collect();
    assert_eq!(urls, ["s3://bucket/left/a b", "s3://bucket/left/é"]);
    assert!(found.iter().all(|upload| upload.begun.is_some()));
    let look = |id: &str| outcome(store.url("left/a b"), "0123", Some(id)).unwrap();
    assert_eq!(look(&found[0].id), Outcome::NotWritten);
    for upload in &found {
        uploads.abort(upload).unwrap();
    }
    assert_eq!(look(&found[0].id), Outcome::Unknown);
    assert_eq!(unfinished(store), [""; 0]);
}

/// Names that are encoded in lists.
const NAMES: [&str; 3] = ["list/a b#%?+", "list/b/c", "list/é"];

fn a_list(store: &Store, keys: &[&str]) {
    keys.iter().for_each(|key| write(store.url(key), b"1234"));
    let listed: Vec<_> = Objects::new(store.url("list/")).unwrap().map(Result::unwrap).collect();
    let urls: Vec<_> = listed.iter().map(|object| object.url.clone()).collect();
    assert_eq!(urls, keys.iter().map(|key| store.address_of(key)).collect::<Vec<_>>());
    assert!(listed.iter().all(|object| object.size == 4));
}

#[test]
fn uploads_without_permission_are_refused() {
    let variables = [("AWS_SECRET_ACCESS_KEY", "another-secret")];
    with_store("sink::uploads_without_permission_are_refused", Kind::S3, versitygw, &variables, |store| {
        let left = Arc::new(Mutex::new(0));
        let remote = store.url("a").on_unfinished({
            let left = left.clone();
            move |_| *left.lock().unwrap() += 1
        });
        let error = Writer::url(remote).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OpenFailed);
        assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
        assert_eq!(*left.lock().unwrap(), 0);
    });
}
