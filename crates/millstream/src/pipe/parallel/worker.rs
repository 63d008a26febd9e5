//! The code that processes chunks: stages, and the state they need. Each thread has one worker, including the caller's.

#[cfg(feature = "splits")]
use std::sync::Arc;
use std::time::Instant;

use bumpalo::Bump;

use crate::frame::Batch;

use super::super::chain::Chain;
#[cfg(feature = "splits")]
use super::super::item::Bytes;
use super::super::scope::{Flow, Run, Scope};
use super::chunk::{Chunk, SendItem};

/// Stages, with separate run state and memory.
pub(super) struct Worker<P> {
    stages: P,
    run: Run,
    arena: Bump,
}

impl<P> Worker<P> {
    pub(super) fn new(stages: P) -> Worker<P> {
        Worker { stages, run: Run::new(), arena: Bump::new() }
    }

    pub(super) fn stages(&self) -> &P {
        &self.stages
    }

    /// Passes a chunk through the stages.
    pub(super) fn pass<I, O>(&mut self, chunk: &mut Chunk<I, O>)
    where
        I: SendItem,
        O: SendItem,
        P: Chain<I, Out = O>,
    {
        let mut given = std::mem::take(&mut chunk.given);
        std::mem::swap(self.run.handed.get_mut(), &mut chunk.origins);
        self.pass_items(I::count(&given), I::open(&mut given), None, chunk);
        std::mem::swap(self.run.handed.get_mut(), &mut chunk.origins);
        chunk.given = given;
        self.arena.reset();
    }

    /// Passes the records of a batch through the stages.
    #[cfg(feature = "splits")]
    pub(super) fn pass_batch<O>(&mut self, batch: Batch<'_>, name: &Arc<str>, chunk: &mut Chunk<Bytes, O>)
    where
        O: SendItem,
        P: Chain<Bytes, Out = O>,
    {
        self.run.set_name(name);
        self.run.begin((batch.first_record(), batch.first_record()));
        let items = (batch.first_record()..).zip(batch.iter());
        self.pass_items(batch.len(), items, Some(batch), chunk);
        self.run.begin((0, 0)); // lets go of the origin
        self.arena.reset();
    }

    fn pass_items<'a, I, O>(
        &'a mut self,
        count: usize,
        items: impl Iterator<Item = (u64, I::Of<'a>)>,
        batch: Option<Batch<'a>>,
        chunk: &mut Chunk<I, O>,
    ) where
        I: SendItem,
        O: SendItem,
        P: Chain<I, Out = O>,
    {
        let began = Instant::now();
        let Worker { stages, run, arena } = self;
        let Chunk { made, on_error, failures, flow, work, .. } = chunk;
        run.on_error = *on_error;
        let whole = batch.map_or(&[][..], |batch| batch.bytes());
        // This is the number of items that had been produced before each failure.
        let mut failed_at = Vec::new();
        {
            let scope = Scope { arena, batch, run };
            *flow = scope.guard(|| {
                stages.run(items, scope, &mut |record, item| {
                    let failed = run.failures.borrow().len();
                    if failed > failed_at.len() {
                        failed_at.resize(failed, O::count(made));
                    }
                    O::pack(made, record, item, whole);
                    Flow::Continue(())
                })
            });
        }
        O::seal(made, whole);
        let failed = run.failures.take();
        failed_at.resize(failed.len(), O::count(made));
        failures.extend(failed_at.into_iter().zip(failed));
        *work = (count, began.elapsed());
    }
}
