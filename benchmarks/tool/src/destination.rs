//! The destination of a runner's standard output, and the check of the bytes written.
//!
//! Bytes written to `/dev/null` cannot be checked. Therefore the output of each runner's first run is hashed through a
//! pipe, and only the other runs are timed. A file or an object that a runner writes is hashed after every run, outside
//! the measured time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::ChildStdout;

use anyhow::{Result, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The destination of standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// The tool, which parses the answer.
    #[default]
    Tool,
    /// `/dev/null`.
    Nowhere,
    /// A new file, in memory like the inputs. Its path is `{output}`.
    File,
    /// A pipe to the tool, which reads up to 1 MiB at a time and only counts the bytes.
    Pipe,
    /// The object `s3://bucket/output` of the definition's store, which keeps it as a file.
    Object,
}

/// The expected bytes, or the bytes that a runner wrote.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The number of bytes.
    pub bytes: u64,
    /// Their SHA-256 in hexadecimal, as `sha256sum` prints it.
    pub sha256: String,
}

/// The maximum number of bytes per read.
const BLOCK: usize = 1 << 20;

impl Written {
    /// Reads `source` to its end and hashes the bytes.
    ///
    /// # Errors
    /// Returns the errors of `source`.
    ///
    /// ```
    /// use millstream_bench::destination::Written;
    /// let written = Written::take(&b"abc"[..])?;
    /// assert_eq!(written.bytes, 3);
    /// assert!(written.sha256.starts_with("ba7816bf"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn take(source: impl Read) -> io::Result<Written> {
        let mut hash = Sha256::new();
        let bytes = blocks(source, |block| hash.update(block))?;
        let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Written { bytes, sha256 })
    }

    /// Checks that these are the expected bytes.
    ///
    /// # Errors
    /// Fails if they are not.
    pub fn check(&self, right: &Written) -> Result<()> {
        right.check_length(self.bytes)?;
        ensure!(self.sha256 == right.sha256, "sha256={} instead of {}", self.sha256, right.sha256);
        Ok(())
    }

    /// Checks that this is the expected number of bytes.
    ///
    /// # Errors
    /// Fails if it is not.
    pub fn check_length(&self, bytes: u64) -> Result<()> {
        ensure!(bytes == self.bytes, "{bytes} bytes instead of {}", self.bytes);
        Ok(())
    }
}

/// Reads the pipe to its end, discards the bytes, and returns their number.
///
/// # Errors
/// Returns the errors of the system.
pub fn drain(pipe: ChildStdout) -> io::Result<u64> {
    blocks(pipe, |_| ())
}

fn blocks(mut source: impl Read, mut each: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        let read = source.read(&mut block)?;
        if read == 0 {
            return Ok(bytes);
        }
        each(&block[..read]);
        bytes += read as u64;
    }
}

/// Creates a new file, so that no runner reuses pages that another runner allocated. The file is also readable, as a
/// runner that maps it requires.
///
/// # Errors
/// Returns the errors of the system.
pub fn new_file(path: &Path) -> io::Result<File> {
    if path.exists() {
        fs::remove_file(path)?;
    }
    File::options().read(true).write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_bytes_are_right() {
        let right = Written::take(&b"Hello, 1\t"[..]).unwrap();
        assert!(right.check(&right).is_ok());
        let check = |bytes: &[u8]| Written::take(bytes).unwrap().check(&right).unwrap_err().to_string();
        assert_eq!(check(b"Hello, 1"), "8 bytes instead of 9");
        assert!(check(b"Hello, 2\t").starts_with("sha256="));
    }

    #[test]
    fn a_new_file_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output");
        fs::write(&path, "old").unwrap();
        assert_eq!(new_file(&path).unwrap().metadata().unwrap().len(), 0);
    }
}
