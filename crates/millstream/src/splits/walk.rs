//! Follows the records of a file from its start, for framings whose records cannot be found from any position.

use std::ops::{Add, Range};
use std::sync::Arc;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::frame::{Batch, Csv, Framer, RecordLines, Resume, Step};
use crate::os::cancel::Wait;
use crate::os::stamp::shrank;
use crate::workers::processors;
use millstream_core::internal::JsonElements;

use super::Framing;
use super::chunks::Chunks;
use super::content::{Content, Cursor};
use super::in_order::{AtOnce, Found, InOrder, Parts};

const BLOCK: usize = 256 << 10;

/// The part of a file that a thread follows at a time.
pub(super) const CHUNK: u64 = 8 << 20;

/// The first bytes of a record that show whether it is skipped: a byte order mark, a line end, and at least one more.
const HEAD: usize = 8;

/// The numbers of what has been followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counts {
    /// The complete records.
    pub(super) records: u64,
    /// The line ends inside these records.
    pub(super) inner_lines: u64,
    /// The records that are skipped: the blank lines and comments of CSV.
    pub(super) skipped: u64,
}

impl Counts {
    /// Returns the number of records that are not skipped.
    pub(super) fn rows(self) -> u64 {
        self.records - self.skipped
    }

    /// Returns whether these can be the numbers at a later position.
    pub(super) fn is_after(self, other: Counts) -> bool {
        let rows = |counts: Counts| counts.records.checked_sub(counts.skipped);
        self.inner_lines >= other.inner_lines
            && self.skipped >= other.skipped
            && rows(self) >= rows(other)
            && rows(self).is_some()
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            records: self.records + other.records,
            inner_lines: self.inner_lines + other.inner_lines,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// A part of a file that has been followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walked {
    /// The complete records that begin in it.
    pub(super) counts: Counts,
    /// The offset of the next record.
    pub(super) end: u64,
    /// Whether a record that is incomplete or invalid, or the end of the file, ended the traversal.
    pub(super) is_last: bool,
}

/// Calls `found` with the offset of each record that begins after complete records, and the counts of these; if `framing` is
/// CSV, only for the first record at or after each multiple of `step`. A record that is incomplete or invalid ends the
/// traversal.
///
/// `progress` is called with the number of bytes that have been followed.
///
/// The memory is one block of 256 KiB for each thread. The content of a longer record is skipped if its length is known.
pub(super) fn walk(
    content: &Content,
    size: u64,
    framing: &Framing,
    step: u64,
    wait: &Wait,
    progress: &dyn Fn(u64),
    found: &mut dyn FnMut(u64, Counts),
) -> Result<Walked> {
    match framing {
        Framing::Csv { dialect } => chunks(content, size, step, CHUNK, &Csv::with(*dialect)?, wait, progress, found),
        _ => {
            let mut next = CHUNK;
            let found = |offset, counts: &dyn Fn() -> Counts| {
                if offset >= next {
                    progress(offset);
                    next = offset + CHUNK;
                }
                found(offset, counts());
            };
            part(content, 0..u64::MAX, size, framing, &mut *framing.framer()?, wait, found)
        }
    }
}

/// Follows the records that begin in `range`, whose start is the start of a record. The last argument of `found` returns the
/// counts of the records so far.
fn part(
    content: &Content,
    range: Range<u64>,
    size: u64,
    framing: &Framing,
    framer: &mut (dyn Framer + Send),
    wait: &Wait,
    mut found: impl FnMut(u64, &dyn Fn() -> Counts),
) -> Result<Walked> {
    let mut block = Block::new(content.cursor(Some(range.start), range.end.min(size), wait), range.start);
    let mut walked = Walked { counts: Counts::default(), end: range.start, is_last: true };
    let (mut resume, mut offsets) = (Resume::START, Vec::new());
    // Of a record of which only the rest is in the block: how many lines it is, and its first bytes.
    let (mut lines, mut head) = (RecordLines::Unknown, Vec::with_capacity(HEAD));
    let (is_scanned, trim) = (framing.is_scanned(), framer.trim());
    loop {
        if resume == Resume::START && block.offset >= range.end {
            return Ok(Walked { end: block.offset, is_last: false, ..walked });
        }
        let input = &block.bytes[block.start..block.end];
        let eof = block.offset + input.len() as u64 >= size;
        if eof && input.is_empty() {
            return Ok(Walked { end: block.offset, ..walked });
        }
        if is_scanned && resume == Resume::START && !input.is_empty() {
            offsets.clear();
            offsets.push(0);
            let scanned = framer.batch(input, eof, usize::MAX, &mut offsets);
            // Records that begin after the range are not its records.
            let begins_inside = |&end: &u32| block.offset + u64::from(end) < range.end;
            let count = offsets.partition_point(begins_inside).min(offsets.len() - 1);
            let is_over = block.offset + u64::from(offsets[count]) >= range.end;
            let is_whole = count + 1 == offsets.len();
            offsets.truncate(count + 1);
            let (lines, counted) = (framer.record_lines(), framer.inner_lines());
            // The counts after the first `count` records.
            let counts = |count: usize| {
                let terminated = !is_whole || count + 1 < offsets.len() || !matches!(scanned, Ok(false));
                let batch = Batch::new(input, &offsets[..=count], trim, terminated);
                walked.counts
                    + Counts {
                        records: count as u64,
                        inner_lines: lines
                            .inside_batch(counted, input, offsets[1..=count].iter().map(|&end| end as usize))
                            .unwrap_or(0),
                        skipped: framer.count_skipped(&batch) as u64,
                    }
            };
            for (i, &end) in (1..).zip(&offsets[1..]) {
                found(block.offset + u64::from(end), &|| counts(i));
            }
            walked.counts = counts(count);
            block.consume(offsets[count] as usize);
            match scanned {
                _ if is_over => continue,
                Err(_) => return Ok(Walked { end: block.offset, ..walked }),
                Ok(_) if count > 0 => continue,
                Ok(_) => {}
            }
        }
        let input = &block.bytes[block.start..block.end];
        let step = match input {
            [] => Step::More { resume, need: 0 },
            _ => framer.step(input, resume, eof),
        };
        match step {
            Step::Record { len, terminated } => {
                let lines = if resume == Resume::START { framer.record_lines() } else { lines };
                extend(&mut head, &input[..len]);
                let content = if head.len() < HEAD { trim.apply(&head, terminated) } else { &head };
                walked.counts = walked.counts
                    + Counts {
                        records: 1,
                        inner_lines: lines.inside(input, [len].into_iter()).unwrap_or(0),
                        skipped: framer.skips(content).into(),
                    };
                head.clear();
                block.consume(len);
                resume = Resume::START;
                found(block.offset, &|| walked.counts);
            }
            Step::Bad(_) => return Ok(Walked { end: block.offset, ..walked }),
            Step::More { need, .. } if need > BLOCK as u64 => {
                let end = block.offset.saturating_add(need);
                // The last byte is read, because it shows whether a BSON document is valid.
                if end > size || !framing.may_end(block.read_byte(end - 1)?) {
                    return Ok(Walked { end: block.offset, ..walked });
                }
                head.clear();
                (walked.counts.records, resume) = (walked.counts.records + 1, Resume::START);
                found(end, &|| walked.counts);
            }
            Step::More { need, resume: next } => {
                // If the length is unknown, the scanned bytes are not needed again.
                if need == 0 {
                    lines = framer.record_lines();
                    if let RecordLines::Several(line_end) = lines {
                        walked.counts.inner_lines +=
                            memchr::memchr_iter(line_end, &input[..next.scanned()]).count() as u64;
                    }
                    extend(&mut head, &input[..next.scanned()]);
                    block.consume(next.scanned());
                    resume = next.dropped();
                }
                wait.check()?;
                if block.fill(size)? == 0 {
                    return Ok(Walked { end: block.offset, ..walked });
                }
            }
        }
    }
}

/// Returns how many records begin before each of these offsets, which ascend, up to the last one, the end of the content.
/// `delimiter` ends each record, and cannot overlap itself. The delimiters are counted on all cores, in parts of `chunk`
/// bytes.
///
/// The memory is one block of 256 KiB for each thread, and for an object also the ranges of a part.
pub(super) fn count_before(
    content: &Content,
    offsets: impl Iterator<Item = u64>,
    delimiter: &[u8],
    chunk: u64,
    wait: &Wait,
    progress: &dyn Fn(u64),
) -> Result<Vec<u64>> {
    let mut offsets: Vec<u64> = offsets.collect();
    let size = offsets.last().copied().unwrap_or(0);
    // A record begins at the start, and after each delimiter.
    let at_start = offsets.partition_point(|&offset| offset == 0);
    let mut numbers = vec![0; at_start];
    let offsets: Arc<[u64]> = offsets.drain(at_start..).collect();
    let count = {
        let (content, delimiter, wait) = (content.clone(), delimiter.to_vec(), wait.clone());
        move |range: &Range<u64>| {
            let inside = offsets.partition_point(|&offset| offset <= range.start)
                ..offsets.partition_point(|&offset| offset <= range.end);
            let counted = count_inside(&content, range, size, &offsets[inside], &delimiter, &wait);
            AtOnce::new(counted.map(|counted| ((counted, range.end), range.end)))
        }
    };
    let most = match content {
        Content::File(_) => processors(),
        // As much memory as one object's ranges have by default.
        Content::Object(_) => processors().min(10),
    };
    let threads = if size > chunk { most } else { 0 };
    let mut results = InOrder::start(Pieces { size, step: chunk }, threads, false, count);
    let mut before = 0;
    while let Some(result) = results.next_piece()? {
        let ((counts, total), end) = result?;
        numbers.extend(counts.into_iter().map(|count| before + count + 1));
        before += total;
        progress(end);
    }
    Ok(numbers)
}

/// Returns how many delimiters end after the start of a range and before each of these offsets, which are in the range or at
/// its end, and how many end after its start and not after its end.
fn count_inside(
    content: &Content,
    range: &Range<u64>,
    size: u64,
    offsets: &[u64],
    delimiter: &[u8],
    wait: &Wait,
) -> Result<(Vec<u64>, u64)> {
    let finder = memmem::Finder::new(delimiter);
    let count_in = |bytes: &[u8]| match delimiter {
        &[byte] => memchr::memchr_iter(byte, bytes).count() as u64,
        _ => finder.find_iter(bytes).count() as u64,
    };
    // The bytes before `at` have been searched; the last `kept` of them, at the start of the block, may begin a delimiter.
    // A delimiter that begins before the first of them ends at the start or before it.
    let (mut at, mut kept, mut total) = (range.start.saturating_sub(delimiter.len() as u64 - 1), 0, 0);
    let mut cursor = content.cursor(Some(at), range.end, wait);
    let mut block = vec![0; BLOCK.max(2 * delimiter.len())];
    let mut count_up_to = |end: u64| {
        while at < end {
            wait.check()?;
            let len = (block.len() - kept).min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let read = cursor.read_at(&mut block[kept..kept + len], at).map_err(Error::from_io)?;
            if read == 0 {
                return Err(shrank(content.size()?.min(at), size));
            }
            at += read as u64;
            let searched = kept + read;
            total += count_in(&block[..searched]);
            kept = searched.min(delimiter.len() - 1);
            block.copy_within(searched - kept..searched, 0);
        }
        Ok(total)
    };
    let counts = offsets.iter().map(|offset| count_up_to(offset - 1)).collect::<Result<Vec<u64>>>()?;
    Ok((counts, count_up_to(range.end)?))
}

/// Parts of `step` bytes, which can be worked on in any order.
#[derive(Clone)]
struct Pieces {
    size: u64,
    step: u64,
}

impl Pieces {
    fn range(&self, index: usize) -> Range<u64> {
        let start = index as u64 * self.step;
        start..self.size.min(start.saturating_add(self.step))
    }
}

impl Parts for Pieces {
    type Part = Range<u64>;

    fn count(&self) -> usize {
        usize::try_from(self.size.div_ceil(self.step)).unwrap_or(usize::MAX)
    }

    fn guess(&self, index: usize) -> Option<(Range<u64>, u64)> {
        let range = self.range(index);
        Some((range.clone(), range.start))
    }

    fn check(&self, index: usize, guess: Option<u64>, _begin: u64) -> Found<Range<u64>> {
        match guess {
            Some(_) => Found::Right,
            None => Found::Other(self.range(index)),
        }
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }
}

/// Appends bytes to the first ones of a record.
fn extend(head: &mut Vec<u8>, bytes: &[u8]) {
    head.extend_from_slice(&bytes[..bytes.len().min(HEAD - head.len())]);
}

/// Follows a JSON document from its start. Calls `found` after each element with its end, and the number of bytes that it has
/// as a record. The end of the file or an error ends the traversal.
pub(super) fn walk_elements(
    content: &Content,
    size: u64,
    elements: &mut JsonElements,
    wait: &Wait,
    progress: &dyn Fn(u64),
    mut found: impl FnMut(&JsonElements, u64, u64),
) -> Result<()> {
    let mut block = Block::new(content.cursor(Some(0), size, wait), 0);
    // The bytes of the element so far, in earlier blocks.
    let mut kept = 0;
    while block.fill(size)? > 0 {
        wait.check()?;
        while block.start < block.end {
            let followed = elements.follow(&block.bytes[block.start..block.end]);
            block.consume(followed.used);
            kept += followed.kept as u64;
            match followed.ended {
                Ok(true) => found(elements, block.offset, std::mem::take(&mut kept) + 1),
                Ok(false) => {}
                Err(_) => return Ok(()),
            }
        }
        progress(block.offset);
    }
    Ok(())
}

/// The first records at or after multiples of a step: their offsets, and the counts of the records before them.
pub(super) type Boundaries = Vec<(u64, Counts)>;

/// Follows a file of CSV on all cores, in parts of `chunk` bytes.
#[expect(clippy::too_many_arguments, reason = "the tests need all of them")]
fn chunks(
    content: &Content,
    size: u64,
    step: u64,
    chunk: u64,
    csv: &Csv,
    wait: &Wait,
    progress: &dyn Fn(u64),
    found: &mut dyn FnMut(u64, Counts),
) -> Result<Walked> {
    let follow = {
        let (content, csv, wait) = (content.clone(), csv.clone(), wait.clone());
        move |range: &Range<u64>| {
            let followed = follow(&content, range.clone(), size, step, &mut csv.clone(), &wait);
            AtOnce::new(followed.map(|(walked, boundaries)| {
                let end = walked.end;
                ((walked, boundaries), end)
            }))
        }
    };
    let mut whole = Walked { counts: Counts::default(), end: 0, is_last: true };
    let threads = if size > chunk { processors() } else { 0 };
    let parts = Chunks { content: content.clone(), wait: wait.clone(), csv: csv.clone(), size, step: chunk };
    let mut results = InOrder::start(parts, threads, false, follow);
    while let Some(result) = results.next_piece()? {
        let (walked, boundaries) = result?;
        boundaries.into_iter().for_each(|(offset, counts)| found(offset, whole.counts + counts));
        whole = Walked { counts: whole.counts + walked.counts, ..walked };
        progress(whole.end);
        if whole.is_last {
            break;
        }
    }
    Ok(whole)
}

/// Follows a part whose start is the start of a record. Returns also the first records at or after multiples of `step`.
pub(super) fn follow(
    content: &Content,
    range: Range<u64>,
    size: u64,
    step: u64,
    csv: &mut Csv,
    wait: &Wait,
) -> Result<(Walked, Boundaries)> {
    let (mut boundaries, mut next) = (Vec::new(), range.start / step * step);
    let framing = Framing::Csv { dialect: *csv.dialect() };
    let walked = part(content, range, size, &framing, csv, wait, |offset, counts| {
        if offset >= next {
            boundaries.push((offset, counts()));
            next = (offset / step + 1).saturating_mul(step);
        }
    })?;
    Ok((walked, boundaries))
}

/// A part of the file. The next byte is `bytes[start]`, at `offset`.
struct Block<'a> {
    cursor: Cursor<'a>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl<'a> Block<'a> {
    fn new(cursor: Cursor<'a>, offset: u64) -> Block<'a> {
        Block { cursor, bytes: vec![0; BLOCK], start: 0, end: 0, offset }
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    /// Appends bytes, none of them after `size`, and returns their number.
    fn fill(&mut self, size: u64) -> Result<usize> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let at = self.offset + self.end as u64;
        let space = (BLOCK - self.end).min(usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX));
        let count = self.cursor.read_at(&mut self.bytes[self.end..self.end + space], at).map_err(Error::from_io)?;
        self.end += count;
        Ok(count)
    }

    /// Continues after the byte at `offset`, which is after the block, and returns it.
    fn read_byte(&mut self, offset: u64) -> Result<u8> {
        let mut byte = [0];
        self.cursor.read_exact_at(&mut byte, offset).map_err(Error::from_io)?;
        (self.start, self.end, self.offset) = (0, 0, offset + 1);
        Ok(byte[0])
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::frame::{CsvDialect, CsvLineEnd, CsvStrayQuotes};

    /// Follows a file.
    type Follow<'a> = dyn FnMut(&mut dyn FnMut(u64, Counts)) -> Walked + 'a;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn parts_together_have_the_delimiters_of_the_file(
            content in vec(select(&b"aab\n"[..]), 0..60),
            delimiter in select(vec![&b"\n"[..], b"ab", b"aab", b"ab\n\n", b"aaaabbbb"]),
            offsets in vec(0..61_u64, 0..20),
            chunk in 1..40_u64,
        ) {
            let file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut &file, &content).unwrap();
            let (file, size, wait) = (Content::File(Arc::new(file)), content.len() as u64, Wait::default());
            let mut offsets: Vec<u64> = offsets.into_iter().filter(|&offset| offset <= size).chain([size]).collect();
            offsets.sort_unstable();
            let ends = content.windows(delimiter.len()).enumerate().filter(|(_, bytes)| *bytes == delimiter);
            let begins: Vec<u64> =
                [0].into_iter().chain(ends.map(|(at, _)| (at + delimiter.len()) as u64)).collect();
            let expected: Vec<u64> =
                offsets.iter().map(|&offset| begins.iter().filter(|&&begin| begin < offset).count() as u64).collect();
            let found = count_before(&file, offsets.into_iter(), delimiter, chunk, &wait, &|_| {}).unwrap();
            prop_assert_eq!(found, expected);
        }

        /// Most guesses are wrong here: quotes are frequent.
        #[test]
        fn parts_together_are_the_file(
            content in vec(select(vec![
                &b"a"[..], b",", b"\"", b"\n", b"\r\n", b"\r", b"\"a,\n\"", b"\"\"", b"b,\"c\"\n", b"\xef\xbb\xbf", b"\\",
                b"\n\n", b"#",
            ]), 0..60),
            (chunk, step) in (1..40_u64, 1..40_u64),
            line_end in select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Cr, CsvLineEnd::Crlf]),
            escape in select(vec![None, Some(b'\\')]),
            stray in select(vec![CsvStrayQuotes::Error, CsvStrayQuotes::Literal]),
            comment in select(vec![None, Some(b'#')]),
        ) {
            let content = content.concat();
            let file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut &file, &content).unwrap();
            let file = Content::File(Arc::new(file));
            let dialect = CsvDialect::new().line_end(line_end).escape(escape).stray_quotes(stray).comment(comment);
            let (mut csv, size, wait) = (Csv::with(dialect).unwrap(), content.len() as u64, Wait::default());
            let framing = Framing::Csv { dialect };
            // As a plan uses them: the first record at or after each multiple of the step.
            let planned = |mut follow: Box<Follow<'_>>| {
                let (mut boundaries, mut next) = (Vec::new(), step);
                let Walked { counts, end, .. } = follow(&mut |offset, counts| {
                    if offset >= next {
                        boundaries.push((offset, counts));
                        next = (offset / step + 1) * step;
                    }
                });
                (counts, end, boundaries)
            };
            let expected = planned(Box::new(|found| {
                let found = |offset, counts: &dyn Fn() -> Counts| found(offset, counts());
                part(&file, 0..u64::MAX, size, &framing, &mut csv, &wait, found).unwrap()
            }));
            let csv = Csv::with(dialect).unwrap();
            let found = planned(Box::new(|found| chunks(&file, size, step, chunk, &csv, &wait, &|_| {}, found).unwrap()));
            prop_assert_eq!(found, expected);
        }
    }
}
