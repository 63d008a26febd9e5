//! Several threads use one writer: each record is complete and written one time, in its thread's order.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use millstream::{ErrorKind, FlushPolicy, Writer, WriterBuilder, put};

const THREADS: usize = 8;
const RECORDS: usize = 2_000;

/// Returns the record `number` of `thread`; some are longer than the buffer.
fn record(thread: usize, number: usize) -> String {
    let len = if number.is_multiple_of(97) { 3_000 } else { number % 50 };
    format!("<{thread} {number} {}>", "x".repeat(len))
}

/// Checks that every record of `text` is complete and occurs one time, and that each thread's records are in order.
fn assert_whole(text: &str) {
    let mut next = [0; THREADS];
    for one in text.split_inclusive('>') {
        let thread: usize = one[1..2].parse().unwrap();
        assert_eq!(one, record(thread, next[thread]));
        next[thread] += 1;
    }
    assert_eq!(next, [RECORDS; THREADS]);
}

/// A sink that accepts a few bytes at a time and fails occasionally.
fn awkward(arrived: Arc<Mutex<Vec<u8>>>) -> impl io::Write + Send {
    struct Awkward(Arc<Mutex<Vec<u8>>>, usize);
    impl io::Write for Awkward {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(7) {
                return Err(io::Error::other("not now"));
            }
            let taken = bytes.len().min(self.1 % 300 + 1);
            self.0.lock().unwrap().extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    Awkward(arrived, 0)
}

fn policies() -> [WriterBuilder; 3] {
    [FlushPolicy::WhenFull, FlushPolicy::Line, FlushPolicy::Delay(Duration::from_micros(100))]
        .map(|policy| Writer::builder().capacity(1000).flush_policy(policy))
}

#[test]
fn no_record_is_torn() {
    for builder in policies() {
        let writer = builder.memory().unwrap().shared();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let writer = writer.clone();
                scope.spawn(move || {
                    for number in 0..RECORDS {
                        writer.write_record(record(thread, number).as_bytes()).unwrap();
                    }
                });
            }
        });
        assert_whole(&String::from_utf8(writer.close().unwrap().memory.unwrap()).unwrap());
    }
}

#[test]
fn no_record_is_torn_or_doubled_when_the_sink_fails_and_calls_are_repeated() {
    for builder in policies() {
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let writer = builder.from_write(awkward(arrived.clone())).unwrap().shared();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let writer = writer.clone();
                scope.spawn(move || {
                    for number in 0..RECORDS {
                        let record = record(thread, number);
                        while let Err(error) = writer.write_record(record.as_bytes()) {
                            assert_eq!(error.kind(), ErrorKind::Io);
                        }
                    }
                });
            }
        });
        while writer.flush().is_err() {}
        writer.close().unwrap();
        assert_whole(std::str::from_utf8(&arrived.lock().unwrap()).unwrap());
    }
}

#[test]
fn a_record_of_parts_is_put_whole_or_not_at_all() {
    for builder in policies() {
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let writer = builder.from_write(awkward(arrived.clone())).unwrap().shared();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let writer = writer.clone();
                scope.spawn(move || {
                    for number in 0..RECORDS {
                        let record = record(thread, number);
                        let (_, filler) = record[1..record.len() - 1].rsplit_once(' ').unwrap();
                        while let Err(error) = put!(writer, '<', thread, ' ', number, ' ', filler, '>') {
                            assert_eq!(error.kind(), ErrorKind::Io);
                        }
                    }
                });
            }
        });
        while writer.flush().is_err() {}
        writer.close().unwrap();
        assert_eq!(put!(writer, 1).unwrap_err().kind(), ErrorKind::Closed);
        assert_whole(std::str::from_utf8(&arrived.lock().unwrap()).unwrap());
    }
}

#[test]
fn several_records_at_once_stay_together() {
    let writer = Writer::builder().capacity(100).memory().unwrap().shared();
    thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let writer = writer.clone();
            scope.spawn(move || {
                for _ in 0..500 {
                    writer.write_records([name; 10]).unwrap();
                }
            });
        }
    });
    let bytes = writer.close().unwrap().memory.unwrap();
    assert_eq!(bytes.len(), 15_000);
    assert!(bytes.chunks(10).all(|ten| ten.iter().all(|byte| *byte == ten[0])));
}

#[test]
fn an_error_reports_how_many_records_were_accepted() {
    let fails = |_: &[u8]| Err(io::Error::other("never"));
    let writer = Writer::builder().capacity(10).callback(fails).unwrap().shared();
    let error = writer.write_records(["1234", "5678", "9012"]).unwrap_err();
    assert_eq!((error.record(), error.written()), (Some(2), Some(0)));
}

#[test]
fn after_a_close_every_call_returns_closed() {
    let writer = Writer::memory().unwrap().shared();
    let other = writer.clone();
    writer.write_record(b"x").unwrap();
    assert_eq!(writer.close().unwrap().bytes, 1);
    for error in [
        other.write_record(b"y").unwrap_err(),
        other.write_records(["y"]).unwrap_err(),
        other.flush().unwrap_err(),
        other.close().unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.name()), (ErrorKind::Closed, Some("memory")));
    }
}

#[test]
fn dropping_the_last_clone_delivers() {
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let sink = arrived.clone();
    let writer = Writer::callback(move |bytes: &[u8]| {
        sink.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    })
    .unwrap()
    .shared();
    let other = writer.clone();
    writer.write_record(b"kept").unwrap();
    drop(writer);
    assert!(arrived.lock().unwrap().is_empty());
    drop(other);
    assert_eq!(*arrived.lock().unwrap(), b"kept");
}
