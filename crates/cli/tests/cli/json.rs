//! Records of JSON.

use crate::place::Place;

#[test]
fn elements_are_written_unchanged_each_with_a_newline() {
    let place = Place::new();
    let document = "[ {\"a\": 1} ,\n[2,\n3],\"x\\n\" , -1.50e3]\n";
    place.run("--json").stdin(document).succeeds().prints("{\"a\": 1}\n[2,\n3]\n\"x\\n\"\n-1.50e3\n");
    place.run("--json --count").stdin(document).succeeds().prints("4 records, 30 bytes\n");
    place.run("--json --count").stdin("\u{feff}[]").succeeds().prints("0 records, 0 bytes\n");
    let document = "{\"n\": 3, \"a\": {\"items\": [1, {}, \"b\"]}}";
    place.run("--json-pointer /a/items").stdin(document).succeeds().prints("1\n{}\n\"b\"\n");
    place.run("--json --json-pointer /a/items --count").stdin(document).succeeds().prints("3 records, 9 bytes\n");
}

#[test]
fn stages_work_on_the_element() {
    let place =
        Place::new().file("a.json", "[{\"id\": 1}, {\"id\": 2}]").file("b.json", "[{\"id\": 3},\n{\"id\": 12}]");
    let run = |words: &str, output: &str| {
        place.run("a.json b.json --json").and(words).succeeds().prints(output);
        // The source cannot be divided, but threads run the stages.
        place.run("a.json b.json --json -j 2").and(words).succeeds().prints(output);
    };
    run("--stage match:2}$", "{\"id\": 2}\n{\"id\": 12}\n");
    run("--stage not:2", "{\"id\": 1}\n{\"id\": 3}\n");
    run("--stage take:1", "{\"id\": 1}\n");
    run("--stage skip:3", "{\"id\": 12}\n");
    run("--stage match:2}$ --count", "2 records, 21 bytes\n");
    run("", "{\"id\": 1}\n{\"id\": 2}\n{\"id\": 3}\n{\"id\": 12}\n");
    place
        .run("a.json b.json --json --each")
        .and("cat")
        .succeeds()
        .prints("{\"id\": 1}\n{\"id\": 2}\n{\"id\": 3}\n{\"id\": 12}\n");
    place.run("a.json --json --each cat --round-robin -j 1").succeeds().prints("{\"id\": 1}\n{\"id\": 2}\n");
}

#[test]
fn a_broken_document_fails_after_its_last_whole_element() {
    let place = Place::new();
    let run = |words: &str, document: &str, output: &str, complaint: &[&str]| {
        place.run("--json").and(words).stdin(document).fails().prints(output).complains_of(complaint);
        // No record follows the error, so it is not one of a record.
        place.run("--json --on-bad skip").and(words).stdin(document).fails().complains_of(complaint);
    };
    run(
        "",
        "[1, [2, 3",
        "1\n",
        &["document truncated: found the end of the document inside an array of element 1", "byte 9"],
    );
    run("", "[1, 2] 3", "1\n2\n", &["json invalid: found '3' after the document, expected only whitespace", "byte 7"]);
    run("", "[1, 2,]", "1\n2\n", &["found ']' after a comma, expected a value"]);
    run("", "{}", "", &["shape mismatch: found an object, expected an array"]);
    run("--json-pointer /b", "{\"a\": []}", "", &["key missing: found an object without the member \"b\""]);
    run("--json-depth 1", "[[]]", "", &["too deep: found arrays and objects nested more than 1 deep"]);
    place.run("--json -o out").stdin("[1, 2").fails();
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn splits_of_elements_are_exact() {
    let elements: Vec<String> = (0..200).map(|i| format!("{{\"id\": {i}, \"x\": \"]\\n,[\"}}")).collect();
    let items = elements.join(" ,\n");
    for (options, document) in [
        ("--json", format!("[{items}]")),
        ("--json-pointer /a/items", format!("{{\"n\": [1, 2], \"a\": {{\"items\": [{items}]}}, \"z\": 3}}\n")),
    ] {
        let place = Place::new().file("f", &document);
        let plan = String::from_utf8(place.words(&format!("split --size 1000 f {options}")).succeeds().stdout).unwrap();
        let splits: Vec<_> =
            plan.lines().filter(|line| line.contains("begin")).map(|line| line.trim_end_matches(',')).collect();
        assert!(splits.len() > 5, "{plan}");
        let read = |words: &str| {
            let outputs = splits.iter().map(|split| place.run(words).word("--split").word(split).succeeds().stdout);
            String::from_utf8(outputs.collect::<Vec<_>>().concat()).unwrap()
        };
        assert_eq!(read(""), format!("{}\n", elements.join("\n")));
        assert_eq!(
            read("--stage match:7,"),
            String::from_utf8(place.run("f --stage match:7,").and(options).succeeds().stdout).unwrap()
        );
        assert_eq!(read("--each cat"), read(""));
        place.run("--stage fields:1 --split").word(splits[0]).gets_refused().complains_of(&["with JSON"]);
        place.run("--json-pointer /a --split").word(splits[0]).exits(2);
    }
}

#[test]
fn splits_of_a_broken_document() {
    let place = Place::new().file("f", format!("[{}1, 2", "1, ".repeat(100))).file("deep", "[[[1]]]");
    let plan = String::from_utf8(place.words("split --json --size 100 f").succeeds().stdout).unwrap();
    let splits: Vec<_> =
        plan.lines().filter(|line| line.contains("begin")).map(|line| line.trim_end_matches(',')).collect();
    let (last, whole) = splits.split_last().unwrap();
    for split in whole {
        place.run("--split").word(split).succeeds();
    }
    place.run("--split").word(last).fails().complains_of(&["document truncated", "byte 305", "record 101"]);
    place.words("split --json-depth 2 f").exits(2).complains_of(&["--json-depth without JSON that is checked"]);
    let plan = String::from_utf8(place.words("split --json --json-depth 2 deep").succeeds().stdout).unwrap();
    assert!(plan.contains("\"depth\":2") && plan.contains("\"records\":0"), "{plan}");
    place.words("split --json --csv f").exits(2).complains_of(&["cannot be used with"]);
    place.words("split --json-pointer a f").exits(2).complains_of(&["the JSON pointer \"a\""]);
}

#[test]
fn lines_of_json() {
    let place = Place::new().file("a", "{\"a\":1}\n\n").file("b", " \r\n2");
    // One source is copied unchanged. Several are joined by their records, as those of CSV are.
    place.run("--jsonl --count a").succeeds().prints("1 record, 9 bytes\n");
    place.run("--jsonl a").succeeds().prints("{\"a\":1}\n\n");
    place.run("--jsonl --count a b").succeeds().prints("2 records, 9 bytes\n");
    place.run("--jsonl b a").succeeds().prints("2\n{\"a\":1}\n");
    for jobs in ["", "-j 2"] {
        place.run("--jsonl --stage not:x a b").and(jobs).succeeds().prints("{\"a\":1}\n2");
        place.run("--jsonl --stage match:^2 a b").and(jobs).succeeds().prints("2");
        place.run("--jsonl --json-check --count a b").and(jobs).succeeds().prints("2 records, 9 bytes\n");
    }
    // Not checked.
    place.run("--jsonl --count").stdin("{\n").succeeds().prints("1 record, 2 bytes\n");
}

#[test]
fn invalid_lines_of_json_are_reported_or_left_out() {
    let place = Place::new().file("in", "1\n{\"a\": tru}\n\n[2]\n\"\n3");
    let check = |jobs: &str| {
        place
            .run("--jsonl --json-check --stage noop in")
            .and(jobs)
            .fails()
            .complains_of(&["json invalid: found '}', expected true, false or null", "at line 2, column 10"]);
        place.run("--jsonl --json-check --on-bad skip --stage noop in").and(jobs).fails().says(
            "millstream: left out: in: json invalid: found '}', expected true, false or null, at line 2, column 10\n\
             millstream: left out: in: json invalid: found the end of the line inside a string, expected an escape \
             sequence such as \\n, or the closing quote, at line 5, column 2\n\
             millstream: json invalid: found 2 bad records, expected none; the output lacks them\n\
             hint: check the program that wrote the text\n",
        );
        place.run("--jsonl --json-check --rejects bad --stage noop in -o out").and(jobs).exits(0);
        assert_eq!(place.text("out"), "1\n[2]\n3");
        let bad = place.text("bad");
        assert_eq!(bad.lines().count(), 2, "{bad}");
        assert!(bad.contains("\"line\":5,\"column\":2,\"kind\":\"json_invalid\""), "{bad}");
    };
    check("");
    check("-j 2");
}

#[test]
fn the_depth_of_checked_lines_is_limited() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let place = Place::new().file("in", format!("{}\n{}\n", nested(2), nested(3))).file("deep", nested(200));
    let too_deep = |limit: usize| format!("too deep: found arrays and objects nested more than {limit} deep");
    for words in ["", "--stage noop -j 2 ", "--stage noop "] {
        let run = |options: &str| place.run(&format!("--jsonl --json-check {words}{options}"));
        run("in --json-depth 3").succeeds();
        run("in --json-depth 2").fails().complains_of(&[&too_deep(2), "line 2, column 3"]);
        run("deep").fails().complains_of(&[&too_deep(128)]);
        run("deep --json-depth 200").succeeds();
    }
    // A plan stores it.
    let plan = |options: &str| {
        let plan = place.words(&format!("split --jsonl --json-check in {options}")).succeeds().stdout;
        let plan = String::from_utf8(plan).unwrap();
        let split = plan.lines().find(|line| line.contains("begin")).unwrap().trim_end_matches(',').to_string();
        assert_eq!(split.contains("\"depth\":2"), !options.is_empty(), "{split}");
        split
    };
    place.run("--split").word(plan("")).succeeds();
    place.run("--split").word(plan("--json-depth 2")).fails().complains_of(&[&too_deep(2), "line 2"]);
    place.words("split --jsonl --json-depth 2 in").exits(2).complains_of(&["without JSON that is checked"]);
}

#[test]
fn contradictions_are_refused() {
    let place = Place::new();
    let run = |words: &str, complaint: &str| {
        place.run(words).stdin("").exits(2).complains_of(&[complaint]);
    };
    run("--json --csv", "cannot be used with");
    run("--json-pointer /a --jsonl", "cannot be used with");
    run("--json-check", "--jsonl");
    run("--json --json-check", "cannot be used with");
    run("--json --header", "--header without --csv");
    run("--json --stage fields:1", "--stage fields:1 with JSON");
    run("--jsonl --stage fields:1", "--stage fields:1 with JSON");
    run("--json-pointer a", "the JSON pointer \"a\"");
    for words in ["--json-depth 3", "--jsonl --json-depth 3", "--csv --json-depth 3"] {
        run(words, "--json-depth without JSON that is checked");
    }
}
