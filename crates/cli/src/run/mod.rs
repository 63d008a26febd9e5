//! `millstream run`: moves records from sources to an output.
//!
//! Everything that can be found wrong is found before anything is created: names, permissions, whether the command
//! exists, whether an output is a source. Then the sources are read one after another, and at the end, when all of
//! them have succeeded, the outputs are completed.
//!
//! The bytes pass through unchanged and, where nobody asks for records, unlooked at: whole windows of the reader go
//! to the writers. Otherwise they go by batches of records; there is no work for a single record in this crate.

mod checksum;
mod each;
mod identity;
mod options;
mod outputs;
mod pace;
mod progress;
mod sink;
mod source;
mod stages;
mod stats;
mod transfer;

pub(crate) use options::{Decode, Options, Show};
pub(crate) use progress::Progress;
pub(crate) use sink::Sink;
pub(crate) use source::Source;

use std::time::Duration;

use millstream::{CommandStatus, Error, ErrorKind};

use crate::signals::Signals;
use crate::{Ending, forgotten, message};

/// How long after the death of a command we wait to hear whether we were asked to end, too: a Ctrl-C on a terminal
/// goes to both of us, and then its death is not a failure.
const SAME_SIGNAL: Duration = Duration::from_millis(50);

/// The library's name for it.
pub(crate) const STANDARD_OUTPUT: &str = "standard output";

/// Does what the options say.
pub(crate) fn run(options: &Options) -> Ending {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return message::fail(&error),
    };
    match transfer::run(options, &mut signals) {
        Ok(moved) => report(options, &moved),
        Err(error) => explain(&error, options, &signals),
    }
}

/// Prints the results that were asked for.
fn report(options: &Options, moved: &transfer::Moved) -> Ending {
    if let Some(checksum) = &moved.checksum {
        let name = options.output.as_ref().unwrap_or(&Sink::Stdout).label();
        message::note(&format!("{}  {name}", checksum.value));
    }
    // Statistics on standard output say that, too, and must be all there is.
    match options.count && options.stats != Some(Sink::Stdout) {
        true => message::print(
            format!("{}, {}\n", count_text(moved.records, "record"), count_text(moved.bytes, "byte")).as_bytes(),
        ),
        false => Ending::COMPLETE,
    }
}

/// A number and what is counted, in words.
pub(crate) fn count_text(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Says why the run failed, unless the user or the consumer ended it.
fn explain(error: &Error, options: &Options, signals: &Signals) -> Ending {
    if ended_by_signal(error) {
        let _ = signals.pause(std::time::Instant::now() + SAME_SIGNAL);
    }
    if let Some(signal) = signals.caught() {
        return Ending::Signaled(signal);
    }
    if error.kind() != ErrorKind::BrokenPipe {
        if let Some(advice) = forgotten::advice_on_source(error, &options.source_files()) {
            return message::fail_with_advice(error, Some(&advice));
        }
        return message::fail(error);
    }
    // Whoever closes our standard output knows about it; of any other consumer the user should hear.
    if error.name() != Some(STANDARD_OUTPUT) {
        message::fail(error);
    }
    Ending::BROKEN_PIPE
}

/// Whether a signal may have ended the command: itself, or what a shell says about a command of its own.
fn ended_by_signal(error: &Error) -> bool {
    match error.command().map(|end| end.status) {
        Some(CommandStatus::Signaled(_)) => true,
        Some(CommandStatus::Exited(status)) => status > 128,
        _ => false,
    }
}
