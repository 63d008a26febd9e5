//! Collects whole records into blocks of a limited size.

use std::ops::Range;
use std::sync::Arc;

use millstream::{Command, Error, PinnedFile, Stdin};

/// Whole records for one copy of the command.
#[derive(Clone)]
pub(super) struct Block {
    /// The number of the block; the first is 0.
    pub(super) index: u64,
    /// The block's position in the data that the copies get.
    pub(super) offset: u64,
    /// The numbers of the records, if they are counted.
    pub(super) records: Option<Range<u64>>,
    /// Whether the records are lines, which are counted from 1.
    pub(super) of_lines: bool,
    pub(super) content: Content,
    /// The number of bytes of the records.
    pub(super) len: u64,
}

/// What a copy reads.
#[derive(Clone)]
pub(super) enum Content {
    /// The header, if there is one, and the records.
    Bytes(Arc<Vec<u8>>),
    /// The block's place in this file.
    Part(Arc<PinnedFile>),
}

impl Block {
    /// Returns the command with the block as its input, and the block's place in its environment, with the numbers of the
    /// records if `is_numbered`.
    pub(super) fn passed_to(&self, command: Command, is_numbered: bool) -> Command {
        let Range { start, end } = self.range();
        let command = command
            .env("MILLSTREAM_BLOCK", self.index.to_string())
            .env("MILLSTREAM_BEGIN", start.to_string())
            .env("MILLSTREAM_END", end.to_string());
        let command = match self.records.as_ref().filter(|_| is_numbered) {
            Some(records) => command
                .env("MILLSTREAM_RECORD", records.start.to_string())
                .env("MILLSTREAM_RECORDS", (records.end - records.start).to_string()),
            None => command,
        };
        command.stdin(match &self.content {
            Content::Bytes(bytes) => Stdin::Bytes(bytes.clone()),
            Content::Part(file) => Stdin::Part(file.clone(), start..end),
        })
    }

    /// Returns the block's place in the data that the copies get.
    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }

    /// Returns the number of bytes that a copy gets.
    pub(super) fn size(&self) -> u64 {
        match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Part(_) => self.len,
        }
    }

    /// Adds the position of this block to the error of the copy that got it. `which` names the copy.
    pub(super) fn locate(&self, which: &str, error: Error) -> Error {
        // The position at which the copy's own output ended is removed.
        let error = match error.command() {
            Some(end) => Error::new(error.kind()).with_command(end.clone()),
            None => error,
        };
        let Some(records) = &self.records else {
            let Range { start, end } = self.range();
            return error.with_path(format!("{which}the block of bytes {start} to {end}")).with_offset(start);
        };
        let (noun, first) = if self.of_lines { ("line", records.start + 1) } else { ("record", records.start) };
        let last = first + (records.end - records.start).saturating_sub(1);
        let range = if first == last { format!("{noun} {first}") } else { format!("{noun}s {first} to {last}") };
        let error = error.with_path(format!("{which}the block of {range}")).with_offset(self.offset);
        let error = error.with_record(records.start);
        if self.of_lines { error.with_line(first) } else { error }
    }
}

/// Collects records that arrive in batches into blocks.
pub(super) struct Cutter {
    size: usize,
    of_lines: bool,
    /// The bytes at the start of every block.
    header: Vec<u8>,
    /// The bytes that have been collected.
    bytes: Vec<u8>,
    records: u64,
    /// The number of blocks, bytes and records that have been passed on.
    index: u64,
    offset: u64,
    first_record: u64,
}

impl Cutter {
    /// Creates blocks of at most `size` bytes, unless one record is longer. The records may be lines.
    pub(super) fn new(size: usize, of_lines: bool) -> Cutter {
        let header = Vec::new();
        Cutter { size, of_lines, header, bytes: Vec::new(), records: 0, index: 0, offset: 0, first_record: 0 }
    }

    /// Returns the block of this part of a file.
    pub(super) fn part(&mut self, file: &Arc<PinnedFile>, range: Range<u64>) -> Block {
        let index = self.index;
        self.index += 1;
        Block {
            index,
            offset: range.start,
            records: None,
            of_lines: self.of_lines,
            content: Content::Part(file.clone()),
            len: range.end - range.start,
        }
    }

    /// Makes every block begin with `header`. No records have been added yet.
    pub(super) fn begin_with(&mut self, header: Vec<u8>) {
        self.header = header;
    }

    /// Adds n records: n + 1 `offsets` into `bytes`. Each full block is passed to `give`.
    pub(super) fn add<E>(
        &mut self,
        bytes: &[u8],
        mut offsets: &[u32],
        mut give: impl FnMut(Block) -> Result<(), E>,
    ) -> Result<(), E> {
        while let &[start, _, ..] = offsets {
            let begun = self.bytes.len().max(self.header.len());
            let space = self.size.saturating_sub(begun);
            let fits = offsets[1..].partition_point(|&end| (end - start) as usize <= space);
            if fits == 0 && begun > self.header.len() {
                give(self.cut())?;
                continue;
            }
            let taken = fits.max(1); // a record that is longer than a block is a separate block
            let end = offsets[taken];
            if self.bytes.capacity() == 0 {
                self.bytes.reserve_exact(self.size.max(self.header.len() + (end - start) as usize));
                self.bytes.extend_from_slice(&self.header);
            }
            self.bytes.extend_from_slice(&bytes[start as usize..end as usize]);
            self.records += taken as u64;
            offsets = &offsets[taken..];
        }
        Ok(())
    }

    /// Returns the remaining records at the end.
    pub(super) fn rest(&mut self) -> Option<Block> {
        (self.records > 0).then(|| self.cut())
    }

    fn cut(&mut self) -> Block {
        let bytes = std::mem::take(&mut self.bytes);
        let records = std::mem::take(&mut self.records);
        let len = (bytes.len() - self.header.len()) as u64;
        let block = Block {
            index: self.index,
            offset: self.offset,
            records: Some(self.first_record..self.first_record + records),
            of_lines: self.of_lines,
            content: Content::Bytes(Arc::new(bytes)),
            len,
        };
        self.index += 1;
        self.offset += len;
        self.first_record += records;
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the blocks of these records, and the start of each.
    fn blocks(size: usize, batches: &[&[&str]]) -> Vec<(String, u64, u64, u64)> {
        let (mut cutter, mut blocks) = (Cutter::new(size, false), Vec::new());
        for batch in batches {
            let mut offsets = vec![0];
            for record in *batch {
                offsets.push(offsets.last().unwrap() + record.len() as u32);
            }
            let add = |block| {
                blocks.push(block);
                Ok::<(), ()>(())
            };
            cutter.add(batch.concat().as_bytes(), &offsets, add).unwrap();
        }
        blocks.extend(cutter.rest());
        assert!(blocks.iter().zip(0..).all(|(block, index)| block.index == index));
        let records = |block: &Block| block.records.clone().unwrap();
        let count = |block: &Block| records(block).end - records(block).start;
        blocks.iter().map(|block| (text(block), block.offset, records(block).start, count(block))).collect()
    }

    fn text(block: &Block) -> String {
        let Content::Bytes(bytes) = &block.content else { panic!("a part of a file") };
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn records_stay_whole() {
        let expected = [("aabb".to_string(), 0, 0, 2), ("cc".to_string(), 4, 2, 1)];
        assert_eq!(blocks(5, &[&["aa"], &["bb", "cc"]]), expected);
        assert_eq!(blocks(4, &[&["aa", "bb", "cc"]]), expected);
        assert_eq!(blocks(100, &[&["aa"], &[], &["b"]]), [("aab".to_string(), 0, 0, 2)]);
        assert!(blocks(1, &[]).is_empty());
    }

    #[test]
    fn every_block_begins_with_the_header() {
        let (mut cutter, mut blocks) = (Cutter::new(5, true), Vec::new());
        cutter.begin_with(b"h\n".to_vec());
        let add = |block| {
            blocks.push(block);
            Ok::<(), ()>(())
        };
        cutter.add(b"aabblong", &[0, 2, 4, 8], add).unwrap();
        blocks.extend(cutter.rest());
        let found: Vec<_> = blocks.iter().map(|block| (text(block), block.offset)).collect();
        assert_eq!(found, [("h\naa".into(), 0), ("h\nbb".into(), 2), ("h\nlong".into(), 4)]);
    }

    #[test]
    fn a_record_that_is_longer_is_a_block() {
        let expected = [("a".to_string(), 0, 0, 1), ("long".to_string(), 1, 1, 1), ("b".to_string(), 5, 2, 1)];
        assert_eq!(blocks(2, &[&["a", "long"], &["b"]]), expected);
    }

    #[test]
    fn records_without_bytes_are_counted() {
        assert_eq!(blocks(2, &[&["", ""]]), [(String::new(), 0, 0, 2)]);
    }
}
