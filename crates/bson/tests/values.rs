//! Tests of owned values and Extended JSON: the shared vectors, and round trips that are compared with the crate
//! `bson`.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use millstream_bson::{
    DateTime, Decimal128, Document, Json, Map, ObjectId, Rules, Timestamp, Value, from_json, json_to_bson,
};
use millstream_core::ErrorKind;
use proptest::prelude::*;

const DOCUMENTS: &str = include_str!("../../../vectors/bson.tsv");
const DECIMALS: &str = include_str!("../../../vectors/decimal128.tsv");

/// The lines of a table, split into four columns.
fn rows(table: &str) -> Vec<[&str; 4]> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows: Vec<_> = lines
        .map(|line| {
            line.split('\t').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("not four columns: {line}"))
        })
        .collect();
    assert!(rows.len() > 50, "only {} rows", rows.len());
    rows
}

#[test]
fn documents() {
    for [name, hex, canonical, relaxed] in rows(DOCUMENTS) {
        let bytes = HEXLOWER.decode(hex.as_bytes()).unwrap();
        let document = Document::new(&bytes);
        if let Some(kind) = canonical.strip_prefix("error ") {
            let refused = |result: millstream_core::Result<()>| result.err().map(|error| error.kind().name());
            assert_eq!(refused(document.and_then(|document| document.check())), Some(kind), "{name}");
            assert_eq!(refused(Map::from_slice(&bytes).map(drop)), Some(kind), "{name}, owned");
            assert_eq!(refused(document_to_json(&bytes)), Some(kind), "{name}, as JSON");
            continue;
        }
        let document = document.unwrap();
        let relaxed = if relaxed == "=" { canonical } else { relaxed };
        document.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        let map = Map::from_document(document).unwrap();
        assert_eq!(map.to_vec().unwrap(), bytes, "{name}");
        assert_eq!(document.to_json(Json::Canonical).unwrap(), canonical, "{name}");
        assert_eq!(document.to_json(Json::Relaxed).unwrap(), relaxed, "{name}");
        assert_eq!(from_json(canonical).unwrap().to_vec().unwrap(), bytes, "{name}");
        assert_eq!(from_json(relaxed).unwrap().to_json(Json::Relaxed).unwrap(), relaxed, "{name}");
    }
}

fn document_to_json(bytes: &[u8]) -> millstream_core::Result<()> {
    Document::new(bytes)?.to_json(Json::Relaxed).map(drop)
}

#[test]
fn decimals() {
    for [name, text, hex, canonical] in rows(DECIMALS) {
        if hex == "error" {
            assert_eq!(text.parse::<Decimal128>().unwrap_err().kind(), ErrorKind::TextInvalid, "{name}");
            continue;
        }
        let number = Decimal128(HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).unwrap().try_into().unwrap());
        let canonical = if canonical == "=" { text } else { canonical };
        assert_eq!(number.to_string(), canonical, "{name}");
        if text != "-" {
            assert_eq!(text.parse::<Decimal128>().unwrap(), number, "{name}");
        }
    }
}

#[test]
fn json_that_is_written_by_others() {
    for (text, canonical) in [
        (" {\r\n\t} ", "{}"),
        (r#"{"v": -0}"#, r#"{"v":{"$numberDouble":"-0.0"}}"#),
        (r#"{"v": 1e2}"#, r#"{"v":{"$numberDouble":"100.0"}}"#),
        (r#"{"v": 2147483648}"#, r#"{"v":{"$numberLong":"2147483648"}}"#),
        (r#"{"v": 9223372036854775808}"#, r#"{"v":{"$numberDouble":"9.223372036854776E+18"}}"#),
        (r#"{"v": "\u00e9\ud83d\ude00"}"#, r#"{"v":"é😀"}"#),
        (r#"{"v": {"$scope": {"$a": 1}, "$code": "c"}}"#, r#"{"v":{"$code":"c","$scope":{"$a":{"$numberInt":"1"}}}}"#),
        (r#"{"$oid": "of no object"}"#, r#"{"$oid":"of no object"}"#),
        (r#"{"v": {"$date": "1969-12-31T23:59:59-00:30"}}"#, r#"{"v":{"$date":{"$numberLong":"1799000"}}}"#),
        (
            r#"{"v": {"$binary": {"subType": "0", "base64": "AA=="}}}"#,
            r#"{"v":{"$binary":{"base64":"AA==","subType":"00"}}}"#,
        ),
        (r#"{"a": 1, "a": {"b": 1, "b": []}}"#, r#"{"a":{"$numberInt":"1"},"a":{"b":{"$numberInt":"1"},"b":[]}}"#),
        (r#"{"v": {"$ref": "c", "$id": 1, "$db": null}}"#, r#"{"v":{"$ref":"c","$id":{"$numberInt":"1"},"$db":null}}"#),
    ] {
        assert_eq!(from_json(text).unwrap().to_json(Json::Canonical).unwrap(), canonical, "{text}");
    }
    for text in [
        r#"{"v": {"$numberInt": "+1"}}"#,
        r#"{"v": {"$numberInt": "1.0"}}"#,
        r#"{"v": {"$numberLong": "9223372036854775808"}}"#,
        r#"{"v": {"$numberDouble": "inf"}}"#,
        r#"{"v": {"$numberDouble": "1e999"}}"#,
        r#"{"v": {"$binary": {"subType": "+1", "base64": ""}}}"#,
        r#"{"v": {"$binary": {"subType": "100", "base64": ""}}}"#,
        r#"{"v": {"$binary": {"subType": "00", "base64": "AA"}}}"#,
        r#"{"v": {"$binary": {"subType": "00", "base64": "", "base64": ""}}}"#,
        r#"{"v": {"$timestamp": {"t": -1, "i": 0}}}"#,
        r#"{"v": {"$timestamp": {"t": 4294967296, "i": 0}}}"#,
        r#"{"v": {"$date": {"$numberLong": "0", "more": 1}}}"#,
        r#"{"v": {"$dbPointer": {"$ref": "c", "$id": {"$oid": "0"}}}}"#,
        r#"{"v": {"$undefined": false}}"#,
        r#"{"v": {"$code": "a", "$code": "b"}}"#,
        r#"{"v": {"$code": "a", "$scope": {"$oid": "0102030405060708090a0b0c"}}}"#,
        r#"{"v": 1,}"#,
        "null",
    ] {
        assert_eq!(from_json(text).map_err(|error| error.kind()), Err(ErrorKind::TextInvalid), "{text}");
    }
}

// Round trips.

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{0,10}", 1 => any::<String>()]
}

/// Text without a NUL.
fn bare() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.replace('\0', ""))
}

/// Keys; a few begin with a dollar sign, but none is the key of a wrapper.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![8 => bare(), 1 => Just("$gt".to_string()), 1 => Just("$ref".to_string())]
        .prop_filter("keys of wrappers", |key| !key.starts_with('$') || ["$gt", "$ref"].contains(&key.as_str()))
}

fn leaf() -> impl Strategy<Value = Value> {
    let decimal = any::<[u8; 16]>().prop_map(|bytes| Decimal128(bytes).to_string().parse().unwrap());
    let regex = (bare(), "i?m?s?x?");
    prop_oneof![
        // All NaNs have the same text, so only one of them is used here.
        prop::num::f64::ANY.prop_map(|number| Value::Double(if number.is_nan() { f64::NAN } else { number })),
        text().prop_map(Value::String),
        (any::<u8>(), any::<Vec<u8>>()).prop_map(|(subtype, bytes)| Value::Binary { subtype, bytes }),
        Just(Value::Undefined),
        any::<[u8; 12]>().prop_map(|id| Value::ObjectId(ObjectId(id))),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![any::<i64>(), 0_i64..253_402_300_800_000].prop_map(|date| Value::DateTime(DateTime(date))),
        Just(Value::Null),
        regex.prop_map(|(pattern, options)| Value::Regex { pattern, options }),
        (text(), any::<[u8; 12]>()).prop_map(|(namespace, id)| Value::DbPointer { namespace, id: ObjectId(id) }),
        text().prop_map(Value::Code),
        text().prop_map(Value::Symbol),
        any::<i32>().prop_map(Value::Int32),
        any::<u64>().prop_map(|bits| Value::Timestamp(Timestamp::from_bits(bits))),
        any::<i64>().prop_map(Value::Int64),
        decimal.prop_map(Value::Decimal128),
        Just(Value::MinKey),
        Just(Value::MaxKey),
    ]
}

fn map_of(value: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Map> {
    prop::collection::vec((key(), value), 0..6).prop_map(|members| members.into_iter().collect())
}

fn map() -> impl Strategy<Value = Map> {
    let value = leaf().prop_recursive(4, 40, 6, |value| {
        prop_oneof![
            map_of(value.clone()).prop_map(Value::Document),
            prop::collection::vec(value.clone(), 0..13).prop_map(Value::Array),
            (text(), map_of(value)).prop_map(|(code, scope)| Value::CodeWithScope { code, scope }),
        ]
    });
    map_of(value)
}

/// Sorts all keys alphabetically, because the serde_json values that the crate `bson` uses do not keep another order.
fn sorted(map: Map) -> Map {
    let mut members: Vec<(String, Value)> = map.into_iter().map(|(key, value)| (key, sorted_value(value))).collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    members.into_iter().collect()
}

fn sorted_value(value: Value) -> Value {
    match value {
        Value::Document(map) => Value::Document(sorted(map)),
        Value::Array(values) => values.into_iter().map(sorted_value).collect(),
        Value::CodeWithScope { code, scope } => Value::CodeWithScope { code, scope: sorted(scope) },
        other => other,
    }
}

proptest! {
    #[test]
    fn values_come_back(map in map()) {
        let bytes = map.to_vec().unwrap();
        let document = Document::new(&bytes).unwrap();
        document.check().unwrap();
        let again = Map::from_document(document).unwrap();
        prop_assert_eq!(again.to_vec().unwrap(), &bytes[..]);

        let canonical = document.to_json(Json::Canonical).unwrap();
        let mut from_canonical = Vec::new();
        json_to_bson(&canonical, Rules::new(), &mut from_canonical).unwrap();
        prop_assert_eq!(&from_canonical, &bytes, "{}", canonical);
        let relaxed = document.to_json(Json::Relaxed).unwrap();
        prop_assert_eq!(from_json(&relaxed).unwrap().to_json(Json::Relaxed).unwrap(), &relaxed[..]);
        for text in [&canonical, &relaxed] {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok(), "no JSON: {}", text);
        }
        // Values are equal if their bytes are equal, except for NaN.
        prop_assert_eq!(again == map, !canonical.contains(r#"{"$numberDouble":"NaN"}"#));
    }

    #[test]
    fn the_crate_bson_agrees(map in map()) {
        let map = sorted(map);
        let bytes = map.to_vec().unwrap();
        let theirs = bson::Document::from_reader(&bytes[..]).unwrap();
        prop_assert_eq!(theirs.to_vec().unwrap(), &bytes[..]);
        let ours = Document::new(&bytes).unwrap().to_json(Json::Canonical).unwrap();

        let json = bson::Bson::Document(theirs).into_canonical_extjson().to_string();
        prop_assert_eq!(from_json(&json).unwrap().to_json(Json::Canonical).unwrap(), &ours[..], "{}", json);

        let json: serde_json::Value = serde_json::from_str(&ours).unwrap();
        let bson::Bson::Document(theirs) = bson::Bson::try_from(json).unwrap() else { panic!("{ours}") };
        prop_assert_eq!(theirs.to_vec().unwrap(), bytes, "{}", ours);
    }
}
