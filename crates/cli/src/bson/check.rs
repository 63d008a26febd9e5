//! `millstream bson check`: checks that every byte of a stream is valid.

use clap::Args;
use millstream::bson::Checking;

use crate::message;
use crate::run::{RejectOptions, SourceNetwork, count_text};
use crate::signals::Signals;

use super::Done;
use super::input::{Limit, Stream, Strictness};

/// Check every byte of every document
///
/// Checks types, lengths, terminators, UTF-8 and nesting, and that the source succeeded and ends with a complete
/// document. The first error is reported with its key path and its position, and the exit status is then 1.
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) stream: Stream,

    #[command(flatten)]
    limit: Limit,

    #[command(flatten)]
    network: SourceNetwork,

    /// How strict to be
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Strictness::Standard)]
    strictness: Strictness,

    /// The maximum nesting depth of documents and arrays, up to 1000
    #[arg(long, value_name = "LEVELS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    depth: u16,

    #[command(flatten)]
    bad: RejectOptions,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let input = options.stream.open_documents(&options.limit, &options.network, &options.bad, signals, false)?;
    let rules = options.strictness.rules(options.depth);
    let mut input = input.with(|documents| documents.rules(rules).checking(Checking::Ahead));
    let mut bytes = 0;
    let looked = input.read(|_, batch| {
        bytes += batch.as_batch().bytes().len() as u64;
        Ok(())
    });
    let documents = input.count();
    let left_out = input.close(looked)?;
    let line = format!("{}, {}: right\n", count_text(documents, "document"), count_text(bytes, "byte"));
    match message::print(line.as_bytes()) {
        crate::Ending::COMPLETE => left_out.map(|()| crate::Ending::COMPLETE),
        other => Ok(other),
    }
}
