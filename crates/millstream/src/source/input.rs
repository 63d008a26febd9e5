//! The input of a decoder: a window of compressed bytes in which it can look ahead.

use std::io::{self, BufRead, Read};

/// The maximum number of compressed bytes in one read, and the maximum look-ahead: two of the longest bgzf blocks.
const CAPACITY: usize = 128 << 10;

/// A `BufRead` whose window can be enlarged up to its capacity without consuming.
pub(crate) struct Input<R> {
    source: R,
    memory: Vec<u8>,
    pos: usize,
    end: usize,
    /// Whether the source has reached its end.
    ended: bool,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(source: R) -> Input<R> {
        Input { source, memory: vec![0; CAPACITY], pos: 0, end: 0, ended: false }
    }

    pub(crate) fn source(&self) -> &R {
        &self.source
    }

    /// Returns the available bytes.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.memory[self.pos..self.end]
    }

    /// Reads until `count` bytes, or all remaining ones, are available. After an error this can be called again.
    pub(crate) fn at_least(&mut self, count: usize) -> io::Result<&[u8]> {
        debug_assert!(count <= CAPACITY);
        while self.end - self.pos < count && !self.ended {
            if self.memory.len() - self.pos < count || self.pos == self.end {
                self.memory.copy_within(self.pos..self.end, 0);
                (self.pos, self.end) = (0, self.end - self.pos);
            }
            match self.source.read(&mut self.memory[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.unread())
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(space)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.at_least(1)
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.pos, "consumed {count} bytes of {}", self.end - self.pos);
        self.pos += count;
    }
}
