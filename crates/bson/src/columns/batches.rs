//! The documents of a stream, batch by batch.

use std::collections::VecDeque;

use super::{Columns, OnAbsent, Options, Reject, Sample, Schema};
use crate::{Document, Documents, join_path};
use millstream_core::{Error, ErrorKind, ReadRecords, Result};

/// The documents of a stream as columns, each batch with the size of the [options](Options::batch_bytes).
///
/// ```
/// use millstream::Reader;
/// use millstream::bson::Documents;
/// use millstream::bson::columns::{Batches, OnMixed, Options, Sample};
/// let mut documents = Documents::new(Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x05\0\0\0\0")?);
/// let sample = Sample::take(&mut documents, 1000, 1 << 20)?;
/// let schema = sample.infer(OnMixed::Json)?;
/// let mut batches = Batches::new(sample, documents, &schema, Options::new())?;
/// assert_eq!(batches.next_batch()?.unwrap().len(), 2);
/// assert!(batches.next_batch()?.is_none());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Debug)]
pub struct Batches<R> {
    sample: Sample,
    documents: Documents<R>,
    columns: Columns,
    absent: OnAbsent,
    /// The number of documents from which the columns were inferred; 0 if the schema was given.
    inferred_from: usize,
    /// Whether there has been a row.
    has_rows: bool,
    /// An error to return after the rows that precede it.
    error: Option<Error>,
    over: bool,
    rejects: Vec<Reject>,
    /// Those of the sample that are after documents of it which have not been converted.
    later: VecDeque<Reject>,
}

impl<R: ReadRecords> Batches<R> {
    /// Reads the documents of a sample, which may be empty, followed by the remaining documents.
    ///
    /// # Errors
    /// Returns the errors of [`Columns::new`].
    pub fn new(mut sample: Sample, documents: Documents<R>, schema: &Schema, options: Options) -> Result<Batches<R>> {
        let absent = options.absent;
        Ok(Batches {
            inferred_from: sample.len(),
            rejects: Vec::new(),
            later: std::mem::take(&mut sample.rejects).into(),
            sample,
            documents,
            columns: Columns::new(schema, options)?,
            absent,
            has_rows: false,
            error: None,
            over: false,
        })
    }

    /// The source of the documents.
    pub fn documents(&self) -> &Documents<R> {
        &self.documents
    }

    /// Returns the source of the documents, positioned after the last one that was read.
    pub fn into_documents(self) -> Documents<R> {
        self.documents
    }

    /// The columns that are being filled. They also count the values that have not fit so far.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the next batch; `None` at the end, which means that the source succeeded.
    ///
    /// If the documents [keep bad ones](Documents::keep_bad), invalid documents and those that do not fit are left out,
    /// and [`take_rejects`](Batches::take_rejects) returns them. A batch before which there were many of them may have
    /// no rows.
    ///
    /// # Errors
    /// The errors of [`Documents::next`] and of [`Columns::append`], with offset and record, after all rows that
    /// precede them; at the end [`KeyMissing`](ErrorKind::KeyMissing) for a column that no document has, depending on
    /// the options. After an error that is not [resumable](millstream_core::ErrorKind::is_resumable), the stream has
    /// ended.
    pub fn next_batch(&mut self) -> Result<Option<Columns>> {
        let mut is_full = false;
        if self.error.is_none() && !self.over {
            match self.fill() {
                Ok(full) => is_full = full,
                // After an error such as a cancellation the existing rows are kept, and the next call continues.
                Err(error) if error.kind().is_resumable() => return Err(error),
                Err(error) => (self.error, self.over) = (Some(error), true),
            }
        }
        if is_full || !self.columns.is_empty() {
            return Ok(Some(self.columns.take()));
        }
        self.error.take().map_or(Ok(None), Err)
    }

    /// Takes the documents that were left out before the end of the last batch, in order.
    ///
    /// ```
    /// use millstream::Reader;
    /// use millstream::bson::columns::{Batches, DataType, Field, Options, Sample, Schema};
    /// use millstream::bson::{Documents, OnBad};
    /// let reader = Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x09\0\0\0\x08n\0\x01\0")?;
    /// let documents = Documents::new(reader).on_bad(OnBad::Skip).keep_bad(1 << 20);
    /// let schema = Schema::new([Field::new("n", DataType::Int32)?])?;
    /// let mut batches = Batches::new(Sample::default(), documents, &schema, Options::new())?;
    /// assert_eq!(batches.next_batch()?.unwrap().len(), 1);
    /// let rejects = batches.take_rejects();
    /// assert_eq!((rejects[0].error.record(), rejects[0].error.path()), (Some(1), Some("n")));
    /// assert_eq!(rejects[0].raw.len(), 9);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn take_rejects(&mut self) -> Vec<Reject> {
        std::mem::take(&mut self.rejects)
    }

    /// Fills the columns. Returns whether they, or the documents that were left out, are as many as a batch has, and
    /// not at the end.
    fn fill(&mut self) -> Result<bool> {
        let kept = self.documents.kept();
        let raw = |document: &Document<'_>| {
            let bytes = document.as_bytes();
            kept.map(|most| bytes[..bytes.len().min(most)].to_vec())
        };
        let mut rejected = 0;
        while !self.columns.is_full() && rejected < self.columns.batch_bytes() {
            let next = self.sample.next_record();
            while self.later.front().is_some_and(|bad| next.is_none() || bad.error.record() < next) {
                self.rejects.extend(self.later.pop_front());
            }
            let appended = match self.sample.pop() {
                Some((document, record)) => {
                    self.columns.append(&document).map_err(|error| (error, Some(record), raw(&document)))
                }
                None => match self.documents.next() {
                    Ok(Some(document)) => self.columns.append(&document).map_err(|error| (error, None, raw(&document))),
                    Ok(None) => return self.check_presence().map(|()| false),
                    Err(error) => {
                        let Some(raw) = self.documents.take_rejected() else { return Err(error) };
                        rejected += self.reject(error, raw);
                        continue;
                    }
                },
            };
            let Err((error, record, raw)) = appended else {
                self.has_rows = true;
                continue;
            };
            let record = record.unwrap_or_else(|| self.documents.reader().record() - 1);
            let error = self.locate(error, record);
            match raw {
                // A document that is too large is not to blame for its content.
                Some(raw) if error.kind() != ErrorKind::MemoryLimit => rejected += self.reject(error, raw),
                _ => return Err(error),
            }
        }
        Ok(true)
    }

    /// Leaves out a document. Returns its memory.
    fn reject(&mut self, error: Error, raw: Vec<u8>) -> usize {
        let reject = Reject { error, raw };
        let size = reject.size();
        self.rejects.push(reject);
        size
    }

    /// Checks at the end whether at least one document had a member for each column.
    fn check_presence(&self) -> Result<()> {
        match self.columns.absent().next() {
            Some(field) if self.has_rows && self.absent == OnAbsent::Error => Err(Error::new(ErrorKind::KeyMissing)
                .with_found("no document with this member")
                .with_path(join_path(field.keys()))
                .with_name(self.documents.reader().name())),
            _ => Ok(()),
        }
    }

    /// Adds the number of the document, and the reason why its columns have these types.
    #[cold]
    fn locate(&self, error: Error, record: u64) -> Error {
        let error = error.with_name(self.documents.reader().name()).with_record(record);
        let is_of_type = matches!(error.kind(), ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange);
        match error.expected() {
            Some(expected) if is_of_type && self.inferred_from > 0 => {
                let expected = format!("{expected}, as inferred from the first {} documents", self.inferred_from);
                error.with_expected(expected)
            }
            _ => error,
        }
    }
}
