//! Streams of documents without an operating system: read from memory and written to a vector.

use millstream_bson::{DocumentBuf, Documents, OnBad, columns, encode_to_writer, to_writer};
use millstream_core::{ErrorKind, InMemory, ReadRecords};
use std::collections::BTreeMap;

/// `{n: 0}`, `{n: 1}`, …
fn stream(count: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..count {
        encode_to_writer(&mut bytes, &BTreeMap::from([("n", n)])).unwrap();
    }
    bytes
}

#[test]
fn documents_one_by_one() {
    let mut documents = Documents::new(InMemory::new(stream(1000)));
    for n in 0..1000 {
        let document = documents.next().unwrap().unwrap();
        assert_eq!((document.require::<i32>("n").unwrap(), document.offset()), (n, 12 * n as u64));
    }
    assert!(documents.next().unwrap().is_none());
    assert_eq!((documents.reader().offset(), documents.reader().record()), (12_000, 1000));
}

#[test]
fn documents_in_batches() {
    let mut documents = Documents::new(InMemory::new(stream(30_000)));
    let mut sum = 0;
    while let Some(batch) = documents.next_batch().unwrap() {
        sum += batch.iter().map(|document| i64::from(document.require::<i32>("n").unwrap())).sum::<i64>();
    }
    assert_eq!(sum, (0..30_000).sum::<i64>());
}

#[test]
fn a_stream_that_ends_within_a_document() {
    let bytes = stream(2);
    let mut documents = Documents::new(InMemory::new(&bytes[..20]));
    assert!(documents.next().unwrap().is_some());
    let error = documents.next().unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.record()), (ErrorKind::FrameTruncated, Some(12), Some(1)));
    assert!(documents.next().unwrap().is_none());
}

#[test]
fn what_is_wrong_can_be_skipped() {
    let mut bytes = stream(5);
    bytes[12 + 4] = 0x77; // a type that does not exist
    let mut documents = Documents::new(InMemory::new(bytes)).on_bad(OnBad::Skip);
    let mut numbers = Vec::new();
    while let Some(document) = documents.next().unwrap() {
        numbers.push(document.require::<i32>("n").unwrap());
    }
    assert_eq!((numbers, documents.skipped().count()), (vec![0, 2, 3, 4], 1));
}

#[test]
fn documents_that_own_their_bytes() {
    let mut input = InMemory::new(stream(2));
    for n in 0..2 {
        let document = DocumentBuf::read(&mut input).unwrap().unwrap();
        assert_eq!(document.document().get("n").unwrap(), Some(n));
    }
    assert!(DocumentBuf::read(&mut input).unwrap().is_none());
}

#[test]
fn columns_of_a_stream() {
    let mut documents = Documents::new(InMemory::new(stream(10)));
    let sample = columns::Sample::take(&mut documents, 4, 1 << 20).unwrap();
    let schema = sample.infer(columns::OnMixed::Error).unwrap();
    let mut batches = columns::Batches::new(sample, documents, &schema, columns::Options::new()).unwrap();
    assert_eq!(batches.next_batch().unwrap().unwrap().len(), 10);
    assert!(batches.next_batch().unwrap().is_none());
}

#[test]
fn both_families_write_the_same() {
    let value = BTreeMap::from([("n", 42)]);
    let (mut derived, mut by_serde) = (Vec::new(), Vec::new());
    encode_to_writer(&mut derived, &value).unwrap();
    to_writer(&mut by_serde, &value).unwrap();
    assert_eq!(derived, b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0");
    assert_eq!(derived, by_serde);
}
