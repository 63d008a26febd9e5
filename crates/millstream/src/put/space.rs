//! The memory of a writer, filled from its front: all index arithmetic of the writing side.
//!
//! ```text
//!   filled              room
//!   [ xxxxxxxxxxxxxxxxx | ................ ]
//!   0                   end                capacity         always end <= capacity, fast_end <= capacity
//! ```
//!
//! Whether there is room for something is one comparison with `fast_end`. That is `capacity`, or 0 where each write
//! needs a closer look.

use super::SLACK;
use super::sealed::Parts;

pub(crate) struct Space {
    /// Initialised from front to back.
    memory: Vec<u8>,
    /// The first byte of `memory`, and how many there are. Refreshed by every method that changes which memory it is.
    base: *mut u8,
    capacity: usize,
    end: usize,
    fast_end: usize,
}

// SAFETY: `base` points into `memory`, which is Send, and nothing else does.
unsafe impl Send for Space {}

// SAFETY: nothing is written, and `base` is not handed out, through a shared reference.
unsafe impl Sync for Space {}

impl Space {
    /// No memory at all, and each write needs a closer look.
    pub(crate) fn new() -> Space {
        let mut memory = Vec::new();
        Space { base: memory.as_mut_ptr(), memory, capacity: 0, end: 0, fast_end: 0 }
    }

    /// How many bytes are filled.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// How long the room is.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.capacity - self.end
    }

    /// The filled bytes.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.memory[..self.end]
    }

    /// Everything behind the filled bytes: what it holds is arbitrary.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        // SAFETY: `base` is the start of `capacity` initialised bytes that `self` owns; `end <= capacity`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.end), self.capacity - self.end) }
    }

    /// A slot for `len` bytes, if no closer look is needed.
    #[inline(always)]
    pub(crate) fn fast_slot(&mut self, len: usize) -> Option<Slot<'_>> {
        // One comparison: what is left is negative where `fast_end` is 0, and lengths of memory are no more than
        // `isize::MAX`, as `len` is if it is one.
        let left = self.fast_end.wrapping_sub(self.end) as isize;
        match isize::try_from(len) {
            Ok(wanted) if wanted <= left => Some(Slot { space: self, len }),
            _ => None,
        }
    }

    /// A slot for `len` bytes.
    ///
    /// # Panics
    /// If the room is shorter.
    pub(crate) fn slot(&mut self, len: usize) -> Slot<'_> {
        assert!(len <= self.left());
        Slot { space: self, len }
    }

    /// Whether writes need a closer look.
    #[inline]
    pub(crate) fn needs_look(&self) -> bool {
        self.fast_end == 0
    }

    /// Says whether writes need a closer look. Where there is no memory, they do.
    pub(crate) fn set_needs_look(&mut self, needs_look: bool) {
        self.fast_end = if needs_look { 0 } else { self.capacity };
    }

    /// Fills `n` bytes more, with what the room holds.
    ///
    /// # Panics
    /// If the room is shorter.
    #[inline]
    pub(crate) fn commit(&mut self, n: usize) {
        assert!(n <= self.left(), "commit of more bytes than there was space");
        self.end += n;
    }

    /// Makes the last `n` filled bytes room again.
    pub(crate) fn take_back(&mut self, n: usize) {
        assert!(n <= self.end);
        self.end -= n;
    }

    /// Removes the first `n` bytes; the others move to the front.
    pub(crate) fn remove(&mut self, n: usize) {
        self.memory.copy_within(n..self.end, 0);
        self.end -= n;
    }

    /// Makes the memory at least `len` bytes long. Where no closer look was needed, none is.
    pub(crate) fn grow(&mut self, len: usize) {
        if self.capacity < len {
            self.memory.resize(len, 0);
            self.refresh();
        }
    }

    /// Gives up the room. Each write needs a closer look then.
    pub(crate) fn give_up_room(&mut self) {
        self.memory.truncate(self.end);
        self.memory.shrink_to_fit();
        self.fast_end = 0;
        self.refresh();
    }

    fn refresh(&mut self) {
        (self.base, self.capacity) = (self.memory.as_mut_ptr(), self.memory.len());
    }
}

/// Room that has been measured. It promises that `len` bytes at the end of the filled ones are part of the room.
pub(crate) struct Slot<'a> {
    space: &'a mut Space,
    len: usize,
}

impl Slot<'_> {
    /// Fills the room's front with `parts`, and returns how many bytes they are. What lies behind them is arbitrary.
    ///
    /// # Panics
    /// If the slot is shorter than what they [need](super::need); then, or if a part panics, nothing is filled.
    #[inline(always)]
    pub(crate) fn put(self, parts: &impl Parts) -> usize {
        let most = parts.max_len();
        assert!(most.saturating_add(SLACK) <= self.len);
        // SAFETY: `base` is the start of `capacity` initialised bytes that the space owns, and `len` of them, which
        // are enough, lie behind `end`. Parts only move on, and within `most`.
        let len = unsafe {
            let at = self.space.base.add(self.space.end);
            parts.put_unchecked(at, most).offset_from_unsigned(at)
        };
        self.space.end += len;
        len
    }

    /// Fills the slot with as many bytes as it is long.
    #[inline(always)]
    pub(crate) fn copy(self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len);
        // SAFETY: the same; `bytes` is borrowed, so it is no part of the space, which is borrowed mutably.
        unsafe {
            let at = self.space.base.add(self.space.end);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        }
        self.space.end += bytes.len();
    }
}
