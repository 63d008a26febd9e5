//! Messages for the user: one line with what is wrong, and often one with what to do, without control characters.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use millstream::{CommandEnd, CommandStatus, Error, ErrorKind, Result, is_trick};

use crate::{Ending, standard};

/// Returns whether the subcommand that runs has an option with this name, such as `record-limit`.
type HasOption = fn(&str) -> bool;

/// Returns the advice to read the help of the subcommand that runs.
type SeeHelp = fn() -> Option<String>;

static HAS_OPTION: OnceLock<HasOption> = OnceLock::new();
static SEE_HELP: OnceLock<SeeHelp> = OnceLock::new();

/// Sets how advice finds out which options and which help there are. Until then advice names none.
pub(crate) fn advise_with(has_option: HasOption, see_help: SeeHelp) {
    HAS_OPTION.get_or_init(|| has_option);
    SEE_HELP.get_or_init(|| see_help);
}

/// Returns the text without control characters, and without characters that reverse or hide text: a file name must not
/// move the cursor or look like a different one.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|&c| !is_trick(c)).collect()
}

/// Prints one line on standard error. If standard error is closed or full, the exit status still shows the result.
pub(crate) fn say(text: &str) {
    complain(text, None);
}

/// Prints a line on standard error with what is wrong, and a line with what to do, in one write.
pub(crate) fn complain(text: &str, hint: Option<&str>) {
    let mut lines = format!("millstream: {}\n", printable(text));
    if let Some(hint) = hint {
        lines.push_str(&format!("hint: {}\n", printable(hint)));
    }
    let _ = standard::write_error(lines.as_bytes());
}

/// Prints one line of a result on standard error, while the records are written elsewhere. For a terminal, control
/// characters are removed.
///
/// # Errors
/// Returns the errors of writing, because a requested result is part of the output.
pub(crate) fn note(line: &[u8]) -> Result<()> {
    let mut line = match std::io::stderr().is_terminal() {
        true => printable(&String::from_utf8_lossy(line)).into_bytes(),
        false => line.to_vec(),
    };
    line.push(b'\n');
    standard::write_error(&line)
}

/// Returns the ending caused by this signal. Signals that users send to end a command are not reported; for others a
/// message names the signal.
pub(crate) fn ended_by(signal: i32) -> Ending {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    if ![SIGHUP, SIGINT, SIGTERM].contains(&signal) {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("unknown");
        say(&format!("ended by signal {signal} ({name})"));
    }
    Ending::Signaled(signal)
}

/// Reports an error, and returns the ending that it causes.
pub(crate) fn fail(error: &Error) -> Ending {
    fail_with_advice(error, advice(error).as_deref())
}

/// Reports an error with advice from a caller that knows more about its cause.
pub(crate) fn fail_with_advice(error: &Error, advice: Option<&str>) -> Ending {
    let shown = without_last_words(error);
    complain(&with_options(&format!("{:#}", shown.as_ref().unwrap_or(error).without_advice())), advice);
    match error.kind() {
        ErrorKind::InvalidOption => Ending::USAGE,
        ErrorKind::OutcomeUnknown => Ending::UNKNOWN,
        _ => Ending::FAILED,
    }
}

/// Replaces the library's names of options, in backticks, with those of the subcommand that runs.
fn with_options(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(i, part)| {
        let option = part.replace('_', "-");
        match i % 2 == 1 && HAS_OPTION.get().is_some_and(|has_option| has_option(&option)) {
            true => (format!("--{option}"), true),
            false => (part.to_string(), false),
        }
    });
    let mut out = String::new();
    let mut after_option = true;
    for (part, is_option) in parts {
        if !after_option && !is_option {
            out.push('`');
        }
        out += &part;
        after_option = is_option;
    }
    out
}

/// Formats the complete error in one line, for a report that is read without standard error.
pub(crate) fn describe(error: &Error) -> String {
    let message = error.without_advice();
    match advice(error) {
        Some(advice) => format!("{message:#}; {advice}"),
        None => format!("{message:#}"),
    }
}

/// Returns the advice in terms of the options of the subcommand that runs.
fn advice(error: &Error) -> Option<Cow<'static, str>> {
    // The error states what is accepted.
    if error.kind() == ErrorKind::InvalidOption && error.own_advice().is_none() {
        return SEE_HELP.get().and_then(|see_help| see_help()).map(Cow::Owned);
    }
    advice_with(error, |name| HAS_OPTION.get().is_some_and(|has_option| has_option(name)))
}

/// Returns the advice for a subcommand that has these options.
pub(crate) fn advice_with(error: &Error, has_option: impl Fn(&str) -> bool) -> Option<Cow<'static, str>> {
    let fixed = match error.kind() {
        _ if error.own_advice().is_some() => return in_options(error, has_option),
        // An error without the operating system's error comes from this program, and states what is expected.
        ErrorKind::OpenFailed if error.io().is_none() => return None,
        ErrorKind::OpenFailed => return Some(advice_on_opening(error)),
        // Many commands fail without output.
        ErrorKind::CommandFailed if error.command().is_some_and(|end| end.stderr_tail.is_empty()) => return None,
        ErrorKind::Unsupported if error.found().is_some_and(|found| found.contains("bash")) => {
            "install bash, or put the command, or several with --pipeline, after `--`"
        }
        // Errors of URLs state what is expected.
        ErrorKind::Unsupported if error.name().is_some_and(|name| name.contains("://")) => return None,
        ErrorKind::Unsupported if error.found() == Some("a URL") => return None,
        ErrorKind::Unsupported if has_option("encode") => "--decode off or --encode off leaves the bytes unchanged",
        ErrorKind::DecodeLimit if has_option("decode-memory") && !has_option("decode-limit") => {
            "raise --decode-memory if the source is trusted"
        }
        ErrorKind::MemoryLimit if has_option("memory-limit") => "raise --memory-limit if the source is trusted",
        ErrorKind::MemoryLimit | ErrorKind::Unsupported => return None,
        ErrorKind::BrokenPipe => "the reader has closed the pipe or connection",
        // The operating system's message is clear enough, or the user caused the error.
        ErrorKind::Io | ErrorKind::Cancelled => return None,
        _ => return in_options(error, has_option),
    };
    Some(fixed.into())
}

/// Returns the library's advice in terms of the options of a subcommand.
fn in_options(error: &Error, has_option: impl Fn(&str) -> bool) -> Option<Cow<'static, str>> {
    let advice = error.advice_with(|name| {
        let signaled = error.command().is_some_and(|end| matches!(end.status, CommandStatus::Signaled(_)));
        let option = match name {
            "allow_failure" if signaled => "success-signals".to_string(),
            "allow_failure" => "success-statuses".to_string(),
            _ => name.replace('_', "-"),
        };
        has_option(&option).then(|| format!("--{option}"))
    });
    (!advice.is_empty()).then(|| advice.into())
}

/// Returns what to do if a source or an output cannot be opened.
fn advice_on_opening(error: &Error) -> Cow<'static, str> {
    let name = error.name().unwrap_or_default();
    if name.starts_with("tcp:") || name.starts_with("unix:") {
        return "check the address, and that a server is listening there".into();
    }
    match error.io().map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => match name.split_once("://") {
            Some(("http" | "https" | "ftp", _)) => {
                let client = "curl --fail --silent --show-error --location";
                format!("this URL cannot be read; read the output of a client: millstream run -- {client} '{name}'")
                    .into()
            }
            Some(_) => "this URL cannot be read; read the output of a client: millstream run -- CLIENT ...".into(),
            None => "check the name".into(),
        },
        Some(io::ErrorKind::PermissionDenied) => "check the permissions".into(),
        Some(io::ErrorKind::IsADirectory) => "name a file in this directory".into(),
        _ => ErrorKind::OpenFailed.advice().into(),
    }
}

/// Returns the error of a command without its last line on standard error, which has already been shown.
fn without_last_words(error: &Error) -> Option<Error> {
    let end = CommandEnd { stderr_tail: Vec::new(), ..error.command()?.clone() };
    Some(error.again().with_command(end))
}

/// Prints the only result of a command on standard output.
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

    use super::*;

    #[test]
    fn advice_names_options() {
        let advice = |kind, of: &[&str]| advice_with(&Error::new(kind), |name| of.contains(&name));
        assert_eq!(advice(ErrorKind::RecordTooLong, &["record-limit"]).unwrap(), "raise --record-limit");
        assert_eq!(advice(ErrorKind::Stalled, &["record-limit"]), None);
        assert_eq!(
            advice(ErrorKind::CommandFailed, &["success-statuses"]).unwrap(),
            "find out why it failed, or accept its failure with --success-statuses"
        );
    }

    #[test]
    fn advice_fits_the_cause() {
        let missing = |name: &str| Error::new(ErrorKind::OpenFailed).with_name(name).with_io(NotFound.into());
        assert!(describe(&missing("a")).ends_with("; check the name"));
        assert!(describe(&missing("unix:a")).ends_with("; check the address, and that a server is listening there"));
        assert!(describe(&missing("https://a/b?c")).ends_with("--location 'https://a/b?c'"));
        assert!(describe(&missing("s3://a/b")).ends_with("millstream run -- CLIENT ..."));
        let twice = Error::new(ErrorKind::OpenFailed).with_name("a").with_expected("another file");
        assert_eq!(describe(&twice), "a: open failed: expected another file");
    }

    #[test]
    fn a_commands_last_line_is_only_in_reports() {
        let end = CommandEnd {
            argv: vec!["false".into()],
            status: CommandStatus::Exited(1),
            stderr_tail: b"out of luck\n".to_vec(),
        };
        let error = Error::new(ErrorKind::CommandFailed).with_command(end).with_offset(4).with_record(1);
        let seen = "the command `false` exited with status 1, at byte 4, record 1 (the first is 0)";
        let words = format!("{seen}; last line of standard error: out of luck");
        assert!(describe(&error).starts_with(&words), "{error}");
        let silent = without_last_words(&error).unwrap();
        assert_eq!(silent.without_advice().to_string(), seen);
    }

    #[test]
    fn escape_sequences_are_neutralised() {
        assert_eq!(printable("a\x1b[2Jb\r\nc\u{9b}d"), "a[2Jbcd");
        assert_eq!(printable("gpj.\u{202e}exe"), "gpj.exe");
        assert_eq!(printable("grüße 世界"), "grüße 世界");
    }
}
