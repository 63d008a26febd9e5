//! Nested documents, decoded by all compared implementations.

use anyhow::Result;
use bson::RawDocument;
use clap::ValueEnum;
use millstream::bson::{self as ms, FromBson, Map};
use serde::{Deserialize, Serialize};

use crate::input::{decode_each, documents, json, lines};
use crate::passes::Passes;
use crate::tally::{Tally, sixty_fourths};

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// Millstream's serde, into structs with owned strings.
    SerdeOwned,
    /// Millstream's serde, into structs with borrowed strings.
    SerdeBorrowed,
    /// Millstream's derived codec, into structs with owned strings.
    DeriveOwned,
    /// Millstream's derived codec, into structs with borrowed strings.
    DeriveBorrowed,
    /// Millstream's tree.
    Map,
    /// The `bson` crate, into structs with owned strings.
    BsonOwned,
    /// The `bson` crate, into structs with borrowed strings.
    BsonBorrowed,
    /// The `bson` crate's tree.
    BsonDocument,
    /// serde_json, on the same orders.
    SerdeJsonOwned,
    SerdeJsonBorrowed,
}

#[derive(Serialize, Deserialize, FromBson)]
pub struct Order<Text> {
    pub order: i64,
    pub customer: Customer<Text>,
    pub items: Vec<Item<Text>>,
}

#[derive(Serialize, Deserialize, FromBson)]
pub struct Customer<Text> {
    pub name: Text,
    pub address: Address<Text>,
}

#[derive(Serialize, Deserialize, FromBson)]
pub struct Address<Text> {
    pub street: Text,
    pub city: Text,
    pub zip: Text,
}

#[derive(Serialize, Deserialize, FromBson)]
pub struct Item<Text> {
    pub sku: Text,
    pub quantity: i32,
    pub price: f64,
    pub options: Vec<Text>,
}

impl Tally {
    /// Adds every field of an order to the sums.
    pub fn add_order<Text: AsRef<str>>(&mut self, order: &Order<Text>) {
        let Order { order, customer: Customer { name, address }, items } = order;
        self.add("orders", *order as u64);
        for text in [name, &address.street, &address.city, &address.zip] {
            self.add("text", text.as_ref().len() as u64);
        }
        for Item { sku, quantity, price, options } in items {
            self.add("count", 1);
            self.add("text", sku.as_ref().len() as u64);
            self.add("quantity", *quantity as u64);
            self.add("prices", sixty_fourths(*price));
            for option in options {
                self.add("options", 1);
                self.add("text", option.as_ref().len() as u64);
            }
        }
    }
}

pub fn run(way: Way, bytes: &[u8], passes: &Passes) -> Result<String> {
    let mut tally = Tally::default();
    let each = || documents(bytes);
    let json = match way {
        Way::SerdeJsonOwned | Way::SerdeJsonBorrowed => {
            json(each().map(|bytes| Ok(bson::deserialize_from_slice::<Order<&str>>(bytes)?)))?
        }
        _ => Vec::new(),
    };
    let json = || lines(&json);
    let figures = match way {
        Way::SerdeOwned => decode_each(each, ms::from_slice, |order: &Order<String>| tally.add_order(order), passes),
        Way::SerdeBorrowed => decode_each(each, ms::from_slice, |order: &Order<&str>| tally.add_order(order), passes),
        Way::DeriveOwned => decode_each(each, ms::decode, |order: &Order<String>| tally.add_order(order), passes),
        Way::DeriveBorrowed => decode_each(each, ms::decode, |order: &Order<&str>| tally.add_order(order), passes),
        Way::Map => {
            for document in each() {
                // The content of the tree is checked by serialising it and decoding the result into structs.
                let bytes = Map::from_slice(document)?.to_vec()?;
                tally.add_order::<&str>(&ms::decode(&bytes)?);
            }
            decode_each(each, Map::from_slice, |_| (), passes)
        }
        Way::BsonOwned => {
            decode_each(each, bson::deserialize_from_slice, |order: &Order<String>| tally.add_order(order), passes)
        }
        Way::BsonBorrowed => {
            decode_each(each, bson::deserialize_from_slice, |order: &Order<&str>| tally.add_order(order), passes)
        }
        Way::BsonDocument => {
            for document in each() {
                tally.add_order::<String>(&bson::deserialize_from_document(tree(document)?)?);
            }
            decode_each(each, tree, |_| (), passes)
        }
        Way::SerdeJsonOwned => {
            decode_each(json, serde_json::from_slice, |order: &Order<String>| tally.add_order(order), passes)
        }
        Way::SerdeJsonBorrowed => {
            decode_each(json, serde_json::from_slice, |order: &Order<&str>| tally.add_order(order), passes)
        }
    }?;
    Ok(format!("{tally}{figures}"))
}

fn tree(bytes: &[u8]) -> Result<bson::Document> {
    Ok(RawDocument::from_bytes(bytes)?.try_into()?)
}
