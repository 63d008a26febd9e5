//! Records of CSV as columns: places of errors, rejects, threads, and what happens to arbitrary bytes.

use arrow_array::{Array, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_select::concat::concat_batches;
use millstream::frame::{Csv, CsvDialect, CsvRagged};
use millstream::{Decode, Error, ErrorKind, Reader};
use millstream_columns::{Batches, Infer, OnBad, Options, Reject, Schema};
use proptest::prelude::*;

#[path = "../../millstream/tests/shared/peak.rs"]
mod peak;

/// All rows in one batch, the rejects, and the error at the end.
struct Read {
    rows: Option<RecordBatch>,
    rejects: Vec<Reject>,
    error: Option<Error>,
}

/// The maximum length of a record, which no text of these tests exceeds.
const RECORD: usize = 1 << 10;

fn read(text: &[u8], capacity: usize, options: &Options) -> Read {
    let reader = Reader::builder()
        .capacity(capacity)
        .record_limit(RECORD)
        .decode(Decode::Auto)
        .from_read(std::io::Cursor::new(text.to_vec()))
        .unwrap();
    let mut batches = match Batches::csv(reader, Csv::new(), options) {
        Ok(batches) => batches,
        Err(error) => return Read { rows: None, rejects: Vec::new(), error: Some(error) },
    };
    let (mut all, mut rejects, mut end) = (Vec::new(), Vec::new(), None);
    loop {
        match batches.next_batch() {
            Ok(Some(batch)) => all.push(batch),
            Ok(None) => break,
            Err(error) => {
                end = Some(error);
                break;
            }
        }
        rejects.extend(batches.take_rejects());
    }
    assert!(batches.next_batch().unwrap().is_none(), "something follows the end");
    rejects.extend(batches.take_rejects());
    assert_eq!(batches.rejected(), rejects.len() as u64);
    assert_eq!(batches.rows(), all.iter().map(|batch| batch.num_rows() as u64).sum::<u64>());
    let rows = concat_batches(batches.schema().arrow(), &all).unwrap();
    Read { rows: Some(rows), rejects, error: end }
}

fn shown(error: Error) -> String {
    error.without_advice().to_string()
}

#[test]
fn a_misfit_after_the_inference_has_its_place() {
    let text = b"id,name\n1,\"two\nlines\"\n2,b\nx,c\n";
    let error = read(text, 1 << 10, &Options::new().infer(Infer::First(1))).error.unwrap();
    assert_eq!(
        (error.kind(), error.line(), error.column(), error.record()),
        (ErrorKind::ShapeMismatch, Some(5), Some(1), Some(3))
    );
    assert_eq!(
        shown(error),
        "a Read: shape mismatch: found \"x\", expected int64, as in the records from which the type was inferred, in id, \
         at line 5, column 1"
    );
}

#[test]
fn a_value_that_a_given_type_does_not_have() {
    let schema = r#"{"fields": [{"name": "n", "type": "int8"}, {"name": "m", "type": "bool", "nullable": false}]}"#;
    let options = Options::new().schema(Schema::from_json(schema).unwrap()).nulls(["-"]);
    let error = |text: &str| read(text.as_bytes(), 1 << 10, &options).error.unwrap();
    let large = error("m,n\ntrue,1\ntrue,300\n");
    assert_eq!((large.kind(), large.line(), large.column()), (ErrorKind::NumberOverflow, Some(3), Some(6)));
    let null = error("m,n\n-,1\n");
    assert_eq!((null.kind(), null.path(), null.line()), (ErrorKind::ValueMissing, Some("m"), Some(2)));
    let missing = error("n,other\n1,2\n");
    assert_eq!((missing.kind(), missing.path()), (ErrorKind::KeyMissing, Some("m")));
}

#[test]
fn text_that_is_not_utf8_has_its_place() {
    // The bytes of both texts of b together are UTF-8.
    let text = b"a,b\nx,\"y\"\n1,\xc3\n2,\xa4\n";
    let options = Options::new().schema(
        Schema::from_json(r#"{"fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "string"}]}"#).unwrap(),
    );
    let stopped = read(text, 1 << 10, &options);
    assert_eq!(stopped.rows.unwrap().num_rows(), 1);
    let error = stopped.error.unwrap();
    assert_eq!((error.kind(), error.line(), error.record()), (ErrorKind::Utf8Invalid, Some(3), Some(2)));
    let skipped = read(text, 1 << 10, &options.on_bad(OnBad::Skip));
    assert_eq!((skipped.rows.unwrap().num_rows(), skipped.rejects.len()), (1, 2));
    let binary = r#"{"fields": [{"name": "b", "type": "binary"}]}"#;
    let bytes = read(text, 1 << 10, &Options::new().schema(Schema::from_json(binary).unwrap())).rows.unwrap();
    assert_eq!(bytes.column(0).as_binary::<i32>().value(1), b"\xc3");
}

#[test]
fn columns_are_chosen_by_name() {
    let schema = r#"{"fields": [{"name": "c", "type": "int64"}, {"name": "a", "type": "string"}]}"#;
    let options = Options::new().schema(Schema::from_json(schema).unwrap());
    let rows = read(b"a,b,c\nx,y,1\n", 1 << 10, &options).rows.unwrap();
    assert_eq!(rows["c"].as_primitive::<Int64Type>().values(), &[1]);
    assert_eq!(rows["a"].as_string::<i32>().value(0), "x");
    assert_eq!(rows.num_columns(), 2);
}

#[test]
fn headers() {
    let kind = |text: &[u8]| read(text, 1 << 10, &Options::new()).error.unwrap().kind();
    assert_eq!(kind(b"a,a\n1,2\n"), ErrorKind::ShapeMismatch);
    assert_eq!(kind(b"a,\xff\n1,2\n"), ErrorKind::Utf8Invalid);
    assert_eq!(kind(b"a,\"b\n1,2\n"), ErrorKind::CsvInvalid);
    let none = read(b"", 1 << 10, &Options::new());
    assert!(none.error.is_none() && none.rows.unwrap().num_columns() == 0);
    let rows = read(b"\xef\xbb\xbfa,b\n1,2\n", 1 << 10, &Options::new()).rows.unwrap();
    assert_eq!(rows["a"].as_primitive::<Int64Type>().value(0), 1);
    let rows = read(b"1,2\n3,4\n", 1 << 10, &Options::new().header(false)).rows.unwrap();
    assert_eq!(rows["1"].as_primitive::<Int64Type>().values(), &[2, 4]);
}

#[test]
fn ragged_records() {
    let text = b"a,b\n1,2\n3\n4,5,6\n7,8\n";
    let error = read(text, 1 << 10, &Options::new()).error.unwrap();
    assert_eq!((error.kind(), error.line(), error.record()), (ErrorKind::FieldCountMismatch, Some(3), Some(2)));
    let padded = read(text, 1 << 10, &Options::new().ragged(CsvRagged::Pad).on_bad(OnBad::Skip));
    let rows = padded.rows.unwrap();
    assert_eq!(rows["a"].as_primitive::<Int64Type>().values(), &[1, 3, 7]);
    assert!(rows["b"].is_null(1) && rows["b"].null_count() == 1);
    assert_eq!((padded.rejects.len(), &*padded.rejects[0].raw), (1, &b"4,5,6"[..]));
    let error = read(text, 1 << 10, &Options::new().ragged(CsvRagged::Pad)).error.unwrap();
    assert_eq!((error.kind(), error.line(), error.record()), (ErrorKind::FieldCountMismatch, Some(4), Some(3)));
    assert_eq!((error.found(), error.expected()), (Some("3 fields"), Some("2, as in the first record")));
    let reader = Reader::memory(&text[..]).unwrap();
    let error = Batches::csv(reader, Csv::new(), &Options::new().ragged(CsvRagged::Collect)).err().unwrap();
    assert_eq!((error.kind(), error.found()), (ErrorKind::InvalidOption, Some("fields without a name, in columns")));
}

#[test]
fn rows_before_a_failure_of_the_source_are_delivered() {
    let mut gzip = millstream::Writer::builder().encode(millstream::Encode::Gzip).memory().unwrap();
    for i in 0..50_000 {
        millstream::put!(gzip, i, ",text ", i, "\n").unwrap();
    }
    let bytes = gzip.close().unwrap().memory.unwrap();
    let read = read(&bytes[..bytes.len() / 2], 1 << 16, &Options::new().header(false));
    assert_eq!(read.error.unwrap().kind(), ErrorKind::DecodeTruncated);
    assert!(read.rows.unwrap().num_rows() > 1_000);
}

/// The buffer of the reader when memory is measured.
const CAPACITY: usize = 1 << 16;

/// The most memory for reading a text: a record, the buffer, and 64 KiB for the columns and the text itself.
const MOST: usize = RECORD + CAPACITY + (64 << 10);

/// Bytes that are often CSV.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec!["1", "23", "-4", "x", "1.5", "\"q\"", "\"a\nb\"", "\"a\"\"b\"", "", "007", "NA"]),
        6 => Just(","),
        5 => Just("\n"),
        1 => prop::sample::select(vec!["\"", "\r\n", "\r", "\"x\"y", "\u{e9}", "\0"]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| [b"a,b\n", pieces.concat().as_bytes()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(2_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every record is a row or a reject, on any number of threads and with any buffer; and without `OnBad::Skip`, the
    /// first reject is the error, after the same rows.
    #[test]
    fn every_record_is_a_row_or_a_reject(
        text in text(),
        first in prop::sample::select(vec![1, 3, 1000]),
        capacity in prop::sample::select(vec![1, 16, 1 << 16]),
        pads in any::<bool>(),
        nulls in prop::sample::select(vec![vec![], vec!["NA", ""]]),
    ) {
        let ragged = if pads { CsvRagged::Pad } else { CsvRagged::Error };
        let options = Options::new().infer(Infer::First(first)).ragged(ragged).nulls(nulls);
        let skipping = options.clone().on_bad(OnBad::Skip);
        let (skipped, most) = peak::peak(|| read(&text, CAPACITY, &skipping));
        prop_assert!((CAPACITY..=MOST).contains(&most), "{most} bytes of memory");
        prop_assert!(skipped.error.is_none(), "{:?}", skipped.error);
        let rows = skipped.rows.unwrap();

        // An independent count of the records after the header.
        let mut reader = Reader::memory(text.clone()).unwrap();
        let (mut csv, mut count) = (Csv::new(), 0);
        loop {
            match reader.next_frame(&mut csv) {
                Ok(None) => break,
                Ok(Some(record)) => count += usize::from(!csv.skips(record)),
                Err(_) => {
                    count += 1;
                    reader.skip_record(&mut csv).unwrap();
                }
            }
        }
        prop_assert_eq!(rows.num_rows() + skipped.rejects.len() + 1, count);
        prop_assert!(skipped.rejects.is_sorted_by_key(|reject| reject.error.record()));

        let several = read(&text, capacity, &skipping.threads(3));
        prop_assert_eq!(several.rows.as_ref(), Some(&rows));
        let all = |rejects: &[Reject]| -> Vec<String> {
            rejects.iter().map(|reject| format!("{} {:?}", reject.error, reject.raw)).collect()
        };
        prop_assert_eq!(all(&several.rejects), all(&skipped.rejects));

        let stopped = read(&text, capacity, &options);
        let before = stopped.rows.unwrap();
        if before.schema() == rows.schema() {
            // Otherwise the types were inferred from fewer records, because reading ended with the error.
            prop_assert_eq!(&before, &rows.slice(0, before.num_rows()));
        }
        match (stopped.error, skipped.rejects.first()) {
            (None, None) => prop_assert_eq!(before.num_rows(), rows.num_rows()),
            (Some(error), Some(reject)) => prop_assert_eq!(error.to_string(), reject.error.to_string()),
            (error, reject) => prop_assert!(false, "{error:?} and {reject:?}"),
        }
    }

    /// Texts are the contents of the fields, in every dialect, and null if they are not in quotes. Their positions are found by
    /// the thread that reads, or by others.
    #[test]
    fn texts_are_the_contents_of_the_fields(
        records in prop::collection::vec(prop::collection::vec(field(), 2..4), 1..30),
        repeat in prop::sample::select(vec![1, 1, 1, 40]),
        capacity in prop::sample::select(vec![1, 100, 1 << 16]),
        threads in prop::sample::select(vec![1, 2, 4]),
        escape in prop::sample::select(vec![None, Some(b'\\')]),
        nulls in prop::sample::select(vec![vec![], vec!["NA", ""]]),
    ) {
        let text = records.iter().flat_map(|fields| [fields.join(","), "\n".to_string()]).collect::<String>().repeat(repeat);
        let csv = Csv::with(CsvDialect::new().escape(escape)).unwrap();
        let options = Options::new().header(false).infer(Infer::Off).ragged(CsvRagged::Pad).nulls(nulls.clone());
        let options = options.names(["a", "b", "c"]).threads(threads);
        let source = std::io::Cursor::new(text.clone());
        let reader = Reader::builder().capacity(capacity).from_read(source).unwrap();
        let mut batches = Batches::csv(reader, csv.clone(), &options).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            let columns: Vec<_> = batch.columns().iter().map(|column| column.as_string::<i32>()).collect();
            rows.extend((0..batch.num_rows()).map(|row| {
                let texts = columns.iter().map(|column| column.is_valid(row).then(|| column.value(row).to_string()));
                texts.collect::<Vec<_>>()
            }));
        }
        let mut reader = Reader::memory(text).unwrap();
        let mut expected = Vec::new();
        let mut framer = csv.clone();
        while let Some(record) = reader.next_frame(&mut framer).unwrap() {
            if csv.skips(record) {
                continue;
            }
            let mut fields = csv.fields(record);
            let texts = std::iter::from_fn(|| {
                let raw = fields.next_raw()?;
                let text = String::from_utf8(csv.unquote(raw).into_owned()).unwrap();
                Some((raw.first() == Some(&b'"') || !nulls.contains(&&*text)).then_some(text))
            });
            expected.push(texts.chain(std::iter::repeat(None)).take(3).collect::<Vec<_>>());
        }
        prop_assert_eq!(rows, expected);
    }
}

/// A field as it is written.
fn field() -> impl Strategy<Value = String> {
    let long = "long, longer than the thirty-two bytes that are copied at once";
    let texts = [
        "",
        "a",
        "NA",
        "\"\"",
        "\"NA\"",
        "\"a,b\"",
        "\"\"\"\"",
        "\"say \"\"hi\"\"\"",
        "\"two\nlines\"",
        "ä",
        &format!("\"{long}\""),
    ];
    prop::sample::select(texts.map(str::to_string).to_vec())
}

/// Bad records take bounded memory, also if no row is between them: an empty batch is returned, after which they are taken.
#[test]
fn rejects_are_taken_before_they_take_much_memory() {
    for (bad, infer) in [("x\n", 1), ("1\"\n", 1), ("1\"\n", 10_000)] {
        let mut text = String::from("n\n1\n");
        text.push_str(&bad.repeat(600_000));
        text.push_str("2\n");
        let reader = Reader::memory(text).unwrap();
        let options = Options::new().infer(Infer::First(infer)).on_bad(OnBad::Skip);
        let mut batches = Batches::csv(reader, Csv::new(), &options).unwrap();
        let (mut rows, mut most, mut empty) = (0, 0, 0);
        while let Some(batch) = batches.next_batch().unwrap() {
            rows += batch.num_rows();
            empty += usize::from(batch.num_rows() == 0);
            most = most.max(batches.take_rejects().len());
        }
        assert_eq!((rows, batches.rejected()), (2, 600_000));
        assert!(empty > 0 && most < 300_000, "{bad:?}: {empty} batches without rows, {most} bad records at a time");
    }
}
