//! Validation of every byte of a document.

use crate::document::Document;
use crate::scalar::shown;
use crate::wire::cursor::Cursor;
use crate::wire::quick::surely_right;
use crate::wire::text::text_at;
use crate::{ElementType, Layout, Strictness, Utf8};
use millstream_core::{Error, ErrorKind, Result};
use std::collections::HashSet;

impl Document<'_> {
    /// Checks every byte: types, lengths, terminators, UTF-8 of keys and text (except with [`Utf8::Lossy`]), depth, and
    /// the requirements of the [`Strictness`] of its rules.
    ///
    /// ```
    /// use millstream::bson::Document;
    /// let bytes = b"\x0e\0\0\0\x02s\0\x02\0\0\0\xff\0\0";
    /// let error = Document::new(bytes)?.check().unwrap_err();
    /// assert_eq!((error.path(), error.offset()), (Some("s"), Some(11)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the document.
    pub fn check(&self) -> Result<()> {
        let rules = self.rules();
        if rules.strictness == Strictness::Standard
            && rules.utf8 == Utf8::Checked
            && surely_right(self.as_bytes(), self.cursor().depth_left())
        {
            return Ok(());
        }
        careful(&mut self.cursor()).map_err(|error| self.locate(error))
    }
}

/// An open document or array.
struct Open<'a> {
    outer: crate::wire::cursor::Outer<'a>,
    /// The keys that strict rules need to remember.
    strict: Option<Keys<'a>>,
}

enum Keys<'a> {
    /// All keys of a document so far.
    Seen(HashSet<&'a [u8]>),
    /// The number of keys of an array so far.
    Count(usize),
}

pub(crate) fn careful(cursor: &mut Cursor<'_>) -> Result<()> {
    let strict = cursor.rules().strictness == Strictness::Strict;
    let keys = |kind| match kind {
        _ if !strict => None,
        ElementType::Array => Some(Keys::Count(0)),
        _ => Some(Keys::Seen(HashSet::new())),
    };
    let mut open = vec![Open { outer: cursor.enter()?, strict: keys(ElementType::Document) }];
    while let Some(top) = open.last_mut() {
        let key_at = cursor.offset() + 1;
        let Some((kind, key)) = cursor.next()? else {
            let outer = top.outer;
            open.pop();
            cursor.leave(outer);
            continue;
        };
        if cursor.rules().utf8 == Utf8::Checked {
            text_at(key, key_at)?;
        }
        match &mut top.strict {
            None => {}
            Some(Keys::Count(count)) => {
                if std::str::from_utf8(key).ok() != Some(count.to_string().as_str()) {
                    return Err(bad_key(key, format!("the array's next position, \"{count}\""), key_at));
                }
                *count += 1;
            }
            Some(Keys::Seen(seen)) => {
                let is_new = seen.insert(key);
                if !is_new {
                    return Err(bad_key(key, "a key that has not occurred before".to_string(), key_at));
                }
            }
        }
        match kind.layout() {
            Layout::Document => {
                open.push(Open { outer: cursor.enter()?, strict: keys(kind) });
            }
            Layout::TextAndDocument => {
                let mut inside = cursor.code_with_scope()?;
                inside.text()?;
                // This call is recursive, but each scope counts as a level of the depth that the rules allow.
                careful(&mut inside)?;
            }
            Layout::Text => drop(cursor.text()?),
            Layout::Binary => drop(cursor.binary()?),
            Layout::Bool => drop(cursor.bool()?),
            Layout::TwoCStrings => {
                for _ in 0..2 {
                    let at = cursor.offset();
                    let bytes = cursor.cstring()?;
                    cursor.text_of(bytes, at)?;
                }
            }
            Layout::TextAndId => {
                cursor.text()?;
                cursor.take::<12>()?;
            }
            Layout::Fixed(_) => cursor.skip(kind)?,
        }
    }
    Ok(())
}

#[cold]
fn bad_key(key: &[u8], expected: String, at: usize) -> Error {
    Error::new(ErrorKind::DocumentInvalid)
        .with_found(format!("the key {}", shown(&String::from_utf8_lossy(key))))
        .with_expected(expected)
        .with_offset(at as u64)
}
