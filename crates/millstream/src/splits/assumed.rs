//! Reads a file of CSV on several threads without a pass before: see [`in_order`](super::in_order).

use std::sync::Arc;

use super::Whole;
use super::chunks::Chunks;

/// The splits of a file of CSV, each of which begins where a record is assumed to begin, until the splits before it have
/// been read. Planning reads nothing, in contrast to [`Splits::plan`](super::Splits::plan), so the file is read only once.
/// Created by [`SplitsBuilder::assume`](super::SplitsBuilder::assume).
#[derive(Clone, Debug)]
pub struct AssumedSplits {
    pub(super) whole: Arc<Whole>,
    pub(super) chunks: Arc<Chunks>,
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use crate::Reader;
    use crate::error::{Error, ErrorKind, Result};
    use crate::frame::{Csv, CsvDialect, CsvLineEnd, CsvStrayQuotes};
    use crate::splits::in_order::{AtOnce, Found, InOrder, Parts};
    use crate::splits::{AssumedSplits, Divided, Framing, Split, Splits};

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

    /// Reads a whole file. Returns also the offset of each record, and the one after the last.
    fn read_all(path: &std::path::Path, dialect: CsvDialect) -> (Read, Vec<u64>) {
        let (mut reader, mut csv) = (Reader::path(path).unwrap(), Csv::with(dialect).unwrap());
        let mut offsets = vec![0];
        while let Ok(Some(_)) = reader.next_frame(&mut csv) {
            offsets.push(reader.position().bytes);
        }
        (read(Reader::path(path), dialect, u64::MAX).0, offsets)
    }

    /// The same splits with a wrong start assumed for each.
    #[derive(Clone)]
    struct Wrong {
        splits: AssumedSplits,
        /// The offset of each record.
        records: Vec<u64>,
        random: usize,
    }

    impl Wrong {
        fn divided(&self) -> Divided {
            Divided::from(&self.splits)
        }
    }

    impl Parts for Wrong {
        type Part = Split;

        fn count(&self) -> usize {
            self.divided().count()
        }

        fn guess(&self, index: usize) -> Option<(Split, u64)> {
            let chunks = &self.splits.chunks;
            let start = index as u64 * chunks.step;
            let end = chunks.size.min(start + chunks.step);
            let right = self.records.iter().find(|&&record| record >= start);
            let wrong: Vec<u64> = (start..end).filter(|at| Some(at) != right).collect();
            let guess = *wrong.get(self.random % wrong.len().max(1))?;
            Some((self.splits.split(guess..end), guess))
        }

        fn check(&self, index: usize, guess: Option<u64>, begin: u64) -> Found<Split> {
            let found = self.divided().check(index, guess, begin);
            assert!(!matches!(found, Found::Right), "the guess {guess:?} for split {index} is right");
            found
        }

        fn finish(&self) -> Result<()> {
            self.divided().finish()
        }
    }

    /// Small files of CSV, most of them with quotes in wrong places.
    fn files() -> impl Strategy<Value = Vec<u8>> {
        let pieces = vec![
            &b"a"[..],
            b",",
            b"\"",
            b"\n",
            b"\r\n",
            b"\r",
            b"\"a,\n\"",
            b"\"\"",
            b"b,\"c\"\n",
            b"\xef\xbb\xbf",
            b"\\",
        ];
        vec(select(pieces), 1..60).prop_map(|pieces| pieces.concat())
    }

    fn dialects() -> impl Strategy<Value = CsvDialect> {
        let line_end = select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Cr, CsvLineEnd::Crlf]);
        let escape = select(vec![None, Some(b'\\')]);
        let stray = select(vec![CsvStrayQuotes::Error, CsvStrayQuotes::Literal]);
        (line_end, escape, stray).prop_map(|(line_end, escape, stray)| {
            CsvDialect::new().line_end(line_end).escape(escape).stray_quotes(stray)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn if_every_assumption_is_wrong_the_splits_together_are_the_file(
            content in files(),
            step in 2..40_u64,
            threads in 1..3_usize,
            dialect in dialects(),
            random in any::<usize>(),
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, &content).unwrap();
            let (expected, offsets) = read_all(file.path(), dialect);
            let splits = Splits::builder().assume(&file, Framing::Csv { dialect }, step).unwrap().unwrap();
            let work = move |split: &Split| {
                let end = split.end().filter(|_| split.is_assumed()).unwrap_or(u64::MAX);
                AtOnce::new(Ok(read(Reader::split(split), dialect, end)))
            };
            let wrong = Wrong { splits, records: offsets, random };
            let mut pieces = InOrder::start(wrong, threads, false, work);
            let mut found = (Vec::new(), None);
            while let Some(piece) = pieces.next_piece().unwrap() {
                let (records, error) = piece.unwrap();
                found.0.extend(records);
                found.1 = error;
                if error.is_some() {
                    break;
                }
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_splits_together_are_the_file(
            content in files(),
            step in 1..40_u64,
            threads in 1..3_usize,
            dialect in dialects(),
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, &content).unwrap();
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
        let (shrank, changed) = (ErrorKind::SourceShrank, ErrorKind::SourceChanged);
        for (content, kind) in
            [("a,b\n".repeat(11), changed), ("a,b\n".repeat(9), shrank), ("a;b\n".repeat(10), changed)]
        {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, "a,b\n".repeat(10)).unwrap();
            let framing = Framing::Csv { dialect: CsvDialect::new() };
            let splits = Splits::builder().assume(&file, framing, 8).unwrap().unwrap();
            let work = |split: &Split| Ok(((), split.end().unwrap()));
            let each = |()| {
                std::fs::write(&file, &content).map_err(Error::from_io)?;
                // An overwritten file may keep its time if the clock is coarse.
                file.as_file().set_modified(std::time::UNIX_EPOCH).map_err(Error::from_io)
            };
            assert_eq!(splits.parallel(1, work, each).unwrap_err().kind(), kind);
        }
    }
}
