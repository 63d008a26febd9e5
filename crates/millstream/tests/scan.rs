//! `Reader::scan` and related methods, with every kind of source, compared with the naive twin.

mod scan_twin;

use millstream::frame::Lines;
use millstream::scan::{self, Separator};
use millstream::{Decode, Error, ErrorKind, ReadAhead, Reader};
use proptest::prelude::*;
use scan_twin::{TYPES, by_reader, byte_by_byte, naive, split};

const COMMA: Separator = Separator::Byte(b',');
const NEWLINE: Separator = Separator::Byte(b'\n');

/// Scans `input` with every kind of source and at every split, and compares with the twin.
fn every_way(words: &str, separator: Separator, input: &[u8]) {
    let expected = naive(words, separator, input);
    let check = |mut reader: Reader, how: &str| {
        let found = by_reader(words, separator, &mut reader);
        assert_eq!(found, expected, "{words} {separator:?} {how}: {}", input.escape_ascii());
    };
    check(Reader::builder().decode(Decode::Off).memory(input.to_vec()).unwrap(), "memory");
    check(byte_by_byte(input), "byte by byte");
    for end in 0..=input.len() {
        check(split(input, &[end], 8), &format!("split at {end}"));
    }
}

/// Values far from the end of the bytes are scanned by different code than values near it. This function appends
/// enough bytes for the former.
fn near_and_far(words: &str, separator: Separator, input: &[u8]) {
    every_way(words, separator, input);
    let filler = match separator {
        Separator::Space => b"\n".repeat(200),
        Separator::Byte(separator) => [b"0", &[separator][..]].concat().repeat(200),
    };
    for between in [&b"\n"[..], b" "] {
        let far = [input, between, &filler].concat();
        let reader = Reader::builder().decode(Decode::Off).memory(far.clone());
        assert_eq!(by_reader(words, separator, &mut reader.unwrap()), naive(words, separator, &far), "{words}");
    }
}

#[test]
fn every_type_at_its_limits_and_beyond() {
    let numbers = [
        "0",
        "-0",
        "+0",
        "00",
        "7",
        "-7",
        "+7",
        "007",
        "127",
        "128",
        "-128",
        "-129",
        "255",
        "256",
        "32767",
        "32768",
        "-32768",
        "-32769",
        "65535",
        "65536",
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728",
        "-170141183460469231731687303715884105728",
        "-170141183460469231731687303715884105729",
        "340282366920938463463374607431768211455",
        "340282366920938463463374607431768211456",
        "99999999999999999999999999999999999999999999",
        "12345678",
        "123456789",
        "1234567890123456",
        "12345678901234567",
        "00000000000000000000000000000000000000000001",
        "",
        "-",
        "+",
        "--1",
        "+-1",
        "-+1",
        "1-",
        "1+",
        "0x10",
        "1_000",
        "1.0",
        "1e3",
        ".5",
        "5.",
        "-.5e-3",
        "1e400",
        "-1e-400",
        "inf",
        "-Infinity",
        "NaN",
        "infinit",
        "nan(1)",
        "e",
        ".",
        "1e",
        "1e+",
        "12345678x",
        "1234567 x",
        "123456789012345678901234x",
        "1\u{660}",
        "\u{0}1",
        "2.2250738585072011e-308",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649",
    ];
    for words in TYPES.iter().filter(|words| !words.contains(' ')) {
        for number in numbers {
            near_and_far(words, Separator::Space, format!("{number} ").as_bytes());
            near_and_far(words, COMMA, format!("{number},").as_bytes());
            every_way(words, Separator::Space, number.as_bytes());
        }
    }
}

#[test]
fn every_count_of_digits_at_every_distance_from_the_end() {
    for count in 1..=40 {
        let number = &"1234567890123456789012345678901234567890"[..count];
        for after in 0..100 {
            let input = format!("{number}{}", " ".repeat(after));
            for words in ["u32", "u64", "u128", "f64"] {
                let mut reader = Reader::memory(input.clone()).unwrap();
                let expected = naive(words, Separator::Space, input.as_bytes());
                assert_eq!(by_reader(words, Separator::Space, &mut reader), expected);
            }
        }
    }
}

/// Pieces of input, most of them numbers.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => any::<u64>().prop_flat_map(|number| (0..64u32).prop_map(move |shift| (number >> shift).to_string())),
        2 => any::<i128>().prop_flat_map(|number| (0..128u32).prop_map(move |shift| (number >> shift).to_string())),
        2 => any::<f64>().prop_map(|number| format!("{number:?}")),
        1 => any::<f32>().prop_map(|number| format!("{number}")),
        6 => prop::sample::select(vec![" ", "\n", ",", "\r\n", "\t", "  ", ",\n"]).prop_map(str::to_owned),
        1 => "[-+.e0-9x,\n\r ]{0,30}",
        1 => " {1,20}",
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
    #[test]
    fn scanning_equals_its_twin(
        input in input(), words in prop::sample::select(TYPES.to_vec()), comma: bool, capacity in 1..300usize,
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let separator = if comma { COMMA } else { Separator::Space };
        let expected = naive(words, separator, &input);
        let mut splits: Vec<usize> = splits.iter().map(|split| split.index(input.len() + 1)).collect();
        splits.sort_unstable();
        prop_assert_eq!(&by_reader(words, separator, &mut split(&input, &splits, capacity)), &expected);
        let mut memory = Reader::builder().decode(Decode::Off).memory(input.clone()).unwrap();
        prop_assert_eq!(&by_reader(words, separator, &mut memory), &expected);
    }

    #[test]
    fn columns_equal_the_values_of_a_reader(
        input in input(),
        separator in prop::sample::select([Separator::Space, COMMA, NEWLINE].into_iter()
            .chain([b'\r', b' '].map(Separator::Byte)).collect::<Vec<_>>()),
    ) {
        for words in ["u64", "f64", "u8 i8"] {
            let shown = |value: Result<String, Error>| value.map_err(|error| (error.kind(), error.offset()));
            let found: Vec<_> = match words {
                "u64" => scan::columns::<u64>(&input, separator).map(|v| shown(v.map(|v| v.to_string()))).collect(),
                "f64" => scan::columns::<f64>(&input, separator).map(|v| shown(v.map(|v| format!("{v:?}")))).collect(),
                _ => scan::columns::<(u8, i8)>(&input, separator)
                    .map(|v| shown(v.map(|(a, b)| format!("{a} {b}")))).collect(),
            };
            let (values, error) = naive(words, separator, &input);
            let expected: Vec<_> = values.into_iter().map(Ok)
                .chain(error.map(|(kind, offset, _)| Err((kind, Some(offset))))).collect();
            prop_assert_eq!(found, expected);
        }
    }

    /// A loop may mix its calls in any way: it gets every byte once, and counts every line once.
    #[test]
    fn mixes_with_lines_words_and_bytes(
        input in "[0-9a-z \n]{0,60}", acts in prop::collection::vec(0..6u8, 1..60), at in any::<prop::sample::Index>(),
    ) {
        let at = at.index(input.len() + 1);
        let mut reader = split(input.as_bytes(), &[at], 8);
        let mut pos = 0;
        // If the last call took a value, the rest of its line is returned once, until the end is reported.
        let mut open = None;
        // Lines that are consumed as bytes are not counted.
        let mut is_consumed = false;
        for act in acts {
            let rest = &input[pos..];
            let words = rest.trim_start_matches([' ', '\n']);
            let start = pos + rest.len() - words.len();
            let word = &words[..words.find([' ', '\n']).unwrap_or(words.len())];
            let line = rest.split_inclusive('\n').next();
            match act {
                0 => {
                    prop_assert_eq!(reader.next_line().unwrap().map(<[u8]>::to_vec), line.map(content));
                    pos += line.map_or(0, str::len);
                }
                1 => {
                    let found = reader.rest_of_line().unwrap().map(<[u8]>::to_vec);
                    let line = line.or((open == Some(pos)).then_some(""));
                    prop_assert_eq!(found, line.map(|line| content(line.trim_start_matches(' '))));
                    pos += line.map_or(0, str::len);
                }
                2 => {
                    let found = reader.next_word().unwrap().map(<[u8]>::to_vec);
                    prop_assert_eq!(found, (!word.is_empty()).then(|| word.as_bytes().to_vec()));
                    pos = start + word.len();
                    open = Some(pos);
                }
                3 => {
                    let found = reader.scan::<u16>();
                    match word.parse::<u16>() {
                        Ok(number) => {
                            prop_assert_eq!(found.unwrap(), Some(number));
                            pos = start + word.len();
                            open = Some(pos);
                        }
                        Err(_) if word.is_empty() => {
                            prop_assert_eq!(found.unwrap(), None);
                            pos = start;
                        }
                        Err(_) => {
                            let error = found.unwrap_err();
                            prop_assert_eq!(error.offset(), Some(start as u64));
                            pos = start;
                        }
                    }
                }
                4 => {
                    let some = reader.buffer().len().min(2);
                    reader.consume(some);
                    pos += some;
                    is_consumed |= some > 0;
                }
                _ => {
                    let found = reader.next_frame(&mut Lines::new()).unwrap().map(<[u8]>::to_vec);
                    prop_assert_eq!(found, line.map(content));
                    pos += line.map_or(0, str::len);
                }
            }
            prop_assert_eq!(reader.position().bytes, pos as u64);
            let lines = input[..pos].matches('\n').count() as u64;
            let counted = reader.position().records;
            let may_be_all = counted == lines + 1 && pos == input.len();
            prop_assert!(is_consumed || counted == lines || may_be_all, "{} of {}", counted, lines);
            let reported_end = match act {
                0 | 1 | 5 => line.is_none(),
                2 | 3 => word.is_empty(),
                _ => false,
            };
            if reported_end {
                open = None;
            }
        }
    }
}

fn content(line: &str) -> Vec<u8> {
    line.strip_suffix('\n').unwrap_or(line).as_bytes().to_vec()
}

/// Enough bytes after a value for the fast path to decide it.
const FAR: &str = "                                                                                                   ";

#[test]
fn a_missing_value_is_after_the_last_one() {
    for (text, line, column) in [("", 1, 1), ("1", 1, 2), ("1\n", 2, 1), ("1\n2 3 ", 2, 5), ("1\n\n", 3, 1)] {
        for capacity in [1, 64] {
            let mut reader = Reader::builder().capacity(capacity).from_read(text.as_bytes()).unwrap();
            while reader.scan::<u8>().unwrap().is_some() {}
            for _ in 0..2 {
                let error = reader.require::<u8>().unwrap_err();
                assert_eq!((error.line(), error.column()), (Some(line), Some(column)), "{text:?}, {capacity}");
                assert_eq!((error.kind(), error.offset()), (ErrorKind::ValueMissing, Some(text.len() as u64)));
            }
        }
    }
}

/// A located error has the place of the last line, even if the start of the stream is no longer in memory.
#[test]
fn an_error_is_located_in_the_last_line() {
    let text = "1\n22\n\n4444444444\r\n55 x\n6";
    for capacity in [1, 8, 64] {
        let mut reader = Reader::builder().name("n").capacity(capacity).from_read(text.as_bytes()).unwrap();
        let mut offset = 0;
        for (number, whole) in text.split_inclusive('\n').enumerate() {
            let len = reader.next_line().unwrap().unwrap().len() as u64;
            let error = reader.locate(Error::new(ErrorKind::NumberInvalid).with_offset(len).with_column(len + 1));
            let place = (error.name(), error.line(), error.column(), error.record(), error.offset());
            let number = number as u64;
            assert_eq!(place, (Some("n"), Some(number + 1), Some(len + 1), Some(number), Some(offset + len)));
            let again = reader.locate(Error::new(ErrorKind::Io).with_name("another"));
            assert_eq!((again.name(), again.line()), (Some("another"), None));
            offset += whole.len() as u64;
        }
    }
    let mut reader = Reader::memory("a;b\n;").unwrap();
    assert_eq!(reader.read_until(b';').unwrap(), Some(&b"a"[..]));
    let error = reader.locate(Error::new(ErrorKind::NumberInvalid).with_offset(0).with_column(1));
    assert_eq!((error.record(), error.line(), error.column(), error.offset()), (Some(0), None, None, None));
}

/// After bytes that a caller has consumed, the line is unknown.
#[test]
fn consumed_bytes_are_not_lines() {
    let mut reader = Reader::memory("1\nxx\nyy\n").unwrap();
    reader.fill().unwrap();
    reader.consume(5);
    let error = reader.scan::<u8>().unwrap_err();
    assert_eq!((error.offset(), error.record(), error.line(), error.column()), (Some(5), Some(0), None, None));
}

#[test]
fn an_error_has_found_expected_and_position() {
    for far in ["", FAR] {
        let mut reader = Reader::builder().name("numbers").memory(format!("1 2\n3 12x4 5{far}")).unwrap();
        assert_eq!(reader.scan::<(u8, u8, u8)>().unwrap(), Some((1, 2, 3)));
        let error = reader.scan::<u8>().unwrap_err();
        assert_eq!((error.kind(), error.offset(), error.record()), (ErrorKind::NumberInvalid, Some(6), Some(1)));
        assert_eq!((error.found(), error.expected()), (Some("12x4"), Some("a u8 (0 to 255)")));
        assert_eq!(
            error.to_string(),
            "numbers: number invalid: found 12x4, expected a u8 (0 to 255), at line 2, column 3; \
             check the input at this position, the separator and the type"
        );
    }
}

#[test]
fn an_error_shows_at_most_64_bytes_and_no_control_characters() {
    let mut reader = Reader::memory(format!("\x1b[2J{}", "x".repeat(100))).unwrap();
    let error = reader.scan::<u32>().unwrap_err();
    assert_eq!(error.found(), Some(format!("\\x1b[2J{}...", "x".repeat(60)).as_str()));
}

#[test]
fn an_empty_field_is_no_number() {
    let mut reader = Reader::memory("1,,2").unwrap();
    assert_eq!(reader.scan_delimited::<u8>(b',').unwrap(), Some(1));
    let error = reader.scan_delimited::<u8>(b',').unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::NumberInvalid, Some(2)));
    assert_eq!(error.found(), Some("an empty field"));
}

#[test]
fn a_separator_that_could_be_part_of_a_number_separates() {
    for far in ["", FAR] {
        for (separator, input, expected) in
            [(b'-', "1-2", vec![1, 2]), (b'5', "1525", vec![1, 2]), (b'e', "1e3", vec![1, 3])]
        {
            let mut reader = Reader::memory(format!("{input}\n{far}")).unwrap();
            let found: Vec<u32> = reader.values().delimited(separator).take(2).collect::<Result<_, _>>().unwrap();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn an_error_is_repeated_until_its_token_is_read() {
    for far in ["", FAR] {
        let mut reader = Reader::memory(format!("7 300 x-y z\n8\n{far}")).unwrap();
        assert_eq!(reader.scan::<u8>().unwrap(), Some(7));
        for _ in 0..2 {
            let error = reader.scan::<u8>().unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::NumberOverflow, Some(2)));
            assert!(error.kind().is_resumable());
        }
        assert_eq!(reader.scan::<u16>().unwrap(), Some(300), "a wider type accepts it");
        assert_eq!(reader.scan::<u8>().unwrap_err().kind(), ErrorKind::NumberInvalid);
        assert_eq!(reader.next_word().unwrap(), Some(&b"x-y"[..]), "a word accepts it");
        assert_eq!(reader.scan::<u8>().unwrap_err().offset(), Some(10));
        assert!(reader.skip_record(&mut Lines::new()).unwrap(), "with the rest of its line it is skipped");
        assert_eq!(reader.scan::<u8>().unwrap(), Some(8));
        assert_eq!(reader.scan::<u8>().unwrap(), None);
        let last_line = u64::from(!far.is_empty());
        assert_eq!(reader.position().records, 2 + last_line);
    }
}

#[test]
fn a_tuple_is_taken_whole_or_not_at_all() {
    for far in ["", FAR] {
        let mut reader = Reader::memory(format!(" 1 2 x 3 4{far}")).unwrap();
        let error = reader.scan::<(u8, u8, u8)>().unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::NumberInvalid, Some(5)));
        assert_eq!(error.expected(), Some("a u8 (0 to 255) as value 3 of 3"));
        assert_eq!(reader.scan::<(u8, u8)>().unwrap(), Some((1, 2)));
        assert_eq!(reader.next_word().unwrap(), Some(&b"x"[..]));
        for _ in 0..2 {
            let error = reader.scan::<(u8, (u8, i8))>().unwrap_err();
            assert_eq!((error.kind(), error.found()), (ErrorKind::ValueMissing, Some("the end of the input")));
            assert_eq!(error.expected(), Some("an i8 (-128 to 127) as value 3 of 3"));
        }
        assert_eq!(reader.scan::<u8>().unwrap(), Some(3));
        assert_eq!(reader.require::<u8>().unwrap(), 4);
        let error = reader.require::<u8>().unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::ValueMissing, Some(10 + far.len() as u64)));
    }
}

#[test]
fn values_return_one_error_and_then_end() {
    let mut reader = Reader::memory("1 x 2").unwrap();
    let kinds: Vec<_> = reader.values::<u8>().map(|value| value.map_err(|error| error.kind())).collect();
    assert_eq!(kinds, [Ok(1), Err(ErrorKind::NumberInvalid)]);
    assert_eq!(reader.next_word().unwrap(), Some(&b"x"[..]), "the reader continues");
    assert_eq!(reader.values::<u8>().collect::<Result<Vec<_>, _>>().unwrap(), [2]);
}

#[test]
fn lines_are_counted_as_lines_are_taken() {
    // There are three lines, the last of which has no line end.
    for input in ["1 2\n3\n4", "1 2\n3\n4 "] {
        let mut reader = Reader::memory(input).unwrap();
        assert_eq!(reader.values::<u8>().count(), 4);
        assert_eq!(reader.position().records, 3);
        assert_eq!(reader.scan::<u8>().unwrap(), None);
        assert_eq!(reader.position().records, 3, "the last line is counted once");
    }
    let mut reader = Reader::memory("1 2\n3\n4 five\n6").unwrap();
    assert_eq!(reader.scan::<(u8, u8, u8, u8)>().unwrap(), Some((1, 2, 3, 4)));
    assert_eq!(reader.position().records, 2, "part of the third line remains");
    assert_eq!(reader.next_line().unwrap(), Some(&b" five"[..]));
    assert_eq!(reader.position().records, 3);
    assert_eq!(reader.next_line().unwrap(), Some(&b"6"[..]));
    assert_eq!(reader.next_line().unwrap(), None);
    assert_eq!(reader.position().records, 4);
    let mut reader = Reader::memory("1\n2").unwrap();
    assert_eq!(reader.scan::<(u8, u8)>().unwrap(), Some((1, 2)));
    assert_eq!(reader.next_line().unwrap(), None);
    assert_eq!(reader.position().records, 2, "scanning took the last line, for any call that reaches the end");
}

#[test]
fn lines_are_counted_over_many_buffers() {
    for read_ahead in [ReadAhead::Off, ReadAhead::On] {
        let mut reader = Reader::builder().capacity(100).read_ahead(read_ahead).command(["seq", "20000"]).unwrap();
        for expected in 1..=20_000_u64 {
            assert_eq!(reader.scan::<u64>().unwrap(), Some(expected));
            if expected % 997 == 0 {
                assert_eq!(reader.position().records, expected - 1);
            }
        }
        assert_eq!(reader.scan::<u64>().unwrap(), None);
        assert_eq!(reader.position().records, 20_000);
    }
}

#[test]
fn the_end_means_that_the_source_succeeded() {
    let mut reader = Reader::command(["sh", "-c", "echo 1 2; exit 3"]).unwrap();
    assert_eq!(reader.scan::<(u8, u8)>().unwrap(), Some((1, 2)));
    assert_eq!(reader.scan::<u8>().unwrap_err().kind(), ErrorKind::CommandFailed);
    assert_eq!(reader.scan::<u8>().unwrap(), None);
    assert_eq!(reader.require::<u8>().unwrap_err().kind(), ErrorKind::ValueMissing);
    // For an incomplete tuple, the source's failure is the cause.
    let mut reader = Reader::command(["sh", "-c", "echo 1; exit 3"]).unwrap();
    assert_eq!(reader.scan::<(u8, u8)>().unwrap_err().kind(), ErrorKind::CommandFailed);
    assert_eq!(reader.scan::<u8>().unwrap(), None);
}

#[test]
fn a_number_that_a_failing_read_cut_off_is_none() {
    for separator in [Separator::Space, COMMA] {
        let mut pieces = [&b"12,\n"[..], b"34"].into_iter();
        let mut reader = Reader::callback(move |space: &mut [u8]| {
            let piece = pieces.next().ok_or_else(|| std::io::Error::other("the disk is on fire"))?;
            space[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        })
        .unwrap();
        assert_eq!(reader.next_frame(&mut Lines::new()).unwrap(), Some(&b"12,"[..]));
        assert_eq!(scan_twin::scan("u8", separator, &mut reader).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(scan_twin::scan("u8", separator, &mut reader).unwrap(), None);
        assert_eq!(reader.next_word().unwrap(), None);
    }
}

#[test]
fn white_space_before_a_value_is_not_kept() {
    // The length is a hundred times the record limit, at each end of a read.
    let mut left = 2_000;
    let mut reader = Reader::builder()
        .record_limit(1 << 10)
        .capacity(512)
        .callback(move |space: &mut [u8]| {
            left -= 1;
            let len = space.len().min(512);
            space[..len].fill(if left % 2 == 0 { b' ' } else { b'\n' });
            if left == 0 {
                space[len - 1] = b'7';
            }
            Ok(if left < 0 { 0 } else { len })
        })
        .unwrap();
    assert_eq!(reader.scan::<(u8,)>().unwrap(), Some((7,)));
    assert_eq!(reader.scan::<u8>().unwrap(), None);
}

#[test]
fn values_over_the_record_limit_are_errors_at_any_split() {
    let limit = 2_000;
    let longest = format!("{}7", "0".repeat(limit - 1));
    let too_long = format!("0{longest}");
    let pair = format!("1{}2", " ".repeat(limit - 2));
    let long_pair = format!("1{}2", " ".repeat(limit - 1));
    let input = format!("{longest} {pair} {too_long} rest\n{long_pair} rest\n\n8\n");
    for capacity in [1, 100, 1 << 20] {
        for byte_wise in [true, false] {
            let mut bytes = std::io::Cursor::new(input.clone().into_bytes());
            let mut reader = Reader::builder()
                .record_limit(limit)
                .capacity(capacity)
                .callback(move |space: &mut [u8]| {
                    let len = if byte_wise { 1 } else { space.len() };
                    std::io::Read::read(&mut bytes, &mut space[..len])
                })
                .unwrap();
            assert_eq!(reader.scan::<u8>().unwrap(), Some(7));
            assert_eq!(reader.scan::<(u8, u8)>().unwrap(), Some((1, 2)));
            for offset in [2 * limit + 2, 3 * limit + 9] {
                for _ in 0..2 {
                    let error = match offset < 3 * limit {
                        true => reader.scan::<u8>().map(|_| ()).unwrap_err(),
                        false => reader.scan::<(u8, u8)>().map(|_| ()).unwrap_err(),
                    };
                    assert_eq!((error.kind(), error.offset()), (ErrorKind::RecordTooLong, Some(offset as u64)));
                }
                assert!(reader.skip_record(&mut Lines::new()).unwrap());
            }
            assert_eq!(reader.scan::<u8>().unwrap(), Some(8));
            assert_eq!(reader.scan::<u8>().unwrap(), None);
            assert_eq!(reader.position().records, 4);
        }
    }
}

#[test]
fn a_low_record_limit_does_not_forbid_numbers() {
    for far in ["", FAR] {
        let mut reader = Reader::builder().record_limit(3).memory(format!("12345 12 1234 123{far}")).unwrap();
        assert_eq!(reader.scan::<(u32, u32)>().unwrap(), Some((12345, 12)));
        assert_eq!(reader.next_word().unwrap_err().kind(), ErrorKind::RecordTooLong);
        reader.consume(5);
        assert_eq!(reader.next_word().unwrap(), Some(&b"123"[..]));
    }
}

#[test]
fn a_long_token_in_small_pieces_takes_no_longer_than_its_length() {
    // If all bytes were examined again for every byte, this would take many minutes.
    let mut left = 1 << 20;
    let mut reader = Reader::callback(move |space: &mut [u8]| {
        left -= 1;
        space[0] = b'0';
        Ok(usize::from(left > 0))
    })
    .unwrap();
    assert_eq!(reader.scan::<u64>().unwrap(), Some(0));
}

#[test]
fn a_column_is_found_after_any_other_columns() {
    let line = b"name, with blank,42,,7";
    assert_eq!(scan::column::<u8>(line, 2, COMMA).unwrap(), 42);
    assert_eq!(scan::column::<u8>(line, 4, COMMA).unwrap(), 7);
    let error = scan::column::<u8>(line, 3, COMMA).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::NumberInvalid, Some(20)));
    for (column, separator) in [(5, COMMA), (9, COMMA), (3, Separator::Space), (9, Separator::Space)] {
        let error = scan::column::<u8>(line, column, separator).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::ValueMissing, Some(22)), "{column} {separator:?}");
    }
}

#[test]
fn a_carriage_return_at_the_end_of_a_line_is_no_line_end() {
    for separator in [NEWLINE, COMMA, Separator::Byte(b' ')] {
        let mut columns = scan::columns::<u32>(b"1\r\n2\r", separator);
        assert_eq!(columns.next().unwrap().unwrap(), 1);
        let error = columns.next().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::NumberInvalid, Some(3)), "{separator:?}");
        assert!(columns.next().is_none());
        assert_eq!(scan::column::<u32>(b"2\r", 0, separator).unwrap_err().kind(), ErrorKind::NumberInvalid);
    }
}

#[test]
fn the_rest_of_the_last_line_is_there_with_and_without_a_line_end() {
    for (input, records) in [("k 1\n", 1), ("k 1", 1), ("k 1 ", 1), ("j\nk 1\r\n", 2), ("j\nk 1", 2)] {
        for mut reader in [Reader::memory(input).unwrap(), byte_by_byte(input.as_bytes())] {
            while reader.next_word().unwrap() != Some(b"k") {}
            assert_eq!(reader.scan::<u8>().unwrap(), Some(1));
            assert_eq!(reader.rest_of_line().unwrap(), Some(&b""[..]), "{input:?}");
            assert_eq!(reader.position().records, records);
            assert_eq!(reader.rest_of_line().unwrap(), None, "{input:?}");
            assert_eq!(reader.position().records, records);
        }
    }
    let mut reader = Reader::command(["sh", "-c", "printf '1 '; exit 3"]).unwrap();
    assert_eq!(reader.scan::<u8>().unwrap(), Some(1));
    assert_eq!(reader.rest_of_line().unwrap_err().kind(), ErrorKind::CommandFailed);
    assert_eq!(reader.rest_of_line().unwrap(), None);
    // A line that an error cut off has no rest.
    let mut pieces = [&b"1 23"[..]].into_iter();
    let mut reader = Reader::callback(move |space: &mut [u8]| {
        let piece = pieces.next().ok_or_else(|| std::io::Error::other("the disk is on fire"))?;
        space[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    })
    .unwrap();
    assert_eq!(reader.scan::<u8>().unwrap(), Some(1));
    assert_eq!(reader.scan::<u8>().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(reader.rest_of_line().unwrap(), None);
}
