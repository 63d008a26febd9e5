//! Items on their way to another thread and back.

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

    /// Adds one.
    fn pack(packed: &mut Self::Packed, item: Self::Of<'_>);

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

/// One block, and where each item ends.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SendItem for Bytes {}

impl Pack for Bytes {
    type Packed = Block;

    #[inline]
    fn pack(packed: &mut Block, item: &[u8]) {
        packed.bytes.extend_from_slice(item);
        packed.ends.push(packed.bytes.len());
    }

    #[inline]
    fn weight(packed: &Block) -> usize {
        packed.bytes.len()
    }

    fn size_of_all(packed: &Block) -> usize {
        packed.bytes.len()
    }

    fn open(packed: &mut Block) -> impl Iterator<Item = &[u8]> {
        items(&packed.bytes, packed.ends.drain(..))
    }

    fn land<'a>(packed: &mut Block, arena: &'a Bump) -> impl Iterator<Item = &'a [u8]> {
        items(arena.alloc_slice_copy(&packed.bytes), packed.ends.drain(..))
    }

    fn clear(packed: &mut Block) {
        packed.bytes.clear();
        packed.ends.clear();
    }
}

/// The items of a block.
fn items(bytes: &[u8], ends: impl Iterator<Item = usize>) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    ends.map(move |end| &bytes[std::mem::replace(&mut start, end)..end])
}

impl<T: Send + 'static> SendItem for Value<T> {}

impl<T: Send + 'static> Pack for Value<T> {
    type Packed = Vec<T>;

    #[inline]
    fn pack(packed: &mut Vec<T>, item: T) {
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

    /// Adds an item.
    #[inline]
    pub(super) fn push(&mut self, record: u64, item: I::Of<'_>) {
        self.records.push(record);
        I::pack(&mut self.items, item);
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
