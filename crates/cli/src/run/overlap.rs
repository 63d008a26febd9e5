//! Ensures that no output is written to a file that is a source or another output.

use std::io;

use millstream::{Error, ErrorKind, Result};

use crate::standard::STANDARD_OUTPUT;

use super::identity::Identity;
use super::options::Options;
use super::sink::Sink;

/// Whether an output changes the file of its name while the sources are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// The file is changed: it is standard output, appended to, or kept when partial.
    InPlace,
    /// The file is not changed: a new file gets its name at the end.
    Beside,
}

/// Fails if two outputs are the same file, or if an output would change a source while it is read.
pub(super) fn check(options: &Options, sources: &[Option<Identity>]) -> Result<()> {
    check_files(written_files(options), sources)
}

/// Fails like [`check`], for outputs that appear when they are complete, and others that must not replace a source.
pub(crate) fn check_outputs<'a>(
    complete: impl Iterator<Item = &'a Sink>,
    others: impl Iterator<Item = &'a Sink>,
    sources: &[Option<Identity>],
) -> Result<()> {
    let complete = complete.filter_map(|sink| file(sink, Writing::Beside));
    check_files(complete.chain(others.filter_map(|sink| file(sink, Writing::InPlace))).collect(), sources)
}

fn check_files(files: Vec<(String, Writing, Identity)>, sources: &[Option<Identity>]) -> Result<()> {
    let mut outputs: Vec<(String, Identity)> = Vec::new();
    for (name, writing, identity) in files {
        if writing == Writing::InPlace && sources.contains(&Some(identity.clone())) {
            return Err(conflict(&name, "a file that is not one of the sources"));
        }
        if outputs.iter().any(|(_, other)| *other == identity) {
            return Err(conflict(&name, "a file that is not also another output"));
        }
        outputs.push((name, identity));
    }
    Ok(())
}

/// Returns every existing or future regular file that the options name as an output, and standard output.
fn written_files(options: &Options) -> Vec<(String, Writing, Identity)> {
    let writing = if options.is_in_place() { Writing::InPlace } else { Writing::Beside };
    let sinks = options.sinks().filter_map(|(sink, _)| file(sink, writing));
    // Replacing a source with statistics, bad records or an index would certainly be a mistake.
    let stats = options.stats.iter().filter_map(|sink| file(sink, Writing::InPlace));
    let others = [options.bad.file(), options.index.as_deref()];
    let others: Vec<Sink> = others.into_iter().flatten().map(|path| Sink::File(path.into())).collect();
    sinks.chain(stats).chain(others.iter().filter_map(|sink| file(sink, Writing::InPlace))).collect()
}

fn file(sink: &Sink, writing: Writing) -> Option<(String, Writing, Identity)> {
    match sink {
        Sink::Stdout => {
            let identity = Identity::of_descriptor(io::stdout()).unwrap_or(Identity::Stdout);
            Some((STANDARD_OUTPUT.to_string(), Writing::InPlace, identity))
        }
        Sink::File(path) => Some((path.display().to_string(), writing, Identity::of_output(path)?)),
        Sink::Tcp(_) | Sink::Unix(_) | Sink::Url(_) => None,
    }
}

fn conflict(name: &str, expected: &str) -> Error {
    Error::new(ErrorKind::OpenFailed).with_name(name).with_expected(expected)
}
