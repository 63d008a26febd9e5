//! Where a pipe's batches come from: one reader, or several in turn.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{CommandEnd, Result};
use crate::frame::{Batch, Framer};
use crate::reader::{Reader, Waits};

/// Readers and how their records are found.
pub(super) struct Feed {
    readers: Vec<Source>,
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
    pub(super) fn new(readers: Vec<Reader>, framer: Box<dyn Framer + Send>) -> Feed {
        let readers = readers.into_iter().map(|reader| Source { name: reader.name().into(), reader }).collect();
        Feed { readers, turn: 0, framer, most: usize::MAX, commands: Vec::new() }
    }

    pub(super) fn terminator(&self) -> &[u8] {
        self.framer.terminator()
    }

    /// Whether the next batch has to be waited for.
    pub(super) fn waits(&self) -> Waits {
        let all = self.readers.iter().map(|source| source.reader.waits());
        all.min().unwrap_or(Waits::No)
    }

    /// The next batch. The readers take turns, and one that would have to be waited for is passed over while another would
    /// not.
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

    /// The reader whose turn it is, or the next one that need not be waited for.
    fn choose(&self) -> Option<usize> {
        let count = self.readers.len();
        let order = (0..count).map(|i| (self.turn + i) % count);
        order.min_by_key(|&i| self.readers[i].reader.waits())
    }

    /// Takes leave of a reader that has ended.
    pub(super) fn end(&mut self, index: usize) -> Result<()> {
        let source = self.readers.remove(index);
        self.turn = index;
        self.commands.extend(source.reader.close()?);
        Ok(())
    }

    /// Ends all readers, wherever they are.
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

    /// For how long the readers were waited for.
    pub(super) fn waited(&self) -> Duration {
        self.readers.iter().map(|source| source.reader.progress().waited).sum()
    }
}
