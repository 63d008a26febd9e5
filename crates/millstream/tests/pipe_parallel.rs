//! Stages on several threads. The output equals the output of plain iterators, for any batches, threads and delays.
//! Errors come after all earlier results, a slow sink stops the source, and no thread remains.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use millstream::pipe::{OnError, Pipe, Stage, Threads};
use millstream::{ErrorKind, Reader, Writer};
use proptest::prelude::*;

fn number(line: &[u8]) -> u64 {
    std::str::from_utf8(line).unwrap().parse().unwrap()
}

/// Returns the lines "0", "1", …, in pieces of these sizes, which are repeated.
fn pieces(count: u64, sizes: Vec<usize>) -> Reader {
    let bytes: Vec<u8> = (0..count).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let (mut at, mut turn) = (0, 0);
    let read = move |space: &mut [u8]| {
        let size = sizes[turn % sizes.len()].min(space.len()).min(bytes.len() - at);
        turn += 1;
        space[..size].copy_from_slice(&bytes[at..at + size]);
        at += size;
        Ok(size)
    };
    Reader::callback(read).unwrap()
}

/// Waits occasionally, so that threads overtake each other.
fn dawdle(n: u64) {
    match n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56 {
        0..3 => std::thread::sleep(Duration::from_micros(200)),
        3..30 => std::thread::yield_now(),
        _ => {}
    }
}

/// One stage of the chains below, and its effect on a list.
#[derive(Clone, Copy, Debug)]
enum Step {
    Filter(u64),
    FlatMap(u64),
    Map(u64),
    FilterMap(u64),
}

impl Step {
    fn apply(self, n: u64) -> Vec<u64> {
        match self {
            Step::Filter(m) => Vec::from_iter((!n.is_multiple_of(m)).then_some(n)),
            Step::FlatMap(m) => (0..n % m).map(|i| n + i).collect(),
            Step::Map(m) => vec![n.wrapping_mul(m)],
            Step::FilterMap(m) => Vec::from_iter(n.checked_sub(m)),
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..4, 2..9_u64).prop_map(|(kind, m)| match kind {
        0 => Step::Filter(m),
        1 => Step::FlatMap(m),
        2 => Step::Map(m),
        _ => Step::FilterMap(m),
    });
    prop::collection::vec(step, 0..4)
}

fn through(steps: &[Step], numbers: Vec<u64>) -> Vec<u64> {
    steps.iter().fold(numbers, |numbers, step| numbers.into_iter().flat_map(|n| step.apply(n)).collect())
}

/// Wraps any stages, each as one `flat_map`, since their types differ.
fn flat(steps: Vec<Step>) -> impl Fn(u64) -> Vec<u64> + Clone + Send {
    move |n| through(&steps, vec![n])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_results_equal_those_of_iterators(
        before in steps(), inside in steps(), after in steps(),
        count in 0..6000_u64, threads in 1..5_usize, sizes in prop::collection::vec(1..70_000_usize, 1..4),
        batch in prop_oneof![Just(usize::MAX), 1..50_usize], ordered: bool, boxed: bool,
    ) {
        let how = if ordered { Threads::ordered(threads) } else { Threads::unordered(threads) };
        let all = [&before[..], &inside, &after].concat();
        let mut expected = through(&all, (0..count).collect());
        let inside = flat(inside);
        let inner = move |n: u64| {
            dawdle(n);
            inside(n)
        };
        let source = Pipe::from(pieces(count, sizes)).lines().batch(batch).map(number).flat_map(flat(before));
        let mut out = if boxed {
            let stage: Stage<_, _> = Pipe::stages_of_values().parallel(how, |stages| stages.flat_map(inner)).boxed("threads");
            source.then(stage).flat_map(flat(after)).collect().unwrap()
        } else {
            source.parallel(how, |stages| stages.flat_map(inner)).flat_map(flat(after)).collect().unwrap()
        };
        if !ordered {
            out.sort_unstable();
            expected.sort_unstable();
        }
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn bytes_there_and_back(
        count in 0..4000_u64, threads in 1..4_usize, sizes in prop::collection::vec(1..9000_usize, 1..4), cut: bool,
    ) {
        let mut out = Writer::memory().unwrap();
        let mut pipe = Pipe::from(pieces(count, sizes)).lines().filter(|line| !line.ends_with(b"3")).parallel(threads, |stages| {
            stages
                .inspect(|line| dawdle(number(line)))
                .filter(|line| !line.ends_with(b"7"))
                .pieces(|line, next| line.split(|byte| *byte == b'5').for_each(next))
                .rewrite(|piece, out| {
                    out.extend_from_slice(piece);
                    out.extend_from_slice(b"!");
                })
                .map_bytes(|piece| &piece[piece.len() / 2..])
        });
        if cut {
            pipe.cut("all").map_bytes(|piece| piece).write_to(&mut out).unwrap();
        } else {
            pipe.write_to(&mut out).unwrap();
        }
        let mut expected = String::new();
        for n in (0..count).filter(|n| n % 10 != 3 && n % 10 != 7) {
            for piece in n.to_string().split('5') {
                let piece = format!("{piece}!");
                expected += &piece[piece.len() / 2..];
                expected += "\n";
            }
        }
        prop_assert_eq!(String::from_utf8(out.close().unwrap().memory.unwrap()).unwrap(), expected);
    }

    /// The error or panic is before, inside or after the threads: earlier records have passed, and the error names the
    /// failed one.
    #[test]
    fn an_error_comes_after_all_earlier_results(
        bad in 0..3000_u64, threads in 1..5_usize, sizes in prop::collection::vec(1..9000_usize, 1..3),
        place in 0..3, panics: bool, cut: bool, boxed: bool,
    ) {
        let fails = move |here: i32| move |n: u64| match here == place && n == bad {
            true if panics => panic!("no good"),
            true => Err("no good"),
            false => Ok(n),
        };
        let reader = pieces(3000, sizes);
        let mut seen = Vec::new();
        let source = Pipe::from(reader).lines().map(number).try_map(fails(0));
        let inner = move |n: u64| {
            dawdle(n);
            fails(1)(n)
        };
        let error = match (cut, boxed) {
            (false, false) => {
                let pipe = source.parallel(threads, |stages| stages.try_map(inner));
                pipe.try_map(fails(2)).for_each(|n| seen.push(n))
            }
            (true, false) => {
                let pipe = source.cut("a").parallel(threads, |stages| stages.try_map(inner)).cut("b");
                pipe.try_map(fails(2)).for_each(|n| seen.push(n))
            }
            (cut, true) => {
                let stage = || {
                    let threads = Pipe::stages_of_values().parallel(threads, |stages| stages.try_map(inner));
                    let same: Stage<_, _> = threads.map(|n: u64| n).boxed("threads");
                    same
                };
                let last: Stage<_, _> = Pipe::stages_of_values().try_map(fails(2)).boxed("last");
                match cut {
                    true => source.then(stage()).then(last).for_each(|n| seen.push(n)),
                    false => source.then_all(vec![stage(), last]).for_each(|n| seen.push(n)),
                }
            }
        }.unwrap_err();
        let kind = if panics { ErrorKind::StagePanicked } else { ErrorKind::StageFailed };
        let offset: usize = (0..bad).map(|n| n.to_string().len() + 1).sum();
        prop_assert_eq!((error.kind(), error.record(), error.offset()), (kind, Some(bad), Some(offset as u64)));
        prop_assert_eq!(seen, (0..bad).collect::<Vec<_>>());
    }

    /// A policy applies before, inside and after the threads, over several sources, and no record is lost.
    #[test]
    fn bad_records_are_put_aside(
        threads in 1..4_usize, counts in prop::collection::vec(0..1500_u64, 1..4), unordered: bool, cut: bool,
    ) {
        let mut bad = Writer::memory().unwrap();
        let refuse = |m: u64| move |n: u64| if n % 11 == m { Err("no good") } else { Ok(n) };
        let how = if unordered { Threads::unordered(threads) } else { Threads::ordered(threads) };
        let readers = counts.iter().map(|count| pieces(*count, vec![100, 3000]));
        let inside = Pipe::merge(readers)
            .lines()
            .on_error(OnError::Quarantine(&mut bad))
            .map(number)
            .try_map(refuse(1))
            .parallel(how, |stages| {
                stages.inspect(|n| dawdle(*n)).try_filter(|n| if n % 11 == 2 { Err("no good") } else { Ok(true) })
            });
        let (mut good, failed) = if cut {
            let mut pipe = inside.cut("all").try_map(refuse(3));
            (pipe.collect().unwrap(), pipe.summary().failed)
        } else {
            let mut pipe = inside.try_map(refuse(3));
            (pipe.collect().unwrap(), pipe.summary().failed)
        };
        let kept = String::from_utf8(bad.close().unwrap().memory.unwrap()).unwrap();
        let mut kept: Vec<u64> = kept.lines().map(|line| number(line.as_bytes())).collect();
        let (mut good_ones, mut bad_ones): (Vec<u64>, Vec<u64>) =
            counts.iter().flat_map(|count| 0..*count).partition(|n| !matches!(n % 11, 1..4));
        good.sort_unstable();
        kept.sort_unstable();
        good_ones.sort_unstable();
        bad_ones.sort_unstable();
        prop_assert_eq!(failed, bad_ones.len() as u64);
        prop_assert_eq!((good, kept), (good_ones, bad_ones));
    }
}

#[test]
fn an_error_of_the_source_comes_after_all_its_records() {
    let mut seen = 0;
    let reader = Reader::command(["sh", "-c", "seq 1 50000; exit 3"]).unwrap();
    let mut pipe = Pipe::from(reader).lines().parallel(3, |stages| stages.map(number));
    let error = pipe.for_each(|_| seen += 1).unwrap_err();
    assert_eq!((error.kind(), seen), (ErrorKind::CommandFailed, 50_000));
}

#[test]
fn take_before_and_after_the_threads() {
    let reader = || Reader::command(["yes"]).unwrap();
    let before = Pipe::from(reader()).lines().take(1000).parallel(2, |stages| stages.map(|line| line.len())).collect();
    assert_eq!(before.unwrap(), [1; 1000]);
    let mut after = Pipe::from(reader()).lines().parallel(2, |stages| stages.map(|line| line.len())).take(1000);
    assert_eq!(after.collect().unwrap(), [1; 1000]);
    assert!(after.summary().ended_early);
}

/// There are two sections, one after another, and a failure for which each section has to wait.
#[test]
fn two_parallel_sections() {
    for bad in [0, 17, 9_999, u64::MAX] {
        let mut seen = Vec::new();
        let result = Pipe::from(pieces(10_000, vec![5000]))
            .lines()
            .parallel(2, |stages| stages.map(number).inspect(|n| dawdle(*n)))
            .filter(|_| true)
            .parallel(3, |stages| {
                stages.inspect(|n| dawdle(*n)).try_map(move |n| if n == bad { Err("bad") } else { Ok(n) })
            })
            .for_each(|n| seen.push(n));
        match bad {
            u64::MAX => assert_eq!(result.unwrap().items, 10_000),
            _ => assert_eq!(result.unwrap_err().record(), Some(bad)),
        }
        assert_eq!(seen, (0..bad.min(10_000)).collect::<Vec<_>>());
    }
}

/// If a source delivers a record and then no data, the record is passed on immediately. The sink triggers the next
/// record after it has received this one.
#[test]
fn a_trickle_is_seen_at_once() {
    use std::io::Write;
    let (reading, writing) = std::io::pipe().unwrap();
    let mut writing = Some(writing);
    let mut say = |n: u64| match n {
        0..50 => writeln!(writing.as_mut().unwrap(), "{n}").unwrap(),
        _ => writing = None,
    };
    say(0);
    let mut pipe = Pipe::from(Reader::fd(reading).unwrap()).lines().parallel(2, |stages| stages.map(number));
    pipe.for_each(|n| say(n + 1)).unwrap();
    assert_eq!(pipe.summary().items, 50);
}

/// Expensive items are sent one by one, so that all threads work even on a few of them.
#[test]
fn few_items_keep_all_threads_busy() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (working, seen) = (now.clone(), most.clone());
    let mut pipe = Pipe::from(pieces(120, vec![10_000])).lines().parallel(3, move |stages| {
        stages.map(move |line| {
            seen.fetch_max(working.fetch_add(1, SeqCst) + 1, SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            working.fetch_sub(1, SeqCst);
            number(line)
        })
    });
    assert_eq!(pipe.collect().unwrap(), (0..120).collect::<Vec<_>>());
    assert_eq!((now.load(SeqCst), most.load(SeqCst)), (0, 3));
}

/// With a slow sink, the number of items in progress is bounded.
#[test]
fn a_slow_sink_stops_the_source() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = begun.clone();
    let read = Cell::new(0);
    let (mut seen, mut most) = (0, 0);
    let mut pipe = Pipe::from(Reader::command(["seq", "600000"]).unwrap())
        .lines()
        .inspect(|_| read.set(read.get() + 1))
        .parallel(2, move |stages| stages.inspect(move |_| _ = counter.fetch_add(1, SeqCst)));
    pipe.for_each(|_| {
        seen += 1;
        most = most.max(read.get() - seen).max(begun.load(SeqCst) - seen);
        if seen % 50_000 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    })
    .unwrap();
    // There are a batch of 256 KiB, four chunks in progress, one that is being filled, and one that is being passed on;
    // nearly all lines have 7 bytes.
    assert!(most <= (256 + 6 * 64) * 1024 / 5, "{most} items in progress");
    assert_eq!(seen, 600_000);
}

#[test]
fn threads_end_with_their_pipe() {
    struct Counted(Arc<AtomicUsize>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, SeqCst);
            Counted(self.0.clone())
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    // Each thread has a copy of the stages, and so of this counter; the caller is one of the three.
    let copies = Arc::new(AtomicUsize::new(1));
    let counted = Counted(copies.clone());
    let mut pipe = Pipe::from(Reader::command(["yes"]).unwrap()).lines().parallel(3, |stages| {
        stages.map(move |line| {
            let _held = &counted;
            line.len()
        })
    });
    let mut most = 0;
    let error = pipe.try_for_each(|_| {
        most = most.max(copies.load(SeqCst));
        Err("enough")
    });
    assert_eq!(error.unwrap_err().record(), Some(0));
    assert_eq!(most, 3);
    drop(pipe);
    assert_eq!(copies.load(SeqCst), 0);
}

#[test]
fn stages_on_threads_are_measured() {
    let mut pipe = Pipe::from(pieces(5000, vec![3000]))
        .lines()
        .measured()
        .parallel(2, |stages| stages.filter(|line| line.ends_with(b"0")))
        .cut("all");
    pipe.run().unwrap();
    let stages = pipe.stats().stages;
    assert_eq!((stages[0].name.as_str(), stages[0].items, stages[1].items), ("parallel", 500, 500));
    assert_eq!(stages[0].bytes, (0..5000).step_by(10).map(|n: u64| n.to_string().len() as u64).sum::<u64>());
    assert!(!stages[0].time.is_zero());
}
