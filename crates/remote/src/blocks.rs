//! Blocks of memory for the bytes of all ranges of an object.
//!
//! A block that was read is the next one to be filled, because its memory is probably in the cache. All blocks have the same
//! size, so that the memory of one range fits the next one: ranges grow if a connection is fast, and an allocator that
//! keeps their old memory needed up to twice as much.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use millstream_core::error::{Error, ErrorKind, Result};

/// The size of a block.
const BLOCK: usize = 256 << 10;

/// Empty blocks.
#[derive(Default)]
pub(crate) struct Blocks(Mutex<Vec<Vec<u8>>>);

impl Blocks {
    /// Returns an empty block, for at most `len` bytes.
    fn get(&self, len: usize) -> Result<Vec<u8>> {
        if len >= BLOCK
            && let Some(block) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
        {
            return Ok(block);
        }
        let (mut block, size) = (Vec::new(), len.min(BLOCK));
        block.try_reserve_exact(size).map_err(|_| {
            Error::new(ErrorKind::MemoryLimit).with_found(format!("no memory for {size} bytes of a range"))
        })?;
        Ok(block)
    }

    /// Takes a block back.
    fn put(&self, mut block: Vec<u8>) {
        if block.capacity() >= BLOCK {
            block.clear();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        }
    }
}

/// Bytes that wait for the reader, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Waiting {
    blocks: VecDeque<Vec<u8>>,
    /// The number of bytes of the first block that were taken.
    taken: usize,
    len: usize,
}

impl Waiting {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends bytes. At most `most` arrive from now on, with these.
    ///
    /// # Errors
    /// Returns [`ErrorKind::MemoryLimit`] if there is no memory.
    pub(crate) fn extend(&mut self, mut bytes: &[u8], most: usize, pool: &Blocks) -> Result<()> {
        let mut most = most.max(bytes.len());
        while !bytes.is_empty() {
            if self.blocks.back().is_none_or(|block| block.len() == block.capacity()) {
                self.blocks.push_back(pool.get(most)?);
            }
            let Some(block) = self.blocks.back_mut() else { break };
            let (now, later) = bytes.split_at(bytes.len().min(block.capacity() - block.len()));
            block.extend_from_slice(now);
            self.len += now.len();
            most -= now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Moves bytes to `out` and returns their number, which is 0 only if there are none or `out` is empty.
    pub(crate) fn take(&mut self, out: &mut [u8], pool: &Blocks) -> usize {
        let mut count = 0;
        while count < out.len()
            && let Some(block) = self.blocks.front()
        {
            let rest = &block[self.taken..];
            let now = rest.len().min(out.len() - count);
            out[count..count + now].copy_from_slice(&rest[..now]);
            count += now;
            self.taken += now;
            if now == rest.len() {
                pool.put(self.blocks.pop_front().unwrap_or_default());
                self.taken = 0;
            }
        }
        self.len -= count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_in_which_they_arrived() {
        let (pool, mut waiting) = (Blocks::default(), Waiting::default());
        let all: Vec<u8> = (0..3 * BLOCK as u32 + 7).map(|i| (i % 251) as u8).collect();
        let (mut sent, mut found) = (0, Vec::new());
        let mut out = vec![0; BLOCK + 1];
        for step in [1, 5, BLOCK - 6, BLOCK, BLOCK / 2, BLOCK / 2, 7] {
            waiting.extend(&all[sent..sent + step], all.len() - sent, &pool).unwrap();
            sent += step;
            assert_eq!(waiting.len(), sent - found.len());
            let count = waiting.take(&mut out[..step / 2 + 1], &pool);
            found.extend_from_slice(&out[..count]);
        }
        assert_eq!(sent, all.len());
        while waiting.len() > 0 {
            let count = waiting.take(&mut out, &pool);
            found.extend_from_slice(&out[..count]);
        }
        assert!(found == all);
        assert_eq!(waiting.take(&mut out, &pool), 0);
        // Blocks are used again.
        let blocks = pool.0.lock().unwrap().len();
        assert!((1..=4).contains(&blocks), "{blocks}");
        waiting.extend(&all, all.len(), &pool).unwrap();
        assert_eq!(waiting.blocks.len(), 4);
        assert_eq!(pool.0.lock().unwrap().len(), blocks.saturating_sub(3));
    }

    #[test]
    fn short_ranges_need_little_memory() {
        let (pool, mut waiting) = (Blocks::default(), Waiting::default());
        waiting.extend(b"12", 5, &pool).unwrap();
        waiting.extend(b"345", 3, &pool).unwrap();
        assert!(waiting.blocks.len() == 1 && waiting.blocks[0].capacity() < 100);
        let mut out = [0; 9];
        assert_eq!((waiting.take(&mut out, &pool), &out[..5]), (5, &b"12345"[..]));
        assert!(pool.0.lock().unwrap().is_empty());
    }
}
