//! One value, as an automaton over bytes.

use super::{DEPTH, blank, shown, token};
use crate::error::{Error, ErrorKind, Result};

/// Follows one value of JSON, in pieces of any size. Its memory is one byte for each open array or object.
///
/// It accepts the grammar of RFC 8259, except that text may be any bytes other than control characters.
#[derive(Clone, Debug)]
pub struct Value {
    state: State,
    /// Whether the text that is open is the name of a member.
    is_name: bool,
    /// The open arrays and objects, outermost first; `true` is an object.
    open: Vec<bool>,
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value is expected.
    Start,
    /// After `[`: a value or `]`.
    FirstElement,
    /// After `{`: a name or `}`.
    FirstName,
    /// After a comma in an object: a name.
    Name,
    Colon,
    /// After a value inside an array or object.
    Next,
    Text,
    /// After a backslash.
    Escape,
    /// Inside `\u`: the number of digits that are missing.
    Hex(u8),
    /// Inside `true`, `false` or `null`: the bytes that are missing.
    Word(&'static [u8]),
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl State {
    /// Returns whether a number can end here.
    fn ends_number(self) -> bool {
        matches!(self, State::Zero | State::Integer | State::Fraction | State::Power)
    }

    /// Returns the state after one more byte of a number.
    fn in_number(self, byte: u8) -> Option<State> {
        match (self, byte) {
            (State::Minus, b'0') => Some(State::Zero),
            (State::Minus, b'1'..=b'9') | (State::Integer, b'0'..=b'9') => Some(State::Integer),
            (State::Zero | State::Integer, b'.') => Some(State::Point),
            (State::Zero | State::Integer | State::Fraction, b'e' | b'E') => Some(State::Exponent),
            (State::Point | State::Fraction, b'0'..=b'9') => Some(State::Fraction),
            (State::Exponent, b'+' | b'-') => Some(State::Sign),
            (State::Exponent | State::Sign | State::Power, b'0'..=b'9') => Some(State::Power),
            _ => None,
        }
    }
}

impl Default for Value {
    fn default() -> Value {
        Value::new(DEPTH)
    }
}

impl Value {
    /// Creates an automaton before a value with at most `limit` arrays and objects inside each other.
    pub fn new(limit: usize) -> Value {
        Value { state: State::Start, is_name: false, open: Vec::new(), limit }
    }

    /// Returns to the state before a value.
    pub fn restart(&mut self, limit: usize) {
        self.state = State::Start;
        self.is_name = false;
        self.open.clear();
        self.limit = limit;
    }

    /// Follows the value through `input`. Returns where it ends, or `None` if all of `input` is part of it and more may
    /// follow. A number ends before the first byte that is not part of it. Whitespace before the value is skipped.
    ///
    /// # Errors
    /// Returns [`JsonInvalid`](ErrorKind::JsonInvalid) or [`TooDeep`](ErrorKind::TooDeep) with the offset in `input`.
    pub fn advance(&mut self, input: &[u8]) -> Result<Option<usize>> {
        if let Some(end) = self.whole(input) {
            return Ok(Some(end));
        }
        let mut at = 0;
        loop {
            let Some(&byte) = input.get(at) else { return Ok(None) };
            self.state = match self.state {
                State::Text => {
                    at = token::plain(input, at);
                    match input.get(at) {
                        None => return Ok(None),
                        Some(b'"') if std::mem::take(&mut self.is_name) => State::Colon,
                        Some(b'"') => {
                            if self.open.is_empty() {
                                return Ok(Some(at + 1));
                            }
                            State::Next
                        }
                        Some(b'\\') => State::Escape,
                        Some(_) => return Err(self.unexpected(input, at)),
                    }
                }
                State::Start | State::FirstElement | State::FirstName | State::Name | State::Colon | State::Next
                    if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') =>
                {
                    at += blank(&input[at..]);
                    continue;
                }
                State::Next => match (byte, self.open.last()) {
                    (b',', Some(true)) => State::Name,
                    (b',', Some(false)) => State::Start,
                    (b'}', Some(true)) | (b']', Some(false)) => {
                        if self.close() {
                            return Ok(Some(at + 1));
                        }
                        State::Next
                    }
                    _ => return Err(self.unexpected(input, at)),
                },
                State::FirstName if byte == b'}' => {
                    if self.close() {
                        return Ok(Some(at + 1));
                    }
                    State::Next
                }
                State::FirstElement if byte == b']' => {
                    if self.close() {
                        return Ok(Some(at + 1));
                    }
                    State::Next
                }
                State::FirstName | State::Name if byte == b'"' => {
                    self.is_name = true;
                    State::Text
                }
                State::Colon if byte == b':' => State::Start,
                State::Start | State::FirstElement => match byte {
                    b'"' => State::Text,
                    b'{' | b'[' => {
                        if self.open.len() >= self.limit {
                            return Err(Error::new(ErrorKind::TooDeep).with_offset(at as u64));
                        }
                        self.open.push(byte == b'{');
                        if byte == b'{' { State::FirstName } else { State::FirstElement }
                    }
                    b'-' => State::Minus,
                    b'0' => State::Zero,
                    b'1'..=b'9' => State::Integer,
                    b't' => State::Word(b"rue"),
                    b'f' => State::Word(b"alse"),
                    b'n' => State::Word(b"ull"),
                    _ => return Err(self.unexpected(input, at)),
                },
                State::Escape => match byte {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::Text,
                    b'u' => State::Hex(4),
                    _ => return Err(self.unexpected(input, at)),
                },
                State::Hex(missing) if byte.is_ascii_hexdigit() => match missing {
                    1 => State::Text,
                    missing => State::Hex(missing - 1),
                },
                State::Word([first, rest @ ..]) if byte == *first => match rest {
                    [] if self.open.is_empty() => return Ok(Some(at + 1)),
                    [] => State::Next,
                    rest => State::Word(rest),
                },
                state => match state.in_number(byte) {
                    Some(next) => next,
                    None if !state.ends_number() => return Err(self.unexpected(input, at)),
                    None if self.open.is_empty() => return Ok(Some(at)),
                    None => {
                        self.state = State::Next;
                        continue;
                    }
                },
            };
            at += 1;
        }
    }

    /// Returns where the value ends if all of it is valid and in `input`, which is found without the automaton. It is the only
    /// attempt for this value, so no byte is examined more than twice.
    #[inline]
    fn whole(&self, input: &[u8]) -> Option<usize> {
        if self.state != State::Start || !self.open.is_empty() {
            return None;
        }
        // A larger limit is left to the automaton, which does not recurse.
        let around = DEPTH.saturating_sub(self.limit);
        let start = blank(input);
        let end = token::value(input, start, around)?;
        // More digits may follow.
        let is_number = matches!(input[start], b'-' | b'0'..=b'9');
        (!is_number || end < input.len()).then_some(end)
    }

    /// Returns whether the value is complete if no byte follows: whether it is a number.
    pub fn may_end(&self) -> bool {
        self.open.is_empty() && self.state.ends_number()
    }

    /// Closes the innermost array or object, and returns whether it was the value.
    #[inline]
    fn close(&mut self) -> bool {
        self.open.pop();
        self.open.is_empty()
    }

    /// Returns the error for the byte at this position.
    fn unexpected(&self, input: &[u8], at: usize) -> Error {
        let byte = input[at];
        let found = match (self.state, byte) {
            (State::Text, byte) => format!("the control character {} in a string", shown(byte)),
            (State::Escape, byte) => format!("{} after a backslash", shown(byte)),
            (State::Start, b']' | b'}' | b',') if !self.open.is_empty() => {
                format!("{} after a comma or a colon", shown(byte))
            }
            (State::Name, b'}') => "'}' after a comma".into(),
            (_, byte) => shown(byte),
        };
        Error::new(ErrorKind::JsonInvalid).with_found(found).with_expected(self.expected()).with_offset(at as u64)
    }

    /// Returns what can follow.
    pub fn expected(&self) -> &'static str {
        match self.state {
            State::Start => "a value",
            State::FirstElement => "a value or ']'",
            State::FirstName => "a name in double quotes or '}'",
            State::Name => "a name in double quotes",
            State::Colon => "':'",
            State::Next | State::Zero | State::Integer | State::Fraction | State::Power => match self.open.last() {
                Some(true) => "',' or '}'",
                _ => "',' or ']'",
            },
            State::Text => "an escape sequence such as \\n, or the closing quote",
            State::Escape => "one of \" \\ / b f n r t u",
            State::Hex(_) => "four hexadecimal digits after \\u",
            State::Word(_) => "true, false or null",
            State::Minus | State::Point | State::Sign => "a digit",
            State::Exponent => "a digit or a sign",
        }
    }

    /// Returns where a value is that was cut off.
    pub fn inside(&self) -> &'static str {
        match (self.state, self.open.last()) {
            (State::Text | State::Escape | State::Hex(_), _) => "inside a string",
            (_, Some(true)) => "inside an object",
            (_, Some(false)) => "inside an array",
            (State::Start, None) => "before a value",
            (State::Word(_), None) => "inside a word",
            (_, None) => "inside a number",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Follows the value through one byte after another, for which [`Value::whole`] finds only words of one byte, of which
    /// there are none.
    fn in_pieces(input: &[u8], limit: usize) -> Result<Option<usize>> {
        let mut value = Value::new(limit);
        for at in 0..input.len() {
            if let Some(used) = value.advance(&input[at..=at]).map_err(|error| error.shift_offset(at as u64))? {
                return Ok(Some(at + used));
            }
        }
        Ok(None)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 16 } else { 2048 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_value_in_memory_is_the_value_in_pieces(
            pieces in vec(select(vec![
                "{", "}", "[", "]", ",", ":", " ", "\n", "\"", "\\", "\"a\":", "\"a long name, of two words\"", "1", "0", "-", "1.5e-3",
                "true", "null", "fals", "{}", "[]", "{\"a\":[1,", "]}", "\\u00e9", "\\n", "\u{1}", "e", ".",
            ]), 0..12),
            limit in 0..5_usize,
        ) {
            let input = pieces.concat();
            let mut value = Value::new(limit);
            let found = value.advance(input.as_bytes());
            let expected = in_pieces(input.as_bytes(), limit);
            prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{}", input);
        }
    }

    #[test]
    fn values_beyond_the_default_limit_are_followed() {
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert_eq!(Value::new(5000).advance(deep.as_bytes()).unwrap(), Some(10_000));
        assert_eq!(Value::new(4999).advance(deep.as_bytes()).unwrap_err().offset(), Some(4999));
        for limit in [127, 128, 129] {
            let just = "[".repeat(limit) + &"]".repeat(limit);
            assert_eq!(Value::new(limit).advance(just.as_bytes()).unwrap(), Some(2 * limit));
            assert_eq!(Value::new(limit - 1).advance(just.as_bytes()).unwrap_err().kind(), ErrorKind::TooDeep);
        }
    }
}
