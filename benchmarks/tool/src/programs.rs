//! The programs of the repository that are measured: the command, and the Rust programs that call the library.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Builds the programs of the repository at `root` into a target directory that its two workspaces share. The command
/// has the given Cargo features; the released one has `full`.
///
/// # Errors
/// Fails if there is no cargo or if a program cannot be built.
pub fn build(root: &Path, target: &Path, optimised: bool, features: &str) -> Result<()> {
    let packages = [("Cargo.toml", "millstream-cli", features), ("benchmarks/Cargo.toml", "millstream-runners", "")];
    for (manifest, package, features) in packages {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--package", package, "--bins", "--features", features]);
        cargo.arg("--manifest-path").arg(root.join(manifest));
        cargo.arg("--target-dir").arg(target).current_dir(root);
        if optimised {
            cargo.arg("--release");
        }
        ensure!(cargo.status().context("cargo")?.success(), "cargo build --package {package}");
    }
    Ok(())
}
