//! Small typed records, encoded into one reused buffer. The output must equal the input byte for byte.

use std::hint::black_box;

use anyhow::{Result, ensure};
use bson::RawDocument;
use clap::ValueEnum;
use millstream::bson::{self as ms, Map};

use crate::input::documents;
use crate::passes::{Figures, Passes};
use crate::records::Record;

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// Millstream's serde.
    Serde,
    /// Millstream's derived codec.
    Derive,
    /// Millstream's document trees.
    Map,
    /// The `bson` crate, from structs into a reused buffer.
    BsonBuffer,
    /// The `bson` crate, from structs into a new `Vec` for each record.
    BsonVec,
    /// The `bson` crate's document trees, into a reused buffer.
    BsonDocument,
}

pub fn run(way: Way, bytes: &[u8], passes: &Passes) -> Result<String> {
    type Owned = Record<String, bson::DateTime>;
    let typed = || decoded(bytes, |document| Ok(bson::deserialize_from_slice::<Owned>(document)?));
    let figures = match way {
        Way::Serde => {
            let records = decoded(bytes, |bytes| Ok(ms::from_slice::<Record<String, ms::DateTime>>(bytes)?))?;
            each(bytes, &records, |record, out| Ok(ms::to_buffer(out, record)?), passes)
        }
        Way::Derive => {
            let records = decoded(bytes, |bytes| Ok(ms::decode::<Record<String, ms::DateTime>>(bytes)?))?;
            each(bytes, &records, |record, out| Ok(ms::encode_to_buffer(out, record)?), passes)
        }
        Way::Map => {
            let trees = decoded(bytes, |document| Ok(Map::from_slice(document)?))?;
            each(bytes, &trees, |tree, out| Ok(ms::encode_to_buffer(out, tree)?), passes)
        }
        Way::BsonBuffer => each(bytes, &typed()?, |record, out| Ok(bson::serialize_to_buffer(record, out)?), passes),
        Way::BsonVec => each(
            bytes,
            &typed()?,
            |record, out| {
                out.extend_from_slice(&black_box(bson::serialize_to_vec(record)?));
                Ok(())
            },
            passes,
        ),
        Way::BsonDocument => {
            let trees = decoded(bytes, |bytes| Ok(bson::Document::try_from(RawDocument::from_bytes(bytes)?)?))?;
            each(bytes, &trees, |tree, out| Ok(tree.to_writer(out)?), passes)
        }
    }?;
    let count = documents(bytes).count();
    Ok(format!("count={count} bytes={} {figures}", bytes.len()))
}

fn decoded<'a, T>(bytes: &'a [u8], decode: impl FnMut(&'a [u8]) -> Result<T>) -> Result<Vec<T>> {
    documents(bytes).map(decode).collect()
}

/// Encodes all records consecutively, as in a file.
fn each<T>(
    right: &[u8],
    records: &[T],
    mut encode: impl FnMut(&T, &mut Vec<u8>) -> Result<()>,
    passes: &Passes,
) -> Result<Figures> {
    let mut out = Vec::with_capacity(right.len());
    for record in records {
        encode(record, &mut out)?;
    }
    ensure!(out == right, "the encoded bytes differ from the input");
    passes.time(|| {
        out.clear();
        for record in records {
            encode(black_box(record), &mut out)?;
        }
        black_box(&out);
        Ok(())
    })
}
