//! One int near the end of a document with many members, found by name; or all members.
//!
//! Each get starts from the bytes of the document (`index` builds its index each time); no state is kept between gets.

use std::fmt;
use std::hint::black_box;

use anyhow::{Context, Result, bail};
use bson::{Bson, RawBsonRef, RawDocument};
use clap::ValueEnum;
use millstream::bson::{Document, ValueRef};
use millstream_runners::documents::Wide;
use serde::Deserialize;

use crate::passes::Passes;
use crate::tally::sixty_fourths;

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// Millstream, with `get` on the bytes.
    Get,
    /// Millstream: builds an index of all members, then looks up one.
    Index,
    /// Millstream: builds an index, then looks up each member by name.
    IndexAllByName,
    /// Millstream, all members in order.
    IterAll,
    /// The `bson` crate, with `get` on the bytes.
    BsonRaw,
    /// The `bson` crate, into a struct with only this field.
    BsonStruct,
    /// The `bson` crate's tree.
    BsonDocument,
    /// The `bson` crate, all members in order.
    BsonRawAll,
    /// The `bson` crate's tree, all members by name.
    BsonDocumentAllByName,
}

/// The requested key.
const KEY: &str = "field_0988";

#[derive(Deserialize)]
struct One {
    field_0988: i32,
}

/// Sums over all members.
#[derive(Default)]
struct Sums {
    ints: u64,
    doubles: f64,
    text: usize,
    bytes: usize,
}

impl Sums {
    fn add(&mut self, value: ValueRef<'_>) -> Result<()> {
        match value {
            ValueRef::Int32(value) => self.ints += value as u64,
            ValueRef::Double(value) => self.doubles += value,
            ValueRef::String(text) => self.text += text.len(),
            ValueRef::Binary { bytes, .. } => self.bytes += bytes.len(),
            other => bail!("{other:?} is no type of this document"),
        }
        Ok(())
    }

    fn add_raw(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        match value {
            RawBsonRef::Int32(value) => self.ints += value as u64,
            RawBsonRef::Double(value) => self.doubles += value,
            RawBsonRef::String(text) => self.text += text.len(),
            RawBsonRef::Binary(binary) => self.bytes += binary.bytes.len(),
            other => bail!("{other:?} is no type of this document"),
        }
        Ok(())
    }

    fn add_bson(&mut self, value: &Bson) -> Result<()> {
        match value {
            Bson::Int32(value) => self.ints += *value as u64,
            Bson::Double(value) => self.doubles += value,
            Bson::String(text) => self.text += text.len(),
            Bson::Binary(binary) => self.bytes += binary.bytes.len(),
            other => bail!("{other:?} is no type of this document"),
        }
        Ok(())
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sums { ints, doubles, text, bytes } = self;
        write!(f, "ints={ints} doubles={} text={text} bytes={bytes}", sixty_fourths(*doubles))
    }
}

pub fn run(way: Way, bytes: &[u8], gets: u64, passes: &Passes) -> Result<String> {
    let one = |get: &dyn Fn() -> Result<i32>| {
        let value = get()?;
        let figures = passes.time(|| {
            for _ in 0..gets {
                black_box(get()?);
            }
            Ok(())
        })?;
        Ok(format!("value={value} {figures}"))
    };
    let all = |look: &dyn Fn(&mut Sums) -> Result<()>| {
        let mut sums = Sums::default();
        look(&mut sums)?;
        let figures = passes.time(|| {
            for _ in 0..gets {
                look(black_box(&mut Sums::default()))?;
            }
            Ok(())
        })?;
        Ok(format!("{sums} {figures}"))
    };
    let keys: Vec<String> = (0..).map(Wide::key).take(1000).collect();
    let bytes = || black_box(bytes);
    match way {
        Way::Get => one(&|| Ok(Document::new(bytes())?.require(KEY)?)),
        Way::Index => one(&|| Ok(Document::new(bytes())?.index()?.require(KEY)?)),
        Way::IndexAllByName => all(&|sums| {
            let index = Document::new(bytes())?.index()?;
            keys.iter().try_for_each(|key| sums.add(index.require(key)?))
        }),
        Way::IterAll => all(&|sums| Document::new(bytes())?.iter().try_for_each(|member| sums.add(member?.value()?))),
        Way::BsonRaw => one(&|| Ok(RawDocument::from_bytes(bytes())?.get_i32(KEY)?)),
        Way::BsonStruct => one(&|| Ok(bson::deserialize_from_slice::<One>(bytes())?.field_0988)),
        Way::BsonDocument => one(&|| Ok(tree(bytes())?.get_i32(KEY)?)),
        Way::BsonRawAll => {
            all(&|sums| RawDocument::from_bytes(bytes())?.iter().try_for_each(|member| sums.add_raw(member?.1)))
        }
        Way::BsonDocumentAllByName => all(&|sums| {
            let document = tree(bytes())?;
            keys.iter().try_for_each(|key| {
                let value = document.get(key).context("every field is there")?;
                sums.add_bson(value)
            })
        }),
    }
}

fn tree(bytes: &[u8]) -> Result<bson::Document> {
    Ok(RawDocument::from_bytes(bytes)?.try_into()?)
}
