//! CSV from a reader: rows and headers, values of types, and the places of errors.

#[path = "../../core/tests/csv_twin/mod.rs"]
#[expect(dead_code, reason = "only the interpreter is needed")]
mod csv_twin;

use csv_twin::Table;
use millstream::csv::Rows;
use millstream::frame::{Csv, CsvDialect, CsvLineEnd, CsvPositions, CsvRagged, Lines};
use millstream::{Error, ErrorKind, Reader, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn rows(text: &str) -> Rows {
    Rows::new(Reader::builder().name("t.csv").memory(text.to_string()).unwrap(), Csv::new())
}

fn texts<'a>(fields: impl Iterator<Item = std::borrow::Cow<'a, [u8]>>) -> Vec<String> {
    fields.map(|field| String::from_utf8(field.into_owned()).unwrap()).collect()
}

#[test]
fn fields_by_position_and_by_name() -> Result<()> {
    let mut rows = rows("id,\"the name\"\n1,\"a, b\"\n\n2,\"say \"\"hi\"\"\"\n");
    assert_eq!(rows.header()?, [b"id".to_vec(), b"the name".to_vec()]);
    assert_eq!(rows.index("the name")?, 1);
    let row = rows.next_row()?.unwrap();
    assert_eq!((row.len(), texts(row.fields())), (2, vec!["1".to_string(), "a, b".to_string()]));
    assert_eq!(row.named("id")?, row.field(0).unwrap());
    assert_eq!(row.field(2), None);
    assert_eq!(&*rows.next_row()?.unwrap().named("the name")?, b"say \"hi\"");
    assert!(rows.next_row()?.is_none());

    let mut equal = self::rows("a,b,a\n1,2,3\n");
    let error = equal.next_row()?.unwrap().named("a").unwrap_err();
    assert_eq!(error.found(), Some("a name of a field, and the header was not read"));
    assert_eq!(error.advice(), "call `header` before the first record, or use the position of the field");
    let mut equal = Rows::new(std::mem::replace(equal.reader(), Reader::memory("")?), Csv::new());
    assert_eq!(equal.header()?.len(), 3);
    let mut equal = self::rows("a,b,a\n1,2,3\n");
    assert_eq!(equal.index("a")?, 2);
    let error = equal.index("c").unwrap_err();
    assert_eq!((error.kind(), error.expected()), (ErrorKind::KeyMissing, Some("one of \"a\", \"b\", \"a\"")));
    assert!(self::rows("\n").header()?.is_empty());
    Ok(())
}

#[test]
fn the_reader_continues_after_the_last_row() -> Result<()> {
    let text = "id,n\n\n1,a\n# x\n\n2,b\n3,c\n";
    let mut rows = Rows::new(Reader::memory(text)?, Csv::with(CsvDialect::new().comment(Some(b'#')))?);
    rows.header()?;
    assert_eq!(&*rows.next_row()?.unwrap().named("n")?, b"a");
    assert_eq!((rows.reader().position().bytes, rows.reader().position().records), (10, 3));
    assert_eq!(rows.reader().next_line()?, Some(&b"# x"[..]));
    // The header belongs to the rows.
    assert_eq!(rows.header()?, [b"id".to_vec(), b"n".to_vec()]);
    assert_eq!(&*rows.next_row()?.unwrap().named("n")?, b"b");
    assert_eq!(rows.into_reader().next_frame(&mut Lines::new())?, Some(&b"3,c"[..]));
    Ok(())
}

fn place(error: &Error) -> (ErrorKind, Option<u64>, Option<u64>, Option<u64>, Option<u64>) {
    (error.kind(), error.record(), error.offset(), error.line(), error.column())
}

#[test]
fn a_record_with_another_number_of_fields() -> Result<()> {
    let mut rows = rows("a,b\n\n\"1\n\n\",2\n3\n4,5\n");
    rows.header()?;
    assert_eq!(rows.next_row()?.unwrap().len(), 2);
    let error = rows.next_row().err().unwrap();
    assert_eq!(place(&error), (ErrorKind::FieldCountMismatch, Some(3), Some(13), Some(6), Some(1)));
    assert_eq!(
        (error.name(), error.found(), error.expected()),
        (Some("t.csv"), Some("1 field"), Some("2, as in the header"))
    );
    assert_eq!(&*rows.next_row()?.unwrap().named("b")?, b"5");
    Ok(())
}

#[test]
fn missing_fields_are_empty_by_option_and_no_field_is_dropped() -> Result<()> {
    let mut rows = rows("a,b,c\n1\n\n2,\"x\n\"\n3,4,5,\n\"\"\n6,7,8").ragged(CsvRagged::Pad);
    // Before the header is read, records may have any number of fields.
    assert_eq!(rows.header()?.len(), 3);
    let row = rows.next_row()?.unwrap();
    assert_eq!((row.len(), texts(row.fields())), (3, ["1", "", ""].map(String::from).to_vec()));
    assert_eq!((&*row.named("c")?, row.field(2).as_deref(), row.field(3)), (&b""[..], Some(&b""[..]), None));
    // A missing field is at the end of its record.
    let error = row.locate(Error::new(ErrorKind::NumberInvalid), Some(2));
    assert_eq!(place(&error), (ErrorKind::NumberInvalid, Some(1), Some(7), Some(2), Some(2)));
    assert_eq!(texts(rows.next_row()?.unwrap().fields()), ["2", "x\n", ""]);
    let error = rows.next_row().err().unwrap();
    assert_eq!(place(&error), (ErrorKind::FieldCountMismatch, Some(4), Some(16), Some(6), Some(1)));
    assert_eq!((error.found(), error.expected()), (Some("4 fields"), Some("3, as in the header")));
    assert_eq!(texts(rows.next_row()?.unwrap().fields()), ["", "", ""]);
    assert_eq!(texts(rows.next_row()?.unwrap().fields()), ["6", "7", "8"]);
    assert!(rows.next_row()?.is_none());

    let mut rows = self::rows("a,b\n1\n2,3,4,\n5,6").ragged(CsvRagged::Collect);
    assert_eq!(rows.header()?.len(), 2);
    assert_eq!(texts(rows.next_row()?.unwrap().fields()), ["1", ""]);
    let row = rows.next_row()?.unwrap();
    assert_eq!((row.len(), &*row.named("b")?, row.field(2).as_deref()), (4, &b"3"[..], Some(&b"4"[..])));
    assert_eq!(texts(rows.next_row()?.unwrap().fields()), ["5", "6"]);

    let mut rows = self::rows("1,2\n3\n4,5,6\n").ragged(CsvRagged::Pad);
    let mut lens = Vec::new();
    while let Some(row) = rows.next_row()? {
        lens.push(row.len());
    }
    assert_eq!(lens, [2, 1, 3]);
    Ok(())
}

#[cfg(feature = "serde")]
mod values {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn a_field_without_a_name_is_not_left_out() {
        let mut rows = rows("a,b\n1,2,3\n4\n").ragged(CsvRagged::Collect);
        let mut values = rows.deserialize::<(u8, Option<u8>)>();
        let error = values.next().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.line()), (ErrorKind::FieldCountMismatch, Some(2)));
        assert_eq!((error.found(), error.expected()), (Some("3 fields"), Some("2, as in the header")));
        assert_eq!(values.next().unwrap().unwrap(), (4, None));
    }

    #[test]
    fn a_missing_field_is_none() -> Result<()> {
        let mut rows = rows("n,text,more\n1\n2,b\n3,c,4\n5,d,6,7\n").ragged(CsvRagged::Pad);
        let mut values = rows.deserialize::<(u8, Option<String>, Option<u8>)>();
        assert_eq!(values.next().unwrap()?, (1, None, None));
        assert_eq!(values.next().unwrap()?, (2, Some("b".into()), None));
        assert_eq!(values.next().unwrap()?, (3, Some("c".into()), Some(4)));
        let error = values.next().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.line()), (ErrorKind::FieldCountMismatch, Some(5)));
        assert!(values.next().is_none());
        Ok(())
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Person {
        name: String,
        age: u8,
        #[serde(default)]
        mail: Option<String>,
        rate: f64,
    }

    #[test]
    fn members_have_the_names_of_the_header() -> Result<()> {
        let mut rows = rows("age,rate,other,name,mail\n41,0.5,x,Ann,a@x\n17,1e3,,\"B\"\"b\",\n");
        let people: Vec<Person> = rows.deserialize().collect::<Result<_>>()?;
        let person = |name: &str, age, mail: Option<&str>, rate| Person {
            name: name.into(),
            age,
            mail: mail.map(Into::into),
            rate,
        };
        assert_eq!(people, [person("Ann", 41, Some("a@x"), 0.5), person("B\"b", 17, None, 1000.0)]);
        // Without a header, by position.
        let mut pairs = self::rows("1,2\n3,4\n");
        assert_eq!(pairs.next_row()?.unwrap().deserialize::<(u8, i64)>()?, (1, 2));
        Ok(())
    }

    #[test]
    fn errors_have_the_place_the_name_and_the_text() {
        let header = "name,age,rate\n\"a\nb\",1,2\n";
        for (record, kind, found, path, column) in [
            ("\"x\n\",999,1", ErrorKind::NumberOverflow, "\"999\"", Some("age"), 3),
            ("x,\"4x\",1", ErrorKind::NumberInvalid, "\"4x\"", Some("age"), 3),
            ("x,1,-", ErrorKind::NumberInvalid, "\"-\"", Some("rate"), 5),
        ] {
            let text = format!("{header}{record}\n\"ok\",3,4\n");
            let mut rows = rows(&text);
            let mut people = rows.deserialize::<Person>();
            people.next().unwrap().unwrap();
            let error = people.next().unwrap().unwrap_err();
            assert_eq!((error.kind(), error.found(), error.path()), (kind, Some(found), path));
            let line = 4 + record.matches('\n').count() as u64;
            assert_eq!(
                (error.name(), error.record(), error.line(), error.column()),
                (Some("t.csv"), Some(2), Some(line), Some(column))
            );
            let at = error.offset().unwrap() as usize;
            assert!(text[at..].trim_start_matches('"').starts_with(found.trim_matches('"')), "{at}");
            assert_eq!(people.next().unwrap().unwrap().name, "ok");
        }
        let missing = rows("name,age\na,1\n").deserialize::<Person>().next().unwrap().unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::ShapeMismatch);
        assert!(missing.found().unwrap().contains("missing field `rate`"), "{missing}");
        let bytes = Reader::memory(b"a\n\xff\n".to_vec()).unwrap();
        let invalid = Rows::new(bytes, Csv::new()).deserialize::<(String,)>().next().unwrap().unwrap_err();
        assert_eq!((invalid.kind(), invalid.line()), (ErrorKind::Utf8Invalid, Some(2)));
    }
}

/// Pieces of valid files with line ends in quotes, and one error.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"a,b\n"[..],
        b"c\r\n",
        b"d\r",
        b"\"e\ne\",f\n",
        b"\"g\r\n\n\"\r\n",
        b"\n",
        b"\"h\r\"\"\n\"\n",
        b"a longer record\n",
    ]);
    let bad = prop::sample::select(vec![&b"x\"y\n"[..], b"\"z\n\n\"1\n", b"1,\"\n\nnever closed\n", b""]);
    (prop::collection::vec(piece, 0..60), bad).prop_map(|(good, bad)| [good.concat().as_slice(), bad].concat())
}

/// Reads until the error, in one of several ways.
fn error_of(mut reader: Reader, mut csv: Csv, way: usize) -> Option<Error> {
    for i in 0.. {
        let more = match way {
            0 => reader.next_frame(&mut csv).map(|record| record.is_some()),
            1 => reader.next_batch_of(&mut csv, 3).map(|batch| batch.is_some()),
            // Some of each batch are returned.
            _ => reader.next_batch(&mut csv).map(|batch| batch.map_or(0, |batch| batch.len())).and_then(|count| {
                let back = if count > 1 { i % count } else { 0 };
                reader.give_back(back).map(|()| count > 0)
            }),
        };
        match more {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(error),
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn errors_have_the_line(
        // With CRLF, an LF outside quotes is content.
        (words, line_end) in select(vec![("", CsvLineEnd::Any), ("ends=crlf", CsvLineEnd::Crlf)]),
        input in input(),
        capacity in 1_usize..100,
        way in 0_usize..3,
    ) {
        let csv = Csv::with(CsvDialect::new().line_end(line_end)).unwrap();
        let outcome = Table::new().read(words, &input);
        let expected = outcome.error.map(|at| {
            let start: usize = outcome.lines.iter().map(|(bytes, _)| bytes.len()).sum();
            let feeds = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
            let inside = |bytes: &[u8]| feeds(bytes) - usize::from(bytes.ends_with(b"\n"));
            let lines: usize = outcome.lines.iter().map(|(bytes, _)| 1 + inside(bytes)).sum();
            let before = &input[start..at];
            let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count();
            (at as u64, outcome.lines.len() as u64, (lines + feeds(before) + 1) as u64, column as u64 + 1)
        });
        let memory = Reader::memory(input.clone()).unwrap();
        let pieces = Reader::builder().capacity(capacity).from_read(std::io::Cursor::new(input)).unwrap();
        for reader in [memory, pieces] {
            let found = error_of(reader, csv.clone(), way).map(|error| {
                assert_eq!(error.kind(), ErrorKind::CsvInvalid);
                (error.offset().unwrap(), error.record().unwrap(), error.line().unwrap(), error.column().unwrap())
            });
            prop_assert_eq!(found, expected);
        }
    }
}

/// The fields of the records of a reader up to the error, and its text. Batches have at most `most` records, and some of each are
/// returned if `gives_back`. With `rows`, the framer finds the fields together with the records.
fn fields_of(
    mut reader: Reader,
    mut csv: Csv,
    most: usize,
    gives_back: bool,
    with_rows: bool,
) -> (Vec<Vec<Vec<u8>>>, String) {
    let (view, mut positions, mut all) = (csv.clone(), CsvPositions::new(), Vec::new());
    loop {
        let batch = match reader.next_batch_of(&mut csv, most) {
            Ok(Some(batch)) => batch,
            Ok(None) => return (all, String::new()),
            Err(error) => return (all, error.to_string()),
        };
        let back = if gives_back { all.len() % batch.len() } else { 0 };
        let batch = batch.first(batch.len() - back);
        match with_rows {
            true => {
                let rows = csv.rows(batch, &mut positions);
                all.extend(rows.map(|row| row.iter().map(std::borrow::Cow::into_owned).collect()));
            }
            false => {
                let records = batch.iter().filter(|record| !view.skips(record));
                all.extend(
                    records.map(|record| view.fields(record).map(std::borrow::Cow::into_owned).collect::<Vec<_>>()),
                );
            }
        }
        reader.give_back(back).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_of_a_reader_are_the_fields_of_its_records(
        input in input(),
        repeat in select(vec![1_usize, 1, 1, 400]),
        capacity in select(vec![1_usize, 7, 64, 100, 4096, 1 << 16]),
        limit in select(vec![15_usize, 1000]),
        most in select(vec![1_usize, 2, 5, usize::MAX]),
        gives_back: bool,
        line_end in select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Crlf]),
    ) {
        let csv = Csv::with(CsvDialect::new().line_end(line_end)).unwrap();
        let input = input.repeat(repeat);
        let open = || {
            let builder = Reader::builder().capacity(capacity).record_limit(limit);
            builder.from_read(std::io::Cursor::new(input.clone())).unwrap()
        };
        let found = fields_of(open(), csv.clone(), most, gives_back, true);
        prop_assert_eq!(found, fields_of(open(), csv, most, gives_back, false));
    }
}

/// A record, or the offset and the line of an error and the bytes that were skipped because of it.
#[derive(Debug, PartialEq)]
enum Seen {
    Record(Vec<u8>),
    Bad(Option<u64>, Option<u64>, Vec<u8>),
}

fn skipping_bad_records(content: &[u8], capacity: usize, dialect: CsvDialect) -> (Vec<Seen>, Vec<u8>) {
    let mut reader = Reader::builder().capacity(capacity).from_read(std::io::Cursor::new(content.to_vec())).unwrap();
    let (mut csv, mut seen, mut bytes) = (Csv::with(dialect).unwrap(), Vec::new(), Vec::new());
    loop {
        match reader.next_batch_of(&mut csv, 1) {
            Ok(Some(batch)) => {
                seen.push(Seen::Record(batch.get(0).unwrap().to_vec()));
                bytes.extend_from_slice(batch.bytes());
            }
            Ok(None) => break,
            Err(error) => {
                assert_eq!((error.kind(), error.record()), (ErrorKind::CsvInvalid, Some(seen.len() as u64)));
                let (mut kept, begin) = (Vec::new(), bytes.len());
                let len = reader.skip_record_into(&mut csv, &mut kept, usize::MAX).unwrap().unwrap();
                let skipped = &content[begin..begin + len as usize];
                let offset = error.offset().unwrap();
                assert!((begin as u64..=begin as u64 + len).contains(&offset), "{offset}");
                let end = skipped.strip_prefix(&*kept).unwrap();
                assert!([&b""[..], b"\n", b"\r\n", b"\r"].contains(&end), "{end:?}");
                bytes.extend_from_slice(skipped);
                seen.push(Seen::Bad(error.offset(), error.line(), skipped.to_vec()));
            }
        }
    }
    reader.close().unwrap();
    (seen, bytes)
}

#[test]
fn the_content_of_a_skipped_record_has_no_line_end() {
    for (content, most, kept, len) in [
        (&b"1,\"a\"b\nx"[..], 100, &b"1,\"a\"b"[..], 7),
        (b"1,\"a\"b\r\nx", 100, b"1,\"a\"b", 8),
        (b"1,\"a\"b\r\nx", 6, b"1,\"a\"b", 8),
        (b"1,\"a\"b\r\nx", 4, b"1,\"a", 8),
        (b"1,\"a\"b", 100, b"1,\"a\"b", 6),
        // The line end is content of the field.
        (b"1,\"a\n", 100, b"1,\"a\n", 5),
    ] {
        for capacity in 1..12 {
            let reader = Reader::builder().capacity(capacity).from_read(std::io::Cursor::new(content.to_vec()));
            let (mut reader, mut csv, mut found) = (reader.unwrap(), Csv::new(), b"before".to_vec());
            assert_eq!(reader.next_frame(&mut csv).unwrap_err().kind(), ErrorKind::CsvInvalid);
            assert_eq!(reader.skip_record_into(&mut csv, &mut found, most).unwrap(), Some(len));
            assert_eq!(found.escape_ascii().to_string(), kept.escape_ascii().to_string(), "{capacity}");
        }
    }
    let mut found = Vec::new();
    assert_eq!(Reader::memory("").unwrap().skip_record_into(&mut Csv::new(), &mut found, 9).unwrap(), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_goes_on_after_bad_records(
        content in vec(select(vec![&b"a"[..], b",", b"\"", b"\n", b"\r\n", b"\"a,\n\"", b"\"\"", b"b\"c\n", b"d\n", b"\\"]), 0..60),
        capacity in 1..20_usize,
        escape in select(vec![None, Some(b'\\')]),
        line_end in select(vec![CsvLineEnd::Any, CsvLineEnd::Lf]),
    ) {
        let content = content.concat();
        let dialect = CsvDialect::new().escape(escape).line_end(line_end);
        let (seen, bytes) = skipping_bad_records(&content, 1 << 16, dialect);
        prop_assert_eq!(&bytes, &content);
        prop_assert_eq!(&skipping_bad_records(&content, capacity, dialect).0, &seen);
        for (i, bad) in seen.iter().enumerate() {
            let Seen::Bad(offset, line, skipped) = bad else { continue };
            let at = offset.unwrap() as usize;
            let is_last = i == seen.len() - 1;
            prop_assert!(is_last || skipped.ends_with(b"\n") || skipped.ends_with(b"\r"));
            prop_assert_eq!(*line, Some(content[..at].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1));
        }
    }
}

#[test]
fn a_bad_record_that_is_not_skipped_ends_the_stream() {
    let mut reader = Reader::memory("1,a\"b\n2,c\n").unwrap();
    let mut csv = Csv::new();
    assert_eq!(reader.next_frame(&mut csv).unwrap_err().kind(), ErrorKind::CsvInvalid);
    assert_eq!(reader.next_frame(&mut csv).unwrap(), None);
    assert_eq!(reader.close().unwrap_err().kind(), ErrorKind::CsvInvalid);
}

#[test]
fn nothing_is_skipped_after_a_mark_of_utf_16() {
    let mut reader = Reader::memory(&b"\xff\xfea\0\n\0b\0\n\0"[..]).unwrap();
    let mut csv = Csv::new();
    assert_eq!(reader.next_frame(&mut csv).unwrap_err().kind(), ErrorKind::CsvInvalid);
    assert_eq!(reader.skip_record(&mut csv).unwrap_err().kind(), ErrorKind::CsvInvalid);
}
