//! The command line of the tool: a killed run can be continued, and programs can parse the output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use millstream_bench::results::Results;
use tempfile::TempDir;

/// Creates a directory of definitions, each with one runner, which executes this line of bash.
fn definitions(lines: &[(&str, String)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (number, (name, line)) in lines.iter().enumerate() {
        let text = format!(
            r#"
            name = "{name}"
            question = "Is it?"
            full.answers.all = {{ count = 1 }}
            quick.answers.all = {{ count = 1 }}
            [[runner]]
            name = "it"
            command = '''{line}'''
            "#
        );
        fs::write(directory.path().join(format!("{number}-{name}.toml")), text).unwrap();
    }
    directory
}

/// Runs the tool with these definitions.
fn tool(definitions: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream-bench"));
    command.args(["--quick", "--no-build", "--runs", "1", "--definitions"]).arg(definitions);
    command.arg("--journal").arg(journal(definitions));
    command
}

fn journal(definitions: &Path) -> PathBuf {
    definitions.join("journal")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_killed_run_continues_where_it_was() {
    let scratch = tempfile::tempdir().unwrap();
    let [runs, gate] = ["runs", "gate"].map(|name| scratch.path().join(name));
    let definitions = definitions(&[
        ("quick", format!("echo x >> {}; echo count=1", runs.display())),
        ("stuck", format!("until test -e {}; do sleep 0.02; done; echo count=1", gate.display())),
    ]);
    let path = definitions.path();

    let mut killed = tool(path).spawn().unwrap();
    let start = Instant::now();
    // The first line contains the request, the second the first results.
    while fs::read_to_string(journal(path)).unwrap_or_default().lines().count() < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "no answer was noted");
        thread::sleep(Duration::from_millis(10));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::write(&gate, "").unwrap();
    let noted = fs::read_to_string(&runs).unwrap();

    let output = tool(path).args(["--resume", "--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Results = serde_json::from_str(&text(&output)).unwrap();
    let names: Vec<&str> = results.definitions.iter().map(|question| question.name.as_str()).collect();
    assert_eq!(names, ["quick", "stuck"]);
    assert!(results.definitions.iter().all(|question| question.measured().count() == 1));
    assert_eq!(fs::read_to_string(&runs).unwrap(), noted, "what was answered has been measured again");
    assert!(!journal(path).exists());
}

#[test]
fn there_must_be_something_to_continue() {
    let definitions = definitions(&[("echo", "echo count=1".to_owned())]);
    let refused = |arguments: &[&str]| {
        let output = tool(definitions.path()).arg("--resume").args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = refused(&[]);
    assert!(error.contains("there is no run to continue"), "{error}");
    assert!(tool(definitions.path()).status().unwrap().success());
    assert!(!journal(definitions.path()).exists());
}

#[test]
fn where_the_time_goes_is_seen_in_runs_of_their_own() {
    let definitions = definitions(&[("echo", "echo count=1".to_owned())]);
    // As in benchmarks/definitions/102-rust-parallel.toml.
    let pipe = r#"
        name = "pipe"
        question = "Where does the time go?"
        full = { input.lines = { bytes = 9, mean = 4, seed = 1 }, answers.all = { count = 1 } }
        quick = { input.lines = { bytes = 300_000, mean = 80, seed = 102 }, answers.all = { count = 3_757, mix = 311_024_018 } }
        runner = [{ name = "pipe", command = ["pipes", "hashed", "--way", "parallel", "--threads", "2", "{input}"], stats = true }]
    "#;
    fs::write(definitions.path().join("2-pipe.toml"), pipe).unwrap();
    let output = tool(definitions.path()).args(["--where", "--budget", "60", "--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Results = serde_json::from_str(&text(&output)).unwrap();
    let seen = |at: usize| results.definitions[at].runners[0].seen.clone().unwrap();

    let times = seen(1).pipe.unwrap();
    let inside: Vec<(u64, bool)> = times.stages.iter().map(|stage| (stage.records, stage.seconds > 0.0)).collect();
    assert_eq!(inside, [(3_757, true)]);
    // A file never blocks.
    assert!(times.seconds > times.waited_on_source_seconds);
    assert_eq!(seen(0).pipe, None);

    match seen(0).system_calls {
        Some(calls) => assert!(calls.iter().any(|one| one.name == "write" && one.calls > 0), "{calls:?}"),
        None => {
            assert!(String::from_utf8_lossy(&output.stderr).contains("SKIPPED: echo: it: no system calls are counted"));
            assert!(std::env::var("CI").as_deref() != Ok("true"), "strace is missing, or may not look");
        }
    }
}

#[test]
fn wrong_answers_fail_in_every_format() {
    let definitions = definitions(&[("right", "echo count=1".to_owned()), ("wrong", "echo count=2".to_owned())]);
    let say = |format: &str| {
        let output = tool(definitions.path()).args(["--format", format]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{format}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains("WRONG: wrong: it: count=2 instead of 1"), "{errors}");
        text(&output)
    };
    let tap = say("tap");
    assert!(tap.starts_with("TAP version 14\nok 1 - right: every answer is correct\nnot ok 2 - wrong:"), "{tap}");
    assert!(tap.ends_with("1..2\n"), "{tap}");
    assert!(say("text").contains("wrong: 0 of 1 correct"));
    assert!(say("markdown").contains("| it |"));
    say("json");
}

#[test]
#[ignore = "builds the tool and another revision of it from nothing, optimised: a quarter of an hour"]
fn a_revision_is_built_and_takes_turns() {
    let (root, target) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), tempfile::tempdir().unwrap());
    let output = Command::new("cargo")
        .args([
            "run",
            "--release",
            "--manifest-path",
            "benchmarks/Cargo.toml",
            "--bin",
            "millstream-bench",
            "--target-dir",
        ])
        .arg(target.path())
        .args(["--", "--vs", "HEAD", "--only", "file-lines-80", "--runs", "1"])
        .current_dir(root)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = text(&output);
    for runner in ["next_line", "next_batch"] {
        let row = said.lines().find(|line| line.contains(&format!("file-lines-80: {runner}: ")));
        assert!(row.is_some_and(|row| row.contains(&format!("against {runner} at "))), "{said}");
    }
}
