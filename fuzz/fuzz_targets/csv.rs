//! Compares the framer for CSV, and its fields, with the interpreter of the table in `docs/csv.md`, and that with the crate
//! `csv` for the dialects that both read alike.
//!
//! The first bytes of an input select the dialect, the splits and the batch size; the rest is the stream.
#![no_main]

#[path = "../../crates/core/tests/csv_twin/csv_crate.rs"]
mod csv_crate;
#[path = "../../crates/core/tests/csv_twin/mod.rs"]
mod csv_twin;

use std::sync::LazyLock;

use csv_twin::{Table, by_batches, by_steps, csv};
use libfuzzer_sys::fuzz_target;

static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

fuzz_target!(|data: &[u8]| {
    let Some((&[bytes, flags, max, first, second], stream)) = data.split_first_chunk() else { return };
    let words = words(bytes, flags);
    let mut splits = [first, second].map(|split| usize::from(split) % (stream.len() + 1));
    splits.sort_unstable();

    let expected = TABLE.read(&words, stream);
    let mut csv = csv(&words).expect("these bytes are different");
    assert_eq!(by_steps(&mut csv, stream, &splits), expected, "{words}");
    let max = if max == 0 { usize::MAX } else { max.into() };
    assert_eq!(by_batches(&mut csv, stream, &splits, max), expected, "{words}");
    if let Some(found) = csv_crate::records(&words, stream) {
        let records = expected.records();
        assert!(found.starts_with(&records), "{words}: {found:?}, {records:?}");
        assert!(expected.error.is_some() || found.len() == records.len(), "{words}: {found:?}, {records:?}");
    }
});

/// Returns the dialect as words.
fn words(bytes: u8, flags: u8) -> String {
    let one = |of: &'static [&'static str], number: u8| of[usize::from(number) % of.len()];
    let words = [
        one(&["", "", "delimiter=3b", "delimiter=61"], bytes),
        one(&["", "", "quote=27", "quote=none"], bytes >> 2),
        one(&["", "", "", "escape=5c"], bytes >> 4),
        one(&["", "", "", "comment=23"], bytes >> 6),
        one(&["", "doubled=off"], flags),
        one(&["", "stray=literal"], flags >> 1),
        one(&["", "blank=records"], flags >> 2),
        one(&["", "mark=content"], flags >> 3),
        one(&["", "ends=lf", "ends=crlf", "ends=cr"], flags >> 4),
    ];
    words.join(" ")
}
