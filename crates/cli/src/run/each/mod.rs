//! `--each`: pipes each block of records through a copy of a command; the output of the copies is the output of the
//! run.
//!
//! The reading thread cuts blocks and passes them to threads that manage one copy each. Every copy must succeed. No
//! copy remains running, even after an error, and memory use is bounded: see [`control`].

mod block;
mod control;
mod copies;
mod job_log;
mod parts;
mod round_robin;

pub(super) use control::Report;
pub(super) use parts::Parts;

use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use millstream::frame::Framer;
use millstream::{CancelToken, Command, Error, ErrorKind, PinnedFile, Result};

use super::settings::Settings;
use crate::signals::Signals;

use super::count_text;
use super::each_options::EachOptions;
use super::outputs::Outputs;
use block::{Block, Cutter};
use control::{Control, Order, Policy};
use job_log::JobLog;
use round_robin::RoundRobin;

/// The minimum size of held outputs whose turn has not come.
const HOLD: usize = 16 << 20;

/// The running copies.
pub(super) struct Each {
    cutter: Cutter,
    control: Arc<Control>,
    copies: Copies,
    /// The file whose parts the copies read.
    file: Option<Arc<PinnedFile>>,
}

/// The threads that manage the copies.
enum Copies {
    /// Threads that start a new copy for each block.
    Fresh(Vec<JoinHandle<()>>),
    /// Copies that are kept alive.
    Kept(RoundRobin),
}

impl Copies {
    fn give(&mut self, block: Block, control: &Control) -> Result<()> {
        match self {
            Copies::Fresh(_) => control.give(block),
            Copies::Kept(robin) => robin.give(block, control),
        }
    }

    /// Waits until the last copy has ended. Returns an error if no copy remained to read a block.
    fn close(self, control: &Control) -> Result<()> {
        control.close();
        match self {
            Copies::Kept(robin) => robin.close(),
            Copies::Fresh(threads) => {
                for thread in threads {
                    if let Err(panic) = thread.join() {
                        std::panic::resume_unwind(panic);
                    }
                }
                Ok(())
            }
        }
    }
}

/// The end of a run.
pub(super) struct Ended {
    pub(super) outputs: Outputs,
    pub(super) report: Report,
    /// Why the outputs are incomplete.
    pub(super) result: Result<()>,
    /// Copies that failed while the others continued: the outputs lack the output of the failed copies.
    pub(super) skipped: Result<()>,
}

/// What each copy runs.
#[derive(Clone)]
pub(super) struct Copy {
    pub(super) line: OsString,
    pub(super) settings: Settings,
    /// Whether its environment has the numbers of the block's records.
    pub(super) is_numbered: bool,
}

impl Copy {
    /// Returns the command to start.
    fn command(&self) -> Result<Command> {
        Ok(self.settings.command(Command::shell(&self.line)?))
    }
}

impl Each {
    /// Starts managing copies of a command. `input` is cancelled when no more blocks are needed, and `framer` creates
    /// framers for the records.
    ///
    /// # Errors
    /// Returns the errors of starting threads, and an error if bash is not installed.
    pub(super) fn start(
        copy: Copy,
        options: &EachOptions,
        timeout: Option<Duration>,
        outputs: Outputs,
        input: &CancelToken,
        signals: &Signals,
        mut framer: impl FnMut() -> Result<Box<dyn Framer + Send>>,
    ) -> Result<Each> {
        let of_lines = framer()?.finds_lines();
        copy.command()?; // fails early if there is no bash
        let (jobs, block) = (options.jobs(), options.block());
        let policy = Policy {
            order: if options.unordered || options.round_robin { Order::Ends } else { Order::Blocks },
            on_error: options.on_error,
            hold: HOLD.max(jobs.saturating_mul(2).saturating_mul(block)),
        };
        let control = Arc::new(Control::new(policy, outputs, input.clone()));
        let cancelled = control.clone();
        signals.on_arrival(move || cancelled.cancel())?;
        let copies = match options.round_robin {
            true => RoundRobin::start(&copy, jobs, timeout, &control, framer).map(Copies::Kept),
            false => {
                let log = options.job_log.as_deref().map(JobLog::create).transpose()?.map(Arc::new);
                copies::start(&copy, jobs, options.retries, timeout, log.as_ref(), &control).map(Copies::Fresh)
            }
        };
        match copies {
            Ok(copies) => Ok(Each { cutter: Cutter::new(block, of_lines), control, copies, file: None }),
            Err(error) => {
                control.cancel();
                control.ended().outputs.abandon();
                Err(error)
            }
        }
    }

    /// Makes every block begin with `header`, which is not a record. No records have been added yet.
    pub(super) fn begin_blocks_with(&mut self, header: Vec<u8>) {
        self.cutter.begin_with(header);
    }

    /// Adds n records: n + 1 `offsets` into `bytes`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Cancelled`] when no more records are needed; [`finish`](Each::finish) returns the reason.
    pub(super) fn add(&mut self, bytes: &[u8], offsets: &[u32]) -> Result<()> {
        let Each { cutter, control, copies, .. } = self;
        cutter.add(bytes, offsets, |block| copies.give(block, control))
    }

    /// Adds the block of this part of a file, which is the only source.
    ///
    /// # Errors
    /// As for [`add`](Each::add).
    pub(super) fn add_part(&mut self, file: &Arc<PinnedFile>, range: Range<u64>) -> Result<()> {
        self.file.get_or_insert_with(|| file.clone());
        self.copies.give(self.cutter.part(file, range), &self.control)
    }

    /// Waits for the last copy. `read` is the result of reading.
    pub(super) fn finish(mut self, read: Result<()>) -> Ended {
        let is_cancelled = read.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled);
        let read = match self.cutter.rest() {
            Some(block) if !is_cancelled => read.and(self.copies.give(block, &self.control)),
            _ => read,
        };
        let is_cancelled = read.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled);
        let unread = self.copies.close(&self.control);
        // The copies have read the file, which must not have changed before that.
        let read = read.and_then(|()| self.file.map_or(Ok(()), |file| file.check()));
        let ended = self.control.ended();
        let (outputs, report) = (ended.outputs, ended.report);
        let (result, skipped) = match (read, ended.fatal, ended.failure, self.control.goes_on()) {
            (Err(error), ..) if !is_cancelled => (Err(error), Ok(())),
            (_, Some(error), ..) | (_, None, Some(error), false) => (Err(error), Ok(())),
            // Copies that were cancelled have recorded no error, and the queue is empty, as after the last block.
            (..) if ended.is_cancelled => (Err(Error::new(ErrorKind::Cancelled)), Ok(())),
            (..) if unread.is_err() => (unread, Ok(())),
            (read, None, None, _) => (read, Ok(())),
            (read, None, Some(_), true) => (read, Err(some_failed(report))),
        };
        Ended { outputs, report, result, skipped }
    }
}

/// Returns the error of a run whose copies were allowed to fail; each failure has been reported already.
fn some_failed(report: Report) -> Error {
    Error::new(ErrorKind::CommandFailed)
        .with_found(format!("{} of the command", count_text(report.failed, "failure")))
        .with_expected("none; the output lacks what the failed copies would have written")
}
