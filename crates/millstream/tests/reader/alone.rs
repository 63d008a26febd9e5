//! Runs a test in a separate process, if it checks or changes state that all threads of a process share.

use std::process::{Command, Output, Stdio};

/// The environment variable with the name of the test that runs alone.
const ALONE: &str = "MILLSTREAM_TEST_ALONE";

/// Runs `body` in a new process: this program again, with only the test called `test`, which must be the caller.
///
/// `prefix` is the command line that starts it (a shell that changes the environment first), or empty. Returns the
/// output of the process; in the new process itself, `None`. Panics if the test failed there.
pub fn alone(test: &str, prefix: &[&str], body: impl FnOnce()) -> Option<Output> {
    if std::env::var(ALONE).is_ok_and(|name| name == test) {
        body();
        return None;
    }
    let this = std::env::current_exe().unwrap();
    let mut argv: Vec<&str> = prefix.to_vec();
    argv.extend([this.to_str().unwrap(), "--exact", test, "--nocapture", "--test-threads=1"]);
    let output = Command::new(argv[0]).args(&argv[1..]).env(ALONE, test).stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        // A misspelt name would run no test, and succeed.
        output.status.success() && stdout.contains("1 passed"),
        "{test}, alone: {}\n{stdout}\n{}",
        output.status,
        // A test may write a large amount to standard error.
        String::from_utf8_lossy(&output.stderr[output.stderr.len().saturating_sub(4096)..]),
    );
    Some(output)
}
