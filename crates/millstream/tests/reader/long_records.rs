//! A very long record is delivered completely if it is below the limit. Above the limit, there is an error with the
//! record's position, and the reader can continue.

use std::io::{Read, Write, repeat};

use millstream::frame::{Fixed, Framer, LengthPrefixed, Lines, PrefixWidth, Resume, Step};
use millstream::{CancelToken, ErrorKind, Reader};

use crate::alone::alone;
use crate::deadline::within_seconds;
use crate::every_way::every_mode;

const MIB: usize = 1 << 20;
const LONG: usize = 100 * MIB;

/// `one`, a line of `long` bytes without its delimiter, `three`, `four`.
fn with_long_line(long: usize) -> impl Read + Send + 'static {
    (&b"one\n"[..]).chain(repeat(b'x').take(long as u64)).chain(&b"\nthree\r\nfour"[..])
}

#[test]
fn a_line_of_100_mib_under_the_limit() {
    for mode in every_mode() {
        let mut reader = mode.builder().record_limit(LONG + 1).from_read(with_long_line(LONG)).unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
        let line = reader.next_line().unwrap().unwrap();
        assert_eq!(line.len(), LONG);
        assert!(line.iter().all(|&byte| byte == b'x'));
        assert_eq!(reader.position().bytes, (4 + LONG + 1) as u64);
        assert_eq!(reader.next_line().unwrap(), Some(&b"three"[..]));
        assert_eq!(reader.next_line().unwrap(), Some(&b"four"[..]));
        assert_eq!(reader.next_line().unwrap(), None);
        assert_eq!(reader.progress().longest_record, LONG + 1);
    }
}

#[test]
fn a_line_of_100_mib_over_the_limit() {
    // 64 MiB is the limit unless another one is set.
    for limit in [None, Some(MIB), Some(4)] {
        for mode in every_mode() {
            let builder = mode.builder();
            let builder = if let Some(limit) = limit { builder.record_limit(limit) } else { builder };
            let mut reader = builder.from_read(with_long_line(LONG)).unwrap();
            assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
            let error = reader.next_line().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::RecordTooLong, "{error}");
            assert!(error.kind().is_resumable());
            assert_eq!((error.record(), error.offset()), (Some(1), Some(4)), "{error}");

            if limit == Some(4) {
                continue; // `three` is too long as well
            }
            assert!(reader.skip_record(&mut Lines::new()).unwrap());
            let position = reader.position();
            assert_eq!((position.records, position.bytes), (2, (4 + LONG + 1) as u64));
            assert_eq!(reader.next_line().unwrap(), Some(&b"three"[..]));
            assert_eq!(reader.next_line().unwrap(), Some(&b"four"[..]));
            assert_eq!(reader.next_line().unwrap(), None);
            assert_eq!(reader.position().records, 4);
        }
    }
}

/// The limit counts the content, without the delimiter.
#[test]
fn the_limit_is_exact() {
    for mode in every_mode() {
        for len in 1..200_usize {
            for end in ["\n", "\r\n", ""] {
                // A line that just fits comes first, since its length is the threshold for the next one.
                let first = [&b"y".repeat(len)[..], b"\r\n"].concat();
                let input = [&first[..], &b"x".repeat(len), end.as_bytes()].concat();
                let mut fits = mode.builder().record_limit(len).memory(input).unwrap();
                assert_eq!(fits.next_line().unwrap().unwrap().len(), len);
                assert_eq!(fits.next_line().unwrap().unwrap().len(), len);
                let input = [&first[..], &b"x".repeat(len + 1), end.as_bytes()].concat();
                let mut short = mode.builder().record_limit(len).memory(input).unwrap();
                assert_eq!(short.next_line().unwrap().unwrap().len(), len);
                let kind = short.next_line().map(|_| ()).unwrap_err().kind();
                assert_eq!(kind, ErrorKind::RecordTooLong, "{mode:?} {len} {end:?}");
            }
        }
    }
}

/// Without `skip_record`, reading cannot continue after the record: repeating the error indefinitely would be an
/// endless loop, and skipping silently would lose data.
#[test]
fn a_long_record_is_not_lost_by_asking_again() {
    for mode in every_mode() {
        let mut reader = mode.builder().record_limit(16).memory(b"a\n12345678901234567890\nb\n".as_slice()).unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&b"a"[..]));
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::RecordTooLong);
        // It is reported once; the following data is not mistaken for the next record.
        if let Ok(Some(line)) = reader.next_line() {
            panic!("{:?} although no record was skipped", String::from_utf8_lossy(line));
        }
    }
}

#[test]
fn several_long_records_each_have_their_number() {
    let input: Vec<u8> = (0..20_usize).flat_map(|i| [&b"x".repeat(i * 10)[..], b"\n"].concat()).collect();
    for mode in every_mode() {
        let mut reader = mode.builder().capacity(64).record_limit(100).memory(input.clone()).unwrap();
        let (mut offset, mut good, mut bad) = (0, 0, 0);
        for record in 0..20 {
            let len = record * 10 + 1;
            match reader.next_line() {
                Ok(Some(line)) => {
                    assert_eq!(line.len() as u64, len - 1);
                    good += 1;
                }
                Ok(None) => panic!("the end before record {record}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::RecordTooLong);
                    assert_eq!((error.record(), error.offset()), (Some(record), Some(offset)));
                    assert!(reader.skip_record(&mut Lines::new()).unwrap());
                    bad += 1;
                }
            }
            offset += len;
            assert_eq!((reader.position().records, reader.position().bytes), (record + 1, offset));
        }
        assert_eq!(reader.next_line().unwrap(), None);
        assert_eq!((good, bad), (11, 9));
    }
}

/// Skipping works for any record and any framer.
#[test]
fn skipping_good_records() {
    for mode in every_mode() {
        let mut reader = mode.builder().memory(b"a\nbb\nccc".as_slice()).unwrap();
        assert!(reader.skip_record(&mut Lines::new()).unwrap());
        assert_eq!(reader.next_line().unwrap(), Some(&b"bb"[..]));
        assert!(reader.skip_record(&mut Lines::new()).unwrap());
        assert!(!reader.skip_record(&mut Lines::new()).unwrap());
        assert_eq!((reader.position().records, reader.position().bytes), (3, 8));
    }
}

/// A record that arrives byte by byte can be skipped without a call that waits, and is one record.
#[test]
fn skipping_what_has_arrived() {
    let prefixed = || LengthPrefixed::new(PrefixWidth::U8, millstream::frame::Endian::Big);
    let framers: [(&[u8], Box<dyn Framer>); 3] = [
        (b"one line\nb\n", Box::new(Lines::new())),
        (b"\x08one line\x01b", Box::new(prefixed())),
        (b"one line.b", Box::new(Fixed::new(9).unwrap())),
    ];
    for (input, mut framer) in framers {
        for limit in [4, 64 * MIB] {
            let mut reader = Reader::builder().record_limit(limit).from_read(OneByte(input)).unwrap();
            if limit == 4 {
                assert_eq!(reader.next_frame(&mut framer).unwrap_err().kind(), ErrorKind::RecordTooLong);
            } else {
                assert!(!reader.skip_buffered(&mut framer).unwrap(), "nothing has arrived");
                assert_eq!(reader.position().bytes, 0);
            }
            while !reader.skip_buffered(&mut framer).unwrap() {
                assert_eq!(reader.position().records, 0);
                reader.fill().unwrap();
            }
            assert_eq!((reader.position().records, reader.position().bytes), (1, 9));
            reader.fill().unwrap();
            assert!(reader.skip_record(&mut framer).is_ok_and(|skipped| skipped) || input.ends_with(b".b"));
        }
        // What is left of a record is never a record.
        let mut reader = Reader::from_read(OneByte(input)).unwrap();
        reader.fill().unwrap();
        assert!(!reader.skip_buffered(&mut framer).unwrap());
        if !input.ends_with(b".b") {
            assert_eq!(reader.next_frame(&mut framer).unwrap(), Some(&b"b"[..]));
            assert_eq!(reader.position().records, 2);
        }
    }
}

/// A source of one byte at a time.
struct OneByte(&'static [u8]);

impl Read for OneByte {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let len = 1.min(into.len());
        self.0.read(&mut into[..len])
    }
}

#[test]
fn records_that_announce_their_length_are_refused_before_they_are_read() {
    let prefixed = || LengthPrefixed::new(PrefixWidth::U64, millstream::frame::Endian::Big);
    for mode in every_mode() {
        for length in [65 * MIB as u64, 1 << 40, u64::MAX - 8, u64::MAX] {
            let source = std::io::Cursor::new(length.to_be_bytes()).chain(repeat(0));
            let mut reader = mode.builder().from_read(source).unwrap();
            let error = reader.next_frame(&mut prefixed()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::RecordTooLong | ErrorKind::LengthInvalid), "{error}");
            assert_eq!((error.record(), error.offset()), (Some(0), Some(0)), "{error}");
            assert!(reader.progress().source_bytes < 64 * MIB as u64, "{mode:?}: read although it is too long");
        }
        // A record that is too long but complete can be skipped.
        let long = 65 * MIB;
        let next = [&1_u64.to_be_bytes()[..], b"z"].concat();
        let source = std::io::Cursor::new((long as u64).to_be_bytes()).chain(repeat(0).take(long as u64));
        let mut reader = mode.builder().from_read(source.chain(std::io::Cursor::new(next))).unwrap();
        assert_eq!(reader.next_frame(&mut prefixed()).unwrap_err().kind(), ErrorKind::RecordTooLong);
        assert!(reader.skip_record(&mut prefixed()).unwrap());
        assert_eq!(reader.next_frame(&mut prefixed()).unwrap(), Some(&b"z"[..]));
        assert_eq!(reader.next_frame(&mut prefixed()).unwrap(), None);
    }
}

#[test]
fn a_fixed_record_longer_than_the_limit() {
    for mode in every_mode() {
        let mut reader = mode.builder().record_limit(10).memory([7; 25]).unwrap();
        let mut eleven = Fixed::new(11).unwrap();
        assert_eq!(reader.next_frame(&mut eleven).unwrap_err().kind(), ErrorKind::RecordTooLong);
        assert!(reader.skip_record(&mut eleven).unwrap());
        assert_eq!(reader.next_frame(&mut eleven).unwrap_err().kind(), ErrorKind::RecordTooLong);
        assert!(reader.skip_record(&mut eleven).unwrap());
        let error = reader.skip_record(&mut eleven).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::FrameTruncated, Some(22)), "{error}");
    }
}

/// A long record in batches: the records before it come first, then the error, then the records after it.
#[test]
fn in_batches() {
    within_seconds(120, || {
        for mode in every_mode() {
            for long in [2 * MIB, LONG] {
                let mut reader = mode.builder().record_limit(MIB).from_read(with_long_line(long)).unwrap();
                assert_eq!(
                    batches_around_long_records(&mut reader),
                    (["one", "three", "four"].map(String::from).to_vec(), vec![1])
                );
            }
            // In memory all records are in one batch. The long record is in the middle of the batch, or is the last
            // one and has no delimiter.
            for (input, records, numbers) in [
                ("one\ntoo long\nthree\n", vec!["one", "three"], vec![1]),
                ("one\ntwo\r\ntoo long", vec!["one", "two"], vec![2]),
                ("too long\ntwo\ntoo long\nfour", vec!["two", "four"], vec![0, 2]),
                ("too long", vec![], vec![0]),
            ] {
                let mut reader = mode.builder().record_limit(5).memory(input).unwrap();
                let (seen, skipped) = batches_around_long_records(&mut reader);
                assert_eq!(
                    (seen, skipped),
                    (records.into_iter().map(String::from).collect(), numbers),
                    "{mode:?} {input:?}"
                );
            }
        }
    });
}

/// Returns all records that are not too long, and the numbers of those that are.
fn batches_around_long_records(reader: &mut Reader) -> (Vec<String>, Vec<u64>) {
    let mut lines = Lines::new();
    let (mut seen, mut skipped) = (Vec::new(), Vec::new());
    loop {
        match reader.next_batch(&mut lines) {
            Ok(Some(batch)) => seen.extend(batch.iter().map(|line| String::from_utf8(line.to_vec()).unwrap())),
            Ok(None) => return (seen, skipped),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::RecordTooLong);
                skipped.push(error.record().unwrap());
                assert!(reader.skip_record(&mut lines).unwrap());
            }
        }
    }
}

/// The bytes of a long record can also be consumed one by one; the record after them is not lost.
#[test]
fn taking_the_bytes_of_a_long_record() {
    for mode in every_mode() {
        let mut reader = mode.builder().record_limit(8).memory("one\nmuch too long\nthree\n").unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::RecordTooLong);
        let mut long = [0; 14];
        reader.read_exact(&mut long).unwrap();
        assert_eq!(&long, b"much too long\n");
        assert_eq!(reader.next_line().unwrap(), Some(&b"three"[..]));
        assert_eq!(reader.next_line().unwrap(), None);
    }
}

/// A token may interrupt the skipping in the middle of the record: the rest of the record is never mistaken for a
/// record.
#[test]
fn a_cancelled_skip_can_continue() {
    for mode in every_mode() {
        for prefixed in [false, true] {
            within_seconds(60, move || {
                let token = CancelToken::new().unwrap();
                let (pipe, mut writer) = std::io::pipe().unwrap();
                let mut reader = mode.builder().record_limit(4).cancel(&token).fd(pipe).unwrap();
                // The payload looks like records too.
                let (begin, middle, end): (&[u8], &[u8], &[u8]) = match prefixed {
                    false => (b"much too ", b"very, very ", b"long\nok\n"),
                    true => (b"\x12\x01a", b"\x01b\x01c\x01d\x01e", b"\x01f\x01g\x01h\x01i\x02ok"),
                };
                let mut framer: Box<dyn Framer> = match prefixed {
                    false => Box::new(Lines::new()),
                    true => Box::new(LengthPrefixed::new(PrefixWidth::U8, millstream::frame::Endian::Big)),
                };
                writer.write_all(begin).unwrap();
                assert_eq!(reader.next_frame(&mut framer).unwrap_err().kind(), ErrorKind::RecordTooLong);
                for more in [middle, end] {
                    let canceller = token.clone();
                    let thread = std::thread::spawn(move || {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        canceller.cancel();
                    });
                    assert_eq!(reader.skip_record(&mut framer).unwrap_err().kind(), ErrorKind::Cancelled);
                    thread.join().unwrap();
                    token.reset();
                    assert_eq!(reader.position().records, 0);
                    writer.write_all(more).unwrap();
                }
                assert!(reader.skip_record(&mut framer).unwrap());
                assert_eq!(reader.position().records, 1);
                assert_eq!(reader.next_frame(&mut framer).unwrap(), Some(&b"ok"[..]), "{mode:?} {prefixed}");
            });
        }
    }
}

/// Memory use is bounded by the limit, for records of any length.
#[test]
fn skipping_needs_no_memory() {
    alone("long_records::skipping_needs_no_memory", &[], || {
        for mode in every_mode() {
            let mut reader = mode.builder().record_limit(MIB).from_read(with_long_line(512 * MIB)).unwrap();
            reader.next_line().unwrap();
            assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::RecordTooLong);
            assert!(reader.skip_record(&mut Lines::new()).unwrap());
            assert_eq!(reader.next_line().unwrap(), Some(&b"three"[..]));
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak_kib: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak_kib < 64 << 10, "{peak_kib} KiB");
    });
}

/// A user-defined framer that never finds an end reaches the limit like any other.
#[test]
fn a_framer_that_never_finds_an_end() {
    struct Never;
    impl Framer for Never {
        fn step(&mut self, input: &[u8], _: Resume, eof: bool) -> Step {
            match eof {
                true => Step::Record { len: input.len(), terminated: false },
                false => Step::More { resume: Resume::after(input.len()), need: 0 },
            }
        }

        fn trim(&self) -> millstream::frame::Trim {
            millstream::frame::Trim::default()
        }
    }
    for mode in every_mode() {
        let mut reader = mode.builder().record_limit(MIB).from_read(repeat(1)).unwrap();
        assert_eq!(reader.next_frame(&mut Never).unwrap_err().kind(), ErrorKind::RecordTooLong);
        let mut reader = mode.builder().record_limit(MIB).from_read(repeat(1).take(1000)).unwrap();
        assert_eq!(reader.next_frame(&mut Never).unwrap().unwrap().len(), 1000);
    }
}

/// A framer gets its saved state back together with more bytes, even if the examined bytes have been dropped because
/// the record is skipped. No byte is examined twice.
#[test]
fn a_framer_continues_in_its_state() {
    /// Lines in which a line end between quotes is content, and the number of bytes examined.
    struct Quoted(usize);
    impl Framer for Quoted {
        fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
            let mut state = resume.state();
            for (at, &byte) in input.iter().enumerate().skip(resume.scanned()) {
                self.0 += 1;
                match byte {
                    b'"' => state ^= 1,
                    b'\n' if state == 0 => return Step::Record { len: at + 1, terminated: true },
                    _ => {}
                }
            }
            match eof {
                true => Step::Record { len: input.len(), terminated: false },
                false => Step::More { resume: Resume::after(input.len()).with_state(state), need: 0 },
            }
        }

        fn trim(&self) -> millstream::frame::Trim {
            Lines::new().trim()
        }
    }
    let long = [b"\"".as_slice(), &b"line\n".repeat(4 * MIB / 5), b"\"\n"].concat();
    let input = [&long[..], b"one\n", &long, b"two\n"].concat();
    for mode in every_mode() {
        let reader = |limit| mode.builder().record_limit(limit).from_read(std::io::Cursor::new(input.clone())).unwrap();
        let (mut framer, mut whole) = (Quoted(0), reader(LONG));
        assert_eq!(whole.next_frame(&mut framer).unwrap(), Some(&long[..long.len() - 1]));
        assert_eq!(framer.0, long.len());
        let (mut framer, mut skipping) = (Quoted(0), reader(MIB));
        for line in [&b"one"[..], b"two"] {
            framer.0 = 0;
            assert!(skipping.skip_record(&mut framer).unwrap());
            assert_eq!(framer.0, long.len());
            assert_eq!(skipping.next_frame(&mut framer).unwrap(), Some(line));
        }
        assert_eq!(skipping.next_frame(&mut framer).unwrap(), None);
    }
}

/// A loop that only logs errors must not mistake a record that was not skipped for the end.
#[test]
fn a_long_record_is_reported_until_it_is_skipped() {
    let mut reader = Reader::builder().record_limit(3).memory("one\nthree\ntwo\n").unwrap();
    assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
    for _ in 0..3 {
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::RecordTooLong);
        assert_eq!(reader.next_batch(&mut Lines::new()).unwrap_err().kind(), ErrorKind::RecordTooLong);
    }
    assert!(reader.skip_record(&mut Lines::new()).unwrap());
    assert_eq!(reader.next_line().unwrap(), Some(&b"two"[..]));
    assert_eq!(reader.next_line().unwrap(), None);
}

#[test]
fn buffered_records_need_no_read_and_errors_are_reported_by_reads() {
    let mut reader = Reader::builder().record_limit(3).memory("a\nlong line\nb\r\nlonger still\nc").unwrap();
    assert_eq!(reader.buffered_line(), None, "nothing has been read");
    assert_eq!(reader.next_line().unwrap(), Some(&b"a"[..]));
    for _ in 0..2 {
        assert_eq!(reader.buffered_line(), None);
        assert_eq!(reader.buffered_frame(&mut Lines::new()), None);
    }
    assert_eq!(reader.next_line().unwrap_err().record(), Some(1));
    assert_eq!(reader.buffered_line(), None);
    assert_eq!(reader.buffered_frame(&mut Lines::new()), None);
    assert!(reader.skip_record(&mut Lines::new()).unwrap());
    assert_eq!(reader.buffered_line(), Some(&b"b"[..]));
    assert_eq!(reader.buffered_frame(&mut Lines::new()), None);
    assert_eq!(reader.next_frame(&mut Lines::new()).unwrap_err().record(), Some(3));
    assert!(reader.skip_record(&mut Lines::new()).unwrap());
    assert_eq!(reader.buffered_line(), None);
    assert_eq!(reader.position().records, 4);
    assert_eq!(reader.next_line().unwrap(), Some(&b"c"[..]));
    assert_eq!(reader.buffered_line(), None);
    assert_eq!(reader.next_line().unwrap(), None);
}

#[test]
fn lines_in_the_buffer_are_counted_and_can_follow_numbers() {
    let mut reader = Reader::memory("1 one\n2 two\nthree\n").unwrap();
    assert_eq!(reader.require::<u8>().unwrap(), 1);
    assert_eq!(reader.buffered_line(), None, "it follows a number, which other methods handle");
    assert_eq!(reader.next_line().unwrap(), Some(&b" one"[..]));
    assert_eq!(reader.require::<u8>().unwrap(), 2);
    assert_eq!(reader.next_line().unwrap(), Some(&b" two"[..]));
    assert_eq!(reader.next_line().unwrap(), Some(&b"three"[..]));
    assert_eq!(reader.buffered_line(), None);
    assert_eq!(reader.position().records, 3);
}
