//! Documents and arrays, read in place.

mod build;
pub(crate) mod check;
mod convert;
mod index;
mod owned;
mod parts;
mod stream;

pub use build::{Builder, Mark};
pub use convert::{decode, decode_document};
pub use index::Index;
pub use owned::DocumentBuf;
pub use parts::Parts;
pub use stream::{Checking, DocumentBatch, Documents, OnBad, Skipped, SkippedPlace};

use crate::wire::path::{join_path, path_at};
use crate::{Cursor, ElementType, FromBson, Rules, Strictness};
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::fmt;

/// A borrowed document. No part of it is parsed until it is accessed, and nothing is cached.
///
/// Creating a document checks only its length and its terminator. Each lookup scans the members before the one it
/// finds. Errors contain the key path and the offset.
///
/// ```
/// use millstream::bson::Document;
/// // {"a": {"b": [1, 2]}}
/// let bytes = b"\x23\0\0\0\x03a\0\x1b\0\0\0\x04b\0\x13\0\0\0\x100\0\x01\0\0\0\x101\0\x02\0\0\0\0\0\0";
/// let document = Document::new(bytes)?;
/// assert_eq!(document.get_path::<i32>(["a", "b", "1"])?, Some(2));
/// assert_eq!(document.get_path::<i32>(["a", "c"])?, None);
/// for element in document {
///     assert_eq!(element?.key()?, "a");
/// }
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Document<'a> {
    /// The bytes of the root, up to the end of the enclosing document.
    root: &'a [u8],
    /// The position of this document in `root`. Its length has been checked.
    start: usize,
    /// The position of `root` in the stream.
    base: u64,
    /// The number of levels of documents that may be entered, including this one.
    depth: u16,
    rules: Rules,
}

impl<'a> Document<'a> {
    /// Reads the document that consists of these bytes, with the default rules.
    ///
    /// # Errors
    /// [`DocumentTruncated`](ErrorKind::DocumentTruncated), or [`DocumentInvalid`](ErrorKind::DocumentInvalid) for an
    /// impossible length, a missing terminator, or bytes after it.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Document<'a>> {
        Document::with_rules(bytes, Rules::new())
    }

    /// Reads the document that consists of these bytes.
    ///
    /// # Errors
    /// As for [`new`](Document::new); lenient rules accept bytes after the document.
    #[inline]
    pub fn with_rules(bytes: &'a [u8], rules: Rules) -> Result<Document<'a>> {
        let (document, rest) = Document::first(bytes, rules)?;
        if !rest.is_empty() && rules.strictness != Strictness::Lenient {
            return Err(Error::new(ErrorKind::DocumentInvalid)
                .with_found(format!("{} after the document", crate::wire::cursor::bytes_text(rest.len())))
                .with_expected("nothing, or a reader for several documents")
                .with_offset(document.len() as u64));
        }
        Ok(document)
    }

    /// Reads the document at the beginning of these bytes, and returns it with the remaining bytes.
    ///
    /// # Errors
    /// As for [`new`](Document::new).
    #[inline]
    pub fn first(bytes: &'a [u8], rules: Rules) -> Result<(Document<'a>, &'a [u8])> {
        let mut cursor = Cursor::new(bytes, rules);
        cursor.skip(ElementType::Document)?;
        let (whole, rest) = bytes.split_at(cursor.offset());
        Ok((Document { root: whole, start: 0, base: 0, depth: rules.depth, rules }, rest))
    }

    /// Returns the document at the cursor and skips it.
    #[doc(hidden)] // for millstream-bson-julia
    pub fn at(cursor: &mut Cursor<'a>) -> Result<Document<'a>> {
        let start = cursor.offset();
        cursor.skip(ElementType::Document)?;
        Ok(Document {
            root: cursor.bytes(),
            start,
            base: cursor.base(),
            depth: cursor.depth_left(),
            rules: cursor.rules(),
        })
    }

    /// Returns the same document at this byte of its stream. The offsets of the returned document, also in errors,
    /// are counted from the start of the stream.
    #[inline]
    pub fn at_offset(self, offset: u64) -> Document<'a> {
        Document { base: offset.wrapping_sub(self.start as u64), ..self }
    }

    /// The position in bytes, counted from the start of the stream or of the outermost document.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base.wrapping_add(self.start as u64)
    }

    /// The rules with which the document is read.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The bytes, including length and terminator.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        &self.root[self.start..self.end()]
    }

    /// The length in bytes, at least 5.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // see below
    pub fn len(&self) -> usize {
        let prefix = self.root[self.start..].first_chunk().expect("checked when it was created");
        u32::from_le_bytes(*prefix) as usize
    }

    #[inline]
    fn end(&self) -> usize {
        self.start + self.len()
    }

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 5
    }

    /// A cursor before the document; [`Cursor::enter`] moves it inside.
    #[inline]
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor::inside(&self.root[..self.end()], self.start, self.base, self.depth, self.rules)
    }

    /// Iterates over the members in order.
    #[inline]
    pub fn iter(&self) -> Elements<'a> {
        Elements { cursor: self.cursor(), document: *self, state: State::Before }
    }

    /// Returns the member with this name, as any type that implements [`FromBson`]; the first, if there are several.
    ///
    /// # Errors
    /// Errors in the members before it or in its value.
    #[inline]
    pub fn get<T: FromBson<'a>>(&self, key: &str) -> Result<Option<T>> {
        let mut cursor = self.cursor();
        seek(&mut cursor, key)
            .and_then(|kind| kind.map(|kind| T::from_bson(kind, &mut cursor)).transpose())
            .map_err(|error| self.locate(error))
    }

    /// Like [`get`](Document::get), for a required member.
    ///
    /// # Errors
    /// As for `get`, and [`KeyMissing`](ErrorKind::KeyMissing).
    #[inline]
    pub fn require<T: FromBson<'a>>(&self, key: &str) -> Result<T> {
        self.get(key)?.ok_or_else(|| self.missing(&[key]))
    }

    /// Returns the value at the end of a key path. In arrays the keys are positions, whatever keys are stored
    /// there. An empty path leads to the document itself.
    ///
    /// ```
    /// use millstream::bson::Document;
    /// // {"b": [1, 2]}, where both keys of the array are "x"
    /// let document = Document::new(b"\x1b\0\0\0\x04b\0\x13\0\0\0\x10x\0\x01\0\0\0\x10x\0\x02\0\0\0\0\0")?;
    /// assert_eq!(document.get_path::<i32>(["b", "1"])?, Some(2));
    /// assert_eq!(document.get_path::<i32>(["b", "x"])?, None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`get`](Document::get). If the path leads through a value that is neither a document nor an array, the
    /// result is `None`.
    pub fn get_path<T: FromBson<'a>>(&self, keys: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Option<T>> {
        self.get_along(ElementType::Document, keys)
    }

    /// Follows the path from this document, which is treated as a document or an array according to `kind`.
    fn get_along<T: FromBson<'a>>(
        &self,
        kind: ElementType,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Option<T>> {
        let mut cursor = self.cursor();
        follow(&mut cursor, kind, keys)
            .and_then(|kind| kind.map(|kind| T::from_bson(kind, &mut cursor)).transpose())
            .map_err(|error| self.locate(error))
    }

    /// Like [`get_path`](Document::get_path), for a required value.
    ///
    /// # Errors
    /// As for `get_path`, and [`KeyMissing`](ErrorKind::KeyMissing).
    pub fn require_path<T: FromBson<'a>>(&self, keys: impl IntoIterator<Item = impl AsRef<str>>) -> Result<T> {
        self.require_along(ElementType::Document, keys)
    }

    fn require_along<T: FromBson<'a>>(
        &self,
        kind: ElementType,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<T> {
        let keys: Vec<_> = keys.into_iter().collect();
        let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
        self.get_along(kind, &keys)?.ok_or_else(|| self.missing(&keys))
    }

    /// Returns the member with this name without decoding its value.
    ///
    /// # Errors
    /// Errors in the members before it.
    pub fn find(&self, key: &str) -> Result<Option<Element<'a>>> {
        for element in self {
            let element = element?;
            if element.key_bytes() == key.as_bytes() {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    /// Returns the member or element at the end of a path, as in [`get_path`](Document::get_path), without decoding its
    /// value; `None` for an empty path.
    ///
    /// # Errors
    /// Errors in the members that the path passes.
    pub fn find_path(&self, keys: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Option<Element<'a>>> {
        let keys: Vec<_> = keys.into_iter().collect();
        let Some((last, before)) = keys.split_last() else { return Ok(None) };
        let mut cursor = self.cursor();
        let parent = follow(&mut cursor, ElementType::Document, before).map_err(|error| self.locate(error))?;
        let mut inside = || Document::at(&mut cursor).map_err(|error| self.locate(error));
        match (parent, position(last.as_ref())) {
            (Some(ElementType::Document), _) => inside()?.find(last.as_ref()),
            (Some(ElementType::Array), Some(position)) => Array(inside()?).find(position),
            _ => Ok(None),
        }
    }

    /// Adds the key path and the root's position to an error whose offset is counted from the root.
    #[doc(hidden)] // for millstream-bson-julia
    #[cold]
    pub fn locate(&self, error: Error) -> Error {
        locate(self.root, self.base, error)
    }

    #[cold]
    pub(crate) fn missing(&self, keys: &[&str]) -> Error {
        let mut path = path_at(self.root, self.start + 4).unwrap_or_default();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&join_path(keys));
        Error::new(ErrorKind::KeyMissing)
            .with_found("no such member")
            .with_expected(format!("a member {:?}", keys.last().copied().unwrap_or_default()))
            .with_path(path)
            .with_offset(self.offset())
    }
}

/// Adds the key path and the root's position to an error whose offset is counted from the root.
#[cold]
pub(crate) fn locate(root: &[u8], base: u64, error: Error) -> Error {
    if error.path().is_some() {
        return error; // an inner document has already located it
    }
    let path = error.offset().and_then(|at| path_at(root, usize::try_from(at).ok()?));
    let error = error.shift_offset(base);
    match path {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// Enters the document at the cursor and moves to the payload of the member with this name.
#[inline]
fn seek(cursor: &mut Cursor<'_>, key: &str) -> Result<Option<ElementType>> {
    let _outer = cursor.enter()?; // never left: the bytes after it do not matter
    while let Some((kind, found)) = cursor.next()? {
        if found == key.as_bytes() {
            return Ok(Some(kind));
        }
        cursor.skip(kind)?;
    }
    Ok(None)
}

/// Moves to the payload of an element of the array at the cursor.
fn seek_position(cursor: &mut Cursor<'_>, position: usize) -> Result<Option<ElementType>> {
    let _outer = cursor.enter()?; // never left
    let mut before = position;
    while let Some(kind) = cursor.next_in_array()? {
        if before == 0 {
            return Ok(Some(kind));
        }
        before -= 1;
        cursor.skip(kind)?;
    }
    Ok(None)
}

/// Follows a key path from the document or array at the cursor to the payload of the value at its end.
fn follow(
    cursor: &mut Cursor<'_>,
    mut kind: ElementType,
    keys: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Option<ElementType>> {
    for key in keys {
        let key = key.as_ref();
        let found = match (kind, position(key)) {
            (ElementType::Document, _) => seek(cursor, key)?,
            (ElementType::Array, Some(position)) => seek_position(cursor, position)?,
            _ => None,
        };
        match found {
            Some(found) => kind = found,
            None => return Ok(None),
        }
    }
    Ok(Some(kind))
}

/// The array position that a key of a path denotes: digits without leading zeros.
fn position(key: &str) -> Option<usize> {
    let is_one = key.bytes().all(|byte| byte.is_ascii_digit()) && (key == "0" || !key.starts_with('0'));
    if is_one { key.parse().ok() } else { None }
}

/// Documents are equal if their bytes are equal.
impl PartialEq for Document<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Document<'_> {}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes at {})", self.len(), self.offset())
    }
}

impl<'a> IntoIterator for Document<'a> {
    type Item = Result<Element<'a>>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Document<'a> {
    type Item = Result<Element<'a>>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

/// A borrowed array: a document whose keys are ignored.
///
/// ```
/// use millstream::bson::{Array, Document};
/// let document = Document::new(b"\x1b\0\0\0\x04b\0\x13\0\0\0\x100\0\x01\0\0\0\x101\0\x02\0\0\0\0\0")?;
/// let array: Array = document.require("b")?;
/// let values = array.iter().map(|element| element?.get::<i64>()).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(values, [1, 2]);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a>(Document<'a>);

impl<'a> Array<'a> {
    pub(crate) fn at(cursor: &mut Cursor<'a>) -> Result<Array<'a>> {
        Document::at(cursor).map(Array)
    }

    /// The array with the same bytes as this document.
    pub(crate) fn of(document: Document<'a>) -> Array<'a> {
        Array(document)
    }

    /// The same bytes as a document.
    pub fn as_document(&self) -> Document<'a> {
        self.0
    }

    /// The bytes, including length and terminator.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_bytes()
    }

    /// Iterates over the elements in order.
    pub fn iter(&self) -> Elements<'a> {
        self.0.iter()
    }

    /// Returns the element at a position, as any type that implements [`FromBson`]. The elements before it are skipped;
    /// keys are ignored.
    ///
    /// ```
    /// use millstream::bson::{Array, Document};
    /// let document = Document::new(b"\x1b\0\0\0\x04b\0\x13\0\0\0\x100\0\x01\0\0\0\x101\0\x02\0\0\0\0\0")?;
    /// let array: Array = document.require("b")?;
    /// assert_eq!((array.get(1)?, array.get::<i32>(2)?), (Some(2), None));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors in the elements before it or in its value.
    pub fn get<T: FromBson<'a>>(&self, position: usize) -> Result<Option<T>> {
        let mut cursor = self.0.cursor();
        seek_position(&mut cursor, position)
            .and_then(|kind| kind.map(|kind| T::from_bson(kind, &mut cursor)).transpose())
            .map_err(|error| self.0.locate(error))
    }

    /// Like [`get`](Array::get), for a required element.
    ///
    /// # Errors
    /// As for `get`, and [`KeyMissing`](ErrorKind::KeyMissing).
    pub fn require<T: FromBson<'a>>(&self, position: usize) -> Result<T> {
        self.get(position)?.ok_or_else(|| self.0.missing(&[&position.to_string()]))
    }

    /// Returns the element at a position without decoding its value.
    ///
    /// # Errors
    /// Errors in the elements before it.
    pub fn find(&self, position: usize) -> Result<Option<Element<'a>>> {
        for (at, element) in self.iter().enumerate() {
            let element = element?;
            if at == position {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    /// Returns the value at the end of a key path, the first of which is a position, as in [`Document::get_path`].
    ///
    /// # Errors
    /// As for [`Document::get_path`].
    pub fn get_path<T: FromBson<'a>>(&self, keys: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Option<T>> {
        self.0.get_along(ElementType::Array, keys)
    }

    /// Like [`get_path`](Array::get_path), for a required value.
    ///
    /// # Errors
    /// As for `get_path`, and [`KeyMissing`](ErrorKind::KeyMissing).
    pub fn require_path<T: FromBson<'a>>(&self, keys: impl IntoIterator<Item = impl AsRef<str>>) -> Result<T> {
        self.0.require_along(ElementType::Array, keys)
    }

    /// Counts the elements by scanning them.
    ///
    /// # Errors
    /// Errors in the elements.
    pub fn count(&self) -> Result<usize> {
        let mut count = 0;
        for element in self {
            element?;
            count += 1;
        }
        Ok(count)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} bytes at {})", self.0.len(), self.0.offset())
    }
}

impl<'a> IntoIterator for &Array<'a> {
    type Item = Result<Element<'a>>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Result<Element<'a>>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

/// An iterator over the members of a document, in order. An error ends the iteration.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    cursor: Cursor<'a>,
    document: Document<'a>,
    state: State,
}

/// The position of the cursor of [`Elements`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Before the document.
    Before,
    /// Before a member or the terminator.
    Inside,
    /// At the terminator, or at an error.
    Ended,
}

impl<'a> Elements<'a> {
    #[inline]
    fn step(&mut self) -> Result<Option<Element<'a>>> {
        let cursor = &mut self.cursor;
        if self.state == State::Before {
            let _outer = cursor.enter()?; // never left
        }
        let Some((kind, key)) = cursor.next()? else { return Ok(None) };
        let payload = cursor.clone();
        cursor.skip(kind)?;
        Ok(Some(Element::new(kind, key, payload, cursor.offset())))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Ended {
            return None;
        }
        match self.step() {
            Ok(Some(element)) => {
                self.state = State::Inside;
                Some(Ok(element))
            }
            Ok(None) => {
                self.state = State::Ended;
                None
            }
            Err(error) => {
                self.state = State::Ended;
                Some(Err(self.document.locate(error)))
            }
        }
    }
}

impl std::iter::FusedIterator for Elements<'_> {}

/// A member of a document whose value has not been decoded.
#[derive(Clone, Debug)]
pub struct Element<'a> {
    kind: ElementType,
    key: &'a [u8],
    /// A cursor at the payload.
    payload: Cursor<'a>,
    /// The end of the payload.
    end: usize,
}

impl<'a> Element<'a> {
    /// Creates an element. The cursor is at the payload, which ends at `end` and whose lengths have been checked.
    #[inline]
    pub(crate) fn new(kind: ElementType, key: &'a [u8], payload: Cursor<'a>, end: usize) -> Element<'a> {
        Element { kind, key, payload, end }
    }

    /// The type of the value.
    #[inline]
    pub fn kind(&self) -> ElementType {
        self.kind
    }

    /// The key.
    ///
    /// # Errors
    /// [`Utf8Invalid`](ErrorKind::Utf8Invalid) if the key is not UTF-8.
    #[inline]
    pub fn key(&self) -> Result<&'a str> {
        self.payload.key_text(self.key).map_err(|error| self.locate(error))
    }

    /// The key, in which invalid UTF-8 is replaced by U+FFFD.
    pub fn key_lossy(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.key)
    }

    /// The bytes of the key.
    #[inline]
    pub fn key_bytes(&self) -> &'a [u8] {
        self.key
    }

    /// The position of the payload in bytes, counted from the start of the stream or of the outermost document.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.payload.base().wrapping_add(self.payload.offset() as u64)
    }

    /// The bytes of the payload, including lengths and terminators.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.payload.bytes()[self.payload.offset()..self.end]
    }

    /// Decodes the value as any type that implements [`FromBson`].
    ///
    /// # Errors
    /// Errors in the value, [`ShapeMismatch`](ErrorKind::ShapeMismatch),
    /// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange).
    #[inline]
    pub fn get<T: FromBson<'a>>(&self) -> Result<T> {
        T::from_bson(self.kind, &mut self.payload.clone()).map_err(|error| self.locate(error))
    }

    /// A cursor at the payload.
    #[inline]
    pub(crate) fn cursor(&self) -> Cursor<'a> {
        self.payload.clone()
    }

    #[cold]
    pub(crate) fn locate(&self, error: Error) -> Error {
        locate(self.payload.bytes(), self.payload.base(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueRef;

    /// Creates a document with this many levels.
    fn nested(levels: usize) -> Vec<u8> {
        let mut bytes = vec![5, 0, 0, 0, 0];
        for _ in 1..levels {
            let len = bytes.len() as i32 + 8;
            bytes = [&len.to_le_bytes()[..], b"\x03a\0", &bytes, b"\0"].concat();
        }
        bytes
    }

    #[test]
    fn depth_is_limited_by_the_rules() {
        for (depth, levels, good) in
            [(200, 200, true), (200, 201, false), (1, 1, true), (1, 2, false), (1000, 1000, true)]
        {
            let bytes = nested(levels);
            let document = Document::with_rules(&bytes, Rules::new().depth(depth)).unwrap();
            assert_eq!(document.check().err().map(|error| error.kind()), (!good).then_some(ErrorKind::TooDeep));
            assert_eq!(document.get_path::<ValueRef>(vec!["a"; levels]).is_ok(), good);
        }
        // Skipping a value does not enter nested documents.
        let bytes = nested(10_000);
        assert_eq!(Document::new(&bytes).unwrap().get::<i32>("b").unwrap(), None);
    }

    #[test]
    fn errors_say_where_in_the_stream() {
        let bytes = b"\x16\0\0\0\x03a\0\x0e\0\0\0\x02s\0\x02\0\0\0\xff\0\0\0";
        let document = Document::new(&bytes[..]).unwrap().at_offset(1000);
        let error = document.get_path::<&str>(["a", "s"]).unwrap_err();
        assert_eq!((error.kind(), error.path(), error.offset()), (ErrorKind::Utf8Invalid, Some("a.s"), Some(1018)));
        let inner: Document = document.require("a").unwrap();
        assert_eq!(inner.offset(), 1007);
        let again = inner.get::<&str>("s").unwrap_err();
        assert_eq!((again.path(), again.offset()), (Some("a.s"), Some(1018)));
        let missing = inner.require::<i32>("t").unwrap_err();
        assert_eq!((missing.kind(), missing.path()), (ErrorKind::KeyMissing, Some("a.t")));
        // A value without bytes also has a path, and so has the element after it.
        let mut bytes = *b"\x0b\0\0\0\x0aa\0\x0ab\0\0";
        let null = Document::new(&bytes).unwrap().require::<i32>("a").unwrap_err();
        assert_eq!((null.kind(), null.path(), null.offset()), (ErrorKind::ShapeMismatch, Some("a"), Some(7)));
        let null = Document::new(&bytes).unwrap().require::<i32>("b").unwrap_err();
        assert_eq!((null.path(), null.offset()), (Some("b"), Some(10)));
        bytes[7] = 0x77;
        let bad = Document::new(&bytes).unwrap().require::<i32>("b").unwrap_err();
        assert_eq!((bad.kind(), bad.path(), bad.offset()), (ErrorKind::DocumentInvalid, None, Some(7)));
        let missing = document.require_path::<i32>(["a", "t", "u"]).unwrap_err();
        assert_eq!((missing.kind(), missing.path()), (ErrorKind::KeyMissing, Some("a.t.u")));
        assert_eq!(inner.iter().next().unwrap().unwrap().value().unwrap_err().offset(), Some(1018));
    }

    #[test]
    fn in_arrays_a_path_has_positions_whatever_their_keys() {
        // {"a": [1, "x" (invalid UTF-8), {"0": 3}]} with the keys "1", "1" and "b"
        let bytes = b"\x2c\0\0\0\x04a\0\x24\0\0\0\x101\0\x01\0\0\0\x021\0\x02\0\0\0\xff\0\x03b\0\x0c\0\0\0\x100\0\x03\0\0\0\0\0\0";
        let document = Document::new(bytes).unwrap();
        assert_eq!(document.get_path::<i32>(["a", "0"]).unwrap(), Some(1));
        assert_eq!(document.get_path::<i32>(["a", "2", "0"]).unwrap(), Some(3));
        assert_eq!(document.find_path(["a", "2", "0"]).unwrap().unwrap().get::<i32>().unwrap(), 3);
        assert_eq!(document.find_path(["a", "2"]).unwrap().unwrap().key_bytes(), b"b");
        for none in ["b", "3", "00", "02", "+0", "", "-1", "99999999999999999999999"] {
            assert!(document.get_path::<ValueRef>(["a", none]).unwrap().is_none(), "{none}");
            assert!(document.find_path(["a", none]).unwrap().is_none(), "{none}");
        }
        assert!(document.find_path([""; 0]).unwrap().is_none());
        assert!(document.find_path(["a", "0", "0"]).unwrap().is_none());
        assert_eq!(document.require_path::<i32>(["a", "b"]).unwrap_err().path(), Some("a.b"));
        // The path in an error leads to the value.
        let error = document.get_path::<&str>(["a", "1"]).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Utf8Invalid, Some("a.1")));
        let array: Array = document.require("a").unwrap();
        assert_eq!(array.require::<i32>(0).unwrap(), 1);
        assert_eq!(array.get_path::<i32>(["2", "0"]).unwrap(), Some(3));
        assert_eq!(array.get_path::<i32>(["b", "0"]).unwrap(), None);
        assert_eq!(array.require_path::<i32>(["7"]).unwrap_err().path(), Some("a.7"));
        assert_eq!(array.require::<i32>(3).unwrap_err().path(), Some("a.3"));
        assert_eq!(array.require::<i32>(2).unwrap_err().path(), Some("a.2"));
        assert_eq!(array.find(2).unwrap().unwrap().get::<Document>().unwrap().require::<i32>("0").unwrap(), 3);
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_an_answer() {
        let whole = b"\x2d\0\0\0\x03a\0\x1b\0\0\0\x04b\0\x13\0\0\0\x100\0\x01\0\0\0\x101\0\x02\0\0\0\0\0\x0ac\0\x10d\0\x03\0\0\0\0";
        for len in 0..whole.len() {
            assert!(Document::new(&whole[..len]).is_err());
        }
        for bit in 0..whole.len() * 8 {
            let mut bytes = *whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(document) = Document::new(&bytes) {
                let _ = document.check();
                let _ = document.get_path::<i32>(["a", "b", "1"]);
                for element in document.iter().flatten() {
                    let _ = element.value();
                }
            }
        }
    }
}
