//! Seek points of gzip files: decoding from any offset gives the bytes that sequential decoding gives.
#![cfg(feature = "compression")]

mod skip;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::{DeflateEncoder, GzEncoder};
use millstream::{ErrorKind, GzipIndex, GzipIndexer, Result};
use proptest::prelude::*;
use tempfile::TempDir;

const SPACING: u32 = GzipIndex::MIN_SPACING;

fn gzip(data: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Data that compresses to blocks of several kinds: numbers as text, then bytes that do not compress.
fn sample(len: usize, seed: u64) -> Vec<u8> {
    let (mut data, mut state) = (Vec::new(), seed);
    while data.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match data.len() / 50_000 % 3 {
            0 => data.extend_from_slice(&state.to_le_bytes()),
            1 => writeln!(data, "{}", state >> 40).unwrap(),
            _ => writeln!(data, "line {} of a text", data.len()).unwrap(),
        }
    }
    data.truncate(len);
    data
}

fn put(directory: &TempDir, content: &[u8]) -> PathBuf {
    let path = directory.path().join("x.gz");
    std::fs::write(&path, content).unwrap();
    path
}

fn read_from(index: &GzipIndex, path: &Path, offset: u64) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    index.open(path, offset)?.read_to_end(&mut data).map_err(millstream::Error::from_io)?;
    Ok(data)
}

#[test]
fn any_offset_gives_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    for level in [0, 1, 6, 9] {
        let data = sample(900_001, 7);
        // Three members, the second of which is empty.
        let file = [gzip(&data[..500_000], level), gzip(b"", level), gzip(&data[500_000..], level)].concat();
        let path = put(&directory, &file);
        let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
        assert_eq!((index.compressed_len(), index.decoded_len()), (file.len() as u64, data.len() as u64));
        assert!(index.offsets().len() > 1, "level {level}: {} points", index.offsets().len());
        let around = index.offsets().flat_map(|at| [at.saturating_sub(1), at, at + 1]);
        for offset in around.chain([1, 499_999, 500_000, 500_001, 900_000, 900_001]) {
            assert!(read_from(&index, &path, offset).unwrap() == data[offset as usize..], "level {level}, {offset}");
        }
        let mut written = Vec::new();
        index.write(&mut written).unwrap();
        let stored = directory.path().join("x.gzidx");
        std::fs::write(&stored, written).unwrap();
        assert_eq!(GzipIndex::load(&stored).unwrap(), index);
    }
}

#[test]
fn an_index_is_made_while_reading() {
    let directory = tempfile::tempdir().unwrap();
    let data = sample(900_001, 7);
    let file = [gzip(&data[..500_000], 6), gzip(b"", 6), gzip(&data[500_000..], 0)].concat();
    let path = put(&directory, &file);
    let expected = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
    for at_most in [1, 1000, 1 << 20] {
        let mut indexer = GzipIndexer::new(&file[..], SPACING).unwrap();
        let (mut found, mut space) = (Vec::new(), vec![0; at_most]);
        while found.len() < data.len() {
            let count = indexer.read(&mut space).unwrap();
            assert!(count > 0);
            found.extend_from_slice(&space[..count]);
        }
        assert!(found == data);
        assert_eq!(indexer.finish().unwrap(), expected);
    }
    // In a reader, which owns it.
    for (bytes, is_whole) in [(file.clone(), true), (file[..file.len() - 1].to_vec(), false)] {
        let stored = directory.path().join("made.gzidx");
        let to = stored.clone();
        let indexer = GzipIndexer::new(std::io::Cursor::new(bytes), SPACING).unwrap().at_end(move |index| {
            let mut out = millstream::Writer::path(to)?;
            index.write(&mut out).map_err(millstream::Error::from_io)?;
            out.close().map(|_| ())
        });
        let mut reader = millstream::Reader::from_read(indexer).unwrap();
        let mut found = Vec::new();
        assert_eq!(reader.read_to_end(&mut found).is_ok(), is_whole);
        assert!(found == data);
        assert_eq!(GzipIndex::load(&stored).ok(), is_whole.then(|| expected.clone()));
        let _ = std::fs::remove_file(&stored);
    }
    // A part, or a damaged file, gives no index.
    let mut indexer = GzipIndexer::new(&file[..], SPACING).unwrap();
    indexer.read_exact(&mut vec![0; 900_000]).unwrap();
    assert_eq!(indexer.finish().unwrap_err().kind(), ErrorKind::DecodeTruncated);
    let mut indexer = GzipIndexer::new(&file[..file.len() - 1], SPACING).unwrap();
    assert!(std::io::copy(&mut indexer, &mut std::io::sink()).is_err());
    assert_eq!(indexer.finish().unwrap_err().kind(), ErrorKind::DecodeTruncated);
}

#[test]
fn files_without_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = put(&directory, &gzip(b"", 6));
    let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
    assert_eq!((index.decoded_len(), index.offsets().collect::<Vec<_>>()), (0, vec![0]));
    assert_eq!(read_from(&index, &path, 0).unwrap(), b"");
    assert_eq!(read_from(&index, &path, 1).unwrap_err().kind(), ErrorKind::InvalidOption);
}

#[test]
fn an_index_is_built_only_for_a_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = [gzip(&sample(200_000, 1), 6), gzip(b"second", 6)].concat();
    let built = |content: &[u8]| {
        GzipIndex::build(put(&directory, content), SPACING, |_, _| Ok(())).map_err(|error| error.kind())
    };
    for end in (0..file.len()).step_by(997).chain(file.len() - 40..file.len()) {
        // A file that ends between its members is whole.
        let expected = std::io::copy(&mut MultiGzDecoder::new(&file[..end]), &mut std::io::sink()).is_ok() && end > 0;
        assert_eq!(built(&file[..end]).is_ok(), expected, "{end}");
    }
    let mut changed = file.clone();
    let checksum = file.len() - 8;
    changed[checksum] ^= 1;
    assert_eq!(built(&changed), Err(ErrorKind::DecodeDamaged));
    assert_eq!(built(&[&file[..], b"more"].concat()), Err(ErrorKind::DecodeDamaged));
    assert_eq!(built(b"plain text"), Err(ErrorKind::DecodeDamaged));
    assert_eq!(built(b""), Err(ErrorKind::DecodeTruncated));
}

#[test]
fn an_index_of_another_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (sample(600_000, 1), sample(600_000, 2));
    let path = put(&directory, &gzip(&one, 0));
    let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
    put(&directory, &gzip(&other[..300_000], 0));
    let error = read_from(&index, &path, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    assert!(error.to_string().contains("make the index again"), "{error}");
    // The same length, with valid data and checksums.
    let file = gzip(&other, 0);
    assert_eq!(file.len() as u64, index.compressed_len());
    put(&directory, &file);
    let error = read_from(&index, &path, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    assert!(error.to_string().contains("make the index again"), "{error}");
    // The same length and the same end: a member that has changed before the last one, and an index without checksums.
    let last = gzip(&sample(300_000, 4), 0);
    let path = put(&directory, &[gzip(&one, 0), last.clone()].concat());
    let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
    let without = without_checksums(&directory, &index);
    put(&directory, &[gzip(&other, 0), last].concat());
    for index in [&index, &without] {
        for offset in [0, 100_000, 400_000] {
            let error = read_from(index, &path, offset).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DecodeDamaged);
            assert!(error.to_string().contains("make the index again"), "{error}");
        }
    }
}

/// Returns the index as other programs write it.
fn without_checksums(directory: &TempDir, index: &GzipIndex) -> GzipIndex {
    let mut stored = Vec::new();
    index.write(&mut stored).unwrap();
    stored.truncate(stored.len() - (8 + 4 + 12 * index.offsets().len() + 4));
    let path = directory.path().join("without.gzidx");
    std::fs::write(&path, stored).unwrap();
    let without = GzipIndex::load(&path).unwrap();
    assert!(without != *index && without.offsets().eq(index.offsets()));
    without
}

/// Returns a command of `.venv`, where `tools/setup test` installs the programs that have the same format.
fn other_program(name: &str) -> Option<Command> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin").join(name);
    if !path.exists() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{} is missing: see tools/setup", path.display());
        skip::say(&format!(".venv/bin/{name} is missing, which tools/setup installs"));
        return None;
    }
    Some(Command::new(path))
}

/// Returns what a program prints.
fn printed(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Prints 100 bytes from each offset. Without `auto_build`, it fails if the index does not cover them.
const READ: &str = "
import sys, indexed_gzip
path, index, *offsets = sys.argv[1:]
with indexed_gzip.IndexedGzipFile(path, index_file=index, auto_build=False) as file:
    for offset in offsets:
        file.seek(int(offset))
        sys.stdout.buffer.write(file.read(100))
";

const WRITE: &str = "
import sys, indexed_gzip
with indexed_gzip.IndexedGzipFile(sys.argv[1], spacing=65536) as file:
    file.build_full_index()
    file.export_index(sys.argv[2])
";

/// Files with one member and with several, and their data.
fn files_for_others() -> [(Vec<u8>, Vec<u8>); 3] {
    let data = sample(900_001, 7);
    let members = [gzip(&data[..500_000], 9), gzip(&data[500_000..700_000], 1), gzip(&data[700_000..], 6)].concat();
    [(gzip(&data, 6), data.clone()), (gzip(&data, 0), data.clone()), (members, data)]
}

#[test]
fn other_programs_read_the_index() {
    let directory = tempfile::tempdir().unwrap();
    let stored = directory.path().join("x.gzidx");
    for (file, data) in files_for_others() {
        let path = put(&directory, &file);
        let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
        assert!(index.offsets().len() > 4, "{}", index.offsets().len());
        index.write(std::fs::File::create(&stored).unwrap()).unwrap();
        let around = index.offsets().flat_map(|at| [at.saturating_sub(1), at, at + 1]);
        let offsets: Vec<usize> = around.chain([900_000, 0, 600_000]).map(|at| at as usize).collect();
        let expected: Vec<u8> = offsets.iter().flat_map(|&at| &data[at..data.len().min(at + 100)]).copied().collect();
        if let Some(mut python) = other_program("python3") {
            let read = python.args(["-c", READ]).args([&path, &stored]).args(offsets.iter().map(usize::to_string));
            assert!(printed(read) == expected, "indexed_gzip");
        }
        if let Some(mut rapidgzip) = other_program("rapidgzip") {
            let import = rapidgzip.args(["-d", "-c", "--import-index"]).args([&stored, &path]);
            assert!(printed(import) == data, "rapidgzip");
        }
    }
}

#[test]
fn an_index_of_another_program_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let stored = directory.path().join("x.gzidx");
    for (file, data) in files_for_others() {
        let path = put(&directory, &file);
        let is_read = |program: &str| {
            let index = GzipIndex::load(&stored).unwrap();
            assert_eq!((index.compressed_len(), index.decoded_len()), (file.len() as u64, data.len() as u64));
            assert!(index.offsets().len() > 4, "{program}: {}", index.offsets().len());
            let around = index.offsets().flat_map(|at| [at.saturating_sub(1), at, at + 1]);
            for offset in around.filter(|&at| at <= 900_001).chain([900_001, 600_000]) {
                assert!(read_from(&index, &path, offset).unwrap() == data[offset as usize..], "{program}, {offset}");
            }
            std::fs::remove_file(&stored).unwrap();
        };
        if let Some(mut python) = other_program("python3") {
            printed(python.args(["-c", WRITE]).args([&path, &stored]));
            is_read("indexed_gzip");
        }
        if let Some(mut rapidgzip) = other_program("rapidgzip") {
            let export = ["--index-format", "indexed_gzip", "--chunk-size", "128", "-d", "-c", "--export-index"];
            assert!(printed(rapidgzip.args(export).args([&stored, &path])) == data);
            is_read("rapidgzip");
        }
    }
}

#[test]
fn checksums_are_verified_from_any_offset() {
    let directory = tempfile::tempdir().unwrap();
    let data = sample(600_000, 5);
    let mut file = gzip(&data, 0);
    let path = put(&directory, &[&file[..], &gzip(b"more", 6)].concat());
    let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
    let changed = file.len() - 20;
    file[changed] ^= 1;
    put(&directory, &[&file[..], &gzip(b"more", 6)].concat());
    // Another end is noticed before anything is read.
    assert_eq!(read_from(&index, &path, 590_000).unwrap_err().kind(), ErrorKind::InvalidOption);
    // Far from the end: by the checksum of the member, in the middle of which decoding starts.
    let more = gzip(&sample(100_000, 6), 0);
    file[changed] ^= 1;
    let path = put(&directory, &[&file[..], &more].concat());
    let index = GzipIndex::build(&path, 400_000, |_, _| Ok(())).unwrap();
    assert_eq!(index.offsets().len(), 2);
    assert!(read_from(&index, &path, 590_000).unwrap() == [&data[590_000..], &sample(100_000, 6)].concat());
    file[changed] ^= 1;
    put(&directory, &[&file[..], &more].concat());
    let error = read_from(&index, &path, 590_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DecodeDamaged);
    assert!(error.to_string().contains("a wrong checksum or length of a gzip member"), "{error}");
}

#[test]
fn a_damaged_index_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = put(&directory, &gzip(&sample(300_000, 3), 1));
    let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
    let mut whole = Vec::new();
    index.write(&mut whole).unwrap();
    let stored = directory.path().join("x.gzidx");
    let loaded = |content: &[u8]| {
        std::fs::write(&stored, content).unwrap();
        GzipIndex::load(&stored)
    };
    for end in (0..whole.len()).step_by(501).chain(0..120) {
        assert_eq!(loaded(&whole[..end]).unwrap_err().kind(), ErrorKind::DecodeTruncated, "{end}");
    }
    let end = 35 + 18 * index.offsets().len();
    for at in (0..whole.len()).filter(|&at| at < end || at % 997 == 0 || at > whole.len() - 60) {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            assert!(loaded(&changed).is_err(), "byte {at}, bit {bit}");
        }
    }
    // Without checksums, the flags, the lengths and the distance are not known to be wrong before the file is read.
    let without = &whole[..whole.len() - (8 + 4 + 12 * index.offsets().len() + 4)];
    for at in 0..end {
        for bit in 0..8 {
            let mut changed = without.to_vec();
            changed[at] ^= 1 << bit;
            if let Ok(index) = loaded(&changed) {
                let _ = read_from(&index, &path, 150_000);
            }
        }
    }
    let mut version = whole.clone();
    version[5] = 2;
    assert_eq!(loaded(&version).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(loaded(&[&whole[..], b"x"].concat()).unwrap_err().kind(), ErrorKind::DecodeDamaged);
    assert_eq!(GzipIndex::load(directory.path().join("none")).unwrap_err().kind(), ErrorKind::OpenFailed);
    assert_eq!(GzipIndex::build(&path, SPACING - 1, |_, _| Ok(())).unwrap_err().kind(), ErrorKind::InvalidOption);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_members_and_any_offset(
        members in prop::collection::vec((0_usize..300_000, 0_u32..10, any::<u64>()), 1..5),
        part in 0.0..=1.0,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (mut data, mut file) = (Vec::new(), Vec::new());
        for (len, level, seed) in members {
            let content = sample(len, seed);
            // Half of them without gzip's own encoder, so that headers have all fields.
            if seed % 2 == 0 {
                file.extend_from_slice(&gzip(&content, level));
            } else {
                file.extend_from_slice(&[0x1f, 0x8b, 8, 4 | 8 | 16, 0, 0, 0, 0, 0, 255, 3, 0, 1, 2, 3]);
                file.extend_from_slice(b"name\0comment\0");
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
                encoder.write_all(&content).unwrap();
                file.extend_from_slice(&encoder.finish().unwrap());
                let mut checksum = flate2::Crc::new();
                checksum.update(&content);
                file.extend_from_slice(&checksum.sum().to_le_bytes());
                file.extend_from_slice(&checksum.amount().to_le_bytes());
            }
            data.extend_from_slice(&content);
        }
        let path = put(&directory, &file);
        let index = GzipIndex::build(&path, SPACING, |_, _| Ok(())).unwrap();
        let offset = (data.len() as f64 * part) as usize;
        prop_assert!(read_from(&index, &path, offset as u64).unwrap() == data[offset..]);
    }
}
