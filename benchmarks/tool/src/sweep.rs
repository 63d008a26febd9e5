//! Operations on sweeps over the values of a parameter: reducing them to their ends, replacing the input with the
//! user's text and, for stages, the table of the original benchmark.
//!
//! The table by stages has a row for each number of stages: the time, bytes and records per second, and how much one
//! added stage changed each of them compared with no stages. As in the original, a positive number is a gain, so Δdt of
//! an added stage is negative.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use millstream_runners::input::Input;

use crate::answer::Answer;
use crate::definition::Definition;
use crate::parameter::{BYTES, Cell, STAGES, SYNC};
use crate::results::{Outcome, Question};
use crate::statistics::median;

/// Returns the definition with only the smallest and the largest value for each runner, which suffices to check answers
/// and starts fewer processes. Targets are removed, because they can refer to other values.
pub fn ends(mut definition: Definition) -> Definition {
    let cells: Vec<Cell> = definition.runners.iter().filter_map(|runner| runner.cell.clone()).collect();
    let is_end = |one: &Cell| {
        let values = || cells.iter().filter(|cell| cell.base == one.base).map(|cell| cell.at);
        [values().min(), values().max()].contains(&Some(one.at))
    };
    // Runners that only a target declared as Millstream must keep that property.
    let millstream: Vec<bool> = definition.runners.iter().map(|runner| definition.is_millstream(runner)).collect();
    definition.runners.iter_mut().zip(millstream).for_each(|(runner, millstream)| runner.millstream = millstream);
    definition.runners.retain(|runner| runner.cell.as_ref().is_none_or(is_end));
    definition.targets.clear();
    definition
}

/// Replaces the inputs that the definitions read at full size with the user's text, and the expected answers with the
/// answers for that text.
///
/// # Errors
/// Fails if the file cannot be read or is not UTF-8.
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

/// Returns the table by stages; nothing if there is no sweep over stages. Runners without a correct answer are left out.
///
/// ```
/// use millstream_bench::definition::{Definition, Scale};
/// use millstream_bench::evaluate::question;
/// use millstream_bench::results::{Outcome, Run};
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
/// let run = |wall| Run { wall, user: 0.0, system: 0.0, peak: 0, allocations: None, system_calls: None };
/// let outcomes = [0.1, 0.6].map(|wall| Outcome::Measured { runs: vec![run(wall)], warnings: vec![] });
/// let table = sweep::table(&question(&definition, Scale::Full, outcomes.into())).expect("stages are varied");
/// assert!(table.ends_with("\
/// | through2 | n=0,size=long,mode=async | 0 | async | 0.100000 | 200,000 | 10,000 | | | |
/// | through2 | n=10,size=long,mode=async | 10 | async | 0.600000 | 33,333 | 1,667 | -0.050000 | -16,667 | -833 |
/// "));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn table(question: &Question) -> Option<String> {
    if question.sweep.as_ref()?.parameter != STAGES {
        return None;
    }
    let cells: Vec<_> = question
        .runners
        .iter()
        .filter_map(|runner| Some((runner, runner.at?, Speed::of(question, &runner.outcome)?)))
        .collect();

    let mut text = format!(
        "\n| `{}` | job | n | mode | dt | bps | ips | Δdt | Δbps | Δips |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        question.name
    );
    for (runner, stages, speed) in &cells {
        let (base, mode) = (&runner.base, runner.mode.as_deref().unwrap_or(SYNC));
        let Speed { seconds, bytes, records } = speed;
        let without = cells.iter().find(|(other, at, _)| other.base == *base && *at == 0);
        let changes = match without {
            Some((_, _, zero)) if *stages > 0 => {
                let each = |difference: f64| difference / *stages as f64;
                let time = each(zero.seconds - seconds);
                format!("{time:.6} | {} | {}", grouped(each(bytes - zero.bytes)), grouped(each(records - zero.records)))
            }
            _ => "| |".to_owned(),
        };
        writeln!(
            text,
            "| {base} | n={stages},size=long,mode={mode} | {stages} | {mode} | {seconds:.6} | {} | {} | {changes} |",
            grouped(*bytes),
            grouped(*records),
        )
        .expect("writing to a string cannot fail");
    }
    Some(text)
}

/// The time of the whole run, and the bytes and records per second.
struct Speed {
    seconds: f64,
    bytes: f64,
    records: f64,
}

impl Speed {
    fn of(question: &Question, outcome: &Outcome) -> Option<Speed> {
        let Outcome::Measured { runs, .. } = outcome else { return None };
        let walls: Vec<f64> = runs.iter().map(|run| run.wall).collect();
        let seconds = median(&walls);
        let per_second = |count: u64| count as f64 / seconds;
        Some(Speed { seconds, bytes: per_second(question.bytes?), records: per_second(question.count?) })
    }
}

/// Formats a rounded number with commas between thousands.
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
    use crate::definition::Scale;

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
        let cell = Cell { base: "slow".into(), mode: "tick".into(), parameter: "stages".into(), at: 10 };
        assert_eq!(last.cell, Some(cell));
        let argv = last.argv(definition.size(Scale::Full), None, None).unwrap();
        assert_eq!(argv.last().unwrap(), "stages 10 tick");
    }

    #[test]
    fn any_parameter_can_be_varied() {
        let parse = |sweep: &str, command: &str, answer: &str| {
            Definition::parse(&format!(
                r#"
                name = "size"
                question = "What does a size cost?"
                sweep = {{ {sweep} }}
                full = {{ input.lines = {{ bytes = 90, mean = 4, seed = 1 }}, answers = {{ all = {{ count = 1 }}, 16 = {{ count = 2 }} }} }}
                quick = {{ input.lines = {{ bytes = 9, mean = 4, seed = 1 }}, answers = {{ all = {{ count = 1 }}, 16 = {{ count = 2 }} }} }}
                runner = [{{ name = "a", command = [{command}], answer = "{answer}" }}]
                "#
            ))
        };
        let swept = parse(r#"parameter = "buffer", values = [1, 2]"#, r#""cat", "{buffer}""#, "all").unwrap();
        let full = swept.size(Scale::Full);
        let names: Vec<&str> = swept.runners.iter().map(|runner| runner.name.as_str()).collect();
        assert_eq!(names, ["a buffer=1", "a buffer=2"]);
        assert_eq!(swept.runners[1].argv(full, None, None).unwrap(), ["cat", "2"]);
        assert!(!swept.is_by_stages());

        let long = parse(r#"parameter = "length", values = [16]"#, r#""cat", "{input}""#, "{length}").unwrap();
        let runner = &long.runners[0];
        assert_eq!((runner.name.as_str(), runner.answer.as_str()), ("a length=16", "16"));
        assert_eq!(runner.input(long.size(Scale::Full)).unwrap().to_string(), "lines-90-16-1.txt");
        assert!(parse(r#"parameter = "length", values = [17]"#, r#""cat""#, "{length}").is_err());
    }

    #[test]
    fn thousands_have_commas() {
        let numbers = [0.0, -0.4, 999.0, 1_000.0, -203_471.2, 1_462_254.0].map(grouped);
        assert_eq!(numbers, ["0", "0", "999", "1,000", "-203,471", "1,462,254"]);
    }
}
