//! The version of the library.

use std::ffi::{CStr, c_char};

/// The version as C text; the compiler checks that it contains no NUL.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version with a NUL"),
};

/// Returns the version of the running library, such as "0.1.0"; MILLSTREAM_VERSION is the version of the header. The
/// text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_version() -> *const c_char {
    VERSION.as_ptr()
}
