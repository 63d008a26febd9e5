//! Boxed stages for those who read the batches themselves.

use bumpalo::Bump;

use super::chain::{Chain, Start};
use super::item::Bytes;
use super::scope::{Flow, Run, Scope};
use super::stage::{Stage, ThenAll};
use super::stats::StageStats;
use crate::error::Result;
use crate::frame::Batch;

/// Boxed stages, one behind the other, that are given batches by hand: for those who have something else to do between two
/// batches than a [`Pipe`](super::Pipe) does, or several readers one after another.
///
/// ```
/// use millstream::{Reader, frame::Lines, pipe::{Pipe, Stages}};
/// let mut stages = Stages::new(vec![Pipe::stages().take(3).boxed("take")]);
/// let mut lines = Vec::new();
/// for text in ["a\nb\n", "c\nd\n"] {
///     let mut reader = Reader::memory(text)?;
///     while !stages.is_done() && let Some(batch) = reader.next_batch(&mut Lines::new())? {
///         stages.pass(batch, |_, line| lines.push(line.to_vec()))?;
///     }
/// }
/// assert_eq!(lines, [b"a", b"b", b"c"]);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Debug)]
pub struct Stages {
    chain: ThenAll<Start, Bytes>,
    run: Run,
    arena: Bump,
}

impl Stages {
    /// These stages, in this order.
    pub fn new(stages: Vec<Stage>) -> Stages {
        Stages { chain: ThenAll { chain: Start, stages }, run: Run::new(), arena: Bump::new() }
    }

    /// Measures where the time goes, for [`stats`](Stages::stats).
    pub fn measured(mut self) -> Stages {
        self.run.measures = true;
        self
    }

    /// Gives to `sink` what becomes of a batch: items, each with the number of the record it was made from.
    ///
    /// # Errors
    /// That of the first stage that fails; what came before it has reached the sink. Nothing should be passed any more then.
    pub fn pass(&mut self, batch: Batch<'_>, mut sink: impl FnMut(u64, &[u8])) -> Result<()> {
        self.arena.reset();
        self.run.begin((batch.first_record(), batch.first_record()));
        let scope = Scope { arena: &self.arena, batch: Some(batch), run: &self.run };
        let chain = &mut self.chain;
        // Where the flow breaks, a failure or `is_done` says why.
        let _ = scope.guard(|| {
            chain.run((batch.first_record()..).zip(batch), scope, &mut |record, item| {
                sink(record, item);
                Flow::Continue(())
            })
        });
        let failures = self.run.failures.take();
        failures.into_iter().min_by_key(|failure| failure.record).map_or(Ok(()), |failure| Err(failure.error))
    }

    /// Whether nothing more will come out, whatever goes in.
    pub fn is_done(&self) -> bool {
        Chain::<Bytes>::is_done(&self.chain)
    }

    /// What each stage has done, if they are [measured](Stages::measured).
    pub fn stats(&self) -> Vec<StageStats> {
        let mut stats = Vec::new();
        Chain::<Bytes>::report(&self.chain, &mut stats);
        stats
    }
}
