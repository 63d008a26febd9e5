//! The arrays of a model: read as a whole, copied, or viewed in place.
//!
//! The measured time includes opening and reading the file. The answer is the number of arrays, the number of floats,
//! and their sum in units of 1/256, which is exact.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::Path;

use anyhow::{Context, Result};
use bson::RawDocument;
use clap::ValueEnum;
use millstream::bson::{Array, Document, Mapped, View};
use millstream_runners::documents::Weights;
use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::passes::{Figures, Passes};

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// Millstream: the file is mapped, and the position of each array is found.
    Views,
    /// Millstream: views of a model with a tenth of the numbers. It is first created next to the input.
    ViewsTenth,
    /// Millstream: views of all arrays, with the sum of every float.
    ViewsSummed,
    /// Millstream: every array is copied from the mapped file into a vector of floats.
    Copied,
    /// The lower limit for all runners that read: the bytes are read but not processed.
    FsRead,
    /// The `bson` crate's tree, from a reader.
    BsonReader,
    /// The `bson` crate, on the file in memory, into structs with copies of the payloads.
    BsonOwned,
    /// The `bson` crate, on the file in memory, with slices of the payloads.
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
        Way::Views => views(path, passes),
        Way::ViewsTenth => {
            // The name of the input contains its scale, as the benchmark tool creates it: `weights-1-3.bson`.
            let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            let divisor: u64 =
                name.split('-').nth(1).context("the name of the input is not of the form weights-1-N.bson")?.parse()?;
            let mut tenth = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
            Weights { divisor: 10 * divisor, seed: 3 }.write(&mut BufWriter::new(tenth.as_file_mut()))?;
            views(tenth.path(), passes)
        }
        Way::ViewsSummed => {
            let summed = || {
                let model = Mapped::open(path)?;
                Ok::<_, anyhow::Error>(answer(arrays(&model)?.iter().map(|view| (view.len(), sum(view)))))
            };
            let answer = summed()?;
            Ok(format!("{answer} {}", passes.time_prepared(|| Ok(()), |()| summed())?))
        }
        Way::Copied => {
            let copied = || {
                let model = Mapped::open(path)?;
                Ok::<_, anyhow::Error>(arrays(&model)?.iter().map(View::to_vec).collect::<Vec<Vec<f32>>>())
            };
            let answer =
                answer(copied()?.iter().map(|floats| (floats.len(), floats.iter().copied().map(f64::from).sum())));
            Ok(format!("{answer} {}", passes.time_prepared(|| Ok(()), |()| copied())?))
        }
        Way::FsRead => {
            let len = fs::read(path)?.len();
            let figures = passes.time_prepared(|| Ok(()), |()| Ok(fs::read(path)?))?;
            Ok(format!("bytes={len} {figures}"))
        }
        Way::BsonReader => competitor(
            || Ok(bson::Document::from_reader(BufReader::with_capacity(1 << 18, File::open(path)?))?),
            |document| {
                let arrays = document.get_array("weights")?.iter();
                arrays
                    .map(|array| Ok(&array.as_document().context("a document")?.get_binary_generic("data")?[..]))
                    .collect()
            },
            passes,
        ),
        Way::BsonOwned => competitor(
            || Ok(bson::deserialize_from_slice::<Model>(&fs::read(path)?)?),
            |model| Ok(model.weights.iter().map(|array| &array.data.bytes[..]).collect()),
            passes,
        ),
        Way::BsonRaw => competitor(
            || Ok(fs::read(path)?),
            |bytes| {
                let arrays = RawDocument::from_bytes(bytes)?.get_array("weights")?.into_iter();
                arrays.map(|array| Ok(array?.as_document().context("a document")?.get_binary("data")?.bytes)).collect()
            },
            passes,
        ),
    }
}

/// Millstream's views of all arrays, whose content is not accessed.
fn views(path: &Path, passes: &Passes) -> Result<String> {
    let model = Mapped::open(path)?;
    let answer = answer(arrays(&model)?.iter().map(|view| (view.len(), sum(view))));
    let figures = passes.time_prepared(
        || Ok(()),
        |()| {
            let model = Mapped::open(path)?;
            std::hint::black_box(arrays(&model)?);
            Ok(model)
        },
    )?;
    Ok(format!("{answer} {figures}"))
}

/// Finds the arrays.
fn arrays(model: &Mapped) -> millstream::Result<Vec<View<'_, f32>>> {
    let weights: Array = model.document()?.require("weights")?;
    weights.iter().map(|array| array?.get::<Document>()?.require("data")).collect()
}

/// Opens the model and finds its payloads. Both are dropped after the clock has stopped.
fn competitor<M>(
    open: impl Fn() -> Result<M>,
    payloads: impl Fn(&M) -> Result<Payloads<&[u8]>>,
    passes: &Passes,
) -> Result<String> {
    let model = open()?;
    let answer = answer(payloads(&model)?.into_iter().map(|payload| (payload.len() / 4, sum_bytes(payload))));
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

/// Sums all floats in eight partial sums, which a processor can update in parallel.
fn sum(view: &View<'_, f32>) -> f64 {
    let (groups, rest) = view.groups::<8>();
    let parts = groups.fold([0.0; 8], |mut parts, group| {
        for (part, float) in parts.iter_mut().zip(group) {
            *part += f64::from(float);
        }
        parts
    });
    rest.iter().map(f64::from).chain(parts).sum()
}

/// Sums floats stored as bytes, for runners without views.
fn sum_bytes(bytes: &[u8]) -> f64 {
    let floats = bytes.as_chunks().0.iter();
    floats.map(|float| f64::from(f32::from_le_bytes(*float))).sum()
}
