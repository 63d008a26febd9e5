//! Stages on several threads, with the order preserved if required.
//!
//! The pipe's own thread reads the source, runs the stages before and after, and feeds the sink. It packs items into
//! chunks, sends these to the other threads, and passes on the results, chunk by chunk, in the original order if
//! required. At most twice as many chunks are in progress as there are threads. At that limit the pipe's own thread
//! processes a chunk for which no thread is free, or waits. Therefore a slow sink stops the source, and memory use is
//! bounded. A chunk contains about half a millisecond of work, but at most 64 KiB, and is sent earlier if the source
//! has no data at the moment.
//!
//! Failures travel with their chunk, so that all earlier results have reached the sink when a failure is reported.

mod chunk;
mod crew;
mod queue;
#[cfg(feature = "splits")]
mod splits;
mod worker;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

pub use chunk::SendItem;
#[cfg(feature = "splits")]
pub use splits::{FromSplits, OnSplits};

use super::chain::{Chain, MOMENT, Start, Then, hand_on};
use super::item::Item;
use super::scope::{Flow, Scope, add_new};
use super::stages::{
    Filter, FilterMap, FlatMap, Inspect, Map, MapBytes, Pieces, Rewrite, TryFilter, TryMap, TryRewrite,
};
use super::stats::StageStats;
use super::{Detached, Pipe};
use chunk::Chunk;
use crew::Crew;
use sealed::Sealed;
use worker::Worker;

/// The number of threads that run the stages of [`Pipe::parallel`], including the caller's, and the order of the
/// results. Converting from a number keeps the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    count: usize,
    order: Order,
}

/// The order in which results are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The order of the items.
    Kept,
    /// As soon as they are ready.
    AsTheyCome,
}

impl Threads {
    /// Uses `count` threads (at least 1); results keep the order of the items.
    pub fn ordered(count: usize) -> Threads {
        Threads { count: count.max(1), order: Order::Kept }
    }

    /// Uses `count` threads (at least 1); results are passed on as soon as they are ready, one chunk at a time. Within
    /// a chunk they are in order.
    pub fn unordered(count: usize) -> Threads {
        Threads { count: count.max(1), order: Order::AsTheyCome }
    }
}

impl From<usize> for Threads {
    fn from(count: usize) -> Threads {
        Threads::ordered(count)
    }
}

/// Stages without state between items, so that several threads can each have a copy: `map`, `filter_map`, `try_map`,
/// `flat_map`, `filter`, `try_filter`, `inspect`, `map_bytes`, `pieces`, `rewrite`, and chains of them.
pub trait Stateless: Sealed {}

mod sealed {
    /// A trait that other crates cannot name, so that they cannot implement [`Stateless`](super::Stateless).
    pub trait Sealed {}
}

macro_rules! stateless {
    ($([$($generic:ident),*] $stage:ty;)*) => {$(
        impl<$($generic),*> Sealed for $stage {}
        impl<$($generic),*> Stateless for $stage {}
    )*};
}

stateless! {
    [] Start;
    [F, T] Map<F, T>;
    [F, T] FilterMap<F, T>;
    [F, T] TryMap<F, T>;
    [F, T] FlatMap<F, T>;
    [F] Filter<F>;
    [F, T] TryFilter<F, T>;
    [F] Inspect<F>;
    [F] MapBytes<F>;
    [F] Pieces<F>;
    [F] Rewrite<F>;
    [F, T] TryRewrite<F, T>;
}

impl<C: Sealed, S: Sealed> Sealed for Then<C, S> {}
impl<C: Stateless, S: Stateless> Stateless for Then<C, S> {}

/// Stages on several threads.
impl<F, I: Item, C: Chain<I, Out = M>, M: SendItem> Pipe<F, I, C, M> {
    /// Runs stages on several threads at once, each with its own copy of the stages. The source, all other stages and
    /// the sink stay on the caller's thread, which is one of the threads: while it waits for the others, it processes a
    /// chunk itself.
    ///
    /// - Results are in order, unless [`Threads::unordered`] is used.
    /// - Threads help if the stages are computationally expensive: packing an item for another thread costs a few
    ///   nanoseconds.
    /// - Memory use is bounded, and a slow sink stops the source. At most about twice as many chunks of up to 64 KiB
    ///   are in progress as there are threads, plus their results.
    /// - While the source has no data, the pipe waits for chunks in progress and passes them on immediately. If the
    ///   source cannot report whether it has data, such as a caller's `Read`, records are passed on when later ones
    ///   arrive, or at the end.
    /// - A failure or panic at a record is reported after all earlier results have reached the sink. By then, stages
    ///   may have run on later records, and on records that a later `take` drops.
    /// - When the pipe is dropped, and when no more items are needed, the threads end. The pipe waits for a thread that
    ///   is inside one of your functions.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let mut squares = Pipe::from(Reader::command(["seq", "5"])?)
    ///     .lines()
    ///     .parallel(2, |stages| {
    ///         stages.map(|line| (line[0] - b'0') as u32).map(|number| number * number).filter(|square| square % 2 == 1)
    ///     })
    ///     .map(|square| square + 1);
    /// assert_eq!(squares.collect()?, [2, 10, 26]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn parallel<P, O: SendItem>(
        self,
        threads: impl Into<Threads>,
        stages: impl FnOnce(Pipe<Detached, M, Start, M>) -> Pipe<Detached, M, P, O>,
    ) -> Pipe<F, I, Parallel<C, P, M, O>, O>
    where
        P: Chain<M, Out = O> + Stateless + Clone + Send + 'static,
    {
        let stages = stages(Pipe { feed: Detached, chain: Start, kinds: std::marker::PhantomData });
        let threads = threads.into();
        self.with(|chain| Parallel { chain, section: Section::new(stages.chain, threads) })
    }
}

/// A chain followed by stages on several threads.
pub struct Parallel<C, P, M: SendItem, O: SendItem> {
    chain: C,
    section: Section<P, M, O>,
}

impl<C, P, M: SendItem, O: SendItem> std::fmt::Debug for Parallel<C, P, M, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parallel").field("threads", &self.section.how).finish_non_exhaustive()
    }
}

impl<I: Item, C, P, M: SendItem, O: SendItem> Chain<I> for Parallel<C, P, M, O>
where
    C: Chain<I, Out = M>,
    P: Chain<M, Out = O> + Clone + Send + 'static,
{
    type Out = O;

    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
    ) -> Flow {
        let Parallel { chain, section } = self;
        let whole = scope.batch.map_or(&[][..], |batch| batch.bytes());
        let flow = scope.guard(|| {
            chain.run(input, scope, &mut |record, item| {
                section.push(record, item, whole);
                Flow::Continue(())
            })
        });
        M::seal(&mut section.chunk.given, whole);
        section.go_on(flow, scope, sink)
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow) -> Flow {
        let Parallel { chain, section } = self;
        if chain.holds() {
            let flow = scope.guard(|| {
                chain.settle(scope, &mut |record, item| {
                    section.push(record, item, &[]);
                    Flow::Continue(())
                })
            });
            section.go_on(flow, scope, sink)?;
        }
        section.close_lot(&[]);
        section.hand_on_one(MOMENT, scope, sink)
    }

    fn holds(&self) -> bool {
        self.chain.holds() || self.section.holds()
    }

    fn is_done(&self) -> bool {
        self.chain.is_done()
    }

    fn report(&self, stages: &mut Vec<StageStats>) {
        self.chain.report(stages);
        stages.push(self.section.report());
    }
}

/// The approximate maximum number of bytes in a chunk.
const CHUNK_BYTES: usize = 64 << 10;
/// The amount of work in a chunk: enough that the overhead does not matter, and little enough that all threads have
/// work and the first results arrive soon.
const CHUNK_WORK: Duration = Duration::from_micros(500);
/// The number of items in the first chunks, before the cost of an item is known.
const FIRST_CHUNKS: usize = 16;
/// The maximum number of items in a chunk.
const CHUNK_ITEMS: usize = 8192;

/// The stages on several threads, and the items in transit to and from the threads.
struct Section<P, M: SendItem, O: SendItem> {
    /// The caller's own worker, for chunks that the caller's thread processes.
    worker: Worker<P>,
    how: Threads,
    /// The other threads; absent before the first chunk.
    crew: Option<Crew<M, O>>,
    /// The chunk that is being filled.
    chunk: Chunk<M, O>,
    /// The maximum number of items in a chunk.
    most: usize,
    /// Chunks of the current batch that have not been sent.
    ready: VecDeque<Chunk<M, O>>,
    /// The number of chunks that have been sent, and how many of them have been passed on.
    sent: u64,
    handed: u64,
    /// Chunks that came back before their turn.
    early: BTreeMap<u64, Chunk<M, O>>,
    /// Chunks that have been passed on, to be filled again: new memory for each would cost as much as a light stage.
    empty: Vec<Chunk<M, O>>,
    /// The time that the caller's thread has spent on chunks.
    worked: Duration,
    stats: StageStats,
}

impl<P, M: SendItem, O: SendItem> Section<P, M, O> {
    fn new(stages: P, how: Threads) -> Self {
        Section {
            worker: Worker::new(stages),
            how,
            crew: None,
            chunk: Chunk::new(),
            most: FIRST_CHUNKS,
            ready: VecDeque::new(),
            sent: 0,
            handed: 0,
            early: BTreeMap::new(),
            empty: Vec::new(),
            worked: Duration::ZERO,
            stats: StageStats { name: "parallel".into(), ..StageStats::default() },
        }
    }

    fn holds(&self) -> bool {
        !self.chunk.is_empty() || !self.ready.is_empty() || self.sent != self.handed
    }

    fn report(&self) -> StageStats {
        StageStats { elsewhere: self.stats.time.saturating_sub(self.worked), ..self.stats.clone() }
    }

    /// Adds an item to a chunk. No chunk is sent while earlier stages are running: after an error in these, every
    /// earlier item must still be passed on exactly once.
    #[inline]
    fn push(&mut self, record: u64, item: M::Of<'_>, whole: &[u8]) {
        let (first, last) = self.chunk.records;
        self.chunk.records = (first.min(record), last.max(record));
        let chunk = &mut self.chunk.given;
        M::pack(chunk, record, item, whole);
        if M::count(chunk) >= self.most || M::weight(chunk) >= CHUNK_BYTES {
            self.close_lot(whole);
        }
    }

    #[inline(never)]
    fn close_lot(&mut self, whole: &[u8]) {
        if !self.chunk.is_empty() {
            M::seal(&mut self.chunk.given, whole);
            let next = self.empty.pop().unwrap_or_else(Chunk::new);
            self.ready.push_back(std::mem::replace(&mut self.chunk, next));
        }
    }

    /// Keeps the memory of a chunk that has been passed on, unless it is unusually large.
    fn recycle(&mut self, mut chunk: Chunk<M, O>) {
        let is_large = O::weight(&chunk.made) > 2 * CHUNK_BYTES || M::weight(&chunk.given) > 2 * CHUNK_BYTES;
        if !is_large && self.empty.len() < 2 * self.how.count {
            chunk.clear();
            self.empty.push(chunk);
        }
    }

    /// Drops all items in progress, and ends the threads, because no more items are needed.
    fn abandon(&mut self) {
        self.crew = None;
        self.chunk = Chunk::new();
        self.ready.clear();
        self.early.clear();
        self.empty.clear();
        self.handed = self.sent;
    }
}

impl<P, M: SendItem, O: SendItem> Section<P, M, O>
where
    P: Chain<M, Out = O> + Clone + Send + 'static,
{
    /// Handles the result of the earlier stages for a batch. Sends the chunks that are ready, and passes on those that
    /// have come back. If no more items will arrive, this function passes on all of them.
    fn go_on<'a>(&mut self, flow: Flow, scope: Scope<'a>, sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow) -> Flow {
        self.note_origins(scope);
        if flow.is_break() {
            self.close_lot(&[]);
        }
        loop {
            let waits_for_space = !self.send();
            let patience = if waits_for_space || flow.is_break() { MOMENT } else { Duration::ZERO };
            let handed = self.handed;
            self.hand_on_one(patience, scope, sink)?;
            let may_leave = flow.is_continue() && !waits_for_space && self.handed == handed;
            if may_leave || !self.holds() {
                return flow;
            }
        }
    }

    /// Stores the origins of the records in the new chunks.
    fn note_origins(&mut self, scope: Scope<'_>) {
        let mut chunks =
            self.ready.iter_mut().chain(Some(&mut self.chunk).filter(|chunk| !chunk.is_empty())).peekable();
        if chunks.peek().is_none() {
            return;
        }
        let handed = scope.run.handed.borrow();
        let current = scope.origin();
        for chunk in chunks {
            chunk.on_error = scope.run.on_error;
            // Others belong to items that this stage has already passed on. If they were kept, each chunk would also have
            // the origins of all chunks before it.
            let of_chunk = handed.iter().chain(&current).filter(|origin| origin.has_any(chunk.records));
            add_new(&mut chunk.origins, of_chunk);
        }
    }

    /// Sends chunks while there is capacity for them. Returns whether all have been sent.
    fn send(&mut self) -> bool {
        let capacity = 2 * self.how.count;
        while self.sent - self.handed < capacity as u64 {
            let Some(mut chunk) = self.ready.pop_front() else { break };
            self.fill_up(&mut chunk);
            let start = || Crew::start(self.worker.stages(), self.how.count - 1, capacity);
            self.crew.get_or_insert_with(start).send(self.sent, chunk);
            self.sent += 1;
        }
        self.ready.is_empty()
    }

    /// Adds the following chunks to a chunk, while it does not become too large. They are small if the cost of an item
    /// was not known yet; all belong to one batch.
    fn fill_up(&mut self, chunk: &mut Chunk<M, O>) {
        while let Some(next) = self.ready.front() {
            let count = M::count(&chunk.given) + M::count(&next.given);
            if count > self.most || M::weight(&chunk.given) + M::weight(&next.given) > CHUNK_BYTES {
                break;
            }
            let Some(mut next) = self.ready.pop_front() else { break };
            M::append(&mut chunk.given, &mut next.given);
            self.recycle(next);
        }
    }

    /// Sends as many chunks as there is capacity for, and passes on the next finished chunk, if there is one within
    /// `patience`.
    fn hand_on_one<'a>(
        &mut self,
        patience: Duration,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
    ) -> Flow {
        self.send();
        let Some(mut chunk) = self.next_done(patience) else { return Flow::Continue(()) };
        self.learn(&chunk, scope);
        let flow = unpack(&mut chunk, 0, scope, sink);
        match flow {
            Flow::Break(()) => self.abandon(),
            Flow::Continue(()) => self.recycle(chunk),
        }
        flow
    }

    /// Returns the chunk whose turn it is, if it is finished within `patience`. Instead of waiting, it processes a
    /// chunk for which no other thread is free.
    fn next_done(&mut self, patience: Duration) -> Option<Chunk<M, O>> {
        if self.sent == self.handed {
            return None;
        }
        let (began, worked) = (Instant::now(), self.worked);
        let done = loop {
            if let Some(done) = self.early.remove(&self.handed) {
                break Some(done);
            }
            let left = patience.saturating_sub(began.elapsed());
            let Some((turn, done)) = self.one_done(left) else { break None };
            if turn == self.handed || self.how.order == Order::AsTheyCome {
                break Some(done);
            }
            self.early.insert(turn, done);
        };
        self.stats.waited += began.elapsed().saturating_sub(self.worked - worked);
        self.handed += u64::from(done.is_some());
        done
    }

    /// Returns a finished chunk, if there is one within `patience`.
    fn one_done(&mut self, patience: Duration) -> Option<(u64, Chunk<M, O>)> {
        let crew = self.crew.as_ref()?;
        let done = crew.done();
        if done.is_some() || patience.is_zero() {
            return done;
        }
        let under_way = (self.sent - self.handed) as usize - self.early.len();
        let Some((turn, mut chunk)) = crew.take_back(under_way) else { return crew.wait(patience) };
        self.worker.pass(&mut chunk);
        self.worked += chunk.work.1;
        Some((turn, chunk))
    }

    /// Updates the size of chunks, and the statistics of the stages.
    fn learn(&mut self, chunk: &Chunk<M, O>, scope: Scope<'_>) {
        let (items, time) = chunk.work;
        let wanted = items as u128 * CHUNK_WORK.as_nanos() / time.as_nanos().max(1);
        self.most = usize::try_from(wanted).unwrap_or(CHUNK_ITEMS).clamp(1, CHUNK_ITEMS);
        if scope.run.measures {
            self.stats.time += time;
            self.stats.items += O::count(&chunk.made) as u64;
            self.stats.bytes += O::size_of_all(&chunk.made) as u64;
        }
    }
}

/// Passes on the results of a chunk: its items, and its errors at their positions. `base` is added to the numbers of the
/// items' records.
fn unpack<'a, M: SendItem, O: SendItem>(
    chunk: &mut Chunk<M, O>,
    base: u64,
    scope: Scope<'a>,
    sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
) -> Flow {
    scope.run.hand(&chunk.origins);
    let mut items = O::land(&mut chunk.made, scope.arena).map(|(record, item)| (record + base, item));
    let mut handed = 0;
    for (at, failure) in chunk.failures.drain(..) {
        hand_on(items.by_ref().take(at - handed), scope, sink)?;
        handed = at;
        scope.run.failures.borrow_mut().push(failure);
    }
    hand_on(items, scope, sink)?;
    chunk.flow
}
