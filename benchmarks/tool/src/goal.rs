//! Comparisons and goals: terms that definitions and results share.

use serde::{Deserialize, Serialize};

use crate::parameter;

/// The part of a run that the wall time covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The whole process, from before its start until it has been reaped.
    #[default]
    Process,
    /// The time that the runner measured itself and printed as `ns=…`.
    Inside,
}

/// A quantity that is measured in each run. Smaller is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Wall time.
    #[default]
    Wall,
    /// User and system time of the process and all its children.
    Cpu,
    /// The largest resident set among the process and its children.
    Peak,
    /// The cost of one added stage per record: the wall time with the second number of stages minus the wall time with
    /// the first, divided by the number of added stages and by the number of records.
    AddedStage([u64; 2]),
}

/// A goal for Millstream against the competitor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// competitor ÷ millstream is at least this.
    TimesFaster(f64),
    /// millstream ÷ competitor is at most this.
    AtMost(f64),
    /// millstream ÷ competitor differs from 1 by at most this.
    Within(f64),
    /// millstream − competitor is at most this many milliseconds.
    MoreMs(f64),
    /// millstream uses less than this many MiB.
    UnderMib(f64),
    /// millstream takes less than this many milliseconds.
    UnderMs(f64),
    /// millstream takes less than this many nanoseconds for each record and added stage.
    UnderNs(f64),
}

impl Measure {
    /// Returns the runners that are measured for a name.
    pub fn runners(self, name: &str) -> Vec<String> {
        match self {
            Measure::AddedStage(numbers) => {
                numbers.map(|stages| parameter::name(name, parameter::STAGES, stages)).into()
            }
            _ => vec![name.to_owned()],
        }
    }
}

impl Goal {
    /// Whether the goal involves no competitor.
    pub fn is_alone(self) -> bool {
        matches!(self, Goal::UnderMib(_) | Goal::UnderMs(_) | Goal::UnderNs(_))
    }
}
