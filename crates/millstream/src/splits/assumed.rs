//! Reads a file of CSV on several threads without a pass before, see [`in_order`].

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::frame::Csv;

use super::in_order::{Part, in_order};
use super::walk::guess;
use super::{Split, Whole};

/// The splits of a file of CSV, each of which begins where a record is assumed to begin, until the splits before it have
/// been read. Planning reads nothing, in contrast to [`Splits::plan`](super::Splits::plan), so the file is read only once.
/// Created by [`SplitsBuilder::assume`](super::SplitsBuilder::assume).
#[derive(Clone, Debug)]
pub struct AssumedSplits {
    pub(super) whole: Arc<Whole>,
    pub(super) file: Arc<File>,
    pub(super) size: u64,
    pub(super) step: u64,
    pub(super) csv: Csv,
}

impl AssumedSplits {
    /// Calls `work` with each split on `threads` threads, and passes its results to `each` on the caller's thread, in the
    /// order of the splits, like [`Splits::parallel`](super::Splits::parallel).
    ///
    /// All records that begin before [`Split::end`] belong to the split; the reader of the split delivers bytes beyond it.
    /// `work` also returns the offset after the last record of the split. If it turns out that a split begins elsewhere,
    /// its result, even an error, is dropped, and `work` is called again with the right one, on the caller's thread.
    ///
    /// ```
    /// use millstream::frame::{Csv, CsvDialect};
    /// use millstream::splits::{Framing, Split, Splits};
    /// use millstream::{Error, Reader};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.csv");
    /// std::fs::write(&path, "1,\"a\n2,b\"\n3,c\n")?;
    /// let dialect = CsvDialect::new();
    /// let splits = Splits::builder().assume(&path, Framing::Csv { dialect }, 5)?.unwrap();
    /// let records = move |split: &Split| {
    ///     let (mut reader, mut csv, mut records) = (Reader::split(split)?, Csv::with(dialect)?, Vec::new());
    ///     while split.end().is_some_and(|end| reader.position().bytes < end) {
    ///         let Some(record) = reader.next_frame(&mut csv)? else { break };
    ///         records.push(String::from_utf8_lossy(record).into_owned());
    ///     }
    ///     Ok((records, reader.position().bytes))
    /// };
    /// let mut all = Vec::new();
    /// splits.parallel(2, records, |records| {
    ///     all.extend(records);
    ///     Ok::<(), Error>(())
    /// })?;
    /// assert_eq!(all, ["1,\"a\n2,b\"", "3,c"]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Splits::parallel`](super::Splits::parallel), and [`SourceChanged`] or [`SourceShrank`] if the
    /// file has changed in the meantime.
    ///
    /// [`SourceChanged`]: crate::ErrorKind::SourceChanged
    /// [`SourceShrank`]: crate::ErrorKind::SourceShrank
    pub fn parallel<T, E>(
        &self,
        threads: usize,
        work: impl Fn(&Split) -> Result<(T, u64)> + Send + Sync + 'static,
        each: impl FnMut(T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E>
    where
        T: Send + 'static,
        E: From<Error>,
    {
        let (file, csv, whole, size) = (self.file.clone(), self.csv.clone(), self.whole.clone(), self.size);
        let guess = move |range: &Range<u64>| guess(&file, size, &mut csv.clone(), range);
        let work = move |range: Range<u64>| {
            let is_last = range.end >= size;
            let split = Split {
                whole: whole.clone(),
                begin: range.start,
                end: Some(range.end),
                is_exact: is_last,
                record: None,
                encoded: None,
                hash: None,
            };
            work(&split).map(|(result, end)| Part { result, end, is_last: is_last || end >= size })
        };
        in_order(self.size, self.step, threads, guess, work, each)?;
        Ok(self.whole.pin.check(&self.file)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::Reader;
    use crate::error::ErrorKind;
    use crate::frame::{CsvDialect, CsvLineEnd, CsvStrayQuotes};
    use crate::splits::{Framing, Splits};

    /// Records, and the offset and the kind of the error that ended reading.
    type Read = (Vec<Vec<u8>>, Option<(ErrorKind, Option<u64>)>);

    fn read(reader: Result<Reader>, dialect: CsvDialect, end: u64) -> (Read, u64) {
        let (mut reader, mut csv, mut records) = (reader.unwrap(), Csv::with(dialect).unwrap(), Vec::new());
        let error = loop {
            if reader.position().bytes >= end {
                break None;
            }
            match reader.next_frame(&mut csv) {
                Ok(Some(record)) => records.push(record.to_vec()),
                Ok(None) => break None,
                Err(error) => break Some((error.kind(), error.offset())),
            }
        };
        ((records, error), reader.position().bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_splits_together_are_the_file(
            content in vec(select(vec![
                &b"a"[..], b",", b"\"", b"\n", b"\r\n", b"\r", b"\"a,\n\"", b"\"\"", b"b,\"c\"\n", b"\xef\xbb\xbf", b"\\",
            ]), 1..60),
            step in 1..40_u64,
            threads in 1..3_usize,
            line_end in select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Cr, CsvLineEnd::Crlf]),
            escape in select(vec![None, Some(b'\\')]),
            stray in select(vec![CsvStrayQuotes::Error, CsvStrayQuotes::Literal]),
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, content.concat()).unwrap();
            let dialect = CsvDialect::new().line_end(line_end).escape(escape).stray_quotes(stray);
            let expected = read(Reader::path(file.path()), dialect, u64::MAX).0;

            let splits = Splits::builder().assume(&file, Framing::Csv { dialect }, step).unwrap().unwrap();
            let work = move |split: &Split| {
                let end = split.end().filter(|_| split.is_assumed()).unwrap_or(u64::MAX);
                Ok(read(Reader::split(split), dialect, end))
            };
            let mut found = (Vec::new(), None);
            let stopped = splits.parallel(threads, work, |(records, error): Read| {
                found.0.extend(records);
                found.1 = error;
                if error.is_some() { Err(Error::new(ErrorKind::Cancelled)) } else { Ok(()) }
            });
            prop_assert_eq!(stopped.is_err(), found.1.is_some());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_changed_file_is_an_error_at_the_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a,b\n".repeat(10)).unwrap();
        let framing = Framing::Csv { dialect: CsvDialect::new() };
        let splits = Splits::builder().assume(&file, framing, 8).unwrap().unwrap();
        let work = |split: &Split| Ok(((), split.end().unwrap()));
        let each = |()| std::fs::write(&file, "a,b\n".repeat(11)).map_err(Error::from_io);
        assert_eq!(splits.parallel(1, work, each).unwrap_err().kind(), ErrorKind::SourceChanged);
    }
}
