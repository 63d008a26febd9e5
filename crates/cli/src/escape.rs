//! Escape sequences: `\n`, `\r`, `\t`, `\0`, `\\` and `\xHH` in a delimiter, and in the other direction characters that
//! a terminal would interpret.

use std::borrow::Cow;
use std::fmt::Write as _;

use millstream::is_trick;

/// Returns the text with these characters as `\uHHHH`. Inside a JSON string its meaning does not change.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, is_trick)
}

/// Escapes text of several lines like [`visible`]; line feeds and tabs stay.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_trick(c) && !matches!(c, '\n' | '\t'))
}

/// Escapes characters that JSON leaves unescaped in strings and that a terminal would interpret. The JSON value does
/// not change.
pub(crate) fn make_visible(json: &mut Vec<u8>) {
    if let Cow::Owned(shown) = visible(&String::from_utf8_lossy(json)) {
        *json = shown.into_bytes();
    }
}

fn escape(text: &str, is_escaped: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for c in text.chars() {
        match is_escaped(c) {
            // None of these characters has more than four digits. Writing to a string cannot fail.
            true => drop(write!(shown, "\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Returns the bytes that `text` describes, at least one.
pub(crate) fn parse(text: &str) -> Result<Vec<u8>, String> {
    if text.is_empty() {
        return Err(r"expected at least one byte, such as ';', '\t', '\0' or '\x1e'".to_string());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        bytes.push(match rest.next() {
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('0') => b'\0',
            Some('\\') => b'\\',
            Some('x') => {
                let digits = [rest.next(), rest.next()].map(|c| c.and_then(|c| c.to_digit(16)));
                let [Some(high), Some(low)] = digits else {
                    return Err(r"expected two hexadecimal digits after \x, such as \x1e".to_string());
                };
                (high * 16 + low) as u8
            }
            _ => return Err(r"expected \n, \r, \t, \0, \\ or \xHH after a backslash".to_string()),
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tricks_are_seen() {
        assert_eq!(visible("grüße 世界"), "grüße 世界");
        assert_eq!(visible("a\u{1b}[2Jb\u{9b}\u{7f}\u{202e}c\n"), r"a\u001b[2Jb\u009b\u007f\u202ec\u000a");
        let json = serde_json::Value::from("\u{9b}\u{2066}\u{1}").to_string();
        assert_eq!(serde_json::from_str::<String>(&visible(&json)).unwrap(), "\u{9b}\u{2066}\u{1}");
    }

    #[test]
    fn every_escape() {
        for (text, bytes) in [
            (";", &b";"[..]),
            ("--", b"--"),
            (r"\n\r\t\0\\", b"\n\r\t\0\\"),
            (r"\x1e\xFF", b"\x1e\xff"),
            (r"a\tb", b"a\tb"),
            ("é", "é".as_bytes()),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        for text in ["", r"\", r"\q", r"\x", r"\x1", r"\xg0"] {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with("expected "), "{text}: {message}");
        }
    }
}
