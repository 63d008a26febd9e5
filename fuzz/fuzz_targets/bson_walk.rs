//! All ways to read a document must agree: validation, scanning, owned values, serde, Extended JSON.
#![no_main]

mod documents;

use libfuzzer_sys::fuzz_target;
use millstream::Result;
use millstream::bson::{Document, Json, Map, Rules, Strictness, Utf8, ValueRef, from_document};

fuzz_target!(|data: &[u8]| {
    let Some(bytes) = documents::document(data) else { return };
    let rules = Rules::new();
    for rules in [
        rules,
        rules.depth(3),
        rules.strictness(Strictness::Strict),
        rules.strictness(Strictness::Lenient),
        rules.utf8(Utf8::Lossy),
    ] {
        let Ok(document) = Document::with_rules(&bytes, rules) else { continue };
        let checked = document.check();
        let map = Map::from_document(document);
        assert_eq!(map.is_ok(), checked.is_ok(), "owned: {checked:?} {map:?}");
        let read = from_document::<Map>(document);
        assert_eq!(read.is_ok(), checked.is_ok(), "by serde: {checked:?} {read:?}");
        let walked = walk(document);
        if rules == Rules::new() {
            assert_eq!(walked.is_ok(), checked.is_ok(), "lazy: {checked:?} {walked:?}");
            let text = document.to_json(Json::Relaxed);
            assert_eq!(text.is_ok(), checked.is_ok(), "as JSON: {checked:?} {text:?}");
        }
        if let Some(offset) = checked.as_ref().err().and_then(|error| error.offset()) {
            assert!(offset <= bytes.len() as u64);
        }
        let (Ok(map), Ok(read)) = (map, read) else { continue };
        let written = map.to_vec().unwrap();
        assert_eq!(read.to_vec().unwrap(), written);
        assert_eq!(Map::from_slice(&written).unwrap().to_vec().unwrap(), written);
        let is_checked = rules.utf8(Utf8::Checked) == rules; // otherwise keys can differ from the document
        let index = document.index().unwrap();
        assert_eq!(index.len(), map.len());
        for (key, _) in map.iter().take(4).filter(|_| is_checked) {
            let found = document.get::<ValueRef>(key).unwrap().unwrap().kind();
            assert_eq!(index.find(key).unwrap().kind(), found);
        }
    }
});

fn walk(document: Document) -> Result<()> {
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
