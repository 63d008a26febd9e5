//! Tests MongoDB's BSON corpus, and a file written by `mongodump` together with the output of `bsondump` for it.
//!
//! The corpus defines its requirements at
//! <https://github.com/mongodb/specifications/blob/master/source/bson-corpus/bson-corpus.md>. There are no deviations.

#![cfg(feature = "bson")]

mod shared;
mod skip;

use millstream::bson::{Decimal128, Document, Json, Map, Rules, from_json, json_to_bson};
use serde_json::Value;
use std::fs;

/// Returns the files of the corpus: name and content.
fn files() -> Vec<(String, Value)> {
    let Some(folder) = shared::corpus("bson-corpus") else { return Vec::new() };
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            (name, serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(files.len() > 20, "only {} files", files.len());
    files
}

/// Returns the cases of a section, each with its name.
fn cases<'a>(name: &'a str, file: &'a Value, section: &str) -> impl Iterator<Item = (String, &'a Value)> {
    let cases = file[section].as_array().into_iter().flatten();
    cases.map(move |case| (format!("{name}: {}", case["description"].as_str().unwrap()), case))
}

fn unhex(case: &Value, key: &str) -> Option<Vec<u8>> {
    Some(data_encoding::HEXUPPER_PERMISSIVE.decode(case.get(key)?.as_str()?.as_bytes()).unwrap())
}

/// Returns whether two texts are the same JSON: the same order, and equal numbers. White space between tokens is
/// ignored.
fn same_json(a: &str, b: &str) -> bool {
    let tokens = |text: &str| -> String {
        let mut in_string = false;
        let mut escaped = false;
        let mut out = String::new();
        for c in text.chars() {
            if in_string || !c.is_whitespace() {
                out.push(c);
            }
            in_string = if c == '"' && !escaped { !in_string } else { in_string };
            escaped = c == '\\' && !escaped;
        }
        out
    };
    // The text of the corpus has unnecessary escapes, so the unescaped texts are compared.
    let (a, b) = (tokens(a), tokens(b));
    a == b || (a.len() < b.len() && b.contains("\\u") && a == unescaped(&b))
}

/// Removes the escapes of characters that need no escape.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u") {
        let c = char::from_u32(u32::from_str_radix(&after[..4], 16).unwrap()).unwrap();
        out.push_str(before);
        if c < ' ' {
            out.push_str(&format!("\\u{:04x}", c as u32));
        } else {
            out.push(c);
        }
        rest = &after[4..];
    }
    out + rest
}

#[test]
fn valid_documents_in_every_form() {
    let mut count = 0;
    for (name, file) in files() {
        for (name, case) in cases(&name, &file, "valid") {
            let bytes = unhex(case, "canonical_bson").unwrap();
            let is_lossy = case["lossy"].as_bool().unwrap_or(false);
            let document = Document::new(&bytes).unwrap();
            document.check().unwrap_or_else(|error| panic!("{name}: {error}"));
            let map = Map::from_document(document).unwrap();
            assert_eq!(map.to_vec().unwrap(), bytes, "{name}");

            let canonical = case["canonical_extjson"].as_str().unwrap();
            let ours = document.to_json(Json::Canonical).unwrap();
            assert!(same_json(&ours, canonical), "{name}: {ours} is not {canonical}");
            assert_eq!(map.to_json(Json::Canonical).unwrap(), ours, "{name}");
            let from_canonical = from_json(canonical).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(from_canonical.to_json(Json::Canonical).unwrap(), ours, "{name}");
            if !is_lossy {
                assert_eq!(from_canonical.to_vec().unwrap(), bytes, "{name}");
            }

            if let Some(relaxed) = case["relaxed_extjson"].as_str() {
                let ours = document.to_json(Json::Relaxed).unwrap();
                assert!(same_json(&ours, relaxed), "{name}: {ours} is not {relaxed}");
                assert_eq!(from_json(relaxed).unwrap().to_json(Json::Relaxed).unwrap(), ours, "{name}");
            }
            if let Some(degenerate) = unhex(case, "degenerate_bson") {
                let document = Document::new(&degenerate).unwrap();
                document.check().unwrap();
                assert_eq!(Map::from_document(document).unwrap().to_vec().unwrap(), bytes, "{name}");
                assert!(same_json(&document.to_json(Json::Canonical).unwrap(), canonical), "{name}");
            }
            if let Some(degenerate) = case["degenerate_extjson"].as_str() {
                let map = from_json(degenerate).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(map.to_json(Json::Canonical).unwrap(), ours, "{name}");
                if !is_lossy {
                    assert_eq!(map.to_vec().unwrap(), bytes, "{name}");
                }
            }
            for key in ["converted_bson", "converted_extjson"] {
                // The corpus also contains the results of a reader without deprecated types. This library has these
                // types, so the documents are compared with these results too.
                match case.get(key).and_then(Value::as_str) {
                    Some(text) if key.ends_with("json") => drop(from_json(text).unwrap()),
                    Some(_) => drop(Map::from_slice(&unhex(case, key).unwrap()).unwrap()),
                    None => {}
                }
            }
            count += 1;
        }
    }
    println!("{count} cases");
}

#[test]
fn documents_that_are_refused() {
    let mut count = 0;
    for (name, file) in files() {
        for (name, case) in cases(&name, &file, "decodeErrors") {
            let bytes = unhex(case, "bson").unwrap();
            assert!(Document::new(&bytes).and_then(|document| document.check()).is_err(), "{name}: check");
            assert!(Map::from_slice(&bytes).is_err(), "{name}: owned");
            assert!(Document::new(&bytes).and_then(|it| it.to_json(Json::Relaxed)).is_err(), "{name}: as JSON");
            count += 1;
        }
    }
    println!("{count} cases");
}

#[test]
fn texts_that_are_refused() {
    let mut count = 0;
    for (name, file) in files() {
        for (name, case) in cases(&name, &file, "parseErrors") {
            let text = case["string"].as_str().unwrap();
            if file["bson_type"] == "0x13" {
                assert!(text.parse::<Decimal128>().is_err(), "{name}");
                let text = serde_json::json!({"d": {"$numberDecimal": text}}).to_string();
                let error = from_json(&text).unwrap_err();
                assert_eq!((error.kind().name(), error.path()), ("text_invalid", Some("d")), "{name}");
            } else {
                let error = from_json(text).unwrap_err();
                assert_eq!(error.kind().name(), "text_invalid", "{name}: {error}");
                assert!(error.offset().is_some_and(|offset| offset <= text.len() as u64), "{name}");
            }
            count += 1;
        }
    }
    println!("{count} cases");
}

#[test]
#[cfg(feature = "compression")]
fn a_mongodump_as_bsondump_prints_it() {
    let folder = shared::vectors("mongodump");
    let bytes = fs::read(folder.join("orders.bson")).unwrap();
    let mut lines = millstream::Reader::path(folder.join("orders.canonical.ndjson.gz")).unwrap();
    let mut rest = &bytes[..];
    let mut again = Vec::new();
    let mut count = 0;
    while let Some(line) = lines.next_line().unwrap() {
        let (document, after) = Document::first(rest, Rules::new()).unwrap();
        rest = after;
        assert_eq!(document.to_json(Json::Canonical).unwrap().as_bytes(), line);
        again.clear();
        json_to_bson(line, Rules::new(), &mut again).unwrap();
        assert_eq!(again, document.as_bytes());
        let relaxed = document.to_json(Json::Relaxed).unwrap();
        assert_eq!(from_json(&relaxed).unwrap().to_json(Json::Relaxed).unwrap(), relaxed);
        count += 1;
    }
    assert_eq!((count, rest.len()), (3500, 0));
}
