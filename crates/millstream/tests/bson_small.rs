//! A small case for each part of `bson`, for Miri (`tools/miri`), which also emulates a big-endian machine. The other
//! tests would take hours under Miri.

#![cfg(feature = "bson")]

use millstream::bson::julia::{self, Graph};
use millstream::bson::{
    self, Builder, DateTime, Decimal128, Document, FromBson, Json, Map, ObjectId, Rules, Strictness, Timestamp, ToBson,
    Value, ValueRef, View, from_json, json_to_bson,
};
use millstream::{ErrorKind, Result};

/// Returns a document with every type except the deprecated ones.
const TEXT: &str = concat!(
    r#"{"double":{"$numberDouble":"1.5"},"string":"aé","object":{"a":{"$numberInt":"-2"}},"#,
    r#""array":[{"$numberInt":"1"},null,{"$numberLong":"-5000000000"}],"#,
    r#""binary":{"$binary":{"base64":"AAEC","subType":"80"}},"id":{"$oid":"507f1f77bcf86cd799439011"},"bool":true,"#,
    r#""date":{"$date":{"$numberLong":"1600000000123"}},"regex":{"$regularExpression":{"pattern":"p","options":"i"}},"#,
    r#""code":{"$code":"c","$scope":{"a":{"$numberInt":"1"}}},"timestamp":{"$timestamp":{"t":1,"i":2}},"#,
    r#""decimal":{"$numberDecimal":"-1.5E+3"},"min":{"$minKey":1},"max":{"$maxKey":1}}"#
);

fn everything() -> Vec<u8> {
    let mut bytes = Vec::new();
    json_to_bson(TEXT, Rules::new(), &mut bytes).unwrap();
    bytes
}

#[test]
fn walked_and_checked() {
    let bytes = everything();
    let strict = Document::with_rules(&bytes, Rules::new().strictness(Strictness::Strict)).unwrap();
    strict.check().unwrap();
    let kinds: Vec<_> = strict.iter().map(|element| element.unwrap().kind().name()).collect();
    assert_eq!(kinds.len(), 14);
    assert_eq!((kinds[0], kinds[13]), ("double", "maxKey"));
    assert_eq!(strict.get_path::<i32>(["object", "a"]).unwrap(), Some(-2));
    assert_eq!(strict.get_path::<i64>(["array", "2"]).unwrap(), Some(-5_000_000_000));
    assert_eq!(strict.get::<&str>("string").unwrap(), Some("aé"));
    assert_eq!(strict.get::<Timestamp>("timestamp").unwrap(), Some(Timestamp { time: 1, increment: 2 }));
    let error = strict.get::<bool>("string").unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("string")));
}

#[test]
fn every_cut_is_an_error() {
    let bytes = everything();
    // Miri takes minutes for all cases, so it runs every seventh.
    for len in (0..bytes.len()).step_by(if cfg!(miri) { 7 } else { 1 }) {
        assert!(Document::new(&bytes[..len]).is_err(), "{len}");
        // The same cases, after a valid length.
        if len > 4 {
            let mut cut = bytes[..len].to_vec();
            cut.push(0);
            let length = (cut.len() as u32).to_le_bytes();
            cut[..4].copy_from_slice(&length);
            let checked = Document::new(&cut).and_then(|document| document.check());
            assert_eq!(checked.is_ok(), Map::from_slice(&cut).is_ok(), "{len}");
        }
    }
}

#[test]
fn texts_of_every_length() {
    // These lengths are next to the step sizes of the text check. The invalid byte is at the end of the text.
    for len in 0..70 {
        let text = "x".repeat(len) + "é";
        let mut bytes = bson::encode(&Map::from([("s", &text[..])])).unwrap();
        assert_eq!(Document::new(&bytes).unwrap().get::<&str>("s").unwrap(), Some(&text[..]));
        let last = bytes.len() - 3;
        bytes[last] = b'x';
        let error = Document::new(&bytes).unwrap().check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Utf8Invalid, "{len}");
    }
}

#[test]
fn built() -> Result<()> {
    let mut builder = Builder::new();
    builder.append("n", &1_i64)?;
    builder.open_array("list")?;
    for n in 0..12 {
        builder.push(&n)?;
    }
    builder.push_document()?;
    builder.append("id", &ObjectId([7; 12]))?;
    builder.close()?;
    builder.close()?;
    let bytes = builder.into_bytes()?;
    let document = Document::with_rules(&bytes, Rules::new().strictness(Strictness::Strict))?;
    document.check()?;
    assert_eq!(document.get_path::<i32>(["list", "11"])?, Some(11));
    assert_eq!(document.get_path::<ObjectId>(["list", "12", "id"])?, Some(ObjectId([7; 12])));
    Ok(())
}

#[test]
fn values_and_text() {
    let bytes = everything();
    let map = Map::from_slice(&bytes).unwrap();
    assert_eq!(map.to_vec().unwrap(), bytes);
    assert_eq!(map["decimal"], Value::Decimal128("-1.5E+3".parse::<Decimal128>().unwrap()));
    assert_eq!(map["date"], Value::DateTime(DateTime(1_600_000_000_123)));
    assert_eq!(map.to_json(Json::Canonical).unwrap(), TEXT);
    let relaxed = map.to_json(Json::Relaxed).unwrap();
    assert!(relaxed.contains(r#""date":{"$date":"2020-09-13T12:26:40.123Z"}"#), "{relaxed}");
    assert_eq!(from_json(&relaxed).unwrap(), map);
    let error = from_json(r#"{"a": [1, {"$oid": "x"}]}"#).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::TextInvalid, Some("a.1")));
    assert_eq!(bson::to_vec(&map).unwrap(), bytes);
    assert_eq!(bson::from_slice::<Map>(&bytes).unwrap(), map);
}

#[test]
fn indexed() {
    let bytes = everything();
    let document = Document::new(&bytes).unwrap();
    let index = document.index().unwrap();
    for element in document {
        let element = element.unwrap();
        let key = element.key().unwrap();
        assert_eq!(index.get::<ValueRef>(key).unwrap(), document.get::<ValueRef>(key).unwrap());
    }
    assert!(!index.contains("none"));
}

#[test]
fn derived() {
    #[derive(Debug, PartialEq, FromBson, ToBson)]
    struct Record<'a> {
        id: i64,
        name: &'a str,
        at: DateTime,
        scores: Vec<f64>,
        raw: &'a [u8],
        #[bson(flatten)]
        rest: std::collections::BTreeMap<&'a str, i32>,
    }
    let record = Record {
        id: -1,
        name: "é",
        at: DateTime(1),
        scores: vec![0.5, -2.0],
        raw: &[1, 2],
        rest: [("a", 1), ("b", -1)].into(),
    };
    let bytes = bson::encode(&record).unwrap();
    assert_eq!(bson::decode::<Record>(&bytes).unwrap(), record);
    assert_eq!(Document::new(&bytes).unwrap().get::<i64>("id").unwrap(), Some(-1));
}

#[test]
fn a_graph_of_julia() -> Result<()> {
    let numbers = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut builder = julia::Builder::new();
    let weights = builder.array(&numbers, &[2, 3])?;
    let bits = builder.bit_array(&[true, false, true], &[3])?;
    let name = builder.string("dense");
    let pair = builder.tuple([name, weights])?;
    let root = builder.document([("weights", weights), ("pair", pair), ("bits", bits), ("same", weights)])?;
    let bytes = builder.finish(root)?.to_vec()?;
    Document::new(&bytes)?.check()?;
    let graph = Graph::read(Document::new(&bytes)?)?;
    assert_eq!(graph.root().get("weights").unwrap().id(), graph.root().get("same").unwrap().id());
    let text = graph.to_string();
    assert!(text.contains(r#"{"$array":[1.0,2.0,3.0,4.0,5.0,6.0],"eltype":"Float32","size":[2,3]}"#), "{text}");
    assert!(text.contains(r#"{"$bitarray":[true,false,true],"size":[3]}"#), "{text}");
    assert_eq!(graph.to_vec()?, bytes);
    Ok(())
}

#[test]
fn numbers_are_seen() {
    let payload: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let bytes = bson::encode(&Map::from([("v", &payload[..])])).unwrap();
    let view: View<f64> = Document::new(&bytes).unwrap().require("v").unwrap();
    assert_eq!(view.iter().collect::<Vec<_>>(), [1.5, -2.0]);
}
