//! Tests files of BSON.jl and BSONqs: every file of the corpus is compared with its description by Julia, in both
//! directions, and hostile files are read.

#![cfg(feature = "bson")]

mod shared;
mod skip;

use millstream::ErrorKind;
use millstream::bson::julia::{Builder, Graph, Kind, Options, Scalar};
use millstream::bson::{Document, ElementType, ValueRef};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

/// Returns the files in `vectors/julia-bson`, and the test files of BSON.jl if they are next to the repository.
fn corpus() -> Vec<PathBuf> {
    let files = shared::files("julia-bson", "bson");
    assert!(files.len() >= 55, "{} files", files.len());
    files
}

/// Data that the files do not contain: the fields of the corpus's own types that are stored in arrays.
fn options() -> Options {
    let mut options = Options::new();
    options.describe("Main.Corpus.Point", ["Float64", "Float64"]).unwrap();
    options.describe("Main.Corpus.Padded", ["UInt8", "UInt32"]).unwrap();
    options.describe("Main.Corpus.Empty", []).unwrap();
    options
}

fn read(bytes: &[u8]) -> millstream::Result<Graph<'_>> {
    Graph::read_with(Document::new(bytes)?, &options())
}

/// Pairs of this crate's and Julia's ids for the same object.
#[derive(Default)]
struct Pairs(HashMap<u64, u64>, HashMap<u64, u64>);

impl Pairs {
    fn is_pair(&mut self, ours: &Json, theirs: &Json) -> bool {
        let (ours, theirs) = (ours.as_u64().unwrap(), theirs.as_u64().unwrap());
        *self.0.entry(ours).or_insert(theirs) == theirs && *self.1.entry(theirs).or_insert(ours) == ours
    }
}

/// Compares the graph with Julia's description. Data that a file does not contain is omitted: names of fields, whether
/// a struct is mutable, and the element type of a vector whose elements are not plain bits.
fn same(path: &str, ours: &Json, theirs: &Json, pairs: &mut Pairs) {
    let differs = |what: &str| panic!("{path}: {what}\n  ours   {ours}\n  Julia's {theirs}");
    let inside = |key: &str| format!("{path}.{key}");
    match (ours, theirs) {
        (Json::Number(a), Json::Number(b)) => {
            let equal = match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a == b,
                (None, None) => a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits),
                _ => false,
            };
            if !equal {
                differs("number");
            }
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                same(&inside(&i.to_string()), a, b, pairs);
            }
        }
        (Json::Object(a), Json::Object(b)) => {
            if let Some(id) = a.get("$id") {
                if !b.get("$id").is_some_and(|theirs| pairs.is_pair(id, theirs)) {
                    differs("identity");
                }
                return same(path, &a["$value"], &b["$value"], pairs);
            }
            if let Some(id) = a.get("$sameas") {
                let good = b.get("$sameas").is_some_and(|theirs| pairs.is_pair(id, theirs));
                if !good {
                    differs("identity");
                }
                return;
            }
            // The order of dictionaries and sets in a file is arbitrary.
            if let (Some(a), Some(b)) = (a.get("$dict"), b.get("$dict")) {
                return same_unordered(path, a, b, pairs, |pair| pair[0].to_string());
            }
            if let (Some(a), Some(b)) = (a.get("$set"), b.get("$set")) {
                return same_unordered(path, a, b, pairs, |value| value.to_string());
            }
            if b.contains_key("$struct") {
                let fields: Vec<Json> = b["fields"].as_array().unwrap().iter().map(|field| field[1].clone()).collect();
                assert_eq!(a.get("$struct"), b.get("$struct"), "{path}: {ours} {theirs}");
                return same(&inside("fields"), &a["fields"], &Json::Array(fields), pairs);
            }
            if b.contains_key("$anonymous") {
                let captures: Vec<Json> =
                    b["captures"].as_array().unwrap().iter().map(|field| field[1].clone()).collect();
                return same(&inside("captures"), &a["captures"], &Json::Array(captures), pairs);
            }
            if b.contains_key("$primitive") && a.contains_key("$bits") {
                assert_eq!((&a["$bits"], &a["bytes_hex"]), (&b["$primitive"], &b["bytes_hex"]), "{path}");
                return;
            }
            if !a.keys().eq(b.keys()) {
                differs("keys");
            }
            for (key, ours) in a {
                match (key.as_str(), ours, &b[key]) {
                    ("eltype", Json::String(ours), _) if ours == "Any" && a["size"].as_array().unwrap().len() == 1 => {}
                    ("$type", Json::String(ours), Json::String(theirs)) => {
                        assert_eq!(*ours, without_bounds(theirs), "{path}");
                    }
                    (key, ours, theirs) => same(&inside(key), ours, theirs, pairs),
                }
            }
        }
        _ if ours == theirs => {}
        _ => differs("value"),
    }
}

fn same_unordered(path: &str, a: &Json, b: &Json, pairs: &mut Pairs, key: impl Fn(&Json) -> String) {
    let sorted = |list: &Json| {
        let mut list = list.as_array().unwrap().clone();
        list.sort_by_key(&key);
        Json::Array(list)
    };
    same(path, &sorted(a), &sorted(b), pairs);
}

/// The descriptions repeat the bounds of a variable at each use; Julia writes them only after `where`.
fn without_bounds(text: &str) -> String {
    let Some((body, rest)) = text.split_once(" where ") else { return text.to_string() };
    format!("{} where {rest}", body.replace("<:Real", ""))
}

#[test]
fn every_file_matches_julias_description() {
    for path in corpus() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let sidecar: Json = serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap()).unwrap();
        let graph = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut ours: Json = serde_json::from_str(&graph.to_string()).unwrap();
        if sidecar["root_keys"] == json!(["value"]) {
            ours = ours["value"].take();
        }
        same(name, &ours, &sidecar["value"], &mut Pairs::default());
    }
}

#[test]
fn every_file_is_written_back_unchanged() {
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        let graph = read(&bytes).unwrap();
        let written = graph.to_vec().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Document::new(&written).unwrap().check().unwrap();
        let again = read(&written).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // The text numbers shared objects in the order of their first use, so that equal texts are graphs of the same
        // form.
        assert_eq!(again.to_string(), graph.to_string(), "{}", path.display());
    }
}

/// Returns a document with these members: type, key, payload.
fn document(members: &[(u8, &str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    for (kind, key, payload) in members {
        bytes.push(*kind);
        bytes.extend_from_slice(key.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(payload);
    }
    bytes.push(0);
    let len = (bytes.len() as u32).to_le_bytes();
    bytes[..4].copy_from_slice(&len);
    bytes
}

fn array(elements: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let keys: Vec<String> = (0..elements.len()).map(|i| i.to_string()).collect();
    let members: Vec<_> =
        keys.iter().zip(elements).map(|(key, (kind, payload))| (*kind, &key[..], payload.clone())).collect();
    document(&members)
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat()
}

fn binary(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], &[0], bytes].concat()
}

fn data_type(path: &[&str], params: Vec<u8>) -> Vec<u8> {
    let names: Vec<_> = path.iter().map(|name| (2, string(name))).collect();
    document(&[(2, "tag", string("datatype")), (4, "params", params), (4, "name", array(&names))])
}

fn plain_type(path: &[&str]) -> Vec<u8> {
    data_type(path, array(&[]))
}

fn backref(number: i64) -> Vec<u8> {
    document(&[(2, "tag", string("backref")), (0x12, "ref", number.to_le_bytes().to_vec())])
}

fn structure(of: Vec<u8>, fields: &[(u8, Vec<u8>)]) -> Vec<u8> {
    document(&[(2, "tag", string("struct")), (3, "type", of), (4, "data", array(fields))])
}

fn tagged_array(of: Vec<u8>, size: &[i64], data: (u8, Vec<u8>)) -> Vec<u8> {
    let size: Vec<_> = size.iter().map(|length| (0x12, length.to_le_bytes().to_vec())).collect();
    document(&[(2, "tag", string("array")), (3, "type", of), (4, "size", array(&size)), (data.0, "data", data.1)])
}

/// Returns a root with one member `v` and shared objects.
fn root(value: Vec<u8>, backrefs: Option<Vec<(u8, Vec<u8>)>>) -> Vec<u8> {
    match backrefs {
        Some(entries) => document(&[(3, "v", value), (4, "_backrefs", array(&entries))]),
        None => document(&[(3, "v", value)]),
    }
}

/// Returns the description of a file: its text, or the kind of its error.
fn outcome(bytes: &[u8]) -> Result<String, ErrorKind> {
    read(bytes).map(|graph| graph.to_string()).map_err(|error| {
        assert!(error.offset().is_some(), "{error}");
        error.kind()
    })
}

const INVALID: Result<String, ErrorKind> = Err(ErrorKind::JuliaInvalid);

#[test]
fn a_hundred_thousand_levels_are_read_shown_and_written() {
    // The document is built by hand, from the inside out and with the lengths last, because each level is nested in the
    // next.
    let levels = 100_000;
    let (front, after) = (8, 1); // a length, a type and "v\0"; a terminator
    let innermost = [5, 0, 0, 0, 0];
    let mut bytes = Vec::new();
    for level in 0..levels {
        let len = (levels - level) * (front + after - 1) + innermost.len();
        bytes.extend_from_slice(&(len as u32).to_le_bytes());
        bytes.extend_from_slice(b"\x03v\0");
    }
    bytes.extend_from_slice(&innermost);
    bytes.resize(bytes.len() + levels, 0);
    let graph = read(&bytes).unwrap();
    assert_eq!(graph.to_string().len(), levels * "{\"v\":}".len() + 2);
    assert_eq!(graph.to_vec().unwrap(), bytes);
}

#[test]
fn deep_values_types_and_tuples_are_iterative() {
    fn deep(levels: usize, innermost: Vec<u8>, around: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
        (0..levels).fold(innermost, |inside, _| around(inside))
    }
    // Building it takes quadratic time, so it is less deep.
    let types =
        deep(3000, plain_type(&["Core", "Int8"]), |inside| data_type(&["Core", "Tuple"], array(&[(3, inside)])));
    let values = tagged_array(types.clone(), &[1], (5, binary(&[1])));
    for (what, value) in [
        ("a type", types.clone()),
        ("an array of it", values),
        ("a struct of it", structure(types, &[])),
        (
            "tuples",
            deep(3000, structure(plain_type(&["Main", "Base", "Missing"]), &[]), |inside| {
                document(&[(2, "tag", string("tuple")), (4, "data", array(&[(3, inside)]))])
            }),
        ),
    ] {
        let bytes = root(value, None);
        match read(&bytes) {
            Ok(graph) => {
                let again = graph.to_vec().unwrap();
                assert_eq!(read(&again).unwrap().to_string(), graph.to_string(), "{what}");
            }
            Err(error) => assert_eq!((error.kind(), what), (ErrorKind::JuliaInvalid, "a struct of it"), "{error}"),
        }
    }
}

#[test]
fn wide_types_take_no_time() {
    let own: Vec<_> = (0..20_000).map(|i| (3, plain_type(&["Main", &format!("T{i}")]))).collect();
    let of = data_type(&["Core", "Tuple"], array(&own));
    assert!(outcome(&root(tagged_array(of, &[2], (5, binary(&[1, 2, 3, 4]))), None)).is_ok());
}

#[test]
fn backrefs_are_checked() {
    let node = |next: Vec<u8>| (3, structure(plain_type(&["Main", "Corpus", "Node"]), &[(3, next)]));
    let text = |inside: &str| Ok(format!(r#"{{"v":{inside}}}"#));
    // The object refers to itself.
    assert_eq!(
        outcome(&root(backref(1), Some(vec![node(backref(1))]))),
        text(r#"{"$id":1,"$value":{"$struct":"Main.Corpus.Node","fields":[{"$sameas":1}]}}"#)
    );
    // The reference goes through other objects; unreferenced values are not read.
    assert_eq!(outcome(&root(backref(1), Some(vec![(3, backref(3)), (3, backref(2)), (10, vec![])]))), text("null"));
    // References are out of bounds, or circular.
    for (value, entries) in [
        (backref(0), vec![(10, vec![])]),
        (backref(2), vec![(10, vec![])]),
        (backref(-1), vec![(10, vec![])]),
        (backref(i64::MAX), vec![(10, vec![])]),
        (backref(i64::MIN), vec![]),
        (backref(1), vec![(3, backref(1))]),
        (backref(1), vec![(3, backref(2)), (3, backref(1))]),
        (backref(1), vec![node(backref(2)), (3, backref(2))]),
    ] {
        assert_eq!(outcome(&root(value, Some(entries))), INVALID);
    }
    assert_eq!(outcome(&root(backref(1), None)), INVALID);
    assert_eq!(outcome(&backref(1)), INVALID);
    // The text of a type that is its own parameter is finite.
    let own = |number| data_type(&["Core", "Tuple"], array(&[(3, backref(number))]));
    let circle = root(tagged_array(backref(1), &[1], (5, binary(&[1]))), Some(vec![(3, own(1))]));
    assert!(outcome(&circle).unwrap().contains('…'));
    let all =
        |number| document(&[(2, "tag", string("unionall")), (3, "var", backref(2)), (3, "body", backref(number))]);
    let var = structure(
        plain_type(&["Core", "TypeVar"]),
        &[(3, document(&[(2, "tag", string("symbol")), (2, "name", string("T"))])), (3, backref(1)), (3, backref(2))],
    );
    let circle = root(backref(1), Some(vec![(3, all(1)), (3, var)]));
    let graph = read(&circle).unwrap();
    assert_eq!(read(&graph.to_vec().unwrap()).unwrap().to_string(), graph.to_string());
}

#[test]
fn sharing_without_end_takes_no_time() {
    // Each entry contains the next one twice: 2^60 values, if they were not shared.
    for of in [&["Main", "Corpus", "Two"][..], &["Core", "Tuple"]] {
        let two = |number: i64| (3, backref(number));
        let entry = |number: i64| match of.len() {
            3 => (3, structure(plain_type(of), &[two(number + 1), two(number + 1)])),
            _ => (3, data_type(of, array(&[two(number + 1), two(number + 1)]))),
        };
        let mut entries: Vec<_> = (1..60).map(entry).collect();
        entries.push((3, plain_type(&["Core", "Nothing"])));
        let graph = root(backref(1), Some(entries.clone()));
        let graph = read(&graph).unwrap();
        assert_eq!(read(&graph.to_vec().unwrap()).unwrap().to_string(), graph.to_string());
        // The type is the element type of an array whose elements have no bytes.
        let array = root(tagged_array(backref(1), &[1000], (5, binary(&[]))), Some(entries));
        if of.len() == 2 {
            assert!(outcome(&array).unwrap().len() < 10 << 20);
        }
    }
}

#[test]
fn long_texts_are_not_repeated() {
    let long = "x".repeat(100_000);
    let symbol = document(&[(2, "tag", string("symbol")), (2, "name", string(&long))]);
    let module = document(&[(2, "tag", string("ref")), (4, "path", array(&[(2, string("Main")), (2, string(&long))]))]);
    let named = data_type(
        &["Core", "NamedTuple"],
        array(&[
            (3, document(&[(2, "tag", string("tuple")), (4, "data", array(&[(3, symbol.clone())]))])),
            (3, data_type(&["Core", "Tuple"], array(&[(3, plain_type(&["Core", "Int64"]))]))),
        ]),
    );
    let one = || (0x12, 1_i64.to_le_bytes().to_vec());
    let of_one = |fields: &[(u8, Vec<u8>)]| structure(backref(1), fields);
    for (shared, value) in [
        ((2, string(&long)), backref(1)),
        ((9, 1_i64.to_le_bytes().to_vec()), backref(1)),
        ((0x0d, string(&long)), backref(1)),
        ((3, symbol), backref(1)),
        ((3, module), backref(1)),
        ((3, plain_type(&["Main", &long])), backref(1)),
        ((3, plain_type(&["Main", &long])), of_one(&[])),
        ((3, plain_type(&["Main", &format!("#{long}")])), of_one(&[])),
        ((3, named), of_one(&[one()])),
    ] {
        let many: Vec<_> = (0..1000).map(|_| (3, value.clone())).collect();
        let bytes = document(&[(4, "v", array(&many)), (4, "_backrefs", array(&[shared]))]);
        let graph = read(&bytes).unwrap();
        let text = graph.to_string();
        assert!(text.len() < 5_000_000, "{} bytes: {}", text.len(), &text[..200]);
        let written = graph.to_vec().unwrap();
        assert!(written.len() < 2 * bytes.len(), "{} bytes: {}", written.len(), &text[..200]);
        assert_eq!(read(&written).unwrap().to_string(), text);
    }
    // The first occurrence contains the text, and the others refer to it; short texts are repeated.
    let text = |text: &str| {
        let two = [(3, backref(1)), (3, backref(1))];
        outcome(&document(&[(4, "v", array(&two)), (4, "_backrefs", array(&[(2, string(text))]))])).unwrap()
    };
    assert!(text(&long).starts_with("{\"v\":{\"$array\":[{\"$id\":1,\"$value\":\"xxx"));
    assert!(text(&long).contains(",{\"$sameas\":1}]"));
    assert!(text("short").contains("[\"short\",\"short\"]"));
}

#[test]
fn rust_types_do_not_take_shared_texts_without_end() {
    let many: Vec<_> = (0..1000).map(|_| (3, backref(1))).collect();
    let limit = Err(ErrorKind::MemoryLimit);
    let shared = |entry: (u8, Vec<u8>)| document(&[(4, "v", array(&many)), (4, "_backrefs", array(&[entry]))]);
    fn take<'a, T: Deserialize<'a>>(graph: &'a Graph<'a>) -> Result<usize, ErrorKind> {
        graph.root().get("v").unwrap().to::<Vec<T>>().map(|all| all.len()).map_err(|error| error.kind())
    }
    let (long, short) = ("x".repeat(100_000), "x".repeat(10));
    let function = |name: &str| structure(plain_type(&["Base", &format!("#{name}")]), &[]);
    for (text, expected) in [(&long, limit), (&short, Ok(1000))] {
        assert_eq!(take::<String>(&read(&shared((2, string(text)))).unwrap()), expected);
        assert_eq!(take::<String>(&read(&shared((3, function(text)))).unwrap()), expected);
        assert_eq!(take::<serde_bytes::ByteBuf>(&read(&shared((5, binary(text.as_bytes())))).unwrap()), expected);
        let keyed = document(&[(10, text, vec![])]);
        assert_eq!(take::<BTreeMap<String, ()>>(&read(&shared((3, keyed))).unwrap()), expected);
    }
}

#[test]
fn the_text_of_a_type_is_short_for_any_names() {
    let long = "é".repeat(100_000);
    let many = vec![&long[..2000]; 1000];
    for path in [&["Main", &long[..]][..], &[&long, "T"], &many] {
        let bytes = root(structure(plain_type(path), &[]), None);
        let text = outcome(&bytes).unwrap();
        assert!(text.contains("é…\""), "{}", &text[text.len() - 100..]);
        assert!(text.len() < 4200, "{} bytes", text.len());
        let wrong = root(tagged_array(plain_type(path), &[2], (5, binary(&[0; 3]))), None);
        assert!(read(&wrong).unwrap_err().to_string().len() < 4400);
    }
}

/// Returns a `BitArray{1}` of one bit, with these values as its rank, its length, and its sizes.
fn bit_array(rank: (u8, Vec<u8>), length: (u8, Vec<u8>), sizes: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let chunks = tagged_array(plain_type(&["Core", "UInt64"]), &[1], (5, binary(&[1, 0, 0, 0, 0, 0, 0, 0])));
    let sizes = document(&[(2, "tag", string("tuple")), (4, "data", array(sizes))]);
    let of = data_type(&["Main", "Base", "BitArray"], array(&[rank]));
    structure(of, &[(3, chunks), length, (3, sizes)])
}

#[test]
fn bit_arrays_are_no_numbers_of_bit_arrays() {
    let one = || (0x12, 1_i64.to_le_bytes().to_vec());
    let two = || (0x12, 2_i64.to_le_bytes().to_vec());
    let again = |number| (3, backref(number));
    let circle = |entry: Vec<u8>| outcome(&root(backref(1), Some(vec![(3, entry)])));
    assert!(circle(bit_array(one(), one(), &[one()])).unwrap().contains("[true]"));
    assert_eq!(circle(bit_array(one(), again(1), &[one()])), INVALID);
    assert_eq!(circle(bit_array(two(), one(), &[one(), again(1)])), INVALID);
    // A rank that is not a number is treated as absent, because the sizes determine it.
    assert!(circle(bit_array(again(1), one(), &[one()])).is_ok());
    // Each array has the length of the previous one.
    let levels = 100_000;
    let mut entries: Vec<_> = (2..=levels).map(|next| (3, bit_array(one(), again(next), &[one()]))).collect();
    entries.push((3, bit_array(one(), one(), &[one()])));
    assert_eq!(outcome(&root(backref(1), Some(entries))), INVALID);
}

#[test]
fn repeated_values_are_shown_in_bounded_size() {
    // The two values of each dictionary are in an array that another dictionary shares: 2^30 paths to the innermost
    // one.
    let levels = 30;
    let keys = || (4, array(&[(2, string("a")), (2, string("b"))]));
    let dict = |values| (3, structure(plain_type(&["Base", "Dict"]), &[keys(), values]));
    let mut entries: Vec<_> =
        (2..=levels).map(|next| (4, array(&[dict((3, backref(next))), dict((3, backref(next)))]))).collect();
    entries.push((4, array(&[(10, vec![]), (10, vec![])])));
    let file = root(dict((3, backref(1))).1, Some(entries));
    let text = outcome(&file).unwrap();
    assert!((16 << 20..20 << 20).contains(&text.len()), "{} bytes", text.len());
    assert!(text.contains(r#"["a","…"]"#));
    assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
    // A value that is large but not shared is shown completely.
    let large = array(&vec![dict(keys()); 100_000]);
    let text = outcome(&document(&[(4, "v", large)])).unwrap();
    assert_eq!(text.matches("$dict").count(), 100_000);
    assert!(!text.contains('…'));
}

#[test]
fn sizes_are_checked_before_allocation() {
    let of = |name: &'static str| plain_type(&["Core", name]);
    let bits = |bytes: &[u8]| (5, binary(bytes));
    let none = || (4, array(&[]));
    // The 152 bytes announce two billion elements.
    assert_eq!(outcome(&root(tagged_array(of("Any"), &[2_000_000_000], none()), None)), INVALID);
    for (name, size, data) in [
        ("Float64", &[2_000_000_000][..], bits(&[0; 8])),
        ("Float64", &[-1], bits(&[])),
        ("Float64", &[i64::MAX, i64::MAX], bits(&[])),
        ("Float64", &[i64::MAX, 2], bits(&[0; 8])),
        ("Float64", &[1 << 61], bits(&[])),
        ("Float64", &[1], bits(&[0; 7])),
        ("Float64", &[1], bits(&[0; 9])),
        ("Float64", &[], bits(&[])),
        ("Float64", &[0], bits(&[0])),
        ("Nothing", &[1], bits(&[0])),
        ("String", &[1], bits(&[0; 8])),
        ("Any", &[1, 2], none()),
    ] {
        assert_eq!(outcome(&root(tagged_array(of(name), size, data), None)), INVALID, "{name} {size:?}");
    }
    // The elements have no bytes.
    let nothings = |count| root(tagged_array(of("Nothing"), &[count], bits(&[])), None);
    assert_eq!(outcome(&nothings(i64::MAX)), Err(ErrorKind::MemoryLimit));
    assert_eq!(outcome(&nothings(1 << 31)), Err(ErrorKind::MemoryLimit));
    assert!(outcome(&nothings(1000)).unwrap().len() > 1000);
    // A product with a factor of 0 is 0.
    assert!(outcome(&root(tagged_array(of("Float64"), &[i64::MAX, i64::MAX, 0], bits(&[])), None)).is_ok());
    // The file does not describe this type, so each element has the same number of bytes.
    let own = |size: &[i64], data| outcome(&root(tagged_array(plain_type(&["Main", "T"]), size, data), None));
    assert!(own(&[3], bits(&[0; 12])).is_ok());
    assert_eq!(own(&[3], bits(&[0; 13])), INVALID);
    assert_eq!(own(&[0], bits(&[0; 13])), INVALID);
    assert_eq!(own(&[i64::MAX], bits(&[])), Err(ErrorKind::MemoryLimit));
}

#[test]
fn values_that_cannot_be_are_errors() {
    let bits = |name: &str, bytes: &[u8]| {
        document(&[(2, "tag", string("struct")), (3, "type", plain_type(&["Core", name])), (5, "data", binary(bytes))])
    };
    assert_eq!(outcome(&root(bits("Int16", &[1, 2]), None)), Ok(r#"{"v":513}"#.to_string()));
    for value in [
        bits("Int16", &[1]),
        bits("Int16", &[1, 2, 3]),
        bits("Int16", &[]),
        bits("Nothing", &[]),
        bits("Array", &[1]),
        bits("String", &[1]),
        structure(plain_type(&["Core", "Int8"]), &[]),
        structure(plain_type(&["Base", "Complex"]), &[(10, vec![])]),
        structure(plain_type(&["Base", "Dict"]), &[(4, array(&[])), (4, array(&[(10, vec![])]))]),
        structure(plain_type(&["Base", "Dict"]), &[(10, vec![]), (10, vec![])]),
        structure(plain_type(&["Base", "Set"]), &[(10, vec![])]),
        structure(plain_type(&["Base", "BitArray"]), &[(10, vec![]), (10, vec![]), (10, vec![])]),
        structure(plain_type(&["Core", "Union"]), &[(10, vec![]), (10, vec![])]),
        structure(plain_type(&["Core", "NamedTuple"]), &[]),
        structure(document(&[]), &[]),
        document(&[(2, "tag", string("symbol")), (0x10, "name", vec![0; 4])]),
        document(&[(2, "tag", string("tuple")), (0x10, "data", vec![0; 4])]),
        document(&[(2, "tag", string("backref")), (1, "ref", vec![0; 8])]),
        document(&[(2, "tag", string("ref")), (4, "path", array(&[]))]),
        document(&[(2, "tag", string("ref")), (4, "path", array(&[(10, vec![])]))]),
    ] {
        assert_eq!(outcome(&root(value.clone(), None)), INVALID, "{value:02x?}");
    }
}

#[test]
fn look_alikes_stay_plain() {
    for (members, text) in [
        (vec![(2, "tag", string("mine")), (10, "data", vec![])], r#"{"tag":"mine","data":null}"#),
        (vec![(2, "tag", string("symbol"))], r#"{"tag":"symbol"}"#),
        (
            vec![(2, "tag", string("symbol")), (2, "name", string("x")), (10, "more", vec![])],
            r#"{"tag":"symbol","name":"x","more":null}"#,
        ),
        (
            vec![(2, "tag", string("symbol")), (2, "name", string("x")), (10, "data", vec![])],
            r#"{"tag":"symbol","name":"x","data":null}"#,
        ),
        (vec![(10, "tag", vec![]), (2, "name", string("x"))], r#"{"tag":null,"name":"x"}"#),
        (vec![(2, "tag", string("jl_bottom_type")), (10, "x", vec![])], r#"{"tag":"jl_bottom_type","x":null}"#),
    ] {
        let bytes = root(document(&members), None);
        assert_eq!(outcome(&bytes), Ok(format!(r#"{{"v":{text}}}"#)));
        assert_eq!(read(&bytes).unwrap().to_vec().unwrap(), bytes);
    }
    let symbol = [(2, "name", string("x")), (2, "tag", string("symbol"))];
    assert_eq!(outcome(&root(document(&symbol), None)), Ok(r#"{"v":{"$symbol":"x"}}"#.to_string()));
}

#[test]
fn types_without_a_julia_equivalent_are_kept() {
    let bytes = document(&[
        (7, "id", vec![1; 12]),
        (9, "date", vec![2; 8]),
        (5, "uuid", [&[16, 0, 0, 0, 4][..], &[3; 16]].concat()),
        (0x13, "decimal", vec![4; 16]),
        (0xff, "least", vec![]),
        (2, "text", [&[2, 0, 0, 0][..], b"\xff\0"].concat()),
    ]);
    let graph = read(&bytes).unwrap();
    assert_eq!(graph.to_vec().unwrap(), bytes);
    assert!(graph.to_string().contains(r#""id":{"$bson":"objectId","bytes_hex":"010101010101010101010101"}"#));
    assert!(graph.to_string().contains(r#""text":{"$bytes_hex":"ff"}"#));
}

#[test]
fn memory_is_limited() {
    let many: Vec<_> = (0..1000).map(|_| (10, vec![])).collect();
    let bytes = document(&[(4, "v", array(&many))]);
    let limited =
        |bytes: &[u8], limit| Graph::read_with(Document::new(bytes).unwrap(), &Options::new().memory(limit)).map(drop);
    assert!(limited(&bytes, 100_000).is_ok());
    assert_eq!(limited(&bytes, 10_000).unwrap_err().kind(), ErrorKind::MemoryLimit);
    // Borrowed data does not count.
    let text = "x".repeat(1 << 20);
    assert!(limited(&document(&[(2, "s", string(&text)), (5, "b", binary(text.as_bytes()))]), 10_000).is_ok());
}

#[test]
fn every_cut_and_every_flipped_bit_is_an_answer() {
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > 64 << 10 {
            continue;
        }
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{} cut to {len}", path.display());
        }
        // Deep runs test every bit, other runs one bit of each byte in turn. The long texts of one file have no
        // structure, so only some of its bits are tested.
        let deep = std::env::var_os("MILLSTREAM_DEEP").is_some();
        let step = if bytes.len() > 10_000 {
            101
        } else if deep {
            1
        } else {
            5
        };
        let mut flipped = bytes.clone();
        for bit in (0..bytes.len() * 8).step_by(step) {
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(graph) = read(&flipped) {
                // A graph that was read can be formatted, and can be written if its root is still a document's root.
                assert!(graph.to_string().len() < 64 << 20);
                if let Ok(written) = graph.to_vec() {
                    let again = read(&written).unwrap_or_else(|error| panic!("{} bit {bit}: {error}", path.display()));
                    assert_eq!(again.to_string(), graph.to_string(), "{} bit {bit}", path.display());
                }
            }
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn values_become_rust_types() {
    fn load<T: serde::de::DeserializeOwned>(file: &str, key: &str) -> Option<T> {
        let path = shared::vectors("julia-bson").join(file).with_extension("bson");
        let bytes = std::fs::read(path).unwrap();
        Some(
            read(&bytes).unwrap().root().get(key).unwrap().to().unwrap_or_else(|error| panic!("{file} {key}: {error}")),
        )
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Point {
        x: f64,
        y: f64,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Line {
        a: Point,
        b: Point,
        name: String,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Named {
        c: Vec<f32>,
        a: u8,
        b: String,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Foo,
    }

    let point = |x, y| Point { x, y };
    let line = Line { a: point(0.0, 1.0), b: point(2.0, 3.0), name: "diagonal".to_string() };
    assert_eq!(load("28-struct-nested", "value"), Some(line));
    let points = (1..5).map(|i| point(i.into(), (2 * i).into())).collect::<Vec<_>>();
    assert_eq!(load("31-vec-struct-bits", "bits"), Some(points));
    assert_eq!(load("54-qs-padded-structs", "value"), Some(vec![(1u8, 1000u32), (2, 2000), (3, 3000)]));
    let named = Named { c: vec![1.0, 2.0], a: 1, b: "x".to_string() };
    assert_eq!(load("10-namedtuple-pair", "nt"), Some(named));
    assert_eq!(load("06-symbols", "s"), Some(Word::Foo));
    assert_eq!(load("08-complex-rational", "cf32"), Some((0.5f32, -2.0f32)));
    assert_eq!(load("08-complex-rational", "vci"), Some(vec![(1i64, 2i64), (3, -4)]));
    assert_eq!(load("01-signed-ints", "i128lo"), Some(i128::MIN));
    assert_eq!(load("02-unsigned-ints", "u128"), Some(u128::MAX));
    assert_eq!(load("03-floats", "f16"), Some(1.5f64));
    assert_eq!(load("04-bool-char", "rocket"), Some('🚀'));
    assert_eq!(load("07-nothing-missing", "vec"), Some(vec![None, None, Some(1)]));
    assert_eq!(load("16-vec-uint8", "bytes"), Some(vec![0u8, 1, 127, 128, 255]));
    assert_eq!(
        load("18-matrix-f64", "value").map(|all: Vec<f64>| all[..4].to_vec()),
        Some(vec![11.0, 21.0, 31.0, 12.0])
    );
    let numbers = [("a", 1), ("b", 2), ("ü", 3)].map(|(key, value)| (key.to_string(), value));
    assert_eq!(load("11-dict-string", "si"), Some(BTreeMap::from(numbers)));
    let pairs = BTreeMap::from([((1, 2), 3.0), ((3, 4), 5.0)]);
    assert_eq!(load("13-dict-int-keys", "tk"), Some(pairs));
    assert_eq!(load("14-set", "i"), Some(BTreeSet::from([1, 2, 3])));
    assert_eq!(load("23-bitarray", "v").map(|bits: Vec<bool>| (bits.len(), bits[2])), Some((70, true)));
    assert_eq!(load("37-named-function", "sin"), Some("Base.sin".to_string()));
    assert_eq!(load("38-ref", "a"), Some(vec![1.0, 2.0]));
    type Numbers = Vec<i64>;
    type Node = (i32, ());
    type Shared = (Numbers, Numbers, (Numbers, String), Node, Node, Vec<Node>);
    let shared: Option<Shared> = load("32-shared-refs", "value");
    let three = vec![1, 2, 3];
    let all = (three.clone(), three.clone(), (three, "t".to_string()), (5, ()), (5, ()), vec![(5, ())]);
    assert_eq!(shared, Some(all));
}

#[test]
fn values_that_rust_types_cannot_represent_are_errors() {
    #[derive(Deserialize)]
    struct Node {
        #[allow(dead_code)]
        next: Option<Box<Node>>,
    }
    let two = |number: i64| structure(plain_type(&["Main", "T"]), &[(3, backref(number)), (3, backref(number))]);
    let mut entries: Vec<_> = (2..60).map(|number| (3, two(number))).collect();
    entries.push((10, vec![]));
    // The number of levels is the maximum, but each level contains the next one twice.
    let unfolds = root(backref(1), Some(entries));
    let circle = root(backref(1), Some(vec![(3, structure(plain_type(&["Main", "T"]), &[(3, backref(1))]))]));
    let deep = (0..250).fold((10, vec![]), |inside, _| (3, structure(plain_type(&["Main", "T"]), &[inside])));
    let deep = root(deep.1, None);
    let function = root(structure(plain_type(&["Base", "#sin"]), &[]), None);
    for (bytes, kind) in [
        (&unfolds, ErrorKind::MemoryLimit),
        (&circle, ErrorKind::ShapeMismatch),
        (&deep, ErrorKind::TooDeep),
        (&function, ErrorKind::ShapeMismatch),
    ] {
        let graph = read(bytes).unwrap();
        let value = graph.root().get("v").unwrap();
        match kind {
            ErrorKind::MemoryLimit => assert_eq!(value.to::<Twice>().err().map(|error| error.kind()), Some(kind)),
            _ => assert_eq!(value.to::<Node>().err().map(|error| error.kind()), Some(kind), "{graph}"),
        }
    }
}

/// A node with no children or two of its own type, as a test type.
struct Twice;

impl<'de> Deserialize<'de> for Twice {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Twice, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Twice;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("nothing, or two")
            }
            fn visit_unit<E>(self) -> Result<Twice, E> {
                Ok(Twice)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut access: A) -> Result<Twice, A::Error> {
                while access.next_element::<Twice>()?.is_some() {}
                Ok(Twice)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Returns one value of each kind that the builder creates.
fn built(builder: &mut Builder<'static>) -> millstream::Result<Graph<'static>> {
    let b = builder;
    let mut members = vec![
        ("i8", b.scalar(-3i8)),
        ("u128", b.scalar(u128::MAX)),
        ("f16", b.scalar(half::f16::from_f32(1.5))),
        ("f32", b.scalar(0.1f32)),
        ("char", b.scalar('é')),
        ("bool", b.scalar(true)),
        ("nothing", b.nothing()),
        ("missing", b.missing()),
        ("text", b.string("größe")),
        ("symbol", b.symbol("α")),
        ("bytes", b.array(&[1u8, 2, 3], &[3])?),
        ("matrix", b.array(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?),
        ("cube", b.array(&[1i16, 2, 3, 4, 5, 6, 7, 8], &[2, 2, 2])?),
        ("zero", b.array(&[2.5f32], &[])?),
        ("none", b.array::<f64>(&[], &[0, 3])?),
        ("halves", b.array(&[half::f16::ONE, half::f16::INFINITY], &[2])?),
        ("bools", b.array(&[true, false], &[2])?),
        ("waves", b.complex_array(&[[1.0f32, -1.0], [0.5, 2.0]], &[2])?),
        ("bits", b.bit_array(&[true, false, true], &[3])?),
        ("bitmatrix", b.bit_array(&[true, false, true, true, false, true], &[2, 3])?),
    ];
    let one = b.scalar(1);
    let two = b.scalar(2);
    let text = b.string("x");
    let (int32, string) = (b.data_type("Int32", &[])?, b.data_type("String", &[])?);
    members.push(("tuple", b.tuple([one, text])?));
    members.push(("named", b.named_tuple([("a", int32, one), ("b", string, text)])?));
    let pair = b.data_type("Pair", &[int32, string])?;
    members.push(("pair", b.structure(pair, [one, text])?));
    let complex = b.data_type("Complex", &[int32])?;
    members.push(("complex", b.structure(complex, [one, two])?));
    let rational = b.data_type("Rational", &[int32])?;
    members.push(("rational", b.structure(rational, [one, two])?));
    let range = b.data_type("UnitRange", &[int32])?;
    members.push(("range", b.structure(range, [one, two])?));
    let keys = b.list([text])?;
    let values = b.array(&[7i32], &[1])?;
    members.push(("dict", b.dict(string, int32, keys, values)?));
    let numbers = b.array(&[1i32, 2, 3], &[3])?;
    members.push(("set", b.set(int32, numbers)?));
    members.push(("inner", b.document([("k", one), ("same", numbers)])?));
    let union = b.list([one, text, numbers])?;
    members.push(("list", union));
    let words = b.array_of(string, vec![text, text], &[1, 2])?;
    members.push(("words", words));
    members.push(("type", complex));
    let own = b.data_type("Main.Corpus.Node", &[])?;
    let nothing = b.nothing();
    let id = b.scalar(5i64);
    let node = b.structure(own, [id, nothing])?;
    b.set_field(node, 1, node)?;
    members.push(("circle", node));
    let root = b.document(members)?;
    std::mem::take(b).finish(root)
}

#[test]
fn built_values_are_read_back() {
    let graph = built(&mut Builder::new()).unwrap();
    let bytes = graph.to_vec().unwrap();
    Document::new(&bytes).unwrap().check().unwrap();
    let again = read(&bytes).unwrap();
    assert_eq!(again.to_string(), graph.to_string());
    let root = again.root();
    assert_eq!(root.get("i8").unwrap().as_scalar(), Some(Scalar::Int8(-3)));
    let Kind::BitArray(size, bits) = root.get("bitmatrix").unwrap().kind() else { panic!() };
    assert_eq!(
        (size, bits.map(|bit| bit.to().unwrap()).collect()),
        (vec![2, 3], vec![true, false, true, true, false, true])
    );
    let node = root.get("circle").unwrap();
    let Kind::Struct(of, mut fields) = node.kind() else { panic!() };
    assert_eq!((of.to_string(), fields.nth(1).unwrap().id()), ("Main.Corpus.Node".to_string(), node.id()));
    // One entry exists for each shared object.
    let backrefs: millstream::bson::Array = Document::new(&bytes).unwrap().require("_backrefs").unwrap();
    assert_eq!(backrefs.count().unwrap(), BACKREFS_OF_BUILT);
}

/// These are the vector of numbers, the node that contains itself, and the type with parameters, which is also a
/// value.
const BACKREFS_OF_BUILT: usize = 3;

#[test]
fn values_that_cannot_be_written_are_refused() {
    let error = |build: &dyn Fn(&mut Builder<'static>) -> millstream::Result<Graph<'static>>| {
        let mut out = b"before".to_vec();
        let kind = build(&mut Builder::new()).and_then(|graph| graph.write(&mut out)).unwrap_err().kind();
        assert_eq!(out, b"before");
        kind
    };
    let range = ErrorKind::ValueOutOfRange;
    assert_eq!(
        error(&|b| {
            let one = b.scalar(1);
            std::mem::take(b).finish(one)
        }),
        range
    );
    assert_eq!(
        error(&|b| {
            let one = b.scalar(1);
            let root = b.document([("a\0", one)])?;
            std::mem::take(b).finish(root)
        }),
        range
    );
    assert_eq!(
        error(&|b| {
            let one = b.scalar(1);
            let root = b.document([("_backrefs", one)])?;
            std::mem::take(b).finish(root)
        }),
        range
    );
    assert_eq!(
        error(&|b| {
            let (tag, name) = (b.string("symbol"), b.string("x"));
            let inner = b.document([("name", name), ("tag", tag)])?;
            let root = b.document([("a", inner)])?;
            std::mem::take(b).finish(root)
        }),
        range
    );
    let option = ErrorKind::InvalidOption;
    assert_eq!(
        error(&|b| {
            b.array(&[1, 2, 3], &[2, 2])?;
            unreachable!()
        }),
        option
    );
    assert_eq!(
        error(&|b| {
            let of = b.data_type("Int8", &[])?;
            b.structure(of, [])?;
            unreachable!()
        }),
        option
    );
    assert_eq!(
        error(&|b| {
            b.data_type("no type", &[])?;
            unreachable!()
        }),
        option
    );
    // A root that is not a document counts as one if its value is a tagged document.
    let mut b = Builder::new();
    let of = b.data_type("Main.T", &[]).unwrap();
    let value = b.structure(of, []).unwrap();
    let bytes = b.finish(value).unwrap().to_vec().unwrap();
    assert_eq!(outcome(&bytes), Ok(r#"{"$struct":"Main.T","fields":[]}"#.to_string()));
}

/// Julia's own reader loads the written files and finds their original content. This needs a Julia that can load the
/// package BSON; this project does not install one.
#[test]
fn bson_jl_loads_the_written_files() {
    let corpus_folder = shared::vectors("julia-bson");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bson_julia/compare.jl");
    let julia = std::env::var_os("JULIA").unwrap_or("julia".into());
    let run = |arguments: &[&std::ffi::OsStr]| {
        std::process::Command::new(&julia).arg("--startup-file=no").args(arguments).output()
    };
    if !run(&["-e".as_ref(), "import BSON".as_ref()]).is_ok_and(|output| output.status.success()) {
        skip::say("no Julia with the package BSON; JULIA can name one, JULIA_LOAD_PATH the package");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        let written = read(&bytes).unwrap().to_vec().unwrap();
        std::fs::write(folder.path().join(path.file_name().unwrap()), written).unwrap();
        count += 1;
    }
    let graph = built(&mut Builder::new()).unwrap();
    std::fs::write(folder.path().join("built.bson"), graph.to_vec().unwrap()).unwrap();
    let output = run(&[script.as_ref(), corpus_folder.as_ref(), folder.path().as_ref()]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // Loading a function with a body runs code, which not every version of Julia supports.
    assert!(
        text.contains(&format!("{} files are equal", count - 1)) || text.contains(&format!("{count} files")),
        "{text}"
    );
}

/// Returns the paths of all values in a document, as a tree shows them, down to a few levels.
fn paths(document: &Document<'_>, before: &[String], paths: &mut Vec<Vec<String>>) {
    for element in document {
        let element = element.unwrap();
        let path: Vec<String> = before.iter().cloned().chain([element.key().unwrap().to_string()]).collect();
        if path.len() < 8 && matches!(element.kind(), ElementType::Document | ElementType::Array) {
            let inside = match element.value().unwrap() {
                ValueRef::Document(document) => document,
                ValueRef::Array(array) => array.as_document(),
                _ => unreachable!("its type is one of these"),
            };
            self::paths(&inside, &path, paths);
        }
        paths.push(path);
    }
}

#[test]
fn every_place_of_a_file_can_be_read_alone() {
    let point = || structure(plain_type(&["Main", "Point"]), &[(0x10, vec![1, 0, 0, 0]), (3, backref(1))]);
    // The shared struct contains a tuple that contains the struct.
    let tuple = document(&[(2, "tag", string("tuple")), (4, "data", array(&[(3, backref(1)), (3, point())]))]);
    let shared = structure(plain_type(&["Main", "Node"]), &[(3, tuple), (3, backref(2))]);
    let floats = tagged_array(plain_type(&["Core", "UInt8"]), &[2], (5, binary(&[7, 8])));
    let bytes = root(point(), Some(vec![(3, shared), (3, floats), (2, string("never used"))]));
    let file = Document::new(&bytes).unwrap();
    let shown = |path: &str| {
        let keys = millstream::bson::split_path(path).unwrap();
        Graph::read_path(file, keys, &Options::new()).unwrap().map(|graph| graph.to_string())
    };
    let floats = r#"{"$array":[7,8],"eltype":"UInt8","size":[2]}"#;
    let node = r#"{"$struct":"Main.Node","fields":[{"$tuple":["#;
    let point = r#"{"$struct":"Main.Point","fields":[1,"#;
    for (path, text) in [
        ("v.data.0", "1".to_string()),
        ("v.tag", r#""struct""#.into()),
        ("v.type", r#"{"$type":"Main.Point","kind":"DataType"}"#.into()),
        ("_backrefs.1", floats.into()),
        ("_backrefs.1.size", r#"{"$array":[2],"eltype":"Any","size":[1]}"#.into()),
        ("_backrefs.2", r#""never used""#.into()),
        ("_backrefs.0.data.1", floats.into()),
        (
            "_backrefs.0",
            format!(r#"{{"$id":1,"$value":{node}{{"$sameas":1}},{point}{{"$sameas":1}}]}}]}},{floats}]}}}}"#),
        ),
        ("v.data.1", shown("_backrefs.0").unwrap()),
        // The tuple occurs again in the struct that contains it.
        (
            "_backrefs.0.data.0",
            format!(
                r#"{{"$id":1,"$value":{{"$tuple":[{{"$id":2,"$value":{{"$struct":"Main.Node","fields":[{{"$sameas":1}},{floats}]}}}},{point}{{"$sameas":2}}]}}]}}}}"#
            ),
        ),
        ("", Graph::read(file).unwrap().to_string()),
    ] {
        assert_eq!(shown(path).as_ref(), Some(&text), "{path}");
    }
    for path in ["v.0", "v.data.2", "_backrefs.3", "v.tag.x"] {
        assert_eq!(shown(path), None, "{path}");
    }
}

#[test]
fn every_place_of_every_file_can_be_read_alone() {
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        let file = Document::new(&bytes).unwrap();
        let mut places = Vec::new();
        paths(&file, &[], &mut places);
        for place in places.iter().take(1000) {
            let read = Graph::read_path(file, place, &options());
            assert!(matches!(read, Ok(Some(_))), "{}: {place:?}: {read:?}", path.display());
        }
    }
}
