//! Sources that consist of several commands: a pipeline without a shell, whose members are started here, and a shell
//! line, whose members bash starts. Reports how each member ended.

use millstream::{CommandEnd, CommandStatus, Error, Stopwatch, show_argv};
use serde::Serialize;

use super::shell::Line;

/// What reports how the members of a source ended.
pub(super) enum Members {
    /// The source is not a command.
    None,
    /// The stopwatches of the commands, in their order. There are none if no times are needed.
    Commands(Vec<Stopwatch>),
    Line(Line),
}

/// One command of a source, for the statistics.
#[derive(Serialize)]
pub(super) struct Member {
    /// The command line, if it is known. That of a member of a shell line is known if the line is only a pipeline.
    command: Option<String>,
    /// Its exit status, unless it was killed by a signal. For a member of a shell line, bash reports 128 plus the
    /// number of the signal.
    exit_status: Option<i32>,
    signal: Option<i32>,
    /// How long it ran, unless it is a member of a shell line.
    seconds: Option<f64>,
    /// The processor time of the command and of the processes that it waited for.
    user_seconds: Option<f64>,
    system_seconds: Option<f64>,
}

impl Members {
    /// Returns the members in their order. The commands have ended like this.
    pub(super) fn report(&self, ends: &[CommandEnd]) -> Vec<Member> {
        match self {
            Members::None => Vec::new(),
            Members::Commands(stopwatches) => {
                ends.iter().zip(stopwatches).map(|(end, stopwatch)| Member::of_command(end, stopwatch)).collect()
            }
            Members::Line(line) => {
                let statuses = line.statuses();
                let commands = line.commands(statuses.len()).unwrap_or_default();
                let member = |(at, status): (usize, &i32)| Member::of_line(commands.get(at).copied(), *status);
                statuses.iter().enumerate().map(member).collect()
            }
        }
    }

    /// Adds to the error of a shell line which of its members failed.
    pub(super) fn explain(&self, error: Error) -> Error {
        let Members::Line(line) = self else { return error };
        let failed = match error.command().map(|end| end.status) {
            Some(CommandStatus::Exited(status)) => line.blame(status),
            _ => None,
        };
        match failed {
            Some(failed) => error.with_found(failed),
            None => error,
        }
    }
}

impl Member {
    fn of_command(end: &CommandEnd, stopwatch: &Stopwatch) -> Member {
        let (exit_status, signal) = match end.status {
            CommandStatus::Exited(status) => (Some(status), None),
            CommandStatus::Signaled(signal) => (None, Some(signal)),
            _ => (None, None),
        };
        let processor = stopwatch.processor();
        Member {
            command: Some(show_argv(&end.argv)),
            exit_status,
            signal,
            seconds: stopwatch.elapsed().map(|time| time.as_secs_f64()),
            user_seconds: processor.map(|(user, _)| user.as_secs_f64()),
            system_seconds: processor.map(|(_, system)| system.as_secs_f64()),
        }
    }

    fn of_line(command: Option<&str>, status: i32) -> Member {
        let (command, exit_status) = (command.map(str::to_string), Some(status));
        Member { command, exit_status, signal: None, seconds: None, user_seconds: None, system_seconds: None }
    }
}
