//! Records of CSV.

use crate::place::Place;

#[test]
fn records_are_counted_as_the_dialect_finds_them() {
    for (words, input, count) in [
        ("", "a,b\n1,\"x\ny\"\n", "2 records, 12 bytes\n"),
        ("", "a\rb\r\nc\n\n\nd", "4 records, 10 bytes\n"),
        ("--csv-blank-records", "a\n\nb", "3 records, 4 bytes\n"),
        ("--csv-comment #", "# it's \"here\na\n", "1 record, 15 bytes\n"),
        ("--csv-quote '", "'a\nb'\n\"\n", "2 records, 8 bytes\n"),
        ("--csv-quote none", "\"a\nb\n", "2 records, 5 bytes\n"),
        ("--csv-escape \\\\", "\"a\\\"\nb\"\n", "1 record, 8 bytes\n"),
        ("--csv-line-end lf", "a\rb\n", "1 record, 4 bytes\n"),
        ("--csv-literal-quotes", "a\"b\nc\"d\n", "2 records, 8 bytes\n"),
        ("--csv-delimiter \\t", "a\t\"b\n\"\n", "1 record, 7 bytes\n"),
    ] {
        Place::new().run("--csv --count").and(words).stdin(input).succeeds().prints(count);
    }
}

#[test]
fn broken_quoting_names_the_place() {
    let place = Place::new();
    let run = |words: &str, input: &str, complaint: &[&str]| {
        place.run("--csv --count").and(words).stdin(input).fails().complains_of(complaint);
    };
    run("", "a\nb\"c\n", &["csv invalid: found a quote inside a field", "at byte 3, record 1"]);
    run("", "a\n1,\"b\nc", &["found a quote that no other quote closes", "at byte 4, record 1"]);
    run("", "a,\"b\"c\n", &["found 'c' after a closing quote, in a field that begins 3 bytes before", "at byte 5"]);
    run("--csv-no-doubled-quotes", "\"a\"\"b\"", &["'\\\"' after a closing quote", "a delimiter or a line end"]);
    run("", "\u{feff}a\n\"", &["at byte 5, record 1"]);
    place.run("--csv --count").stdin(b"\xff\xfea\0\n\0").fails().complains_of(&["UTF-16", "iconv", "at byte 0"]);
}

#[test]
fn contradictions_are_refused() {
    let place = Place::new();
    place
        .run("--csv --csv-delimiter \"")
        .stdin("")
        .exits(2)
        .complains_of(&["'\\\"' as the delimiter and as the quote"]);
    place.run("--csv-delimiter ;").stdin("").exits(2).complains_of(&["--csv"]);
    place.run("--csv --bson").stdin("").exits(2).complains_of(&["cannot be used with"]);
}

#[test]
fn bytes_are_copied_unchanged_and_sources_are_joined_by_records() {
    let place = Place::new().file("a", "1\n\n\"2\"");
    let input = "a,\"b\nb\"\r\n\r\nc\rd";
    place.run("--csv").stdin(input).succeeds().prints(input);
    place.run("--csv a a").succeeds().prints("1\n\"2\"\n1\n\"2\"");
    place.run("--csv --stage not:1").stdin("1\n\n\"1\n\"\r2\r3").succeeds().prints("2\r3");
}
