//! The record that the documentation quotes: `benchmarks/record.json`.
//!
//! It contains the newest measurement of each question: medians, their 95 % intervals, the rows of the targets, and the
//! circumstances of the measurement. It does not contain single runs; they are in `benchmarks/runs/`, which is not part
//! of the repository.
//!
//! A missed target has a caption (`if_missed`) that explains it. A caption belongs to one measurement: a new
//! measurement of the question starts without captions, which are written by hand.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::results::{Machine, Outcome, Question, Results, Run, Target};
use crate::statistics::{interval, median};

/// The version of the format that this module describes.
pub const SCHEMA: u32 = 3;

/// The newest measurement of each question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The machines and circumstances, by the time at which the measurement started.
    pub machines: BTreeMap<String, Machine>,
    /// The questions, in the order of the definitions.
    pub questions: Vec<Entry>,
}

/// A question and its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The definition's name.
    pub name: String,
    /// The question that the numbers answer.
    pub question: String,
    /// The key in the record's `machines` of the machine that measured it.
    pub machine: String,
    /// The number of records in each run.
    pub count: Option<u64>,
    /// The runners, in the order of their turns.
    pub runners: Vec<Summary>,
    /// The rows of the tables.
    pub targets: Vec<Target>,
}

/// The results of a runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// Whether it is Millstream.
    pub millstream: bool,
    /// The outcome.
    #[serde(flatten)]
    pub reached: Reached,
}

/// The outcome of a runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// It was measured, and its answers were correct.
    Measured {
        /// The number of counted runs.
        runs: usize,
        /// The median of the wall times, in seconds.
        seconds: f64,
        /// The 95 % interval of that median, if there are enough runs for one.
        interval: Option<(f64, f64)>,
        /// The median of the processor time including all children, in seconds.
        cpu: f64,
        /// The largest resident set of any run, in bytes.
        peak: u64,
    },
    /// It gave a wrong answer or none; the reason.
    Wrong(String),
    /// The machine lacked this program.
    Skipped(String),
    /// One run took more than this number of seconds.
    Over(f64),
}

impl Record {
    /// Reads the file; returns an empty record if there is none.
    ///
    /// # Errors
    /// Fails on I/O errors and if the file does not have the right format.
    pub fn load(path: &Path) -> Result<Record> {
        if !path.exists() {
            return Ok(Record { schema: SCHEMA, ..Record::default() });
        }
        let context = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(context)?;
        let record: Record = serde_json::from_str(&text).with_context(context)?;
        ensure!(record.schema == SCHEMA, "{}: the format has version {}, expected {SCHEMA}", context(), record.schema);
        Ok(record)
    }

    /// Writes the file with one line for each runner and target, so that diffs are readable.
    ///
    /// # Errors
    /// Returns I/O errors.
    pub fn store(&self, path: &Path) -> Result<()> {
        let lines = |values: Vec<String>| values.join(",\n    ");
        let json = |value: &dyn Fn() -> serde_json::Result<String>| value().expect("plain data can be written as JSON");
        let entry = |entry: &Entry| {
            let runners = entry.runners.iter().map(|one| json(&|| serde_json::to_string(one))).collect();
            let targets = entry.targets.iter().map(|one| json(&|| serde_json::to_string(one))).collect();
            let head = Entry { runners: vec![], targets: vec![], ..entry.clone() };
            let head = json(&|| serde_json::to_string(&head));
            let head = head.strip_suffix("\"runners\":[],\"targets\":[]}").expect("the lists come last").to_owned();
            format!("{head}\"runners\":[\n    {}],\"targets\":[\n    {}]}}", lines(runners), lines(targets))
        };
        let machine = |(time, one): (&String, &Machine)| format!("{time:?}:{}", json(&|| serde_json::to_string(one)));
        let machines: Vec<_> = self.machines.iter().map(machine).collect();
        let questions: Vec<_> = self.questions.iter().map(entry).collect();
        let text = format!(
            "{{\"schema\":{},\"machines\":{{\n  {}}},\"questions\":[\n  {}]}}\n",
            self.schema,
            machines.join(",\n  "),
            questions.join(",\n  ")
        );
        fs::write(path, text).with_context(|| path.display().to_string())
    }

    /// Adds measurements, which replace older measurements of the same questions. Questions that are no longer defined are removed.
    pub fn take(&mut self, results: &Results, definitions: &[Definition]) {
        let time = &results.machine.time;
        self.machines.insert(time.clone(), results.machine.clone());
        for question in &results.definitions {
            self.questions.retain(|known| known.name != question.name);
            self.questions.push(Entry::new(question, time));
        }
        let topic = |entry: &Entry| definitions.iter().position(|one| one.name == entry.name);
        self.questions.retain(|entry| topic(entry).is_some());
        self.questions.sort_by_key(topic);
        let questions = &self.questions;
        self.machines.retain(|time, _| questions.iter().any(|entry| entry.machine == *time));
    }

    /// The measurement of a question, if there is one.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.questions.iter().find(|entry| entry.name == name)
    }
}

impl Entry {
    fn new(question: &Question, machine: &str) -> Entry {
        Entry {
            name: question.name.clone(),
            question: question.question.clone(),
            machine: machine.to_owned(),
            count: question.count,
            runners: question
                .runners
                .iter()
                .map(|one| Summary {
                    name: one.name.clone(),
                    millstream: one.millstream,
                    reached: Reached::new(&one.outcome),
                })
                .collect(),
            targets: question.targets.clone(),
        }
    }

    /// The outcome of the runner with this name.
    pub fn get(&self, runner: &str) -> Option<&Reached> {
        self.runners.iter().find(|one| one.name == runner).map(|one| &one.reached)
    }
}

impl Reached {
    fn new(outcome: &Outcome) -> Reached {
        match outcome {
            Outcome::Measured { runs, .. } => {
                let all = |get: fn(&Run) -> f64| runs.iter().map(get).collect::<Vec<_>>();
                let walls = all(|run| run.wall);
                Reached::Measured {
                    runs: runs.len(),
                    seconds: rounded(median(&walls)),
                    interval: interval(&walls, &walls, |wall, _| wall).map(|(low, high)| (rounded(low), rounded(high))),
                    cpu: rounded(median(&all(|run| run.user + run.system))),
                    peak: runs.iter().map(|run| run.peak).max().unwrap_or(0),
                }
            }
            Outcome::Wrong(reason) => Reached::Wrong(reason.clone()),
            Outcome::Skipped(program) => Reached::Skipped(program.clone()),
            Outcome::Over(seconds) => Reached::Over(*seconds),
        }
    }

    /// The median of the wall times in seconds, if there is one.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Reached::Measured { seconds, .. } => Some(*seconds),
            _ => None,
        }
    }
}

/// Rounds to five digits, which is more than the precision of any time.
fn rounded(seconds: f64) -> f64 {
    format!("{seconds:.4e}").parse().expect("a number that was printed is one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Scale;
    use crate::evaluate::question;

    fn definition(name: &str) -> Definition {
        let text = r#"
            question = "Which?"
            full = { answers.all = { count = 1 } }
            quick = { answers.all = { count = 1 } }
            runner = [{ name = "one", command = ["a"] }, { name = "two", command = ["b"] }]
            target = [{ work = "w", millstream = "one", competitors = ["two"], goal = { at_most = 1.0 } }]
        "#;
        Definition::parse(&format!("name = \"{name}\"\n{text}")).unwrap()
    }

    fn results(time: &str, names: &[&str], walls: [f64; 2]) -> Results {
        let runs = |wall: f64| Outcome::Measured {
            runs: (0..7).map(|at| Run { wall: wall + f64::from(at), ..Run::default() }).collect(),
            warnings: vec![],
        };
        let asked = |name: &&str| question(&definition(name), Scale::Full, walls.map(runs).into());
        let machine = Machine { time: time.to_owned(), ..Machine::default() };
        let definitions = names.iter().map(asked).collect();
        Results { schema: crate::results::SCHEMA, machine, rounds: 7, quick: false, definitions }
    }

    #[test]
    fn the_newest_counts_and_what_is_written_is_read_again() {
        let definitions = ["a", "b", "c"].map(definition);
        let mut record = Record { schema: SCHEMA, ..Record::default() };
        record.take(&results("1", &["c", "b", "gone"], [1.0, 2.0]), &definitions);
        record.questions[0].targets[0].if_missed = Some("because".to_owned());
        record.take(&results("2", &["a", "b"], [3.0, 2.0]), &definitions);
        let known: Vec<_> = record.questions.iter().map(|entry| (&entry.name[..], &entry.machine[..])).collect();
        assert_eq!(known, [("a", "2"), ("b", "2"), ("c", "1")]);
        let entry = record.get("b").unwrap();
        assert_eq!(entry.get("one").unwrap().seconds(), Some(6.0));
        assert_eq!(entry.targets[0].if_missed, None, "a caption is of one measurement");

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        record.store(&path).unwrap();
        let again = Record::load(&path).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&record).unwrap());
        record.take(&results("3", &["a", "b", "c"], [1.0, 2.0]), &definitions);
        assert_eq!(record.machines.keys().collect::<Vec<_>>(), ["3"]);
    }
}
