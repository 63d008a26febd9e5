//! Reads the output back with independent code, and compares it.

use std::io;

use super::*;
use crate::tables::Packing;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use millstream::Reader;
use millstream::bson::{OnBad, append_element, from_json};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn documents(texts: &[&str]) -> Documents {
    let bytes: Vec<u8> = texts.iter().flat_map(|text| from_json(text).unwrap().to_vec().unwrap()).collect();
    Documents::new(Reader::memory(bytes).unwrap())
}

fn orders() -> Documents {
    documents(&[
        r#"{"_id": {"$oid": "57e193d7a9cc81b4027498b5"}, "customer": {"name": "Grüße", "city": "Köln"}, "total": 1.5,
            "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}], "at": {"$date": "2020-01-02T03:04:05.678Z"}}"#,
        r#"{"_id": {"$oid": "57e193d7a9cc81b4027498b6"}, "customer": {"name": "x, \"y\"", "city": null}, "total": "1.5",
            "items": [], "at": null, "data": {"$binary": {"base64": "AQID", "subType": "00"}}}"#,
    ])
}

/// Returns the output, and the result of the conversion.
fn converted(source: Documents, options: &Options) -> (Vec<u8>, Converted) {
    let mut sink = Writer::memory().unwrap();
    let converted = convert(source, options, &mut sink, |_| {}).unwrap();
    (sink.close().unwrap().memory.unwrap(), converted)
}

fn check_orders(batches: &[RecordBatch]) {
    let [batch] = batches else { panic!("{} batches", batches.len()) };
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["_id", "customer", "total", "items", "at", "data"]);
    let column = |name: &str| batch.column_by_name(name).unwrap();
    assert_eq!(column("_id").as_fixed_size_binary().value(1)[11], 0xb6);
    let customer = column("customer").as_struct();
    assert_eq!(customer.column(0).as_string::<i32>().value(0), "Grüße");
    assert!(customer.column(1).is_null(1));
    let total = column("total").as_string::<i32>();
    assert_eq!((total.value(0), total.value(1)), ("1.5", "\"1.5\""));
    let items = column("items").as_list::<i32>();
    assert_eq!((items.value(0).len(), items.value(1).len()), (2, 0));
    assert_eq!(items.value(0).as_struct().column(1).as_primitive::<Int32Type>().value(1), 2);
    assert!(column("at").is_null(1) && column("at").is_valid(0));
    assert_eq!(column("data").as_binary::<i32>().value(1), [1, 2, 3]);
}

#[test]
fn arrow_comes_back() {
    let (bytes, converted) = converted(orders(), &Options::new(Format::Arrow));
    assert_eq!((converted.documents, converted.counts.mismatched, converted.counts.unknown), (2, 0, 0));
    let reader = arrow_ipc::reader::FileReader::try_new(io::Cursor::new(bytes), None).unwrap();
    check_orders(&reader.map(|batch| batch.unwrap()).collect::<Vec<_>>());
    let (bytes, _) = self::converted(orders(), &Options::new(Format::ArrowStream));
    let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
    check_orders(&reader.map(|batch| batch.unwrap()).collect::<Vec<_>>());
}

#[test]
fn parquet_comes_back() {
    for packing in [Packing::Zstd(3), Packing::Snappy, Packing::None] {
        let binary = BinaryOptions { packing: Some(packing), ..BinaryOptions::default() };
        let (bytes, _) = converted(orders(), &Options { binary, ..Options::new(Format::Parquet) });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file.reopen().unwrap()).unwrap();
        let reader = builder.build().unwrap();
        check_orders(&reader.map(|batch| batch.unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn csv_is_flat() {
    let (bytes, _) = converted(orders(), &Options::new(Format::Csv));
    let text = String::from_utf8(bytes).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("_id,customer.name,customer.city,total,items,at,data"));
    assert_eq!(
        lines.next().unwrap(),
        "57e193d7a9cc81b4027498b5,Grüße,Köln,1.5,\
         \"[{\"\"sku\"\":\"\"a\"\",\"\"n\"\":1},{\"\"sku\"\":\"\"b\"\",\"\"n\"\":2}]\",\
         2020-01-02T03:04:05.678Z,"
    );
    assert_eq!(lines.next().unwrap(), "57e193d7a9cc81b4027498b6,\"x, \"\"y\"\"\",,\"\"\"1.5\"\"\",[],,AQID");
    assert_eq!(lines.next(), None);
}

#[test]
fn empty_text_and_null_differ_in_csv() {
    let source = || documents(&[r#"{"s": "", "n": 1}"#, r#"{"s": null, "n": 2}"#, r#"{"s": "NA", "n": null}"#]);
    let mut options = Options::new(Format::Csv);
    assert_eq!(converted(source(), &options).0, b"s,n\n\"\",1\n,2\nNA,\n");
    options.null = "NA".into();
    assert_eq!(converted(source(), &options).0, b"s,n\n\"\",1\nNA,2\n\"NA\",NA\n");
    let source =
        documents(&[r#"{"a b": "x\ny", "c,d": "\"", "e": "\r", "f": {"$binary": {"base64": "", "subType": "00"}}}"#]);
    let (bytes, _) = converted(source, &Options::new(Format::Csv));
    assert_eq!(bytes, b"a b,\"c,d\",e,f\n\"x\ny\",\"\"\"\",\"\r\",\"\"\n");
}

#[test]
fn rows_without_a_column_are_refused_if_they_would_be_lost() {
    for format in [Format::Parquet, Format::Csv] {
        let failed = convert(documents(&["{}", "{}"]), &Options::new(format), &mut Writer::nowhere().unwrap(), |_| {});
        assert_eq!(failed.unwrap_err().error.found(), Some("documents without a member"), "{format:?}");
    }
    let (bytes, _) = converted(documents(&["{}", "{}"]), &Options::new(Format::ArrowStream));
    let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
}

#[test]
fn ndjson_is_extended_json() {
    let (bytes, _) = converted(documents(&[r#"{"n": 1}"#, "{}"]), &Options::new(Format::Ndjson));
    assert_eq!(bytes, b"{\"n\":1}\n{}\n");
    let canonical = Options { json: Json::Canonical, ..Options::new(Format::Ndjson) };
    assert_eq!(converted(documents(&[r#"{"n": 1}"#]), &canonical).0, b"{\"n\":{\"$numberInt\":\"1\"}}\n");
}

#[test]
fn a_member_without_an_inferred_column_is_an_error() {
    let source = || documents(&[r#"{"n": 1}"#, r#"{"n": 2, "m": 3}"#, r#"{"n": "x"}"#]);
    let mut options = Options { sample: 1, ..Options::new(Format::Parquet) };
    let failed = |options: &Options| {
        let error = convert(source(), options, &mut Writer::memory().unwrap(), |_| {}).unwrap_err().error;
        (error.kind(), error.path().map(str::to_owned), error.record())
    };
    assert_eq!(failed(&options), (ErrorKind::ShapeMismatch, Some("m".into()), Some(1)));
    options.unknown = OnUnknown::Count;
    assert_eq!(failed(&options), (ErrorKind::ShapeMismatch, Some("n".into()), Some(2)));
    options.mismatch = OnMismatch::Null;
    let (_, converted) = converted(source(), &options);
    assert_eq!((converted.documents, converted.counts.mismatched, converted.counts.unknown), (3, 1, 1));
}

#[test]
fn a_schema_chooses() {
    let schema = Schema::new([Field::new("customer.city", DataType::String).unwrap().named("city")]).unwrap();
    let mut options = Options::new(Format::Csv).with_schema(schema);
    let error = convert(orders(), &options, &mut Writer::memory().unwrap(), |_| {}).unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::InvalidOption, "most readers skip an empty line");
    options.null = "NA".into();
    let (bytes, converted) = converted(orders(), &options);
    assert_eq!(bytes, "city\nKöln\nNA\n".as_bytes());
    assert!(converted.counts.unknown > 0);
}

#[test]
fn skipped_documents_are_reported() {
    let good = from_json(r#"{"n": 1}"#).unwrap().to_vec().unwrap();
    let mut bad = good.clone();
    bad[4] = 0x77;
    let source = Documents::new(Reader::memory([&good[..], &bad, &good].concat()).unwrap()).on_bad(OnBad::Skip);
    let (_, converted) = converted(source, &Options::new(Format::Arrow));
    assert_eq!((converted.documents, converted.source.skipped().count()), (2, 1));
}

#[test]
fn a_failing_sink_is_reported() {
    for format in [Format::Arrow, Format::ArrowStream, Format::Parquet, Format::Csv, Format::Ndjson] {
        let refuse = |_: &[u8]| Err(io::Error::new(io::ErrorKind::StorageFull, "full"));
        let mut sink = Writer::builder().capacity(1).callback(refuse).unwrap();
        let converted = convert(orders(), &Options::new(format), &mut sink, |_| {}).map_err(|failed| failed.error);
        let error = converted.and_then(|_| sink.flush()).unwrap_err();
        assert_eq!((error.kind(), error.io().map(io::Error::kind)), (ErrorKind::Io, Some(io::ErrorKind::StorageFull)));
    }
}

/// Returns the maximum memory use of the process so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Converts a stream that is much larger than the permitted memory: with `MILLSTREAM_DEEP=1`, 10 GB.
#[test]
fn memory_is_bounded_whatever_the_length() {
    let deep = std::env::var_os("MILLSTREAM_DEEP").is_some();
    let total: u64 = if deep { 10 << 30 } else { 1 << 29 };
    let (mut number, mut sent, mut left) = (0_i64, 0, Vec::new());
    let fill = move |out: &mut [u8]| {
        while left.len() < out.len() && sent < total {
            let start = left.len();
            left.extend_from_slice(&[0; 4]);
            append_element(&mut left, "id", &number).unwrap();
            append_element(
                &mut left,
                "name",
                &format!("name of record {number} {}", number.wrapping_mul(0x1e37_79b9_7f4a_7c15))[..],
            )
            .unwrap();
            append_element(&mut left, "score", &(number as f64 / 7.0)).unwrap();
            left.push(0);
            let len = (left.len() - start) as u32;
            left[start..start + 4].copy_from_slice(&len.to_le_bytes());
            number += 1;
            sent += u64::from(len);
        }
        let count = left.len().min(out.len());
        out[..count].copy_from_slice(&left[..count]);
        left.drain(..count);
        Ok(count)
    };
    let source = Documents::new(Reader::callback(fill).unwrap());
    let mut sink = Writer::nowhere().unwrap();
    let mut calls = 0;
    let converted = convert(source, &Options::new(Format::Parquet), &mut sink, |_| calls += 1).unwrap();
    assert!(converted.documents > total / 200 && calls > 10);
    let peak = peak();
    println!("{total} bytes, {} documents, {} MiB at most", converted.documents, peak >> 20);
    assert!(peak < 256 << 20, "{peak} bytes");
}

#[test]
fn columns_of_wide_types_come_back() {
    let texts: Vec<String> =
        (0..5000).map(|i| format!(r#"{{"n": {{"$numberLong": "{i}"}}, "b": {}}}"#, i % 3 == 0)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (bytes, _) = converted(documents(&texts), &Options::new(Format::ArrowStream));
    let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    let numbers = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    assert!(numbers.eq(0..5000));
    let truths = batches.iter().flat_map(|batch| batch.column(1).as_boolean().iter().collect::<Vec<_>>());
    assert!(truths.eq((0..5000).map(|i| Some(i % 3 == 0))));
}

#[test]
fn no_document_and_no_value() {
    for format in [Format::Arrow, Format::ArrowStream, Format::Parquet, Format::Csv, Format::Ndjson] {
        for texts in [&[][..], &["{}"], &[r#"{"a": null, "l": [], "d": {}}"#]] {
            if texts == ["{}"] && matches!(format, Format::Parquet | Format::Csv) {
                continue;
            }
            let (_, converted) = converted(documents(texts), &Options::new(format));
            assert_eq!(converted.documents, texts.len() as u64, "{format:?} {texts:?}");
        }
    }
}
