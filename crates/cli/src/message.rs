//! What the user is told: one line, without anything that could play tricks on a terminal.

use std::io::Write;

use millstream::{CommandEnd, Error, ErrorKind, Writer};

use crate::Ending;
use crate::escape::is_trick;

/// The text without control characters, and without the marks that reverse or hide text: a file name must not
/// move the cursor or look like another one.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|&c| !is_trick(c)).collect()
}

/// Says one line on standard error. If that is closed or full, nobody is there to be told.
pub(crate) fn say(text: &str) {
    let line = format!("millstream: {}\n", printable(text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Notes one line of a result on standard error, where the records do not go.
pub(crate) fn note(text: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", printable(text)).as_bytes());
}

/// Says what went wrong, and how the command ends because of it.
pub(crate) fn fail(error: &Error) -> Ending {
    fail_with_advice(error, advice(error))
}

/// The same, with advice from one who knows more about the cause.
pub(crate) fn fail_with_advice(error: &Error, advice: Option<&str>) -> Ending {
    let shown = without_last_words(error);
    say(&join(shown.as_ref().unwrap_or(error), advice));
    match error.kind() {
        ErrorKind::InvalidOption => Ending::USAGE,
        _ => Ending::FAILED,
    }
}

/// The whole error in one line, for a report that is read where standard error is not seen.
pub(crate) fn describe(error: &Error) -> String {
    join(error, advice(error))
}

/// What can be done about it: in options, where the library speaks of its calls.
fn advice(error: &Error) -> Option<&'static str> {
    let is_address = |name: &str| name.starts_with("tcp:") || name.starts_with("unix:");
    match error.kind() {
        // Without the system's error it is our own, and says what is expected.
        ErrorKind::OpenFailed if error.io().is_none() => None,
        ErrorKind::OpenFailed if error.name().is_some_and(is_address) => {
            Some("check the address, and that somebody listens there")
        }
        // Many fail without a word.
        ErrorKind::CommandFailed if error.command().is_some_and(|end| end.stderr_tail.is_empty()) => None,
        ErrorKind::CommandFailed => Some("see its standard error"),
        ErrorKind::RecordTooLong => Some("raise --record-limit"),
        ErrorKind::Stalled => Some("raise --timeout, or find out what the other side waits for"),
        ErrorKind::DecodeLimit | ErrorKind::Unsupported => Some("--decode off copies bytes as they are"),
        ErrorKind::BrokenPipe => Some("the consumer has gone"),
        // The system's message says it, or the user did it.
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

/// The same error of a command, without the last it said on standard error: that has been passed on, and read.
fn without_last_words(error: &Error) -> Option<Error> {
    let end = CommandEnd { stderr_tail: Vec::new(), ..error.command()?.clone() };
    let mut silent = Error::new(error.kind()).with_command(end);
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
    let printed = Writer::stdout().and_then(|mut out| {
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
            assert!(!text.contains("allow_failure") && !text.contains("documentation of the call"), "{text}");
        }
    }

    #[test]
    fn advice_fits_the_cause() {
        let missing = |name: &str| Error::new(ErrorKind::OpenFailed).with_name(name).with_io(NotFound.into());
        assert!(describe(&missing("a")).ends_with("; check the name and the permissions"));
        assert!(describe(&missing("unix:a")).ends_with("; check the address, and that somebody listens there"));
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
        assert_eq!(describe(&error), format!("{seen}; it said last: out of luck; see its standard error"));
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
