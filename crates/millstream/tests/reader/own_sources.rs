//! User-defined sources: on the caller's thread with a descriptor to poll, and on a separate thread.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, Error, ErrorKind, Reader, Source};

use crate::deadline::within_seconds;
use crate::every_way::{EVERY_PULL, Pull, drain, drain_whole, every_mode};
use crate::sample;

/// A scripted source: the effect of each call of `read`, in order, and how it ends.
struct Scripted {
    steps: Vec<Step>,
    at: usize,
    delivered: u64,
    finish: Option<fn() -> io::Error>,
    size: Option<u64>,
    place: Option<&'static str>,
    /// Its descriptor for polling, if it has one. It is always readable.
    ready: Option<PipeReader>,
}

#[derive(Clone)]
enum Step {
    Bytes(Vec<u8>),
    Error(fn() -> io::Error),
    /// Reports more bytes than were requested.
    TooMany,
    Panic,
    End,
}

impl Scripted {
    fn new(steps: impl Into<Vec<Step>>, polled: bool) -> Scripted {
        let ready = polled.then(|| io::pipe().unwrap().0); // without a writer: readable, as it is at its end
        Scripted { steps: steps.into(), at: 0, delivered: 0, finish: None, size: None, place: None, ready }
    }

    /// Delivers all of `data`, in pieces.
    fn whole(data: &[u8], polled: bool) -> Scripted {
        let mut steps: Vec<_> = data.chunks(999).map(|piece| Step::Bytes(piece.to_vec())).collect();
        for at in (0..steps.len()).step_by(7) {
            steps.insert(at, Step::Error(|| io::ErrorKind::Interrupted.into()));
            steps.insert(at, Step::Error(|| io::ErrorKind::WouldBlock.into()));
        }
        Scripted::new(steps, polled)
    }
}

impl Source for Scripted {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        let step = self.steps.get(self.at).cloned().unwrap_or(Step::End);
        self.at += 1;
        match step {
            Step::Bytes(bytes) => {
                let count = bytes.len().min(block.len());
                block[..count].copy_from_slice(&bytes[..count]);
                if count < bytes.len() {
                    self.at -= 1;
                    self.steps[self.at] = Step::Bytes(bytes[count..].to_vec());
                }
                self.delivered += count as u64;
                Ok(count)
            }
            Step::Error(error) => Err(error()),
            Step::TooMany => Ok(block.len() + 1),
            Step::Panic => panic!("on purpose"),
            Step::End => Ok(0),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.finish.map_or(Ok(()), |error| Err(error()))
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(AsFd::as_fd)
    }

    fn size(&self) -> Option<u64> {
        self.size
    }

    fn place(&self) -> Option<(String, u64)> {
        self.place.map(|name| (name.into(), 1_000_000 + self.delivered))
    }
}

#[test]
fn every_byte_arrives_in_every_way() {
    let data = sample::lines(20_000);
    for polled in [true, false] {
        for mode in every_mode() {
            for pull in EVERY_PULL {
                let source = Scripted::whole(&data, polled);
                let mut reader = mode.builder().source(source).unwrap();
                assert!(drain_whole(&mut reader, pull) == data, "{mode:?} {pull:?} {polled}");
                reader.close().unwrap();
            }
        }
    }
}

#[test]
fn a_failure_at_the_end_is_reported_after_all_bytes() {
    let data = sample::lines(5_000);
    for polled in [true, false] {
        for mode in every_mode() {
            for pull in EVERY_PULL {
                let failing = Scripted {
                    finish: Some(|| Error::new(ErrorKind::SourceChanged).with_found("another ETag").into()),
                    place: Some("bucket/key"),
                    ..Scripted::whole(&data, polled)
                };
                let mut reader = mode.builder().source(failing).unwrap();
                assert_eq!(reader.name(), "bucket/key");
                let (bytes, error) = drain(&mut reader, pull);
                assert!(bytes == data, "{mode:?} {pull:?} {polled}: {} bytes", bytes.len());
                let error = error.unwrap();
                assert_eq!(error.kind(), ErrorKind::SourceChanged, "{error}");
                assert!(error.found().unwrap().starts_with("another ETag"), "{error}");
                let end = 1_000_000 + data.len() as u64;
                assert_eq!((error.name(), error.offset()), (Some("bucket/key"), Some(end)), "{error}");
            }
        }
    }
}

/// Bytes that could begin a compressed format are held back. They are also delivered before the error.
#[cfg(feature = "compression")]
#[test]
fn a_failure_is_reported_after_held_back_bytes() {
    for polled in [true, false] {
        let steps = [Step::Bytes(b"\x1f".to_vec()), Step::Error(|| io::Error::from_raw_os_error(5))];
        let builder = Reader::builder().decode(millstream::Decode::Auto);
        let mut reader = builder.source(Scripted::new(steps, polled)).unwrap();
        let (bytes, error) = drain(&mut reader, Pull::Fill);
        assert_eq!((&bytes[..], error.unwrap().errno()), (&b"\x1f"[..], Some(5)));
    }
}

/// A source's mistake is reported as an error after the data that the source delivered. It never causes a crash, a
/// loss of data or a different end.
#[test]
fn broken_promises_are_errors() {
    let cases: [(&str, Vec<Step>, ErrorKind, &str); 7] = [
        ("too many", vec![Step::TooMany], ErrorKind::Io, "a read that reports"),
        ("panic", vec![Step::Panic], ErrorKind::Io, "a panic in the source"),
        ("later", vec![Step::End, Step::Bytes(b"lost".to_vec())], ErrorKind::Io, "continues after its end"),
        (
            "waits after the end",
            vec![Step::End, Step::Error(|| io::ErrorKind::WouldBlock.into())],
            ErrorKind::Io,
            "continues after its end",
        ),
        (
            "fails after the end",
            vec![Step::End, Step::Error(|| Error::new(ErrorKind::SourceShrank).with_found("a cut").into())],
            ErrorKind::SourceShrank,
            "a cut",
        ),
        (
            "cancelled by no token",
            vec![Step::Error(|| Error::new(ErrorKind::Cancelled).into()), Step::Bytes(b"lost".to_vec())],
            ErrorKind::Io,
            "a source that failed: cancelled",
        ),
        (
            "an error of records",
            vec![Step::Error(|| Error::new(ErrorKind::RecordTooLong).into()), Step::Bytes(b"lost".to_vec())],
            ErrorKind::Io,
            "a source that failed: record too long",
        ),
    ];
    for polled in [true, false] {
        for mode in every_mode() {
            for (name, wrong, kind, found) in &cases {
                let (mode, found) = (mode, *found);
                let steps = [&[Step::Bytes(b"one\ntwo\n".to_vec())], &wrong[..]].concat();
                let (bytes, error) = within_seconds(60, move || {
                    let mut reader = mode.builder().source(Scripted::new(steps, polled)).unwrap();
                    drain(&mut reader, Pull::Frames)
                });
                assert_eq!(bytes, b"one\ntwo\n", "{mode:?} {name} {polled}");
                let error = error.unwrap();
                assert_eq!(error.kind(), *kind, "{mode:?} {name} {polled}: {error}");
                assert!(error.found().unwrap().contains(found), "{mode:?} {name} {polled}: {error}");
            }
        }
    }
}

#[test]
fn the_announced_length_is_progress_and_is_checked() {
    for polled in [true, false] {
        let open = |size| {
            let source = Scripted::new([Step::Bytes(b"one\n".to_vec()), Step::Bytes(b"two\n".to_vec())], polled);
            Reader::source(Scripted { size: Some(size), ..source }).unwrap()
        };
        let mut reader = open(8);
        assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
        assert_eq!(reader.progress().source_size, Some(8));
        assert_eq!(reader.progress_handle().source_size(), Some(8));
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"two\n");
        assert_eq!(reader.progress().source_bytes, 8);

        for (size, kind) in [(9, ErrorKind::SourceShrank), (7, ErrorKind::SourceChanged)] {
            let (bytes, error) = drain(&mut open(size), Pull::Frames);
            assert_eq!((&bytes[..], error.unwrap().kind()), (&b"one\ntwo\n"[..], kind), "{polled}");
        }
    }
}

/// Delivers data that is written to a pipe: reads block, unless it is polled.
struct Slow {
    pipe: PipeReader,
    polled: bool,
    dropped: Option<mpsc::Sender<()>>,
    /// Interrupts a read that blocks.
    writer: Option<PipeWriter>,
}

impl Slow {
    fn new(polled: bool) -> (Slow, PipeWriter) {
        let (pipe, writer) = io::pipe().unwrap();
        (Slow { pipe, polled, dropped: None, writer: None }, writer)
    }
}

impl Source for Slow {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.pipe.read(block)
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.polled.then_some(self.pipe.as_fd())
    }

    fn canceller(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut writer = self.writer.as_ref()?.try_clone().unwrap();
        Some(Box::new(move || writer.write_all(b"wake up").unwrap()))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Some(dropped) = &self.dropped {
            dropped.send(()).unwrap();
        }
    }
}

#[test]
fn a_blocked_source_is_cancelled_immediately_without_loss() {
    for polled in [true, false] {
        for mode in every_mode() {
            within_seconds(60, move || {
                let token = CancelToken::new().unwrap();
                let (source, mut writer) = Slow::new(polled);
                let mut reader = mode.builder().cancel(&token).source(source).unwrap();
                writer.write_all(b"one\ntwo: begin").unwrap();
                assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
                let canceller = token.clone();
                let thread = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    canceller.cancel();
                    Instant::now()
                });
                let error = reader.next_line().unwrap_err();
                let since = thread.join().unwrap().elapsed();
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{mode:?} {polled}: {error}");
                assert!(since < Duration::from_secs(1), "{mode:?} {polled}: {since:?} after cancelling");
                token.reset();
                writer.write_all(b", end\n").unwrap();
                drop(writer);
                assert_eq!(reader.next_line().unwrap(), Some(&b"two: begin, end"[..]), "{mode:?} {polled}");
                assert_eq!(reader.next_line().unwrap(), None);
            });
        }
    }
}

#[test]
fn a_silent_source_stalls() {
    for polled in [true, false] {
        for mode in every_mode() {
            within_seconds(60, move || {
                let (source, _writer) = Slow::new(polled);
                let mut reader = mode.builder().stall_timeout(Duration::from_millis(20)).source(source).unwrap();
                assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Stalled, "{mode:?} {polled}");
            });
        }
    }
}

/// Closing does not wait for a read that cannot be interrupted, and waits for the thread of one that can.
#[test]
fn a_blocked_source_does_not_hold_up_closing() {
    for mode in every_mode() {
        let (sender, dropped) = mpsc::channel();
        within_seconds(60, move || {
            let (source, _writer) = Slow::new(false);
            mode.builder().source(source).unwrap().close().unwrap();

            let (mut source, writer) = Slow::new(false);
            (source.dropped, source.writer) = (Some(sender), Some(writer));
            mode.builder().source(source).unwrap().close().unwrap();
        });
        dropped.try_recv().expect("the source is dropped when `close` returns");
    }
}

/// The canceller is for readers that stop early: at the end there is no read to interrupt.
#[test]
fn a_source_at_its_end_is_not_cancelled() {
    struct Ended(Arc<AtomicBool>);
    impl Source for Ended {
        fn read(&mut self, _block: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn canceller(&self) -> Option<Box<dyn FnOnce() + Send>> {
            let called = self.0.clone();
            Some(Box::new(move || called.store(true, Ordering::SeqCst)))
        }
    }
    let called = Arc::new(AtomicBool::new(false));
    let mut reader = Reader::source(Ended(called.clone())).unwrap();
    assert_eq!(reader.next_line().unwrap(), None);
    reader.close().unwrap();
    assert!(!called.load(Ordering::SeqCst));
}
