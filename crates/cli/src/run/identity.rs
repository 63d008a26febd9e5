//! Detects which paths refer to the same file.

use std::fs::{self, File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of a file, which does not depend on its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A regular file that exists.
    Existing { device: u64, inode: u64 },
    /// A file that does not exist yet, identified by the place where it will be.
    Absent(PathBuf),
    /// Standard output that is not a file.
    Stdout,
}

impl Identity {
    /// Returns the identity of a regular file with this metadata.
    pub(super) fn of(metadata: &Metadata) -> Identity {
        Identity::Existing { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Returns the identity of an open file, if it is a regular file.
    pub(super) fn of_descriptor(fd: impl AsFd) -> Option<Identity> {
        let metadata = File::from(fd.as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        metadata.is_file().then(|| Identity::of(&metadata))
    }

    /// Returns the identity of a file to be written, or `None` for a FIFO or device, to which several outputs may
    /// write.
    pub(super) fn of_output(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(metadata) => metadata.is_file().then(|| Identity::of(&metadata)),
            Err(_) => absent(path).map(Identity::Absent),
        }
    }
}

/// The number of symbolic links that Linux follows.
const MAX_LINKS: usize = 40;

/// Returns the place of a file that does not exist yet; a symbolic link without a target is followed.
fn absent(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = directory.canonicalize().ok()?;
        path = directory.join(path.file_name()?);
        match fs::read_link(&path) {
            Ok(link) => path = directory.join(link),
            Err(_) => return Some(path),
        }
    }
    None
}
