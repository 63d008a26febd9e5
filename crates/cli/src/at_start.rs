//! Detects which standard streams were closed when the process began.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in their place. So they are checked by a function that the operating
//! system's loader calls earlier.
#![allow(unsafe_code)] // a pointer in the section of such functions

use std::sync::atomic::{AtomicU8, Ordering};

use millstream_cli::Closed;

/// A bit mask with a bit for each closed stream.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the loader calls each function in this section one time, by the C calling convention, on the first thread and
// before `main`. This function needs no part of the runtime that is not yet initialised: it makes three system calls,
// stores an atomic number, allocates no memory and cannot panic. Some loaders pass arguments, which are ignored, as
// that convention allows.
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let Closed { stdin, stdout, stderr } = Closed::now();
    CLOSED.store(u8::from(stdin) | u8::from(stdout) << 1 | u8::from(stderr) << 2, Ordering::Relaxed);
}

/// Returns which streams were closed.
pub fn closed() -> Closed {
    let bits = CLOSED.load(Ordering::Relaxed);
    Closed { stdin: bits & 1 != 0, stdout: bits & 2 != 0, stderr: bits & 4 != 0 }
}
