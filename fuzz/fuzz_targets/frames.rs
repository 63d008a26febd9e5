//! Compares every framer with its reference implementation, with random splits, both one record at a time and in
//! batches.
//!
//! The first bytes of an input select the framer, its parameters, the splits and the batch size; the rest is the
//! stream.
#![no_main]

#[path = "../../crates/core/tests/frame_twin/mod.rs"]
#[expect(dead_code, reason = "the shared vectors are a test, not a fuzz target")]
mod frame_twin;

use frame_twin::{by_batches, by_steps, framer, naive};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, parameter, max, first, second], rest)) = data.split_first_chunk() else { return };
    let Some((words, stream)) = words(kind, parameter, rest) else { return };
    let mut splits = [first, second].map(|split| usize::from(split) % (stream.len() + 1));
    splits.sort_unstable();

    let expected = naive(&words, stream);
    assert_eq!(by_steps(&mut *framer(&words), stream, &splits), expected, "{words}");
    let max = if max == 0 { usize::MAX } else { max.into() };
    assert_eq!(by_batches(&mut *framer(&words), stream, &splits, max), expected, "{words}");
});

/// Returns the framer as text, and the stream: the part of `rest` after a delimiter of several bytes.
fn words(kind: u8, parameter: u8, rest: &[u8]) -> Option<(String, &[u8])> {
    let untrimmed = if kind >= 128 { " untrimmed" } else { "" };
    let few = usize::from(parameter % 4) + 1;
    let words = match kind % 8 {
        0 => format!("lines{untrimmed}"),
        1 => format!("byte {parameter:02x}{untrimmed}"),
        2 | 3 => {
            let (delimiter, stream) = rest.split_at_checked(few)?;
            let hex: String = delimiter.iter().map(|byte| format!("{byte:02x}")).collect();
            let name = if kind % 8 == 2 { "bytes" } else { "any-of" };
            return Some((format!("{name} {hex}{untrimmed}"), stream));
        }
        4 => format!("char {}{untrimmed}", ["3b", "e9", "2192", "1f980"][few - 1]),
        5 => format!("fixed {}", u32::from(parameter) + 1),
        kind => format!(
            "prefix {} {} {}",
            ["u8", "u16", "u32", "u64"][few - 1],
            if kind == 6 { "little" } else { "big" },
            if untrimmed.is_empty() { "payload" } else { "itself" },
        ),
    };
    Some((words, rest))
}
