//! The origin of a pipe's batches: one reader, or several, which take turns or are read one after another.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{CommandEnd, Result};
use crate::frame::{Batch, Framer};
use crate::os::cancel::CancelToken;
use crate::reader::{Reader, Waits};

/// The order in which several readers are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// They take turns, and a reader without data is skipped while another one has some.
    Turns,
    /// Each reader is read to its end before the next one.
    Sequence,
}

/// Readers and the framer that finds their records.
pub(super) struct Feed {
    readers: Vec<Source>,
    order: Order,
    /// The index of the reader whose turn it is.
    turn: usize,
    framer: Box<dyn Framer + Send>,
    /// The maximum number of records in a batch.
    pub(super) most: usize,
    commands: Vec<CommandEnd>,
}

struct Source {
    reader: Reader,
    name: Arc<str>,
}

/// The result of [`Feed::next`].
pub(super) enum Next<'a> {
    /// Records, and the name of their source.
    Batch(Batch<'a>, &'a Arc<str>),
    /// This reader has ended; there may be others.
    Ended(usize),
    /// All readers have ended.
    End,
}

impl Feed {
    pub(super) fn new(readers: Vec<Reader>, order: Order, framer: Box<dyn Framer + Send>) -> Feed {
        let readers = readers.into_iter().map(|reader| Source { name: reader.name().into(), reader }).collect();
        Feed { readers, order, turn: 0, framer, most: usize::MAX, commands: Vec::new() }
    }

    pub(super) fn terminator(&self) -> &[u8] {
        self.framer.terminator()
    }

    /// Returns tokens that interrupt all waits for the readers, for code that stops the pipe for good.
    pub(super) fn interrupters(&mut self) -> Result<Vec<CancelToken>> {
        self.readers.iter_mut().map(|source| source.reader.interrupter()).collect()
    }

    /// Returns whether the caller must wait for the next batch.
    pub(super) fn waits(&self) -> Waits {
        let candidates = self.candidates().iter().map(|source| source.reader.waits());
        candidates.min().unwrap_or(Waits::No)
    }

    /// Returns the next batch.
    pub(super) fn next(&mut self) -> Result<Next<'_>> {
        let Some(chosen) = self.choose() else { return Ok(Next::End) };
        let Source { reader, name } = &mut self.readers[chosen];
        match reader.next_batch_of(&mut *self.framer, self.most)? {
            Some(batch) => {
                self.turn = chosen + 1;
                Ok(Next::Batch(batch, name))
            }
            None => Ok(Next::Ended(chosen)),
        }
    }

    /// Returns the readers from which the next batch may come.
    fn candidates(&self) -> &[Source] {
        match self.order {
            Order::Turns => &self.readers,
            Order::Sequence => &self.readers[..self.readers.len().min(1)],
        }
    }

    /// Returns the reader whose turn it is, or the next one that already has data.
    fn choose(&self) -> Option<usize> {
        let count = self.candidates().len();
        let order = (0..count).map(|i| (self.turn + i) % count);
        order.min_by_key(|&i| self.readers[i].reader.waits())
    }

    /// Removes a reader that has ended.
    pub(super) fn end(&mut self, index: usize) -> Result<()> {
        let source = self.readers.remove(index);
        self.turn = index;
        let mut reader = source.reader;
        let closed = reader.try_close();
        self.commands.extend_from_slice(reader.command_ends());
        closed
    }

    /// Closes all readers at their current positions.
    pub(super) fn close(&mut self) -> Result<()> {
        let mut result = Ok(());
        while !self.readers.is_empty() {
            result = result.and(self.end(0));
        }
        result
    }

    pub(super) fn commands(&self) -> &[CommandEnd] {
        &self.commands
    }

    /// Returns the time spent waiting for the readers.
    pub(super) fn waited(&self) -> Duration {
        self.readers.iter().map(|source| source.reader.progress().waited).sum()
    }
}
