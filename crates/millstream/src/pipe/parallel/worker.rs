//! The code that processes chunks: stages, and the state they need. Each thread has one worker, including the caller's.

use std::time::Instant;

use bumpalo::Bump;

use super::super::chain::Chain;
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
        let began = Instant::now();
        let Worker { stages, run, arena } = self;
        let Chunk { given, made, origins, on_error, failures, flow, work } = chunk;
        let count = I::count(given);
        run.on_error = *on_error;
        std::mem::swap(run.handed.get_mut(), origins);
        // This is the number of items that had been produced before each failure.
        let mut failed_at = Vec::new();
        let scope = Scope { arena, batch: None, run };
        *flow = scope.guard(|| {
            stages.run(I::open(given), scope, &mut |record, item| {
                let failed = run.failures.borrow().len();
                if failed > failed_at.len() {
                    failed_at.resize(failed, O::count(made));
                }
                O::pack(made, record, item, &[]);
                Flow::Continue(())
            })
        });
        let failed = run.failures.take();
        failed_at.resize(failed.len(), O::count(made));
        failures.extend(failed_at.into_iter().zip(failed));
        std::mem::swap(run.handed.get_mut(), origins);
        arena.reset();
        *work = (count, began.elapsed());
    }
}
