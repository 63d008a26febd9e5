//! The bytes of a block, and the text of its strings that have escape sequences.

use super::stop::{Reason, Stop};
use super::token;

/// Where the text of a value is. [`ABSENT`] stands for null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

pub(super) const ABSENT: Span = Span { start: u32::MAX, end: 0 };

/// Marks a span of `decoded`. A block is shorter, and so is what is decoded from it.
const DECODED: u32 = 1 << 31;

/// The text of a block.
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    decoded: Vec<u8>,
    /// Where in `decoded` a string starts, and where in `bytes`.
    origins: Vec<(u32, u32)>,
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes, decoded: Vec::new(), origins: Vec::new() }
    }

    /// Decodes the string between these positions, whose grammar was checked.
    pub(super) fn decode(&mut self, start: usize, end: usize) -> Result<Span, Box<Stop>> {
        let first = self.decoded.len();
        self.origins.push((first as u32, start as u32));
        if let Err(at) = token::unescape(&self.bytes[start..end], &mut self.decoded) {
            return Err(Stop::new(start + at, Reason::Surrogate));
        }
        Ok(Span { start: first as u32 | DECODED, end: self.decoded.len() as u32 | DECODED })
    }

    /// Returns a text; `None` is null.
    #[inline]
    pub(super) fn get(&self, Span { start, end }: Span) -> Option<&[u8]> {
        if start & DECODED == 0 {
            return self.bytes.get(start as usize..end as usize);
        }
        self.decoded.get((start & !DECODED) as usize..(end & !DECODED) as usize)
    }

    /// Returns the position of a value in the block.
    pub(super) fn position(&self, Span { start, .. }: Span) -> usize {
        if start & DECODED == 0 {
            return start as usize;
        }
        let found = self.origins.partition_point(|&(first, _)| first <= start & !DECODED);
        self.origins[..found].last().map_or(0, |&(_, at)| at as usize)
    }

    /// Returns the name at this position, for a message.
    pub(super) fn name(&self, at: usize) -> String {
        let mut name = Vec::new();
        if let Some((end, _)) = token::name(self.bytes, at) {
            // A surrogate was refused before.
            let _ = token::unescape(&self.bytes[at + 1..end], &mut name);
        }
        String::from_utf8_lossy(&name).into_owned()
    }
}
