//! Splits of the elements of a JSON document, against a reader of the whole document.

use millstream::frame::Delimiter;
use millstream::splits::{Framing, Split, SplitPin, Splits};
use millstream::{ErrorKind, Reader, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// What a reader has returned: each record with its offset and its number, and the error after them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    records: Vec<(u64, u64, Vec<u8>)>,
    error: Option<(ErrorKind, Option<u64>, Option<u64>, String)>,
}

impl Outcome {
    /// Adds what a reader returns.
    fn read(&mut self, reader: Result<Reader>) {
        let (mut reader, mut delimiter) = (reader.unwrap(), Delimiter::byte(0x1e));
        loop {
            let at = reader.position();
            match reader.next_frame(&mut delimiter) {
                Ok(Some(element)) => self.records.push((at.bytes, at.records, element.to_vec())),
                Ok(None) => return,
                Err(error) => {
                    self.error = Some((error.kind(), error.offset(), error.record(), error.to_string()));
                    return;
                }
            }
        }
    }
}

fn framing(pointer: &str) -> Framing {
    Framing::JsonElements { pointer: pointer.into(), depth: 128 }
}

/// Compares the splits of a document with a reader of all of it. Returns the number of splits.
fn check(document: &[u8], pointer: &str, size: u64) -> usize {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, document).unwrap();
    let mut expected = Outcome::default();
    expected.read(Reader::builder().json_elements(pointer).path(file.path()));

    let plan = Splits::plan(&file, framing(pointer), size).unwrap();
    let mut found = Outcome::default();
    for (i, split) in plan.iter().enumerate() {
        assert!(found.error.is_none(), "a split follows the error");
        let stored = Split::from_json(&split.to_json()).unwrap();
        assert_eq!(stored, *split);
        assert_eq!(split.first_record(), Some(found.records.len() as u64), "split {i}");
        found.read(Reader::builder().capacity(1 + i % 3).split(&stored));
    }
    assert_eq!(found, expected, "{pointer:?} in splits of {size}: {}", document.escape_ascii());
    assert_eq!(plan.records(), Some(expected.records.len() as u64));
    plan.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_splits_together_are_the_document(
        elements in vec(select(vec![
            "1", "-2.5e3", "0", "\"a\"", "\"]},\\\"[\"", "true", "null", "[]", "[1,[2]]", "{}", "{\"a\":[3, 4]}", " 5 ",
            "\n\"\\\\\"", "\"a longer text, of more than a few words\"",
        ]), 0..20),
        (before, after, pointer) in select(vec![
            ("[", "]", ""), (" [ ", " ] ", ""), ("\u{feff}[", "]\n", ""), ("{\"a\":[", "]}", "/a"),
            ("{\"b\":[0],\"a\":{\"0\":[", "],\"1\":[]}, \"c\":[1,2,3]}", "/a/0"), ("[[0],[", "],[2]]", "/1"),
            ("[{\"a\":[[],[", "]]}, 1, 2 ]", "/0/a/1"), ("{\"a\":[", "],\"a\":[]}", "/a"),
        ]),
        mutations in vec((any::<Index>(), 0_u8..3, select(b"[]{},:\"\\ 0-.etx\x1e".to_vec())), 0..2),
        size in 1..40_u64,
    ) {
        let mut document = format!("{before}{}{after}", elements.join(",")).into_bytes();
        let is_intact = mutations.is_empty();
        for (at, how, byte) in mutations {
            let at = at.index(document.len());
            match how {
                0 => document.truncate(at),
                1 => document[at] = byte,
                _ => document.insert(at, byte),
            }
            if document.is_empty() {
                break;
            }
        }
        let splits = check(&document, pointer, size);
        if is_intact && elements.len() > 1 {
            let most = document.len().div_ceil(size as usize);
            prop_assert!((1..=most).contains(&splits), "{} splits, {}", splits, most);
        }
    }
}

#[test]
fn a_document_of_many_blocks() {
    let elements: Vec<String> = (0..60_000).map(|i| format!(r#"{{"id": {i}, "name": "]}},[{{\""}}"#)).collect();
    let document = format!("{{\"n\": 1, \"items\": [{}]}}", elements.join(",\n"));
    let splits = check(document.as_bytes(), "/items", 100_000);
    assert_eq!(splits as u64, (document.len() as u64).div_ceil(100_000));
    // An element that is longer than several splits.
    let long = format!("[1,\"{}\",2]", "x".repeat(1 << 20));
    assert_eq!(check(long.as_bytes(), "", 1000), 2);
}

#[test]
fn an_error_ends_the_division() {
    let document = format!("[{}1,,{}2]", "1,".repeat(100), "2,".repeat(1000));
    let plan = |document: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, document).unwrap();
        Splits::plan(&file, framing(""), 50).unwrap()
    };
    let plan = plan(&document);
    assert_eq!((plan.len(), plan.records()), (5, Some(101)));
    assert_eq!(plan.iter().last().unwrap().end(), Some(document.len() as u64));
    assert_eq!(check(document.as_bytes(), "", 50), 5);
}

#[test]
fn the_depth_limit_is_stored() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "[1,2,3,[[[4]]]]").unwrap();
    let plan = Splits::plan(&file, Framing::JsonElements { pointer: String::new(), depth: 3 }, 4).unwrap();
    let mut found = Outcome::default();
    for split in &plan {
        found.read(Reader::split(&Split::from_json(&split.to_json()).unwrap()));
    }
    assert_eq!((found.records.len(), found.error.unwrap().0), (3, ErrorKind::TooDeep));
}

#[test]
fn a_changed_document_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "[10,20,30,40]").unwrap();
    let plan = Splits::builder().pin(SplitPin::None).plan(&file, framing(""), 4).unwrap();
    std::fs::write(&file, "[10,\"2\",30,40]").unwrap();
    let kinds: Vec<_> = plan
        .iter()
        .map(|split| {
            let mut found = Outcome::default();
            found.read(Reader::split(split));
            found.error.map(|error| error.0)
        })
        .collect();
    assert!(kinds.contains(&Some(ErrorKind::SourceChanged)), "{kinds:?}");
}

#[cfg(feature = "compression")]
#[test]
fn a_compressed_document_is_one_split() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.json.gz");
    let mut writer = millstream::Writer::path(&path).unwrap();
    writer.write(b"{\"a\":[1,2,3]}").unwrap();
    writer.close().unwrap();
    let plan = Splits::plan(&path, framing("/a"), 4).unwrap();
    assert_eq!(plan.len(), 1);
    assert!(plan.note().is_some());
    let mut found = Outcome::default();
    found.read(Reader::split(&Split::from_json(&plan.iter().next().unwrap().to_json()).unwrap()));
    assert_eq!((found.records.len(), found.error), (3, None));
}

#[test]
fn what_is_no_split_of_elements_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "{\"a\":[1,2,3]}").unwrap();
    assert_eq!(Splits::plan(&file, framing("a"), 4).unwrap_err().kind(), ErrorKind::InvalidOption);
    let plan = Splits::plan(&file, framing("/a"), 7).unwrap();
    let json = plan.iter().nth(1).unwrap().to_json();
    for (from, to) in [
        ("\"objects\":[true]", "\"objects\":[]"),
        ("\"objects\":[true]", "\"objects\":[false]"),
        ("\"record\":1", "\"record\":0"),
        ("\"record\":1", "\"record\":null"),
        ("\"kind\":\"json_elements\",\"pointer\":\"/a\",\"depth\":128", "\"kind\":\"bson\""),
        ("\"pointer\":\"/a\"", "\"pointer\":\"a\""),
    ] {
        assert!(json.contains(from), "{json}");
        let error = Split::from_json(&json.replace(from, to)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
    }
    let split = Split::from_json(&json).unwrap();
    let error = Reader::builder().json_elements("/a").split(&split).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
}
