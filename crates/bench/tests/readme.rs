//! The tables of README.md are those of the newest records.

use std::fs;
use std::path::Path;

use millstream_bench::definition::Definition;
use millstream_bench::readme;

#[test]
fn the_tables_are_of_the_newest_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let text = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(text.contains("<!-- measured: "));
    let definitions = Definition::load_all(&root.join("bench/definitions")).unwrap();
    let updated = readme::update(&text, &readme::records(&root, &definitions).unwrap()).unwrap();
    // What is missed has a number behind it, for what stands in the way.
    let unexplained: Vec<&str> =
        text.lines().filter(|line| line.starts_with('|') && line.ends_with("**no** |")).collect();
    assert_eq!(unexplained, [""; 0], "these need an `if_missed` in bench/definitions");
    assert!(updated == text, "README.md is not what the records say: cargo run -p millstream-bench -- readme");
}
