//! Stages for records and parts of them.

// The type of a pipe consists of its stages, so it is always long. Programs do not have to name it.
#![allow(clippy::type_complexity)]

use std::error::Error;

use super::chain::{Chain, Then};
use super::item::{Bytes, Item, Value};
use super::stages::{
    Filter, FilterMap, FlatMap, Inspect, Map, MapBytes, Pieces, Rewrite, ScanState, Tee, TryFilter, TryMap, TryRewrite,
};
use super::{Attached, Pipe};
use crate::writer::Writer;

/// Stages for bytes: records, and parts of them.
impl<F, I: Item, C: Chain<I, Out = Bytes>> Pipe<F, I, C, Bytes> {
    /// Produces a value from each item.
    pub fn map<T, G: FnMut(&[u8]) -> T>(self, function: G) -> Pipe<F, I, Then<C, Map<G, T>>, Value<T>> {
        self.each(Map::new(function))
    }

    /// Produces a value from each item, or nothing.
    pub fn filter_map<T, G: FnMut(&[u8]) -> Option<T>>(
        self,
        function: G,
    ) -> Pipe<F, I, Then<C, FilterMap<G, T>>, Value<T>> {
        self.each(FilterMap::new(function))
    }

    /// Produces a value from each item, or fails for that item; see [`on_error`](Pipe::on_error). An error of another
    /// crate becomes [`StageFailed`](crate::ErrorKind::StageFailed).
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe, scan::{Separator, column}};
    /// let mut sum = 0;
    /// let error = Pipe::from(Reader::memory("a 1\nb 2\nc x\n")?)
    ///     .lines()
    ///     .try_map(|line| column::<u64>(line, 1, Separator::Space))
    ///     .for_each(|number| sum += number)
    ///     .unwrap_err();
    /// assert_eq!((sum, error.record(), error.offset()), (3, Some(2), Some(10)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn try_map<T, E, G>(self, function: G) -> Pipe<F, I, Then<C, TryMap<G, Result<T, E>>>, Value<T>>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
        G: FnMut(&[u8]) -> Result<T, E>,
    {
        self.each(TryMap::new(function))
    }

    /// Produces several values from each item. To split a record, use [`pieces`](Pipe::pieces), which makes no
    /// copies.
    pub fn flat_map<T: IntoIterator, G: FnMut(&[u8]) -> T>(
        self,
        function: G,
    ) -> Pipe<F, I, Then<C, FlatMap<G, T>>, Value<T::Item>> {
        self.each(FlatMap::new(function))
    }

    /// Produces a value from each item and a state, which starts as `state`.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let mut numbered = Pipe::from(Reader::memory("a\nb\n")?).lines().scan_state(0, |number, line| {
    ///     *number += 1;
    ///     format!("{number} {}", String::from_utf8_lossy(line))
    /// });
    /// assert_eq!(numbered.collect()?, ["1 a", "2 b"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn scan_state<S, T, G: FnMut(&mut S, &[u8]) -> T>(
        self,
        state: S,
        function: G,
    ) -> Pipe<F, I, Then<C, ScanState<S, G, T>>, Value<T>> {
        self.each(ScanState::new(state, function))
    }

    /// Passes on a part of each item, without a copy.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let mut names = Pipe::from(Reader::memory("- apple\n- pear\n")?).lines().map_bytes(|line| &line[2..]);
    /// assert_eq!(names.collect()?, [&b"apple"[..], b"pear"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn map_bytes<G: FnMut(&[u8]) -> &[u8]>(self, function: G) -> Pipe<F, I, Then<C, MapBytes<G>>, Bytes> {
        self.each(MapBytes::new(function))
    }

    /// Passes on several parts of each item, without a copy. The function gets an item and another function, which it
    /// calls with each part.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let mut words = Pipe::from(Reader::memory("one two\nthree\n")?)
    ///     .lines()
    ///     .pieces(|line, next| line.split(|byte| *byte == b' ').for_each(next));
    /// assert_eq!(words.count()?, 3);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn pieces<G: for<'b> FnMut(&'b [u8], &mut dyn FnMut(&'b [u8]))>(
        self,
        function: G,
    ) -> Pipe<F, I, Then<C, Pieces<G>>, Bytes> {
        self.each(Pieces::new(function))
    }

    /// Passes on the bytes that a function produces from each item: the function appends them to an empty `Vec`. No
    /// memory is allocated for individual items.
    ///
    /// ```
    /// use millstream::{Reader, pipe::Pipe};
    /// let mut doubled = Pipe::from(Reader::memory("ab\nc\n")?).lines().rewrite(|line, out| {
    ///     out.extend_from_slice(line);
    ///     out.extend_from_slice(line);
    /// });
    /// assert_eq!(doubled.collect()?, [&b"abab"[..], b"cc"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn rewrite<G: FnMut(&[u8], &mut Vec<u8>)>(self, function: G) -> Pipe<F, I, Then<C, Rewrite<G>>, Bytes> {
        self.each(Rewrite::new(function))
    }

    /// Passes on the bytes that a function produces from each item, as [`rewrite`](Pipe::rewrite) does. The function may
    /// fail; see [`on_error`](Pipe::on_error).
    ///
    /// ```
    /// use millstream::{Error, ErrorKind, Reader, pipe::Pipe};
    /// let mut first = Pipe::from(Reader::memory("a b\nc\n")?).lines().try_rewrite(|line, out| {
    ///     let end = line.iter().position(|&byte| byte == b' ').ok_or(Error::new(ErrorKind::NumberInvalid))?;
    ///     out.extend_from_slice(&line[..end]);
    ///     Ok::<(), Error>(())
    /// });
    /// assert_eq!(first.collect().unwrap_err().record(), Some(1));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn try_rewrite<E, G>(self, function: G) -> Pipe<F, I, Then<C, TryRewrite<G, E>>, Bytes>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
        G: FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
    {
        self.each(TryRewrite::new(function))
    }

    /// Passes on the items for which a function returns true.
    pub fn filter<G: FnMut(&[u8]) -> bool>(self, wants: G) -> Pipe<F, I, Then<C, Filter<G>>, Bytes> {
        self.each(Filter::new(wants))
    }

    /// Passes on the items for which a function returns true. The function may fail; see [`on_error`](Pipe::on_error).
    pub fn try_filter<E, G>(self, wants: G) -> Pipe<F, I, Then<C, TryFilter<G, E>>, Bytes>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
        G: FnMut(&[u8]) -> Result<bool, E>,
    {
        self.each(TryFilter::new(wants))
    }

    /// Calls a function with each item.
    pub fn inspect<G: FnMut(&[u8])>(self, look: G) -> Pipe<F, I, Then<C, Inspect<G>>, Bytes> {
        self.each(Inspect::new(look))
    }
}

impl<'p, C: Chain<Bytes, Out = Bytes>> Pipe<Attached<'p>, Bytes, C, Bytes> {
    /// Writes each item to another writer as well, as [`write_to`](Pipe::write_to) does.
    pub fn tee<'w>(self, out: &'w mut Writer) -> Pipe<Attached<'p>, Bytes, Then<C, Tee<'w>>, Bytes> {
        let terminator = self.feed.feed.terminator().to_vec();
        self.each(Tee { out, terminator })
    }
}
