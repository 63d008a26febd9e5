//! serde for BSON: every shape that a type can have, compared with the `bson` crate where it supports the shape.

#![cfg(feature = "bson")]

use millstream::bson::{
    self as ours, Array, Binary, DateTime, Decimal128, Document, Map, ObjectId, Rules, Strictness, Timestamp, Utf8,
    Value, ValueRef,
};
use millstream::{Error, ErrorKind, Writer};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

/// Returns a document written by the other crate.
fn document(value: bson::Document) -> Vec<u8> {
    bson::serialize_to_vec(&value).unwrap()
}

/// Both crates write the same bytes, and this crate reads the value back.
#[track_caller]
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) -> Vec<u8> {
    let bytes = ours::to_vec(&value).unwrap();
    assert_eq!(bytes, bson::serialize_to_vec(&value).unwrap());
    assert_eq!(ours::from_slice::<T>(&bytes).unwrap(), value);
    bytes
}

/// This crate reads the value that it wrote, if the other crate does not.
#[track_caller]
fn round<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) -> Vec<u8> {
    let bytes = ours::to_vec(&value).unwrap();
    Document::new(&bytes).unwrap().check().unwrap();
    assert_eq!(ours::from_slice::<T>(&bytes).unwrap(), value);
    bytes
}

/// A struct around any value, because the outermost value must be a document.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Of<T> {
    v: T,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Unit;
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct New(String);
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Pair(i32, String);
#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum External {
    Unit,
    New(i64),
    Pair(i32, bool),
    Struct { a: i32, b: Option<String> },
}
#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "type")]
enum Internal {
    Unit,
    New(Of<i64>),
    Struct { a: i32, b: Option<String> },
}
#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "type", content = "content")]
enum Adjacent {
    Unit,
    New(i64),
    Pair(i32, bool),
    Struct { a: i32, b: Option<String> },
}
#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Untagged {
    Unit,
    Number(i64),
    Pair(i32, bool),
    Struct { a: i32, b: Option<String> },
    Text(String),
}

#[test]
fn numbers_and_text_have_equal_bytes() {
    same(Of { v: i8::MIN });
    same(Of { v: i16::MIN });
    same(Of { v: i32::MIN });
    same(Of { v: i64::MIN });
    same(Of { v: u8::MAX });
    same(Of { v: u16::MAX });
    assert_eq!(same(Of { v: 7u32 })[4], 0x12);
    same(Of { v: u32::MAX });
    same(Of { v: i64::MAX as u64 });
    same(Of { v: 1.5f32 });
    same(Of { v: -0.1f64 });
    same(Of { v: true });
    same(Of { v: 'ü' });
    same(Of { v: "größe\0 \u{10ffff}".to_string() });
    same(Of { v: String::new() });
    same(Of { v: serde_bytes::ByteBuf::from([1, 2, 3]) });
    round(Of { v: i128::from(i64::MIN) });
    round(Of { v: i64::MAX as u128 });
}

#[test]
fn shapes_have_equal_bytes() {
    same(Of { v: () });
    same(Of { v: Unit });
    same(Of { v: New("x".into()) });
    same(Of { v: Pair(1, "x".into()) });
    same(Of { v: (1, "x".to_string(), [true, false]) });
    same(Of { v: None::<i32> });
    same(Of { v: Some(3) });
    same(Of { v: Some(Of { v: Some(vec![Some(1), None]) }) });
    same(Of { v: (0..1234).collect::<Vec<i32>>() });
    same(Of { v: BTreeMap::from([("a".to_string(), 1), ("b c".to_string(), 2), (String::new(), 3)]) });
    same(Of { v: vec![BTreeMap::from([("a".to_string(), vec![1])]), BTreeMap::new()] });
    same(BTreeMap::from([("a".to_string(), 1)]));
    same(New2(Of { v: 1 }));

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct New2(Of<i32>);
}

#[test]
fn enums_in_every_representation_have_equal_bytes() {
    let b = || Some("x".to_string());
    for v in [External::Unit, External::New(7), External::Pair(1, true), External::Struct { a: 1, b: b() }] {
        same(Of { v });
    }
    same(External::New(7));
    for v in [Internal::Unit, Internal::New(Of { v: 7 }), Internal::Struct { a: 1, b: None }] {
        same(Of { v });
    }
    same(Internal::Struct { a: 1, b: b() });
    for v in [Adjacent::Unit, Adjacent::New(7), Adjacent::Pair(1, true), Adjacent::Struct { a: 1, b: b() }] {
        same(Of { v });
    }
    let text = Untagged::Text("t".into());
    for v in [Untagged::Unit, Untagged::Number(7), Untagged::Pair(1, true), Untagged::Struct { a: 1, b: b() }, text] {
        same(Of { v });
    }
    same(Of { v: vec![External::Pair(1, true), External::Unit] });
    // A map's keys may be variants without content.
    #[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
    enum Color {
        Red,
    }
    same(Of { v: BTreeMap::from([(Color::Red, 1)]) });
}

#[test]
fn a_variant_is_text_or_a_document_of_one_member() {
    let read = |value: bson::Bson| ours::from_slice::<Of<External>>(&document(bson::doc! { "v": value }));
    assert_eq!(read("Unit".into()).unwrap().v, External::Unit);
    assert_eq!(read(bson::Bson::Symbol("Unit".into())).unwrap().v, External::Unit);
    assert_eq!(read(bson::bson!({ "Unit": null })).unwrap().v, External::Unit);
    for (value, kind, found) in [
        (bson::bson!({}), ErrorKind::ShapeMismatch, "a document with no member or several"),
        (bson::bson!({ "New": 1, "Unit": null }), ErrorKind::ShapeMismatch, "a document with no member or several"),
        (bson::bson!({ "Other": 1 }), ErrorKind::ShapeMismatch, "the variant \"Other\""),
        (bson::bson!("Other"), ErrorKind::ShapeMismatch, "the variant \"Other\""),
        (bson::bson!("New"), ErrorKind::ShapeMismatch, "unit variant"),
        (bson::bson!(1), ErrorKind::ShapeMismatch, "a value of type int"),
        (bson::bson!({ "Pair": [1] }), ErrorKind::ShapeMismatch, "1 elements"),
        (bson::bson!({ "Pair": [1, true, 3] }), ErrorKind::ShapeMismatch, "more than 2 elements"),
    ] {
        let error = read(value).unwrap_err();
        assert_eq!((error.kind(), error.found(), error.path().unwrap().as_bytes()[0]), (kind, Some(found), b'v'));
    }
}

#[test]
fn attributes_work() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Inner {
        x: i32,
        y: Option<String>,
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "camelCase")]
    struct Outer {
        #[serde(alias = "ident", alias = "_id")]
        id: i64,
        #[serde(default)]
        missing_one: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<i32>,
        #[serde(flatten)]
        inner: Inner,
        #[serde(with = "text")]
        number: u64,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    mod text {
        use super::*;
        pub fn serialize<S: serde::Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(value)
        }
        pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(|_| serde::de::Error::custom(format_args!("{text:?} is no number")))
        }
    }
    let rest = BTreeMap::from([
        ("more".to_string(), Value::Array(vec![Value::Int64(1), Value::Double(2.0), Value::Null])),
        ("id2".to_string(), Value::ObjectId(ObjectId([7; 12]))),
        ("date".to_string(), Value::DateTime(DateTime(-5))),
        ("bytes".to_string(), Value::Binary { subtype: 5, bytes: vec![1, 2] }),
    ]);
    let inner = Inner { x: 1, y: Some("y".into()) };
    let value = Outer { id: 5, missing_one: 0, skipped: None, inner, number: 77, rest };
    let bytes = round(value);
    let mut map = Map::from_slice(&bytes).unwrap();
    assert_eq!(map["number"], Value::String("77".into()));
    for name in ["ident", "_id"] {
        let id = map.remove("id").or_else(|| map.remove("ident")).unwrap();
        map.append(name, id);
        assert_eq!(ours::from_slice::<Outer>(&map.to_vec().unwrap()).unwrap().id, 5);
    }
    map.insert("number", "many");
    let error = ours::from_slice::<Outer>(&map.to_vec().unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.found()), (ErrorKind::ShapeMismatch, Some("\"many\" is no number")));
}

/// If fields have aliases, the third name does not refer to the third field.
#[test]
fn fields_are_found_by_name_in_any_order() {
    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        #[serde(alias = "A", alias = "aa")]
        a: i32,
        b: i32,
        #[serde(alias = "C")]
        c: i32,
    }
    for keys in [["a", "b", "c"], ["A", "b", "C"], ["aa", "C", "b"], ["c", "b", "a"], ["b", "C", "A"], ["C", "aa", "b"]]
    {
        let of = |key: &str| {
            if key.eq_ignore_ascii_case("b") {
                2
            } else if key.eq_ignore_ascii_case("c") {
                3
            } else {
                1
            }
        };
        let map: Map = keys.into_iter().map(|key| (key, of(key))).collect();
        let fields: Fields = ours::from_slice(&map.to_vec().unwrap()).unwrap();
        assert_eq!(fields, Fields { a: 1, b: 2, c: 3 }, "{keys:?}");
    }
    let error = |map: Map| ours::from_slice::<Fields>(&map.to_vec().unwrap()).unwrap_err();
    let missing = error(Map::from([("a", 1), ("b", 2)]));
    assert_eq!((missing.kind(), missing.expected()), (ErrorKind::KeyMissing, Some("a member \"c\"")));
    let unknown = error(Map::from([("a", 1), ("x", 2)]));
    assert_eq!((unknown.kind(), unknown.found()), (ErrorKind::ShapeMismatch, Some("the member \"x\"")));
    let twice = error(Map::from([("a", 1), ("A", 1)]));
    assert_eq!((twice.kind(), twice.found()), (ErrorKind::ShapeMismatch, Some("the member \"a\" twice")));
    let many: Map = (0..50).map(|i| (format!("k{i}"), i)).collect();
    let read: HashMap<String, i32> = ours::from_slice(&many.to_vec().unwrap()).unwrap();
    assert_eq!(read.len(), 50);
}

#[test]
fn integers_are_checked() {
    fn read<T: DeserializeOwned>(value: impl Into<bson::Bson>) -> Result<T, (ErrorKind, Option<u64>)> {
        let read = ours::from_slice::<Of<T>>(&document(bson::doc! { "v": value.into() }));
        read.map(|of| of.v).map_err(|error| {
            assert_eq!(error.path(), Some("v"));
            (error.kind(), error.offset())
        })
    }
    let range = (ErrorKind::ValueOutOfRange, Some(7));
    assert_eq!(read::<u8>(255), Ok(255));
    assert_eq!(read::<u8>(256), Err(range));
    assert_eq!(read::<u8>(-1), Err(range));
    assert_eq!(read::<i8>(-128i64), Ok(-128));
    assert_eq!(read::<i32>(i64::from(i32::MAX) + 1), Err(range));
    assert_eq!(read::<u64>(-1i64), Err(range));
    assert_eq!(read::<u64>(i64::MAX), Ok(i64::MAX as u64));
    assert_eq!(read::<u128>(i64::MAX), Ok(i64::MAX as u128));
    assert_eq!(read::<i128>(-1), Ok(-1));
    assert_eq!(read::<u16>(300.0), Ok(300));
    assert_eq!(read::<u8>(300.0), Err(range));
    assert_eq!(read::<i32>(2.5), Err(range));
    assert_eq!(read::<i64>(f64::NAN), Err(range));
    assert_eq!(read::<i64>(9.3e18), Err(range));
    assert_eq!(read::<f64>(3), Ok(3.0));
    assert_eq!(read::<f64>(i64::MAX), Err(range));
    assert_eq!(read::<f32>(1 << 24), Ok(16_777_216.0));
    assert_eq!(read::<i32>("3"), Err((ErrorKind::ShapeMismatch, Some(7))));
    assert_eq!(read::<bool>(1), Err((ErrorKind::ShapeMismatch, Some(7))));
    assert_eq!(read::<char>("ab"), Err((ErrorKind::ValueOutOfRange, Some(7))));
    assert_eq!(read::<(i32, i32)>(vec![1, 2, 3]).unwrap_err().0, ErrorKind::ShapeMismatch);
    assert_eq!(read::<Option<i32>>(bson::Bson::Undefined), Ok(None));
    assert_eq!(read::<()>(bson::Bson::Undefined), Ok(()));
    assert_eq!(read::<String>(bson::Bson::Symbol("s".into())), Ok("s".into()));
    assert_eq!(read::<String>(bson::Bson::JavaScriptCode("c".into())), Ok("c".into()));
}

#[test]
fn borrowed_values_are_in_the_input() {
    #[derive(Deserialize)]
    struct Borrowed<'a> {
        text: &'a str,
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
        #[serde(borrow)]
        list: Vec<&'a str>,
        #[serde(borrow)]
        cow: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        map: BTreeMap<&'a str, ValueRef<'a>>,
        document: Document<'a>,
        array: Array<'a>,
        binary: Binary<&'a [u8]>,
    }
    let bytes = document(bson::doc! {
        "text": "hello", "bytes": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2, 3] },
        "list": ["a", "b"], "cow": "moo", "map": { "key": "value" }, "document": { "n": 1 }, "array": [1, 2],
        "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Md5, bytes: vec![4; 16] },
    });
    let range = bytes.as_ptr_range();
    let inside = |part: &[u8]| {
        assert!(!part.is_empty() && range.contains(&part.as_ptr()) && part.as_ptr_range().end < range.end);
    };
    let read: Borrowed = ours::from_slice(&bytes).unwrap();
    inside(read.text.as_bytes());
    inside(read.bytes);
    inside(read.list[1].as_bytes());
    assert!(matches!(read.cow, std::borrow::Cow::Borrowed("moo")));
    inside(read.cow.as_bytes());
    let (key, ValueRef::String(value)) = read.map.first_key_value().map(|(key, value)| (*key, *value)).unwrap() else {
        panic!("a string")
    };
    inside(key.as_bytes());
    inside(value.as_bytes());
    inside(read.document.as_bytes());
    inside(read.array.as_bytes());
    assert_eq!((read.binary.subtype, read.binary.bytes), (5, &[4; 16][..]));
    inside(read.binary.bytes);
    assert_eq!(read.document.get::<i32>("n").unwrap(), Some(1));
    assert_eq!(read.array.count().unwrap(), 2);
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Foreign {
    id: bson::oid::ObjectId,
    at: bson::DateTime,
    generic: bson::Binary,
    md5: bson::Binary,
    old: bson::Binary,
    uuid: bson::Uuid,
    regex: bson::Regex,
    timestamp: bson::Timestamp,
    decimal: bson::Decimal128,
    scoped: bson::JavaScriptCodeWithScope,
    document: bson::Document,
    raw: bson::RawDocumentBuf,
    array: bson::RawArrayBuf,
    any: Vec<bson::Bson>,
    raw_any: Vec<bson::RawBson>,
    maybe: Option<bson::DateTime>,
}

fn everything() -> Vec<bson::Bson> {
    use bson::{Bson, spec::BinarySubtype as S};
    let id = bson::oid::ObjectId::from_bytes(*b"\x50\x7f\x1f\x77\xbc\xf8\x6c\xd7\x99\x43\x90\x11");
    let document = bson::doc! { "x": 1, "y": ["z", null, { "deep": 2.5 }] };
    let scoped = bson::JavaScriptCodeWithScope { code: "f()".into(), scope: bson::doc! { "a": "b" } };
    vec![
        Bson::Double(1.5),
        Bson::String("text".into()),
        Bson::Array(vec![Bson::Int32(1), Bson::Null]),
        Bson::Document(document),
        Bson::Boolean(true),
        Bson::Null,
        bson::Regex { pattern: "^a".try_into().unwrap(), options: "im".try_into().unwrap() }.into(),
        Bson::JavaScriptCode("g()".into()),
        Bson::JavaScriptCodeWithScope(scoped),
        Bson::Int32(-1),
        Bson::Int64(1 << 40),
        Bson::Timestamp(bson::Timestamp { time: u32::MAX, increment: 7 }),
        Bson::Binary(bson::Binary { subtype: S::Generic, bytes: vec![1, 2, 3] }),
        Bson::Binary(bson::Binary { subtype: S::Md5, bytes: vec![9; 16] }),
        Bson::Binary(bson::Binary { subtype: S::UserDefined(0x80), bytes: vec![] }),
        Bson::ObjectId(id),
        Bson::DateTime(bson::DateTime::from_millis(1_600_000_000_123)),
        Bson::DateTime(bson::DateTime::MIN),
        Bson::Symbol("sym".into()),
        Bson::Decimal128("-1.50E+3".parse().unwrap()),
        Bson::Undefined,
        Bson::MaxKey,
        Bson::MinKey,
        bson::deserialize_from_slice::<bson::Document>(
            b"\x1d\0\0\0\x0cp\0\x05\0\0\0db.c\0\x50\x7f\x1f\x77\xbc\xf8\x6c\xd7\x99\x43\x90\x11\0",
        )
        .unwrap()
        .remove("p")
        .unwrap(),
    ]
}

#[test]
fn types_of_the_bson_crate_are_read_and_written() {
    let any = everything();
    let raw_any: Vec<bson::RawBson> = any.iter().map(|value| value.clone().try_into().unwrap()).collect();
    let inner = bson::doc! { "x": [1, { "y": "z" }] };
    let array = bson::RawArrayBuf::from_iter([1, 2, 3]);
    let of = |subtype, bytes: &[u8]| bson::Binary { subtype, bytes: bytes.to_vec() };
    same(Foreign {
        id: bson::oid::ObjectId::from_bytes([7; 12]),
        at: bson::DateTime::from_millis(-1),
        generic: of(bson::spec::BinarySubtype::Generic, b"abc"),
        md5: of(bson::spec::BinarySubtype::Md5, &[1; 16]),
        old: of(bson::spec::BinarySubtype::BinaryOld, b"old"),
        uuid: bson::Uuid::from_bytes([5; 16]),
        regex: bson::Regex { pattern: "a.*".try_into().unwrap(), options: "ix".try_into().unwrap() },
        timestamp: bson::Timestamp { time: 1, increment: 2 },
        decimal: "12.34".parse().unwrap(),
        scoped: bson::JavaScriptCodeWithScope { code: "f()".into(), scope: inner.clone() },
        document: inner.clone(),
        raw: inner.try_into().unwrap(),
        array,
        any,
        raw_any,
        maybe: Some(bson::DateTime::from_millis(5)),
    });
    // Options are written in alphabetical order.
    let regex = Of { v: bson::Regex { pattern: "a".try_into().unwrap(), options: "xi".try_into().unwrap() } };
    assert_eq!(ours::to_vec(&regex).unwrap(), bson::serialize_to_vec(&regex).unwrap());
    assert!(ours::to_vec(&regex).unwrap().windows(3).any(|window| window == b"ix\0"));
    // This applies to the root as well.
    let document: bson::Document =
        everything().into_iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect();
    same(document.clone());
    let raw = bson::RawDocumentBuf::try_from(document.clone()).unwrap();
    same(raw.clone());
    let borrowed: &bson::RawDocument = ours::from_slice(raw.as_bytes()).unwrap();
    assert_eq!(borrowed.as_bytes().as_ptr(), raw.as_bytes().as_ptr());
    // A UUID does not accept arbitrary bytes.
    let bytes = ours::to_vec(&Of { v: of(bson::spec::BinarySubtype::Md5, &[1; 16]) }).unwrap();
    let error = ours::from_slice::<Of<bson::Uuid>>(&bytes).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("v")));
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Ours {
    id: ObjectId,
    at: DateTime,
    timestamp: Timestamp,
    decimal: Decimal128,
    maybe: Option<DateTime>,
    list: Vec<ObjectId>,
    any: Value,
    map: Map,
    by_id: BTreeMap<ObjectId, i32>,
}

fn our_types() -> Ours {
    let members = [("z", Value::Int64(1)), ("a", Value::Regex { pattern: "p".into(), options: "i".into() })];
    Ours {
        id: ObjectId(*b"\x50\x7f\x1f\x77\xbc\xf8\x6c\xd7\x99\x43\x90\x11"),
        at: DateTime(1_600_000_000_123),
        timestamp: Timestamp { time: 1, increment: u32::MAX },
        decimal: "-1.5E+3".parse().unwrap(),
        maybe: None,
        list: vec![ObjectId([1; 12]), ObjectId([2; 12])],
        any: Value::Array(vec![Value::MinKey, Value::Binary { subtype: 4, bytes: vec![1; 16] }, Value::Int32(1)]),
        map: Map::from(members),
        by_id: BTreeMap::from([(ObjectId([3; 12]), 3)]),
    }
}

#[test]
fn library_types_keep_their_bson_types() {
    let bytes = round(our_types());
    let theirs: bson::Document = bson::deserialize_from_slice(&bytes).unwrap();
    assert_eq!(theirs.get_object_id("id").unwrap().to_hex(), "507f1f77bcf86cd799439011");
    assert_eq!(theirs.get_datetime("at").unwrap().timestamp_millis(), 1_600_000_000_123);
    assert_eq!(theirs.get_timestamp("timestamp").unwrap(), bson::Timestamp { time: 1, increment: u32::MAX });
    assert_eq!(theirs.get_decimal128("decimal").unwrap().to_string(), "-1.5E+3");
    assert_eq!(theirs.get_document("by_id").unwrap().get_i32("03".repeat(12)).unwrap(), 3);
    assert_eq!(document(theirs), bytes);

    // These are read from any document, with any content, and by each of this crate's types that hold any value.
    let all: bson::Document = everything().into_iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect();
    let bytes = document(all);
    let map: Map = ours::from_slice(&bytes).unwrap();
    assert_eq!(map, Map::from_slice(&bytes).unwrap());
    assert_eq!(ours::to_vec(&map).unwrap(), bytes);
    let lazy: BTreeMap<usize, ValueRef> = ours::from_slice(&bytes).unwrap();
    assert_eq!(ours::to_vec(&lazy).unwrap(), bytes);
    let lazy: Document = ours::from_slice(&bytes).unwrap();
    assert_eq!(lazy.as_bytes(), bytes);
    assert_eq!(ours::to_vec(&lazy).unwrap(), bytes);
    for (i, value) in map.values().enumerate() {
        let bytes = ours::to_vec(&Of { v: value }).unwrap();
        let back: Of<Value> = ours::from_slice(&bytes).unwrap();
        assert_eq!(back.v, *value, "{i}");
        let array = ours::to_vec(&Of { v: vec![value] }).unwrap();
        let lazy: Of<Array> = ours::from_slice(&array).unwrap();
        assert_eq!(ours::to_vec(&lazy).unwrap(), array);
    }
    let error = ours::from_slice::<Of<DateTime>>(&ours::to_vec(&Of { v: 5i64 }).unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.expected(), error.path()), (ErrorKind::ShapeMismatch, Some("a date"), Some("v")));
    let error = ours::from_slice::<Of<Document>>(&ours::to_vec(&Of { v: 5i64 }).unwrap()).unwrap_err();
    assert_eq!(
        (error.kind(), error.found(), error.offset()),
        (ErrorKind::ShapeMismatch, Some("a value of type long"), Some(7))
    );
    // An error inside a value that passes through serde unread keeps its kind and its position.
    let bytes = b"\x16\0\0\0\x03v\0\x0e\0\0\0\x02s\0\x02\0\0\0\xff\0\0\0";
    let error = ours::from_slice::<Of<Map>>(bytes).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.path()), (ErrorKind::Utf8Invalid, Some(18), Some("v.s")));
}

#[test]
fn our_types_survive_being_buffered_by_serde() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Either {
        Nothing { never: i32 },
        Ours(Box<Ours>),
    }
    round(Either::Ours(our_types().into()));
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Flat {
        #[serde(flatten)]
        ours: Ours,
        #[serde(flatten)]
        rest: Map,
    }
    let rest = Map::from([("more", Value::DateTime(DateTime(1))), ("long", Value::Int64(1))]);
    let bytes = round(Flat { ours: our_types(), rest });
    assert_eq!(Map::from_slice(&bytes).unwrap()["more"], Value::DateTime(DateTime(1)));
    // These are values of every type that a document can contain.
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Rest {
        #[serde(flatten)]
        rest: Map,
    }
    let all: bson::Document = everything().into_iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect();
    let map = Map::from_slice(&document(all)).unwrap();
    assert_eq!(ours::from_slice::<Rest>(&map.to_vec().unwrap()).unwrap().rest, map);
}

#[test]
fn other_formats_get_text() {
    let json = serde_json::to_value(our_types()).unwrap();
    assert_eq!(json["id"], "507f1f77bcf86cd799439011");
    assert_eq!(json["at"], "2020-09-13T12:26:40.123Z");
    assert_eq!(json["decimal"], "-1.5E+3");
    assert_eq!(json["timestamp"], serde_json::json!({ "$timestamp": { "t": 1, "i": u32::MAX } }));
    assert_eq!(json["map"]["a"], serde_json::json!({ "$regularExpression": { "pattern": "p", "options": "i" } }));
    assert_eq!(
        json["any"][1],
        serde_json::json!({ "$binary": { "base64": "AQEBAQEBAQEBAQEBAQEBAQ==", "subType": "04" } })
    );
    let back: Ours = serde_json::from_value(json).unwrap();
    assert_eq!(back.id, our_types().id);
    assert_eq!(back.map["a"], our_types().map["a"]);
    assert_eq!(back.any, our_types().any);
    assert_eq!(back.by_id, our_types().by_id);
    for json in [r#"{"v":"2020-09-13T12:26:40.123Z"}"#, r#"{"v":{"$date":{"$numberLong":"1600000000123"}}}"#] {
        assert_eq!(serde_json::from_str::<Of<DateTime>>(json).unwrap().v, DateTime(1_600_000_000_123));
    }
    for json in [r#"{"v":{"$date":1,"x":2}}"#, r#"{"v":{}}"#, r#"{"v":"yesterday"}"#, r#"{"v":{"$oid":"x"}}"#] {
        assert!(serde_json::from_str::<Of<DateTime>>(json).is_err(), "{json}");
    }
    let all: bson::Document = everything().into_iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect();
    let bytes = document(all);
    let map = Map::from_slice(&bytes).unwrap();
    let json = serde_json::to_string(&map).unwrap();
    assert_eq!(serde_json::to_string(&Document::new(&bytes).unwrap()).unwrap(), json);
    let back: Map = serde_json::from_str(&json).unwrap();
    for ((key, before), (_, after)) in map.iter().zip(&back) {
        match (before, after) {
            // JSON has one type of integer, so the smallest type of BSON is used.
            (Value::Int64(before), Value::Int32(after)) => assert_eq!(*before, i64::from(*after)),
            _ => assert_eq!(before, after, "{key}"),
        }
    }
    // This converts a document to another format. (JSON does not support bytes.)
    let mut map = map;
    map.remove("12");
    let value: serde_json::Value = ours::from_slice(&map.to_vec().unwrap()).unwrap();
    assert_eq!(value["15"], serde_json::json!({ "$oid": "507f1f77bcf86cd799439011" }));
    assert_eq!(value["16"], serde_json::json!({ "$date": { "$numberLong": "1600000000123" } }));
}

#[test]
fn integers_of_other_formats_are_of_32_bits_if_they_fit() {
    let integers = [(0, 0), (1, 1), (-1, -1), (i32::MAX.into(), i32::MAX), (i32::MIN.into(), i32::MIN)];
    for (integer, expected) in integers.map(|(integer, expected): (i64, i32)| (integer, expected)) {
        let json = integer.to_string();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), Value::Int32(expected));
        assert_eq!(serde_json::from_str::<ValueRef>(&json).unwrap(), ValueRef::Int32(expected));
    }
    for integer in [1 << 31, -(1 << 31) - 1, i64::MAX, i64::MIN] {
        assert_eq!(serde_json::from_str::<Value>(&integer.to_string()).unwrap(), Value::Int64(integer));
        assert_eq!(serde_json::from_str::<ValueRef>(&integer.to_string()).unwrap(), ValueRef::Int64(integer));
    }
    assert!(serde_json::from_str::<Value>("9223372036854775808").is_err());

    // serde buffers these values: the type is the same from JSON, and a long from a document stays a long.
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Flat {
        id: i32,
        #[serde(flatten)]
        rest: Map,
    }
    let flat: Flat = serde_json::from_str(r#"{"id":1,"a":-1,"b":[1],"c":{"d":-5000000000}}"#).unwrap();
    let inner = Map::from([("d", -5_000_000_000_i64)]);
    assert_eq!(flat.rest, Map::from([("a", (-1).into()), ("b", vec![1].into()), ("c", Value::from(inner))]));
    let longs = Map::from([("a", Value::Int64(-1)), ("b", Value::Int64(1)), ("c", vec![Value::Int64(0)].into())]);
    round(Flat { id: 1, rest: longs });
}

#[test]
fn wrappers_of_other_formats_are_those_that_we_write() {
    let read = |json: &str| serde_json::from_str::<Value>(json).map_err(|error| error.to_string());
    for document in [
        r#"{"$numberInt":"1"}"#,
        r#"{"$numberLong":"1"}"#,
        r#"{"$numberDouble":"NaN"}"#,
        r#"{"$uuid":"x"}"#,
        r#"{"a":1,"$oid":"507f1f77bcf86cd799439011"}"#,
        r#"{"$scope":{}}"#,
    ] {
        assert_eq!(serde_json::to_string(&read(document).unwrap()).unwrap(), document);
    }
    for wrong in [
        r#"{"$oid":{"$oid":"507f1f77bcf86cd799439011"}}"#,
        r#"{"$oid":"507f1f77bcf86cd799439011","a":1}"#,
        r#"{"$date":"2020-09-13T12:26:40.123Z"}"#,
        r#"{"$date":{"$numberLong":"1","a":1}}"#,
        r#"{"$binary":{"base64":"","subType":"4"}}"#,
        r#"{"$binary":{"base64":"","subType":"04","a":1}}"#,
        r#"{"$timestamp":{"t":-1,"i":1}}"#,
        r#"{"$timestamp":{"t":1}}"#,
        r#"{"$regularExpression":{"pattern":"p"}}"#,
        r#"{"$dbPointer":{"$ref":"a","$id":"507f1f77bcf86cd799439011"}}"#,
        r#"{"$undefined":false}"#,
        r#"{"$minKey":2}"#,
        r#"{"$maxKey":true}"#,
        r#"{"$code":"","a":1}"#,
        r#"{"$code":"","$scope":{},"a":1}"#,
        r#"{"$code":1,"$scope":{}}"#,
    ] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains('$'), "{wrong}: {error}");
    }
    let scoped = read(r#"{"$code":"c","$scope":{"a":1}}"#).unwrap();
    assert_eq!(scoped, Value::CodeWithScope { code: "c".to_string(), scope: Map::from([("a", 1)]) });
}

/// If any crate enables its feature `arbitrary_precision`, serde_json passes numbers on as a map, and writes them as a
/// struct with a special name.
#[test]
fn numbers_of_serde_json_may_be_text() {
    let read = |text| serde_json::from_str::<Value>(&format!(r#"{{"$serde_json::private::Number":"{text}"}}"#));
    assert_eq!(read("1.5").unwrap(), Value::Double(1.5));
    assert!(read("1e400").is_err());

    #[derive(Serialize)]
    #[serde(rename = "$serde_json::private::Number")]
    struct Text {
        #[serde(rename = "$serde_json::private::Number")]
        text: &'static str,
    }
    let write =
        |text| ours::to_vec(&Of { v: Text { text } }).map(|bytes| Map::from_slice(&bytes).unwrap()["v"].clone());
    for (text, expected) in [
        ("1", Value::Int64(1)),
        ("-9223372036854775808", Value::Int64(i64::MIN)),
        ("1.5", Value::Double(1.5)),
        ("1e3", Value::Double(1000.0)),
        ("18446744073709551616", Value::Double(2_f64.powi(64))),
    ] {
        assert_eq!(write(text).unwrap(), expected, "{text}");
    }
    for (text, kind) in [
        ("9223372036854775808", ErrorKind::ValueOutOfRange),
        ("1e400", ErrorKind::ShapeMismatch),
        ("", ErrorKind::ShapeMismatch),
    ] {
        let error = write(text).unwrap_err();
        assert_eq!((error.kind(), error.path()), (kind, Some("v")), "{text}");
    }
    let numbers = serde_json::json!({ "a": [1, -1, 1.5, 1e300, null] });
    assert_eq!(ours::from_slice::<serde_json::Value>(&ours::to_vec(&numbers).unwrap()).unwrap(), numbers);
}

#[test]
fn keys_are_text_or_have_one() {
    round(Of { v: BTreeMap::from([(-3i32, 'a'), (0, 'b'), (i32::MAX, 'c')]) });
    round(Of { v: BTreeMap::from([(u64::MAX, 1)]) });
    round(Of { v: BTreeMap::from([(i128::MIN, 1)]) });
    round(Of { v: BTreeMap::from([(true, 1), (false, 0)]) });
    round(Of { v: BTreeMap::from([('ü', 1)]) });
    round(Of { v: BTreeMap::from([(Some(New3(7)), 1)]) });
    #[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct New3(u8);

    let error = |value: Result<Vec<u8>, Error>| {
        let error = value.unwrap_err();
        (error.kind(), error.path().map(String::from))
    };
    let mismatch = (ErrorKind::ShapeMismatch, Some("v".to_string()));
    assert_eq!(error(ours::to_vec(&Of { v: BTreeMap::from([((1, 2), 1)]) })), mismatch);
    assert_eq!(error(ours::to_vec(&Of { v: BTreeMap::from([(None::<i32>, 1)]) })), mismatch);
    assert_eq!(error(ours::to_vec(&Of { v: BTreeMap::from([("a\0b", 1)]) })).0, ErrorKind::ValueOutOfRange);
    let long = "x".repeat(40) + "\0";
    assert_eq!(error(ours::to_vec(&BTreeMap::from([(long, 1)]))).0, ErrorKind::ValueOutOfRange);
    let bytes = document(bson::doc! { "v": { "300": 1 } });
    assert_eq!(ours::from_slice::<Of<BTreeMap<u16, u8>>>(&bytes).unwrap().v[&300], 1);
    let error = ours::from_slice::<Of<BTreeMap<u8, u8>>>(&bytes).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("v.300")));
}

#[test]
fn values_that_bson_cannot_represent_are_errors_with_a_path() {
    let list = [Of { v: vec![1u64, 2] }, Of { v: vec![3, u64::MAX] }];
    let mut buffer = b"before".to_vec();
    let error = ours::to_buffer(&mut buffer, &Of { v: &list }).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ValueOutOfRange, Some("v.1.v.1")));
    assert_eq!(error.found(), Some("18446744073709551615"));
    assert_eq!(buffer, b"before");
    ours::to_buffer(&mut buffer, &Of { v: 1 }).unwrap();
    assert_eq!(buffer, b"before\x0c\0\0\0\x10v\0\x01\0\0\0\0");

    for error in [
        ours::to_vec(&1).unwrap_err(),
        ours::to_vec("text").unwrap_err(),
        ours::to_vec(&[1, 2]).unwrap_err(),
        ours::to_vec(&None::<i32>).unwrap_err(),
        ours::to_vec(&ObjectId([1; 12])).unwrap_err(),
        ours::to_vec(&bson::oid::ObjectId::from_bytes([1; 12])).unwrap_err(),
        ours::to_vec(&External::Unit).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, None), "{error}");
    }
    let error = ours::to_vec(&Of { v: i128::MAX }).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ValueOutOfRange, Some("v")));
    let regex = Value::Regex { pattern: "a\0".into(), options: String::new() };
    assert!(ours::to_vec(&Of { v: regex }).is_err());

    // These names stand for a type, but the members have other content.
    struct Forged(&'static str, &'static [u8]);
    impl Serialize for Forged {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_newtype_struct(self.0, serde_bytes::Bytes::new(self.1))
        }
    }
    for (name, bytes) in [
        ("$millstream::bson::document", &b"\x05\0\0\0"[..]),
        ("$millstream::bson::document", b"\x05\0\0\0\0 "),
        ("$millstream::bson::date", b"1234567"),
        ("$millstream::bson::regex", b"a"),
        ("$__private__bson_RawDocument", b"\x06\0\0\0\0"),
    ] {
        assert!(ours::to_vec(&Of { v: Forged(name, bytes) }).is_err(), "{name}");
    }
    #[derive(Serialize)]
    #[serde(rename = "$oid")]
    struct NoId {
        #[serde(rename = "$oid")]
        text: &'static str,
    }
    let error = ours::to_vec(&Of { v: NoId { text: "xyz" } }).unwrap_err();
    assert_eq!(error.path(), Some("v"), "{error}");
}

#[test]
fn a_writer_gets_whole_documents() {
    let mut writer = Writer::memory().unwrap();
    ours::to_writer(&mut writer, &Of { v: "one" }).unwrap();
    assert_eq!(ours::to_writer(&mut writer, &Of { v: u64::MAX }).unwrap_err().path(), Some("v"));
    ours::to_writer(&mut writer, &Of { v: "two" }).unwrap();
    let expected = [ours::to_vec(&Of { v: "one" }).unwrap(), ours::to_vec(&Of { v: "two" }).unwrap()].concat();
    assert_eq!(writer.close().unwrap().memory.unwrap(), expected);
}

/// Nested lists.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Nest {
    n: Vec<Nest>,
}

fn nest(levels: usize) -> Nest {
    (1..levels).fold(Nest { n: vec![] }, |inner, _| Nest { n: vec![inner] })
}

#[test]
fn depth_is_limited() {
    let on_a_large_stack = std::thread::Builder::new().stack_size(64 << 20).spawn(|| {
        // Each level consists of a document and an array.
        let bytes = ours::to_vec(&nest(100)).unwrap();
        assert_eq!(ours::from_slice::<Nest>(&bytes).unwrap(), nest(100));
        assert_eq!(ours::to_vec(&nest(101)).unwrap_err().kind(), ErrorKind::TooDeep);
        let few = Document::with_rules(&bytes, Rules::new().depth(199)).unwrap();
        let error = ours::from_document::<Nest>(few).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooDeep);
        assert!(error.path().unwrap().starts_with("n.0.n.0"));

        let mut deep = vec![5, 0, 0, 0, 0];
        for _ in 1..1000 {
            deep = [&(deep.len() as i32 + 8).to_le_bytes()[..], b"\x03v\0", &deep, b"\0"].concat();
        }
        assert_eq!(ours::from_slice::<serde_json::Value>(&deep).unwrap_err().kind(), ErrorKind::TooDeep);
        assert!(ours::from_slice::<serde::de::IgnoredAny>(&deep).is_ok());
        let all = Document::with_rules(&deep, Rules::new().depth(1000)).unwrap();
        let mut value: serde_json::Value = ours::from_document(all).unwrap();
        for _ in 1..1000 {
            value = value["v"].take();
        }
        assert_eq!(value, serde_json::json!({}));
    });
    on_a_large_stack.unwrap().join().unwrap();
}

#[test]
fn rules_are_kept() {
    let bytes = b"\x16\0\0\0\x02s\xff\0\x03\0\0\0a\xff\0\x10s\0\x01\0\0\0";
    let bytes = [&bytes[..], b"\0"].concat();
    let bytes = [&(bytes.len() as u32).to_le_bytes()[..], &bytes[4..]].concat();
    let strict = ours::from_slice::<BTreeMap<String, serde_json::Value>>(&bytes).unwrap_err();
    assert_eq!((strict.kind(), strict.offset()), (ErrorKind::Utf8Invalid, Some(6)));
    let lossy = Document::with_rules(&bytes, Rules::new().utf8(Utf8::Lossy)).unwrap();
    let map: BTreeMap<String, serde_json::Value> = ours::from_document(lossy).unwrap();
    assert_eq!(map["s\u{fffd}"], "a\u{fffd}");
    assert!(ours::from_document::<BTreeMap<&str, serde_json::Value>>(lossy).is_err());

    let twice = b"\x13\0\0\0\x10a\0\x01\0\0\0\x10a\0\x02\0\0\0\0";
    assert_eq!(ours::from_slice::<BTreeMap<String, i32>>(twice).unwrap()["a"], 2);
    let strict = Document::with_rules(twice, Rules::new().strictness(Strictness::Strict)).unwrap();
    assert_eq!(ours::from_document::<BTreeMap<String, i32>>(strict).unwrap_err().kind(), ErrorKind::DocumentInvalid);

    let trailing = b"\x05\0\0\0\0 ";
    assert!(ours::from_slice::<BTreeMap<String, i32>>(trailing).is_err());
    let lenient = Document::with_rules(trailing, Rules::new().strictness(Strictness::Lenient)).unwrap();
    assert!(ours::from_document::<BTreeMap<String, i32>>(lenient).unwrap().is_empty());
}

/// Visitors that stop early, or read no values, do not affect the following values.
#[test]
fn unread_values_are_skipped() {
    /// Requests any value and reads a part of it, or requests a newtype and does not read its content.
    struct Blind<const NEWTYPE: bool>;
    impl<'de, const NEWTYPE: bool> Deserialize<'de> for Blind<NEWTYPE> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            match NEWTYPE {
                true => deserializer.deserialize_newtype_struct("Blind", Blind::<NEWTYPE>),
                false => deserializer.deserialize_any(Blind::<NEWTYPE>),
            }
        }
    }
    impl<'de, const NEWTYPE: bool> serde::de::Visitor<'de> for Blind<NEWTYPE> {
        type Value = Self;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("anything")
        }
        fn visit_newtype_struct<D: serde::Deserializer<'de>>(self, _: D) -> Result<Self, D::Error> {
            Ok(self)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self, E> {
            Ok(self)
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
            // This reads only some of the keys.
            assert_eq!(map.next_key::<String>()?.as_deref(), Some("x"));
            assert_eq!(map.next_key::<String>()?.as_deref(), Some("y"));
            Ok(self)
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, _: A) -> Result<Self, A::Error> {
            Ok(self)
        }
    }
    #[derive(Deserialize)]
    #[serde(bound = "")]
    struct Three<const NEWTYPE: bool> {
        a: i32,
        #[serde(rename = "b")]
        _b: Blind<NEWTYPE>,
        c: i32,
    }
    for value in [bson::bson!("text"), bson::bson!({ "x": 1, "y": 2, "z": 3 }), bson::bson!([1, [2]])] {
        let bytes = document(bson::doc! { "a": 1, "b": value, "c": 3 });
        let three: Three<false> = ours::from_slice(&bytes).unwrap();
        assert_eq!((three.a, three.c), (1, 3));
        let three: Three<true> = ours::from_slice(&bytes).unwrap();
        assert_eq!((three.a, three.c), (1, 3));
    }
}

/// The types that are compared for damaged bytes.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Damaged {
    id: i64,
    name: String,
    score: f64,
    tags: Vec<String>,
    active: bool,
    at: bson::DateTime,
    maybe: Option<i32>,
    small: u8,
    kind: External,
    pair: (i32, bool),
    bytes: serde_bytes::ByteBuf,
    any: bson::Bson,
}

fn damaged() -> Vec<u8> {
    same(Damaged {
        id: 1,
        name: "müller".into(),
        score: 2.5,
        tags: vec!["a".into(), "bc".into()],
        active: true,
        at: bson::DateTime::from_millis(1_600_000_000_000),
        maybe: Some(1),
        small: 7,
        kind: External::Struct { a: 1, b: None },
        pair: (1, true),
        bytes: serde_bytes::ByteBuf::from([1, 2, 3]),
        any: bson::bson!({ "d": bson::Timestamp { time: 1, increment: 2 }, "l": [1.5, null] }),
    })
}

/// Reads damaged bytes with both crates. If only one of them accepts the bytes, there is a reason, and it is counted.
fn compare<T: DeserializeOwned + PartialEq + Debug>(bytes: &[u8], reasons: &mut BTreeMap<&'static str, usize>) {
    let (our, their) = (ours::from_slice::<T>(bytes), bson::deserialize_from_slice::<T>(bytes));
    let reason = match (our, their) {
        // A NaN is not equal to itself.
        (Ok(our), Ok(their)) if our == their || format!("{our:?}") == format!("{their:?}") => return,
        (Err(_), Err(_)) => return,
        (Ok(our), Ok(their)) => panic!("from {bytes:x?}, this crate read {our:?} and the other one {their:?}"),
        (Ok(_), Err(error)) => why_we_accept(bytes, &error.to_string()),
        (Err(error), Ok(_)) => why_we_refuse(bytes, &error),
    };
    *reasons.entry(reason).or_default() += 1;
}

/// Deviations that this crate's rules and type table accept.
fn why_we_accept(bytes: &[u8], error: &str) -> &'static str {
    if Document::new(bytes).and_then(|document| document.check()).is_err() {
        return "keys of arrays are not read, and ignored values are skipped by their length";
    }
    for (part, reason) in [
        ("invalid type: map, expected byte array", "bytes of any subtype are bytes"),
        ("invalid type: map, expected a string", "symbols and code are text"),
        ("invalid type: map, expected i32", "undefined is no value"),
        ("invalid type: floating point", "a double without a fraction is an integer"),
        ("expected enum, instead got", "a symbol names a variant"),
        ("expected a string enum, got a document instead", "a variant without content may have null for it"),
    ] {
        if error.contains(part) {
            return reason;
        }
    }
    panic!("accepted here: {bytes:x?}; the other crate reports {error}");
}

/// Deviations that only this crate rejects.
fn why_we_refuse(bytes: &[u8], error: &Error) -> &'static str {
    for (part, reason) in [
        ("an integer that a double represents exactly", "a long that no double holds is no double"),
        ("an array of ", "a tuple takes all elements of an array"),
        ("an enum: a document whose only member", "a variant is the only member of its document"),
    ] {
        if error.expected().is_some_and(|expected| expected.starts_with(part)) {
            return reason;
        }
    }
    panic!("accepted by the other crate: {bytes:x?}; this crate reports {error}");
}

#[test]
fn every_cut_is_an_error() {
    let bytes = damaged();
    let mut reasons = BTreeMap::new();
    for len in 0..bytes.len() {
        assert!(ours::from_slice::<Damaged>(&bytes[..len]).is_err());
        assert!(ours::from_slice::<Map>(&bytes[..len]).is_err());
        // The length may also fit.
        let mut cut = bytes[..len].to_vec();
        if len >= 5 {
            cut[..4].copy_from_slice(&(len as u32).to_le_bytes());
            cut[len - 1] = 0;
            compare::<Damaged>(&cut, &mut reasons);
            compare::<bson::Document>(&cut, &mut reasons);
        }
    }
    assert!(reasons.is_empty(), "{reasons:#?}");
}

#[test]
fn every_flipped_bit_is_an_answer() {
    let bytes = damaged();
    let mut reasons = BTreeMap::new();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        compare::<Damaged>(&flipped, &mut reasons);
        compare::<bson::Document>(&flipped, &mut reasons);
        match (ours::from_slice::<Map>(&flipped), Map::from_slice(&flipped)) {
            (Ok(by_serde), Ok(own)) => assert_eq!(format!("{by_serde:?}"), format!("{own:?}"), "bit {bit}"),
            (by_serde, own) => assert_eq!(by_serde.map_err(|e| e.kind()).err(), own.map_err(|e| e.kind()).err()),
        }
    }
    // Few results differ, and each of these reasons occurs.
    assert!(reasons.contains_key("bytes of any subtype are bytes"), "{reasons:#?}");
    assert!(reasons.values().sum::<usize>() < 50, "{reasons:#?}");
}

/// Generates any value of the other crate.
fn any_value() -> impl Strategy<Value = bson::Bson> {
    use bson::{Bson, spec::BinarySubtype};
    let subtype = any::<u8>().prop_map(|subtype| match BinarySubtype::from(subtype) {
        // The inner length of the old binary subtype, and vectors, which have an inner format, are tested separately.
        BinarySubtype::BinaryOld | BinarySubtype::Vector => BinarySubtype::Generic,
        subtype => subtype,
    });
    let text = "[^\0]{0,12}";
    let leaf = prop_oneof![
        any::<f64>().prop_filter("equal to itself", |value| !value.is_nan()).prop_map(Bson::Double),
        ".{0,20}".prop_map(Bson::String),
        any::<bool>().prop_map(Bson::Boolean),
        Just(Bson::Null),
        Just(Bson::Undefined),
        Just(Bson::MinKey),
        Just(Bson::MaxKey),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<i64>().prop_map(|at| bson::DateTime::from_millis(at).into()),
        any::<[u8; 12]>().prop_map(|id| bson::oid::ObjectId::from_bytes(id).into()),
        any::<[u8; 16]>().prop_map(|bytes| bson::Decimal128::from_bytes(bytes).into()),
        any::<(u32, u32)>().prop_map(|(time, increment)| Bson::Timestamp(bson::Timestamp { time, increment })),
        ".{0,9}".prop_map(Bson::Symbol),
        ".{0,9}".prop_map(Bson::JavaScriptCode),
        (subtype, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(subtype, bytes)| Bson::Binary(bson::Binary { subtype, bytes })),
        (text, "i?m?s?x?").prop_map(|(pattern, options)| {
            bson::Regex { pattern: pattern.try_into().unwrap(), options: options.try_into().unwrap() }.into()
        }),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let members = prop::collection::vec(("[^\0$][^\0]{0,8}", inner.clone()), 0..6);
        let document = members.prop_map(|members| members.into_iter().collect::<bson::Document>());
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Bson::Array),
            document.clone().prop_map(Bson::Document),
            ("[a-z]{0,5}", document).prop_map(|(code, scope)| bson::JavaScriptCodeWithScope { code, scope }.into()),
        ]
    })
}

proptest! {
    #[test]
    fn any_document_has_equal_results(value in any_value()) {
        let value = bson::doc! { "v": value };
        let bytes = document(value.clone());
        prop_assert_eq!(&ours::to_vec(&value).unwrap(), &bytes);
        prop_assert_eq!(&ours::from_slice::<bson::Document>(&bytes).unwrap(), &value);
        let map: Map = ours::from_slice(&bytes).unwrap();
        prop_assert_eq!(&ours::to_vec(&map).unwrap(), &bytes);
        let lazy: BTreeMap<&str, ValueRef> = ours::from_slice(&bytes).unwrap();
        prop_assert_eq!(&ours::to_vec(&lazy).unwrap(), &bytes);
        let raw: bson::RawDocumentBuf = ours::from_slice(&bytes).unwrap();
        prop_assert_eq!(&ours::to_vec(&raw).unwrap(), &bytes);
    }

    #[test]
    fn any_struct_has_equal_results(
        id: i64,
        name in ".{0,20}",
        score in any::<f64>().prop_filter("equal to itself", |value| !value.is_nan()),
        tags in prop::collection::vec(".{0,9}", 0..5),
        active: bool,
        at: i64,
        maybe: Option<i32>,
        small: u8,
        pair: (i32, bool),
        bytes in prop::collection::vec(any::<u8>(), 0..30),
        any in any_value(),
    ) {
        same(Damaged {
            id, name, score, tags, active, at: bson::DateTime::from_millis(at), maybe, small,
            kind: External::Struct { a: pair.0, b: maybe.map(|n| n.to_string()) },
            pair, bytes: bytes.into(), any,
        });
    }
}
