//! The last record of a failed source is not a record unless its delimiter has arrived: it may have been cut.

use std::io::Read;
use std::time::Duration;

use millstream::frame::{Delimiter, Lines, Predicate};
use millstream::pipe::Pipe;
use millstream::{CancelToken, Command, Error, ErrorKind, Reader};

use crate::deadline::within_seconds;
use crate::every_way::{EVERY_READ_AHEAD, Mode, every_mode};

/// Two whole lines and a part of a third one, from a command that fails.
const DYING: [&str; 3] = ["sh", "-c", "printf '100\\n200\\n30'; exit 3"];

/// Takes the next record of a reader.
type Take = fn(&mut Reader) -> Result<Option<Vec<u8>>, Error>;

/// Every method that takes a record that may be the last one.
const EVERY_TAKE: [(&str, Take); 9] = [
    ("next_line", |reader| Ok(reader.next_line()?.map(<[u8]>::to_vec))),
    ("read_until", |reader| Ok(reader.read_until(b'\n')?.map(<[u8]>::to_vec))),
    ("delimiter", |reader| Ok(reader.next_frame(&mut Delimiter::bytes("\n").unwrap())?.map(<[u8]>::to_vec))),
    ("predicate", |reader| Ok(reader.next_frame(&mut Predicate::new(|byte| byte == b'\n'))?.map(<[u8]>::to_vec))),
    ("next_batch_of", |reader| {
        Ok(reader.next_batch_of(&mut Lines::new(), 1)?.map(|batch| batch.iter().next().unwrap().to_vec()))
    }),
    ("buffered_line", |reader| match reader.buffered_line() {
        Some(line) => Ok(Some(line.to_vec())),
        None => Ok(reader.next_line()?.map(<[u8]>::to_vec)),
    }),
    ("next_word", |reader| Ok(reader.next_word()?.map(<[u8]>::to_vec))),
    ("scan", |reader| Ok(reader.scan::<u32>()?.map(|number| number.to_string().into_bytes()))),
    ("scan_delimited", |reader| Ok(reader.scan_delimited::<u32>(b',')?.map(|number| number.to_string().into_bytes()))),
];

/// Returns the records that a way takes from a reader, and the error at the end.
fn take_all(mut reader: Reader, take: Take) -> (Vec<Vec<u8>>, Option<Error>, Reader) {
    let mut records = Vec::new();
    loop {
        match take(&mut reader) {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, None, reader),
            Err(error) => return (records, Some(error), reader),
        }
    }
}

fn for_every_way(check: impl Fn(Mode, &str, Take)) {
    for mode in every_mode() {
        for (name, take) in EVERY_TAKE {
            check(mode, name, take);
        }
    }
}

#[test]
fn the_rest_of_a_command_that_fails_is_no_record() {
    for_every_way(|mode, name, take| {
        let reader = mode.builder().command(DYING).unwrap();
        let (records, error, mut reader) = take_all(reader, take);
        assert_eq!(records, [b"100", b"200"], "{mode:?} {name}");
        let error = error.unwrap_or_else(|| panic!("{mode:?} {name}: no error"));
        assert_eq!((error.kind(), error.record()), (ErrorKind::CommandFailed, Some(2)), "{name}: {error}");
        assert!(error.to_string().contains("2 bytes of an unfinished record, \"30\""), "{name}: {error}");
        // The unfinished record can still be read as bytes, and no record follows.
        assert_eq!(reader.buffer().trim_ascii(), b"30", "{name}");
        assert_eq!(take(&mut reader).unwrap(), None, "{name}");
        assert_eq!(reader.close().unwrap_err().to_string(), error.to_string());
    });
}

#[test]
fn the_rest_of_one_that_succeeds_is_a_record() {
    for_every_way(|mode, name, take| {
        for command in [
            Command::new(["printf", "100\\n200\\n30"]),
            // It succeeds because failure is allowed.
            Command::new(DYING).allow_failure(),
        ] {
            let (records, error, _) = take_all(mode.builder().command(command).unwrap(), take);
            assert_eq!(records, [&b"100"[..], b"200", b"30"], "{mode:?} {name}");
            assert!(error.is_none(), "{mode:?} {name}: {error:?}");
        }
    });
}

/// The output ends before the command does. The last record is returned only when the status is known.
#[test]
fn the_status_may_arrive_late() {
    for (status, count) in [(3, 2), (0, 3)] {
        for read_ahead in EVERY_READ_AHEAD {
            let script = format!("printf '100\\n200\\n30'; exec >&-; sleep 0.1; exit {status}");
            let reader = Reader::builder().read_ahead(read_ahead).command(["sh", "-c", &script]).unwrap();
            let (records, error, _) = take_all(reader, EVERY_TAKE[0].1);
            assert_eq!((records.len(), error.is_some()), (count, status != 0), "{read_ahead:?}");
        }
    }
}

#[test]
fn a_wait_for_the_status_can_be_cancelled_and_resumed() {
    for_every_way(|mode, name, take| {
        let token = CancelToken::new().unwrap();
        let script = "printf '100\\n200\\n30'; exec >&-; read go; exit $go";
        let (theirs, mut ours) = std::io::pipe().unwrap();
        let command = Command::new(["sh", "-c", script]).stdin(millstream::Stdin::Fd(theirs.into()));
        let mut reader = mode.builder().cancel(&token).command(command).unwrap();
        assert_eq!(take(&mut reader).unwrap().unwrap(), b"100", "{mode:?} {name}");
        assert_eq!(take(&mut reader).unwrap().unwrap(), b"200", "{mode:?} {name}");
        let canceller = token.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            canceller.cancel();
        });
        assert_eq!(take(&mut reader).unwrap_err().kind(), ErrorKind::Cancelled, "{mode:?} {name}");
        thread.join().unwrap();
        token.reset();
        std::io::Write::write_all(&mut ours, b"0\n").unwrap();
        assert_eq!(take(&mut reader).unwrap().as_deref(), Some(&b"30"[..]), "{mode:?} {name}");
        assert_eq!(take(&mut reader).unwrap(), None, "{mode:?} {name}");
    });
}

/// Callers that copy bytes get all of them.
#[test]
fn bytes_are_all_delivered() {
    for mode in every_mode() {
        let mut reader = mode.builder().command(DYING).unwrap();
        let mut bytes = Vec::new();
        let error = Error::from_io(reader.read_to_end(&mut bytes).unwrap_err());
        assert_eq!((error.kind(), &bytes[..]), (ErrorKind::CommandFailed, &b"100\n200\n30"[..]), "{mode:?}");
        assert!(!error.to_string().contains("unfinished"), "{error}");
    }
}

#[test]
fn pipelines_and_compressed_sources_behave_alike() {
    let scripts = ["printf '100\\n200\\n30'; exit 3", "printf '100\\n200\\n30' | gzip; exit 3"];
    for script in scripts {
        let mut seen = Vec::new();
        let reader = Reader::command(["sh", "-c", script]).unwrap();
        let error = Pipe::from(reader).lines().for_each(|line| seen.push(line.to_vec())).unwrap_err();
        assert_eq!((error.kind(), seen), (ErrorKind::CommandFailed, vec![b"100".to_vec(), b"200".to_vec()]));
    }
    let commands = [vec!["sh", "-c", "printf '1\\n2'; exit 3"], vec!["cat"]];
    let (records, error, _) = take_all(Reader::pipeline(commands).unwrap(), EVERY_TAKE[0].1);
    assert_eq!((records, error.unwrap().kind()), (vec![b"1".to_vec()], ErrorKind::CommandFailed));
}

/// The message shows the start of a long record, without characters that a terminal would interpret.
#[test]
fn a_long_rest_is_shown_in_part() {
    let script = "printf 'a\\033['; head -c 1000 /dev/zero | tr '\\0' x; exit 3";
    let error = Reader::command(["sh", "-c", script]).unwrap().next_line().unwrap_err().to_string();
    let shown = format!("1003 bytes of an unfinished record, \"a\\x1b[{}\"...", "x".repeat(37));
    assert!(error.contains(&shown), "{error}");
}

/// Errors that do not come from a command: errors of a user-defined source, and timeouts.
#[test]
fn other_failures_too() {
    let mut pieces = [Ok(&b"1\n2"[..]), Err(std::io::Error::other("gone"))].into_iter();
    let reader = Reader::callback(move |space| {
        let piece = pieces.next().unwrap_or(Ok(&[]))?;
        space[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    });
    let (records, error, _) = take_all(reader.unwrap(), EVERY_TAKE[0].1);
    let error = error.unwrap().to_string();
    assert_eq!(records, [b"1"]);
    assert!(error.contains("1 byte of an unfinished record, \"2\"") && error.contains("gone"), "{error}");

    within_seconds(30, || {
        let builder = Reader::builder().stall_timeout(Duration::from_millis(50));
        let reader = builder.command(["sh", "-c", "printf '1\\n2'; exec >&-; exec sleep 600"]).unwrap();
        let (records, error, _) = take_all(reader, EVERY_TAKE[0].1);
        assert_eq!((records, error.unwrap().kind()), (vec![b"1".to_vec()], ErrorKind::Stalled));
    });
}
