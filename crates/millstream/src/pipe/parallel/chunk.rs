//! Items that are moved to another thread and back.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bumpalo::Bump;

use super::super::item::{Bytes, Item, Value};
use super::super::origin::Origin;
use super::super::scope::{Failure, Flow, OnFailure};

/// A kind of item that can be sent to another thread: bytes, many of which are copied into one block, and values that
/// are `Send`, which are moved.
pub trait SendItem: Pack {}

/// How items are packed. Other crates cannot use this.
pub trait Pack: Item + 'static {
    /// Packed items, each with the number of the record that it was produced from.
    type Packed: Default + Send + 'static;

    /// Adds an item. If it is a part of `whole`, [`seal`](Pack::seal) may copy it later.
    fn pack(packed: &mut Self::Packed, record: u64, item: Self::Of<'_>, whole: &[u8]);

    /// Copies the bytes that have not been copied yet, because `whole` is about to be dropped or replaced.
    fn seal(_packed: &mut Self::Packed, _whole: &[u8]) {}

    /// Moves all items of `more` after those of `packed`. Both must be sealed.
    fn append(packed: &mut Self::Packed, more: &mut Self::Packed);

    /// Returns the number of items.
    fn count(packed: &Self::Packed) -> usize;

    /// Returns the memory use of the items.
    fn weight(packed: &Self::Packed) -> usize;

    /// Returns the size of the items for statistics; see [`Item::size`].
    fn size_of_all(packed: &Self::Packed) -> usize;

    /// Removes and returns all items, while the chunk stays valid.
    fn open<'l>(packed: &'l mut Self::Packed) -> impl Iterator<Item = (u64, Self::Of<'l>)>;

    /// Removes and returns all items, for a caller that needs them to live as long as a batch.
    fn land<'a>(packed: &mut Self::Packed, arena: &'a Bump) -> impl Iterator<Item = (u64, Self::Of<'a>)>;

    /// Drops the remaining items, and keeps the memory.
    fn clear(packed: &mut Self::Packed);
}

/// One block, and the positions of the items in it.
///
/// Items that follow each other in a batch, as records do, are copied together: a separate copy for each would cost
/// several times as much.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    /// The part of the batch that is to be appended to `bytes`. It may be empty.
    run: Range<usize>,
    /// The record number of each item, and its position in `bytes`; `run` counts as appended.
    items: Vec<(u64, Range<usize>)>,
}

/// The maximum number of bytes between two items that are copied together. Delimiters are shorter.
const GAP: usize = 8;

impl Block {
    /// Returns the block's length, including the bytes still to be appended.
    #[inline]
    fn len(&self) -> usize {
        self.bytes.len() + self.run.len()
    }

    /// Begins another run with an item at position `at` of the batch, or copies the item immediately if it is not a
    /// part of the batch.
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
    fn pack(packed: &mut Block, record: u64, item: &[u8], whole: &[u8]) {
        // This is the item's position in the batch; it is far past the end if the item is not a part of the batch.
        let at = item.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
        let end = at.wrapping_add(item.len());
        if at.wrapping_sub(packed.run.end) <= GAP && end <= whole.len() {
            packed.run.end = end;
        } else {
            packed.begin_run(item, at, whole);
        }
        let end = packed.len();
        packed.items.push((record, end - item.len()..end));
    }

    fn seal(packed: &mut Block, whole: &[u8]) {
        packed.bytes.extend_from_slice(&whole[std::mem::take(&mut packed.run)]);
    }

    fn append(packed: &mut Block, more: &mut Block) {
        let start = packed.bytes.len();
        packed.bytes.append(&mut more.bytes);
        packed.items.extend(more.items.drain(..).map(|(record, at)| (record, start + at.start..start + at.end)));
    }

    #[inline]
    fn count(packed: &Block) -> usize {
        packed.items.len()
    }

    #[inline]
    fn weight(packed: &Block) -> usize {
        packed.len()
    }

    fn size_of_all(packed: &Block) -> usize {
        packed.items.iter().map(|(_, at)| at.len()).sum()
    }

    fn open(packed: &mut Block) -> impl Iterator<Item = (u64, &[u8])> {
        items(&packed.bytes, packed.items.drain(..))
    }

    fn land<'a>(packed: &mut Block, arena: &'a Bump) -> impl Iterator<Item = (u64, &'a [u8])> {
        items(arena.alloc_slice_copy(&packed.bytes), packed.items.drain(..))
    }

    fn clear(packed: &mut Block) {
        packed.bytes.clear();
        packed.items.clear();
    }
}

fn items(bytes: &[u8], items: impl Iterator<Item = (u64, Range<usize>)>) -> impl Iterator<Item = (u64, &[u8])> {
    items.map(|(record, at)| (record, &bytes[at]))
}

impl<T: Send + 'static> SendItem for Value<T> {}

impl<T: Send + 'static> Pack for Value<T> {
    type Packed = Vec<(u64, T)>;

    #[inline]
    fn pack(packed: &mut Vec<(u64, T)>, record: u64, item: T, _whole: &[u8]) {
        packed.push((record, item));
    }

    fn append(packed: &mut Vec<(u64, T)>, more: &mut Vec<(u64, T)>) {
        packed.append(more);
    }

    #[inline]
    fn count(packed: &Vec<(u64, T)>) -> usize {
        packed.len()
    }

    #[inline]
    fn weight(packed: &Vec<(u64, T)>) -> usize {
        packed.len() * size_of::<T>()
    }

    fn size_of_all(_packed: &Vec<(u64, T)>) -> usize {
        0
    }

    fn open(packed: &mut Vec<(u64, T)>) -> impl Iterator<Item = (u64, T)> {
        packed.drain(..)
    }

    fn land(packed: &mut Vec<(u64, T)>, _arena: &Bump) -> impl Iterator<Item = (u64, T)> {
        packed.drain(..)
    }

    fn clear(packed: &mut Vec<(u64, T)>) {
        packed.clear();
    }
}

/// The smallest and the largest number of no records.
const NO_RECORDS: (u64, u64) = (u64::MAX, 0);

/// Items for one thread at a time, the state that the thread needs, and the results. A chunk is sent to a thread, comes
/// back, and is reused with its memory.
pub(super) struct Chunk<I: SendItem, O: SendItem> {
    pub(super) given: I::Packed,
    pub(super) made: O::Packed,
    /// The smallest and the largest number of the records.
    pub(super) records: (u64, u64),
    /// The origins of the records.
    pub(super) origins: Vec<Arc<Origin>>,
    pub(super) on_error: OnFailure,
    /// The errors, each with the number of items that were produced before it.
    pub(super) failures: Vec<(usize, Failure)>,
    /// `Break` after a failure that ends the pipe.
    pub(super) flow: Flow,
    /// The number of input items, and the time that the thread spent on them.
    pub(super) work: (usize, Duration),
}

impl<I: SendItem, O: SendItem> Chunk<I, O> {
    pub(super) fn new() -> Self {
        Chunk {
            given: I::Packed::default(),
            made: O::Packed::default(),
            records: NO_RECORDS,
            origins: Vec::new(),
            on_error: OnFailure::Stop,
            failures: Vec::new(),
            flow: Flow::Continue(()),
            work: (0, Duration::ZERO),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        I::count(&self.given) == 0
    }

    /// Drops the content and keeps the memory.
    pub(super) fn clear(&mut self) {
        I::clear(&mut self.given);
        O::clear(&mut self.made);
        self.records = NO_RECORDS;
        self.origins.clear();
        self.failures.clear();
        self.flow = Flow::Continue(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds parts of a batch in any order, also overlapping and empty ones, and items that are not a part of the
    /// batch. Does the same with another batch, and with another block.
    #[test]
    fn items_that_are_copied_together_are_returned_separately() {
        let batches = [b"one\ntwo\nthree\n............four\n", b"FIVE\nsix\n----------------------"];
        let elsewhere = b"elsewhere".to_vec();
        let parts = [6..7, 0..3, 4..7, 8..13, 26..30, 4..7, 5..6, 6..6, 31..31, 0..0];
        let mut expected = Vec::new();
        let [mut block, mut more] = [0, 1].map(|_| {
            let mut block = Block::default();
            let mut pack = |item: &[u8], batch: &[u8], block: &mut Block| {
                Bytes::pack(block, expected.len() as u64, item, batch);
                expected.push((expected.len() as u64, item.to_vec()));
            };
            for batch in batches {
                for part in parts.clone() {
                    for item in [&batch[part], &elsewhere[..], b""] {
                        pack(item, batch, &mut block);
                    }
                }
                for line in batch.split(|byte| *byte == b'\n') {
                    pack(line, batch, &mut block);
                }
                Bytes::seal(&mut block, batch);
            }
            block
        });
        Bytes::append(&mut block, &mut more);
        let size = expected.iter().map(|(_, item)| item.len()).sum::<usize>();
        assert_eq!((Bytes::count(&more), Bytes::count(&block)), (0, expected.len()));
        assert_eq!((Bytes::size_of_all(&block), Bytes::weight(&block)), (size, block.bytes.len()));
        assert_eq!(Bytes::open(&mut block).map(|(record, item)| (record, item.to_vec())).collect::<Vec<_>>(), expected);
    }
}
