//! Paths of keys: converting them from and to text, and finding the path of the value at an offset.

use crate::Cursor;
use crate::ElementType;
use crate::scalar::{shown, shown_key};
use crate::wire::rules::{Rules, Strictness, Utf8};
use millstream_core::{Error, ErrorKind, Result};

/// Splits a path in the notation for users: keys and array positions separated by dots. A key that is empty or contains
/// a dot or a quote is written as a JSON string.
///
/// ```
/// use millstream::bson::split_path;
/// assert_eq!(split_path("items.3.price")?, ["items", "3", "price"]);
/// assert_eq!(split_path(r#"hosts."a.b".port"#)?, ["hosts", "a.b", "port"]);
/// assert!(split_path("")?.is_empty()); // the document itself
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// [`TextInvalid`](ErrorKind::TextInvalid) for a quoted key that does not end or is not followed by a dot or the end.
pub fn split_path(path: &str) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (key, after) = match rest.starts_with('"') {
            true => quoted(path, rest)?,
            false => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].to_string(), &rest[end..])
            }
        };
        keys.push(key);
        rest = match after.strip_prefix('.') {
            Some("") => return Err(bad_path(path, path.len())),
            Some(rest) => rest,
            None if after.is_empty() => after,
            None => return Err(bad_path(path, path.len() - after.len())),
        };
    }
    Ok(keys)
}

/// Reads the quoted key at the start of `rest`, and returns it with the remaining text.
fn quoted<'a>(path: &str, rest: &'a str) -> Result<(String, &'a str)> {
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    match stream.next() {
        Some(Ok(key)) => Ok((key, &rest[stream.byte_offset()..])),
        _ => Err(bad_path(path, path.len() - rest.len())),
    }
}

fn bad_path(path: &str, at: usize) -> Error {
    Error::new(ErrorKind::TextInvalid)
        .with_found(format!("the path {}", shown(path)))
        .with_expected("keys separated by dots; keys that contain a dot or a quote as JSON strings")
        .with_offset(at as u64)
}

/// Joins keys to a path that [`split_path`] can split.
///
/// ```
/// use millstream::bson::join_path;
/// assert_eq!(join_path(["a.b", "c"]), r#""a.b".c"#);
/// ```
pub fn join_path<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> String {
    let mut path = String::new();
    for (i, key) in keys.into_iter().enumerate() {
        let key = key.as_ref();
        if i > 0 {
            path.push('.');
        }
        if key.is_empty() || key.contains(['.', '"', '\\']) || key.contains(char::is_control) {
            path.push_str(&serde_json::Value::from(key).to_string());
        } else {
            path.push_str(key);
        }
    }
    path
}

/// The maximum number of keys of a path that are kept: a malicious document could have a path as long as itself.
const MOST_KEYS: usize = 32;

/// The path of the value that contains `at`, an offset from the root's first byte. It is found by scanning the document
/// again, so that no other code has to keep track of it. The path ends where the document cannot be read. For arrays it
/// contains positions.
pub fn path_at(root: &[u8], at: usize) -> Option<String> {
    let mut keys: Vec<String> = Vec::new();
    let mut deeper = 0;
    let rules = Rules::new().strictness(Strictness::Lenient).utf8(Utf8::Lossy);
    // The lengths of open documents are not checked, because they can be wrong.
    let mut cursor = Cursor::inside(root, 4.min(root.len()), 0, 0, rules);
    let mut is_array = false;
    'open: loop {
        let mut passed = 0;
        while let Ok(Some((kind, key))) = cursor.next() {
            let start = cursor.offset();
            if at < start {
                // The offset is in the type byte or in the key itself.
                break 'open;
            }
            let mut after = cursor.clone();
            // A value without bytes, such as null, is at the position of the next element. An error at that position
            // belongs to the value if the byte there is a valid type or the end of the document; otherwise it belongs
            // to the next element.
            let is_here =
                at == start && root.get(at).is_some_and(|&byte| byte == 0 || ElementType::from_byte(byte).is_some());
            if !is_here && after.skip(kind).is_ok() && at >= after.offset() {
                cursor = after;
                passed += 1;
                continue;
            }
            if keys.len() == MOST_KEYS {
                deeper += 1;
            } else if is_array {
                keys.push(passed.to_string());
            } else {
                keys.push(String::from_utf8_lossy(key).into_owned());
            }
            is_array = kind == ElementType::Array;
            let skip = match kind {
                ElementType::Document | ElementType::Array => 4,
                ElementType::CodeWithScope => {
                    let mut inside = Cursor::inside(root, (start + 4).min(root.len()), 0, 0, rules);
                    match inside.string_bytes() {
                        Ok(_) if inside.offset() + 4 <= at => inside.offset() + 4 - start,
                        _ => break 'open,
                    }
                }
                _ => break 'open,
            };
            if at < start + skip || start + skip > root.len() {
                break 'open;
            }
            cursor = Cursor::inside(root, start + skip, 0, 0, rules);
            continue 'open;
        }
        break;
    }
    (!keys.is_empty()).then(|| join_with_more(&keys, deeper))
}

/// Joins the first keys of a path that continues with `more` keys. Long keys are truncated.
fn join_with_more(keys: &[String], more: usize) -> String {
    let mut path = join_path(keys.iter().map(|key| shown_key(key)));
    if more > 0 {
        path.push_str(&format!(".(and {more} more)"));
    }
    path
}

/// Joins the keys of a path, up to the number that an error shows.
pub(crate) fn join_shortened(keys: &[String]) -> String {
    let shown = keys.len().min(MOST_KEYS);
    join_with_more(&keys[..shown], keys.len() - shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_split_and_join() {
        for (text, keys) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a.b.0", &["a", "b", "0"]),
            (r#""""#, &[""]),
            (r#""a.b".c"#, &["a.b", "c"]),
            (r#"a."\\"."\"""#, &["a", "\\", "\""]),
            ("größe.ü", &["größe", "ü"]),
        ] {
            assert_eq!(split_path(text).unwrap(), keys, "{text}");
            assert_eq!(join_path(keys), text);
        }
        for bad in ["a.", "\"a", "\"a\"b", "\"a\"."] {
            assert_eq!(split_path(bad).unwrap_err().kind(), ErrorKind::TextInvalid, "{bad}");
        }
    }

    #[test]
    fn errors_are_short_however_long_the_keys() {
        use crate::{Document, Strictness, append_element, from_json};
        let long = "ü".repeat(100_000);
        let mut bytes = vec![0; 4];
        append_element(&mut bytes, &long, &1).unwrap();
        append_element(&mut bytes, &long, &2).unwrap();
        bytes.push(0);
        let len = bytes.len() as i32;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        let rules = Rules::new().strictness(Strictness::Strict);
        let error = Document::with_rules(&bytes, rules).unwrap().check().unwrap_err();
        assert!(error.to_string().len() < 1000, "{}", error.to_string().len());
        let error = Document::new(&bytes).unwrap().get::<&str>(&long).unwrap_err();
        assert!(error.to_string().len() < 1000, "{}", error.to_string().len());
        assert_eq!(error.path(), Some(format!("{}…", "ü".repeat(30)).as_str()));
        for text in [
            format!(r#"{{"{long}\u0000": 1}}"#),
            format!(r#"{{"{long}": nothing}}"#),
            format!(r#"{{"a": {{"$numberInt": "{long}"}}}}"#),
            format!(r#"{{"a": {{"$numberDouble": "{long}"}}}}"#),
            format!(r#"{{"a": {{"$uuid": "{long}"}}}}"#),
            format!(r#"{{"a": {{"$oid": "{long}"}}}}"#),
            format!(r#"{{"a": {{"$binary": {{"base64": "", "subType": "{long}"}}}}}}"#),
            format!(r#"{{"a": {{"$numberInt": "1", "{long}": 1}}}}"#),
        ] {
            let error = from_json(&text).unwrap_err();
            assert!(error.to_string().len() < 1000, "{}: {}", error.to_string().len(), &text[..20]);
        }
    }

    #[test]
    fn the_path_of_a_place() {
        // {"a": {"b": [1, 2]}, "c": null, "d": 3}
        let bytes = b"\x2d\0\0\0\x03a\0\x1b\0\0\0\x04b\0\x13\0\0\0\x100\0\x01\0\0\0\x101\0\x02\0\0\0\0\0\x0ac\0\x10d\0\x03\0\0\0\0";
        for (at, path) in [
            (0, None),
            (4, None),
            (7, Some("a")),
            (14, Some("a.b")),
            (21, Some("a.b.0")),
            (28, Some("a.b.1")),
            (37, Some("c")),
            (40, Some("d")),
        ] {
            assert_eq!(path_at(bytes, at).as_deref(), path, "{at}");
        }
        // The same with wrong lengths, and with a document that is cut at any position.
        for len in 0..bytes.len() {
            for at in 0..bytes.len() {
                let _ = path_at(&bytes[..len], at);
            }
        }
    }
}
