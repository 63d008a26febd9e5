//! Compares the elements of documents and lines that are checked with a recursive parser, and with `serde_json`.
//!
//! The first bytes of an input select the pointer, the depth limit and the size of the pieces; the rest is the stream.
#![no_main]

#[path = "../../crates/core/tests/json_twin/mod.rs"]
mod json_twin;

use json_twin::{elements, filtered, lines, lines_by_batches, lines_by_steps};
use libfuzzer_sys::fuzz_target;
use millstream_core::frame::JsonLines;
use millstream_core::internal::JsonElements;
use serde_json::value::RawValue;

const POINTERS: [&[&str]; 6] = [&[], &["a"], &["0"], &["a", "b"], &["1", "a"], &[""]];
const LIMITS: [usize; 4] = [128, 1, 2, 5];

fuzz_target!(|data: &[u8]| {
    let Some((&[pointer, limit, piece, max], stream)) = data.split_first_chunk() else { return };
    let path = POINTERS[usize::from(pointer) % POINTERS.len()];
    let limit = LIMITS[usize::from(limit) % LIMITS.len()];
    let piece = usize::from(piece) + 1;

    let expected = elements(path, limit, stream);
    let pointer: String = path.iter().map(|name| format!("/{name}")).collect();
    let filter = JsonElements::new(&pointer).expect("these are pointers").depth(limit);
    let found = filtered(filter, stream.chunks(piece), 1 + usize::from(max) % 2);
    assert_eq!(found, expected, "{pointer} in pieces of {piece}");

    // serde_json refuses a mark, and text that is not UTF-8. Here it has no limit, because it skips values in a loop.
    if path.is_empty() && !stream.starts_with(b"\xef") && std::str::from_utf8(stream).is_ok() {
        let raw = serde_json::from_slice::<Vec<&RawValue>>(stream);
        match &raw {
            Ok(raw) if depth(stream) <= limit => {
                assert!(raw.iter().map(|value| value.get().as_bytes()).eq(found.records.iter().map(Vec::as_slice)));
                assert_eq!(found.error, None);
            }
            _ => assert!(found.error.is_some()),
        }
    }

    // The limit is an error of the line, as any other.
    let mut expected = lines(stream);
    let deep = expected.records.iter().position(|record| depth(record) > limit);
    let framer = JsonLines::checked().depth(limit);
    let max = if max == 0 { usize::MAX } else { max.into() };
    for mut found in [
        lines_by_steps(framer.clone(), stream, piece % (stream.len() + 1)),
        lines_by_batches(framer.clone(), stream, max),
    ] {
        if let Some(deep) = deep {
            expected.records.truncate(deep);
            expected.error = None;
            assert!(found.error.take().is_some(), "a line is nested too deep");
        }
        // Which of two errors of a line is first is not the twin's knowledge.
        let place = |outcome: &json_twin::Outcome| outcome.error.map(|(_, offset)| offset);
        assert_eq!((&found.records, place(&found)), (&expected.records, place(&expected)));
    }
});

/// Returns how deep arrays and objects of a valid value are nested.
fn depth(value: &[u8]) -> usize {
    let (mut depth, mut most, mut in_text, mut bytes) = (0_usize, 0, false, value.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_text = !in_text,
            b'\\' if in_text => drop(bytes.next()),
            b'[' | b'{' if !in_text => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_text => depth -= 1,
            _ => {}
        }
    }
    most
}
