//! Documents without a known schema, as trees. The answer is the number of values on all levels and the total length of
//! their text.

use anyhow::Result;
use bson::{Bson, RawDocument};
use clap::ValueEnum;
use millstream::bson::{Document, Map, Value};

use crate::input::{decode_each, documents};
use crate::passes::Passes;
use crate::tally::Tally;

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// Millstream's tree.
    Map,
    /// Millstream's validation of every byte.
    Walk,
    /// The `bson` crate's tree.
    BsonDocument,
}

pub fn run(way: Way, bytes: &[u8], passes: &Passes) -> Result<String> {
    let mut tally = Tally::default();
    let each = || documents(bytes);
    let figures = match way {
        Way::Map => decode_each(
            each,
            Map::from_slice,
            |map| {
                tally.add("count", 1);
                map.values().for_each(|value| add_value(&mut tally, value));
            },
            passes,
        ),
        Way::Walk => decode_each(each, |bytes| Document::new(bytes)?.check(), |()| tally.add("count", 1), passes),
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

fn add_value(tally: &mut Tally, value: &Value) {
    tally.add("values", 1);
    match value {
        Value::Document(map) => map.values().for_each(|value| add_value(tally, value)),
        Value::Array(array) => array.iter().for_each(|value| add_value(tally, value)),
        Value::String(text) => tally.add("text", text.len() as u64),
        _ => {}
    }
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
