//! Converting checked bytes to text.
//!
//! Nearly all text in documents is short and ASCII, and its length varies. Code that examines it byte by byte, or word
//! by word with a loop for the remaining bytes, spends most of its time on mispredicted branches. Here the 32 bytes
//! that end with the text are examined together, with a mask for the bytes before the text: one check, no loop. There
//! are always bytes before a text, because a document begins with its length, but not always after it.

#![allow(unsafe_code)] // the standard library has no safe conversion of bytes that are known to be ASCII to `str`

use ascii::AsAsciiStr;
use millstream_core::{Error, ErrorKind, Result};

/// The highest bit of each byte: none is set in ASCII.
pub(crate) const HIGHS: u128 = u128::from_ne_bytes([0x80; 16]);

/// A table of masks: 32 zero bytes, followed by 32 bytes with the highest bit set. The 32 bytes from index n on are the
/// mask for checking 32 bytes of which the last n are text.
static MASKS: [u8; 64] = {
    let mut masks = [0; 64];
    let mut at = 32;
    while at < masks.len() {
        masks[at] = 0x80;
        at += 1;
    }
    masks
};

/// Checks the text that consists of the last `len` bytes of `bytes`. For errors, it begins at `at`.
///
/// # Errors
/// [`Utf8Invalid`](millstream_core::ErrorKind::Utf8Invalid) if it is not UTF-8.
#[inline]
pub(crate) fn text_of_tail(bytes: &[u8], len: usize, at: usize) -> Result<&str> {
    let text = &bytes[bytes.len() - len..];
    match bytes.last_chunk() {
        Some(tail) if is_ascii_tail(tail, len) => {
            // SAFETY: `text` is the last `len` bytes of `tail`, because both end where `bytes` ends, and these bytes
            // are ASCII, which is UTF-8.
            Ok(unsafe { str::from_utf8_unchecked(text) })
        }
        _ => text_at(text, at),
    }
}

/// Whether `len` is at most 32 and the last `len` of these bytes are ASCII.
#[inline]
fn is_ascii_tail(tail: &[u8; 32], len: usize) -> bool {
    let Some(mask) = MASKS.get(len..).and_then(|masks| masks.first_chunk::<32>()) else { return false };
    let half = |bytes: &[u8; 32], at: usize| u128::from_ne_bytes(*bytes[at..].first_chunk().expect("16 of 32 bytes"));
    (half(tail, 0) & half(mask, 0)) | (half(tail, 16) & half(mask, 16)) == 0
}

/// Checks text that begins at `at`.
///
/// # Errors
/// [`Utf8Invalid`](millstream_core::ErrorKind::Utf8Invalid) if it is not UTF-8.
#[inline]
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Result<&str> {
    // The standard library examines short text byte by byte.
    if let Ok(text) = bytes.as_ascii_str() {
        return Ok(text.as_str());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => Err(bad_text(bytes, error.valid_up_to(), at)),
    }
}

#[cold]
fn bad_text(bytes: &[u8], good: usize, at: usize) -> Error {
    Error::new(ErrorKind::Utf8Invalid)
        .with_found(format!("0x{:02x}", bytes[good]))
        .with_expected("UTF-8")
        .with_offset((at + good) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes are mostly ASCII, so that both paths are tested.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(0u8..0x80, 0..70),
            ".{0,40}".prop_map(String::into_bytes),
            prop::collection::vec(0u8.., 0..70),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 1024 }, failure_persistence: None, ..Default::default() })]

        #[test]
        fn text_is_what_the_standard_library_says(bytes in any_bytes(), cut in 0usize..70) {
            let cut = cut.min(bytes.len());
            for bytes in [&bytes[..], &bytes[cut..], &bytes[..cut]] {
                prop_assert_eq!(text_at(bytes, 0).ok(), str::from_utf8(bytes).ok());
            }
        }

        #[test]
        fn text_at_the_end_is_no_other(before in prop::collection::vec(0u8.., 0..40), text in any_bytes()) {
            let bytes = [&before[..], &text].concat();
            match (text_of_tail(&bytes, text.len(), before.len()), str::from_utf8(&text)) {
                (Ok(ours), right) => prop_assert_eq!(Ok(ours), right),
                (Err(error), right) => {
                    let good = right.expect_err("it was refused").valid_up_to();
                    prop_assert_eq!(error.offset(), Some((before.len() + good) as u64));
                }
            }
        }
    }
}
