//! Compressed files are divided at bgzf blocks, zstd frames and the points of an index.

use super::{Event, read, sequential, union};
use millstream::splits::{Framing, SplitPin, Splits};
use millstream::{Encode, ErrorKind, Format, GzipIndex, Reader, Writer};
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
fn the_records_of_a_compressed_file_are_numbered_only_if_it_is_one_split() {
    let directory = tempfile::tempdir().unwrap();
    let gz = directory.path().join("a.gz");
    bgzf(&gz, &with_false_magics());
    let plan = |framing, size| Splits::builder().number(true).plan(&gz, framing, size);
    let error = plan(Framing::Lines, 100_000).unwrap_err();
    assert_eq!(
        (error.kind(), error.found()),
        (ErrorKind::Unsupported, Some("numbers of the records of a compressed file"))
    );
    assert_eq!(plan(Framing::Lines, 1 << 30).unwrap().len(), 1);
    assert!(plan(Framing::Fixed { len: 1000 }, 100_000).unwrap().iter().all(|split| split.first_record().is_some()));
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
    let expected = "the file is compressed in a format that is decoded from its start; make an index of it";
    assert_eq!(note(&path), expected);
}

/// One member of plain gzip.
fn member(content: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Writes an index at this path.
fn index(path: &Path, to: &Path) -> GzipIndex {
    let index = GzipIndex::build(path, GzipIndex::MIN_SPACING, |_, _| Ok(())).unwrap();
    index.write(std::fs::File::create(to).unwrap()).unwrap();
    index
}

#[test]
fn the_splits_of_an_indexed_gzip_file_are_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let content = with_false_magics();
    let (half, path) = (content.len() / 2, directory.path().join("a.gz"));
    for (file, is_named) in [
        (member(&content, 6), false),
        (member(&content, 0), true),
        ([member(&content[..half], 1), member(b"", 6), member(&content[half..], 9)].concat(), false),
    ] {
        std::fs::write(&path, &file).unwrap();
        let stored = if is_named { directory.path().join("index") } else { GzipIndex::usual_path(&path) };
        let points = index(&path, &stored).offsets().len();
        assert!(points > 3, "{points}");
        for framing in framings() {
            let expected = sequential(&path, &framing, Reader::builder);
            for size in [1, 100_000, 1 << 30] {
                let pin = if size == 1 { SplitPin::Full } else { SplitPin::Identity };
                let builder = Splits::builder().pin(pin);
                let builder = if is_named { builder.index(&stored) } else { builder };
                let plan = builder.plan(&path, framing.clone(), size).unwrap();
                assert_eq!(plan.note().is_some(), framing == Framing::Bson, "{framing:?} {size} {plan:?}");
                let is_divided = size < 200_000 && framing != Framing::Bson;
                assert_eq!(plan.len() > 2, is_divided, "{framing:?}, {size}: {}", plan.len());
                let text = plan.to_json();
                assert_eq!(text.contains("\"index\":"), is_named);
                let stored = Splits::from_json(&text).unwrap();
                assert_eq!(stored, plan);
                for max in [1, usize::MAX] {
                    assert!(union(&stored, max, Reader::builder) == expected, "{framing:?}, {size}, {max}");
                }
            }
        }
        std::fs::remove_file(stored).unwrap();
    }
}

#[test]
fn a_copy_has_its_own_index() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("a.gz"), directory.path().join("b.gz"));
    std::fs::write(&path, member(&with_false_magics(), 6)).unwrap();
    index(&path, &GzipIndex::usual_path(&path));
    let plan = Splits::builder().pin(SplitPin::Ends).plan(&path, Framing::Lines, 100_000).unwrap();
    std::fs::rename(&path, &copy).unwrap();
    let last = plan.iter().last().unwrap().clone().with_path(&copy);
    assert_eq!(Reader::split(&last).unwrap_err().kind(), ErrorKind::OpenFailed);
    std::fs::rename(GzipIndex::usual_path(&path), GzipIndex::usual_path(&copy)).unwrap();
    assert!(Reader::split(&last).unwrap().next_line().unwrap().is_some());
}

#[test]
fn an_index_that_cannot_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let content = with_false_magics();
    let path = directory.path().join("a.gz");
    std::fs::write(&path, member(&content, 0)).unwrap();
    let stored = GzipIndex::usual_path(&path);
    let points = index(&path, &stored).offsets().len();
    let whole = std::fs::read(&stored).unwrap();
    let check = |bytes: &[u8], kind: ErrorKind, text: &str| {
        std::fs::write(&stored, bytes).unwrap();
        let error = Splits::builder().index(&stored).plan(&path, Framing::Lines, 1000).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let message = error.to_string();
        assert!(message.contains("a.gz.gzidx") && message.contains(text), "{message}");
        // One that is found is not used, and the plan says why.
        let plan = Splits::plan(&path, Framing::Lines, 1000).unwrap();
        assert_eq!(plan.len(), 1);
        assert!(plan.note().unwrap().contains(text), "{:?}", plan.note());
        assert!(union(&plan, usize::MAX, Reader::builder) == sequential(&path, &Framing::Lines, Reader::builder));
    };
    for end in [0, 3, 20, 40, whole.len() / 2, whole.len() - 1] {
        check(&whole[..end], ErrorKind::DecodeTruncated, "the end of the gzip index");
    }
    check(&[&whole[..], b"x"].concat(), ErrorKind::DecodeDamaged, "after the checksums");
    check(&whole[..whole.len() - 16 - 12 * points], ErrorKind::Unsupported, "without checksums");
    let with = |at: usize, byte: u8| [&whole[..at], &[byte], &whole[at + 1..]].concat();
    check(&with(5, 2), ErrorKind::Unsupported, "version 2");
    check(&with(0, b'X'), ErrorKind::DecodeDamaged, "GZIDX");
    check(&with(40, whole[40] ^ 1), ErrorKind::DecodeDamaged, "make the index again");
    // Another file: of another length, and of the same.
    let mut other = content.clone();
    other[10] ^= 1;
    std::fs::write(&path, member(&other, 0)).unwrap();
    check(&whole, ErrorKind::InvalidOption, "another end");
    std::fs::write(&path, member(&content, 6)).unwrap();
    check(&whole, ErrorKind::InvalidOption, "make the index again");
    // A file that has no index.
    for bytes in [b"plain\n".to_vec(), zstd::encode_all(&content[..], 1).unwrap()] {
        let path = directory.path().join("b");
        std::fs::write(&path, bytes).unwrap();
        let error = Splits::builder().index(&stored).plan(&path, Framing::Lines, 1000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
    }
    let missing = directory.path().join("none");
    let error = Splits::builder().index(&missing).plan(&path, Framing::Lines, 1000).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::OpenFailed, missing.to_str()));
}

#[test]
fn an_index_that_changes_after_planning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.gz");
    std::fs::write(&path, member(&with_false_magics(), 0)).unwrap();
    let stored = GzipIndex::usual_path(&path);
    index(&path, &stored);
    let plan = Splits::plan(&path, Framing::Lines, 1000).unwrap();
    let mut whole = std::fs::read(&stored).unwrap();
    let second = plan.iter().nth(2).unwrap();
    let at = whole.len() / 2;
    whole[at..at + 40_000].fill(b'x');
    std::fs::write(&stored, &whole).unwrap();
    let damaged: Vec<_> = plan.iter().filter_map(|split| Reader::split(split).err()).collect();
    assert!((1..=3).contains(&damaged.len()), "{damaged:?}");
    assert!(damaged.iter().all(|error| error.kind() == ErrorKind::DecodeDamaged && error.name() == stored.to_str()));
    std::fs::write(&stored, &whole[..100]).unwrap();
    assert_eq!(Reader::split(second).unwrap_err().kind(), ErrorKind::DecodeTruncated);
    // Split numbers that do not fit together are refused.
    let json = second.to_json();
    for (from, to) in
        [("\"bits\":0", "\"bits\":8"), ("\"window\":{", "\"window\":null,\"x\":{"), ("\"at\":", "\"at\":1")]
    {
        assert!(json.contains(from), "{json}");
        assert!(millstream::splits::Split::from_json(&json.replacen(from, to, 1)).is_err(), "{from}");
    }
}

/// The bytes of records that are not those of one reader of the whole file are never returned, whatever has changed since
/// the index was made; and the damage is an error.
#[test]
fn a_file_that_has_changed_since_its_index_was_made() {
    let directory = tempfile::tempdir().unwrap();
    let content = with_false_magics();
    let path = directory.path().join("a.gz");
    for level in [0, 6] {
        let file = [member(&content, level), member(&content[..100_000], 0)].concat();
        std::fs::write(&path, &file).unwrap();
        index(&path, &GzipIndex::usual_path(&path));
        let end = file.len() - 100_043 - 8;
        for at in (20..end).step_by(7919).chain([end - 2, end + 2]) {
            let mut changed = file.clone();
            changed[at] ^= 4;
            std::fs::write(&path, &changed).unwrap();
            let plan = Splits::plan(&path, Framing::Lines, 1000).unwrap();
            assert_eq!(plan.note(), None);
            let mut found = union(&plan, usize::MAX, Reader::builder);
            let first = found.iter().position(|event| matches!(event, Event::Error { .. }));
            found.truncate(first.expect("an error") + 1);
            let Some(Event::Error { kind: ErrorKind::DecodeDamaged, .. }) = found.pop() else {
                panic!("level {level}, byte {at}: {found:?}");
            };
            let mut expected = sequential(&path, &Framing::Lines, Reader::builder);
            assert!(
                matches!(expected.pop(), Some(Event::Error { kind: ErrorKind::DecodeDamaged, .. })),
                "{level} {at}"
            );
            let common = found.len().min(expected.len());
            assert!(found[..common] == expected[..common], "level {level}, byte {at}");
        }
    }
}

/// Returns the places of the blocks of a bgzf file after the first one, by its headers: offsets in the file and in the
/// decoded data.
fn blocks(file: &[u8]) -> Vec<(u64, u64)> {
    let (mut places, mut at, mut decoded) = (Vec::new(), 0, 0);
    while at < file.len() {
        let len = usize::from(u16::from_le_bytes([file[at + 16], file[at + 17]])) + 1;
        decoded += u64::from(u32::from_le_bytes(file[at + len - 4..at + len].try_into().unwrap()));
        at += len;
        places.push((at as u64, decoded));
    }
    places.pop();
    places
}

/// Writes bgzip's index.
fn gzi(path: &Path, places: &[(u64, u64)]) {
    let numbers = places.iter().flat_map(|&(at, decoded)| [at, decoded]);
    let numbers = std::iter::once(places.len() as u64).chain(numbers);
    std::fs::write(path, numbers.flat_map(u64::to_le_bytes).collect::<Vec<_>>()).unwrap();
}

/// Reads all splits. They give what one reader gives, or stop before that with an error about the table.
fn is_right_or_refused(path: &Path, framing: &Framing) -> bool {
    let expected = sequential(path, framing, Reader::builder);
    let plan = Splits::plan(path, framing.clone(), 1000).unwrap();
    let (mut found, mut records) = (Vec::new(), 0);
    for split in &plan {
        let mut reader = Reader::split(split).unwrap();
        let base = if split.first_record().is_some() { 0 } else { records };
        records += read(&mut reader, &mut *framing.framer().unwrap(), usize::MAX, base, &mut found);
        if found.iter().any(|event| matches!(event, Event::Error { .. })) {
            break;
        }
    }
    if found == expected {
        return true;
    }
    found.truncate(found.iter().position(|event| matches!(event, Event::Error { .. })).expect("an error") + 1);
    let Some(Event::Error { kind: ErrorKind::DecodeDamaged, found: Some(text), .. }) = found.pop() else { panic!() };
    assert!(text.contains("the table of places"), "{text}");
    assert!(found == expected[..found.len()], "{framing:?}");
    false
}

#[test]
fn the_index_of_bgzip_is_used_if_it_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.gz");
    let table = directory.path().join("a.gz.gzi");
    bgzf(&path, &with_false_magics());
    let places = blocks(&std::fs::read(&path).unwrap());
    let framings = [Framing::Lines, Framing::Fixed { len: 1000 }];
    let without = framings.clone().map(|framing| Splits::plan(&path, framing, 1000).unwrap());
    gzi(&table, &places);
    for (framing, without) in framings.iter().zip(without) {
        assert_eq!(Splits::plan(&path, framing.clone(), 1000).unwrap(), without);
        assert!(is_right_or_refused(&path, framing));
    }
    // Places that are not those of blocks: one byte too far in the file, in the decoded data, and within a block. That they
    // are noticed shows that the table is used.
    for (number, at, decoded) in [(2, 1, 0), (3, 0, 1), (4, 100, 100)] {
        let mut wrong = places.clone();
        wrong[number] = (wrong[number].0 + at, wrong[number].1 + decoded);
        gzi(&table, &wrong);
        for framing in &framings {
            assert!(!is_right_or_refused(&path, framing), "{number} {at} {decoded}");
        }
    }
    // Tables that cannot be used: cut, of another file, not in order.
    let whole = std::fs::read(&table).unwrap();
    let mut others = vec![whole[..whole.len() - 1].to_vec(), whole[..whole.len() - 16].to_vec(), vec![], vec![0xff; 8]];
    for wrong in [vec![(5, 5)], vec![places[0], places[0]], vec![(u64::MAX, 1)]] {
        gzi(&table, &wrong);
        others.push(std::fs::read(&table).unwrap());
    }
    for bytes in others {
        std::fs::write(&table, bytes).unwrap();
        for framing in &framings {
            assert!(is_right_or_refused(&path, framing));
        }
    }
}

/// A file in zstd's seekable format, with frames that do not have the size of their content. Returns its entries.
fn seekable(content: &[u8]) -> (Vec<u8>, Vec<[u32; 2]>) {
    let (mut file, mut entries) = (Vec::new(), Vec::new());
    for frame in content.chunks(30_000) {
        let encoded = zstd::stream::encode_all(frame, 1).unwrap();
        entries.push([encoded.len() as u32, frame.len() as u32]);
        file.extend_from_slice(&encoded);
    }
    (file, entries)
}

fn seek_table(entries: &[[u32; 2]], has_checksums: bool) -> Vec<u8> {
    let mut table = Vec::new();
    for entry in entries {
        entry.iter().for_each(|number| table.extend_from_slice(&number.to_le_bytes()));
        if has_checksums {
            table.extend_from_slice(b"\xb1\xea\x92\x8f");
        }
    }
    table.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    table.push(if has_checksums { 0x80 } else { 0 });
    table.extend_from_slice(b"\xb1\xea\x92\x8f");
    [&b"\x5e\x2a\x4d\x18"[..], &(table.len() as u32).to_le_bytes(), &table].concat()
}

#[test]
fn the_table_of_the_seekable_format_is_used_if_it_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.zst");
    let (file, entries) = seekable(&with_false_magics());
    let put = |parts: &[&[u8]]| std::fs::write(&path, parts.concat()).unwrap();
    let framings = [Framing::Lines, Framing::Fixed { len: 1000 }];
    for has_checksums in [false, true] {
        put(&[&file, &seek_table(&entries, has_checksums)]);
        for framing in &framings {
            let plan = Splits::plan(&path, framing.clone(), 1000).unwrap();
            // The last split contains the table alone.
            assert_eq!((plan.note(), plan.len()), (None, entries.len() + 1));
            assert!(is_right_or_refused(&path, framing));
        }
    }
    // Lengths that are wrong: of the decoded data, and of two frames whose sum is right.
    for (number, change) in [(3, [0, 1]), (3, [0, -1]), (5, [9, 0])] {
        let mut wrong = entries.clone();
        for (number, sign) in [(number, 1), (number + 1, if change[0] == 0 { 0 } else { -1 })] {
            for (length, change) in wrong[number].iter_mut().zip(change) {
                *length = length.wrapping_add_signed(change * sign);
            }
        }
        put(&[&file, &seek_table(&wrong, false)]);
        for framing in &framings {
            assert!(!is_right_or_refused(&path, framing), "{number} {change:?}");
        }
    }
    // What looks like a table and is none: the file is one split.
    let table = seek_table(&entries, false);
    let skippable = [&b"\x50\x2a\x4d\x18"[..], &(table.len() as u32).to_le_bytes(), &table].concat();
    let mut other_flags = table.clone();
    let flags = table.len() - 5;
    other_flags[flags] = 4;
    for end in [
        &skippable,
        &other_flags,
        &seek_table(&entries[1..], false),
        &b"\x50\x2a\x4d\x18\x09\0\0\0\xff\xff\xff\xff\x80\xb1\xea\x92\x8f".to_vec(),
    ] {
        put(&[&file, end]);
        let plan = Splits::plan(&path, Framing::Lines, 1000).unwrap();
        assert_eq!(plan.note(), Some("a zstd frame does not contain the size of its content"));
        assert!(is_right_or_refused(&path, &Framing::Lines));
    }
}
