//! Compressed files are divided at bgzf blocks and zstd frames.

use super::{Event, sequential, union};
use millstream::splits::{Framing, SplitPin, Splits};
use millstream::{Encode, Format, Reader, Writer};
use std::io::Write as _;
use std::path::Path;

/// The first bytes of a bgzf block and of a zstd frame, in random data that neither format can compress: they are in
/// the file as they are, but not where a block or a frame begins.
fn with_false_magics() -> Vec<u8> {
    let mut state = 1u64;
    let mut content = Vec::new();
    while content.len() < 400_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        content.extend_from_slice(&state.to_le_bytes()[3..]);
        match state >> 59 {
            0 => content.extend_from_slice(b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0"),
            1 => content.extend_from_slice(b"\x28\xb5\x2f\xfd\x20\x05\x29\0\0hello"),
            2 => content.extend_from_slice(b"\n\r\n\n"),
            _ => {}
        }
    }
    content
}

fn bgzf(path: &Path, content: &[u8]) {
    let mut out = Writer::builder().encode(Encode::Bgzf).path(path).unwrap();
    out.write_all(content).unwrap();
    out.close().unwrap();
}

/// Frames of 5 to 50,000 bytes, with skippable frames between them.
fn zstd(path: &Path, content: &[u8], has_sizes: bool) {
    let (mut file, mut rest, mut len) = (Vec::new(), content, 5);
    let mut encoder = zstd::bulk::Compressor::new(1).unwrap();
    encoder.include_checksum(true).unwrap();
    while !rest.is_empty() {
        let (frame, next) = rest.split_at(rest.len().min(len));
        let encoded = match has_sizes {
            true => encoder.compress(frame).unwrap(),
            false => zstd::stream::encode_all(frame, 1).unwrap(),
        };
        file.extend_from_slice(&encoded);
        file.extend_from_slice(b"\x50\x2a\x4d\x18\x08\0\0\0\x28\xb5\x2f\xfd\x20\0\0\0");
        (rest, len) = (next, (len * 3) % 50_000 + 5);
    }
    std::fs::write(path, file).unwrap();
}

fn framings() -> Vec<Framing> {
    vec![
        Framing::Lines,
        Framing::Delimiter { bytes: b"\r\n\n".to_vec() },
        Framing::Delimiter { bytes: b"\r\n".to_vec() },
        Framing::Fixed { len: 1000 },
        Framing::Fixed { len: 130_000 },
        Framing::Bson,
    ]
}

#[test]
fn the_splits_of_a_compressed_file_are_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let content = with_false_magics();
    let (gz, zst) = (directory.path().join("a.gz"), directory.path().join("a.zst"));
    bgzf(&gz, &content);
    zstd(&zst, &content, true);
    for path in [&gz, &zst] {
        for framing in framings() {
            let expected = sequential(path, &framing, Reader::builder);
            for size in [1, 1000, 100_000, 1 << 30] {
                let pin = if size == 1000 { SplitPin::Full } else { SplitPin::Identity };
                let plan = Splits::builder().pin(pin).plan(path, framing.clone(), size).unwrap();
                assert_eq!(plan.note().is_some(), framing == Framing::Bson, "{path:?} {framing:?} {size} {plan:?}");
                let is_divided = size < 200_000 && framing != Framing::Bson;
                assert_eq!(plan.len() > 2, is_divided, "{framing:?}, {size}: {}", plan.len());
                let stored = Splits::from_json(&plan.to_json()).unwrap();
                assert!(union(&stored, usize::MAX, Reader::builder) == expected, "{path:?}, {framing:?}, {size}");
            }
        }
    }
}

#[test]
fn damaged_files_give_the_same_error_at_the_same_offset() {
    let directory = tempfile::tempdir().unwrap();
    let content = with_false_magics();
    let (gz, zst) = (directory.path().join("a.gz"), directory.path().join("a.zst"));
    bgzf(&gz, &content);
    zstd(&zst, &content, true);
    for path in [&gz, &zst] {
        let whole = std::fs::read(path).unwrap();
        let half = whole.len() / 2;
        let mut changed = whole.clone();
        changed[half..half + 8].fill(0xff);
        for damaged in [&whole[..half], &whole[..whole.len() - 1], &changed, &[&whole[..], b"garbage"].concat()] {
            std::fs::write(path, damaged).unwrap();
            let expected = sequential(path, &Framing::Lines, Reader::builder);
            assert!(matches!(expected.last(), Some(Event::Error { .. })), "{path:?} {}", damaged.len());
            let plan = Splits::plan(path, Framing::Lines, 10_000).unwrap();
            let mut read = union(&plan, usize::MAX, Reader::builder);
            // A reader of all splits stops at the first error.
            let end = read.iter().position(|event| matches!(event, Event::Error { .. })).unwrap();
            read.truncate(end + 1);
            assert_eq!(read.last(), expected.last(), "{path:?}");
            assert!(read == expected, "{path:?}");
        }
    }
}

#[test]
fn what_is_not_divided_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let content = b"line\n".repeat(10_000);
    let note = |path: &Path| {
        let plan = Splits::plan(path, Framing::Lines, 100).unwrap();
        assert_eq!(plan.len(), 1);
        assert_eq!(union(&plan, usize::MAX, Reader::builder).len(), 10_000);
        plan.note().unwrap().to_string()
    };
    zstd(&path, &content, false);
    assert_eq!(note(&path), "a zstd frame does not contain the size of its content");
    let mut out = Writer::builder().encode(Format::Gzip.into()).path(&path).unwrap();
    out.write_all(&content).unwrap();
    out.close().unwrap();
    assert_eq!(note(&path), "the file is compressed in a format that is decoded from its start");
}
