//! The careful path, which finds tokens first and then their values. It handles all cases, including errors.

use std::ops::Range;

use super::ends::Ends;
use super::{Separator, is_space};
use crate::error::{Error, ErrorKind};

/// The methods that [`Scan`](super::Scan) needs, in a separate trait so that no other crate can implement it.
pub trait Value: Sized {
    /// The number of tokens of a value.
    const TOKENS: usize;

    /// Returns the value and its length if the fast path can decide; `None` leaves the decision to
    /// [`take`](Self::take).
    fn quick<E: Ends>(input: &[u8], ends: E) -> Option<(Self, usize)>;

    /// Creates a value from the next tokens.
    ///
    /// # Errors
    /// Fails if a token is missing, or if it is no such value.
    fn take(tokens: &mut Tokens<'_>) -> Result<Self, Wrong>;
}

/// The reason why tokens are not a value.
#[derive(Debug)]
pub struct Wrong {
    kind: ErrorKind,
    /// The position of the token.
    pub token: Range<usize>,
    /// The number of the token within the value, from 1.
    number: usize,
    expected: String,
}

impl Wrong {
    /// Returns whether there was no token.
    #[inline]
    pub fn is_end(&self) -> bool {
        self.kind == ErrorKind::ValueMissing && self.number == 1
    }

    /// Returns whether the last tokens were missing.
    #[inline]
    pub fn is_missing(&self) -> bool {
        self.kind == ErrorKind::ValueMissing
    }

    /// Returns the error without its position. `input` contains the tokens.
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

/// Formats a token for a message, without control characters and with a limited length.
fn show(token: &[u8]) -> String {
    const MOST: usize = 64;
    let more = if token.len() > MOST { "..." } else { "" };
    format!("{}{more}", token[..token.len().min(MOST)].escape_ascii())
}

/// The tokens of `input`, which contains all required tokens or ends with the stream.
pub struct Tokens<'a> {
    input: &'a [u8],
    /// The position at which to search for the next token: after the last token, and after its terminator if that is
    /// consumed with it.
    at: usize,
    separator: Separator,
    count: usize,
}

impl<'a> Tokens<'a> {
    /// Creates an iterator over the tokens of `input`.
    #[inline]
    pub fn new(input: &'a [u8], separator: Separator) -> Tokens<'a> {
        Tokens { input, at: 0, separator, count: 0 }
    }

    /// Returns the number of bytes that have been used.
    #[inline]
    pub fn used(&self) -> usize {
        self.at
    }

    /// Returns the next token that `parse` accepts.
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

    /// Returns the position of the next token. With a separator byte, a token may be empty.
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

/// The extent of the next tokens. It is found piece by piece, so that no byte is examined twice.
pub struct Extent {
    separator: Separator,
    /// The number of tokens that have not ended yet.
    left: usize,
    /// Whether the examined bytes end within a token, which only matters for white space.
    in_token: bool,
    /// The number of bytes, from the first on, that have been examined.
    scanned: usize,
}

impl Extent {
    /// Starts a search for `count` tokens.
    #[inline]
    pub fn new(count: usize, separator: Separator) -> Extent {
        Extent { separator, left: count, in_token: false, scanned: 0 }
    }

    /// Examines the bytes that `input` has gained since the last call, after its [`leading`](Extent::leading) bytes
    /// were removed. Returns the end of the last token, if it has been found.
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

    /// Returns how many bytes at the front of `input` precede the first token and need not be kept.
    pub fn leading(&self, input: &[u8]) -> usize {
        match self.separator {
            Separator::Space if self.scanned == 0 => {
                input.iter().position(|&byte| !is_space(byte)).unwrap_or(input.len())
            }
            _ => 0,
        }
    }
}
