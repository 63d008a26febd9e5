//! `millstream bson check`: whether every byte of a stream is right.

use clap::Args;
use millstream::Result;
use millstream::bson::{Checking, OnBad};

use crate::message;
use crate::run::count_text;
use crate::signals::Signals;

use super::Done;
use super::input::{OnError, Stream, Strictness};

/// Check every byte of every document
///
/// Types, lengths, terminators, UTF-8, nesting, and that the source succeeded and ends with a whole document. The
/// first thing that is wrong is said, with its path of keys and its place; the exit status tells.
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    stream: Stream,

    /// What to let pass
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Strictness::Standard)]
    strictness: Strictness,

    /// How deep documents and arrays may be nested, up to 1000
    #[arg(long, value_name = "LEVELS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    depth: u16,

    /// What to do at a document that is wrong: stop, or skip it and say what is wrong with each
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnError::Stop)]
    on_error: OnError,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let mut input = options.stream.open(signals, false)?.with(|documents| {
        documents
            .rules(options.strictness.rules(options.depth))
            .checking(Checking::Ahead)
            .on_bad(OnBad::from(options.on_error))
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
