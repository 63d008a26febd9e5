//! Where the next lines end, found many at a time.
//!
//! Searching for one newline after another costs a call and a mispredicted branch each; finding all of a block at once
//! is three times as fast on short lines. The index looks a block ahead and then returns one end after another, so that
//! `next_line` is a load, an addition and a compare.

use millstream_core::internal::{self, Buffer};

/// How far it looks ahead. The block stays in the first-level cache until its lines are used.
const BLOCK: usize = 16 << 10;

#[derive(Default)]
pub(crate) struct LineIndex {
    /// Where the block begins in the buffer.
    base: usize,
    /// Positions from there, each after a newline, ascending; those from `next` on are still to be used.
    ends: Vec<u32>,
    next: usize,
    /// The buffer holds no newline between the last of `ends` and this position.
    scanned: usize,
}

impl LineIndex {
    /// The end of the next line, if it is known.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<usize> {
        let end = *self.ends.get(self.next)?;
        self.next += 1;
        Some(self.base + end as usize)
    }

    /// Forgets everything: the reader's position has moved by other means.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.next = 0;
        self.scanned = 0;
    }

    /// Looks further ahead in `buffer`, when [`next`](LineIndex::next) finds no more. Returns whether it found an end.
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

    /// Bytes after `pos` that are known to contain no newline, to be carried over a fill, which moves positions.
    pub(crate) fn scanned_ahead(&self, buffer: &Buffer) -> usize {
        self.scanned.saturating_sub(buffer.pos())
    }

    /// After a fill: positions have moved.
    pub(crate) fn carry(&mut self, buffer: &Buffer, scanned_ahead: usize) {
        self.scanned = buffer.pos() + scanned_ahead;
    }
}
