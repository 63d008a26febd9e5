//! The message of a test that cannot run here, so that it does not seem to have passed.

use std::io::Write;

/// Says so loudly, in CI too: only for what a machine lacks that no setup can give it.
pub fn say(reason: &str) {
    // Not `eprintln`, which the test harness hides.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}
