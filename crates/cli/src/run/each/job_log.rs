//! `--job-log`: a line about each copy, in the format of GNU parallel's `--joblog`.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use millstream::{CommandStatus, Encode, FlushPolicy, Partial, Result, Writer};

use super::block::Block;

const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// The file to which all threads write.
pub(super) struct JobLog(Mutex<Writer>);

/// A copy that has ended.
pub(super) struct Job<'a> {
    pub(super) block: &'a Block,
    pub(super) line: &'a OsStr,
    pub(super) started: SystemTime,
    /// The number of bytes that it wrote.
    pub(super) received: u64,
    /// How it ended, if it was started.
    pub(super) status: Option<CommandStatus>,
}

impl JobLog {
    /// # Errors
    /// Returns the errors of creating a file.
    pub(super) fn create(path: &Path) -> Result<JobLog> {
        let builder = Writer::builder().encode(Encode::Off).partial(Partial::Keep).flush_policy(FlushPolicy::Line);
        let mut writer = builder.path(path)?;
        writer.write(HEADER.as_bytes())?;
        Ok(JobLog(Mutex::new(writer)))
    }

    /// # Errors
    /// Returns the errors of writing.
    pub(super) fn write(&self, job: &Job<'_>) -> Result<()> {
        let started = job.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let time = job.started.elapsed().unwrap_or_default().as_secs_f64();
        let (exit, signal) = match job.status {
            Some(CommandStatus::Exited(status)) => (status, 0),
            Some(CommandStatus::Signaled(signal)) => (0, signal),
            _ => (-1, 0),
        };
        let (number, sent, received) = (job.block.index + 1, job.block.size(), job.received);
        let command = job.line.to_string_lossy().replace(['\t', '\n', '\r'], " ");
        let line = format!("{number}\t:\t{started:.3}\t{time:.3}\t{sent}\t{received}\t{exit}\t{signal}\t{command}\n");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(line.as_bytes())
    }
}
