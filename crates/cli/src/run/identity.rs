//! Which files are the same: nothing is written into a file that is being read, or that something else is written
//! into.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use millstream::{Error, ErrorKind, Result};

use super::STANDARD_OUTPUT;
use super::options::Options;
use super::sink::Sink;

/// What makes a file the same under all its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// A regular file that exists.
    Existing { device: u64, inode: u64 },
    /// A file that is not there yet: where it will be.
    Absent(PathBuf),
    /// Standard output that is no file.
    Stdout,
}

impl Identity {
    /// That of a regular file with these metadata.
    pub(super) fn of(metadata: &Metadata) -> Identity {
        Identity::Existing { device: metadata.dev(), inode: metadata.ino() }
    }

    /// That of an open file, if it is a regular one.
    pub(super) fn of_descriptor(fd: impl AsFd) -> Option<Identity> {
        let metadata = File::from(fd.as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        metadata.is_file().then(|| Identity::of(&metadata))
    }

    /// That of a file to be written; none of a FIFO or device, which many may write to.
    pub(super) fn of_output(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(metadata) => metadata.is_file().then(|| Identity::of(&metadata)),
            Err(_) => {
                let directory = match path.parent() {
                    Some(parent) if !parent.as_os_str().is_empty() => parent,
                    _ => Path::new("."),
                };
                Some(Identity::Absent(directory.canonicalize().ok()?.join(path.file_name()?)))
            }
        }
    }
}

/// Whether an output touches the file of its name while the sources are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// Yes: it is standard output, appended to, or kept when partial.
    InPlace,
    /// No: a new file takes its name in the end.
    Beside,
}

/// Fails if two outputs are the same file, or if an output would change a source while it is read.
pub(super) fn check(options: &Options, sources: &[Option<Identity>]) -> Result<()> {
    let mut outputs: Vec<(String, Identity)> = Vec::new();
    for (name, writing, identity) in written_files(options) {
        if writing == Writing::InPlace && sources.contains(&Some(identity.clone())) {
            return Err(conflict(&name, "a file that is not one of the sources"));
        }
        if outputs.iter().any(|(_, other)| *other == identity) {
            return Err(conflict(&name, "a file that is not another output too"));
        }
        outputs.push((name, identity));
    }
    Ok(())
}

/// Every regular or future file that the options say is written, and standard output, whatever that is.
fn written_files(options: &Options) -> Vec<(String, Writing, Identity)> {
    let writing = if options.append || options.keep_partial { Writing::InPlace } else { Writing::Beside };
    let file = |sink: &Sink, writing| match sink {
        Sink::Stdout => {
            let identity = Identity::of_descriptor(io::stdout()).unwrap_or(Identity::Stdout);
            Some((STANDARD_OUTPUT.to_string(), Writing::InPlace, identity))
        }
        Sink::File(path) => Some((path.display().to_string(), writing, Identity::of_output(path)?)),
        Sink::Tcp(_) | Sink::Unix(_) => None,
    };
    let sinks = options.sinks().filter_map(|(sink, _)| file(sink, writing));
    // Statistics that replaced a source would surely be a slip of the pen.
    sinks.chain(options.stats.iter().filter_map(|sink| file(sink, Writing::InPlace))).collect()
}

fn conflict(name: &str, expected: &str) -> Error {
    Error::new(ErrorKind::OpenFailed).with_name(name).with_expected(expected)
}
