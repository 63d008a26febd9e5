//! Definitions of measurements as data: one TOML file in `benchmarks/definitions` per question.
//!
//! A definition names its input, the answer every runner must give, the runners (of Millstream and of competitors) and
//! the goals. There are two sizes: `full` is the measurement, `quick` is small and only checks the answers.
//!
//! A runner whose command names the parameter of the definition's `sweep` is replaced by one runner per value of the
//! parameter: see [`crate::parameter`].
//!
//! In commands, `{input}` is the path of the input, `{output}` is the path of the file to write, and `{NAME}` is the
//! value NAME of the size. Programs are looked up next to the tool first (`runner`, `millstream`), then among the
//! competitors built from `benchmarks/competitors`, then in `PATH`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use millstream_runners::input::Input;
use serde::Deserialize;

use crate::answer::{Answer, Output};
use crate::destination::{Destination, Written};
use crate::goal::{Clock, Goal, Measure};
use crate::parameter::{self, BYTES, Cell, LENGTH, STAGES, Sweep};
use crate::store;

/// One question, its runners, and the targets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The name on the command line and in records. The file name is a sequence number followed by this name.
    pub name: String,
    /// The question, in one sentence.
    pub question: String,
    /// A paragraph that explains the results.
    pub explanation: Option<String>,
    /// The number of measured rounds, if it differs from the tool's default.
    pub runs: Option<usize>,
    /// The maximum number of seconds for one run, if it is more than the default.
    pub patience: Option<u64>,
    /// A factor for each runner's time budget, for runs that take seconds: it allows more rounds and more time for
    /// each.
    pub budget_factor: Option<u32>,
    /// The part of the run that the wall time covers.
    #[serde(default)]
    pub clock: Clock,
    /// What the runners read from standard input.
    #[serde(default)]
    pub stdin: Stdin,
    /// The destination of their standard output, or of what they write.
    #[serde(default)]
    pub destination: Destination,
    /// The object store that they use. The environment of the runners names it.
    pub store: Option<store::Settings>,
    /// The value of the size that holds the number of records, if times per record are also shown.
    pub per: Option<String>,
    /// The parameter that is varied.
    pub sweep: Option<Sweep>,
    /// Shorthand for a sweep over `stages`.
    #[serde(default)]
    pub stages: Vec<u64>,
    /// The name (without a value of the sweep) of the runner that is the physical limit: it does only the work that no
    /// program can avoid.
    pub floor: Option<String>,
    /// The size that is measured.
    pub full: Size,
    /// A small size that takes milliseconds and only checks answers.
    pub quick: Size,
    /// All runners, in the order of their turns.
    #[serde(rename = "runner")]
    pub runners: Vec<Runner>,
    /// The rows of the table. If there are none, the runners are only ranked.
    #[serde(rename = "target", default)]
    pub targets: Vec<Target>,
}

/// What the runners read from standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Nothing.
    #[default]
    Empty,
    /// The input file.
    Input,
}

/// One of the two sizes of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The size whose times are reported.
    Full,
    /// The small size, which only checks answers.
    Quick,
}

/// An input, values for the commands, and the expected answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// The input file, if the runners read one.
    pub input: Option<Input>,
    /// Numbers that commands may name.
    #[serde(default)]
    pub values: BTreeMap<String, u64>,
    /// The expected answers by name. By default, a runner gives the answer called `all`.
    #[serde(default)]
    pub answers: BTreeMap<String, Answer>,
    /// The expected bytes, if the destination is not the tool. `benchmarks/README.md` describes how they were determined.
    pub output: Option<Written>,
}

/// A program that answers the question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// The name in tables and records.
    pub name: String,
    /// Whether the runner is Millstream. Not needed if a target names it.
    #[serde(default)]
    pub millstream: bool,
    /// The program and its arguments or, for a pipeline, one line for `bash -o pipefail -c`.
    pub command: Command,
    /// How to read its standard output.
    #[serde(default)]
    pub output: Output,
    /// The name of the expected answer.
    #[serde(default = "all")]
    pub answer: String,
    /// Programs that may be missing on a machine. Without them the runner is skipped.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Whether every machine that measures must have these programs.
    #[serde(default)]
    pub presence: Presence,
    /// The number of measured rounds in which it takes part, for runners that take many times as long as the others.
    pub runs: Option<usize>,
    /// What a stage does with each record before it passes it on, as the value of `{mode}`. Valid only with `{stages}`.
    pub mode: Option<String>,
    /// The maximum number of stages with which it takes part, if more would take minutes.
    pub most_stages: Option<u64>,
    /// Whether it accepts `--stats FILE` after its other arguments and writes to that file how its pipe spent its time,
    /// as [`PipeTimes`](millstream_runners::times::PipeTimes).
    #[serde(default)]
    pub stats: bool,
    /// Directories that are searched first for its programs.
    #[serde(skip)]
    pub programs: Vec<PathBuf>,
    /// Its position in the sweep, if its command names the parameter.
    #[serde(skip)]
    pub cell: Option<Cell>,
}

/// What happens if a runner is missing on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// With `CI=true`, it is an error if the runner is missing.
    #[default]
    Required,
    /// The runner is shown if it is present and skipped otherwise.
    Optional,
}

fn all() -> String {
    "all".to_owned()
}

/// How a runner is started.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Command {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A command line for bash.
    Shell(String),
}

/// One row of the table: Millstream against the best of its competitors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// A short description of the work.
    pub work: String,
    /// The Millstream runner. If added stages are measured, this and the names of the competitors do not contain the
    /// number of stages.
    pub millstream: String,
    /// The runners to compare with; the fastest median counts.
    #[serde(default)]
    pub competitors: Vec<String>,
    /// What is compared.
    #[serde(default)]
    pub measure: Measure,
    /// The goal.
    pub goal: Goal,
    /// The processor features that this goal requires.
    pub processor: Option<Feature>,
}

/// A feature that only some processors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Vector instructions that multiply 52-bit integers.
    Avx512Ifma,
}

impl Feature {
    /// Whether this processor has the feature.
    pub fn is_present(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Feature::Avx512Ifma => std::arch::is_x86_feature_detected!("avx512ifma"),
            #[cfg(not(target_arch = "x86_64"))]
            Feature::Avx512Ifma => false,
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Feature::Avx512Ifma => f.write_str("AVX-512 IFMA"),
        }
    }
}

impl Definition {
    /// Parses a definition.
    ///
    /// # Errors
    /// Fails if the text is not a definition or contains unknown names.
    pub fn parse(text: &str) -> Result<Definition> {
        let mut definition: Definition = toml::from_str(text)?;
        let stages = mem::take(&mut definition.stages);
        if !stages.is_empty() {
            ensure!(definition.sweep.is_none(), "{}: both `stages` and `sweep` are set: remove one", definition.name);
            definition.sweep = Some(Sweep { parameter: STAGES.to_owned(), values: stages });
        }
        if let Some(sweep) = &definition.sweep {
            definition.runners = expand(definition.runners, sweep);
        }
        definition.check().with_context(|| definition.name.clone())?;
        Ok(definition)
    }

    /// Loads all definitions of a directory, in the order of the numbers at the beginning of the file names, which
    /// group them by topic (`60-small-file.toml` is called `small-file`).
    ///
    /// # Errors
    /// Fails if a file cannot be read, is not a definition, or has a name that does not match.
    pub fn load_all(directory: &Path) -> Result<Vec<Definition>> {
        let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.split_once('-')?.0.parse::<u32>().ok();
        paths.sort_by_cached_key(|path| (number(path), path.clone()));
        paths
            .iter()
            .map(|path| {
                let context = || path.display().to_string();
                let text = fs::read_to_string(path).with_context(context)?;
                let definition = Definition::parse(&text).with_context(context)?;
                let name = path.file_stem().and_then(|stem| stem.to_str()?.split_once('-'));
                ensure!(
                    name.is_some_and(|(_, name)| name == definition.name),
                    "{}: the name in the file must equal the file name without its number",
                    context()
                );
                Ok(definition)
            })
            .collect()
    }

    /// Whether the runner is Millstream, as declared by the runner itself or by a target.
    pub fn is_millstream(&self, runner: &Runner) -> bool {
        runner.millstream
            || self.targets.iter().any(|target| [&runner.name, runner.base()].contains(&&target.millstream))
    }

    /// Whether the definition has a table by stages.
    pub fn is_by_stages(&self) -> bool {
        self.sweep.as_ref().is_some_and(|sweep| sweep.parameter == STAGES)
    }

    /// The number of records that each runner processes, if it is the same for all.
    pub fn count(&self, scale: Scale) -> Option<u64> {
        let Size { values, answers, .. } = self.size(scale);
        match &self.per {
            Some(per) => values.get(per).copied(),
            None if self.runners.iter().all(|runner| runner.answer == all()) => answers.get("all")?.get("count"),
            None => None,
        }
    }

    /// The number of bytes that each runner processes, if it is known: the bytes without line feeds for a table by
    /// stages, otherwise the size of the input before compression or of the output.
    pub fn bytes(&self, scale: Scale) -> Option<u64> {
        let Size { input, values, output, .. } = self.size(scale);
        let input = || input.as_ref().and_then(Input::bytes);
        values.get(BYTES).copied().or_else(input).or_else(|| output.as_ref().map(|output| output.bytes))
    }

    /// The input and answers of one size.
    pub fn size(&self, scale: Scale) -> &Size {
        match scale {
            Scale::Full => &self.full,
            Scale::Quick => &self.quick,
        }
    }

    /// Checks that every name in use exists, so that a typing error is found before the measurement.
    fn check(&self) -> Result<()> {
        ensure!(!self.runners.is_empty(), "the definition has no runners");
        for name in self.runners.iter().map(|runner| &runner.name).chain([&self.name]) {
            let plain = |c: char| c.is_ascii_alphanumeric() || " -_.+=".contains(c);
            ensure!(
                !name.is_empty() && name.chars().all(plain),
                "{name:?} contains characters other than letters, digits, spaces and -_.+="
            );
        }
        if let Some(floor) = &self.floor {
            ensure!(self.runners.iter().any(|runner| runner.base() == floor), "there is no runner {floor:?}");
        }
        for target in &self.targets {
            for name in target.competitors.iter().chain([&target.millstream]) {
                for name in target.measure.runners(name) {
                    ensure!(self.runners.iter().any(|runner| runner.name == name), "there is no runner {name:?}");
                }
            }
            if let Measure::AddedStage([from, to]) = target.measure {
                ensure!(from < to, "{:?}: put the smaller number of stages first", target.work);
                ensure!(self.per.is_some(), "{:?}: the number of records is unknown: set `per`", target.work);
            }
            let fits = target.goal.is_alone() == target.competitors.is_empty();
            ensure!(
                fits,
                "{:?}: a goal that compares needs `competitors`, and a limit must not have them",
                target.work
            );
            let unit = match target.goal {
                Goal::UnderMib(_) => target.measure == Measure::Peak,
                Goal::UnderMs(_) | Goal::MoreMs(_) => matches!(target.measure, Measure::Wall | Measure::Cpu),
                Goal::UnderNs(_) => matches!(target.measure, Measure::AddedStage(_)),
                _ => true,
            };
            ensure!(unit, "{:?}: the unit of the goal does not match the measure", target.work);
        }
        for size in [&self.full, &self.quick] {
            let to_tool = self.destination == Destination::Tool;
            ensure!(
                self.destination != Destination::Object || self.store.is_some(),
                "the destination is an object, but the definition has no store"
            );
            ensure!(
                size.output.is_some() != to_tool,
                "`output` must be set if the destination is not the tool, and only then"
            );
            ensure!(
                self.stdin == Stdin::Empty || size.input.is_some(),
                "standard input is the input file, but the size has no input"
            );
            // A table by stages shows bytes and records per second.
            let swept = self.is_by_stages();
            ensure!(!swept || self.per.is_some(), "the number of records is unknown: set `per`");
            for name in self.per.iter().map(String::as_str).chain(swept.then_some(BYTES)) {
                ensure!(size.values.contains_key(name), "there is no value {name:?}");
            }
            for runner in &self.runners {
                if to_tool {
                    let Some(answer) = size.answers.get(&runner.answer) else {
                        bail!("the size has no answer {:?}", runner.answer);
                    };
                    ensure!(!answer.is_empty(), "the expected answer is empty");
                }
                let input = size.input.as_ref().map(|_| Path::new("input"));
                let output = (self.destination == Destination::File).then_some(Path::new("output"));
                runner.argv(size, input, output)?;
            }
        }
        Ok(())
    }
}

impl Runner {
    /// The name without a value of the sweep.
    pub fn base(&self) -> &String {
        self.cell.as_ref().map_or(&self.name, |cell| &cell.base)
    }

    /// The input that it reads. In a sweep over the length of records, the input has records of that length.
    pub fn input(&self, size: &Size) -> Option<Input> {
        let input = size.input.clone()?;
        Some(match &self.cell {
            Some(Cell { parameter, at, .. }) if parameter == LENGTH => input.with_length(*at),
            _ => input,
        })
    }

    /// The command as shown in reports, with `INPUT` and `OUTPUT` in place of their paths.
    pub fn shown(&self, size: &Size) -> Vec<String> {
        let [input, output] = ["INPUT", "OUTPUT"].map(|word| Some(Path::new(word)));
        self.argv(size, input, output).expect("a definition names only values it has")
    }

    /// Returns the command with every `{NAME}` replaced.
    ///
    /// # Errors
    /// Fails if a name is not defined by the size.
    pub fn argv(&self, size: &Size, input: Option<&Path>, output: Option<&Path>) -> Result<Vec<String>> {
        let fill = |text: &String| fill(text, size, input, output);
        match &self.command {
            Command::Argv(argv) => argv.iter().map(fill).collect(),
            Command::Shell(line) => {
                Ok(vec!["bash".to_owned(), "-o".to_owned(), "pipefail".to_owned(), "-c".to_owned(), fill(line)?])
            }
        }
    }
}

/// Replaces each runner whose command names the parameter with one runner per value.
fn expand(runners: Vec<Runner>, sweep: &Sweep) -> Vec<Runner> {
    runners.into_iter().flat_map(|runner| expand_one(runner, sweep)).collect()
}

fn expand_one(runner: Runner, Sweep { parameter: name, values }: &Sweep) -> Vec<Runner> {
    let words = match &runner.command {
        Command::Argv(argv) => argv.as_slice(),
        Command::Shell(line) => std::slice::from_ref(line),
    };
    let place = format!("{{{name}}}");
    // A runner that reads other lines is a different runner, even if its command is the same.
    if name != LENGTH && !words.iter().any(|word| word.contains(&place)) {
        return vec![runner];
    }
    let mode = runner.mode.clone().unwrap_or(parameter::SYNC.to_owned());
    let most = runner.most_stages.unwrap_or(u64::MAX);
    let one = |&at: &u64| {
        let fill = |word: &String| word.replace(&place, &at.to_string()).replace("{mode}", &mode);
        let command = match &runner.command {
            Command::Argv(argv) => Command::Argv(argv.iter().map(fill).collect()),
            Command::Shell(line) => Command::Shell(fill(line)),
        };
        let cell = Cell { base: runner.name.clone(), mode: mode.clone(), parameter: name.clone(), at };
        let answer = fill(&runner.answer);
        Runner { name: parameter::name(&runner.name, name, at), command, answer, cell: Some(cell), ..runner.clone() }
    };
    values.iter().filter(|&&at| at <= most).map(one).collect()
}

/// Returns a text with every `{NAME}` replaced.
///
/// # Errors
/// Fails if a name is not defined by the size.
pub(crate) fn fill(text: &String, size: &Size, input: Option<&Path>, output: Option<&Path>) -> Result<String> {
    let mut filled = text.clone();
    for (name, path) in [("{input}", input), ("{output}", output)] {
        if let Some(path) = path {
            filled = filled.replace(name, &path.display().to_string());
        }
    }
    for (name, value) in &size.values {
        filled = filled.replace(&format!("{{{name}}}"), &value.to_string());
    }
    ensure!(!filled.contains(['{', '}']), "{text:?} uses a value that this size does not define");
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "small"
        question = "Is it?"
        full = { input.lines = { bytes = 9, mean = 4, seed = 1 }, values = { bytes = 7 }, answers.all = { count = 1 } }
        quick = { input.lines = { bytes = 9, mean = 4, seed = 1 }, values = { bytes = 3 }, answers.all = { count = 1 } }
        [[runner]]
        name = "a"
        command = ["echo", "{bytes}"]
        [[runner]]
        name = "b"
        command = "cat {input} | wc -l"
        output = "count"
        [[target]]
        work = "nothing"
        millstream = "a"
        competitors = ["b"]
        goal = { times_faster = 2.0 }
    "#;

    #[test]
    fn commands_are_filled_from_the_size() {
        let definition = Definition::parse(SMALL).unwrap();
        let size = definition.size(Scale::Full);
        let argv = |i: usize| definition.runners[i].argv(size, Some(Path::new("/x")), None).unwrap();
        assert_eq!(argv(0), ["echo", "7"]);
        assert_eq!(argv(1), ["bash", "-o", "pipefail", "-c", "cat /x | wc -l"]);
    }

    #[test]
    fn names_that_lead_nowhere_are_refused() {
        for (from, to) in [
            ("{bytes}", "{byte}"),
            (r#"millstream = "a""#, r#"millstream = "c""#),
            (r#"competitors = ["b"]"#, ""),
            ("times_faster = 2.0", "under_ms = 2.0"),
            ("competitors = [\"b\"]\n        goal = { times_faster = 2.0 }", "goal = { under_mib = 2.0 }"),
            (r#"output = "count""#, r#"answer = "some""#),
            ("answers.all = { count = 1 }", "answers.all = {}"),
            (r#"name = "small""#, "name = \"small\"\ndestination = \"pipe\""),
            (r#"name = "small""#, "name = \"small\"\nper = \"records\""),
            ("cat {input}", "cat {output}"),
            (r#"work = "nothing""#, "work = \"nothing\"\nfaster = 3"),
        ] {
            assert!(SMALL.contains(from));
            assert!(Definition::parse(&SMALL.replace(from, to)).is_err(), "{from} -> {to}");
        }
    }
}
