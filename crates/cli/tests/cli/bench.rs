//! What `millstream bench` says: not how fast anything is, but that every way was tried and all found the same.

use serde_json::Value;

use crate::place::Place;

/// Runs every way once or twice, as JSON.
fn bench(place: &Place, words: &str) -> Value {
    let seen = place.words("bench --json --runs 1 --seconds 60").and(words).succeeds();
    serde_json::from_slice(&seen.stdout).unwrap()
}

/// The names of the ways that ended so.
fn ways<'a>(json: &'a Value, state: &str) -> Vec<&'a str> {
    let ways = json["ways"].as_array().unwrap();
    ways.iter().filter(|way| way["state"] == state).map(|way| way["way"].as_str().unwrap()).collect()
}

/// All of ours and these others have a time; none was wrong, failed, or took too long.
#[track_caller]
fn all_agree(json: &Value, others: &[&str]) {
    for state in ["wrong", "failed", "over"] {
        assert_eq!(ways(json, state), [""; 0], "{state}: {json:#}");
    }
    let timed = ways(json, "timed");
    for way in json["ways"].as_array().unwrap().iter().filter(|way| way["ours"] == true) {
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
fn a_way_that_finds_something_else_is_wrong() {
    // wc counts what ends lines, not lines; and not all bytes are strings.
    let json = bench(&Place::new().file("a", b"one\n\xff\ntwo"), "lines a");
    assert_eq!(ways(&json, "wrong"), ["wc -l"]);
    assert_eq!(ways(&json, "failed"), ["BufReader::lines"]);
    assert!(ways(&json, "timed").contains(&"one at a time"));
}

#[test]
fn lines_of_an_empty_file() {
    let json = bench(&Place::new().file("a", ""), "lines a");
    // grep has status 1 where it finds nothing, sed does not print a number of no line.
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
fn what_is_missing_is_named() {
    let place = Place::new().file("a", "one\n");
    let mut command = place.words("bench --json --runs 1 lines a").into_command();
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    all_of(&ways(&json, "skipped"), &["wc -l", "perl, while (<STDIN>)"]);
    assert!(json["ways"].as_array().unwrap().iter().any(|way| way["why"] == "this machine has no wc"), "{json:#}");
}

#[test]
fn a_table_and_advice() {
    let seen = Place::new().file("a", "one\n").words("bench lines a --runs 2").succeeds();
    let text = String::from_utf8(seen.stdout).unwrap();
    assert!(text.starts_with("lines of a: 4 B, 1 lines; 2 rounds, medians\n\nway "), "{text}");
    assert!(text.contains("\n* batches, mapped "), "{text}");
    assert!(text.contains("\n  wc -l "), "{text}");
    assert!(text.contains("\nadvice\n- fastest of ours against fastest of others: "), "{text}");
}

#[test]
fn what_cannot_be_measured_is_an_error() {
    let place = Place::new();
    place.words("bench lines a").fails().prints("").complains_of(&["a: open failed", "check the name"]);
    place.words("bench lines .").fails().prints("").complains_of(&[".: open failed"]);
    place.words("bench lines /dev/null").fails().prints("").complains_of(&["/dev/null: ", "expected a regular file"]);
    place.words("bench lines").gets_refused().complains_of(&["<FILE>", "(see `millstream bench --help`)"]);
    place.words("bench lines a --runs 0").gets_refused().complains_of(&["--runs"]);
}
