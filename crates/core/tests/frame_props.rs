//! Compares every framer with its naive implementation: random input, random splits, one record at a time and in
//! batches.

#[expect(dead_code, reason = "the shared vectors are run in frame_vectors.rs")]
mod frame_twin;

use frame_twin::{by_batches, by_steps, framer, naive};
use proptest::prelude::*;

/// A small set of bytes, so that delimiters, halves of delimiters and small lengths are frequent.
const BYTES: &[u8] = &[0, 1, 2, 3, b'\n', b'\r', b';', b'a', 0xc3, 0xa9, 0xff];

/// Generates the description of an arbitrary framer.
fn words() -> impl Strategy<Value = String> {
    let untrimmed = prop::sample::select(vec!["", " untrimmed"]);
    let hex = |len| {
        prop::collection::vec(prop::sample::select(BYTES), len)
            .prop_map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    prop_oneof![
        untrimmed.clone().prop_map(|u| format!("lines{u}")),
        (hex(1..2), untrimmed.clone()).prop_map(|(hex, u)| format!("byte {hex}{u}")),
        (hex(1..5), untrimmed.clone()).prop_map(|(hex, u)| format!("bytes {hex}{u}")),
        (hex(0..4), untrimmed.clone()).prop_map(|(hex, u)| format!("any-of {hex}{u}")),
        (prop::sample::select(vec!["3b", "e9", "2192", "1f980"]), untrimmed).prop_map(|(c, u)| format!("char {c}{u}")),
        (1_usize..9).prop_map(|len| format!("fixed {len}")),
        Just("bson".to_string()),
        (
            prop::sample::select(vec!["u8", "u16", "u32", "u64"]),
            prop::sample::select(vec!["little", "big"]),
            prop::sample::select(vec!["payload", "itself"]),
        )
            .prop_map(|(width, order, counts)| format!("prefix {width} {order} {counts}")),
    ]
}

/// Generates bytes in any order, or pieces that form valid records in a row.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(BYTES).prop_map(|byte| vec![byte]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        1 => Just("→".into()),
        1 => Just(b"\r\n".to_vec()),
        // This is a run of bytes whose length is the number at its start, as in a document.
        1 => (0_u8..9).prop_map(|len| [&[len + 5, 0, 0, 0][..], &vec![b'x'; len.into()], &[0]].concat()),
        // These are lengths of each width and byte order, with the bytes that they announce.
        1 => (0_u8..9, 0_usize..8, any::<bool>()).prop_map(|(len, zeros, big)| {
            let (before, after) = if big { (zeros, 0) } else { (0, zeros) };
            [vec![0; before], vec![len], vec![0; after], vec![b'x'; len.into()]].concat()
        }),
    ];
    prop::collection::vec(piece, 0..if cfg!(miri) { 40 } else { 400 }).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { ProptestConfig::default().cases.max(2048) },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_framer_is_its_naive_twin(
        words in words(),
        input in input(),
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        max in prop_oneof![Just(usize::MAX), 1_usize..20],
    ) {
        let mut splits: Vec<usize> = splits.iter().map(|split| split.index(input.len() + 1)).collect();
        splits.sort_unstable();
        let expected = naive(&words, &input);
        prop_assert_eq!(by_steps(&mut *framer(&words), &input, &splits), expected.clone(), "{}", words);
        prop_assert_eq!(by_batches(&mut *framer(&words), &input, &splits, max), expected, "{}", words);
    }
}
