//! The first documents of a stream, stored so that they can be read twice.

use super::{Inference, OnMixed, Reject, Schema};
use crate::{Document, Documents, Rules};
use millstream_core::{ReadRecords, Result};

/// The first documents of a stream. A schema is inferred from them; afterwards they are decoded like the rest.
///
/// ```
/// use millstream::Reader;
/// use millstream::bson::Documents;
/// use millstream::bson::columns::{OnMixed, Sample};
/// let mut documents = Documents::new(Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x05\0\0\0\0")?);
/// let sample = Sample::take(&mut documents, 1000, 1 << 20)?;
/// assert_eq!((sample.len(), sample.infer(OnMixed::Json)?.to_string()), (2, "n: int".to_string()));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Sample {
    bytes: Vec<u8>,
    /// For each document, its end in `bytes`, its offset in the stream, and its record number.
    places: Vec<(usize, u64, u64)>,
    rules: Rules,
    /// The number of documents that have been popped.
    popped: usize,
    /// Invalid documents that were left out.
    pub(super) rejects: Vec<Reject>,
}

impl Sample {
    /// Reads the next `count` documents, or fewer: stops when their total size reaches `bytes` bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Documents::next`].
    pub fn take<R: ReadRecords>(documents: &mut Documents<R>, count: usize, bytes: usize) -> Result<Sample> {
        let mut sample = Sample::default();
        sample.extend(documents, count, bytes)?;
        Ok(sample)
    }

    /// Reads more documents until there are `count`, until their total size reaches `bytes` bytes, or until the end.
    /// This function can be called again after an error that is
    /// [resumable](millstream_core::ErrorKind::is_resumable).
    ///
    /// # Errors
    /// Returns the errors of [`Documents::next`].
    pub fn extend<R: ReadRecords>(&mut self, documents: &mut Documents<R>, count: usize, bytes: usize) -> Result<()> {
        let mut rejected: usize = self.rejects.iter().map(Reject::size).sum();
        while self.places.len() < count && self.bytes.len() + rejected < bytes {
            let document = match documents.next() {
                Ok(Some(document)) => document,
                Ok(None) => break,
                Err(error) => {
                    let Some(raw) = documents.take_rejected() else { return Err(error) };
                    self.rejects.push(Reject { error, raw });
                    rejected += self.rejects.last().map_or(0, Reject::size);
                    continue;
                }
            };
            self.bytes.extend_from_slice(document.as_bytes());
            self.rules = document.rules();
            let offset = document.offset();
            let record = documents.reader().record() - 1;
            self.places.push((self.bytes.len(), offset, record));
        }
        Ok(())
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The documents.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Document<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Infers the columns of these documents.
    ///
    /// # Errors
    /// Returns the errors of [`Inference`].
    pub fn infer(&self, on_mixed: OnMixed) -> Result<Schema> {
        let mut inference = Inference::new();
        for (index, document) in self.iter().enumerate() {
            inference.observe(&document).map_err(|error| error.with_record(self.places[index].2))?;
        }
        inference.schema(on_mixed)
    }

    /// Returns the next document that has not been popped, and its record number. The memory is freed after the last
    /// one.
    pub(super) fn pop(&mut self) -> Option<(Document<'_>, u64)> {
        if self.popped >= self.places.len() {
            if self.popped > 0 {
                *self = Sample::default();
            }
            return None;
        }
        self.popped += 1;
        Some((self.get(self.popped - 1), self.places[self.popped - 1].2))
    }

    /// Returns the record number of the next document that has not been popped.
    pub(super) fn next_record(&self) -> Option<u64> {
        self.places.get(self.popped).map(|place| place.2)
    }

    fn get(&self, index: usize) -> Document<'_> {
        let start = if index == 0 { 0 } else { self.places[index - 1].0 };
        let (end, offset, _) = self.places[index];
        match Document::first(&self.bytes[start..end], self.rules) {
            Ok((document, _)) => document.at_offset(offset),
            Err(error) => unreachable!("it was a document: {error}"),
        }
    }
}
