//! JSON pointers (RFC 6901), and the names of members that they select.

use crate::error::{Error, ErrorKind, Result};

/// A part of a pointer: the name of a member, or the number of an element.
#[derive(Clone, Debug)]
pub(super) struct Token {
    name: String,
}

impl Token {
    /// Returns the parts of a pointer.
    pub(super) fn parse(pointer: &str) -> Result<Vec<Token>> {
        let wrong = |found: String, expected: &str| {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
        };
        if pointer.is_empty() {
            return Ok(Vec::new());
        }
        let Some(rest) = pointer.strip_prefix('/') else {
            return wrong(
                format!("the JSON pointer {pointer:?}"),
                "a text that is empty or begins with '/', such as /a/items",
            );
        };
        let mut tokens = Vec::new();
        for token in rest.split('/') {
            if token.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
                return wrong(format!("'~' in the JSON pointer {pointer:?}"), "~0 for '~', and ~1 for '/'");
            }
            tokens.push(Token { name: token.replace("~1", "/").replace("~0", "~") });
        }
        Ok(tokens)
    }

    /// Returns the name of the member.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the element, if it is one.
    pub(super) fn index(&self) -> Option<u64> {
        let is_index = self.name == "0" || !self.name.starts_with(['0', '+', '-']);
        self.name.parse().ok().filter(|_| is_index)
    }

    /// Returns the largest number of bytes that the name can have in a document, in which each unit of UTF-16 may be an
    /// escape sequence of six bytes.
    pub(super) fn longest(&self) -> usize {
        6 * self.name.len()
    }

    /// Returns whether a name is this one. `raw` is valid and without its quotes.
    pub(super) fn is(&self, raw: &[u8]) -> bool {
        if !raw.contains(&b'\\') {
            return raw == self.name.as_bytes();
        }
        unescape(raw).is_some_and(|name| name == self.name)
    }

    /// Returns the pointer to the first `count` parts, for errors.
    pub(super) fn join(tokens: &[Token]) -> String {
        tokens.iter().map(|token| format!("/{}", token.name.replace('~', "~0").replace('/', "~1"))).collect()
    }
}

/// Returns the text of a valid string without its quotes, or `None` if it is not Unicode.
fn unescape(raw: &[u8]) -> Option<String> {
    let mut chars = std::str::from_utf8(raw).ok()?.chars();
    let mut units: Vec<u16> = Vec::new();
    while let Some(c) = chars.next() {
        let plain = match c {
            '\\' => match chars.next()? {
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).ok()?);
                    continue;
                }
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                c => c,
            },
            c => c,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).ok()
}
