//! `--stage`: the results of stages in every combination, and rejected stages.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, is_there};

/// Returns the results of these stages, which are separated by blanks.
fn through(stages: &str, input: &str) -> String {
    let place = Place::new();
    let mut words = place.run("");
    for stage in stages.split_whitespace() {
        words = words.and("--stage").word(stage);
    }
    String::from_utf8(words.stdin(input).succeeds().stdout).unwrap()
}

#[test]
fn each_stage_has_its_documented_effect() {
    for (stages, input, output) in [
        ("noop", "a\n\nb\n", "a\n\nb\n"),
        ("match:^a", "ab\nba\na\n", "ab\na\n"),
        ("match:a$", "ab\nba\na", "ba\na"),
        ("match:é", "é\ne\n", "é\n"),
        ("not:a", "ab\nc\n\n", "c\n\n"),
        ("match:a:b", "a:b\nab\n", "a:b\n"),
        (r"match:(?s)a.b", "a\nb\na\rb\n", "a\rb\n"),
        (r"match:a\sb", "a\nb\na\tb\n", "a\tb\n"),
        (r"not:[^a]", "a\nab\n\n", "a\n\n"),
        ("fields:2", "a\tb\tc\nd\n\te\n", "b\nd\ne\n"),
        ("fields:3,1", "a\tb\tc\nx\ty\n", "a\tc\nx\n"),
        ("fields:2-", "a\tb\tc\nx\ty\n\t\t\n", "b\tc\ny\n\t\n"),
        ("fields:-2,4-5", "1\t2\t3\t4\t5\t6\n", "1\t2\t4\t5\n"),
        ("fields:2,3::", "a:b:c:d\n", "b:c\n"),
        ("fields:1,3:,\\t", "a,\tb,\tc\n", "a,\tc\n"),
        ("replace/a/bb", "banana\nx\n", "bbbnbbnbb\nx\n"),
        ("replace:(.)(.):$2$1", "abcd\ne\n", "badc\ne\n"),
        ("replace/a/", "banana\n", "bnn\n"),
        ("replace/$/;", "a\n\n", "a;\n;\n"),
        (r"replace/a\/b/c\/d\t\\", "a/b\n", "c/d\t\\\n"),
        ("replace|a|${0}1$$", "a\n", "a1$\n"),
        ("take:2", "a\nb\nc\n", "a\nb\n"),
        ("take:0", "a\n", ""),
        ("take:9", "a\nb", "a\nb"),
        ("skip:2", "a\nb\nc\n", "c\n"),
        ("skip:9", "a\n", ""),
        ("sample:0", "a\nb\n", ""),
        ("sample:1", "a\nb\n", "a\nb\n"),
        ("uniq", "a\na\n\n\nb\na", "a\n\nb\na"),
        ("uniq", "\n\na\n", "\na\n"),
        ("skip:1 take:2 not:3", "1\n2\n3\n4\n", "2\n"),
        ("take:2 skip:1", "1\n2\n3\n4\n", "2\n"),
        ("fields:1 uniq replace/^/-", "a\t1\na\t2\nb\t1\n", "-a\n-b\n"),
        ("match:a match:b match:c", "abc\nab\nbc\ncba\n", "abc\ncba\n"),
    ] {
        assert_eq!(through(stages, input), output, "{stages} of {input:?}");
    }
}

/// A stage does not get the bytes that end a record, and they are written unchanged.
#[test]
fn line_ends_stay_unchanged() {
    for (stages, input, output) in [
        ("match:a$", "a\r\nb\r\na\n", "a\r\na\n"),
        (r"match:a\s", "a\r\na\na\r\r\na\r", "a\r\r\na\r"),
        ("replace/$/;", "a\r\nb\nc", "a;\r\nb;\nc;"),
        ("fields:1", "a\tb\r\nc\td", "a\r\nc"),
        ("uniq", "a\r\na\na", "a\r\n"),
        ("not:b", "a\nb", "a\n"),
        ("noop", "a\r", "a\r"),
        ("noop", "", ""),
    ] {
        assert_eq!(through(stages, input), output, "{stages} of {input:?}");
    }
}

#[test]
fn two_records_never_become_one() {
    let place = Place::new().file("a", "1\n2").file("b", "3\n4").file("empty", "");
    place.run("a empty b --stage noop").succeeds().prints("1\n2\n3\n4");
    place.run("a b --stage not:3").succeeds().prints("1\n2\n4");
    place.run("a b --stage take:2").succeeds().prints("1\n2");
    place.run("a b --stage skip:3 --count").succeeds().prints("1 record, 1 byte\n");
    place.run("a b --stage noop --count").succeeds().prints("4 records, 7 bytes\n");
}

#[test]
fn stages_remember_from_one_source_to_the_next() {
    let place = Place::new().file("a", "1\n2\n2\n").file("b", "2\n3\n");
    place.run("a b --stage uniq").succeeds().prints("1\n2\n3\n");
    place.run("a b --stage skip:2 --stage take:2").succeeds().prints("2\n2\n");
}

#[test]
fn other_records_have_stages_too() {
    let place = Place::new();
    place.run("--null --stage match:^a --stage replace/a/b").stdin("a\n\0c\0a").succeeds().prints("b\n\0b");
    place.run("--delimiter ;; --stage fields:2:,").stdin("a,b;;c,d").succeeds().prints("b;;d");
    place.run("--fixed 2 --stage match:^a --stage uniq").stdin("abababcdac").succeeds().prints("abac");
    let prefixed = b"\x01a\x02ba\x01b";
    place.run("--length-prefixed u8 --stage match:^.$ --stage not:b").stdin(*prefixed).succeeds().prints(b"\x01a");
    for framing in ["--fixed 2", "--length-prefixed u8", "--bson"] {
        let seen = place.run(framing).and("--stage replace/a/b").gets_refused();
        seen.complains_of(&["found --stage replace/a/b", "records that end with a delimiter"]);
    }
}

/// Compares the results with well-known tools, over many batches.
#[test]
fn they_agree_with_grep_cut_sed_and_uniq() {
    let line = |n: u64| format!("{}\t{}\t{}\n", n % 7, n / 3, n.wrapping_mul(2_654_435_761) % 1000);
    let place = Place::new().file("in", (0..100_000).map(line).collect::<String>());
    for (stages, shell) in [
        ("--stage match:99", "grep 99"),
        ("--stage not:[13579]$", "grep -v '[13579]$'"),
        ("--stage fields:1,3", "cut -f 1,3"),
        ("--stage fields:2-", "cut -f 2-"),
        ("--stage replace/9+/x", "sed -E 's/9+/x/g'"),
        ("--stage fields:2 --stage uniq", "cut -f 2 | uniq"),
        ("--stage match:5 --stage fields:2 --stage take:1000", "grep 5 | cut -f 2 | head -n 1000"),
        ("--stage skip:99990", "tail -n 10"),
        ("--stage match:^3", "grep ^3"),
        ("--stage not:33 --stage match:7$ --stage fields:3", "grep -v 33 | grep '7$' | cut -f 3"),
    ] {
        let input = std::fs::File::open(place.path("in")).unwrap();
        let output = Command::new("sh").args(["-c", shell]).stdin(input).output().unwrap();
        assert!(output.status.success(), "{shell}");
        let expected = output.stdout;
        place.run("in").and(stages).succeeds().prints(&expected);
        let count = expected.iter().filter(|byte| **byte == b'\n').count();
        place.run("in --count").and(stages).succeeds().prints(format!("{count} records, {} bytes\n", expected.len()));
    }
}

#[test]
fn a_seed_gives_the_same_sample_everywhere() {
    let place = Place::new().file("in", (0..10_000).map(|n| format!("{n}\n")).collect::<String>());
    let sample = |stage: &str| String::from_utf8(place.run("in --stage").word(stage).succeeds().stdout).unwrap();
    let first = sample("sample:0.01:7");
    assert_eq!(first, sample("sample:1%:7"));
    assert_ne!(first, sample("sample:0.01:8"));
    assert_ne!(sample("sample:0.5"), sample("sample:0.5"));
    assert!((50..200).contains(&first.lines().count()), "{first}");
    // The expected sample is fixed here: a change would break users' experiments.
    assert_eq!(first.lines().take(5).collect::<Vec<_>>(), SAMPLE, "the generator gives other numbers");
}

/// The first lines that `sample:0.01:7` passes.
const SAMPLE: [&str; 5] = ["25", "26", "88", "190", "214"];

#[test]
fn take_stops_its_sources() {
    let place = Place::new();
    place.run("--stage take:3 --stats stats").shell("echo $$ > pid; exec yes").succeeds().prints("y\ny\ny\n");
    assert!(!is_there(&place.text("pid")));
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    assert_eq!((&stats["complete"], &stats["sources"][0]["status"]), (&true.into(), &"stopped".into()));
    let place = Place::new().file("a", "1\n2\n").file("b", "3\n");
    place.run("a b --stage take:1 --stats stats").succeeds().prints("1\n");
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    assert_eq!(stats["sources"].as_array().unwrap().len(), 1, "the second was not opened");
    place.run("--stage take:0").shell("exec sleep 60").succeeds().prints("");
}

/// If a source is not read to its end, its success never matters, however fast it fails. The statistics contain its
/// status.
#[test]
fn a_source_that_fails_after_take_had_enough_is_no_failure() {
    let place = Place::new();
    for round in 0..200 {
        let (stage, printed) = if round % 2 == 0 { ("take:1", "1\n") } else { ("take:2", "1\n2\n") };
        let line = if round % 8 < 4 { "seq 2; exit 3" } else { "echo 1; sleep 0.002; echo 2; exit 3" };
        place.run("--stage").and(stage).shell(line).succeeds().prints(printed);
    }
    place.run("--stage take:3").shell("seq 2; exit 3").fails().prints("1\n2\n").complains_of(&["status 3"]);
    place.run("--stage take:1 --stats stats").shell("echo 1; exec >&-; sleep 0.1; exit 3").succeeds().prints("1\n");
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    let source = &stats["sources"][0];
    assert_eq!((&stats["complete"], &source["status"]), (&true.into(), &"stopped".into()));
    assert_eq!(source["exit_status"], 3);
}

#[test]
fn statistics_tell_of_every_stage() {
    let place = Place::new().file("a", "a1\na2\nb1\n");
    place.run("a --stage match:a --stage replace/a/aa --stats stats -o out --hash crc32c").exits(0);
    assert_eq!(place.text("out"), "aa1\naa2\n");
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    assert_eq!((&stats["records"], &stats["bytes"]), (&2.into(), &8.into()));
    assert_eq!((&stats["sources"][0]["records"], &stats["sources"][0]["bytes"]), (&3.into(), &9.into()));
    let stages = stats["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 2);
    assert_eq!(
        (&stages[0]["stage"], &stages[0]["records"], &stages[0]["bytes"]),
        (&"match:a".into(), &2.into(), &6.into())
    );
    assert_eq!((&stages[1]["stage"], &stages[1]["bytes"]), (&"replace/a/aa".into(), &8.into()));
    assert!(stages[0]["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn outputs_checksums_and_copies_work_as_without() {
    let place = Place::new().file("a", "1\n2\n3\n");
    let seen = place.run("a --stage not:2 --tee copy.gz --hash sha256 -o out").exits(0);
    assert!(seen.stderr.ends_with("  out\n"));
    assert_eq!(place.text("out"), "1\n3\n");
    place.run("copy.gz").succeeds().prints("1\n3\n");
    place.run("a --stage noop -o fails").shell("echo 4; exit 3").fails().complains_of(&["exited with status 3"]);
    assert!(!place.path("fails").exists());
}

#[test]
fn all_records_before_a_failure_are_written() {
    Place::new().run("--stage not:2").shell("seq 3; exit 3").fails().prints("1\n3\n");
}

#[test]
fn records_are_passed_on_immediately() {
    let place = Place::new();
    let mut live = place.run("--stage match:a").shell("echo a; until [ -e go ]; do sleep 0.01; done").start();
    live.prints("a\n");
    std::fs::write(place.path("go"), "").unwrap();
    assert!(live.ends().status.success());
}

#[test]
fn a_signal_ends_a_run_with_stages() {
    let place = Place::new();
    let live = place.run("--stage match:nothing -o out").shell("echo $$ > pid; exec yes").start();
    let pid = place.wait_for("pid");
    live.send(Signal::INT);
    live.dies_by(Signal::INT);
    assert!(!is_there(&pid));
    assert_eq!(place.names(), ["pid"]);
}

#[test]
fn an_invalid_stage_is_refused_with_its_position() {
    for (stage, parts) in [
        ("grep:a", &["'grep:a'", "expected noop, match:REGEX", "uniq"][..]),
        ("match:a(b", &["'match:a(b'", "found \"(b\" at character 2 of it: unclosed group"]),
        ("fields:0", &["expected fields such as 1,3-5", "found \"0\""]),
        ("replace/a", &["expected replace/REGEX/TEXT"]),
        ("replace/a/$1", &["found \"1\""]),
        ("take:x", &["expected a number of records"]),
        ("sample:2:1", &["from 0 to 1"]),
    ] {
        let seen = Place::new().run("--stage").word(stage).stdin("").gets_refused();
        let _ = seen.complains_of(&["--stage", "see `millstream run --help`"]).complains_of(parts);
    }
}

#[test]
fn the_results_of_a_stage_are_limited() {
    let long = "a".repeat(1_000_000);
    let place = Place::new().file("in", format!("one\n{long}\nthree\n"));
    // The result has 4,000 times the size of the input, and does not fit into the memory.
    let script = r#"ulimit -v 2000000; exec "$0" "$@""#;
    let text = "b".repeat(4000);
    let run = |stages: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_millstream"), "run", "in"]).current_dir(place.path(""));
        for stage in stages {
            command.args(["--stage", stage]);
        }
        command.output().unwrap()
    };
    for stages in [vec![format!("replace/a/{text}")], vec!["replace/(a+)/$1$1$1$1$1$1$1$1".to_string(); 10]] {
        let seen = run(&stages.iter().map(String::as_str).collect::<Vec<_>>());
        let said = String::from_utf8(seen.stderr).unwrap();
        assert_eq!(seen.status.code(), Some(1), "{said}");
        assert_eq!(seen.stdout, b"one\n");
        let expected = "millstream: in: record too long: found a longer record, produced by a stage, expected at most 67108864 bytes, \
                        at line 2\nhint: raise --record-limit\n";
        assert_eq!(said, expected);
    }
    // Several of these records are long, and each is within the limit.
    let place = Place::new().file("in", "a\n".repeat(2_000));
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -v 1000000; exec "$0" "$@""#, env!("CARGO_BIN_EXE_millstream"), "run", "in"]);
    command.args(["--stage", &format!("replace/a/{text}"), "--stage", &format!("replace/b/{}", "c".repeat(250))]);
    let seen = command.args(["--count"]).current_dir(place.path("")).output().unwrap();
    assert_eq!(String::from_utf8(seen.stdout).unwrap(), "2000 records, 2000002000 bytes\n", "{:?}", seen.stderr);
}

#[test]
fn a_record_limit_applies_to_the_results_of_stages() {
    let place = Place::new();
    let limited = |stage: &str| place.run("--record-limit 8").and("--stage").word(stage).stdin("ab\naaa\nb\n");
    limited("replace/a/xxx").fails().prints("xxxb\n").complains_of(&["expected at most 8 bytes", "at line 2"]);
    limited("replace/a/xx").succeeds().prints("xxb\nxxxxxx\nb\n");
    limited("replace/(?P<all>a+)/${all}x$all").succeeds().prints("axab\naaaxaaa\nb\n");
    limited("replace/(a+)/${1}x$1$1").fails().prints("axaab\n").complains_of(&["at line 2"]);
}
