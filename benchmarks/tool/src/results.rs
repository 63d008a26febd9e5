//! What was measured, as plain data: the file `results.json` of a record, from which every report is made.
//!
//! Times are in seconds, sizes in bytes. Who reads the file needs neither the definitions nor this machine. Fields are only
//! added, and a reader ignores those that it does not know; anything else is another [`SCHEMA`].

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use millstream_runners::times::PipeTimes;
use serde::{Deserialize, Serialize};

use crate::goal::{Clock, Goal, Measure};
use crate::parameter::Sweep;

/// The number of the form that this module describes.
pub const SCHEMA: u32 = 1;

/// Everything that one call of the tool measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Where and when.
    pub machine: Machine,
    /// The number of counted rounds, unless a definition sets it or time ran out.
    pub rounds: usize,
    /// Whether inputs were small: then starting a process is much of its time, and no target is judged.
    #[serde(default)]
    pub quick: bool,
    /// Each question with its answers, in the order of the definitions.
    pub definitions: Vec<Question>,
}

/// The machine, the compiler and the programs. What could not be found out is `unknown`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// UTC date and time of day of the start, as `2026-11-22-1400`.
    pub time: String,
    /// Its model.
    pub processor: String,
    /// How many of its cores the tool may use.
    pub cores: usize,
    /// Name and release.
    pub kernel: String,
    /// The output of `rustc --version`.
    pub compiler: String,
    /// Of this repository, and whether what is measured had changed since.
    pub commit: String,
    /// How many others were running or waited for a core before the start, on average.
    pub others: f64,
    /// The versions of the rivals that are programs.
    pub rivals: Vec<String>,
    /// Why to doubt everything that was measured, one sentence each.
    pub warnings: Vec<String>,
}

/// One definition, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The definition's name.
    pub name: String,
    /// What the numbers answer.
    pub question: String,
    /// What they teach: a paragraph.
    pub lesson: Option<String>,
    /// What the wall times cover.
    pub clock: Clock,
    /// What the records are called, if they were counted.
    pub per: Option<String>,
    /// How many records each run took.
    pub count: Option<u64>,
    /// How many bytes each run took, if that is known.
    pub bytes: Option<u64>,
    /// What was varied.
    pub sweep: Option<Sweep>,
    /// The [`base`](Runner::base) of the runner that is the physical limit, as a drain or a plain loop.
    pub floor: Option<String>,
    /// The command that measures this again.
    pub repeat: String,
    /// In the order of their turns.
    pub runners: Vec<Runner>,
    /// What we wanted to reach, and whether we did.
    pub targets: Vec<Target>,
}

/// Who answered a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Runner {
    /// Its name; of a swept one with the value, as `fused n=10`.
    pub name: String,
    /// The name without the value.
    pub base: String,
    /// Whether it is Millstream; else a rival.
    pub ours: bool,
    /// Whether a machine may well lack it.
    #[serde(default)]
    pub optional: bool,
    /// What a stage does with each record before it hands it on.
    pub mode: Option<String>,
    /// The value of the swept parameter.
    pub at: Option<u64>,
    /// Program and arguments; `INPUT` and `OUTPUT` stand for paths.
    pub command: Vec<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// What was seen of it in runs of their own, if anybody looked.
    #[serde(default)]
    pub seen: Option<Seen>,
}

/// Where the time of a runner goes: from runs in which it was watched, whose times are no measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// How often it and its children called the system, the most frequent call first; none if they could not be counted.
    pub system_calls: Option<Vec<SystemCalls>>,
    /// How its pipe spent its time, if the runner is millstream and reports it.
    pub pipe: Option<PipeTimes>,
}

/// One kind of system call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// Its name.
    pub name: String,
    /// How many there were.
    pub calls: u64,
}

/// What became of a runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its answers were right.
    Measured {
        /// The counted runs: at least one.
        runs: Vec<Run>,
        /// Why to doubt them, one sentence each.
        warnings: Vec<String>,
    },
    /// It gave a wrong answer or none; the reason.
    Wrong(String),
    /// The machine lacks this program.
    Skipped(String),
    /// It took more than these seconds for one run, and was not waited for.
    Over(f64),
}

/// What one run of one runner took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Seconds of what the question's clock covers.
    pub wall: f64,
    /// Seconds in user mode of the process and of all children it waited for.
    pub user: f64,
    /// Seconds in the system of the same.
    pub system: f64,
    /// The largest resident set of any of them, in bytes.
    pub peak: u64,
    /// The number of allocations in a pass over the input, if the runner counts them.
    pub allocations: Option<u64>,
    /// How often the process and its children called the system, if that was counted.
    pub system_calls: Option<u64>,
}

/// What we want to reach, and how far we are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    /// The work, in a few words.
    pub work: String,
    /// The runner that is ours. Where added stages are measured, this and the rivals are bases.
    pub ours: String,
    /// Whom it is compared with; the best of them counts.
    pub rivals: Vec<String>,
    /// What is compared.
    pub measure: Measure,
    /// What we want to reach.
    pub goal: Goal,
    /// What we have reached.
    pub row: Row,
    /// The known limit, if the target was missed.
    #[serde(default)]
    pub if_missed: Option<String>,
}

/// The line of the table for a target: the first four as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The rival that was best, and its median.
    pub rival: String,
    /// Our median.
    pub ours: String,
    /// Ours against the rival in the terms of the goal, with the interval in brackets.
    pub ratio: String,
    /// What we want to reach.
    pub target: String,
    /// The ratio of the medians, or for a goal in milliseconds their difference; none for a limit.
    pub value: Option<f64>,
    /// The lower end of its 95 % bootstrap interval, if there are runs enough for one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Whether we did.
    pub met: Met,
}

/// Whether a target was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Met {
    /// It was.
    Yes,
    /// It was not.
    No,
    /// Ours or a rival gave a wrong answer.
    Wrong,
    /// The machine lacks something, or the time limit was too short.
    Skipped,
}

impl Question {
    /// Each runner that gave a wrong answer, with the reason.
    pub fn wrong(&self) -> impl Iterator<Item = (&Runner, &str)> {
        self.runners.iter().filter_map(|runner| match &runner.outcome {
            Outcome::Wrong(reason) => Some((runner, reason.as_str())),
            _ => None,
        })
    }

    /// Each runner that could not run, with the program that the machine lacks.
    pub fn skipped(&self) -> impl Iterator<Item = (&Runner, &str)> {
        self.runners.iter().filter_map(|runner| match &runner.outcome {
            Outcome::Skipped(program) => Some((runner, program.as_str())),
            _ => None,
        })
    }

    /// Each runner that exceeded its time limit, with the limit in seconds.
    pub fn over(&self) -> impl Iterator<Item = (&Runner, f64)> {
        self.runners.iter().filter_map(|runner| match runner.outcome {
            Outcome::Over(seconds) => Some((runner, seconds)),
            _ => None,
        })
    }

    /// Each runner that was right, with its runs and why to doubt them.
    pub fn measured(&self) -> impl Iterator<Item = (&Runner, &[Run], &[String])> {
        self.runners.iter().filter_map(|runner| match &runner.outcome {
            Outcome::Measured { runs, warnings } => Some((runner, runs.as_slice(), warnings.as_slice())),
            _ => None,
        })
    }
}

impl Target {
    /// The known limit, if the target was missed and the limit is known; in one line.
    pub fn obstacle(&self) -> Option<String> {
        let reason = self.if_missed.as_ref().filter(|_| self.row.met == Met::No)?;
        Some(reason.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Run {
    /// The quantity as a number: seconds or bytes. An added stage is seen in two runs only, of which this is the time.
    pub fn get(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Wall | Measure::AddedStage(_) => self.wall,
            Measure::Cpu => self.user + self.system,
            Measure::Peak => self.peak as f64,
        }
    }
}

impl Machine {
    /// Whether others were at work here: then runners waited for a core, and ratios mean little.
    pub fn is_busy(&self) -> bool {
        self.others > 0.5
    }
}

impl Results {
    /// Reads `results.json`, or says what is wrong with it.
    ///
    /// # Errors
    /// The file cannot be read, or is of another form.
    pub fn load(path: &Path) -> Result<Results> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let results: Results = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let (found, path) = (results.schema, path.display());
        ensure!(found == SCHEMA, "{path}: the form is number {found}, this tool knows {SCHEMA}: measure again");
        Ok(results)
    }
}
