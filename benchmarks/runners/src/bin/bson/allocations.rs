//! Counts allocations. While counting is off, an allocation costs one additional predictable branch.
//!
//! No other thread should allocate while one thread counts: allocations of two threads at the same time can be lost.

#![allow(unsafe_code)] // An allocator requires unsafe code; this one only passes calls on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[global_allocator]
static COUNTED: Counted = Counted;

static COUNTING: AtomicBool = AtomicBool::new(false);
static TIMES: AtomicU64 = AtomicU64::new(0);

/// Returns how often a function requests new or larger memory.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, u64) {
    TIMES.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let result = work();
    COUNTING.store(false, Relaxed);
    (result, TIMES.load(Relaxed))
}

/// The system's allocator.
struct Counted;

#[inline]
fn note() {
    if COUNTING.load(Relaxed) {
        TIMES.store(TIMES.load(Relaxed) + 1, Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to `System`, which fulfils the contract of the trait.
unsafe impl GlobalAlloc for Counted {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller fulfils the conditions that `System` requires.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as above; `memory` came from `System`, like all memory of this allocator.
        unsafe { System.realloc(memory, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
