//! The tokens of a record: those of the grammar, and the text of strings.
//!
//! Every function returns `None` for text that the grammar does not allow. What is wrong is found later, by
//! [`explain`](super::explain).

pub(super) use millstream::json_tokens::{DEPTH, blank, name, number, string, value, word};

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
}
