//! Stages one after another, compiled into one loop.
//!
//! A chain takes the items of a batch and passes the results to a sink, item by item. Each stage wraps the sink in its
//! own function, so that the compiler sees one loop with all stages in it: a stage that does nothing costs nothing.
//! There is no dynamic call and no memory between fused stages. If the stages are chosen at run time, or are to be
//! measured one by one, a chain is cut ([`Cut`](super::cut::Cut), [`Stage`](super::Stage)): a cut passes on whole
//! batches.

use std::time::Duration;

use super::item::Item;
use super::scope::{Flow, Scope};
use super::stats::StageStats;

/// The time for which stages wait for held items before they check again whether the source has data.
pub(super) const MOMENT: Duration = Duration::from_micros(500);

/// The stages of a pipe, as one type. It is created by the methods of [`Pipe`](super::Pipe).
pub trait Chain<I: Item> {
    /// The kind of the resulting items.
    type Out: Item;

    /// Whether each item results in at most one item, before the next one is processed. If so, a list of items can be
    /// processed in place.
    const AT_MOST_ONE: bool = false;

    /// Runs items of one batch through the stages, and passes the results to `sink`, each with the number of the
    /// record that it was produced from. Records are counted over all sources of a pipe, so that a number means one
    /// record.
    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, <Self::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow;

    /// Waits briefly for items that the stages [hold](Chain::holds), and passes some of them to `sink`. The source has
    /// no data at the moment, or has ended. The caller repeats this call until no item is held or the source has
    /// data.
    fn settle<'a>(
        &mut self,
        _scope: Scope<'a>,
        _sink: &mut impl FnMut(u64, <Self::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow {
        Flow::Continue(())
    }

    /// Returns whether stages hold items back, so that [`settle`](Chain::settle) must be called.
    fn holds(&self) -> bool {
        false
    }

    /// Returns whether the chain is finished: items that it does not hold already will have no results.
    fn is_done(&self) -> bool {
        false
    }

    /// Adds the measurements, in the order of the stages.
    fn report(&self, _stages: &mut Vec<StageStats>) {}
}

/// The empty chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start;

impl<I: Item> Chain<I> for Start {
    type Out = I;
    const AT_MOST_ONE: bool = true;

    #[inline]
    fn run<'a>(
        &mut self,
        mut input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, I::Of<'a>) -> Flow,
    ) -> Flow {
        let mut at = At::new(scope);
        input.try_for_each(|(record, item)| {
            at.record = record;
            sink(record, item)
        })
    }
}

/// A stage that works on one item at a time.
pub trait Each<I: Item> {
    /// The kind of the resulting items.
    type Out: Item;

    /// Whether each item results in at most one item.
    const AT_MOST_ONE: bool = false;

    /// Passes the results for an item to `next`: none, one, or several.
    fn each<'a>(
        &mut self,
        record: u64,
        item: I::Of<'a>,
        scope: Scope<'a>,
        next: &mut impl FnMut(u64, <Self::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow;

    /// Returns whether the stage is finished: no more items will result.
    fn is_done(&self) -> bool {
        false
    }
}

/// A chain followed by one more stage.
#[derive(Clone, Debug)]
pub struct Then<C, S> {
    pub(super) chain: C,
    pub(super) stage: S,
}

impl<I: Item, C: Chain<I>, S: Each<C::Out>> Chain<I> for Then<C, S> {
    type Out = S::Out;
    const AT_MOST_ONE: bool = C::AT_MOST_ONE && S::AT_MOST_ONE;

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

/// The record that a loop is processing. It is stored in the [run](super::scope::Run) when the loop ends, even by a
/// panic, so that the loop does not have to store it for each item.
struct At<'a> {
    record: u64,
    scope: Scope<'a>,
}

impl<'a> At<'a> {
    fn new(scope: Scope<'a>) -> At<'a> {
        At { record: scope.run.current.get(), scope }
    }
}

impl Drop for At<'_> {
    fn drop(&mut self) {
        self.scope.run.current.set(self.record);
    }
}

/// The items of one batch, each with the number of the record that it was produced from.
pub(super) type Items<'a, I> = Vec<(u64, <I as Item>::Of<'a>)>;

/// A list of items to which a loop appends. It is moved here, so that the compiler keeps its length in a register, and
/// moved back when the loop ends, even by a panic.
pub(super) struct Filling<'l, T> {
    list: Vec<(u64, T)>,
    home: &'l mut Vec<(u64, T)>,
}

impl<'l, T> Filling<'l, T> {
    pub(super) fn new(home: &'l mut Vec<(u64, T)>) -> Filling<'l, T> {
        Filling { list: std::mem::take(home), home }
    }

    #[inline]
    pub(super) fn push(&mut self, record: u64, item: T) {
        if self.list.len() == self.list.capacity() {
            self.list = longer(std::mem::take(&mut self.list), record, item);
        } else {
            self.list.push((record, item));
        }
    }
}

impl<T> Drop for Filling<'_, T> {
    #[inline]
    fn drop(&mut self) {
        *self.home = std::mem::take(&mut self.list);
    }
}

/// Appends to a full list. All arguments are passed by value: a variable whose address is taken would have to be in
/// memory.
#[cold]
#[inline(never)]
fn longer<T>(mut list: Vec<(u64, T)>, record: u64, item: T) -> Vec<(u64, T)> {
    list.push((record, item));
    list
}

/// Returns the results of a chain for a batch, even if the chain fails in the middle of it.
pub(super) fn collect<'a, I: Item, C: Chain<I>>(
    chain: &mut C,
    input: impl Iterator<Item = (u64, I::Of<'a>)>,
    scope: Scope<'a>,
) -> (Items<'a, C::Out>, Flow) {
    let mut items = Vec::with_capacity(input.size_hint().0);
    let flow = scope.guard(|| {
        let mut list = Filling::new(&mut items);
        chain.run(input, scope, &mut |record, item| {
            list.push(record, item);
            Flow::Continue(())
        })
    });
    (items, flow)
}

/// Returns the items that a chain still holds.
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

/// Passes collected items on, one by one.
pub(super) fn hand_on<T>(
    items: impl IntoIterator<Item = (u64, T)>,
    scope: Scope<'_>,
    sink: &mut impl FnMut(u64, T) -> Flow,
) -> Flow {
    let mut at = At::new(scope);
    items.into_iter().try_for_each(|(record, item)| {
        at.record = record;
        sink(record, item)
    })
}
