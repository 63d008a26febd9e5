//! All platform-dependent code: the part that a port to another operating system has to replace.
//!
//! No code outside this folder names `std::os`, `rustix` or `libc`; `tools/layers` checks that. The standard library's
//! paths, files and threads may be used anywhere.

pub(crate) mod cancel;
pub(crate) mod command;
pub(crate) mod connect;
pub(crate) mod pinned;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod stamp;

use std::io;

pub(crate) use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Returns another file descriptor of the same open file. It is at least 3, because the first three are the standard
/// streams.
pub(crate) fn duplicate(fd: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

/// Returns a duplicate of standard input, so that closing it leaves standard input open.
pub(crate) fn duplicate_stdin() -> io::Result<OwnedFd> {
    duplicate(rustix::stdio::stdin())
}

/// Reads exactly `space.len()` bytes at an offset of a file, regardless of the file's position.
pub(crate) fn read_exact_at(file: &std::fs::File, space: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, space, offset)
}

/// Reads up to `space.len()` bytes at an offset of a file, regardless of the file's position, and returns their number.
#[cfg(feature = "splits")]
pub(crate) fn read_at(file: &std::fs::File, space: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match std::os::unix::fs::FileExt::read_at(file, space, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Returns the operating system's error for a lack of memory.
pub(crate) fn out_of_memory() -> io::Error {
    rustix::io::Errno::NOMEM.into()
}
