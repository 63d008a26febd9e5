//! Random files, framings and sizes.

use super::{Event, sequential, union};
use millstream::frame::{
    CsvBlankLines, CsvDialect, CsvLineEnd, CsvStrayQuotes, Endian, LengthPrefixed, PrefixCounts, PrefixWidth,
};
use millstream::splits::{Framing, SplitPin, Splits};
use millstream::{Decode, ErrorKind, ReadAhead, Reader};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Half of them can overlap themselves.
const DELIMITERS: &[&[u8]] = &[b"a", b"ab", b"\r\n", b"aab", b"ab\n\n", b"aa", b"aba", b"abab", b"aaaa", b"\n\n"];

/// Dialects of CSV.
fn dialects() -> impl Strategy<Value = CsvDialect> {
    let line_ends = select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Crlf, CsvLineEnd::Cr]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (line_ends, any::<bool>(), flags).prop_map(|(line_end, is_default, (quotes, doubled, literal, escape, comment))| {
        let dialect = CsvDialect::new().line_end(line_end);
        if is_default {
            return dialect;
        }
        dialect
            .quote(quotes.then_some(b'"'))
            .doubled_quotes(doubled)
            .stray_quotes(if literal { CsvStrayQuotes::Literal } else { CsvStrayQuotes::Error })
            .escape(escape.then_some(b'\\'))
            .comment(comment.then_some(b'#'))
    })
}

/// A file and how its records are found. The bytes are few, so that delimiters and lengths are frequent.
fn files() -> impl Strategy<Value = (Framing, Vec<u8>)> {
    let text = || vec(select(&b"aab\n\r"[..]), 0..80);
    let delimiters = select(DELIMITERS);
    let record = || vec(any::<u8>(), 0..30);
    let widths = select(vec![PrefixWidth::U8, PrefixWidth::U16, PrefixWidth::U32, PrefixWidth::U64]);
    let endian = select(vec![Endian::Little, Endian::Big]);
    let counts = select(vec![PrefixCounts::Payload, PrefixCounts::Itself]);
    let prefixed = (widths, endian, counts, vec(record(), 0..8)).prop_map(|(width, endian, counts, records)| {
        let file = records.iter().flat_map(|record| {
            let own = if counts == PrefixCounts::Itself { width.bytes() } else { 0 };
            let len = (record.len() + own) as u64;
            let prefix = match endian {
                Endian::Little => len.to_le_bytes()[..width.bytes()].to_vec(),
                Endian::Big => len.to_be_bytes()[8 - width.bytes()..].to_vec(),
            };
            prefix.into_iter().chain(record.iter().copied())
        });
        (Framing::LengthPrefixed { prefix: LengthPrefixed::new(width, endian).counts(counts) }, file.collect())
    });
    let bson = vec(record(), 0..8).prop_map(|documents| {
        let file = documents.iter().flat_map(|content| {
            let len = (content.len() as u32 + 5).to_le_bytes();
            len.into_iter().chain(content.iter().copied()).chain([0])
        });
        (Framing::Bson, file.collect())
    });
    let csv = (dialects(), vec(select(&b"aa,,\"\"\n\r#\\\\;\xef\xbb\xbf\xff\xfe"[..]), 0..80));
    let whole = prop_oneof![
        2 => csv.prop_map(|(dialect, file)| (Framing::Csv { dialect }, file)),
        1 => text().prop_map(|file| (Framing::Lines, file)),
        1 => (delimiters, text()).prop_map(|(bytes, file)| (Framing::Delimiter { bytes: bytes.to_vec() }, file)),
        1 => (1..20usize, text()).prop_map(|(len, file)| (Framing::Fixed { len }, file)),
        1 => prefixed,
        1 => bson,
    ];
    // Half of the files are damaged: cut, or with a changed byte.
    let damage = prop_oneof![
        2 => Just(None),
        1 => any::<prop::sample::Index>().prop_map(|at| Some((at, None))),
        1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Some((at, Some(byte)))),
    ];
    (whole, damage).prop_map(|((framing, mut file), damage)| {
        match damage {
            Some((at, byte)) if !file.is_empty() => match (at.index(file.len()), byte) {
                (at, Some(byte)) => file[at] = byte,
                (at, None) => file.truncate(at),
            },
            _ => {}
        }
        (framing, file)
    })
}

fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 1_000_000 } else { 20_000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Files of CSV in which quotes, delimiters and line ends are next to each other in every order, and their dialects.
/// Most fields are valid, so that an invalid one is often found in a later split.
pub(crate) fn files_of_csv() -> impl Strategy<Value = (Framing, Vec<u8>)> {
    let field = prop_oneof![
        4 => select(&["a", "", "\"\"", "\"a\"", "\"a;b,c\"", "\"\n\"", "\"\r\n;\n\"", "\"\"\"\"", "\"\"\"a\"\"\"", "'a'", "'\n'"][..]),
        1 => select(&["\"a\n", "a\"", "a\"b,c\"", "\"a\"b", "\"a\" ", "\"\"\"", "#", "\\", "\\\"", "\\\n", "\u{feff}", " \"a\""][..]),
    ];
    let end = prop_oneof![
        6 => select(&[",", ",", ",", ";", "\n", "\n", "\n", "\r\n", "\r"][..]),
        1 => select(&["\n\n", "\r\r\n", "\r\n\r", "\n\r", "\n#", "\n\u{feff}", ",\"", "\"\n", "\"\r\n\"", ""][..]),
    ];
    let others = (select(&b",,,;|"[..]), select(&b"\"\"\"'"[..]), any::<bool>());
    (dialects(), others, vec((field, end), 0..24)).prop_map(|(dialect, (delimiter, quote, blank), fields)| {
        let blank = if blank { CsvBlankLines::Records } else { CsvBlankLines::Skip };
        // A dialect without quotes stays one.
        let has_quotes = !dialect.to_string().contains("quote=none");
        let dialect = dialect.delimiter(delimiter).quote(has_quotes.then_some(quote)).blank_lines(blank);
        let file = fields.into_iter().flat_map(|(field, end)| [field, end]).collect::<String>();
        (Framing::Csv { dialect }, file.into_bytes())
    })
}

/// How a file is divided and how its splits are read.
#[derive(Clone, Debug)]
struct Way {
    size: u64,
    limit: usize,
    capacity: usize,
    max: usize,
    pin: SplitPin,
    ahead: ReadAhead,
    number: bool,
}

fn ways() -> impl Strategy<Value = Way> {
    let sizes = prop_oneof![1..20u64, 1..100u64];
    let limits = prop_oneof![3 => Just(1 << 20), 1 => 0..20usize];
    let reads = (1..40usize, select(&[1, 2, usize::MAX][..]));
    let pins = select(&[SplitPin::None, SplitPin::Identity, SplitPin::Identity, SplitPin::Ends, SplitPin::Full][..]);
    let ahead = prop_oneof![30 => Just(ReadAhead::Off), 1 => Just(ReadAhead::On)];
    (sizes, limits, reads, pins, ahead, any::<bool>()).prop_map(|(size, limit, (capacity, max), pin, ahead, number)| {
        Way { size, limit, capacity, max, pin, ahead, number }
    })
}

/// Calls a function with the path of a file that has this content.
pub(crate) fn rewrite<T>(content: &[u8], each: impl FnOnce(&Path) -> T) -> T {
    thread_local!(static FILE: tempfile::NamedTempFile = tempfile::NamedTempFile::new().unwrap());
    FILE.with(|file| {
        // A file that is first emptied would be written to the disk each time.
        file.as_file().write_all_at(content, 0).unwrap();
        file.as_file().set_len(content.len() as u64).unwrap();
        each(file.path())
    })
}

/// Checks that the splits in order return what one reader returns, and that their bytes are the file.
fn check(framing: &Framing, content: &[u8], way: &Way) -> Result<(), TestCaseError> {
    let &Way { size, limit, capacity, max, pin, ahead, number } = way;
    rewrite(content, |path| {
        // If a document or a record of CSV is too long and also invalid, or its length is longer than the limit, the size of the
        // buffer decides which error is found first.
        let unlimited = sequential(path, framing, || Reader::builder().decode(Decode::Off));
        let is_invalid = |event: &Event| {
            matches!(event, Event::Error { kind: ErrorKind::DocumentInvalid | ErrorKind::CsvInvalid, .. })
        };
        let limit = match framing {
            Framing::Bson | Framing::Csv { .. } if unlimited.iter().any(is_invalid) => 1 << 20,
            Framing::Bson => limit.max(4),
            _ => limit,
        };
        let options = || Reader::builder().decode(Decode::Off).record_limit(limit);
        let builder = Splits::builder().decode(Decode::Off).pin(pin).number(number);
        let plan = builder.plan(path, framing.clone(), size).unwrap();
        // `union` compares the numbers.
        prop_assert!(!number || plan.iter().all(|split| split.first_record().is_some()));
        let expected = sequential(path, framing, options);
        if let (true, Framing::Lines | Framing::Delimiter { .. }, Some(records)) = (number, framing, plan.records()) {
            let found = unlimited.iter().filter(|event| matches!(event, Event::Record(_))).count();
            prop_assert_eq!(records, found as u64);
        }
        let read = union(&plan, max, || options().capacity(capacity).read_ahead(ahead));
        prop_assert_eq!(read, expected);
        // Without records, the bytes are those of the file.
        let mut bytes: Vec<u8> = Vec::new();
        for split in &Splits::from_json(&plan.to_json()).unwrap() {
            let mut reader = Reader::builder().capacity(capacity).split(split).unwrap();
            while reader.fill().unwrap() > 0 {
                prop_assert_eq!(reader.position().bytes, bytes.len() as u64);
                bytes.extend(reader.buffer());
                let len = reader.buffer().len();
                reader.consume(len);
            }
        }
        prop_assert_eq!(bytes, content);
        Ok(())
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn splits_in_order_are_the_file((framing, content) in files(), way in ways()) {
        check(&framing, &content, &way)?;
    }

    #[test]
    fn splits_of_csv_in_order_are_the_file((framing, content) in files_of_csv(), way in ways()) {
        check(&framing, &content, &way)?;
    }
}
