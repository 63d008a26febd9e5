//! Small typed records as columns: vectors of one type, in Arrow's layout.

use std::hint::black_box;

use anyhow::{Context, Result};
use clap::ValueEnum;
use millstream::bson::Document;
use millstream::bson::columns::{Columns, DataType, Field, Inference, OnMixed, Options, Schema, Values};

use crate::input::documents;
use crate::passes::Passes;
use crate::tally::{Tally, sixty_fourths};

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// The types of the columns are given.
    Given,
    /// The types are inferred from the first thousand records, which is part of the measured time.
    Inferred,
}

pub fn run(way: Way, bytes: &[u8], passes: &Passes) -> Result<String> {
    let columns = || match way {
        Way::Given => columns(bytes, &schema()?),
        Way::Inferred => columns(bytes, &inferred(bytes)?),
    };
    let tally = tally(&columns()?)?;
    let figures = passes.time_prepared(|| Ok(()), |()| Ok(black_box(columns()?)))?;
    Ok(format!("{tally}{figures}"))
}

fn schema() -> millstream::Result<Schema> {
    let tags = DataType::List(Box::new(DataType::String));
    Schema::new([
        Field::new("id", DataType::Int64)?,
        Field::new("name", DataType::String)?,
        Field::new("score", DataType::Double)?,
        Field::new("tags", tags)?,
        Field::new("active", DataType::Bool)?,
        Field::new("created", DataType::DateTime)?,
    ])
}

fn inferred(bytes: &[u8]) -> millstream::Result<Schema> {
    let mut inference = Inference::new();
    for document in documents(bytes).take(1000) {
        inference.observe(&Document::new(document)?)?;
    }
    inference.schema(OnMixed::Error)
}

fn columns(bytes: &[u8], schema: &Schema) -> Result<Columns> {
    let mut columns = Columns::new(schema, Options::new())?;
    for document in documents(bytes) {
        columns.append(&Document::new(document)?)?;
    }
    Ok(columns)
}

fn tally(columns: &Columns) -> Result<Tally> {
    let mut tally = Tally::default();
    tally.add("count", columns.len() as u64);
    for (name, sum) in
        [("id", "ids"), ("name", "text"), ("score", "scores"), ("active", "active"), ("created", "created")]
    {
        let column = columns.column(name).context(name)?;
        match column.values() {
            Values::Int64(values) | Values::DateTime(values) => {
                values.iter().for_each(|&value| tally.add(sum, value as u64))
            }
            Values::Double(values) => values.iter().for_each(|&value| tally.add(sum, sixty_fourths(value))),
            Values::Bool(bits) => (0..bits.len()).for_each(|row| tally.add(sum, u64::from(bits.get(row)))),
            Values::String(pieces) => tally.add(sum, pieces.bytes().len() as u64),
            other => anyhow::bail!("{name}: {other:?}"),
        }
    }
    let Values::List(tags) = columns.column("tags").context("tags")?.values() else {
        anyhow::bail!("the column `tags` contains no lists")
    };
    tally.add("tags", tags.items().len() as u64);
    let Values::String(pieces) = tags.items().values() else { anyhow::bail!("a tag is not a string") };
    tally.add("text", pieces.bytes().len() as u64);
    Ok(tally)
}
