//! Reading consecutive documents from any source, and handling invalid ones.
//!
//! [`Documents`] gives the same guarantees as its reader. It returns every document that the source delivered,
//! followed by the end if the source succeeded, or by one error. Memory is bounded by the reader's buffer and its
//! record limit. Nothing is skipped without being reported: [`Documents::skipped`] contains the place, the size and
//! the reason. This module only finds documents; [`Document`] reads them.
//!
//! Document boundaries are only known from lengths, so a wrong length loses the position. [`OnBad::Skip`] recovers it
//! by searching for the next bytes that are very likely documents:
//!
//! - a length from 6 to the reader's record limit, a type after it, a zero byte at its end, and a
//!   [check](Document::check) without errors;
//! - it is followed by the end of the stream, by another such document, or by two that are empty or invalid inside but
//!   begin and end like documents. This is checked only as far as bytes are available and the record limit allows.
//!
//! The second rule distinguishes documents in the stream from those inside a damaged document, which are followed by
//! another member or by the end of the enclosing document. The end proves nothing if the stream appears to be cut
//! inside a document. Only bytes that contain consecutive complete documents, such as a dump stored as binary data
//! inside a damaged document, cannot be distinguished. The rules have a cost: a valid document between two invalid
//! places is also skipped, and reported like the rest; and a document after such a place is returned only when the next
//! one has been read.

use crate::document::Document;
use crate::{Cursor, ElementType, Rules};
use millstream_core::frame::{Batch, Bson, Framer, Resume, Step, Trim};
use millstream_core::{Error, ErrorKind, ReadRecords, Result};

/// The maximum number of buffer bytes in one batch, if its first document is not longer.
const BATCH_BYTES: usize = 256 << 10;

/// The maximum number of skipped places that are stored.
const MOST_PLACES: usize = 1000;

/// The maximum number of bytes to examine around invalid places, in addition to 16 for each byte of the stream. Without
/// this limit, input could be constructed from documents nested in each other's bytes so that each of them is examined
/// to its end.
const SEARCH_BYTES: u64 = 256 << 20;

/// What to do with an invalid document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBad {
    /// Report an error and end the stream.
    #[default]
    Stop,
    /// The document is skipped and reported by [`Documents::skipped`]. Every document is checked completely, as with
    /// [`Checking::Ahead`]. A document with invalid content is skipped by its length if it is followed by documents or
    /// the end. Otherwise, or if its length is wrong, the next document is searched for. Two cases are still errors
    /// that end the stream, because data may be missing: the stream ends within a document, or no other document is
    /// found after the position was lost. A search that would take too long also fails; only specially constructed
    /// bytes cause this.
    Skip,
}

/// When the content of a document is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checking {
    /// Only the parts that are used, when they are used. Before that, only the length and the last byte of the document
    /// are checked.
    #[default]
    OnAccess,
    /// The whole document, before it is returned.
    Ahead,
}

/// Reads consecutive documents, for example from a mongodump file or a server.
///
/// ```
/// use millstream::Reader;
/// use millstream::bson::Documents;
/// let reader = Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x0c\0\0\0\x10n\0\x2b\0\0\0\0")?;
/// let mut documents = Documents::new(reader);
/// let mut sum = 0;
/// while let Some(document) = documents.next()? {
///     sum += document.require::<i32>("n")?;
/// }
/// assert_eq!(sum, 42 + 43);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// A document must not exceed the reader's [record limit](ReadRecords::record_limit), which is 64 MiB by default for
/// a `Reader`; `i32::MAX` allows every document. Use [`InMemory`](millstream_core::InMemory) to read documents in
/// memory.
///
/// The reader can continue after invalid data:
///
/// ```
/// use millstream::Reader;
/// use millstream::bson::{Documents, OnBad};
/// let reader = Reader::memory(b"\x0c\0\0\0\x77n\0\x2a\0\0\0\0\x0c\0\0\0\x10n\0\x2b\0\0\0\0")?;
/// let mut documents = Documents::new(reader).on_bad(OnBad::Skip);
/// assert_eq!(documents.next()?.unwrap().get("n")?, Some(43));
/// assert!(documents.next()?.is_none());
/// let skipped = documents.skipped();
/// assert_eq!((skipped.count(), skipped.bytes()), (1, 12));
/// assert_eq!((skipped.places()[0].offset, skipped.places()[0].len), (0, 12));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Debug)]
pub struct Documents<R> {
    reader: R,
    rules: Rules,
    checking: Checking,
    on_bad: OnBad,
    /// Whether the source has delivered all data and succeeded.
    ended: bool,
    /// Whether an error that ends the stream has been reported.
    over: bool,
    /// The point at which the position was lost, if it has not been found again.
    search: Option<Search>,
    /// The number of bytes examined around invalid places, including repeated examination.
    looked_at: u64,
    skipped: Skipped,
    /// How many bytes of a skipped place are kept, if its error is returned.
    kept: Option<usize>,
    /// The bytes of the skipped place whose error was returned last.
    rejected: Option<Vec<u8>>,
    /// The offsets of the last batch.
    offsets: Vec<u32>,
}

/// The search for the next document.
#[derive(Debug)]
struct Search {
    /// The position at which it started.
    offset: u64,
    /// The reason for the search.
    error: Error,
    /// Whether it began where the stream appears to end inside a document. A complete document inside the invalid data
    /// could then be the last one, so reaching the end after it does not confirm the position.
    is_cut: bool,
    /// The bytes since then that are kept.
    raw: Vec<u8>,
}

impl<R: ReadRecords> Documents<R> {
    /// Reads the documents of this reader, from its current position.
    pub fn new(reader: R) -> Documents<R> {
        Documents {
            reader,
            rules: Rules::new(),
            checking: Checking::default(),
            on_bad: OnBad::default(),
            ended: false,
            over: false,
            search: None,
            looked_at: 0,
            skipped: Skipped::default(),
            kept: None,
            rejected: None,
            offsets: Vec::new(),
        }
    }

    /// Sets the rules with which documents are read.
    pub fn rules(self, rules: Rules) -> Documents<R> {
        Documents { rules, ..self }
    }

    /// Sets when the content of documents is checked.
    pub fn checking(self, checking: Checking) -> Documents<R> {
        Documents { checking, ..self }
    }

    /// Sets what to do with an invalid document.
    pub fn on_bad(self, on_bad: OnBad) -> Documents<R> {
        Documents { on_bad, ..self }
    }

    /// With [`OnBad::Skip`], returns an error for each skipped place. The next call continues after it.
    /// [`take_rejected`](Documents::take_rejected) distinguishes these errors from others, and returns the first
    /// `most` bytes of the place.
    ///
    /// ```
    /// use millstream::Reader;
    /// use millstream::bson::{Documents, OnBad};
    /// let reader = Reader::memory(b"\x0c\0\0\0\x77n\0\x2a\0\0\0\0\x0c\0\0\0\x10n\0\x2b\0\0\0\0")?;
    /// let mut documents = Documents::new(reader).on_bad(OnBad::Skip).keep_bad(1 << 20);
    /// let error = documents.next().unwrap_err();
    /// assert_eq!((error.record(), error.offset()), (Some(0), Some(4)));
    /// assert_eq!(documents.take_rejected().map(|raw| raw.len()), Some(12));
    /// assert_eq!(documents.next()?.unwrap().get("n")?, Some(43));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn keep_bad(self, most: usize) -> Documents<R> {
        Documents { kept: Some(most), ..self }
    }

    /// Returns the bytes of the place that was skipped, if the last error reported one and they have not been taken.
    /// `None` if reading failed for another reason.
    pub fn take_rejected(&mut self) -> Option<Vec<u8>> {
        self.rejected.take()
    }

    /// How many bytes of a bad document are kept, if [`keep_bad`](Documents::keep_bad) was called.
    pub(crate) fn kept(&self) -> Option<usize> {
        self.kept
    }

    /// Returns the next document; `None` at the end, which means that the source succeeded and ended at the end of a
    /// document.
    ///
    /// # Errors
    /// The error of the source, after all documents that it delivered. Errors in the next document, with offset and
    /// record: in its [length](ErrorKind::LengthInvalid), at its [end](ErrorKind::DocumentInvalid), those of
    /// [`Document::check`] if it is checked, and [`FrameTruncated`](ErrorKind::FrameTruncated) if the stream ends
    /// inside it. Each of these ends the stream. [`RecordTooLong`](ErrorKind::RecordTooLong) for a document that
    /// exceeds the reader's limit is returned repeatedly, until `documents.reader_mut().skip_record(&mut Bson::new())`
    /// skips the document.
    #[inline]
    #[allow(clippy::should_implement_trait)] // an iterator's items cannot borrow from it
    pub fn next(&mut self) -> Result<Option<Document<'_>>> {
        let Some(len) = self.find()? else { return Ok(None) };
        let (rules, offset) = (self.rules, self.reader.offset());
        Ok(Some(framed(self.reader.take_records(len, 1, len), rules).at_offset(offset)))
    }

    /// Returns as many of the next documents as are available, at most 256 KiB, or `None` at the end. Waits only for
    /// the first one.
    ///
    /// ```
    /// use millstream::Reader;
    /// use millstream::bson::Documents;
    /// let mut documents = Documents::new(Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x05\0\0\0\0")?);
    /// let batch = documents.next_batch()?.unwrap();
    /// assert_eq!(batch.iter().map(|document| document.len()).collect::<Vec<_>>(), [12, 5]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`next`](Documents::next). Documents before an invalid one are returned first.
    pub fn next_batch(&mut self) -> Result<Option<DocumentBatch<'_>>> {
        let Some(first) = self.find()? else { return Ok(None) };
        self.offsets.clear();
        self.offsets.extend([0, first as u32]);
        let mut longest = first;
        let input = self.reader.buffer();
        let limit = self.reader.record_limit();
        let (mut end, most) = (first, input.len().min(BATCH_BYTES));
        while end < most {
            // If this document is invalid, the next call reports it again.
            let Step::Record { len, .. } = Bson::new().step(&input[end..], Resume::START, false) else { break };
            if len > limit || end + len > most {
                break;
            }
            if self.is_checked() && framed(&input[end..end + len], self.rules).check().is_err() {
                break;
            }
            end += len;
            longest = longest.max(len);
            self.offsets.push(end as u32);
        }
        let (rules, offset, record) = (self.rules, self.reader.offset(), self.reader.record());
        let bytes = self.reader.take_records(end, self.offsets.len() as u64 - 1, longest);
        let batch = Batch::new(bytes, &self.offsets, Trim::NOTHING, true).at(offset, record);
        Ok(Some(DocumentBatch { batch, rules }))
    }

    /// Adds the place of the document that [`next`](Documents::next) returned last to an error that was found in it: the
    /// source's name and the document's number. An error that names a source stays unchanged.
    ///
    /// ```
    /// use millstream::Reader;
    /// use millstream::bson::{Documents, decode_document};
    /// use std::collections::BTreeMap;
    /// let reader = Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x0c\0\0\0\x10n\0\xff\xff\xff\xff\0")?;
    /// let mut documents = Documents::new(reader);
    /// let error = loop {
    ///     let document = documents.next()?.expect("a document that is invalid");
    ///     match decode_document::<BTreeMap<&str, u32>>(&document) {
    ///         Ok(counts) => assert_eq!(counts["n"], 42),
    ///         Err(error) => break documents.locate(error),
    ///     }
    /// };
    /// assert_eq!((error.name(), error.record(), error.offset()), (Some("memory"), Some(1), Some(19)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[must_use]
    pub fn locate(&self, error: Error) -> Error {
        match error.name() {
            Some(_) => error,
            None => error.with_name(self.reader.name()).with_record(self.reader.record().saturating_sub(1)),
        }
    }

    /// The data that has been skipped so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// The reader of the documents, which has the name, the position and the progress of the source. Its records are
    /// documents, and each skipped place counts as one.
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// The reader, mutable, to read data from it that is not a document.
    pub fn reader_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns the reader, positioned after the last document that was taken.
    pub fn into_reader(self) -> R {
        self.reader
    }

    fn is_checked(&self) -> bool {
        self.checking == Checking::Ahead || self.on_bad == OnBad::Skip
    }

    /// Finds the next document and returns its length. The document is at the beginning of the reader's buffer.
    #[inline]
    fn find(&mut self) -> Result<Option<usize>> {
        // The common case, separately.
        if self.search.is_none()
            && !self.over
            && let input = self.reader.buffer()
            && !input.is_empty()
            && let Step::Record { len, .. } = Bson::new().step(input, Resume::START, false)
            && len <= self.reader.record_limit()
            && !self.is_checked()
        {
            return Ok(Some(len));
        }
        self.find_slowly()
    }

    fn find_slowly(&mut self) -> Result<Option<usize>> {
        let limit = self.reader.record_limit();
        self.rejected = None;
        while !self.over {
            if self.search.is_some() {
                self.search()?;
                continue;
            }
            let input = self.reader.buffer();
            if input.is_empty() {
                if self.ended || !self.fill()? {
                    return Ok(None);
                }
                continue;
            }
            let step = Bson::new().step(input, Resume::START, self.ended);
            let len = match step {
                Step::Record { len, .. } => len as u64,
                Step::More { need, .. } => need,
                Step::Bad(_) => 0,
            };
            match step {
                _ if len > limit as u64 => {
                    let error = Error::new(ErrorKind::RecordTooLong)
                        .with_found(format!("a document of {len} bytes"))
                        .with_expected(format!("at most {limit}"));
                    if self.on_bad == OnBad::Stop {
                        return Err(self.here(error)); // it can be skipped
                    }
                    self.lose(error)?;
                }
                Step::Record { len, .. } => {
                    let document = framed(&input[..len], self.rules);
                    let checked = if self.is_checked() { document.check() } else { Ok(()) };
                    match checked {
                        Ok(()) => return Ok(Some(len)),
                        Err(error) => self.pass(len, error)?,
                    }
                }
                Step::More { .. } => drop(self.fill()?),
                Step::Bad(error) => self.lose(error)?,
            }
        }
        Ok(None)
    }

    /// Reads more bytes. Returns false at the end, if the source succeeded.
    fn fill(&mut self) -> Result<bool> {
        match self.reader.fill() {
            Ok(count) => {
                self.ended = count == 0;
                Ok(!self.ended)
            }
            Err(error) => {
                // The remaining bytes are not a document.
                self.over = !error.kind().is_resumable();
                Err(error)
            }
        }
    }

    /// Reads until `count` bytes are available, if the stream has them and the record limit allows it. Returns
    /// whether that many bytes are available.
    fn fill_to(&mut self, count: usize) -> Result<bool> {
        while self.reader.buffer().len() < count {
            if self.reader.buffer().len() > self.reader.record_limit() || self.ended || !self.fill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the reader's position.
    #[cold]
    fn here(&self, error: Error) -> Error {
        error.with_name(self.reader.name()).with_offset(self.reader.offset()).with_record(self.reader.record())
    }

    /// Handles a document at the beginning of the buffer that has a valid frame but is invalid inside. The offset of
    /// the error is counted from its start.
    fn pass(&mut self, len: usize, error: Error) -> Result<()> {
        let error = error.shift_offset(self.reader.offset());
        if self.on_bad == OnBad::Stop {
            self.over = true;
            return Err(self.here(error));
        }
        self.looked_at += len as u64;
        if !self.is_followed(len)? {
            return self.lose(error);
        }
        let error = self.here(error);
        self.skipped.add(self.reader.offset(), len as u64, self.reader.record(), &error);
        let bytes = self.reader.take_records(len, 1, len);
        let raw = self.kept.map(|most| bytes[..len.min(most)].to_vec());
        self.reject(error, raw)
    }

    /// Returns the error of a skipped place, if these are returned.
    fn reject(&mut self, error: Error, raw: Option<Vec<u8>>) -> Result<()> {
        self.rejected = raw;
        if self.rejected.is_some() { Err(error) } else { Ok(()) }
    }

    /// Removes bytes from the buffer that are not a document.
    fn discard(&mut self, count: usize) {
        if let (Some(most), Some(search)) = (self.kept, &mut self.search) {
            let more = count.min(most.saturating_sub(search.raw.len()));
            search.raw.extend_from_slice(&self.reader.buffer()[..more]);
        }
        self.reader.consume(count);
    }

    /// Handles data at the beginning of the buffer that has no known end or is not a document.
    fn lose(&mut self, error: Error) -> Result<()> {
        let error = self.here(error);
        if self.on_bad == OnBad::Stop {
            self.over = true;
            return Err(error);
        }
        let is_cut = error.kind() == ErrorKind::FrameTruncated && self.is_cut(0);
        self.search = Some(Search { offset: self.reader.offset(), error, is_cut, raw: Vec::new() });
        // There is no document here, so continue with the next byte.
        self.discard(1);
        Ok(())
    }

    /// Finds the next document and records the bytes before it. If it is cancelled, the next call continues.
    fn search(&mut self) -> Result<()> {
        loop {
            let Some(offset) = self.search.as_ref().map(|search| search.offset) else { return Ok(()) };
            let input = self.reader.buffer();
            let candidate = input.windows(5).position(|start| self.begins(start, 6));
            let passed = candidate.unwrap_or(input.len().saturating_sub(4));
            self.discard(passed);
            let here = self.reader.offset();
            let passed = here - offset;
            // This is checked before each candidate, because a document that is found does not reset the count.
            if candidate.is_some() && self.looked_at < SEARCH_BYTES.saturating_add(here.saturating_mul(16)) {
                if self.is_document()? {
                    let Some(Search { error, raw, .. }) = self.search.take() else { return Ok(()) };
                    self.skipped.add(offset, passed, self.reader.record(), &error);
                    self.reader.take_records(0, 1, 0);
                    return self.reject(error, self.kept.map(|_| raw));
                }
                self.discard(1);
                continue;
            }
            if candidate.is_none() && !self.ended {
                self.fill()?;
                continue;
            }
            // The stream has ended, or the search has examined too many bytes.
            return self.give_up(offset, passed);
        }
    }

    /// Ends the search, because there is no other document.
    fn give_up(&mut self, offset: u64, passed: u64) -> Result<()> {
        let Some(search) = self.search.take() else { return Ok(()) };
        self.over = true;
        let rest = if self.ended { self.reader.buffer().len() } else { 0 };
        let found = match self.ended {
            true => format!("no document in the last {} bytes", passed + rest as u64),
            false => format!("no document in {passed} bytes"),
        };
        let record = self.reader.record();
        self.skipped.add(offset, passed + rest as u64, record, &search.error);
        self.reader.take_records(rest, 1, 0);
        let kind = if self.ended { ErrorKind::FrameTruncated } else { ErrorKind::DocumentInvalid };
        Err(Error::new(kind)
            .with_name(self.reader.name())
            .with_offset(offset)
            .with_record(record)
            .with_found(format!("{found}, after this error: {}", search.error.without_advice()))
            .with_expected("a document followed by another one or by the end of the stream"))
    }

    /// Whether 5 bytes can be the beginning of a document of at least this length.
    #[inline]
    fn begins(&self, start: &[u8], least: usize) -> bool {
        let &[a, b, c, d, kind] = start else { return false };
        let Ok(len) = usize::try_from(i32::from_le_bytes([a, b, c, d])) else { return false };
        len >= least
            && len <= self.reader.record_limit()
            && if len == 5 { kind == 0 } else { ElementType::from_byte(kind).is_some() }
    }

    /// Whether the buffer begins with a document, according to the rules of a search. The caller has checked the
    /// first 5 bytes.
    fn is_document(&mut self) -> Result<bool> {
        let Some(prefix) = self.reader.buffer().first_chunk::<4>() else { return Ok(false) };
        let len = u32::from_le_bytes(*prefix) as usize;
        if !self.fill_to(len)? {
            return Ok(false);
        }
        Ok(self.is_right(0, len) && self.is_followed(len)?)
    }

    /// Whether the bytes of the buffer from `start` on are a valid document.
    fn is_right(&mut self, start: usize, len: usize) -> bool {
        let bytes = &self.reader.buffer()[start..start + len];
        if bytes[len - 1] != 0 {
            return false;
        }
        let checked = framed(bytes, self.rules).check();
        // Valid bytes count like invalid ones.
        self.looked_at += checked.as_ref().err().and_then(Error::offset).unwrap_or(len as u64);
        checked.is_ok()
    }

    /// Whether the stream ends at this position of the buffer, or a valid document begins there, or at least two frames
    /// of documents follow, as far as bytes are available.
    fn is_followed(&mut self, mut end: usize) -> Result<bool> {
        let is_cut = self.search.as_ref().is_some_and(|search| search.is_cut);
        for _ in 0..2 {
            if !self.fill_to(end + 5)? {
                // If the stream has not ended, the buffer is full. In that case the missing bytes prove nothing.
                return Ok(!self.ended || (!is_cut && self.reader.buffer().len() == end));
            }
            let start = &self.reader.buffer()[end..end + 5];
            if !self.begins(start, 5) {
                return Ok(false);
            }
            let len = u32::from_le_bytes([start[0], start[1], start[2], start[3]]) as usize;
            if !self.fill_to(end + len)? {
                return Ok(!self.ended || (!is_cut && self.is_cut(end)));
            }
            // Bytes that look like an empty document can be a number and a few zeros.
            if len > 5 && self.is_right(end, len) {
                return Ok(true);
            }
            end += len;
            if self.reader.buffer()[end - 1] != 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the last bytes of the stream, from this position of the buffer on, are the beginning of a longer
    /// document whose members are valid up to the end.
    fn is_cut(&mut self, start: usize) -> bool {
        let bytes = &self.reader.buffer()[start..];
        let mut cursor = Cursor::inside(bytes, 4.min(bytes.len()), 0, self.rules.depth, self.rules);
        let is_cut = loop {
            let step = cursor.next().and_then(|step| match step {
                Some((kind, _)) => cursor.skip(kind).map(|()| true),
                None => Ok(false),
            });
            match step {
                Ok(true) => {}
                Ok(false) => break true,
                // A length or a key exceeds the remaining bytes.
                Err(error) => break error.kind() == ErrorKind::DocumentTruncated || !cursor.rest().contains(&0),
            }
        };
        self.looked_at += match is_cut {
            true => bytes.len() as u64,
            false => cursor.offset() as u64,
        };
        is_cut
    }
}

/// Returns the document in these bytes, whose length and terminator have been checked.
#[inline]
fn framed(bytes: &[u8], rules: Rules) -> Document<'_> {
    match Document::first(bytes, rules) {
        Ok((document, _)) => document,
        Err(error) => unreachable!("a frame is a document: {error}"),
    }
}

/// Documents in one block of memory, returned by [`Documents::next_batch`].
#[derive(Clone, Copy, Debug)]
pub struct DocumentBatch<'a> {
    batch: Batch<'a>,
    rules: Rules,
}

impl<'a> DocumentBatch<'a> {
    /// The number of documents, at least 1.
    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// The document with this index; `None` after the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Document<'a>> {
        let offset = self.batch.offset() + u64::from(*self.batch.offsets().get(index)?);
        Some(framed(self.batch.raw(index)?, self.rules).at_offset(offset))
    }

    /// Iterates over all documents in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Document<'a>> + use<'a> {
        let (batch, rules) = (self.batch, self.rules);
        let offsets = batch.offsets().iter().map(move |&offset| batch.offset() + u64::from(offset));
        batch.iter_raw().zip(offsets).map(move |(bytes, offset)| framed(bytes, rules).at_offset(offset))
    }

    /// The bytes and offsets of the documents.
    pub fn as_batch(&self) -> Batch<'a> {
        self.batch
    }
}

/// The data that was skipped.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    count: u64,
    bytes: u64,
    places: Vec<SkippedPlace>,
}

/// A place that was skipped: either one document with invalid content, or all bytes up to the next document that was
/// found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedPlace {
    /// Its position, in bytes from the start of the stream.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its record number; the first is 0.
    pub record: u64,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The position of the error, in bytes from the start of the stream.
    pub wrong_at: u64,
}

impl Skipped {
    /// The number of places.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first 1,000 places.
    pub fn places(&self) -> &[SkippedPlace] {
        &self.places
    }

    fn add(&mut self, offset: u64, len: u64, record: u64, error: &Error) {
        self.count += 1;
        self.bytes += len;
        if self.places.len() < MOST_PLACES {
            let wrong_at = error.offset().unwrap_or(offset);
            self.places.push(SkippedPlace { offset, len, record, kind: error.kind(), wrong_at });
        }
    }
}
