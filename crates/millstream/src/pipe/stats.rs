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
    /// The time inside the stage.
    pub time: Duration,
}
