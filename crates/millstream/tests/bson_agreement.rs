//! The three conversions between BSON and Rust types agree with each other: derive, serde, and values.

#![cfg(feature = "bson")]

use millstream::ErrorKind;
use millstream::bson::{self, Binary, Builder, Document, FromBson, Rules, Strictness, ToBson, Utf8, Value, ValueRef};
use serde::{Deserialize, Serialize};

#[derive(FromBson, ToBson, Serialize, Deserialize, PartialEq, Debug)]
struct Bytes {
    vector: Vec<u8>,
    array: [u8; 3],
}

#[test]
fn serde_reads_the_bytes_that_derive_writes_as_binary() {
    let value = Bytes { vector: vec![1, 2, 255], array: [4, 5, 6] };
    let bytes = bson::encode(&value).unwrap();
    assert!(matches!(Document::new(&bytes).unwrap().get("vector").unwrap(), Some(ValueRef::Binary { .. })));
    assert_eq!(bson::from_slice::<Bytes>(&bytes).unwrap(), value);
    // Derived code reads the arrays that serde writes.
    assert_eq!(bson::decode::<Bytes>(&bson::to_vec(&value).unwrap()).unwrap(), value);
    // An array of constant length accepts only bytes of that length, and no other elements may follow.
    #[derive(Deserialize, Debug)]
    struct Short {
        #[serde(rename = "array")]
        _array: [u8; 2],
    }
    #[derive(Deserialize, Debug)]
    struct Long {
        #[serde(rename = "array")]
        _array: [u8; 4],
    }
    assert_eq!(bson::from_slice::<Short>(&bytes).unwrap_err().kind(), ErrorKind::ShapeMismatch);
    assert_eq!(bson::from_slice::<Long>(&bytes).unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[derive(FromBson, ToBson, PartialEq, Debug)]
#[bson(tag = "kind", deny_unknown)]
enum Shape {
    Point,
    Circle { radius: f64 },
}

fn shape(kinds: &[&str], extra: bool) -> Vec<u8> {
    let mut builder = Builder::new();
    for kind in kinds {
        builder.append("kind", *kind).unwrap();
    }
    if extra {
        builder.append("more", &1).unwrap();
    }
    builder.into_bytes().unwrap()
}

#[test]
fn a_unit_variant_with_a_tag_checks_its_other_members() {
    assert_eq!(bson::decode::<Shape>(&shape(&["Point"], false)).unwrap(), Shape::Point);
    let error = bson::decode::<Shape>(&shape(&["Point"], true)).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("more")));
    // Invalid content after the tag is an error.
    let mut bytes = shape(&["Point"], true);
    let at = bytes.len() - 10 - 1;
    assert_eq!(bytes[at], 0x10);
    bytes[at] = 0x77;
    assert_eq!(bson::decode::<Shape>(&bytes).unwrap_err().kind(), ErrorKind::DocumentInvalid);
}

#[test]
fn a_second_tag_is_refused() {
    for kinds in [["Point", "Point"], ["Point", "Circle"], ["Circle", "Point"]] {
        let error = bson::decode::<Shape>(&shape(&kinds, false)).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("kind")), "{error}");
        assert!(error.found().unwrap().contains("one more"), "{error}");
    }
    let circle = Shape::Circle { radius: 1.5 };
    assert_eq!(bson::decode::<Shape>(&bson::encode(&circle).unwrap()).unwrap(), circle);
}

#[test]
fn strict_rules_hold_for_derived_types_as_for_serde() {
    #[derive(FromBson, Deserialize, Debug)]
    struct One {
        #[serde(rename = "a")]
        #[bson(rename = "a")]
        _a: i32,
    }
    // The key "b" occurs twice; neither type reads it.
    let mut builder = Builder::new();
    for key in ["a", "b", "b"] {
        builder.append(key, &1).unwrap();
    }
    let bytes = builder.into_bytes().unwrap();
    let strict = Document::with_rules(&bytes, Rules::new().strictness(Strictness::Strict)).unwrap();
    let by_serde = bson::from_document::<One>(strict).unwrap_err();
    let by_derive = bson::decode_document::<One>(&strict).unwrap_err();
    assert_eq!((by_derive.kind(), by_derive.path()), (by_serde.kind(), by_serde.path()));
    bson::decode_document::<One>(&Document::new(&bytes).unwrap()).unwrap();
}

/// Returns a document whose only member "a" has this type and payload.
fn one(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = (4 + 3 + payload.len() + 1) as u32;
    [&len.to_le_bytes()[..], &[kind], b"a\0", payload, b"\0"].concat()
}

#[test]
fn lossy_text_is_lossy_for_every_reader() {
    fn lossy(bytes: &[u8]) -> Document<'_> {
        Document::with_rules(bytes, Rules::new().utf8(Utf8::Lossy)).unwrap()
    }
    let string = b"\x02\0\0\0\xff\0";
    let bytes = one(2, string);
    assert_eq!(lossy(&bytes).get::<char>("a").unwrap(), Some('\u{fffd}'));
    Document::new(&bytes).unwrap().get::<char>("a").unwrap_err();

    #[derive(Deserialize, PartialEq, Debug)]
    enum Name {
        #[serde(rename = "\u{fffd}")]
        Replaced,
    }
    #[derive(Deserialize, Debug)]
    struct Of {
        a: Name,
    }
    assert_eq!(bson::from_document::<Of>(lossy(&bytes)).unwrap().a, Name::Replaced);

    let pointer = [&string[..], &[0; 12]].concat();
    let scoped = [&15u32.to_le_bytes()[..], string, b"\x05\0\0\0\0"].concat();
    for (kind, payload, expected) in [
        (0x0e, &string[..], "{\"$symbol\":\"\u{fffd}\"}"),
        (0x0d, &string[..], "{\"$code\":\"\u{fffd}\"}"),
        (0x0b, b"\xff\0i\0", "{\"$regularExpression\":{\"options\":\"i\",\"pattern\":\"\u{fffd}\"}}"),
        (0x0f, &scoped, "{\"$code\":\"\u{fffd}\",\"$scope\":{}}"),
        (0x0c, &pointer, "{\"$dbPointer\":{\"$id\":{\"$oid\":\"000000000000000000000000\"},\"$ref\":\"\u{fffd}\"}}"),
    ] {
        let bytes = one(kind, payload);
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        let read: serde_json::Value = bson::from_document(lossy(&bytes)).unwrap();
        assert_eq!(read["a"], expected);
        let checked = bson::from_slice::<serde_json::Value>(&bytes).unwrap_err();
        assert_eq!(checked.kind(), ErrorKind::Utf8Invalid);
    }
}

#[test]
fn options_of_a_regular_expression_are_written_in_order() {
    let mut builder = Builder::new();
    builder.append("r", &ValueRef::Regex { pattern: "a", options: "xmi" }).unwrap();
    let bytes = builder.into_bytes().unwrap();
    let expected = ValueRef::Regex { pattern: "a", options: "imx" };
    assert_eq!(Document::new(&bytes).unwrap().get::<ValueRef>("r").unwrap(), Some(expected));
}

#[test]
fn bytes_are_binary_for_values_too() {
    let value = Value::Binary { subtype: 0, bytes: vec![1, 2] };
    assert_eq!(Value::from(vec![1u8, 2]), value);
    assert_eq!(Value::from(&[1u8, 2][..]), value);
    assert_eq!(Value::from(Binary { subtype: 0, bytes: vec![1, 2] }), value);
    assert_eq!(Value::from(Binary { subtype: 4, bytes: [7; 2] }), Value::Binary { subtype: 4, bytes: vec![7; 2] });
    assert_eq!(Value::from(vec![1, 2]), Value::Array(vec![Value::Int32(1), Value::Int32(2)]));
}

#[derive(ToBson, FromBson)]
struct List {
    next: Option<Box<List>>,
}

#[test]
fn a_type_that_contains_itself_is_written_as_deep_as_it_can_be_read() {
    let list = |length| {
        let mut list = List { next: None };
        for _ in 1..length {
            list = List { next: Some(Box::new(list)) };
        }
        list
    };
    for _ in 0..2 {
        // After an error the next value may be as deep as the first.
        let error = bson::encode(&list(1001)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooDeep);
        let bytes = bson::encode(&list(1000)).unwrap();
        let document = Document::with_rules(&bytes, Rules::new().depth(1000)).unwrap();
        bson::decode_document::<List>(&document).unwrap();
    }
}
