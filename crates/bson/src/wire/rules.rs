//! How deep, how strict, and what to do with text that is not UTF-8.

/// What reading a document accepts.
///
/// ```
/// use millstream::bson::{Document, Rules, Strictness};
/// let bytes = b"\x05\0\0\0\0 and more";
/// assert!(Document::new(bytes).is_err()); // bytes behind the document
/// assert!(Document::with_rules(bytes, Rules::new().strictness(Strictness::Lenient))?.is_empty());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub(crate) depth: u16,
    pub(crate) strictness: Strictness,
    pub(crate) utf8: Utf8,
}

impl Rules {
    /// The most that [`depth`](Rules::depth) can be.
    pub(crate) const MOST_DEPTH: u16 = 1000;

    /// Depth 200, [`Strictness::Standard`], [`Utf8::Checked`].
    pub const fn new() -> Rules {
        Rules { depth: 200, strictness: Strictness::Standard, utf8: Utf8::Checked }
    }

    /// How many documents and arrays may be open at once, the outermost included: at most 1,000; larger values count as
    /// 1,000.
    ///
    /// The limit keeps recursive code (serde, values, Extended JSON) from overflowing its stack.
    pub const fn depth(self, depth: u16) -> Rules {
        Rules { depth: if depth > Rules::MOST_DEPTH { Rules::MOST_DEPTH } else { depth }, ..self }
    }

    /// Which deviations are accepted.
    pub const fn strictness(self, strictness: Strictness) -> Rules {
        Rules { strictness, ..self }
    }

    /// What to do if text is not UTF-8.
    pub const fn utf8(self, utf8: Utf8) -> Rules {
        Rules { utf8, ..self }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::new()
    }
}

/// Which deviations are accepted, except those that could not be read anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strictness {
    /// Bytes after the document, booleans other than 0 and 1, and a wrong inner length of the old binary subtype.
    Lenient,
    /// None of that. Keys of arrays are ignored, and keys may repeat (the first is found, as in MongoDB).
    #[default]
    Standard,
    /// Also the keys of arrays must be "0", "1", …, and no key may repeat within a document.
    ///
    /// This requires a scan of the whole document, [`Document::check`](crate::Document::check);
    /// [`from_document`](crate::from_document) and [`decode_document`](crate::decode_document) begin with it. Access to
    /// single members ([`Document::get`](crate::Document::get), iteration, a [`Cursor`](crate::Cursor)) does not check
    /// it.
    Strict,
}

/// What to do if text or a key is not UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Utf8 {
    /// Report an error, [`Utf8Invalid`](millstream_core::ErrorKind::Utf8Invalid).
    #[default]
    Checked,
    /// Owned text has U+FFFD instead; for borrowed text it is still an error.
    Lossy,
}
