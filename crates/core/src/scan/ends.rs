//! The separator between two values, for inlined code only.

use super::is_space;

/// The maximum number of white-space bytes before a value that are handled here; more are rare.
const SPACES: usize = 8;

/// A separator as a separate type, so that the compiler generates specialised code for each.
pub trait Ends: Copy {
    /// Returns the start of the value.
    fn skip(self, input: &[u8]) -> Option<usize>;

    /// Returns how many bytes are consumed with a value that ends at `end`, or `None` if it does not end there.
    fn after(self, input: &[u8], end: usize) -> Option<usize>;
}

/// [`Separator::Space`].
#[derive(Clone, Copy)]
pub struct Space;

impl Ends for Space {
    #[inline(always)]
    fn skip(self, input: &[u8]) -> Option<usize> {
        // Nearly all values are preceded by one byte, and the first value by none.
        match input {
            [first, ..] if *first > b' ' => Some(0),
            [first, second, ..] if is_space(*first) && *second > b' ' => Some(1),
            _ => skip_more(input),
        }
    }

    #[inline(always)]
    fn after(self, input: &[u8], end: usize) -> Option<usize> {
        is_space(*input.get(end)?).then_some(end)
    }
}

/// Handles longer white space, outside the common path.
#[cold]
fn skip_more(input: &[u8]) -> Option<usize> {
    input.iter().take(SPACES).position(|&byte| !is_space(byte))
}

/// [`Separator::Byte`].
#[derive(Clone, Copy)]
pub struct Byte(u8);

impl Byte {
    /// Returns `None` for a byte that may be part of a number, because the end of the token must then be found first.
    #[inline(always)]
    pub(super) fn new(byte: u8) -> Option<Byte> {
        (!byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.')).then_some(Byte(byte))
    }
}

impl Ends for Byte {
    #[inline(always)]
    fn skip(self, _: &[u8]) -> Option<usize> {
        Some(0)
    }

    #[inline(always)]
    fn after(self, input: &[u8], end: usize) -> Option<usize> {
        match *input.get(end)? {
            byte if byte == self.0 => Some(end + 1),
            b'\n' => Some(end + 1),
            b'\r' if *input.get(end + 1)? == b'\n' => Some(end + 2),
            _ => None,
        }
    }
}
