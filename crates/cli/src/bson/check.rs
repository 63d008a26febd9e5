//! `millstream bson check`: checks that every byte of a stream is valid.

use clap::Args;
use millstream::Result;
use millstream::bson::Checking;

use crate::message;
use crate::run::{OnBad, SourceNetwork, count_text};
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

    /// What to do with a document that is not valid BSON: stop, or leave it out and report its position
    #[arg(long, value_name = "HOW", alias = "on-error", value_enum, default_value_t = OnBad::Stop)]
    on_bad: OnBad,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let input = options.stream.open(options.limit.record_limit, &options.network, signals, false)?;
    let mut input = input.with(|documents| {
        documents.rules(options.strictness.rules(options.depth)).checking(Checking::Ahead).on_bad(options.on_bad.into())
    });
    let (mut documents, mut bytes) = (0, 0);
    let mut look = || -> Result<()> {
        while let Some(batch) = input.documents.next_batch()? {
            documents += batch.len() as u64;
            bytes += batch.as_batch().bytes().len() as u64;
            input.show();
        }
        Ok(())
    };
    let looked = look();
    let ending = input.close(looked)?;
    let line = format!("{}, {}: right\n", count_text(documents, "document"), count_text(bytes, "byte"));
    match message::print(line.as_bytes()) {
        crate::Ending::COMPLETE => Ok(ending),
        other => Ok(other),
    }
}
