//! Chains of small functions over records, in which an additional stage has almost no cost.
//!
//! ```
//! use millstream::{Reader, Writer, pipe::Pipe};
//!
//! let reader = Reader::command(["printf", "apple 3\\npear x\\nplum 4\\n"])?;
//! let mut out = Writer::memory()?;
//! let summary = Pipe::from(reader)
//!     .lines()
//!     .filter(|line| !line.ends_with(b"x"))
//!     .map(|line| line.to_ascii_uppercase())
//!     .write_to(&mut out)?;
//! assert_eq!(out.close()?.memory.unwrap(), b"APPLE 3\nPLUM 4\n");
//! assert_eq!((summary.records, summary.items), (3, 2));
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! # Stages
//! Stages pass on *items*. The first stage gets the records, borrowed from their batch. Later stages get the results
//! of earlier ones: parts of records and other bytes ([`Bytes`]), or values of any type ([`Value`]).
//!
//! | stage | result for an item |
//! |---|---|
//! | `map`, `filter_map`, `try_map`, `flat_map`, `scan_state` | a value; a value or nothing; a value or an error; several values; a value that depends on earlier items |
//! | `map_bytes`, `pieces`, `rewrite` | a part of the record; several parts; bytes that a function writes |
//! | `filter`, `try_filter`, `take`, `skip`, `inspect`, `tee` | the item itself, or nothing |
//! | `parallel` | the results of stages that run on several threads |
//! | `map_async`, `try_map_async` | the result of its future |
//! | `through` | the records of the output of a command that reads the items |
//! | `cut`, `then`, `then_all` | passes many items at once: to measure stages, and for stages chosen at run time |
//!
//! Stages written in one expression are *fused*: the compiler turns them into one loop, and a stage that does nothing
//! costs nothing. A [`Stage`] is boxed and costs a dynamic call for hundreds of items, and a copy of each item. The
//! type of a fused chain grows with each stage; use boxes for hundreds of stages.
//!
//! # Guarantees
//! - If a record fails, earlier records reach the sink before the error is reported, with the record's number and
//!   position.
//! - An error of the source is reported after all of its records; the end means that the source succeeded.
//! - A batch contains the records that the source has delivered, at most 256 KiB. After a [cut](Pipe::cut) or a box,
//!   stages may have run on items of the same batch that a later `take` then drops, and on items after one that fails.
//!   [`batch(1)`](Pipe::batch) prevents that: each record passes all stages before the next one begins.
//! - A panic in a stage is reported as [`StagePanicked`](crate::ErrorKind::StagePanicked) with the record's number,
//!   and ends the pipe.
//! - Memory use is bounded by the readers' buffers and the results of the stages for one batch.
//!
//! # Several threads
//! [`parallel`](Pipe::parallel) runs stages without state on several threads, in order or unordered: `pipe.parallel(4,
//! |stages| stages.map(parse).filter(wanted))`. The source, the other stages and the sink stay on the caller's thread;
//! only these stages and their items need to be `Send`.
//!
//! # Asynchronous stages
//! With the feature `async`, `map_async` and `try_map_async` wait for several futures at a time, over all batches, in
//! order or unordered: `pipe.try_map_async(Concurrency::ordered(8), fetch)`. The futures are polled on the caller's
//! thread and need no executor. `into_stream` turns a pipe into a `Stream`, which runs on a separate thread.
//!
//! This module does no I/O itself; readers and writers do.

#[cfg(feature = "async")]
mod asynchronous;
mod batches;
mod bytes;
mod chain;
mod cut;
mod drive;
mod feed;
mod hand;
mod item;
mod origin;
mod parallel;
mod scope;
mod stage;
mod stages;
mod stats;
#[cfg(feature = "async")]
mod stream;
mod through;
mod values;

use std::marker::PhantomData;
use std::time::Duration;

use bumpalo::Bump;

#[cfg(feature = "async")]
pub use asynchronous::{Concurrency, MapAsync};
pub use batches::{BatchMemory, Stopped};
pub use chain::{Chain, Each, Start, Then};
pub use hand::Stages;
pub use item::{Bytes, Item, Value};
#[cfg(feature = "splits")]
pub use parallel::{FromSplits, OnSplits};
pub use parallel::{Parallel, SendItem, Stateless, Threads};
pub use scope::{Flow, Scope};
pub use stage::Stage;
pub use stats::{StageStats, Stats, Summary};
#[cfg(feature = "async")]
pub use stream::ItemStream;

use crate::error::Result;
use crate::frame::{Framer, Lines};
use crate::os::cancel::CancelToken;
use crate::reader::Reader;
use crate::writer::Writer;
use cut::Cut;
use feed::{Feed, Order};
use scope::Run;
use stage::{ThenAll, ThenBoxed};
use stages::{Skip, Take};

/// A chain of stages, with or without a source.
///
/// `F` is the origin of the records ([`Attached`], or [`Detached`] for stages without a source), and `C` is the chain
/// of stages, which turns items of the kind `I` into items of the kind `O`. Programs rarely name these types: see [the
/// module](self).
#[must_use = "a pipe does nothing until its items are requested, such as with `write_to`"]
pub struct Pipe<F, I, C, O> {
    feed: F,
    chain: C,
    kinds: PhantomData<fn(I) -> O>,
}

/// Readers without a record format yet.
#[derive(Debug)]
pub struct Unframed(Vec<Reader>, Order);

/// Has no source.
#[derive(Clone, Copy, Debug)]
pub struct Detached;

/// Attached to a source of records, which the pipe processes. [`Detached`] has none.
pub struct Attached<'p> {
    feed: Feed,
    on_error: OnError<'p>,
    cancel: Option<CancelToken>,
    run: Run,
    /// The memory for the stages' results from a batch.
    arena: Bump,
    summary: Summary,
    elapsed: Duration,
    state: State,
}

enum State {
    Open,
    /// All records have passed through.
    Ended,
    /// An error has ended the pipe within a batch.
    Failed,
}

/// What happens if a stage fails for a record, that is, if [`try_map`](Pipe::try_map) or
/// [`try_filter`](Pipe::try_filter) returns an error.
///
/// A panic in a stage and a failure of a source or sink always end the pipe.
#[derive(Debug, Default)]
pub enum OnError<'p> {
    /// The pipe reports the error, after earlier records have reached the sink.
    #[default]
    Stop,
    /// The record is skipped and counted in [`Summary::failed`].
    Skip,
    /// Like [`Skip`](Self::Skip), and the record is also written to this writer as it was read, with its delimiter. If
    /// a stage has already produced several items from it, the items before the failed one have been passed on.
    Quarantine(&'p mut Writer),
}

impl From<Reader> for Pipe<Unframed, (), (), ()> {
    fn from(reader: Reader) -> Self {
        Pipe::merge([reader])
    }
}

impl Pipe<Unframed, (), (), ()> {
    /// Processes the records of several readers, which take turns, one batch at a time. A reader without data is
    /// skipped while another one has some. The records of each reader stay in order. A record's number is counted in
    /// its reader.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let readers = [Reader::memory("1\n2\n")?, Reader::memory("3\n")?];
    /// let sum = Pipe::merge(readers).lines().map(|line| (line[0] - b'0') as u32).fold(0, |sum, n| sum + n)?;
    /// assert_eq!(sum, 6);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn merge(readers: impl IntoIterator<Item = Reader>) -> Self {
        Pipe::unframed(readers, Order::Turns)
    }

    /// Processes the records of several readers, one reader after another: each is read to its end, and must have
    /// succeeded, before the next one is read. All of them are open from the start.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let readers = [Reader::command(["sh", "-c", "sleep 0.01; echo 1"])?, Reader::memory("2\n3\n")?];
    /// assert_eq!(Pipe::concat(readers).lines().collect()?, [b"1", b"2", b"3"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn concat(readers: impl IntoIterator<Item = Reader>) -> Self {
        Pipe::unframed(readers, Order::Sequence)
    }

    fn unframed(readers: impl IntoIterator<Item = Reader>, order: Order) -> Self {
        Pipe { feed: Unframed(readers.into_iter().collect(), order), chain: (), kinds: PhantomData }
    }

    /// Processes the source's lines as records.
    pub fn lines<'p>(self) -> Pipe<Attached<'p>, Bytes, Start, Bytes> {
        self.frames(Lines::new())
    }

    /// Processes the records that a framer finds.
    ///
    /// ```
    /// use millstream::{Reader, frame::Fixed, pipe::Pipe};
    /// let mut words = Pipe::from(Reader::memory("abcdef")?).frames(Fixed::new(2)?);
    /// assert_eq!(words.map(|word| word.to_vec()).collect()?, [b"ab", b"cd", b"ef"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn frames<'p>(self, framer: impl Framer + Send + 'static) -> Pipe<Attached<'p>, Bytes, Start, Bytes> {
        Pipe { feed: Attached::new(self.feed.0, self.feed.1, Box::new(framer)), chain: Start, kinds: PhantomData }
    }
}

impl Attached<'_> {
    fn new(readers: Vec<Reader>, order: Order, framer: Box<dyn Framer + Send>) -> Self {
        Attached {
            feed: Feed::new(readers, order, framer),
            on_error: OnError::Stop,
            cancel: None,
            run: Run::new(),
            arena: Bump::new(),
            summary: Summary::default(),
            elapsed: Duration::ZERO,
            state: State::Open,
        }
    }
}

/// Stages without a source.
impl Pipe<Detached, Bytes, Start, Bytes> {
    /// Creates a chain of stages for records, without a source, to be [boxed](Pipe::boxed).
    pub fn stages() -> Self {
        Pipe { feed: Detached, chain: Start, kinds: PhantomData }
    }
}

impl<T> Pipe<Detached, Value<T>, Start, Value<T>> {
    /// Creates a chain of stages for values, without a source, to be [boxed](Pipe::boxed).
    pub fn stages_of_values() -> Self {
        Pipe { feed: Detached, chain: Start, kinds: PhantomData }
    }
}

impl<I: Item + 'static, C: Chain<I, Out = O> + Send + 'static, O: Item + 'static> Pipe<Detached, I, C, O> {
    /// Boxes these stages under a name for statistics.
    pub fn boxed(self, name: impl Into<String>) -> Stage<I, O> {
        Stage::new(self.chain, name.into())
    }
}

/// Stages for items of any kind.
impl<F, I: Item, C: Chain<I, Out = O>, O: Item> Pipe<F, I, C, O> {
    /// Adds stages.
    fn with<D, P>(self, add: impl FnOnce(C) -> D) -> Pipe<F, I, D, P> {
        Pipe { feed: self.feed, chain: add(self.chain), kinds: PhantomData }
    }

    /// Adds a stage that works on one item at a time.
    pub fn each<S: Each<O>>(self, stage: S) -> Pipe<F, I, Then<C, S>, S::Out> {
        self.with(|chain| Then { chain, stage })
    }

    /// Passes on the first `count` items. After them the pipe ends, and its sources are closed.
    pub fn take(self, count: u64) -> Pipe<F, I, Then<C, Take>, O> {
        self.each(Take(count))
    }

    /// Passes on all but the first `count` items.
    pub fn skip(self, count: u64) -> Pipe<F, I, Then<C, Skip>, O> {
        self.each(Skip(count))
    }

    /// Cuts the fused chain here: the stages since the last cut run on a whole batch before later stages see it, and
    /// are measured under `name` if the pipe is [measured](Pipe::measured).
    pub fn cut(self, name: impl Into<String>) -> Pipe<F, I, Cut<C>, O> {
        self.with(|chain| Cut::new(chain, name.into()))
    }

    /// Adds a stage chosen at run time.
    pub fn then<P: Item>(self, stage: Stage<O, P>) -> Pipe<F, I, ThenBoxed<C, O, P>, P> {
        self.with(|chain| ThenBoxed { chain, stage })
    }

    /// Adds any number of stages chosen at run time.
    pub fn then_all(self, stages: Vec<Stage<O, O>>) -> Pipe<F, I, ThenAll<C, O>, O> {
        self.with(|chain| ThenAll { chain, stages })
    }
}

/// Options and the end of a pipe with a source.
impl<'p, C, O> Pipe<Attached<'p>, Bytes, C, O> {
    /// Sets what happens if a stage fails for a record.
    ///
    /// ```
    /// use millstream::{Reader, Writer, pipe::{OnError, Pipe}};
    /// let mut bad = Writer::memory()?;
    /// let mut pipe = Pipe::from(Reader::memory("1\nx\n3\n")?)
    ///     .lines()
    ///     .on_error(OnError::Quarantine(&mut bad))
    ///     .try_map(|line| String::from_utf8_lossy(line).parse::<u32>());
    /// assert_eq!(pipe.collect()?, [1, 3]);
    /// assert_eq!(pipe.summary().failed, 1);
    /// drop(pipe);
    /// assert_eq!(bad.close()?.memory.unwrap(), b"x\n");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn on_error(mut self, on_error: OnError<'p>) -> Self {
        self.feed.run.on_error = match &on_error {
            OnError::Stop => scope::OnFailure::Stop,
            OnError::Skip => scope::OnFailure::Skip { keep: false },
            OnError::Quarantine(_) => scope::OnFailure::Skip { keep: true },
        };
        self.feed.on_error = on_error;
        self
    }

    /// Stops between two batches when this token is cancelled, with an error of the kind
    /// [`Cancelled`](crate::ErrorKind::Cancelled). The pipe can continue afterwards. To interrupt the pipe while it
    /// waits for the source, also pass the token to the [reader](crate::ReaderBuilder::cancel).
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.feed.cancel = Some(token.clone());
        self
    }

    /// Limits a batch to `records` records; at least 1.
    pub fn batch(mut self, records: usize) -> Self {
        self.feed.feed.most = records.max(1);
        self
    }

    /// Measures the time spent in stages, for [`stats`](Pipe::stats).
    pub fn measured(mut self) -> Self {
        self.feed.run.measures = true;
        self
    }

    /// Returns the progress so far.
    pub fn summary(&self) -> Summary {
        Summary { commands: self.feed.feed.commands().to_vec(), ..self.feed.summary.clone() }
    }

    /// Closes the pipe at the current position, and returns the statistics. Commands that are still running are stopped
    /// as by [`Reader::close`]. Dropping a pipe also does this, but reports no errors.
    ///
    /// # Errors
    /// Returns the errors of [`Reader::close`].
    pub fn close(mut self) -> Result<Summary> {
        self.feed.feed.close()?;
        Ok(self.summary())
    }
}

impl<F: std::fmt::Debug, I, C, O> std::fmt::Debug for Pipe<F, I, C, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe").field("source", &self.feed).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Attached<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("summary", &self.summary).finish_non_exhaustive()
    }
}
