//! The memory that a function requests, for tests that bound it.

#![allow(unsafe_code)] // An allocator requires unsafe code; this one only passes calls on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTED: Counted = Counted;

thread_local! {
    /// The bytes that this thread has requested and not returned.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Returns the result of a function, and the most bytes that this thread has held at once on the function's behalf. Memory
/// of other threads, and of libraries in C, is not counted.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get().saturating_sub(before).max(0) as usize)
}

/// The system's allocator.
struct Counted;

fn note(change: isize) {
    LIVE.set(LIVE.get().saturating_add(change));
    PEAK.set(PEAK.get().max(LIVE.get()));
}

// SAFETY: every call is passed on unchanged to `System`, which fulfils the contract of the trait. The counters have no
// destructor and no lazy initialisation, so they are there on every thread at any time, and request no memory.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller fulfils the conditions that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as isize - layout.size() as isize);
        // SAFETY: as above; `memory` came from `System`, like all memory of this allocator.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
