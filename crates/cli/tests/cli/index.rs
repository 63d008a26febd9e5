//! `millstream index`.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::place::Place;

fn packed() -> Place {
    let place = Place::new().file("a", (0..300_000).map(|number| format!("{number}\n")).collect::<String>());
    place.run("a -o a.gz").succeeds();
    place
}

#[test]
fn an_index_appears_beside_the_file() {
    let place = packed();
    place.words("index a.gz --spacing 64K").succeeds().prints("").says("");
    assert_eq!(place.names(), ["a", "a.gz", "a.gz.gzidx"]);
    let index = millstream::GzipIndex::load(place.path("a.gz.gzidx")).unwrap();
    let data = place.read("a");
    assert_eq!(index.decoded_len(), data.len() as u64);
    assert!(index.offsets().len() > 1);
    let mut rest = Vec::new();
    index.open(place.path("a.gz"), 1_000_000).unwrap().read_to_end(&mut rest).unwrap();
    assert!(rest == data[1_000_000..]);
    let printed = place.words("index a.gz --spacing 64K -o -").succeeds().stdout;
    assert!(printed == place.read("a.gz.gzidx"));
}

#[test]
fn no_index_appears_for_a_file_that_is_not_whole() {
    let place = packed();
    let content = place.read("a.gz");
    let place = place.file("a.gz", &content[..content.len() - 1]);
    place.words("index a.gz").fails().complains_of(&["a.gz: decode truncated", "a gzip member"]);
    place.words("index a").fails().complains_of(&["a: decode damaged"]);
    place.words("index none").fails().complains_of(&["none: open failed"]);
    place.words("index .").fails().complains_of(&["expected a file that can be read from any place"]);
    place.words("index a.gz --spacing 1K").gets_refused().complains_of(&["64K"]);
    assert_eq!(place.names(), ["a", "a.gz"]);
}

#[test]
fn a_gzip_file_with_an_index_is_read_on_several_threads() {
    // Numbers in an order that does not compress well: several splits of 4 MiB.
    let text: String = (0..1_200_000_u32).map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761))).collect();
    let place = Place::new().file("a", &text);
    place.run("a -o a.gz").succeeds();
    place.words("index a.gz --spacing 1M").succeeds();
    let splits = |words: &str| {
        let plan = String::from_utf8(place.words(words).succeeds().stdout).unwrap();
        plan.lines().filter(|line| line.starts_with(r#"{"version":1,"path""#)).map(str::to_string).collect::<Vec<_>>()
    };
    let found = splits("split --size 3M a.gz");
    assert!(found.len() > 2, "{found:?}");
    let parts = found.iter().map(|split| place.run("--split").word(split.trim_end_matches(',')).succeeds().stdout);
    assert!(parts.collect::<Vec<_>>().concat() == text.as_bytes());
    for words in ["a.gz --count", "a.gz --stage match:77", "a.gz --stage match:7 --count"] {
        let expected = place.run(words).succeeds().stdout;
        assert!(place.run(words).and("-j 3").succeeds().stdout == expected, "{words}");
    }
    // The index elsewhere.
    std::fs::rename(place.path("a.gz.gzidx"), place.path("index")).unwrap();
    assert_eq!(splits("split --size 3M a.gz").len(), 1);
    let named = splits("split --size 3M --index index a.gz");
    assert_eq!(named.len(), found.len());
    place.run("--count --split").word(named[1].trim_end_matches(',')).succeeds();
    place.words("split --index index a").gets_refused().complains_of(&["an index only for a gzip file"]);
    // A change to the file after the index was made: an error, with one thread and with several.
    std::fs::rename(place.path("index"), place.path("a.gz.gzidx")).unwrap();
    let mut changed = place.read("a.gz");
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    let place = place.file("a.gz", &changed);
    for jobs in ["", "-j 3"] {
        place.run("a.gz --stage match:7 -o out").and(jobs).fails().complains_of(&["a.gz: decode damaged"]);
        assert!(!place.names().contains(&"out".to_string()));
    }
}

#[test]
fn an_index_can_be_made_while_a_file_is_moved() {
    let place = packed();
    let expected = {
        place.words("index a.gz -o expected").succeeds();
        place.read("expected")
    };
    let read = |name: &str| {
        let index = place.read(name);
        assert!(index == expected, "{name}");
        std::fs::remove_file(place.path(name)).unwrap();
    };
    let data = place.read("a");
    assert!(place.run("a.gz --index i").succeeds().stdout == data);
    read("i");
    place.run("a.gz --index i --count").succeeds().prints(format!("300000 records, {} bytes\n", data.len()));
    read("i");
    let seen = place.run("a.gz --index i -o out --stage match:77 --each cat -j 2 --stats -").succeeds();
    let stats = String::from_utf8(seen.stdout).unwrap();
    let size = format!("\"source_bytes\": {}", place.read("a.gz").len());
    assert!(stats.contains(&size) && stats.contains("\"decoded\": \"gzip\""), "{stats}");
    read("i");
    assert!(place.run("--index i").stdin(place.read("a.gz")).succeeds().stdout == data);
    read("i");
    // The index is used.
    place.run("a.gz --index a.gz.gzidx --count").succeeds();
    assert!(place.run("a.gz -j 2 --stage match:77").succeeds().stdout == place.read("out"));
}

#[test]
fn no_index_appears_if_the_file_changes() {
    let grows = |words: &str| {
        // Without compression the file is longer than what is read ahead, so its end has not been read when it grows.
        let place = Place::new().file("a", vec![b'\n'; 24 << 20]);
        place.run("a --encode gzip:0 -o a.gz").succeeds();
        let (mut reader, pipe) = std::io::pipe().unwrap();
        let mut command = place.run("a.gz --index i").and(words).into_command();
        let child = command.stdout(pipe).stderr(Stdio::piped()).spawn().unwrap();
        drop(command); // and with it our end of the pipe
        reader.read_exact(&mut [0]).unwrap();
        let mut file = std::fs::File::options().append(true).open(place.path("a.gz")).unwrap();
        file.write_all(&place.read("a.gz")).unwrap();
        std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
        let seen = child.wait_with_output().unwrap();
        (seen.status.code(), String::from_utf8(seen.stderr).unwrap(), place.path("i").exists())
    };
    assert_eq!(grows(""), (Some(0), String::new(), true));
    let (status, stderr, has_index) = grows("--pin identity");
    assert!(stderr.starts_with("millstream: a.gz: source changed: found "), "{stderr}");
    assert_eq!((status, has_index), (Some(1), false));
}

#[test]
fn no_index_appears_if_the_run_fails_or_cannot_make_one() {
    let place = packed();
    let content = place.read("a.gz");
    let place = place.file("cut.gz", &content[..content.len() - 1]);
    place.run("a -o a.zst").succeeds();
    let names = place.names();
    place.run("cut.gz --index i -o out").fails().complains_of(&["cut.gz: decode truncated", "a gzip member"]);
    place.run("a.gz --index i --record-limit 3 -o out").fails().complains_of(&["a.gz: record too long"]);
    for other in ["a", "a.zst"] {
        let wrong = ["--index for a file that does not begin as gzip does", "expected a gzip file"];
        place.run(other).and("--index i -o out").fails().complains_of(&wrong);
    }
    place.run("--index i -o out").stdin("no gzip").fails().complains_of(&["standard input: decode damaged"]);
    for (words, found) in [
        ("a.gz a.gz", "--index with other sources"),
        ("-- cat a.gz", "--index with other sources"),
        ("a.gz -j 2 --stage match:7", "--index with -j"),
        ("a.gz --decode off", "--index with --decode"),
        ("a.gz --stage take:3", "--index with --stage take:3"),
    ] {
        place.run("--index i -o out").and(words).gets_refused().complains_of(&[found]);
    }
    place.run("a.gz --index a.gz -o out").fails().complains_of(&["a.gz: open failed", "not one of the sources"]);
    place.run("a.gz --index out -o out").fails().complains_of(&["out: open failed", "not also another output"]);
    assert_eq!(place.names(), names);
}
