//! Compares the scanning of numbers, with random splits and as columns, with its reference implementation.
//!
//! The first bytes of an input select the type, the separator, the splits and the capacity; the rest is the stream.
#![no_main]

#[path = "../../crates/millstream/tests/scan_twin/mod.rs"]
mod scan_twin;

use libfuzzer_sys::fuzz_target;
use millstream::scan::{Separator, columns};
use millstream::{Decode, Reader};
use scan_twin::{TYPES, by_reader, naive, split};

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, separator, first, second, capacity], stream)) = data.split_first_chunk() else { return };
    let words = TYPES[usize::from(kind) % TYPES.len()];
    // Half of the inputs use white space, a quarter a comma, and a quarter any byte.
    let separator = match kind / 64 {
        0 | 1 => Separator::Space,
        2 => Separator::Byte(b','),
        _ => Separator::Byte(separator),
    };
    let mut splits = [first, second].map(|split| usize::from(split) % (stream.len() + 1));
    splits.sort_unstable();

    let expected = naive(words, separator, stream);
    let mut pieces = split(stream, &splits, usize::from(capacity) + 1);
    assert_eq!(by_reader(words, separator, &mut pieces), expected, "{words} {separator:?}");
    // The numbers are far from the end of the bytes here, where a different implementation is used.
    let mut memory = Reader::builder().decode(Decode::Off).memory(stream.to_vec()).unwrap();
    assert_eq!(by_reader(words, separator, &mut memory), expected, "{words} {separator:?}");

    let expected = naive("i64", separator, stream);
    let mut found = Vec::new();
    let mut error = None;
    for value in columns::<i64>(stream, separator) {
        match value {
            Ok(value) => found.push(value.to_string()),
            Err(wrong) => error = Some((wrong.kind(), wrong.offset().unwrap())),
        }
    }
    assert_eq!((found, error), (expected.0, expected.1.map(|(kind, offset, _)| (kind, offset))));
});
