//! `strace`, which makes system calls fail.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::command::{Before, Outcome, Place, millstream};

/// Every call except those whose failure is an artefact of `strace`: a descriptor that stays open after `close`, a lock
/// that is not acquired, an exit that does not exit, a broken socket to the process itself, an error number as the
/// program break, and missing randomness, for which the standard library panics.
pub const ALL_CALLS: &str = "!brk,exit,getpid,exit_group,?getrandom,rt_sigreturn,close,futex,munmap,rt_sigprocmask,sendto,\
                             recvfrom,?restart_syscall";

/// Returns whether `strace` is installed and may trace. If not, the caller ends with a message, which is a failure in
/// CI.
pub fn is_missing() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        let mut trace = Command::new("strace");
        trace.args(["-qq", "-o", "/dev/null", "-e", "inject=getppid:error=EIO", "true"]);
        trace.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    });
    if !works {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "strace is missing, or may not trace here");
        // This does not use `eprintln`, whose output the test harness hides.
        let _ = writeln!(std::io::stderr(), "SKIPPED: strace is missing, or may not trace here (tools/setup test)");
    }
    !works
}

/// Returns the calls that `millstream` makes when it runs with these words without faults: each call's name, and its
/// index among the calls of that name in its thread.
pub fn calls(place: &Place, words: &[&str], which: &str, fault: &str) -> Vec<(String, usize)> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut argv = command_line(log.path(), fault);
    argv.extend(["-e".into(), format!("trace={which}"), millstream().to_str().unwrap().into()]);
    argv.extend(place.arguments(words));
    place.reset(Before::Absent);
    assert!(place.run(&argv).status.success());
    let log = String::from_utf8_lossy(&std::fs::read(log.path()).unwrap()).into_owned();
    let mut counts = HashMap::new();
    let mut all: Vec<(String, usize)> = Vec::new();
    for line in log.lines() {
        // Lines are `1234 read(3, …` with threads, and `read(3, …` without; lines for signals and resumed calls have
        // other forms.
        let (thread, call) = match line.split_once(' ') {
            Some((pid, call)) if pid.parse::<u32>().is_ok() => (pid, call.trim_start()),
            _ => ("", line),
        };
        let name = call.split('(').next().unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        let nth = counts.entry((thread, name)).or_insert(0);
        *nth += 1;
        all.push((name.to_string(), *nth));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the start of a command line, with the file for the log.
fn command_line(log: &Path, fault: &str) -> Vec<String> {
    let mut argv = ["strace", "-q", "-o", log.to_str().unwrap()].map(String::from).to_vec();
    if !fault.starts_with("signal=") {
        // Threads and commands are traced too. A signal is sent to the first thread only, because otherwise each thread
        // would get one at its own n-th call, and the second of two signals kills the command immediately.
        argv.push("-f".into());
    }
    argv
}

/// The fault that `strace` injects, and the affected calls.
#[derive(Clone, Copy, Debug)]
pub struct Injection<'a> {
    /// The calls, in the syntax of `strace -e`.
    pub calls: &'a str,
    /// Affects only calls on this file.
    pub path: Option<&'a str>,
    /// The fault, for example `error=EIO` or `signal=TERM`.
    pub fault: &'a str,
    /// The affected calls of each thread: for example `3`, or `1+2` for every second one.
    pub when: &'a str,
}

impl Injection<'_> {
    /// Runs `millstream` with these arguments and checks the files that it leaves. Returns how it ended, and whether an
    /// affected call was made.
    pub fn run(self, place: &Place, words: &[&str], before: Before) -> (Outcome, bool) {
        let (outcome, met) = self.run_unchecked(place, words, before);
        place.check(&outcome, before, &format!("{self:?} {words:?}"));
        (outcome, met)
    }

    /// Runs it in the same way, without checking the files.
    pub fn run_unchecked(self, place: &Place, words: &[&str], before: Before) -> (Outcome, bool) {
        let log = tempfile::NamedTempFile::new().unwrap();
        let words = place.arguments(words);
        let mut argv = command_line(log.path(), self.fault);
        if let Some(path) = self.path {
            argv.extend(["-P".into(), path.into()]);
        }
        argv.extend(["-e".into(), format!("trace={}", self.calls)]);
        argv.extend(["-e".into(), format!("inject={}:{}:when={}", self.calls, self.fault, self.when)]);
        argv.push(millstream().to_str().unwrap().into());
        argv.extend(words);
        place.reset(before);
        let outcome = place.run(&argv);
        let log = String::from_utf8_lossy(&std::fs::read(log.path()).unwrap()).into_owned();
        let trace = match self.fault.strip_prefix("signal=") {
            Some("KILL") => "+++ killed by SIGKILL".to_string(),
            Some(signal) => format!("--- SIG{signal} "),
            None => "(INJECTED)".to_string(),
        };
        (outcome, log.contains(&trace))
    }
}
