//! `millstream bson count`: the number of documents and bytes, using their lengths alone.

use clap::Args;
use millstream::Result;
use millstream::frame::Bson;

use crate::message;
use crate::run::{DEFAULT_RECORD_LIMIT, SourceNetwork, count_text};
use crate::signals::Signals;

use super::Done;
use super::input::Stream;

/// The number of documents after which progress is shown.
const STEP: u64 = 1024;

/// Count documents and bytes, by the lengths of the documents alone
///
/// This does not read the content of the documents; 'check' does.
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) stream: Stream,

    #[command(flatten)]
    network: SourceNetwork,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let (mut reader, watch) = options.stream.open(DEFAULT_RECORD_LIMIT, &options.network, signals, false)?;
    let mut count = || -> Result<()> {
        let mut documents = 0;
        // The documents' bytes are skipped, whatever the length of the documents.
        while reader.skip_record(&mut Bson::new())? {
            documents += 1;
            if documents % STEP == 0 {
                watch.show(&reader);
            }
        }
        Ok(())
    };
    let counted = count();
    let position = reader.position();
    watch.close(reader, counted)?;
    let line = format!("{}, {}\n", count_text(position.records, "document"), count_text(position.bytes, "byte"));
    Ok(message::print(line.as_bytes()))
}
