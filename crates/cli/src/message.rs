//! What the user is told: one line, without anything that could play tricks on a terminal.

use std::io::Write;

use millstream::{Error, ErrorKind, Writer};

use crate::Ending;

/// The text without control characters, and without the marks that reverse or hide text: a file name must not
/// move the cursor or look like another one.
pub(crate) fn printable(text: &str) -> String {
    let hides = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|&c| !c.is_control() && !hides(c)).collect()
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
    say(&describe(error));
    match error.kind() {
        ErrorKind::InvalidOption => Ending::USAGE,
        _ => Ending::FAILED,
    }
}

/// The error in the library's words; but what can be done about it is said in options, not in calls.
fn describe(error: &Error) -> String {
    let advice = match error.kind() {
        ErrorKind::CommandFailed => "see its standard error",
        ErrorKind::RecordTooLong => "raise --record-limit",
        ErrorKind::Stalled => "raise --timeout, or find out what the other side waits for",
        ErrorKind::DecodeLimit => "--decode off copies it as it is",
        _ => return error.to_string(),
    };
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" ({})", error.kind().advice())).unwrap_or(&text);
    format!("{text} ({advice})")
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
    use super::*;

    #[test]
    fn advice_names_options() {
        let error = Error::new(ErrorKind::RecordTooLong).with_name("a").with_record(3);
        assert_eq!(describe(&error), "a: record too long, record 3 (raise --record-limit)");
    }

    #[test]
    fn escape_sequences_lose_their_teeth() {
        assert_eq!(printable("a\x1b[2Jb\r\nc\u{9b}d"), "a[2Jbcd");
        assert_eq!(printable("gpj.\u{202e}exe"), "gpj.exe");
        assert_eq!(printable("grüße 世界"), "grüße 世界");
    }
}
