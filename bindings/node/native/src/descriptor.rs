//! Descriptors that JavaScript passes by number.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use millstream::{Error, ErrorKind};

/// The system's error for a number that is not an open descriptor. It is the same on Linux, macOS and the BSDs.
const EBADF: i32 = 9;

/// Duplicates a descriptor; the caller of this function owns the result.
pub fn duplicate(fd: RawFd) -> Result<OwnedFd, Error> {
    let refuse = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
    if fd < 0 {
        return Err(refuse(std::io::Error::from_raw_os_error(EBADF)));
    }
    // SAFETY: the descriptor is borrowed for this call only. If it is not open, `dup` fails.
    #[allow(unsafe_code)]
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(refuse)
}
