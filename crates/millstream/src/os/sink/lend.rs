//! Lending pages to a pipe with vmsplice(2): the reader copies directly from the writer's memory, without a copy into
//! the pipe.
//!
//! A page that was lent must not be written until its bytes have left the pipe. That can be determined exactly: a pipe
//! is a queue, and FIONREAD returns the number of bytes in it. These are the last bytes written, so all earlier bytes
//! have been taken out. Other writers of the same pipe only make that number larger, which is safe. The kernel counts a
//! byte until it is copied: the pipe's lock makes the count and the copy mutually exclusive.
//!
//! Bytes that were taken out have not necessarily been read: if the reader takes pages out with splice(2) or tee(2),
//! another process then has the pages, and may read them after they are overwritten. So lending must be enabled
//! explicitly ([`LendPages`](crate::LendPages)).
//!
//! Closing and dropping never wait. Unmapped memory stays alive while a pipe refers to it, and can no longer be
//! written: each block is a separate mapping of whole pages, and is returned to the kernel, not to an allocator that
//! would reuse it. A fork is harmless, because the first process that writes a page gets a copy of it.
//!
//! The memory use is bounded: a piece that is less than a quarter of a block is copied, so each lent block has at least
//! a quarter of its bytes in the pipe. Therefore at most four times the blocks that would fill the pipe exist, plus
//! two.
#![allow(unsafe_code)] // vmsplice(2)

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::AsFd;

use memmap2::MmapMut;
use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, SpliceFlags};

use crate::sink::block::Block;

/// The blocks that a pipe has been lent, and the part of them that it may still hold.
pub(crate) struct Lender {
    block_len: usize,
    /// The number of bytes that the pipe has accepted, lent and copied.
    taken: u64,
    /// The earlier blocks of which the pipe may hold pages, oldest first, each with the value of `taken` after its last
    /// lent byte.
    lent: VecDeque<(MmapMut, u64)>,
    /// Blocks that may be written to.
    free: Vec<MmapMut>,
    /// The value of `taken` after the last lent byte of the writer's block, if part of it was lent.
    current: Option<u64>,
}

impl Lender {
    /// Creates a lender of blocks of at least `block_len` bytes.
    pub(crate) fn new(block_len: usize) -> Lender {
        let block_len = block_len.next_multiple_of(rustix::param::page_size());
        Lender { block_len, taken: 0, lent: VecDeque::new(), free: Vec::new(), current: None }
    }

    /// Records that bytes were written to the pipe as a copy.
    pub(crate) fn copied(&mut self, count: usize) {
        self.taken += count as u64;
    }

    /// Returns the part of these bytes that can be lent: all of it or none.
    pub(crate) fn lendable<'a>(&self, block: &'a Block, range: Range<usize>) -> Option<&'a [u8]> {
        match block {
            Block::Pages(pages) if range.len() >= self.block_len / 4 => Some(&pages[range]),
            Block::Pages(_) | Block::Own(_) => None,
        }
    }

    /// Lends bytes of the writer's block to the pipe, and returns how many the pipe accepted.
    pub(crate) fn lend(&mut self, pipe: impl AsFd, bytes: &[u8], flags: SpliceFlags) -> Result<usize, Errno> {
        // SAFETY: the bytes are initialised memory, which the kernel only reads. They are in a block of whole pages,
        // whose bytes are not written while they are in the pipe: the writer does not touch the bytes that were taken,
        // and exchanges the block through `renew`, which keeps it until they have left the pipe, or unmaps it.
        let count = unsafe { rustix::pipe::vmsplice(pipe, &[IoSliceRaw::from_slice(bytes)], flags) }?;
        self.taken += count as u64;
        self.current = Some(self.taken);
        Ok(count)
    }

    /// Moves `rest` to the front of a block that may be written to: the same one, or another one if part of it was
    /// lent.
    pub(crate) fn renew(&mut self, pipe: impl AsFd, block: &mut Block, rest: Range<usize>) {
        let was_lent = self.current.take();
        if was_lent.is_none() && matches!(block, Block::Pages(_)) {
            return block.copy_within(rest, 0);
        }
        self.take_back(rustix::io::ioctl_fionread(pipe).unwrap_or(u64::MAX));
        let len = self.block_len.max(rest.len());
        let fresh = match self.free.pop() {
            Some(pages) if pages.len() >= len => Block::Pages(pages),
            _ => MmapMut::map_anon(len).map_or_else(|_| Block::Own(vec![0; len]), Block::Pages),
        };
        let old = std::mem::replace(block, fresh);
        block[..rest.len()].copy_from_slice(&old[rest]);
        if let (Block::Pages(pages), Some(until)) = (old, was_lent) {
            self.lent.push_back((pages, until));
        }
    }

    /// Frees the blocks that have left the pipe, which contains `unread` bytes.
    fn take_back(&mut self, unread: u64) {
        let out = self.taken.saturating_sub(unread);
        while self.lent.front().is_some_and(|(_, until)| *until <= out) {
            self.free.extend(self.lent.pop_front().map(|(pages, _)| pages));
        }
    }
}
