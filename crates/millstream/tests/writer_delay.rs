//! Tests the bounded delay: bytes are written although the producer is idle, and errors are reported.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, ErrorKind, FlushPolicy, Writer, WriterBuilder};

fn delayed(delay: Duration) -> WriterBuilder {
    Writer::builder().flush_policy(FlushPolicy::Delay(delay))
}

/// Waits briefly until `condition` holds.
fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "it never happened");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_line_arrives_though_the_producer_is_idle() {
    let (reader, pipe) = io::pipe().unwrap();
    let mut lines = BufReader::new(reader).lines();
    let mut writer = delayed(Duration::from_millis(10)).fd(pipe).unwrap();
    for i in 0..5 {
        writer.write(format!("line {i}\n").as_bytes()).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), format!("line {i}"));
    }
    // This uses space and commit.
    writer.space(3).unwrap()[..3].copy_from_slice(b"end");
    writer.commit(3).unwrap();
    until(|| writer.written() == 5 * 7 + 3);
    writer.close().unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "end");
}

/// A sink that counts its calls.
#[derive(Clone, Default)]
struct Counting {
    writes: Arc<AtomicUsize>,
    flushes: Arc<AtomicUsize>,
}

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn records_wait_for_company_and_go_out_together() {
    let sink = Counting::default();
    let mut writer = delayed(Duration::from_secs(3600)).capacity(1000).from_write(sink.clone()).unwrap();
    for _ in 0..100 {
        writer.write(&[b'x'; 10]).unwrap();
    }
    assert_eq!(sink.writes.load(Ordering::SeqCst), 0);
    writer.write(b"one too many").unwrap();
    assert_eq!(sink.writes.load(Ordering::SeqCst), 1);
    assert_eq!(sink.flushes.load(Ordering::SeqCst), 0);
    let end = writer.close().unwrap();
    assert_eq!((end.written, sink.writes.load(Ordering::SeqCst)), (1012, 2));
}

#[test]
fn held_bytes_are_flushed_once() {
    let sink = Counting::default();
    let mut writer = delayed(Duration::from_millis(5)).from_write(sink.clone()).unwrap();
    writer.write(b"x").unwrap();
    until(|| sink.flushes.load(Ordering::SeqCst) == 1);
    thread::sleep(Duration::from_millis(50));
    assert_eq!((sink.writes.load(Ordering::SeqCst), sink.flushes.load(Ordering::SeqCst)), (1, 1));
}

/// A sink that fails while `fails` is set.
#[derive(Clone, Default)]
struct Failing {
    fails: Arc<AtomicBool>,
    failures: Arc<AtomicUsize>,
    arrived: Arc<std::sync::Mutex<Vec<u8>>>,
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.fails.load(Ordering::SeqCst) {
            self.failures.fetch_add(1, Ordering::SeqCst);
            return Err(io::Error::other("not now"));
        }
        self.arrived.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_threads_error_is_reported_once_without_loss() {
    for report_by in ["write", "flush", "space", "close"] {
        let sink = Failing::default();
        sink.fails.store(true, Ordering::SeqCst);
        let mut writer = delayed(Duration::from_millis(1)).from_write(sink.clone()).unwrap();
        writer.write(b"one ").unwrap();
        until(|| sink.failures.load(Ordering::SeqCst) > 0);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(sink.failures.load(Ordering::SeqCst), 1, "the writer retries only on request");
        sink.fails.store(false, Ordering::SeqCst);
        let error = match report_by {
            "write" => writer.write(b"refused").unwrap_err(),
            "space" => {
                writer.space(7).unwrap()[..7].copy_from_slice(b"refused");
                writer.commit(7).unwrap_err()
            }
            "flush" => writer.flush().unwrap_err(),
            _ => {
                assert_eq!(writer.close().unwrap_err().written(), Some(0));
                continue;
            }
        };
        assert_eq!((error.kind(), error.written()), (ErrorKind::Io, Some(0)));
        writer.write(b"two").unwrap();
        assert_eq!(writer.close().unwrap().bytes, 7);
        assert_eq!(*sink.arrived.lock().unwrap(), b"one two");
    }
}

#[test]
fn a_panic_of_the_sink_on_the_thread_is_an_error_and_no_hang() {
    struct Panicking(mpsc::Sender<()>);
    impl Write for Panicking {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(());
            panic!("on purpose");
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (sender, called) = mpsc::channel();
    let mut writer = delayed(Duration::from_millis(1)).from_write(Panicking(sender)).unwrap();
    writer.write(b"x").unwrap();
    called.recv().unwrap();
    let start = Instant::now();
    let error = loop {
        if let Err(error) = writer.write(b"x") {
            break error;
        }
        assert!(start.elapsed() < Duration::from_secs(20));
    };
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn a_token_ends_the_wait_of_the_thread_too() {
    let (mut reader, pipe) = io::pipe().unwrap();
    let token = CancelToken::new().unwrap();
    let mut writer = delayed(Duration::from_millis(1)).capacity(2 << 20).cancel(&token).fd(pipe).unwrap();
    // This exceeds the capacity of the pipe, so the thread waits in the middle of it.
    let bytes = vec![b'x'; (2 << 20) - 1];
    writer.write(&bytes).unwrap();
    until(|| writer.written() > 0);
    token.cancel();
    let error = writer.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    token.reset();
    let reading = thread::spawn(move || {
        let mut arrived = Vec::new();
        reader.read_to_end(&mut arrived).unwrap();
        arrived
    });
    while writer.flush().is_err() {}
    writer.close().unwrap();
    assert!(reading.join().unwrap() == bytes);
}

#[cfg(feature = "compression")]
#[test]
fn a_follower_of_a_compressed_stream_can_decode_the_flushed_part() {
    let (reader, pipe) = io::pipe().unwrap();
    let mut writer = delayed(Duration::from_millis(5)).encode(millstream::Encode::Gzip).fd(pipe).unwrap();
    writer.write(b"line 0\n").unwrap();
    let mut lines = BufReader::new(flate2::read::GzDecoder::new(reader)).lines(); // reads the header immediately
    for i in 0..3 {
        assert_eq!(lines.next().unwrap().unwrap(), format!("line {i}"));
        writer.write(format!("line {}\n", i + 1).as_bytes()).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "line 3");
    assert!(lines.next().is_none());
}
