//! Which library this is.

use std::ffi::{CStr, c_char};

/// The version as C text; that a package's version has no NUL is checked while compiling.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version with a NUL"),
};

/// The version of the library that is running, such as "0.1.0": MILLSTREAM_VERSION is that of the header. Valid for
/// ever.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_version() -> *const c_char {
    VERSION.as_ptr()
}
