//! Small typed records, decoded by all compared implementations.

use anyhow::{Context, Result};
use bson::{Bson, RawDocument};
use clap::ValueEnum;
use millstream::bson::{self as ms, Array, Document, FromBson, Map, ToBson, Value};
use serde::{Deserialize, Serialize};

use crate::input::{decode_each, documents, json, lines};
use crate::passes::Passes;
use crate::tally::{Tally, sixty_fourths};

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// Millstream's serde, into a struct with owned strings.
    SerdeOwned,
    /// Millstream's serde, into a struct with borrowed strings.
    SerdeBorrowed,
    /// Millstream's derived codec, into a struct with owned strings.
    DeriveOwned,
    /// Millstream's derived codec, into a struct with borrowed strings.
    DeriveBorrowed,
    /// Millstream's validation of every byte.
    Walk,
    /// Millstream, with `get` on the bytes for each field.
    Get,
    /// Millstream's tree.
    Map,
    /// The `bson` crate, into a struct with owned strings.
    BsonOwned,
    /// The `bson` crate, into a struct with borrowed strings.
    BsonBorrowed,
    /// The `bson` crate's tree.
    BsonDocument,
    /// The `bson` crate, with `get` on the bytes for each field.
    BsonRaw,
    /// serde_json, on the same records.
    SerdeJsonOwned,
    SerdeJsonBorrowed,
    /// simd-json, on the same records. It parses in place, so each record is copied first.
    SimdJsonOwned,
    SimdJsonBorrowed,
}

/// A record with owned or borrowed strings, and with the decoder's own type for dates.
#[derive(Serialize, Deserialize, FromBson, ToBson)]
pub struct Record<Text, Date> {
    pub id: i64,
    pub name: Text,
    pub score: f64,
    pub tags: Vec<Text>,
    pub active: bool,
    pub created: Date,
}

/// A date as milliseconds since 1970.
pub trait Date {
    fn milliseconds(&self) -> i64;
}

impl Date for i64 {
    fn milliseconds(&self) -> i64 {
        *self
    }
}

impl Date for ms::DateTime {
    fn milliseconds(&self) -> i64 {
        self.0
    }
}

impl Date for bson::DateTime {
    fn milliseconds(&self) -> i64 {
        self.timestamp_millis()
    }
}

impl Tally {
    /// Adds every field of a record to the sums.
    pub fn add_record<Text: AsRef<str>, D: Date>(&mut self, record: &Record<Text, D>) {
        let tags = record.tags.iter().map(AsRef::as_ref);
        self.add_fields(
            record.id,
            record.name.as_ref(),
            record.score,
            tags,
            record.active,
            record.created.milliseconds(),
        );
    }

    fn add_fields<'a>(
        &mut self,
        id: i64,
        name: &str,
        score: f64,
        tags: impl Iterator<Item = &'a str>,
        active: bool,
        created: i64,
    ) {
        self.add("count", 1);
        self.add("ids", id as u64);
        self.add("text", name.len() as u64);
        self.add("scores", sixty_fourths(score));
        for tag in tags {
            self.add("tags", 1);
            self.add("text", tag.len() as u64);
        }
        self.add("active", u64::from(active));
        self.add("created", created as u64);
    }
}

pub fn run(way: Way, bytes: &[u8], passes: &Passes) -> Result<String> {
    let mut tally = Tally::default();
    let each = || documents(bytes);
    let json = match way {
        Way::SerdeJsonOwned | Way::SerdeJsonBorrowed | Way::SimdJsonOwned | Way::SimdJsonBorrowed => {
            json(each().map(as_json))?
        }
        _ => Vec::new(),
    };
    let json = || lines(&json);
    let mut buffers = simd_json::Buffers::default();
    let mut copy = Vec::new();
    let figures = match way {
        Way::SerdeOwned => {
            decode_each(each, ms::from_slice, |record: &Record<String, ms::DateTime>| tally.add_record(record), passes)
        }
        Way::SerdeBorrowed => {
            decode_each(each, ms::from_slice, |record: &Record<&str, ms::DateTime>| tally.add_record(record), passes)
        }
        Way::DeriveOwned => {
            decode_each(each, ms::decode, |record: &Record<String, ms::DateTime>| tally.add_record(record), passes)
        }
        Way::DeriveBorrowed => {
            decode_each(each, ms::decode, |record: &Record<&str, ms::DateTime>| tally.add_record(record), passes)
        }
        Way::Walk => decode_each(each, |bytes| Document::new(bytes)?.check(), |()| tally.add("count", 1), passes),
        Way::Get => decode_each(each, get, |record| tally.add_record(record), passes),
        Way::Map => decode_each(each, Map::from_slice, |map| add_map(&mut tally, map), passes),
        Way::BsonOwned => decode_each(
            each,
            bson::deserialize_from_slice,
            |record: &Record<String, bson::DateTime>| tally.add_record(record),
            passes,
        ),
        Way::BsonBorrowed => decode_each(
            each,
            bson::deserialize_from_slice,
            |record: &Record<&str, bson::DateTime>| tally.add_record(record),
            passes,
        ),
        Way::BsonDocument => decode_each(
            each,
            |bytes| bson::Document::try_from(RawDocument::from_bytes(bytes)?),
            |document: &bson::Document| add_document(&mut tally, document),
            passes,
        ),
        Way::BsonRaw => decode_each(each, raw, |record| tally.add_record(record), passes),
        Way::SerdeJsonOwned => {
            decode_each(json, serde_json::from_slice, |record: &Record<String, i64>| tally.add_record(record), passes)
        }
        Way::SerdeJsonBorrowed => {
            decode_each(json, serde_json::from_slice, |record: &Record<&str, i64>| tally.add_record(record), passes)
        }
        Way::SimdJsonOwned => decode_each(
            json,
            |line| {
                copy.clear();
                copy.extend_from_slice(line);
                simd_json::serde::from_slice_with_buffers(&mut copy, &mut buffers)
            },
            |record: &Record<String, i64>| tally.add_record(record),
            passes,
        ),
        Way::SimdJsonBorrowed => {
            // Borrowed data is valid only until the copy is dropped, so each record is checked before that.
            let mut parse = |line: &[u8], look: &mut dyn FnMut(&Record<&str, i64>)| -> Result<()> {
                copy.clear();
                copy.extend_from_slice(line);
                look(&simd_json::serde::from_slice_with_buffers(&mut copy, &mut buffers)?);
                Ok(())
            };
            for line in json() {
                parse(line, &mut |record| tally.add_record(record))?;
            }
            passes.time(|| {
                json().try_for_each(|line| {
                    parse(line, &mut |record| {
                        std::hint::black_box(record);
                    })
                })
            })
        }
    }?;
    Ok(format!("{tally}{figures}"))
}

fn as_json(bytes: &[u8]) -> Result<Record<&str, i64>> {
    let Record { id, name, score, tags, active, created } = bson::deserialize_from_slice(bytes)?;
    let created: bson::DateTime = created;
    Ok(Record { id, name, score, tags, active, created: created.timestamp_millis() })
}

fn get(bytes: &[u8]) -> millstream::Result<Record<&str, ms::DateTime>> {
    let document = Document::new(bytes)?;
    Ok(Record {
        id: document.require("id")?,
        name: document.require("name")?,
        score: document.require("score")?,
        tags: document.require::<Array>("tags")?.iter().map(|tag| tag?.get()).collect::<Result<_, _>>()?,
        active: document.require("active")?,
        created: document.require("created")?,
    })
}

fn add_map(tally: &mut Tally, map: &Map) {
    let created = match &map["created"] {
        Value::DateTime(date) => date.0,
        other => panic!("{other:?} is no date"),
    };
    let active = matches!(map["active"], Value::Bool(true));
    tally.add_fields(
        map["id"].as_i64().expect("a long"),
        map["name"].as_str().expect("text"),
        map["score"].as_f64().expect("a double"),
        map["tags"].as_array().expect("an array").iter().filter_map(Value::as_str),
        active,
        created,
    );
}

fn raw(bytes: &[u8]) -> Result<Record<&str, bson::DateTime>> {
    let document = RawDocument::from_bytes(bytes)?;
    Ok(Record {
        id: document.get_i64("id")?,
        name: document.get_str("name")?,
        score: document.get_f64("score")?,
        tags: document
            .get_array("tags")?
            .into_iter()
            .map(|tag| tag?.as_str().context("a tag is text"))
            .collect::<Result<_>>()?,
        active: document.get_bool("active")?,
        created: document.get_datetime("created")?,
    })
}

fn add_document(tally: &mut Tally, document: &bson::Document) {
    let field = |key| document.get(key).expect("every record has it");
    tally.add_fields(
        field("id").as_i64().expect("a long"),
        field("name").as_str().expect("text"),
        field("score").as_f64().expect("a double"),
        field("tags").as_array().expect("an array").iter().filter_map(Bson::as_str),
        field("active").as_bool().expect("a boolean"),
        field("created").as_datetime().expect("a date").timestamp_millis(),
    );
}
