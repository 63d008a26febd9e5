//! The memory that a writer fills: its own, or pages that a sink may lend to a pipe.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use crate::error::{Error, Result};
use crate::os::out_of_memory;

/// A block of bytes. Their content is arbitrary, but initialised.
pub(crate) enum Block {
    /// The writer's own memory, of any length.
    Own(Vec<u8>),
    /// Whole pages, which the operating system provides and takes back.
    Pages(MmapMut),
}

impl Block {
    /// Makes the block at least `len` bytes long, using the writer's own memory, and keeps its content.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`](crate::ErrorKind::Io) with ENOMEM if there is not enough memory. The block is then
    /// unchanged.
    pub(crate) fn grow(&mut self, len: usize) -> Result<()> {
        match self {
            _ if self.len() >= len => {}
            Block::Own(bytes) => lengthen(bytes, len)?,
            Block::Pages(pages) => {
                let mut bytes = Vec::new();
                lengthen(&mut bytes, len)?;
                bytes[..pages.len()].copy_from_slice(pages);
                *self = Block::Own(bytes);
            }
        }
        Ok(())
    }
}

fn lengthen(bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    // A request for more memory than is available must return an error; `Vec` itself would abort the process.
    bytes.try_reserve_exact(len - bytes.len()).map_err(|_| Error::from_io(out_of_memory()))?;
    bytes.resize(len, 0);
    Ok(())
}

impl Default for Block {
    /// Returns a block without memory.
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
