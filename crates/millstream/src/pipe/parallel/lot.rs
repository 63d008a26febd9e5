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

    /// The items, where the lot stays for as long as they are looked at.
    fn open<'l>(packed: &'l mut Self::Packed) -> impl Iterator<Item = Self::Of<'l>>;

    /// The items, where they have to live as long as a batch.
    fn land<'a>(packed: Self::Packed, arena: &'a Bump) -> impl Iterator<Item = Self::Of<'a>>;
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
        items(&packed.bytes, packed.ends.iter().copied())
    }

    fn land(packed: Block, arena: &Bump) -> impl Iterator<Item = &[u8]> {
        items(arena.alloc_slice_copy(&packed.bytes), packed.ends.into_iter())
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

    fn land(packed: Vec<T>, _arena: &Bump) -> impl Iterator<Item = T> {
        packed.into_iter()
    }
}

/// Items for one thread at a time, and what it has to know.
pub(super) struct Lot<I: SendItem> {
    /// The number of the record that each was made from.
    pub(super) records: Vec<u64>,
    pub(super) items: I::Packed,
    /// Where the records came from.
    pub(super) origins: Vec<Arc<Origin>>,
    pub(super) on_error: OnFailure,
}

impl<I: SendItem> Lot<I> {
    pub(super) fn new() -> Lot<I> {
        let (records, items, origins) = (Vec::new(), I::Packed::default(), Vec::new());
        Lot { records, items, origins, on_error: OnFailure::Stop }
    }

    /// Adds an item.
    #[inline]
    pub(super) fn push(&mut self, record: u64, item: I::Of<'_>) {
        self.records.push(record);
        I::pack(&mut self.items, item);
    }
}

/// What has become of a lot.
pub(super) struct Done<O: SendItem> {
    pub(super) records: Vec<u64>,
    pub(super) items: O::Packed,
    /// What went wrong, each with how many items came out before.
    pub(super) failures: Vec<(usize, Failure)>,
    /// `Break` after a failure that is the end.
    pub(super) flow: Flow,
    pub(super) origins: Vec<Arc<Origin>>,
    /// How many items went in, and for how long the thread worked on them.
    pub(super) work: (usize, Duration),
}
