//! Text that shows where it was torn.

use std::io::Write;
use std::path::PathBuf;

/// Exactly `len` bytes of numbered lines of many lengths. No two lines are equal, so that a lost, repeated or
/// displaced piece shows; the last line is cut wherever `len` falls.
pub fn lines(len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 200);
    for i in 0_usize.. {
        if out.len() >= len {
            break;
        }
        // Some end with CRLF, some are empty but for their number.
        let end = if i % 7 == 3 { "\r\n" } else { "\n" };
        write!(out, "{i}{}{end}", "-".repeat(i * i % 131)).unwrap();
    }
    out.truncate(len);
    out
}

/// A directory for one test, removed when dropped.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A new file with these bytes, in `directory`.
pub fn file(directory: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
