//! The rivals in C, C++ and Go: built from `benchmarks/rivals` before anything is measured.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};

/// Builds what has changed with `make`, for the repository at `root` and the tool's own programs in `programs`; the
/// directory of the rivals. Both profiles of the tool share it: rivals are always optimised.
///
/// # Errors
/// There is no `make`, or a rival cannot be compiled. What has no compiler here is left out.
pub fn build(root: &Path, programs: &Path) -> Result<PathBuf> {
    let directory = directory(programs)?;
    let jobs = thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut make = Command::new("make");
    make.arg("--silent").arg(format!("--jobs={jobs}")).arg("--directory").arg(root.join("benchmarks/rivals"));
    // The C library of the same profile, where it has been built.
    make.arg(format!("LIBRARIES={}", programs.display()));
    // What a `make` around us says is for its own children.
    make.arg(format!("OUT={}", directory.display())).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    ensure!(make.status().context("make")?.success(), "the rivals cannot be built");
    Ok(directory)
}

/// Where rivals are for the tool's own programs in `programs`.
///
/// # Errors
/// That is the root of the file system.
pub fn directory(programs: &Path) -> Result<PathBuf> {
    Ok(programs.parent().context("the tool is in no target directory")?.join("rivals"))
}
