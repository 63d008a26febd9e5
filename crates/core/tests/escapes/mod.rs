//! The escapes in the vectors of CSV and JSON.

/// Undoes `\n`, `\xHH` and the like; `\[N]` is N brackets.
pub fn unescape(text: &str) -> Vec<u8> {
    let (mut bytes, mut chars) = (Vec::new(), text.chars());
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => bytes.push(b'\n'),
            ('\\', Some('r')) => bytes.push(b'\r'),
            ('\\', Some('t')) => bytes.push(b'\t'),
            ('\\', Some('x')) => {
                let hex: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&hex, 16).unwrap());
            }
            ('\\', Some(c @ ('[' | ']'))) => {
                let count: String = chars.by_ref().take_while(|&c| c != ']').collect();
                bytes.extend(vec![c as u8; count.parse().unwrap()]);
            }
            ('\\', Some(c)) => bytes.extend(c.to_string().bytes()),
            (c, _) => bytes.extend(c.to_string().bytes()),
        }
    }
    bytes
}
