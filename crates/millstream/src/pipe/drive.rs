//! Running a pipe: batch by batch from its source to a sink.

use std::error::Error as StdError;
use std::time::Instant;

use super::chain::Chain;
use super::feed::Next;
use super::item::{Bytes, Item, Value};
use super::scope::{Flow, Scope};
use super::stages::stage_failed;
use super::stats::{Stats, Summary};
use super::{Attached, OnError, Pipe, State};
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Batch, Records};
use crate::reader::Waits;
use crate::writer::Writer;

impl<C: Chain<Bytes, Out = O>, O: Item> Pipe<Attached<'_>, Bytes, C, O> {
    /// Runs the pipe to the end, and passes every item to `sink`.
    fn drive(&mut self, mut sink: impl FnMut(u64, O::Of<'_>) -> Flow) -> Result<()> {
        let began = Instant::now();
        let result = loop {
            match self.step(&mut sink) {
                Ok(()) if matches!(self.feed.state, State::Open) => {}
                result => break result,
            }
        };
        self.feed.elapsed += began.elapsed();
        result
    }

    /// Writes all items with `put`, which gets the record terminator too, and flushes before it waits for the source.
    pub(super) fn pass_to(
        &mut self,
        out: &mut Writer,
        put: impl Fn(&mut Writer, O::Of<'_>, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let terminator = self.feed.feed.terminator().to_vec();
        let mut failed = None;
        while matches!(self.feed.state, State::Open) {
            if self.feed.feed.waits() != Waits::No {
                out.flush()?;
            }
            self.step(&mut |record, item| stop_at(put(out, item, &terminator), record, &mut failed))?;
        }
        self.ended_by(failed).map(drop)
    }

    /// Processes one batch.
    pub(super) fn step(&mut self, sink: &mut impl FnMut(u64, O::Of<'_>) -> Flow) -> Result<()> {
        match self.feed.state {
            State::Open => {}
            State::Ended => return Ok(()),
            State::Failed => return Err(Error::new(ErrorKind::Closed)),
        }
        // Stages that read themselves need not begin.
        if self.chain.is_done() && (!self.chain.holds() || self.feed.summary.records == 0) {
            return self.end_early();
        }
        if self.feed.cancel.as_ref().is_some_and(|token| token.is_cancelled()) {
            return Err(Error::new(ErrorKind::Cancelled));
        }
        if self.chain.holds() && (self.chain.is_done() || self.feed.feed.waits() == Waits::Yes) {
            return self.settle(sink);
        }
        let Attached { feed, run, arena, summary, .. } = &mut self.feed;
        arena.reset();
        let next = match feed.next() {
            Ok(next) => next,
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Err(error) => return self.source_failed(error, sink),
        };
        match next {
            Next::Batch(batch, name) => {
                run.set_name(name);
                let first = summary.records;
                run.begin((first, batch.first_record()));
                let scope = Scope { arena, batch: Some(batch), run };
                summary.records += batch.len() as u64;
                // Counted in a register, not in memory.
                let (mut items, chain) = (0, &mut self.chain);
                let flow = scope.guard(|| {
                    chain.run(Numbered::new(first, batch), scope, &mut |record, item| {
                        items += 1;
                        sink(record, item)
                    })
                });
                summary.items += items;
                self.deal_with(flow)
            }
            Next::Ended(reader) => feed.end(reader),
            Next::End if self.chain.holds() => self.settle(sink),
            Next::End => {
                self.feed.state = State::Ended;
                Ok(())
            }
        }
    }

    /// Handles a failure of the source: all earlier items come first. If the stages need no more items after that,
    /// the error is ignored, because faster stages would have stopped the pipe before it.
    fn source_failed(&mut self, error: Error, sink: &mut impl FnMut(u64, O::Of<'_>) -> Flow) -> Result<()> {
        self.settle_all(sink)?;
        if !matches!(self.feed.state, State::Open) {
            return Ok(());
        }
        if self.chain.is_done() {
            return self.end_early();
        }
        if !error.kind().is_resumable() {
            self.feed.state = State::Failed;
        }
        Err(error)
    }

    /// Passes all items that the stages still hold to the sink.
    fn settle_all(&mut self, sink: &mut impl FnMut(u64, O::Of<'_>) -> Flow) -> Result<()> {
        while matches!(self.feed.state, State::Open) && self.chain.holds() {
            self.settle(sink)?;
        }
        Ok(())
    }

    /// Passes some of the items that the stages still hold to the sink.
    fn settle(&mut self, sink: &mut impl FnMut(u64, O::Of<'_>) -> Flow) -> Result<()> {
        let Attached { run, arena, summary, .. } = &mut self.feed;
        arena.reset();
        run.begin(run.first.get());
        let scope = Scope { arena, batch: None, run };
        let (chain, items) = (&mut self.chain, &mut summary.items);
        let flow = scope.guard(|| {
            chain.settle(scope, &mut |record, item| {
                *items += 1;
                sink(record, item)
            })
        });
        summary.records += run.read.take();
        let failed = run.source_error.take();
        self.deal_with(flow)?;
        match failed {
            // The stages that read have stopped.
            Some(error) if matches!(self.feed.state, State::Open) => {
                self.source_failed(error, sink).inspect_err(|_| self.feed.state = State::Failed)
            }
            _ => Ok(()),
        }
    }

    /// Checks for errors, and for the end of the pipe.
    fn deal_with(&mut self, flow: Flow) -> Result<()> {
        let mut failures = self.feed.run.failures.take();
        // Stages that process whole batches may each have failed, a later stage at an earlier record.
        failures.sort_by_key(|failure| failure.record);
        for failure in failures {
            if failure.is_fatal {
                self.feed.state = State::Failed;
                return Err(failure.error);
            }
            self.feed.summary.failed += 1;
            if let (OnError::Quarantine(out), Some(bytes)) = (&mut self.feed.on_error, failure.bytes) {
                out.write(&bytes).inspect_err(|_| self.feed.state = State::Failed)?;
            }
        }
        if flow.is_break() {
            return self.end_early();
        }
        Ok(())
    }

    /// Ends the pipe, because the stages need no more items. A source may have failed already, after records that
    /// stages still held. This is ignored; otherwise the result would depend on the stages' speed.
    fn end_early(&mut self) -> Result<()> {
        self.feed.state = State::Ended;
        self.feed.summary.ended_early = true;
        let _ = self.feed.feed.close();
        Ok(())
    }

    /// Runs the pipe to the end, for stages that do all the work themselves.
    ///
    /// # Errors
    /// Returns the errors of the sources and stages. After [`Cancelled`](ErrorKind::Cancelled) this function can be
    /// called again.
    pub fn run(&mut self) -> Result<Summary> {
        self.drive(|_, _| Flow::Continue(()))?;
        Ok(self.summary())
    }

    /// Returns the number of resulting items.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run).
    pub fn count(&mut self) -> Result<u64> {
        let mut count = 0;
        self.drive(|_, _| {
            count += 1;
            Flow::Continue(())
        })?;
        Ok(count)
    }

    /// Returns how the time was spent, if the pipe is [measured](Pipe::measured).
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let mut pipe = Pipe::from(Reader::memory("1\n2\n")?)
    ///     .lines()
    ///     .measured()
    ///     .map(|line| line[0] - b'0')
    ///     .cut("parse")
    ///     .filter(|number| *number > 1)
    ///     .cut("filter");
    /// pipe.run()?;
    /// let stages = pipe.stats().stages;
    /// assert_eq!((stages[0].name.as_str(), stages[0].items), ("parse", 2));
    /// assert_eq!((stages[1].name.as_str(), stages[1].items), ("filter", 1));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let mut stats =
            Stats { source_waited: self.feed.feed.waited(), elapsed: self.feed.elapsed, ..Stats::default() };
        self.chain.report(&mut stats.stages);
        stats
    }
}

/// Sinks for bytes.
impl<C: Chain<Bytes, Out = Bytes>> Pipe<Attached<'_>, Bytes, C, Bytes> {
    /// Calls a function with each item.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run).
    pub fn for_each(&mut self, mut function: impl FnMut(&[u8])) -> Result<Summary> {
        self.drive(|_, item| {
            function(item);
            Flow::Continue(())
        })?;
        Ok(self.summary())
    }

    /// Calls a function with each item until it fails, which ends the pipe.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run), and the function's own error with the record's number. An error of
    /// another crate becomes [`StageFailed`](ErrorKind::StageFailed).
    pub fn try_for_each<E: Into<Box<dyn StdError + Send + Sync>>>(
        &mut self,
        mut function: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Summary> {
        let mut failed = None;
        self.drive(|record, item| stop_at(function(item), record, &mut failed))?;
        self.ended_by(failed)
    }

    /// Combines all items into one value.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run).
    pub fn fold<A>(&mut self, init: A, mut function: impl FnMut(A, &[u8]) -> A) -> Result<A> {
        let mut folded = Some(init);
        self.drive(|_, item| {
            folded = folded.take().map(|so_far| function(so_far, item));
            Flow::Continue(())
        })?;
        Ok(folded.expect("a function that panicked is an error"))
    }

    /// Returns copies of all items.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run).
    pub fn collect(&mut self) -> Result<Vec<Vec<u8>>> {
        self.fold(Vec::new(), |mut all, item| {
            all.push(item.to_vec());
            all
        })
    }

    /// Writes each item, followed by the record terminator of the source: a newline for lines. The writer is neither
    /// flushed nor closed. When this returns without an error, all items have been written to the writer.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run) and [`Writer::write`].
    pub fn write_to(&mut self, out: &mut Writer) -> Result<Summary> {
        let terminator = self.feed.feed.terminator().to_vec();
        let mut failed = None;
        self.drive(|record, item| stop_at(crate::put!(out, item, &terminator[..]), record, &mut failed))?;
        self.ended_by(failed)
    }
}

/// Sinks for values.
impl<C: Chain<Bytes, Out = Value<V>>, V> Pipe<Attached<'_>, Bytes, C, Value<V>> {
    /// Calls a function with each value.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run).
    pub fn for_each(&mut self, mut function: impl FnMut(V)) -> Result<Summary> {
        self.drive(|_, value| {
            function(value);
            Flow::Continue(())
        })?;
        Ok(self.summary())
    }

    /// Calls a function with each value until it fails, which ends the pipe.
    ///
    /// # Errors
    /// Returns the same errors as the method for [bytes](Pipe::try_for_each).
    pub fn try_for_each<E: Into<Box<dyn StdError + Send + Sync>>>(
        &mut self,
        mut function: impl FnMut(V) -> Result<(), E>,
    ) -> Result<Summary> {
        let mut failed = None;
        self.drive(|record, value| stop_at(function(value), record, &mut failed))?;
        self.ended_by(failed)
    }

    /// Combines all values into one.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run).
    pub fn fold<A>(&mut self, init: A, mut function: impl FnMut(A, V) -> A) -> Result<A> {
        let mut folded = Some(init);
        self.drive(|_, value| {
            folded = folded.take().map(|so_far| function(so_far, value));
            Flow::Continue(())
        })?;
        Ok(folded.expect("a function that panicked is an error"))
    }

    /// Returns all values.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run).
    pub fn collect(&mut self) -> Result<Vec<V>> {
        self.fold(Vec::new(), |mut all, value| {
            all.push(value);
            all
        })
    }

    /// Writes each value's bytes, followed by the record terminator of the source: a newline for lines. For values
    /// other than bytes and text, use [`rewrite`](Pipe::rewrite).
    ///
    /// # Errors
    /// Returns the errors of [`run`](Pipe::run) and [`Writer::write`].
    pub fn write_to(&mut self, out: &mut Writer) -> Result<Summary>
    where
        V: AsRef<[u8]>,
    {
        let terminator = self.feed.feed.terminator().to_vec();
        let mut failed = None;
        self.drive(|record, value| stop_at(crate::put!(out, value.as_ref(), &terminator[..]), record, &mut failed))?;
        self.ended_by(failed)
    }
}

impl<C, O> Pipe<Attached<'_>, Bytes, C, O> {
    /// Handles the result that the sink has reported.
    fn ended_by(&mut self, failed: Option<(u64, Error)>) -> Result<Summary> {
        match failed {
            Some((record, error)) => {
                self.feed.state = State::Failed;
                Err(error.with_record(self.feed.run.number_in_source(record)))
            }
            None => Ok(self.summary()),
        }
    }
}

/// The records of a batch with their numbers. A number is computed from the count of the remaining records, so that a
/// loop that does not use the numbers has no second counter.
struct Numbered<'a> {
    left: Records<'a>,
    end: u64,
}

impl<'a> Numbered<'a> {
    fn new(first: u64, batch: Batch<'a>) -> Numbered<'a> {
        Numbered { left: batch.iter(), end: first + batch.len() as u64 }
    }
}

impl<'a> Iterator for Numbered<'a> {
    type Item = (u64, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let record = self.end - self.left.len() as u64;
        self.left.next().map(|item| (record, item))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

/// Continues, or stores the error of this record and stops.
#[inline]
fn stop_at<E: Into<Box<dyn StdError + Send + Sync>>>(
    result: Result<(), E>,
    record: u64,
    failed: &mut Option<(u64, Error)>,
) -> Flow {
    match result {
        Ok(()) => Flow::Continue(()),
        Err(error) => {
            *failed = Some((record, stage_failed(error.into())));
            Flow::Break(())
        }
    }
}
