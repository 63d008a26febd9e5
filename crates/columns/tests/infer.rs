//! The types of columns of text: the shared vectors, and what inference promises for arbitrary texts.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use millstream::{Error, ErrorKind, Reader, frame::Csv};
use millstream_columns::{Batches, Infer, OnBad, Options, Records, Schema};
use proptest::prelude::*;

#[path = "../../core/tests/escapes/mod.rs"]
mod escapes;

/// The type, the values as text, and the error after them.
fn read(text: &[u8], options: &Options) -> (String, Vec<String>, Option<Error>) {
    let mut batches = match Batches::csv(Reader::memory(text.to_vec()).unwrap(), Csv::new(), options) {
        Ok(batches) => batches,
        Err(error) => return (String::new(), Vec::new(), Some(error)),
    };
    let schema = batches.schema().to_json();
    let name = schema.split_once("\"type\":\"").unwrap().1.split('"').next().unwrap().to_string();
    let mut values = Vec::new();
    loop {
        match batches.next_batch() {
            Ok(Some(batch)) => values.extend(shown(&batch)),
            Ok(None) => return (name, values, None),
            Err(error) => return (name, values, Some(error)),
        }
    }
}

/// The values of the first column.
fn shown(batch: &RecordBatch) -> Vec<String> {
    let column = &in_offset(batch.column(0));
    let formatter = ArrayFormatter::try_new(column, &FormatOptions::default()).unwrap();
    let value = |row| match column.is_null(row) || *column.data_type() == DataType::Null {
        true => "null".to_string(),
        false => formatter.value(row).to_string(),
    };
    (0..column.len()).map(value).collect()
}

/// The same column with an offset in place of the name UTC, for which arrow-rs would need a database of zones.
fn in_offset(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Timestamp(unit, Some(zone)) if &**zone == "UTC" => {
            let data = column.to_data().into_builder().data_type(DataType::Timestamp(*unit, Some("+00:00".into())));
            arrow_array::make_array(data.build().unwrap())
        }
        _ => column.clone(),
    }
}

#[test]
fn vectors() {
    let lines = include_str!("../../../vectors/infer.tsv").lines();
    let mut count = 0;
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, words, fields, data_type, values, end] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not six columns: {line}");
        };
        // The second field keeps lines with an empty field from being blank.
        let mut text = b"value,end\n".to_vec();
        if fields != "-" || name == "only_a_minus" {
            for field in fields.split(" | ") {
                text.extend_from_slice(&escapes::unescape(field));
                text.extend_from_slice(b",\n");
            }
        }
        let mut options = Options::new();
        let (mut nulls, mut given) = (Vec::new(), None);
        for word in words.split(' ') {
            options = match word.split_once('=').unwrap_or((word, "")) {
                ("default", _) => options,
                ("decimals", _) => options.decimals(true),
                ("special", _) => options.special_numbers(true),
                ("first", first) => options.infer(Infer::First(first.parse().unwrap())),
                ("null", null) => {
                    nulls.push(null.to_string());
                    options
                }
                ("type", of) => {
                    let of = of.replace('_', " ");
                    given = Some(format!(r#"{{"fields": [{{"name": "value", "type": "{of}"}}]}}"#));
                    options
                }
                other => panic!("{name}: the option {other:?}"),
            };
        }
        options = options.nulls(nulls);
        if let Some(given) = given {
            options = options.schema(Schema::from_json(&given).unwrap());
        }
        let (found, shown, error) = read(&text, &options);
        let expected: Vec<String> = match values {
            "-" if name != "only_a_minus" => Vec::new(),
            _ => values.split(" | ").map(|value| String::from_utf8(escapes::unescape(value)).unwrap()).collect(),
        };
        let error = error.map_or("end", |error| error.kind().name());
        assert_eq!((&*found, shown, error), (data_type, expected, end), "{name}");
        count += 1;
    }
    assert!(count > 90, "{count} vectors");
}

/// A value long after the records from which types are inferred by default, after more than a block of the reader.
fn late(value: &str) -> String {
    format!("n,s\n{}{value},x\n", "1,\n".repeat(100_000))
}

#[test]
fn types_are_inferred_from_all_records() {
    let all = Options::new().infer(Infer::All);
    let types = |text: &str, options: &Options| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        let readers = [Reader::memory(text.to_string()), Reader::path(&path)];
        let found = readers.map(|reader| {
            let mut batches = Batches::csv(reader.unwrap(), Csv::new(), options).unwrap();
            let mut rows = 0;
            while let Some(batch) = batches.next_batch().unwrap() {
                rows += batch.num_rows();
            }
            assert!(batches.schema().is_inferred());
            let schema = batches.schema().arrow().clone();
            (schema.fields().iter().map(|field| field.data_type().to_string()).collect::<Vec<_>>().join(" "), rows)
        });
        assert_eq!(found[0], found[1]);
        found[0].clone()
    };
    for (value, of) in
        [("2", "Int64"), ("2.5", "Float64"), ("x", "Utf8"), ("007", "Utf8"), ("18446744073709551615", "UInt64")]
    {
        assert_eq!(types(&late(value), &all), (format!("{of} Utf8"), 100_001), "{value}");
        for threads in [2, 3] {
            assert_eq!(types(&late(value), &all.clone().threads(threads)), (format!("{of} Utf8"), 100_001), "{value}");
        }
    }
    assert_eq!(types(&late("2.5"), &all.clone().decimals(true)).0, "Decimal128(38, 1) Utf8");
    assert_eq!(types(&late("NA"), &all.clone().nulls(["NA"])).0, "Int64 Utf8");
    assert_eq!(types("1\n2.5\n", &all.clone().header(false)), ("Float64".to_string(), 2));
    assert_eq!(types("a\n", &all), ("Utf8".to_string(), 0));
    // Bad records are left out twice.
    let skips = all.clone().on_bad(OnBad::Skip);
    let text = format!("{}3\n4,\"x\"y\n5,z\n", late("2"));
    assert_eq!(types(&text, &skips), ("Int64 Utf8".to_string(), 100_002));
    let error = Batches::csv(Reader::memory(text).unwrap(), Csv::new(), &all).err().unwrap();
    assert_eq!((error.kind(), error.line()), (ErrorKind::CsvInvalid, Some(100_004)));
}

#[test]
fn json_and_lines_are_inferred_from_all_records() {
    let all = Options::new().infer(Infer::All);
    let records = format!("{}{{\"a\": 2.5, \"b\": [true]}}\n", "{\"a\": 1}\n".repeat(20_000));
    let expected = r#"{"fields":[{"name":"a","type":"float64"},{"name":"b","type":"list","item":{"type":"bool"}}]}"#;
    let lines = Batches::json_lines(Reader::memory(records.clone()).unwrap(), &all).unwrap();
    let document = format!("[{}]", records.trim().replace('\n', ","));
    let reader = Reader::builder().json_elements("").memory(document).unwrap();
    for mut batches in [lines, Batches::json_elements(reader, &all).unwrap()] {
        assert_eq!(batches.schema().to_json(), expected);
        let mut rows = 0;
        while let Some(batch) = batches.next_batch().unwrap() {
            rows += batch.num_rows();
        }
        assert_eq!(rows, 20_001);
    }
    // Lines need no inference.
    let pipe = Reader::from_read(&b"one\n"[..]).unwrap();
    assert_eq!(Batches::lines(pipe, &all).unwrap().next_batch().unwrap().map(|batch| batch.num_rows()), Some(1));
}

#[test]
fn what_is_read_only_once_is_refused_before_it_is_read() {
    let all = Options::new().infer(Infer::All);
    let csv = || Records::Csv(Box::new(Csv::new()));
    for records in [csv(), Records::JsonLines, Records::JsonElements] {
        let reader = Reader::callback(|_| panic!("it is read")).unwrap();
        let error = Batches::of(reader, records, &all).err().unwrap();
        assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidOption, Some("a callback")));
        let text = error.to_string();
        assert!(text.contains("types from all records of a callback, which can be read only once"), "{text}");
        assert!(text.contains("or infer from a number of records"), "{text}");
    }
    let mut reader = Reader::memory("n\n1\n").unwrap();
    reader.next_line().unwrap();
    let error = Batches::of(reader, csv(), &all).err().unwrap();
    assert_eq!(error.found(), Some("types from all records of a reader that has delivered some of them"));
    // With a schema there is nothing to infer.
    let schema = Schema::from_json(r#"{"fields": [{"name": "n", "type": "int64"}]}"#).unwrap();
    let reader = Reader::from_read(&b"n\n1\n"[..]).unwrap();
    let mut batches = Batches::of(reader, csv(), &all.schema(schema)).unwrap();
    assert_eq!(batches.next_batch().unwrap().map(|batch| batch.num_rows()), Some(1));
}

#[test]
fn a_file_that_changes_between_the_readings_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    std::fs::write(&path, "n\n1\n").unwrap();
    let changes = path.clone();
    // It is called at the end of the first reading.
    let mut is_first = true;
    let reader = Reader::builder().observer(std::time::Duration::MAX, move |_| {
        if std::mem::take(&mut is_first) {
            std::fs::write(&changes, "n\nx\ny\n").unwrap();
        }
    });
    let error = Batches::csv(reader.path(&path).unwrap(), Csv::new(), &Options::new().infer(Infer::All)).err().unwrap();
    assert_eq!((error.kind(), error.found()), (ErrorKind::SourceChanged, Some("6 bytes")));
}

/// Texts that look like values, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{1,22}",
        "-?[0-9]{0,18}\\.[0-9]{0,20}",
        "-?[0-9]{1,3}(\\.[0-9]{1,17})?e[+-]?[0-9]{1,3}",
        any::<f64>().prop_map(|value| format!("{value:?}")),
        any::<i64>().prop_map(|value| value.to_string()),
        "(true|false|NaN|inf|-inf|)",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9]",
        "20[0-9]{2}-0[1-9]-[0-2][0-9][T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,9})?)?(Z|[+-]0[0-9]:?00)?",
        "[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?",
        "[a-z0-9+.e-]{0,6}",
    ]
}

/// A number as its sign, its digits without zeros at the ends, and the exponent of the last one; by its own means.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut exponent = exponent.parse::<i64>().ok()? - fraction.len() as i64;
    let cut = digits.trim_end_matches('0');
    exponent += (digits.len() - cut.len()) as i64;
    let cut = cut.trim_start_matches('0');
    Some(if cut.is_empty() { (is_negative, "0".to_string(), 0) } else { (is_negative, cut.to_string(), exponent) })
}

/// Whether a printed value is the text of the file: the same number, or the same digits and letters.
fn is_same(data_type: &str, text: &str, shown: &str) -> bool {
    match data_type {
        "string" | "bool" | "date32" => text == shown,
        "int64" | "uint64" => text == shown,
        "float64" | "decimal128(38, 0)" => text == shown || decimal(text).is_some() && decimal(text) == decimal(shown),
        _ if data_type.starts_with("decimal") => decimal(text) == decimal(shown),
        _ => moment(text) == moment(shown),
    }
}

/// A moment without the differences that ISO 8601 allows.
fn moment(text: &str) -> String {
    let mut text = text.replace(' ', "T");
    let zone = text.find('Z').or_else(|| text.rfind(['+', '-']).filter(|&at| at > 10 && text.contains('T')));
    let zone = zone.map(|at| text.split_off(at).replace(':', "").replace("+0000", "Z"));
    if text.len() == 16 && text.contains('T') {
        text.push_str(":00");
    }
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{}", zone.unwrap_or_default())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the texts are: a column has all of them, and each one prints back losslessly.
    #[test]
    fn inferred_types_lose_nothing(
        texts in prop_oneof![prop::collection::vec(text(), 1..4), text().prop_map(|text| vec![text])],
        decimals in any::<bool>(),
        special_numbers in any::<bool>(),
    ) {
        let mut csv = "value,end\n".to_string();
        texts.iter().for_each(|text| csv.push_str(&format!("{text},\n")));
        let options = Options::new().decimals(decimals).special_numbers(special_numbers);
        let (data_type, shown, error) = read(csv.as_bytes(), &options);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(shown.len(), texts.len());
        for (text, shown) in texts.iter().zip(&shown) {
            prop_assert!(is_same(&data_type, text, shown), "{} as {}: {}", text, data_type, shown);
        }
    }

    /// A later text is either a value that prints back losslessly, or an error at its place, after all rows before it.
    #[test]
    fn later_texts_are_values_or_errors(first in text(), later in text()) {
        let csv = format!("value,end\n{first},\n{later},\n");
        let (data_type, shown, error) = read(csv.as_bytes(), &Options::new().infer(Infer::First(1)));
        prop_assert!(is_same(&data_type, &first, &shown[0]));
        match error {
            None => prop_assert!(is_same(&data_type, &later, &shown[1]), "{} as {}: {}", later, data_type, shown[1]),
            Some(error) => prop_assert_eq!((error.line(), error.record(), shown.len()), (Some(3), Some(2), 1)),
        }
    }
}
