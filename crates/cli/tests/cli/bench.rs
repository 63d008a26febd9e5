//! The output of `millstream bench`. These tests do not check speeds, but that every way ran and that all ways had the
//! same answer.

use rustix::process::Signal;
use serde_json::Value;

use crate::bson::documents;
use crate::place::{Place, is_there, until};

/// Runs every way once or twice, and returns the JSON.
fn bench(place: &Place, words: &str) -> Value {
    let seen = place.words("bench --json --runs 1 --seconds 600").and(words).succeeds();
    serde_json::from_slice(&seen.stdout).unwrap()
}

/// Returns the names of the ways that ended with this state.
fn ways<'a>(json: &'a Value, state: &str) -> Vec<&'a str> {
    let ways = json["ways"].as_array().unwrap();
    ways.iter().filter(|way| way["state"] == state).map(|way| way["way"].as_str().unwrap()).collect()
}

/// Expects that all Millstream ways and these others have a time, and that no way was wrong, failed, or took too long.
#[track_caller]
fn all_agree(json: &Value, others: &[&str]) {
    for state in ["wrong", "failed", "over"] {
        assert_eq!(ways(json, state), [""; 0], "{state}: {json:#}");
    }
    let timed = ways(json, "timed");
    for way in json["ways"].as_array().unwrap().iter().filter(|way| way["is_millstream"] == true) {
        assert!(timed.contains(&way["way"].as_str().unwrap()), "{way:#}");
        assert!(way["median"].as_f64().unwrap() > 0.0, "{way:#}");
    }
    for other in others {
        assert!(timed.contains(other), "{other} is not among {timed:?}");
    }
    assert!(json["advice"].as_array().unwrap().len() > 1, "{json:#}");
}

#[test]
fn lines_of_a_file() {
    let place = Place::new().file("a", "one\ntwo\r\n\nfour\n".repeat(1000));
    let json = bench(&place, "lines a");
    all_agree(
        &json,
        &["batches", "one at a time", "BufReader::read_until", "BufReader::lines", "wc -l", "sed -n '$='"],
    );
    assert_eq!(json["records"], 4000);
    assert_eq!(json["bytes"], 15_000);
    assert_eq!(json["expected"]["bytes without line ends"], 10_000);
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn a_way_with_another_answer_is_wrong() {
    // wc counts line feeds, not lines; and some bytes are not valid strings.
    let json = bench(&Place::new().file("a", b"one\n\xff\ntwo"), "lines a");
    assert_eq!(ways(&json, "wrong"), ["wc -l"]);
    assert_eq!(ways(&json, "failed"), ["BufReader::lines"]);
    assert!(ways(&json, "timed").contains(&"one at a time"));
}

#[test]
fn lines_of_an_empty_file() {
    let json = bench(&Place::new().file("a", ""), "lines a");
    // grep exits with status 1 if it finds no match, and sed prints no number for an empty file.
    all_of(&ways(&json, "timed"), &["batches", "batches, mapped", "BufReader::lines", "wc -l"]);
    assert_eq!(json["records"], 0);
}

#[track_caller]
fn all_of(found: &[&str], expected: &[&str]) {
    for way in expected {
        assert!(found.contains(way), "{way} is not among {found:?}");
    }
}

#[test]
fn missing_programs_are_named() {
    let place = Place::new().file("a", "one\n");
    let mut command = place.words("bench --json --runs 1 lines a").into_command();
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    all_of(&ways(&json, "skipped"), &["wc -l", "perl, while (<STDIN>)"]);
    assert!(json["ways"].as_array().unwrap().iter().any(|way| way["why"] == "wc is not installed"), "{json:#}");
}

#[test]
fn a_table_and_advice() {
    let seen = Place::new().file("a", "one\n").words("bench lines a --runs 2").succeeds();
    let text = String::from_utf8(seen.stdout).unwrap();
    assert!(text.starts_with("lines of a: 4 B, 1 line; 2 rounds, medians\n\nway "), "{text}");
    assert!(text.contains("\n* batches, mapped "), "{text}");
    assert!(text.contains("\n  wc -l "), "{text}");
    assert!(text.contains("\nadvice\n- fastest Millstream way against the fastest other way: "), "{text}");
}

#[test]
fn an_unsuitable_input_is_an_error() {
    let place = Place::new();
    place.words("bench lines a").fails().prints("").complains_of(&["a: open failed", "check the name"]);
    place.words("bench lines .").fails().prints("").complains_of(&[".: open failed"]);
    place.words("bench lines /dev/null").fails().prints("").complains_of(&["/dev/null: ", "expected a regular file"]);
    let gzip = Place::new().file("a", b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\xe4\x02\0\x07\xa1\xea\xdd\x02\0\0\0");
    let advice = ["a: ", "gzip", "not compressed", "bench command -- zcat ", "run --count "];
    gzip.words("bench lines a").fails().prints("").complains_of(&advice);
    place.words("bench lines").gets_refused().complains_of(&["<FILE>", "\nhint: see `millstream bench --help`"]);
    place.words("bench lines a --runs 0").gets_refused().complains_of(&["--runs"]);
}

#[test]
fn lines_of_a_command() {
    let json = bench(&Place::new(), "command -- seq 10000");
    all_agree(&json, &["batches", "batches, read-ahead off", "BufReader::read_until", "wc -l", "sed -n '$='"]);
    assert_eq!((&json["records"], &json["bytes"]), (&10_000.into(), &48_894.into()));
    assert_eq!(json["question"], "lines of seq 10000");
}

#[test]
fn a_command_that_fails_is_an_error() {
    let place = Place::new();
    let failing = || place.words("bench command").shell("echo one; echo oops >&2; exit 3");
    failing().fails().prints("").complains_of(&["exited with status 3"]);
    place.words("bench command -- no-such-program").fails().complains_of(&["no-such-program: command not started"]);
    place.words("bench command --").gets_refused();
}

#[test]
fn ways_to_print() {
    let json = bench(&Place::new(), "print --count 20000");
    all_agree(&json, &["put!", "put! through a shared writer", "println!", "writeln! to locked stdout", "seq -f"]);
    assert_eq!((&json["records"], &json["bytes"]), (&20_000.into(), &248_890.into()));
}

#[test]
fn ways_to_read_numbers() {
    let place = Place::new().file("a", "1 2\n3\n\n  4294967296 \n").file("large", "18446744073709551\n2\n");
    let json = bench(&place, "numbers a --capacity 16");
    all_agree(&json, &["scan", "BufReader::lines, parse", "read_to_string, split, parse"]);
    assert_eq!((&json["expected"]["numbers"], &json["expected"]["as sum"]), (&4.into(), &4_294_967_302_u64.into()));
    // awk's numbers have 53 bits.
    assert_eq!(ways(&bench(&place, "numbers large"), "wrong"), ["awk, s += $i"]);
    let wrong = Place::new().file("a", "1\nx\n");
    wrong.words("bench numbers a").fails().prints("").complains_of(&["a: ", "\"x\"", "a whole number", "record 1"]);
    place.words("bench numbers a --capacity 12Q").gets_refused().complains_of(&["--capacity"]);
}

#[test]
fn stages_and_threads() {
    let place = Place::new().file("a", "one\nand another line\n".repeat(2000));
    let json = bench(&place, "stages a");
    all_agree(&json, &["10 stages, fused", "10 stages, boxed", "SHA-256, all threads", "10 cat, wc -l"]);
    assert_eq!(json["expected"]["lines"], 4000);
}

#[test]
fn input_that_is_made() {
    for words in ["numbers", "stages"] {
        let place = Place::new();
        let json = bench(&place, words);
        all_agree(&json, &[]);
        assert!(json["records"].as_u64().unwrap() >= 400_000, "{words}");
        assert_eq!(place.names(), [""; 0], "nothing is left behind");
    }
}

#[test]
fn ways_to_look_into_documents() {
    let documents = documents(&[r#"{"a": 1, "b": {"c": [2, "x"]}}"#, r#"{"b": 1.5}"#, r#"{"a": null}"#]);
    let json = bench(&Place::new().file("a.bson", documents.repeat(300)), "bson a.bson");
    all_agree(&json, &["lengths alone", "one value, lazily", "tree", "columns", "BufReader, lengths by hand"]);
    assert_eq!((&json["records"], &json["expected"]["with the key"]), (&900.into(), &600.into()));
    assert_eq!(json["expected"]["members"], 1200);
    let cut = Place::new().file("a.bson", &documents[..documents.len() - 1]);
    cut.words("bench bson a.bson").fails().prints("").complains_of(&["a.bson: "]);
    Place::new().words("bench bson a.bson").fails().complains_of(&["a.bson: open failed"]);
}

#[test]
fn an_overrun_is_reported_and_leaves_no_process_behind() {
    let place = Place::new();
    // The second run would last indefinitely; it only ends because ways are stopped.
    let line = "echo one; test -e seen || { touch seen; exit; }; echo $$ >> pids; exec sleep 1000";
    let seen = place.words("bench --json --seconds 1 --runs 1 command").shell(line).succeeds();
    let json: Value = serde_json::from_slice(&seen.stdout).unwrap();
    assert_eq!(ways(&json, "timed"), [""; 0]);
    all_of(&ways(&json, "over"), &["batches", "one at a time", "BufReader::lines", "wc -l"]);
    let pids = place.text("pids");
    // On a busy machine, a way can be stopped before its shell has written a line.
    assert!(pids.lines().count() > 0, "{pids}");
    until("all of them are gone", || (!pids.lines().any(is_there)).then_some(()));
}

#[test]
fn a_signal_ends_the_command_and_its_children() {
    let place = Place::new();
    let line = "echo one; test -e seen || { touch seen; exit; }; echo $$ > pid; exec sleep 1000";
    let live = place.words("bench --seconds 1000 command").shell(line).start();
    let pid = place.wait_for("pid");
    live.send(Signal::TERM);
    live.dies_by(Signal::TERM);
    until("the child is gone", || (!is_there(&pid)).then_some(()));
}
