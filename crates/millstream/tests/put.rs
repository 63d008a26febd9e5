//! `put!` and its parts, compared with the shared vectors and with the standard library's formatting.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write as _;
use std::num::NonZero;
use std::time::Duration;

use millstream::put::{Integer, Number, Part, Spare, fixed, hex, json, pad, zero_fill};
use millstream::{ErrorKind, FlushPolicy, Writer, put};
use proptest::prelude::*;

const PUT: &str = include_str!("../../../vectors/put.tsv");

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Returns the text of a part, from a writer and from spaces of every size.
fn text_of(part: &dyn Part) -> Vec<u8> {
    let mut writer = Writer::memory().unwrap();
    put!(writer, part).unwrap();
    let text = writer.close().unwrap().memory.unwrap();
    assert!(text.len() <= part.max_len(), "{} bytes of {}", text.len(), part.max_len());
    for more in [0, 1, 15, 16, 17, part.max_len() + 16] {
        let mut bytes = vec![b'~'; text.len() + more];
        let mut spare = Spare::over(&mut bytes);
        spare.put(part);
        assert_eq!((spare.as_bytes(), spare.left()), (&text[..], more));
    }
    // The sizes of the spaces are close to the length of the text, and to the end of the buffer.
    for filled in 0..40 {
        let mut writer = Writer::builder().capacity(64 + part.max_len()).memory().unwrap();
        writer.write(&vec![b'<'; filled]).unwrap();
        put!(writer, "[", part, "]").unwrap();
        let all = writer.close().unwrap().memory.unwrap();
        assert_eq!(all, [&vec![b'<'; filled], &b"["[..], &text, b"]"].concat());
    }
    text
}

fn integer<I: Integer + Number + Part + std::str::FromStr + 'static>(words: &[&str], value: &str) -> Box<dyn Part> {
    let Ok(value) = value.parse::<I>() else { panic!("{value} does not have its kind") };
    let width = || words[1].parse().unwrap();
    match words[0] {
        "hex" => Box::new(hex(value)),
        "pad" => Box::new(pad(value, width())),
        "zero_fill" => Box::new(zero_fill(value, width())),
        _ => Box::new(value),
    }
}

fn part(kind: &str, value: &str) -> Box<dyn Part> {
    let words: Vec<&str> = kind.split(' ').collect();
    let float = || f64::from_bits(u64::from_str_radix(value, 16).unwrap());
    match *words.last().unwrap() {
        "u8" => integer::<u8>(&words, value),
        "u16" => integer::<u16>(&words, value),
        "u32" => integer::<u32>(&words, value),
        "u64" => integer::<u64>(&words, value),
        "u128" => integer::<u128>(&words, value),
        "i8" => integer::<i8>(&words, value),
        "i16" => integer::<i16>(&words, value),
        "i32" => integer::<i32>(&words, value),
        "i64" => integer::<i64>(&words, value),
        "i128" => integer::<i128>(&words, value),
        "f64" if words[0] == "fixed" => Box::new(fixed(float(), words[1].parse().unwrap())),
        "f64" => Box::new(float()),
        "f32" => Box::new(f32::from_bits(u32::from_str_radix(value, 16).unwrap())),
        "bool" => Box::new(value.parse::<bool>().unwrap()),
        "char" => Box::new(char::from_u32(u32::from_str_radix(value, 16).unwrap()).unwrap()),
        "bytes" => Box::new(unhex(value)),
        "json" => Box::new(json(Box::leak(unhex(value).into_boxed_slice()))),
        _ => panic!("unknown kind {kind}"),
    }
}

#[test]
#[cfg_attr(miri, ignore = "the unit tests reach the same unsafe code in less time")]
fn vectors() {
    let mut cases = 0;
    for line in PUT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, kind, value, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("expected four columns: {line}");
        };
        let text = text_of(&*part(kind, value));
        let readable = String::from_utf8_lossy(&text);
        assert_eq!(text, unhex(expected), "{name}: {readable}");
        cases += 1;
    }
    assert!(cases > 0, "the file contains no case");
}

#[test]
fn kinds_of_parts() {
    let mut writer = Writer::memory().unwrap();
    let name = String::from("name");
    let cow: Cow<'_, str> = "cow".into();
    let bytes: Cow<'_, [u8]> = b"bytes"[..].into();
    put!(writer, name, &name, &&*name, *name, '|', cow, bytes, b"array", *b"owned", &b"slice"[..]).unwrap();
    put!(writer, '|', vec![b'v'], 7_usize, -7_isize, NonZero::<u8>::MAX, NonZero::<i128>::MIN,).unwrap();
    put!(writer).unwrap();
    put!(writer,).unwrap();
    let borrowed = &mut writer;
    put!(borrowed, '|').unwrap();
    put!(*borrowed, borrowed.accepted()).unwrap();
    put!(&mut writer, '|', "end").unwrap();
    assert_eq!(name, "name"); // it was not moved
    let expected = "namenamenamename|cowbytesarrayownedslice|v7-7255-170141183460469231731687303715884105728|89|end";
    assert_eq!(String::from_utf8(writer.close().unwrap().memory.unwrap()).unwrap(), expected);
}

#[test]
fn a_hundred_parts() {
    let mut writer = Writer::memory().unwrap();
    macro_rules! ten_of_each {
        ($($x:expr),*) => { put!(writer, $($x, $x, $x, $x, $x, $x, $x, $x, $x, $x),*) };
    }
    ten_of_each!(0, 1, 2, 3, 4, 5, 6, 7, 8, 9).unwrap();
    let expected: Vec<u8> = (b'0'..=b'9').flat_map(|digit| [digit; 10]).collect();
    assert_eq!(writer.close().unwrap().memory.unwrap(), expected);
}

/// A user-defined part that announces one length and writes another.
struct Liar {
    announced: std::cell::Cell<usize>,
    later: usize,
    len: usize,
}

impl Part for Liar {
    fn max_len(&self) -> usize {
        self.announced.replace(self.later)
    }

    fn put(&self, spare: &mut Spare<'_>) {
        for _ in 0..self.len {
            spare.put('x');
        }
    }
}

/// A part that replaces its `Spare` with another one.
struct Swapper;

impl Part for Swapper {
    fn max_len(&self) -> usize {
        4
    }

    fn put(&self, spare: &mut Spare<'_>) {
        let mut other = Spare::over(vec![0; 1000].leak());
        other.put(pad(1, 1000));
        *spare = other;
    }
}

#[test]
fn a_part_with_a_wrong_length_panics_and_leaves_the_writer_unchanged() {
    let liar = |announced: usize, later, len| Liar { announced: announced.into(), later, len };
    for wrong in
        [liar(3, 3, 4), liar(0, 0, 1), liar(100, 5, 100), liar(5, 6, 5), liar(5, 1 << 40, 5), liar(5, usize::MAX, 5)]
    {
        let mut writer = Writer::builder().capacity(256).memory().unwrap();
        put!(writer, "before").unwrap();
        let put = std::panic::AssertUnwindSafe(|| put!(writer, 1, wrong, 2, "three", u128::MAX));
        assert!(std::panic::catch_unwind(put).is_err());
        put!(writer, "after").unwrap();
        assert_eq!(writer.close().unwrap().memory.unwrap(), b"beforeafter");
    }
    let mut writer = Writer::memory().unwrap();
    let put = std::panic::AssertUnwindSafe(|| put!(writer, Swapper, "after"));
    assert!(std::panic::catch_unwind(put).is_err());
    assert_eq!(writer.accepted(), 0);
}

#[test]
#[should_panic(expected = "for a space that has 3 left")]
fn a_spare_that_is_too_small_panics() {
    Spare::over(&mut [0; 3]).put(1234);
}

#[test]
fn display_is_put_into_a_spare_if_it_fits() {
    use std::fmt::Write as _;
    let mut bytes = [0; 4];
    let mut spare = Spare::over(&mut bytes);
    assert!(write!(spare, "{}", 1234).is_ok());
    assert!(write!(spare, "{}", 5).is_err());
    assert_eq!((spare.as_bytes(), spare.is_empty()), (&b"1234"[..], false));
}

#[test]
fn parts_longer_than_the_buffer_go_through_with_every_policy() {
    let policies = [
        FlushPolicy::WhenFull,
        FlushPolicy::Line,
        FlushPolicy::Delay(Duration::ZERO),
        FlushPolicy::Delay(Duration::from_secs(3600)),
    ];
    let long = "0123456789\n".repeat(50);
    for policy in policies {
        for capacity in [1, 16, 17, 100, 4096] {
            let mut writer = Writer::builder().capacity(capacity).flush_policy(policy).memory().unwrap();
            let mut expected = Vec::new();
            for i in 0..20 {
                put!(writer, i, '\n').unwrap();
                put!(writer, long, i, json(&long), '|').unwrap();
                let quoted = format!("{long:?}"); // the same as JSON for this text
                write!(expected, "{i}\n{long}{i}{quoted}|").unwrap();
                assert_eq!(writer.accepted(), expected.len() as u64);
            }
            assert_eq!(writer.close().unwrap().memory.unwrap(), expected);
        }
    }
}

#[test]
fn a_failed_put_has_accepted_no_bytes() {
    for policy in [FlushPolicy::WhenFull, FlushPolicy::Line] {
        let broken = |_: &[u8]| Err(std::io::ErrorKind::BrokenPipe.into());
        let mut writer = Writer::builder().capacity(64).flush_policy(policy).callback(broken).unwrap();
        put!(writer, "kept").unwrap();
        for _ in 0..3 {
            let error = put!(writer, 1, "x".repeat(100), '\n').unwrap_err();
            assert_eq!((error.kind(), writer.accepted()), (ErrorKind::BrokenPipe, 4));
        }
    }
}

#[test]
fn a_line_is_sent_when_it_ends() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut writer = Writer::builder()
        .flush_policy(FlushPolicy::Line)
        .callback(move |bytes: &[u8]| sender.send(bytes.to_vec()).map(|()| bytes.len()).map_err(std::io::Error::other))
        .unwrap();
    put!(writer, "one ", 1, "\ntwo").unwrap();
    assert_eq!(receiver.try_recv().unwrap(), b"one 1\n");
    put!(writer, ' ', 2).unwrap();
    assert!(receiver.try_recv().is_err());
    put!(writer, '\n').unwrap();
    assert_eq!(receiver.try_recv().unwrap(), b"two 2\n");
}

fn same(part: impl Part, expected: impl Display) -> Result<(), TestCaseError> {
    prop_assert_eq!(String::from_utf8(text_of(&part)).unwrap(), expected.to_string());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn integers_equal_their_display(n: i128, shift in 0_u32..128, width in 0_u16..60) {
        let n = n >> shift;
        same(n as i8, n as i8)?;
        same(n as i16, n as i16)?;
        same(n as u32, n as u32)?;
        same(n as i64, n as i64)?;
        same(n as u128, n as u128)?;
        same(n, n)?;
        let to = usize::from(width);
        same(pad(n as i64, width), format!("{:to$}", n as i64))?;
        same(zero_fill(n, width), format!("{n:0to$}"))?;
        same(hex(n as i16), format!("{:x}", n as i16))?;
        same(pad(hex(n), width), format!("{n:to$x}"))?;
        same(zero_fill(hex(n as u32), width), format!("{:0to$x}", n as u32))?;
    }

    #[test]
    fn floats_read_back_as_equal_numbers(bits: u64, digits in 0_u16..40) {
        let x = f64::from_bits(bits);
        let back: f64 = String::from_utf8(text_of(&x)).unwrap().parse().unwrap();
        prop_assert!(back.to_bits() == bits || (x.is_nan() && back.is_nan()));
        let x = f32::from_bits(bits as u32);
        let back: f32 = String::from_utf8(text_of(&x)).unwrap().parse().unwrap();
        prop_assert!(back.to_bits() == bits as u32 || (x.is_nan() && back.is_nan()));
        same(fixed(f64::from_bits(bits), digits), format!("{:.*}", digits.into(), f64::from_bits(bits)))?;
        same(fixed(x, digits), format!("{:.*}", digits.into(), x))?;
    }

    #[test]
    fn json_follows_its_rules(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..40, Just(b'"'), Just(b'\\')], 0..300),
        text in "\\PC*",
        times in 1..20_usize,
    ) {
        for bytes in [bytes.repeat(times), text.repeat(times).into_bytes()] {
            let mut expected = String::from('"');
            for c in String::from_utf8_lossy(&bytes).chars() {
                match c {
                    '"' => expected += "\\\"",
                    '\\' => expected += "\\\\",
                    '\u{8}' => expected += "\\b",
                    '\t' => expected += "\\t",
                    '\n' => expected += "\\n",
                    '\u{c}' => expected += "\\f",
                    '\r' => expected += "\\r",
                    '\0'..='\u{1f}' => expected += &format!("\\u{:04x}", u32::from(c)),
                    _ => expected.push(c),
                }
            }
            expected.push('"');
            same(json(&bytes), expected)?;
        }
    }
}
