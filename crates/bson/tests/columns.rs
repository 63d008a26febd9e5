//! Compares columns with the most obvious implementation: looking up each value of each document. Also runs the shared
//! vectors of schemas.

use data_encoding::HEXLOWER;
use millstream_bson::columns::*;
use millstream_bson::{Array, Document, Documents, ElementType, Rules, Strictness, ValueRef};
use millstream_core::{ErrorKind, InMemory};
use proptest::prelude::*;

/// A file written by mongodump; see the README next to it.
const ORDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mongodump/orders.bson");

const SCHEMAS: &str = include_str!("../../../vectors/bson_columns.tsv");
const ROWS: &str = include_str!("../../../vectors/bson_rows.tsv");

#[test]
fn schemas_of_the_shared_vectors() {
    let mut cases = 0;
    for line in SCHEMAS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, bytes, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes = HEXLOWER.decode(bytes.as_bytes()).unwrap();
        let mut inference = Inference::new();
        let mut at = 0;
        let mut wrong = None;
        while at < bytes.len() && wrong.is_none() {
            let observed = Document::first(&bytes[at..], Rules::new())
                .and_then(|(document, _)| inference.observe(&document).map(|()| document.len()));
            match observed {
                Ok(len) => at += len,
                Err(error) => wrong = Some(format!("error {} {}", error.kind(), at as u64 + error.offset().unwrap())),
            }
        }
        let found = wrong.unwrap_or_else(|| inference.schema(OnMixed::Json).unwrap().to_string());
        assert_eq!(found, expected, "{name}");
        cases += 1;
    }
    assert!(cases > 20);
}

/// A value to write.
#[derive(Clone, Debug)]
enum Made {
    Leaf(ElementType, Vec<u8>),
    Document(Vec<(String, Made)>),
    Array(Vec<Made>),
}

fn payload(value: &Made) -> (ElementType, Vec<u8>) {
    let document = |members: &mut dyn Iterator<Item = (String, &Made)>| {
        let mut bytes = vec![0; 4];
        for (key, value) in members {
            let (kind, payload) = payload(value);
            bytes.push(kind as u8);
            bytes.extend_from_slice(key.as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(&payload);
        }
        bytes.push(0);
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes
    };
    match value {
        Made::Leaf(kind, payload) => (*kind, payload.clone()),
        Made::Document(members) => {
            (ElementType::Document, document(&mut members.iter().map(|(key, value)| (key.clone(), value))))
        }
        // The keys are not the positions, because they are never read.
        Made::Array(items) => {
            (ElementType::Array, document(&mut items.iter().zip(1..).map(|(value, key)| (i32::to_string(&key), value))))
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32 + 1).to_le_bytes()[..], text.as_bytes(), b"\0"].concat()
}

fn leaf() -> impl Strategy<Value = Made> {
    use ElementType as T;
    prop_oneof![
        any::<bool>().prop_map(|v| (T::Bool, vec![u8::from(v)])),
        (-9..9_i32).prop_map(|v| (T::Int32, v.to_le_bytes().to_vec())),
        prop_oneof![-9..9_i64, any::<i64>(), Just((1 << 53) + 1)].prop_map(|v| (T::Int64, v.to_le_bytes().to_vec())),
        prop_oneof![Just(2.0), Just(-0.0), Just(0.5), Just(f64::NAN), Just(1e300)]
            .prop_map(|v: f64| (T::Double, v.to_le_bytes().to_vec())),
        "[a-zü]{0,3}".prop_map(|v| (T::String, text(&v))),
        Just((T::Symbol, text("symbol"))),
        Just((T::Code, text("code"))),
        prop::collection::vec(any::<u8>(), 0..4)
            .prop_map(|v| (T::Binary, [&(v.len() as u32).to_le_bytes()[..], &[0], &v].concat())),
        any::<[u8; 12]>().prop_map(|v| (T::ObjectId, v.to_vec())),
        any::<i64>().prop_map(|v| (T::DateTime, v.to_le_bytes().to_vec())),
        any::<u64>().prop_map(|v| (T::Timestamp, v.to_le_bytes().to_vec())),
        any::<[u8; 16]>().prop_map(|v| (T::Decimal128, v.to_vec())),
        Just((T::Null, vec![])),
        Just((T::Undefined, vec![])),
        Just((T::MinKey, vec![])),
        Just((T::Regex, b"a\0i\0".to_vec())),
    ]
    .prop_map(|(kind, payload)| Made::Leaf(kind, payload))
}

fn members(value: impl Strategy<Value = Made>) -> impl Strategy<Value = Vec<(String, Made)>> {
    // There are only few keys, so that they occur in any order and repeatedly.
    prop::collection::vec(("[abc]", value), 0..5)
}

fn value() -> impl Strategy<Value = Made> {
    leaf().prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            members(inner.clone()).prop_map(Made::Document),
            prop::collection::vec(inner, 0..4).prop_map(Made::Array)
        ]
    })
}

fn data_type() -> impl Strategy<Value = DataType> {
    use DataType as D;
    prop::sample::select(vec![
        D::Null,
        D::Bool,
        D::Int32,
        D::Int64,
        D::Double,
        D::String,
        D::Binary,
        D::ObjectId,
        D::DateTime,
        D::Timestamp,
        D::Decimal128,
    ])
    .prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|item| D::List(Box::new(item))),
            (inner.clone(), inner).prop_map(|(a, b)| D::Struct(vec![Field::of_key("a", a), Field::of_key("b", b)])),
        ]
    })
}

fn schema() -> impl Strategy<Value = Schema> {
    prop_oneof![
        (data_type(), data_type(), data_type()).prop_map(|(a, b, c)| {
            Schema::new([Field::of_key("a", a), Field::of_key("b", b), Field::of_key("c", c)]).unwrap()
        }),
        (data_type(), data_type(), data_type(), data_type()).prop_map(|(aa, ab, b, c)| {
            let paths = [("c", c), ("a.b", ab), ("b.1", b), ("a.a.c", aa)];
            Schema::new(paths.map(|(path, data_type)| Field::new(path, data_type).unwrap().named(format!("<{path}>"))))
                .unwrap()
        }),
    ]
}

/// The content of one row of a column.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    None,
    Bool(bool),
    Number(i128),
    Double(u64),
    Bytes(Vec<u8>),
    Many(Vec<Cell>),
}

/// The cell of this type for a value. A value that does not fit gives an empty cell and is counted.
fn naive(value: Option<ValueRef<'_>>, data_type: &DataType, misfits: &mut u64) -> Cell {
    use DataType as D;
    use ValueRef as V;
    let integer = |value: &V<'_>| match *value {
        V::Int32(v) => Some(i128::from(v)),
        V::Int64(v) => Some(i128::from(v)),
        V::Double(v) if v.fract() == 0.0 && v.abs() < 1e18 && v.to_bits() != (-0.0_f64).to_bits() => Some(v as i128),
        _ => None,
    };
    let Some(value) = value else { return Cell::None };
    if matches!(value, V::Null | V::Undefined) {
        return Cell::None;
    }
    let cell = match (data_type, &value) {
        (D::Bool, V::Bool(v)) => Some(Cell::Bool(*v)),
        (D::Int32, v) => integer(v).filter(|v| i32::try_from(*v).is_ok()).map(Cell::Number),
        (D::Int64, v) => integer(v).map(Cell::Number),
        (D::Double, V::Double(v)) => Some(Cell::Double(v.to_bits())),
        (D::Double, v) => integer(v).filter(|&v| (v as f64) as i128 == v).map(|v| Cell::Double((v as f64).to_bits())),
        (D::String, V::String(v) | V::Symbol(v) | V::Code(v)) => Some(Cell::Bytes(v.as_bytes().to_vec())),
        (D::Binary, V::Binary { bytes, .. }) => Some(Cell::Bytes(bytes.to_vec())),
        (D::ObjectId, V::ObjectId(v)) => Some(Cell::Bytes(v.0.to_vec())),
        (D::DateTime, V::DateTime(v)) => Some(Cell::Number(v.0.into())),
        (D::Timestamp, V::Timestamp(v)) => Some(Cell::Number(v.to_bits().into())),
        (D::Decimal128, V::Decimal128(v)) => Some(Cell::Bytes(v.0.to_vec())),
        (D::List(item), V::Array(array)) => {
            let cells = array.iter().map(|element| naive(Some(element.unwrap().value().unwrap()), item, misfits));
            Some(Cell::Many(cells.collect()))
        }
        (D::Struct(fields), V::Document(document)) => {
            let cells =
                fields.iter().map(|field| naive(document.get(field.name()).unwrap(), field.data_type(), misfits));
            Some(Cell::Many(cells.collect()))
        }
        _ => None,
    };
    *misfits += u64::from(cell.is_none());
    cell.unwrap_or(Cell::None)
}

/// The same cell, read from a column.
fn cell(column: &Column, row: usize) -> Cell {
    if !column.is_valid(row) {
        return Cell::None;
    }
    match column.values() {
        Values::Bool(bits) => Cell::Bool(bits.get(row)),
        Values::Int32(values) => Cell::Number(values[row].into()),
        Values::Int64(values) | Values::DateTime(values) => Cell::Number(values[row].into()),
        Values::Timestamp(values) => Cell::Number(values[row].into()),
        Values::Double(values) => Cell::Double(values[row].to_bits()),
        Values::ObjectId(bytes) => Cell::Bytes(bytes[row * 12..][..12].to_vec()),
        Values::Decimal128(bytes) => Cell::Bytes(bytes[row * 16..][..16].to_vec()),
        Values::String(pieces) | Values::Binary(pieces) | Values::Json(pieces) => {
            Cell::Bytes(pieces.get(row).unwrap().to_vec())
        }
        Values::List(lists) => {
            let range = lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize;
            Cell::Many(range.map(|row| cell(lists.items(), row)).collect())
        }
        Values::Struct(members) => Cell::Many(members.columns().iter().map(|column| cell(column, row)).collect()),
        other => panic!("{other:?}"),
    }
}

fn row(columns: &Columns, row: usize) -> Vec<Cell> {
    columns.iter().map(|column| cell(column, row)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { ProptestConfig::default().cases.max(2000) },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn columns_are_what_each_look_up_says(
        schema in schema(),
        documents in prop::collection::vec(members(value()), 0..6),
    ) {
        let counting = Options::new().on_unknown(OnUnknown::Count);
        let mut lenient = Columns::new(&schema, counting.clone().on_mismatch(OnMismatch::Null)).unwrap();
        let mut strict = Columns::new(&schema, counting).unwrap();
        let (mut expected, mut fitting, mut misfits) = (Vec::new(), Vec::new(), 0);
        for members in &documents {
            let (_, bytes) = payload(&Made::Document(members.clone()));
            let document = Document::new(&bytes).unwrap();
            let before = misfits;
            let cells: Vec<Cell> = schema.fields().iter().map(|field| {
                naive(document.get_path(field.keys()).unwrap(), field.data_type(), &mut misfits)
            }).collect();
            lenient.append(&document).unwrap();
            match strict.append(&document) {
                Ok(()) => {
                    prop_assert_eq!(before, misfits);
                    fitting.push(cells.clone());
                }
                Err(error) => {
                    prop_assert!(before < misfits, "{}", error);
                    prop_assert!(matches!(error.kind(), ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange));
                    prop_assert!(error.path().is_some(), "{error}");
                    prop_assert!(error.offset().is_some_and(|at| at < bytes.len() as u64), "{error}");
                }
            }
            expected.push(cells);
        }
        prop_assert_eq!(lenient.mismatched(), misfits);
        for (columns, expected) in [(&lenient, expected), (&strict, fitting)] {
            prop_assert_eq!(columns.len(), expected.len());
            for (i, expected) in expected.into_iter().enumerate() {
                prop_assert_eq!(row(columns, i), expected);
            }
        }
        #[cfg(feature = "arrow")]
        arrow::check(lenient);
    }

    #[test]
    fn an_inferred_schema_fits_what_it_was_inferred_from(documents in prop::collection::vec(members(leaf()), 0..6)) {
        let mut inference = Inference::new();
        let all: Vec<Vec<u8>> = documents.into_iter().map(|members| payload(&Made::Document(members)).1).collect();
        for bytes in &all {
            inference.observe(&Document::new(bytes).unwrap()).unwrap();
        }
        if let Ok(schema) = inference.schema(OnMixed::Error) {
            let mut columns = Columns::new(&schema, Options::new().on_unknown(OnUnknown::Error)).unwrap();
            let mut rows = 0;
            for bytes in &all {
                let strict = Rules::new().strictness(Strictness::Strict);
                let repeats = Document::with_rules(bytes, strict).unwrap().check().is_err();
                let appended = columns.append(&Document::new(bytes).unwrap());
                prop_assert_eq!(appended.is_err(), repeats);
                rows += usize::from(!repeats);
            }
            prop_assert_eq!((columns.len(), columns.unknown()), (rows, 0));
        }
    }
}

fn one(members: &[(&str, Made)]) -> Vec<u8> {
    payload(&Made::Document(members.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())).1
}

fn int(value: i32) -> Made {
    Made::Leaf(ElementType::Int32, value.to_le_bytes().to_vec())
}

fn string(value: &str) -> Made {
    Made::Leaf(ElementType::String, text(value))
}

#[test]
fn what_does_not_fit_says_where() {
    let schema =
        Schema::new([Field::of_key("s", DataType::Struct(vec![Field::of_key("n", DataType::Int32)]))]).unwrap();
    let mut columns = Columns::new(&schema, Options::new()).unwrap();
    let bytes = one(&[("s", Made::Document(vec![("n".to_string(), string("x"))]))]);
    let error = columns.append(&Document::new(&bytes).unwrap().at_offset(1000)).unwrap_err();
    assert_eq!((error.kind(), error.path(), error.offset()), (ErrorKind::ShapeMismatch, Some("s.n"), Some(1014)));
    assert_eq!((error.found(), error.expected()), (Some("a value of type string"), Some("a 32-bit integer")));
    assert!(columns.is_empty());
}

#[test]
fn a_value_that_must_be_there() {
    let required =
        [Field::new("a", DataType::Int32).unwrap().required(), Field::new("s.n", DataType::Int32).unwrap().required()];
    let s = |value| Made::Document(vec![("n".to_string(), value)]);
    let null = Made::Leaf(ElementType::Null, Vec::new());
    let mut columns = Columns::new(&Schema::new(required).unwrap(), Options::new()).unwrap();
    for bad in [
        one(&[("a", int(1))]),
        one(&[("s", s(int(1)))]),
        one(&[("a", null.clone()), ("s", s(int(1)))]),
        one(&[("a", int(1)), ("s", s(null.clone()))]),
        one(&[("a", int(1)), ("s", int(1))]),
        one(&[("a", int(1)), ("s", null)]),
    ] {
        assert_eq!(columns.append(&Document::new(&bad).unwrap()).unwrap_err().kind(), ErrorKind::KeyMissing);
    }
    columns.append(&Document::new(&one(&[("a", int(1)), ("s", s(int(2)))])).unwrap()).unwrap();
    assert_eq!(row(&columns, 0), [Cell::Number(1), Cell::Number(2)]);
}

#[test]
fn members_that_no_column_reads_are_counted_or_refused() {
    let schema = Schema::new([Field::new("a", DataType::Int32).unwrap()]).unwrap();
    let bytes = one(&[("x", int(1)), ("a", int(2)), ("y", int(3))]);
    let document = Document::new(&bytes).unwrap();
    for unknown in [OnUnknown::Ignore, OnUnknown::Count] {
        let mut columns = Columns::new(&schema, Options::new().on_unknown(unknown)).unwrap();
        columns.append(&document).unwrap();
        assert_eq!((columns.unknown(), row(&columns, 0)), (2, vec![Cell::Number(2)]));
    }
    let mut columns = Columns::new(&schema, Options::new().on_unknown(OnUnknown::Error)).unwrap();
    let error = columns.append(&document).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("x")));
    assert_eq!(columns.unknown(), 0, "the row is not there");

    // The counts of a row that fails are also discarded.
    let schema = Schema::new(["a", "b"].map(|key| Field::new(key, DataType::Int32).unwrap().required())).unwrap();
    let mut columns = Columns::new(&schema, Options::new().on_mismatch(OnMismatch::Null)).unwrap();
    let bytes = one(&[("x", int(1)), ("a", int(2))]);
    assert_eq!(columns.append(&Document::new(&bytes).unwrap()).unwrap_err().kind(), ErrorKind::KeyMissing);
    assert_eq!((columns.unknown(), columns.mismatched(), columns.byte_len()), (0, 0, 0));
}

/// The shared table of rows.
#[test]
fn rows_of_the_shared_vectors() {
    let mut cases = 0;
    for line in ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, bytes, schema, options, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let bytes = HEXLOWER.decode(bytes.as_bytes()).unwrap();
        let mut documents = Documents::new(InMemory::new(bytes));
        let (mut infer, mut limits) = (10_000, Options::new());
        let chosen = (schema != "-").then(|| {
            Schema::new(schema.split(' ').map(|field| {
                let (path, kind) = field.rsplit_once(':').unwrap();
                Field::new(path, kind_of(kind)).unwrap()
            }))
            .unwrap()
        });
        if chosen.is_none() {
            limits = limits.on_unknown(OnUnknown::Error);
        }
        for option in options.split(' ').filter(|&option| option != "-") {
            match option {
                "unknown=error" => limits = limits.on_unknown(OnUnknown::Error),
                "unknown=count" => limits = limits.on_unknown(OnUnknown::Count),
                "unknown=ignore" => limits = limits.on_unknown(OnUnknown::Ignore),
                "mismatch=null" => limits = limits.on_mismatch(OnMismatch::Null),
                "absent=null" => limits = limits.on_absent(OnAbsent::Null),
                _ => infer = option.strip_prefix("infer=").unwrap().parse().unwrap(),
            }
        }
        let sample = match &chosen {
            Some(_) => Sample::default(),
            None => Sample::take(&mut documents, infer, usize::MAX).unwrap(),
        };
        let schema = chosen.unwrap_or_else(|| sample.infer(OnMixed::Json).unwrap());
        let mut batches = Batches::new(sample, documents, &schema, limits).unwrap();
        let mut rows = 0;
        let found = loop {
            match batches.next_batch() {
                Ok(Some(columns)) => rows += columns.len(),
                Ok(None) => {
                    let (columns, lost) = (batches.columns(), batches.columns().lost_types());
                    let lost = lost.code + lost.symbol + lost.subtype + lost.undefined;
                    break format!("{rows} {} {} {lost}", columns.unknown(), columns.mismatched());
                }
                Err(error) => {
                    let record = error.record().map_or("-".to_string(), |record| record.to_string());
                    break format!("error {} {record} {}", error.kind(), error.path().unwrap_or("-"));
                }
            }
        };
        assert_eq!(found, expected, "{name}");
        cases += 1;
    }
    assert!(cases > 15);
}

fn kind_of(name: &str) -> DataType {
    match name {
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "double" => DataType::Double,
        "string" => DataType::String,
        "binData" => DataType::Binary,
        "json" => DataType::Json,
        other => panic!("{other}"),
    }
}

#[test]
fn a_key_that_repeats_is_an_error_or_counted() {
    let schema = Schema::new([Field::new("a", DataType::Int32).unwrap()]).unwrap();
    let bytes = one(&[("a", int(1)), ("x", int(3)), ("a", int(2))]);
    let document = Document::new(&bytes).unwrap();
    for unknown in [OnUnknown::Ignore, OnUnknown::Error] {
        let bytes = one(&[("a", int(1)), ("a", int(2))]);
        let mut columns = Columns::new(&schema, Options::new().on_unknown(unknown)).unwrap();
        let error = columns.append(&Document::new(&bytes).unwrap()).unwrap_err();
        assert_eq!((error.kind(), error.path(), error.offset()), (ErrorKind::ShapeMismatch, Some("a"), Some(14)));
        assert_eq!((error.found(), error.expected()), (Some("the key \"a\" twice"), Some("each key once")));
        assert_eq!((columns.len(), columns.unknown()), (0, 0));
    }
    let mut columns = Columns::new(&schema, Options::new().on_unknown(OnUnknown::Count)).unwrap();
    columns.append(&document).unwrap();
    assert_eq!((columns.unknown(), row(&columns, 0)), (2, vec![Cell::Number(1)]));
}

#[test]
fn columns_that_no_document_has_are_known() {
    let fields = ["a", "b.c", "b.d"].map(|path| Field::new(path, DataType::Int32).unwrap());
    let mut columns = Columns::new(&Schema::new(fields).unwrap(), Options::new()).unwrap();
    let absent = |columns: &Columns| columns.absent().map(|field| field.name().to_string()).collect::<Vec<_>>();
    assert_eq!(absent(&columns), ["a", "b.c", "b.d"]);
    let null = || Made::Leaf(ElementType::Null, Vec::new());
    columns.append(&Document::new(&one(&[("x", int(1))])).unwrap()).unwrap();
    columns.append(&Document::new(&one(&[("b", null())])).unwrap()).unwrap();
    assert_eq!(absent(&columns), ["a", "b.c", "b.d"]);
    // A row that fails is left out for any kind of error.
    let bad = one(&[("b", Made::Document(vec![("d".to_string(), string("x"))]))]);
    columns.append(&Document::new(&bad).unwrap()).unwrap_err();
    assert_eq!(absent(&columns), ["a", "b.c", "b.d"]);
    let c = one(&[("b", Made::Document(vec![("c".to_string(), null())]))]);
    columns.append(&Document::new(&c).unwrap()).unwrap();
    assert_eq!(absent(&columns), ["a", "b.d"]);
    columns.take();
    columns.append(&Document::new(&one(&[("a", int(1))])).unwrap()).unwrap();
    assert_eq!(absent(&columns), ["b.d"]);
}

#[test]
fn inference_finds_the_types_that_go_together() {
    let long = |value: i64| Made::Leaf(ElementType::Int64, value.to_le_bytes().to_vec());
    let double = |value: f64| Made::Leaf(ElementType::Double, value.to_le_bytes().to_vec());
    let null = || Made::Leaf(ElementType::Null, Vec::new());
    for (values, expected) in [
        (vec![int(1), null()], "int"),
        (vec![int(1), long(2)], "long"),
        (vec![long(1), double(0.5), int(3)], "double"),
        (vec![long((1 << 53) + 1), double(0.5)], "json"),
        (vec![int(1), string("a")], "json"),
        (vec![null()], "null"),
        (vec![string("a"), Made::Leaf(ElementType::Symbol, text("b"))], "string"),
        (vec![Made::Array(vec![]), Made::Array(vec![int(1), null()])], "[int]"),
        (vec![Made::Array(vec![])], "[null]"),
        (vec![Made::Array(vec![int(1), string("a")])], "[json]"),
        (vec![Made::Document(vec![])], "json"),
        (
            vec![Made::Document(vec![("x".into(), int(1))]), Made::Document(vec![("y".into(), int(1))])],
            "{x: int, y: int}",
        ),
        (vec![Made::Leaf(ElementType::Regex, b"a\0\0".to_vec())], "json"),
    ] {
        let mut inference = Inference::new();
        for value in &values {
            inference.observe(&Document::new(&one(&[("v", value.clone())])).unwrap()).unwrap();
        }
        assert_eq!(inference.schema(OnMixed::Json).unwrap().to_string(), format!("v: {expected}"));
        if expected.contains("json") {
            let error = inference.schema(OnMixed::Error).unwrap_err();
            assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("v")));
        }
    }
}

/// Each element takes three bytes in the document and 8 kB in the columns.
#[test]
fn memory_is_limited_whatever_a_document_says() {
    let wide = (0..1000).map(|i| Field::of_key(format!("m{i}"), DataType::Int64)).collect();
    let schema = Schema::new([Field::of_key("l", DataType::List(Box::new(DataType::Struct(wide))))]).unwrap();
    let nulls = vec![Made::Leaf(ElementType::Null, Vec::new()); 100_000];
    let bytes = one(&[("l", Made::Array(nulls))]);
    let document = Document::new(&bytes).unwrap();
    let mut columns = Columns::new(&schema, Options::new().memory_limit(10 << 20)).unwrap();
    for _ in 0..2 {
        assert_eq!(columns.append(&document).unwrap_err().kind(), ErrorKind::MemoryLimit);
        assert_eq!((columns.len(), columns.byte_len()), (0, 0));
    }
    assert_eq!(
        Columns::new(&schema, Options::new().memory_limit(1 << 31)).unwrap_err().kind(),
        ErrorKind::InvalidOption
    );

    let mut inference = Inference::new();
    let error =
        (0..20_000).find_map(|i| inference.observe(&Document::new(&one(&[(&format!("k{i}"), int(1))])).unwrap()).err());
    assert_eq!(error.unwrap().kind(), ErrorKind::MemoryLimit);
}

#[test]
fn a_mongodump_file() {
    let mut documents = Documents::new(InMemory::new(std::fs::read(ORDERS).unwrap()));
    let sample = Sample::take(&mut documents, usize::MAX, usize::MAX).unwrap();
    assert_eq!(sample.len(), 3500);
    let error = sample.infer(OnMixed::Error).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("total")));
    assert_eq!(error.found(), Some("values of type double, string, int"));
    let schema = sample.infer(OnMixed::Json).unwrap();
    let mut columns = Columns::new(&schema, Options::new()).unwrap();
    for (i, document) in sample.iter().enumerate() {
        columns.append(&document).unwrap();
        let look_up = |field: &Field| match field.data_type() {
            DataType::Json => json(&document, field.name()),
            data_type => naive(document.get(field.name()).unwrap(), data_type, &mut 0),
        };
        assert_eq!(row(&columns, i), schema.fields().iter().map(look_up).collect::<Vec<_>>());
        // Where the document has an array, the row is a list cell.
        let items: Array = document.require("items").unwrap();
        let Cell::Many(cells) = cell(columns.column("items").unwrap(), i) else { panic!("no list") };
        assert_eq!(cells.len(), items.count().unwrap());
    }
    assert_eq!(columns.unknown(), 0);
    let total = columns.column("total").unwrap();
    let Values::Json(texts) = total.values() else { panic!("no text") };
    let first = std::str::from_utf8(texts.get(0).unwrap()).unwrap();
    assert!(first.parse::<f64>().is_ok() || first.starts_with('"'), "{first}");
    #[cfg(feature = "arrow")]
    arrow::check(columns);

    // As a double, which most values are: values that do not fit become null and are counted.
    let total = Schema::new([Field::new("total", DataType::Double).unwrap()]).unwrap();
    let mut columns = Columns::new(&total, Options::new().on_mismatch(OnMismatch::Null)).unwrap();
    let mut strings = 0;
    for document in sample.iter() {
        columns.append(&document).unwrap();
        strings += u64::from(matches!(document.require("total").unwrap(), ValueRef::String(_)));
    }
    assert!(strings > 0);
    assert_eq!(columns.mismatched(), strings);
}

/// A member as Extended JSON text.
fn json(document: &Document<'_>, key: &str) -> Cell {
    let Some(element) = document.find(key).unwrap() else { return Cell::None };
    let mut text = Vec::new();
    element.append_json(&mut text, millstream_bson::Json::Relaxed).unwrap();
    Cell::Bytes(text)
}

#[cfg(feature = "arrow")]
mod arrow {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::*;
    use arrow_array::{Array, RecordBatchReader, ffi::from_ffi};

    /// A cell of an Arrow array.
    fn arrow_cell(array: &dyn Array, row: usize) -> Cell {
        use arrow_schema::DataType as A;
        if array.is_null(row) || array.data_type() == &A::Null {
            return Cell::None;
        }
        match array.data_type() {
            A::Boolean => Cell::Bool(array.as_boolean().value(row)),
            A::Int32 => Cell::Number(array.as_primitive::<Int32Type>().value(row).into()),
            A::Int64 => Cell::Number(array.as_primitive::<Int64Type>().value(row).into()),
            A::UInt64 => Cell::Number(array.as_primitive::<UInt64Type>().value(row).into()),
            A::Timestamp(..) => Cell::Number(array.as_primitive::<TimestampMillisecondType>().value(row).into()),
            A::Float64 => Cell::Double(array.as_primitive::<Float64Type>().value(row).to_bits()),
            A::Utf8 => Cell::Bytes(array.as_string::<i32>().value(row).as_bytes().to_vec()),
            A::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).to_vec()),
            A::FixedSizeBinary(_) => Cell::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
            A::List(_) => {
                let items = array.as_list::<i32>().value(row);
                Cell::Many((0..items.len()).map(|row| arrow_cell(&items, row)).collect())
            }
            A::Struct(_) => {
                Cell::Many(array.as_struct().columns().iter().map(|column| arrow_cell(column, row)).collect())
            }
            other => panic!("{other}"),
        }
    }

    /// Compares the rows in the record batch and through the C data interface.
    pub fn check(columns: Columns) {
        let rows: Vec<Vec<Cell>> = (0..columns.len()).map(|i| row(&columns, i)).collect();
        let names: Vec<String> = columns.schema().fields().iter().map(|field| field.name().to_string()).collect();
        let batch = columns.clone().into_record_batch().unwrap();
        assert!(batch.schema().fields().iter().map(|field| field.name()).eq(&names));
        let (array, schema) = columns.into_ffi().unwrap();
        // SAFETY: both were created by the same call of `into_ffi`.
        #[allow(unsafe_code)]
        let data = unsafe { from_ffi(array, &schema) }.unwrap();
        data.validate_full().unwrap();
        let back = arrow_array::StructArray::from(data);
        assert_eq!((batch.num_rows(), back.len()), (rows.len(), rows.len()));
        for (i, row) in rows.into_iter().enumerate() {
            assert!(batch.columns().iter().map(|column| arrow_cell(column, i)).eq(row.clone()));
            assert!(back.columns().iter().map(|column| arrow_cell(column, i)).eq(row));
        }
    }

    #[test]
    fn nothing_is_copied() {
        let schema = Schema::new([Field::new("n", DataType::Int32).unwrap()]).unwrap();
        let mut columns = Columns::new(&schema, Options::new()).unwrap();
        for i in 0..100 {
            columns.append(&Document::new(&one(&[("n", int(i))])).unwrap()).unwrap();
        }
        let Values::Int32(values) = columns.column("n").unwrap().values() else { panic!("another type") };
        let address = values.as_ptr();
        let batch = columns.into_record_batch().unwrap();
        assert_eq!(batch.column(0).as_primitive::<Int32Type>().values().as_ptr(), address);
    }

    #[test]
    fn batches_of_a_stream() {
        let documents: Vec<Vec<u8>> = (0..1000).map(|i| one(&[("n", int(i)), ("s", string("text"))])).collect();
        let mut documents = Documents::new(InMemory::new(documents.concat()));
        let sample = Sample::take(&mut documents, 10, 1 << 20).unwrap();
        let schema = sample.infer(OnMixed::Json).unwrap();
        let options = Options::new().batch_bytes(4096);
        let batches = RecordBatches::new(Batches::new(sample, documents, &schema, options).unwrap());
        assert_eq!(RecordBatchReader::schema(&batches), schema.to_arrow());
        let batches: Vec<_> = batches.map(Result::unwrap).collect();
        assert!(batches.len() > 5);
        let numbers = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec());
        assert!(numbers.eq(0..1000));
    }

    #[test]
    fn an_error_says_which_record() {
        let bytes = [one(&[("n", int(1))]), one(&[("n", int(2))]), one(&[("n", string("x"))])].concat();
        for count in [0, 1, 3] {
            let mut documents = Documents::new(InMemory::new(bytes.clone()));
            let sample = Sample::take(&mut documents, count, 1 << 20).unwrap();
            let schema = Schema::new([Field::new("n", DataType::Int32).unwrap()]).unwrap();
            let mut batches = Batches::new(sample, documents, &schema, Options::new()).unwrap();
            assert_eq!(batches.next_batch().unwrap().unwrap().len(), 2, "what is good comes first");
            let error = batches.next_batch().unwrap_err();
            assert_eq!((error.record(), error.offset(), error.path()), (Some(2), Some(31), Some("n")));
            assert!(batches.next_batch().unwrap().is_none());
        }
    }
}
