//! Documents to read: BSON files that are generated from a seed and are identical on every machine.
//!
//! The code here writes the bytes directly, from <https://bsonspec.org/spec.html>, so neither the library under test
//! nor a competitor has created the input. Text is mostly ASCII; one name in sixteen is not. Numbers with a fraction
//! are small multiples of a power of two, so their sum is exact in any order.

use std::io::{self, Write};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

/// Small typed records, one document after another: `{id: long, name: string, score: double, tags: [string; 1–4],
/// active: bool, created: date}`, about 120 bytes each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// The number of records.
    pub count: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Nested documents: `{order: long, customer: {name, address: {street, city, zip}}, items: [8 × {sku: string,
/// quantity: int, price: double, options: [string; 0–3]}]}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    /// The number of orders. Each has [`Orders::ITEMS`] items.
    pub count: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// One document with many fields `field_0000`, `field_0001`, …, which are an int, a double, a string and a binary in
/// turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wide {
    /// The number of fields, at most 10,000.
    pub fields: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The 38 arrays of VGG-19, an image model, in the layout of Julia's BSON.jl for `Dict(:weights => [W, b, …])`:
/// float32, 548 MiB in total.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// The last dimension of each array is divided by this; 1 is the whole model.
    pub divisor: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Documents that all differ: optional members of 14 types, nested up to five levels deep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Irregular {
    /// The number of documents.
    pub count: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

impl Records {
    /// Writes all records.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut document = Builder::default();
        for number in 0..self.count {
            document.whole(|document| {
                // The number needs more than 32 bits, so that every language writes it as a long.
                document.long("id", (1 << 40) + number as i64);
                document.text("name", &name(&mut random));
                document.double("score", sixty_fourths(&mut random));
                let tags = 1 + below(&mut random, 4);
                document.array("tags", tags, |document, key| document.text(key, &word(&mut random, 3, 8)));
                document.boolean("active", below(&mut random, 4) > 0);
                document.date("created", date(&mut random));
            });
            out.write_all(&document.take())?;
        }
        Ok(())
    }
}

impl Orders {
    /// The number of items in each order.
    pub const ITEMS: u64 = 8;

    /// Writes all orders.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut document = Builder::default();
        for number in 0..self.count {
            document.whole(|document| {
                document.long("order", (1 << 40) + number as i64);
                document.document("customer", |document| {
                    document.text("name", &name(&mut random));
                    document.document("address", |document| {
                        document
                            .text("street", &format!("{} {}", word(&mut random, 6, 12), 1 + below(&mut random, 200)));
                        document.text("city", &word(&mut random, 4, 10));
                        document.text("zip", &format!("{:05}", below(&mut random, 100_000)));
                    });
                });
                document.array("items", Orders::ITEMS, |document, key| {
                    document.document(key, |document| {
                        document.text("sku", &format!("SKU-{:08}", below(&mut random, 100_000_000)));
                        document.int("quantity", 1 + below(&mut random, 20) as i32);
                        document.double("price", sixty_fourths(&mut random));
                        let options = below(&mut random, 4);
                        document.array("options", options, |document, key| {
                            document.text(key, &word(&mut random, 3, 9));
                        });
                    });
                });
            });
            out.write_all(&document.take())?;
        }
        Ok(())
    }
}

impl Wide {
    /// Writes the document.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut document = Builder::default();
        document.whole(|document| {
            for number in 0..self.fields {
                let key = Wide::key(number);
                match number % 4 {
                    0 => document.int(&key, below(&mut random, 1 << 20) as i32),
                    1 => document.double(&key, sixty_fourths(&mut random)),
                    2 => document.text(&key, &word(&mut random, 4, 20)),
                    _ => document.binary(&key, &random.next_u64().to_le_bytes().repeat(2)),
                }
            }
        });
        out.write_all(&document.take())
    }

    /// The key of a field.
    pub fn key(number: u64) -> String {
        format!("field_{number:04}")
    }
}

impl Weights {
    /// The dimensions of each of the model's arrays.
    fn shapes(&self) -> Vec<Vec<u64>> {
        // The convolutions are 3 × 3, from one number of channels to the next, followed by three dense layers.
        let channels = [3, 64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512, 512, 512, 512, 512];
        let convolutions = channels.windows(2).flat_map(|pair| [vec![3, 3, pair[0], pair[1]], vec![pair[1]]]);
        let dense = [25_088, 4096, 4096, 1000];
        let dense = dense.windows(2).flat_map(|pair| [vec![pair[0], pair[1]], vec![pair[1]]]);
        let mut shapes: Vec<Vec<u64>> = convolutions.chain(dense).collect();
        for last in shapes.iter_mut().filter_map(|shape| shape.last_mut()) {
            *last = last.div_ceil(self.divisor);
        }
        shapes
    }

    /// Writes the document, whose payloads are never in memory as a whole.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let shapes = self.shapes();
        let mut document = Builder::default();
        document.whole(|document| {
            let mut shapes = shapes.iter();
            document.array("weights", shapes.len() as u64, |document, key| {
                let shape = shapes.next().expect("as many as announced");
                document.document(key, |document| {
                    document.text("tag", "array");
                    document.document("type", |document| {
                        document.text("tag", "datatype");
                        document.array("params", 0, |_, _| ());
                        let mut path = ["Core", "Float32"].iter();
                        document.array("name", 2, |document, key| document.text(key, path.next().expect("two")));
                    });
                    let mut sizes = shape.iter();
                    document.array("size", shape.len() as u64, |document, key| {
                        document.long(key, *sizes.next().expect("as many as announced") as i64);
                    });
                    document.binary_later("data", shape.iter().product::<u64>() * 4);
                });
            });
        });

        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut from = 0;
        let mut block = Vec::with_capacity(1 << 16);
        for &(at, len) in &document.holes {
            out.write_all(&document.bytes[from..at])?;
            from = at;
            for _ in 0..len / 4 {
                // From 0 to 8 in steps of 1/256.
                let value = below(&mut random, 2049) as f32 / 256.0;
                block.extend_from_slice(&value.to_le_bytes());
                if block.len() == block.capacity() {
                    out.write_all(&block)?;
                    block.clear();
                }
            }
            out.write_all(&block)?;
            block.clear();
        }
        out.write_all(&document.bytes[from..])
    }
}

impl Irregular {
    /// Writes all documents.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut document = Builder::default();
        for _ in 0..self.count {
            document.whole(|document| irregular_members(document, &mut random, 4));
            out.write_all(&document.take())?;
        }
        Ok(())
    }
}

fn irregular_members(document: &mut Builder, random: &mut SplitMix64, deeper: u64) {
    let members = 2 + below(random, 12);
    for number in 0..members {
        // The number makes each key unique within its document.
        let key = format!("{}{number}", word(random, 2, 10));
        irregular(document, &key, random, deeper);
    }
}

fn irregular(document: &mut Builder, key: &str, random: &mut SplitMix64, deeper: u64) {
    let number = random.next_u64();
    match below(random, if deeper > 0 { 16 } else { 12 }) {
        0 => document.int(key, number as i32),
        1 => document.long(key, number as i64),
        2 => document.double(key, sixty_fourths(random)),
        3 => document.boolean(key, number % 2 == 1),
        4 => document.null(key),
        5 => document.date(key, date(random)),
        6 => document.object_id(key, number),
        7 => document.binary(key, &vec![number as u8; (number >> 58) as usize]),
        8 => document.timestamp(key, number),
        9 => document.regex(key, &word(random, 2, 12)),
        10 | 11 => document.text(key, &name(random)),
        12 | 13 => document.document(key, |document| irregular_members(document, random, deeper - 1)),
        _ => {
            let count = number % 9;
            document.array(key, count, |document, key| irregular(document, key, random, deeper - 1));
        }
    }
}

/// Returns a number below `limit`, which must be small: the bias of the remainder is then negligible.
fn below(random: &mut SplitMix64, limit: u64) -> u64 {
    random.next_u64() % limit
}

/// Returns a word of `least` to `most` lower-case letters.
fn word(random: &mut SplitMix64, least: u64, most: u64) -> String {
    let length = least + below(random, most - least + 1);
    (0..length).map(|_| char::from(b'a' + below(random, 26) as u8)).collect()
}

/// Returns two words; in one name of sixteen, the second begins with an umlaut.
fn name(random: &mut SplitMix64) -> String {
    let umlaut = if below(random, 16) == 0 { "ö" } else { "" };
    format!("{} {umlaut}{}", word(random, 3, 7), word(random, 4, 9))
}

/// Returns a multiple of 1/64, from 0 to below 16,384.
fn sixty_fourths(random: &mut SplitMix64) -> f64 {
    below(random, 1 << 20) as f64 / 64.0
}

/// Returns a date in the twenty years from 2010, in milliseconds since 1970.
fn date(random: &mut SplitMix64) -> i64 {
    1_262_304_000_000 + below(random, 20 * 365 * 86_400_000) as i64
}

/// A document being written. The bytes of some payloads, called holes, are written later by the caller.
#[derive(Default)]
struct Builder {
    bytes: Vec<u8>,
    /// The position of each hole in `bytes`, and its length.
    holes: Vec<(usize, u64)>,
}

impl Builder {
    /// Writes an outermost document.
    fn whole(&mut self, members: impl FnOnce(&mut Builder)) {
        let start = self.bytes.len();
        let holes = self.holes.len();
        self.bytes.extend([0; 4]);
        members(self);
        self.bytes.push(0);
        let in_holes: u64 = self.holes[holes..].iter().map(|&(_, len)| len).sum();
        let len = (self.bytes.len() - start) as u64 + in_holes;
        let len = i32::try_from(len).expect("inputs are smaller than 2 GiB");
        self.bytes[start..start + 4].copy_from_slice(&len.to_le_bytes());
    }

    /// Returns the bytes written so far and clears the builder.
    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn element(&mut self, kind: u8, key: &str, payload: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend(key.as_bytes());
        self.bytes.push(0);
        self.bytes.extend(payload);
    }

    fn length(&mut self, len: u64) {
        self.bytes.extend(i32::try_from(len).expect("inputs are smaller than 2 GiB").to_le_bytes());
    }

    fn double(&mut self, key: &str, value: f64) {
        self.element(0x01, key, &value.to_le_bytes());
    }

    fn text(&mut self, key: &str, value: &str) {
        self.element(0x02, key, &[]);
        self.length(value.len() as u64 + 1);
        self.bytes.extend(value.as_bytes());
        self.bytes.push(0);
    }

    fn document(&mut self, key: &str, members: impl FnOnce(&mut Builder)) {
        self.element(0x03, key, &[]);
        self.whole(members);
    }

    fn array(&mut self, key: &str, count: u64, mut element: impl FnMut(&mut Builder, &str)) {
        self.element(0x04, key, &[]);
        self.whole(|builder| {
            for number in 0..count {
                element(builder, &number.to_string());
            }
        });
    }

    fn binary(&mut self, key: &str, value: &[u8]) {
        self.element(0x05, key, &[]);
        self.length(value.len() as u64);
        self.bytes.push(0);
        self.bytes.extend(value);
    }

    /// Writes a binary whose payload is left out.
    fn binary_later(&mut self, key: &str, len: u64) {
        self.element(0x05, key, &[]);
        self.length(len);
        self.bytes.push(0);
        self.holes.push((self.bytes.len(), len));
    }

    fn object_id(&mut self, key: &str, value: u64) {
        let mut bytes = [7; 12];
        bytes[..8].copy_from_slice(&value.to_be_bytes());
        self.element(0x07, key, &bytes);
    }

    fn boolean(&mut self, key: &str, value: bool) {
        self.element(0x08, key, &[u8::from(value)]);
    }

    fn date(&mut self, key: &str, milliseconds: i64) {
        self.element(0x09, key, &milliseconds.to_le_bytes());
    }

    fn null(&mut self, key: &str) {
        self.element(0x0a, key, &[]);
    }

    fn regex(&mut self, key: &str, pattern: &str) {
        self.element(0x0b, key, pattern.as_bytes());
        self.bytes.extend(b"\0i\0");
    }

    fn int(&mut self, key: &str, value: i32) {
        self.element(0x10, key, &value.to_le_bytes());
    }

    fn timestamp(&mut self, key: &str, value: u64) {
        self.element(0x11, key, &value.to_le_bytes());
    }

    fn long(&mut self, key: &str, value: i64) {
        self.element(0x12, key, &value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every document of a file, as decoded by the `bson` crate, and the bytes.
    fn read(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> (Vec<bson::Document>, Vec<u8>) {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        let mut rest = &bytes[..];
        let mut documents = Vec::new();
        while !rest.is_empty() {
            documents.push(bson::Document::from_reader(&mut rest).unwrap());
        }
        (documents, bytes)
    }

    #[test]
    fn records_have_the_length_that_was_asked_for() {
        let (documents, bytes) = read(|out| Records { count: 1000, seed: 1 }.write(out));
        assert_eq!(documents.len(), 1000);
        assert!((115..130).contains(&(bytes.len() / 1000)), "{}", bytes.len());
        assert_eq!(documents[7].get_i64("id").unwrap(), (1 << 40) + 7);
        assert!(documents.iter().all(|document| (1..=4).contains(&document.get_array("tags").unwrap().len())));
        assert!(documents.iter().any(|document| !document.get_str("name").unwrap().is_ascii()));
    }

    #[test]
    fn orders_have_eight_items() {
        let (documents, _) = read(|out| Orders { count: 10, seed: 1 }.write(out));
        assert_eq!(documents.len(), 10);
        assert!(documents.iter().all(|document| document.get_array("items").unwrap().len() == 8));
    }

    #[test]
    fn a_wide_document_has_every_field() {
        let (documents, _) = read(|out| Wide { fields: 1000, seed: 1 }.write(out));
        let keys: Vec<String> = documents[0].keys().cloned().collect();
        assert_eq!(keys, (0..1000).map(Wide::key).collect::<Vec<_>>());
    }

    #[test]
    fn the_whole_model_has_548_mib() {
        let floats =
            |divisor| Weights { divisor, seed: 1 }.shapes().iter().map(|shape| shape.iter().product::<u64>()).sum();
        let whole: u64 = floats(1);
        assert_eq!(whole, 143_667_240); // The number that the model's authors state.
        let small = Weights { divisor: 512, seed: 1 };
        let (documents, bytes) = read(|out| small.write(out));
        let arrays = documents[0].get_array("weights").unwrap();
        assert_eq!(arrays.len(), 38);
        let data: usize =
            arrays.iter().map(|array| array.as_document().unwrap().get_binary_generic("data").unwrap().len()).sum();
        assert_eq!(data as u64, 4 * floats(512));
        assert!(bytes.len() < data + 38 * 200);
    }

    #[test]
    fn irregular_documents_are_documents() {
        let (documents, _) = read(|out| Irregular { count: 100, seed: 1 }.write(out));
        assert_eq!(documents.len(), 100);
        assert_ne!(documents[0], documents[1]);
    }
}
