//! Writing documents member by member.

use crate::typed::to::{Positions, append_cstring, append_element, begin, end};
use crate::wire::path::path_at;
use crate::{Cursor, ElementType, Rules, ToBson};
use millstream_core::{Error, ErrorKind, Result};

/// Writes a document member by member, into reused memory.
///
/// The lengths of documents and arrays are filled in when they are closed, and array keys are numbered automatically.
/// Invalid calls, such as closing a document that is not open, return an error; an error leaves the builder unchanged.
/// [`rollback`](Builder::rollback) reverts several calls. Values can be of any type that implements [`ToBson`]; for
/// BSON types without a Rust type use [`ValueRef`](crate::ValueRef) and [`Binary`](crate::Binary). An error about a
/// value contains its key path.
///
/// ```
/// use millstream::bson::{Binary, Builder, Document};
/// let mut builder = Builder::new();
/// for n in 1..=2 {
///     builder.clear(); // and keep the memory
///     builder.append("n", &n)?;
///     builder.open_array("list")?;
///     builder.push("one")?;
///     builder.push(&Binary { subtype: 4, bytes: [7; 16] })?;
///     builder.push_document()?;
///     builder.append("deep", &true)?;
///     builder.close()?;
///     builder.close()?;
///     let document = Document::new(builder.finish()?)?;
///     assert_eq!(document.get_path::<bool>(["list", "2", "deep"])?, Some(true));
/// }
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    /// The open documents and arrays, starting with the outermost; empty when the document is finished.
    open: Vec<Open>,
    /// The maximum depth.
    depth: usize,
}

/// A position in the output of a [`Builder`] to which it can be rolled back, returned by [`Builder::mark`]. It is plain
/// data, so that other languages can store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of bytes.
    pub len: usize,
    /// The number of open documents and arrays.
    pub depth: usize,
}

/// An open document or array.
#[derive(Clone, Debug)]
struct Open {
    /// The position of its length.
    start: usize,
    /// The next key, if it is an array.
    positions: Option<Positions>,
}

impl Builder {
    /// Creates an empty document with the maximum depth of [`Rules::new`].
    pub fn new() -> Builder {
        Builder::with_depth(Rules::new().depth)
    }

    /// Creates an empty document in which at most this many documents and arrays may be open at once, including the
    /// outermost one: at least 1, at most 1,000. The content of documents and arrays that are appended as values is not
    /// checked.
    pub fn with_depth(depth: u16) -> Builder {
        let depth = Rules::new().depth(depth.max(1)).depth;
        let mut builder = Builder { bytes: Vec::new(), open: Vec::new(), depth: depth.into() };
        builder.clear();
        builder
    }

    /// Discards the content, starts an empty document, and reuses the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.open.clear();
        let start = begin(&mut self.bytes);
        self.open.push(Open { start, positions: None });
    }

    /// The number of open documents and arrays, including the outermost one; 0 when the document is finished.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether the innermost open container is an array. Values are pushed to an array, and appended to a document
    /// with a key.
    pub fn is_in_array(&self) -> bool {
        self.open.last().is_some_and(|open| open.positions.is_some())
    }

    /// Appends a member to the open document.
    ///
    /// # Errors
    /// [`ArgumentInvalid`](ErrorKind::ArgumentInvalid) in an array, [`Closed`](ErrorKind::Closed) if the document is
    /// finished, [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for a key that contains a NUL or a value that BSON
    /// cannot represent.
    #[inline]
    pub fn append<T: ToBson + ?Sized>(&mut self, key: &str, value: &T) -> Result<()> {
        self.append_with(|bytes| append_element(bytes, key, value))
    }

    /// Appends whole members to the open document with a function that appends their bytes. If the function returns an
    /// error, nothing is appended.
    #[inline]
    pub(crate) fn append_with(&mut self, append: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        self.in_document()?;
        let before = self.bytes.len();
        append(&mut self.bytes).map_err(|error| take_back(&mut self.bytes, before, error))
    }

    /// Appends a value to the open array.
    ///
    /// # Errors
    /// [`ArgumentInvalid`](ErrorKind::ArgumentInvalid) in a document, which needs keys; otherwise as for
    /// [`append`](Builder::append).
    #[inline]
    pub fn push<T: ToBson + ?Sized>(&mut self, value: &T) -> Result<()> {
        let before = self.bytes.len();
        let positions = in_array(&mut self.open)?;
        let counted = positions.clone();
        positions.append(&mut self.bytes, value.element_type());
        value.to_bson(&mut self.bytes).map_err(|error| {
            *positions = counted;
            take_back(&mut self.bytes, before, error)
        })
    }

    /// Opens a document as a member of the open document.
    ///
    /// # Errors
    /// As for [`append`](Builder::append), and [`TooDeep`](ErrorKind::TooDeep).
    pub fn open_document(&mut self, key: &str) -> Result<()> {
        self.open_member(key, ElementType::Document)
    }

    /// Opens an array as a member of the open document.
    ///
    /// # Errors
    /// As for [`append`](Builder::append), and [`TooDeep`](ErrorKind::TooDeep).
    pub fn open_array(&mut self, key: &str) -> Result<()> {
        self.open_member(key, ElementType::Array)
    }

    /// Opens a document as a value of the open array.
    ///
    /// # Errors
    /// As for [`push`](Builder::push), and [`TooDeep`](ErrorKind::TooDeep).
    pub fn push_document(&mut self) -> Result<()> {
        self.push_open(ElementType::Document)
    }

    /// Opens an array as a value of the open array.
    ///
    /// # Errors
    /// As for [`push`](Builder::push), and [`TooDeep`](ErrorKind::TooDeep).
    pub fn push_array(&mut self) -> Result<()> {
        self.push_open(ElementType::Array)
    }

    /// Closes the document or array that was opened last.
    ///
    /// # Errors
    /// [`ArgumentInvalid`](ErrorKind::ArgumentInvalid) if only the outermost document is open, which
    /// [`finish`](Builder::finish) ends; [`Closed`](ErrorKind::Closed) if the document is finished;
    /// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for 2 GiB or more.
    pub fn close(&mut self) -> Result<()> {
        match self.open.len() {
            0 => Err(finished()),
            1 => Err(misuse("a close", "a document or an array that was opened; `finish` ends the outermost")),
            _ => self.end_last(),
        }
    }

    /// The current position, for [`rollback`](Builder::rollback).
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { len: self.bytes.len(), depth: self.open.len() }
    }

    /// Reverts everything after a mark: members, values, and documents or arrays that were opened, even if they have
    /// been closed.
    ///
    /// ```
    /// use millstream::bson::{Builder, Document};
    /// let mut builder = Builder::new();
    /// builder.append("n", &1)?;
    /// let mark = builder.mark();
    /// builder.open_array("list")?;
    /// builder.push("half of it")?;
    /// builder.rollback(mark)?;
    /// assert_eq!(builder.finish()?, b"\x0c\0\0\0\x10n\0\x01\0\0\0\0");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// This scans the documents open at the mark, so it takes longer than an append.
    ///
    /// # Errors
    /// [`ArgumentInvalid`](ErrorKind::ArgumentInvalid) for a mark that is not between two members of an open document,
    /// for example because a document that was open at the mark has been closed, or because another document has been
    /// started. In that case nothing is reverted.
    pub fn rollback(&mut self, mark: Mark) -> Result<()> {
        if mark == self.mark() {
            return Ok(());
        }
        let no_place = || {
            misuse(
                "a mark outside the open documents and arrays",
                "a mark that was set after the innermost one was opened",
            )
        };
        let count = self.count_before(mark).ok_or_else(no_place)?;
        self.bytes.truncate(mark.len);
        self.open.truncate(mark.depth);
        if let Some(Open { positions: Some(positions), .. }) = self.open.last_mut() {
            *positions = Positions::from(count);
        }
        Ok(())
    }

    /// Counts the members before a mark in the document or array that was innermost at that time. `None` if it is no
    /// longer open, or if the mark is not at the end of a member.
    fn count_before(&self, mark: Mark) -> Option<usize> {
        let open = self.open.get(mark.depth.checked_sub(1)?)?;
        if self.open.get(mark.depth).is_some_and(|inner| inner.start < mark.len) {
            return None;
        }
        let mut cursor =
            Cursor::inside(self.bytes.get(..mark.len)?, (open.start + 4).min(mark.len), 0, 0, Rules::new());
        let mut count = 0;
        while cursor.offset() < mark.len {
            let (kind, _) = cursor.next().ok()??;
            cursor.skip(kind).ok()?;
            count += 1;
        }
        (mark.len >= open.start + 4).then_some(count)
    }

    /// Ends the document and returns a reference to its bytes. A second call returns the same bytes.
    ///
    /// # Errors
    /// [`ArgumentInvalid`](ErrorKind::ArgumentInvalid) while any inner document or array is open,
    /// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for 2 GiB or more.
    pub fn finish(&mut self) -> Result<&[u8]> {
        match self.open.len() {
            0 => {}
            1 => self.end_last()?,
            open => return Err(misuse(&format!("the end, but {} still open", open - 1), "a close for each")),
        }
        Ok(&self.bytes)
    }

    /// Ends the document and returns its bytes.
    ///
    /// # Errors
    /// As for [`finish`](Builder::finish).
    pub fn into_bytes(mut self) -> Result<Vec<u8>> {
        self.finish()?;
        Ok(self.bytes)
    }

    #[inline]
    fn in_document(&self) -> Result<()> {
        match self.open.last() {
            Some(Open { positions: None, .. }) => Ok(()),
            Some(_) => Err(misuse("a key in an array", "a value without a key")),
            None => Err(finished()),
        }
    }

    fn open_member(&mut self, key: &str, kind: ElementType) -> Result<()> {
        self.in_document()?;
        self.has_depth()?;
        let before = self.bytes.len();
        self.bytes.push(kind as u8);
        append_cstring(&mut self.bytes, key).map_err(|error| take_back(&mut self.bytes, before, error))?;
        self.open_here(kind);
        Ok(())
    }

    fn push_open(&mut self, kind: ElementType) -> Result<()> {
        self.has_depth()?;
        in_array(&mut self.open)?.append(&mut self.bytes, kind);
        self.open_here(kind);
        Ok(())
    }

    fn open_here(&mut self, kind: ElementType) {
        let start = begin(&mut self.bytes);
        self.open.push(Open { start, positions: (kind == ElementType::Array).then(Positions::new) });
    }

    fn has_depth(&self) -> Result<()> {
        match self.open.len() < self.depth {
            true => Ok(()),
            false => Err(with_path(
                &self.bytes,
                Error::new(ErrorKind::TooDeep)
                    .with_found(format!("more than {} nested documents and arrays", self.depth))
                    .with_expected(format!("at most {}", self.depth)),
            )),
        }
    }

    /// Ends the document or array that was opened last. There must be one.
    fn end_last(&mut self) -> Result<()> {
        let Some(last) = self.open.last() else { return Err(finished()) };
        let before = self.bytes.len();
        end(&mut self.bytes, last.start).inspect_err(|_| self.bytes.truncate(before))?;
        self.open.pop();
        Ok(())
    }
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

#[inline]
fn in_array(open: &mut [Open]) -> Result<&mut Positions> {
    match open.last_mut() {
        Some(Open { positions: Some(positions), .. }) => Ok(positions),
        Some(_) => Err(misuse("a value without a key in a document", "a key and a value")),
        None => Err(finished()),
    }
}

/// Removes the bytes that were appended before an error, and adds the path of the invalid value to the error.
#[cold]
fn take_back(bytes: &mut Vec<u8>, before: usize, error: Error) -> Error {
    let error = with_path(bytes, error);
    bytes.truncate(before);
    error
}

/// Adds the path of the value at the end of these bytes, if the error has no path yet.
#[cold]
fn with_path(bytes: &[u8], error: Error) -> Error {
    match path_at(bytes, bytes.len()) {
        Some(path) if error.path().is_none() => error.with_path(path),
        _ => error,
    }
}

#[cold]
fn misuse(found: &str, expected: &str) -> Error {
    Error::new(ErrorKind::ArgumentInvalid).with_found(found).with_expected(expected)
}

#[cold]
fn finished() -> Error {
    Error::new(ErrorKind::Closed).with_found("a finished document").with_expected("a cleared one for the next")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Strictness, ValueRef};

    #[test]
    fn what_is_built_is_right_in_every_byte() {
        let mut builder = Builder::new();
        builder.open_array("a").unwrap();
        for i in 0..1234 {
            builder.push(&i).unwrap();
        }
        builder.close().unwrap();
        builder.open_document("d").unwrap();
        builder.append("min", &ValueRef::MinKey).unwrap();
        builder.append("regex", &ValueRef::Regex { pattern: "a+", options: "i" }).unwrap();
        builder.append("old", &ValueRef::Binary { subtype: 2, bytes: b"xyz" }).unwrap();
        builder.append("pointer", &ValueRef::DbPointer { namespace: "a.b", id: Default::default() }).unwrap();
        let scope = Document::new(b"\x05\0\0\0\0").unwrap();
        builder.append("scoped", &ValueRef::CodeWithScope { code: "f()", scope }).unwrap();
        builder.close().unwrap();
        let bytes = builder.finish().unwrap();
        let document = Document::with_rules(bytes, Rules::new().strictness(Strictness::Strict)).unwrap();
        document.check().unwrap();
        assert_eq!(document.get_path::<u32>(["a", "1233"]).unwrap(), Some(1233));
        let inner: Document = document.require("d").unwrap();
        for element in inner {
            // Each value is written with the type that it was read with.
            let element = element.unwrap();
            let mut again = Vec::new();
            element.value().unwrap().to_bson(&mut again).unwrap();
            assert_eq!(again, element.payload(), "{element:?}");
        }
        assert_eq!(builder.clone().into_bytes().unwrap(), builder.finish().unwrap());
    }

    #[test]
    fn what_came_after_a_mark_is_taken_back() {
        let mut builder = Builder::new();
        builder.append("a", &1).unwrap();
        builder.open_array("list").unwrap();
        for i in 0..12 {
            builder.push(&i).unwrap();
        }
        let (mark, before) = (builder.mark(), builder.clone());
        builder.push("x").unwrap();
        let later = builder.mark();
        builder.push_document().unwrap();
        builder.append("b", &true).unwrap();
        builder.open_array("c").unwrap();
        builder.rollback(mark).unwrap();
        assert_eq!((builder.mark(), &builder.bytes), (mark, &before.bytes));
        // A mark in removed content is rejected, and the position is unchanged.
        assert_eq!(builder.rollback(later).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        builder.push_document().unwrap();
        builder.close().unwrap();
        builder.rollback(mark).unwrap();
        builder.push("twelve").unwrap();
        let inside = builder.mark();
        builder.close().unwrap();
        for bad in [inside, Mark { len: mark.len, depth: 1 }, Mark { len: 5, depth: 1 }, Mark { len: 0, depth: 0 }] {
            let error = builder.rollback(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ArgumentInvalid, "{bad:?}");
        }
        let document = Document::new(builder.finish().unwrap()).unwrap();
        assert_eq!(document.get_path::<&str>(["list", "12"]).unwrap(), Some("twelve"));
        Document::with_rules(document.as_bytes(), Rules::new().strictness(Strictness::Strict))
            .unwrap()
            .check()
            .unwrap();
        // A mark is also rejected if the document is finished.
        assert_eq!(builder.rollback(mark).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        builder.rollback(builder.mark()).unwrap();
    }

    #[test]
    fn any_mark_leaves_a_document() {
        let mut builder = Builder::new();
        builder.append("text", "a\u{1}b").unwrap();
        builder.open_document("in").unwrap();
        builder.append("n", &1).unwrap();
        builder.open_array("list").unwrap();
        builder.push(&2).unwrap();
        let mut good = 0;
        for depth in 0..6 {
            for len in 0..builder.bytes.len() + 2 {
                let mut changed = builder.clone();
                if changed.rollback(Mark { len, depth }).is_err() {
                    assert_eq!(changed.bytes, builder.bytes);
                    continue;
                }
                good += 1;
                while changed.depth() > 1 {
                    changed.close().unwrap();
                }
                let rules = Rules::new().strictness(Strictness::Strict);
                Document::with_rules(changed.finish().unwrap(), rules).unwrap().check().unwrap();
            }
        }
        assert_eq!(good, 2 + 2 + 2); // before and after the first member of each of the three
    }

    #[test]
    fn errors_have_the_path_of_what_is_wrong() {
        let mut builder = Builder::with_depth(3);
        assert_eq!(builder.append("big", &u64::MAX).unwrap_err().path(), Some("big"));
        assert_eq!(builder.append("list", &[1, u64::MAX]).unwrap_err().path(), Some("list.1"));
        builder.open_document("in").unwrap();
        assert_eq!(builder.append("big", &u64::MAX).unwrap_err().path(), Some("in.big"));
        assert_eq!(builder.append("a\0", &1).unwrap_err().path(), Some("in"));
        builder.open_array("list").unwrap();
        builder.push(&1).unwrap();
        assert_eq!(builder.push(&u64::MAX).unwrap_err().path(), Some("in.list.1"));
        assert_eq!(builder.push_array().unwrap_err().path(), Some("in.list"));
    }

    #[test]
    fn misuse_is_an_error_that_changes_nothing() {
        let mut builder = Builder::with_depth(3);
        assert_eq!(builder.push(&1).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        assert_eq!(builder.push_array().unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        assert_eq!(builder.close().unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        assert_eq!(builder.append("a\0", &1).unwrap_err().kind(), ErrorKind::ValueOutOfRange);
        assert_eq!(builder.append("a", &u64::MAX).unwrap_err().kind(), ErrorKind::ValueOutOfRange);
        assert_eq!(builder.open_array("a\0").unwrap_err().kind(), ErrorKind::ValueOutOfRange);
        builder.open_array("a").unwrap();
        assert!(builder.is_in_array());
        assert_eq!(builder.append("b", &1).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        assert_eq!(builder.open_document("b").unwrap_err().kind(), ErrorKind::ArgumentInvalid);
        assert_eq!(builder.push(&u64::MAX).unwrap_err().kind(), ErrorKind::ValueOutOfRange);
        builder.push(&7).unwrap();
        builder.push_document().unwrap();
        assert_eq!(builder.open_document("b").unwrap_err().kind(), ErrorKind::TooDeep);
        assert_eq!(builder.depth(), 3);
        assert_eq!(builder.finish().unwrap_err().found(), Some("the end, but 2 still open"));
        builder.close().unwrap();
        builder.close().unwrap();
        let bytes = builder.finish().unwrap().to_vec();
        assert_eq!(bytes, b"\x1c\0\0\0\x04a\0\x14\0\0\0\x100\0\x07\0\0\0\x031\0\x05\0\0\0\0\0\0");
        assert_eq!(builder.finish().unwrap(), bytes);
        for error in [builder.append("a", &1), builder.push(&1), builder.open_array("a"), builder.close()] {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Closed);
        }
        builder.clear();
        assert_eq!(builder.finish().unwrap(), b"\x05\0\0\0\0");
    }
}
