//! The `millstream` command with failing system calls.
//!
//! `strace` makes system calls of the real command fail, interrupts them, or delivers a signal at them, one after
//! another. The invariant is: status 0 means that the output is complete; otherwise the output is unchanged, and no
//! file is left next to it. Interruptions alone never make the command fail.
//!
//! `MILLSTREAM_DEEP=1` tests every call; otherwise only some calls are tested.

#[cfg(feature = "parquet")] // most of it is about `convert`
mod bson;
mod command;
mod full_disk;
mod memory;
mod nonblocking;
mod signals;
mod strace;
mod sweeps;
mod threads;
