//! The fields of one record.

use super::automaton::{Next, State};
use super::{Csv, CsvBlankLines};
use std::borrow::Cow;
use std::iter::FusedIterator;

impl Csv {
    /// Returns an iterator over the fields of a record, which comes from this framer and has no line end. A field is
    /// borrowed, unless quotes or escape characters must be removed from its middle.
    ///
    /// ```
    /// use millstream::frame::Csv;
    /// use std::borrow::Cow;
    /// let csv = Csv::new();
    /// let fields: Vec<_> = csv.fields(br#"1,"a,b","say ""hi""","#).collect();
    /// assert_eq!(fields, [&b"1"[..], b"a,b", br#"say "hi""#, b""]);
    /// assert!(matches!(fields[1], Cow::Borrowed(_)));
    /// ```
    pub fn fields<'c, 'r>(&'c self, record: &'r [u8]) -> CsvFields<'c, 'r> {
        let record = self.without_mark(record);
        let is_nothing = record.is_empty() && self.dialect.blank_lines == CsvBlankLines::Skip;
        CsvFields { csv: self, rest: (!is_nothing).then_some(record), is_first: true }
    }

    /// Returns the content of a field, from all its bytes: without quotes and escape characters.
    #[inline]
    pub fn unquote<'r>(&self, raw: &'r [u8]) -> Cow<'r, [u8]> {
        let dialect = &self.dialect;
        let inner = match (raw, dialect.quote) {
            ([first, inner @ .., last], Some(quote)) if *first == quote && *last == quote => inner,
            _ if dialect.escape.is_none() => return Cow::Borrowed(raw),
            _ => raw,
        };
        let is_quoted = inner.len() < raw.len();
        let is_plain = match (dialect.quote.filter(|_| is_quoted), dialect.escape) {
            (Some(quote), Some(escape)) => memchr::memchr2(quote, escape, inner).is_none(),
            (Some(byte), None) | (None, Some(byte)) => memchr::memchr(byte, inner).is_none(),
            (None, None) => true,
        };
        if is_plain { Cow::Borrowed(inner) } else { Cow::Owned(self.unescape(inner, is_quoted)) }
    }

    /// Returns a field with this content in quotes, or `None` if the dialect has no quotes, or no way to write a quote
    /// of the content. A content that contains a delimiter, a quote, an escape character or a line end needs quotes, and
    /// so does one at the start of a record that would make it a blank line, a comment or a byte order mark.
    ///
    /// ```
    /// use millstream::frame::Csv;
    /// let csv = Csv::new();
    /// assert_eq!(csv.quote(br#"say "hi""#).unwrap(), br#""say ""hi""""#);
    /// assert_eq!(csv.unquote(&csv.quote(b"a,b").unwrap()), &b"a,b"[..]);
    /// ```
    pub fn quote(&self, content: &[u8]) -> Option<Vec<u8>> {
        let quote = self.dialect.quote?;
        let before_quote = if self.dialect.doubled_quotes { Some(quote) } else { self.dialect.escape };
        let mut field = Vec::with_capacity(content.len() + 2);
        field.push(quote);
        for &byte in content {
            if byte == quote {
                field.push(before_quote?);
            } else if Some(byte) == self.dialect.escape {
                field.push(byte);
            }
            field.push(byte);
        }
        field.push(quote);
        Some(field)
    }

    #[cold]
    fn unescape(&self, inner: &[u8], is_quoted: bool) -> Vec<u8> {
        let mut content = Vec::with_capacity(inner.len());
        let mut rest = inner;
        // The byte after an escape character, and the second one of two quotes, is content.
        let is_first =
            |&byte: &u8| Some(byte) == self.dialect.escape || (is_quoted && Some(byte) == self.dialect.quote);
        while let Some(at) = rest.iter().position(is_first) {
            content.extend_from_slice(&rest[..at]);
            content.extend(rest.get(at + 1));
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        content.extend_from_slice(rest);
        content
    }
}

/// An iterator over the fields of a record. It is created by [`Csv::fields`].
#[derive(Clone, Debug)]
pub struct CsvFields<'c, 'r> {
    csv: &'c Csv,
    /// The bytes from the next field on.
    rest: Option<&'r [u8]>,
    is_first: bool,
}

impl<'r> CsvFields<'_, 'r> {
    /// Returns all bytes of the next field, including quotes and escape characters.
    #[inline]
    pub fn next_raw(&mut self) -> Option<&'r [u8]> {
        let rest = self.rest?;
        let automaton = &*self.csv.automaton;
        let mut state = if std::mem::replace(&mut self.is_first, false) { State::Record } else { State::Field };
        let mut at = 0;
        while at < rest.len() {
            at += self.csv.uniform(state, &rest[at..]);
            let Some(&byte) = rest.get(at) else { break };
            match automaton.next(state, automaton.classes[usize::from(byte)]) {
                Next::To(State::Field) => {
                    self.rest = Some(&rest[at + 1..]);
                    return Some(&rest[..at]);
                }
                Next::To(next) => state = next,
                // The record is not from this framer, or these bytes are a line end of another dialect.
                Next::End | Next::Error if state == State::Closed => {}
                Next::End | Next::Error => state = State::Unquoted,
            }
            at += 1;
        }
        self.rest = None;
        Some(rest)
    }
}

impl<'r> Iterator for CsvFields<'_, 'r> {
    type Item = Cow<'r, [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Cow<'r, [u8]>> {
        self.next_raw().map(|raw| self.csv.unquote(raw))
    }
}

impl FusedIterator for CsvFields<'_, '_> {}
