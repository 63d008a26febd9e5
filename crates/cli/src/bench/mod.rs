//! `millstream bench`: compares the cost of different ways to do a task on this machine, with the user's own data.
//!
//! Each file covers one question, with its ways and the advice that follows from their times. `measure` runs the ways,
//! `program` starts external programs, and `report` shows the results. Ways are written as a user would write them:
//! Millstream's ways with the public interface of the library, the others with the standard library or with installed
//! programs.

mod bson;
mod command;
mod input;
mod lines;
mod measure;
mod numbers;
mod print;
mod program;
mod report;
mod stages;

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use millstream::Result;

use crate::signals::Signals;
use crate::standard::Stream;
use crate::{Ending, message};

use measure::{Answer, Plan, Stop, Way, measure};
use report::{Report, Results, Subject};

/// The destination of output, and the input of programs that need no input.
const NOTHING: &str = "/dev/null";

/// The end of `--help` and of the manual page.
const MORE_HELP: &str = "\
How it is measured:
  Every way runs once to warm up, then once in each round, so that a slow
  moment affects all of them. Its time covers the whole way: opening the
  file, starting the program. Millstream's ways have a star. A way whose
  answer differs from the expected one is shown as wrong and has no
  time; one that takes more than its share of --seconds is stopped.

Exit status:
  0  measured, whichever way was the fastest
  1  the file or command cannot be read; one line on standard error
     says why
  2  the command line is invalid

Examples:
  Lines of a file, against wc, awk, Python and other installed tools:
    millstream bench lines big.csv

  Lines of a command, with and without read-ahead:
    millstream bench command -- samtools view -h x.bam

  The cost of standard output's lock and line ends:
    millstream bench print

  The cost of one more stage, and of one more thread:
    millstream bench stages big.csv

  As JSON, with twice the time:
    millstream bench bson dump.bson --seconds 40 --json";

/// Measure ways to read, print and decode on this machine, with your data, and give advice
#[derive(Args)]
#[command(after_help = MORE_HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    question: Question,

    /// How many rounds to time, if there is enough time
    #[arg(long, value_name = "N", global = true, default_value = "5")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// The total time in seconds; one round is always timed
    #[arg(long, value_name = "S", global = true, default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,

    /// Print JSON with the time of every run instead of the table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Question {
    // The documentation is in its options.
    Lines(lines::Options),
    Command(command::Options),
    Print(print::Options),
    Numbers(numbers::Options),
    Stages(stages::Options),
    Bson(bson::Options),
}

/// Runs the requested measurement.
pub(crate) fn run(options: &Options) -> Ending {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return message::fail(&error),
    };
    if let Err(error) = Stream::Output.check() {
        return message::fail(&error);
    }
    let ending = match answer(options, &mut signals) {
        Ok(report) if options.json => message::print(format!("{:#}\n", report.json()).as_bytes()),
        Ok(report) => message::print(report.text().as_bytes()),
        Err(error) => match signals.caught() {
            Some(signal) => Ending::Signaled(signal),
            None => message::fail(&error),
        },
    };
    signals.or(ending)
}

fn answer(options: &Options, signals: &mut Signals) -> Result<Report> {
    let stop = Arc::new(Stop::new()?);
    let stopped = stop.clone();
    signals.on_arrival(move || stopped.stop())?;
    signals.watch()?;
    let plan = Plan { runs: options.runs.into(), time: Duration::from_secs(options.seconds.into()) };
    let bench = Bench { plan, stop: &stop, signals };
    match &options.question {
        Question::Lines(options) => lines::run(options, &bench),
        Question::Command(options) => command::run(options, &bench),
        Question::Print(options) => print::run(options, &bench),
        Question::Numbers(options) => numbers::run(options, &bench),
        Question::Stages(options) => stages::run(options, &bench),
        Question::Bson(options) => bson::run(options, &bench),
    }
}

/// The settings of all measurements.
struct Bench<'a> {
    plan: Plan,
    stop: &'a Stop,
    signals: &'a Signals,
}

impl Bench<'_> {
    /// Measures the ways, and computes advice from their times.
    fn report(
        &self,
        subject: Subject,
        expected: Answer,
        ways: Vec<Way<'_>>,
        advise: impl FnOnce(&Results) -> Vec<String>,
    ) -> Result<Report> {
        // This thread draws the progress bar before a run, so nothing else runs while a way is timed.
        let most = ways.len() * (1 + self.plan.runs);
        let style = ProgressStyle::with_template("{pos} of at most {len} runs in {elapsed}  {wide_msg}");
        let progress = ProgressBar::new(most as u64).with_style(style.expect("the template is valid"));
        let tell = |name: &str| {
            progress.set_message(message::printable(name));
            progress.inc(1);
        };
        let interrupted = || self.signals.caught().is_some();
        let measured = measure(ways, &expected, self.plan, self.stop, interrupted, tell);
        progress.finish_and_clear();
        let results = Results::new(measured?);
        let mut advice = results.summary();
        advice.extend(advise(&results));
        Ok(Report { subject, expected, results, advice })
    }
}
