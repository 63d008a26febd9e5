//! All parts of one record: the list that `put!` passes on. It is measured one time, and written without further
//! checks.

use super::Part;
use super::sealed::Place;

/// The number of bytes after the longest text of a part that the part may overwrite: copies of constant size are faster
/// than exact ones.
pub const SLACK: usize = 16;

/// The list that [`put!`](crate::put!) passes on: `(&part, rest)` or, at the end, `()`.
pub trait Parts {
    /// Returns the sum of the parts' maximum lengths.
    fn max_len(&self) -> usize;

    /// Puts all parts, and returns a pointer to their end.
    ///
    /// # Safety
    /// `left` + [`SLACK`] bytes at `at` are initialised, and no other code uses them; `left` is at least the result of
    /// [`max_len`](Self::max_len), at any time.
    unsafe fn put_unchecked(&self, at: *mut u8, left: usize) -> *mut u8;
}

// This is always inlined, like all code between `put!` and the parts, so that the size of a copy is known at compile
// time.

impl Parts for () {
    #[inline(always)]
    fn max_len(&self) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn put_unchecked(&self, at: *mut u8, _: usize) -> *mut u8 {
        at
    }
}

impl<P: Part + ?Sized, R: Parts> Parts for (&P, R) {
    #[inline(always)]
    fn max_len(&self) -> usize {
        self.0.max_len().saturating_add(self.1.max_len())
    }

    #[inline(always)]
    unsafe fn put_unchecked(&self, at: *mut u8, left: usize) -> *mut u8 {
        // A part of this crate announces the same length each time, so `left` covers all such parts that are still to
        // come. A user-defined part gets the space that these do not need, whatever it announced before.
        let most = left.saturating_sub(self.1.max_len());
        // SAFETY: `most` is at most `left`. It is at least what this part announced, unless user-defined parts announce
        // more now than before; parts of this crate do not use it.
        unsafe {
            let end = self.0.put_unchecked(Place { at, most });
            self.1.put_unchecked(end, left - end.offset_from_unsigned(at))
        }
    }
}

/// Returns the number of bytes of space that `parts` need.
#[inline(always)]
pub fn need(parts: &impl Parts) -> usize {
    parts.max_len().saturating_add(SLACK)
}

/// Appends parts to a vector, as [`put!`](crate::put!) does to a writer.
#[inline]
pub fn append(out: &mut Vec<u8>, parts: &impl Parts) {
    let (len, most) = (out.len(), parts.max_len());
    out.resize(len + most + SLACK, 0);
    let at = out[len..].as_mut_ptr();
    // SAFETY: `most` + `SLACK` bytes were just appended there; the end is within them.
    let added = unsafe { parts.put_unchecked(at, most).offset_from_unsigned(at) };
    out.truncate(len + added);
}
