//! Everything that depends on the platform: what a port to another system has to replace.
//!
//! Nothing outside this folder names `std::os`, `rustix` or `libc`: `tools/layers` checks it. Paths, files and threads
//! of the standard library are not part of it.

pub(crate) mod cancel;
pub(crate) mod command;
pub(crate) mod connect;
pub(crate) mod sink;
pub(crate) mod source;

use std::io;

pub(crate) use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Another file descriptor of the same open file. It is at least 3: the first three are the standard streams.
pub(crate) fn duplicate(fd: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

/// A duplicate of standard input, so that closing it leaves standard input open.
pub(crate) fn duplicate_stdin() -> io::Result<OwnedFd> {
    duplicate(rustix::stdio::stdin())
}

/// Reads exactly these bytes of a file, wherever its position is.
#[cfg(feature = "compression")]
pub(crate) fn read_exact_at(file: &std::fs::File, space: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, space, offset)
}

/// The system's error for a lack of memory.
pub(crate) fn out_of_memory() -> io::Error {
    rustix::io::Errno::NOMEM.into()
}
