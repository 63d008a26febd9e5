//! Records of CSV.

use std::fs::File;
use std::os::unix::fs::FileExt;

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
    run("", "a\nb\"c\n", &["csv invalid: found a quote inside a field", "at line 2, column 2"]);
    run("", "a\n1,\"b\nc", &["found a quote that no other quote closes", "at line 2, column 3"]);
    run(
        "",
        "a,\"b\"c\n",
        &["found 'c' after a closing quote, in a field that begins 3 bytes before", "at line 1, column 6"],
    );
    run("--csv-no-doubled-quotes", "\"a\"\"b\"", &["'\\\"' after a closing quote", "a delimiter or a line end"]);
    run("", "\u{feff}a\n\"", &["at line 2, column 1"]);
    place.run("--csv --count").stdin(b"\xff\xfea\0\n\0").fails().complains_of(&[
        "UTF-16",
        "iconv",
        "at line 1, column 1",
    ]);
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

#[test]
fn fields_are_those_of_the_record() {
    let place = Place::new();
    let run = |words: &str, input: &str| place.run("--csv").and(words).stdin(input);
    run("--stage fields:2", "a,\"b,\n\"\"\"\r\n\n1,2\n").succeeds().prints("\"b,\n\"\"\"\r\n2\n");
    run("--csv-delimiter ; --stage fields:1,3-", "a;b;c;d\n").succeeds().prints("a;c;d\n");
    run("--stage fields:2", "a,,c").succeeds().prints("\"\"");
    let error = ["field count mismatch: found 1 field, expected at least 2", "at line 2"];
    run("--stage fields:2", "a,b\nc\n").fails().complains_of(&error);
    run("--stage fields:2- --csv-ragged pad", "a,b,c\nd\n").succeeds().prints("b,c\n\"\"\n");
    run("--header --stage fields:a,b --csv-ragged pad", "a,b,c\n1,2,3\n4\n").succeeds().prints("a,b\n1,2\n4,\n");
    let collecting = "--header --csv-ragged collect --stage";
    let input = "a,b\n1\n2,3,4,5\n";
    run(&format!("{collecting} fields:b"), input).succeeds().prints("b\n\"\"\n3\n");
    run(&format!("{collecting} fields:2-"), input).succeeds().prints("b\n\"\"\n3,4,5\n");
    let run = |words: &str| place.run("none --csv").and(words).gets_refused();
    run("--stage fields:2:;").complains_of(&["a separator in --stage fields:2:; with --csv", "--csv-delimiter"]);
    run("--stage fields:a").complains_of(&["a name in --stage fields:a", "--csv with --header"]);
    place.run("none --header").gets_refused().complains_of(&["--csv"]);
    place.run("none --stage fields:a").gets_refused().complains_of(&["a name in --stage fields:a"]);
}

#[test]
fn no_field_of_a_record_is_dropped_silently() {
    let place = Place::new().file("t", "a,b\n1,2\n\n3\n\"x\ny\",5,6\n7,8\n").file("u", "a,b\n9,9,9\n");
    let error = ["field count mismatch: found 3 fields, expected 2, as in the header", "t: ", "line 5"];
    for jobs in ["", "-j 2"] {
        let run = |words: &str| place.run("--csv --header --csv-ragged pad --stage fields:b").and(words).and(jobs);
        run("t").fails().complains_of(&error);
        let seen = run("t u --on-bad skip").exits(1);
        assert_eq!(seen.stdout, b"b\n2\n\"\"\n8\n");
        assert!(seen.stderr.contains("line 5") && seen.stderr.contains("2 bad records"), "{}", seen.stderr);
        run("t u --rejects r").exits(0).prints("b\n2\n\"\"\n8\n");
        let rejects: Vec<serde_json::Value> =
            place.text("r").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let places: Vec<_> =
            rejects.iter().map(|reject| (&reject["kind"], &reject["record"], &reject["line"])).collect();
        let kind = "field_count_mismatch".into();
        assert_eq!(places, [(&kind, &4.into(), &5.into()), (&kind, &1.into(), &2.into())]);
    }
}

#[test]
fn a_header_is_written_once_and_not_counted() {
    let place = Place::new()
        .file("a", "id,\"the, name\"\n1,one\n2,two")
        .file("b", "\n\"id\",\"the, name\"\r\n3,three\r\n")
        .file("c", "name\n4\n")
        .file("d", "id,\"the, name\"")
        .file("empty", "");
    let run = |words: &str| place.run("--csv --header").and(words);
    run("a").succeeds().prints("id,\"the, name\"\n1,one\n2,two");
    run("b").succeeds().prints("\n\"id\",\"the, name\"\r\n3,three\r\n");
    run("a b").succeeds().prints("id,\"the, name\"\n1,one\n2,two\n3,three\r\n");
    run("a b --count").succeeds().prints("3 records, 36 bytes\n");
    run("d").succeeds().prints("id,\"the, name\"");
    run("d a").succeeds().prints("id,\"the, name\"\n1,one\n2,two");
    run("a --stage match:o --stage skip:1").succeeds().prints("id,\"the, name\"\n2,two");
    run("a b --stage").word("fields:\"the, name\"").succeeds().prints("\"the, name\"\none\ntwo\nthree\r\n");
    run("b --stage fields:2 --stage fields:1").succeeds().prints("\"the, name\"\r\nthree\r\n");
    run("a b --each cat --block 16")
        .succeeds()
        .prints("id,\"the, name\"\n1,one\nid,\"the, name\"\n2,two\nid,\"the, name\"\n3,three\r\n");
    run("a c -o x")
        .fails()
        .complains_of(&["c: csv invalid: found the header name", "that of a, which is id,\"the, name\""]);
    run("a empty -o x").fails().complains_of(&["empty: csv invalid: found no record, expected a header"]);
    run("a -o x --stage fields:x")
        .gets_refused()
        .complains_of(&["no field \"x\"", "fields of the header: id,\"the, name\""]);
    run("a -o x --stage fields:3").gets_refused().complains_of(&["field 3 of a header with 2 fields"]);
    run("none --each cat --round-robin").gets_refused().complains_of(&["--header with --round-robin"]);
    assert_eq!(place.names(), ["a", "b", "c", "d", "empty"]);
}

/// Records with broken quoting, and with too few fields.
fn with_bad_records() -> Place {
    let rows: String = (0..40_000).map(|i| format!("{i},\"a\n{i}\",x\n")).collect();
    let bad = format!("id,text,n\n{rows}1,b\"c,2\nlonely\n{rows}2,\"d\"e,3\n4,\"never closed\n5,e,6\n");
    Place::new().file("bad", bad).file("good", format!("id,text,n\n{rows}lonely\n{rows}"))
}

#[test]
fn bad_records_are_left_out_and_reported() {
    let place = with_bad_records();
    let count = format!("80001 records, {} bytes\n", place.read("good").len());
    for jobs in ["", "-j 2"] {
        let run = |words: &str| place.run(words).and(jobs);
        let seen = run("bad --csv --on-bad skip").exits(1);
        assert!(seen.stdout == place.read("good"));
        let lines: Vec<_> = seen.stderr.lines().collect();
        assert!(lines[0].starts_with("millstream: left out: bad: "), "{}", seen.stderr);
        assert!(lines[0].contains("line 80002"), "{}", lines[0]);
        assert!(lines[1].contains("line 160004"), "{}", lines[1]);
        assert!(lines[3].contains("3 bad records"), "{}", seen.stderr);
        run("bad --csv --header --count --on-bad skip").exits(1).prints(count.as_bytes());
    }
}

#[test]
fn rejects_are_complete() {
    let place = with_bad_records();
    let mut all = Vec::new();
    for (i, jobs) in ["", "-j 2", "-j 3"].iter().enumerate() {
        let words = format!("bad --csv --header --stage fields:n --rejects rejects -o out --stats stats {jobs}");
        let seen = place.run(&words).exits(0);
        assert_eq!(seen.stderr, "millstream: 4 bad records: see rejects\n");
        assert!(place.text("out") == format!("n\n{}", "x\n".repeat(80_000)));
        let stats: serde_json::Value = serde_json::from_slice(&place.read("stats")).unwrap();
        assert_eq!((&stats["rejected"], &stats["records"]), (&4.into(), &80_000.into()));
        all.push(place.text("rejects"));
        assert_eq!(all[i], all[0], "{jobs}");
    }
    let rejects: Vec<serde_json::Value> = all[0].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = rejects.iter().map(|reject| reject["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["csv_invalid", "field_count_mismatch", "csv_invalid", "csv_invalid"]);
    assert_eq!(
        (&rejects[0]["source"], &rejects[0]["record"], &rejects[0]["line"]),
        (&"bad".into(), &40_001.into(), &80_002.into())
    );
    let raw =
        |reject: &serde_json::Value| data_encoding::BASE64.decode(reject["raw"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!(raw(&rejects[0]), b"1,b\"c,2");
    assert!(raw(&rejects[1]).starts_with(b"lonely"));
    assert_eq!(raw(&rejects[2]), b"2,\"d\"e,3");
    assert!(raw(&rejects[3]).starts_with(b"4,\"never closed\n5,"));
}

#[test]
fn rejects_of_a_run_that_fails_are_not_published() {
    let place = with_bad_records();
    place.run("bad --csv --rejects rejects -o out missing").fails();
    place.run("bad --csv --rejects rejects -o missing/out").fails();
    place.run("--csv --rejects rejects -o out -- sh -c").word("cat bad; exit 3").exits(1);
    assert_eq!(place.names(), ["bad", "good"]);
    place.run("bad --csv --rejects rejects --on-bad stop").gets_refused().complains_of(&["--rejects"]);
    place.run("bad --csv --rejects out -o out").fails();
    place.run("bad --csv --rejects bad -o out").fails();
}

#[test]
fn lines_that_are_too_long_are_rejected() {
    let place = Place::new().file("a", "one\nthree\ntwo\n");
    let seen = place.run("a --record-limit 3 --on-bad skip").exits(1).prints("one\ntwo\n");
    assert!(seen.stderr.contains("at line 2\n") && seen.stderr.contains("1 bad record"), "{}", seen.stderr);
    place.run("a --record-limit 3 --rejects r --count").exits(0).prints("2 records, 8 bytes\n");
    place.run("a --stage replace/w/wwwwwwwww --record-limit 6 --on-bad skip -j 2").exits(1).prints("one\nthree\n");
}

#[test]
fn headers_are_matched_by_name() {
    let rows: String = (0..30_000).map(|i| format!("{i},\"a\n{i}\",x\n")).collect();
    let place = Place::new()
        .file("a", format!("id,text,\"the n\"\n{rows}"))
        .file("b", format!("the n,id,text\n{}", "x,1,\"a,b\"\n,,\n".repeat(1000)))
        .file("more", "id,text,\"the n\",x\n")
        .file("twice", "id,id,text\n")
        .file("ragged", "text,the n,id\n1,2\n")
        .file("long", "text,the n,id\n1,2\n1,2,3,4\n")
        .file("more_of", "id,text,the n\n");
    let b = "1,\"a,b\",x\n,,\n".repeat(1000);
    for jobs in ["", "-j 2"] {
        let run = |words: &str| place.run(jobs).and(words).and("--csv --header --header-by-name");
        run("a b a").succeeds().prints(format!("{}{b}{rows}", place.text("a")));
        let ids: String = (0..30_000).map(|i| format!("{i}\n")).collect();
        let from_b = "1\n\"\"\n".repeat(1000);
        run("a b --stage fields:id").succeeds().prints(format!("id\n{ids}{from_b}"));
        run("b b").succeeds().prints(format!("{}{}", place.text("b"), place.text("b").split_once('\n').unwrap().1));
        run("a more -o x").fails().complains_of(&["more", "the names of a, each one time"]);
        run("a twice -o x").fails().complains_of(&["twice"]);
        run("a ragged -o x").fails().complains_of(&["found 2 fields, expected 3"]);
        run("a long --csv-ragged pad -o x").fails().complains_of(&["long", "found 4 fields, expected 3", "line 3"]);
        run("ragged long --csv-ragged collect").succeeds().prints("text,the n,id\n1,2\n1,2\n1,2,3,4\n");
        run("more_of long --csv-ragged collect").succeeds().prints("id,text,the n\n,1,2\n3,1,2,4\n");
        run("a ragged --csv-ragged pad --stage skip:30000").succeeds().prints("id,text,\"the n\"\n,1,2\n");
    }
    place.run("a b --csv --header-by-name").gets_refused().complains_of(&["--header"]);
}

/// Quotes open a field of 1 GB, which a sparse file contains. The memory is that of the limit, however the file is read.
#[test]
fn a_field_of_1_gb_takes_no_more_memory_than_the_limit() {
    let place = Place::new();
    let (before, after) = (b"id,text\n1,a\n2,\"", b"\"\n3,c\n");
    let file = File::create(place.path("a")).unwrap();
    file.write_all_at(before, 0).unwrap();
    file.write_all_at(after, (1 << 30) + before.len() as u64).unwrap();
    let (too_long, limit) = ("a: record too long: found", "expected at most 1048576, at line 3");
    for (words, within) in [("", 16), ("--header --stage fields:text", 16), ("-j 2 --stage not:z", 96)] {
        let run = |more: &str| place.run("a --csv --record-limit 1M").and(words).and(more);
        let seen = run("").within(within).fails().complains_of(&[too_long, limit]);
        let (text, rest) = if words.contains("fields") { ("text\na\n", "c\n") } else { ("id,text\n1,a\n", "3,c\n") };
        seen.prints(text);
        let seen = run("--on-bad skip").within(within).exits(1);
        for part in [too_long, limit, "found 1 bad record"] {
            assert!(seen.stderr.contains(part), "{part}: {}", seen.stderr);
        }
        seen.prints(format!("{text}{rest}"));
    }
    let plan = place.words("split a --csv --size 100M").within(16).succeeds();
    assert!(String::from_utf8(plan.stdout).unwrap().contains(r#""records":4"#));
}
