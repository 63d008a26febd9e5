//! The profiler from end to end: its flame graphs can be displayed and contain the runner's functions.

use std::fs;
use std::path::Path;
use std::process::Command;

use millstream_bench::definition::Definition;
use millstream_bench::flame::profile::profile;
use millstream_bench::measure::Place;
use resvg::tiny_skia::Pixmap;

/// Profiles this runner over a few megabytes of lines and returns the frames of the flame graph.
fn frames(runner: &str, clock: &str, record: &Path) -> String {
    let definition = Definition::parse(&format!(
        r#"
        name = "lines"
        question = "Where does the time go?"
        clock = "{clock}"
        full = {{ input.lines = {{ bytes = 5_000_000, mean = 80, seed = 1 }}, answers.all = {{ count = 1 }} }}
        quick = {{ input.lines = {{ bytes = 5_000_000, mean = 80, seed = 1 }}, answers.all = {{ count = 1 }} }}
        runner = [{runner}]
        "#
    ))
    .unwrap();
    let inputs = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_millstream-bench")).parent().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = Place { root, programs: vec![programs.to_owned()], inputs: inputs.path().to_owned() };
    let profiles = profile(&definition, None, &place, record).unwrap();
    assert_eq!(profiles.len(), 1);
    assert!(profiles[0].plain > 0.0 && profiles[0].profiled > 0.0);

    let file = |extension: &str| record.join(format!("lines.one.{extension}"));
    let picture = Pixmap::decode_png(&fs::read(file("png")).unwrap()).unwrap();
    // More than one colour means that the image contains frames.
    assert!(picture.width() > 500 && picture.pixels().iter().any(|pixel| *pixel != picture.pixels()[0]));
    fs::read_to_string(file("svg")).unwrap()
}

#[test]
fn a_millstream_program_samples_itself() {
    let record = tempfile::tempdir().unwrap();
    let runner = r#"{ name = "one", command = ["pipes", "hashed", "--way", "pipe", "{input}"] }"#;
    let svg = frames(runner, "inside", record.path());
    for function in ["pipes::main", "pipes::hashed::"] {
        assert!(svg.contains(function), "no {function} in {svg}");
    }
}

#[test]
fn node_leaves_a_profile_for_devtools() {
    if !Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: there is no node");
        return;
    }
    let record = tempfile::tempdir().unwrap();
    let program = record.path().join("spin.mjs");
    let spin =
        "function turnTheWheel(end) { let n = 0; while (performance.now() < end) n += Math.sqrt(n + 1); return n; }
        turnTheWheel(performance.now() + 300);
        console.log('count=1');";
    fs::write(&program, spin).unwrap();
    let runner = format!(r#"{{ name = "one", command = ["node", "{}"] }}"#, program.display());
    let svg = frames(&runner, "process", record.path());
    assert!(svg.contains("turnTheWheel"), "{svg}");
    let kept = fs::read_to_string(record.path().join("lines.one.cpuprofile")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert!(kept["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty()));
}
