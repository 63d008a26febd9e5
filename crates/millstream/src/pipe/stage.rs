//! Stages that are chosen at run time: boxed, with one dynamic call for hundreds of items.

use std::alloc::Layout;
use std::time::Duration;

use super::chain::{Chain, Filling, Items, collect, hand_on, settled};
use super::cut::Meter;
use super::item::{Bytes, Item};
use super::scope::{Flow, Scope};
use super::stats::StageStats;

/// A stage whose type names only its input and output kinds, so that stages can be chosen at run time and kept in a
/// `Vec`. It is a box around any fused chain of stages, and costs one dynamic call for hundreds of items.
///
/// ```
/// use millstream::{Reader, pipe::{Pipe, Stage}};
/// let mut stages: Vec<Stage> = Vec::new();
/// for word in ["a", "b"] {
///     stages.push(Pipe::stages().filter(move |line| line.contains(&word.as_bytes()[0])).boxed(word));
/// }
/// let mut lines = Vec::new();
/// Pipe::from(Reader::memory("ab\nb\nba\n")?).lines().then_all(stages).for_each(|line| lines.push(line.to_vec()))?;
/// assert_eq!(lines, [b"ab", b"ba"]);
/// # Ok::<(), millstream::Error>(())
/// ```
pub struct Stage<I: Item = Bytes, O: Item = Bytes> {
    work: Box<dyn Work<I, O> + Send>,
    meter: Meter,
}

impl<I: Item, O: Item> Stage<I, O> {
    pub(super) fn new<C: Chain<I, Out = O> + Send + 'static>(chain: C, name: String) -> Stage<I, O>
    where
        I: 'static,
        O: 'static,
    {
        Stage::of(Fused(chain), name)
    }

    pub(super) fn of(work: impl Work<I, O> + Send + 'static, name: String) -> Stage<I, O> {
        Stage { work: Box::new(work), meter: Meter::new(name) }
    }

    /// Runs the stage on items, which it takes from `input`, and measures it.
    fn pass<'a>(&mut self, input: &mut Items<'a, I>, items: &mut Items<'a, O>, scope: Scope<'a>) -> Flow {
        let began = Meter::begin(scope);
        let flow = scope.guard(|| self.work.run(input, scope, items));
        self.meter.add::<O>(began, items);
        flow
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, items: &mut Items<'a, O>) -> Flow {
        scope.guard(|| self.work.settle(scope, items))
    }

    /// Passes on held items, because no more items will arrive.
    fn finish<'a>(&mut self, scope: Scope<'a>, items: &mut Items<'a, O>) -> Flow {
        while self.work.holds() {
            self.settle(scope, items)?;
        }
        Flow::Continue(())
    }
}

impl<I: Item, O: Item> std::fmt::Debug for Stage<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stage").field(&self.meter.name()).finish()
    }
}

/// A chain that is called dynamically.
pub(super) trait Work<I: Item, O: Item> {
    /// Takes all items from `input` and appends the results to `out`.
    fn run<'a>(&mut self, input: &mut Items<'a, I>, scope: Scope<'a>, out: &mut Items<'a, O>) -> Flow;

    fn settle<'a>(&mut self, _scope: Scope<'a>, _out: &mut Items<'a, O>) -> Flow {
        Flow::Continue(())
    }

    fn holds(&self) -> bool {
        false
    }

    fn is_done(&self) -> bool {
        false
    }
}

struct Fused<C>(C);

impl<I: Item, C: Chain<I>> Work<I, C::Out> for Fused<C> {
    fn run<'a>(&mut self, input: &mut Items<'a, I>, scope: Scope<'a>, out: &mut Items<'a, C::Out>) -> Flow {
        let is_as_large = Layout::new::<(u64, I::Of<'a>)>() == Layout::new::<(u64, <C::Out as Item>::Of<'a>)>();
        if C::AT_MOST_ONE && is_as_large && out.is_empty() {
            run_in_place(&mut self.0, input, scope, out)
        } else {
            run_into(&mut self.0, input, scope, out)
        }
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, out: &mut Items<'a, C::Out>) -> Flow {
        self.0.settle(scope, &mut |record, item| {
            out.push((record, item));
            Flow::Continue(())
        })
    }

    fn holds(&self) -> bool {
        Chain::<I>::holds(&self.0)
    }

    fn is_done(&self) -> bool {
        Chain::<I>::is_done(&self.0)
    }
}

/// Runs stages that produce at most one item from each. The standard library collects these items in the memory of
/// the original ones, which takes half of the cache and half of the instructions of two lists.
fn run_in_place<'a, I: Item, C: Chain<I>>(
    chain: &mut C,
    input: &mut Items<'a, I>,
    scope: Scope<'a>,
    out: &mut Items<'a, C::Out>,
) -> Flow {
    let mut flow = Flow::Continue(());
    let one = |(record, item)| {
        if flow.is_break() {
            return None;
        }
        let mut made = None;
        // If a panic unwound past this point, the earlier items of the list would be dropped.
        flow = scope.guard(|| {
            chain.run(std::iter::once((record, item)), scope, &mut |record, item| {
                made = Some((record, item));
                Flow::Continue(())
            })
        });
        made
    };
    *out = std::mem::take(input).into_iter().filter_map(one).collect();
    flow
}

/// Runs stages that may produce several items from one, or hold items back.
fn run_into<'a, I: Item, C: Chain<I>>(
    chain: &mut C,
    input: &mut Items<'a, I>,
    scope: Scope<'a>,
    out: &mut Items<'a, C::Out>,
) -> Flow {
    out.reserve(input.len());
    let mut list = Filling::new(out);
    chain.run(input.drain(..), scope, &mut |record, item| {
        list.push(record, item);
        Flow::Continue(())
    })
}

/// A chain followed by a boxed stage.
#[derive(Debug)]
pub struct ThenBoxed<C, I: Item, O: Item> {
    pub(super) chain: C,
    pub(super) stage: Stage<I, O>,
}

impl<I: Item, C: Chain<I>, O: Item> Chain<I> for ThenBoxed<C, C::Out, O> {
    type Out = O;

    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
    ) -> Flow {
        let (mut input, before) = collect(&mut self.chain, input, scope);
        let mut items = Vec::new();
        let mut flow = self.stage.pass(&mut input, &mut items, scope);
        if before.is_break() && flow.is_continue() {
            flow = self.stage.finish(scope, &mut items);
        }
        hand_on(items, scope, sink)?;
        both(before, flow)
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow) -> Flow {
        let (mut input, before) = settled(&mut self.chain, scope);
        let mut items = Vec::new();
        let mut flow = self.stage.pass(&mut input, &mut items, scope);
        if flow.is_continue() {
            flow = match before {
                Flow::Break(()) => self.stage.finish(scope, &mut items),
                Flow::Continue(()) => self.stage.settle(scope, &mut items),
            };
        }
        hand_on(items, scope, sink)?;
        both(before, flow)
    }

    fn holds(&self) -> bool {
        self.chain.holds() || self.stage.work.holds()
    }

    fn is_done(&self) -> bool {
        self.chain.is_done() || self.stage.work.is_done()
    }

    fn report(&self, stages: &mut Vec<StageStats>) {
        self.chain.report(stages);
        stages.push(self.stage.meter.stats(Duration::ZERO));
    }
}

/// A chain followed by any number of boxed stages, all between items of one kind.
#[derive(Debug)]
pub struct ThenAll<C, I: Item> {
    pub(super) chain: C,
    pub(super) stages: Vec<Stage<I, I>>,
}

/// The number of items that pass all stages together. A list of this length stays in the fastest cache; a list of a
/// whole batch would not.
const PART: usize = 512;

impl<C, O: Item> ThenAll<C, O> {
    /// Passes items through all stages, part by part, and passes on the results.
    fn pass<'a>(
        &mut self,
        items: Items<'a, O>,
        flow: Flow,
        is_settling: bool,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
    ) -> Flow {
        let mut left = items.into_iter();
        // Two lists are used in turn: new memory for each stage would cost more than the stage.
        let mut lists = (Vec::with_capacity(left.len().min(PART)), Vec::new());
        loop {
            lists.0.extend(left.by_ref().take(PART));
            let is_last = left.len() == 0;
            let before = if is_last { flow } else { Flow::Continue(()) };
            let flow = self.pass_part(&mut lists, before, is_settling && is_last, scope);
            hand_on(lists.0.drain(..), scope, sink)?;
            if is_last || flow.is_break() {
                return flow;
            }
        }
    }

    /// Passes the items of the first list through all stages; afterwards the list contains the results. If a stage has
    /// finished or failed, it stops later items of the stream, but not the items that it has already passed on.
    fn pass_part<'a>(
        &mut self,
        (items, input): &mut (Items<'a, O>, Items<'a, O>),
        mut flow: Flow,
        is_settling: bool,
        scope: Scope<'a>,
    ) -> Flow {
        for stage in &mut self.stages {
            std::mem::swap(input, items);
            items.clear();
            let passed = stage.pass(input, items, scope);
            let settled = match (passed, flow, is_settling) {
                (Flow::Break(()), ..) => passed,
                (_, Flow::Break(()), _) => stage.finish(scope, items),
                (_, _, true) => stage.settle(scope, items),
                _ => passed,
            };
            flow = both(flow, settled);
        }
        flow
    }
}

impl<I: Item, C: Chain<I>> Chain<I> for ThenAll<C, C::Out> {
    type Out = C::Out;

    fn run<'a>(
        &mut self,
        input: impl Iterator<Item = (u64, I::Of<'a>)>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, <C::Out as Item>::Of<'a>) -> Flow,
    ) -> Flow {
        let (items, flow) = collect(&mut self.chain, input, scope);
        self.pass(items, flow, false, scope, sink)
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, sink: &mut impl FnMut(u64, <C::Out as Item>::Of<'a>) -> Flow) -> Flow {
        let (items, flow) = settled(&mut self.chain, scope);
        self.pass(items, flow, true, scope, sink)
    }

    fn holds(&self) -> bool {
        self.chain.holds() || self.stages.iter().any(|stage| stage.work.holds())
    }

    fn is_done(&self) -> bool {
        self.chain.is_done() || self.stages.iter().any(|stage| stage.work.is_done())
    }

    fn report(&self, stages: &mut Vec<StageStats>) {
        self.chain.report(stages);
        stages.extend(self.stages.iter().map(|stage| stage.meter.stats(Duration::ZERO)));
    }
}

/// Returns `Break` if one of the arguments is `Break`.
fn both(a: Flow, b: Flow) -> Flow {
    if a.is_break() { a } else { b }
}
