//! Counts how often memory is asked for. While nobody counts, an allocation costs one predictable branch more.
//!
//! Only the thread that counts should allocate meanwhile: the sum of two threads would be too small.

#![allow(unsafe_code)] // an allocator is unsafe to write; this one only passes on

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[global_allocator]
static COUNTED: Counted = Counted;

static COUNTING: AtomicBool = AtomicBool::new(false);
static TIMES: AtomicU64 = AtomicU64::new(0);

/// How often this asks for new or larger memory.
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

// SAFETY: every call is passed on unchanged to `System`, which keeps the promises of the trait, and so does its answer.
unsafe impl GlobalAlloc for Counted {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: our caller's promises are those that `System` asks for.
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
        // SAFETY: as above; `memory` came from `System`, because all of ours does.
        unsafe { System.realloc(memory, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
