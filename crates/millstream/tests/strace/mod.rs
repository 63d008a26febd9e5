//! `strace`, which makes system calls fail.

use std::process::{Command, Stdio};

use crate::skip;

/// Returns whether `strace` is missing or may not trace. The test is then skipped with a visible message, and fails in
/// CI.
pub fn is_missing() -> bool {
    let mut trace = Command::new("strace");
    trace.args(["-qq", "-o", "/dev/null", "-e", "inject=getppid:error=EIO", "true"]);
    let works = trace.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "strace is missing, or may not trace here");
        skip::say("strace is missing, or may not trace here (tools/setup test)");
    }
    !works
}
