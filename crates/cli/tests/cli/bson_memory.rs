//! The memory use of `millstream bson`, which is slightly more than one document.

use std::fs::File;
#[cfg(feature = "parquet")]
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use millstream::bson::{append_document, append_element};

use crate::place::{Place, Words};

/// The memory that may be used in addition to a document, in MiB.
const BESIDE: u64 = 64;

fn bson(place: &Place, words: &str) -> Words {
    place.words("bson").and(words)
}

/// Creates a file with one document, whose only long member consists of `len` zero bytes (a sparse file).
fn long_binary(place: &Place, name: &str, len: u32) {
    let mut front = [0; 4].to_vec();
    append_element(&mut front, "before", "x").unwrap();
    front.extend_from_slice(b"\x05data\0");
    front.extend_from_slice(&len.to_le_bytes());
    front.push(0);
    let mut after = Vec::new();
    append_element(&mut after, "after", &7).unwrap();
    after.push(0);
    let all = (front.len() + after.len()) as u32 + len;
    front[..4].copy_from_slice(&all.to_le_bytes());
    let file = File::create(place.path(name)).unwrap();
    file.write_all_at(&front, 0).unwrap();
    file.write_all_at(&after, front.len() as u64 + u64::from(len)).unwrap();
}

#[test]
fn printing_part_of_a_long_value_takes_no_memory() {
    let place = Place::new();
    long_binary(&place, "long.bson", 100 << 20);
    // Only the structure is read for the tree; memory for the whole document is mapped but not touched.
    bson(&place, "ls long.bson").within(100 + BESIDE).succeeds().prints(
        "document [0] at byte 0: 3 members, 100.00 MiB\n  before  string   \"x\"\n  data    binData  100.00 MiB\n  after   int      7\n",
    );
    bson(&place, "get long.bson after").within(100 + BESIDE).succeeds().prints("7\n");
    for words in ["get long.bson data", "get long.bson", "cat long.bson --record-limit 128M"] {
        // The reader of a stream uses memory for twice the document, because its length cannot be trusted.
        let limit = if words.starts_with("cat") { 2 * 128 + BESIDE } else { 100 + BESIDE };
        let text = (100_u64 << 20).div_ceil(3) * 4;
        let (seen, count) = counted(bson(&place, words).within(limit));
        assert!(seen.success(), "{words}");
        assert!((text..text + 100).contains(&count), "{words}: {count}");
    }
    let (seen, count) = counted(bson(&place, "get long.bson data --as raw").within(100 + BESIDE));
    assert!(seen.success() && count == 100 << 20, "{count}");
}

/// Returns how the command ends, and how many bytes it prints.
fn counted(words: Words) -> (std::process::ExitStatus, u64) {
    let mut child = words.into_command().stdout(Stdio::piped()).spawn().unwrap();
    let count = std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    (child.wait().unwrap(), count)
}

/// Returns a document of 10 MB with very many members.
fn many_members() -> Vec<u8> {
    let mut bytes = Vec::new();
    append_document(&mut bytes, |bytes| (0..700_000).try_for_each(|i| append_element(bytes, &format!("k{i}"), &i)))
        .unwrap();
    bytes
}

#[test]
fn a_tree_of_many_members_takes_no_memory() {
    let place = Place::new().file("many.bson", many_members());
    let (seen, count) = counted(bson(&place, "ls --all many.bson").within(10 + BESIDE));
    assert!(seen.success() && count > 10 << 20, "{seen} {count}");
}

#[test]
fn values_of_julia_respect_their_memory_limit() {
    let mut bytes = Vec::new();
    append_document(&mut bytes, |bytes| append_element(bytes, "a", &(0..1_000_000).collect::<Vec<i32>>())).unwrap();
    let place = Place::new().file("many.bson", bytes);
    bson(&place, "get many.bson a --as julia")
        .within(14 + BESIDE)
        .fails()
        .prints("")
        .complains_of(&["memory limit", "raise --memory-limit"]);
    let (seen, count) = counted(bson(&place, "get many.bson a --as julia --memory-limit 1G"));
    assert!(seen.success() && count > 3 << 20);
    bson(&place, "get many.bson a --memory-limit 1G").gets_refused().complains_of(&["--as julia"]);
}

#[test]
fn documents_that_are_too_long_are_refused_before_they_are_read() {
    let place = Place::new();
    long_binary(&place, "long.bson", 100 << 20);
    for words in [
        "cat -- cat long.bson",
        "check -- cat long.bson",
        #[cfg(feature = "parquet")]
        "convert --to csv -- cat long.bson",
        "cat long.bson",
    ] {
        bson(&place, words).within(BESIDE).fails().prints("").complains_of(&[
            "record too long: found a document of",
            "expected at most 67108864",
            "raise --record-limit",
        ]);
    }
    for words in ["ls -", "get - after"] {
        let stdin = File::open(place.path("long.bson")).unwrap();
        let seen = bson(&place, words).within(BESIDE).stdin_from(stdin).fails().prints("");
        assert!(seen.stderr.contains("record too long"), "{words}: {}", seen.stderr);
        let stdin = File::open(place.path("long.bson")).unwrap();
        bson(&place, words).and("--record-limit 128M").stdin_from(stdin).succeeds();
    }
    bson(&place, "get long.bson after --record-limit 64M").fails().complains_of(&["record too long"]);
    bson(&place, "count -- cat long.bson").within(BESIDE).succeeds().prints("1 document, 104857641 bytes\n");
    bson(&place, "check long.bson --record-limit 128M").succeeds();
}

/// The input is small when compressed, and large when decoded.
#[test]
fn a_long_document_of_few_bytes_is_refused() {
    let place = Place::new();
    long_binary(&place, "long.bson", 100 << 20);
    let gzip = std::process::Command::new("gzip").arg("-1").arg(place.path("long.bson")).status().unwrap();
    assert!(gzip.success());
    for words in [
        "ls long.bson.gz",
        "get long.bson.gz after",
        "cat long.bson.gz",
        #[cfg(feature = "parquet")]
        "convert long.bson.gz --to ndjson",
    ] {
        bson(&place, words).within(BESIDE).fails().prints("").complains_of(&["record too long"]);
    }
    bson(&place, "count long.bson.gz").within(BESIDE).succeeds().prints("1 document, 104857641 bytes\n");
}

/// The resident memory that `convert` may use, in MiB, whatever the length of its source: a row group of Parquet takes
/// 64 MiB, and the blocks in progress, the program itself and its libraries the rest.
#[cfg(feature = "parquet")]
const CONVERT: u64 = 128;

/// The same for JSON lines, which have no row groups.
#[cfg(feature = "parquet")]
const CONVERT_LINES: u64 = 64;

#[cfg(feature = "parquet")]
#[test]
fn converting_a_long_stream_takes_no_more_memory_than_a_short_one() {
    // Documents of about 70 bytes whose numbers and texts differ, so that neither format can shorten them much.
    let mut block = Vec::new();
    for i in 0..10_000_i64 {
        append_document(&mut block, |bytes| {
            append_element(bytes, "id", &(i * 0x9e37_79b9))?;
            append_element(bytes, "name", &format!("customer {} of a city", i * 7919))?;
            append_element(bytes, "price", &(i as f64 / 3.0))
        })
        .unwrap();
    }
    // In a debug build, Parquet takes too long for each run of the tests.
    let is_deep = std::env::var_os("MILLSTREAM_DEEP").is_some();
    let runs =
        if is_deep { &[("parquet", CONVERT), ("jsonl", CONVERT_LINES)][..] } else { &[("jsonl", CONVERT_LINES)] };
    let size: usize = if is_deep { 10_000_000_000 } else { 100_000_000 };
    let place = Place::new();
    for &(to, most) in runs {
        let mut command = bson(&place, "convert - --to").and(to).into_command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut source = child.stdin.take().unwrap();
        let mut peak = 0;
        for _ in 0..size.div_ceil(block.len()) {
            source.write_all(&block).unwrap();
            peak = resident(child.id()).max(peak);
        }
        drop(source);
        let status = loop {
            peak = resident(child.id()).max(peak);
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        println!("{to}: at most {peak} KiB for {size} bytes");
        assert!(status.success(), "{to}");
        assert!((1_000..most << 10).contains(&peak), "{to}: {peak} KiB");
    }
}

/// Returns the most memory that a process has had so far, in KiB, or 0 if it has ended.
#[cfg(feature = "parquet")]
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|line| line.replace("kB", ""));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}
