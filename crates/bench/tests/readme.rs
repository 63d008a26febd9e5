//! The tables of README.md are those of the newest records.

use std::fs;
use std::path::Path;

use millstream_bench::readme;

#[test]
fn the_tables_are_of_the_newest_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let text = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(text.contains("<!-- measured: "));
    let updated = readme::update(&text, &readme::records(&root).unwrap()).unwrap();
    assert!(updated == text, "README.md is not what the records say: cargo run -p millstream-bench -- readme");
}
