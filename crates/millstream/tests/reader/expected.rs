//! What a source is expected to have: the number of its bytes and records, and their hash.

use std::fs;
use std::path::Path;

use millstream::{ErrorKind, Follow, ReadAhead, Reader, ReaderBuilder, Result};

use crate::sample::directory;

const TEXT: &str = "one\ntwo\nthree\n";
const SHA256: &str = "sha256:b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2";

type Open = Box<dyn Fn(ReaderBuilder) -> Result<Reader>>;

/// Opens the text as each kind of source.
fn sources(directory: &Path) -> Vec<(&'static str, Open)> {
    let path = directory.join("text");
    fs::write(&path, TEXT).unwrap();
    let (one, other) = (path.clone(), path.clone());
    vec![
        ("path", Box::new(move |builder| builder.path(&one))),
        ("mapped", Box::new(move |builder| builder.mapped(&other))),
        ("fd", Box::new(move |builder| builder.fd(fs::File::open(&path).unwrap()))),
        ("memory", Box::new(|builder| builder.memory(TEXT))),
        ("read", Box::new(|builder| builder.from_read(TEXT.as_bytes()))),
        ("command", Box::new(|builder| builder.command(["printf", "%s", TEXT]))),
    ]
}

/// Reads all lines, and returns their number and the error.
fn lines(mut reader: Reader) -> (usize, Option<ErrorKind>) {
    let mut count = 0;
    loop {
        match reader.next_line() {
            Ok(Some(_)) => count += 1,
            Ok(None) => return (count, None),
            Err(error) => {
                assert_eq!(reader.next_line().unwrap(), None);
                assert_eq!(reader.close().unwrap_err().kind(), error.kind());
                return (count, Some(error.kind()));
            }
        }
    }
}

/// What an expectation gives for every source, with and without a thread that reads ahead.
#[track_caller]
fn gives(expect: impl Fn(ReaderBuilder) -> ReaderBuilder, expected: (usize, Option<ErrorKind>)) {
    let place = directory();
    for (name, open) in sources(place.path()) {
        for read_ahead in [ReadAhead::Off, ReadAhead::On] {
            let reader = open(expect(Reader::builder().read_ahead(read_ahead))).unwrap();
            assert_eq!(lines(reader), expected, "{name}, {read_ahead:?}");
        }
    }
}

const MISMATCH: Option<ErrorKind> = Some(ErrorKind::ContentMismatch);

#[test]
fn the_number_of_bytes() {
    gives(|builder| builder.expect_bytes(14), (3, None));
    gives(|builder| builder.expect_bytes(15), (3, MISMATCH));
    gives(|builder| builder.expect_bytes(u64::MAX), (3, MISMATCH));
    // Nothing beyond the expected bytes is delivered, and what precedes them is no record.
    gives(|builder| builder.expect_bytes(8), (2, MISMATCH));
    gives(|builder| builder.expect_bytes(10), (2, MISMATCH));
    gives(|builder| builder.expect_bytes(0), (0, MISMATCH));
    assert_eq!(lines(Reader::builder().expect_bytes(0).memory("").unwrap()), (0, None));
}

#[test]
fn the_number_of_records() {
    gives(|builder| builder.expect_records(3), (3, None));
    gives(|builder| builder.expect_records(2), (3, MISMATCH));
    gives(|builder| builder.expect_records(4), (3, MISMATCH));
    let mut reader = Reader::builder().expect_records(4).memory(TEXT).unwrap();
    let mut lines = millstream::frame::Lines::new();
    assert_eq!(reader.next_batch(&mut lines).unwrap().unwrap().len(), 3);
    let error = reader.next_batch(&mut lines).unwrap_err();
    assert_eq!((error.found(), error.expected()), (Some("the end after 3 records"), Some("4 records")));
}

#[test]
fn the_hash() {
    gives(|builder| builder.expect_hash(SHA256), (3, None));
    gives(|builder| builder.expect_hash(SHA256.to_uppercase().replace("SHA", "sha")), (3, None));
    gives(|builder| builder.expect_hash("crc32c:37a7740c").expect_bytes(14), (3, None));
    let blake3 = "blake3:10e1a16f0805bd7128d2ff11264ffd33566f0ad1d980ebd0f2b3848815d2e72b";
    gives(|builder| builder.expect_hash(blake3), (3, None));
    gives(|builder| builder.expect_hash("crc32c:37a7740d"), (3, MISMATCH));
    for hash in ["", "sha256", "sha256:", "md5:0", "crc32c:37a7740", "crc32c:37a7740g", "crc32c:37a7740c0"] {
        let error = Reader::builder().expect_hash(hash).memory(TEXT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{hash}");
    }
}

/// The bytes are those before decoding.
#[cfg(feature = "compression")]
#[test]
fn a_compressed_source() {
    let place = directory();
    let path = place.path().join("text.gz");
    let mut writer = millstream::Writer::path(&path).unwrap();
    writer.write(TEXT.as_bytes()).unwrap();
    writer.close().unwrap();
    let size = fs::metadata(&path).unwrap().len();
    let open = |bytes| lines(Reader::builder().expect_bytes(bytes).path(&path).unwrap());
    assert_eq!((open(size), open(size + 1)), ((3, None), (3, MISMATCH)));
    let (count, error) = open(size - 1);
    assert!(count <= 3 && error == MISMATCH, "{count} {error:?}");
}

/// A command that fails is reported as such.
#[test]
fn a_failure_of_the_source_comes_first() {
    let reader = Reader::builder().expect_bytes(4).command(["sh", "-c", "echo one; exit 3"]).unwrap();
    assert_eq!(lines(reader), (1, Some(ErrorKind::CommandFailed)));
}

#[test]
fn parts_and_growing_files_are_refused() {
    let place = directory();
    let path = place.path().join("text");
    fs::write(&path, TEXT).unwrap();
    let expectations: [fn(ReaderBuilder) -> ReaderBuilder; 3] = [
        |builder| builder.expect_bytes(14),
        |builder| builder.expect_records(3),
        |builder| builder.expect_hash(SHA256),
    ];
    for expect in expectations {
        let error = expect(Reader::builder()).follow(Follow::Growing).path(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        let splits = millstream::splits::Splits::plan(&path, millstream::splits::Framing::Lines, 1 << 20).unwrap();
        let error = expect(Reader::builder()).split(splits.iter().next().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
    }
}
