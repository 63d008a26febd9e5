//! The fields of the records of a block of CSV, and lines, as columns.

use crate::build::{self, Misfit, Texts};
use crate::infer::Inferred;
use crate::layout::{Layout, Parsed};
use crate::options::Reject;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use millstream::frame::Csv;
use millstream::{BatchCopy, Error, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Where a field is in the bytes of its block. `ABSENT` stands for a field that its record does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

const ABSENT: Span = Span { start: u32::MAX, end: 0 };

/// Memory that one thread uses for one block after another.
#[derive(Default)]
pub(crate) struct Scratch {
    ends: Vec<u32>,
    /// The fields of all rows, as many for each as there are columns.
    spans: Vec<Span>,
    /// For each row, the number of its record in the block.
    records: Vec<u32>,
}

/// The fields of one column.
struct Column<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
    stride: usize,
    index: usize,
    csv: Option<&'a Csv>,
    /// The byte that begins a field whose content differs from its bytes.
    quote: Option<u8>,
    /// Whether contents can differ from their bytes without quotes, too.
    has_escape: bool,
    nulls: &'a [Vec<u8>],
    /// Whether every content is the bytes of its field, and none is null.
    is_plain: bool,
    is_utf8: bool,
}

impl Texts for Column<'_> {
    fn len(&self) -> usize {
        self.spans.len() / self.stride
    }

    #[inline(always)]
    fn get(&self, row: usize) -> Option<Cow<'_, [u8]>> {
        let Span { start, end } = self.spans[row * self.stride + self.index];
        let raw = self.bytes.get(start as usize..end as usize)?;
        if self.is_plain { Some(Cow::Borrowed(raw)) } else { self.content(raw) }
    }

    fn is_utf8(&self) -> bool {
        self.is_utf8
    }

    fn byte_len(&self) -> usize {
        let spans = self.spans.iter().skip(self.index).step_by(self.stride);
        spans.map(|span| span.end.saturating_sub(span.start) as usize).sum()
    }
}

impl<'a> Column<'a> {
    /// The content of a field, from all its bytes.
    fn content(&self, raw: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let is_quoted = self.quote.is_some() && raw.first().copied() == self.quote;
        if (is_quoted || self.has_escape)
            && let Some(csv) = self.csv
        {
            let text = csv.unquote(raw);
            return (is_quoted || !self.is_null(&text)).then_some(text);
        }
        (!self.is_null(raw)).then_some(Cow::Borrowed(raw))
    }

    fn is_null(&self, text: &[u8]) -> bool {
        !self.nulls.is_empty() && self.nulls.iter().any(|null| null == text)
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
    fn spans(&self, block: &BatchCopy, scratch: &mut Scratch, goes_on: bool) -> Vec<Bad> {
        let Scratch { ends, spans, records } = scratch;
        spans.clear();
        records.clear();
        let batch = block.batch();
        let begin = batch.bytes().as_ptr().addr();
        let count = self.fields;
        let mut bad = Vec::new();
        let span = |raw: &[u8]| {
            let start = (raw.as_ptr().addr() - begin) as u32;
            Span { start, end: start + raw.len() as u32 }
        };
        let Some(csv) = self.csv() else {
            spans.extend(batch.iter().map(span));
            records.extend(0..batch.len() as u32);
            return bad;
        };
        for row in csv.rows(batch, ends) {
            if let Err(error) = self.ragged.check(row.len(), count, "the first record") {
                bad.push(Bad { record: row.index(), at: 0, error });
                if !goes_on {
                    break;
                }
                continue;
            }
            match &self.picked {
                None => {
                    spans.extend((0..row.len()).map(|i| row.raw(i).map_or(ABSENT, span)));
                    spans.extend((row.len()..count).map(|_| ABSENT));
                }
                Some(picked) => spans.extend(picked.iter().map(|&i| row.raw(i).map_or(ABSENT, span))),
            }
            records.push(row.index() as u32);
        }
        bad
    }

    /// Returns the columns of the texts, one for each column of the schema.
    fn columns<'a>(&'a self, block: &'a BatchCopy, scratch: &'a Scratch) -> impl Iterator<Item = Column<'a>> {
        let stride = self.picked.as_ref().map_or(self.fields, Vec::len);
        let batch = block.batch();
        let used = &batch.bytes()[..batch.offsets()[batch.len()] as usize];
        let is_utf8 = self.is_ascii_dialect() && str::from_utf8(used).is_ok();
        let quote = self.csv().and_then(Csv::quote_byte);
        let has_escape = self.csv().and_then(Csv::escape_byte).is_some();
        let has_quotes = quote.is_some_and(|quote| memchr::memchr(quote, used).is_some());
        let is_plain = !has_quotes && !has_escape && self.nulls.is_empty();
        (0..stride).map(move |index| Column {
            bytes: batch.bytes(),
            spans: &scratch.spans,
            stride,
            index,
            csv: self.csv(),
            quote,
            has_escape,
            nulls: &self.nulls,
            is_plain,
            is_utf8,
        })
    }

    /// Whether parts of valid UTF-8 between the bytes of the dialect are valid, too.
    fn is_ascii_dialect(&self) -> bool {
        self.csv().is_none_or(|csv| {
            [Some(csv.delimiter()), csv.quote_byte(), csv.escape_byte()].iter().flatten().all(u8::is_ascii)
        })
    }

    /// Passes the texts of the first rows to inference, and returns the number of these rows. Records with another number
    /// of fields are left out: reading reports them.
    pub(crate) fn observe(
        &self,
        block: &BatchCopy,
        scratch: &mut Scratch,
        most: usize,
        columns: &mut [Inferred],
    ) -> usize {
        drop(self.spans(block, scratch, true));
        let scratch = &*scratch;
        let rows = scratch.records.len().min(most);
        for (texts, column) in self.columns(block, scratch).zip(columns) {
            for text in (0..rows).filter_map(|row| texts.get(row)) {
                column.observe(&text, self.how);
            }
        }
        rows
    }

    /// Turns the records of a block into a batch.
    pub(crate) fn parse_texts(&self, block: &BatchCopy, scratch: &mut Scratch) -> Result<Parsed> {
        let mut bad = self.spans(block, scratch, self.goes_on);
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
                    let raw = texts.spans[row * texts.stride + texts.index];
                    let record = scratch.records[row] as usize;
                    let start = block.batch().offsets()[record] as usize;
                    let at = if raw == ABSENT { 0 } else { raw.start as usize - start };
                    let text = texts.get(row);
                    let error = self.misfit(kind, text.as_deref(), field);
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
