//! `strace`, which makes system calls fail.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::command::{Before, Outcome, Place, millstream};

/// Whether there is a `strace` that may trace. If not, the caller says goodbye: loudly, and in CI as a failure.
pub fn is_missing() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        let mut trace = Command::new("strace");
        trace.args(["-qq", "-o", "/dev/null", "-e", "inject=getppid:error=EIO", "true"]);
        trace.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    });
    if !works {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "strace is missing, or may not trace here");
        // Not `eprintln`, which the test harness hides.
        let _ = writeln!(std::io::stderr(), "SKIPPED: strace is missing, or may not trace here (tools/setup test)");
    }
    !works
}

/// What `strace` does to which calls.
#[derive(Clone, Copy, Debug)]
pub struct Injection<'a> {
    /// The calls, in the language of `strace -e`.
    pub calls: &'a str,
    /// Only calls on this file.
    pub path: Option<&'a str>,
    /// Such as `error=EIO` or `signal=TERM`.
    pub fault: &'a str,
    /// Which of the calls of each process: such as `3`, or `1+2` for every second.
    pub when: &'a str,
}

impl Injection<'_> {
    /// Runs `millstream` with these words and checks what it leaves behind. Returns how it ended, and whether there
    /// was such a call at all.
    pub fn run(self, place: &Place, words: &[&str], before: Before) -> (Outcome, bool) {
        let log = tempfile::NamedTempFile::new().unwrap();
        let words = place.arguments(words);
        let mut argv = vec!["strace".to_string(), "-f".into(), "-q".into(), "-o".into()];
        argv.push(log.path().to_str().unwrap().into());
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
        place.check(&outcome, before, &format!("{self:?} {argv:?}"));
        let trace = match self.fault.strip_prefix("signal=") {
            Some("KILL") => "+++ killed by SIGKILL".to_string(),
            Some(signal) => format!("--- SIG{signal} "),
            None => "(INJECTED)".to_string(),
        };
        (outcome, log.contains(&trace))
    }
}
