//! `millstream run`: moves records from sources to an output.
//!
//! All checks are done before any output is created: names, permissions, whether the command exists, and whether an
//! output is a source. Then the sources are read one after another. At the end, if all of them have succeeded, the
//! outputs are completed.
//!
//! The bytes pass through unchanged. Unless records are needed, they are not examined: whole windows of the reader are
//! passed to the writers. If records are needed, they are passed on in batches; this crate runs no code per record.

mod checksum;
mod cores;
mod csv;
mod each;
mod each_options;
mod framing;
mod given;
mod gzip_index;
mod halt;
mod header;
mod identity;
mod json;
mod members;
mod network;
mod options;
mod outputs;
mod overlap;
mod pace;
mod pattern;
mod progress;
mod rejects;
mod settings;
mod shell;
mod sink;
mod source;
mod stages;
mod stats;
mod transfer;
mod upcoming;

pub(crate) use csv::{CsvOptions, DialectOptions, Ragged};
pub(crate) use framing::Records;
pub(crate) use given::record_size;
pub(crate) use json::JsonOptions;
pub(crate) use network::{Network, SourceNetwork};
pub(crate) use options::{DEFAULT_RECORD_LIMIT, IN_SUMMARY, Options, Show};
pub(crate) use overlap::check_outputs;
pub(crate) use pattern::Patterns;
pub(crate) use progress::Progress;
pub(crate) use rejects::{MOST_RAW, Reject, RejectOptions, Rejects};
pub(crate) use settings::{Decoding, Reading, Settings};
pub(crate) use sink::Sink;
pub(crate) use source::Source;
#[cfg(feature = "parquet")]
pub(crate) use source::shown_url;
#[cfg(feature = "parquet")]
pub(crate) use stats::{Failure, Report};

use std::time::Duration;

use millstream::{CommandStatus, Error, ErrorKind};

use crate::signals::Signals;
use crate::standard::STANDARD_OUTPUT;
use crate::{Ending, forgotten, message};

/// The time after the death of a command in which a signal to this process may arrive. A Ctrl-C on a terminal is sent
/// to both, and the command's death is then not a failure.
const SAME_SIGNAL: Duration = Duration::from_millis(50);

/// Runs the requested transfer.
pub(crate) fn run(mut options: Box<Options>) -> Ending {
    if let Err(error) = options.expand() {
        return message::fail(&error);
    }
    let options = &*options;
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return message::fail(&error),
    };
    let ending = match transfer::run(options, &mut signals) {
        Ok(moved) => match (report(options, &moved), &moved.skipped) {
            (Ending::COMPLETE, Err(error)) => explain(error, options, &signals),
            (ending, _) => ending,
        },
        Err(error) => explain(&error, options, &signals),
    };
    signals.or(ending)
}

/// Prints the requested results.
fn report(options: &Options, moved: &transfer::Moved) -> Ending {
    if let Some(checksum) = &moved.checksum {
        let name = options.output.as_ref().unwrap_or(&Sink::Stdout).label();
        if let Err(error) = message::note(&checksum.line(&name)) {
            return message::fail(&error);
        }
    }
    // Statistics on standard output include the results, and must be the only output.
    match options.count && options.stats != Some(Sink::Stdout) {
        true => message::print(
            format!("{}, {}\n", count_text(moved.records, "record"), count_text(moved.bytes, "byte")).as_bytes(),
        ),
        false => Ending::COMPLETE,
    }
}

/// Formats a number and its noun.
pub(crate) fn count_text(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Reports why the run failed, unless the user or the reader of the output caused the failure.
fn explain(error: &Error, options: &Options, signals: &Signals) -> Ending {
    if ended_by_signal(error) {
        let _ = signals.pause(std::time::Instant::now() + SAME_SIGNAL);
    }
    if let Some(signal) = signals.caught() {
        return message::ended_by(signal);
    }
    if error.kind() != ErrorKind::BrokenPipe {
        if let Some(advice) = forgotten::advice_on_source(error, &options.source_files()) {
            return message::fail_with_advice(error, Some(&advice));
        }
        return message::fail(error);
    }
    // If the reader closed standard output, the reader knows the reason; the closing of any other output is reported.
    if error.name() != Some(STANDARD_OUTPUT) {
        message::fail(error);
    }
    Ending::BROKEN_PIPE
}

/// Returns whether a signal may have killed the command, either directly or as reported by a shell for one of its
/// commands.
fn ended_by_signal(error: &Error) -> bool {
    match error.command().map(|end| end.status) {
        Some(CommandStatus::Signaled(_)) => true,
        Some(CommandStatus::Exited(status)) => status > 128,
        _ => false,
    }
}
