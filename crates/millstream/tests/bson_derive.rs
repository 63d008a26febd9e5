//! `#[derive(FromBson, ToBson)]` and the traits that it implements, from the user's point of view.

#![cfg(feature = "bson")]

use millstream::ErrorKind;
use millstream::bson::{
    self, Array, Binary, Builder, Cursor, DateTime, Decimal128, Document, ElementType, FromBson, ObjectId, Rules,
    Timestamp, ToBson, Utf8, ValueRef,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Returns a document with these members.
fn document(members: &[(&str, &dyn Append)]) -> Vec<u8> {
    let mut builder = Builder::new();
    for (key, value) in members {
        value.append(&mut builder, key);
    }
    builder.into_bytes().unwrap()
}

/// Any value, because the values of a list have different types.
trait Append {
    fn append(&self, builder: &mut Builder, key: &str);
}

impl<T: ToBson> Append for T {
    fn append(&self, builder: &mut Builder, key: &str) {
        builder.append(key, self).unwrap();
    }
}

/// Writes a value, reads it again, and compares the document in between.
#[track_caller]
fn both_ways<T: ToBson + for<'a> FromBson<'a> + PartialEq + Debug>(value: T, expected: &[(&str, &dyn Append)]) {
    let bytes = bson::encode(&value).unwrap();
    assert_eq!(bytes, document(expected), "{value:?}");
    Document::new(&bytes).unwrap().check().unwrap();
    assert_eq!(bson::decode::<T>(&bytes).unwrap(), value);
}

/// Writes a value as a member, reads it again, and returns its type.
#[track_caller]
fn member_both_ways<T: ToBson + for<'a> FromBson<'a> + PartialEq + Debug>(value: T) -> ElementType {
    let bytes = document(&[("value", &value)]);
    let document = Document::new(&bytes).unwrap();
    document.check().unwrap();
    assert_eq!(document.require::<T>("value").unwrap(), value);
    document.find("value").unwrap().unwrap().kind()
}

#[track_caller]
fn refused<'a, T: FromBson<'a> + Debug>(bytes: &'a [u8], kind: ErrorKind, path: Option<&str>) -> millstream::Error {
    let error = bson::decode::<T>(bytes).unwrap_err();
    assert_eq!((error.kind(), error.path()), (kind, path), "{error}");
    error
}

#[derive(Clone, Debug, PartialEq, FromBson, ToBson)]
struct Record {
    id: i64,
    name: String,
    score: f64,
    tags: Vec<String>,
    active: bool,
    created: DateTime,
}

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct View<'a> {
    id: i64,
    name: &'a str,
    score: f64,
    tags: Vec<&'a str>,
    active: bool,
    created: DateTime,
}

fn record() -> Record {
    Record {
        id: 7,
        name: "seven".into(),
        score: 0.5,
        tags: vec!["a".into(), "größe".into()],
        active: true,
        created: DateTime(-1),
    }
}

#[test]
fn a_struct_is_a_document_of_its_fields_in_their_order() {
    both_ways(
        record(),
        &[
            ("id", &7i64),
            ("name", &"seven"),
            ("score", &0.5),
            ("tags", &vec!["a", "größe"]),
            ("active", &true),
            ("created", &DateTime(-1)),
        ],
    );
    let bytes = bson::encode(&record()).unwrap();
    let view: View = bson::decode(&bytes).unwrap();
    assert_eq!((view.name, &view.tags[..]), ("seven", &["a", "größe"][..]));
    assert!(bytes.as_ptr_range().contains(&view.name.as_ptr()), "borrowed, not copied");
    assert_eq!(bson::encode(&view).unwrap(), bytes);
}

proptest! {
    /// The result does not depend on the order, or on other members in between.
    #[test]
    fn fields_are_found_in_any_order(order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
                                     others in prop::collection::vec(0..7usize, 0..5)) {
        let whole = record();
        let members: [(&str, &dyn Append); 6] = [
            ("id", &whole.id), ("name", &whole.name), ("score", &whole.score), ("tags", &whole.tags),
            ("active", &whole.active), ("created", &whole.created),
        ];
        let mut mixed: Vec<(&str, &dyn Append)> = order.iter().map(|&at| members[at]).collect();
        for &at in &others {
            // These names have only a common prefix, and their values must be skipped.
            mixed.insert(at.min(mixed.len()), ("identity", &whole.tags));
            mixed.insert(at.min(mixed.len()), ("i", &1));
        }
        prop_assert_eq!(bson::decode::<Record>(&document(&mixed)).unwrap(), whole);
    }
}

#[test]
fn a_missing_member_is_none_or_an_error_with_its_path() {
    #[derive(Debug, PartialEq, FromBson, ToBson)]
    struct Outer {
        first: Option<i32>,
        inner: Vec<Inner>,
        last: Box<Option<String>>,
    }
    #[derive(Debug, PartialEq, FromBson, ToBson)]
    struct Inner {
        x: i32,
        #[bson(rename = "y.z")]
        y: i32,
    }
    let bytes = document(&[("inner", &Vec::<Inner>::new())]);
    let empty = Outer { first: None, inner: vec![], last: Box::new(None) };
    assert_eq!(bson::decode::<Outer>(&bytes).unwrap(), empty);
    // Null is read as None, and None is written as null.
    both_ways(empty, &[("first", &()), ("inner", &Vec::<Inner>::new()), ("last", &())]);

    let partial = BTreeMap::from([("x", 1)]);
    let bytes = document(&[("first", &1), ("inner", &vec![&partial])]);
    let error = refused::<Outer>(&bytes, ErrorKind::KeyMissing, Some(r#"inner.0."y.z""#));
    assert_eq!((error.expected(), error.offset()), (Some(r#"a member "y.z""#), Some(29)));
    let at = Document::new(&bytes).unwrap().at_offset(100);
    let error = bson::decode_document::<Outer>(&at).unwrap_err();
    assert_eq!((error.path(), error.offset()), (Some(r#"inner.0."y.z""#), Some(129)));
    refused::<Outer>(b"\x05\0\0\0\0", ErrorKind::KeyMissing, Some("inner"));
    refused::<Record>(b"\x05\0\0\0\0", ErrorKind::KeyMissing, Some("id"));
}

#[test]
fn a_member_that_is_there_twice_is_an_error() {
    #[derive(Debug, FromBson)]
    struct Few {
        #[bson(alias = "b", alias = "c")]
        a: i32,
        d: Option<i32>,
    }
    for twice in [["a", "a"], ["a", "b"], ["c", "a"], ["b", "b"]] {
        let bytes = document(&[(twice[0], &1), (twice[1], &2)]);
        let error = refused::<Few>(&bytes, ErrorKind::ShapeMismatch, Some(twice[1]));
        assert_eq!(error.found(), Some(format!(r#"one more member for "a", called "{}""#, twice[1]).as_str()));
    }
    refused::<Few>(&document(&[("d", &()), ("a", &1), ("d", &())]), ErrorKind::ShapeMismatch, Some("d"));
    let few: Few = bson::decode(&document(&[("d", &3), ("c", &1)])).unwrap();
    assert_eq!((few.a, few.d), (1, Some(3)));
}

#[derive(Debug, PartialEq, FromBson, ToBson)]
#[bson(rename_all = "camelCase", deny_unknown)]
struct Attributes {
    #[bson(rename = "_id", alias = "id")]
    the_id: i32,
    two_words: i32,
    #[bson(default)]
    by_trait: i32,
    #[bson(default = "forty_two")]
    by_path: i32,
    #[bson(skip)]
    skipped: i32,
    #[bson(skip, default = "forty_two")]
    skipped_path: i32,
    #[bson(default, skip_if = "Vec::is_empty")]
    list: Vec<i32>,
    #[bson(skip_if = "Option::is_none")]
    maybe: Option<i32>,
    #[bson(with = "seconds")]
    duration: Duration,
    r#type: char,
}

fn forty_two() -> i32 {
    42
}

/// A duration as a number of seconds.
mod seconds {
    use super::*;

    pub fn from_bson(kind: ElementType, cursor: &mut Cursor<'_>) -> millstream::Result<Duration> {
        u32::from_bson(kind, cursor).map(|seconds| Duration::from_secs(seconds.into()))
    }

    pub fn element_type(_duration: &Duration) -> ElementType {
        ElementType::Int64
    }

    pub fn to_bson(duration: &Duration, out: &mut Vec<u8>) -> millstream::Result<()> {
        duration.as_secs().to_bson(out)
    }
}

#[test]
fn attributes_have_their_documented_effect() {
    let value = |by_trait, by_path, list| Attributes {
        the_id: 1,
        two_words: 2,
        by_trait,
        by_path,
        skipped: 0,
        skipped_path: 42,
        list,
        maybe: None,
        duration: Duration::from_secs(60),
        r#type: 'ß',
    };
    both_ways(
        value(3, 4, vec![5]),
        &[
            ("_id", &1),
            ("twoWords", &2),
            ("byTrait", &3),
            ("byPath", &4),
            ("list", &vec![5]),
            ("duration", &60u64),
            ("type", &"ß"),
        ],
    );
    let all: [(&str, &dyn Append); 4] = [("id", &1), ("twoWords", &2), ("duration", &60), ("type", &"ß")];
    assert_eq!(bson::decode::<Attributes>(&document(&all)).unwrap(), value(0, 42, vec![]));

    let unknown = [&all[..], &[("skipped", &1)]].concat();
    let error = refused::<Attributes>(&document(&unknown), ErrorKind::ShapeMismatch, Some("skipped"));
    assert_eq!(error.found(), Some(r#"a member "skipped""#));
    assert!(error.expected().unwrap().starts_with(r#""_id", "twoWords""#));
    refused::<Attributes>(&document(&[all[0], all[1], all[3]]), ErrorKind::KeyMissing, Some("duration"));
    let wrong: [(&str, &dyn Append); 3] = [all[0], ("duration", &-1), all[1]];
    refused::<Attributes>(&document(&wrong), ErrorKind::ValueOutOfRange, Some("duration"));
    let two: [(&str, &dyn Append); 2] = [all[0], ("type", &"ab")];
    refused::<Attributes>(&document(&two), ErrorKind::ValueOutOfRange, Some("type"));
}

#[derive(Clone, Debug, PartialEq, FromBson, ToBson)]
struct Newtype(i32);

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Optional(Option<i32>);

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Pair(i32, #[bson(with = "seconds")] Duration);

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Nothing;

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Empty {}

#[test]
fn structs_without_names_are_values_arrays_and_null() {
    assert_eq!(member_both_ways(Newtype(1)), ElementType::Int32);
    assert_eq!(member_both_ways(Optional(None)), ElementType::Null);
    assert_eq!(member_both_ways(Optional(Some(1))), ElementType::Int32);
    assert_eq!(member_both_ways(Pair(1, Duration::from_secs(2))), ElementType::Array);
    assert_eq!(member_both_ways(Nothing), ElementType::Null);
    assert_eq!(member_both_ways(Empty {}), ElementType::Document);
    both_ways(Empty {}, &[]);

    #[derive(Debug, PartialEq, FromBson)]
    struct Holder {
        optional: Optional,
        pair: Option<Pair>,
    }
    let holder: Holder = bson::decode(b"\x05\0\0\0\0").unwrap();
    assert_eq!(holder, Holder { optional: Optional(None), pair: None });
    for (list, found) in [(vec![1], "1 values"), (vec![1, 2, 3], "3 values")] {
        let bytes = document(&[("pair", &list)]);
        let error = refused::<Holder>(&bytes, ErrorKind::ShapeMismatch, Some("pair"));
        assert_eq!((error.found(), error.expected()), (Some(found), Some("exactly 2")));
    }
    assert_eq!(bson::encode(&Newtype(1)).unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[derive(Clone, Debug, PartialEq, FromBson, ToBson)]
#[bson(rename_all = "snake_case")]
enum External {
    UnitVariant,
    #[bson(rename = "new", alias = "old")]
    Newtype(Newtype),
    Tuple(i32, String),
    #[bson(rename_all = "UPPERCASE")]
    Named {
        a: i32,
        b: Option<i32>,
    },
}

#[test]
fn a_variant_is_its_name_or_a_document_of_it() {
    for (value, expected) in [
        (External::UnitVariant, ValueRef::String("unit_variant")),
        (External::Newtype(Newtype(1)), ValueRef::Document(Document::new(b"\x0e\0\0\0\x10new\0\x01\0\0\0\0").unwrap())),
    ] {
        let bytes = document(&[("value", &value)]);
        assert_eq!(bytes, document(&[("value", &expected)]));
        assert_eq!(member_both_ways(value.clone()), expected.kind());
    }
    both_ways(External::Tuple(1, "x".into()), &[("tuple", &(1, "x"))]);
    both_ways(External::Named { a: 1, b: None }, &[("named", &BTreeMap::from([("A", Some(1)), ("B", None)]))]);
    assert_eq!(bson::decode::<External>(&document(&[("old", &1)])).unwrap(), External::Newtype(Newtype(1)));
    assert_eq!(bson::decode::<External>(&document(&[("unit_variant", &())])).unwrap(), External::UnitVariant);

    let holder = |value: &dyn Append| document(&[("value", value)]);
    type Holder = BTreeMap<String, External>;
    for bad in [
        holder(&"no_variant"),
        holder(&"new"), // a variant that has a value
        holder(&1),
        holder(&BTreeMap::<String, i32>::new()),
    ] {
        refused::<Holder>(&bad, ErrorKind::ShapeMismatch, Some("value"));
    }
    let two = BTreeMap::from([("new", 1), ("old", 2)]);
    refused::<Holder>(&holder(&two), ErrorKind::ShapeMismatch, Some("value.old"));
    refused::<Holder>(&holder(&BTreeMap::from([("none", 1)])), ErrorKind::ShapeMismatch, Some("value.none"));
    refused::<Holder>(
        &holder(&BTreeMap::from([("named", BTreeMap::<&str, i32>::new())])),
        ErrorKind::KeyMissing,
        Some("value.named.A"),
    );
}

#[derive(Clone, Debug, PartialEq, FromBson, ToBson)]
#[bson(tag = "kind", deny_unknown)]
enum Tagged {
    Unit,
    Newtype(Point),
    #[bson(rename = "n", alias = "N")]
    Named {
        a: i32,
        b: Option<i32>,
    },
    Map(BTreeMap<String, i32>),
}

#[derive(Clone, Debug, PartialEq, FromBson, ToBson)]
struct Point {
    x: i32,
    y: i32,
}

#[test]
fn a_tag_is_a_member_among_the_fields() {
    both_ways(Tagged::Unit, &[("kind", &"Unit")]);
    both_ways(Tagged::Newtype(Point { x: 1, y: 2 }), &[("kind", &"Newtype"), ("x", &1), ("y", &2)]);
    both_ways(Tagged::Named { a: 1, b: None }, &[("kind", &"n"), ("a", &1), ("b", &())]);
    both_ways(Tagged::Map(BTreeMap::from([("q".to_string(), 1)])), &[("kind", &"Map"), ("q", &1)]);
    // The position in the document does not matter.
    let named = Tagged::Named { a: 1, b: Some(2) };
    assert_eq!(bson::decode::<Tagged>(&document(&[("a", &1), ("b", &2), ("kind", &"N")])).unwrap(), named);
    assert_eq!(bson::decode::<Tagged>(&document(&[("b", &2), ("kind", &"n"), ("a", &1)])).unwrap(), named);

    refused::<Tagged>(&document(&[("a", &1)]), ErrorKind::KeyMissing, Some("kind"));
    refused::<Tagged>(&document(&[("kind", &1)]), ErrorKind::ShapeMismatch, Some("kind"));
    let error = refused::<Tagged>(&document(&[("kind", &"O")]), ErrorKind::ShapeMismatch, Some("kind"));
    assert_eq!(error.expected(), Some(r#""Unit", "Newtype", "n" or "Map""#));
    refused::<Tagged>(&document(&[("kind", &"n"), ("a", &1), ("c", &1)]), ErrorKind::ShapeMismatch, Some("c"));
    refused::<Tagged>(&document(&[("kind", &"Newtype"), ("x", &1)]), ErrorKind::KeyMissing, Some("y"));
}

/// An enum that allows other members next to its tag, unlike `Tagged`.
#[derive(Debug, PartialEq, FromBson, ToBson)]
#[bson(tag = "kind")]
enum Loose {
    Unit,
}

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Flat {
    before: i32,
    #[bson(flatten)]
    point: Point,
    #[bson(flatten)]
    shape: Loose,
    #[bson(flatten)]
    absent: Option<Record>,
    after: i32,
    #[bson(flatten)]
    rest: HashMap<String, i32>,
}

#[test]
fn damage_in_a_flattened_option_is_an_error() {
    #[derive(Debug, PartialEq, FromBson)]
    struct Around {
        #[bson(flatten)]
        text: Option<Text>,
    }
    #[derive(Debug, PartialEq, FromBson)]
    struct Text {
        text: String,
    }
    let mut bytes = document(&[("text", &"abc")]);
    assert_eq!(bson::decode::<Around>(&bytes).unwrap().text, Some(Text { text: "abc".to_string() }));
    assert_eq!(bson::decode::<Around>(&document(&[("text", &1)])).unwrap().text, None);
    assert_eq!(bson::decode::<Around>(&document(&[])).unwrap().text, None);
    let at = bytes.iter().position(|&byte| byte == b'b').unwrap();
    bytes[at] = 0xff;
    refused::<Around>(&bytes, ErrorKind::Utf8Invalid, Some("text"));
}

#[test]
fn flattened_members_are_those_of_the_document_around() {
    #[derive(Debug, PartialEq, FromBson, ToBson)]
    struct Around {
        #[bson(flatten)]
        inner: Box<Inside>,
        x: i32,
        #[bson(flatten)]
        rest: BTreeMap<String, i32>,
    }
    #[derive(Debug, PartialEq, FromBson, ToBson)]
    struct Inside {
        x: Option<i32>, // taken by the struct around it
        y: i32,
        #[bson(flatten)]
        rest: BTreeMap<String, i32>,
    }
    let bytes = document(&[("y", &1), ("x", &2), ("z", &3)]);
    let around: Around = bson::decode(&bytes).unwrap();
    let rest = BTreeMap::from([("z".to_string(), 3)]);
    assert_eq!(around, Around { inner: Box::new(Inside { x: None, y: 1, rest: rest.clone() }), x: 2, rest });

    let flat = Flat {
        before: 1,
        point: Point { x: 2, y: 3 },
        shape: Loose::Unit,
        absent: None,
        after: 4,
        rest: HashMap::from([("other".to_string(), 5)]),
    };
    let bytes = bson::encode(&flat).unwrap();
    let members: [(&str, &dyn Append); 6] =
        [("before", &1), ("x", &2), ("y", &3), ("kind", &"Unit"), ("after", &4), ("other", &5)];
    assert_eq!(bytes, document(&members));
    // As in serde, the tag is not reserved, so a map of numbers cannot be read after it.
    refused::<Flat>(&bytes, ErrorKind::ShapeMismatch, Some("kind"));

    let missing = document(&[("x", &1), ("other", &1)]);
    refused::<Around>(&missing, ErrorKind::KeyMissing, Some("y"));
}

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Generic<'x, 'y, T, U: Default, const N: usize>
where
    T: Clone,
{
    t: Vec<T>,
    text: &'x str,
    more: Cow<'y, str>,
    map: HashMap<&'y str, [T; N]>,
    mark: PhantomData<U>,
    #[bson(skip)]
    skipped: U,
}

#[test]
fn generics_and_lifetimes() {
    #[derive(Debug, Default, PartialEq)]
    struct NoBson;
    let value = Generic::<i32, NoBson, 2> {
        t: vec![1],
        text: "text",
        more: "more".into(),
        map: HashMap::from([("m", [1, 2])]),
        mark: PhantomData,
        skipped: NoBson,
    };
    let bytes = bson::encode(&value).unwrap();
    let back: Generic<i32, NoBson, 2> = bson::decode(&bytes).unwrap();
    assert_eq!(back, value);
    assert!(matches!(back.more, Cow::Borrowed(_)));

    #[derive(Debug, PartialEq, FromBson, ToBson)]
    struct Wrapper<T>(T);
    #[derive(Debug, PartialEq, FromBson, ToBson)]
    struct Envelope<T> {
        n: i32,
        #[bson(flatten)]
        inner: T,
    }
    both_ways(Envelope { n: 1, inner: Point { x: 2, y: 3 } }, &[("n", &1), ("x", &2), ("y", &3)]);
    both_ways(Wrapper(Point { x: 2, y: 3 }), &[("x", &2), ("y", &3)]);
}

#[test]
fn every_type_of_the_library_comes_back() {
    use ElementType as T;
    assert_eq!(member_both_ways(f64::MIN), T::Double);
    assert_eq!(member_both_ways(0.1f32), T::Double);
    assert_eq!(member_both_ways(true), T::Bool);
    for kind in [
        member_both_ways(i8::MIN),
        member_both_ways(i16::MIN),
        member_both_ways(i32::MIN),
        member_both_ways(u8::MAX),
        member_both_ways(u16::MAX),
        member_both_ways(NonZero::new(7u8).unwrap()),
    ] {
        assert_eq!(kind, T::Int32);
    }
    for kind in [
        member_both_ways(i64::MIN),
        member_both_ways(u32::MAX),
        member_both_ways(i64::MAX as u64),
        member_both_ways(i128::from(i64::MIN)),
        member_both_ways(i64::MAX as u128),
        member_both_ways(isize::MIN),
        member_both_ways(isize::MAX as usize),
        member_both_ways(NonZero::new(-7i64).unwrap()),
    ] {
        assert_eq!(kind, T::Int64);
    }
    for kind in [
        member_both_ways("text".to_string()),
        member_both_ways('\0'),
        member_both_ways('\u{10ffff}'),
        member_both_ways::<Box<str>>("text".into()),
        member_both_ways::<Rc<str>>("text".into()),
        member_both_ways::<Arc<str>>("text".into()),
    ] {
        assert_eq!(kind, T::String);
    }
    for kind in [
        member_both_ways(b"bytes".to_vec()),
        member_both_ways(*b"bytes"),
        member_both_ways::<Box<[u8]>>(b"bytes"[..].into()),
        member_both_ways(Binary { subtype: 2, bytes: b"bytes".to_vec() }),
        member_both_ways(Binary { subtype: 4, bytes: b"bytes".to_vec() }),
    ] {
        assert_eq!(kind, T::Binary);
    }
    for kind in [
        member_both_ways(vec![1.5; 30]),
        member_both_ways(vec![Some(1), None]),
        member_both_ways([[1, 2], [3, 4]]),
        member_both_ways::<Box<[i32]>>([1, 2].into()),
        member_both_ways::<Rc<[i32]>>([1, 2].into()),
        member_both_ways::<Arc<[i32]>>([1, 2].into()),
        member_both_ways(VecDeque::from([1, 2])),
        member_both_ways(BTreeSet::from([1, 2])),
        member_both_ways(HashSet::from([1, 2])),
        member_both_ways((1,)),
        member_both_ways((1, "a".to_string(), Some(2.5))),
        member_both_ways(((), (), (), (), (), (), (), (), (), (), (), 12)),
    ] {
        assert_eq!(kind, T::Array);
    }
    for kind in [
        member_both_ways(BTreeMap::from([("a".to_string(), 1), ("b".to_string(), 2)])),
        member_both_ways(HashMap::from([(Box::<str>::from("a"), vec![1])])),
        member_both_ways(BTreeMap::from([(Rc::<str>::from("a"), Box::new(1))])),
        member_both_ways(BTreeMap::from([(Arc::<str>::from("a"), Rc::new(1))])),
        member_both_ways(BTreeMap::from([("a".to_string(), Arc::new(1))])),
    ] {
        assert_eq!(kind, T::Document);
    }
    assert_eq!(member_both_ways(ObjectId([7; 12])), T::ObjectId);
    assert_eq!(member_both_ways(DateTime(i64::MIN)), T::DateTime);
    assert_eq!(member_both_ways(Timestamp { time: u32::MAX, increment: 1 }), T::Timestamp);
    assert_eq!(member_both_ways(Decimal128([7; 16])), T::Decimal128);
    assert_eq!(member_both_ways(()), T::Null);
    assert_eq!(member_both_ways(PhantomData::<str>), T::Null);
}

#[test]
fn borrowed_values_are_in_the_document() {
    let bytes = document(&[("text", &"text"), ("bytes", &b"bytes".to_vec()), ("inner", &Empty {}), ("list", &vec![1])]);
    #[derive(FromBson, ToBson)]
    struct Borrowed<'a> {
        text: Cow<'a, str>,
        bytes: Cow<'a, [u8]>,
        inner: Document<'a>,
        list: Array<'a>,
        #[bson(flatten)]
        all: BTreeMap<Cow<'a, str>, ValueRef<'a>>,
    }
    let value: Borrowed = bson::decode(&bytes).unwrap();
    assert!(matches!(value.text, Cow::Borrowed("text")));
    assert_eq!((&*value.bytes, value.inner.is_empty(), value.list.count().unwrap()), (&b"bytes"[..], true, 1));
    assert!(bytes.as_ptr_range().contains(&value.bytes.as_ptr()));
    assert!(value.all.is_empty());
    assert_eq!(bson::encode(&value).unwrap(), bytes);
}

#[test]
fn times_are_whole_milliseconds_rounded_down() {
    let epoch = SystemTime::UNIX_EPOCH;
    for (time, millis) in [
        (epoch, 0),
        (epoch + Duration::from_nanos(1_999_999), 1),
        (epoch - Duration::from_nanos(1), -1),
        (epoch - Duration::from_nanos(1_000_000), -1),
        (epoch - Duration::from_nanos(1_000_001), -2),
    ] {
        let bytes = document(&[("t", &time)]);
        let document = Document::new(&bytes).unwrap();
        assert_eq!(document.require::<DateTime>("t").unwrap(), DateTime(millis), "{time:?}");
        let back: SystemTime = document.require("t").unwrap();
        assert_eq!(member_both_ways(back), ElementType::DateTime);
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused_both_ways() {
    for error in [
        bson::encode(&BTreeMap::from([("n", u64::MAX)])),
        bson::encode(&BTreeMap::from([("n", i128::MIN)])),
        bson::encode(&BTreeMap::from([("n", u128::MAX)])),
        bson::encode(&BTreeMap::from([("n", usize::MAX)])),
        bson::encode(&BTreeMap::from([("n\0", 1)])),
    ] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ValueOutOfRange);
    }
    // The existing content is kept, and no other content is added.
    let mut out = b"before".to_vec();
    bson::encode_to_buffer(&mut out, &BTreeMap::from([("n", u64::MAX)])).unwrap_err();
    assert_eq!(out, b"before");

    fn from(bytes: &[u8], which: usize) -> ErrorKind {
        let document = Document::new(bytes).unwrap();
        let error = match which {
            0 => document.require::<u8>("n").err(),
            1 => document.require::<NonZero<i32>>("n").err(),
            2 => document.require::<NonZero<u8>>("n").err(),
            3 => document.require::<[u8; 2]>("n").err(),
            4 => document.require::<Vec<u8>>("n").err(),
            5 => document.require::<char>("n").err(),
            _ => document.require::<()>("n").err(),
        };
        let error = error.unwrap();
        assert_eq!((error.path(), error.offset()), (Some("n"), Some(7)), "{error}");
        error.kind()
    }
    assert_eq!(from(&document(&[("n", &256)]), 0), ErrorKind::ValueOutOfRange);
    assert_eq!(from(&document(&[("n", &0)]), 1), ErrorKind::ValueOutOfRange);
    assert_eq!(from(&document(&[("n", &0)]), 2), ErrorKind::ValueOutOfRange);
    assert_eq!(from(&document(&[("n", b"abc")]), 3), ErrorKind::ShapeMismatch);
    assert_eq!(from(&document(&[("n", &"abc")]), 4), ErrorKind::ShapeMismatch);
    assert_eq!(from(&document(&[("n", &"")]), 5), ErrorKind::ValueOutOfRange);
    assert_eq!(from(&document(&[("n", &0)]), 6), ErrorKind::ShapeMismatch);
    // Bytes are also read if they were written as numbers.
    let bytes = document(&[("n", &vec![1i32, 255])]);
    let document = Document::new(&bytes).unwrap();
    assert_eq!(document.require::<Vec<u8>>("n").unwrap(), [1, 255]);
    assert_eq!(document.require::<[u8; 2]>("n").unwrap(), [1, 255]);
}

#[test]
fn invalid_text_is_replaced_only_on_request_and_if_owned() {
    let bytes = b"\x10\0\0\0\x02\xff\0\x03\0\0\0a\xff\0\0";
    let bytes = [&[bytes.len() as u8], &bytes[1..]].concat();
    let error = refused::<BTreeMap<String, String>>(&bytes, ErrorKind::Utf8Invalid, None);
    assert_eq!(error.offset(), Some(5));
    let document = Document::with_rules(&bytes, Rules::new().utf8(Utf8::Lossy)).unwrap();
    let map: BTreeMap<String, String> = bson::decode_document(&document).unwrap();
    assert_eq!(map["\u{fffd}"], "a\u{fffd}");
    assert!(bson::decode_document::<BTreeMap<&str, String>>(&document).is_err());
    assert!(bson::decode_document::<BTreeMap<String, &str>>(&document).is_err());
}

#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Node {
    next: Option<Box<Node>>,
}

#[test]
fn depth_is_limited() {
    let chain = |levels: usize| (1..levels).fold(Node { next: None }, |next, _| Node { next: Some(Box::new(next)) });
    let bytes = bson::encode(&chain(200)).unwrap();
    assert_eq!(bson::decode::<Node>(&bytes).unwrap(), chain(200));
    let bytes = bson::encode(&chain(201)).unwrap();
    assert_eq!(bson::decode::<Node>(&bytes).unwrap_err().kind(), ErrorKind::TooDeep);
    let bytes = bson::encode(&chain(1000)).unwrap();
    let deep = Document::with_rules(&bytes, Rules::new().depth(1000)).unwrap();
    assert_eq!(bson::decode_document::<Node>(&deep).unwrap(), chain(1000));
}

/// A value of every type that can be read.
#[derive(Debug, PartialEq, FromBson, ToBson)]
struct Everything {
    record: Record,
    attributes: Attributes,
    external: Vec<External>,
    tagged: [Tagged; 4],
    pair: Pair,
    maps: HashMap<String, (char, Binary<Vec<u8>>)>,
    time: SystemTime,
    #[bson(flatten)]
    point: Point,
}

#[test]
fn every_cut_and_every_flipped_bit_is_an_answer() {
    let whole = Everything {
        record: record(),
        attributes: Attributes {
            the_id: 1,
            two_words: 2,
            by_trait: 3,
            by_path: 4,
            skipped: 0,
            skipped_path: 42,
            list: vec![1, 2],
            maybe: Some(1),
            duration: Duration::from_secs(1),
            r#type: 'x',
        },
        external: vec![
            External::UnitVariant,
            External::Newtype(Newtype(1)),
            External::Tuple(1, "a".into()),
            External::Named { a: 1, b: None },
        ],
        tagged: [
            Tagged::Unit,
            Tagged::Newtype(Point { x: 1, y: 2 }),
            Tagged::Named { a: 1, b: Some(2) },
            Tagged::Map(BTreeMap::new()),
        ],
        pair: Pair(1, Duration::from_secs(1)),
        maps: HashMap::from([("m".to_string(), ('m', Binary { subtype: 2, bytes: b"bytes".to_vec() }))]),
        time: SystemTime::UNIX_EPOCH,
        point: Point { x: 1, y: 2 },
    };
    let bytes = bson::encode(&whole).unwrap();
    assert_eq!(bson::decode::<Everything>(&bytes).unwrap(), whole);
    for len in 0..bytes.len() {
        assert!(bson::decode::<Everything>(&bytes[..len]).is_err());
        // The outermost length is correct, but a value inside is truncated.
        let mut cut = bytes[..len].to_vec();
        cut.extend_from_slice(&[0; 5]);
        let total = (cut.len() as u32).to_le_bytes();
        cut[..4].copy_from_slice(&total);
        let is_whole = bson::decode::<Everything>(&cut).is_ok_and(|value| value == whole);
        assert_eq!(is_whole, cut == bytes, "{len}"); // the zeros may be those that were cut off
    }
    let (mut same, mut other, mut errors) = (0, 0, 0);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match bson::decode::<Everything>(&flipped) {
            Ok(value) if value == whole => same += 1, // in the key of an array, or of a field with a default
            Ok(_) => other += 1,
            Err(error) => {
                assert!(error.offset().is_some(), "{error}");
                errors += 1;
            }
        }
    }
    assert!(same > 0 && other > 100 && errors > 1000, "{same} {other} {errors}");
}

/// The same shapes and attributes, for serde and for this crate.
mod oracle {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Deserialize, Serialize, FromBson, ToBson)]
    #[serde(rename_all = "camelCase")]
    #[bson(rename_all = "camelCase")]
    pub struct Whole {
        pub small: (i8, u8, i16, u16, i32, u32, i64),
        #[serde(alias = "wide")]
        #[bson(alias = "wide")]
        pub wide_number: u64,
        pub float: f32,
        pub text: (String, char),
        pub option: Option<Vec<Option<bool>>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[bson(default, skip_if = "Vec::is_empty")]
        pub list: Vec<Variants>,
        pub tagged: Vec<Tagged>,
        pub unit: (),
        #[serde(skip)]
        #[bson(skip)]
        pub skipped: i32,
        #[serde(flatten)]
        #[bson(flatten)]
        pub flat: Flat,
        #[serde(flatten)]
        #[bson(flatten)]
        pub rest: BTreeMap<String, i64>,
    }

    #[derive(Debug, PartialEq, Deserialize, Serialize, FromBson, ToBson)]
    pub struct Flat {
        pub flat_one: i64,
        pub flat_two: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize, Serialize, FromBson, ToBson)]
    #[serde(rename_all = "SCREAMING-KEBAB-CASE")]
    #[bson(rename_all = "SCREAMING-KEBAB-CASE")]
    #[allow(clippy::enum_variant_names)] // only the words are renamed
    pub enum Variants {
        UnitVariant,
        NewVariant(i64),
        TupleVariant(i64, String),
        StructVariant { field: i64 },
    }

    #[derive(Debug, PartialEq, Deserialize, Serialize, FromBson, ToBson)]
    #[serde(tag = "kind")]
    #[bson(tag = "kind")]
    pub enum Tagged {
        Unit,
        Newtype(Flat),
        Struct { field: i64 },
    }
}

#[test]
fn documents_equal_those_of_serde() {
    use ::bson as oracle_bson;
    use oracle::{Flat, Tagged, Variants, Whole};
    let flat = |flat_two: Option<&str>| Flat { flat_one: 1, flat_two: flat_two.map(str::to_string) };
    let whole = Whole {
        small: (-1, 1, -2, 2, -3, 3, -4),
        wide_number: 5,
        float: 0.5,
        text: ("text".into(), 'ß'),
        option: Some(vec![Some(true), None]),
        list: vec![
            Variants::UnitVariant,
            Variants::NewVariant(1),
            Variants::TupleVariant(1, "two".into()),
            Variants::StructVariant { field: 1 },
        ],
        tagged: vec![Tagged::Unit, Tagged::Newtype(flat(None)), Tagged::Struct { field: 1 }],
        unit: (),
        skipped: 0,
        flat: flat(Some("two")),
        rest: BTreeMap::from([("other".to_string(), 1), ("more".to_string(), 2)]),
    };
    let ours = bson::encode(&whole).unwrap();
    assert_eq!(ours, oracle_bson::serialize_to_vec(&whole).unwrap());
    assert_eq!(oracle_bson::deserialize_from_slice::<Whole>(&ours).unwrap(), whole);
    assert_eq!(bson::decode::<Whole>(&ours).unwrap(), whole);

    // Each member is omitted in one case and repeated in another: both decoders read the same value, or both fail.
    let elements: Vec<_> = Document::new(&ours).unwrap().iter().map(Result::unwrap).collect();
    let (mut read, mut refused) = (0, 0);
    for changed in 0..elements.len() {
        for times in [0, 2] {
            let bytes = Builder::new();
            let mut bytes = elements.iter().enumerate().fold(bytes, |mut bytes, (at, element)| {
                for _ in 0..if at == changed { times } else { 1 } {
                    bytes.append(element.key().unwrap(), &element.value().unwrap()).unwrap();
                }
                bytes
            });
            let bytes = bytes.finish().unwrap();
            let theirs = oracle_bson::deserialize_from_slice::<Whole>(bytes).ok();
            let ours = bson::decode::<Whole>(bytes).ok();
            assert_eq!(ours, theirs, "{:?} {times} times", elements[changed].key());
            *(if ours.is_some() { &mut read } else { &mut refused }) += 1;
        }
    }
    assert!(read > 3 && refused > 3, "{read} {refused}");
}
