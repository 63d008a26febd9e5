//! Collects whole records into blocks of a limited size.

use std::sync::Arc;

use millstream::{Command, Error};

/// Whole records for one copy of the command.
#[derive(Clone)]
pub(super) struct Block {
    /// The number of the block; the first is 0.
    pub(super) index: u64,
    /// The block's position in the data that the copies get.
    pub(super) offset: u64,
    pub(super) first_record: u64,
    pub(super) records: u64,
    /// Whether the records are lines, which are counted from 1.
    pub(super) of_lines: bool,
    /// The header, if there is one, and the records.
    pub(super) bytes: Arc<Vec<u8>>,
    /// The number of bytes of the records.
    pub(super) len: u64,
}

impl Block {
    /// Returns the command with the block's place in its environment.
    pub(super) fn describe(&self, command: Command) -> Command {
        command
            .env("MILLSTREAM_BLOCK", self.index.to_string())
            .env("MILLSTREAM_RECORD", self.first_record.to_string())
            .env("MILLSTREAM_RECORDS", self.records.to_string())
            .env("MILLSTREAM_BEGIN", self.offset.to_string())
            .env("MILLSTREAM_END", (self.offset + self.len).to_string())
    }

    /// Adds the position of this block to the error of the copy that got it. `which` names the copy.
    pub(super) fn locate(&self, which: &str, error: Error) -> Error {
        let (noun, first) = if self.of_lines { ("line", self.first_record + 1) } else { ("record", self.first_record) };
        let last = first + self.records.saturating_sub(1);
        let records = if first == last { format!("{noun} {first}") } else { format!("{noun}s {first} to {last}") };
        // The position at which the copy's own output ended is removed.
        let error = match error.command() {
            Some(end) => Error::new(error.kind()).with_command(end.clone()),
            None => error,
        };
        let error = error.with_path(format!("{which}the block of {records}")).with_offset(self.offset);
        let error = error.with_record(self.first_record);
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
            first_record: self.first_record,
            records,
            of_lines: self.of_lines,
            bytes: Arc::new(bytes),
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
        let text = |block: &Block| String::from_utf8(block.bytes.to_vec()).unwrap();
        blocks.iter().map(|block| (text(block), block.offset, block.first_record, block.records)).collect()
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
        let found: Vec<_> = blocks.iter().map(|block| (block.bytes.as_slice(), block.offset)).collect();
        assert_eq!(found, [(&b"h\naa"[..], 0), (b"h\nbb", 2), (b"h\nlong", 4)]);
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
