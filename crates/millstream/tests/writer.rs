//! The writer compared with a model: for any behaviour of the sink, every accepted byte arrives once and in order.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream::{
    Durability, Encode, ErrorKind, Existing, FlushPolicy, LendPages, Partial, Writer, WriterBuilder, put,
};
use proptest::prelude::*;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod skip;

/// The effect of one call of a sink.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Accepts at most this many bytes.
    Take(usize),
    Interrupt,
    WouldBlock,
    Fail,
}

/// A sink that follows a script and then accepts all bytes.
#[derive(Clone)]
struct Scripted(Arc<Mutex<Script>>);

struct Script {
    acts: VecDeque<Act>,
    arrived: Vec<u8>,
}

impl Scripted {
    fn new(acts: impl IntoIterator<Item = Act>) -> Scripted {
        Scripted(Arc::new(Mutex::new(Script { acts: acts.into_iter().collect(), arrived: Vec::new() })))
    }

    fn arrived(&self) -> Vec<u8> {
        self.0.lock().unwrap().arrived.clone()
    }

    fn heal(&self) {
        self.0.lock().unwrap().acts.clear();
    }
}

impl Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut script = self.0.lock().unwrap();
        let taken = match script.acts.pop_front() {
            None => bytes.len(),
            Some(Act::Take(most)) => bytes.len().min(most),
            Some(Act::Interrupt) => return Err(io::ErrorKind::Interrupted.into()),
            Some(Act::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Some(Act::Fail) => return Err(io::Error::other("scripted")),
        };
        script.arrived.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns bytes that depend on their position, with a newline occasionally.
fn pattern(start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|i| if i % 11 == 10 { b'\n' } else { (i % 251) as u8 }).collect()
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Write(usize),
    /// Requests this many bytes of space and commits that many.
    Space(usize, usize),
    /// Puts this many bytes and a number.
    Put(usize, u64),
    Flush,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..70usize).prop_map(Op::Write),
        3 => (0..70usize, 0..70usize).prop_map(|(asked, used)| Op::Space(asked, used)),
        3 => (0..70usize, any::<u64>(), 0..64).prop_map(|(len, number, shift)| Op::Put(len, number >> shift)),
        1 => Just(Op::Flush),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1..50usize).prop_map(Act::Take),
        1 => Just(Act::Take(1)),
        1 => Just(Act::Interrupt),
        1 => Just(Act::WouldBlock),
        1 => Just(Act::Fail),
    ]
}

fn policy() -> impl Strategy<Value = FlushPolicy> {
    prop_oneof![
        Just(FlushPolicy::WhenFull),
        Just(FlushPolicy::Line),
        Just(FlushPolicy::Delay(Duration::from_secs(3600))),
        Just(FlushPolicy::Delay(Duration::ZERO)),
    ]
}

/// Runs `ops`, checks the writer's results at every step, and returns the accepted bytes.
fn run(writer: &mut Writer, sink: &Scripted, ops: &[Op]) -> Vec<u8> {
    let mut accepted = Vec::new();
    for &op in ops {
        let result = match op {
            Op::Write(len) => {
                let bytes = pattern(accepted.len(), len);
                writer.write(&bytes).map(|()| accepted.extend_from_slice(&bytes))
            }
            Op::Space(asked, used) => writer
                .space(asked)
                .map(|space| {
                    assert!(space.len() >= asked);
                    let bytes = pattern(accepted.len(), used.min(space.len()));
                    space[..bytes.len()].copy_from_slice(&bytes);
                    bytes
                })
                .and_then(|bytes| writer.commit(bytes.len()).map(|()| accepted.extend_from_slice(&bytes))),
            Op::Put(len, number) => {
                let bytes = pattern(accepted.len(), len);
                put!(writer, bytes, number, '!')
                    .map(|()| accepted.extend([&bytes[..], format!("{number}!").as_bytes()].concat()))
            }
            Op::Flush => writer.flush().map(|()| assert_eq!(sink.arrived(), accepted)),
        };
        assert_eq!(writer.accepted(), accepted.len() as u64, "{op:?}: {result:?}");
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.written().unwrap() <= sink.arrived().len() as u64);
        }
    }
    accepted
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn every_accepted_byte_arrives_once(
        capacity in 1..48usize,
        policy in policy(),
        ops in prop::collection::vec(op(), 0..40),
        acts in prop::collection::vec(act(), 0..60),
    ) {
        let sink = Scripted::new(acts);
        let mut writer =
            Writer::builder().capacity(capacity).flush_policy(policy).from_write(sink.clone()).unwrap();
        let accepted = run(&mut writer, &sink, &ops);
        prop_assert!(accepted.starts_with(&sink.arrived()));
        sink.heal();
        // The first flush may have an error to report; the second has none.
        let _ = writer.flush();
        writer.flush().unwrap();
        prop_assert_eq!(&sink.arrived(), &accepted);
        prop_assert_eq!(writer.written(), accepted.len() as u64);
        let end = writer.close().unwrap();
        prop_assert_eq!((end.bytes, end.written), (accepted.len() as u64, accepted.len() as u64));
    }

    #[test]
    fn closing_and_dropping_deliver_the_rest(
        capacity in 1..48usize,
        policy in policy(),
        ops in prop::collection::vec(op(), 0..20),
        close: bool,
    ) {
        let sink = Scripted::new([]);
        let mut writer =
            Writer::builder().capacity(capacity).flush_policy(policy).from_write(sink.clone()).unwrap();
        let accepted = run(&mut writer, &sink, &ops);
        if close {
            writer.close().unwrap();
        } else {
            drop(writer);
        }
        prop_assert_eq!(sink.arrived(), accepted);
    }

    #[test]
    fn a_failed_close_can_continue(
        capacity in 1..48usize,
        policy in policy(),
        ops in prop::collection::vec(op(), 0..20),
        acts in prop::collection::vec(act(), 0..20),
    ) {
        let sink = Scripted::new([]);
        let mut writer =
            Writer::builder().capacity(capacity).flush_policy(policy).from_write(sink.clone()).unwrap();
        let accepted = run(&mut writer, &sink, &ops);
        sink.0.lock().unwrap().acts = acts.into();
        let end = loop {
            match writer.try_close() {
                Ok(end) => break end,
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Io),
            }
        };
        prop_assert_eq!((end.bytes, end.written), (accepted.len() as u64, accepted.len() as u64));
        prop_assert_eq!(sink.arrived(), accepted);
    }
}

#[test]
fn from_the_first_close_on_no_more_bytes_are_accepted() {
    let sink = Scripted::new([Act::Fail, Act::Take(1), Act::Fail]);
    let mut writer = Writer::from_write(sink.clone()).unwrap();
    writer.write(b"one").unwrap();
    for _ in 0..2 {
        assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(writer.write(b"two").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(writer.space(1).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(writer.flush().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(writer.accepted(), 3);
    }
    assert_eq!(writer.try_close().unwrap().bytes, 3);
    assert_eq!(writer.write(b"two").unwrap_err().kind(), ErrorKind::Closed);
    drop(writer);
    assert_eq!(sink.arrived(), b"one");
}

#[test]
fn an_error_of_before_does_not_keep_a_close_from_beginning() {
    let sink = Scripted::new([Act::Take(10), Act::Fail]);
    let mut writer = Writer::builder().capacity(16).from_write(sink.clone()).unwrap();
    writer.write(&[b'a'; 40]).unwrap(); // part of the record is written, so all of it is accepted
    assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(writer.write(b"more").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(writer.space(1).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(writer.try_close().unwrap().bytes, 40);
    assert_eq!(sink.arrived(), [b'a'; 40]);
}

/// A sink that panics when it is called for the first time, or when it is flushed, and counts its calls.
#[derive(Clone)]
struct Panicking(Arc<Mutex<usize>>, &'static str);

impl Panicking {
    fn call(&self, call: &str) {
        *self.0.lock().unwrap() += usize::from(call == self.1);
        if call == self.1 {
            std::panic::resume_unwind(Box::new("on purpose")); // without a message
        }
    }
}

impl Write for Panicking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call("write");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call("flush");
        Ok(())
    }
}

#[test]
fn a_sink_that_has_panicked_is_not_called_again() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    type Use = fn(&mut Writer);
    let uses: [Use; 5] = [
        |writer| drop(writer.write(b"longer than the buffer")),
        |writer| drop((writer.write(b"12345678"), writer.write(b"9"))),
        |writer| drop(writer.write(b"x").and_then(|()| writer.flush())),
        |writer| drop(writer.write(b"x").and_then(|()| writer.try_close())),
        |writer| drop(writer.write(b"a line\n").and_then(|()| writer.flush())),
    ];
    for panics_in in ["write", "flush"] {
        for encode in [Encode::Off, Encode::Gzip] {
            for policy in [FlushPolicy::WhenFull, FlushPolicy::Line, FlushPolicy::Delay(Duration::from_secs(3600))] {
                for (i, act) in uses.iter().enumerate() {
                    let panicking = Panicking(Arc::default(), panics_in);
                    let builder = || Writer::builder().capacity(8).encode(encode).flush_policy(policy);
                    let count = || *panicking.0.lock().unwrap();
                    // The panic drops the writer: if the sink were called at that point, the process would abort.
                    let mut writer = builder().from_write(panicking.clone()).unwrap();
                    let unwound = catch_unwind(AssertUnwindSafe(move || act(&mut writer))).is_err();
                    assert!(count() <= 1, "{i}: the writer was dropped by the panic and called the sink again");
                    // The panic is caught, and the writer is used again.
                    let mut writer = builder().from_write(panicking.clone()).unwrap();
                    *panicking.0.lock().unwrap() = 0;
                    if catch_unwind(AssertUnwindSafe(|| act(&mut writer))).is_err() {
                        assert!(unwound);
                        let error = writer.flush().unwrap_err();
                        assert!(matches!(error.kind(), ErrorKind::Closed | ErrorKind::Internal), "{error}");
                        assert!(writer.try_close().is_err());
                        drop(writer);
                        assert_eq!(count(), 1);
                    } else {
                        writer.abort();
                    }
                }
            }
        }
    }
    // Threads share the writer, and one of them panics.
    let panicking = Panicking(Arc::default(), "write");
    let shared = Writer::builder().capacity(1).from_write(panicking.clone()).unwrap().shared();
    let other = shared.clone();
    assert!(std::thread::spawn(move || other.write_record(b"record")).join().is_err());
    assert_eq!(shared.write_record(b"record").unwrap_err().kind(), ErrorKind::Closed);
    drop(shared);
    assert_eq!(*panicking.0.lock().unwrap(), 1);
}

#[test]
fn too_much_space_is_an_error_without_effect() {
    let mut writer = Writer::memory().unwrap();
    writer.write(b"one").unwrap();
    for len in [1 << 50, isize::MAX as usize, usize::MAX] {
        let error = writer.space(len).unwrap_err();
        assert_eq!((error.kind(), error.errno()), (ErrorKind::Io, Some(rustix::io::Errno::NOMEM.raw_os_error())));
        assert_eq!(error.name(), Some(writer.name()));
        put!(writer, 2).unwrap();
    }
    assert_eq!(writer.close().unwrap().memory.unwrap(), b"one222");
}

/// Writes half of the address space, so that there can be no copy of it.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[test]
fn a_large_write_that_is_neither_out_nor_kept_ends_the_writer() {
    let Ok(huge) = memmap2::MmapOptions::new().len(1 << 46).no_reserve_swap().map_anon() else {
        return skip::say("a system that promises no more memory than it has");
    };
    let sink = Scripted::new([Act::Take(10), Act::Fail]);
    let mut writer = Writer::from_write(sink.clone()).unwrap();
    let error = writer.write(&huge).unwrap_err();
    assert_eq!((error.errno(), error.written()), (Some(rustix::io::Errno::NOMEM.raw_os_error()), Some(10)));
    assert_eq!(writer.write(b"more").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Closed);
    drop(writer);
    assert_eq!(sink.arrived(), [0; 10]);
}

#[test]
#[should_panic(expected = "more bytes than there was space")]
fn space_from_before_a_close_is_invalid() {
    let mut writer = Writer::from_write(Scripted::new([Act::Fail])).unwrap();
    writer.write(b"one").unwrap();
    writer.space(10).unwrap();
    writer.try_close().unwrap_err();
    let _ = writer.commit(1);
}

#[cfg(feature = "compression")]
mod encoded {
    use super::*;
    use std::io::Read;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        // The output is compressed, so the twin is compared after decoding.
        #[test]
        fn a_failing_sink_costs_no_byte(
            encode in prop_oneof![Just(Encode::Gzip), Just(Encode::Bgzf), Just(Encode::Zstd)],
            capacity in 1..48usize,
            policy in policy(),
            ops in prop::collection::vec(op(), 0..12),
            acts in prop::collection::vec(act(), 0..30),
        ) {
            let sink = Scripted::new(acts);
            let mut writer = Writer::builder()
                .capacity(capacity)
                .flush_policy(policy)
                .encode(encode)
                .from_write(sink.clone())
                .unwrap();
            let mut accepted = Vec::new();
            for op in ops {
                match op {
                    Op::Write(len) | Op::Space(len, _) | Op::Put(len, _) => {
                        let bytes = pattern(accepted.len(), len);
                        if writer.write(&bytes).is_ok() {
                            accepted.extend_from_slice(&bytes);
                        }
                    }
                    Op::Flush => drop(writer.flush()),
                }
                prop_assert_eq!(writer.accepted(), accepted.len() as u64);
            }
            while writer.try_close().is_err() {}
            let arrived = sink.arrived();
            let decoded = match encode {
                Encode::Zstd => zstd::decode_all(&arrived[..]).unwrap(),
                _ => {
                    let mut decoded = Vec::new();
                    flate2::read::MultiGzDecoder::new(&arrived[..]).read_to_end(&mut decoded).unwrap();
                    decoded
                }
            };
            prop_assert_eq!(decoded, accepted);
        }
    }

    #[test]
    fn levels_that_no_format_has_are_refused() {
        for (encode, level) in [(Encode::Gzip, 10), (Encode::Bgzf, 10), (Encode::Zstd, 23), (Encode::Zstd, 0)] {
            let error = Writer::builder().encode(encode).level(level).memory().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOption);
            assert!(error.found().unwrap().contains(&level.to_string()), "{error}");
        }
    }
}

#[test]
fn an_error_reports_how_many_bytes_were_written() {
    for n in 0..200usize {
        let sink = Scripted::new(std::iter::repeat_n(Act::Take(1), n).chain([Act::Fail]));
        let mut writer = Writer::builder().capacity(16).from_write(sink.clone()).unwrap();
        let mut accepted = Vec::new();
        let error = loop {
            let record = pattern(accepted.len(), 10);
            match writer.write(&record) {
                Ok(()) => accepted.extend_from_slice(&record),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.name(), Some("a writer of the program"));
        assert_eq!(error.written(), Some(n as u64));
        assert_eq!(sink.arrived(), accepted[..n]);
        writer.flush().unwrap();
        assert_eq!(sink.arrived(), accepted);
    }
}

#[test]
fn a_large_write_that_fails_in_the_middle_defers_its_error() {
    let sink = Scripted::new([Act::Take(30), Act::Fail]);
    let mut writer = Writer::builder().capacity(16).from_write(sink.clone()).unwrap();
    let large = pattern(0, 100);
    writer.write(&large).unwrap();
    assert_eq!((writer.accepted(), writer.written()), (100, 30));
    let error = writer.write(b"x").unwrap_err();
    assert_eq!(error.written(), Some(30));
    assert_eq!(writer.accepted(), 100);
    writer.flush().unwrap();
    assert_eq!(sink.arrived(), large);
}

#[test]
fn a_write_that_fits_in_a_grown_buffer_keeps_the_order() {
    let mut writer = Writer::builder().capacity(8).flush_policy(FlushPolicy::Line).memory().unwrap();
    writer.space(100).unwrap()[..3].copy_from_slice(b"abc");
    writer.commit(3).unwrap();
    writer.write(b"longer than 8\n").unwrap();
    assert_eq!(writer.close().unwrap().memory.unwrap(), b"abclonger than 8\n");
}

#[test]
fn small_writes_wait_for_a_full_buffer_and_large_ones_pass_through() {
    let calls = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
    let seen = calls.clone();
    let mut writer = Writer::builder()
        .capacity(8)
        .callback(move |bytes: &[u8]| {
            seen.lock().unwrap().push(bytes.to_vec());
            Ok(bytes.len())
        })
        .unwrap();
    writer.write(b"abc").unwrap();
    writer.write(b"defgh").unwrap();
    assert!(calls.lock().unwrap().is_empty());
    writer.write(b"ij").unwrap();
    assert_eq!(*calls.lock().unwrap(), [b"abcdefgh"]);
    writer.write(b"0123456789").unwrap();
    assert_eq!(calls.lock().unwrap()[1..], [b"ij".to_vec(), b"0123456789".to_vec()]);
    writer.close().unwrap();
    assert_eq!(calls.lock().unwrap().len(), 3);
}

#[test]
fn a_callback_that_counts_wrongly_is_an_error() {
    for count in [0, 100] {
        let mut writer = Writer::callback(move |_: &[u8]| Ok(count)).unwrap();
        writer.write(b"abc").unwrap();
        assert_eq!(writer.flush().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(writer.accepted(), 3);
    }
}

#[test]
fn options_that_cannot_be_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out");
    // The address cannot be reached: the options are checked first.
    type Open<'a> = &'a dyn Fn(WriterBuilder) -> millstream::Result<Writer>;
    type Set<'a> = &'a dyn Fn(WriterBuilder) -> WriterBuilder;
    let sinks: [(&str, Open); 9] = [
        ("path", &|builder| builder.path(&file)),
        ("fd", &|builder| builder.fd(fs::File::open("/dev/null").unwrap())),
        ("command", &|builder| builder.command(["cat"])),
        ("tcp", &|builder| builder.tcp("127.0.0.1:1")),
        ("unix", &|builder| builder.unix("/nonexistent")),
        ("from_write", &|builder| builder.from_write(io::sink())),
        ("callback", &|builder| builder.callback(|bytes: &[u8]| Ok(bytes.len()))),
        ("memory", &|builder| builder.memory()),
        ("nowhere", &|builder| builder.nowhere()),
    ];
    let ms = Duration::from_millis(1);
    // The error, the option that causes it, and the sinks that have it.
    let rows: [(&str, Set, &[&str]); 15] = [
        ("0 bytes", &|builder| builder.capacity(0), &[]),
        ("1125899906842624 bytes", &|builder| builder.capacity(1 << 50), &[]),
        ("18446744073709551615 bytes", &|builder| builder.capacity(usize::MAX), &[]),
        ("a compression level", &|builder| builder.level(3), &[]),
        ("a compression level", &|builder| builder.level(3).encode(Encode::Off), &[]),
        ("0 s", &|builder| builder.stall_timeout(Duration::ZERO), &[]),
        ("appending", &|builder| builder.existing(Existing::Append), &["path"]),
        ("durable", &|builder| builder.durability(Durability::Data), &["path"]),
        ("durable", &|builder| builder.durability(Durability::All), &["path"]),
        ("lent", &|builder| builder.lend_pages(LendPages::ConsumerCopies), &["path", "fd", "command"]),
        ("lent", &|builder| builder.lend_pages(LendPages::ConsumerCopies).encode(Encode::Gzip), &[]),
        ("lent", &|builder| builder.lend_pages(LendPages::ConsumerCopies).flush_policy(FlushPolicy::Delay(ms)), &[]),
        ("kept", &|builder| builder.partial(Partial::Keep), &["path"]),
        ("stall", &|builder| builder.stall_timeout(ms), &["path", "fd", "command", "tcp", "unix", "memory", "nowhere"]),
        (
            "delay",
            &|builder| builder.flush_policy(FlushPolicy::Delay(ms)),
            &["path", "fd", "command", "tcp", "unix", "from_write", "memory", "nowhere"],
        ),
    ];
    for (found, set, fine) in rows {
        for (name, open) in sinks {
            match open(set(Writer::builder())) {
                Err(error) if error.kind() == ErrorKind::InvalidOption => {
                    assert!(!fine.contains(&name), "{found}, {name}: {error}");
                    assert!(error.found().unwrap().contains(found) && error.expected().is_some(), "{name}: {error}");
                }
                _ => assert!(fine.contains(&name), "{name} accepted {found}"),
            }
            // Only valid options open a sink.
            assert!(fs::remove_file(&file).is_err() || fine.contains(&name), "{found}");
        }
    }
}

#[test]
fn the_writer_is_an_io_write() {
    let mut writer = Writer::memory().unwrap();
    write!(writer, "{}-two", 1).unwrap();
    io::copy(&mut &b"!"[..], &mut writer).unwrap();
    assert_eq!(writer.close().unwrap().memory.unwrap(), b"1-two!");

    let broken = |_: &[u8]| Err(io::ErrorKind::BrokenPipe.into());
    let mut writer = Writer::builder().capacity(1).callback(broken).unwrap();
    let error = io::Write::write(&mut writer, b"xy").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(millstream::Error::from_io(error).kind(), ErrorKind::BrokenPipe);
}

#[test]
#[should_panic(expected = "commit of more bytes")]
fn committing_more_than_there_was_space_is_a_broken_promise() {
    let mut writer = Writer::builder().capacity(8).memory().unwrap();
    writer.space(4).unwrap();
    writer.commit(9).unwrap();
}
