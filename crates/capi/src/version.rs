//! Which library this is.

use std::ffi::{CStr, c_char};

/// The version as C text; that it contains no NUL is checked at compile time.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version with a NUL"),
};

/// The version of the running library, such as "0.1.0": MILLSTREAM_VERSION is that of the header. Valid indefinitely.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_version() -> *const c_char {
    VERSION.as_ptr()
}
