//! Separate runs in which a runner is observed: under `strace`, or with a report of how its pipe spent its time.
//! Observation slows a run down, so none of these runs is a measurement.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use millstream_runners::times::PipeTimes;
use tempfile::NamedTempFile;

use crate::answer::Answer;
use crate::definition::{Definition, Runner, Scale, Stdin};
use crate::destination::Destination;
use crate::measure::{Place, time};
use crate::results::{Seen, SystemCalls};

/// A runner, ready to start.
#[derive(Debug)]
pub struct Ready<'a> {
    definition: &'a Definition,
    runner: &'a Runner,
    words: Vec<String>,
    input: Option<PathBuf>,
    output: PathBuf,
    place: &'a Place,
}

/// Watches a runner, each time for at most `limit`. Standard error reports what cannot be observed, and why.
///
/// # Errors
/// Fails if the input cannot be created.
pub fn watch(runner: &Runner, definition: &Definition, scale: Scale, place: &Place, limit: Duration) -> Result<Seen> {
    let ready = Ready::new(runner, definition, scale, place)?;
    let skipped = |what: &str, error: anyhow::Error| {
        eprintln!("SKIPPED: {}: {}: no {what}: {error:#}", definition.name, runner.name);
    };
    let system_calls = ready.system_calls(limit).map_err(|error| skipped("system calls are counted", error)).ok();
    let pipe = runner.stats.then(|| ready.pipe(limit).map_err(|error| skipped("statistics of its pipe", error)).ok());
    Ok(Seen { system_calls, pipe: pipe.flatten() })
}

impl<'a> Ready<'a> {
    /// Prepares a runner and creates its input.
    ///
    /// # Errors
    /// Fails if the input cannot be created.
    pub fn new(runner: &'a Runner, definition: &'a Definition, scale: Scale, place: &'a Place) -> Result<Ready<'a>> {
        let size = definition.size(scale);
        let input = runner.input(size).map(|input| input.make(&place.inputs)).transpose()?;
        let output = place.inputs.join("output");
        let words = runner.argv(size, input.as_deref(), Some(&output))?;
        Ok(Ready { definition, runner, words, input, output, place })
    }

    /// Counts the system calls of the runner and its children, the most frequent first.
    ///
    /// # Errors
    /// Fails if there is no `strace`, if it is not permitted to trace, or if the run fails or takes longer than
    /// `limit`.
    pub fn system_calls(&self, limit: Duration) -> Result<Vec<SystemCalls>> {
        let summary = NamedTempFile::new()?;
        let path = summary.path().display().to_string();
        self.time(&["strace", "-c", "-f", "-o", &path, "--"], &[], |_| {}, limit)?;
        Ok(parse_strace(&fs::read_to_string(&path)?))
    }

    /// Returns how its pipe spent its time, as reported by the runner.
    ///
    /// # Errors
    /// Fails if the run fails or takes longer than `limit`, or if the report does not have the right format.
    pub fn pipe(&self, limit: Duration) -> Result<PipeTimes> {
        let stats = NamedTempFile::new()?;
        self.time(&[], &["--stats", &stats.path().display().to_string()], |_| {}, limit)?;
        Ok(serde_json::from_str(&fs::read_to_string(stats.path())?)?)
    }

    /// Runs it with these words before and after the command, after applying `change`. Returns the seconds that it
    /// took, by the clock of the definition.
    ///
    /// # Errors
    /// Fails if it cannot be started, fails, or takes longer than the limit.
    pub fn time(
        &self,
        before: &[&str],
        after: &[&str],
        change: impl FnOnce(&mut Command),
        limit: Duration,
    ) -> Result<f64> {
        let mut words =
            before.iter().copied().chain(self.words.iter().map(String::as_str)).chain(after.iter().copied());
        let mut command = Command::new(words.next().context("a runner without a program")?);
        command.args(words).current_dir(&self.place.root).env("PATH", self.place.search_path(&self.runner.programs));
        command.stdin(match (self.definition.stdin, &self.input) {
            (Stdin::Input, Some(path)) => Stdio::from(File::open(path)?),
            _ => Stdio::null(),
        });
        command.stdout(match self.definition.destination {
            Destination::Tool | Destination::Pipe => Stdio::piped(),
            Destination::File => Stdio::from(File::create(&self.output)?),
            Destination::Nowhere | Destination::Object => Stdio::null(),
        });
        change(&mut command);
        let mut answer = Vec::new();
        let (run, ()) = time(command, limit, |stdout| match stdout {
            Some(mut pipe) if self.definition.destination == Destination::Tool => {
                pipe.read_to_end(&mut answer).map(drop)
            }
            Some(mut pipe) => io::copy(&mut pipe, &mut io::sink()).map(drop),
            None => Ok(()),
        })?;
        remove(&self.output)?;
        let inside =
            Answer::parse(self.runner.output, &answer).ok().and_then(|mut answer| answer.take_inside().nanoseconds);
        Ok(inside.map_or(run.wall, |nanoseconds| nanoseconds as f64 / 1e9))
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Parses the lines of `strace -c` that count a call; the line with the total is left out.
fn parse_strace(summary: &str) -> Vec<SystemCalls> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.last().filter(|name| **name != "total")?;
        // The columns: share, seconds, microseconds per call, calls, errors if there were any, name.
        Some(SystemCalls { calls: words.get(3)?.parse().ok()?, name: (*name).to_owned() })
    };
    let mut calls: Vec<_> = summary.lines().filter_map(line).collect();
    calls.sort_by(|a, b| b.calls.cmp(&a.calls).then(a.name.cmp(&b.name)));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_strace_is_understood() {
        let summary = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.10    0.002301          11       200           write
 39.90    0.001527           3       412         7 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.003828           6       612         7 total
";
        let calls = |name: &str, calls| SystemCalls { name: name.to_owned(), calls };
        assert_eq!(parse_strace(summary), [calls("openat", 412), calls("write", 200)]);
    }
}
