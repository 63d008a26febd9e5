//! Rules: the maximum depth, the strictness, and the handling of text that is not UTF-8.

/// The rules for reading a document.
///
/// ```
/// use millstream::bson::{Document, Rules, Strictness};
/// let bytes = b"\x05\0\0\0\0 and more";
/// assert!(Document::new(bytes).is_err()); // bytes after the document
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
    /// The maximum of [`depth`](Rules::depth).
    pub(crate) const MOST_DEPTH: u16 = 1000;

    /// The default rules: depth 200, [`Strictness::Standard`], [`Utf8::Checked`].
    pub const fn new() -> Rules {
        Rules { depth: 200, strictness: Strictness::Standard, utf8: Utf8::Checked }
    }

    /// Sets how many documents and arrays may be open at once, including the outermost one. The maximum is 1,000;
    /// larger values are reduced to it.
    ///
    /// The limit prevents recursive code (serde, values, Extended JSON) from overflowing its stack.
    pub const fn depth(self, depth: u16) -> Rules {
        Rules { depth: if depth > Rules::MOST_DEPTH { Rules::MOST_DEPTH } else { depth }, ..self }
    }

    /// Sets which deviations are accepted.
    pub const fn strictness(self, strictness: Strictness) -> Rules {
        Rules { strictness, ..self }
    }

    /// Sets what to do with text that is not UTF-8.
    pub const fn utf8(self, utf8: Utf8) -> Rules {
        Rules { utf8, ..self }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::new()
    }
}

/// Which deviations from the standard are accepted, among those that do not prevent reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strictness {
    /// Accepts bytes after the document, booleans other than 0 and 1, and a wrong inner length of the old binary
    /// subtype.
    Lenient,
    /// Accepts none of these. Keys of arrays are ignored, and keys may be repeated (the first is found, as in MongoDB).
    #[default]
    Standard,
    /// As `Standard`; in addition, the keys of arrays must be "0", "1", …, and no key may occur twice in a document.
    ///
    /// This requires a scan of the whole document, [`Document::check`](crate::Document::check);
    /// [`from_document`](crate::from_document) and [`decode_document`](crate::decode_document) call it first. Access to
    /// single members ([`Document::get`](crate::Document::get), iteration, a [`Cursor`](crate::Cursor)) does not check
    /// this.
    Strict,
}

/// What to do with text or a key that is not UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Utf8 {
    /// Report an error, [`Utf8Invalid`](millstream_core::ErrorKind::Utf8Invalid).
    #[default]
    Checked,
    /// Replace invalid bytes with U+FFFD in owned text. For borrowed text it is still an error.
    Lossy,
}
