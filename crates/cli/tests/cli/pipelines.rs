//! Sources that are several commands: a shell line (`--shell`), and commands without a shell (`--pipeline`).

use std::fs;
use std::os::unix::fs::symlink;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{Place, Words, is_there, until};

/// Returns the exit statuses of the members of the only source, and their commands.
fn members(place: &Place) -> (Vec<Value>, Vec<Value>) {
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    let members = stats["sources"][0]["members"].as_array().unwrap_or_else(|| panic!("{stats}"));
    let all = |key: &str| members.iter().map(|member| member[key].clone()).collect();
    (all("exit_status"), all("command"))
}

/// Adds a shell line.
fn line(words: Words, line: &str) -> Words {
    words.word("--shell").word(line)
}

#[test]
fn each_command_of_a_line_must_succeed() {
    let place = Place::new();
    line(place.run(""), "seq 3 | tail -n 1").succeeds().prints("3\n");
    for (text, found) in [
        ("seq 3 | sh -c 'cat; exit 3' | cat", "found status 3 of command 2 of 3, `sh -c 'cat; exit 3'`, at byte 6\n"),
        ("seq 3 | cat | (cat; exit 4)", "exited with status 4: found status 4 of command 3 of 3, at byte 6\n"),
        (
            "(seq 3; exit 2) | cat | (cat; exit 4)",
            "found status 2 of command 1 of 3, and status 4 of command 3 of 3, at byte 6\n",
        ),
        // The cause is not a command of the last pipeline.
        ("seq 3 | cat; exit 5", "| cat; exit 5'` exited with status 5, at byte 6\n"),
        ("seq 3; exit 6", "seq 3; exit 6'` exited with status 6, at byte 6\n"),
    ] {
        line(place.run("-o out"), text).fails().complains_of(&[found]);
        line(place.run("--count"), text).fails().prints("").complains_of(&[found]);
        line(place.run("--stats stats"), text).fails().prints("1\n2\n3\n").complains_of(&[found]);
        let message: Value = serde_json::from_slice(&place.read("stats")).unwrap();
        assert!(message["error"]["message"].as_str().unwrap().contains(found.trim_end()), "{message}");
        assert_eq!(place.names(), ["stats"]);
    }
    line(place.run("--success-statuses 0,3"), "false | sh -c 'cat; exit 3'").succeeds().prints("");
}

#[test]
fn lines_of_every_kind_work() {
    let place = Place::new();
    fs::create_dir(place.path("inner")).unwrap();
    let cases: &[(&str, i32, &str, &[i32])] = &[
        ("cd inner; pwd | sed 's|.*/||'", 0, "inner\n", &[0, 0]),
        ("echo one | cat; exit 3", 1, "one\n", &[0, 0]),
        ("set -e; echo one; false | cat; echo two", 1, "one\n", &[1, 0]),
        ("echo one | cat # | false", 0, "one\n", &[0, 0]),
        ("cat <<END | tr a-z A-Z\none\nEND", 0, "ONE\n", &[0, 0]),
        ("cat <<END\none\nEND", 0, "one\n", &[0]),
        ("x=1\n\nif true | true; then\n  echo $x |\n    cat\nfi\n", 0, "1\n", &[0, 0]),
        ("echo one | cat &", 0, "one\n", &[0]),
        ("(sleep 0.2; echo two) & echo one | cat; wait", 0, "one\ntwo\n", &[0]),
        ("f() { echo one | cat; }; f; f | cat", 0, "one\none\n", &[0, 0]),
        ("! false | cat", 0, "", &[1, 0]),
        ("set -euxC; exec 2>/dev/null; echo one | cat", 0, "one\n", &[0, 0]),
        ("printf() { exit 9; }; echo one | cat", 0, "one\n", &[0, 0]),
        ("exec >out; echo one | cat", 0, "", &[0, 0]),
        ("echo $0 $# $LINENO | cat", 0, "BASH 0 1\n", &[0, 0]),
        ("if", 1, "", &[2]),
        // The statuses are unknown.
        ("trap 'echo end' EXIT; echo one | cat", 0, "one\nend\n", &[]),
        ("echo one | cat; exec echo two", 0, "one\ntwo\n", &[]),
        ("echo one | cat; kill -9 $$", 1, "one\n", &[]),
    ];
    for &(text, status, printed, statuses) in cases {
        let seen = line(place.run("--stats stats"), text).exits(status);
        let bash =
            String::from_utf8(seen.stdout).unwrap().replace("/usr/bin/bash", "BASH").replace("/bin/bash", "BASH");
        assert_eq!(bash, printed, "{text}");
        assert_eq!(members(&place).0, statuses.iter().map(|&status| status.into()).collect::<Vec<Value>>(), "{text}");
    }
    line(place.run("--stats stats"), "seq 3 | grep -v '|' | tail -n1").succeeds().prints("3\n");
    assert_eq!(members(&place).1, ["seq 3", "grep -v '|'", "tail -n1"]);
    line(place.run("--stats stats"), "seq 3 | cat;").succeeds();
    assert_eq!(members(&place), (vec![0.into(), 0.into()], vec![Value::Null, Value::Null]));
}

/// The commands of a line have the environment and the descriptors that they have without this program.
#[test]
fn a_line_inherits_nothing() {
    let place = Place::new().file("begin file", "ONE=1\n");
    let see = "env | grep -e BASH_ENV; for fd in /proc/self/fd/*; do echo ${fd##*/}; done; echo ${ONE-}";
    let stdout = |mut words: std::process::Command, value: Option<&str>| {
        match value {
            Some(value) => words.env("BASH_ENV", value),
            None => words.env_remove("BASH_ENV"),
        };
        let seen = words.env("DIRECTORY", place.path("")).output().unwrap();
        assert_eq!(String::from_utf8(seen.stderr).unwrap(), "", "{value:?}");
        String::from_utf8(seen.stdout).unwrap()
    };
    for value in [None, Some(""), Some("missing"), Some("begin file"), Some("$DIRECTORY/begin file"), Some("it's")] {
        let with = stdout(line(place.run(""), see).into_command(), value);
        let without = stdout(place.run("-- bash -c").word(see).into_command(), value);
        assert_eq!(with, without, "{value:?}");
        assert_eq!(with.ends_with("\n1\n"), value.is_some_and(|value| value.contains("begin")), "{with}");
    }
}

/// In its POSIX mode, bash does not read the file that reports the statuses.
#[test]
fn a_line_in_posix_mode_inherits_nothing() {
    let place = Place::new();
    for (variable, value) in [("POSIXLY_CORRECT", ""), ("SHELLOPTS", "braceexpand:posix")] {
        let mut words = line(place.run("--stats stats"), "env | grep BASH_ENV; set -o | grep posix").into_command();
        let seen = words.env(variable, value).env_remove("BASH_ENV").output().unwrap();
        assert_eq!(String::from_utf8(seen.stdout).unwrap().split_whitespace().collect::<Vec<_>>(), ["posix", "on"]);
        assert_eq!(members(&place).0, [""; 0]);
    }
}

#[test]
fn without_bash_a_line_is_refused() {
    let place = Place::new();
    let mut words = line(place.run("-o out --stats stats"), "seq 3 | cat").into_command();
    let seen = words.env("PATH", place.path("")).output().unwrap();
    let stderr = String::from_utf8(seen.stderr).unwrap();
    assert_eq!(seen.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("millstream: seq 3 | cat: unsupported: found no bash in PATH, expected bash"),
        "{stderr}"
    );
    assert!(stderr.contains("\nhint: install bash"), "{stderr}");
    assert_eq!(place.names(), [""; 0]);
    // Any other program of this directory is found.
    symlink("/bin/sh", place.path("sh")).unwrap();
    let mut words =
        place.run("--pipeline : -- sh -c").word("echo one").and(": sh -c").word("read x; echo $x").into_command();
    let seen = words.env("PATH", place.path("")).output().unwrap();
    assert_eq!(seen.stdout, b"one\n", "{}", String::from_utf8_lossy(&seen.stderr));
}

#[test]
fn a_command_whose_reader_had_enough() {
    let place = Place::new();
    // bash reports the signal, which is a failure unless its status is listed.
    let found = "exited with status 141: found status 141 (SIGPIPE) of command 1 of 2, `yes`, at byte 2\n";
    line(place.run("-o out"), "yes | head -n 1").fails().complains_of(&[found]);
    assert_eq!(place.names(), [""; 0]);
    line(place.run("--success-statuses 0,141"), "yes | head -n 1").succeeds().prints("y\n");
    place.run("--pipeline : -- yes : head -n 1 : cat").succeeds().prints("y\n");
    // It is never a failure if this program needs no more.
    line(place.run("--stage take:2"), "yes | cat").succeeds().prints("y\ny\n");
    place.run("--stage take:2 --stats stats --pipeline : -- yes : cat").succeeds().prints("y\ny\n");
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    assert_eq!(stats["sources"][0]["status"], "stopped");
    assert_eq!(stats["sources"][0]["members"][0]["signal"], Signal::PIPE.as_raw());
}

#[test]
fn commands_without_a_shell() {
    let place = Place::new().file("in", "-x\n$HOME\n");
    place.run("--pipeline : -- seq 1 12 : sort -rn : head -n 2").succeeds().prints("12\n11\n");
    // The words between are passed unchanged.
    place.run("--pipeline + -- cat in + grep -- -x").succeeds().prints("-x\n");
    place.run("--pipeline ::: -- cat in ::: grep :").exits(1);
    place.run("--pipeline").word("|").and("-- cat in | grep -F $HOME").succeeds().prints("$HOME\n");
    place
        .run("--pipeline=-- -- cat in -- tail -n 1 -- --count")
        .fails()
        .complains_of(&["--count: command not started"]);
    place.run("--pipeline=-- -- cat in -- tail -n 1").succeeds().prints("$HOME\n");
    let commands = place.run("-o out --pipeline : -- seq 9 : sh -c").word("cat; exit 3").and(": cat");
    commands
        .fails()
        .complains_of(&["millstream: the command `sh -c 'cat; exit 3'` exited with status 3, at byte 18\n"]);
    // The first failure is reported, unless it is only the consequence of a later one.
    let commands = place.run("--pipeline : -- yes : sh -c").word("exit 4");
    commands.fails().complains_of(&["the command `sh -c 'exit 4'` exited with status 4"]);
    assert_eq!(place.names(), ["in"]);
    // Options for commands apply to each.
    let commands = || place.run("--pipeline : -- sh -c").word("echo one; exit 3").and(": sh -c").word("cat; exit 4");
    commands().and("--").fails();
    let words = "--success-statuses 0,3,4 --pipeline : -- sh -c";
    place.run(words).word("echo one; exit 3").and(": sh -c").word("cat; exit 4").succeeds().prints("one\n");
}

#[test]
fn what_is_no_pipeline_is_refused() {
    let place = Place::new().file("in", "one\n");
    for (words, message) in [
        ("--pipeline :", "--pipeline : without this word after --, expected commands separated by it: -- COMMAND"),
        ("--pipeline : -- cat in", "--pipeline : without this word after --"),
        ("--pipeline : -- : cat", "no program as command 1 of 2 of --pipeline :, expected a program"),
        ("--pipeline : -- cat in : : cat", "no program as command 2 of 3"),
        ("--pipeline : -- cat in :", "no program as command 2 of 2"),
        ("--pipeline : --shell cat", "'--pipeline <WORD>' cannot be used with '--shell <LINE>'"),
        ("--shell cat -- cat in", "'--shell <LINE>' cannot be used with '[COMMAND]...'"),
        ("--shell cat --shell cat", "'--shell <LINE>' cannot be used multiple times"),
        ("--shell=", "invalid value '' for '--shell <LINE>': expected a line for bash, such as 'a | b'"),
        ("--shell false --success-statuses 256", "the exit status 256"),
    ] {
        place.run("-o out --stats stats").and(words).gets_refused().complains_of(&[message]);
        assert_eq!(place.names(), ["in"], "{words}");
    }
    place
        .run("-o out --pipeline : -- cat in : no-such-command")
        .fails()
        .complains_of(&["no-such-command", "not started"]);
    assert_eq!(place.names(), ["in"]);
}

/// A run with several commands is like one with a single command, whatever is done with the records.
#[test]
fn several_commands_are_a_source_like_any_other() {
    let place = Place::new().file("a", "a,b\n1,2\n").file("rows", "a,b\n3,4\n5,6\n");
    let sources: [fn(Words) -> Words; 3] = [
        |words| words.and("-- cat rows"),
        |words| words.and("--pipeline : -- cat rows : cat : cat"),
        |words| line(words, "cat rows | cat"),
    ];
    for source in sources {
        for (words, printed) in [
            ("", "a,b\n3,4\n5,6\n"),
            ("a", "a,b\n1,2\na,b\n3,4\n5,6\n"),
            ("--count", "3 records, 12 bytes\n"),
            ("a --csv --header --stage fields:b", "b\n2\n4\n6\n"),
            ("--stage not:3 -j 2", "a,b\n5,6\n"),
            ("--stage not:3 --each cat", "a,b\n5,6\n"),
            ("--stage skip:1 --stage take:1", "3,4\n"),
            ("--read-ahead on --rate-limit 1M --stall-timeout 10s --total-timeout 1m", "a,b\n3,4\n5,6\n"),
        ] {
            source(place.run(words)).succeeds().prints(printed);
        }
        source(place.run("a -o out --tee copy.gz --hash crc32c")).exits(0);
        assert_eq!(place.text("out"), "a,b\n1,2\na,b\n3,4\n5,6\n");
        place.run("copy.gz").succeeds().prints(place.read("out"));
    }
}

#[test]
fn statistics_have_the_times_of_each_command() {
    let place = Place::new();
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let words = place
        .run("--count --stats stats --pipeline : -- sh -c")
        .word(busy)
        .and(": true : sh -c")
        .word("sleep 2; exit 3");
    words.fails();
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    let source = &stats["sources"][0];
    assert_eq!((&source["status"], &source["exit_status"]), (&"failed".into(), &Value::Null));
    assert_eq!(source["name"], format!("sh -c '{busy}' | true | sh -c 'sleep 2; exit 3'"));
    let [first, second, last] = &source["members"].as_array().unwrap()[..] else { panic!("{stats}") };
    assert_eq!((&first["command"], &first["exit_status"]), (&format!("sh -c '{busy}'").into(), &0.into()));
    assert_eq!((&last["exit_status"], &last["signal"]), (&3.into(), &Value::Null));
    let seconds = |member: &Value, key: &str| member[key].as_f64().unwrap_or_else(|| panic!("{key} in {member}"));
    assert!(seconds(first, "user_seconds") > 0.0 && seconds(first, "system_seconds") >= 0.0, "{stats}");
    // A time ends with its command, not when the command is waited for.
    assert!(seconds(second, "seconds") < seconds(last, "seconds") / 2.0, "{stats}");
    assert!(seconds(last, "seconds") <= stats["seconds"].as_f64().unwrap(), "{stats}");
    // One command is a member, too.
    place.run("--stats stats -o out -- seq 3").succeeds();
    assert_eq!(members(&place), (vec![0.into()], vec!["seq 3".into()]));
}

#[test]
fn no_command_remains() {
    // Each command writes its number and remains.
    let script = |name: &str| format!("echo $$ > {name}; echo one; exec sleep 600");
    let sources: [&dyn Fn(Words) -> Words; 2] = [
        &|words| words.and("--pipeline : -- sh -c").word(script("pid1")).and(": sh -c").word(script("pid2")),
        &|words| line(words, &format!("sh -c '{}' | sh -c '{}' | cat", script("pid1"), script("pid2"))),
    ];
    for source in sources {
        for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
            let place = Place::new();
            let live = source(place.run("-o out --stats /dev/null")).start();
            let pids = ["pid1", "pid2"].map(|name| place.wait_for(name));
            live.send(signal);
            live.dies_by(signal);
            for pid in pids {
                until("the command is gone", || (!is_there(&pid)).then_some(()));
            }
            assert_eq!(place.names(), ["pid1", "pid2"]);
        }
        // A time limit and the end of what is needed stop all of them.
        for (options, status) in [("--total-timeout 300ms", 1), ("--stall-timeout 300ms", 1), ("--stage take:1", 0)] {
            let place = Place::new();
            source(place.run(options).and("--stop-grace 100ms")).exits(status);
            for name in ["pid1", "pid2"] {
                let pid = place.wait_for(name);
                until(&format!("{name} is gone after {options}"), || (!is_there(&pid)).then_some(()));
            }
        }
    }
}

#[test]
fn each_command_gets_the_stop_signal() {
    let place = Place::new();
    let script = |name: &str| format!("trap 'echo int > {name}; exit 0' INT; echo one; while :; do sleep 0.05; done");
    let words = place.run("--stage take:1 --stop-signal 2 --pipeline : -- sh -c").word(script("got1"));
    words.and(": sh -c").word(script("got2")).succeeds().prints("one\n");
    assert_eq!((place.text("got1"), place.text("got2")), ("int\n".into(), "int\n".into()));
}

/// A process that a command of a line left in the background continues if the line succeeds.
#[test]
fn what_a_line_leaves_behind_does_not_delay_the_run() {
    let place = Place::new();
    line(place.run("--stats stats"), "sleep 600 >/dev/null 2>&1 & echo $! > pid; echo one | cat")
        .succeeds()
        .prints("one\n");
    assert_eq!(members(&place).0, [0, 0]);
    let pid = place.text("pid");
    assert!(is_there(&pid));
    kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
}
