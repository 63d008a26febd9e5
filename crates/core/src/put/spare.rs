//! Spare capacity: memory to which parts are written.

use std::fmt;

use super::sealed::Place;
use super::{Part, SLACK};

/// Spare capacity: a piece of memory that is filled from its front.
///
/// ```
/// use millstream::put::{Spare, zero_fill};
/// let mut bytes = [0; 16];
/// let mut spare = Spare::over(&mut bytes);
/// spare.put("frame-");
/// spare.put(zero_fill(7, 3));
/// assert_eq!(spare.as_bytes(), b"frame-007");
/// assert_eq!((spare.len(), spare.left()), (9, 7));
/// ```
///
/// Types that implement [`Display`](fmt::Display) are written with `write!(spare, …)`, which fails if the space is too
/// small.
pub struct Spare<'a> {
    /// Bytes after `max` may be overwritten, and do not count.
    bytes: &'a mut [u8],
    max: usize,
    len: usize,
}

impl<'a> Spare<'a> {
    /// Creates a `Spare` over all of `bytes`. Bytes after the written ones may be overwritten with any values.
    pub fn over(bytes: &'a mut [u8]) -> Spare<'a> {
        Spare { max: bytes.len(), bytes, len: 0 }
    }

    /// Creates a `Spare` over `bytes` without the last [`SLACK`] of them, which may be overwritten.
    pub(super) fn with_slack(bytes: &'a mut [u8]) -> Spare<'a> {
        Spare { max: bytes.len() - SLACK, bytes, len: 0 }
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no bytes have been written yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that are still free.
    pub fn left(&self) -> usize {
        self.max - self.len
    }

    /// Returns the bytes that have been written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends a part.
    ///
    /// # Panics
    /// Panics if the part is longer than the space [left](Self::left).
    #[inline]
    pub fn put(&mut self, part: impl Part) {
        part.put(self);
    }

    /// Appends bytes unchanged.
    #[inline]
    pub(super) fn copy(&mut self, bytes: &[u8]) {
        let left = &mut self.bytes[self.len..self.max];
        assert!(bytes.len() <= left.len(), "{} bytes for a space that has {} left", bytes.len(), left.len());
        left[..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// The length of the longest part that is written through memory on the stack.
const ON_STACK: usize = 128;

/// Implements [`Part::put`] for parts of this crate that are written unchecked: directly if `spare` has the space that
/// they may need, otherwise through temporary memory.
pub(super) fn put_checked<P: Part + ?Sized>(part: &P, spare: &mut Spare<'_>) {
    let most = part.max_len();
    if most <= spare.left() && most + SLACK <= spare.bytes.len() - spare.len {
        spare.len += put_at_front(part, &mut spare.bytes[spare.len..], most);
    } else if most + SLACK <= ON_STACK {
        let mut aside = [0; ON_STACK];
        let len = put_at_front(part, &mut aside, most);
        spare.copy(&aside[..len]);
    } else {
        let mut aside = vec![0; most + SLACK];
        let len = put_at_front(part, &mut aside, most);
        spare.copy(&aside[..len]);
    }
}

/// Puts a part of this crate and returns its length.
fn put_at_front<P: Part + ?Sized>(part: &P, bytes: &mut [u8], most: usize) -> usize {
    assert!(most + SLACK <= bytes.len());
    let at = bytes.as_mut_ptr();
    // SAFETY: `bytes` has `most` bytes and the slack, and this function borrows them mutably; the end is within them.
    unsafe { part.put_unchecked(Place { at, most }).offset_from_unsigned(at) }
}

impl fmt::Write for Spare<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.left() {
            return Err(fmt::Error);
        }
        self.copy(text.as_bytes());
        Ok(())
    }
}

impl fmt::Debug for Spare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").field("len", &self.len).field("left", &self.left()).finish()
    }
}
