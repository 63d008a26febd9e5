//! `millstream bson count`: how many documents and bytes there are, by their lengths alone.

use clap::Args;

use crate::message;
use crate::run::count_text;
use crate::signals::Signals;

use super::Done;
use super::input::Stream;

/// Count documents and bytes, by the lengths of the documents alone
///
/// The documents are not looked into: 'check' does that.
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    stream: Stream,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let mut input = options.stream.open(signals, false)?;
    let (mut documents, mut bytes) = (0, 0);
    while let Some(batch) = input.documents.next_batch()? {
        documents += batch.len() as u64;
        bytes += batch.as_batch().bytes().len() as u64;
        input.show();
    }
    input.close(Ok(()))?;
    let line = format!("{}, {}\n", count_text(documents, "document"), count_text(bytes, "byte"));
    Ok(message::print(line.as_bytes()))
}
