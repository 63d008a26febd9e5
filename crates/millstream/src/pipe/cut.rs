//! A cut in a chain, where whole batches are passed on and time is measured.

use std::time::{Duration, Instant};

use super::chain::{Chain, collect, hand_on, settled};
use super::item::Item;
use super::scope::{Flow, Scope};
use super::stats::StageStats;

/// A chain whose output is collected, batch by batch, before the following stages get it.
#[derive(Clone, Debug)]
pub struct Cut<C> {
    chain: C,
    meter: Meter,
}

impl<C> Cut<C> {
    pub(super) fn new(chain: C, name: String) -> Cut<C> {
        Cut { chain, meter: Meter::new(name) }
    }
}

impl<I: Item, C: Chain<I>> Chain<I> for Cut<C> {
    type Out = C::Out;

    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, <C::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow {
        let began = Meter::begin(scope);
        let (items, flow) = collect(&mut self.chain, input, scope);
        self.meter.add::<C::Out>(began, &items);
        hand_on(items, scope, sink)?;
        flow
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, sink: &mut impl FnMut(u64, <C::Out as Item>::Of<'a>) -> Flow) -> Flow {
        let began = Meter::begin(scope);
        let (items, flow) = settled(&mut self.chain, scope);
        self.meter.add::<C::Out>(began, &items);
        hand_on(items, scope, sink)?;
        flow
    }

    fn holds(&self) -> bool {
        self.chain.holds()
    }

    fn is_done(&self) -> bool {
        self.chain.is_done()
    }

    fn report(&self, stages: &mut Vec<StageStats>) {
        self.chain.report(stages);
        // This time includes the time of the earlier stages.
        let before: Duration = stages.iter().map(StageStats::on_this_thread).sum();
        stages.push(self.meter.stats(before));
    }
}

/// The number of items that a stage produced, and the time that the stage took.
#[derive(Clone, Debug)]
pub(super) struct Meter(StageStats);

impl Meter {
    pub(super) fn new(name: String) -> Meter {
        Meter(StageStats { name, ..StageStats::default() })
    }

    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the time at which a batch arrived, if time is measured.
    pub(super) fn begin(scope: Scope<'_>) -> Option<Instant> {
        scope.run.measures.then(Instant::now)
    }

    /// Adds the results for a batch.
    pub(super) fn add<O: Item>(&mut self, began: Option<Instant>, items: &[(u64, O::Of<'_>)]) {
        if let Some(began) = began {
            self.0.time += began.elapsed();
            self.0.items += items.len() as u64;
            self.0.bytes += items.iter().map(|(_, item)| O::size(item) as u64).sum::<u64>();
        }
    }

    /// Returns the measurements, without the time of `others` that they include.
    pub(super) fn stats(&self, others: Duration) -> StageStats {
        StageStats { time: self.0.time.saturating_sub(others), ..self.0.clone() }
    }
}
