//! `millstream index`.

use std::io::Read;

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
