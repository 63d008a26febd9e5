//! Records do not depend on how their bytes arrive. Every framer, with any splits and buffer sizes, is compared with
//! a naive implementation, the twin, which gets the whole input in one piece.

use std::io::Read;

use millstream::frame::{
    Delimiter, Endian, Fixed, Framer, LengthPrefixed, Lines, Predicate, PrefixCounts, PrefixWidth, Resume, Step, Trim,
};
use millstream::{Error, ErrorKind, ReadAhead, Reader};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::deadline::within_seconds;
use crate::every_way::{EVERY_READ_AHEAD, every_mode};

/// The kinds of records in the input.
#[derive(Clone, Debug)]
enum Spec {
    Lines,
    UntrimmedLines,
    Byte(u8),
    Bytes(Vec<u8>),
    UntrimmedBytes(Vec<u8>),
    Char(char),
    /// A record ends after a byte below this one.
    Below(u8),
    Fixed(usize),
    Prefixed(PrefixWidth, Endian, PrefixCounts),
}

const LIMIT: usize = 1 << 20;

impl Spec {
    fn framer(&self) -> Box<dyn Framer> {
        match self.clone() {
            Spec::Lines => Box::new(Lines::new()),
            Spec::UntrimmedLines => Box::new(Lines::untrimmed()),
            Spec::Byte(byte) => Box::new(Delimiter::byte(byte)),
            Spec::Bytes(bytes) => Box::new(Delimiter::bytes(bytes).unwrap()),
            Spec::UntrimmedBytes(bytes) => Box::new(Delimiter::bytes(bytes).unwrap().untrimmed()),
            Spec::Char(char) => Box::new(Delimiter::char(char)),
            Spec::Below(bound) => Box::new(Predicate::new(move |byte| byte < bound)),
            Spec::Fixed(len) => Box::new(Fixed::new(len).unwrap()),
            Spec::Prefixed(width, endian, counts) => Box::new(LengthPrefixed::new(width, endian).counts(counts)),
        }
    }

    /// Returns the records of `input`, and how it ends.
    fn naive(&self, input: &[u8]) -> Naive {
        match self {
            Spec::Lines => {
                let mut naive = delimited(input, b"\n", false);
                for (record, end) in naive.records.iter_mut().zip(&naive.ends) {
                    if input[..*end].ends_with(b"\r\n") {
                        record.pop();
                    }
                }
                naive
            }
            Spec::UntrimmedLines => delimited(input, b"\n", true),
            Spec::Byte(byte) => delimited(input, &[*byte], false),
            Spec::Bytes(bytes) => delimited(input, bytes, false),
            Spec::UntrimmedBytes(bytes) => delimited(input, bytes, true),
            Spec::Char(char) => delimited(input, char.encode_utf8(&mut [0; 4]).as_bytes(), false),
            Spec::Below(bound) => {
                let mut naive = Naive::default();
                let mut record = Vec::new();
                for (i, &byte) in input.iter().enumerate() {
                    match byte < *bound {
                        true => naive.push(std::mem::take(&mut record), i + 1),
                        false => record.push(byte),
                    }
                }
                if !record.is_empty() {
                    naive.push(record, input.len());
                }
                naive
            }
            Spec::Fixed(len) => {
                let mut naive = Naive::default();
                for chunk in input.chunks(*len) {
                    match chunk.len() == *len {
                        true => naive.push(chunk.to_vec(), naive.end() + len),
                        false => naive.error = Some(ErrorKind::FrameTruncated),
                    }
                }
                naive
            }
            Spec::Prefixed(width, endian, counts) => prefixed(input, *width, *endian, *counts),
        }
    }
}

/// The result of the twin: the contents of the records, their ends, and the error after them.
#[derive(Debug, Default)]
struct Naive {
    records: Vec<Vec<u8>>,
    ends: Vec<usize>,
    error: Option<ErrorKind>,
}

impl Naive {
    fn push(&mut self, record: Vec<u8>, end: usize) {
        self.records.push(record);
        self.ends.push(end);
    }

    fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

fn delimited(input: &[u8], delimiter: &[u8], keep: bool) -> Naive {
    let mut naive = Naive::default();
    let mut start = 0;
    while start < input.len() {
        let found = input[start..].windows(delimiter.len()).position(|window| window == delimiter);
        let (content, end) = match found {
            Some(at) => (start + at, start + at + delimiter.len()),
            None => (input.len(), input.len()),
        };
        naive.push(input[start..if keep { end } else { content }].to_vec(), end);
        start = end;
    }
    naive
}

fn prefixed(input: &[u8], width: PrefixWidth, endian: Endian, counts: PrefixCounts) -> Naive {
    let width = match width {
        PrefixWidth::U8 => 1,
        PrefixWidth::U16 => 2,
        PrefixWidth::U32 => 4,
        PrefixWidth::U64 => 8,
    };
    let mut naive = Naive::default();
    let mut rest = input;
    while !rest.is_empty() && naive.error.is_none() {
        let Some(prefix) = rest.get(..width) else {
            naive.error = Some(ErrorKind::FrameTruncated);
            break;
        };
        let fold = |length: u128, byte: &u8| length << 8 | u128::from(*byte);
        let length = match endian {
            Endian::Big => prefix.iter().fold(0, fold),
            Endian::Little => prefix.iter().rev().fold(0, fold),
        };
        let whole = match counts {
            PrefixCounts::Payload => length + width as u128,
            PrefixCounts::Itself => length,
        };
        if whole < width as u128 {
            naive.error = Some(ErrorKind::LengthInvalid);
        } else if whole > LIMIT as u128 {
            naive.error = Some(ErrorKind::RecordTooLong);
        } else if whole > rest.len() as u128 {
            naive.error = Some(ErrorKind::FrameTruncated);
        } else {
            let (record, after) = rest.split_at(whole as usize);
            naive.push(record[width..].to_vec(), naive.end() + record.len());
            rest = after;
        }
    }
    naive
}

/// A source that delivers the input in pieces of these sizes, which are repeated, or as a whole if there are none.
struct Torn {
    input: Vec<u8>,
    sizes: Vec<usize>,
    at: usize,
    calls: usize,
}

impl Torn {
    fn new(input: &[u8], sizes: &[usize]) -> Torn {
        Torn { input: input.to_vec(), sizes: sizes.to_vec(), at: 0, calls: 0 }
    }
}

impl Read for Torn {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let size = if self.sizes.is_empty() { usize::MAX } else { self.sizes[self.calls % self.sizes.len()] };
        self.calls += 1;
        let left = &self.input[self.at..];
        let n = size.min(left.len()).min(space.len());
        space[..n].copy_from_slice(&left[..n]);
        self.at += n;
        Ok(n)
    }
}

/// The ways to request the next records.
#[derive(Clone, Copy, Debug)]
enum Ask {
    One,
    Batch,
    Skip,
}

/// Reads `input` with every request of `asks` in turn, and compares with the twin.
fn check(spec: &Spec, input: &[u8], sizes: &[usize], capacity: usize, read_ahead: ReadAhead, asks: &[Ask]) {
    let expected = spec.naive(input);
    let what = || format!("{spec:?} of {input:?} in {sizes:?}, capacity {capacity}, {read_ahead:?}, {asks:?}");
    let builder = Reader::builder().capacity(capacity).read_ahead(read_ahead).record_limit(LIMIT);
    let builder = builder.decode(millstream::Decode::Off);
    let mut reader = builder.from_read(Torn::new(input, sizes)).unwrap();
    let mut framer = spec.framer();
    let mut next = 0;
    let mut asks = asks.iter().cycle();
    let error = loop {
        let before = next;
        let result = match asks.next().unwrap_or(&Ask::One) {
            Ask::One => reader.next_frame(&mut framer).map(|record| {
                let Some(record) = record else { return };
                assert_eq!(Some(record), expected.records.get(next).map(Vec::as_slice), "{}", what());
                next += 1;
            }),
            Ask::Batch => reader.next_batch(&mut framer).map(|batch| {
                let Some(batch) = batch else { return };
                for i in 0..batch.len() {
                    assert_eq!(batch.get(i), expected.records.get(next).map(Vec::as_slice), "{}", what());
                    next += 1;
                }
            }),
            Ask::Skip => reader.skip_record(&mut framer).map(|skipped| next += usize::from(skipped)),
        };
        assert!(next <= expected.records.len(), "more records than there are: {}", what());
        if result.is_ok() {
            let end = if next == 0 { 0 } else { expected.ends[next - 1] };
            let position = reader.position();
            assert_eq!((position.records, position.bytes), (next as u64, end as u64), "{}", what());
        }
        match result {
            Ok(()) if next > before => {}
            Ok(()) => break None,
            Err(error) => break Some(error),
        }
    };
    assert_eq!(next, expected.records.len(), "{}", what());
    match (error, expected.error) {
        (None, None) => {}
        (Some(error), Some(kind)) => {
            // A length beyond all memory may be reported as invalid or as too long.
            let same =
                error.kind() == kind || (kind == ErrorKind::RecordTooLong && error.kind() == ErrorKind::LengthInvalid);
            // Skipping may pass a record that is too long, and find that it never ends.
            let skipped = kind == ErrorKind::RecordTooLong && error.kind() == ErrorKind::FrameTruncated;
            assert!(same || skipped, "{error}, expected {kind}: {}", what());
            assert_eq!(error.record(), Some(next as u64), "{error}: {}", what());
            assert_eq!(error.offset(), Some(expected.end() as u64), "{error}: {}", what());
        }
        (error, expected) => panic!("{error:?}, expected {expected:?}: {}", what()),
    }
}

#[test]
fn every_split_point_and_capacity() {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let u8_prefixed = |counts| Spec::Prefixed(PrefixWidth::U8, Endian::Little, counts);
    let cases = [
        (Spec::Lines, bytes("a\r\n\nbc\n\r\n\r")),
        (Spec::Lines, bytes("\n\n\n")),
        (Spec::Lines, bytes("no end")),
        (Spec::UntrimmedLines, bytes("a\r\n\nbc\n\r\n\r")),
        (Spec::Byte(0), b"a\0\0\xff\xfe\0\n".to_vec()),
        (Spec::Bytes(bytes("--")), bytes("a---b-----c-")),
        (Spec::Bytes(bytes("aab")), bytes("aaabaabaa")),
        (Spec::UntrimmedBytes(bytes("\r\n")), bytes("a\r\n\r\r\nb\n\r")),
        (Spec::Char('→'), bytes("a→→b→")),
        (Spec::Char('→'), b"a\xe2\x86b\xe2\x86\x92c\xe2".to_vec()),
        (Spec::Below(b'0'), bytes("12 3,,4")),
        (Spec::Fixed(1), bytes("abc")),
        (Spec::Fixed(3), bytes("abcdef")),
        (Spec::Fixed(3), bytes("abcdefg")),
        (u8_prefixed(PrefixCounts::Payload), b"\x03abc\x00\x01d".to_vec()),
        (u8_prefixed(PrefixCounts::Payload), b"\x03abc\x02d".to_vec()),
        (u8_prefixed(PrefixCounts::Itself), b"\x04abc\x01\x02d".to_vec()),
        (u8_prefixed(PrefixCounts::Itself), b"\x04abc\x00\x02d".to_vec()),
        (Spec::Prefixed(PrefixWidth::U32, Endian::Big, PrefixCounts::Payload), b"\0\0\0\x02ab\0\0\0".to_vec()),
    ];
    for (spec, input) in cases {
        for capacity in 1..=input.len() + 1 {
            for split in 0..=input.len() {
                // The input arrives in two pieces, split at each point, or as single bytes.
                let sizes = if split == 0 { vec![1] } else { vec![split, input.len()] };
                for read_ahead in EVERY_READ_AHEAD {
                    let ask = [Ask::One, Ask::Batch, Ask::Skip][(capacity + split) % 3];
                    check(&spec, &input, &sizes, capacity, read_ahead, &[ask]);
                }
            }
        }
    }
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let width =
        prop_oneof![Just(PrefixWidth::U8), Just(PrefixWidth::U16), Just(PrefixWidth::U32), Just(PrefixWidth::U64)];
    let endian = prop_oneof![Just(Endian::Little), Just(Endian::Big)];
    let counts = prop_oneof![Just(PrefixCounts::Payload), Just(PrefixCounts::Itself)];
    prop_oneof![
        Just(Spec::Lines),
        Just(Spec::UntrimmedLines),
        any_byte().prop_map(Spec::Byte),
        vec(any_byte(), 1..4).prop_map(Spec::Bytes),
        vec(any_byte(), 1..4).prop_map(Spec::UntrimmedBytes),
        prop_oneof![Just('\n'), Just('a'), Just('é'), Just('→'), any::<char>()].prop_map(Spec::Char),
        any_byte().prop_map(Spec::Below),
        (1..20_usize).prop_map(Spec::Fixed),
        (width, endian, counts).prop_map(|(width, endian, counts)| Spec::Prefixed(width, endian, counts)),
    ]
}

/// A small set of bytes, so that delimiters, parts of delimiters and small lengths are frequent.
fn any_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        8 => prop::sample::select(&b"\n\r\na\x00\x01\x02\x03\xe2\x86\x92"[..]),
        1 => any::<u8>(),
    ]
}

fn any_ask() -> impl Strategy<Value = Ask> {
    prop_oneof![3 => Just(Ask::One), 2 => Just(Ask::Batch), 1 => Just(Ask::Skip)]
}

/// A call that takes data from a reader. A reader may get calls of all kinds.
#[derive(Clone, Debug)]
enum Call {
    NextLine,
    ReadUntil(u8),
    Batch(Spec),
    Frame(Spec),
    Skip(Spec),
    Consume(usize),
    Read(usize),
    Fill,
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => Just(Call::NextLine),
        2 => any_byte().prop_map(Call::ReadUntil),
        2 => Just(Call::Batch(Spec::Lines)),
        1 => any_spec().prop_map(Call::Batch),
        1 => any_spec().prop_map(Call::Frame),
        1 => any_spec().prop_map(Call::Skip),
        2 => (0..30_usize).prop_map(Call::Consume),
        1 => (0..30_usize).prop_map(Call::Read),
        1 => Just(Call::Fill),
    ]
}

/// Makes one call. Returns how many bytes of `rest`, which is all the remaining data, it took, or `None` at the end or
/// at an error.
fn make(call: &Call, reader: &mut Reader, rest: &[u8]) -> Option<usize> {
    let one = |spec: &Spec, record: Option<&[u8]>| -> Option<usize> {
        let expected = spec.naive(rest);
        assert_eq!(record, expected.records.first().map(Vec::as_slice), "{call:?} of {rest:?}");
        expected.ends.first().copied()
    };
    let bad = |spec: &Spec, error: Error| -> Option<usize> {
        let expected = spec.naive(rest);
        assert!(expected.records.is_empty() && expected.error.is_some(), "{call:?} of {rest:?}: {error}");
        None
    };
    match call {
        Call::NextLine => one(&Spec::Lines, reader.next_line().unwrap()),
        Call::ReadUntil(byte) => one(&Spec::Byte(*byte), reader.read_until(*byte).unwrap()),
        Call::Frame(spec) => match reader.next_frame(&mut spec.framer()) {
            Ok(record) => one(spec, record),
            Err(error) => bad(spec, error),
        },
        Call::Skip(spec) => match reader.skip_record(&mut spec.framer()) {
            Ok(skipped) => {
                let expected = spec.naive(rest);
                assert_eq!(skipped, !expected.records.is_empty(), "{call:?} of {rest:?}");
                expected.ends.first().copied()
            }
            Err(error) => bad(spec, error),
        },
        Call::Batch(spec) => match reader.next_batch(&mut spec.framer()) {
            Ok(Some(batch)) => {
                let expected = spec.naive(rest);
                let records: Vec<&[u8]> = batch.iter().collect();
                assert_eq!(records, expected.records[..batch.len()], "{call:?} of {rest:?}");
                Some(expected.ends[batch.len() - 1])
            }
            Ok(None) => {
                assert!(spec.naive(rest).records.is_empty(), "{call:?} of {rest:?}");
                None
            }
            Err(error) => bad(spec, error),
        },
        Call::Consume(n) => {
            let unread = reader.buffer();
            assert!(rest.starts_with(unread), "{unread:?} of {rest:?}");
            let n = *n.min(&unread.len());
            reader.consume(n);
            Some(n)
        }
        Call::Read(n) => {
            let mut piece = vec![0; *n];
            let n = reader.read(&mut piece).unwrap();
            assert!(rest.starts_with(&piece[..n]), "{piece:?} of {rest:?}");
            assert!(n > 0 || piece.is_empty() || rest.is_empty(), "no bytes, although {rest:?} is left");
            Some(n)
        }
        Call::Fill => {
            let before = reader.buffer().len();
            let added = reader.fill().unwrap();
            assert_eq!(reader.buffer().len(), before + added);
            assert!(rest.starts_with(reader.buffer()));
            assert!(added > 0 || reader.buffer() == rest, "no more bytes, although {rest:?} is left");
            Some(0)
        }
    }
}

proptest! {
    // The failing case is printed; add it to `vectors` or as a separate test, not to a file of seeds.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_in_any_pieces(
        spec in any_spec(),
        input in vec(any_byte(), 0..300),
        sizes in vec(1..40_usize, 0..6),
        capacity in 1..100_usize,
        read_ahead in prop::sample::select(&EVERY_READ_AHEAD[..]),
        asks in vec(any_ask(), 0..4),
    ) {
        check(&spec, &input, &sizes, capacity, read_ahead, &asks);
    }

    /// Bytes that one call has scanned ahead must not affect the next call.
    #[test]
    fn calls_of_all_kinds_can_be_mixed(
        calls in vec(any_call(), 0..60),
        input in vec(any_byte(), 0..500),
        sizes in vec(1..60_usize, 0..6),
        capacity in 1..200_usize,
        read_ahead in prop::sample::select(&EVERY_READ_AHEAD[..]),
    ) {
        let builder = Reader::builder().capacity(capacity).read_ahead(read_ahead).record_limit(LIMIT);
        let mut reader = builder.decode(millstream::Decode::Off).from_read(Torn::new(&input, &sizes)).unwrap();
        let mut at = 0;
        for call in &calls {
            match make(call, &mut reader, &input[at..]) {
                Some(taken) => at += taken,
                None => break,
            }
            prop_assert_eq!(reader.position().bytes, at as u64, "after {:?}", call);
        }
    }
}

/// Records of many lengths through the default buffers, which use the fast paths.
#[test]
fn long_input_through_default_buffers() {
    let mut input = Vec::new();
    for i in 0..60_000_usize {
        let len = match i % 1000 {
            0 => 100_000,
            n if n < 500 => n % 13,
            n => n % 211,
        };
        input.extend(std::iter::repeat_n(b"abcdefg"[i % 7], len));
        input.extend_from_slice(if i % 3 == 0 { b"\r\n" } else { b"\n" });
    }
    for spec in [Spec::Lines, Spec::UntrimmedLines, Spec::Byte(b'\r'), Spec::Bytes(b"\r\n".to_vec()), Spec::Fixed(97)] {
        for read_ahead in EVERY_READ_AHEAD {
            for asks in [&[Ask::One][..], &[Ask::Batch], &[Ask::One, Ask::Batch, Ask::Skip]] {
                check_long(&spec, &input, read_ahead, asks);
            }
        }
    }
}

/// Works like [`check`], with messages that do not quote megabytes.
fn check_long(spec: &Spec, input: &[u8], read_ahead: ReadAhead, asks: &[Ask]) {
    let result =
        std::panic::catch_unwind(|| check(spec, input, &[65_536, 1, 30_000, 400_000], 64 << 10, read_ahead, asks));
    assert!(result.is_ok(), "{spec:?} {read_ahead:?} {asks:?}");
}

#[test]
fn a_batch_contains_all_records_read_with_its_first_one() {
    let mut reader = Reader::memory("one\ntwo\nthree\n").unwrap();
    let batch = reader.next_batch(&mut Lines::new()).unwrap().unwrap();
    assert_eq!(batch.iter().collect::<Vec<_>>(), [&b"one"[..], b"two", b"three"]);
    // The same applies to a batch whose first record began in bytes that had been read before.
    let mut pieces = [&b"one\ntw"[..], b"o\nthree\nfour\n"].into_iter();
    let mut reader = Reader::callback(move |space| {
        let piece = pieces.next().unwrap_or_default();
        space[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    })
    .unwrap();
    let mut lines = Lines::new();
    let lens = std::iter::from_fn(|| reader.next_batch(&mut lines).unwrap().map(|batch| batch.len()));
    assert_eq!(lens.collect::<Vec<_>>(), [1, 3]);
    assert_eq!(reader.position().records, 4);
}

#[test]
fn given_back_records_are_read_by_every_other_call() {
    let mut reader = Reader::memory("header\n1 2\nthree\nlast").unwrap();
    let mut lines = Lines::new();
    assert_eq!(reader.next_batch(&mut lines).unwrap().unwrap().len(), 3);
    // The first request has too many records, the second exactly enough: an error has no effect.
    let error = reader.give_back(4).unwrap_err();
    assert_eq!((error.kind(), error.found()), (ErrorKind::ArgumentInvalid, Some("4 records to put back")));
    reader.give_back(3).unwrap();
    assert_eq!(reader.next_batch(&mut lines).unwrap().unwrap().len(), 3);
    reader.give_back(2).unwrap();
    assert!(reader.give_back(1).is_err(), "a second time");
    assert_eq!(reader.scan::<u8>().unwrap(), Some(1));
    assert!(reader.give_back(1).is_err(), "after another call");
    assert_eq!(reader.rest_of_line().unwrap(), Some(&b"2"[..]));
    assert_eq!(reader.next_line().unwrap(), Some(&b"three"[..]));
    // This is the unterminated last record, at the end of the stream.
    let batch = reader.next_batch(&mut lines).unwrap().unwrap();
    assert_eq!((batch.len(), batch.offset()), (1, 17));
    reader.give_back(1).unwrap();
    assert_eq!(reader.next_line().unwrap(), Some(&b"last"[..]));
    assert_eq!(reader.next_line().unwrap(), None);
    assert!(reader.give_back(1).is_err(), "after the end");
    assert_eq!((reader.position().bytes, reader.position().records), (21, 4));
}

#[test]
fn records_cannot_be_given_back_after_a_fill() {
    let pieces = |mode: ReadAhead| {
        let mut pieces = [&b"a\nb\n"[..], b"c\nd\n"].into_iter();
        let callback = move |space: &mut [u8]| {
            let piece = pieces.next().unwrap_or_default();
            space[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        };
        Reader::builder().read_ahead(mode).callback(callback).unwrap()
    };
    for mode in EVERY_READ_AHEAD {
        let mut reader = pieces(mode);
        assert_eq!(reader.next_batch(&mut Lines::new()).unwrap().unwrap().len(), 2);
        reader.fill().unwrap();
        assert!(reader.give_back(1).is_err());
        assert_eq!(reader.next_line().unwrap(), Some(&b"c"[..]));
    }
}

/// A framer that violates its contract causes an error, not an endless loop.
#[test]
fn framers_that_cannot_be_right() {
    struct Wrong(fn(&[u8]) -> Step);
    impl Framer for Wrong {
        fn step(&mut self, input: &[u8], _: Resume, _: bool) -> Step {
            (self.0)(input)
        }
        fn trim(&self) -> Trim {
            Trim { head: 0, tail: 0, carriage_return: false }
        }
    }
    type Answer = fn(&[u8]) -> Step;
    let wrongs: [(Answer, ErrorKind); 5] = [
        (|_| Step::More { resume: Resume::START, need: 0 }, ErrorKind::FrameTruncated),
        (|input| Step::More { resume: Resume::after(input.len()), need: 0 }, ErrorKind::FrameTruncated),
        (|input| Step::More { resume: Resume::START, need: input.len() as u64 + 1 }, ErrorKind::FrameTruncated),
        (|_| Step::Record { len: 0, terminated: true }, ErrorKind::LengthInvalid),
        (|input| Step::Record { len: input.len() + 1, terminated: true }, ErrorKind::LengthInvalid),
    ];
    for (step, kind) in wrongs {
        for mode in every_mode() {
            within_seconds(60, move || {
                let open = || mode.builder().command(["printf", "some bytes"]).unwrap();
                assert_eq!(open().next_frame(&mut Wrong(step)).unwrap_err().kind(), kind);
                assert_eq!(open().next_batch(&mut Wrong(step)).map(drop).unwrap_err().kind(), kind);
                let skipped = open().skip_record(&mut Wrong(step));
                // Scanned bytes are no longer available when a record is skipped.
                assert!(
                    skipped.is_err() || matches!(step(b"x"), Step::More { resume, .. } if resume.scanned() == 1),
                    "{skipped:?}"
                );
            });
        }
    }
}
