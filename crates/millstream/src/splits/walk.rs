//! Follows the records of a file from its start, for framings whose records cannot be found from any position.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::frame::{Csv, Framer, RecordLines, Resume, Step};
use crate::os::cancel::Wait;
use crate::workers::processors;
use millstream_core::internal::JsonElements;

use super::Framing;
use super::chunks::Chunks;
use super::content::{Content, Cursor};
use super::in_order::{AtOnce, InOrder};

const BLOCK: usize = 256 << 10;

/// The part of a file of CSV that a thread follows at a time.
const CHUNK: u64 = 8 << 20;

/// A part of a file that has been followed.
struct Walked {
    /// The number of complete records that begin in it.
    records: u64,
    /// The number of line ends inside these records.
    inner_lines: u64,
    /// The offset of the next record.
    end: u64,
    /// Whether a record that is incomplete or invalid, or the end of the file, ended the traversal.
    is_last: bool,
}

/// Calls `found` with the offset of each record that begins after complete records, the number of these, and the number of
/// line ends inside them; if `framing` is CSV, only for the first record at or after each multiple of `step`. Returns the
/// number of complete records; a record that is incomplete or invalid ends the traversal.
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
    mut found: impl FnMut(u64, u64, u64),
) -> Result<u64> {
    match framing {
        Framing::Csv { dialect } => {
            chunks(content, size, step, CHUNK, &Csv::with(*dialect)?, wait, progress, &mut found)
        }
        _ => {
            let mut next = CHUNK;
            // Only records of CSV contain line ends.
            let found = |offset, records, _: &dyn Fn() -> u64| {
                if offset >= next {
                    progress(offset);
                    next = offset + CHUNK;
                }
                found(offset, records, 0);
            };
            part(content, 0..u64::MAX, size, framing, &mut *framing.framer()?, wait, found).map(|walked| walked.records)
        }
    }
}

/// Follows the records that begin in `range`, whose start is the start of a record. The last argument of `found` counts the
/// line ends inside the records.
fn part(
    content: &Content,
    range: Range<u64>,
    size: u64,
    framing: &Framing,
    framer: &mut (dyn Framer + Send),
    wait: &Wait,
    mut found: impl FnMut(u64, u64, &dyn Fn() -> u64),
) -> Result<Walked> {
    let mut block = Block::new(content.cursor(Some(range.start), range.end.min(size), wait), range.start);
    let mut walked = Walked { records: 0, inner_lines: 0, end: range.start, is_last: true };
    let (mut resume, mut ends) = (Resume::START, Vec::new());
    // How many lines a record is of which only the rest is in the block.
    let mut lines = RecordLines::Unknown;
    let is_scanned = framing.is_scanned();
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
            ends.clear();
            let scanned = framer.batch(input, eof, usize::MAX, &mut ends);
            // Records that begin after the range are not its records.
            let count = ends.partition_point(|&end| block.offset + u64::from(end) < range.end) + 1;
            let is_over = count <= ends.len();
            ends.truncate(count);
            let lines = framer.record_lines();
            let inside = |count| lines.inside(input, ends[..count].iter().map(|&end| end as usize)).unwrap_or(0);
            for (i, &end) in ends.iter().enumerate() {
                walked.records += 1;
                found(block.offset + u64::from(end), walked.records, &|| walked.inner_lines + inside(i + 1));
            }
            walked.inner_lines += inside(ends.len());
            block.consume(ends.last().map_or(0, |&end| end as usize));
            match scanned {
                _ if is_over => continue,
                Err(_) => return Ok(Walked { end: block.offset, ..walked }),
                Ok(_) if !ends.is_empty() => continue,
                Ok(_) => {}
            }
        }
        let input = &block.bytes[block.start..block.end];
        let step = match input {
            [] => Step::More { resume, need: 0 },
            _ => framer.step(input, resume, eof),
        };
        match step {
            Step::Record { len, .. } => {
                let lines = if resume == Resume::START { framer.record_lines() } else { lines };
                walked.inner_lines += lines.inside(input, [len].into_iter()).unwrap_or(0);
                block.consume(len);
                (walked.records, resume) = (walked.records + 1, Resume::START);
                found(block.offset, walked.records, &|| walked.inner_lines);
            }
            Step::Bad(_) => return Ok(Walked { end: block.offset, ..walked }),
            Step::More { need, .. } if need > BLOCK as u64 => {
                let end = block.offset.saturating_add(need);
                // The last byte is read, because it shows whether a BSON document is valid.
                if end > size || !framing.may_end(block.read_byte(end - 1)?) {
                    return Ok(Walked { end: block.offset, ..walked });
                }
                (walked.records, resume) = (walked.records + 1, Resume::START);
                found(end, walked.records, &|| walked.inner_lines);
            }
            Step::More { need, resume: next } => {
                // If the length is unknown, the scanned bytes are not needed again.
                if need == 0 {
                    lines = framer.record_lines();
                    if let RecordLines::Several(line_end) = lines {
                        walked.inner_lines += memchr::memchr_iter(line_end, &input[..next.scanned()]).count() as u64;
                    }
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

/// The first records at or after multiples of a step: their offsets, and the numbers of records before them and of line ends
/// inside these.
type Boundaries = Vec<(u64, u64, u64)>;

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
    found: &mut dyn FnMut(u64, u64, u64),
) -> Result<u64> {
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
    let (mut records, mut lines, threads) = (0, 0, if size > chunk { processors() } else { 0 });
    let parts = Chunks { content: content.clone(), wait: wait.clone(), csv: csv.clone(), size, step: chunk };
    let mut results = InOrder::start(parts, threads, false, follow);
    while let Some(result) = results.next_piece()? {
        let (Walked { records: more, inner_lines, end, is_last }, boundaries) = result?;
        boundaries.into_iter().for_each(|(offset, number, inner)| found(offset, records + number, lines + inner));
        (records, lines) = (records + more, lines + inner_lines);
        progress(end);
        if is_last {
            break;
        }
    }
    Ok(records)
}

/// Follows a part whose start is the start of a record.
fn follow(
    content: &Content,
    range: Range<u64>,
    size: u64,
    step: u64,
    csv: &mut Csv,
    wait: &Wait,
) -> Result<(Walked, Boundaries)> {
    let (mut boundaries, mut next) = (Vec::new(), range.start / step * step);
    let framing = Framing::Csv { dialect: *csv.dialect() };
    let walked = part(content, range, size, &framing, csv, wait, |offset, number, inner_lines| {
        if offset >= next {
            boundaries.push((offset, number, inner_lines()));
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
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::frame::{CsvDialect, CsvLineEnd, CsvStrayQuotes};

    /// Follows a file, and returns the number of records.
    type Follow<'a> = dyn FnMut(&mut dyn FnMut(u64, u64, u64)) -> u64 + 'a;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Most guesses are wrong here: quotes are frequent.
        #[test]
        fn parts_together_are_the_file(
            content in vec(select(vec![
                &b"a"[..], b",", b"\"", b"\n", b"\r\n", b"\r", b"\"a,\n\"", b"\"\"", b"b,\"c\"\n", b"\xef\xbb\xbf", b"\\",
            ]), 0..60),
            (chunk, step) in (1..40_u64, 1..40_u64),
            line_end in select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Cr, CsvLineEnd::Crlf]),
            escape in select(vec![None, Some(b'\\')]),
            stray in select(vec![CsvStrayQuotes::Error, CsvStrayQuotes::Literal]),
        ) {
            let content = content.concat();
            let file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut &file, &content).unwrap();
            let file = Content::File(Arc::new(file));
            let dialect = CsvDialect::new().line_end(line_end).escape(escape).stray_quotes(stray);
            let (mut csv, size, wait) = (Csv::with(dialect).unwrap(), content.len() as u64, Wait::default());
            let framing = Framing::Csv { dialect };
            // As a plan uses them: the first record at or after each multiple of the step.
            let planned = |mut follow: Box<Follow<'_>>| {
                let (mut boundaries, mut next) = (Vec::new(), step);
                let records = follow(&mut |offset, number, inner_lines| {
                    if offset >= next {
                        boundaries.push((offset, number, inner_lines));
                        next = (offset / step + 1) * step;
                    }
                });
                (records, boundaries)
            };
            let expected = planned(Box::new(|found| {
                let found = |offset, number, inner_lines: &dyn Fn() -> u64| found(offset, number, inner_lines());
                part(&file, 0..u64::MAX, size, &framing, &mut csv, &wait, found).unwrap().records
            }));
            let csv = Csv::with(dialect).unwrap();
            let found = planned(Box::new(|found| chunks(&file, size, step, chunk, &csv, &wait, &|_| {}, found).unwrap()));
            prop_assert_eq!(found, expected);
        }
    }
}
