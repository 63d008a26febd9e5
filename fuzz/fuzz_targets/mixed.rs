//! Reads numbers, words, lines, batches and bytes in any order from one reader, and checks that its position stays
//! correct.
//!
//! The first bytes of an input select the splits and the capacity. The next bytes, up to 64, select the operations; the
//! rest is the stream.
#![no_main]

#[path = "../../crates/millstream/tests/scan_twin/mod.rs"]
mod scan_twin;

use libfuzzer_sys::fuzz_target;
use millstream::frame::Lines;
use millstream::{Reader, Result};
use scan_twin::split;

fuzz_target!(|data: &[u8]| {
    let Some((&[first, second, capacity, count], rest)) = data.split_first_chunk() else { return };
    let (acts, stream) = rest.split_at(usize::from(count % 64 + 1).min(rest.len()));
    if acts.is_empty() {
        return;
    }
    let mut splits = [first, second].map(|split| usize::from(split) % (stream.len() + 1));
    splits.sort_unstable();
    let mut reader = split(stream, &splits, usize::from(capacity) + 1);

    let lines = count_lines(stream) + u64::from(stream.last().is_some_and(|&byte| byte != b'\n'));
    let mut before = reader.position();
    for act in acts.iter().cycle() {
        let is_over = !act_once(*act, &mut reader).unwrap();
        let position = reader.position();
        let taken = &stream[..position.bytes as usize];
        let is_last = taken.len() == stream.len() && position.records == lines;
        assert!(position.records == count_lines(taken) || is_last, "{position:?}");
        assert!(position.bytes >= before.bytes && position.records >= before.records, "{position:?} {before:?}");
        if is_over {
            assert_eq!(taken.len(), stream.len(), "the end comes after all bytes");
        }
        // Operations that may consume nothing might never reach the end, so a word is read after them.
        if position == before && act % 8 >= 5 {
            if reader.next_word().unwrap().is_none() {
                break;
            }
        } else if is_over {
            break;
        }
        before = position;
    }
    assert_eq!(reader.position().bytes, stream.len() as u64);
    assert_eq!(reader.position().records, lines);
});

/// Performs one operation. Returns false at the end of the stream.
fn act_once(act: u8, reader: &mut Reader) -> Result<bool> {
    let some = usize::from(act / 8);
    Ok(match act % 8 {
        0 => reader.next_word()?.is_some(),
        1 => reader.next_line()?.is_some(),
        2 => reader.rest_of_line()?.is_some(),
        3 => reader.next_batch_of(&mut Lines::new(), some + 1)?.is_some(),
        4 => reader.skip_record(&mut Lines::new())?,
        5 => {
            reader.fill()?;
            let window = reader.scan_window()?.len();
            reader.consume_scanned(some.min(window));
            true
        }
        // If the word is not a number, it is not consumed.
        6 => reader.scan::<u16>().map_or(true, |value| value.is_some()),
        _ => reader.scan::<(u32, u32)>().map_or(true, |value| value.is_some()),
    })
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
