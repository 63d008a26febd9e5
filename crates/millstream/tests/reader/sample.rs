//! Text in which missing or displaced pieces are detected.

use std::io::Write;
use std::path::PathBuf;

/// Returns exactly `len` bytes of numbered lines of many lengths. No two lines are equal, so that a lost, repeated or
/// displaced piece is detected; the last line is cut at `len`.
pub fn lines(len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 200);
    for i in 0_usize.. {
        if out.len() >= len {
            break;
        }
        // Some lines end with CRLF, some have only their number.
        let end = if i % 7 == 3 { "\r\n" } else { "\n" };
        write!(out, "{i}{}{end}", "-".repeat(i * i % 131)).unwrap();
    }
    out.truncate(len);
    out
}

/// A directory for one test, which is removed when dropped.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Creates a file with these bytes in `directory`.
pub fn file(directory: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
