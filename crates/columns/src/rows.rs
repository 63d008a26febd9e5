//! The fields of the records of a block of CSV, and lines, as columns.

use crate::build::{self, Misfit, Texts};
use crate::infer::Inferred;
use crate::layout::{Layout, Parsed};
use crate::options::Reject;
use crate::span::{ABSENT, Content, Span};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use millstream::frame::{CsvPositions, CsvRow};
use millstream::{BatchCopy, Error, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Memory that one thread uses for one block after another.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The fields of all rows, as many for each as there are columns.
    spans: Vec<Span>,
    /// The contents from whose middle quotes or escape characters were removed.
    decoded: Vec<u8>,
    /// For each row, the number of its record in the block.
    records: Vec<u32>,
}

/// The fields of one column.
struct Column<'a> {
    bytes: &'a [u8],
    decoded: &'a [u8],
    spans: &'a [Span],
    stride: usize,
    index: usize,
}

impl Texts for Column<'_> {
    fn len(&self) -> usize {
        self.spans.len() / self.stride
    }

    #[inline(always)]
    fn get(&self, row: usize) -> Option<Content<'_>> {
        self.spans[row * self.stride + self.index].get(self.bytes, self.decoded)
    }

    fn byte_len(&self) -> usize {
        self.spans.iter().skip(self.index).step_by(self.stride).map(|span| span.len()).sum()
    }
}

/// A record that is left out, or at which the columns end.
struct Bad {
    record: usize,
    /// The position of the error in the record.
    at: usize,
    error: Error,
}

impl Layout {
    /// Splits the records of a block into the spans of the columns. Records with another
    /// number of fields are the result; by default they end the rows.
    fn spans(&self, block: &BatchCopy, positions: &mut CsvPositions, scratch: &mut Scratch, goes_on: bool) -> Vec<Bad> {
        let Scratch { spans, decoded, records } = scratch;
        spans.clear();
        decoded.clear();
        records.clear();
        let batch = block.batch();
        let begin = batch.bytes().as_ptr().addr();
        let count = self.fields;
        let mut bad = Vec::new();
        let borrowed = |text: &[u8]| {
            let start = (text.as_ptr().addr() - begin) as u32;
            Span { start, end: start + text.len() as u32 }
        };
        let is_null = |text: &[u8]| self.nulls.iter().any(|null| null == text);
        let Some(csv) = self.csv() else {
            spans.extend(batch.iter().map(|line| if is_null(line) { ABSENT } else { borrowed(line) }));
            records.extend(0..batch.len() as u32);
            return bad;
        };
        let mut examined = |row: &CsvRow<'_>, i: usize| {
            let Some(raw) = row.raw(i) else { return ABSENT };
            let is_quoted = raw.first().is_some_and(|&first| Some(first) == csv.quote_byte());
            match csv.unquote(raw) {
                text if !is_quoted && is_null(&text) => ABSENT,
                Cow::Borrowed(text) => borrowed(text),
                Cow::Owned(text) => {
                    let start = decoded.len();
                    decoded.extend_from_slice(&text);
                    Span::decoded(start, decoded.len())
                }
            }
        };
        let has_nulls = !self.nulls.is_empty();
        let mut span = |row: &CsvRow<'_>, i: usize, content: Option<(u32, u32)>| match content {
            Some((start, end)) if !has_nulls => Span { start, end },
            _ => examined(row, i),
        };
        for row in csv.rows(batch, positions) {
            if let Err(error) = self.ragged.check(row.len(), count, "the first record") {
                bad.push(Bad { record: row.index(), at: 0, error });
                if !goes_on {
                    break;
                }
                continue;
            }
            match &self.picked {
                None => {
                    spans.extend(row.contents().enumerate().map(|(i, content)| span(&row, i, content)));
                    spans.extend((row.len()..count).map(|_| ABSENT));
                }
                Some(picked) => spans.extend(picked.iter().map(|&i| span(&row, i, row.content(i)))),
            }
            records.push(row.index() as u32);
        }
        bad
    }

    /// Returns the position of a field in its record, at which an error of its content is reported: that of its first byte,
    /// which may be a quote.
    #[cold]
    fn place(&self, record: &[u8], column: usize) -> usize {
        let Some(csv) = self.csv() else { return 0 };
        let field = self.picked.as_ref().map_or(column, |picked| picked[column]);
        let mut fields = csv.fields(record);
        for _ in 0..field {
            fields.next_raw();
        }
        fields.next_raw().map_or(0, |raw| raw.as_ptr().addr() - record.as_ptr().addr())
    }

    /// Returns the columns of the texts, one for each column of the schema.
    fn columns<'a>(&'a self, block: &'a BatchCopy, scratch: &'a Scratch) -> impl Iterator<Item = Column<'a>> {
        let stride = self.picked.as_ref().map_or(self.fields, Vec::len);
        let (bytes, decoded, spans) = (block.batch().bytes(), &scratch.decoded[..], &scratch.spans[..]);
        (0..stride).map(move |index| Column { bytes, decoded, spans, stride, index })
    }

    /// Passes the texts of the first rows to inference, and returns the number of these rows. Records with another number
    /// of fields are left out: reading reports them.
    pub(crate) fn observe(
        &self,
        block: &BatchCopy,
        positions: &mut CsvPositions,
        scratch: &mut Scratch,
        most: usize,
        columns: &mut [Inferred],
    ) -> usize {
        drop(self.spans(block, positions, scratch, true));
        let scratch = &*scratch;
        let rows = scratch.records.len().min(most);
        for (texts, column) in self.columns(block, scratch).zip(columns) {
            for text in (0..rows).filter_map(|row| texts.get(row)) {
                column.observe(text.bytes(), self.how);
            }
        }
        rows
    }

    /// Turns the records of a block into a batch. The positions are those of its fields, or of others.
    pub(crate) fn parse_texts(
        &self,
        block: &BatchCopy,
        positions: &mut CsvPositions,
        scratch: &mut Scratch,
    ) -> Result<Parsed> {
        let mut bad = self.spans(block, positions, scratch, self.goes_on);
        let scratch = &*scratch;
        let fields = self.schema.arrow().fields();
        let how = build::How {
            exact: self.schema.is_inferred(),
            rules: self.how.rules,
            nullable: true,
            goes_on: self.goes_on,
        };
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        // The leftmost misfit of each row.
        let mut misfits = BTreeMap::new();
        let mut rows = scratch.records.len();
        for (texts, field) in self.columns(block, scratch).zip(fields) {
            let how = build::How { nullable: field.is_nullable(), ..how };
            let (array, found) = build::array(&texts, field.data_type(), how)?;
            if !self.goes_on {
                rows = rows.min(build::rows(&array));
            }
            arrays.push(array);
            for Misfit { row, kind } in found {
                misfits.entry(row).or_insert_with(|| {
                    let record = scratch.records[row] as usize;
                    let at = self.place(block.batch().get(record).unwrap_or_default(), texts.index);
                    let error = self.misfit(kind, texts.get(row).map(Content::bytes), field);
                    Bad { record, at, error }
                });
            }
        }
        let mut kept = vec![true; scratch.records.len()];
        misfits.keys().for_each(|&row| kept[row] = false);
        let is_whole = misfits.is_empty();
        bad.extend(misfits.into_values());
        bad.sort_by_key(|bad| bad.record);
        if !self.goes_on {
            arrays.iter_mut().for_each(|array| *array = array.slice(0, rows));
        } else if !is_whole {
            let kept = BooleanArray::from(kept);
            rows = kept.true_count();
            for array in &mut arrays {
                *array = build::without(array, &kept)?;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.arrow().clone(), arrays, &options);
        let mut rejects: Vec<Reject> = bad
            .into_iter()
            .map(|Bad { record, at, error }| Reject {
                error: block.locate(error, record, at),
                raw: block.batch().get(record).unwrap_or_default().to_vec(),
            })
            .collect();
        let error = if self.goes_on || rejects.is_empty() { None } else { Some(rejects.swap_remove(0).error) };
        if error.is_some() {
            rejects.clear();
        }
        Ok(Parsed { batch: batch.map_err(build::refused)?, rejects, error })
    }
}
