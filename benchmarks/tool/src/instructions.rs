//! Instruction counts: a check without noise that finds changes that make Millstream execute more instructions.
//!
//! Some runners are run at the quick size under callgrind and compared with a stored baseline. Valgrind does not
//! support AVX-512, and the result must not depend on the vector instructions of a machine. Millstream is therefore
//! forced to use none or, with `avx2: ` before the name, at most AVX2. Another compiler generates other instructions
//! from the same code. In that case, nothing is compared. A runner that times itself makes only one pass (`--once`), because
//! otherwise the number of passes would depend on the clock.
//!
//! An instruction count is not a time. A change that this finds deserves a time measurement; code that it accepts can
//! still be slower.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::definition::{Command, Definition, Scale};
use crate::goal::Clock;
use crate::measure::{Place, Plan, measure};
use crate::results::Outcome;

/// The stored counts, and the increase that is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The output of `rustc --version`.
    pub compiler: String,
    /// The share by which a count may grow: 0.02 is 2 %.
    pub tolerance: f64,
    /// The number of instructions by `DEFINITION/RUNNER`.
    pub instructions: BTreeMap<String, u64>,
}

/// The prefix of the names of runners that use AVX2.
const AVX2: &str = "avx2: ";

/// The comment at the beginning of the stored file.
const HEAD: &str = "\
# Instructions of whole processes at the quick size, counted by callgrind. Names that begin with `avx2: ` use AVX2; all
# others use no vector instructions in Millstream. Written by `make instructions WRITE=--write`; to count another
# runner, add its line with 0 and run that command.
";

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a baseline.
    pub fn load(path: &Path) -> Result<Baseline> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Stores a baseline.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn store(&self, path: &Path) -> Result<()> {
        let text = format!("{HEAD}{}", toml::to_string(self)?);
        fs::write(path, text).with_context(|| path.display().to_string())
    }

    /// Compares new counts with this baseline. Both must have the same names, and the tolerance is this baseline's.
    pub fn compare(&self, now: &BTreeMap<String, u64>) -> Comparison {
        let mut text = String::new();
        let mut grew = false;
        for (name, &count) in now {
            let before = self.instructions.get(name).copied().unwrap_or(0);
            let percent = (count as f64 / before as f64 - 1.0) * 100.0;
            let allowed = self.tolerance * before as f64;
            let word = match count as f64 - before as f64 {
                _ if before == 0 => "new",
                more if more > allowed => {
                    grew = true;
                    "GREW"
                }
                more if more < -allowed => "shrank",
                _ => "same",
            };
            let percent = if before == 0 { String::new() } else { format!(" ({percent:+.2} %)") };
            writeln!(text, "{word:6} {name}: {count}{percent}").expect("writing to a string cannot fail");
        }
        Comparison { text, grew }
    }
}

/// The changes of the counts.
#[derive(Debug)]
pub struct Comparison {
    /// One line for each count.
    pub text: String,
    /// Whether a count has grown by more than the tolerance.
    pub grew: bool,
}

/// Whether this processor has the features that the runner with this name uses.
pub fn is_possible(name: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    let has_avx2 = std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let has_avx2 = false;
    has_avx2 || !name.starts_with(AVX2)
}

/// Counts the instructions of a runner, called `DEFINITION/RUNNER` or `avx2: DEFINITION/RUNNER`. Its answer must be correct.
///
/// # Errors
/// Fails if there is no such runner or no valgrind, or if the answer is wrong.
pub fn count(name: &str, definitions: &[Definition], place: &Place) -> Result<u64> {
    let (simd, called) = name.strip_prefix(AVX2).map_or(("portable", name), |called| ("avx2", called));
    let (definition, runner) = called.split_once('/').with_context(|| format!("{name:?} is not DEFINITION/RUNNER"))?;
    let found = definitions.iter().find(|one| one.name == definition);
    let mut definition = found.with_context(|| format!("there is no definition {definition:?}"))?.clone();
    definition.targets.clear();
    definition.runners.retain(|one| one.name == runner);
    let runner = definition.runners.first_mut().with_context(|| format!("{name}: there is no such runner"))?;
    let Command::Argv(argv) = &mut runner.command else { bail!("{name}: only a plain program can be counted") };

    if definition.clock == Clock::Inside {
        definition.clock = Clock::Process;
        argv.push("--once".to_owned());
    }
    let profile = place.inputs.join("callgrind.out");
    let to_profile = format!("--callgrind-out-file={}", profile.display());
    let simd = format!("MILLSTREAM_SIMD={simd}");
    let plainly = ["env", &simd, "MILLSTREAM_DIGITS=portable"];
    let counted = ["valgrind", "--quiet", "--tool=callgrind", &to_profile];
    argv.splice(0..0, plainly.iter().chain(&counted).map(|&word| word.to_owned()));
    runner.needs.push("valgrind".to_owned());

    let patience = Duration::from_secs(120);
    let plan = Plan { scale: Scale::Quick, rounds: 1, warm_up: false, budget: patience, limit: patience };
    match measure(&definition, &plan, place, &|_| ())?.remove(0) {
        Outcome::Measured { .. } => total(&fs::read_to_string(&profile)?),
        Outcome::Wrong(reason) => bail!("{name}: {reason}"),
        Outcome::Skipped(program) => bail!("{name}: this machine has no {program}"),
        Outcome::Over(seconds) => bail!("{name}: more than {seconds} s under callgrind"),
    }
}

/// Returns the total of a callgrind profile.
fn total(profile: &str) -> Result<u64> {
    let totals: Vec<&str> = profile.lines().filter_map(|line| line.strip_prefix("totals: ")).collect();
    ensure!(!totals.is_empty(), "the output of callgrind has no totals");
    totals.iter().map(|total| Ok(total.trim().parse::<u64>()?)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(counts: &[(&str, u64)]) -> Baseline {
        let instructions = counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        Baseline { compiler: "rustc 1".into(), tolerance: 0.02, instructions }
    }

    #[test]
    fn only_what_grows_beyond_the_tolerance_is_bad() {
        let before = baseline(&[("a/x", 1000), ("b/y", 1000), ("c/z", 1000), ("d", 0)]);
        let now = baseline(&[("a/x", 1020), ("b/y", 900), ("c/z", 1000), ("d", 5)]).instructions;
        let Comparison { text, grew } = before.compare(&now);
        assert_eq!(
            text,
            "same   a/x: 1020 (+2.00 %)\nshrank b/y: 900 (-10.00 %)\nsame   c/z: 1000 (+0.00 %)\nnew    d: 5\n"
        );
        assert!(!grew);
        let Comparison { text, grew } = before.compare(&baseline(&[("a/x", 1021)]).instructions);
        assert_eq!((text.as_str(), grew), ("GREW   a/x: 1021 (+2.10 %)\n", true));
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.toml");
        let stored = baseline(&[("file lines/next_line", 12)]);
        stored.store(&path).unwrap();
        assert_eq!(Baseline::load(&path).unwrap(), stored);
        assert!(fs::read_to_string(&path).unwrap().starts_with("# Instructions"));
    }

    #[test]
    fn totals_are_found() {
        assert_eq!(total("events: Ir\nsummary: 9\n\nfn=(1)\n1 2\n\ntotals: 123\n").unwrap(), 123);
        assert!(total("events: Ir\n").is_err());
    }
}
