//! Asynchronous stages. The output equals the output of plain iterators, for any delays. Errors and panics come after
//! all earlier results. The requested number of futures runs, and results that are not needed are dropped. Pipes as
//! streams are tested, too.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use futures_executor::block_on;
use futures_util::{StreamExt, TryStreamExt};
use millstream::pipe::{Concurrency, OnError, Pipe, Stage};
use millstream::{CancelToken, ErrorKind, Reader, Writer};
use proptest::prelude::*;

fn number(line: &[u8]) -> u64 {
    std::str::from_utf8(line).unwrap().parse().unwrap()
}

/// Returns the lines "0", "1", …, in pieces of this size.
fn pieces(count: u64, size: usize) -> Reader {
    let bytes: Vec<u8> = (0..count).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let mut at = 0;
    let read = move |space: &mut [u8]| {
        let size = size.min(space.len()).min(bytes.len() - at);
        space[..size].copy_from_slice(&bytes[at..at + size]);
        at += size;
        Ok(size)
    };
    Reader::callback(read).unwrap()
}

/// A future that is ready after it has been polled a few times, or when another thread wakes it.
struct Later {
    asks: u64,
    elsewhere: bool,
    begun: bool,
}

impl Later {
    fn of(n: u64) -> Later {
        let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        Later { asks: random % 4, elsewhere: random.is_multiple_of(61), begun: false }
    }
}

impl Future for Later {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.asks == 0 {
            return Poll::Ready(());
        }
        let waker: Waker = context.waker().clone();
        if self.elsewhere && !self.begun {
            thread::spawn(move || {
                thread::sleep(Duration::from_micros(100));
                waker.wake();
            });
        } else {
            waker.wake();
        }
        self.begun = true;
        self.asks -= 1;
        Poll::Pending
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_results_equal_those_of_iterators(
        count in 0..3000_u64, size in 1..40_000_usize, most in 1..20_usize, ordered: bool, boxed: bool, threads: bool,
    ) {
        let how = if ordered { Concurrency::ordered(most) } else { Concurrency::unordered(most) };
        let work = |n: u64| async move {
            Later::of(n).await;
            n * 2
        };
        let source = Pipe::from(pieces(count, size)).lines().map(number).filter(|n| n % 7 != 3);
        let mut out = match (boxed, threads) {
            (true, _) => {
                // In a box, futures must be `Send`.
                let stage: Stage<_, _> = Pipe::stages_of_values().map_async(how, work).boxed("async");
                source.then(stage).map(|n: u64| n + 1).collect()
            }
            (_, true) => source.parallel(2, |stages| stages.map(|n| n)).map_async(how, work).parallel(2, |stages| {
                stages.map(|n| n + 1)
            }).collect(),
            _ => source.map_async(how, work).map(|n| n + 1).collect(),
        }.unwrap();
        if !ordered {
            out.sort_unstable();
        }
        prop_assert_eq!(out, (0..count).filter(|n| n % 7 != 3).map(|n| n * 2 + 1).collect::<Vec<_>>());
    }

    /// The failure is an error, or a panic in the function or in its future. It occurs before, in or after the stage.
    #[test]
    fn an_error_comes_after_all_earlier_results(
        bad in 0..1000_u64, most in 1..20_usize, size in 1..9000_usize, place in 0..5, cut: bool,
    ) {
        let mut seen = Vec::new();
        let source = Pipe::from(pieces(1000, size))
            .lines()
            .map(number)
            .try_map(move |n| if place == 0 && n == bad { Err("no good") } else { Ok(n) })
            .try_map_async(most, move |n| {
                assert!(place != 1 || n != bad, "no good");
                async move {
                    Later::of(n).await;
                    assert!(place != 2 || n != bad, "no good");
                    if place == 3 && n == bad { Err("no good") } else { Ok(n) }
                }
            });
        let last = move |n| if place == 4 && n == bad { Err("no good") } else { Ok(n) };
        let error = match cut {
            true => source.cut("all").try_map(last).for_each(|n| seen.push(n)),
            false => source.try_map(last).for_each(|n| seen.push(n)),
        }.unwrap_err();
        let kind = if matches!(place, 1 | 2) { ErrorKind::StagePanicked } else { ErrorKind::StageFailed };
        let offset: usize = (0..bad).map(|n| n.to_string().len() + 1).sum();
        prop_assert_eq!((error.kind(), error.record(), error.offset()), (kind, Some(bad), Some(offset as u64)));
        prop_assert!(error.to_string().contains("no good"), "{}", error);
        prop_assert_eq!(seen, (0..bad).collect::<Vec<_>>());
    }

    #[test]
    fn a_stream_returns_the_pipes_results(count in 0..5000_u64, size in 1..9000_usize, bad in 0..6000_u64) {
        let stream = Pipe::from(pieces(count, size))
            .lines()
            .parallel(2, |stages| stages.map(number))
            .try_map(move |n| if n == bad { Err("no good") } else { Ok(n) })
            .into_stream()
            .unwrap();
        let mut seen = Vec::new();
        let result = block_on(stream.try_for_each(|n| {
            seen.push(n);
            async { Ok(()) }
        }));
        prop_assert_eq!(result.err().and_then(|error| error.record()), (bad < count).then_some(bad));
        prop_assert_eq!(seen, (0..count.min(bad)).collect::<Vec<_>>());
    }
}

#[test]
fn bad_records_are_put_aside() {
    let mut bad = Writer::memory().unwrap();
    let mut pipe = Pipe::merge([pieces(500, 100), pieces(700, 3000)])
        .lines()
        .on_error(OnError::Quarantine(&mut bad))
        .try_map_async(Concurrency::unordered(5), |line| {
            let n = number(line);
            async move {
                Later::of(n).await;
                if n % 10 == 1 { Err("no good") } else { Ok(n) }
            }
        });
    let mut good = pipe.collect().unwrap();
    assert_eq!(pipe.summary().failed, 120);
    drop(pipe);
    let kept = String::from_utf8(bad.close().unwrap().memory.unwrap()).unwrap();
    let mut kept: Vec<u64> = kept.lines().map(|line| number(line.as_bytes())).collect();
    let (mut good_ones, mut bad_ones): (Vec<_>, Vec<_>) = (0..500).chain(0..700).partition(|n| n % 10 != 1);
    for list in [&mut good, &mut kept, &mut good_ones, &mut bad_ones] {
        list.sort_unstable();
    }
    assert_eq!((good, kept), (good_ones, bad_ones));
}

/// The requested number of futures runs. If results are in order, a finished future counts until its turn comes.
#[test]
fn the_requested_number_of_futures_runs() {
    for how in [Concurrency::ordered(7), Concurrency::unordered(7)] {
        // These values are not `Send`: all code runs on this thread.
        let (now, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let mut pipe = Pipe::from(pieces(3000, 5000)).lines().map_async(how, |line| {
            let n = number(line);
            let now = now.clone();
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            async move {
                Later::of(n).await;
                (n, now)
            }
        });
        let mut seen = 0;
        pipe.for_each(|(_, now)| {
            now.set(now.get() - 1);
            seen += 1;
        })
        .unwrap();
        assert_eq!((seen, now.get(), most.get()), (3000, 0, 7), "{how:?}");
    }
}

/// Results that are not needed are dropped immediately, after an error and after a `take`, even if they are unfinished.
#[test]
fn unneeded_results_are_dropped() {
    struct Held(Arc<AtomicUsize>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    let held = Arc::new(AtomicUsize::new(0));
    let work = |line: &[u8]| {
        let n = number(line);
        held.fetch_add(1, SeqCst);
        let here = Held(held.clone());
        async move {
            let _here = here;
            match n {
                0..5 => n,
                5 => panic!("no good"),
                _ => std::future::pending().await,
            }
        }
    };
    let mut pipe = Pipe::from(pieces(100, 5000)).lines().map_async(10, work);
    assert_eq!(pipe.run().unwrap_err().kind(), ErrorKind::StagePanicked);
    assert_eq!(held.load(SeqCst), 0);
    let mut pipe = Pipe::from(pieces(100, 5000)).lines().map_async(10, work).take(5);
    assert_eq!(pipe.collect().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(held.load(SeqCst), 0);
    let mut pipe = Pipe::from(pieces(3, 5000)).lines().map_async(10, work);
    assert_eq!(pipe.collect().unwrap(), [0, 1, 2]);
}

/// A cancelled pipe continues at the same point: its futures in progress are kept.
#[test]
fn cancelled_between_two_batches() {
    let token = CancelToken::new().unwrap();
    let seen = Cell::new(0);
    let mut pipe = Pipe::from(pieces(2000, 50)).lines().cancel(&token).map_async(50, |line| {
        let n = number(line);
        async move {
            Later::of(n).await;
            n
        }
    });
    let cancelled = pipe.for_each(|n| {
        assert_eq!(n, seen.get());
        seen.set(n + 1);
        if n == 1000 {
            token.cancel();
        }
    });
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(seen.get() < 1200, "{}", seen.get());
    token.reset();
    assert_eq!(pipe.collect().unwrap(), (seen.get()..2000).collect::<Vec<_>>());
}

/// The source has no data until the sink has received the result of the previous record.
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
    let mut pipe = Pipe::from(Reader::fd(reading).unwrap()).lines().map_async(8, |line| {
        let n = number(line);
        async move {
            Later::of(n).await;
            n
        }
    });
    pipe.for_each(|n| say(n + 1)).unwrap();
    assert_eq!(pipe.summary().items, 50);
}

/// The thread of a stream stops when the stream is dropped, and is never far ahead of the consumer.
#[test]
fn a_stream_is_not_far_ahead() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let mut stream = Pipe::from(Reader::command(["yes"]).unwrap())
        .lines()
        .batch(10)
        .map(move |_| counter.fetch_add(1, SeqCst))
        .into_stream()
        .unwrap();
    for n in 0..1000 {
        assert_eq!(block_on(stream.next()).unwrap().unwrap(), n);
        // There are two waiting batches, one that is about to be sent, and one that is being received.
        assert!(made.load(SeqCst) <= n + 40);
    }
    drop(stream);
    // The thread drops the stages when it stops.
    while Arc::strong_count(&made) > 1 {
        thread::yield_now();
    }
}
