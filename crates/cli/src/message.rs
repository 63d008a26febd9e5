//! Messages for the user: one line, without control characters.

use std::io::IsTerminal;

use millstream::{CommandEnd, Error, ErrorKind, Result};

use crate::escape::is_trick;
use crate::{Ending, standard};

/// The text without control characters, and without the marks that reverse or hide text: a file name must not
/// move the cursor or look like another one.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|&c| !is_trick(c)).collect()
}

/// Prints one line on standard error. If that is closed or full, the exit status still tells what happened.
pub(crate) fn say(text: &str) {
    let line = format!("millstream: {}\n", printable(text));
    let _ = standard::write_error(line.as_bytes());
}

/// Prints one line of a result on standard error, while the records are written elsewhere. For a terminal, control
/// characters are removed.
///
/// # Errors
/// Those of writing it: a requested result is output.
pub(crate) fn note(line: &[u8]) -> Result<()> {
    let mut line = match std::io::stderr().is_terminal() {
        true => printable(&String::from_utf8_lossy(line)).into_bytes(),
        false => line.to_vec(),
    };
    line.push(b'\n');
    standard::write_error(&line)
}

/// How the command ends because of this signal. The user knows about signals whose purpose is to end a command; others
/// are named.
pub(crate) fn ended_by(signal: i32) -> Ending {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    if ![SIGHUP, SIGINT, SIGTERM].contains(&signal) {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("unknown");
        say(&format!("ended by signal {signal} ({name})"));
    }
    Ending::Signaled(signal)
}

/// Reports what went wrong, and returns how the command ends because of it.
pub(crate) fn fail(error: &Error) -> Ending {
    fail_with_advice(error, advice(error))
}

/// The same, with advice from a caller that knows more about the cause.
pub(crate) fn fail_with_advice(error: &Error, advice: Option<&str>) -> Ending {
    let shown = without_last_words(error);
    say(&join(shown.as_ref().unwrap_or(error), advice));
    match error.kind() {
        ErrorKind::InvalidOption => Ending::USAGE,
        _ => Ending::FAILED,
    }
}

/// The whole error in one line, for a report that is read without standard error.
pub(crate) fn describe(error: &Error) -> String {
    join(error, advice(error))
}

/// What can be done about it: in terms of options, where the library names its calls.
fn advice(error: &Error) -> Option<&'static str> {
    let is_address = |name: &str| name.starts_with("tcp:") || name.starts_with("unix:");
    match error.kind() {
        // Without the system's error it is our own, and contains what is expected.
        ErrorKind::OpenFailed if error.io().is_none() => None,
        ErrorKind::OpenFailed if error.name().is_some_and(is_address) => {
            Some("check the address, and that a server is listening there")
        }
        // Many fail without output.
        ErrorKind::CommandFailed if error.command().is_some_and(|end| end.stderr_tail.is_empty()) => None,
        ErrorKind::CommandFailed => Some("see its standard error"),
        ErrorKind::RecordTooLong => Some("raise --record-limit"),
        ErrorKind::Stalled => Some("raise --stall-timeout, or find out what the other side is waiting for"),
        ErrorKind::DecodeLimit => Some("raise --decode-memory if the source is trusted"),
        ErrorKind::Unsupported => Some("--decode off or --encode off leaves the bytes as they are"),
        // There is no option for it.
        ErrorKind::MemoryLimit => None,
        ErrorKind::BrokenPipe => Some("the reader has closed it"),
        // The system's message is clear enough, or the user caused it.
        ErrorKind::Io | ErrorKind::Cancelled => None,
        kind => Some(kind.advice()),
    }
}

/// The error in the library's words, but with this advice.
fn join(error: &Error, advice: Option<&str>) -> String {
    match advice {
        Some(advice) => format!("{error:#}; {advice}"),
        None => format!("{error:#}"),
    }
}

/// The same error of a command, without its last line on standard error: that has already been shown.
fn without_last_words(error: &Error) -> Option<Error> {
    let end = CommandEnd { stderr_tail: Vec::new(), ..error.command()?.clone() };
    let mut silent = Error::new(error.kind()).with_command(end);
    if let Some(found) = error.found() {
        silent = silent.with_found(found);
    }
    if let Some(offset) = error.offset() {
        silent = silent.with_offset(offset);
    }
    if let Some(record) = error.record() {
        silent = silent.with_record(record);
    }
    if let Some(path) = error.path() {
        silent = silent.with_path(path);
    }
    Some(silent)
}

/// Prints the one result of a command on standard output.
pub(crate) fn print(text: &[u8]) -> Ending {
    let printed = standard::output_for_result().and_then(|mut out| {
        out.write(text)?;
        out.close()
    });
    match printed {
        Ok(_) => Ending::COMPLETE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ending::BROKEN_PIPE,
        Err(error) => fail(&error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind::NotFound;

    use millstream::CommandStatus;

    use super::*;

    #[test]
    fn advice_names_options() {
        let error = Error::new(ErrorKind::RecordTooLong).with_name("a").with_record(3);
        assert_eq!(describe(&error), "a: record too long, record 3 (the first is 0); raise --record-limit");
    }

    #[test]
    fn no_advice_speaks_of_the_library() {
        for &kind in ErrorKind::ALL {
            let text = describe(&Error::new(kind));
            assert!(!text.contains("allow_failure") && !text.contains("documentation of this call"), "{text}");
        }
    }

    #[test]
    fn advice_fits_the_cause() {
        let missing = |name: &str| Error::new(ErrorKind::OpenFailed).with_name(name).with_io(NotFound.into());
        assert!(describe(&missing("a")).ends_with("; check the name and the permissions"));
        assert!(describe(&missing("unix:a")).ends_with("; check the address, and that a server is listening there"));
        let twice = Error::new(ErrorKind::OpenFailed).with_name("a").with_expected("another file");
        assert_eq!(describe(&twice), "a: open failed: expected another file");
    }

    #[test]
    fn what_a_command_said_is_left_to_reports() {
        let end = CommandEnd {
            argv: vec!["false".into()],
            status: CommandStatus::Exited(1),
            stderr_tail: b"out of luck\n".to_vec(),
        };
        let error = Error::new(ErrorKind::CommandFailed).with_command(end).with_offset(4).with_record(1);
        let seen = "the command `false` exited with status 1, at byte 4, record 1 (the first is 0)";
        assert_eq!(
            describe(&error),
            format!("{seen}; last line of standard error: out of luck; see its standard error")
        );
        let silent = without_last_words(&error).unwrap();
        assert_eq!(join(&silent, None), seen);
    }

    #[test]
    fn escape_sequences_lose_their_teeth() {
        assert_eq!(printable("a\x1b[2Jb\r\nc\u{9b}d"), "a[2Jbcd");
        assert_eq!(printable("gpj.\u{202e}exe"), "gpj.exe");
        assert_eq!(printable("grüße 世界"), "grüße 世界");
    }
}
