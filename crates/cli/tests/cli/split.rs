//! `millstream split` and `run --split`.

use crate::place::Place;

/// Prints the plan and returns its splits, one line of JSON each.
fn split(place: &Place, words: &str) -> Vec<String> {
    let plan = String::from_utf8(place.words(&format!("split {words}")).succeeds().stdout).unwrap();
    let lines = plan.lines().filter(|line| line.starts_with(r#"{"version":1,"path""#));
    lines.map(|line| line.trim_end_matches(',').to_string()).collect()
}

fn lines() -> String {
    (0..1000).map(|i| format!("{i}\n")).collect()
}

#[test]
fn the_outputs_of_all_splits_are_the_file() {
    let documents =
        [5u32, 0, 9, 0, 0].map(|zeros| [&(zeros + 5).to_le_bytes()[..], &vec![0; zeros as usize + 1]].concat());
    for (options, content) in [
        ("", lines().into_bytes()),
        ("", b"no delimiter".repeat(100)),
        ("--null", b"a\0bc\0\0d".repeat(50)),
        ("--delimiter=11", b"1111011110".repeat(50)),
        ("--fixed 7", b"0123456".repeat(50)),
        ("--length-prefixed u8", b"\x02ab\0\x01c".repeat(50)),
        ("--jsonl", b"{}\n[1]\n".repeat(50)),
        ("--bson", documents.concat().repeat(20)),
    ] {
        let place = Place::new().file("f", &content);
        let splits = split(&place, &format!("{options} --size 100 f"));
        let outputs = splits.iter().map(|split| place.run("--split").word(split).succeeds().stdout);
        assert_eq!(outputs.collect::<Vec<_>>().concat(), content, "{options}");
        let whole = place.run(&format!("--count {options} f")).succeeds().stdout;
        let counted = splits.iter().map(|split| {
            let count = place.run("--count --split").word(split).succeeds().stdout;
            String::from_utf8(count).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
        });
        let records = format!("{} record", counted.sum::<u64>());
        assert!(String::from_utf8(whole).unwrap().starts_with(&records), "{options}: {records}");
    }
}

#[test]
fn a_split_is_moved_like_a_file() {
    let place = Place::new().file("f", lines());
    let splits = split(&place, "--size 2K f");
    assert_eq!(splits.len(), 2);
    let run = |words: &str| place.run(words).and("--split").word(&splits[1]);
    run("--stage match:^99 --stage take:2").succeeds().prints("990\n991\n");
    run("-o part").succeeds().prints("");
    run("--stats stats").succeeds();
    let stats = place.text("stats");
    assert!(stats.contains(&format!(r#""bytes": {},"#, place.read("part").len())), "{stats}");
    run("--each cat").succeeds().prints(place.read("part"));
}

#[test]
fn errors_in_a_numbered_split_have_the_line_of_the_file() {
    let place = Place::new().file("f", lines().replace("999\n", "too long\n"));
    let fails = |words: &str, place_of_error: &str| {
        let splits = split(&place, words);
        place.run("--record-limit 3 --count --split").word(&splits[1]).fails().complains_of(&[place_of_error]);
    };
    fails("--size 2K --number f", "expected at most 3, at line 1000\n");
    fails("--size 2K f", "at byte 3886, record 459");
}

#[test]
fn a_copy_of_the_file() {
    let place = Place::new().file("f", lines()).file("copy", lines()).file("other", lines().replace('7', "6"));
    let ends = split(&place, "--pin ends f").remove(0);
    place.run("copy --split").word(&ends).succeeds().prints(lines());
    place.run("other --split").word(&ends).fails().complains_of(&["other: source changed", "plan the file again"]);
    let identity = split(&place, "f").remove(0);
    place.run("copy --split").word(identity).fails().complains_of(&["copy: source changed: found the inode"]);
    let full = split(&place, "--pin full f").remove(0);
    place.run("copy --split").word(full).succeeds().prints(lines());
}

#[test]
fn bad_use() {
    let place = Place::new().file("f", "a\nb\n");
    let element = &split(&place, "f")[0];
    let run = |words: &str, element: &str| place.run(words).and("--split").word(element);
    run("", "{}").gets_refused().complains_of(&["a split that is not valid: missing field `version`"]);
    run("--null", element).gets_refused();
    run("-", element).gets_refused().complains_of(&["--split with a source other than one file or URL"]);
    run("f f", element).gets_refused().complains_of(&["--split with a source other than one file or URL"]);
    let newer = element.replace(r#""version":1"#, r#""version":2"#);
    run("", &newer).gets_refused().complains_of(&["a plan of format version 2"]);
    place.words("split absent").fails().complains_of(&["absent: open failed"]);
    place.words("split .").fails().complains_of(&["something that is not a regular file"]);
    place.words("split --size 0 f").gets_refused();
}

#[test]
fn a_compressed_file_is_one_split_that_says_so() {
    let place = Place::new();
    place.run("-o f.gz").stdin(lines()).succeeds();
    let plan = String::from_utf8(place.words("split --size 100 f.gz").succeeds().stdout).unwrap();
    let note = r#""note":"the file is compressed in a format that is decoded from its start; make an index of it""#;
    assert!(plan.contains(note), "{plan}");
    let splits = split(&place, "--size 100 f.gz");
    assert_eq!(splits.len(), 1);
    place.run("--split").word(&splits[0]).succeeds().prints(lines());
    assert!(split(&place, "--size 100 --decode off f.gz").len() > 1);
}

#[test]
fn splits_of_csv_are_exact() {
    let table = "a,\"b\n,\"\"\n\"\n1;2\n\"x\ny\",z\n\n3,4";
    let place = Place::new().file("t", table);
    for options in ["--csv", "--csv --csv-escape \\\\", "--csv --csv-line-end lf"] {
        let json = place.words(&format!("split t --size 4 {options}")).succeeds().stdout;
        let json = String::from_utf8(json).unwrap();
        let elements: Vec<_> = json.lines().filter(|line| line.starts_with('{') && line.contains("begin")).collect();
        assert!(elements.len() > 3, "{json}");
        let read = |words: &str| {
            let outputs = elements.iter().map(|element| {
                let element = element.trim_end_matches(',');
                place.run(words).word("--split").word(element).succeeds().stdout
            });
            outputs.collect::<Vec<_>>().concat()
        };
        assert_eq!(String::from_utf8(read("")).unwrap(), table);
        assert_eq!(String::from_utf8(read(options)).unwrap(), table);
        let element = elements[0].trim_end_matches(',');
        let refused = |words: &str| place.run(words).word("--split").word(element).gets_refused();
        refused("--csv --csv-quote '").complains_of(&["a split of another dialect"]);
        refused("--csv --header").complains_of(&["--header with a split without one"]);
    }
}

#[test]
fn an_error_in_a_split_has_the_place_in_the_file() {
    let good = "\"a\nb\",1\n".repeat(40);
    for (bad, found) in [
        ("x,\"y\"z\n", "found 'z' after a closing quote, in a field that begins 3 bytes before"),
        ("x,\"never closed\n", "found a quote that no other quote closes before the end of the input"),
        ("x\n", "found 1 field, expected 2, as in the header"),
    ] {
        let place = Place::new().file("t", format!("a,n\n{good}{bad}{}", "c,1\n".repeat(9)));
        let last = split(&place, "--csv --header --size 64 t").pop().unwrap();
        let error = |words: &str, split: &str| {
            let run = place.run("--csv --header --stage fields:n").and(words);
            let seen = if split.is_empty() { run } else { run.word(split) }.fails();
            let (_, message) = seen.stderr.split_once("t: ").unwrap();
            message.to_string()
        };
        let expected = error("t", "");
        assert!(expected.contains(found) && expected.contains(", at line 82"), "{expected}");
        assert_eq!(error("--split", &last), expected);
    }
}

#[test]
fn every_split_of_csv_has_the_header() {
    let rows: String = (0..1000).map(|i| format!("{i},\"a\n{i}\",{}\n", i * 2)).collect();
    let place =
        Place::new().file("t", format!("# a comment\nid,\"the text\",n\n{rows}")).file("empty", "# a comment\n");
    let options = "--csv --csv-comment #";
    let json = place.words(&format!("split t --size 2000 --header {options}")).succeeds().stdout;
    let json = String::from_utf8(json).unwrap();
    let elements: Vec<_> =
        json.lines().filter(|line| line.contains("begin")).map(|line| line.trim_end_matches(',')).collect();
    assert!(elements.len() > 5, "{json}");
    assert!(elements.iter().all(|element| element.contains(r#""header":"id,\"the text\",n""#)), "{json}");
    let read = |words: &str| {
        let run = |element: &&str| place.run(words).and(options).word("--split").word(element).succeeds().stdout;
        String::from_utf8(elements.iter().flat_map(run).collect()).unwrap()
    };
    assert_eq!(read(""), place.text("t"));
    assert_eq!(read("--header"), place.text("t"));
    let numbers: String = (0..1000).map(|i| format!("{}\n", i * 2)).collect();
    assert_eq!(read("--header --stage fields:n"), format!("n\n{numbers}"));
    let run = place.run("--header --stage fields:n --each").word("head -n1").and(options);
    run.word("--split").word(elements[3]).succeeds().prints("n\n");
    place.words("split empty --csv --csv-comment # --header").fails().complains_of(&["no record", "a header"]);
    place.words("split t --header").gets_refused().complains_of(&["--csv"]);
}
