//! Builds the competitors of `benchmarks/competitors` before the measurements.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};

/// Builds what has changed with `make` and returns the directory of the competitors. `root` is the root of the
/// repository, and `programs` the directory of the tool's own programs. Competitors are always optimised, so both
/// profiles of the tool share this directory.
///
/// # Errors
/// Fails if there is no `make` or if a competitor cannot be compiled. Competitors whose compiler is missing are left
/// out.
pub fn build(root: &Path, programs: &Path) -> Result<PathBuf> {
    let directory = directory(programs)?;
    let jobs = thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut make = Command::new("make");
    make.arg("--silent").arg(format!("--jobs={jobs}")).arg("--directory").arg(root.join("benchmarks/competitors"));
    // The C library built with the same profile.
    make.arg(format!("LIBRARIES={}", programs.display()));
    // Variables of an enclosing `make` are not meant for this `make`.
    make.arg(format!("OUT={}", directory.display())).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    ensure!(make.status().context("make")?.success(), "`make` failed to build the competitors");
    Ok(directory)
}

/// Returns the directory of the competitors that belongs to the tool's own programs in `programs`.
///
/// # Errors
/// Fails if `programs` is the root of the file system.
pub fn directory(programs: &Path) -> Result<PathBuf> {
    Ok(programs.parent().context("the tool is not in a target directory")?.join("competitors"))
}
