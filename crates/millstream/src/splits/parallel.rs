//! Processes the splits of a plan on several threads.

use std::sync::Arc;

use crate::error::{Error, Result};

use super::in_order::AtOnce;
use super::{AssumedSplits, Divided, Split, Splits};

impl Splits {
    /// Calls `work` with each split on `threads` threads, and passes its results to `each` on the caller's thread, in the
    /// order of the splits. At most three results per thread are held, so the memory is bounded by the size of a result.
    /// With 1 thread, everything runs on the caller's thread.
    ///
    /// ```
    /// use millstream::splits::{Framing, Splits};
    /// use millstream::{Error, Reader};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// std::fs::write(&path, "1\n2\n3\n4\n")?;
    /// let plan = Splits::plan(&path, Framing::Lines, 4)?;
    /// let mut sums = Vec::new();
    /// let sum = |split: &_| {
    ///     let (mut reader, mut sum) = (Reader::split(split)?, 0);
    ///     while reader.next_line()?.is_some_and(|line| { sum += u32::from(line[0] - b'0'); true }) {}
    ///     Ok(sum)
    /// };
    /// plan.parallel(2, sum, |sum| {
    ///     sums.push(sum);
    ///     Ok::<(), Error>(())
    /// })?;
    /// assert_eq!(sums, [3, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first error of `work` or `each`, in the order of the splits, after the results of all splits before
    /// it have been passed on. `work` may have been called for later splits. A panic in `work` is
    /// [`StagePanicked`](crate::ErrorKind::StagePanicked).
    pub fn parallel<T, E>(
        &self,
        threads: usize,
        work: impl Fn(&Split) -> Result<T> + Send + Sync + 'static,
        each: impl FnMut(T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E>
    where
        T: Send + 'static,
        E: From<Error>,
    {
        Divided::from(self).parallel(threads, move |split| work(split).map(|result| (result, 0)), each)
    }
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
        Divided::from(self).parallel(threads, work, each)
    }
}

impl Divided {
    fn parallel<T, E>(
        self,
        threads: usize,
        work: impl Fn(&Split) -> Result<(T, u64)> + Send + Sync + 'static,
        mut each: impl FnMut(T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E>
    where
        T: Send + 'static,
        E: From<Error>,
    {
        let work = Arc::new(work);
        let mut results = self.in_order(threads, false, move |split| AtOnce::new(work(split)));
        while let Some(result) = results.next_piece()? {
            each(result?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::splits::Framing;

    fn push(seen: &mut Vec<u64>, begin: u64) -> Result<()> {
        seen.push(begin);
        Ok(())
    }

    #[test]
    fn results_are_in_order_and_stop_at_the_first_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "a\n".repeat(100)).unwrap();
        let plan = Splits::plan(&file, Framing::Lines, 2).unwrap();
        for threads in 1..4 {
            let mut seen = Vec::new();
            let begin = |split: &Split| Ok(split.begin());
            plan.parallel(threads, begin, |begin| push(&mut seen, begin)).unwrap();
            assert!(seen.iter().copied().eq((0..100).map(|i| 2 * i)));

            seen.clear();
            let fails = |split: &Split| match split.begin() {
                40 => Err(Error::new(ErrorKind::StageFailed)),
                60 => panic!("requested by the test"),
                begin => Ok(begin),
            };
            let error = plan.parallel(threads, fails, |begin| push(&mut seen, begin)).unwrap_err();
            assert_eq!((error.kind(), seen.len()), (ErrorKind::StageFailed, 20));

            seen.clear();
            let stop = |begin| match begin {
                10 => Err(Error::new(ErrorKind::Cancelled)),
                _ => push(&mut seen, begin),
            };
            let error = plan.parallel(threads, |split| Ok(split.begin()), stop).unwrap_err();
            assert_eq!((error.kind(), seen.len()), (ErrorKind::Cancelled, 5));
        }
        let panics = |split: &Split| if split.begin() == 6 { panic!("requested by the test") } else { Ok(()) };
        let error = plan.parallel(2, panics, |()| Ok::<(), Error>(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StagePanicked);
    }
}
