//! `--stats`: the report of a run, as JSON for programs.

use std::time::Duration;

use millstream::pipe::StageStats;
use millstream::{CancelToken, CommandEnd, CommandStatus, Encode, Error, Result, Writer};
use serde::Serialize;

use crate::message;
use crate::signals::Signals;

use super::checksum::Checksum;
use super::each;
use super::members::Member;
use super::network::Network;
use super::sink::Sink;

/// The complete report. Sizes are in bytes, times in seconds.
#[derive(Serialize)]
pub(super) struct Stats {
    /// Whether every source succeeded and every output is complete.
    pub(super) complete: bool,
    /// The reason, if the run failed.
    pub(super) error: Option<Failure>,
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// The number of bad records, which are not in `records`.
    pub(super) rejected: u64,
    pub(super) seconds: f64,
    pub(super) records_per_second: f64,
    pub(super) bytes_per_second: f64,
    /// The length of the longest record, including its delimiter.
    pub(super) longest_record: usize,
    pub(super) waited_on_source_seconds: f64,
    pub(super) waited_on_sink_seconds: f64,
    /// The checksum of the output, if the output is complete.
    pub(super) hash: Option<Checksum>,
    /// The stages, in their order.
    pub(super) stages: Vec<StageReport>,
    /// The statistics of the copies of a command.
    pub(super) each: Option<each::Report>,
    pub(super) sources: Vec<SourceStats>,
}

/// One stage.
#[derive(Serialize)]
pub(super) struct StageReport {
    /// The stage as requested.
    pub(super) stage: String,
    /// The number of records that passed.
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// The time spent in the stage.
    pub(super) seconds: f64,
}

impl From<StageStats> for StageReport {
    fn from(stats: StageStats) -> StageReport {
        let StageStats { name: stage, items: records, bytes, time, .. } = stats;
        StageReport { stage, records, bytes, seconds: time.as_secs_f64() }
    }
}

/// An error for programs: the meaning of a kind never changes.
#[derive(Serialize)]
pub(crate) struct Failure {
    pub(super) kind: &'static str,
    pub(super) code: u32,
    pub(super) message: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        Failure { kind: error.kind().name(), code: error.code(), message: message::describe(error) }
    }
}

/// One source.
#[derive(Serialize)]
pub(super) struct SourceStats {
    pub(super) name: String,
    pub(super) status: SourceStatus,
    /// For a command or a shell line: its exit status, unless it was killed by a signal.
    pub(super) exit_status: Option<i32>,
    /// For a command or a shell line: the signal that killed it.
    pub(super) signal: Option<i32>,
    /// The commands of a pipeline or of a shell line, or the only command.
    pub(super) members: Vec<Member>,
    pub(super) records: u64,
    /// The number of bytes that the source delivered, after decoding.
    pub(super) bytes: u64,
    /// The number of bytes read from the source, before decoding.
    pub(super) source_bytes: u64,
    /// The compression format.
    pub(super) decoded: Option<String>,
}

impl SourceStats {
    /// Adds how a command ended, unless there are several.
    pub(super) fn ended(&mut self, ends: &[CommandEnd]) {
        match ends {
            [CommandEnd { status: CommandStatus::Exited(status), .. }] => self.exit_status = Some(*status),
            [CommandEnd { status: CommandStatus::Signaled(signal), .. }] => self.signal = Some(*signal),
            _ => {}
        }
    }
}

/// The status of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SourceStatus {
    /// All of the source was read, and the source succeeded.
    Succeeded,
    /// The other side closed the source; it is unknown whether the data was complete.
    Closed,
    /// The source failed, and so did the run.
    Failed,
    /// The run ended for another reason before the source did.
    Stopped,
}

/// Returns a count per second.
pub(super) fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

/// The time that an interrupted run waits for the reader of its report.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The destination of the report.
pub(crate) struct Report {
    writer: Writer,
    /// Interrupts the wait for the reader of the destination. A signal triggers it, but not permanently, because an
    /// interrupted run also has a report.
    token: CancelToken,
}

impl Report {
    /// Opens the destination before the run, so that an invalid name fails early.
    pub(crate) fn open(sink: &Sink, network: &Network, signals: &Signals) -> Result<Report> {
        let token = CancelToken::new()?;
        let cancelled = token.clone();
        signals.on_arrival(move || cancelled.cancel())?;
        let writer = sink.open(Writer::builder().encode(Encode::Off).cancel(&token), network)?;
        Ok(Report { writer, token })
    }

    /// Writes the complete report.
    pub(crate) fn write(self, stats: &impl Serialize) -> Result<()> {
        let Report { mut writer, token } = self;
        let mut json = serde_json::to_vec_pretty(stats).map_err(|error| Error::from_io(error.into()))?;
        json.push(b'\n');
        if token.is_cancelled() {
            let late = token.clone();
            let wait = move || {
                std::thread::sleep(LAST_WAIT);
                late.cancel();
            };
            // Without a thread the report is omitted, because the wait could last indefinitely.
            if std::thread::Builder::new().name("stats".into()).spawn(wait).is_ok() {
                token.reset();
            }
        }
        writer.write(&json)?;
        writer.close().map(drop)
    }
}
