//! Bytes that cannot be typed: `\n`, `\r`, `\t`, `\0`, `\\` and `\xHH` in a delimiter.

/// The bytes that `text` stands for; at least one.
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
