//! Stages on several threads, with the order kept.
//!
//! The pipe's own thread reads the source, runs the stages before and after, and feeds the sink. It packs items into
//! lots, gives these to the other threads, and passes on the results, lot by lot, in the original order if required. At
//! most twice as many lots are in progress as there are threads: beyond that it processes one itself that no thread is
//! free for, or waits, and so a slow sink stops the source, and memory is bounded. A lot contains about half a
//! millisecond of work, but at most 64 KiB, and is sent earlier when the source has no data at the moment.
//!
//! Failures travel with their lot, so that everything before them has reached the sink when they are reported.

mod crew;
mod lot;
mod queue;
mod worker;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

pub use lot::SendItem;

use super::chain::{Chain, MOMENT, Start, Then, hand_on};
use super::item::Item;
use super::scope::{Flow, Scope};
use super::stages::{Filter, FilterMap, FlatMap, Inspect, Map, MapBytes, Pieces, Rewrite, TryFilter, TryMap};
use super::stats::StageStats;
use super::{Detached, Pipe};
use crew::Crew;
use lot::Lot;
use sealed::Sealed;
use worker::Worker;

/// How many threads run the stages of [`Pipe::parallel`], including the caller's, and the order of the results. A
/// number alone keeps the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    count: usize,
    order: Order,
}

/// The order of items that were processed at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As they went in.
    Kept,
    /// As soon as they are ready.
    AsTheyCome,
}

impl Threads {
    /// This many threads (at least 1); items come out in the order they went in.
    pub fn ordered(count: usize) -> Threads {
        Threads { count: count.max(1), order: Order::Kept }
    }

    /// This many threads (at least 1); items come out as soon as they are ready, one lot at a time. Within a lot they
    /// are in order.
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
    /// Other types cannot implement this.
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
}

impl<C: Sealed, S: Sealed> Sealed for Then<C, S> {}
impl<C: Stateless, S: Stateless> Stateless for Then<C, S> {}

/// Stages on threads.
impl<F, I: Item, C: Chain<I, Out = M>, M: SendItem> Pipe<F, I, C, M> {
    /// Runs stages on several threads at once, each with its own copy of them. The source, all other stages and the
    /// sink stay on the caller's thread, which is one of the threads: while waiting for the others, it processes a lot
    /// itself.
    ///
    /// - Items come out in order, unless [`Threads::unordered`] says otherwise.
    /// - It pays off if the stages compute: packing an item for another thread costs some nanoseconds.
    /// - Memory is bounded, and a slow sink stops the source: about twice as many lots of at most 64 KiB are in
    ///   progress as there are threads, plus what the stages make of them.
    /// - When the source has no data at the moment, lots in progress are waited for and passed on immediately. For a
    ///   source that cannot tell, such as a caller's `Read`, records are passed on when later ones come, or at the end.
    /// - A record that fails, or that a stage panics at, is reported when everything before it has reached the sink.
    ///   Stages may have run on records after it by then, and on those that a later `take` drops.
    /// - When the pipe is dropped, and when nothing more is wanted, the threads end. A thread inside one of your
    ///   functions is waited for.
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

/// A chain with stages on threads after it.
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
        M::seal(&mut section.lot.given, whole);
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

/// A lot has at most about this many bytes.
const LOT_BYTES: usize = 64 << 10;
/// The amount of work in a lot: enough that the overhead does not matter, and little enough that all threads have work
/// and the first results come soon.
const LOT_WORK: Duration = Duration::from_micros(500);
/// How many items the first lots have, before the cost of an item is known.
const FIRST_LOTS: usize = 16;
/// How many items a lot has at most.
const LOT_ITEMS: usize = 8192;

/// The stages on threads, and the items on their way to them and from them.
struct Section<P, M: SendItem, O: SendItem> {
    /// The caller's own, when it works on lots too.
    worker: Worker<P>,
    how: Threads,
    /// The other threads, from the first lot on.
    crew: Option<Crew<M, O>>,
    /// The lot that is being filled.
    lot: Lot<M, O>,
    /// How many items it may have.
    most: usize,
    /// Lots of the current batch, which have not been sent.
    ready: VecDeque<Lot<M, O>>,
    /// How many lots have gone out, and how many of them have been handed on.
    sent: u64,
    handed: u64,
    /// Lots that came back before their turn.
    early: BTreeMap<u64, Lot<M, O>>,
    /// Lots that have been passed on, to be filled again: new memory for each would cost as much as a light stage.
    empty: Vec<Lot<M, O>>,
    /// For how long the caller's thread has worked on lots.
    worked: Duration,
    stats: StageStats,
}

impl<P, M: SendItem, O: SendItem> Section<P, M, O> {
    fn new(stages: P, how: Threads) -> Self {
        Section {
            worker: Worker::new(stages),
            how,
            crew: None,
            lot: Lot::new(),
            most: FIRST_LOTS,
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
        !self.lot.is_empty() || !self.ready.is_empty() || self.sent != self.handed
    }

    fn report(&self) -> StageStats {
        StageStats { elsewhere: self.stats.time.saturating_sub(self.worked), ..self.stats.clone() }
    }

    /// Adds an item to a lot. Nothing is sent while earlier stages are running: an error there must find everything
    /// before it still to be passed on, and nothing passed on twice.
    #[inline]
    fn push(&mut self, record: u64, item: M::Of<'_>, whole: &[u8]) {
        let lot = &mut self.lot.given;
        M::pack(lot, record, item, whole);
        if M::count(lot) >= self.most || M::weight(lot) >= LOT_BYTES {
            self.close_lot(whole);
        }
    }

    #[inline(never)]
    fn close_lot(&mut self, whole: &[u8]) {
        if !self.lot.is_empty() {
            M::seal(&mut self.lot.given, whole);
            let next = self.empty.pop().unwrap_or_else(Lot::new);
            self.ready.push_back(std::mem::replace(&mut self.lot, next));
        }
    }

    /// Keeps the memory of a lot that has been passed on, unless it is unusually large.
    fn recycle(&mut self, mut lot: Lot<M, O>) {
        let is_large = O::weight(&lot.made) > 2 * LOT_BYTES || M::weight(&lot.given) > 2 * LOT_BYTES;
        if !is_large && self.empty.len() < 2 * self.how.count {
            lot.clear();
            self.empty.push(lot);
        }
    }

    /// Drops everything in progress, and ends the threads: nothing more is wanted.
    fn abandon(&mut self) {
        self.crew = None;
        self.lot = Lot::new();
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
    /// The earlier stages have finished a batch, with this result. Sends what is ready, and passes on what has come
    /// back; all of it, if nothing more will come.
    fn go_on<'a>(&mut self, flow: Flow, scope: Scope<'a>, sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow) -> Flow {
        self.note_origins(scope);
        if flow.is_break() {
            self.close_lot(&[]);
        }
        loop {
            let waits_for_room = !self.send();
            let patience = if waits_for_room || flow.is_break() { MOMENT } else { Duration::ZERO };
            let handed = self.handed;
            self.hand_on_one(patience, scope, sink)?;
            let may_leave = flow.is_continue() && !waits_for_room && self.handed == handed;
            if may_leave || !self.holds() {
                return flow;
            }
        }
    }

    /// Keeps with the new lots where their records came from.
    fn note_origins(&mut self, scope: Scope<'_>) {
        let lots = self.ready.iter_mut().chain(Some(&mut self.lot).filter(|lot| !lot.is_empty()));
        let mut lots = lots.peekable();
        if lots.peek().is_none() {
            return;
        }
        let mut origins = scope.run.handed.borrow().clone();
        origins.extend(scope.origin());
        for lot in lots {
            lot.on_error = scope.run.on_error;
            lot.origins.extend_from_slice(&origins);
        }
    }

    /// Sends lots while there is capacity for them. Whether all have gone out.
    fn send(&mut self) -> bool {
        let room = 2 * self.how.count;
        while self.sent - self.handed < room as u64 {
            let Some(mut lot) = self.ready.pop_front() else { break };
            self.fill_up(&mut lot);
            let start = || Crew::start(self.worker.stages(), self.how.count - 1, room);
            self.crew.get_or_insert_with(start).send(self.sent, lot);
            self.sent += 1;
        }
        self.ready.is_empty()
    }

    /// Adds the following ones to a lot, while it does not become too large. They are small if the cost of an item was
    /// not known yet; all are of one batch.
    fn fill_up(&mut self, lot: &mut Lot<M, O>) {
        while let Some(next) = self.ready.front() {
            let count = M::count(&lot.given) + M::count(&next.given);
            if count > self.most || M::weight(&lot.given) + M::weight(&next.given) > LOT_BYTES {
                break;
            }
            let Some(mut next) = self.ready.pop_front() else { break };
            M::append(&mut lot.given, &mut next.given);
            self.recycle(next);
        }
    }

    /// Sends as many as there is capacity for, and passes on the next lot that is done, if there is one by then.
    fn hand_on_one<'a>(
        &mut self,
        patience: Duration,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
    ) -> Flow {
        self.send();
        let Some(mut lot) = self.next_done(patience) else { return Flow::Continue(()) };
        self.learn(&lot, scope);
        let flow = unpack(&mut lot, scope, sink);
        match flow {
            Flow::Break(()) => self.abandon(),
            Flow::Continue(()) => self.recycle(lot),
        }
        flow
    }

    /// The lot whose turn it is, if it is done by then. Processes one that no other thread is free for, rather than
    /// wait.
    fn next_done(&mut self, patience: Duration) -> Option<Lot<M, O>> {
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

    /// A lot that is done, if there is one by then.
    fn one_done(&mut self, patience: Duration) -> Option<(u64, Lot<M, O>)> {
        let crew = self.crew.as_ref()?;
        let done = crew.done();
        if done.is_some() || patience.is_zero() {
            return done;
        }
        let under_way = (self.sent - self.handed) as usize - self.early.len();
        let Some((turn, mut lot)) = crew.take_back(under_way) else { return crew.wait(patience) };
        self.worker.pass(&mut lot);
        self.worked += lot.work.1;
        Some((turn, lot))
    }

    /// The size of lots, and the statistics of the stages.
    fn learn(&mut self, lot: &Lot<M, O>, scope: Scope<'_>) {
        let (items, time) = lot.work;
        let wanted = items as u128 * LOT_WORK.as_nanos() / time.as_nanos().max(1);
        self.most = usize::try_from(wanted).unwrap_or(LOT_ITEMS).clamp(1, LOT_ITEMS);
        if scope.run.measures {
            self.stats.time += time;
            self.stats.items += O::count(&lot.made) as u64;
            self.stats.bytes += O::size_of_all(&lot.made) as u64;
        }
    }
}

/// Passes on the results of a lot: its items, and its errors at their positions.
fn unpack<'a, M: SendItem, O: SendItem>(
    lot: &mut Lot<M, O>,
    scope: Scope<'a>,
    sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
) -> Flow {
    scope.run.hand(&lot.origins);
    let mut items = O::land(&mut lot.made, scope.arena);
    let mut handed = 0;
    for (at, failure) in lot.failures.drain(..) {
        hand_on(items.by_ref().take(at - handed), scope, sink)?;
        handed = at;
        scope.run.failures.borrow_mut().push(failure);
    }
    hand_on(items, scope, sink)?;
    lot.flow
}
