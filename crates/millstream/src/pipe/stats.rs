//! What a pipe has done, and how its time was spent.

use std::time::Duration;

use crate::error::CommandEnd;

/// What a pipe has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Records that were read.
    pub records: u64,
    /// Items that the last stage produced.
    pub items: u64,
    /// Records that a stage failed at and that were skipped, as [`OnError`](super::OnError) allows.
    pub failed: u64,
    /// Whether a stage such as `take` ended it before its sources did.
    pub ended_early: bool,
    /// How the sources' commands ended.
    pub commands: Vec<CommandEnd>,
}

/// How the time of a pipe was spent. Made by [`Pipe::stats`](super::Pipe::stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The stages, from the source on. Fused stages are measured as one, under the name of the next
    /// [`cut`](super::Pipe::cut).
    pub stages: Vec<StageStats>,
    /// How long the pipe waited for its sources.
    pub source_waited: Duration,
    /// How long it ran, including waits.
    pub elapsed: Duration,
}

/// What one stage has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageStats {
    /// Its name.
    pub name: String,
    /// Items that came out.
    pub items: u64,
    /// The size of these items in bytes; 0 for values, whose size is not known.
    pub bytes: u64,
    /// The time inside the stage; if it runs on several threads, the sum over all of them.
    pub time: Duration,
    /// How long the pipe waited for it: for stages on other threads, and asynchronous ones.
    pub waited: Duration,
    /// The part of `time` on other threads.
    pub(super) elsewhere: Duration,
}

impl StageStats {
    /// The time on the pipe's own thread.
    pub(super) fn on_this_thread(&self) -> Duration {
        self.time.saturating_sub(self.elsewhere) + self.waited
    }
}
