//! The `millstream` command under a system that fails.
//!
//! `strace` makes system calls of the real command fail, be interrupted or be met by a signal, one after another.
//! Whatever happens: status 0 means that the output is whole; otherwise the output is what it was before, and nothing
//! is left beside it. Interruptions alone never make it fail.
//!
//! `MILLSTREAM_DEEP=1` tries every call; otherwise some of them are tried.

mod command;
mod full_disk;
mod nonblocking;
mod strace;
mod sweeps;
