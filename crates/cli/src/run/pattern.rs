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
use millstream::{CancelToken, Error, ErrorKind, Result, job};
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
    /// Returns [`ErrorKind::OpenFailed`] for a pattern that matches nothing, unless the option allows it,
    /// [`ErrorKind::JobIncomplete`] for an unfinished job, and errors of listing: a source must not be missing silently.
    pub(crate) fn replace(&self, sources: &mut Vec<Source>, is_last: bool, network: &Network) -> Result<()> {
        if let Some(mut list) = self.replace_lazily(sources, is_last, network)? {
            while let Some(urls) = list.next_urls(network)? {
                sources.extend(urls.into_iter().map(Source::Url));
            }
        }
        Ok(())
    }

    /// Replaces patterns like [`replace`](Self::replace), and returns what follows the last of the sources: the objects
    /// of a pattern that have not been listed.
    ///
    /// # Errors
    /// Returns the errors of `replace`.
    pub(super) fn replace_lazily(
        &self,
        sources: &mut Vec<Source>,
        is_last: bool,
        network: &Network,
    ) -> Result<Option<List>> {
        let mut rest: Option<List> = None;
        let mut found = Vec::with_capacity(sources.len());
        for source in sources.iter() {
            // Another source follows these objects.
            while let Some(urls) = rest.as_mut().map_or(Ok(None), |list| list.next_urls(network))? {
                found.extend(urls.into_iter().map(Source::Url));
            }
            let matched = match source {
                Source::Url(url) if is_pattern_of_objects(url) => {
                    let list = rest.insert(List::new(url, network)?);
                    let urls = list.next_urls(network)?.unwrap_or_default();
                    Some((url.clone(), urls.into_iter().map(Source::Url).collect()))
                }
                other => expand(other, network)?,
            };
            let Some((name, matched)) = matched else {
                found.push(source.clone());
                continue;
            };
            if matched.is_empty() && !self.allow_empty {
                return Err(Error::new(ErrorKind::OpenFailed)
                    .with_name(name)
                    .with_found("no match")
                    .with_expected("at least one; --allow-empty accepts none"));
            }
            found.extend::<Vec<Source>>(matched);
        }
        let has_none = found.is_empty() && !sources.is_empty() && is_last;
        *sources = found;
        // Without a source, standard input would be read.
        if has_none {
            sources.push(Source::File("/dev/null".into()));
        }
        Ok(rest)
    }
}

/// Returns the name and the matches of a pattern of files, in the order of the bytes of their names, or the parts of the
/// directory of a job. `None` is a source that is neither.
fn expand(source: &Source, network: &Network) -> Result<Option<(String, Vec<Source>)>> {
    Ok(match source {
        Source::File(path) if is_pattern(&path.to_string_lossy()) && path.symlink_metadata().is_err() => {
            let name = path.display().to_string();
            let matched = files(path).map_err(|error| error.with_name(&name))?;
            check_jobs(&matched)?;
            Some((name, matched.into_iter().map(Source::File).collect()))
        }
        Source::File(path) if path.is_dir() => {
            job::parts(path)?.map(|parts| (path.display().to_string(), parts.into_iter().map(Source::File).collect()))
        }
        Source::Url(url) if job::is_directory(url) => job::objects(network.remote(url))?
            .map(|parts| (url.clone(), parts.iter().map(|part| Source::Url(part.url().into())).collect())),
        _ => None,
    })
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

/// The objects that match a pattern, which are listed as they are needed.
pub(super) struct List {
    pattern: String,
    objects: Objects,
    is_complete: bool,
}

impl List {
    fn new(pattern: &str, network: &Network) -> Result<List> {
        Ok(List { pattern: pattern.into(), objects: Objects::matching(network.remote(pattern))?, is_complete: false })
    }

    /// Lets `input` end the wait for the store.
    pub(super) fn cancel(self, input: &CancelToken) -> List {
        let input = input.clone();
        List { objects: self.objects.checking(move || input.check()), ..self }
    }

    /// Returns the next URLs, about as many as the store lists at once; `None` after the last ones.
    ///
    /// # Errors
    /// Returns errors of listing, and [`ErrorKind::JobIncomplete`] for a part of an unfinished job.
    pub(super) fn next_urls(&mut self, network: &Network) -> Result<Option<Vec<String>>> {
        const AT_ONCE: usize = 1000;
        if self.is_complete {
            return Ok(None);
        }
        let urls = self.objects.by_ref().take(AT_ONCE).map(|object| object.map(|object| object.url));
        let urls: Vec<String> = urls.collect::<Result<_>>().map_err(|error| error.with_name(&self.pattern))?;
        self.is_complete = urls.len() < AT_ONCE;
        job::check_objects(&urls, |url| network.remote(url))?;
        Ok(Some(urls))
    }
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
