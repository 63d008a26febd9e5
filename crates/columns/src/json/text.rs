//! The bytes of a block, and the text of its strings that have escape sequences.

use super::stop::{Reason, Stop};
use super::token;
use crate::span::{Content, Span};

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
        Ok(Span::decoded(first, self.decoded.len()))
    }

    /// Returns a text; `None` is null.
    #[inline]
    pub(super) fn get(&self, span: Span) -> Option<Content<'_>> {
        span.get(self.bytes, &self.decoded)
    }

    /// Returns the position of a value in the block.
    pub(super) fn position(&self, span: Span) -> usize {
        span.position().unwrap_or_else(|at| {
            let found = self.origins.partition_point(|&(first, _)| first as usize <= at);
            self.origins[..found].last().map_or(0, |&(_, at)| at as usize)
        })
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
