//! A boxed stage that gets many items at once, for functions in other languages, where every call is expensive.

use std::mem::MaybeUninit;

use super::chain::Items;
use super::item::Bytes;
use super::scope::{Flow, Scope};
use super::stage::{Stage, Work};
use crate::error::{Error, ErrorKind};

/// The services for a stage: memory for new bytes, which lives as long as the batch, and the origin of records.
#[derive(Clone, Copy)]
pub struct BatchMemory<'a>(Scope<'a>);

impl<'a> BatchMemory<'a> {
    /// Returns a copy of these bytes.
    pub fn keep(self, bytes: &[u8]) -> &'a [u8] {
        self.0.arena.alloc_slice_copy(bytes)
    }

    /// Returns the number of a record in its source, as used in errors. The number that accompanies an item counts
    /// the records of all sources of the pipe.
    pub fn number_in_source(self, record: u64) -> u64 {
        self.0.run.number_in_source(record)
    }

    /// Returns space for `len` bytes, to be filled.
    pub fn space(self, len: usize) -> &'a mut [MaybeUninit<u8>] {
        self.0.arena.alloc_slice_fill_with(len, |_| MaybeUninit::uninit())
    }
}

impl std::fmt::Debug for BatchMemory<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BatchMemory")
    }
}

/// Why a stage for many items stopped before it processed all of them. Earlier items are done.
#[derive(Debug)]
pub enum Stopped {
    /// It failed at the item with this index. [`OnError`](super::OnError) decides what happens next: if failing records
    /// are skipped, the stage is called again with the items after this one.
    AtItem(usize, Error),
    /// It failed at the item with this index and cannot continue. This ends the pipe, regardless of
    /// [`OnError`](super::OnError).
    ForGood(usize, Error),
}

impl Stage {
    /// Creates a stage that gets many items at once: the items of a batch or of a part of a batch. The function gets
    /// the items, each with the number of its record, memory for new bytes, and a list to which it appends the
    /// resulting items. It is never called without items. A panic counts as a failure at the first item of the call.
    ///
    /// ```
    /// use millstream::{Reader, pipe::{Pipe, Stage}};
    /// let first = Stage::from_batches("first", |items, memory, out| {
    ///     for &(record, item) in items {
    ///         let word = item.split(|byte| *byte == b' ').next().unwrap_or_default();
    ///         out.push((record, memory.keep(&word.to_ascii_uppercase())));
    ///     }
    ///     Ok(())
    /// });
    /// let mut words = Pipe::from(Reader::memory("one two\nthree\n")?).lines().then(first);
    /// assert_eq!(words.collect()?, [&b"ONE"[..], b"THREE"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn from_batches<F>(name: impl Into<String>, function: F) -> Stage
    where
        F: for<'a> FnMut(&[(u64, &'a [u8])], BatchMemory<'a>, &mut Vec<(u64, &'a [u8])>) -> Result<(), Stopped>
            + Send
            + 'static,
    {
        Stage::of(Batches(function), name.into())
    }
}

/// A boxed function for batches.
struct Batches<F>(F);

impl<F> Work<Bytes, Bytes> for Batches<F>
where
    F: for<'a> FnMut(&[(u64, &'a [u8])], BatchMemory<'a>, &mut Vec<(u64, &'a [u8])>) -> Result<(), Stopped>,
{
    fn run<'a>(&mut self, input: &mut Items<'a, Bytes>, scope: Scope<'a>, out: &mut Items<'a, Bytes>) -> Flow {
        let mut left = &input[..];
        while let Some(&(record, _)) = left.first() {
            scope.run.current.set(record);
            let before = out.len();
            let mut stopped = Ok(());
            let flow = scope.guard(|| {
                stopped = (self.0)(left, BatchMemory(scope), out);
                Flow::Continue(())
            });
            if flow.is_break() {
                // It has failed at the first item, so the other items have no results.
                out.truncate(before);
                return flow;
            }
            let (item, error, for_good) = match stopped {
                Ok(()) => break,
                Err(Stopped::AtItem(item, error)) => (item, error, false),
                Err(Stopped::ForGood(item, error)) => (item, error, true),
            };
            let Some(&(record, _)) = left.get(item) else {
                let found = format!("a stage that stopped at item {item} of {}", left.len());
                return scope.end(record, Error::new(ErrorKind::ArgumentInvalid).with_found(found));
            };
            left = &left[item + 1..];
            if for_good {
                return scope.end(record, error.with_record(scope.run.number_in_source(record)));
            }
            scope.fail(record, error)?;
        }
        Flow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{OnError, Pipe};
    use crate::{Reader, Writer};

    /// Creates a stage that drops every `x` and converts the other items to upper case.
    fn capitals() -> Stage {
        Stage::from_batches("capitals", |items, memory, out| {
            for (index, &(record, item)) in items.iter().enumerate() {
                if item == b"x" {
                    return Err(Stopped::AtItem(index, Error::new(ErrorKind::StageFailed).with_found("x")));
                }
                assert!(item != b"panic", "requested by the test");
                let space = memory.space(item.len());
                for (to, byte) in space.iter_mut().zip(item) {
                    to.write(byte.to_ascii_uppercase());
                }
                out.push((record, memory.keep(&item.to_ascii_uppercase())));
            }
            Ok(())
        })
    }

    #[test]
    fn records_before_a_failed_one_are_passed_on() {
        let mut seen = Vec::new();
        let mut pipe =
            Pipe::from(Reader::memory("a\nb\nx\nc\n").unwrap()).lines().then_all(vec![capitals(), capitals()]);
        let error = pipe.for_each(|line| seen.push(line.to_vec())).unwrap_err();
        assert_eq!((error.kind(), error.record(), error.offset()), (ErrorKind::StageFailed, Some(2), Some(4)));
        assert_eq!(seen, [b"A", b"B"]);
    }

    #[test]
    fn the_stage_is_called_again_after_a_skipped_item() {
        let mut bad = Writer::memory().unwrap();
        let mut pipe = Pipe::from(Reader::memory("x\na\nx\nx\nb\nx").unwrap())
            .lines()
            .on_error(OnError::Quarantine(&mut bad))
            .then(capitals());
        assert_eq!(pipe.collect().unwrap(), [b"A", b"B"]);
        assert_eq!(pipe.summary().failed, 4);
        drop(pipe);
        assert_eq!(bad.close().unwrap().memory.unwrap(), b"x\nx\nx\nx");
    }

    #[test]
    fn a_stage_that_cannot_continue_ends_the_pipe() {
        let full = Stage::from_batches("full", |items, _, out| {
            out.push(items[0]);
            Err(Stopped::ForGood(1, Error::new(ErrorKind::Io)))
        });
        let mut pipe = Pipe::from(Reader::memory("a\nb\nc\n").unwrap()).lines().on_error(OnError::Skip).then(full);
        let mut seen = 0;
        let error = pipe.for_each(|_| seen += 1).unwrap_err();
        assert_eq!((error.kind(), error.record(), seen), (ErrorKind::Io, Some(1), 1));
    }

    #[test]
    fn misuse_by_a_stage_is_an_error() {
        let wrong =
            || Stage::from_batches("wrong", |items, _, _| Err(Stopped::AtItem(items.len(), Error::new(ErrorKind::Io))));
        let error = Pipe::from(Reader::memory("a\n").unwrap()).lines().then(wrong()).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentInvalid);
        let error = Pipe::from(Reader::memory("a\npanic\n").unwrap()).lines().then(capitals()).run().unwrap_err();
        assert_eq!((error.kind(), error.record()), (ErrorKind::StagePanicked, Some(0)));
        // The pipe ends normally, and the stage is not called without items.
        let none = Stage::from_batches("none", |_, _, _| panic!("no items"));
        assert_eq!(Pipe::from(Reader::memory("").unwrap()).lines().then(none).count().unwrap(), 0);
    }
}
