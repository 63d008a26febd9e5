//! The memory of a writer, which is filled from its front, and all index arithmetic of the writing side.
//!
//! ```text
//!   filled              spare capacity
//!   [ xxxxxxxxxxxxxxxxx | ................ ]
//!   0                   end                capacity         always end <= capacity, fast_end <= capacity
//! ```
//!
//! One comparison with `fast_end` decides whether bytes fit. `fast_end` is `capacity`, or 0 if each write needs further
//! checks.

use std::ops::Range;

use crate::error::Result;
use crate::sink::block::Block;
use millstream_core::internal::{Parts, SLACK};

pub(super) struct Space {
    block: Block,
    /// A pointer to the first byte of `block`, and the number of its bytes. Every method that may replace the memory
    /// refreshes them.
    base: *mut u8,
    capacity: usize,
    end: usize,
    fast_end: usize,
}

// SAFETY: `base` points into `block`, which is Send, and no other pointer to that memory exists.
unsafe impl Send for Space {}

// SAFETY: through a shared reference, no byte is written and `base` is not handed out.
unsafe impl Sync for Space {}

impl Space {
    /// Creates a space without memory, in which each write needs further checks.
    pub(super) fn new() -> Space {
        let mut block = Block::default();
        Space { base: block.as_mut_ptr(), block, capacity: 0, end: 0, fast_end: 0 }
    }

    /// Returns the number of filled bytes.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Returns the length of the free space.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.capacity - self.end
    }

    /// Returns the filled bytes.
    pub(super) fn filled(&self) -> &[u8] {
        &self.block[..self.end]
    }

    /// Returns the memory, for a sink that accepts filled bytes from it.
    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Returns the space after the filled bytes. Its content is arbitrary.
    #[inline]
    pub(super) fn spare(&mut self) -> &mut [u8] {
        // SAFETY: `base` is the start of `capacity` initialised bytes that `self` owns; `end <= capacity`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.end), self.capacity - self.end) }
    }

    /// Returns a slot for `len` bytes, if no further checks are needed.
    #[inline(always)]
    pub(super) fn fast_slot(&mut self, len: usize) -> Option<Slot<'_>> {
        // This is one comparison: the remainder is negative if `fast_end` is 0. Lengths of memory are at most
        // `isize::MAX`, and so is `len` if it is the length of memory.
        let left = self.fast_end.wrapping_sub(self.end) as isize;
        match isize::try_from(len) {
            Ok(wanted) if wanted <= left => Some(Slot { space: self, len }),
            _ => None,
        }
    }

    /// Returns a slot for `len` bytes.
    ///
    /// # Panics
    /// Panics if fewer bytes are left.
    pub(super) fn slot(&mut self, len: usize) -> Slot<'_> {
        assert!(len <= self.left());
        Slot { space: self, len }
    }

    /// Returns whether writes need further checks.
    #[inline]
    pub(super) fn needs_look(&self) -> bool {
        self.fast_end == 0
    }

    /// Sets whether writes need further checks. They always do if there is no memory.
    pub(super) fn set_needs_look(&mut self, needs_look: bool) {
        self.fast_end = if needs_look { 0 } else { self.capacity };
    }

    /// Marks `n` more bytes as filled, with their current content.
    ///
    /// # Panics
    /// Panics if fewer bytes are left.
    #[inline]
    pub(super) fn commit(&mut self, n: usize) {
        assert!(n <= self.left(), "commit of more bytes than there was space");
        self.end += n;
    }

    /// Marks the last `n` filled bytes as free again.
    pub(super) fn take_back(&mut self, n: usize) {
        assert!(n <= self.end);
        self.end -= n;
    }

    /// Removes the first `n` bytes. `renew` gets the range of the remaining filled bytes and moves them to the front of
    /// the block or of another block.
    pub(super) fn renew(&mut self, n: usize, renew: impl FnOnce(&mut Block, Range<usize>)) {
        let rest = n..self.end;
        let needs_look = self.needs_look();
        // All fields stay valid while `renew` runs, which may panic: there is no free space.
        (self.capacity, self.end, self.fast_end) = (0, 0, 0);
        renew(&mut self.block, rest.clone());
        self.refresh();
        assert!(rest.len() <= self.capacity);
        self.end = rest.len();
        self.set_needs_look(needs_look);
    }

    /// Makes the memory at least `len` bytes long and keeps its content.
    ///
    /// # Errors
    /// Returns the errors of [`Block::grow`].
    pub(super) fn grow(&mut self, len: usize) -> Result<()> {
        if self.capacity < len {
            self.block.grow(len)?;
            self.refresh();
        }
        Ok(())
    }

    /// Removes the free space. Each write then needs further checks.
    pub(super) fn give_up_spare(&mut self) {
        self.block = Block::Own(self.filled().to_vec());
        self.fast_end = 0;
        self.refresh();
    }

    fn refresh(&mut self) {
        (self.base, self.capacity) = (self.block.as_mut_ptr(), self.block.len());
    }
}

/// A slot: `len` bytes after the filled ones are guaranteed to be free.
pub(super) struct Slot<'a> {
    space: &'a mut Space,
    len: usize,
}

impl Slot<'_> {
    /// Fills the front of the space with `parts`, and returns the number of bytes filled. The content after them is
    /// arbitrary.
    ///
    /// # Panics
    /// Panics if the slot is shorter than the parts [need](millstream_core::internal::need). In that case, and if a
    /// part panics, no bytes are filled.
    #[inline(always)]
    pub(super) fn put(self, parts: &impl Parts) -> usize {
        let most = parts.max_len();
        assert!(most.saturating_add(SLACK) <= self.len);
        // SAFETY: `base` is the start of `capacity` initialised bytes that the space owns. `len` of them are after
        // `end`, and the parts need no more. Parts only move forward, and stay within `most`.
        let len = unsafe {
            let at = self.space.base.add(self.space.end);
            parts.put_unchecked(at, most).offset_from_unsigned(at)
        };
        self.space.end += len;
        len
    }

    /// Fills the slot with `bytes`, which have exactly its length.
    #[inline(always)]
    pub(super) fn copy(self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len);
        // SAFETY: as in `put`. In addition, `bytes` is borrowed, so it is not part of the space, which is borrowed
        // mutably.
        unsafe {
            let at = self.space.base.add(self.space.end);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        }
        self.space.end += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put::{Part, Spare, fixed, hex, json, pad, zero_fill};
    use millstream_core::internal::need;

    /// A user-defined part that consists of others.
    struct Pair(i32, &'static str);

    impl Part for Pair {
        fn max_len(&self) -> usize {
            self.0.max_len() + self.1.max_len()
        }

        fn put(&self, spare: &mut Spare<'_>) {
            spare.put(self.0);
            spare.put(self.1);
        }
    }

    /// Puts `parts` after `before` bytes into memory that is just long enough, on the fast path and on the slow path.
    fn check(parts: &impl Parts, expected: &str) {
        // Miri needs a minute for one of these lengths, so it only runs the one that is not aligned.
        for &before in if cfg!(miri) { &[1][..] } else { &[0, 1, 100] } {
            for needs_look in [false, true] {
                let mut space = Space::new();
                space.grow(before + need(parts)).unwrap();
                space.set_needs_look(needs_look);
                space.slot(before).copy(&vec![b'<'; before]);
                let slot = match space.fast_slot(need(parts)) {
                    Some(slot) => {
                        assert!(!needs_look);
                        slot
                    }
                    None => {
                        assert!(needs_look);
                        space.slot(need(parts))
                    }
                };
                assert_eq!(slot.put(parts), expected.len());
                assert_eq!(String::from_utf8_lossy(&space.filled()[before..]), expected);
                assert!(space.filled()[..before].iter().all(|&byte| byte == b'<'));
            }
        }
    }

    // This test is here and not only in the integration tests, so that Miri sees that each part writes only to the
    // memory that it requested.
    #[test]
    fn every_kind_of_part_in_as_much_memory_as_it_needs() {
        check(&(), "");
        check(&(&"", (&"Hello, ", (&b"bytes", (&String::from("owned"), ())))), "Hello, bytesowned");
        check(&(&'a', (&'ß', (&'€', (&'😀', (&true, (&false, ())))))), "aß€😀truefalse");
        check(&(&0_u8, (&u64::MAX, (&u128::MAX, ()))), &format!("0{}{}", u64::MAX, u128::MAX));
        check(&(&i8::MIN, (&i64::MIN, (&i128::MIN, ()))), &format!("{}{}{}", i8::MIN, i64::MIN, i128::MIN));
        check(&(&hex(0_u8), (&hex(u64::MAX), (&hex(-1_i128), ()))), &format!("0{:x}{:x}", u64::MAX, u128::MAX));
        check(&(&pad(-7, 3), (&pad(-7, 40), (&pad(i64::MIN, 0), ()))), &format!("{:3}{:40}{}", -7, -7, i64::MIN));
        check(&(&zero_fill(-7, 3), (&zero_fill(hex(7), 40), ())), &format!("{:03}{:040}", -7, 7));
        check(&(&0.5, (&-2.225_073_858_507_201_4e-308, (&1e16, ()))), "0.5-2.2250738585072014e-3081e16");
        check(&(&1e15_f32, (&2e-6_f32, (&f32::MAX, ()))), "1000000000000000.02e-63.4028235e38");
        check(&(&fixed(1.0, 2), (&fixed(f64::MIN, 20), ())), &format!("1.00{:.20}", f64::MIN));
        check(&(&json("\"\n\u{1}0123456789\\"), (&json(b"\xff\xe2\x82"), ())), r#""\"\n\u00010123456789\\""��""#);
        check(&(&Pair(-3, "x"), (&1_u8, (&&&Pair(4, ""), ()))), "-3x14");
    }

    #[test]
    fn space_is_taken_back_and_moved() {
        let mut space = Space::new();
        assert!(space.fast_slot(1).is_none());
        space.grow(8).unwrap();
        space.set_needs_look(false);
        space.fast_slot(8).unwrap().copy(b"abcdefgh");
        assert!(space.fast_slot(1).is_none() && space.fast_slot(usize::MAX).is_none() && space.left() == 0);
        space.renew(3, |block, rest| block.copy_within(rest, 0));
        assert_eq!((space.filled(), space.left()), (&b"defgh"[..], 3));
        space.take_back(4);
        space.spare()[..2].copy_from_slice(b"xy");
        space.commit(2);
        assert!(space.grow(usize::MAX).is_err());
        space.grow(16).unwrap();
        space.slot(2).copy(b"zz");
        assert_eq!((space.filled(), space.end(), space.left()), (&b"dxyzz"[..], 5, 11));
        space.give_up_spare();
        assert_eq!((space.filled(), space.left(), space.needs_look()), (&b"dxyzz"[..], 0, true));
        assert!(space.fast_slot(1).is_none());
    }
}
