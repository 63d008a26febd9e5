//! Where a pipe's batches come from: one reader, or several, by turns or one after another.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{CommandEnd, Result};
use crate::frame::{Batch, Framer};
use crate::reader::{Reader, Waits};

/// In which order several readers are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// By turns, and one without data is skipped while another has some.
    Turns,
    /// Each to its end, then the next one.
    Sequence,
}

/// Readers and how their records are found.
pub(super) struct Feed {
    readers: Vec<Source>,
    order: Order,
    /// Whose turn it is.
    turn: usize,
    framer: Box<dyn Framer + Send>,
    /// How many records a batch holds at most.
    pub(super) most: usize,
    commands: Vec<CommandEnd>,
}

struct Source {
    reader: Reader,
    name: Arc<str>,
}

/// What comes next.
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

    /// Whether the next batch requires a wait.
    pub(super) fn waits(&self) -> Waits {
        let candidates = self.candidates().iter().map(|source| source.reader.waits());
        candidates.min().unwrap_or(Waits::No)
    }

    /// The next batch.
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

    /// The readers of which one is read next.
    fn candidates(&self) -> &[Source] {
        match self.order {
            Order::Turns => &self.readers,
            Order::Sequence => &self.readers[..self.readers.len().min(1)],
        }
    }

    /// The reader whose turn it is, or the next one that requires no wait.
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

    /// Ends all readers at their current positions.
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

    /// How long the readers were waited for.
    pub(super) fn waited(&self) -> Duration {
        self.readers.iter().map(|source| source.reader.progress().waited).sum()
    }
}
