//! The documents of a stream, batch by batch.

use super::{Columns, Options, Sample, Schema};
use crate::bson::Documents;
use crate::error::{Error, Result};

/// The documents of a stream as columns, each batch as large as the [options](Options::batch_bytes) say.
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
pub struct Batches {
    sample: Sample,
    documents: Documents,
    columns: Columns,
    /// What went wrong behind the rows that have been handed out.
    error: Option<Error>,
    over: bool,
}

impl Batches {
    /// The documents of a sample, which may be empty, and behind them the rest.
    ///
    /// # Errors
    /// Those of [`Columns::new`].
    pub fn new(sample: Sample, documents: Documents, schema: &Schema, options: Options) -> Result<Batches> {
        Ok(Batches { sample, documents, columns: Columns::new(schema, options)?, error: None, over: false })
    }

    /// Where the documents come from.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// The same, behind the last document that was read.
    pub fn into_documents(self) -> Documents {
        self.documents
    }

    /// The columns that are being filled, which know what did not fit so far.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The next batch; `None` at the end, which says that the source succeeded.
    ///
    /// # Errors
    /// Those of [`Documents::next`] and of [`Columns::append`], with offset and record, once the rows before it have been
    /// handed out. After one that is not [resumable](crate::ErrorKind::is_resumable) comes the end.
    pub fn next_batch(&mut self) -> Result<Option<Columns>> {
        if self.error.is_none() && !self.over {
            match self.fill() {
                Ok(()) => {}
                // Cancelled, say: what is there stays, and the next call goes on.
                Err(error) if error.kind().is_resumable() => return Err(error),
                Err(error) => (self.error, self.over) = (Some(error), true),
            }
        }
        if !self.columns.is_empty() {
            return Ok(Some(self.columns.take()));
        }
        self.error.take().map_or(Ok(None), Err)
    }

    fn fill(&mut self) -> Result<()> {
        while !self.columns.is_full() {
            if let Some((document, record)) = self.sample.pop() {
                let name = self.documents.reader().name();
                self.columns.append(&document).map_err(|error| error.with_name(name).with_record(record))?;
                continue;
            }
            let Some(document) = self.documents.next()? else { break };
            if let Err(error) = self.columns.append(&document) {
                let reader = self.documents.reader();
                return Err(error.with_name(reader.name()).with_record(reader.position().records - 1));
            }
        }
        Ok(())
    }
}
