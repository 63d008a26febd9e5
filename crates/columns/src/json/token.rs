//! The tokens of a record: where strings, numbers and whole values end.
//!
//! Every function returns `None` for text that the grammar does not allow. What is wrong is found later, by
//! [`explain`](super::explain).

use super::DEPTH;

/// Returns the position after whitespace.
#[inline(always)]
pub(super) fn blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Finds the end of a string. `at` is after the opening quote. Returns the position of the closing quote, and whether
/// there are escape sequences.
#[inline]
pub(super) fn string(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
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
fn plain(bytes: &[u8], mut at: usize) -> usize {
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
pub(super) fn number(bytes: &[u8], mut at: usize) -> Option<usize> {
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
pub(super) fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let word: &[u8] = match rest.first()? {
        b't' => b"true",
        b'f' => b"false",
        _ => b"null",
    };
    rest.starts_with(word).then_some(at + word.len())
}

/// Returns the position after a value of any type. `depth` is the number of arrays and objects around it.
pub(super) fn value(bytes: &[u8], mut at: usize, depth: usize) -> Option<usize> {
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
pub(super) fn name(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    if bytes.get(at) == Some(&b'"') { string(bytes, at + 1) } else { None }
}

/// Appends the text of a string that has escape sequences. Its grammar was checked.
///
/// # Errors
/// Returns the position of a surrogate that has no partner.
pub(super) fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + length]);
        at += length;
        let byte = match raw[at + 1] {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let first = unit(raw, at).ok_or(at)?;
                let pair = [first, unit(raw, at + 6).unwrap_or_default()];
                let found = char::decode_utf16(pair).next().and_then(Result::ok).ok_or(at)?;
                out.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6 * found.len_utf16();
                continue;
            }
            byte => byte,
        };
        out.push(byte);
        at += 2;
    }
    out.extend_from_slice(&raw[at..]);
    Ok(())
}

/// The UTF-16 code unit of an escape sequence `\uXXXX` at this position.
fn unit(raw: &[u8], at: usize) -> Option<u16> {
    let digits = raw.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(raw: &str) -> Result<String, usize> {
        let mut out = Vec::new();
        unescape(raw.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn escape_sequences_become_characters() {
        assert_eq!(decode(r#"a\"\\\/\b\f\n\r\tz"#).unwrap(), "a\"\\/\u{8}\u{c}\n\r\tz");
        assert_eq!(decode(r"\u00e9\ud83d\ude00\u0000x").unwrap(), "\u{e9}\u{1f600}\0x");
        for (raw, at) in [(r"a\ud800", 1), (r"\ud800x", 0), (r"xx\udc00\ud800", 2), (r"\ud800\u0041", 0)] {
            assert_eq!(decode(raw), Err(at), "{raw}");
        }
    }

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
