//! Runs a runner without changes, under a sampler, and under `strace`, and keeps their output.
//!
//! The sampler is the first of these that has output: Node's own (a `node` script placed before the real one in `PATH`
//! adds `--cpu-prof`), the one inside millstream's programs ([`sample`]), or `perf`. Sampling slows a run down, so both
//! times are kept, and only the one without a sampler is a measurement.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use millstream_runners::sample;
use serde::{Deserialize, Serialize};

use super::{cpuprofile, png, svg};
use crate::definition::{Definition, Runner, Scale};
use crate::measure::Place;
use crate::results::SystemCalls;
use crate::watch::Ready;

/// The directory of profiles in a record.
pub const DIRECTORY: &str = "profiles";

/// The time limit for one observed run. Samplers and `strace` can make a run many times slower.
const LIMIT: Duration = Duration::from_secs(600);

/// How one runner spent its time. The files next to it have the same name and end in `.svg`, `.png`, `.folded` and, for
/// Node, `.cpuprofile`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// The name of the definition.
    pub question: String,
    /// The name of the runner.
    pub runner: String,
    /// The duration in seconds of the run without a sampler.
    pub plain: f64,
    /// The duration in seconds of the sampled run.
    pub profiled: f64,
    /// The name of the sampler.
    pub sampler: String,
    /// The system calls of the runner and its children, the most frequent first; empty without `strace`.
    pub system_calls: Vec<SystemCalls>,
}

/// Profiles the runners with this name, with or without the value of a swept parameter, or all runners. The results are
/// written to the directory.
///
/// # Errors
/// Fails if there is no such runner, if it fails, or if no sampler works on this machine.
pub fn profile(definition: &Definition, name: Option<&str>, place: &Place, directory: &Path) -> Result<Vec<Profile>> {
    let is_meant = |runner: &&Runner| name.is_none_or(|name| runner.name == name || runner.base() == name);
    let runners: Vec<&Runner> = definition.runners.iter().filter(is_meant).collect();
    if runners.is_empty() {
        let names: Vec<&str> = definition.runners.iter().map(|runner| runner.name.as_str()).collect();
        bail!("{} has no runner {:?}; it has {}", definition.name, name.unwrap_or_default(), names.join(", "));
    }
    fs::create_dir_all(directory)?;
    let mut profiles = Vec::new();
    for runner in runners {
        eprintln!("{}: {}", definition.name, runner.name);
        let ready = Ready::new(runner, definition, Scale::Full, place)?;
        let run = Run { definition, runner, ready, place };
        let stem = directory.join(file_name(&definition.name, &runner.name));
        let profile = run.profile(&stem).with_context(|| runner.name.clone())?;
        fs::write(stem.with_added_extension("json"), serde_json::to_string_pretty(&profile)?)?;
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Returns the profiles in a directory, sorted by name, each with its SVG.
///
/// # Errors
/// Fails if a file cannot be read or is not a profile.
pub fn load_all(directory: &Path) -> Result<Vec<(Profile, String)>> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &Path| fs::read_to_string(path).with_context(|| path.display().to_string());
    let load = |path: &PathBuf| {
        let profile = serde_json::from_str(&read(path)?).with_context(|| path.display().to_string())?;
        Ok((profile, read(&path.with_extension("svg"))?))
    };
    paths.iter().map(load).collect()
}

/// The name of the files, such as `node-stages.through2-n=10`. Except for spaces, names contain no special characters.
fn file_name(definition: &str, runner: &str) -> String {
    format!("{definition}.{}", runner.replace(' ', "-"))
}

/// A runner to profile.
struct Run<'a> {
    definition: &'a Definition,
    runner: &'a Runner,
    ready: Ready<'a>,
    place: &'a Place,
}

impl Run<'_> {
    fn profile(&self, stem: &Path) -> Result<Profile> {
        let plain = self.ready.time(&[], &[], |_| {}, LIMIT)?;
        let (profiled, sampler, folded, count) = self.sample(stem)?;
        fs::write(stem.with_added_extension("folded"), &folded)?;
        let Definition { name, .. } = self.definition;
        let title = format!("{name}: {} ({plain:.3} s plain, {profiled:.3} s profiled)", self.runner.name);
        let graph = svg(&folded, &title, count)?;
        fs::write(stem.with_added_extension("svg"), &graph)?;
        fs::write(stem.with_added_extension("png"), png(&graph)?)?;
        Ok(Profile {
            question: name.clone(),
            runner: self.runner.name.clone(),
            plain,
            profiled,
            sampler: sampler.to_owned(),
            system_calls: self.system_calls(),
        })
    }

    /// Returns the time under a sampler, the sampler's name, the folded stacks and the unit of their counts.
    fn sample(&self, stem: &Path) -> Result<(f64, &'static str, String, &'static str)> {
        let scratch = tempfile::tempdir()?;
        let folded = scratch.path().join("folded");
        let mut first = self.runner.programs.clone();
        shim(scratch.path(), &self.place.search_path(&first))?;
        first.insert(0, scratch.path().to_owned());
        let path = self.place.search_path(&first);
        let sampled = |command: &mut Command| {
            command.env("PATH", path).env(sample::VARIABLE, &folded);
        };
        let seconds = self.ready.time(&[], &[], sampled, LIMIT)?;
        if let Ok(folded) = fs::read_to_string(&folded) {
            return Ok((seconds, "the sampler inside the program", folded, "samples"));
        }
        // If there are several processes, take the one with the largest profile.
        let profiles = fs::read_dir(scratch.path())?.flatten().map(|entry| entry.path());
        let is_profile = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "cpuprofile");
        if let Some(path) = profiles.filter(is_profile).max_by_key(|path| path.metadata().map_or(0, |data| data.len()))
        {
            let kept = stem.with_added_extension("cpuprofile");
            fs::copy(&path, &kept)?;
            return Ok((seconds, "node --cpu-prof", cpuprofile::fold(&fs::read_to_string(kept)?)?, "µs"));
        }
        let (seconds, folded) = self.perf(scratch.path())?;
        Ok((seconds, "perf, by the clock", folded, "ns"))
    }

    /// Samples with `perf`, which many kernels allow only for root or not at all.
    fn perf(&self, scratch: &Path) -> Result<(f64, String)> {
        let data = scratch.join("perf.data").display().to_string();
        let record = [
            "perf",
            "record",
            "--quiet",
            "--event=cpu-clock",
            "--freq=997",
            "--call-graph=dwarf,16384",
            "-o",
            &data,
            "--",
        ];
        let seconds = self.ready.time(&record, &[], |_| {}, LIMIT).context(
            "no sampler fits: it is neither Node nor a program that uses Millstream, and perf cannot run it (does this kernel allow it?)",
        )?;
        let script = Command::new("perf").args(["script", "-i", &data]).stderr(Stdio::null()).output()?;
        ensure!(script.status.success(), "perf script: {}", script.status);
        let mut folded = Vec::new();
        Folder::from(Options::default()).collapse(script.stdout.as_slice(), &mut folded)?;
        Ok((seconds, String::from_utf8_lossy(&folded).into_owned()))
    }

    /// Counts system calls, including those of children.
    fn system_calls(&self) -> Vec<SystemCalls> {
        self.ready.system_calls(LIMIT).unwrap_or_else(|error| {
            eprintln!("SKIPPED: {}: no system calls are counted: {error:#}", self.runner.name);
            Vec::new()
        })
    }
}

/// Creates a `node` script in this directory that runs Node with its sampler, because NODE_OPTIONS does not accept
/// `--cpu-prof` in all versions.
fn shim(directory: &Path, search_path: &OsString) -> Result<()> {
    let Some(node) = env::split_paths(search_path).map(|directory| directory.join("node")).find(|path| path.is_file())
    else {
        return Ok(());
    };
    let shim = directory.join("node");
    let (node, profiles) = (node.display(), directory.display());
    fs::write(&shim, format!("#!/bin/sh\nexec '{node}' --cpu-prof --cpu-prof-dir='{profiles}' \"$@\"\n"))?;
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
