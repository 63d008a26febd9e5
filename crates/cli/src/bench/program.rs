//! Runs external programs as ways.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use millstream::{CommandEnd, CommandStatus, Error, ErrorKind, Result};

use super::measure::{Answer, Stop, Way};
use crate::program;

/// The number of bytes of a program's standard error that are kept.
const LAST_WORDS: u64 = 4096;

/// Creates a way from a program that prints only these numbers. Its standard input is opened for each run.
pub(super) fn way<'a>(
    name: impl Into<String>,
    argv: &[&str],
    numbers: &'static [&'static str],
    mut stdin: impl FnMut() -> io::Result<Stdio> + 'a,
) -> Way<'a> {
    let owned: Vec<String> = argv.iter().map(ToString::to_string).collect();
    where_found(name, &argv[..1], move |stop| {
        let mut command = Command::new(&owned[0]);
        command.args(&owned[1..]).stdin(stdin()?);
        answer(&output(&mut command, stop)?, numbers)
    })
}

/// Creates a competitor that needs these programs.
pub(super) fn where_found<'a>(
    name: impl Into<String>,
    programs: &[&str],
    run: impl FnMut(&Stop) -> Result<Answer> + 'a,
) -> Way<'a> {
    match programs.iter().find(|program| program::find(program.as_ref()).is_err()) {
        Some(missing) => Way::skipped(name, format!("{missing} is not installed")),
        None => Way::competitor(name, run),
    }
}

/// Returns the output of a command, if the command succeeds.
pub(super) fn output(command: &mut Command, stop: &Stop) -> Result<Vec<u8>> {
    run(command.stdout(Stdio::piped()), stop, |child| {
        let mut printed = Vec::new();
        child.stdout.take().expect("it is a pipe").read_to_end(&mut printed)?;
        Ok(printed)
    })
}

/// Starts a command in its own process group, passes it to `work`, and waits for it.
///
/// # Errors
/// Returns [`ErrorKind::CommandNotStarted`], or [`ErrorKind::CommandFailed`] with the last output, unless `work`
/// failed.
pub(super) fn run<T>(command: &mut Command, stop: &Stop, work: impl FnOnce(&mut Child) -> io::Result<T>) -> Result<T> {
    command.process_group(0).stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let argv = std::iter::once(command.get_program()).chain(command.get_args()).map(Into::into).collect();
    let mut child =
        command.spawn().map_err(|error| Error::new(ErrorKind::CommandNotStarted).with_name(name).with_io(error))?;
    let stderr = child.stderr.take().expect("it is a pipe");
    // Its standard error is read at the same time, so that it can print any amount.
    let listener = std::thread::spawn(move || last_words(stderr));
    let done = stop.with_child(&mut child, work);
    let status = child.wait()?;
    let stderr_tail = listener.join().unwrap_or_default();
    let done = done?;
    match status.success() {
        true => Ok(done),
        false => {
            let end = CommandEnd { argv, status: ended(status), stderr_tail };
            Err(Error::new(ErrorKind::CommandFailed).with_command(end))
        }
    }
}

/// Returns the last line printed by a program.
fn last_words(mut stderr: impl Read) -> Vec<u8> {
    let mut said = Vec::new();
    let _ = stderr.by_ref().take(LAST_WORDS).read_to_end(&mut said);
    let _ = io::copy(&mut stderr, &mut io::sink());
    let line = said.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    line.unwrap_or_default().to_vec()
}

fn ended(status: ExitStatus) -> CommandStatus {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandStatus::Exited(code),
        (None, Some(signal)) => CommandStatus::Signaled(signal),
        (None, None) => CommandStatus::Unknown,
    }
}

/// Returns the numbers in the printed text.
pub(super) fn answer(printed: &[u8], names: &'static [&'static str]) -> Result<Answer> {
    let text = String::from_utf8_lossy(printed);
    let numbers: Vec<_> = text.split_ascii_whitespace().map(str::parse).collect();
    let unexpected = || {
        Error::new(ErrorKind::NumberInvalid)
            .with_found(format!("{:?}", text.chars().take(60).collect::<String>()))
            .with_expected(names.join(", "))
    };
    if numbers.len() != names.len() {
        return Err(unexpected());
    }
    names
        .iter()
        .zip(numbers)
        .try_fold(Answer::default(), |answer, (name, number)| Ok(answer.and(name, number.map_err(|_| unexpected())?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Result<Vec<u8>> {
        output(Command::new("sh").args(["-c", line]).stdin(Stdio::null()), &Stop::new().unwrap())
    }

    #[test]
    fn the_output_of_a_command() {
        assert_eq!(shell("echo 7 8").unwrap(), b"7 8\n");
        assert_eq!(answer(b" 7 8\n", &["lines", "bytes"]).unwrap(), Answer::default().and("lines", 7).and("bytes", 8));
        for bad in ["", "7", "7 8 9", "7 x", "-7 8"] {
            assert!(answer(bad.as_bytes(), &["lines", "bytes"]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_last_line_of_a_failing_command() {
        let error = shell("echo first >&2; echo last >&2; exit 3").unwrap_err();
        let end = error.command().unwrap();
        assert_eq!((end.status, &end.stderr_tail[..]), (CommandStatus::Exited(3), &b"last"[..]));
    }

    #[test]
    fn a_stop_kills_the_whole_group() {
        let stop = Stop::new().unwrap();
        stop.stop();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & sleep 1000"]).stdin(Stdio::null());
        // If a process were still running, it would hold the pipe open, and this would wait for it.
        let error = output(&mut command, &stop).unwrap_err();
        assert_eq!(error.command().unwrap().status, CommandStatus::Signaled(9));
    }

    #[test]
    fn a_missing_program_is_named() {
        let way = where_found("a way", &["sh", "no-such-program"], |_| Ok(Answer::default()));
        assert_eq!(way.why_skipped(), Some("no-such-program is not installed"));
    }
}
