//! `millstream bson cat`: documents as Extended JSON, one a line.

use clap::Args;
use millstream::bson::{Json, OnBad};
use millstream::{Error, Result, Writer};

use crate::signals::Signals;

use super::Done;
use super::get::{is_seen, make_visible};
use super::input::{OnError, Stream};

/// Print documents as Extended JSON, one a line
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    stream: Stream,

    /// Keep every type: {"$numberInt": "1"}
    #[arg(long, conflicts_with = "relaxed")]
    canonical: bool,

    /// Easier to read: 1, and dates as text (the default)
    #[arg(long)]
    relaxed: bool,

    /// What to do at a document that is wrong: stop, or skip it and say what is wrong with each
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnError::Stop)]
    on_error: OnError,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let json = if options.canonical { Json::Canonical } else { Json::Relaxed };
    let mut input =
        options.stream.open(signals, true)?.with(|documents| documents.on_bad(OnBad::from(options.on_error)));
    let mut out = Writer::builder().cancel(signals.token()).stdout()?;
    // What was read before an error is printed all the same.
    let printed = print(&mut input, &mut out, json);
    let flushed = out.close();
    input.close(printed.and(flushed.map(drop)))
}

fn print(input: &mut super::input::Input, out: &mut Writer, json: Json) -> Result<()> {
    let (mut line, is_seen) = (Vec::new(), is_seen());
    let name = input.documents.reader().name().to_string();
    while let Some(batch) = input.documents.next_batch()? {
        let first = batch.as_batch().first_record();
        for (document, record) in batch.iter().zip(first..) {
            line.clear();
            let located = |error: Error| error.with_name(&name).with_record(record);
            document.append_json(&mut line, json).map_err(located)?;
            if is_seen {
                make_visible(&mut line);
            }
            line.push(b'\n');
            out.write(&line)?;
        }
        input.show();
    }
    Ok(())
}
