//! The content of the objects, and reading it.

use std::io::Read;

use millstream::splits::{Framing, Splits};
use millstream::{Error, Reader, Remote};

/// The length of the object that most tests read: several ranges of the default size, and a part of one.
pub(crate) const LARGE: usize = 23_000_000;

/// Returns bytes of which no part occurs twice, so that bytes of a wrong position or version differ.
pub(crate) fn content(version: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    let mut state = version << 32;
    while bytes.len() < length {
        // splitmix64, whose outputs are distinct.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Returns the bytes before the end or the error, and the error.
pub(crate) fn read_all(remote: impl Into<Remote>) -> (Vec<u8>, Option<Error>) {
    match Reader::builder().url(remote) {
        Ok(reader) => read_rest(reader, Vec::new()),
        Err(error) => (Vec::new(), Some(error)),
    }
}

/// Reads the rest of an object, and returns all of its bytes and the error.
pub(crate) fn read_rest(mut reader: Reader, mut bytes: Vec<u8>) -> (Vec<u8>, Option<Error>) {
    let error = reader.read_to_end(&mut bytes).err().map(Error::from_io);
    (bytes, error)
}

/// Reads an object, and checks that it has exactly these bytes.
#[track_caller]
pub(crate) fn expect(remote: impl Into<Remote>, bytes: &[u8]) {
    let (found, error) = read_all(remote);
    assert!(error.is_none(), "{}", error.unwrap());
    assert!(found == bytes, "{} other bytes, not the {} of the object", found.len(), bytes.len());
}

/// Divides an object, and checks that its splits together have exactly these bytes.
#[track_caller]
pub(crate) fn expect_splits(remote: Remote, bytes: &[u8]) {
    for framing in [Framing::Lines, Framing::Fixed { len: 1000 }] {
        let plan = Splits::builder().plan_url(remote.clone(), framing, 700_001).unwrap();
        assert_eq!(plan.file_size(), bytes.len() as u64);
        let mut found = Vec::new();
        for split in &plan {
            Reader::split(split).unwrap().read_to_end(&mut found).unwrap();
        }
        assert!(found == bytes, "{} other bytes, not the {} of the object", found.len(), bytes.len());
    }
}

/// Opens an object in small ranges, and reads its first bytes.
pub(crate) fn begin(remote: impl Into<Remote>) -> (Reader, Vec<u8>) {
    let mut reader = Reader::builder().url(remote.into().range_size(64 << 10).connections(2)).unwrap();
    let mut bytes = vec![0; 1000];
    reader.read_exact(&mut bytes).unwrap();
    (reader, bytes)
}

/// Returns bytes as gzip, which the library itself compresses.
pub(crate) fn compressed(bytes: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.gz");
    let mut writer = millstream::Writer::path(&path).unwrap();
    std::io::Write::write_all(&mut writer, bytes).unwrap();
    writer.close().unwrap();
    std::fs::read(path).unwrap()
}
