//! Documents of which nothing is known, as trees. The answer is how many values there are, in all levels, and their
//! text.

use anyhow::Result;
use bson::{Bson, RawDocument};
use clap::ValueEnum;

use crate::input::{decode_each, documents};
use crate::passes::Passes;
use crate::tally::Tally;

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// The `bson` crate's tree.
    BsonDocument,
}

pub fn run(way: Way, bytes: &[u8], passes: &Passes) -> Result<String> {
    let mut tally = Tally::default();
    let each = || documents(bytes);
    let figures = match way {
        Way::BsonDocument => decode_each(
            each,
            |bytes| bson::Document::try_from(RawDocument::from_bytes(bytes)?),
            |document| {
                tally.add("count", 1);
                document.values().for_each(|value| add_bson(&mut tally, value));
            },
            passes,
        ),
    }?;
    Ok(format!("{tally}{figures}"))
}

fn add_bson(tally: &mut Tally, value: &Bson) {
    tally.add("values", 1);
    match value {
        Bson::Document(document) => document.values().for_each(|value| add_bson(tally, value)),
        Bson::Array(array) => array.iter().for_each(|value| add_bson(tally, value)),
        Bson::String(text) => tally.add("text", text.len() as u64),
        _ => {}
    }
}
