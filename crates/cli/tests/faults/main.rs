//! The `millstream` command under a system that fails.
//!
//! `strace` makes system calls of the real command fail, be interrupted or be met by a signal, one after another.
//! Invariant: status 0 means that the output is complete; otherwise the output is what it was before, and nothing is
//! left next to it. Interruptions alone never make it fail.
//!
//! `MILLSTREAM_DEEP=1` tries every call; otherwise some of them are tried.

mod bson;
mod command;
mod full_disk;
mod memory;
mod nonblocking;
mod signals;
mod strace;
mod sweeps;
mod threads;
