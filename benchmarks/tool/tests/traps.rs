//! Millstream reads every trap as its documentation says; with `MILLSTREAM_DEEP=1`, the table in `docs/csv.md` is what all
//! programs answer.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use millstream_bench::measure::Place;
use millstream_bench::{competitors, traps};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn place() -> (Place, TempDir) {
    // The tests of the whole workspace build the runners next to this test.
    let own = Path::new(env!("CARGO_BIN_EXE_millstream-bench")).parent().unwrap().to_owned();
    let inputs = tempfile::tempdir().unwrap();
    (Place { root: root(), programs: vec![own], inputs: inputs.path().to_owned() }, inputs)
}

#[test]
fn millstream_is_right() {
    let (place, _inputs) = place();
    let table = traps::table(&place, &traps::PROGRAMS[..1], false).unwrap();
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert!(rows.len() > 10, "{table}");
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert!(cells[2].starts_with("all"), "{row}");
    }
}

#[test]
fn the_table_of_small_files_is_what_programs_answer() {
    if env::var_os("MILLSTREAM_DEEP").is_none() {
        return;
    }
    let (mut place, _inputs) = place();
    place.programs.push(competitors::build(&place.root, &place.programs[0].clone()).unwrap());
    if !place.programs[1].join("python-tables").is_file() {
        eprintln!("SKIPPED: polars, DuckDB and pyarrow are not installed");
        assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "with CI=true they must be");
        return;
    }
    let table = traps::table(&place, &traps::PROGRAMS, false).unwrap();
    let text = fs::read_to_string(root().join("docs/csv.md")).unwrap();
    let updated = traps::update(&text, 0, &table).unwrap();
    assert!(
        updated == text,
        "docs/csv.md: in benchmarks/: cargo run --release -- traps --write; the answers are\n{table}"
    );
}
