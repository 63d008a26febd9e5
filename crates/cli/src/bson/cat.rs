//! `millstream bson cat`: prints documents as Extended JSON, one per line.

use clap::Args;
use millstream::bson::Json;
use millstream::{Error, Result, Writer};

use crate::run::{OnBad, SourceNetwork};
use crate::signals::Signals;
use crate::standard;

use super::Done;
use super::get::is_seen;
use super::input::{Limit, Stream};
use super::json::Style;

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

    /// What to do with a document that is not valid BSON: stop, or leave it out and report its position
    #[arg(long, value_name = "HOW", alias = "on-error", value_enum, default_value_t = OnBad::Stop)]
    on_bad: OnBad,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let json = if options.canonical { Json::Canonical } else { Json::Relaxed };
    let mut input = options
        .stream
        .open(options.limit.record_limit, &options.network, signals, true)?
        .with(|documents| documents.on_bad(options.on_bad.into()));
    let mut out = standard::output(Writer::builder().cancel(signals.token()))?;
    // Documents before an error are printed anyway.
    let printed = print(&mut input, &mut out, json);
    let flushed = out.close();
    input.close(printed.and(flushed.map(drop)))
}

fn print(input: &mut super::input::Input, out: &mut Writer, json: Json) -> Result<()> {
    let (mut line, style) = (Vec::new(), Style { json, is_seen: is_seen() });
    let name = input.documents.reader().name().to_string();
    while let Some(batch) = input.documents.next_batch()? {
        let first = batch.as_batch().first_record();
        for (document, record) in batch.iter().zip(first..) {
            let located = |error: Error| error.with_name(&name).with_record(record);
            style.write_line(&document, &mut line, out).map_err(located)?;
        }
        input.show();
    }
    Ok(())
}
