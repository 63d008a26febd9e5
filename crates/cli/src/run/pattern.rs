//! Patterns of names as sources: `logs/**/*.gz` and `s3://BUCKET/logs/*.gz`, quoted so that no shell expands them.
//!
//! A word is a pattern if it contains `*`, and no file has this name. Within it, `*` and `?` do not match `/`, `**` matches
//! any directories, `[…]` one of these characters and `{a,b}` either text, as in the crate globset.
//!
//! The directory of a job, `DIR` or `s3://BUCKET/DIR/`, stands for the parts in its manifest.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use globset::{GlobBuilder, GlobMatcher};
use millstream::remote::Objects;
use millstream::remote::pattern::{fixed_part, is_pattern, is_pattern_of_objects};
use millstream::{Error, ErrorKind, Result, job};
use walkdir::WalkDir;

use super::network::Network;
use super::source::Source;

/// The option for patterns of names.
#[derive(Args)]
pub(crate) struct Patterns {
    /// Accept a pattern, such as 'logs/**/*.gz' or 's3://BUCKET/logs/*.gz', that matches nothing
    ///
    /// A quoted source with '*' is a pattern, unless a file has this name. '*' and '?' do not match '/', '**' matches any
    /// directories, '[…]' one of these characters, and '{a,b}' either text. The matches are read in the order of the
    /// bytes of their names.
    #[arg(long)]
    allow_empty: bool,
}

impl Patterns {
    /// Replaces each pattern in `sources` with what it matches. `is_last` is whether there is no other source.
    ///
    /// # Errors
    /// Returns the errors of [`expand`].
    pub(crate) fn replace(&self, sources: &mut Vec<Source>, is_last: bool, network: &Network) -> Result<()> {
        let found = expand(sources, network, self.allow_empty)?;
        let has_none = found.is_empty() && !sources.is_empty() && is_last;
        *sources = found;
        // Without a source, standard input would be read.
        if has_none {
            sources.push(Source::File("/dev/null".into()));
        }
        Ok(())
    }
}

/// Replaces each pattern with the sources that it matches, in the order of the bytes of their names, and the directory of a
/// job with its parts.
///
/// # Errors
/// Returns [`ErrorKind::OpenFailed`] for a pattern that matches nothing, unless `allow_empty` is true,
/// [`ErrorKind::JobIncomplete`] for an unfinished job, and errors of listing: a source must not be missing silently.
fn expand(sources: &[Source], network: &Network, allow_empty: bool) -> Result<Vec<Source>> {
    let mut found = Vec::with_capacity(sources.len());
    for source in sources {
        let before = found.len();
        let (name, matched) = match source {
            Source::File(path) if is_pattern(&path.to_string_lossy()) && path.symlink_metadata().is_err() => {
                let name = path.display().to_string();
                let matched = files(path).map_err(|error| error.with_name(&name))?;
                check_jobs(&matched)?;
                (name, matched.into_iter().map(Source::File).collect())
            }
            Source::File(path) if path.is_dir() => match job::parts(path)? {
                Some(parts) => (path.display().to_string(), parts.into_iter().map(Source::File).collect()),
                None => {
                    found.push(source.clone());
                    continue;
                }
            },
            Source::Url(url) if is_pattern_of_objects(url) => {
                let matched = objects(url, network).map_err(|error| error.with_name(url))?;
                job::check_objects(&matched, |url| network.remote(url))?;
                (url.clone(), matched.into_iter().map(Source::Url).collect())
            }
            Source::Url(url) if job::is_directory(url) => match job::objects(network.remote(url))? {
                Some(parts) => (url.clone(), parts.iter().map(|part| Source::Url(part.url().into())).collect()),
                None => {
                    found.push(source.clone());
                    continue;
                }
            },
            _ => {
                found.push(source.clone());
                continue;
            }
        };
        found.extend::<Vec<Source>>(matched);
        if found.len() == before && !allow_empty {
            return Err(Error::new(ErrorKind::OpenFailed)
                .with_name(name)
                .with_found("no match")
                .with_expected("at least one; --allow-empty accepts none"));
        }
    }
    Ok(found)
}

/// Fails if one of these files is in the directory of an unfinished job, of which a pattern matches only some parts.
fn check_jobs(files: &[PathBuf]) -> Result<()> {
    let mut directories: Vec<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    directories.dedup();
    directories.into_iter().try_for_each(|directory| {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        job::parts(directory).map(drop)
    })
}

fn matcher(pattern: &str) -> Result<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = glob.map_err(|error| {
        Error::new(ErrorKind::InvalidOption)
            .with_found(error.kind().to_string())
            .with_expected("a valid pattern")
            .with_advice("correct the pattern")
    })?;
    Ok(glob.compile_matcher())
}

/// Returns the files that match. Names that begin with a dot match only if the pattern has a name that does.
fn files(pattern: &Path) -> Result<Vec<PathBuf>> {
    let Some(text) = pattern.to_str() else {
        return Err(Error::new(ErrorKind::InvalidOption).with_found("a pattern that is not UTF-8"));
    };
    let matcher = matcher(text)?;
    let fixed = fixed_part(text);
    let with_hidden = text[fixed.len()..].split('/').any(|part| part.starts_with('.'));
    let depth = match text.contains("**") {
        true => usize::MAX,
        false => text[fixed.len()..].split('/').count(),
    };
    let root = if fixed.is_empty() { "." } else { fixed };
    let is_wanted = |name: &[u8], depth| depth == 0 || with_hidden || !name.starts_with(b".");
    let walk = WalkDir::new(root).max_depth(depth).into_iter();
    let mut found = Vec::new();
    for entry in walk.filter_entry(|entry| is_wanted(entry.file_name().as_bytes(), entry.depth())) {
        let entry = match entry {
            Ok(entry) => entry,
            // No file can be in a directory that does not exist.
            Err(error) if error.depth() == 0 && is_missing(&error) => break,
            Err(error) => return Err(Error::new(ErrorKind::OpenFailed).with_io(error.into())),
        };
        let path = if fixed.is_empty() { entry.path().strip_prefix(".").unwrap_or(entry.path()) } else { entry.path() };
        if matcher.is_match(path) && !path.is_dir() {
            found.push(path.to_path_buf());
        }
    }
    found.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(found)
}

fn is_missing(error: &walkdir::Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn objects(pattern: &str, network: &Network) -> Result<Vec<String>> {
    let objects = Objects::matching(network.remote(pattern))?;
    objects.map(|object| object.map(|object| object.url)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_within_directories() {
        let matches = |pattern: &str, name: &str| matcher(pattern).unwrap().is_match(name);
        assert!(matches("a/*.gz", "a/b.gz") && !matches("a/*.gz", "a/b/c.gz"));
        assert!(matches("a/**/*.gz", "a/b.gz") && matches("a/**/*.gz", "a/b/c.gz"));
        assert!(matcher("a/[*").is_err());
    }
}
