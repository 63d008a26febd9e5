//! The memory that a writer fills: its own, or pages that a sink may lend to a pipe.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// A block of bytes. What they hold is arbitrary, but initialised.
pub(crate) enum Block {
    /// The writer's own, of any length.
    Own(Vec<u8>),
    /// Whole pages, which come from the system and go back to it.
    Pages(MmapMut),
}

impl Block {
    /// Makes it at least `len` bytes long, by memory of the writer's own. What it holds stays.
    pub(crate) fn grow(&mut self, len: usize) {
        match self {
            _ if self.len() >= len => {}
            Block::Own(bytes) => bytes.resize(len, 0),
            Block::Pages(pages) => {
                let mut bytes = pages.to_vec();
                bytes.resize(len, 0);
                *self = Block::Own(bytes);
            }
        }
    }
}

impl Default for Block {
    /// No memory at all.
    fn default() -> Block {
        Block::Own(Vec::new())
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Block::Own(bytes) => bytes,
            Block::Pages(pages) => pages,
        }
    }
}

impl DerefMut for Block {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Block::Own(bytes) => bytes,
            Block::Pages(pages) => pages,
        }
    }
}
