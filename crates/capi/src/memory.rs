//! Memory that C reads and gives back: text, bytes and handles.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns a pointer to bytes for C to read.
pub(crate) fn lend(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Returns text for C to keep. A NUL in it, which would end the text for C, is replaced.
pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap_or_else(|error| {
        let text = String::from_utf8_lossy(&error.into_vec()).replace('\0', "\u{fffd}");
        CString::new(text).expect("there is no NUL any more")
    })
}

/// Takes ownership of a handle and drops it. Errors and panics while it closes are not reported.
pub(crate) fn free<T>(handle: Option<Box<T>>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_inside_a_text_does_not_cut_it() {
        assert_eq!(c_string("a\0b").to_str().unwrap(), "a\u{fffd}b");
    }
}
