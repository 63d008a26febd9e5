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
    place.words("index a.gz").fails().complains_of(&["a.gz: decode truncated", "inside a gzip member"]);
    place.words("index a").fails().complains_of(&["a: decode damaged"]);
    place.words("index none").fails().complains_of(&["none: open failed"]);
    place.words("index .").fails().complains_of(&["expected a file that can be read from any place"]);
    place.words("index a.gz --spacing 1K").gets_refused().complains_of(&["64K"]);
    assert_eq!(place.names(), ["a", "a.gz"]);
}
