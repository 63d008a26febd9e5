//! Readers of JSON: elements of a document in every kind of source, and newline-delimited JSON.

#[path = "../../core/tests/json_twin/mod.rs"]
#[expect(dead_code, reason = "the automaton itself is tested in the core")]
mod json_twin;

use std::io::{Cursor, Read};

use json_twin::Outcome;
use millstream::frame::{Delimiter, JsonLines};
use millstream::{ErrorKind, ReadAhead, Reader, ReaderBuilder, Result};

const DOCUMENT: &[u8] = br#"
{"n": [0], "items": [ {"a": "]"}, -12.5e3 ,"\"x\\", [[], {}], null, "a longer text, of more than a few words"
], "after": {"items": [9]}} "#;

/// Delivers the bytes in pieces of this size.
struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let count = space.len().min(self.1);
        self.0.read(&mut space[..count])
    }
}

/// Reads all elements.
fn read(reader: Result<Reader>) -> (Outcome, String) {
    let (mut outcome, mut message) = (Outcome { records: Vec::new(), error: None }, String::new());
    let mut reader = reader.unwrap();
    let mut delimiter = Delimiter::byte(0x1e);
    loop {
        match reader.next_frame(&mut delimiter) {
            Ok(Some(element)) => outcome.records.push(element.to_vec()),
            Ok(None) => break,
            Err(error) => {
                message = error.to_string();
                outcome.error = Some((error.kind(), error.offset().unwrap_or(u64::MAX)));
            }
        }
    }
    (outcome, message)
}

fn builder(pointer: &str) -> ReaderBuilder {
    Reader::builder().name("doc").json_elements(pointer)
}

#[test]
fn every_capacity_and_piece() {
    let mut broken = DOCUMENT.to_vec();
    broken.truncate(DOCUMENT.len() - 3);
    let mut wrong = DOCUMENT.to_vec();
    wrong[DOCUMENT.len() - 40] = b'!';
    for document in [DOCUMENT, &broken, &wrong] {
        let expected = json_twin::elements(&["items"], 128, document);
        assert!(expected.records.len() >= 5);
        for capacity in [1, 2, 3, 5, 8, 64, 4096] {
            for piece in [1, 2, 7, 1 << 20] {
                for ahead in [ReadAhead::Off, ReadAhead::On] {
                    let pieces = Pieces(Cursor::new(document.to_vec()), piece);
                    let reader = builder("/items").capacity(capacity).read_ahead(ahead).from_read(pieces);
                    assert_eq!(read(reader).0, expected, "capacity {capacity}, pieces of {piece}");
                }
            }
        }
        let memory = read(builder("/items").memory(document.to_vec())).0;
        assert_eq!(memory, expected);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::write(&path, document).unwrap();
        assert_eq!(read(builder("/items").path(&path)).0, expected);
        assert_eq!(read(builder("/items").mapped(&path)).0, expected);
        assert_eq!(read(builder("/items").command(["cat".as_ref(), path.as_os_str()])).0, expected);
    }
}

#[test]
fn records_that_are_cut_off_are_none() {
    let (outcome, message) = read(builder("").memory("[1, {\"a\": tru"));
    assert_eq!((outcome.records, outcome.error), (vec![b"1".to_vec()], Some((ErrorKind::DocumentTruncated, 13))));
    assert_eq!(
        message,
        "doc: document truncated: found the end of the document inside an object of element 1, and 9 bytes of an \
         unfinished record, \"{\\\"a\\\": tru\", expected true, false or null, at byte 13, record 1 (the first is 0); check \
         whether the input was cut short or contains a wrong length"
    );
}

#[test]
fn the_failure_of_a_command_is_what_cut_the_document_short() {
    let (outcome, _) = read(builder("").command(["sh", "-c", "printf '[1,2'; exit 3"]));
    assert_eq!((outcome.records.len(), outcome.error.unwrap().0), (1, ErrorKind::CommandFailed));
    // All elements arrived, but the command failed.
    let (outcome, _) = read(builder("").command(["sh", "-c", "printf '[1,2]'; exit 3"]));
    assert_eq!((outcome.records.len(), outcome.error.unwrap().0), (2, ErrorKind::CommandFailed));
}

#[test]
fn an_element_is_delivered_before_the_next_one_arrives() {
    let (mut input, output) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut reader = builder("").fd(std::os::fd::OwnedFd::from(output)).unwrap();
    std::io::Write::write_all(&mut input, b"[{}").unwrap();
    assert_eq!(reader.next_frame(&mut Delimiter::byte(0x1e)).unwrap(), Some(&b"{}"[..]));
    std::io::Write::write_all(&mut input, b" , [2]").unwrap();
    assert_eq!(reader.next_frame(&mut Delimiter::byte(0x1e)).unwrap(), Some(&b"[2]"[..]));
    std::io::Write::write_all(&mut input, b"]\n").unwrap();
    drop(input);
    assert_eq!(reader.next_frame(&mut Delimiter::byte(0x1e)).unwrap(), None);
}

#[cfg(feature = "compression")]
#[test]
fn compressed_documents() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.json.gz");
    let mut writer = millstream::Writer::path(&path).unwrap();
    writer.write(DOCUMENT).unwrap();
    writer.close().unwrap();
    let expected = json_twin::elements(&["items"], 128, DOCUMENT);
    assert_eq!(read(builder("/items").path(&path)).0, expected);
    assert_eq!(read(builder("/items").memory(std::fs::read(&path).unwrap())).0, expected);
}

#[test]
fn a_document_that_is_larger_than_all_memory_limits() {
    // 100 MB of a value off the path, in a buffer of 256 KiB.
    let (before, after) = (Cursor::new(b"{\"x\":\"".to_vec()), Cursor::new(b"\",\"a\":[1]}".to_vec()));
    let document = before.chain(std::io::repeat(b'y').take(100 << 20)).chain(after);
    let mut reader = builder("/a").from_read(document).unwrap();
    assert_eq!(reader.next_frame(&mut Delimiter::byte(0x1e)).unwrap(), Some(&b"1"[..]));
    assert_eq!(reader.next_frame(&mut Delimiter::byte(0x1e)).unwrap(), None);
    // An element over the limit is an ordinary record that is too long, and can be skipped.
    let long = format!("[\"{}\",2]", "x".repeat(2000));
    let mut reader = builder("").record_limit(1000).capacity(100).memory(long).unwrap();
    let error = reader.next_frame(&mut Delimiter::byte(0x1e)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RecordTooLong);
    assert!(reader.skip_record(&mut Delimiter::byte(0x1e)).unwrap());
    assert_eq!(reader.next_frame(&mut Delimiter::byte(0x1e)).unwrap(), Some(&b"2"[..]));
}

#[test]
fn options_that_contradict_each_other() {
    for builder in [builder("a"), builder("/~"), Reader::builder().json_depth(3)] {
        assert_eq!(builder.memory("[]").unwrap_err().kind(), ErrorKind::InvalidOption);
    }
    let (outcome, message) = read(builder("").json_depth(1).memory("[1,[]]"));
    assert_eq!(outcome.error, Some((ErrorKind::TooDeep, 3)));
    assert!(message.contains("found arrays and objects nested more than 1 deep"), "{message}");
}

#[test]
fn invalid_lines_are_skipped() {
    let mut reader = Reader::memory("1\n{\"a\": tru}\n\n[2]\n\"\n3").unwrap();
    let (mut lines, mut seen, mut bad) = (JsonLines::checked(), Vec::new(), Vec::new());
    loop {
        match reader.next_batch(&mut lines) {
            Ok(None) => break,
            Ok(Some(batch)) => seen.extend(batch.iter().map(<[u8]>::to_vec)),
            Err(error) => {
                bad.push((
                    error.line().unwrap(),
                    error.column().unwrap(),
                    error.offset().unwrap(),
                    error.record().unwrap(),
                ));
                assert!(reader.skip_record(&mut lines).unwrap());
            }
        }
    }
    assert_eq!(seen, [&b"1"[..], b"", b"[2]", b"3"]);
    assert_eq!(bad, [(2, 10, 11, 1), (5, 2, 19, 4)]);
}
