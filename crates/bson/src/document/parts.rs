//! Documents as plain data, for languages that can only store plain data: a document can be taken apart, reassembled,
//! and continued at a position stored as a number.
//!
//! For any numbers, the result is a document, a value or an error: the functions here validate them.

use crate::{Cursor, Document, ElementType, Rules};
use millstream_core::{Error, ErrorKind, Result};

/// The fields of a [`Document`], except for its rules.
///
/// ```
/// use millstream::bson::{Document, Rules};
/// let document = Document::new(b"\x14\0\0\0\x03a\0\x0c\0\0\0\x10n\0\x2a\0\0\0\0\0")?;
/// let inner: Document = document.require("a")?;
/// let parts = inner.parts();
/// assert_eq!((parts.root.len(), parts.start, parts.offset, parts.depth_left), (19, 7, 7, 199));
/// assert_eq!(Document::from_parts(parts, Rules::new())?.require::<i32>("n")?, 42);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The bytes from the first byte of the outermost document to the last byte of this one. They are needed for the
    /// path in an error.
    pub root: &'a [u8],
    /// The position of this document in `root`.
    pub start: usize,
    /// The position in the stream, in bytes.
    pub offset: u64,
    /// The number of further levels of documents and arrays that may be entered, including this one.
    pub depth_left: u16,
}

impl<'a> Document<'a> {
    /// Takes the document apart.
    pub fn parts(&self) -> Parts<'a> {
        let cursor = self.cursor();
        Parts { root: cursor.bytes(), start: cursor.offset(), offset: self.offset(), depth_left: cursor.depth_left() }
    }

    /// Reassembles a document.
    ///
    /// # Errors
    /// As for [`with_rules`](Document::with_rules); bytes after the document are ignored.
    pub fn from_parts(parts: Parts<'a>, rules: Rules) -> Result<Document<'a>> {
        let base = parts.offset.wrapping_sub(parts.start as u64);
        let start = parts.start.min(parts.root.len());
        Document::at(&mut Cursor::inside(parts.root, start, base, parts.depth_left, rules))
            .map_err(|error| crate::document::locate(parts.root, base, error))
    }

    /// Iterates over the members, starting with the one at byte `at`, counted from the document's first byte. Pass 0
    /// for the first member, otherwise a position that this function returned. `each` gets the type, the key, and a
    /// cursor, from which it must read the payload; if it returns false, that member was the last. Returns the position
    /// of the next member, or [`len`](Document::len) at the end.
    ///
    /// ```
    /// use millstream::bson::Document;
    /// let document = Document::new(b"\x13\0\0\0\x10a\0\x01\0\0\0\x10b\0\x02\0\0\0\0")?;
    /// let mut keys = Vec::new();
    /// let at = document.members_from(0, |kind, key, cursor| {
    ///     keys.push(key);
    ///     cursor.skip(kind).map(|()| keys.len() < 1)
    /// })?;
    /// assert_eq!((keys, at), (vec![&b"a"[..]], 11));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors in a member, or errors of `each`.
    pub fn members_from(
        &self,
        at: usize,
        mut each: impl FnMut(ElementType, &'a [u8], &mut Cursor<'a>) -> Result<bool>,
    ) -> Result<usize> {
        let Parts { root, start, .. } = self.parts();
        let mut cursor = self.cursor();
        let _outer = cursor.enter().map_err(|error| self.locate(error))?; // never left
        let at = start + if at == 0 { 4 } else { at.min(self.len()) };
        let mut cursor = match at < root.len() {
            true => Cursor::inside(cursor.bytes(), at, cursor.base(), cursor.depth_left(), cursor.rules()),
            false => return Ok(self.len()),
        };
        loop {
            let next = cursor.next().and_then(|member| match member {
                Some((kind, key)) => each(kind, key, &mut cursor).map(Some),
                None => Ok(None),
            });
            match next.map_err(|error| self.locate(error))? {
                Some(true) => {}
                Some(false) => return Ok(cursor.offset() - start),
                None => return Ok(self.len()),
            }
        }
    }

    /// Reads a value whose position is known: `at` is the position of its payload, counted from the document's first
    /// byte, and `depth_left` is what the [cursor](Cursor::depth_left) returned there. `read` gets a cursor at that
    /// position.
    ///
    /// # Errors
    /// [`ArgumentInvalid`](ErrorKind::ArgumentInvalid) for a position outside the document, or the error of `read`.
    pub fn read_at<T>(&self, at: usize, depth_left: u16, read: impl FnOnce(&mut Cursor<'a>) -> Result<T>) -> Result<T> {
        let whole = self.cursor();
        if at > self.len() {
            return Err(Error::new(ErrorKind::ArgumentInvalid)
                .with_found("a value of another document")
                .with_expected("one of this document"));
        }
        let at = whole.offset() + at;
        let mut cursor = Cursor::inside(whole.bytes(), at, whole.base(), depth_left, whole.rules());
        read(&mut cursor).map_err(|error| self.locate(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FromBson, ValueRef};

    /// {"a": {"b": [1, 2]}, "c": null, "d": 3}
    const NESTED: &[u8] =
        b"\x2d\0\0\0\x03a\0\x1b\0\0\0\x04b\0\x13\0\0\0\x100\0\x01\0\0\0\x101\0\x02\0\0\0\0\0\x0ac\0\x10d\0\x03\0\0\0\0";

    #[test]
    fn members_go_on_where_they_were_left() {
        let document = Document::new(NESTED).unwrap();
        for step in 1..5 {
            let (mut at, mut keys) = (0, Vec::new());
            while at < document.len() {
                let mut left = step;
                at = document
                    .members_from(at, |kind, key, cursor| {
                        keys.push(key);
                        left -= 1;
                        cursor.skip(kind).map(|()| left > 0)
                    })
                    .unwrap();
            }
            assert_eq!(keys, [b"a", b"c", b"d"]);
        }
    }

    #[test]
    fn errors_have_their_place_in_the_stream() {
        let mut bytes = NESTED.to_vec();
        bytes[25] = 0x77; // the type of "1" in "b"
        let document = Document::new(&bytes).unwrap().at_offset(1000);
        let inner: Document = document.require("a").unwrap();
        let again = Document::from_parts(inner.parts(), Rules::new()).unwrap();
        assert_eq!((again.offset(), again.as_bytes()), (1007, inner.as_bytes()));
        let array = again.require::<crate::Array>("b").unwrap().as_document();
        let error = array.members_from(0, |kind, _, cursor| cursor.skip(kind).map(|()| true)).unwrap_err();
        assert_eq!((error.kind(), error.path(), error.offset()), (ErrorKind::DocumentInvalid, Some("a.b"), Some(1025)));
        let error = again.read_at(7, 198, |cursor| i32::from_bson(ElementType::Array, cursor)).unwrap_err();
        assert_eq!((error.path(), error.offset()), (Some("a.b"), Some(1014)));
    }

    #[test]
    fn no_number_is_trusted() {
        let document = Document::new(NESTED).unwrap();
        for start in 0..NESTED.len() + 2 {
            let parts = Parts { root: NESTED, start, offset: 0, depth_left: 200 };
            let _ = Document::from_parts(parts, Rules::new()).and_then(|document| document.check());
            let _ = document.members_from(start, |kind, _, cursor| cursor.skip(kind).map(|()| true));
            for kind in ElementType::ALL {
                let _ = document.read_at(start, 200, |cursor| ValueRef::from_bson(*kind, cursor));
            }
        }
        assert_eq!(document.read_at(46, 1, |cursor| cursor.i32()).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        // An invalid depth is also rejected: the array is one level too deep.
        let parts = Parts { root: NESTED, start: 0, offset: 0, depth_left: 2 };
        let shallow = Document::from_parts(parts, Rules::new()).unwrap();
        assert_eq!(shallow.check().unwrap_err().kind(), ErrorKind::TooDeep);
        // The depth is limited by the rules.
        for depth_left in [2, 3, 1000, u16::MAX] {
            let rules = Rules::new().depth(2);
            let parts = Parts { root: NESTED, start: 0, offset: 0, depth_left };
            let document = Document::from_parts(parts, rules).unwrap();
            assert_eq!(document.parts().depth_left, 2);
            assert_eq!(document.check().unwrap_err().kind(), ErrorKind::TooDeep);
            let inner = |cursor: &mut crate::Cursor<'_>| Ok(cursor.depth_left());
            assert_eq!(document.read_at(7, depth_left, inner).unwrap(), 2);
        }
    }
}
