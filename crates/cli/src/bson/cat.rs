//! `millstream bson cat`: prints documents as Extended JSON, one per line.

use clap::Args;
use millstream::Writer;
use millstream::bson::Json;

use crate::Ending;
use crate::extended_json::Style;
use crate::run::{RejectOptions, SourceNetwork};
use crate::signals::Signals;
use crate::standard;

use super::Done;
use super::input::{Limit, Stream};

/// Print documents as Extended JSON, one per line
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) stream: Stream,

    #[command(flatten)]
    limit: Limit,

    #[command(flatten)]
    network: SourceNetwork,

    /// Keep every type: {"$numberInt": "1"}
    #[arg(long, conflicts_with = "relaxed")]
    canonical: bool,

    /// Easier to read: 1, and dates as text (the default)
    #[arg(long)]
    relaxed: bool,

    #[command(flatten)]
    bad: RejectOptions,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let json = if options.canonical { Json::Canonical } else { Json::Relaxed };
    let mut input = options.stream.open_documents(&options.limit, &options.network, &options.bad, signals, true)?;
    let mut out = standard::output(Writer::builder().cancel(signals.token()))?;
    let (mut line, style) = (Vec::new(), Style { json, is_seen: standard::is_seen() });
    let printed = input.read(|name, batch| {
        for (document, record) in batch.iter().zip(batch.as_batch().first_record()..) {
            style
                .write_line(&document, &mut line, &mut out)
                .map_err(|error| error.with_name(name).with_record(record))?;
        }
        Ok(())
    });
    let closed = input.close(printed);
    // Documents before an error are printed anyway.
    let flushed = out.close();
    let left_out = closed?;
    flushed?;
    left_out.map(|()| Ending::COMPLETE)
}
