//! Standard streams that are closed, full or `/dev/null`.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::process::Signal;

use crate::place::{Place, until};

/// Runs a script in which `$0` is the command.
fn sh(place: &Place, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_millstream")]).current_dir(place.path(""));
    command.stdin(Stdio::null()).output().unwrap()
}

fn numbers() -> String {
    (0..60_000).map(|n| format!("{n}\n")).collect()
}

/// Returns a file of one BSON document, `{"a": 1}`.
const DOCUMENT: &[u8] = b"\x0c\0\0\0\x10a\0\x01\0\0\0\0";

#[test]
fn a_closed_standard_output_is_no_output() {
    let place = Place::new().file("in", numbers()).file("one.bson", DOCUMENT);
    for words in [
        "run in",
        "run --count in",
        "run -o out --stats - in",
        "run in --each cat",
        "run in --tee out",
        "bson cat one.bson",
        "bson ls one.bson",
        "bson get one.bson a",
        "bson count one.bson",
        "bson check one.bson",
        #[cfg(feature = "parquet")]
        "bson convert one.bson --to csv",
        "completions bash",
        "man",
        "--help",
        "--version",
    ] {
        let seen = sh(&place, &format!(r#"exec "$0" {words} >&-"#));
        let said = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert_eq!(seen.status.code(), Some(1), "{words}: {said}");
        let expected = "millstream: standard output: open failed: found a closed file descriptor, expected an open one; \
                        redirect it to a file, or to /dev/null\n";
        assert_eq!(said, expected, "{words}");
        assert_eq!(place.names(), ["in", "one.bson"], "{words}");
    }
    // The stream may be used under another name, and standard error may be used too.
    for words in
        ["run in -o /dev/stdout >&-", "run in -o out --tee /dev/fd/1 >&-", "run in -o out --stats /dev/stderr 2>&-"]
    {
        let seen = sh(&place, &format!(r#"exec "$0" {words}"#));
        assert_eq!(seen.status.code(), Some(1), "{words}: {seen:?}");
        assert_eq!(place.names(), ["in", "one.bson"], "{words}");
    }
    // A stream that is not used may be closed, and an inherited stream was chosen by the caller.
    for words in [
        "run in -o out >&-",
        "run in >/dev/null",
        #[cfg(feature = "parquet")]
        "bson convert one.bson -o out --to ndjson >&-",
    ] {
        let seen = sh(&place, &format!(r#"exec "$0" {words}"#));
        assert!(seen.status.success(), "{words}: {seen:?}");
    }
}

#[test]
fn a_closed_standard_input_is_no_source() {
    let place = Place::new().file("in", numbers());
    for words in ["run -o o", "run in - -o o", "run /dev/stdin -o o", "bson cat", "bson count -", "bson ls -"] {
        let seen = sh(&place, &format!(r#"exec "$0" {words} <&-"#));
        let said = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert_eq!(seen.status.code(), Some(1), "{words}: {said}");
        assert!(said.starts_with("millstream: standard input: open failed: found a closed file descriptor"), "{said}");
        assert_eq!(place.names(), ["in"], "{words}");
    }
    assert!(sh(&place, r#"exec "$0" run in -o o <&-"#).status.success());
    assert!(sh(&place, r#"exec "$0" run -o o </dev/null"#).status.success());
    assert_eq!(place.read("o"), b"");
}

#[test]
fn requested_results_must_be_printed() {
    let place = Place::new().file("in", numbers());
    for (words, is_left) in [("2>&-", false), ("2>/dev/full", true)] {
        let seen = sh(&place, &format!(r#"exec "$0" run in -o o --hash sha256 {words}"#));
        assert_eq!(seen.status.code(), Some(1), "{words}");
        assert_eq!(place.path("o").exists(), is_left, "{words}");
    }
    assert_eq!(sh(&place, r#"exec "$0" run in -o p --progress always 2>&-"#).status.code(), Some(1));
    assert!(!place.path("p").exists());
    assert!(sh(&place, r#"exec "$0" run in -o p 2>&-"#).status.success());
    assert_eq!(sh(&place, r#"exec "$0" run missing -o q 2>&-"#).status.code(), Some(1));
}

#[test]
fn unread_statistics_do_not_block_the_end() {
    let place = Place::new().file("in", numbers());
    mkfifoat(CWD, place.path("fifo"), Mode::RWXU).unwrap();
    let mut live = place.run("in -o out --stats fifo").start();
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(live.is_running(), "it waits for a reader of the statistics");
    live.send(Signal::TERM);
    live.dies_by(Signal::TERM);
    assert_eq!(place.names(), ["fifo", "in"]);
    // Standard error is open but full, during the run and after it.
    let keep = rustix::fs::open(place.path("fifo"), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let full = rustix::fs::open(place.path("fifo"), OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let full = full.unwrap();
    // The pipe is so large that it is not enlarged.
    rustix::pipe::fcntl_setpipe_size(&full, 1 << 20).unwrap();
    for source in ["in", "-- sh -c true"] {
        while rustix::io::write(&full, &[0; 4096]).is_ok() {}
        let mut live = place.run("-o out --stats fifo").and(source).start();
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(live.is_running());
        live.send(Signal::TERM);
        live.dies_by(Signal::TERM);
    }
    let live = place.run("-o late --stats fifo").shell("echo > started; exec tail -f /dev/null").start();
    place.wait_for("started");
    live.send(Signal::INT);
    live.dies_by(Signal::INT);
    drop(keep);
    assert!(!place.path("late").exists());
}

/// Starts the command with a full standard error, waits until it is running, and sends it a signal.
fn with_a_full_standard_error(place: &Place, words: &str, is_stuck: impl Fn() -> bool) {
    let (reader, writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[b'x'; 4096]).is_ok() {}
    while rustix::io::write(&writer, b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command
        .args(words.split(' ').map(|word| word.replace('\u{a0}', " ")))
        .current_dir(place.path(""))
        .stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    until("it blocks", || is_stuck().then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(child.try_wait().unwrap().is_none(), "{words}: it should block");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    let status = until(&format!("{words}: it ends"), || child.try_wait().unwrap());
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{words}: {status}");
    drop((command, reader));
}

#[test]
fn a_full_standard_error_does_not_block_the_end() {
    let place = Place::new().file("in", numbers());
    with_a_full_standard_error(&place, "run missing", || true);
    with_a_full_standard_error(&place, "bson cat missing", || true);
    with_a_full_standard_error(&place, "run in -o out --hash sha256", || place.path("out").exists());
    // The progress lines are dropped, except for the last one.
    with_a_full_standard_error(&place, "run in -o out2 --progress always", || true);
    with_a_full_standard_error(&place, "run in -o out3 --progress always --rate-limit 100K", || true);
    fs::write(place.path("fail"), "echo >> failed; exit 3\n").unwrap();
    // A failing copy is reported while others wait for the thread that reports it.
    let words = "run in -o out4 -j 2 --block 1K --on-error skip --each .\u{a0}./fail";
    with_a_full_standard_error(&place, words, || place.path("failed").exists());
}

#[test]
fn a_parent_that_ignores_the_end_of_its_children() {
    let place = Place::new().file("in", numbers());
    for words in ["run -- seq 3", "run in --each cat", "run in --each cat --round-robin"] {
        let seen = sh(&place, &format!(r#"trap "" CHLD; exec "$0" {words}"#));
        assert!(seen.status.success(), "{words}: {seen:?}");
        assert!(!seen.stdout.is_empty());
    }
    let seen = sh(&place, r#"trap "" CHLD; exec "$0" run -- sh -c "exit 3""#);
    assert!(String::from_utf8_lossy(&seen.stderr).contains("exited with status 3"), "{seen:?}");
    let ignored = sh(&place, r#"trap "" CHLD; exec "$0" run -- grep SigIgn /proc/self/status"#).stdout;
    let ignored = String::from_utf8(ignored).unwrap();
    let ignored = u64::from_str_radix(ignored.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_eq!(ignored & 1 << (Signal::CHILD.as_raw() - 1), 0, "its commands start with the default");
}
