//! Stages one behind the other, as one piece of code.
//!
//! A chain is given the items of a batch and hands what becomes of them to a sink, item by item. Each stage wraps the
//! sink in a function of its own, so that the compiler sees one loop with all stages in it: one more stage that does
//! nothing costs nothing. There is no dynamic call and no memory between fused stages. Where the stages are chosen at
//! run time, or are to be measured one by one, a chain is cut ([`Cut`](super::cut::Cut), [`Stage`](super::Stage)):
//! there whole batches change hands.

use std::time::Duration;

use super::item::Item;
use super::scope::{Flow, Scope};
use super::stats::StageStats;

/// For how long stages wait for what they hold before one looks again whether the source has something.
pub(super) const MOMENT: Duration = Duration::from_micros(500);

/// The stages of a pipe, as one type. Made by the methods of [`Pipe`](super::Pipe).
pub trait Chain<I: Item> {
    /// What comes out.
    type Out: Item;

    /// Runs items of one batch through the stages, and gives what becomes of them to `sink`, each with the number of the
    /// record that it was made from. Records are counted over all sources of a pipe, so that a number means one record.
    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, <Self::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow;

    /// The source has nothing at the moment, or has ended: waits a moment for what the stages [hold](Chain::holds), and
    /// gives some of it to `sink`. It is called again until nothing is held, or the source has something.
    fn settle<'a>(
        &mut self,
        _scope: Scope<'a>,
        _sink: &mut impl FnMut(u64, <Self::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow {
        Flow::Continue(())
    }

    /// Whether stages hold items back, so that they have to be settled.
    fn holds(&self) -> bool {
        false
    }

    /// Whether nothing more may go in: what is not held already will not come out.
    fn is_done(&self) -> bool {
        false
    }

    /// Adds what was measured, from the front on.
    fn report(&self, _stages: &mut Vec<StageStats>) {}
}

/// No stage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start;

impl<I: Item> Chain<I> for Start {
    type Out = I;

    #[inline]
    fn run<'a>(
        &mut self,
        mut input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, I::Of<'a>) -> Flow,
    ) -> Flow {
        input.try_for_each(|(record, item)| {
            scope.run.current.set(record);
            sink(record, item)
        })
    }
}

/// A stage that works on one item at a time.
pub trait Each<I: Item> {
    /// What comes out.
    type Out: Item;

    /// Gives to `next` what becomes of an item: nothing, one item, or several.
    fn each<'a>(
        &mut self,
        record: u64,
        item: I::Of<'a>,
        scope: Scope<'a>,
        next: &mut impl FnMut(u64, <Self::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow;

    /// Whether nothing more will come out.
    fn is_done(&self) -> bool {
        false
    }
}

/// A chain and one more stage.
#[derive(Clone, Debug)]
pub struct Then<C, S> {
    pub(super) chain: C,
    pub(super) stage: S,
}

impl<I: Item, C: Chain<I>, S: Each<C::Out>> Chain<I> for Then<C, S> {
    type Out = S::Out;

    #[inline]
    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, <S::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow {
        let stage = &mut self.stage;
        self.chain.run(input, scope, &mut |record, item| stage.each(record, item, scope, sink))
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, sink: &mut impl FnMut(u64, <S::Out as Item>::Of<'a>) -> Flow) -> Flow {
        let stage = &mut self.stage;
        self.chain.settle(scope, &mut |record, item| stage.each(record, item, scope, sink))
    }

    fn holds(&self) -> bool {
        self.chain.holds()
    }

    fn is_done(&self) -> bool {
        self.chain.is_done() || self.stage.is_done()
    }

    fn report(&self, stages: &mut Vec<StageStats>) {
        self.chain.report(stages);
    }
}

/// The items of one batch, each with the number of the record that it was made from.
pub(super) type Items<'a, I> = Vec<(u64, <I as Item>::Of<'a>)>;

/// What a chain makes of a batch, also where it fails in the middle of it.
pub(super) fn collect<'a, I: Item, C: Chain<I>>(
    chain: &mut C,
    input: impl Iterator<Item = (u64, I::Of<'a>)>,
    scope: Scope<'a>,
) -> (Items<'a, C::Out>, Flow) {
    let mut items = Vec::with_capacity(input.size_hint().0);
    let flow = scope.guard(|| {
        chain.run(input, scope, &mut |record, item| {
            items.push((record, item));
            Flow::Continue(())
        })
    });
    (items, flow)
}

/// What a chain still holds.
pub(super) fn settled<'a, I: Item, C: Chain<I>>(chain: &mut C, scope: Scope<'a>) -> (Items<'a, C::Out>, Flow) {
    let mut items = Vec::new();
    let flow = scope.guard(|| {
        chain.settle(scope, &mut |record, item| {
            items.push((record, item));
            Flow::Continue(())
        })
    });
    (items, flow)
}

/// Hands collected items on, one by one.
pub(super) fn hand_on<T>(
    items: impl IntoIterator<Item = (u64, T)>,
    scope: Scope<'_>,
    sink: &mut impl FnMut(u64, T) -> Flow,
) -> Flow {
    items.into_iter().try_for_each(|(record, item)| {
        scope.run.current.set(record);
        sink(record, item)
    })
}
