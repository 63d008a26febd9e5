//! The results of a pipe, and how its time was spent.

use std::time::Duration;

use crate::error::CommandEnd;

/// The results of a pipe so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Records that were read.
    pub records: u64,
    /// Items that the last stage produced.
    pub items: u64,
    /// Records at which a stage failed and that were skipped, as [`OnError`](super::OnError) allows.
    pub failed: u64,
    /// Whether a stage such as `take` ended the pipe before its sources ended.
    pub ended_early: bool,
    /// The exit states of the sources' commands.
    pub commands: Vec<CommandEnd>,
}

/// How a pipe's time was spent. It is created by [`Pipe::stats`](super::Pipe::stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The stages, in the order in which items pass them. Fused stages are measured as one, under the name of the next
    /// [`cut`](super::Pipe::cut).
    pub stages: Vec<StageStats>,
    /// The time that the pipe waited for its sources.
    pub source_waited: Duration,
    /// The running time, including the time spent waiting.
    pub elapsed: Duration,
}

/// The measurements of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageStats {
    /// The name of the stage.
    pub name: String,
    /// The number of items that the stage produced.
    pub items: u64,
    /// The size of these items in bytes; 0 for values, whose size is unknown.
    pub bytes: u64,
    /// The time inside the stage; if it runs on several threads, the sum over all of them.
    pub time: Duration,
    /// The time that the pipe waited for the stage, if it runs on other threads or is asynchronous.
    pub waited: Duration,
    /// The part of `time` that was spent on other threads.
    pub(super) elsewhere: Duration,
}

impl StageStats {
    /// Returns the time on the pipe's own thread.
    pub(super) fn on_this_thread(&self) -> Duration {
        self.time.saturating_sub(self.elsewhere) + self.waited
    }
}
