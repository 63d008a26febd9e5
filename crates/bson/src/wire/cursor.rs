//! A position in a document, and the operations that move it.

use crate::wire::text::{HIGHS, text_at, text_of_tail};
use crate::{ElementType, Layout, Rules, Strictness, Utf8};
use millstream_core::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// A position in a document: the cursor that all other code of this crate uses.
///
/// ```text
///   root                                     the current document
///   [ … | type key NUL payload | type key NUL payload | … ] 0
///                                ^ at                     ^ bytes.len(): its terminator, which is not in `bytes`
/// ```
///
/// [`enter`](Cursor::enter) enters the document or array that begins here. [`next`](Cursor::next) reads a type and a
/// key; after it, *exactly one* of the readers, [`skip`](Cursor::skip) or `enter` must consume the payload. Errors have
/// an offset counted from the root's first byte; [`Document`](crate::Document) adds the rest.
///
/// ```
/// use millstream::bson::{Cursor, ElementType, Rules};
/// let bytes = b"\x16\0\0\0\x10n\0\x2a\0\0\0\x02s\0\x03\0\0\0hi\0\0";
/// let mut cursor = Cursor::new(bytes, Rules::new());
/// let outer = cursor.enter()?;
/// assert_eq!(cursor.next()?, Some((ElementType::Int32, &b"n"[..])));
/// assert_eq!(cursor.i32()?, 42);
/// assert_eq!(cursor.next()?, Some((ElementType::String, &b"s"[..])));
/// assert_eq!(cursor.str()?, "hi");
/// assert_eq!(cursor.next()?, None);
/// cursor.leave(outer);
/// assert_eq!(cursor.offset(), bytes.len());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    /// The bytes from the root's first byte to the end of the current document, without its terminator.
    bytes: &'a [u8],
    /// The current position, which is always at most `bytes.len()`.
    at: usize,
    /// The position of the root's first byte in the stream. It is used only for objects that are created from this
    /// cursor.
    base: u64,
    /// The number of further levels of documents that may be entered.
    depth: u16,
    rules: Rules,
}

/// The result of [`Cursor::enter`], for [`Cursor::leave`].
#[derive(Clone, Copy, Debug)]
#[must_use = "give it back to `leave`"]
pub struct Outer<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// Creates a cursor before the document at the start of these bytes.
    #[inline]
    pub const fn new(bytes: &'a [u8], rules: Rules) -> Cursor<'a> {
        Cursor { bytes, at: 0, base: 0, depth: rules.depth, rules }
    }

    /// Creates a cursor at a payload inside `bytes`, whose first byte is at `base` in the stream. At most `depth` more
    /// levels may be entered, or fewer if the rules allow fewer.
    #[doc(hidden)] // for millstream-bson-julia
    #[inline]
    pub const fn inside(bytes: &'a [u8], at: usize, base: u64, depth: u16, rules: Rules) -> Cursor<'a> {
        debug_assert!(at <= bytes.len());
        // The depth can come from the caller, so it is limited.
        let depth = if depth > rules.depth { rules.depth } else { depth };
        Cursor { bytes, at, base, depth, rules }
    }

    /// The position of the root's first byte in the stream.
    #[doc(hidden)] // for millstream-bson-julia
    #[inline]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// The position in bytes from the root's first byte.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// The rules with which the cursor reads.
    #[inline]
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// The number of further levels of documents and arrays that may be entered.
    #[inline]
    pub const fn depth_left(&self) -> u16 {
        self.depth
    }

    /// The bytes from the root's first byte to the end of the current document, without its terminator.
    #[doc(hidden)] // for millstream-bson-julia
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes from here to the end of the current document, without its terminator.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Enters the document or array that begins here.
    ///
    /// # Errors
    /// [`DocumentTruncated`](ErrorKind::DocumentTruncated) if it is longer than the remaining bytes,
    /// [`DocumentInvalid`](ErrorKind::DocumentInvalid) for an impossible length or a missing terminator,
    /// [`TooDeep`](ErrorKind::TooDeep).
    #[inline]
    pub fn enter(&mut self) -> Result<Outer<'a>> {
        let end = self.document_end()?;
        if self.depth == 0 {
            return Err(self.too_deep());
        }
        self.depth -= 1;
        let outer = Outer(self.bytes);
        self.bytes = &self.bytes[..end - 1];
        self.at += 4;
        Ok(outer)
    }

    /// Leaves the document that the matching `enter` entered, from any position in it.
    #[inline]
    pub fn leave(&mut self, outer: Outer<'a>) {
        self.at = self.bytes.len() + 1;
        self.bytes = outer.0;
        self.depth += 1;
        debug_assert!(self.at <= self.bytes.len(), "`leave` without its `enter`");
    }

    /// The end of the document that begins here, which is after its terminator.
    #[inline]
    fn document_end(&self) -> Result<usize> {
        let Some(len) = self.peek_i32() else { return Err(self.truncated(4)) };
        let left = self.bytes.len() - self.at;
        match usize::try_from(len) {
            Ok(len) if (5..=left).contains(&len) => {
                let end = self.at + len;
                if self.bytes[end - 1] == 0 { Ok(end) } else { Err(self.no_terminator(end - 1)) }
            }
            _ => Err(self.bad_length(len, 5)),
        }
    }

    #[inline]
    fn peek_i32(&self) -> Option<i32> {
        Some(i32::from_le_bytes(*self.bytes[self.at..].first_chunk()?))
    }

    /// Reads the next element's type and key; `None` at the end of the document. The key is not checked to be UTF-8:
    /// [`key_text`](Cursor::key_text) does that.
    ///
    /// # Errors
    /// Fails if the type is unknown, if the key has no end, or if the document ends too early or too late.
    #[inline]
    #[allow(clippy::should_implement_trait)] // it is not an iterator: a payload is between two of them
    pub fn next(&mut self) -> Result<Option<(ElementType, &'a [u8])>> {
        let Some(&byte) = self.bytes.get(self.at) else { return Ok(None) };
        let Some(kind) = ElementType::from_byte(byte) else { return Err(self.bad_type(byte)) };
        self.at += 1;
        Ok(Some((kind, self.cstring()?)))
    }

    /// Reads the next element's type if these bytes are its key and its NUL; otherwise the cursor does not move.
    #[doc(hidden)] // for derived code: one comparison of constant size instead of a search
    #[inline]
    pub fn next_if<const N: usize>(&mut self, key: &[u8; N]) -> Option<ElementType> {
        let (&byte, rest) = self.bytes[self.at..].split_first()?;
        if rest.first_chunk::<N>()? != key {
            return None;
        }
        let kind = ElementType::from_byte(byte)?;
        self.at += 1 + N;
        Some(kind)
    }

    /// Reads the next element's type if its key is this name, which contains no NUL; otherwise the cursor does not
    /// move.
    #[inline]
    pub(crate) fn next_named(&mut self, name: &str) -> Option<ElementType> {
        let (&byte, rest) = self.bytes[self.at..].split_first()?;
        let (key, after) = rest.split_at_checked(name.len())?;
        if after.first() != Some(&0) || !same(key, name.as_bytes()) {
            return None;
        }
        let kind = ElementType::from_byte(byte)?;
        self.at += name.len() + 2;
        Some(kind)
    }

    /// Reads the next element's type, for callers that ignore the keys of arrays; `None` at the end of the document.
    #[inline]
    pub(crate) fn next_in_array(&mut self) -> Result<Option<ElementType>> {
        // Nearly every array has at most ten values, so its keys have a single byte, which can be any except NUL.
        if let [byte, 1..=255, 0, ..] = self.bytes[self.at..]
            && let Some(kind) = ElementType::from_byte(byte)
        {
            self.at += 3;
            return Ok(Some(kind));
        }
        Ok(self.next()?.map(|(kind, _)| kind))
    }

    /// Reads the next element's type if this is its key; otherwise the cursor does not move.
    #[inline]
    pub(crate) fn next_if_key(&mut self, key: &Key) -> Option<ElementType> {
        let (&byte, rest) = self.bytes[self.at..].split_first()?;
        if !key.begins(rest) {
            return None;
        }
        let kind = ElementType::from_byte(byte)?;
        self.at += 1 + key.bytes.len();
        Some(kind)
    }

    /// Converts a key to text.
    ///
    /// # Errors
    /// [`Utf8Invalid`](ErrorKind::Utf8Invalid) if it is not UTF-8.
    #[inline]
    pub fn key_text(&self, key: &'a [u8]) -> Result<&'a str> {
        // The key is directly before the payload, which determines its position.
        text_at(key, self.at.saturating_sub(key.len() + 1))
    }

    /// Reads bytes up to a NUL, which is consumed.
    #[inline]
    pub(crate) fn cstring(&mut self) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(len) = find_nul(rest) else { return Err(self.no_nul()) };
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Skips a payload of this type by its lengths, regardless of its depth.
    ///
    /// # Errors
    /// Fails if the payload is longer than what is left of its document.
    #[inline]
    pub fn skip(&mut self, kind: ElementType) -> Result<()> {
        match kind.layout() {
            Layout::Fixed(len) => self.skip_bytes(len),
            Layout::Bool => self.skip_bytes(1),
            Layout::Text => self.string_bytes().map(drop),
            Layout::Document => {
                self.at = self.document_end()?;
                Ok(())
            }
            Layout::Binary => self.binary_bytes().map(drop),
            Layout::TwoCStrings => self.cstring().and_then(|_| self.cstring()).map(drop),
            Layout::TextAndId => self.string_bytes().and_then(|_| self.skip_bytes(12)),
            Layout::TextAndDocument => self.code_with_scope().map(drop),
        }
    }

    #[inline]
    fn skip_bytes(&mut self, len: usize) -> Result<()> {
        if len > self.bytes.len() - self.at {
            return Err(self.truncated(len));
        }
        self.at += len;
        Ok(())
    }

    /// Reads this many bytes and copies them.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some(bytes) = self.bytes[self.at..].first_chunk::<N>() else { return Err(self.truncated(N)) };
        self.at += N;
        Ok(*bytes)
    }

    /// Borrows this many bytes.
    #[inline]
    pub(crate) fn take_ref<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let Some(bytes) = self.bytes[self.at..].first_chunk::<N>() else { return Err(self.truncated(N)) };
        self.at += N;
        Ok(bytes)
    }

    /// Reads the payload of a [`Double`](ElementType::Double).
    ///
    /// # Errors
    /// Fails if the document ends within the payload.
    #[inline]
    pub fn f64(&mut self) -> Result<f64> {
        self.take().map(f64::from_le_bytes)
    }

    /// Reads the payload of an [`Int32`](ElementType::Int32).
    ///
    /// # Errors
    /// Fails if the document ends within the payload.
    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        self.take().map(i32::from_le_bytes)
    }

    /// Reads the payload of an [`Int64`](ElementType::Int64) or of a `DateTime`.
    ///
    /// # Errors
    /// Fails if the document ends within the payload.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        self.take().map(i64::from_le_bytes)
    }

    /// Reads the payload of a [`Bool`](ElementType::Bool).
    ///
    /// # Errors
    /// [`DocumentInvalid`](ErrorKind::DocumentInvalid) for a byte other than 0 or 1, unless the rules are lenient.
    #[inline]
    pub fn bool(&mut self) -> Result<bool> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [_] if self.rules.strictness == Strictness::Lenient => Ok(true),
            [byte] => Err(self.bad_bool(byte)),
        }
    }

    /// Reads the payload of a [`String`](ElementType::String), [`Code`](ElementType::Code) or
    /// [`Symbol`](ElementType::Symbol).
    ///
    /// # Errors
    /// [`Utf8Invalid`](ErrorKind::Utf8Invalid), even with [`Utf8::Lossy`]: borrowed text is never lossy.
    #[inline]
    pub fn str(&mut self) -> Result<&'a str> {
        let len = self.string_bytes()?.len();
        let end = self.at - 1;
        text_of_tail(&self.bytes[..end], len, end - len)
    }

    /// Appends the text that [`str`](Cursor::str) reads. Most text is short and ASCII, for which two words and one
    /// check suffice, without a loop or a call.
    #[inline]
    pub(crate) fn append_str(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let start = self.at + 4;
        let bytes = self.string_bytes()?;
        // The sixteen bytes that end with the text: there are always bytes before it, but not always after it.
        if bytes.len() <= 16
            && let Some(chunk) = self.bytes[..start + bytes.len()].last_chunk::<16>()
        {
            let text = u128::from_le_bytes(*chunk).unbounded_shr(128 - 8 * bytes.len() as u32);
            if text & HIGHS == 0 {
                out.extend_from_slice(&text.to_le_bytes());
                out.truncate(out.len() - (16 - bytes.len()));
                return Ok(());
            }
        }
        append_long(out, bytes, start)
    }

    /// Like [`str`](Cursor::str), but with [`Utf8::Lossy`] invalid bytes are replaced. The text is owned only in that
    /// case.
    ///
    /// # Errors
    /// Fails like [`str`](Cursor::str), with [`Utf8::Lossy`] not because of invalid UTF-8.
    #[inline]
    pub fn text(&mut self) -> Result<Cow<'a, str>> {
        match self.rules.utf8 {
            Utf8::Checked => self.str().map(Cow::Borrowed),
            Utf8::Lossy => self.string_bytes().map(String::from_utf8_lossy),
        }
    }

    /// Converts the bytes at an offset to text, according to the rules.
    #[inline]
    pub(crate) fn text_of(&self, bytes: &'a [u8], at: usize) -> Result<Cow<'a, str>> {
        match self.rules.utf8 {
            Utf8::Checked => text_at(bytes, at).map(Cow::Borrowed),
            Utf8::Lossy => Ok(String::from_utf8_lossy(bytes)),
        }
    }

    /// Reads the bytes of a string without checking them, and without the NUL.
    ///
    /// # Errors
    /// Fails if the length is wrong for the document or the NUL is missing.
    #[inline]
    pub fn string_bytes(&mut self) -> Result<&'a [u8]> {
        let Some(len) = self.peek_i32() else { return Err(self.truncated(4)) };
        let rest = &self.bytes[self.at + 4..];
        match usize::try_from(len) {
            Ok(len) if (1..=rest.len()).contains(&len) => {
                if rest[len - 1] != 0 {
                    return Err(self.no_terminator(self.at + 4 + len - 1));
                }
                self.at += 4 + len;
                Ok(&rest[..len - 1])
            }
            _ => Err(self.bad_length(len, 1)),
        }
    }

    /// Reads the payload of a [`Binary`](ElementType::Binary): its subtype and its bytes. For the old subtype 2, the
    /// inner length is checked (unless the rules are lenient) and omitted.
    ///
    /// # Errors
    /// Fails if a length is wrong for the document.
    #[inline]
    pub fn binary(&mut self) -> Result<(u8, &'a [u8])> {
        let start = self.at;
        let (subtype, bytes) = self.binary_bytes()?;
        if subtype != 2 {
            return Ok((subtype, bytes));
        }
        match bytes.split_first_chunk::<4>() {
            Some((inner, rest)) if usize::try_from(i32::from_le_bytes(*inner)) == Ok(rest.len()) => Ok((2, rest)),
            _ if self.rules.strictness == Strictness::Lenient => Ok((2, bytes.get(4..).unwrap_or(&[]))),
            _ => Err(bad_inner_length(bytes, start + 5)),
        }
    }

    /// Reads the subtype and the bytes without interpreting the subtype.
    #[inline]
    pub(crate) fn binary_bytes(&mut self) -> Result<(u8, &'a [u8])> {
        let Some(len) = self.peek_i32() else { return Err(self.truncated(5)) };
        let Some((&subtype, rest)) = self.bytes[self.at + 4..].split_first() else { return Err(self.truncated(5)) };
        match usize::try_from(len) {
            Ok(len) if len <= rest.len() => {
                self.at += 5 + len;
                Ok((subtype, &rest[..len]))
            }
            _ => Err(self.bad_length(len, 0)),
        }
    }

    /// Reads text up to a NUL, such as the pattern or the options of a [`Regex`](ElementType::Regex).
    ///
    /// # Errors
    /// Fails if there is no NUL, or if the text is not UTF-8.
    #[inline]
    pub fn cstr(&mut self) -> Result<&'a str> {
        let start = self.at;
        text_at(self.cstring()?, start)
    }

    /// Like `cstr`, but according to the rules, as [`text`](Cursor::text) for strings.
    pub(crate) fn ctext(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at;
        let bytes = self.cstring()?;
        self.text_of(bytes, start)
    }

    /// Skips the payload of a [`CodeWithScope`](ElementType::CodeWithScope) and returns a cursor at its code, which is
    /// followed by its scope. Both together must fill the payload exactly.
    ///
    /// # Errors
    /// Fails if the code and the scope do not fill the payload.
    pub fn code_with_scope(&mut self) -> Result<Cursor<'a>> {
        let Some(len) = self.peek_i32() else { return Err(self.truncated(4)) };
        let end = match usize::try_from(len) {
            Ok(len) if (14..=self.bytes.len() - self.at).contains(&len) => self.at + len,
            _ => return Err(self.bad_length(len, 14)),
        };
        let inside = Cursor { bytes: &self.bytes[..end], at: self.at + 4, ..*self };
        let mut parts = inside.clone();
        parts.string_bytes()?;
        let filled = parts.document_end()?;
        if filled != end {
            return Err(Error::new(ErrorKind::DocumentInvalid)
                .with_found(format!("{len} bytes for code and scope, which take {}", filled - self.at))
                .with_expected("a length that is exactly the sum of both")
                .with_offset(self.at as u64));
        }
        self.at = end;
        Ok(inside)
    }

    // Errors are rare, so they are created in separate functions.

    #[cold]
    fn truncated(&self, need: usize) -> Error {
        let left = self.bytes.len() - self.at;
        Error::new(ErrorKind::DocumentTruncated)
            .with_found(bytes_text(left))
            .with_expected(bytes_text(need))
            .with_offset(self.at as u64)
    }

    #[cold]
    fn bad_length(&self, len: i32, least: i32) -> Error {
        let left = self.bytes.len() - self.at;
        let kind = if len < least { ErrorKind::DocumentInvalid } else { ErrorKind::DocumentTruncated };
        Error::new(kind)
            .with_found(format!("the length {len} with {} left", bytes_text(left)))
            .with_expected(format!("a length of {least} or more that fits in the remaining bytes"))
            .with_offset(self.at as u64)
    }

    #[cold]
    fn no_terminator(&self, at: usize) -> Error {
        Error::new(ErrorKind::DocumentInvalid)
            .with_found(format!("byte 0x{:02x}", self.bytes[at]))
            .with_expected("a zero byte at the end that the length gives")
            .with_offset(at as u64)
    }

    #[cold]
    fn no_nul(&self) -> Error {
        Error::new(ErrorKind::DocumentInvalid)
            .with_found("an unterminated key or pattern")
            .with_expected("a zero byte before the document's end")
            .with_offset(self.at as u64)
    }

    #[cold]
    fn bad_type(&self, byte: u8) -> Error {
        let found = match byte {
            0 => format!("a zero byte with {} of the document left", bytes_text(self.bytes.len() - self.at)),
            _ => format!("0x{byte:02x}"),
        };
        Error::new(ErrorKind::DocumentInvalid)
            .with_found(found)
            .with_expected("the type of an element, or the end at the document's length")
            .with_offset(self.at as u64)
    }

    #[cold]
    fn bad_bool(&self, byte: u8) -> Error {
        Error::new(ErrorKind::DocumentInvalid)
            .with_found(format!("0x{byte:02x} for a boolean"))
            .with_expected("0 or 1")
            .with_offset(self.at as u64 - 1)
    }

    #[cold]
    fn too_deep(&self) -> Error {
        Error::new(ErrorKind::TooDeep)
            .with_found(format!("more than {} nested documents and arrays", self.rules.depth))
            .with_expected(format!("at most {}", self.rules.depth))
            .with_offset(self.at as u64)
    }

    /// The error for a value that does not have the requested type. `at` is the position of its payload.
    #[cold]
    pub fn mismatch(&self, kind: ElementType, expected: &str) -> Error {
        Error::new(ErrorKind::ShapeMismatch)
            .with_found(format!("a value of type {kind}"))
            .with_expected(expected)
            .with_offset(self.at as u64)
    }
}

#[cold]
fn bad_inner_length(bytes: &[u8], at: usize) -> Error {
    let found = match bytes.first_chunk::<4>() {
        Some(inner) => format!("the inner length {} of {}", i32::from_le_bytes(*inner), bytes_text(bytes.len())),
        None => format!("{} without an inner length", bytes_text(bytes.len())),
    };
    Error::new(ErrorKind::DocumentInvalid)
        .with_found(found)
        .with_expected("binary subtype 2: an inner length that is 4 less than the outer one")
        .with_offset(at as u64)
}

pub(crate) fn bytes_text(count: usize) -> String {
    if count == 1 { "1 byte".to_string() } else { format!("{count} bytes") }
}

/// Appends text at `at` that is not short or not ASCII. It is a separate function, because otherwise the compiler would
/// copy both kinds with one call.
#[inline(never)]
fn append_long(out: &mut Vec<u8>, bytes: &[u8], at: usize) -> Result<()> {
    out.extend_from_slice(text_at(bytes, at)?.as_bytes());
    Ok(())
}

/// A key in the form in which it is stored in documents, including its NUL, for fast comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    bytes: Vec<u8>,
    /// The first eight bytes, padded with zeros.
    head: u64,
    /// A mask with all bits of these bytes set.
    mask: u64,
}

impl Key {
    pub(crate) fn new(name: &str) -> Key {
        let bytes = [name.as_bytes(), b"\0"].concat();
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for (i, &byte) in bytes.iter().take(8).enumerate() {
            (head[i], mask[i]) = (byte, 0xff);
        }
        Key { bytes, head: u64::from_le_bytes(head), mask: u64::from_le_bytes(mask) }
    }

    /// Whether these bytes begin with the key. Most keys are shorter than eight bytes, for which one load without a
    /// call suffices.
    #[inline]
    fn begins(&self, bytes: &[u8]) -> bool {
        match bytes.first_chunk() {
            Some(head) if (u64::from_le_bytes(*head) ^ self.head) & self.mask != 0 => false,
            Some(_) if self.bytes.len() <= 8 => true,
            _ => bytes.starts_with(&self.bytes),
        }
    }
}

/// Whether both slices are equal. Names are short: two loads that can overlap suffice, without a call.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    fn ends<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
        Some((bytes.first_chunk()?, bytes.last_chunk()?))
    }
    a.len() == b.len()
        && match a.len() {
            0..=3 => a.iter().eq(b),
            4..=8 => ends::<4>(a) == ends::<4>(b),
            9..=16 => ends::<8>(a) == ends::<8>(b),
            _ => a == b,
        }
}

/// The position of the first zero byte. Keys are short: they are searched in steps of eight bytes, with memchr after
/// the first 24.
#[inline]
pub(crate) fn find_nul(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    for word in 0..3 {
        let Some(chunk) = bytes.get(word * 8..).and_then(|rest| rest.first_chunk::<8>()) else {
            return bytes[word * 8..].iter().position(|&byte| byte == 0).map(|i| word * 8 + i);
        };
        let chunk = u64::from_le_bytes(*chunk);
        let zeros = chunk.wrapping_sub(ONES) & !chunk & HIGHS;
        if zeros != 0 {
            return Some(word * 8 + zeros.trailing_zeros() as usize / 8);
        }
    }
    memchr::memchr(0, &bytes[24..]).map(|i| 24 + i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_compared_whole() {
        for len in 0..40 {
            let name = vec![b'n'; len];
            assert!(same(&name, &name.clone()));
            assert!(!same(&name, &vec![b'n'; len + 1]));
            for at in 0..len {
                let mut other = name.clone();
                other[at] = b'm';
                assert!(!same(&name, &other), "{at} of {len}");
            }
        }
    }

    #[test]
    fn keys_are_compared_whole() {
        for len in 0..20 {
            let name = "n".repeat(len);
            let key = Key::new(&name);
            for after in 0..10 {
                let bytes = [name.as_bytes(), b"\0", &[7; 10][..after]].concat();
                assert!(key.begins(&bytes), "{len} {after}");
                assert!(!key.begins(&bytes[..len]));
                for at in 0..=len {
                    let mut other = bytes.clone();
                    other[at] ^= 1;
                    assert!(!key.begins(&other), "{at} of {len}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn appended_text_is_what_is_read(text in prop::collection::vec(prop_oneof![0x20u8..0x7f, 0u8..], 0..20), after in 0usize..20) {
            let len = (text.len() as u32 + 1).to_le_bytes();
            let bytes = [&len[..], &text, b"\0", &[0xff; 20][..after]].concat();
            let (mut cursor, mut twin) = (Cursor::new(&bytes, Rules::new()), Cursor::new(&bytes, Rules::new()));
            let mut out = b"before".to_vec();
            match (cursor.append_str(&mut out), twin.str()) {
                (Ok(()), Ok(text)) => prop_assert_eq!(out, [b"before", text.as_bytes()].concat()),
                (appended, read) => prop_assert_eq!(appended.unwrap_err().to_string(), read.unwrap_err().to_string()),
            }
            prop_assert_eq!(cursor.offset(), twin.offset());
        }

        #[test]
        fn finds_the_first_zero_byte(bytes in prop::collection::vec(0u8..4, 0..80)) {
            prop_assert_eq!(find_nul(&bytes), bytes.iter().position(|&byte| byte == 0));
        }

        #[test]
        fn finds_a_far_zero_byte(before in prop::collection::vec(1u8.., 0..80), after in prop::collection::vec(0u8.., 0..20)) {
            let bytes = [&before[..], b"\0", &after].concat();
            prop_assert_eq!(find_nul(&bytes), Some(before.len()));
            prop_assert_eq!(find_nul(&before), None);
        }
    }
}
