//! Any text that is read as Extended JSON gives a valid document, and its canonical text is read back as the same
//! document.
//!
//! The text is either the fuzzer's bytes or the Extended JSON of a document created from them.
#![no_main]

mod documents;

use libfuzzer_sys::fuzz_target;
use millstream::bson::{Document, Json, Map, Rules, from_json, json_to_bson};

fuzz_target!(|data: &[u8]| {
    let Some((&way, rest)) = data.split_first() else { return };
    match way % 4 {
        0 => text(rest),
        way => {
            let Some(bytes) = documents::document(rest) else { return };
            let mode = if way == 1 { Json::Relaxed } else { Json::Canonical };
            let Ok(document) = Document::new(&bytes) else { return };
            let Ok(mut written) = document.to_json(mode) else { return };
            assert_eq!(Map::from_document(document).unwrap().to_json(mode).unwrap(), written);
            text(written.as_bytes());
            let cut = (0..=written.len() / 2).rev().find(|&cut| written.is_char_boundary(cut)).unwrap();
            written.truncate(cut);
            text(written.as_bytes());
        }
    }
});

fn text(text: &[u8]) {
    let mut bytes = b"before".to_vec();
    let read = json_to_bson(text, Rules::new(), &mut bytes);
    assert_eq!(from_json(text).is_ok(), read.is_ok());
    if read.is_err() {
        return assert_eq!(bytes, b"before");
    }
    let document = Document::new(&bytes[6..]).unwrap();
    document.check().unwrap();
    let canonical = document.to_json(Json::Canonical).unwrap();
    let again = from_json(&canonical).unwrap_or_else(|error| panic!("{error}: {canonical}"));
    assert_eq!(again.to_json(Json::Canonical).unwrap(), canonical);
    assert_eq!(again.to_vec().unwrap(), document.as_bytes(), "{canonical}");
}
