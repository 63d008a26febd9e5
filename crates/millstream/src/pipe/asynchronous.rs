//! Asynchronous stages, which wait for several items at the same time.
//!
//! The futures are polled on the pipe's own thread, when items pass and while the source has no data. No executor is
//! needed. If futures need a reactor, as the futures of tokio's sockets and timers do, it must run on other threads.
//! Futures need not be `Send`, unless the stages are boxed.

// The type of a pipe consists of its stages, so it is always long. Programs do not have to name it.
#![allow(clippy::type_complexity)]

use std::error::Error as StdError;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesOrdered, FuturesUnordered, Stream};

use super::Pipe;
use super::chain::{Chain, Items, MOMENT, collect, settled};
use super::item::{Bytes, Item, Value};
use super::origin::Origin;
use super::parallel::Order;
use super::scope::{Flow, Scope};
use super::stages::{Call, stage_failed};
use super::stats::StageStats;
use crate::error::Error;
use crate::panicked::panicked;

/// The number of items that are awaited at the same time, and the order of the results. Converting from a number keeps
/// the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    most: usize,
    order: Order,
}

impl Concurrency {
    /// Awaits up to `most` items at a time (at least 1); results keep the order of the items.
    pub fn ordered(most: usize) -> Concurrency {
        Concurrency { most: most.max(1), order: Order::Kept }
    }

    /// Awaits up to `most` items at a time (at least 1); results are passed on as soon as they are ready.
    pub fn unordered(most: usize) -> Concurrency {
        Concurrency { most: most.max(1), order: Order::AsTheyCome }
    }
}

impl From<usize> for Concurrency {
    fn from(most: usize) -> Concurrency {
        Concurrency::ordered(most)
    }
}

/// Asynchronous stages for bytes.
impl<F, I: Item, C: Chain<I, Out = Bytes>> Pipe<F, I, C, Bytes> {
    /// Produces a value from each item asynchronously, for several items at a time. A future cannot borrow the item:
    /// the function copies what it needs.
    ///
    /// The futures are polled on the caller's thread, when items pass and while the source has no data; with futures of
    /// tokio, its runtime has to be
    /// [entered](https://docs.rs/tokio/latest/tokio/runtime/struct.Runtime.html#method.enter) and to have its own
    /// threads. At most `concurrency` futures are in progress, over all batches. Futures whose results are no longer
    /// needed are dropped. If a source cannot report whether it has data, such as a caller's `Read`, the last items are
    /// passed on when later ones arrive, or at the end.
    ///
    /// ```
    /// use millstream::{Reader, pipe::{Concurrency, Pipe}};
    /// async fn look_up(name: String) -> usize {
    ///     name.len()
    /// }
    /// let mut lengths = Pipe::from(Reader::memory("one\nthree\n")?)
    ///     .lines()
    ///     .map_async(Concurrency::ordered(8), |line| look_up(String::from_utf8_lossy(line).into_owned()));
    /// assert_eq!(lengths.collect()?, [3, 5]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn map_async<G, U>(
        self,
        concurrency: impl Into<Concurrency>,
        function: G,
    ) -> Pipe<F, I, MapAsync<C, G, U, Whole>, Value<U::Output>>
    where
        G: FnMut(&[u8]) -> U,
        U: Future + 'static,
    {
        let concurrency = concurrency.into();
        self.with(|chain| MapAsync::new(chain, function, concurrency))
    }

    /// Like [`map_async`](Pipe::map_async), for futures that may fail. Failures are handled as in
    /// [`try_map`](Pipe::try_map).
    pub fn try_map_async<G, U, T, E>(
        self,
        concurrency: impl Into<Concurrency>,
        function: G,
    ) -> Pipe<F, I, MapAsync<C, G, U, Fallible>, Value<T>>
    where
        G: FnMut(&[u8]) -> U,
        U: Future<Output = Result<T, E>> + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let concurrency = concurrency.into();
        self.with(|chain| MapAsync::new(chain, function, concurrency))
    }
}

/// Asynchronous stages for values.
impl<F, I: Item, C: Chain<I, Out = Value<V>>, V> Pipe<F, I, C, Value<V>> {
    /// Produces another value from each one asynchronously, for several values at a time; see [the method for
    /// bytes](Pipe::map_async).
    pub fn map_async<G, U>(
        self,
        concurrency: impl Into<Concurrency>,
        function: G,
    ) -> Pipe<F, I, MapAsync<C, G, U, Whole>, Value<U::Output>>
    where
        G: FnMut(V) -> U,
        U: Future + 'static,
    {
        let concurrency = concurrency.into();
        self.with(|chain| MapAsync::new(chain, function, concurrency))
    }

    /// Like [`map_async`](Pipe::map_async), for futures that may fail. Failures are handled as in
    /// [`try_map`](Pipe::try_map).
    pub fn try_map_async<G, U, T, E>(
        self,
        concurrency: impl Into<Concurrency>,
        function: G,
    ) -> Pipe<F, I, MapAsync<C, G, U, Fallible>, Value<T>>
    where
        G: FnMut(V) -> U,
        U: Future<Output = Result<T, E>> + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let concurrency = concurrency.into();
        self.with(|chain| MapAsync::new(chain, function, concurrency))
    }
}

/// The result of a future is the item.
#[derive(Debug)]
pub enum Whole {}

/// The result of a future is the item, or the reason why it is missing.
#[derive(Debug)]
pub enum Fallible {}

/// The use of a future's result.
pub trait Outcome<R> {
    /// The type of the item.
    type Value;

    /// Returns the item, or the reason why it is missing.
    fn of(made: R) -> Result<Self::Value, Box<dyn StdError + Send + Sync>>;
}

impl<T> Outcome<T> for Whole {
    type Value = T;

    fn of(made: T) -> Result<T, Box<dyn StdError + Send + Sync>> {
        Ok(made)
    }
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> Outcome<Result<T, E>> for Fallible {
    type Value = T;

    fn of(made: Result<T, E>) -> Result<T, Box<dyn StdError + Send + Sync>> {
        made.map_err(Into::into)
    }
}

/// A chain with an asynchronous stage after it.
pub struct MapAsync<C, G, U: Future, K> {
    chain: C,
    function: G,
    under_way: UnderWay<U>,
    most: usize,
    stats: StageStats,
    kind: PhantomData<fn() -> K>,
}

impl<C, G, U: Future, K> std::fmt::Debug for MapAsync<C, G, U, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapAsync").field("most", &self.most).finish_non_exhaustive()
    }
}

impl<I: Item, C: Chain<I>, G, U, K> Chain<I> for MapAsync<C, G, U, K>
where
    G: Call<C::Out, U>,
    U: Future,
    K: Outcome<U::Output>,
{
    type Out = Value<K::Value>;

    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, K::Value) -> Flow,
    ) -> Flow {
        let (items, flow) = collect(&mut self.chain, input, scope);
        self.go_on(items, flow, scope, sink)
    }

    fn settle<'a>(
        &mut self,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, <Self::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow {
        if self.chain.holds() {
            let (items, flow) = settled(&mut self.chain, scope);
            self.go_on(items, flow, scope, sink)?;
        }
        let mut patience = MOMENT;
        while let Some(finished) = self.next(patience, scope) {
            self.hand_on(finished, scope, sink)?;
            patience = Duration::ZERO;
        }
        Flow::Continue(())
    }

    fn holds(&self) -> bool {
        self.chain.holds() || !self.under_way.is_empty()
    }

    fn is_done(&self) -> bool {
        self.chain.is_done()
    }

    fn report(&self, stages: &mut Vec<StageStats>) {
        self.chain.report(stages);
        stages.push(self.stats.clone());
    }
}

impl<C, G, U: Future, K: Outcome<U::Output>> MapAsync<C, G, U, K> {
    fn new(chain: C, function: G, concurrency: Concurrency) -> Self {
        let under_way = match concurrency.order {
            Order::Kept => UnderWay::Ordered(FuturesOrdered::new()),
            Order::AsTheyCome => UnderWay::Unordered(FuturesUnordered::new()),
        };
        let stats = StageStats { name: "async".into(), ..StageStats::default() };
        MapAsync { chain, function, under_way, most: concurrency.most, stats, kind: PhantomData }
    }

    /// Handles the items that the earlier stages have produced from a batch. Starts a future for each item as soon as
    /// there is capacity, and passes on finished results. If no more items will arrive, this function passes on all
    /// of them.
    fn go_on<'a, M: Item>(
        &mut self,
        items: Items<'a, M>,
        flow: Flow,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, K::Value) -> Flow,
    ) -> Flow
    where
        G: Call<M, U>,
    {
        let current = if items.is_empty() { None } else { scope.origin() };
        for (record, item) in items {
            while self.under_way.len() >= self.most {
                // If no future has finished when the time has elapsed, the caller waits again.
                if let Some(finished) = self.next(MOMENT, scope) {
                    self.hand_on(finished, scope, sink)?;
                }
            }
            // A panic of the function counts as a failure at this record. Earlier records are reported first.
            let work = match catch_unwind(AssertUnwindSafe(|| self.function.call(item))) {
                Ok(future) => Work::Running(Box::pin(future)),
                Err(panic) => Work::Panicked(panicked(&*panic)),
            };
            let handed = scope.run.handed.borrow();
            let origin = current.iter().chain(&*handed).find(|origin| origin.has_any((record, record))).cloned();
            drop(handed);
            self.under_way.push(Task { record, origin, work });
        }
        let patience = if flow.is_break() { MOMENT } else { Duration::ZERO };
        loop {
            match self.next(patience, scope) {
                Some(finished) => self.hand_on(finished, scope, sink)?,
                None if flow.is_break() && !self.under_way.is_empty() => {}
                None => return flow,
            }
        }
    }

    /// Returns the next finished future, if there is one within `patience`.
    fn next(&mut self, patience: Duration, scope: Scope<'_>) -> Option<Finished<U::Output>> {
        if self.under_way.is_empty() {
            return None;
        }
        let began = Instant::now();
        let mut slept = Duration::ZERO;
        let waker = Waker::from(Arc::new(Alarm(thread::current())));
        let mut context = Context::from_waker(&waker);
        let finished = loop {
            let left = patience.saturating_sub(began.elapsed());
            match self.under_way.poll_next(&mut context) {
                Poll::Ready(finished) => break finished,
                Poll::Pending if left.is_zero() => break None,
                Poll::Pending => {
                    let sleeping = Instant::now();
                    thread::park_timeout(left);
                    slept += sleeping.elapsed();
                }
            }
        };
        if scope.run.measures {
            self.stats.waited += slept;
            self.stats.time += began.elapsed().saturating_sub(slept);
            self.stats.items += u64::from(finished.is_some());
        }
        finished
    }

    fn hand_on(
        &mut self,
        (record, origin, made): Finished<U::Output>,
        scope: Scope<'_>,
        sink: &mut impl FnMut(u64, K::Value) -> Flow,
    ) -> Flow {
        scope.run.hand(origin.as_slice());
        scope.run.current.set(record);
        let flow = match made.map(K::of) {
            Ok(Ok(value)) => sink(record, value),
            Ok(Err(error)) => scope.fail(record, stage_failed(error)),
            Err(error) => scope.fail(record, error),
        };
        if flow.is_break() {
            // The following stages need no more items, so no further request will follow.
            self.under_way.clear();
        }
        flow
    }
}

/// The futures that have been started.
enum UnderWay<U: Future> {
    Ordered(FuturesOrdered<Task<U>>),
    Unordered(FuturesUnordered<Task<U>>),
}

impl<U: Future> UnderWay<U> {
    fn push(&mut self, task: Task<U>) {
        match self {
            UnderWay::Ordered(tasks) => tasks.push_back(task),
            UnderWay::Unordered(tasks) => tasks.push(task),
        }
    }

    /// Includes futures that are finished and have not been passed on.
    fn len(&self) -> usize {
        match self {
            UnderWay::Ordered(tasks) => tasks.len(),
            UnderWay::Unordered(tasks) => tasks.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Finished<U::Output>>> {
        match self {
            UnderWay::Ordered(tasks) => Pin::new(tasks).poll_next(context),
            UnderWay::Unordered(tasks) => Pin::new(tasks).poll_next(context),
        }
    }

    fn clear(&mut self) {
        *self = match self {
            UnderWay::Ordered(_) => UnderWay::Ordered(FuturesOrdered::new()),
            UnderWay::Unordered(_) => UnderWay::Unordered(FuturesUnordered::new()),
        };
    }
}

/// A future, and the record from which it was created.
struct Task<U> {
    record: u64,
    origin: Option<Arc<Origin>>,
    work: Work<U>,
}

enum Work<U> {
    Running(Pin<Box<U>>),
    /// There is no future, because creating it has panicked.
    Panicked(Error),
    Over,
}

/// A record's number, the origin of its batch, and the result of its future.
type Finished<R> = (u64, Option<Arc<Origin>>, Result<R, Error>);

impl<U: Future> Future for Task<U> {
    type Output = Finished<U::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let made = match std::mem::replace(&mut self.work, Work::Over) {
            Work::Running(mut future) => match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
                Ok(Poll::Pending) => {
                    self.work = Work::Running(future);
                    return Poll::Pending;
                }
                Ok(Poll::Ready(made)) => Ok(made),
                Err(panic) => Err(panicked(&*panic)),
            },
            Work::Panicked(error) => Err(error),
            Work::Over => return Poll::Pending,
        };
        Poll::Ready((self.record, self.origin.take(), made))
    }
}

/// Wakes the waiting thread.
struct Alarm(Thread);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
