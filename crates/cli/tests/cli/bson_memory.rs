//! The memory use of `millstream bson`, which is slightly more than one document.

use std::fs::File;
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
