//! Faults in real system calls, injected by strace into a process that checks how the writer reports them.
//!
//! If strace is missing or not allowed, these tests print that and pass; in CI they fail.

use std::fs;
use std::path::Path;
use std::process::Command;

use millstream::{Durability, ErrorKind, Partial, Writer};

mod skip;
mod strace;

/// The number of write(2) calls that the child makes without faults.
const CALLS: usize = 12;

fn content() -> Vec<u8> {
    (0..CALLS * 64).map(|i| (i % 251) as u8).collect()
}

/// Runs in a separate process: writes a file in `CALLS` calls while strace makes some of them fail.
#[test]
#[ignore = "run by the other tests under strace"]
fn child() {
    let Some(path) = std::env::var_os("MILLSTREAM_TEST_PATH") else { return };
    let may_fail = std::env::var_os("MILLSTREAM_TEST_MAY_FAIL").is_some();
    let mut writer = Writer::builder().capacity(64).partial(Partial::Keep).path(&path).unwrap();
    let mut errors = 0;
    let mut check = |error: millstream::Error| {
        assert!(may_fail, "{error}");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.written(), Some(fs::metadata(&path).unwrap().len()));
        errors += 1;
    };
    for record in content().chunks(16) {
        while let Err(error) = writer.write(record) {
            check(error);
        }
    }
    while let Err(error) = writer.flush() {
        check(error);
    }
    assert_eq!(writer.close().unwrap().written, (CALLS * 64) as u64);
    assert_eq!(errors > 0, may_fail);
}

/// Runs in a separate process: writes a file that the kernel first accepts but then fails to store.
#[test]
#[ignore = "run by the other tests under strace"]
fn closing_child() {
    let Some(path) = std::env::var_os("MILLSTREAM_TEST_PATH") else { return };
    let durability = match std::env::var("MILLSTREAM_TEST_DURABILITY").as_deref() {
        Ok("data") => Durability::Data,
        Ok("all") => Durability::All,
        _ => Durability::Cached,
    };
    let mut writer = Writer::builder().partial(Partial::Keep).durability(durability).path(&path).unwrap();
    writer.write(b"content").unwrap();
    // The second call returns success, but the bytes are lost anyway.
    for _ in 0..2 {
        let error = writer.try_close().unwrap_err();
        assert_eq!((error.kind(), error.errno()), (ErrorKind::Io, Some(rustix::io::Errno::NOSPC.raw_os_error())));
    }
}

#[test]
fn errors_of_closing_a_file_are_reported() {
    if strace::is_missing() {
        return;
    }
    for (durability, call) in [("cached", "close"), ("data", "fdatasync"), ("all", "fsync"), ("all", "close")] {
        let dir = tempfile::tempdir().unwrap();
        let (path, log) = (dir.path().join("out"), dir.path().join("strace.log"));
        fs::write(&path, b"").unwrap();
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", &format!("trace={call}")]);
        command.args(["-e", &format!("inject={call}:error=ENOSPC:when=1"), "-o"]).arg(&log).arg("-P").arg(&path);
        command.arg(std::env::current_exe().unwrap()).args(["--exact", "closing_child", "--ignored"]);
        command.env("MILLSTREAM_TEST_PATH", &path).env("MILLSTREAM_TEST_DURABILITY", durability);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{durability}, {call}: {}", String::from_utf8_lossy(&output.stdout));
        assert_fault_happened(&log);
    }
}

/// Runs the child with this fault injected into its writes to the file. Returns `false` if strace cannot run.
fn with_fault(fault: &str, may_fail: bool) -> bool {
    if strace::is_missing() {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let log = dir.path().join("strace.log");
    fs::write(&path, b"").unwrap(); // strace looks for it before it is opened
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=write", "-e", fault, "-o"]).arg(&log).arg("-P").arg(&path);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "child", "--ignored"]);
    command.env("MILLSTREAM_TEST_PATH", &path);
    if may_fail {
        command.env("MILLSTREAM_TEST_MAY_FAIL", "1");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{fault}: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(fs::read(&path).unwrap(), content(), "{fault}");
    assert_fault_happened(&log);
    true
}

fn assert_fault_happened(log: &Path) {
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("(INJECTED)"), "strace injected nothing:\n{log}");
}

#[test]
fn interrupted_and_unready_writes_are_repeated() {
    for errno in ["EINTR", "EAGAIN"] {
        // The fault affects every second call.
        if !with_fault(&format!("inject=write:error={errno}:when=1+2"), false) {
            return;
        }
    }
}

#[test]
fn a_failure_of_any_write_is_reported_without_loss() {
    let deep = std::env::var_os("MILLSTREAM_DEEP").is_some();
    let errors: &[&str] = if deep { &["ENOSPC", "EIO", "EDQUOT", "EFBIG"] } else { &["ENOSPC"] };
    for errno in errors {
        for call in (1..=CALLS).step_by(if deep { 1 } else { 4 }) {
            if !with_fault(&format!("inject=write:error={errno}:when={call}"), true) {
                return;
            }
        }
    }
}
