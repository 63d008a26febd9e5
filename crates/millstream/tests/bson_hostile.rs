//! Hostile BSON: the documents of the corpora, truncated at every byte and with every bit flipped, and hand-written
//! attacks. Every case has a result, all decoders have the same result, and memory and time are limited. Every 97th
//! document of the dump is used, and every 61st change of files over 8 KiB; except in deep runs, every fifth of these changes.
//!
//! The results are also compared with the results of the `bson` crate. If they differ, [`Reason`] is the cause, and the
//! counts are printed; any other difference is a failure. Times are not measured: the limits only turn a hang into a
//! failure.

#![cfg(feature = "bson")]

#[path = "reader/deadline.rs"]
mod deadline;
mod shared;
mod skip;

use deadline::within_seconds;
use millstream::bson::julia::{Graph, Options};
use millstream::bson::{self as ours, Document, Json, Map, Rules, Value, ValueRef, from_json, json_to_bson};
use millstream::{Error, ErrorKind};
use peak_alloc::PeakAlloc;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The memory of all threads is counted, so only one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test alone, with a time limit that only a hang exceeds.
fn alone(body: impl FnOnce() + Send + 'static) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_deep = std::env::var_os("MILLSTREAM_DEEP").is_some();
    within_seconds(if is_deep { 3600 } else { 600 }, body);
}

/// Runs `act` and returns by how many bytes the memory use exceeded its previous value.
fn peak<T>(body: impl FnOnce() -> T) -> (T, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = body();
    (result, MEMORY.peak_usage().saturating_sub(before))
}

/// Memory for other purposes: errors, and the test harness, which runs on another thread.
const BESIDES: usize = 64 << 10;

/// The limit for owned values: the smallest member has 2 bytes, and while a vector grows, its old and its new memory
/// exist together. Text is as long as in the input.
fn owned_cap(len: usize) -> usize {
    size_of::<(String, Value)>() * 3 / 2 * len + len + BESIDES
}

/// The limit for a graph of Julia values.
const GRAPH: usize = 4 << 20;

/// A growing vector has its old memory, its new memory, and spare capacity.
const GROWING: usize = 3;

/// Reads the whole document with the lazy interface.
fn walk(document: Document<'_>) -> Result<(), Error> {
    for element in document {
        let element = element?;
        element.key()?;
        match element.value()? {
            ValueRef::Document(document) => walk(document)?,
            ValueRef::Array(array) => walk(array.as_document())?,
            ValueRef::CodeWithScope { scope, .. } => walk(scope)?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns this crate's result for these bytes, serialised again. All decoders must agree, and no decoder may use
/// much memory.
fn our_answer(bytes: &[u8]) -> Result<Map, Error> {
    let shown = || bytes.escape_ascii();
    let (checked, used) = peak(|| Document::new(bytes).and_then(|document| document.check()));
    assert!(used <= BESIDES, "checking used {used} bytes of memory: {}", shown());
    let (map, used) = peak(|| Map::from_slice(bytes));
    assert!(used <= owned_cap(bytes.len()), "owned values used {used} bytes of memory: {}", shown());
    let read = ours::from_slice::<Map>(bytes);
    let walked = Document::new(bytes).and_then(walk);
    let text = Document::new(bytes).and_then(|document| document.to_json(Json::Canonical));
    let kind = |error: &Error| (error.kind(), error.offset());
    let expected = checked.as_ref().map_err(kind);
    assert_eq!(map.as_ref().map(|_| &()).map_err(kind), expected, "owned: {}", shown());
    assert_eq!(read.as_ref().map(|_| &()).map_err(kind), expected, "by serde: {}", shown());
    assert_eq!(walked.is_ok(), checked.is_ok(), "lazy: {}", shown());
    assert_eq!(text.is_ok(), checked.is_ok(), "as JSON: {}", shown());
    checked?;
    let map = map?;
    assert_eq!(read?.to_vec()?, map.to_vec()?, "by serde: {}", shown());
    Ok(map)
}

/// Returns the `bson` crate's result, serialised again, or `None` if it rejects the bytes.
fn their_answer(bytes: &[u8]) -> Option<Vec<u8>> {
    let document = bson::deserialize_from_slice::<bson::Document>(bytes).ok()?;
    Some(bson::serialize_to_vec(&document).unwrap())
}

/// The reason why the `bson` crate has a different result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It keeps one of several members with the same key; this crate keeps all.
    RepeatedKey,
}

/// The numbers of equal and of different results.
#[derive(Debug, Default)]
struct Tally {
    documents: u64,
    refused: u64,
    reasons: BTreeMap<Reason, u64>,
}

impl Tally {
    /// Compares all implementations. Every difference must have a reason.
    fn compare(&mut self, bytes: &[u8]) {
        let ours = our_answer(bytes);
        let reason = match (&ours, their_answer(bytes)) {
            (Ok(map), Some(theirs)) if map.to_vec().unwrap() == theirs => return self.documents += 1,
            (Err(_), None) => return self.refused += 1,
            (Ok(map), Some(_)) if has_repeated_key(map) => Reason::RepeatedKey,
            (Ok(_), _) => {
                panic!("accepted here; rejected or read differently by the other crate: {}", bytes.escape_ascii())
            }
            (Err(error), _) => panic!("{error} here, but no error in the other crate: {}", bytes.escape_ascii()),
        };
        *self.reasons.entry(reason).or_default() += 1;
    }
}

fn has_repeated_key(map: &Map) -> bool {
    let mut keys = HashSet::new();
    map.iter().any(|(key, value)| !keys.insert(key) || has_repeated_key_inside(value))
}

fn has_repeated_key_inside(value: &Value) -> bool {
    match value {
        Value::Document(map) | Value::CodeWithScope { scope: map, .. } => has_repeated_key(map),
        Value::Array(values) => values.iter().any(has_repeated_key_inside),
        _ => false,
    }
}

/// Deep runs test every change, other runs every fifth one, which covers each bit of a byte in turn.
fn step() -> usize {
    if std::env::var_os("MILLSTREAM_DEEP").is_some() { 1 } else { 5 }
}

/// Visits a document truncated at every byte, complete, and with every bit flipped, or every `step`th of these changes.
fn each_change(whole: &[u8], step: usize, mut visit: impl FnMut(&[u8])) {
    for len in (0..=whole.len()).step_by(step) {
        visit(&whole[..len]);
    }
    let mut bytes = whole.to_vec();
    for bit in (0..bytes.len() * 8).step_by(step) {
        bytes[bit / 8] ^= 1 << (bit % 8);
        visit(&bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Returns the documents of MongoDB's corpus, including the invalid ones.
fn mongodb_documents() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for path in shared::files("bson-corpus", "json") {
        let file: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        for (section, key) in [("valid", "canonical_bson"), ("valid", "degenerate_bson"), ("decodeErrors", "bson")] {
            for case in file[section].as_array().into_iter().flatten() {
                let Some(hex) = case[key].as_str() else { continue };
                all.push(data_encoding::HEXUPPER_PERMISSIVE.decode(hex.as_bytes()).unwrap());
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

/// Compares all implementations for each of these changes, and prints the counts.
fn compare_all(name: &str, documents: &[Vec<u8>]) {
    let mut tally = Tally::default();
    for document in documents {
        each_change(document, step(), |bytes| tally.compare(bytes));
    }
    println!("{name}: {} documents, {tally:?}", documents.len());
    let is_empty = documents.is_empty(); // a plain clone has no corpus
    assert!(is_empty || (tally.documents > 1000 && tally.refused > 1000), "{tally:?}");
}

#[test]
fn mongodb_corpus_changed_everywhere() {
    alone(|| compare_all("bson-corpus", &mongodb_documents()));
}

#[test]
fn a_dump_changed_everywhere() {
    alone(|| {
        let mut documents = Vec::new();
        for path in shared::files("mongodump", "bson") {
            let bytes = fs::read(path).unwrap();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (document, after) = Document::first(rest, Rules::new()).unwrap();
                documents.push(document.as_bytes().to_vec());
                rest = after;
            }
        }
        let sample: Vec<_> = documents.into_iter().step_by(97).collect();
        compare_all("mongodump", &sample);
    });
}

#[test]
fn julia_files_changed_everywhere() {
    alone(|| {
        let documents: Vec<_> =
            shared::files("julia-bson", "bson").iter().map(|path| fs::read(path).unwrap()).collect();
        let (short, long): (Vec<_>, Vec<_>) = documents.into_iter().partition(|bytes| bytes.len() <= 8192);
        compare_all("julia-bson", &short);
        let (mut graphs, mut refused) = (0, 0);
        for bytes in &short {
            each_change(bytes, step(), |bytes| match graph(bytes) {
                Ok(()) => graphs += 1,
                Err(_) => refused += 1,
            });
        }
        // Long documents are nearly all text.
        for bytes in &long {
            each_change(bytes, 61 * step(), |bytes| {
                let _ = our_answer(bytes);
                let _ = graph(bytes);
            });
        }
        println!("julia-bson: {graphs} graphs, {refused} refused; {} long files", long.len());
        assert!(short.is_empty() || (graphs > 1000 && refused > 1000));
    });
}

/// Reads a graph within little memory. A graph that was read can be formatted, and writing it gives the same graph.
fn graph(bytes: &[u8]) -> Result<(), Error> {
    let document = Document::new(bytes)?;
    let (graph, used) = peak(|| Graph::read_with(document, &Options::new().memory(GRAPH as u64)));
    assert!(used <= GROWING * GRAPH, "a graph used {used} bytes of memory: {}", bytes.escape_ascii());
    let graph = graph?;
    let text = graph.to_string();
    let _ = graph.root().to::<Value>();
    if let Ok(written) = graph.to_vec() {
        let again = Graph::read(Document::new(&written)?).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(again.to_string(), text);
    }
    Ok(())
}

/// Returns a document with one member "a".
fn member(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as i32 + 8;
    [&len.to_le_bytes(), &[kind, b'a', 0][..], payload, &[0]].concat()
}

#[test]
fn no_wrong_length_is_believed() {
    alone(|| {
        let text = b"\x03\0\0\0\xc3\xbc\0";
        let inner = member(0x02, text);
        // The type, the payload, and the positions of lengths in the payload.
        let cases: &[(u8, Vec<u8>, &[usize])] = &[
            (0x02, text.to_vec(), &[0]),
            (0x0d, text.to_vec(), &[0]),
            (0x0e, text.to_vec(), &[0]),
            (0x0c, [&text[..], &[0xaa; 12]].concat(), &[0]),
            (0x03, inner.clone(), &[0, 7]),
            (0x04, inner.clone(), &[0, 7]),
            (0x05, b"\x03\0\0\0\0\xaa\xaa\xaa".to_vec(), &[0]),
            (0x05, b"\x07\0\0\0\x02\x03\0\0\0\xaa\xaa\xaa".to_vec(), &[0, 5]),
            (0x0f, [&(inner.len() as i32 + 11).to_le_bytes()[..], text, &inner].concat(), &[0, 4, 11]),
        ];
        let mut count = 0;
        for (kind, payload, places) in cases {
            our_answer(&member(*kind, payload)).unwrap();
            for place in [0].into_iter().chain(places.iter().map(|place| place + 7)) {
                let mut bytes = member(*kind, payload);
                let right = i32::from_le_bytes(bytes[place..place + 4].try_into().unwrap());
                let wrong = [0, 1, 4, -1, i32::MIN, i32::MAX, i32::MAX - 4, right - 1, right + 1, right.swap_bytes()];
                for wrong in wrong.into_iter().filter(|wrong| *wrong != right) {
                    bytes[place..place + 4].copy_from_slice(&wrong.to_le_bytes());
                    let error = our_answer(&bytes).expect_err(&format!("{}", bytes.escape_ascii()));
                    assert!(error.found().is_some() && error.expected().is_some() && error.offset().is_some());
                    count += 1;
                }
            }
        }
        assert!(count > 150, "{count}");
    });
}

#[test]
fn no_end_of_text_may_be_missing() {
    alone(|| {
        let text = b"\x02\0\0\0x\0";
        for (kind, payload, ends) in [
            (0x02, text.to_vec(), &[5][..]),
            (0x0d, text.to_vec(), &[5]),
            (0x0b, b"p\0i\0".to_vec(), &[3]),
            (0x03, member(0x0a, b""), &[6, 7]),
            (0x0c, [&text[..], &[7; 12]].concat(), &[5]),
        ] {
            let whole = member(kind, &payload);
            our_answer(&whole).unwrap();
            for end in ends.iter().map(|end| end + 7).chain([6, whole.len() - 1]) {
                let mut bytes = whole.clone();
                assert_eq!(bytes[end], 0);
                bytes[end] = b'x';
                assert!(our_answer(&bytes).is_err(), "{}", bytes.escape_ascii());
            }
        }
    });
}

/// Returns this many nested documents: in members of type document or array, or in scopes.
fn nested(kind: u8, levels: usize) -> Vec<u8> {
    let between: &[u8] = if kind == 0x0f { b"\x01\0\0\0\0" } else { b"" };
    let prefix = if kind == 0x0f { 4 + between.len() } else { 0 };
    let len = |deeper: usize| (5 + deeper * (8 + prefix)) as i32;
    let mut bytes = Vec::with_capacity(len(levels) as usize);
    for deeper in (1..levels).rev() {
        bytes.extend_from_slice(&len(deeper).to_le_bytes());
        bytes.extend_from_slice(&[kind, b'a', 0]);
        if kind == 0x0f {
            bytes.extend_from_slice(&(len(deeper - 1) + prefix as i32).to_le_bytes());
            bytes.extend_from_slice(between);
        }
    }
    bytes.extend_from_slice(&5i32.to_le_bytes());
    bytes.resize(bytes.len() + levels, 0);
    bytes
}

#[test]
fn a_million_levels() {
    alone(|| {
        for kind in [0x03, 0x04, 0x0f] {
            our_answer(&nested(kind, 200)).unwrap();
            assert_eq!(our_answer(&nested(kind, 201)).unwrap_err().kind(), ErrorKind::TooDeep);
            let bytes = nested(kind, 1_000_000);
            assert_eq!(our_answer(&bytes).unwrap_err().kind(), ErrorKind::TooDeep);
            let document = Document::new(&bytes).unwrap();
            assert_eq!(document.get::<i32>("b").unwrap(), None);
            assert_eq!(document.index().unwrap().len(), 1);
        }
        for (open, levels) in [("[", 1_000_000), ("{\"a\":", 1_000_000), ("{\"a\":[", 500_000)] {
            let text = format!("{{\"a\":{}", open.repeat(levels));
            let (error, used) = peak(|| from_json(&text).unwrap_err());
            assert_eq!(error.kind(), ErrorKind::TooDeep, "{error}");
            assert!(used <= 2 * BESIDES, "{used} bytes of memory");
            let error = json_to_bson(&text, Rules::new().depth(1000), &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooDeep, "{error}");
        }
        // Graphs are limited only by memory.
        let bytes = nested(0x03, 100_000);
        let graph = Graph::read(Document::new(&bytes).unwrap()).unwrap();
        assert!(graph.to_string().starts_with("{\"a\":{\"a\":"));
        assert_eq!(graph.to_vec().unwrap(), bytes);
        assert_eq!(graph.root().to::<Value>().err().map(|error| error.kind()), Some(ErrorKind::TooDeep));
        drop(graph);
        let small = Options::new().memory(1 << 20);
        let (error, used) = peak(|| Graph::read_with(Document::new(&bytes).unwrap(), &small).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::MemoryLimit);
        assert!(used <= GROWING << 20, "{used} bytes of memory");
    });
}

#[test]
fn many_small_members() {
    alone(|| {
        // Each member has two bytes, which is the minimum: null with an empty key.
        let members = b"\x0a\0".repeat(500_000);
        let bytes = [&(members.len() as i32 + 5).to_le_bytes()[..], &members, &[0]].concat();
        assert_eq!(our_answer(&bytes).unwrap().len(), 500_000);
        assert_eq!(our_answer(&member(0x04, &bytes)).unwrap().len(), 1);
        // Strict rules store keys.
        let strict = Rules::new().strictness(ours::Strictness::Strict);
        let error = Document::with_rules(&bytes, strict).unwrap().check().unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::DocumentInvalid, Some(7)));
        // Objects share objects in 40 levels, which would be 2^40 values if they were expanded.
        let entry = |next: i64| format!(r#"[{{"tag":"backref","ref":{next}}},{{"tag":"backref","ref":{next}}}]"#);
        let entries: Vec<String> = (2..42).map(entry).chain(["7".to_string()]).collect();
        let text = format!(r#"{{"_backrefs":[{}],"x":{{"tag":"backref","ref":1}}}}"#, entries.join(","));
        let bytes = from_json(&text).unwrap().to_vec().unwrap();
        graph(&bytes).unwrap();
    });
}

#[test]
fn backrefs_that_lead_nowhere() {
    alone(|| {
        let read = |entries: &str, reference: &str| {
            let text = format!(r#"{{"_backrefs":[{entries}],"x":{{"tag":"backref","ref":{reference}}}}}"#);
            graph(&from_json(&text).unwrap().to_vec().unwrap())
        };
        let to = |number: i64| format!(r#"{{"tag":"backref","ref":{number}}}"#);
        read("7", "1").unwrap();
        read(&format!(r#"{{"me":{}}}"#, to(1)), "1").unwrap(); // contains itself
        for reference in ["0", "-1", "2", "2147483647", "-9223372036854775808", "9223372036854775807"] {
            assert_eq!(read("7", reference).unwrap_err().kind(), ErrorKind::JuliaInvalid, "{reference}");
        }
        for ring in [1, 2, 3, 1000] {
            let entries: Vec<_> = (1..=ring).map(|number| to(number % ring + 1)).collect();
            assert_eq!(read(&entries.join(","), "1").unwrap_err().kind(), ErrorKind::JuliaInvalid, "{ring}");
        }
        // The path to an object is long.
        let entries: Vec<_> = (2..=20_000).map(to).chain(["7".to_string()]).collect();
        read(&entries.join(","), "1").unwrap();
    });
}
