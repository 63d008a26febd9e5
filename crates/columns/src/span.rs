//! Where the text of a value is.

/// Where the text of a value is in the bytes of its block, or in those that were decoded from it. [`ABSENT`] stands for null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

pub(crate) const ABSENT: Span = Span { start: u32::MAX, end: 0 };

/// Marks a span of decoded bytes. A block is shorter, and so is what is decoded from it.
const DECODED: u32 = 1 << 31;

impl Span {
    /// Returns the span of decoded bytes.
    pub(crate) fn decoded(start: usize, end: usize) -> Span {
        Span { start: start as u32 | DECODED, end: end as u32 | DECODED }
    }

    /// Returns the position in the block, or the one in the decoded bytes as an error.
    pub(crate) fn position(self) -> Result<usize, usize> {
        if self.start & DECODED == 0 { Ok(self.start as usize) } else { Err((self.start & !DECODED) as usize) }
    }

    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns the text; `None` is null.
    #[inline(always)]
    pub(crate) fn get<'a>(self, block: &'a [u8], decoded: &'a [u8]) -> Option<Content<'a>> {
        let Span { start, end } = self;
        if start & DECODED == 0 {
            return Content::new(block, start as usize, end as usize);
        }
        Content::new(decoded, (start & !DECODED) as usize, (end & !DECODED) as usize)
    }
}

/// A text, and the memory after it, which a copy may read too.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) len: usize,
}

impl<'a> Content<'a> {
    /// Returns the text between two positions; `None` if there are no such positions.
    #[inline]
    pub(crate) fn new(memory: &'a [u8], start: usize, end: usize) -> Option<Content<'a>> {
        let rest = memory.get(start..)?;
        let len = end.wrapping_sub(start);
        (len <= rest.len()).then_some(Content { rest, len })
    }

    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        &self.rest[..self.len]
    }
}
