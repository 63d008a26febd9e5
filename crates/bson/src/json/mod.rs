//! Extended JSON: documents as text that includes their types.
//!
//! ```
//! use millstream::bson::{Document, Json, from_json};
//! let map = from_json(r#"{"n": 1, "id": {"$oid": "57e193d7a9cc81b4027498b5"}}"#)?;
//! let bytes = map.to_vec()?;
//! let document = Document::new(&bytes)?;
//! assert_eq!(document.to_json(Json::Relaxed)?, r#"{"n":1,"id":{"$oid":"57e193d7a9cc81b4027498b5"}}"#);
//! assert!(document.to_json(Json::Canonical)?.starts_with(r#"{"n":{"$numberInt":"1"},"#));
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! The format: <https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md> (version
//! 2; version 1 is not read). Reading canonical text gives the same bytes again, except for details that the format
//! cannot represent: the payload of a NaN, the keys of arrays, and documents that look like the wrapper of a type.

mod double;
mod payload;
mod read;
mod wrapper;
mod write;

pub use read::{from_json, json_to_bson};
pub(super) use write::append_value;

use super::{Cursor, Document, ElementType, Map, Rules, ToBson, Value};
use millstream_core::Result;

/// The two forms of Extended JSON. Both are accepted when reading, even mixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Json {
    /// Every type is preserved: `{"$numberInt":"1"}`, `{"$date":{"$numberLong":"0"}}`.
    Canonical,
    /// Numbers are JSON numbers, and dates in the years 1970 to 9999 are text: `1`, `{"$date":"1970-01-01T00:00:00Z"}`.
    #[default]
    Relaxed,
}

impl Document<'_> {
    /// Converts the document to Extended JSON, on one line.
    ///
    /// # Errors
    /// Errors in the document: see [`check`](Document::check).
    pub fn to_json(&self, mode: Json) -> Result<String> {
        let mut text = Vec::with_capacity(2 * self.len());
        self.append_json(&mut text, mode)?;
        Ok(String::from_utf8(text).expect("all text has been checked"))
    }

    /// Appends the document as Extended JSON, on one line without a line end.
    ///
    /// ```
    /// use millstream::bson::{Document, Json};
    /// let mut lines = Vec::new();
    /// for bytes in [b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0", b"\x0c\0\0\0\x10n\0\x2b\0\0\0\0"] {
    ///     Document::new(bytes)?.append_json(&mut lines, Json::Relaxed)?;
    ///     lines.push(b'\n');
    /// }
    /// assert_eq!(lines, b"{\"n\":42}\n{\"n\":43}\n");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors in the document: see [`check`](Document::check). In that case nothing is appended.
    pub fn append_json(&self, out: &mut Vec<u8>, mode: Json) -> Result<()> {
        let len = out.len();
        append_value(out, &mut self.cursor(), ElementType::Document, mode).map_err(|error| {
            out.truncate(len);
            self.locate(error)
        })
    }

    /// Passes the document to `sink` as Extended JSON, in pieces of about 64 KiB. Each piece is valid UTF-8. The
    /// whole text is never in memory, however long it is.
    ///
    /// ```
    /// use millstream::bson::{Document, Json};
    /// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
    /// let mut text = Vec::new();
    /// document.write_json(Json::Relaxed, |piece| {
    ///     text.extend_from_slice(piece);
    ///     Ok(())
    /// })?;
    /// assert_eq!(text, br#"{"n":42}"#);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors in the document, after the pieces before them (use [`check`](Document::check) to find them first), and
    /// errors of the sink, unchanged.
    pub fn write_json(&self, mode: Json, mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let written = write::write_value(&mut self.cursor(), ElementType::Document, mode, &mut sink);
        written.map_err(|error| self.locate(error))?
    }
}

impl super::Element<'_> {
    /// Appends only the value, as Extended JSON.
    ///
    /// ```
    /// use millstream::bson::{Document, Json};
    /// let document = Document::new(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?;
    /// let mut text = Vec::new();
    /// document.find("n")?.unwrap().append_json(&mut text, Json::Canonical)?;
    /// assert_eq!(text, br#"{"$numberInt":"42"}"#);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors in the value. In that case nothing is appended.
    pub fn append_json(&self, out: &mut Vec<u8>, mode: Json) -> Result<()> {
        let len = out.len();
        append_value(out, &mut self.cursor(), self.kind(), mode).map_err(|error| {
            out.truncate(len);
            self.locate(error)
        })
    }

    /// Passes only the value to `sink` as Extended JSON in pieces, like [`Document::write_json`].
    ///
    /// # Errors
    /// As for [`Document::write_json`].
    pub fn write_json(&self, mode: Json, mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let written = write::write_value(&mut self.cursor(), self.kind(), mode, &mut sink);
        written.map_err(|error| self.locate(error))?
    }
}

impl Map {
    /// Converts the document to Extended JSON, on one line.
    ///
    /// # Errors
    /// Returns the errors of [`to_vec`](Map::to_vec).
    pub fn to_json(&self, mode: Json) -> Result<String> {
        let bytes = self.to_vec()?;
        Document::with_rules(&bytes, Rules::new().depth(Rules::MOST_DEPTH))?.to_json(mode)
    }
}

impl Value {
    /// Converts the value to Extended JSON, on one line.
    ///
    /// ```
    /// use millstream::bson::{Json, Value};
    /// assert_eq!(Value::from(vec![1, 2]).to_json(Json::Relaxed)?, "[1,2]");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Map::to_vec`].
    pub fn to_json(&self, mode: Json) -> Result<String> {
        let mut payload = Vec::new();
        self.to_bson(&mut payload)?;
        let mut text = Vec::new();
        let mut cursor = Cursor::new(&payload, Rules::new().depth(Rules::MOST_DEPTH));
        append_value(&mut text, &mut cursor, self.kind(), mode)?;
        Ok(String::from_utf8(text).expect("all text has been checked"))
    }
}
