//! The tables and the chart in the documentation equal the record.

use std::fs;
use std::path::{Path, PathBuf};

use millstream_bench::record::Record;
use millstream_bench::results::Met;
use millstream_bench::{chart, docs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn record() -> Record {
    Record::load(&root().join("benchmarks/record.json")).unwrap()
}

fn rows() -> Vec<chart::Row> {
    chart::rows(&fs::read_to_string(root().join("benchmarks/chart.toml")).unwrap(), &record()).unwrap()
}

#[test]
fn the_tables_are_those_of_the_record() {
    let text = fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
    assert!(text.contains("<!-- measured: "));
    assert!(
        docs::update(&text, &record(), &rows()).unwrap() == text,
        "docs/benchmarks.md: in benchmarks/: cargo run -- docs"
    );
}

#[test]
fn every_question_with_a_target_is_in_the_tables() {
    let text = fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
    for target in record().questions.iter().flat_map(|entry| &entry.targets) {
        assert!(text.contains(&format!("| {} |", target.work)), "{} is in no table", target.work);
    }
}

#[test]
fn the_chart_is_that_of_the_record() {
    let chart = chart::draw(&rows());
    assert!(fs::read_to_string(root().join("docs/speed.svg")).unwrap() == chart, "in benchmarks/: cargo run -- docs");
}

#[test]
fn what_is_missed_is_explained() {
    let record = record();
    let targets = record.questions.iter().flat_map(|entry| &entry.targets);
    let unexplained: Vec<_> = targets.filter(|one| one.row.met == Met::No && one.if_missed.is_none()).collect();
    assert!(unexplained.is_empty(), "these need an `if_missed` in benchmarks/record.json: {unexplained:#?}");
}
