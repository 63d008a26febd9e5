//! The fields of all records of a batch.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::simd::QuotedIndex;
use super::super::simd::quoted::Found;
use super::super::{Batch, Framer};
use super::{Csv, CsvBlankLines};

/// Memory for [`Csv::rows`], which can be used again: where fields end, and where quotes are doubled.
#[derive(Clone, Debug, Default)]
pub struct CsvPositions {
    /// The number of the call that has found the records, or 0 if it is not known. It tells these records from all others:
    /// positions of other bytes at the same place in memory, of records with the same ends, are never used.
    call: u64,
    /// The position after each field, for each record the number of fields up to its end, and the position of the second of each
    /// two quotes that stand for one.
    pub(super) found: Found,
    contents: Contents,
}

/// How the contents of fields differ from their bytes.
#[derive(Clone, Copy, Debug, Default)]
enum Contents {
    /// They are the same.
    #[default]
    Raw,
    /// Some fields are in quotes, and the index has found where quotes are doubled.
    Quoted(u8),
    /// `unquote` has to find out, because the index could not be used.
    Unknown,
}

impl CsvPositions {
    /// Creates empty memory.
    pub fn new() -> CsvPositions {
        CsvPositions::default()
    }

    /// Removes all positions, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.call = 0;
        self.found.clear();
        self.contents = Contents::Raw;
    }

    /// Adds the end of the last record.
    pub(super) fn end(&mut self, end: u32) {
        self.found.ends.push(end);
        self.found.lines.push(self.found.ends.len() as u32);
    }

    /// Returns the ends of the records from one on.
    pub(super) fn record_ends(&self, first: usize) -> impl Iterator<Item = u32> {
        let Found { ends, lines, .. } = &self.found;
        lines[first..].iter().map(|&count| ends[count as usize - 1])
    }

    /// Returns whether these are the positions of the records of the batch.
    fn are_of(&self, batch: &Batch<'_>) -> bool {
        let Found { ends, lines, .. } = &self.found;
        let offsets = batch.offsets();
        // A reader may have cut the batch. The ends are compared only as a precaution.
        self.call != 0
            && batch.call() == self.call
            && offsets[0] == 0
            && (batch.is_empty()
                || lines.get(batch.len() - 1).map(|&count| &ends[count as usize - 1]) == offsets.last())
    }

    /// States whether there were quotes.
    pub(super) fn set_quotes(&mut self, quote: Option<u8>, has_quotes: bool) {
        self.contents = quote.filter(|_| has_quotes).map_or(Contents::Raw, Contents::Quoted);
    }
}

/// The fields of the records that the last call of [`Csv::batch`] has found, so that [`Csv::rows`] need not look for them.
///
/// They are found only if the fields of the records of the call before were asked for. A framer that only counts is not slower.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Whether fields were asked for since records were last found.
    are_asked: AtomicBool,
    positions: CsvPositions,
}

/// A clone has found no records.
impl Clone for Kept {
    fn clone(&self) -> Kept {
        Kept::default()
    }
}

impl Kept {
    /// Forgets the records.
    pub(super) fn forget(&mut self) {
        self.positions.call = 0;
    }

    /// Returns the number of the call that has found the records, or 0 if their fields are not kept.
    pub(super) fn call(&self) -> u64 {
        self.positions.call
    }

    /// Forgets the records, and returns memory for positions if they are wanted.
    pub(super) fn start(&mut self) -> Option<CsvPositions> {
        self.forget();
        self.are_asked.get_mut().then(|| {
            let mut positions = std::mem::take(&mut self.positions);
            positions.clear();
            positions
        })
    }

    /// Keeps the positions of the first `count` records, which must be all that the call has found, if they are complete.
    pub(super) fn finish(&mut self, count: usize, positions: CsvPositions, is_complete: bool) {
        static CALLS: AtomicU64 = AtomicU64::new(1);
        self.positions = positions;
        // A reader that finds no record reads more and calls again.
        if count > 0 {
            *self.are_asked.get_mut() = false;
            if is_complete {
                self.positions.found.lines.truncate(count);
                self.positions.call = CALLS.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Csv {
    /// Returns an iterator over the records of a batch, which comes from this framer, with their fields. It finds the fields
    /// of all records together, which is several times as fast as [`fields`](Csv::fields) for each of them. Lines that the
    /// dialect skips are left out.
    ///
    /// If each batch is passed to the framer that has found it for a reader, not to a clone, the framer finds the fields of the
    /// next batch together with its records, which is faster again.
    ///
    /// ```
    /// use millstream::{Reader, frame::{Csv, CsvPositions}};
    /// let mut reader = Reader::memory("id,name\n1,\"a, b\"\n\n2,\"say \"\"hi\"\"\"\n")?;
    /// let (mut csv, mut positions, mut names) = (Csv::new(), CsvPositions::new(), Vec::new());
    /// while let Some(batch) = reader.next_batch(&mut csv)? {
    ///     for row in csv.rows(batch, &mut positions) {
    ///         assert_eq!(row.len(), 2);
    ///         names.push(String::from_utf8_lossy(&row.get(1).unwrap()).into_owned());
    ///     }
    /// }
    /// assert_eq!(names, ["name", "a, b", "say \"hi\""]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn rows<'a>(&'a self, batch: Batch<'a>, positions: &'a mut CsvPositions) -> CsvRows<'a> {
        self.kept.are_asked.store(true, Ordering::Relaxed);
        let positions = if self.kept.positions.are_of(&batch) {
            &self.kept.positions
        } else {
            if !positions.are_of(&batch) && self.find_fields(&batch, positions).is_none() {
                positions.clear();
                (0..batch.len()).for_each(|i| self.find_fields_of(&batch, i, positions));
                positions.contents = Contents::Unknown;
            }
            positions
        };
        let Found { ends, lines, doubled } = &positions.found;
        CsvRows { csv: self, batch, ends, used: 0, lines, doubled, contents: positions.contents, next: 0 }
    }

    /// Exchanges `positions` for the fields that the framer has found with the records of the last batch, so that
    /// [`rows`](Csv::rows) of a clone, on another thread, does not look for them. The framer finds the fields of the next batch,
    /// too.
    #[doc(hidden)] // for `millstream-columns`
    pub fn take_fields(&mut self, positions: &mut CsvPositions) {
        *self.kept.are_asked.get_mut() = true;
        std::mem::swap(&mut self.kept.positions, positions);
        self.kept.forget();
    }

    /// Finds the position after each field of the batch with vector instructions. Returns `None` if the dialect or the bytes do
    /// not allow that.
    fn find_fields(&self, batch: &Batch<'_>, positions: &mut CsvPositions) -> Option<()> {
        positions.clear();
        let mut index = self.index.map(QuotedIndex::of_fields)?;
        let offsets = batch.offsets();
        let (mut at, end) = (offsets[0], offsets[offsets.len() - 1]);
        for block in batch.bytes()[at as usize..end as usize].chunks(QuotedIndex::BLOCK) {
            if !index.append_found(block, at, &mut positions.found) {
                return None;
            }
            at += block.len() as u32;
        }
        if end > offsets[0] {
            // An empty field may follow.
            positions.found.ends.extend(index.ends_field().then_some(end));
            positions.end(end);
        }
        positions.set_quotes(self.dialect.quote, index.has_quotes());
        Some(())
    }

    /// Appends the position after each field of a record, one after another.
    fn find_fields_of(&self, batch: &Batch<'_>, i: usize, positions: &mut CsvPositions) {
        let ends = &mut positions.found.ends;
        let (start, end) = (batch.offsets()[i], batch.offsets()[i + 1]);
        let record = batch.get(i).unwrap_or_default();
        let mut at = start + (record.len() - self.without_mark(record).len()) as u32;
        let mut fields = self.fields(record);
        while let Some(raw) = fields.next_raw() {
            at += raw.len() as u32 + 1;
            ends.push(at);
        }
        // The last field ends with the record.
        if ends.last().is_some_and(|&last| last > start) {
            ends.pop();
        }
        positions.end(end);
    }
}

/// An iterator over the records of a batch. It is created by [`Csv::rows`].
#[derive(Clone, Debug)]
pub struct CsvRows<'a> {
    csv: &'a Csv,
    batch: Batch<'a>,
    /// The positions of the records from `next` on, and the number of ends before, as in [`CsvPositions`].
    ends: &'a [u32],
    used: usize,
    /// For each record, the number of all ends up to its own.
    lines: &'a [u32],
    doubled: &'a [u32],
    contents: Contents,
    next: usize,
}

/// A record and its fields.
#[derive(Clone, Copy, Debug)]
pub struct CsvRow<'a> {
    csv: &'a Csv,
    bytes: &'a [u8],
    /// Where the record begins and where its content ends.
    begin: u32,
    end: u32,
    /// The positions of the record, as in [`CsvPositions`].
    ends: &'a [u32],
    doubled: &'a [u32],
    contents: Contents,
    /// The number of the record in the batch.
    index: usize,
}

impl<'a> Iterator for CsvRows<'a> {
    type Item = CsvRow<'a>;

    #[inline]
    fn next(&mut self) -> Option<CsvRow<'a>> {
        loop {
            let index = self.next;
            let offsets = self.batch.offsets();
            let (&begin, &after) = (offsets.get(index)?, offsets.get(index + 1)?);
            self.next += 1;
            let is_last = index + 1 == self.batch.len();
            let count = (self.lines.get(index).map_or(0, |&count| count as usize)).wrapping_sub(self.used);
            let count = match self.ends.get(count.wrapping_sub(1)) {
                Some(&end) if end == after => count,
                // The batch is not from this framer.
                _ if is_last => self.ends.len(),
                _ => self.ends.iter().position(|&end| end == after)? + 1,
            };
            let (ends, rest) = self.ends.split_at(count);
            (self.ends, self.used) = (rest, self.used + count);
            let (doubled, rest) = self.doubled.split_at(self.doubled.iter().take_while(|&&at| at < after).count());
            self.doubled = rest;
            let terminated = !is_last || self.batch.terminated();
            let raw = &self.batch.bytes()[begin as usize..after as usize];
            let content = self.csv.trim().apply(raw, terminated);
            if self.may_skip(content) && self.csv.skips(content) {
                continue;
            }
            let (bytes, end) = (self.batch.bytes(), begin + content.len() as u32);
            let marked = (content.len() - self.csv.without_mark(content).len()) as u32;
            let (begin, contents) = (begin + marked, self.contents);
            return Some(CsvRow { csv: self.csv, bytes, begin, end, ends, doubled, contents, index });
        }
    }
}

impl CsvRows<'_> {
    /// Returns whether a line may not be a record.
    #[inline]
    fn may_skip(&self, content: &[u8]) -> bool {
        let dialect = &self.csv.dialect;
        dialect.comment.is_some() || (content.len() <= 3 && dialect.blank_lines == CsvBlankLines::Skip)
    }
}

impl<'a> CsvRow<'a> {
    /// Returns the number of fields.
    #[expect(clippy::len_without_is_empty, reason = "a record has at least one field")]
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of the record in the batch.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns where a field begins and ends in the bytes of the batch, or `None` if there is no such field.
    #[inline]
    fn bounds(&self, i: usize) -> Option<(u32, u32)> {
        let &end = self.ends.get(i)?;
        let begin = if i == 0 { self.begin } else { self.ends[i - 1] };
        Some((begin, if i + 1 == self.ends.len() { self.end } else { end - 1 }))
    }

    /// Returns where the content of a field begins and ends in the bytes of the batch, or `None` if [`get`](CsvRow::get) has
    /// to find out what the content is.
    #[doc(hidden)] // for `millstream-columns`
    #[inline]
    pub fn content(&self, i: usize) -> Option<(u32, u32)> {
        self.bounds(i).and_then(|(begin, end)| self.content_of(begin, end))
    }

    /// The same for each field.
    #[doc(hidden)] // for `millstream-columns`
    #[inline]
    pub fn contents(&self) -> impl ExactSizeIterator<Item = Option<(u32, u32)>> + use<'a> {
        let (row, mut begin) = (*self, self.begin);
        row.ends.iter().enumerate().map(move |(i, &end)| {
            let begin = std::mem::replace(&mut begin, end);
            row.content_of(begin, if i + 1 == row.ends.len() { row.end } else { end - 1 })
        })
    }

    /// The same for the field between these positions.
    #[inline]
    fn content_of(&self, begin: u32, end: u32) -> Option<(u32, u32)> {
        let quote = match self.contents {
            Contents::Raw => return Some((begin, end)),
            Contents::Quoted(quote) => quote,
            Contents::Unknown => return None,
        };
        if self.doubled.iter().any(|&at| begin < at && at < end) {
            return None;
        }
        let raw = &self.bytes[begin as usize..end as usize];
        // Which fields have quotes is hard to predict, so this is without a branch for it.
        let is_quoted = u32::from(raw.len() > 1 && (raw[0] == quote) & (raw[raw.len() - 1] == quote));
        Some((begin + is_quoted, end - is_quoted))
    }

    /// Returns all bytes of a field, including quotes and escape characters, or `None` if there is no such field.
    #[inline]
    pub fn raw(&self, i: usize) -> Option<&'a [u8]> {
        self.bounds(i).map(|(begin, end)| &self.bytes[begin as usize..end as usize])
    }

    /// Returns the content of a field. It is borrowed, unless quotes or escape characters must be removed from its middle.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Cow<'a, [u8]>> {
        match self.content(i) {
            Some((begin, end)) => Some(Cow::Borrowed(&self.bytes[begin as usize..end as usize])),
            None => self.raw(i).map(|raw| self.csv.unquote(raw)),
        }
    }

    /// Returns an iterator over the contents of the fields.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Cow<'a, [u8]>> + use<'a> {
        let row = *self;
        (0..row.len()).map(move |i| row.get(i).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::frame::{CsvDialect, CsvLineEnd, CsvStrayQuotes, Resume};

    /// The numbers of the records that are not skipped, and their fields.
    type Rows = Vec<(usize, Vec<Vec<u8>>)>;

    fn rows(csv: &Csv, batch: Batch<'_>, positions: &mut CsvPositions) -> Rows {
        let rows = csv.rows(batch, positions);
        rows.map(|row| (row.index(), row.iter().map(|field| field.into_owned()).collect())).collect()
    }

    /// The same, one record at a time.
    fn naive(csv: &Csv, batch: &Batch<'_>) -> Rows {
        let lines = batch.iter().enumerate().filter(|(_, line)| !csv.skips(line));
        lines.map(|(i, line)| (i, csv.fields(line).map(|field| field.into_owned()).collect())).collect()
    }

    /// States that the fields of the next records are wanted.
    fn ask(csv: &Csv) {
        let _ = csv.rows(Batch::new(b"", &[0], csv.trim(), true), &mut CsvPositions::new());
    }

    /// Returns the framer at each level of this CPU.
    fn every_level(csv: &Csv) -> Vec<Csv> {
        let Some(special) = super::super::special(csv.dialect()) else { return vec![csv.clone()] };
        let indexes = QuotedIndex::every_level(special).into_iter();
        indexes.map(|index| Csv { index: Some(index), ..csv.clone() }).collect()
    }

    /// Compares the rows of batches of at most `max` records, of which some are cut, with the naive twin.
    fn check_batches(csv: &mut Csv, content: &[u8], eof: bool, max: usize) {
        let (mut at, mut positions) = (0, CsvPositions::new());
        for i in 0.. {
            let (mut offsets, mut others) = (vec![0], vec![0]);
            let mut plain = csv.clone();
            ask(csv);
            let result = csv.batch(&content[at..], eof, max, &mut offsets);
            let other = plain.batch(&content[at..], eof, max, &mut others);
            assert_eq!(offsets, others);
            assert_eq!(format!("{result:?}"), format!("{other:?}"));
            assert_eq!(csv.record_lines(), plain.record_lines());
            if offsets.len() == 1 {
                assert_eq!(csv.call(), 0);
                return;
            }
            let batch = Batch::new(&content[at..], &offsets, csv.trim(), result.unwrap_or(true));
            let cut = if i % 2 == 0 { batch } else { batch.first((i / 2) % (batch.len() + 1)) };
            let expected = naive(csv, &cut);
            // With the call, without it, and again with it.
            for call in [csv.call(), 0, csv.call()] {
                positions.clear();
                assert_eq!(rows(csv, cut.of_call(call), &mut positions), expected);
                assert!(call == 0 || positions.found.ends.is_empty(), "the fields are found again");
            }
            // By a clone that has taken the fields.
            let (call, other) = (csv.call(), csv.clone());
            csv.take_fields(&mut positions);
            assert_eq!(csv.call(), 0);
            for _ in 0..2 {
                assert_eq!(rows(&other, cut.of_call(call), &mut positions), expected);
                assert_eq!(positions.call, call);
            }
            at += offsets[offsets.len() - 1] as usize;
        }
    }

    /// Fields with a length that is no multiple of a step, whose positions differ from record to record.
    fn mixed(count: usize) -> Vec<u8> {
        let record = |i: usize| match i % 7 {
            0 => format!("{i},\"a, {i}\",\n"),
            1 => format!("\"say \"\"{i}\"\"\",{}\r\n", "b".repeat(i % 90)),
            2 => format!("{i},c\r"),
            3 => "\n".to_string(),
            4 => format!(",,{},\n", ",".repeat(i % 70)),
            5 => format!("\"d\n{i}\r\n\",e\n"),
            _ => format!("{},f\n", "g".repeat(i % 200)),
        };
        (0..count).map(record).collect::<String>().into_bytes()
    }

    #[test]
    fn the_pass_that_finds_records_finds_fields_at_every_level() {
        // Several blocks, the last one of which ends in each kind of record.
        let count = if cfg!(miri) { 20 } else { 700 };
        for count in count..count + 7 {
            let content = mixed(count);
            for mut csv in every_level(&Csv::new()) {
                let mut offsets = vec![0];
                csv.batch(&content, true, usize::MAX, &mut offsets).unwrap();
                assert_eq!(csv.call(), 0, "no fields were asked for");
                ask(&csv);
                csv.batch(&content, true, usize::MAX, &mut vec![0]).unwrap();
                assert_ne!(csv.call(), 0, "no fields were found");
                assert_eq!(csv.clone().call(), 0);
                for max in [usize::MAX, 1, 50] {
                    check_batches(&mut csv, &content, true, max);
                    check_batches(&mut csv, &content, false, max);
                }
            }
        }
    }

    #[test]
    fn the_fields_of_other_records_are_not_used() {
        // Records with the same ends, in the same memory, and other fields.
        let (mut memory, other) = (*b"a,bcd\nab,cd\n", *b"abc,d\n,abcd\n");
        for mut csv in every_level(&Csv::new()) {
            memory.copy_from_slice(b"a,bcd\nab,cd\n");
            ask(&csv);
            let mut offsets = vec![0];
            csv.batch(&memory, true, usize::MAX, &mut offsets).unwrap();
            let call = csv.call();
            let mut positions = CsvPositions::new();
            assert_ne!(call, 0);
            memory = other;
            let is_right = |csv: &Csv, call: u64, positions: &mut CsvPositions| {
                let batch = Batch::new(&memory, &offsets, csv.trim(), true).of_call(call);
                rows(csv, batch, positions) == naive(csv, &batch)
            };
            // A batch that no call has found, or another one.
            assert!(is_right(&csv, 0, &mut positions) && is_right(&csv, call + 1, &mut positions));
            assert!(is_right(&csv.clone(), call, &mut positions));
            for of_another in [|_| 0, |call| call + 1] {
                let mut csv = csv.clone();
                ask(&csv);
                csv.batch(b"a,bcd\nab,cd\n", true, usize::MAX, &mut vec![0]).unwrap();
                let call = csv.call();
                csv.take_fields(&mut positions);
                assert!(call != 0 && is_right(&csv, of_another(call), &mut positions));
            }
            // Each call forgets the records of the one before.
            for call_again in [
                |csv: &mut Csv, bytes: &[u8]| drop(csv.step(bytes, Resume::START, true)),
                |csv: &mut Csv, bytes: &[u8]| drop(csv.skip(bytes, Resume::START, true)),
                |csv: &mut Csv, bytes: &[u8]| drop(csv.batch(bytes, true, usize::MAX, &mut vec![0])),
            ] {
                let mut csv = csv.clone();
                ask(&csv);
                csv.batch(b"a,bcd\nab,cd\n", true, usize::MAX, &mut vec![0]).unwrap();
                let call = csv.call();
                call_again(&mut csv, &memory);
                assert!(is_right(&csv, call, &mut positions));
            }
        }
    }

    #[test]
    fn blocks_of_the_automaton_are_searched_again() {
        // In the first, a middle and the last block; and a last record without a line end.
        let valid = mixed(2_000);
        for bad in [&b"a\"b,c\n"[..], b"\xfe,\xff\n", b"d,e"] {
            for at in [0, valid.len() / 2, valid.len()] {
                let at = at + valid[at..].iter().position(|&byte| byte == b'f').map_or(0, |f| f + 2);
                let content = [&valid[..at], bad, &valid[at..]].concat();
                for stray in [CsvStrayQuotes::Error, CsvStrayQuotes::Literal] {
                    for mut csv in every_level(&Csv::with(CsvDialect::new().stray_quotes(stray)).unwrap()) {
                        for max in [usize::MAX, 30] {
                            check_batches(&mut csv, &content, true, max);
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        #[cfg_attr(miri, ignore = "takes minutes")]
        fn rows_are_the_fields_of_each_record(
            content in vec(select(vec![
                &b"a"[..], b",", b"\"", b"\n", b"\r\n", b"\r", b"\"a,\n\"", b"\"\"", b"b,\"c\"\n", b"\xef\xbb\xbf", b"\xff",
                b"a long field, \"with\", more than sixty-four bytes in it, so that steps differ,",
            ]), 0..60),
            start in 0..3_usize,
            (max, eof) in (select(vec![usize::MAX, 1, 2, 7]), any::<bool>()),
            line_end in select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Cr, CsvLineEnd::Crlf]),
            (escape, comment) in (select(vec![None, Some(b'\\')]), select(vec![None, Some(b'b')])),
            blank_lines in select(vec![CsvBlankLines::Skip, CsvBlankLines::Records]),
            stray in select(vec![CsvStrayQuotes::Error, CsvStrayQuotes::Literal]),
        ) {
            let content = content.concat();
            let dialect = CsvDialect::new().line_end(line_end).escape(escape).comment(comment).stray_quotes(stray);
            let mut csv = Csv::with(dialect.blank_lines(blank_lines)).unwrap();
            let mut offsets = vec![0];
            let terminated = csv.batch(&content, true, usize::MAX, &mut offsets).unwrap_or(true);
            let start = start.min(offsets.len() - 1);
            let batch = Batch::new(&content, &offsets[start..], csv.trim(), terminated);
            let expected = naive(&csv, &batch);
            for mut csv in every_level(&csv) {
                prop_assert_eq!(&rows(&csv, batch, &mut CsvPositions::new()), &expected);
                check_batches(&mut csv, &content, eof, max);
            }
        }
    }
}
