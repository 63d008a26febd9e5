//! `millstream bench command`: the lines that a command prints.

use std::ffi::OsString;
use std::fs::File;
use std::process::{Child, ChildStdout, Command, Stdio};

use clap::{Args, ValueHint};
use millstream::{ReadAhead, Reader, Result, Stderr};

use super::lines::{self, PROGRAMS, share};
use super::measure::{Answer, Stop, Way};
use super::report::{READ, Report, Results, Subject};
use super::{Bench, NOTHING, program};
use crate::program::find;

/// Measure reading the lines that a command prints
///
/// The command runs again for each way, without standard input, and must print the same output each time. Every way's
/// time includes the command's.
#[derive(Args)]
pub(super) struct Options {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const BATCHES: &str = "batches";
const ONE: &str = "one at a time";
const ON: &str = "batches, read-ahead on";
const OFF: &str = "batches, read-ahead off";

pub(super) fn run(options: &Options, bench: &Bench<'_>) -> Result<Report> {
    let argv = &options.command[..];
    find(&argv[0])?;
    let expected = started(argv, bench.stop, |stdout, stop| Ok(lines::count(stdout, stop)?))?;
    let [count, bytes] = ["lines", "bytes"].map(|name| expected.get(name).unwrap_or(0));
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let subject = Subject { question: format!("lines of {}", words.join(" ")), bytes, records: count, noun: "line" };
    bench.report(subject, expected, ways(argv), advise)
}

fn ways(argv: &[OsString]) -> Vec<Way<'_>> {
    let open = move |read_ahead| {
        move |stop: &Stop| {
            let command = millstream::Command::from(argv).stdin(File::open(NOTHING)?).stderr(Stderr::Capture);
            Reader::builder().read_ahead(read_ahead).cancel(stop.token()).command(command)
        }
    };
    let competitor = move |work: fn(ChildStdout, &Stop) -> Result<Answer>| move |stop: &Stop| started(argv, stop, work);
    let mut ways = vec![
        Way::millstream(BATCHES, move |stop| lines::batches(open(ReadAhead::Auto)(stop)?)),
        Way::millstream(ONE, move |stop| lines::one_at_a_time(open(ReadAhead::Auto)(stop)?)),
        Way::millstream(ON, move |stop| lines::batches(open(ReadAhead::On)(stop)?)),
        Way::millstream(OFF, move |stop| lines::batches(open(ReadAhead::Off)(stop)?)),
        Way::competitor(READ, competitor(lines::read)),
        Way::competitor("BufReader::read_until", competitor(|stdout, stop| lines::read_until(8 << 10, stdout, stop))),
        Way::competitor(
            "BufReader::read_until, 256 KiB",
            competitor(|stdout, stop| lines::read_until(256 << 10, stdout, stop)),
        ),
        Way::competitor("BufReader::lines", competitor(lines::strings)),
    ];
    ways.extend(PROGRAMS.iter().map(|(name, reader)| {
        let line = reader.iter().fold("\"$@\" |".to_string(), |line, word| line + " " + &quoted(word));
        program::where_found(*name, &["sh", reader[0]], move |stop| {
            let mut command = Command::new("sh");
            command.args(["-c", &line, "sh"]).args(argv).stdin(Stdio::null());
            program::answer(&program::output(&mut command, stop)?, &["lines"])
        })
    }));
    ways
}

/// Starts the command with the standard library, calls `work` to read its output, and waits for the command.
fn started(argv: &[OsString], stop: &Stop, work: impl FnOnce(ChildStdout, &Stop) -> Result<Answer>) -> Result<Answer> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
    program::run(&mut command, stop, |child: &mut Child| Ok(work(child.stdout.take().expect("it is a pipe"), stop)?))
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn advise(results: &Results) -> Vec<String> {
    let mut advice = Vec::new();
    for (way, setting) in [(ON, "On"), (OFF, "Off")] {
        advice.extend(results.ratio(way, BATCHES).map(|ratio| match ratio {
            ratio if ratio < 1.0 => format!("ReadAhead::{setting} saves {} of the time of Auto", share(1.0 - ratio)),
            ratio if ratio > 1.0 => format!("ReadAhead::{setting} costs {} more time than Auto", share(ratio - 1.0)),
            _ => format!("ReadAhead::{setting} is as fast as Auto"),
        }));
    }
    advice.extend(lines::advise_on_batches(results, ONE, BATCHES));
    advice.extend(results.ratio(BATCHES, READ).map(|ratio| match ratio {
        ratio if ratio <= 1.1 => "the command itself takes the time: no way of reading it can save more".to_string(),
        ratio => format!("finding the lines adds {} to the time of the command", share(ratio - 1.0)),
    }));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_sees_one_word() {
        assert_eq!(quoted("$= it's"), r"'$= it'\''s'");
    }
}
