//! What a pipe has done, and where its time went.

use std::time::Duration;

use crate::error::CommandEnd;

/// What a pipe has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Records that were read.
    pub records: u64,
    /// Items that came out behind the last stage.
    pub items: u64,
    /// Records that a stage failed at and that were passed over, as [`OnError`](super::OnError) allows.
    pub failed: u64,
    /// Whether a stage such as `take` ended it before its sources did.
    pub ended_early: bool,
    /// How the sources' commands ended.
    pub commands: Vec<CommandEnd>,
}

/// Where the time of a pipe went. Made by [`Pipe::stats`](super::Pipe::stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The stages, from the source on. Those that are fused are measured as one, under the name of the next
    /// [`cut`](super::Pipe::cut).
    pub stages: Vec<StageStats>,
    /// For how long the pipe waited for its sources.
    pub source_waited: Duration,
    /// For how long it ran, waiting included.
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
    /// The size of these items in bytes; 0 for values, whose size nobody knows.
    pub bytes: u64,
    /// The time inside the stage; where it runs on several threads, of all of them.
    pub time: Duration,
    /// For how long the pipe stood still for it: for stages on other threads, and asynchronous ones.
    pub waited: Duration,
    /// How much of `time` was on other threads.
    pub(super) elsewhere: Duration,
}

impl StageStats {
    /// How much time of the pipe's own thread it took.
    pub(super) fn on_this_thread(&self) -> Duration {
        self.time.saturating_sub(self.elsewhere) + self.waited
    }
}
