//! Lending pages to a pipe: vmsplice(2), by which the reader copies from our memory, without a copy into the pipe.
//!
//! A page that was lent must not be written until its bytes have left the pipe. That can be determined exactly: a pipe
//! is a queue, and FIONREAD returns how many bytes are in it. They are the last ones written, so of all our bytes,
//! those before the last FIONREAD bytes have been taken out. Other writers of the same pipe only make that number
//! larger, and us more careful. The system counts a byte until it is copied: the count and the copy exclude each other
//! by the pipe's lock.
//!
//! Bytes taken out have not necessarily been read: if the reader takes pages out with splice(2) or tee(2), another
//! process has them then, and may look at them after they are overwritten. So lending must be asked for
//! ([`LendPages`](crate::LendPages)).
//!
//! Closing and dropping never wait. Unmapped memory lives on as long as a pipe refers to it, and can no longer be
//! written: the blocks are mappings of their own, whole pages, and are returned to the system, not to an allocator that
//! would reuse them. A fork is harmless: the first to write a page then gets a copy of it.
//!
//! How much memory that takes: a piece that is less than a quarter of a block is copied, so each lent block has at least
//! a quarter of a block in the pipe, and there are at most four times as many as would fill it, and two.
#![allow(unsafe_code)] // vmsplice(2)

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::AsFd;

use memmap2::MmapMut;
use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, SpliceFlags};

use crate::sink::block::Block;

/// What a pipe has been lent, and which part of that it may still hold.
pub(crate) struct Lender {
    block_len: usize,
    /// Bytes that the pipe has taken from us, lent and copied.
    taken: u64,
    /// The blocks before the writer's, of which the pipe may hold pages, the oldest first; and `taken` after their last
    /// lent byte.
    lent: VecDeque<(MmapMut, u64)>,
    /// Blocks that may be written.
    free: Vec<MmapMut>,
    /// `taken` after the last lent byte of the writer's block, if any of it was lent.
    current: Option<u64>,
}

impl Lender {
    /// Lends blocks of at least `block_len` bytes.
    pub(crate) fn new(block_len: usize) -> Lender {
        let block_len = block_len.next_multiple_of(rustix::param::page_size());
        Lender { block_len, taken: 0, lent: VecDeque::new(), free: Vec::new(), current: None }
    }

    /// Records that bytes were written to the pipe as a copy.
    pub(crate) fn copied(&mut self, count: usize) {
        self.taken += count as u64;
    }

    /// The part of these bytes that can be lent: all, or nothing.
    pub(crate) fn lendable<'a>(&self, block: &'a Block, range: Range<usize>) -> Option<&'a [u8]> {
        match block {
            Block::Pages(pages) if range.len() >= self.block_len / 4 => Some(&pages[range]),
            Block::Pages(_) | Block::Own(_) => None,
        }
    }

    /// Lends bytes of the writer's block to the pipe, and returns how many it accepted.
    pub(crate) fn lend(&mut self, pipe: impl AsFd, bytes: &[u8], flags: SpliceFlags) -> Result<usize, Errno> {
        // SAFETY: the bytes are initialised memory, which the system only reads. They are in a block of whole pages,
        // whose bytes are not written while they are in the pipe: the writer does not touch those that were taken, and
        // exchanges the block through `renew`, which keeps it until they have left the pipe, or unmaps it.
        let count = unsafe { rustix::pipe::vmsplice(pipe, &[IoSliceRaw::from_slice(bytes)], flags) }?;
        self.taken += count as u64;
        self.current = Some(self.taken);
        Ok(count)
    }

    /// Moves `rest` to the front of a block that may be written: the same one, or another if some of it was lent.
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
