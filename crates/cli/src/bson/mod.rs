//! `millstream bson`: inspect, check and convert streams of BSON documents.
//!
//! Each subcommand has its own file, except `convert`, which is `millstream convert --from bson`; `input` defines what the subcommands read and which document is selected. All
//! input is read by the library's reader, so compressed files, pipes and commands work, and a failed source is never
//! mistaken for the end.

mod absent;
mod cat;
mod check;
mod count;
mod get;
mod image;
mod input;
mod julia;
mod ls;
mod npy;

use std::ffi::OsString;

use clap::{Args, Subcommand};
use millstream::{Error, ErrorKind, Result};

use crate::signals::Signals;
use crate::standard::{STANDARD_OUTPUT, Stream};
use crate::{Ending, convert, message};

/// The end of `--help` and of the manual page.
const MORE_HELP: &str = "\
Paths:
  items.3.price     keys and array positions, separated by dots
  hosts.\"a.b\".port  a key that contains a dot, as a JSON string
  [7].items         of document 7; the first is 0, the default

Exit status:
  0  complete
  1  a source, a document or an output failed; one line on standard
     error says what and where
  2  the command line is invalid, or asks for a form that the type of
     the value does not have

Examples:
  List what is in a file, including BSON.jl models:
    millstream bson ls model.bson

  Print one value as JSON:
    millstream bson get orders.bson '[7].items.0.price'

  Save an array for numpy:
    millstream bson get model.bson weights --as npy > weights.npy

  Print all documents of a dump, one per line:
    millstream bson cat dump/orders.bson.gz | grep open

  Check that a dump is complete:
    millstream bson check dump/orders.bson";

/// Inspect, check and convert BSON documents
///
/// The input may be files with one or more documents (as written by mongodump), compressed or not, and files of Julia's
/// BSON.jl. The latter are read as plain data: no code in them is ever executed.
#[derive(Args)]
#[command(after_help = MORE_HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    // The documentation is in its options.
    Ls(ls::Options),
    Get(get::Options),
    Cat(cat::Options),
    /// Convert documents into Parquet, Arrow, CSV or JSON lines: the same as 'millstream convert --from bson'
    Convert(Box<convert::Options>),
    Check(check::Options),
    Count(count::Options),
}

impl Options {
    /// Returns the words after `--`, if they are a command.
    pub(crate) fn command(&self) -> Option<&[OsString]> {
        match &self.action {
            Action::Convert(options) => options.command(),
            _ => self.stream().map(input::Stream::command),
        }
    }

    /// Returns whether standard input is the source because no other is given.
    pub(crate) fn reads_input(&self) -> bool {
        match &self.action {
            Action::Convert(options) => options.reads_input(),
            _ => self.stream().is_some_and(input::Stream::reads_input),
        }
    }

    fn stream(&self) -> Option<&input::Stream> {
        match &self.action {
            Action::Ls(_) | Action::Get(_) | Action::Convert(_) => None,
            Action::Cat(options) => Some(&options.stream),
            Action::Check(options) => Some(&options.stream),
            Action::Count(options) => Some(&options.stream),
        }
    }
}

/// Runs the requested subcommand.
pub(crate) fn run(options: Options) -> Ending {
    let action = match options.action {
        Action::Convert(options) => return convert::run_bson(*options),
        action => action,
    };
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return message::fail(&error),
    };
    if let Err(error) = Stream::Output.check() {
        return message::fail(&error);
    }
    let done = match &action {
        Action::Ls(options) => ls::run(options, &mut signals),
        Action::Get(options) => get::run(options, &mut signals),
        Action::Cat(options) => cat::run(options, &mut signals),
        Action::Check(options) => check::run(options, &mut signals),
        Action::Count(options) => count::run(options, &mut signals),
        Action::Convert(_) => unreachable!("returned above"),
    };
    signals.or(done.unwrap_or_else(|error| explain(&error, &signals)))
}

/// Reports why the subcommand failed, unless the user or the reader of the output caused the failure.
fn explain(error: &Error, signals: &Signals) -> Ending {
    match (signals.caught(), error.kind()) {
        (Some(signal), _) => message::ended_by(signal),
        // If the reader closed standard output, the reader knows the reason.
        (None, ErrorKind::BrokenPipe) if error.name() == Some(STANDARD_OUTPUT) => Ending::BROKEN_PIPE,
        (None, _) => message::fail(error),
    }
}

/// Returns an error of the command line that is only detected from the input.
fn unusable(found: impl Into<String>, expected: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected)
}

/// The result of all subcommands.
type Done = Result<Ending>;
