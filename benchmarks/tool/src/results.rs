//! Measurements as plain data: the file `results.json` of a record, from which all reports are generated.
//!
//! Times are in seconds, sizes in bytes. A program that reads the file needs neither the definitions nor this machine.
//! New fields may be added, and a reader ignores fields that it does not know; any other change gets a new [`SCHEMA`].

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use millstream_runners::times::PipeTimes;
use serde::{Deserialize, Serialize};

use crate::goal::{Clock, Goal, Measure};
use crate::parameter::Sweep;

/// The version of the format that this module describes.
pub const SCHEMA: u32 = 2;

/// Everything that one call of the tool measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The machine and the time.
    pub machine: Machine,
    /// The number of counted rounds, unless a definition sets it or time ran out.
    pub rounds: usize,
    /// Whether inputs were small. Starting a process then takes a large part of the time, and no target is evaluated.
    #[serde(default)]
    pub quick: bool,
    /// Each question with its answers, in the order of the definitions.
    pub definitions: Vec<Question>,
}

/// The machine, the compiler and the programs. Values that could not be determined are `unknown`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The UTC date and time of the start, such as `2026-11-22-1400`.
    pub time: String,
    /// The model of the processor.
    pub processor: String,
    /// The number of its cores that the tool may use.
    pub cores: usize,
    /// The name and release of the kernel.
    pub kernel: String,
    /// The output of `rustc --version`.
    pub compiler: String,
    /// The commit of this repository, and whether the measured code had changed since.
    pub commit: String,
    /// The average number of other processes that were running or waiting for a core before the start.
    pub others: f64,
    /// The versions of the competitors that are programs.
    pub competitors: Vec<String>,
    /// Reasons to doubt the whole measurement, one sentence each.
    pub warnings: Vec<String>,
}

/// One definition and its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The definition's name.
    pub name: String,
    /// The question that the numbers answer.
    pub question: String,
    /// A paragraph that explains the results.
    pub explanation: Option<String>,
    /// The part of the run that the wall times cover.
    pub clock: Clock,
    /// The name of the records (such as `lines`), if they are counted.
    pub per: Option<String>,
    /// The number of records in each run.
    pub count: Option<u64>,
    /// The number of bytes in each run, if it is known.
    pub bytes: Option<u64>,
    /// The parameter that was varied.
    pub sweep: Option<Sweep>,
    /// The [`base`](Runner::base) of the runner that is the physical limit, such as a drain or a plain loop.
    pub floor: Option<String>,
    /// The command that repeats this measurement.
    pub repeat: String,
    /// The runners, in the order of their turns.
    pub runners: Vec<Runner>,
    /// The targets, and whether they were reached.
    pub targets: Vec<Target>,
}

/// A runner that answered a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Runner {
    /// Its name. In a sweep, it includes the value, such as `fused n=10`.
    pub name: String,
    /// The name without the value of a sweep.
    pub base: String,
    /// Whether it is Millstream rather than a competitor.
    pub millstream: bool,
    /// Whether the runner may be missing on a machine.
    #[serde(default)]
    pub optional: bool,
    /// What a stage does with each record before it passes it on.
    pub mode: Option<String>,
    /// The value of the swept parameter.
    pub at: Option<u64>,
    /// The program and its arguments, with `INPUT` and `OUTPUT` in place of paths.
    pub command: Vec<String>,
    /// The outcome.
    pub outcome: Outcome,
    /// The results of separate observed runs, if there were any.
    #[serde(default)]
    pub seen: Option<Seen>,
}

/// How a runner spent its time, from separate runs in which it was observed and whose times are not measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The system calls of the runner and its children, the most frequent first; none if they could not be counted.
    pub system_calls: Option<Vec<SystemCalls>>,
    /// How its pipe spent its time, if the runner is Millstream and reports it.
    pub pipe: Option<PipeTimes>,
}

/// One kind of system call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// The name of the system call.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
}

/// The outcome of a runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured, and its answers were correct.
    Measured {
        /// The counted runs: at least one.
        runs: Vec<Run>,
        /// Reasons to doubt the runs, one sentence each.
        warnings: Vec<String>,
    },
    /// It gave a wrong answer or none; the reason.
    Wrong(String),
    /// The machine lacks this program.
    Skipped(String),
    /// One run took more than this many seconds and was killed.
    Over(f64),
}

/// The cost of one run of one runner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The wall time in seconds, of the part that the question's clock covers.
    pub wall: f64,
    /// The user time in seconds of the process and of all children that it waited for.
    pub user: f64,
    /// The system time in seconds of the same processes.
    pub system: f64,
    /// The largest resident set of any of these processes, in bytes.
    pub peak: u64,
    /// The number of allocations in a pass over the input, if the runner counts them.
    pub allocations: Option<u64>,
    /// The number of system calls of the process and its children, if they were counted.
    pub system_calls: Option<u64>,
}

/// A goal, and what was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    /// A short description of the work.
    pub work: String,
    /// The Millstream runner. If added stages are measured, this and the names of the competitors do not contain the
    /// number of stages.
    pub millstream: String,
    /// The competitors; the fastest one counts.
    pub competitors: Vec<String>,
    /// What is compared.
    pub measure: Measure,
    /// The goal.
    pub goal: Goal,
    /// The result.
    pub row: Row,
    /// The known limit, if the target was missed.
    #[serde(default)]
    pub if_missed: Option<String>,
}

/// The line of a target in the table: the first four fields are text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The fastest competitor and its median time.
    pub competitor: String,
    /// The median time of Millstream.
    pub millstream: String,
    /// Millstream compared with the competitor as the goal requires, with the interval in brackets.
    pub ratio: String,
    /// The goal.
    pub target: String,
    /// The ratio of the medians, or their difference for a goal in milliseconds; none for a limit.
    pub value: Option<f64>,
    /// The lower end of its 95 % bootstrap interval, if there are enough runs for one.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
    /// Whether the target was reached.
    pub met: Met,
}

/// Whether a target was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Met {
    /// The target was reached.
    Yes,
    /// The target was missed.
    No,
    /// Millstream or a competitor gave a wrong answer.
    Wrong,
    /// A program is missing on this machine, or the time limit was too short.
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

    /// Each runner whose answer was correct, with its runs and the reasons to doubt them.
    pub fn measured(&self) -> impl Iterator<Item = (&Runner, &[Run], &[String])> {
        self.runners.iter().filter_map(|runner| match &runner.outcome {
            Outcome::Measured { runs, warnings } => Some((runner, runs.as_slice(), warnings.as_slice())),
            _ => None,
        })
    }
}

impl Target {
    /// The known limit in one line, if the target was missed and the limit is known.
    pub fn obstacle(&self) -> Option<String> {
        let reason = self.if_missed.as_ref().filter(|_| self.row.met == Met::No)?;
        Some(reason.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Run {
    /// The quantity as a number, in seconds or bytes. The cost of an added stage needs two runs; for it, this is the
    /// wall time of one.
    pub fn get(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Wall | Measure::AddedStage(_) => self.wall,
            Measure::Cpu => self.user + self.system,
            Measure::Peak => self.peak as f64,
        }
    }
}

impl Machine {
    /// Whether other processes were running. Runners then had to wait for a core, and ratios are unreliable.
    pub fn is_busy(&self) -> bool {
        self.others > 0.5
    }
}

impl Results {
    /// Reads `results.json`.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not have the right format.
    pub fn load(path: &Path) -> Result<Results> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let results: Results = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let (found, path) = (results.schema, path.display());
        ensure!(found == SCHEMA, "{path}: the format has version {found}, expected {SCHEMA}: measure again");
        Ok(results)
    }
}
