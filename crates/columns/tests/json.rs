//! JSON as columns: types, values, errors and rejects.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use fastrand::Rng;
use millstream::frame::JsonLines;
use millstream::{Error, ErrorKind, Reader};
use millstream_columns::{Batches, Duplicates, Infer, OnBad, Options, Records, Reject, Schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[path = "../../core/tests/escapes/mod.rs"]
mod escapes;
#[path = "../../millstream/tests/shared/peak.rs"]
mod peak;

struct Outcome {
    schema: String,
    batches: Vec<RecordBatch>,
    rejects: Vec<Reject>,
    error: Option<Error>,
}

impl Outcome {
    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows as values of JSON, without members that are null. Numbers are kept as their text.
    fn values(&self) -> Vec<Value> {
        self.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| value_of_row(batch, row))).collect()
    }

    fn kind(&self) -> Option<ErrorKind> {
        self.error.as_ref().map(Error::kind)
    }
}

fn value_of_row(batch: &RecordBatch, row: usize) -> Value {
    let schema = batch.schema();
    let members = schema.fields().iter().zip(batch.columns());
    let present = members.filter(|(_, column)| !is_null(column, row));
    Value::Object(present.map(|(field, column)| (field.name().clone(), value(column, row))).collect())
}

fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.is_null(row) || *array.data_type() == DataType::Null
}

/// A value of an array. Numbers are `{"number": TEXT}`.
fn value(array: &ArrayRef, row: usize) -> Value {
    if is_null(array, row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int64 => number(&array.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::UInt64 => number(&array.as_primitive::<UInt64Type>().value(row).to_string()),
        DataType::Float64 => number(&array.as_primitive::<Float64Type>().value(row).to_string()),
        DataType::Decimal128(..) => number(&array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|i| value(&items, i)).collect()
        }
        DataType::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            let present = members.filter(|(_, column)| !is_null(column, row));
            Value::Object(present.map(|(field, column)| (field.name().clone(), value(column, row))).collect())
        }
        other => panic!("{other}"),
    }
}

fn number(text: &str) -> Value {
    json!({ "number": text })
}

fn collect(batches: millstream::Result<Batches>) -> Outcome {
    let mut outcome = Outcome { schema: String::new(), batches: Vec::new(), rejects: Vec::new(), error: None };
    let mut batches = match batches {
        Ok(batches) => batches,
        Err(error) => return Outcome { error: Some(error), ..outcome },
    };
    outcome.schema = batches.schema().to_json();
    loop {
        match batches.next_batch() {
            Ok(Some(batch)) => outcome.batches.push(batch),
            Ok(None) => break,
            Err(error) => {
                outcome.error = Some(error);
                break;
            }
        }
    }
    outcome.rejects = batches.take_rejects();
    assert_eq!(batches.rows(), outcome.rows() as u64);
    assert_eq!(batches.rejected(), outcome.rejects.len() as u64);
    outcome
}

fn lines(text: impl Into<Vec<u8>>, options: &Options) -> Outcome {
    collect(Batches::json_lines(Reader::memory(text.into()).unwrap(), options))
}

fn elements(text: impl Into<Vec<u8>>, options: &Options) -> Outcome {
    let reader = Reader::builder().json_elements("").memory(text.into());
    collect(reader.and_then(|reader| Batches::json_elements(reader, options)))
}

/// The type of the column `a` of these values.
fn inferred(values: &[&str], options: &Options) -> String {
    let text: String = values.iter().map(|value| format!("{{\"a\":{value}}}\n")).collect();
    let outcome = lines(text, options);
    assert!(outcome.error.is_none(), "{values:?}: {:?}", outcome.error);
    assert_eq!(outcome.rows(), values.len());
    outcome.schema.strip_prefix(r#"{"fields":[{"name":"a",""#).unwrap().strip_suffix("}]}").unwrap().replace('"', "")
}

#[test]
fn types_are_inferred() {
    let default = Options::new();
    for (values, expected) in [
        (&["1", "-2"][..], "type:int64"),
        (&["1", "18446744073709551615"], "type:uint64"),
        (&["-1", "18446744073709551615"], "type:decimal128(38, 0)"),
        (&["123456789012345678901234567890"], "type:decimal128(38, 0)"),
        (&["1", "0.1", "1e5", "-0"], "type:float64"),
        // No type has these numbers.
        (&["0.5", "9007199254740993"], "type:json"),
        (&["0.30000000000000003"], "type:json"),
        (&["1e400"], "type:json"),
        (&["1234567890123456789012345678901234567890"], "type:json"),
        (&["\"2024-01-01\"", "\"7\""], "type:string"),
        (&["true", "null", "false"], "type:bool"),
        (&["null"], "type:null"),
        (&["true", "1"], "type:json"),
        (&["\"1\"", "1"], "type:json"),
        (&["{}"], "type:json"),
        (&["{}", "{\"b\": 1}"], "type:struct,fields:[{name:b,type:int64}]"),
        (&["[]"], "type:list,item:{type:null}"),
        (&["[]", "[1, null]", "null"], "type:list,item:{type:int64}"),
        (&["[1, \"a\"]"], "type:list,item:{type:json}"),
        (&["[[1], [2.5]]"], "type:list,item:{type:list,item:{type:float64}}"),
        (
            &["[{\"x\": 1}, {\"y\": true}]"],
            "type:list,item:{type:struct,fields:[{name:x,type:int64},{name:y,type:bool}]}",
        ),
        (&["[1]", "{\"b\": 1}"], "type:json"),
    ] {
        assert_eq!(inferred(values, &default), expected, "{values:?}");
        let backwards: Vec<&str> = values.iter().rev().copied().collect();
        assert_eq!(inferred(&backwards, &default), expected, "{backwards:?}");
    }
    assert_eq!(inferred(&["1.25", "0.5"], &default.clone().decimals(true)), "type:decimal128(38, 2)");
    assert_eq!(inferred(&["1.25", "0.5"], &default.infer(Infer::Off)), "type:json");
}

#[test]
fn values_keep_their_text() {
    let text = r#"{"s": "a\"\u00e9\ud83d\ude00\n", "n": 1e5, "d": 123456789012345678901234567890, "x": [1, "a", { } ]}
 {"n" : 0.1 , "s":"", "x":null}"#;
    let outcome = lines(text, &Options::new());
    let expected = [
        json!({
            "s": "a\"\u{e9}\u{1f600}\n",
            "n": number("100000"),
            "d": number("123456789012345678901234567890"),
            "x": [number("1")],
        }),
        json!({"s": "", "n": number("0.1")}),
    ];
    let mut values = outcome.values();
    // The list has values of several types.
    assert_eq!(values[0]["x"], json!(["1", "\"a\"", "{ }"]));
    values[0]["x"] = json!([number("1")]);
    assert_eq!(values, expected);
}

#[test]
fn members_are_found_by_name() {
    let text = "\u{feff}{\"b\":2,\"a\":1}\r\n\r\n  \n{\"a\":3}\n{\"\\u0062\":4}\n{}\n\u{feff}{\"a\":null,\"b\":7}";
    let outcome = lines(text, &Options::new());
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    let expected = json!([
        {"b": {"number": "2"}, "a": {"number": "1"}}, {"a": {"number": "3"}}, {"b": {"number": "4"}}, {}, {"b": {"number": "7"}}
    ]);
    assert_eq!(Value::from(outcome.values()), expected);
    let schema = Schema::from_json(r#"{"fields": [{"name": "c", "type": "int64"}, {"name": "a", "type": "float64"}]}"#);
    let outcome = lines("{\"b\": [{}], \"a\": 1}\n{\"a\": 2, \"b\": {}}", &Options::new().schema(schema.unwrap()));
    assert_eq!(Value::from(outcome.values()), json!([{"a": {"number": "1"}}, {"a": {"number": "2"}}]));
}

#[test]
fn a_schema_gives_types() {
    let schema = Schema::from_json(
        r#"{"fields": [{"name": "day", "type": "date32"}, {"name": "price", "type": "decimal128(10, 2)"},
            {"name": "id", "type": "int64", "nullable": false}, {"name": "any", "type": "json"}]}"#,
    );
    let options = Options::new().schema(schema.unwrap());
    let outcome = lines(
        "{\"day\": \"1970-01-02\", \"price\": 1.5, \"id\": 1, \"any\": {\"x\" : [1]}}\n{\"price\": \"2.25\", \"id\": \"2\"}\n",
        &options,
    );
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    let batch = &outcome.batches[0];
    assert_eq!(batch["day"].as_primitive::<Date32Type>().value(0), 1);
    assert_eq!(batch["price"].as_primitive::<Decimal128Type>().values()[..], [150, 225]);
    assert_eq!(batch["id"].as_primitive::<Int64Type>().values()[..], [1, 2]);
    assert_eq!(batch["any"].as_string::<i32>().value(0), "{\"x\" : [1]}");
    for (line, kind, path) in [
        ("{\"id\": 1, \"day\": 5}", ErrorKind::ShapeMismatch, "day"),
        ("{\"id\": 1, \"day\": \"\\u0035\"}", ErrorKind::TextInvalid, "day"),
        ("{\"id\": 1, \"price\": 1.234}", ErrorKind::NumberOverflow, "price"),
        ("{\"id\": true}", ErrorKind::ShapeMismatch, "id"),
        ("{\"id\": null}", ErrorKind::ValueMissing, "id"),
        ("{}", ErrorKind::ValueMissing, "id"),
    ] {
        let error = lines(line, &options).error.unwrap_or_else(|| panic!("{line}"));
        assert_eq!((error.kind(), error.path()), (kind, Some(path)), "{line}: {error}");
    }
}

#[test]
fn bad_records_have_a_place() {
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(128), "]".repeat(128));
    for (line, kind, column, path) in [
        ("{\"a\": 1,}", ErrorKind::JsonInvalid, 9, None),
        ("{\"a\": 1", ErrorKind::JsonInvalid, 8, None),
        ("{\"a\": NaN}", ErrorKind::JsonInvalid, 7, None),
        ("{\"a\": 01}", ErrorKind::JsonInvalid, 8, None),
        ("{\"a\": 1} {}", ErrorKind::JsonInvalid, 10, None),
        ("{\"s\": \"a\\x\"}", ErrorKind::JsonInvalid, 10, None),
        ("{\"s\": \"\u{1}\"}", ErrorKind::JsonInvalid, 8, None),
        ("{\"s\": \"a\\ud800\"}", ErrorKind::JsonInvalid, 9, Some("s")),
        ("{\"a\": 1, \"a\": 2}", ErrorKind::JsonInvalid, 10, Some("a")),
        ("[1]", ErrorKind::ShapeMismatch, 1, None),
        (" 5", ErrorKind::ShapeMismatch, 2, None),
        ("{\"new\": 1}", ErrorKind::ShapeMismatch, 2, Some("new")),
        ("{\"a\": \"x\"}", ErrorKind::ShapeMismatch, 7, Some("a")),
        ("{\"a\": 1.5}", ErrorKind::ShapeMismatch, 7, Some("a")),
        ("{\"o\": {\"p\": [{\"q\": 1}, {\"q\": []}]}}", ErrorKind::ShapeMismatch, 30, Some("o.p.1.q")),
        ("{\"o\": {\"p\": [{\"q\": 1}, {\"q\": 1e1}]}}", ErrorKind::ShapeMismatch, 30, Some("o.p.1.q")),
        ("{\"s\": 1}", ErrorKind::ShapeMismatch, 7, Some("s")),
        (&deep, ErrorKind::TooDeep, 133, None),
    ] {
        let good = "{\"a\": 1, \"s\": \"\", \"x\": [[1], 2], \"o\": {\"p\": [{\"q\": 1}]}}\n\n";
        let text = format!("{good}{line}\n{{\"a\": 2}}");
        let stop = Options::new().infer(Infer::First(1));
        let outcome = lines(text.clone(), &stop);
        let error = outcome.error.as_ref().unwrap_or_else(|| panic!("{line}"));
        assert_eq!((error.kind(), error.path()), (kind, path), "{line}: {error}");
        assert_eq!((error.line(), error.column()), (Some(3), Some(column)), "{line}: {error}");
        assert_eq!(error.offset(), Some(good.len() as u64 + column - 1), "{line}: {error}");
        assert_eq!(outcome.rows(), 1);
        // Left out, it is a reject, and the next record is a row.
        let outcome = lines(text, &stop.clone().on_bad(OnBad::Skip));
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert_eq!((outcome.rows(), outcome.rejects.len()), (2, 1), "{line}");
        assert_eq!(outcome.rejects[0].raw, line.as_bytes());
        assert_eq!(outcome.rejects[0].error.kind(), kind);
        // The same in a document, whose grammar the reader checks.
        if kind == ErrorKind::ShapeMismatch {
            let outcome = elements(
                format!("[{{\"a\": 1, \"s\": \"\", \"o\": {{\"p\": [{{\"q\":\n1}}]}}}},\n{line},{{\"a\": 2}}]"),
                &stop,
            );
            assert_eq!((outcome.kind(), outcome.rows()), (Some(kind), 1), "{line}");
            let error = outcome.error.unwrap();
            assert_eq!((error.record(), error.offset(), error.path()), (Some(1), None, path), "{line}: {error}");
        }
    }
    let outcome = lines(&b"{\"s\": \"\"}\n{\"s\": \"\xff\"}\n"[..], &Options::new());
    let error = outcome.error.unwrap();
    assert_eq!((error.kind(), error.line(), error.column()), (ErrorKind::JsonInvalid, Some(2), Some(8)));
}

#[test]
fn messages_say_what_to_do() {
    let message = |line: &str| {
        let text = format!("{{\"a\": 1, \"o\": {{\"b\": [1]}}}}\n{line}");
        lines(text, &Options::new().infer(Infer::First(1))).error.unwrap().to_string()
    };
    for (line, parts) in [
        ("{\"a\": {}}", &["an object", "int64, as in the records from which the type was inferred", "line 2"][..]),
        ("{\"o\": {\"c\": 1}}", &["the member \"c\"", "infer from more, or give a schema", "o.c"]),
        ("{\"a\": 1, \"a\": 1}", &["the name \"a\" twice", "the first or the last"]),
        ("{\"o\": {\"b\": [2, null, \"\\ud83d\"]}}", &["\"\\\\ud83d\"", "int64"]),
        ("7", &["found 7", "an object"]),
    ] {
        let message = message(line);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn options_that_do_not_fit() {
    let outcome = lines("{}", &Options::new().nulls(["NA"]));
    assert_eq!(outcome.kind(), Some(ErrorKind::InvalidOption));
}

#[test]
fn duplicates_by_option() {
    let text = "{\"a\": 1, \"a\": 2, \"b\": {\"c\": [1, 2], \"c\": [3]}}\n";
    for (duplicates, a, c) in [(Duplicates::First, "1", &["1", "2"][..]), (Duplicates::Last, "2", &["3"])] {
        let outcome = lines(text, &Options::new().duplicates(duplicates));
        let c: Vec<Value> = c.iter().map(|text| number(text)).collect();
        assert_eq!(outcome.values(), [json!({"a": number(a), "b": {"c": c}})]);
    }
}

#[test]
fn too_many_columns() {
    let members: Vec<String> = (0..10_001).map(|i| format!("\"k{i}\":1")).collect();
    let fits = format!("{{{}}}", members[..10_000].join(","));
    let outcome = lines(fits, &Options::new());
    assert!(outcome.error.is_none() && outcome.batches[0].num_columns() == 10_000);
    let outcome = lines(format!("{{\"a\":{{{}}}}}", members.join(",")), &Options::new());
    assert_eq!(outcome.kind(), Some(ErrorKind::MemoryLimit));
}

#[test]
fn rows_of_many_columns_are_in_small_batches() {
    let members: Vec<String> = (0..5_000).map(|i| format!("\"k{i}\":1")).collect();
    let text = format!("{{\"a\":{{{}}}}}\n{}", members.join(","), "{}\n".repeat(5_000));
    for options in [Options::new(), Options::new().infer(Infer::First(1))] {
        let outcome = lines(text.clone(), &options);
        assert_eq!(outcome.rows(), 5_001);
        assert!(outcome.batches.iter().all(|batch| batch.num_rows() <= 1_000));
    }
}

#[test]
fn a_document_that_ends_early_is_an_error() {
    for text in ["[{\"a\": 1}, {\"a\"", "[{\"a\": 1}, {\"a\": 2} x", "[{\"a\": 1},]", "[{\"a\": 1}] 7"] {
        for on_bad in [OnBad::Stop, OnBad::Skip] {
            let outcome = elements(text, &Options::new().on_bad(on_bad));
            assert!(outcome.error.is_some(), "{text}");
            assert!(outcome.rows() >= 1, "{text}");
        }
    }
    assert_eq!(elements("{\"a\": 1}", &Options::new()).kind(), Some(ErrorKind::ShapeMismatch));
}

#[test]
fn empty_objects_are_rows() {
    let outcome = lines("{}\n{ }\n", &Options::new());
    assert_eq!((outcome.schema.as_str(), outcome.rows()), (r#"{"fields":[]}"#, 2));
    assert_eq!(lines("", &Options::new()).rows(), 0);
}

#[test]
fn a_member_that_is_not_read_does_not_decide_the_type() {
    let text = "{\"a\": 1, \"a\": \"x\", \"b\": {\"c\": [1], \"c\": true}}\n{\"b\": {\"c\": null}, \"a\": null}\n";
    let first = r#"{"fields":[{"name":"a","type":"int64"},{"name":"b","type":"struct","fields":[{"name":"c","type":"list","item":{"type":"int64"}}]}]}"#;
    let last = r#"{"fields":[{"name":"a","type":"string"},{"name":"b","type":"struct","fields":[{"name":"c","type":"bool"}]}]}"#;
    for (duplicates, schema) in [(Duplicates::First, first), (Duplicates::Last, last)] {
        let options = Options::new().duplicates(duplicates);
        let outcome = lines(text, &options);
        assert_eq!((outcome.schema.as_str(), outcome.rows()), (schema, 2));
        assert_eq!(Batches::infer([Reader::memory(text)], &Records::JsonLines, &options).unwrap().to_json(), schema);
    }
}

#[test]
fn only_the_last_member_of_a_name_must_fit() {
    let options = Options::new().duplicates(Duplicates::Last).on_bad(OnBad::Skip);
    let text = concat!(
        "{\"a\": \"x\", \"b\": {\"c\": 1}, \"a\": 1, \"b\": {\"d\": true}}\n",
        "{\"a\": [], \"a\": 2, \"a\": {}, \"a\": 3}\n",
        "{\"a\": 4, \"a\": \"y\", \"b\": null}\n",
        "{\"a\": \"z\", \"b\": 5}\n",
        "{\"a\": \"broken, \"a\": 6}\n",
        "{\"b\": 7, \"b\": null, \"a\": 8}\n",
    );
    let outcome = lines(text, &options.infer(Infer::First(2)));
    let schema = r#"{"fields":[{"name":"a","type":"int64"},{"name":"b","type":"struct","fields":[{"name":"d","type":"bool"}]}]}"#;
    assert_eq!(outcome.schema, schema);
    let expected = [json!({"a": number("1"), "b": {"d": true}}), json!({"a": number("3")}), json!({"a": number("8")})];
    assert_eq!(outcome.values(), expected);
    let rejects: Vec<_> = outcome.rejects.iter().map(|reject| (reject.error.line(), reject.error.path())).collect();
    assert_eq!(rejects[..2], [(Some(3), Some("a")), (Some(4), Some("a"))]);
    assert_eq!((rejects.len(), rejects[2].0), (3, Some(5)));
}

#[test]
fn types_from_all_records() {
    let text = "{\"a\": 1}\n{\"a\": 2.5, \"b\": []}\n";
    let schema = Batches::infer([Reader::memory(text)], &Records::JsonLines, &Options::new()).unwrap();
    let outcome = lines(text, &Options::new().schema(schema.clone()));
    assert_eq!(outcome.rows(), 2);
    let document = format!("[{}]", text.trim().replace('\n', ","));
    let reader = Reader::builder().json_elements("").memory(document.clone().into_bytes());
    assert_eq!(Batches::infer([reader], &Records::JsonElements, &Options::new()).unwrap(), schema);
    // Of several readers, as of one.
    let readers = || text.lines().map(Reader::memory);
    assert_eq!(Batches::infer(readers(), &Records::JsonLines, &Options::new()).unwrap(), schema);
    let bad = readers().chain([Reader::memory("{")]);
    assert_eq!(Batches::infer(bad, &Records::JsonLines, &Options::new()).unwrap(), schema);
    // A schema that was inferred from other records.
    assert_eq!(lines("{\"c\": 1}", &Options::new().schema(schema)).kind(), Some(ErrorKind::ShapeMismatch));
}

#[test]
fn the_grammar_is_that_of_the_framer() {
    let json = Schema::from_json(r#"{"fields": [{"name": "a", "type": "json"}]}"#).unwrap();
    let other = Schema::from_json(r#"{"fields": [{"name": "b", "type": "int64"}]}"#).unwrap();
    let (mut good, mut bad) = (0, 0);
    let vectors = include_str!("../../../vectors/json.tsv").lines();
    for line in vectors.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let input = escapes::unescape(line.split('\t').nth(2).unwrap());
        for value in input.split(|&byte| byte == b'\n') {
            let record = [b"{\"a\":", value, b"}"].concat();
            let mut reader = Reader::memory(record.clone()).unwrap();
            let expected =
                reader.next_frame(&mut JsonLines::checked()).err().map(|error| (error.kind(), error.column()));
            for schema in [&json, &other] {
                let outcome = lines(record.clone(), &Options::new().schema(schema.clone()));
                let found = outcome.error.as_ref().map(|error| (error.kind(), error.column()));
                assert_eq!(found, expected, "{}", record.escape_ascii());
                // Values that no column takes are read by inference, too.
                let inferred = lines(record.clone(), &Options::new());
                assert!(expected.is_none() || inferred.error.is_some(), "{}", record.escape_ascii());
            }
            if expected.is_none() { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 50 && bad > 50, "{good} {bad}");
}

/// Arbitrary values, with many of the same names and types.
fn values() -> impl Strategy<Value = Value> {
    let numbers = prop_oneof![
        (-3i64..300).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|number| Value::from(f64::from(number) / 8.0)),
    ];
    let plain = prop_oneof![
        2 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        4 => numbers,
        3 => ".{0,12}".prop_map(Value::from),
        1 => "[\"\\\\\u{0}-\u{1f}\u{e9}\u{1f600}]{0,6}".prop_map(Value::from),
    ];
    plain.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            objects(inner).prop_map(Value::Object),
        ]
    })
}

fn objects(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![6 => "[abc]", 1 => "[\"\\\\\u{e9}\n]{0,2}"];
    prop::collection::vec((name, value), 0..5).prop_map(|members| members.into_iter().collect())
}

/// The value as its column shows it. This is a second implementation of the rules.
fn expected(value: &Value, field: &Value) -> Value {
    match (field["type"].as_str().unwrap(), value) {
        (_, Value::Null) => Value::Null,
        ("json", value) => Value::from(value.to_string()),
        ("struct", Value::Object(members)) => {
            let fields = field["fields"].as_array().unwrap();
            let known = |name: &str| fields.iter().find(|field| field["name"] == name).unwrap();
            let shown = members.iter().map(|(name, value)| (name.clone(), expected(value, known(name))));
            Value::Object(shown.filter(|(_, value)| !value.is_null()).collect())
        }
        ("list", Value::Array(items)) => items.iter().map(|item| expected(item, &field["item"])).collect(),
        ("float64", Value::Number(found)) => number(&found.as_f64().unwrap().to_string()),
        ("int64" | "uint64" | "decimal128(38, 0)", Value::Number(found)) => number(&found.to_string()),
        ("string", Value::String(_)) | ("bool", Value::Bool(_)) => value.clone(),
        (other, value) => panic!("{other} for {value}"),
    }
}

fn written(records: &[Map<String, Value>]) -> String {
    records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect()
}

proptest! {
    #[test]
    fn values_are_those_of_serde_json(records in prop::collection::vec(objects(values()), 1..12), threads in 1usize..4) {
        let text = written(&records);
        let outcome = lines(text.clone(), &Options::new().threads(threads));
        prop_assert!(outcome.error.is_none(), "{text}: {:?}", outcome.error);
        let schema: Value = serde_json::from_str(&outcome.schema).unwrap();
        let top = json!({"type": "struct", "fields": schema["fields"]});
        let values = outcome.values();
        prop_assert_eq!(values.len(), records.len());
        for (value, record) in values.iter().zip(&records) {
            prop_assert_eq!(value, &expected(&Value::Object(record.clone()), &top), "{} {}", text, outcome.schema);
        }
        // A document with the same records, with line ends in them.
        let pretty: Vec<String> = records.iter().map(|record| serde_json::to_string_pretty(record).unwrap()).collect();
        let document = elements(format!("[{}]", pretty.join(" ,\n")), &Options::new());
        prop_assert_eq!(&document.schema, &outcome.schema);
        prop_assert_eq!(document.rows(), records.len());
        // The order of records changes only the order of columns.
        let mut backwards = records.clone();
        backwards.reverse();
        let backwards = lines(written(&backwards), &Options::new());
        prop_assert_eq!(sorted(&backwards.schema), sorted(&outcome.schema));
    }
}

/// A schema with its fields in the order of their names.
fn sorted(schema: &str) -> Value {
    fn sort(value: &mut Value) {
        match value {
            Value::Array(items) => {
                items.iter_mut().for_each(sort);
                items.sort_by_key(|item| item["name"].as_str().map(str::to_string));
            }
            Value::Object(members) => members.values_mut().for_each(sort),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(schema).unwrap();
    sort(&mut value);
    value
}

/// The maximum length of a record after mutations, which no text exceeds.
const RECORD: usize = 1 << 10;

/// The most memory for reading such a text: a record, and 64 KiB for the columns and the text itself.
const MOST: usize = RECORD + (64 << 10);

fn limited(text: Vec<u8>, options: &Options) -> Outcome {
    let reader = Reader::builder().record_limit(RECORD).memory(text).unwrap();
    collect(Batches::json_lines(reader, options))
}

#[test]
fn after_mutations_rows_and_rejects_are_the_records() {
    let original = concat!(
        "{\"a\":1,\"b\":\"x\\u00e9y\",\"c\":[1,2.5,null],\"d\":{\"e\":true,\"f\":[{\"g\":\"2024-01-01\"}]},\"h\":null}\n",
        "{\"a\":-20,\"b\":\"\",\"c\":[],\"d\":{\"e\":false,\"f\":[]},\"h\":null}\n",
        "{ \"b\" : \"\\ud83d\\ude00\" , \"a\" : 18446744073709551615 , \"c\" : null, \"d\":{} }\n",
        "{\"a\":4}\n{}\n",
    );
    let mut random = Rng::with_seed(1);
    let alphabet = b"\"\\{}[],:0123456789.eE+-truefalsnu \n\r\t\xff\xc3\x00\xef\xbb\xbf";
    let mut rejected = 0;
    for round in 0..8_000 {
        let mut text = original.as_bytes().to_vec();
        for _ in 0..=random.usize(..3) {
            let at = random.usize(..text.len());
            let byte = alphabet[random.usize(..alphabet.len())];
            match random.usize(..4) {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                2 => drop(text.remove(at)),
                _ => {
                    let end = (at + random.usize(..20)).min(text.len());
                    let part = text[at..end].to_vec();
                    text.splice(at..at, part);
                }
            }
        }
        let records = text.split(|&byte| byte == b'\n').filter(|line| {
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            !line.iter().all(|byte| b" \t\r".contains(byte))
        });
        let records: Vec<&[u8]> = records.collect();
        let options = Options::new().on_bad(OnBad::Skip).infer(Infer::First(1 + round % 6));
        let (one, most) = peak::peak(|| limited(text.clone(), &options));
        let shown = text.escape_ascii().to_string();
        assert!((text.len()..=MOST).contains(&most), "{shown}: {most} bytes of memory");
        assert!(one.error.is_none(), "{shown}: {:?}", one.error);
        assert_eq!(one.rows() + one.rejects.len(), records.len(), "{shown}");
        rejected += one.rejects.len();
        // Only objects are rows, and only serde_json's numbers have a limit.
        for reject in &one.rejects {
            let parsed = serde_json::from_slice::<Map<String, Value>>(&reject.raw);
            if reject.error.kind() == ErrorKind::JsonInvalid && parsed.is_ok() {
                // What this crate refuses beyond the grammar.
                let found = reject.error.found().unwrap();
                assert!(found.contains("twice") || found.contains("surrogate pair"), "{shown}: {}", reject.error);
            }
        }
        let stopped = lines(text.clone(), &options.clone().on_bad(OnBad::Stop));
        assert_eq!(stopped.error.is_some(), !one.rejects.is_empty(), "{shown}");
        if round % 10 == 0 {
            let three = lines(text, &options.threads(3));
            assert_eq!((&three.schema, &three.batches), (&one.schema, &one.batches), "{shown}");
            assert_eq!(three.rejects.len(), one.rejects.len());
        }
    }
    assert!(rejected > 1_000, "{rejected}");
}

#[test]
fn threads_do_not_change_the_batches() {
    let line = |i: usize| format!("{{\"id\":{i},\"name\":\"n{}\",\"items\":[{{\"q\":{}.5}}]}}\n", i % 7, i % 100);
    let mut text: String = (0..60_000).map(line).collect();
    let one = lines(text.clone(), &Options::new());
    assert!(one.batches.len() > 3 && one.rows() == 60_000);
    let three = lines(text.clone(), &Options::new().threads(3));
    assert_eq!(one.batches, three.batches);
    text.push_str("{\"id\":\"x\"}\n{\"id\":1}\n");
    for threads in [1, 3] {
        let outcome = lines(text.clone(), &Options::new().threads(threads));
        let error = outcome.error.as_ref().unwrap();
        assert_eq!((outcome.rows(), error.line(), error.column()), (60_000, Some(60_001), Some(7)));
        let outcome = lines(text.clone(), &Options::new().threads(threads).on_bad(OnBad::Skip));
        assert_eq!((outcome.rows(), outcome.rejects.len()), (60_001, 1));
    }
}
