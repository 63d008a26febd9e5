//! Memory that parts are put into.

use std::fmt;

use super::sealed::Place;
use super::{Part, SLACK};

/// A piece of memory that is filled from its front.
///
/// ```
/// use millstream::put::{Room, zero_fill};
/// let mut bytes = [0; 16];
/// let mut room = Room::over(&mut bytes);
/// room.put("frame-");
/// room.put(zero_fill(7, 3));
/// assert_eq!(room.as_bytes(), b"frame-007");
/// assert_eq!((room.len(), room.left()), (9, 7));
/// ```
///
/// Types with a [`Display`](fmt::Display) are put with `write!(room, …)`, which fails if the space is too small.
pub struct Room<'a> {
    /// Bytes after `max` may be overwritten, and do not count.
    bytes: &'a mut [u8],
    max: usize,
    len: usize,
}

impl<'a> Room<'a> {
    /// A room over `bytes`, all of it free. Bytes after those that were put may be overwritten with anything.
    pub fn over(bytes: &'a mut [u8]) -> Room<'a> {
        Room { max: bytes.len(), bytes, len: 0 }
    }

    /// A room over `bytes` except for the last [`SLACK`] of them, which may be overwritten.
    pub(super) fn with_slack(bytes: &'a mut [u8]) -> Room<'a> {
        Room { max: bytes.len() - SLACK, bytes, len: 0 }
    }

    /// The bytes put so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been put yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that are still free.
    pub fn left(&self) -> usize {
        self.max - self.len
    }

    /// What has been put.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends a part.
    ///
    /// # Panics
    /// If it is longer than what is [left](Self::left).
    #[inline]
    pub fn put(&mut self, part: impl Part) {
        part.put(self);
    }

    /// Appends bytes as they are.
    #[inline]
    pub(super) fn copy(&mut self, bytes: &[u8]) {
        let left = &mut self.bytes[self.len..self.max];
        assert!(bytes.len() <= left.len(), "{} bytes for a space that has {} left", bytes.len(), left.len());
        left[..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// The most that is put through the stack.
const ON_STACK: usize = 128;

/// [`Part::put`] for parts of this crate that are written unchecked: directly if the room has the space they may need,
/// else through memory that has it.
pub(super) fn put_checked<P: Part + ?Sized>(part: &P, room: &mut Room<'_>) {
    let most = part.max_len();
    if most <= room.left() && most + SLACK <= room.bytes.len() - room.len {
        room.len += put_at_front(part, &mut room.bytes[room.len..], most);
    } else if most + SLACK <= ON_STACK {
        let mut aside = [0; ON_STACK];
        let len = put_at_front(part, &mut aside, most);
        room.copy(&aside[..len]);
    } else {
        let mut aside = vec![0; most + SLACK];
        let len = put_at_front(part, &mut aside, most);
        room.copy(&aside[..len]);
    }
}

/// Puts a part of this crate, and returns its length.
fn put_at_front<P: Part + ?Sized>(part: &P, bytes: &mut [u8], most: usize) -> usize {
    assert!(most + SLACK <= bytes.len());
    let at = bytes.as_mut_ptr();
    // SAFETY: there are `most` bytes and the slack, and they are ours; the end lies within them.
    unsafe { part.put_unchecked(Place { at, most }).offset_from_unsigned(at) }
}

impl fmt::Write for Room<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.left() {
            return Err(fmt::Error);
        }
        self.copy(text.as_bytes());
        Ok(())
    }
}

impl fmt::Debug for Room<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("len", &self.len).field("left", &self.left()).finish()
    }
}
