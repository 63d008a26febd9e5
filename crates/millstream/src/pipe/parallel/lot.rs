//! Items on their way to another thread and back.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bumpalo::Bump;

use super::super::item::{Bytes, Item, Value};
use super::super::origin::Origin;
use super::super::scope::{Failure, Flow, OnFailure};

/// A kind of item that can go to another thread: bytes, which are copied into one block for many of them, and values that
/// are `Send`, which are moved.
pub trait SendItem: Pack {}

/// How items are packed. Not for use outside.
pub trait Pack: Item + 'static {
    /// Packed items.
    type Packed: Default + Send + 'static;

    /// Adds one. If it is a part of `whole`, that may be copied later, by [`seal`](Pack::seal).
    fn pack(packed: &mut Self::Packed, item: Self::Of<'_>, whole: &[u8]);

    /// Copies what is still to be copied: `whole` goes away, or another one comes.
    fn seal(_packed: &mut Self::Packed, _whole: &[u8]) {}

    /// How much memory they take.
    fn weight(packed: &Self::Packed) -> usize;

    /// Their size as statistics tell it; see [`Item::size`].
    fn size_of_all(packed: &Self::Packed) -> usize;

    /// Takes all items out, where the lot stays for as long as they are looked at.
    fn open<'l>(packed: &'l mut Self::Packed) -> impl Iterator<Item = Self::Of<'l>>;

    /// Takes all items out, where they have to live as long as a batch.
    fn land<'a>(packed: &mut Self::Packed, arena: &'a Bump) -> impl Iterator<Item = Self::Of<'a>>;

    /// Forgets what is left, and keeps the memory.
    fn clear(packed: &mut Self::Packed);
}

/// One block, and where the items in it are.
///
/// Items that follow each other in a batch, as records do, are copied together: a copy for each would cost several times
/// as much.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    /// The part of the batch that is to be appended to `bytes`. It may be empty.
    run: Range<usize>,
    /// Each item in `bytes`, where `run` counts as appended.
    items: Vec<Range<usize>>,
    /// The size of all items.
    size: usize,
}

/// So many bytes between two items are copied with them: delimiters are fewer.
const GAP: usize = 8;

impl Block {
    /// How long it is, or will be.
    #[inline]
    fn len(&self) -> usize {
        self.bytes.len() + self.run.len()
    }

    /// Begins another run with an item at `at` of the batch; or takes the item at once, if it is no part of it.
    #[inline(never)]
    fn begin_run(&mut self, item: &[u8], at: usize, whole: &[u8]) {
        self.bytes.extend_from_slice(&whole[self.run.clone()]);
        if at.checked_add(item.len()).is_some_and(|end| end <= whole.len()) {
            self.run = at..at + item.len();
        } else {
            self.run = 0..0;
            self.bytes.extend_from_slice(item);
        }
    }
}

impl SendItem for Bytes {}

impl Pack for Bytes {
    type Packed = Block;

    #[inline]
    fn pack(packed: &mut Block, item: &[u8], whole: &[u8]) {
        // Where it is in the batch; far behind its end if it is no part of it.
        let at = item.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
        let end = at.wrapping_add(item.len());
        if at.wrapping_sub(packed.run.end) <= GAP && end <= whole.len() && !packed.run.is_empty() {
            packed.run.end = end;
        } else {
            packed.begin_run(item, at, whole);
        }
        let end = packed.len();
        packed.size += item.len();
        packed.items.push(end - item.len()..end);
    }

    fn seal(packed: &mut Block, whole: &[u8]) {
        packed.bytes.extend_from_slice(&whole[std::mem::take(&mut packed.run)]);
    }

    #[inline]
    fn weight(packed: &Block) -> usize {
        packed.len()
    }

    fn size_of_all(packed: &Block) -> usize {
        packed.size
    }

    fn open(packed: &mut Block) -> impl Iterator<Item = &[u8]> {
        items(&packed.bytes, packed.items.drain(..))
    }

    fn land<'a>(packed: &mut Block, arena: &'a Bump) -> impl Iterator<Item = &'a [u8]> {
        items(arena.alloc_slice_copy(&packed.bytes), packed.items.drain(..))
    }

    fn clear(packed: &mut Block) {
        packed.bytes.clear();
        packed.items.clear();
        packed.size = 0;
    }
}

fn items(bytes: &[u8], items: impl Iterator<Item = Range<usize>>) -> impl Iterator<Item = &[u8]> {
    items.map(|item| &bytes[item])
}

impl<T: Send + 'static> SendItem for Value<T> {}

impl<T: Send + 'static> Pack for Value<T> {
    type Packed = Vec<T>;

    #[inline]
    fn pack(packed: &mut Vec<T>, item: T, _whole: &[u8]) {
        packed.push(item);
    }

    #[inline]
    fn weight(packed: &Vec<T>) -> usize {
        packed.len() * size_of::<T>()
    }

    fn size_of_all(_packed: &Vec<T>) -> usize {
        0
    }

    fn open(packed: &mut Vec<T>) -> impl Iterator<Item = T> {
        packed.drain(..)
    }

    fn land(packed: &mut Vec<T>, _arena: &Bump) -> impl Iterator<Item = T> {
        packed.drain(..)
    }

    fn clear(packed: &mut Vec<T>) {
        packed.clear();
    }
}

/// Packed items, and the number of the record that each was made from.
pub(super) struct Load<I: SendItem> {
    pub(super) records: Vec<u64>,
    pub(super) items: I::Packed,
}

impl<I: SendItem> Load<I> {
    fn new() -> Load<I> {
        Load { records: Vec::new(), items: I::Packed::default() }
    }

    /// Adds an item, which may be a part of `whole`: then that is [sealed](Pack::seal) before it goes away.
    #[inline]
    pub(super) fn push(&mut self, record: u64, item: I::Of<'_>, whole: &[u8]) {
        self.records.push(record);
        I::pack(&mut self.items, item, whole);
    }

    #[inline]
    pub(super) fn weight(&self) -> usize {
        I::weight(&self.items)
    }

    fn clear(&mut self) {
        self.records.clear();
        I::clear(&mut self.items);
    }
}

/// Items for one thread at a time, what it has to know, and what becomes of them. It goes to a thread and comes back, and
/// is used again with its memory.
pub(super) struct Lot<I: SendItem, O: SendItem> {
    pub(super) given: Load<I>,
    pub(super) made: Load<O>,
    /// Where the records came from.
    pub(super) origins: Vec<Arc<Origin>>,
    pub(super) on_error: OnFailure,
    /// What went wrong, each with how many items came out before.
    pub(super) failures: Vec<(usize, Failure)>,
    /// `Break` after a failure that is the end.
    pub(super) flow: Flow,
    /// How many items went in, and for how long the thread worked on them.
    pub(super) work: (usize, Duration),
}

impl<I: SendItem, O: SendItem> Lot<I, O> {
    pub(super) fn new() -> Self {
        Lot {
            given: Load::new(),
            made: Load::new(),
            origins: Vec::new(),
            on_error: OnFailure::Stop,
            failures: Vec::new(),
            flow: Flow::Continue(()),
            work: (0, Duration::ZERO),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.given.records.is_empty()
    }

    /// Forgets all but the memory.
    pub(super) fn clear(&mut self) {
        self.given.clear();
        self.made.clear();
        self.origins.clear();
        self.failures.clear();
        self.flow = Flow::Continue(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of a batch in any order, overlapping, empty, and items that are no part of it; then another batch.
    #[test]
    fn what_is_copied_together_comes_out_apart() {
        let batches = [b"one\ntwo\nthree\n............four\n", b"FIVE\nsix\n----------------------"];
        let elsewhere = b"elsewhere".to_vec();
        let parts = [0..3, 4..7, 8..13, 26..30, 4..7, 5..6, 6..6, 31..31, 0..0];
        let (mut block, mut expected, mut size) = (Block::default(), Vec::new(), 0);
        for batch in batches {
            for part in parts.clone() {
                for item in [&batch[part], &elsewhere[..], b""] {
                    Bytes::pack(&mut block, item, batch);
                    expected.push(item.to_vec());
                    size += item.len();
                }
            }
            for line in batch.split(|byte| *byte == b'\n') {
                Bytes::pack(&mut block, line, batch);
                expected.push(line.to_vec());
                size += line.len();
            }
            Bytes::seal(&mut block, batch);
        }
        assert_eq!((Bytes::size_of_all(&block), Bytes::weight(&block)), (size, block.bytes.len()));
        assert_eq!(Bytes::open(&mut block).map(<[u8]>::to_vec).collect::<Vec<_>>(), expected);
    }
}
