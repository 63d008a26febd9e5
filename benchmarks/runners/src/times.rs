//! How a pipe spent its time, as a runner reports it to the tool.

use millstream::pipe::{StageStats, Stats};
use serde::{Deserialize, Serialize};

/// How a pipe spent its time, in seconds: a part of the output of `millstream run --stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PipeTimes {
    /// The total time, including waiting.
    pub seconds: f64,
    /// The time for which it waited for its source.
    pub waited_on_source_seconds: f64,
    /// The time for which it waited for its sink.
    #[serde(default)]
    pub waited_on_sink_seconds: f64,
    /// Its stages, in order, except those that the compiler has fused into one loop with the sink.
    #[serde(default)]
    pub stages: Vec<StageTimes>,
}

/// One stage of a pipe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// Its name.
    pub stage: String,
    /// The number of records that the stage produced.
    pub records: u64,
    /// The seconds spent inside it. If it runs on several threads, this is the sum over all of them.
    pub seconds: f64,
    /// The seconds for which the pipe waited for it, if the stage runs on other threads.
    #[serde(default)]
    pub waited_seconds: f64,
}

impl From<Stats> for PipeTimes {
    fn from(stats: Stats) -> PipeTimes {
        let stage = |stage: StageStats| StageTimes {
            stage: stage.name,
            records: stage.items,
            seconds: stage.time.as_secs_f64(),
            waited_seconds: stage.waited.as_secs_f64(),
        };
        PipeTimes {
            seconds: stats.elapsed.as_secs_f64(),
            waited_on_source_seconds: stats.source_waited.as_secs_f64(),
            // The items are passed to a function, so the pipe does not wait for a sink.
            waited_on_sink_seconds: 0.0,
            stages: stats.stages.into_iter().map(stage).collect(),
        }
    }
}
