//! Which bytes are records, and which records are rejected.

use crate::place::Place;

#[test]
fn lines() {
    for (input, count) in [
        ("", "0 records, 0 bytes\n"),
        ("\n", "1 record, 1 byte\n"),
        ("one", "1 record, 3 bytes\n"),
        ("one\n", "1 record, 4 bytes\n"),
        ("one\n\ntwo", "3 records, 8 bytes\n"),
        ("one\r\ntwo\r\n", "2 records, 10 bytes\n"),
    ] {
        Place::new().run("--count").stdin(input).succeeds().prints(count);
    }
}

#[test]
fn many_lines() {
    Place::new().run("--count -- seq 1 1000000").succeeds().prints("1000000 records, 6888896 bytes\n");
}

/// If a failing command wrote only the first part of a record, that part is not a record. If bytes are copied
/// unchanged, that part is copied too.
#[test]
fn an_unfinished_record_of_a_command_that_fails() {
    let place = Place::new();
    let line = "printf '100\\n200\\n30'; exit 3";
    let unfinished = &["exited with status 3", "2 bytes of an unfinished record, \"30\"", "line 3"];
    for words in ["--stage noop", "--stage match:0", "--each cat", "--each cat --round-robin -j1"] {
        place.run(words).shell(line).fails().prints("100\n200\n").complains_of(unfinished);
    }
    place.run("--delimiter \\n").shell(line).fails().prints("100\n200\n").complains_of(unfinished);
    place.run("--stats stats").shell(line).fails().prints("100\n200\n30").complains_of(unfinished);
    place.run("").shell(line).fails().prints("100\n200\n30").complains_of(&["exited with status 3"]);
    place.run("--stage noop").shell("printf '100\\n200\\n30'").succeeds().prints("100\n200\n30");
}

#[test]
fn a_delimiter_of_bytes() {
    let count = |delimiter: &str, input: &str| {
        let seen = Place::new().run("--count").word(format!("--delimiter={delimiter}")).stdin(input).succeeds();
        String::from_utf8(seen.stdout).unwrap()
    };
    assert_eq!(count(";", "a;b;c"), "3 records, 5 bytes\n");
    assert_eq!(count("--", "a--b-c--"), "2 records, 8 bytes\n");
    assert_eq!(count(r"\t", "a\tb"), "2 records, 3 bytes\n");
    assert_eq!(count(r"\r\n", "a\nb\r\nc"), "2 records, 6 bytes\n");
    assert_eq!(count(r"\x1E\0", "a\x1e\0b\x1ec"), "2 records, 6 bytes\n");
}

#[test]
fn nul_bytes() {
    for option in ["--null", "-0"] {
        Place::new().run("--count").and(option).stdin("a\nb\0c\0").succeeds().prints("2 records, 6 bytes\n");
    }
}

#[test]
fn a_fixed_size() {
    Place::new().run("--count --fixed 4").stdin("aaaabbbb").succeeds().prints("2 records, 8 bytes\n");
    Place::new().run("--fixed 4").stdin("aaaabbbb").succeeds().prints("aaaabbbb");
}

#[test]
fn length_prefixes() {
    for (kind, input) in [
        ("u8", &b"\x02ab\x00\x01c"[..]),
        ("u16le", b"\x02\x00ab\x00\x00\x01\x00c"),
        ("u16be", b"\x00\x02ab\x00\x00\x00\x01c"),
        ("u32le", b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0c"),
        ("u32be", b"\0\0\0\x02ab\0\0\0\0\0\0\0\x01c"),
        ("u64le", b"\x02\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0c"),
        ("u64be", b"\0\0\0\0\0\0\0\x02ab\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01c"),
        ("u8,self", b"\x03ab\x01\x02c"),
        ("u32be,self", b"\0\0\0\x06ab\0\0\0\x04\0\0\0\x05c"),
    ] {
        let expected = format!("3 records, {} bytes\n", input.len());
        Place::new().run("--count --length-prefixed").and(kind).stdin(input).succeeds().prints(expected);
        Place::new().run("--length-prefixed").and(kind).stdin(input).succeeds().prints(input);
    }
}

#[test]
fn bson_documents() {
    let input = b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x05\0\0\0\0";
    Place::new().run("--count --bson").stdin(input).succeeds().prints("2 records, 17 bytes\n");
    Place::new().run("--bson").stdin(input).succeeds().prints(input);
    Place::new().run("--bson").stdin(&input[..16]).fails().prints(&input[..12]).complains_of(&["frame truncated"]);
    Place::new().run("--bson").stdin("\x04\0\0\0\0").fails().complains_of(&["the length 4"]);
}

#[test]
fn a_cut_record_is_an_error_after_the_whole_ones() {
    Place::new().run("--fixed 4").stdin("aaaabb").fails().prints("aaaa").complains_of(&["frame truncated"]);
    Place::new().run("--length-prefixed u8").stdin("\x02ab\x09c").fails().prints("\x02ab").complains_of(&["truncated"]);
    Place::new().run("--count --fixed 4").stdin("aaaabb").fails().prints("");
}

#[test]
fn a_record_over_the_limit_is_an_error_with_its_number() {
    let place = Place::new().file("a", "one\ntwo\nthree\nfour\n");
    place.run("--record-limit 6 a").succeeds().prints("one\ntwo\nthree\nfour\n");
    place
        .run("--record-limit 4 a")
        .fails()
        .prints("one\ntwo\n")
        .complains_of(&["a: record too long", "at line 3\nhint: raise --record-limit"]);
}

#[test]
fn a_long_line_without_a_limit_is_only_bytes() {
    let long = vec![b'x'; 70 << 20];
    let place = Place::new().file("long", &long);
    assert!(place.run("long").succeeds().stdout == long);
    place.run("--count long").fails().complains_of(&["long: record too long"]);
    place.run("--count --record-limit 100M long").succeeds().prints("1 record, 73400320 bytes\n");
}
