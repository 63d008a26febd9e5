//! The documents of stores: errors and lists.

use std::fmt;

use percent_encoding::percent_decode_str;
use serde::Deserialize;

/// The document with which a store explains an error. The text is shown, so it has no control characters.
#[derive(Debug, Deserialize)]
#[serde(rename = "Error", rename_all = "PascalCase")]
pub(crate) struct ErrorDocument {
    pub(crate) code: String,
    #[serde(default)]
    message: String,
}

impl fmt::Display for ErrorDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
        f.write_str(&shown(&self.code))?;
        match self.message.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", shown(&self.message)),
        }
    }
}

/// Parses an error document, which other servers do not send.
pub(crate) fn error_document(body: &str) -> Option<ErrorDocument> {
    document(body, "Error")
}

/// Parses a document whose root has this name.
pub(crate) fn document<T: for<'de> Deserialize<'de>>(body: &str, root: &str) -> Option<T> {
    // Azure's documents begin with this character.
    let body = body.trim_start_matches('\u{feff}');
    // The deserializer does not check the name of the root. A store may send blanks while it works on a request.
    let mut reader = quick_xml::Reader::from_str(body);
    let found = loop {
        match reader.read_event().ok()? {
            quick_xml::events::Event::Start(start) => break start.local_name().as_ref() == root.as_bytes(),
            quick_xml::events::Event::Empty(_) | quick_xml::events::Event::Eof => return None,
            _ => {}
        }
    };
    if found { quick_xml::de::from_str(body.trim_ascii()).ok() } else { None }
}

/// The names in a list, which a store encodes if that was requested: XML cannot contain all characters.
pub(crate) struct Names {
    is_encoded: bool,
}

impl Names {
    /// `encoding` is the `EncodingType` of the list.
    pub(crate) fn new(encoding: Option<&str>) -> Names {
        Names { is_encoded: encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("url")) }
    }

    pub(crate) fn decode(&self, name: &str) -> String {
        match self.is_encoded {
            true => percent_decode_str(&name.replace('+', " ")).decode_utf8_lossy().into_owned(),
            false => name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_refusal_is_found() {
        let reason = |body: &str| error_document(body).map(|document| document.to_string());
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>It does\nnot exist.</Message></Error>";
        assert_eq!(reason(body).unwrap(), "NoSuchKey: It doesnot exist.");
        assert_eq!(reason(&format!("\u{feff}{body}")).unwrap(), "NoSuchKey: It doesnot exist.");
        assert_eq!(reason(" \n <Error xmlns=\"http://a/\"><Code>A</Code><Other/></Error>").unwrap(), "A");
        for body in ["<html>", "<Error><Code>unfinished", "", "<Other><Code>A</Code></Other>", "<Error/>"] {
            assert_eq!(reason(body), None, "{body}");
        }
    }
}
