//! Stages for values.

// The type of a pipe consists of its stages, so it is always long. Programs do not have to name it.
#![allow(clippy::type_complexity)]

use std::error::Error;

use super::Pipe;
use super::chain::{Chain, Then};
use super::item::{Bytes, Item, Value};
use super::stages::{Filter, FilterMap, FlatMap, Inspect, Map, Rewrite, ScanState, TryFilter, TryMap};

/// Stages for values. They are like those for bytes, but functions take ownership of their arguments.
impl<F, I: Item, C: Chain<I, Out = Value<V>>, V> Pipe<F, I, C, Value<V>> {
    /// Produces another value from each one.
    pub fn map<T, G: FnMut(V) -> T>(self, function: G) -> Pipe<F, I, Then<C, Map<G, T>>, Value<T>> {
        self.each(Map::new(function))
    }

    /// Produces another value from each one, or nothing.
    pub fn filter_map<T, G: FnMut(V) -> Option<T>>(
        self,
        function: G,
    ) -> Pipe<F, I, Then<C, FilterMap<G, T>>, Value<T>> {
        self.each(FilterMap::new(function))
    }

    /// Produces another value from each one, or fails for that value; see [`on_error`](Pipe::on_error).
    pub fn try_map<T, E, G>(self, function: G) -> Pipe<F, I, Then<C, TryMap<G, Result<T, E>>>, Value<T>>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
        G: FnMut(V) -> Result<T, E>,
    {
        self.each(TryMap::new(function))
    }

    /// Produces several values from each one.
    pub fn flat_map<T: IntoIterator, G: FnMut(V) -> T>(
        self,
        function: G,
    ) -> Pipe<F, I, Then<C, FlatMap<G, T>>, Value<T::Item>> {
        self.each(FlatMap::new(function))
    }

    /// Produces a value from each one and a state, which starts as `state`.
    pub fn scan_state<S, T, G: FnMut(&mut S, V) -> T>(
        self,
        state: S,
        function: G,
    ) -> Pipe<F, I, Then<C, ScanState<S, G, T>>, Value<T>> {
        self.each(ScanState::new(state, function))
    }

    /// Passes on the bytes that a function produces from each value: the function appends them to an empty `Vec`.
    ///
    /// ```
    /// use millstream::{Reader, Writer, pipe::Pipe};
    /// use std::io::Write;
    /// let mut out = Writer::memory()?;
    /// Pipe::from(Reader::memory("one\nthree\n")?)
    ///     .lines()
    ///     .map(|line| line.len())
    ///     .rewrite(|len, out| write!(out, "{len} bytes").unwrap())
    ///     .write_to(&mut out)?;
    /// assert_eq!(out.close()?.memory.unwrap(), b"3 bytes\n5 bytes\n");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn rewrite<G: FnMut(&V, &mut Vec<u8>)>(self, function: G) -> Pipe<F, I, Then<C, Rewrite<G>>, Bytes> {
        self.each(Rewrite::new(function))
    }

    /// Passes on the values for which a function returns true.
    pub fn filter<G: FnMut(&V) -> bool>(self, wants: G) -> Pipe<F, I, Then<C, Filter<G>>, Value<V>> {
        self.each(Filter::new(wants))
    }

    /// Passes on the values for which a function returns true. The function may fail; see [`on_error`](Pipe::on_error).
    pub fn try_filter<E, G>(self, wants: G) -> Pipe<F, I, Then<C, TryFilter<G, E>>, Value<V>>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
        G: FnMut(&V) -> Result<bool, E>,
    {
        self.each(TryFilter::new(wants))
    }

    /// Calls a function with each value.
    pub fn inspect<G: FnMut(&V)>(self, look: G) -> Pipe<F, I, Then<C, Inspect<G>>, Value<V>> {
        self.each(Inspect::new(look))
    }
}
