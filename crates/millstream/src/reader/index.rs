//! An index of the ends of the next lines, found many at a time.
//!
//! A separate search for each newline costs a call and a mispredicted branch; finding all newlines of a block at once
//! is three times as fast on short lines. The index scans a block ahead and then returns one end after another, so that
//! `next_line` is a load, an addition and a compare.

use millstream_core::internal::{self, Buffer};

/// The number of bytes that are scanned ahead. The block stays in the first-level cache until its lines are used.
const BLOCK: usize = 16 << 10;

#[derive(Default)]
pub(crate) struct LineIndex {
    /// Where the block begins in the buffer.
    base: usize,
    /// Positions relative to `base`, each after a newline, ascending. Those from `next` on are unused.
    ends: Vec<u32>,
    next: usize,
    /// The buffer holds no newline between the last of `ends` and this position.
    scanned: usize,
}

impl LineIndex {
    /// Returns the end of the next line, if it is known.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<usize> {
        let end = *self.ends.get(self.next)?;
        self.next += 1;
        Some(self.base + end as usize)
    }

    /// Clears the index, because the reader's position has moved by other means.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.next = 0;
        self.scanned = 0;
    }

    /// Scans further ahead in `buffer`, when [`next`](LineIndex::next) finds no more. Returns whether it found an end.
    pub(crate) fn look_ahead(&mut self, buffer: &Buffer) -> bool {
        self.ends.clear();
        self.next = 0;
        let pos = buffer.pos();
        let mut from = self.scanned.max(pos);
        let unread = buffer.unread();
        while from < buffer.end() && self.ends.is_empty() {
            let block = &unread[from - pos..];
            let block = &block[..block.len().min(BLOCK)];
            self.base = from;
            from += internal::index(block, b'\n', 0, usize::MAX, &mut self.ends);
        }
        self.scanned = from;
        !self.ends.is_empty()
    }

    /// Returns the number of bytes after `pos` that are known to contain no newline. It is carried over a fill, which
    /// moves positions.
    pub(crate) fn scanned_ahead(&self, buffer: &Buffer) -> usize {
        self.scanned.saturating_sub(buffer.pos())
    }

    /// Updates the index after a fill, which moved positions.
    pub(crate) fn carry(&mut self, buffer: &Buffer, scanned_ahead: usize) {
        self.scanned = buffer.pos() + scanned_ahead;
    }
}
