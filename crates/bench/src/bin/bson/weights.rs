//! The arrays of a model: read as a whole, copied out, or viewed where they lie.
//!
//! Opening and reading the file is part of the time here. The answer is how many arrays there are, and floats, and
//! their sum in steps of 1/256, which is exact.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result};
use bson::RawDocument;
use clap::ValueEnum;
use serde::Deserialize;

use crate::passes::{Figures, Passes};

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// The floor of everybody who reads: the bytes, and nothing done with them.
    FsRead,
    /// The `bson` crate's tree from a reader.
    BsonReader,
    /// The `bson` crate on the file in memory, into structs with the payloads copied.
    BsonOwned,
    /// The `bson` crate on the file in memory: slices of the payloads.
    BsonRaw,
}

/// Arrays as little-endian bytes.
type Payloads<T> = Vec<T>;

#[derive(Deserialize)]
struct Model {
    weights: Vec<Tagged>,
}

#[derive(Deserialize)]
struct Tagged {
    data: bson::Binary,
}

pub fn run(way: Way, path: &Path, passes: &Passes) -> Result<String> {
    match way {
        Way::FsRead => {
            let len = fs::read(path)?.len();
            let figures = passes.time_prepared(|| Ok(()), |()| Ok(fs::read(path)?))?;
            Ok(format!("bytes={len} {figures}"))
        }
        Way::BsonReader => arrays(
            || Ok(bson::Document::from_reader(BufReader::with_capacity(1 << 18, File::open(path)?))?),
            |document| {
                let arrays = document.get_array("weights")?.iter();
                arrays
                    .map(|array| Ok(&array.as_document().context("a document")?.get_binary_generic("data")?[..]))
                    .collect()
            },
            passes,
        ),
        Way::BsonOwned => arrays(
            || Ok(bson::deserialize_from_slice::<Model>(&fs::read(path)?)?),
            |model| Ok(model.weights.iter().map(|array| &array.data.bytes[..]).collect()),
            passes,
        ),
        Way::BsonRaw => arrays(
            || Ok(fs::read(path)?),
            |bytes| {
                let arrays = RawDocument::from_bytes(bytes)?.get_array("weights")?.into_iter();
                arrays.map(|array| Ok(array?.as_document().context("a document")?.get_binary("data")?.bytes)).collect()
            },
            passes,
        ),
    }
}

/// Opens the model, looks where its payloads are, and drops both behind the clock.
fn arrays<M>(
    open: impl Fn() -> Result<M>,
    payloads: impl Fn(&M) -> Result<Payloads<&[u8]>>,
    passes: &Passes,
) -> Result<String> {
    let model = open()?;
    let answer = answer(payloads(&model)?.into_iter().map(|payload| (payload.len() / 4, sum(payload))));
    drop(model);
    let figures: Figures = passes.time_prepared(
        || Ok(()),
        |()| {
            let model = open()?;
            std::hint::black_box(payloads(&model)?);
            Ok(model)
        },
    )?;
    Ok(format!("{answer} {figures}"))
}

fn answer(arrays: impl Iterator<Item = (usize, f64)>) -> String {
    let (mut count, mut floats, mut all) = (0, 0, 0.0);
    for (len, sum) in arrays {
        count += 1;
        floats += len;
        all += sum;
    }
    format!("count={count} floats={floats} sum={}", (all * 256.0) as u64)
}

/// The sum of little-endian floats, wherever they lie, in eight parts that a processor can add at once.
fn sum(bytes: &[u8]) -> f64 {
    let mut parts = [0.0; 8];
    let (blocks, rest) = bytes.as_chunks::<4>().0.as_chunks::<8>();
    for block in blocks {
        for (part, float) in parts.iter_mut().zip(block) {
            *part += f64::from(f32::from_le_bytes(*float));
        }
    }
    rest.iter().map(|float| f64::from(f32::from_le_bytes(*float))).chain(parts).sum()
}
