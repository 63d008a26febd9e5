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
    use crate::splits::{Framing, Split, Splits};

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
