//! The message of a test that cannot run here, so that it does not appear to have passed.

use std::io::Write;

/// Prints the message visibly, even in CI. Use it only for features that the machine lacks and no setup can provide.
pub fn say(reason: &str) {
    // This does not use `eprintln`, whose output the test harness hides.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}
