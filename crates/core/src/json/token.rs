//! The tokens of text that is in memory: where strings, numbers and whole values end.
//!
//! Every function takes the text and a position, and returns `None` for text that the grammar does not allow or that ends
//! too early. The automaton `Value` finds out which of them, and where.

pub use super::DEPTH;

/// Returns the position after whitespace.
#[inline(always)]
pub fn blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Finds the end of a string. `at` is after the opening quote. Returns the position of the closing quote, and whether
/// there are escape sequences.
#[inline]
pub fn string(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let at = plain(bytes, at);
    if bytes.get(at) == Some(&b'"') { Some((at, false)) } else { escaped(bytes, at) }
}

/// The same, from the first byte that is not ordinary text.
fn escaped(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some((at, true)),
            b'\\' => match bytes.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at += 6,
                _ => return None,
            },
            _ => return None,
        }
        at = plain(bytes, at);
    }
}

/// Returns the position of the next quote, backslash or control character.
#[inline(always)]
pub fn plain(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    /// Sets the high bit of each byte that is 0, and perhaps of bytes above such a byte.
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word
    }
    while let Some(&chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = control | zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64));
        let found = found & (ONES << 7);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        at += 1;
    }
    at
}

/// Returns the position after a number.
#[inline]
pub fn number(bytes: &[u8], mut at: usize) -> Option<usize> {
    let digits = |start: usize| {
        let mut at = start;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > start).then_some(at)
    };
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(at)?;
    }
    Some(at)
}

/// Returns the position after `true`, `false` or `null`.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let word: &[u8] = match rest.first()? {
        b't' => b"true",
        b'f' => b"false",
        _ => b"null",
    };
    rest.starts_with(word).then_some(at + word.len())
}

/// Returns the position after a value of any type. `depth` is the number of arrays and objects around it.
pub fn value(bytes: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => Some(string(bytes, at + 1)?.0 + 1),
        b'-' | b'0'..=b'9' => number(bytes, at),
        b'{' | b'[' if depth >= DEPTH => None,
        b'{' => {
            at = blank(bytes, at + 1);
            if bytes.get(at) == Some(&b'}') {
                return Some(at + 1);
            }
            loop {
                at = blank(bytes, name(bytes, at)?.0 + 1);
                if bytes.get(at) != Some(&b':') {
                    return None;
                }
                at = value(bytes, blank(bytes, at + 1), depth + 1)?;
                at = blank(bytes, at);
                match bytes.get(at)? {
                    b',' => at = blank(bytes, at + 1),
                    b'}' => return Some(at + 1),
                    _ => return None,
                }
            }
        }
        b'[' => {
            at = blank(bytes, at + 1);
            if bytes.get(at) == Some(&b']') {
                return Some(at + 1);
            }
            loop {
                at = value(bytes, at, depth + 1)?;
                at = blank(bytes, at);
                match bytes.get(at)? {
                    b',' => at = blank(bytes, at + 1),
                    b']' => return Some(at + 1),
                    _ => return None,
                }
            }
        }
        _ => word(bytes, at),
    }
}

/// Finds the end of a name, like [`string`]. `at` is the opening quote.
#[inline]
pub fn name(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    if bytes.get(at) == Some(&b'"') { string(bytes, at + 1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_form_of_json() {
        for good in ["0", "-0", "12", "0.5", "-1.25e+10", "1E5", "9999999999999999999999"] {
            assert_eq!(number(good.as_bytes(), 0), Some(good.len()), "{good}");
        }
        for bad in ["", "-", ".5", "1.", "1e", "1e+", "+1", "-a"] {
            assert_eq!(number(bad.as_bytes(), 0), None, "{bad}");
        }
        // Its end is for the caller to check.
        assert_eq!(number(b"007", 0), Some(1));
    }
}
