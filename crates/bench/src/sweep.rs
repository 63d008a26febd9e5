//! Sweeps over the number of stages: one runner for each number, and the table of the original benchmark.
//!
//! The table has a row for each number of stages: the time, bytes and records a second, and what one stage changed of
//! each since there was none. As in the original, a gain is positive, so an added stage's Δdt is a negative number.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::answer::Answer;
use crate::definition::{Command, Definition, Measure, Runner, Scale};
use crate::input::Input;
use crate::measure::Outcome;
use crate::report::Measured;
use crate::statistics::median;

/// The value of a size that says how many bytes the records have, without their line feeds as in the original.
pub const BYTES: &str = "bytes";

/// Where a runner stands in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The name of the runner in the definition.
    pub way: String,
    /// What a stage does with each record.
    pub mode: String,
    /// How many stages there are.
    pub stages: u64,
}

/// The name of a runner with so many stages.
pub fn name(way: &str, stages: u64) -> String {
    format!("{way} n={stages}")
}

/// One runner for each number of stages, in the place of a runner whose command names `{stages}`.
pub fn expand(runners: Vec<Runner>, numbers: &[u64]) -> Vec<Runner> {
    runners.into_iter().flat_map(|runner| expand_one(runner, numbers)).collect()
}

fn expand_one(runner: Runner, numbers: &[u64]) -> Vec<Runner> {
    let words = match &runner.command {
        Command::Argv(argv) => argv.as_slice(),
        Command::Shell(line) => std::slice::from_ref(line),
    };
    if !words.iter().any(|word| word.contains("{stages}")) {
        return vec![runner];
    }
    let mode = runner.mode.clone().unwrap_or("sync".to_owned());
    let most = runner.most_stages.unwrap_or(u64::MAX);
    let one = |&stages: &u64| {
        let fill = |word: &String| word.replace("{stages}", &stages.to_string()).replace("{mode}", &mode);
        let command = match &runner.command {
            Command::Argv(argv) => Command::Argv(argv.iter().map(fill).collect()),
            Command::Shell(line) => Command::Shell(fill(line)),
        };
        let cell = Cell { way: runner.name.clone(), mode: mode.clone(), stages };
        Runner { name: name(&runner.name, stages), command, cell: Some(cell), ..runner.clone() }
    };
    numbers.iter().filter(|&&stages| stages <= most).map(one).collect()
}

/// A definition with the fewest and the most stages of each way only: enough to check answers, for less starting of
/// processes. It has no targets, which may be about others.
pub fn ends(mut definition: Definition) -> Definition {
    let cells: Vec<Cell> = definition.runners.iter().filter_map(|runner| runner.cell.clone()).collect();
    let is_end = |one: &Cell| {
        let numbers = || cells.iter().filter(|cell| cell.way == one.way).map(|cell| cell.stages);
        [numbers().min(), numbers().max()].contains(&Some(one.stages))
    };
    definition.runners.retain(|runner| runner.cell.as_ref().is_none_or(is_end));
    definition.targets.clear();
    definition
}

/// Whether a definition has a sweep.
pub fn is_in(definition: &Definition) -> bool {
    definition.runners.iter().any(|runner| runner.cell.is_some())
}

/// Puts a text of the user's in the place of what definitions read at full size, and what is right for it.
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub fn take_text(definitions: &mut [Definition], path: &Path) -> Result<()> {
    let path = path.canonicalize().with_context(|| path.display().to_string())?;
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let answer = Answer::of_text(&text);
    let lines = || text.split_terminator('\n');
    for Definition { full, per, .. } in definitions {
        full.input = Some(Input::File(path.clone()));
        full.values.insert(BYTES.to_owned(), lines().map(|line| line.len() as u64).sum());
        full.values.extend(per.iter().map(|per| (per.clone(), lines().count() as u64)));
        full.answers.values_mut().for_each(|right| *right = answer.clone());
    }
    Ok(())
}

/// The table of one definition; nothing if it has no sweep. Runners without a right answer are left out.
///
/// ```
/// use std::time::Duration;
/// use millstream_bench::definition::Definition;
/// use millstream_bench::measure::{Outcome, Run};
/// use millstream_bench::report::Measured;
/// use millstream_bench::sweep;
///
/// let definition = Definition::parse(r#"
///     name = "pipeline"
///     question = "What does a stage cost?"
///     per = "lines"
///     stages = [0, 10]
///     full = { values = { lines = 1_000, bytes = 20_000 }, answers.all = { count = 1_000 } }
///     quick = { values = { lines = 1_000, bytes = 20_000 }, answers.all = { count = 1_000 } }
///     runner = [{ name = "through2", command = ["stages", "{stages}", "{mode}"], mode = "async" }]
/// "#)?;
/// let run = |ms| Run {
///     wall: Duration::from_millis(ms), user: Duration::ZERO, system: Duration::ZERO, peak: 0, allocations: None,
/// };
/// let outcomes = [100, 600].map(|ms| Outcome::Measured(vec![run(ms)])).into();
/// let table = sweep::table(&Measured { definition, outcomes }).expect("it has a sweep");
/// assert!(table.ends_with("\
/// | through2 | n=0,size=long,mode=async | 0 | async | 0.100000 | 200,000 | 10,000 | | | |
/// | through2 | n=10,size=long,mode=async | 10 | async | 0.600000 | 33,333 | 1,667 | -0.050000 | -16,667 | -833 |
/// "));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn table(measured: &Measured) -> Option<String> {
    let Measured { definition, outcomes } = measured;
    if !is_in(definition) {
        return None;
    }
    let cells: Vec<_> = definition
        .runners
        .iter()
        .zip(outcomes)
        .filter_map(|(runner, outcome)| Some((runner.cell.as_ref()?, Speed::of(definition, outcome)?)))
        .collect();

    let mut text = format!(
        "\n| `{}` | job | n | mode | dt | bps | ips | Δdt | Δbps | Δips |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        definition.name
    );
    for (cell, speed) in &cells {
        let Cell { way, mode, stages } = cell;
        let Speed { seconds, bytes, records } = speed;
        let without = cells.iter().find(|(other, _)| other.way == *way && other.stages == 0);
        let changes = match without {
            Some((_, zero)) if *stages > 0 => {
                let each = |difference: f64| difference / *stages as f64;
                let time = each(zero.seconds - seconds);
                format!("{time:.6} | {} | {}", grouped(each(bytes - zero.bytes)), grouped(each(records - zero.records)))
            }
            _ => "| |".to_owned(),
        };
        writeln!(
            text,
            "| {way} | n={stages},size=long,mode={mode} | {stages} | {mode} | {seconds:.6} | {} | {} | {changes} |",
            grouped(*bytes),
            grouped(*records),
        )
        .expect("writing to a string cannot fail");
    }
    Some(text)
}

/// The time of the whole, and bytes and records in each second of it.
struct Speed {
    seconds: f64,
    bytes: f64,
    records: f64,
}

impl Speed {
    fn of(definition: &Definition, outcome: &Outcome) -> Option<Speed> {
        let Outcome::Measured(runs) = outcome else { return None };
        let walls: Vec<f64> = runs.iter().map(|run| run.get(Measure::Wall)).collect();
        let seconds = median(&walls);
        let values = &definition.size(Scale::Full).values;
        let per_second = |name: &str| values[name] as f64 / seconds;
        Some(Speed { seconds, bytes: per_second(BYTES), records: per_second(definition.per.as_ref()?) })
    }
}

/// A rounded number with a comma between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let sign = if number < 0.0 && digits != "0" { "-" } else { "" };
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("digits are ASCII")).collect();
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_stands_for_one_with_each_number() {
        let definition = Definition::parse(
            r#"
            name = "pipeline"
            question = "What does a stage cost?"
            per = "lines"
            stages = [0, 10, 300]
            full = { values = { lines = 1, bytes = 1 }, answers.all = { count = 1 } }
            quick = { values = { lines = 1, bytes = 1 }, answers.all = { count = 1 } }
            runner = [
                { name = "plain", command = ["wc"] },
                { name = "slow", command = "stages {stages} {mode}", most_stages = 10, mode = "tick" },
                { name = "fast", command = "stages {stages}" },
            ]
            "#,
        )
        .unwrap();
        let names = |definition: &Definition| definition.runners.iter().map(|runner| runner.name.clone()).collect();
        let all: Vec<String> = names(&definition);
        assert_eq!(all, ["plain", "slow n=0", "slow n=10", "fast n=0", "fast n=10", "fast n=300"]);
        let ends: Vec<String> = names(&ends(definition.clone()));
        assert_eq!(ends, ["plain", "slow n=0", "slow n=10", "fast n=0", "fast n=300"]);
        let last = &definition.runners[2];
        assert_eq!(last.cell, Some(Cell { way: "slow".into(), mode: "tick".into(), stages: 10 }));
        let argv = last.argv(definition.size(Scale::Full), None, None).unwrap();
        assert_eq!(argv.last().unwrap(), "stages 10 tick");
    }

    #[test]
    fn thousands_have_commas() {
        let numbers = [0.0, -0.4, 999.0, 1_000.0, -203_471.2, 1_462_254.0].map(grouped);
        assert_eq!(numbers, ["0", "0", "999", "1,000", "-203,471", "1,462,254"]);
    }
}
