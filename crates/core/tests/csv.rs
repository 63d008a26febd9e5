//! CSV against the interpreter of its table: the shared vectors at every split, and random dialects and inputs. The
//! interpreter against the crate `csv`, for the dialects that both read alike.

#[path = "csv_twin/csv_crate.rs"]
mod csv_crate;
mod csv_twin;
mod escapes;

use csv_twin::{Outcome, Table, by_batches, by_steps, csv};
use escapes::unescape;
use proptest::prelude::*;

fn check(table: &Table, name: &str, words: &str, input: &[u8], splits: &[usize], max: usize) -> Outcome {
    let expected = table.read(words, input);
    let mut csv = csv(words).unwrap();
    assert_eq!(by_steps(&mut csv, input, splits), expected, "{name} {words}, one at a time, split at {splits:?}");
    let batches = by_batches(&mut csv, input, splits, max);
    assert_eq!(batches, expected, "{name} {words}, in batches of {max}, split at {splits:?}");
    expected
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and reaches no unsafe code that the other tests do not")]
fn vectors() {
    let table = Table::new();
    let lines = include_str!("../../../vectors/csv.tsv").lines();
    let mut count = 0;
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, words, input, records, end] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not five columns: {line}");
        };
        let input = unescape(input);
        let expected: Vec<Vec<Vec<u8>>> = match records {
            "-" => Vec::new(),
            _ => records.split(" / ").map(|record| record.split(" | ").map(unescape).collect()).collect(),
        };
        let error = (end != "end").then(|| end.strip_prefix("csv_invalid at ").unwrap().parse().unwrap());
        for split in 0..=input.len() {
            for max in [1, 2, usize::MAX] {
                let outcome = check(&table, name, words, &input, &[split], max);
                assert_eq!((outcome.records(), outcome.error), (expected.clone(), error), "{name}");
            }
        }
        check(&table, name, words, &input, &(0..=input.len()).collect::<Vec<_>>(), usize::MAX);
        count += 1;
    }
    assert!(count > 40, "{count} vectors");
}

/// Generates the description of an arbitrary dialect.
fn words() -> impl Strategy<Value = String> {
    let one = |of: &'static [&'static str]| prop::sample::select(of);
    (
        one(&["", "", "", "delimiter=3b", "delimiter=61"]),
        one(&["", "", "", " quote=27", " quote=none"]),
        one(&["", "", " escape=5c"]),
        one(&["", "", " comment=23"]),
        one(&["", " doubled=off"]),
        one(&["", " stray=literal"]),
        one(&["", " blank=records"]),
        one(&["", " mark=content"]),
        one(&["", "", " ends=lf", " ends=crlf", " ends=cr"]),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i)| [a, b, c, d, e, f, g, h, i].concat().trim().to_string())
}

/// Generates pieces of valid files, and pieces that are not valid anywhere.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            &b"a"[..], b"1", b",", b",", b"\n", b"\r\n", b"\"b\"", b",\"c,c\"", b"\"d\"\"d\"\n", b"\"e\ne\"", b"\"\"",
        ]),
        2 => prop::sample::select(vec![&b"a long field without anything in it"[..], b",", b"\n"]),
        1 => prop::sample::select(vec![
            &b"\""[..], b"\"", b"'", b"\r", b"\n\n", b"\\", b"#", b";", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xef",
            b"\"\"\"", b"\"a\"b",
        ]),
    ];
    let pieces = prop::collection::vec(piece, 0..if cfg!(miri) { 20 } else { 300 });
    // Without a prefix, an error early in the input would hide the rest in most cases.
    (prop::collection::vec(prop::sample::select(vec![&b"a,b\n"[..], b"\"a\nb\",\n", b"x\r\n"]), 0..200), pieces)
        .prop_map(|(good, any)| [good.concat(), any.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { ProptestConfig::default().cases.max(2048) },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_dialect_is_its_table(
        words in words(),
        input in input(),
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        max in prop_oneof![Just(usize::MAX), 1_usize..20],
    ) {
        let mut splits: Vec<usize> = splits.iter().map(|split| split.index(input.len() + 1)).collect();
        splits.sort_unstable();
        let outcome = check(&Table::new(), "", &words, &input, &splits, max);
        if let Some(found) = csv_crate::records(&words, &input) {
            let expected = outcome.records();
            prop_assert!(found.starts_with(&expected), "{} {:?}: {:?}", words, input, found);
            prop_assert!(outcome.error.is_some() || found.len() == expected.len(), "{} {:?}", words, input);
        }
    }

    /// Inputs without the bytes that the crate reads in another way.
    #[test]
    fn the_crate_csv_agrees(
        words in words().prop_filter("not comparable", |words| csv_crate::records(words, b"\n").is_some()),
        pieces in prop::collection::vec(prop::sample::select(vec![
            &b"a"[..], b",", b";", b"\n", b"\n", b"\"b\"", b"\"c,\nc\"", b"\"d\"\"\"", b"'", b"\"\"", b"#", b" ", b"e\"e",
        ]), 0..60),
    ) {
        let input = [pieces.concat().as_slice(), if words.contains("comment") { b"\n" } else { b"" }].concat();
        let outcome = Table::new().read(&words, &input);
        let found = csv_crate::records(&words, &input).unwrap();
        prop_assert!(found.starts_with(&outcome.records()), "{} {:?}: {:?}", words, input, found);
        prop_assert!(outcome.error.is_some() || found.len() == outcome.records().len(), "{} {:?}", words, input);
    }
}

#[test]
fn contradictions_are_refused() {
    for (words, found) in [
        ("delimiter=22", "the byte '\\\"' as the delimiter and as the quote"),
        ("escape=22", "the byte '\\\"' as the quote and as the escape character"),
        ("comment=2c", "the byte ',' as the delimiter and as the comment prefix"),
        ("delimiter=0a", "the byte '\\n' as the delimiter"),
        ("quote=0d", "the byte '\\r' as the quote"),
    ] {
        let error = csv(words).unwrap_err();
        assert_eq!(error.kind(), millstream_core::ErrorKind::InvalidOption);
        assert_eq!(error.found(), Some(found));
    }
}
