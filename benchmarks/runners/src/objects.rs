//! JSON objects with an id, an amount, and members that are texts or, in the nested form, objects and arrays.
//!
//! Every program reads them in the same way: all objects have the same members, no text needs an escape, and no number
//! exceeds the types of the columns.

use std::io::{self, Write};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

/// Objects, one per line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objects {
    /// The number of bytes after which no further object is written.
    pub bytes: u64,
    /// Whether members are objects and arrays, too.
    pub nested: bool,
    /// Whether the file is one array, with an element in each line, instead of an object in each line.
    pub array: bool,
    /// The seed of the random numbers.
    pub seed: u64,
}

impl Objects {
    /// Writes the objects.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let (mut object, mut written, mut number) = (Vec::new(), 0, 0);
        if self.array {
            out.write_all(b"[\n")?;
        }
        while written < self.bytes {
            if self.array && number > 0 {
                object.extend_from_slice(b",\n");
            }
            let mut below = |limit: u64| random.next_u64() % limit; // The limits are small, so the bias is negligible.
            let word = |below: &mut dyn FnMut(u64) -> u64| -> String {
                (0..4 + below(12)).map(|_| char::from(b'a' + below(26) as u8)).collect()
            };
            write!(object, "{{\"id\":{number},\"amount\":{}", below(1_000_000))?;
            write!(object, ",\"price\":{}.{:02}", below(10_000), below(100))?;
            if self.nested {
                let (name, city) = (word(&mut below), word(&mut below));
                write!(
                    object,
                    ",\"user\":{{\"name\":\"{name}\",\"place\":{{\"city\":\"{city}\",\"zip\":{}}}}}",
                    below(100_000)
                )?;
                object.extend_from_slice(b",\"items\":[");
                for item in 0..1 + below(3) {
                    let comma = if item > 0 { "," } else { "" };
                    let sku = word(&mut below);
                    write!(
                        object,
                        "{comma}{{\"sku\":\"{sku}\",\"count\":{},\"gift\":{}}}",
                        1 + below(9),
                        below(2) == 0
                    )?;
                }
                write!(object, "],\"tags\":[\"{}\",\"{}\"]}}", word(&mut below), word(&mut below))?;
            } else {
                write!(object, ",\"paid\":{}", below(2) == 0)?;
                for name in ["name", "city", "note"] {
                    write!(object, ",\"{name}\":\"{}\"", word(&mut below))?;
                }
                object.push(b'}');
            }
            if !self.array {
                object.push(b'\n');
            }
            out.write_all(&object)?;
            written += object.len() as u64;
            number += 1;
            object.clear();
        }
        if self.array {
            out.write_all(b"\n]\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn text(nested: bool, array: bool) -> Vec<u8> {
        let mut text = Vec::new();
        Objects { bytes: 50_000, nested, array, seed: 1 }.write(&mut text).unwrap();
        text
    }

    #[test]
    fn an_array_has_the_objects_of_the_lines() {
        for nested in [false, true] {
            let lines = text(nested, false);
            let lines: Vec<Value> = lines
                .split_inclusive(|&byte| byte == b'\n')
                .map(|line| serde_json::from_slice(line).unwrap())
                .collect();
            let array: Vec<Value> = serde_json::from_slice(&text(nested, true)).unwrap();
            let shared = lines.len().min(array.len());
            assert!(shared > 100 && lines[..shared] == array[..shared]);
            assert!(lines.iter().zip(0..).all(|(object, id)| object["id"] == id));
            assert_eq!(lines[0]["items"].is_array(), nested);
        }
    }
}
