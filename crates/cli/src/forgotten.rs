//! Detects a command without the `--` before it: `millstream run ls -la`. In that case, the command's name is taken as
//! a file, and its options as options of `run`. The message only explains where to put the command.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;

use millstream::{Error, ErrorKind};

use crate::program;

/// The number of words of the command that are shown.
const SHOWN: usize = 4;

/// Returns the message for `error`, if it is about a source in `names` that is not a file but a program.
pub(crate) fn advice_on_source(error: &Error, names: &[&OsStr]) -> Option<String> {
    let missing = error.kind() == ErrorKind::OpenFailed
        && error.io().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
    let at = names.iter().position(|name| error.name() == Some(&*name.to_string_lossy()))?;
    (missing && is_program_only(names[at])).then(|| advice(&names[at..]))
}

/// Returns the message for an unknown option, if a program precedes it in the command line. `is_source` returns whether
/// the last of the given words is a source.
pub(crate) fn advice_on_option(words: &[OsString], is_source: impl Fn(&[OsString]) -> bool) -> Option<String> {
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let at = (2..words.len()).find(|&at| is_program_only(&words[at]) && is_source(&words[..=at]))?;
    Some(advice(&words[at..]))
}

/// Returns whether a program of this name exists, but no file.
fn is_program_only(name: &OsStr) -> bool {
    let is_missing = fs::symlink_metadata(name).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    // Without a PATH this is unknown.
    is_missing && std::env::var_os("PATH").is_some() && program::find(name).is_ok()
}

fn advice(command: &[impl AsRef<OsStr>]) -> String {
    let words = command.iter().map(|word| word.as_ref().to_str().filter(|word| is_plain(word)));
    let mut shown: Vec<&str> = words.map_while(|word| word).take(SHOWN).collect();
    if shown.len() < command.len() {
        shown.push("...");
    }
    format!("put the command after `--`: millstream run ... -- {}", shown.join(" "))
}

/// Returns whether a shell leaves this word unchanged.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./,:=+@%".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_quotes_is_shown() {
        let shown = |words: &[&str]| advice(words).rsplit_once(" -- ").unwrap().1.to_string();
        assert_eq!(shown(&["ls", "-la"]), "ls -la");
        assert_eq!(shown(&["grep", "a b", "x"]), "grep ...");
        assert_eq!(shown(&["ls", "1", "2", "3", "4", "5"]), "ls 1 2 3 ...");
    }
}
