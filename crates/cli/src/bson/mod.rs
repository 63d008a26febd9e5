//! `millstream bson`: look into, check and convert streams of BSON documents.
//!
//! One file per subcommand; `input` says what they read and which document is meant. Everything goes through the
//! library's reader, so compressed files, pipes and commands are all the same here, and a source that failed is never
//! taken for the end.

mod cat;
mod check;
mod convert;
mod count;
mod formats;
mod get;
mod input;
mod julia;
mod ls;
mod npy;

use clap::{Args, Subcommand};
use millstream::{Error, ErrorKind, Result};

use crate::run::STANDARD_OUTPUT;
use crate::signals::Signals;
use crate::{Ending, message};

/// The end of `--help` and of the manual page.
const MORE_HELP: &str = "\
Paths:
  items.3.price     keys and positions in arrays, with dots between
  hosts.\"a.b\".port  a key with a dot in it, as a JSON string
  [7].items         of document 7; the first is 0, and the default

Exit status:
  0  complete
  1  something is wrong with a source or a document, and one line
     says what and where, or an output failed
  2  the command line cannot be understood, or asks of a value
     what its type has not

Examples:
  See what is in a file, also if it is a model of BSON.jl:
    millstream bson ls model.bson

  One value, as JSON:
    millstream bson get orders.bson '[7].items.0.price'

  An array for numpy:
    millstream bson get model.bson weights --as npy > weights.npy

  All documents of a dump, one a line:
    millstream bson cat dump/orders.bson.gz | grep open

  Know that a dump is whole:
    millstream bson check dump/orders.bson";

/// Look into, check and convert BSON documents
///
/// Files with one document or many (as mongodump writes them), compressed or not, and files of Julia's BSON.jl,
/// which are read as plain data: nothing in them is ever run.
#[derive(Args)]
#[command(after_help = MORE_HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    // Described where their options are.
    Ls(ls::Options),
    Get(get::Options),
    Cat(cat::Options),
    Convert(Box<convert::Options>),
    Check(check::Options),
    Count(count::Options),
}

/// Does what the options say.
pub(crate) fn run(options: &Options) -> Ending {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return message::fail(&error),
    };
    let done = match &options.action {
        Action::Ls(options) => ls::run(options, &mut signals),
        Action::Get(options) => get::run(options, &mut signals),
        Action::Cat(options) => cat::run(options, &mut signals),
        Action::Convert(options) => convert::run(options, &mut signals),
        Action::Check(options) => check::run(options, &mut signals),
        Action::Count(options) => count::run(options, &mut signals),
    };
    done.unwrap_or_else(|error| explain(&error, &signals))
}

/// Says why it failed, unless the user or the consumer ended it.
fn explain(error: &Error, signals: &Signals) -> Ending {
    match (signals.caught(), error.kind()) {
        (Some(signal), _) => Ending::Signaled(signal),
        // Whoever closes our standard output knows about it.
        (None, ErrorKind::BrokenPipe) if error.name() == Some(STANDARD_OUTPUT) => Ending::BROKEN_PIPE,
        (None, _) => message::fail(error),
    }
}

/// An error of the command line that only the input can show.
fn unusable(found: impl Into<String>, expected: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected)
}

/// What all subcommands end with.
type Done = Result<Ending>;
