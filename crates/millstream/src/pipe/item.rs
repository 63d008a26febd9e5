//! Kinds of items that pass between two stages.

use std::marker::PhantomData;

/// A kind of item: for each lifetime of a batch, the type of one item.
///
/// Kinds are separate types because an item that borrows from the current batch, as a record does, has no single
/// type: `&'a [u8]` is a different type for each batch. The kinds are [`Bytes`] and [`Value`]; other types that
/// borrow from a batch can also be a kind.
pub trait Item {
    /// The type of an item.
    type Of<'a>;

    /// Returns the size of an item in bytes, for statistics, or 0 if the size has no meaning.
    fn size(_item: &Self::Of<'_>) -> usize {
        0
    }

    /// Returns the address of an item's bytes, for the position of errors, or 0 if the item is a value.
    fn address(_item: &Self::Of<'_>) -> usize {
        0
    }
}

/// Records and pieces of them: `&[u8]`, which is valid for as long as its batch.
#[derive(Clone, Copy, Debug)]
pub enum Bytes {}

impl Item for Bytes {
    type Of<'a> = &'a [u8];

    fn size(item: &&[u8]) -> usize {
        item.len()
    }

    fn address(item: &&[u8]) -> usize {
        item.as_ptr().addr()
    }
}

/// Values of a type that borrows from no batch.
#[derive(Clone, Copy, Debug)]
pub struct Value<T>(PhantomData<fn() -> T>);

impl<T> Item for Value<T> {
    type Of<'a> = T;
}
