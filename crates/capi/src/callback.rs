//! Callbacks: your functions, which get a pointer that you choose.

use std::ffi::{c_char, c_void};
use std::io;

use crate::boundary::User;

/// Fills up to `len` bytes at `space` and returns their number, or 0 at the end of the stream. An error is a negative
/// number of errno.h, such as -EIO; after -EINTR and -EAGAIN the read is repeated.
pub type millstream_fill_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, space: *mut c_char, len: usize) -> isize>;

/// Releases lent memory, or a pointer that callbacks no longer get.
pub type millstream_release_callback = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// A pointer from C that is released when it is no longer used.
pub(crate) struct UserContext {
    pub(crate) user: User,
    pub(crate) release: millstream_release_callback,
}

impl UserContext {
    /// Returns the pointer. (This is a method so that closures capture the whole of `self`.)
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.user.pointer()
    }
}

impl Drop for UserContext {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: this is a C function, called as documented in the header.
            unsafe { release(self.user.pointer()) }
        }
    }
}

/// Converts the result of a callback: the number of bytes, or a negative error number.
pub(crate) fn counted(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| {
        let errno = i32::try_from(returned.unsigned_abs()).unwrap_or(0);
        io::Error::from_raw_os_error(errno)
    })
}
