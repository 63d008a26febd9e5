//! Blocking calls that a cancel token or a time limit interrupts, and calls that wait indefinitely for a growing
//! file.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, ErrorKind, Follow, Reader, ReaderBuilder};

use crate::deadline::within_seconds;
use crate::every_way::{EVERY_PULL, every_mode};
use crate::sample;

/// Opens a source that can stay silent indefinitely, and returns it with a function that makes it deliver data.
type Open = fn(ReaderBuilder) -> (Reader, Box<dyn Write>);

const SILENT_SOURCES: [(&str, Open); 4] = [
    ("pipe", |builder| {
        let (reader, writer) = io::pipe().unwrap();
        (builder.fd(reader).unwrap(), Box::new(writer))
    }),
    ("socket", |builder| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (builder.fd(ours).unwrap(), Box::new(theirs))
    }),
    ("command", |builder| {
        let (stdin, writer) = io::pipe().unwrap();
        let cat = millstream::Command::new(["cat"]).stdin(std::fs::File::from(OwnedFd::from(stdin)));
        (builder.command(cat).unwrap(), Box::new(writer))
    }),
    ("pipeline", |builder| {
        let (stdin, writer) = io::pipe().unwrap();
        let cat = millstream::Command::new(["cat"]).stdin(std::fs::File::from(OwnedFd::from(stdin)));
        (builder.pipeline([cat, millstream::Command::new(["cat"])]).unwrap(), Box::new(writer))
    }),
];

#[test]
fn a_token_ends_a_wait_immediately_without_loss() {
    for mode in every_mode() {
        for (name, open) in SILENT_SOURCES {
            within_seconds(60, move || {
                let token = CancelToken::new().unwrap();
                let (mut reader, mut writer) = open(mode.builder().cancel(&token));
                writer.write_all(b"one\ntwo: begin").unwrap();
                assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));

                let canceller = token.clone();
                let thread = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(50));
                    canceller.cancel();
                    Instant::now()
                });
                let error = reader.next_line().unwrap_err();
                let since = thread.join().unwrap().elapsed();
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{mode:?} {name}: {error}");
                assert!(since < Duration::from_secs(1), "{mode:?} {name}: {since:?} after cancelling");

                // The reader stays cancelled until the token is reset. After that, it continues at the same position.
                assert!(token.is_cancelled());
                assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Cancelled, "{mode:?} {name}");
                token.reset();
                writer.write_all(b", end\nthree\n").unwrap();
                assert_eq!(reader.next_line().unwrap(), Some(&b"two: begin, end"[..]), "{mode:?} {name}");
                assert_eq!(reader.next_line().unwrap(), Some(&b"three"[..]));
                drop(writer);
                assert_eq!(reader.next_line().unwrap(), None);
                assert_eq!((reader.position().records, reader.position().bytes), (3, 26));
            });
        }
    }
}

#[test]
fn a_token_ends_every_way_of_pulling() {
    for mode in every_mode() {
        for pull in EVERY_PULL {
            within_seconds(60, move || {
                let token = CancelToken::new().unwrap();
                let (pipe, _writer) = io::pipe().unwrap();
                let mut reader = mode.builder().cancel(&token).borrow_fd(&pipe).unwrap();
                let thread = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    token.cancel();
                });
                let error = crate::every_way::take(&mut reader, pull, &mut Vec::new()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{mode:?} {pull:?}");
                thread.join().unwrap();
            });
        }
    }
}

/// One token for many readers; cancelling and resetting it from two threads at the same time leaves no thread waiting
/// or spinning.
#[test]
fn a_token_is_shared_and_used_often() {
    within_seconds(120, || {
        let token = CancelToken::new().unwrap();
        let (pipe, mut writer) = io::pipe().unwrap();
        let (silent, _held) = io::pipe().unwrap();
        let mut first = Reader::builder().cancel(&token).fd(pipe).unwrap();
        let mut second = Reader::builder().cancel(&token).fd(silent).unwrap();
        let mut cancelled = 0;
        for round in 0..500 {
            let canceller = token.clone();
            let thread = thread::spawn(move || canceller.cancel());
            assert_eq!(second.next_line().unwrap_err().kind(), ErrorKind::Cancelled);
            writer.write_all(format!("{round}\n").as_bytes()).unwrap();
            loop {
                token.reset();
                match first.next_line() {
                    Ok(line) => break assert_eq!(line, Some(round.to_string().as_bytes())),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
                }
                cancelled += 1;
            }
            thread.join().unwrap();
            token.reset();
        }
        assert!(cancelled < 500 * 2, "{cancelled}");
    });
}

#[test]
fn a_stalled_source_is_an_error_after_the_time_limit() {
    for mode in every_mode() {
        for (name, open) in SILENT_SOURCES {
            within_seconds(60, move || {
                // A command needs less time to start, also on a busy machine.
                let limit = Duration::from_millis(600);
                let (mut reader, mut writer) = open(mode.builder().stall_timeout(limit));
                writer.write_all(b"one\n").unwrap();
                assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
                let start = Instant::now();
                let error = reader.next_line().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Stalled, "{mode:?} {name}: {error}");
                assert!(start.elapsed() >= limit / 2, "{mode:?} {name}: after {:?}", start.elapsed());
                drop(writer);
                reader.close().unwrap(); // the error has been reported
            });
        }
    }
}

/// The limit applies to silence, not to the total time: a source that keeps delivering data never reaches it.
#[test]
fn a_slow_source_is_not_a_stalled_one() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let (pipe, mut writer) = io::pipe().unwrap();
            let mut reader = mode.builder().stall_timeout(Duration::from_secs(2)).fd(pipe).unwrap();
            let thread = thread::spawn(move || {
                for _ in 0..30 {
                    thread::sleep(Duration::from_millis(100));
                    writer.write_all(b"x\n").unwrap();
                }
            });
            while reader.next_line().unwrap().is_some() {}
            assert_eq!(reader.position().records, 30);
            thread.join().unwrap();
        });
    }
}

/// A slow consumer does not make a source stall.
#[test]
fn a_slow_consumer_is_not_a_stalled_source() {
    for mode in every_mode() {
        let limit = Duration::from_millis(300);
        let mut reader = mode.builder().stall_timeout(limit).command(["seq", "300000"]).unwrap();
        let mut records = 0;
        while reader.next_line().unwrap().is_some() {
            if records == 1000 {
                thread::sleep(limit * 3);
            }
            records += 1;
        }
        assert_eq!(records, 300_000);
    }
}

#[test]
fn a_growing_file_is_followed_until_cancelled() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let directory = sample::directory();
            let path = sample::file(&directory, "log", b"line 0\nline 1: beg");
            let token = CancelToken::new().unwrap();
            let mut reader = mode.builder().follow(Follow::Growing).cancel(&token).path(&path).unwrap();
            assert_eq!(reader.next_line().unwrap(), Some(&b"line 0"[..]));
            let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            let writer = thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                log.write_all(b"un\n").unwrap();
                for i in 2..50 {
                    thread::sleep(Duration::from_millis(5));
                    log.write_all(format!("line {i}\n").as_bytes()).unwrap();
                }
            });
            assert_eq!(reader.next_line().unwrap(), Some(&b"line 1: begun"[..]));
            for i in 2..50 {
                assert_eq!(reader.next_line().unwrap(), Some(format!("line {i}").as_bytes()));
            }
            writer.join().unwrap();
            let thread = thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                token.cancel();
            });
            assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Cancelled);
            thread.join().unwrap();
            reader.close().unwrap();
        });
    }
}

/// Truncating a followed file loses bytes, which is reported.
#[test]
fn a_followed_file_that_shrinks() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let directory = sample::directory();
            let path = sample::file(&directory, "log", b"line 0\nline 1\n");
            let mut reader = mode.builder().follow(Follow::Growing).path(&path).unwrap();
            assert_eq!(reader.next_line().unwrap(), Some(&b"line 0"[..]));
            assert_eq!(reader.next_line().unwrap(), Some(&b"line 1"[..]));
            std::fs::File::options().write(true).open(&path).unwrap().set_len(3).unwrap();
            let error = reader.next_line().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SourceShrank, "{error}");
        });
    }
}

/// A cancelled call has moved the unread bytes to the front of the buffer.
#[test]
fn a_wait_that_was_cancelled_leaves_the_lines_apart() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let token = CancelToken::new().unwrap();
            let (pipe, mut writer) = io::pipe().unwrap();
            let mut reader = mode.builder().cancel(&token).fd(pipe).unwrap();
            writer.write_all(b"a\nb\npartial").unwrap();
            assert_eq!(reader.next_line().unwrap(), Some(&b"a"[..]), "{mode:?}");
            assert_eq!(reader.next_line().unwrap(), Some(&b"b"[..]), "{mode:?}");
            let canceller = token.clone();
            let thread = thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                canceller.cancel();
            });
            assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Cancelled, "{mode:?}");
            thread.join().unwrap();
            token.reset();
            writer.write_all(b"xyz\nq\n").unwrap();
            drop(writer);
            assert_eq!(reader.next_line().unwrap(), Some(&b"partialxyz"[..]), "{mode:?}");
            assert_eq!(reader.next_line().unwrap(), Some(&b"q"[..]), "{mode:?}");
            assert_eq!(reader.next_line().unwrap(), None, "{mode:?}");
        });
    }
}

#[test]
fn a_fifo_without_a_writer_can_be_cancelled() {
    within_seconds(60, || {
        let directory = sample::directory();
        let path = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let open = || Reader::builder().stall_timeout(Duration::from_millis(50)).path(&path).unwrap();
        assert_eq!(open().next_line().unwrap_err().kind(), ErrorKind::Stalled);

        let mut reader = Reader::builder().stall_timeout(Duration::from_secs(60)).path(&path).unwrap();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            std::fs::write(path, "late\n").unwrap();
        });
        assert_eq!(reader.next_line().unwrap(), Some(&b"late"[..]));
        assert_eq!(reader.next_line().unwrap(), None);
        thread.join().unwrap();
    });
}

#[test]
fn no_limit_is_too_long() {
    let (pipe, mut writer) = io::pipe().unwrap();
    let mut reader = Reader::builder().stall_timeout(Duration::MAX).fd(pipe).unwrap();
    writer.write_all(b"x\n").unwrap();
    assert_eq!(reader.next_line().unwrap(), Some(&b"x"[..]));
}

/// A log that was empty when it was opened, grew, and was then truncated (as by logrotate's copytruncate).
#[test]
fn a_followed_file_that_began_empty_and_shrinks() {
    within_seconds(60, || {
        let directory = sample::directory();
        let path = sample::file(&directory, "log", b"");
        let mut reader = Reader::builder().follow(Follow::Growing).path(&path).unwrap();
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
        assert_eq!(reader.next_line().unwrap(), Some(&b"two"[..]));
        std::fs::write(&path, "x\n").unwrap();
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::SourceShrank);
    });
}
