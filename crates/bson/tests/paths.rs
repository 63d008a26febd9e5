//! The values at paths, found with `get_path`, with `find_path`, and from the array through which the path leads.

use data_encoding::HEXLOWER;
use millstream_bson::{Array, Builder, Document, Json, ValueRef, split_path};

const PATHS: &str = include_str!("../../../vectors/bson_paths.tsv");

/// A value as canonical Extended JSON.
fn json(value: ValueRef<'_>) -> String {
    let mut builder = Builder::new();
    builder.append("v", &value).unwrap();
    let text = Document::new(builder.finish().unwrap()).unwrap().to_json(Json::Canonical).unwrap();
    text.strip_prefix("{\"v\":").unwrap().strip_suffix('}').unwrap().to_string()
}

#[test]
fn vectors() {
    let mut cases = 0;
    for line in PATHS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, bytes, path, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes = HEXLOWER.decode(bytes.as_bytes()).unwrap();
        let document = Document::new(&bytes).unwrap();
        let keys = split_path(path).unwrap();
        let shown = |value: Option<ValueRef>| value.map_or("-".to_string(), json);
        assert_eq!(shown(document.get_path(&keys).unwrap()), expected, "{name}");
        let found = document.find_path(&keys).unwrap();
        assert_eq!(shown(found.map(|element| element.value().unwrap())), expected, "{name}");
        for split in 1..keys.len() {
            let (before, after) = keys.split_at(split);
            match document.get_path(before).unwrap() {
                Some(ValueRef::Array(array)) => {
                    let array: Array = array;
                    assert_eq!(shown(array.get_path(after).unwrap()), expected, "{name}");
                }
                Some(ValueRef::Document(inner)) => {
                    assert_eq!(shown(inner.get_path(after).unwrap()), expected, "{name}");
                }
                _ => assert_eq!(expected, "-", "{name}"),
            }
        }
        cases += 1;
    }
    assert!(cases > 15, "{cases}");
}
