//! The careful path: tokens first, then their values. It handles everything, including errors.

use std::ops::Range;

use super::ends::Ends;
use super::{Separator, is_space};
use crate::error::{Error, ErrorKind};

/// What [`Scan`](super::Scan) needs; separate so that no other crate can implement it.
pub trait Value: Sized {
    /// How many tokens it consists of.
    const TOKENS: usize;

    /// The value and its length if the plain path can tell them; `None` leaves the decision to [`take`](Self::take).
    fn quick<E: Ends>(input: &[u8], ends: E) -> Option<(Self, usize)>;

    /// Makes one from the next tokens.
    fn take(tokens: &mut Tokens<'_>) -> Result<Self, Wrong>;
}

/// Why tokens are not a value.
#[derive(Debug)]
pub struct Wrong {
    kind: ErrorKind,
    /// Where the token is.
    pub token: Range<usize>,
    /// Which token of the value it is, from 1.
    number: usize,
    expected: String,
}

impl Wrong {
    /// Whether there was no token at all.
    #[inline]
    pub fn is_end(&self) -> bool {
        self.kind == ErrorKind::ValueMissing && self.number == 1
    }

    /// Whether the last tokens were missing.
    #[inline]
    pub fn is_missing(&self) -> bool {
        self.kind == ErrorKind::ValueMissing
    }

    /// The error, without the place; `input` is where the tokens come from.
    pub fn error<T: Value>(self, input: &[u8]) -> Error {
        let found = match self.kind {
            ErrorKind::ValueMissing => "the end of the input".to_owned(),
            _ if self.token.is_empty() => "an empty field".to_owned(),
            _ => show(&input[self.token]),
        };
        let expected = match T::TOKENS {
            1 => self.expected,
            count => format!("{} as value {} of {count}", self.expected, self.number),
        };
        Error::new(self.kind).with_found(found).with_expected(expected)
    }
}

/// A token for a message: no control characters, and not too long.
fn show(token: &[u8]) -> String {
    const MOST: usize = 64;
    let more = if token.len() > MOST { "..." } else { "" };
    format!("{}{more}", token[..token.len().min(MOST)].escape_ascii())
}

/// The tokens of bytes that contain all that are needed, or end with the input.
pub struct Tokens<'a> {
    input: &'a [u8],
    /// Where to look for the next one: after the last one, and its terminator if that is consumed with it.
    at: usize,
    separator: Separator,
    count: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of `input`.
    #[inline]
    pub fn new(input: &'a [u8], separator: Separator) -> Tokens<'a> {
        Tokens { input, at: 0, separator, count: 0 }
    }

    /// The bytes that are used up.
    #[inline]
    pub fn used(&self) -> usize {
        self.at
    }

    /// The next token that `parse` accepts.
    pub(super) fn parse<T>(
        &mut self,
        parse: impl FnOnce(&[u8]) -> Result<T, ErrorKind>,
        expected: impl FnOnce() -> String,
    ) -> Result<T, Wrong> {
        self.count += 1;
        let token = self.next().ok_or(ErrorKind::ValueMissing);
        let range = token.clone().unwrap_or(self.input.len()..self.input.len());
        token.and_then(|token| parse(&self.input[token])).map_err(|kind| Wrong {
            kind,
            token: range,
            number: self.count,
            expected: expected(),
        })
    }
}

impl Iterator for Tokens<'_> {
    type Item = Range<usize>;

    /// Where the next token is. Between separator bytes it may be empty.
    fn next(&mut self) -> Option<Range<usize>> {
        let rest = &self.input[self.at..];
        match self.separator {
            Separator::Space => {
                let start = self.at + rest.iter().position(|&byte| !is_space(byte))?;
                let len = self.input[start..].iter().position(|&byte| is_space(byte));
                self.at = len.map_or(self.input.len(), |len| start + len);
                Some(start..self.at)
            }
            Separator::Byte(_) if rest.is_empty() => None,
            Separator::Byte(separator) => {
                let start = self.at;
                let Some(len) = rest.iter().position(|&byte| byte == separator || byte == b'\n') else {
                    self.at = self.input.len();
                    return Some(start..self.at);
                };
                self.at = start + len + 1;
                let is_crlf = rest[len] == b'\n' && rest[..len].ends_with(b"\r");
                Some(start..start + len - usize::from(is_crlf))
            }
        }
    }
}

/// How far the bytes of the next tokens reach, found piece by piece: no byte is looked at twice.
pub struct Extent {
    separator: Separator,
    /// How many tokens are still to end.
    left: usize,
    /// Whether the examined bytes end within a token, which only matters for white space.
    in_token: bool,
    /// How many bytes, from the first, have been examined.
    scanned: usize,
}

impl Extent {
    /// Looks for `count` tokens.
    #[inline]
    pub fn new(count: usize, separator: Separator) -> Extent {
        Extent { separator, left: count, in_token: false, scanned: 0 }
    }

    /// Examines what `input`, whose [`leading`](Extent::leading) bytes are gone, has more than the last time. Returns
    /// where the last token ends, if it does.
    pub fn look(&mut self, input: &[u8]) -> Option<usize> {
        match self.separator {
            Separator::Space => {
                let mut at = self.scanned;
                while let Some(len) = input[at..].iter().position(|&byte| is_space(byte) == self.in_token) {
                    at += len;
                    self.left -= usize::from(self.in_token);
                    if self.left == 0 {
                        return Some(at);
                    }
                    self.in_token = !self.in_token;
                }
            }
            Separator::Byte(separator) => {
                for end in memchr::memchr2_iter(separator, b'\n', &input[self.scanned..]) {
                    self.left -= 1;
                    if self.left == 0 {
                        return Some(self.scanned + end);
                    }
                }
            }
        }
        self.scanned = input.len();
        None
    }

    /// How many bytes at the front of `input` are before the first token: they need not be kept.
    pub fn leading(&self, input: &[u8]) -> usize {
        match self.separator {
            Separator::Space if self.scanned == 0 => {
                input.iter().position(|&byte| !is_space(byte)).unwrap_or(input.len())
            }
            _ => 0,
        }
    }
}
