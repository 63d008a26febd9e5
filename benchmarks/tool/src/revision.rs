//! Compares Millstream with another revision of itself: the same runners, built from that revision, are the
//! competitors.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::definition::{Definition, Runner, Target};
use crate::goal::{Goal, Measure};
use crate::results::Question;
use crate::{competitors, programs};

/// Another revision, which has been built.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The abbreviated hash of its commit.
    pub commit: String,
    /// The directories that contain its programs.
    pub programs: Vec<PathBuf>,
}

/// The share by which a runner may be slower without being reported, even if the difference is significant.
const TOLERANCE: f64 = 0.05;

impl Revision {
    /// Builds the revision called `name` of the repository at `root` in a temporary worktree. The build products are
    /// kept in `target`, so that the next build is faster.
    ///
    /// # Errors
    /// Fails if there is no such revision or if it cannot be built.
    pub fn build(root: &Path, name: &str, target: &Path) -> Result<Revision> {
        let output = Command::new("git")
            .args(["rev-parse", "--short=12", "--verify", &format!("{name}^{{commit}}")])
            .current_dir(root)
            .output()
            .context("git")?;
        ensure!(
            output.status.success(),
            "there is no revision {name:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let commit = String::from_utf8(output.stdout)?.trim().to_owned();

        let tree = Worktree::add(root, &commit)?;
        programs::build(&tree.path(), target, true, "full").with_context(|| format!("{commit} cannot be built"))?;
        let programs = target.join("release");
        let competitors = competitors::build(&tree.path(), &programs)?;
        Ok(Revision { commit, programs: vec![programs, competitors] })
    }

    /// Returns the definition with only its Millstream runners, each compared with itself at this revision; nothing if
    /// it has none. All runners get the same number of rounds, which the comparison requires.
    pub fn against(&self, definition: &Definition) -> Option<Definition> {
        let millstream: Vec<&Runner> =
            definition.runners.iter().filter(|runner| definition.is_millstream(runner)).collect();
        let then = |name: &str| format!("{name} at {}", self.commit);
        let both = |&runner: &&Runner| {
            let now = Runner { millstream: true, runs: None, ..runner.clone() };
            let mut before = Runner { name: then(&runner.name), millstream: false, ..now.clone() };
            before.programs = self.programs.clone();
            before.cell.iter_mut().for_each(|cell| cell.base = then(&cell.base));
            [now, before]
        };
        let target = |&runner: &&Runner| Target {
            work: runner.name.clone(),
            millstream: runner.name.clone(),
            competitors: vec![then(&runner.name)],
            measure: Measure::Wall,
            goal: Goal::AtMost(1.0 + TOLERANCE),
            processor: None,
        };
        (!millstream.is_empty()).then(|| Definition {
            runs: None,
            floor: None,
            runners: millstream.iter().flat_map(both).collect(),
            targets: millstream.iter().map(target).collect(),
            ..definition.clone()
        })
    }
}

/// Returns the runners that have become slower by more than the tolerance, if the interval confirms it.
pub fn slower(question: &Question) -> impl Iterator<Item = &str> {
    let is_slower = |value: Option<f64>, low: Option<f64>| value > Some(1.0 + TOLERANCE) && low > Some(1.0);
    question
        .targets
        .iter()
        .filter(move |target| is_slower(target.row.value, target.row.low))
        .map(|target| target.work.as_str())
}

/// A checked-out working tree that is removed when it is dropped.
struct Worktree {
    root: PathBuf,
    directory: TempDir,
}

impl Worktree {
    fn add(root: &Path, commit: &str) -> Result<Worktree> {
        let directory = tempfile::Builder::new().prefix("millstream-revision-").tempdir()?;
        let tree = Worktree { root: root.to_owned(), directory };
        let mut git = Command::new("git");
        git.args(["worktree", "add", "--quiet", "--detach"]).arg(tree.path()).arg(commit).current_dir(root);
        ensure!(git.status().context("git")?.success(), "git cannot check out {commit}");
        Ok(tree)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("tree")
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let path = self.path();
        let status =
            Command::new("git").args(["worktree", "remove", "--force"]).arg(&path).current_dir(&self.root).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("WARNING: {} could not be removed: remove it with `git worktree remove --force`", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Scale;
    use crate::evaluate::question;
    use crate::results::{Outcome, Run};

    fn definition() -> Definition {
        let text = r#"
            name = "test"
            question = "Slower?"
            per = "lines"
            stages = [0, 10]
            full = { values = { lines = 1, bytes = 1 }, answers.all = { count = 1 } }
            quick = { values = { lines = 1, bytes = 1 }, answers.all = { count = 1 } }
            runner = [
                { name = "millstream", command = ["a", "{stages}"], runs = 1 },
                { name = "also millstream", millstream = true, command = ["b"] },
                { name = "competitor", command = ["c"] },
            ]
            target = [{ work = "w", millstream = "millstream n=0", competitors = ["competitor"], goal = { at_most = 1.0 } }]
        "#;
        Definition::parse(text).unwrap()
    }

    #[test]
    fn millstream_are_compared_with_themselves() {
        let revision = Revision { commit: "abc".into(), programs: vec!["/there".into()] };
        let both = revision.against(&definition()).unwrap();
        let names: Vec<&str> = both.runners.iter().map(|runner| runner.name.as_str()).collect();
        assert_eq!(names, ["millstream n=0", "millstream n=0 at abc", "also millstream", "also millstream at abc"]);
        assert!(both.runners[0].programs.is_empty() && both.runners[0].runs.is_none());
        assert_eq!(both.runners[1].programs, revision.programs);
        let mut competitors_only = definition();
        competitors_only.runners.retain(|runner| runner.name == "competitor");
        competitors_only.targets.clear();
        assert!(revision.against(&competitors_only).is_none());
    }

    #[test]
    fn slower_is_what_surely_is() {
        let revision = Revision { commit: "abc".into(), programs: vec![] };
        let both = revision.against(&definition()).unwrap();
        let runs = |milliseconds: [u32; 6]| {
            let run = |ms: u32| Run {
                wall: f64::from(ms) / 1e3,
                user: 0.0,
                system: 0.0,
                peak: 0,
                allocations: None,
                system_calls: None,
            };
            Outcome::Measured { runs: milliseconds.map(run).into(), warnings: vec![] }
        };
        let found = |now, then| {
            let same = || runs([100; 6]);
            let question = question(&both, Scale::Full, vec![runs(now), runs(then), same(), same()]);
            slower(&question).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(found([110, 111, 109, 110, 112, 110], [100, 101, 99, 100, 100, 100]), ["millstream n=0"]);
        // Slower by an irrelevant amount, and then slower by more, but not significantly.
        assert!(found([103, 104, 103, 103, 104, 103], [100, 101, 99, 100, 100, 100]).is_empty());
        assert!(found([60, 200, 70, 190, 110, 115], [200, 60, 190, 70, 100, 101]).is_empty());
        assert!(found([90; 6], [100; 6]).is_empty());
    }
}
